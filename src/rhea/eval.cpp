// One graph of seq_len tokens; windows of documents are laid side by side into it.
#include "rhea/eval.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "rhea/base/aligned.h"
#include "rhea/base/error.h"
#include "rhea/components/data/data_loader.h"
#include "rhea/components/data/numbered_rows.h"
#include "rhea/components/data/open_dataset.h"
#include "rhea/components/tokenizer/tokenizer.h"
#include "rhea/exec/cpu/backend.h"
#include "rhea/nn/rope_buffers.h"
#include "rhea/passes/simplify.h"
#include "rhea/published_model.h"

namespace rhea {
namespace {

// Logits are made in parts of this many tokens: whole ones of a large vocabulary fill the memory.
constexpr int64_t kTokensPerLossChunk = 512;

// The loss of a row of seq_len tokens, which may hold several windows, one behind the other.
class Row {
 public:
  Row(const PublishedModel& model, const EvalOptions& options, ThreadPool& pool)
      : length_(options.seq_len) {
    ir::Graph traced;
    nn::Trace trace(traced, {.num_tokens = length_,
                             .seq_len = length_,
                             .param_dtype = options.dtype,
                             .compute_dtype = options.dtype});
    const int64_t num_chunks = (length_ + kTokensPerLossChunk - 1) / kTokensPerLossChunk;
    traced.output("loss", nn::language_model_loss(trace, model.decoder(), num_chunks));
    const ir::Graph graph = passes::simplify(traced);
    model.require_memory_of(graph, pool, fmt::format("eval with seq_len = {}", length_),
                            "lower --seq_len");
    for (auto* row : {&tokens_, &labels_, &positions_}) row->resize(static_cast<size_t>(length_));
    executable_ = exec::cpu::compile(graph, pool, exec::cpu::make_arena(), {.name = "eval"});
    ropes_ = nn::RopeBuffers(trace.rope_specs(), length_);
    for (const auto& input : graph.inputs()) {
      const void* data = ropes_.find(input.name);
      if (input.name == nn::kTokens)
        data = tokens_.data();
      else if (input.name == nn::kLabels)
        data = labels_.data();
      else if (input.name == nn::kPositions)
        data = positions_.data();
      else if (input.name == nn::kLossScale)
        data = &scale_;
      executable_->bind_input(
          input.name, data != nullptr ? data : model.data(input.name, graph.type(input.value)));
    }
    executable_->bind_output("loss", &loss_);
  }

  // Whether a window of `size` tokens still fits. Tables that depend on the length of the text are
  // those of one window.
  bool has_room(int64_t size) const {
    return used_ == 0 || (used_ + size <= length_ && !ropes_.depends_on_length());
  }

  // Predicts the token behind each of `window`, of which the first `num_seen` count for nothing.
  void add(std::span<const int32_t> window, int32_t next, size_t num_seen) {
    for (size_t i = 0; i < window.size(); ++i, ++used_) {
      const auto at = static_cast<size_t>(used_);
      tokens_[at] = window[i];
      labels_[at] = i < num_seen            ? data::kIgnoreLabel
                    : i + 1 < window.size() ? window[i + 1]
                                            : next;
      positions_[at] = static_cast<int32_t>(i);
    }
    longest_ = std::max(longest_, static_cast<int64_t>(window.size()));
  }

  // The sum of the losses of what was added; the row is empty then.
  double run() {
    for (int64_t i = used_; i < length_; ++i) {
      const auto at = static_cast<size_t>(i);
      tokens_[at] = 0;
      labels_[at] = data::kIgnoreLabel;
      positions_[at] = static_cast<int32_t>(i - used_);
    }
    ropes_.fill(ropes_.depends_on_length() ? longest_ : length_);
    used_ = longest_ = 0;
    executable_->run();
    return static_cast<double>(loss_);
  }

  bool empty() const { return used_ == 0; }

 private:
  int64_t length_;
  int64_t used_ = 0;
  int64_t longest_ = 0;  // window
  AlignedVector<int32_t> tokens_, labels_, positions_;
  alignas(64) float scale_ = 1;
  alignas(64) float loss_ = 0;
  nn::RopeBuffers ropes_;
  std::unique_ptr<exec::cpu::CpuExecutable> executable_;
};

void check(const EvalOptions& options) {
  if (options.seq_len < 1) throw Error("seq_len = {}: must be at least 1", options.seq_len);
  if (options.stride < 0 || options.stride > options.seq_len)
    throw Error("stride = {}: must lie in [1, seq_len = {}], or be 0 for seq_len", options.stride,
                options.seq_len);
  if (!data::needs_tokenizer(options.dataset))
    throw Error("dataset = {}: eval counts bytes of text, and this data set has none",
                options.dataset);
}

}  // namespace

double EvalResult::loss_per_token() const { return loss / static_cast<double>(num_tokens); }
double EvalResult::perplexity_per_token() const { return std::exp(loss_per_token()); }
double EvalResult::perplexity_per_byte() const {
  return std::exp(loss / static_cast<double>(num_bytes));
}
double EvalResult::bits_per_byte() const {
  return loss / static_cast<double>(num_bytes) / std::numbers::ln2;
}

EvalResult evaluate(const EvalOptions& options, ThreadPool& pool) {
  check(options);
  // A run rounds every weight to its dtype before it is used, so they are kept in that one.
  const PublishedModel model(options.model, &pool, options.dtype);
  const auto tokenizer = tokenizer::load_tokenizer(
      options.tokenizer.empty() ? model.files().tokenizer : options.tokenizer);
  tokenizer::check_vocabulary(*tokenizer, model.decoder().vocab_size());
  const auto documents =
      data::open_documents({options.dataset, options.dataset_path, /*infinite=*/false, 1.0},
                           {options.text_field, options.whole_files, {}});
  Row row(model, options, pool);
  const int64_t stride = options.stride == 0 ? options.seq_len : options.stride;
  EvalResult result;
  const auto end_row = [&] {
    const double loss = row.run();
    if (!std::isfinite(loss))
      throw ExitError(
          ExitCode::non_finite,
          fmt::format("eval: the loss of a row up to document {} is {}; the weights are "
                      "damaged, or the compute dtype is too narrow for them",
                      result.num_documents, loss));
    result.loss += loss;
  };
  data::Document document;
  const auto count = documents->num_documents();
  for (int64_t number = 0; (!count || number < *count) && documents->read(number, document);
       ++number) {
    if (options.max_documents > 0 && result.num_documents == options.max_documents) break;
    if (!document.problem.empty()) throw Error("{}", document.problem);
    const std::vector<int32_t> ids = tokenizer->encode(document.text);
    const auto num_predicted = static_cast<int64_t>(ids.size()) - 1;
    if (num_predicted < 1) continue;
    ++result.num_documents;
    result.num_bytes += static_cast<int64_t>(document.text.size());
    result.num_tokens += num_predicted;
    // Inputs begin .. end-1 predict begin+1 .. end, of which those up to `done` were predicted
    // before.
    for (int64_t begin = 0, done = 0; done < num_predicted; begin += stride) {
      const int64_t end = std::min(begin + options.seq_len, num_predicted);
      if (!row.has_room(end - begin)) end_row();
      row.add(std::span(ids).subspan(static_cast<size_t>(begin), static_cast<size_t>(end - begin)),
              ids[static_cast<size_t>(end)], static_cast<size_t>(done - begin));
      done = end;
    }
  }
  if (!row.empty()) end_row();
  if (result.num_tokens == 0)
    throw Error("eval: {} has no document of at least 2 tokens", documents->description());
  return result;
}

}  // namespace rhea
