#include "rhea/ir/row_cells.h"

#include "rhea/base/error.h"
#include "rhea/base/rethrow.h"

namespace rhea::ir {
namespace {

// Calls the cell and checks what it gave; both may throw.
template <class F>
auto called(const OpDef& op, std::span<const Type> operands, std::string_view cell, Place place,
            const F& call) {
  try {
    return call();
  } catch (...) {
    rethrow_with(fmt::format("{}({}): {}", op.name, to_string(operands), cell), to_string(place));
  }
}

void check_graph(const Value& value, const Graph& graph, std::string_view what, size_t i) {
  if (value.graph == &graph) return;
  throw Error(
      "gives a value of another graph as {} {}; build it from the values that it is called with",
      what, i);
}

}  // namespace

std::string to_string(Place place) {
  if (place.node == nullptr) return "";
  const std::string& scope = place.graph->scope_name(*place.node);
  return fmt::format("\n  in {}\n  at {}", scope.empty() ? "(no module)" : scope,
                     place.graph->location_name(*place.node));
}

std::string to_string(std::span<const Type> types) {
  std::string text;
  for (const Type& type : types) text += (text.empty() ? "" : ", ") + to_string(type);
  return text;
}

std::vector<Value> call_decompose(const OpInstance& op, Graph& into,
                                  std::span<const Value> operands, Place place) {
  return called(*op.op, op.in, "decompose", place, [&] {
    auto results = op.op->decompose(into, operands, *op.attrs);
    if (results.size() != op.out.size())
      throw Error("gives {} values, infer says {}: {}; return one value for each result",
                  results.size(), op.out.size(), to_string(op.out));
    for (size_t i = 0; i < results.size(); ++i) {
      if (!results[i].valid())
        throw Error("gives an empty value as result {}, infer says {}", i, to_string(op.out[i]));
      check_graph(results[i], into, "result", i);
      if (results[i].type() != op.out[i])
        throw Error("gives {} as result {}, infer says {}; make the two agree",
                    to_string(results[i].type()), i, to_string(op.out[i]));
    }
    return results;
  });
}

std::vector<Value> call_vjp(const OpDef& op, const VjpArgs& args, Place place) {
  std::vector<Type> types;
  for (const Value& input : args.inputs) types.push_back(input.type());
  return called(op, types, "vjp", place, [&] {
    auto results = op.vjp(args);
    if (results.size() != args.inputs.size())
      throw Error(
          "gives {} cotangents for {} operands; return one for each operand, an empty value "
          "where none flows",
          results.size(), args.inputs.size());
    for (size_t i = 0; i < results.size(); ++i) {
      if (!results[i].valid() || !is_float(types[i].dtype)) continue;
      check_graph(results[i], args.graph, "cotangent", i);
      const Type& found = results[i].type();
      if (found.shape == types[i].shape &&
          (found.dtype == types[i].dtype || found.dtype == DType::f32))
        continue;
      throw Error(
          "gives {} as the cotangent of operand {}, which is {}; a cotangent has the shape of "
          "its operand, and its dtype or f32",
          to_string(found), i, to_string(types[i]));
    }
    return results;
  });
}

void call_reference(const OpDef& op, const ReferenceArgs& args) {
  called(op, args.in_types, "reference", {}, [&] {
    op.reference(args);
    for (size_t i = 0; i < args.out.size(); ++i) {
      if (static_cast<int64_t>(args.out[i].size()) != num_elements(args.out_types[i].shape))
        throw Error("leaves result {} with {} elements, infer says {}; write into what is there", i,
                    args.out[i].size(), to_string(args.out_types[i]));
    }
  });
}

}  // namespace rhea::ir
