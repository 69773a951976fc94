// Values of inputs, drawn by name.
#include "rhea/check/values.h"

#include <algorithm>
#include <cmath>

#include "rhea/base/error.h"
#include "rhea/base/rng.h"
#include "rhea/nn/rope_buffers.h"

namespace rhea::check {
namespace {

constexpr uint64_t kSeed = 17;

Tensor uniform(std::string_view name, size_t count, double low, double high) {
  const RngKey key = rng_key(kSeed, name);
  Tensor made(count);
  for (size_t i = 0; i < count; ++i) made[i] = low + rng_uniform(key, i) * (high - low);
  return made;
}

// Of the size that training gives weights: norms near 1, matrices that keep the size of what they
// multiply.
Tensor part_values(const std::string& fqn, const ir::Shape& shape, size_t count) {
  if (shape.size() < 2) return uniform(fqn, count, 0.5, 1.5);
  const double bound = std::sqrt(3.0 / static_cast<double>(std::max<int64_t>(1, shape.back())));
  return uniform(fqn, count, -bound, bound);
}

Tensor parameter_values(const nn::Parameter& parameter) {
  Tensor made(static_cast<size_t>(ir::num_elements(parameter.shape)));
  for (const nn::ParameterPart& part : parameter.parts) {
    const ir::Shape shape = nn::checkpoint_shape(parameter, part);
    copy_part_back(parameter, part,
                   part_values(part.fqn, shape, static_cast<size_t>(ir::num_elements(shape))),
                   made);
  }
  return made;
}

// What the model's file says of a constant; zeros there (biases of routers) are set by training.
Tensor constant_values(const nn::Parameter& constant) {
  const auto count = static_cast<size_t>(ir::num_elements(constant.shape));
  const nn::Init& init = constant.parts[0].init;
  if (init.kind == nn::Init::Kind::constant) return Tensor(count, init.std);
  if (init.kind == nn::Init::Kind::ones) return Tensor(count, 1.0);
  return uniform(constant.fqn, count, -0.05, 0.05);
}

// Positions of rows of two documents: the second begins after two thirds of the row.
Tensor position_values(size_t tokens, int64_t seq_len) {
  const int64_t border = std::max<int64_t>(1, seq_len * 2 / 3);
  Tensor made(tokens);
  for (size_t t = 0; t < tokens; ++t) {
    const int64_t place = static_cast<int64_t>(t) % seq_len;
    made[t] = static_cast<double>(place < border ? place : place - border);
  }
  return made;
}

Tensor token_values(std::string_view name, size_t count, int64_t vocab_size) {
  Tensor made = uniform(name, count, 0, static_cast<double>(vocab_size));
  for (double& x : made) x = std::floor(x);
  return made;
}

Tensor values_of(const std::string& name, const ir::Type& type, const InputKinds& kinds,
                 const nn::RopeBuffers& ropes) {
  const auto count = static_cast<size_t>(ir::num_elements(type.shape));
  if (name == nn::kPositions) return position_values(count, kinds.seq_len);
  if (name == nn::kTokens) return token_values(name, count, kinds.vocab_size);
  if (name == nn::kLabels) {
    Tensor made = token_values(name, count, kinds.vocab_size);
    for (size_t i = 2; i < count; i += 7) made[i] = -100;
    return made;
  }
  if (name == nn::kLossScale) return {1.0 / 64};
  if (const float* table = ropes.find(name)) return {table, table + count};
  for (const nn::Parameter& parameter : kinds.parameters) {
    if (parameter.fqn == name) return parameter_values(parameter);
  }
  for (const nn::Parameter& constant : kinds.constants) {
    if (constant.fqn == name) return constant_values(constant);
  }
  // Scalars of the optimizer: rates, the factor of clipping, the step; its second moments.
  if (type.shape.empty()) return {is_float(type.dtype) ? 0.5 : 3};
  if (name.starts_with("exp_avg_sq.")) return uniform(name, count, 0, 1);
  RHEA_CHECK(is_float(type.dtype), "no values are known for input '{}' {}", name,
             ir::to_string(type));
  return uniform(name, count, -1.5, 1.5);
}

}  // namespace

namespace {

// First element of a part that is whole rows, and their number.
std::pair<int64_t, int64_t> rows_of(const nn::Parameter& parameter, const nn::ParameterPart& part) {
  const int64_t rows = parameter.shape.empty() ? 1 : parameter.shape[0];
  const int64_t row = rows == 0 ? 0 : ir::num_elements(parameter.shape) / rows;
  return {part.row_begin * row, (part.row_end - part.row_begin) * row};
}

}  // namespace

void copy_part(const nn::Parameter& parameter, const nn::ParameterPart& part, const Tensor& whole,
               Tensor& stock) {
  if (part.block) {
    nn::gather(*part.block, nn::checkpoint_shape(parameter, part), sizeof(double), whole.data(),
               stock.data());
    return;
  }
  const auto [first, count] = rows_of(parameter, part);
  std::copy_n(whole.begin() + first, count, stock.begin());
}

void copy_part_back(const nn::Parameter& parameter, const nn::ParameterPart& part,
                    const Tensor& stock, Tensor& whole) {
  if (part.block) {
    nn::scatter(*part.block, nn::checkpoint_shape(parameter, part), sizeof(double), stock.data(),
                whole.data());
    return;
  }
  const auto [first, count] = rows_of(parameter, part);
  std::copy_n(stock.begin(), count, whole.begin() + first);
}

void fill_inputs(const ir::Graph& graph, const InputKinds& kinds, Tensors& inputs) {
  nn::RopeBuffers ropes({kinds.rope_specs.begin(), kinds.rope_specs.end()}, kinds.seq_len);
  ropes.fill(kinds.seq_len);
  for (const auto& input : graph.inputs()) {
    if (inputs.contains(input.name)) continue;
    const ir::Type& type = graph.type(input.value);
    Tensor made = values_of(input.name, type, kinds, ropes);
    alignas(8) char element[8] = {};
    for (double& x : made) {
      store_from_f64(element, type.dtype, 0, x);
      x = load_as_f64(element, type.dtype, 0);
    }
    inputs[input.name] = std::move(made);
  }
}

}  // namespace rhea::check
