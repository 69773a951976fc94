// The static graph of one step: nodes in topological order, every value typed, every node with its
// FQN and source line.
#pragma once
#include <cstdint>
#include <map>
#include <source_location>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "rhea/ir/attr.h"
#include "rhea/ir/op_def.h"
#include "rhea/ir/type.h"

namespace rhea::ir {

class Graph;

// Names a result of a node inside one graph.
struct ValueId {
  int32_t node = -1;   // place in Graph::nodes
  int32_t output = 0;  // which of its results
  // Whether it names one.
  bool valid() const { return node >= 0; }
  auto operator<=>(const ValueId&) const = default;
};

// A value with its graph: what model code holds. Cheap to copy; valid as long as the graph.
struct Value {
  Graph* graph = nullptr;  // null: no value
  ValueId id;              // in that graph
  // Whether there is a value.
  bool valid() const { return graph != nullptr && id.valid(); }
  // Of a valid value: its type, and the parts of that.
  const Type& type() const;
  const Shape& shape() const;
  DType dtype() const;
  // Size of dim i; a negative i counts from the end.
  int64_t dim(int64_t i) const;
};

// An op on values.
struct Node {
  const OpDef* op = nullptr;    // the row
  Attrs attrs;                  // all that the row has, defaults filled in
  std::vector<ValueId> inputs;  // operands
  std::vector<Type> outputs;    // types of the results
  int32_t scope = 0;            // Graph::scope_name
  int32_t location = 0;         // Graph::location_name
};

// A named input.
struct GraphInput {
  std::string name;  // "layers.0.ffn_norm.weight", "batch.tokens"
  ValueId value;     // result of the input node
};
// A named result of the whole graph.
struct GraphOutput {
  std::string name;  // unique among the outputs
  ValueId value;     // what the graph gives under it
  // Name of the input whose buffer receives this output ("" = none). That input may not be read
  // after the write; the executor orders its readers first and the verifier rejects what cannot be
  // ordered.
  std::string donates;
};

// Nodes in the order in which they were added, each after what it reads.
class Graph {
 public:
  // The named inputs of the graph: parameters, data, scalars of the step. Names are unique.
  Value input(std::string_view name, Type type);
  // Splat of one number; integers and flags are exact up to 2^53.
  Value constant(double value, Type type,
                 std::source_location where = std::source_location::current());
  // Adds a node. Absent attributes get the row's fallback; unknown ones are an error. Throws Error
  // with op, FQN and line.
  std::vector<Value> add(const OpDef& op, std::span<const Value> inputs, Attrs attrs = {},
                         std::source_location where = std::source_location::current());
  // The same for ops with one result.
  Value add1(const OpDef& op, std::initializer_list<Value> inputs, Attrs attrs = {},
             std::source_location where = std::source_location::current());
  // Used by passes: copies scope and line from a node of another (or this) graph; types are
  // inferred again.
  std::vector<Value> add_like(const Graph& from, const Node& node, std::span<const Value> inputs);
  // Re-adds a node with another op or attributes under the scope and line of `like`.
  std::vector<Value> add_as(const Graph& from, const Node& like, const OpDef& op,
                            std::span<const Value> inputs, Attrs attrs);

  // Names a result of the graph; `donates` as in GraphOutput.
  void output(std::string_view name, Value value, std::string_view donates = "");

  // In topological order.
  const std::vector<Node>& nodes() const { return nodes_; }
  // The node of a result, its type, and the result with its graph.
  const Node& node(ValueId id) const { return nodes_[static_cast<size_t>(id.node)]; }
  const Type& type(ValueId id) const { return node(id).outputs[static_cast<size_t>(id.output)]; }
  Value value(ValueId id) { return {this, id}; }
  // In the order of the calls.
  const std::vector<GraphInput>& inputs() const { return inputs_; }
  const std::vector<GraphOutput>& outputs() const { return outputs_; }
  std::vector<GraphOutput>& outputs() { return outputs_; }
  // By name; null where there is none.
  const GraphInput* find_input(std::string_view name) const;
  const GraphOutput* find_output(std::string_view name) const;
  // Number of uses of each result of each node, graph outputs included.
  std::vector<std::vector<int>> count_uses() const;

  // FQN scopes: names pushed while tracing, joined by dots.
  void push_scope(std::string_view name);
  void pop_scope();
  // FQN and "file.cpp:12" of a number that a node holds, or of a node.
  const std::string& scope_name(int32_t scope) const { return scopes_[static_cast<size_t>(scope)]; }
  const std::string& scope_name(const Node& node) const { return scope_name(node.scope); }
  const std::string& location_name(int32_t location) const {
    return locations_[static_cast<size_t>(location)];
  }
  const std::string& location_name(const Node& node) const { return location_name(node.location); }
  // Interns names; used by the parser and by passes that make nodes of their own.
  int32_t intern_scope(std::string_view name);
  int32_t intern_location(std::string_view name);
  // Scope and line that following nodes get (restored by passes after use); location -1: the
  // caller's line again.
  void set_context(int32_t scope, int32_t location);
  // The open scope, for scope_name().
  int32_t current_scope() const { return scope_; }

 private:
  std::vector<Value> append(const OpDef& op, std::vector<ValueId> inputs, Attrs attrs,
                            int32_t scope, int32_t location);

  std::vector<Node> nodes_;
  std::vector<GraphInput> inputs_;
  std::vector<GraphOutput> outputs_;
  std::unordered_map<std::string, int32_t> input_index_;
  std::vector<std::string> scopes_ = {""};
  std::vector<std::string> locations_ = {""};
  std::unordered_map<std::string, int32_t> scope_index_ = {{"", 0}};
  std::unordered_map<std::string, int32_t> location_index_ = {{"", 0}};
  std::vector<int32_t> scope_stack_;
  int32_t scope_ = 0;
  int32_t forced_location_ = -1;
};

// Pushes a name for a block of tracing code.
class Scope {
 public:
  // Pushes `name`; the destructor pops it.
  Scope(Graph& graph, std::string_view name) : graph_(graph) { graph_.push_scope(name); }
  ~Scope() { graph_.pop_scope(); }
  Scope(const Scope&) = delete;
  Scope& operator=(const Scope&) = delete;

 private:
  Graph& graph_;
};

// Rows that the graph itself needs. "input" has attr name; "constant" attr value; both have no
// operands.
extern const OpDef kInput;
extern const OpDef kConstant;

}  // namespace rhea::ir
