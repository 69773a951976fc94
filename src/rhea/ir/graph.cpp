// Building graphs.
#include "rhea/ir/graph.h"

#include <fmt/core.h>

#include "rhea/base/error.h"
#include "rhea/base/rethrow.h"
#include "rhea/ir/row_cells.h"

namespace rhea::ir {
namespace {

AttrKind kind_of(const Attr& attr) { return static_cast<AttrKind>(attr.index()); }

// Fills fallbacks; refuses absent, unknown and wrongly typed attributes.
void complete_attrs(const OpDef& op, Attrs& attrs) {
  constexpr const char* kinds[] = {"an integer", "a float", "a string", "a list of integers",
                                   "a dtype"};
  for (const auto& spec : op.attrs) {
    const Attr* given = attrs.find(spec.name);
    if (given == nullptr) {
      if (!spec.fallback) throw Error("attribute '{}' is required", spec.name);
      attrs.set(spec.name, *spec.fallback);
    } else if (kind_of(*given) != spec.kind) {
      throw Error("attribute '{}' must be {}, got {}", spec.name,
                  kinds[static_cast<int>(spec.kind)], kinds[given->index()]);
    }
  }
  for (const auto& [name, value] : attrs) {
    bool known = false;
    for (const auto& spec : op.attrs) known |= spec.name == name;
    if (!known) throw Error("unknown attribute '{}'", name);
  }
}

// What infer of a row from outside may give and no tensor can be.
void check_results(std::span<const Type> types) {
  if (types.empty()) throw Error("infer gives no types; an op has at least one result");
  for (size_t i = 0; i < types.size(); ++i) {
    int64_t bytes = 16;  // with room for the widest element and its padding
    for (const int64_t dim : types[i].shape) {
      if (dim < 0)
        throw Error("infer gives {} as result {}; a dim cannot be negative", to_string(types[i]),
                    i);
      if (dim > 0 && __builtin_mul_overflow(bytes, dim, &bytes))
        throw Error("infer gives {} as result {}, which is more bytes than can be counted",
                    to_string(types[i]), i);
    }
  }
}

std::vector<Type> infer_typed(std::span<const Type> in, const Attrs& attrs) {
  if (!in.empty()) throw Error("takes no operands, got {}", in.size());
  for (const int64_t dim : attrs.list("shape")) {
    if (dim < 0) throw Error("shape {} has a negative dim", to_string(attrs.list("shape")));
  }
  return {{attrs.dtype("dtype"), attrs.list("shape")}};
}

}  // namespace

const OpDef kInput{
    .name = "input",
    .attrs = {{"name", AttrKind::str, {}},
              {"dtype", AttrKind::dtype, {}},
              {"shape", AttrKind::list, {}},
              {"layout", AttrKind::i64, Attr{int64_t{0}}}},
    .infer =
        [](std::span<const Type> in, const Attrs& attrs) {
          auto types = infer_typed(in, attrs);
          const int64_t layout = attrs.i64("layout");
          if (layout < 0 || layout > 2 ||
              (layout > 0 && types[0].rank() != 2 && types[0].rank() != 3)) {
            throw Error(
                "layout must be 0 (row-major) or, with two or three dims, 1 or 2 (packed), got {} "
                "for {}",
                layout, to_string(types[0]));
          }
          types[0].layout = static_cast<Layout>(layout);
          return types;
        },
    .shard = nullptr,
    .cost = [](const OpInstance&) { return Cost{}; },
    .has_side_effect = true,
};

const OpDef kConstant{
    .name = "constant",
    .attrs = {{"value", AttrKind::f64, {}},
              {"dtype", AttrKind::dtype, {}},
              {"shape", AttrKind::list, {}}},
    .infer = infer_typed,
    .shard =
        [](const OpInstance& op) {
          std::string text = "->";
          for (int64_t d = 0; d < op.out[0].rank(); ++d) text += static_cast<char>('a' + d);
          return text;
        },
    .cost = [](const OpInstance&) { return Cost{}; },
    .samples =
        [] {
          std::vector<Sample> samples;
          const auto add = [&](std::string name, double value, DType dtype, Shape shape) {
            samples.push_back(
                {.name = std::move(name),
                 .attrs = {{"value", value}, {"dtype", dtype}, {"shape", std::move(shape)}}});
          };
          add("matrix", 0.5, DType::f32, {3, 5});
          add("scalar", -2, DType::bf16, {});
          add("integers", 9007199254740992.0, DType::i64, {4});
          add("flags", 1, DType::boolean, {2});
          add("empty", 1, DType::f16, {0, 3});
          return samples;
        },
    .reference =
        [](const ReferenceArgs& args) {
          for (double& x : args.out[0]) x = args.attrs.f64("value");
        },
};

const Type& Value::type() const {
  if (!valid()) throw Error("an empty value is used; it is the result of no op");
  return graph->type(id);
}
const Shape& Value::shape() const { return type().shape; }
DType Value::dtype() const { return type().dtype; }
int64_t Value::dim(int64_t i) const {
  const Shape& dims = shape();
  const int64_t rank = static_cast<int64_t>(dims.size());
  const int64_t at = i < 0 ? i + rank : i;
  if (at < 0 || at >= rank)
    throw Error("dim {} of {}, the result of {}, is asked for; it has {} dims{}", i,
                to_string(type()), graph->node(id).op->name, rank,
                to_string(Place{graph, &graph->node(id)}));
  return dims[static_cast<size_t>(at)];
}

std::vector<Value> Graph::append(const OpDef& op, std::vector<ValueId> inputs, Attrs attrs,
                                 int32_t scope, int32_t location) {
  std::vector<Type> in_types;
  in_types.reserve(inputs.size());
  for (const ValueId id : inputs) {
    RHEA_CHECK(id.valid() && id.node < static_cast<int32_t>(nodes_.size()),
               "{}: operand is not of this graph", op.name);
    in_types.push_back(type(id));
  }
  std::vector<Type> out_types;
  try {
    if (!op.infer) throw Error("the row lacks infer, which gives the types of its results");
    complete_attrs(op, attrs);
    out_types = op.infer(in_types, attrs);
    check_results(out_types);
  } catch (...) {
    rethrow_with(fmt::format("{}({})", op.name, to_string(in_types)),
                 fmt::format("\n  in {}\n  at {}",
                             scope_name(scope).empty() ? "(no module)" : scope_name(scope),
                             location_name(location)));
  }
  const auto index = static_cast<int32_t>(nodes_.size());
  std::vector<Value> results;
  results.reserve(out_types.size());
  for (int32_t i = 0; i < static_cast<int32_t>(out_types.size()); ++i)
    results.push_back({this, {index, i}});
  nodes_.push_back(
      {&op, std::move(attrs), std::move(inputs), std::move(out_types), scope, location});
  return results;
}

namespace {

std::string text_of(std::source_location where) {
  const std::string_view file = where.file_name();
  const auto at = file.rfind("rhea/");
  return fmt::format("{}:{}", at == std::string_view::npos ? file : file.substr(at), where.line());
}

}  // namespace

std::vector<Value> Graph::add(const OpDef& op, std::span<const Value> inputs, Attrs attrs,
                              std::source_location where) {
  std::vector<ValueId> ids;
  ids.reserve(inputs.size());
  for (const Value& input : inputs) {
    // The graph is not asked before this: it may be that of an empty value, too.
    if (!input.valid())
      throw Error("{}: operand {} is an empty value\n  at {}", op.name, ids.size(), text_of(where));
    if (input.graph != this)
      throw Error(
          "{}: operand {} is a value of another graph; use values of the graph that is traced\n  "
          "in "
          "{}\n  at {}",
          op.name, ids.size(), scope_name(scope_).empty() ? "(no module)" : scope_name(scope_),
          text_of(where));
    ids.push_back(input.id);
  }
  const int32_t location =
      forced_location_ < 0 ? intern_location(text_of(where)) : forced_location_;
  return append(op, std::move(ids), std::move(attrs), scope_, location);
}

Value Graph::add1(const OpDef& op, std::initializer_list<Value> inputs, Attrs attrs,
                  std::source_location where) {
  auto results = add(op, std::span(inputs.begin(), inputs.size()), std::move(attrs), where);
  if (results.size() != 1)
    throw Error("{} has {} results; add1 is for ops with one\n  at {}", op.name, results.size(),
                text_of(where));
  return results[0];
}

std::vector<Value> Graph::add_as(const Graph& from, const Node& like, const OpDef& op,
                                 std::span<const Value> inputs, Attrs attrs) {
  const int32_t scope = &from == this ? like.scope : intern_scope(from.scope_name(like));
  const int32_t location =
      &from == this ? like.location : intern_location(from.location_name(like));
  std::vector<ValueId> ids;
  ids.reserve(inputs.size());
  for (const Value& input : inputs) ids.push_back(input.id);
  return append(op, std::move(ids), std::move(attrs), scope, location);
}

std::vector<Value> Graph::add_like(const Graph& from, const Node& node,
                                   std::span<const Value> inputs) {
  const OpDef& op = *node.op;
  if (&op == &kInput) return {input(node.attrs.str("name"), node.outputs[0])};
  return add_as(from, node, op, inputs, node.attrs);
}

Value Graph::input(std::string_view name, Type type) {
  if (input_index_.contains(std::string(name)))
    throw Error("graph input '{}' exists already", name);
  input_index_.emplace(std::string(name), static_cast<int32_t>(inputs_.size()));
  const auto layout = static_cast<int64_t>(type.layout);
  const Value value = append(kInput, {},
                             {{"name", std::string(name)},
                              {"dtype", type.dtype},
                              {"shape", std::move(type.shape)},
                              {"layout", layout}},
                             scope_, 0)[0];
  inputs_.push_back({std::string(name), value.id});
  return value;
}

Value Graph::constant(double value, Type type, std::source_location where) {
  return add1(kConstant, {},
              {{"value", value}, {"dtype", type.dtype}, {"shape", std::move(type.shape)}}, where);
}

void Graph::output(std::string_view name, Value value, std::string_view donates) {
  if (value.graph != this)
    throw Error("output '{}' of the graph is {}", name,
                value.graph == nullptr ? "an empty value" : "a value of another graph");
  outputs_.push_back({std::string(name), value.id, std::string(donates)});
}

const GraphInput* Graph::find_input(std::string_view name) const {
  const auto at = input_index_.find(std::string(name));
  return at == input_index_.end() ? nullptr : &inputs_[static_cast<size_t>(at->second)];
}

const GraphOutput* Graph::find_output(std::string_view name) const {
  for (const auto& out : outputs_) {
    if (out.name == name) return &out;
  }
  return nullptr;
}

std::vector<std::vector<int>> Graph::count_uses() const {
  std::vector<std::vector<int>> uses(nodes_.size());
  for (size_t i = 0; i < nodes_.size(); ++i) uses[i].resize(nodes_[i].outputs.size());
  const auto use = [&](ValueId id) {
    ++uses[static_cast<size_t>(id.node)][static_cast<size_t>(id.output)];
  };
  for (const Node& node : nodes_) {
    for (const ValueId id : node.inputs) use(id);
  }
  for (const auto& out : outputs_) use(out.value);
  return uses;
}

void Graph::push_scope(std::string_view name) {
  scope_stack_.push_back(scope_);
  if (name.empty()) return;
  const std::string& outer = scope_name(scope_);
  scope_ = intern_scope(outer.empty() ? std::string(name) : fmt::format("{}.{}", outer, name));
}

void Graph::pop_scope() {
  RHEA_CHECK(!scope_stack_.empty(), "pop_scope without push_scope");
  scope_ = scope_stack_.back();
  scope_stack_.pop_back();
}

int32_t Graph::intern_scope(std::string_view name) {
  const auto [at, added] =
      scope_index_.emplace(std::string(name), static_cast<int32_t>(scopes_.size()));
  if (added) scopes_.emplace_back(name);
  return at->second;
}

int32_t Graph::intern_location(std::string_view name) {
  const auto [at, added] =
      location_index_.emplace(std::string(name), static_cast<int32_t>(locations_.size()));
  if (added) locations_.emplace_back(name);
  return at->second;
}

void Graph::set_context(int32_t scope, int32_t location) {
  scope_ = scope;
  forced_location_ = location;
}

}  // namespace rhea::ir
