#include "rhea/components/tokenizer/sentencepiece_model.h"

#include <sentencepiece_processor.h>

#include <array>

#include "rhea/base/error.h"

namespace rhea::tokenizer {

struct SentencePieceModel::Impl {
  sentencepiece::SentencePieceProcessor processor;
};

namespace {

// What the library says of a failure, by status or (of damaged files) by exception; empty: none.
template <class F>
std::string failure_of(F&& call) {
  try {
    const auto status = call();
    return status.ok() ? std::string() : status.ToString();
  } catch (const std::exception& error) {
    return error.what();
  }
}

// The pieces that every file begins with, and where fairseq has them.
constexpr std::array kFirstPieces = {"<unk>", "<s>", "</s>"};
constexpr std::array<int32_t, 3> kFairseqIds = {3, 0, 2};
constexpr int32_t kFairseqPad = 1;

}  // namespace

SentencePieceModel::SentencePieceModel(std::string_view bytes, const std::string& name,
                                       PieceIds ids)
    : impl_(std::make_unique<Impl>()), ids_(ids) {
  const std::string failure =
      failure_of([&] { return impl_->processor.LoadFromSerializedProto(bytes); });
  if (!failure.empty())
    throw Error("{}: neither a SentencePiece model nor a tiktoken file: {}", name, failure);
  const int count = impl_->processor.GetPieceSize();
  if (ids_ == PieceIds::file) {
    for (int id = 0; id < count; ++id) vocabulary_.append(impl_->processor.IdToPiece(id));
    return;
  }
  constexpr int kNumFirst = static_cast<int>(kFirstPieces.size());
  for (int id = 0; id < kNumFirst; ++id)
    if (const std::string piece = id < count ? impl_->processor.IdToPiece(id) : "";
        piece != kFirstPieces[static_cast<size_t>(id)])
      throw Error(
          "{}: piece {} is '{}', but XLM-RoBERTa's numbering needs files that begin with <unk>, "
          "<s>, </s>; is the tokenizer_class of another file?",
          name, id, piece);
  for (const char* token : {"<s>", "<pad>", "</s>", "<unk>"}) vocabulary_.append(token);
  for (int id = kNumFirst; id < count; ++id) vocabulary_.append(impl_->processor.IdToPiece(id));
  vocabulary_.append("<mask>");
}

int32_t SentencePieceModel::id_of(int piece) const {
  if (ids_ == PieceIds::file) return piece;
  const auto i = static_cast<size_t>(piece);
  return i < kFairseqIds.size() ? kFairseqIds[i] : piece + 1;
}

SentencePieceModel::~SentencePieceModel() = default;
SentencePieceModel::SentencePieceModel(SentencePieceModel&&) noexcept = default;
SentencePieceModel& SentencePieceModel::operator=(SentencePieceModel&&) noexcept = default;

void SentencePieceModel::encode(std::string_view text, std::vector<int32_t>& ids) const {
  std::vector<int> found;
  const std::string failure = failure_of([&] { return impl_->processor.Encode(text, &found); });
  if (!failure.empty())
    throw Error("SentencePiece cannot encode a text of {} bytes: {}", text.size(), failure);
  for (const int piece : found) ids.push_back(id_of(piece));
}

std::vector<int32_t> SentencePieceModel::special_ids() const {
  std::vector<int32_t> ids;
  for (int id = 0; id < impl_->processor.GetPieceSize(); ++id)
    if (impl_->processor.IsControl(id) || impl_->processor.IsUnknown(id)) ids.push_back(id_of(id));
  if (ids_ == PieceIds::fairseq) {
    ids.push_back(kFairseqPad);
    ids.push_back(vocabulary_.end_id() - 1);
  }
  return ids;
}

std::optional<int32_t> SentencePieceModel::bos_id() const {
  const int id = impl_->processor.bos_id();
  return id < 0 ? std::nullopt : std::optional(id_of(id));
}

std::optional<int32_t> SentencePieceModel::eos_id() const {
  const int id = impl_->processor.eos_id();
  return id < 0 ? std::nullopt : std::optional(id_of(id));
}

}  // namespace rhea::tokenizer
