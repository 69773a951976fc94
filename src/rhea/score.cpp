// One graph: logits, and the loss and its gradients when labels are given.
#include "rhea/score.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <map>
#include <ranges>

#include "rhea/base/aligned.h"
#include "rhea/base/error.h"
#include "rhea/base/log.h"
#include "rhea/components/safetensors/reader.h"
#include "rhea/components/safetensors/writer.h"
#include "rhea/exec/cpu/backend.h"
#include "rhea/nn/rope_buffers.h"
#include "rhea/ops/ops.h"
#include "rhea/parameter_tensors.h"
#include "rhea/passes/autodiff.h"
#include "rhea/passes/simplify.h"
#include "rhea/published_model.h"

namespace rhea {
namespace {

struct Tokens {
  int64_t rows = 0, length = 0;
  AlignedVector<int32_t> ids, labels, positions;  // labels empty: none given
  int64_t num_valid = 0;
};

AlignedVector<int32_t> read_ids(const safetensors::File& file, const char* name,
                                const std::vector<int64_t>& shape) {
  const auto& tensor = file.at(name);
  if (tensor.shape.size() != 2 || (!shape.empty() && tensor.shape != shape))
    throw Error("{}: {} is {}, expected two dims as input_ids has", file.path().string(), name,
                tensor.describe());
  AlignedVector<int32_t> ids;
  for (const int64_t id : safetensors::read_vector<int64_t>(tensor)) {
    try {
      ids.push_back(narrow<int32_t>(id));
    } catch (const Error&) {
      throw Error("{}: {} holds {}, which is no token id", file.path().string(), name, id);
    }
  }
  return ids;
}

Tokens read_tokens(const std::filesystem::path& path, int64_t vocab_size) {
  const safetensors::File file(path);
  Tokens tokens;
  tokens.ids = read_ids(file, "input_ids", {});
  const auto& shape = file.at("input_ids").shape;
  tokens.rows = shape[0];
  tokens.length = shape[1];
  if (tokens.ids.empty())
    throw Error("{}: input_ids {} is empty", path.string(), file.at("input_ids").describe());
  const auto place = [&](size_t i) {
    return fmt::format("row {}, position {}", static_cast<int64_t>(i) / tokens.length,
                       static_cast<int64_t>(i) % tokens.length);
  };
  for (size_t i = 0; i < tokens.ids.size(); ++i) {
    if (tokens.ids[i] < 0 || tokens.ids[i] >= vocab_size)
      throw Error("{}: input_ids {}: {} is outside the vocabulary [0, {})", path.string(), place(i),
                  tokens.ids[i], vocab_size);
  }
  if (file.find("labels") != nullptr) {
    tokens.labels = read_ids(file, "labels", shape);
    for (size_t i = 0; i < tokens.labels.size(); ++i) {
      if (tokens.labels[i] == -100) continue;
      if (tokens.labels[i] < 0 || tokens.labels[i] >= vocab_size)
        throw Error("{}: labels {}: {} is outside the vocabulary [0, {})", path.string(), place(i),
                    tokens.labels[i], vocab_size);
      ++tokens.num_valid;
    }
  }
  if (file.find("position_ids") != nullptr) {
    tokens.positions = read_ids(file, "position_ids", shape);
    for (size_t i = 0; i < tokens.positions.size(); ++i) {
      const int32_t position = tokens.positions[i];
      const bool starts_row = static_cast<int64_t>(i) % tokens.length == 0;
      if (position != 0 && (starts_row || position != tokens.positions[i - 1] + 1))
        throw Error("{}: position_ids {}: {} neither restarts at 0 nor follows the one before it",
                    path.string(), place(i), position);
    }
  } else {
    for (size_t i = 0; i < tokens.ids.size(); ++i)
      tokens.positions.push_back(static_cast<int32_t>(static_cast<int64_t>(i) % tokens.length));
  }
  return tokens;
}

// They are written all the same: whoever looks for the cause needs them.
void warn_if_not_finite(const AlignedVector<float>& logits, const Tokens& tokens,
                        int64_t vocab_size) {
  const auto is_bad = [](float logit) { return !std::isfinite(logit); };
  const auto count = std::count_if(logits.begin(), logits.end(), is_bad);
  if (count == 0) return;
  const int64_t first =
      (std::find_if(logits.begin(), logits.end(), is_bad) - logits.begin()) / vocab_size;
  log::warning("score",
               "{} of {} logits are not finite, first at row {}, position {}; the weights or the "
               "config.json of the model are damaged, or bf16 is too narrow for them",
               count, logits.size(), first / tokens.length, first % tokens.length);
}

safetensors::TensorView view(std::string name, std::vector<int64_t> shape, const void* data,
                             int64_t bytes) {
  return {std::move(name),
          safetensors::ElementType::F32,
          std::move(shape),
          {static_cast<const std::byte*>(data), static_cast<size_t>(bytes)}};
}

// What the model marks, as outputs "<kind>.<layer>" of the graph with their types.
std::vector<std::pair<std::string, ir::Type>> observe(nn::Trace& trace) {
  std::vector<std::pair<std::string, ir::Type>> made;
  for (const auto& one : trace.observed()) {
    // The layer's number is the last number of the scope.
    std::string layer;
    for (const auto part : std::views::split(std::string_view(one.scope), '.')) {
      const std::string word(part.begin(), part.end());
      if (!word.empty() &&
          std::ranges::all_of(word, [](unsigned char c) { return std::isdigit(c); }))
        layer = word;
    }
    made.emplace_back(fmt::format("{}.{}", one.kind, layer), one.value.type());
    trace.graph().output(made.back().first, one.value);
  }
  return made;
}

struct ObservedBuffer {
  std::string name;
  ir::Type type;
  AlignedVector<float> data;  // of 4-byte elements: f32 or i32
};

// Numbers of experts as I64, ascending in each row; they live in `choices`.
safetensors::TensorView routing_view(const ObservedBuffer& one,
                                     std::vector<std::vector<int64_t>>& choices) {
  const auto count = static_cast<int64_t>(one.data.size());
  if (one.type.dtype == DType::f32)
    return view(one.name, one.type.shape, one.data.data(), count * 4);
  const auto* ids = reinterpret_cast<const int32_t*>(one.data.data());
  std::vector<int64_t>& sorted = choices.emplace_back(ids, ids + count);
  const int64_t k = one.type.shape.back();
  for (int64_t i = 0; i < count; i += k) std::sort(sorted.begin() + i, sorted.begin() + i + k);
  auto made = view(one.name, one.type.shape, sorted.data(), count * 8);
  made.dtype = safetensors::ElementType::I64;
  return made;
}

}  // namespace

void score(const ScoreOptions& options, ThreadPool& pool) {
  check_result_file(options.output);
  std::error_code absent;
  if (std::filesystem::equivalent(options.input, options.output, absent))
    throw Error("--output {} is the file of --input; name another one", options.output.string());
  // The graph rounds every weight to the compute dtype before it is used; gradients are those of
  // f32 weights.
  const DType stored = options.gradients ? DType::f32 : options.dtype;
  const PublishedModel model(options.model, &pool, stored);
  const int64_t vocab_size = model.decoder().vocab_size();
  const Tokens tokens = read_tokens(options.input, vocab_size);
  const bool has_labels = !tokens.labels.empty();
  if (options.gradients && tokens.num_valid == 0)
    throw Error("{}: --grads needs labels, at least one of them not -100", options.input.string());
  const auto num_tokens = static_cast<int64_t>(tokens.ids.size());

  ir::Graph traced;
  nn::Trace trace(traced, {.num_tokens = num_tokens,
                           .seq_len = tokens.length,
                           .param_dtype = stored,
                           .compute_dtype = options.dtype});
  const ir::Value logits = nn::logits(trace, model.decoder());
  traced.output("logits", logits);
  if (has_labels) {
    const auto labels = traced.input(nn::kLabels, {DType::i32, {num_tokens}});
    const auto scale = traced.input(nn::kLossScale, {DType::f32, {}});
    const auto loss = ops::cross_entropy(logits, labels, scale);
    traced.output("loss", loss);
    if (options.gradients) {
      std::vector<ir::Value> inputs;
      for (const auto& parameter : trace.parameters())
        inputs.push_back(trace.parameter_input(parameter));
      const auto grads = passes::gradients(traced, loss, inputs);
      for (size_t i = 0; i < grads.size(); ++i) {
        const auto& parameter = trace.parameters()[i];
        traced.output(
            "grad." + parameter.fqn,
            grads[i].valid() ? grads[i] : traced.constant(0, {DType::f32, parameter.shape}));
      }
    }
  }
  const auto observed = observe(trace);
  const ir::Graph graph = passes::simplify(traced);
  model.require_memory_of(graph, pool,
                          fmt::format("score of {} with input_ids [{}, {}]", options.input.string(),
                                      tokens.rows, tokens.length),
                          options.gradients ? "give fewer tokens at once, or leave --grads out"
                                            : "give fewer tokens at once");
  const auto executable =
      exec::cpu::compile(graph, pool, exec::cpu::make_arena(), {.name = "score"});

  AlignedVector<float> out_logits(static_cast<size_t>(num_tokens * vocab_size));
  alignas(64) float loss = 0;
  alignas(64) const auto scale =
      static_cast<float>(1.0 / static_cast<double>(std::max<int64_t>(tokens.num_valid, 1)));
  nn::RopeBuffers ropes(trace.rope_specs(), tokens.length);
  ropes.fill(*std::max_element(tokens.positions.begin(), tokens.positions.end()) + 1);
  std::map<std::string, AlignedVector<float>> grads;
  for (const auto& input : graph.inputs()) {
    const void* data = ropes.find(input.name);
    if (input.name == nn::kTokens)
      data = tokens.ids.data();
    else if (input.name == nn::kLabels)
      data = tokens.labels.data();
    else if (input.name == nn::kPositions)
      data = tokens.positions.data();
    else if (input.name == nn::kLossScale)
      data = &scale;
    executable->bind_input(
        input.name, data != nullptr ? data : model.data(input.name, graph.type(input.value)));
  }
  executable->bind_output("logits", out_logits.data());
  std::vector<ObservedBuffer> routing;
  for (const auto& [name, type] : observed) {
    routing.push_back(
        {name, type, AlignedVector<float>(static_cast<size_t>(ir::num_elements(type.shape)))});
    executable->bind_output(name, routing.back().data.data());
  }
  if (has_labels) executable->bind_output("loss", &loss);
  if (options.gradients) {
    for (const auto& parameter : trace.parameters()) {
      auto& buffer = grads[parameter.fqn];
      buffer.resize(static_cast<size_t>(ir::num_elements(parameter.shape)));
      executable->bind_output("grad." + parameter.fqn, buffer.data());
    }
  }
  executable->run();
  warn_if_not_finite(out_logits, tokens, vocab_size);

  std::vector<safetensors::TensorView> results;
  results.push_back(view("logits", {tokens.rows, tokens.length, vocab_size}, out_logits.data(),
                         num_tokens * vocab_size * 4));
  if (has_labels) results.push_back(view("loss", {}, &loss, 4));
  if (options.gradients) {
    std::vector<checkpoint::NamedTensor> parts;
    for (const auto& parameter : trace.parameters())
      add_parts(parts, parameter, DType::f32, grads[parameter.fqn].data(), "grad.");
    for (const auto& part : parts)
      results.push_back(view(part.name, part.shape, part.data, part.num_bytes()));
  }
  std::vector<std::vector<int64_t>> choices;
  for (const ObservedBuffer& one : routing) results.push_back(routing_view(one, choices));
  safetensors::write_file(options.output, results);
  if (has_labels)
    log::info("score", "loss {:.6f} over {} labels; written to {}", loss, tokens.num_valid,
              options.output.string());
}

}  // namespace rhea
