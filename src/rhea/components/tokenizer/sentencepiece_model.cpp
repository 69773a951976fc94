#include "rhea/components/tokenizer/sentencepiece_model.h"

#include <sentencepiece_processor.h>

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

}  // namespace

SentencePieceModel::SentencePieceModel(std::string_view bytes, const std::string& name)
    : impl_(std::make_unique<Impl>()) {
  const std::string failure =
      failure_of([&] { return impl_->processor.LoadFromSerializedProto(bytes); });
  if (!failure.empty())
    throw Error("{}: neither a SentencePiece model nor a tiktoken file: {}", name, failure);
  const int count = impl_->processor.GetPieceSize();
  for (int id = 0; id < count; ++id) vocabulary_.append(impl_->processor.IdToPiece(id));
}
SentencePieceModel::~SentencePieceModel() = default;
SentencePieceModel::SentencePieceModel(SentencePieceModel&&) noexcept = default;
SentencePieceModel& SentencePieceModel::operator=(SentencePieceModel&&) noexcept = default;

void SentencePieceModel::encode(std::string_view text, std::vector<int32_t>& ids) const {
  std::vector<int> found;
  const std::string failure = failure_of([&] { return impl_->processor.Encode(text, &found); });
  if (!failure.empty())
    throw Error("SentencePiece cannot encode a text of {} bytes: {}", text.size(), failure);
  ids.insert(ids.end(), found.begin(), found.end());
}

std::vector<int32_t> SentencePieceModel::special_ids() const {
  std::vector<int32_t> ids;
  for (int id = 0; id < impl_->processor.GetPieceSize(); ++id)
    if (impl_->processor.IsControl(id) || impl_->processor.IsUnknown(id)) ids.push_back(id);
  return ids;
}

std::optional<int32_t> SentencePieceModel::bos_id() const {
  const int id = impl_->processor.bos_id();
  return id < 0 ? std::nullopt : std::optional(id);
}

std::optional<int32_t> SentencePieceModel::eos_id() const {
  const int id = impl_->processor.eos_id();
  return id < 0 ? std::nullopt : std::optional(id);
}

}  // namespace rhea::tokenizer
