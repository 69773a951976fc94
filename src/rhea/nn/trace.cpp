// Parameters and tables are graph inputs, declared when a module first asks for them.
#include "rhea/nn/trace.h"

#include <algorithm>

#include "rhea/base/error.h"
#include "rhea/ops/ops.h"
#include "rhea/ops/route/route.h"

namespace rhea::nn {

Shape checkpoint_shape(const Parameter& parameter, const ParameterPart& part) {
  if (!part.shape.empty()) return part.shape;
  Shape shape = parameter.shape;
  if (!shape.empty()) shape[0] = part.row_end - part.row_begin;
  return shape;
}

Trace::Trace(ir::Graph& graph, const TraceOptions& options) : graph_(graph), options_(options) {
  if (options.seq_len <= 0 || (!options.cached && options.num_tokens % options.seq_len != 0))
    throw Error("trace: {} tokens are not rows of length {}", options.num_tokens, options.seq_len);
  tokens_ = graph_.input(kTokens, {DType::i32, {options.num_tokens}});
  positions_ = graph_.input(kPositions, {DType::i32, {options.num_tokens}});
  if (options.cached) cache_start_ = graph_.input(kCacheStart, {DType::i32, {}});
}

std::string Trace::fqn(std::string_view name) const {
  const std::string& scope = graph_.scope_name(graph_.current_scope());
  return scope.empty() ? std::string(name) : fmt::format("{}.{}", scope, name);
}

Value Trace::declare(Parameter parameter) {
  for (const ParameterPart& part : parameter.parts) {
    const bool cuts = part.init.kind == Init::Kind::truncated_normal;
    const bool draws = cuts || part.init.kind == Init::Kind::normal;
    if (draws && !(part.init.std > 0 && (!cuts || part.init.cut > 0)))
      throw Error("parameter {} starts as a normal of std {}{}; these must be above 0", part.fqn,
                  part.init.std, cuts ? fmt::format(" cut at {}", part.init.cut) : "");
  }
  if (const auto at = compute_.find(parameter.fqn); at != compute_.end()) {
    if (at->second.shape() != parameter.shape)
      throw Error("parameter {} is declared with shapes {} and {}", parameter.fqn,
                  ir::to_string(at->second.shape()), ir::to_string(parameter.shape));
    return at->second;
  }
  const Value stored = graph_.input(parameter.fqn, {options_.param_dtype, parameter.shape});
  const Value value = ops::convert(stored, options_.compute_dtype);
  compute_.emplace(parameter.fqn, value);
  parameters_.push_back(std::move(parameter));
  return value;
}

Value Trace::parameter(std::string_view name, Shape shape, const Init& init) {
  Parameter made{fqn(name), std::move(shape), {}, {}};
  made.parts = {{made.fqn, 0, made.shape.empty() ? 1 : made.shape[0], init}};
  return declare(std::move(made));
}

Value Trace::parameter(std::string_view name, Shape shape, const std::vector<PartSpec>& parts,
                       TokenShare share) {
  Parameter made{.fqn = fqn(name), .shape = std::move(shape), .parts = {}, .share = share};
  int64_t row = 0;
  for (const auto& part : parts) {
    made.parts.push_back({fqn(part.name), row, row + part.rows, part.init, part.shape});
    row += part.rows;
  }
  if (made.shape.empty() || row != made.shape[0])
    throw Error("parameter {} is {}, but its parts have {} rows; they must fill dim 0", made.fqn,
                ir::to_string(made.shape), row);
  return declare(std::move(made));
}

Value Trace::parameter(std::string_view name, Shape shape, const std::vector<BlockSpec>& parts,
                       TokenShare share) {
  Parameter made{.fqn = fqn(name), .shape = std::move(shape), .parts = {}, .share = share};
  int64_t covered = 0;
  for (const BlockSpec& part : parts) {
    Shape rows = part.stock_shape;
    if (!rows.empty()) rows[0] = part.block.rows;
    covered += ir::num_elements(rows);
    made.parts.push_back(
        {.fqn = fqn(part.name), .init = part.init, .shape = part.stock_shape, .block = part.block});
  }
  if (covered != ir::num_elements(made.shape))
    throw Error("parameter {}: its parts hold {} elements, its shape {} has {}", made.fqn, covered,
                ir::to_string(made.shape), ir::num_elements(made.shape));
  return declare(std::move(made));
}

Value Trace::constant(std::string_view name, Shape shape, const Init& init) {
  Parameter made{fqn(name), std::move(shape), {}};
  made.parts = {{made.fqn, 0, made.shape.empty() ? 1 : made.shape[0], init}};
  if (const auto* input = graph_.find_input(made.fqn)) return {&graph_, input->value};
  const Value value = graph_.input(made.fqn, {DType::f32, made.shape});
  constants_.push_back(std::move(made));
  return value;
}

void Trace::balance(std::string_view bias, double coeff, Value experts_Tk) {
  if (!options_.counts_load) return;
  const std::string name = fqn(bias);
  const auto* constant = graph_.find_input(name);
  if (constant == nullptr)
    throw Error(
        "{} is balanced, but is no constant of the model; make it by Trace::constant before", name);
  const int64_t num_experts = ir::num_elements(graph_.type(constant->value).shape);
  const auto* mask = graph_.find_input(kIsToken);
  const ir::Type ids{DType::i32, {options_.num_tokens}};
  const Value is_token_T =
      mask != nullptr ? Value{&graph_, mask->value} : graph_.input(kIsToken, ids);
  // Padding goes to an expert that does not exist: it is counted nowhere.
  const Value is_token_Tk = ops::broadcast_in_dim(
      ops::compare(is_token_T, graph_.constant(0, ids), "NE"), experts_Tk.shape(), {0});
  const Value nobody = graph_.constant(static_cast<double>(num_experts), experts_Tk.type());
  const Value counted_Tk = ops::select(is_token_Tk, experts_Tk, nobody);
  balances_.push_back({name, coeff, ops::expert_order(counted_Tk, num_experts).counts_E});
}

void Trace::add_adapter(int64_t rank, double alpha, bool transposed) {
  adapters_.push_back({graph_.scope_name(graph_.current_scope()), rank, alpha, transposed});
}

void Trace::observe(std::string_view kind, Value value) {
  observed_.push_back({std::string(kind), graph_.scope_name(graph_.current_scope()), value});
}

void Trace::note(std::string text) {
  if (std::ranges::find(notes_, text) == notes_.end()) notes_.push_back(std::move(text));
}

Value Trace::parameter_input(const Parameter& parameter) const {
  const auto* input = graph_.find_input(parameter.fqn);
  RHEA_CHECK(input != nullptr, "{} is not an input of the graph", parameter.fqn);
  return {&graph_, input->value};
}

Value Trace::cached(std::string_view name, Value rows_TKH) {
  RHEA_CHECK(options_.cached, "a cache outside generation");
  const std::string input = "cache." + fqn(name);
  ir::Type type = rows_TKH.type();
  type.shape[0] = options_.seq_len;
  const Value updated =
      ops::dynamic_update_slice(graph_.input(input, type), rows_TKH, cache_start_);
  graph_.output("new." + input, updated, input);
  return updated;
}

Value Trace::state(std::string_view name, const ir::Type& type) {
  RHEA_CHECK(options_.cached, "a state outside generation");
  // 0 at the first position, 1 at all others, whatever lies in memory there.
  const Value started =
      ops::minimum(ops::convert(cache_start_, DType::f32), graph_.constant(1, {DType::f32, {}}));
  return graph_.input("cache." + fqn(name), type) * ops::broadcast_in_dim(started, type.shape, {});
}

void Trace::update_state(std::string_view name, Value value) {
  const std::string input = "cache." + fqn(name);
  graph_.output("new." + input, value, input);
}

std::string Trace::rope_input(size_t index, std::string_view kind) {
  return fmt::format("rope.{}.{}", index, kind);
}

Trace::Tables Trace::rope_tables(const RopeSpec& spec) {
  for (size_t i = 0; i < rope_specs_.size(); ++i) {
    if (rope_specs_[i] == spec) return rope_tables_[i];
  }
  const size_t index = rope_specs_.size();
  const ir::Type type{DType::f32, {options_.seq_len, spec.rotary_dim / 2}};
  const Tables tables{graph_.input(rope_input(index, "cos"), type),
                      graph_.input(rope_input(index, "sin"), type)};
  rope_specs_.push_back(spec);
  rope_tables_.push_back(tables);
  return tables;
}

}  // namespace rhea::nn
