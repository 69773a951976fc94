// What passes share that make a new graph of another one, node by node.
#pragma once
#include <vector>

#include "rhea/ir/graph.h"

namespace rhea::passes {

// Which value of the graph `to` stands for a value of the graph `from`. A pass walks over the nodes
// of `from` in an order in which operands come first, and says what becomes of each: add() keeps
// it, set() puts something else in its place, and a node that it skips may have no reader among
// those that it keeps. Both graphs stay where they are while this is in use.
class GraphCopy {
 public:
  GraphCopy(const ir::Graph& from, ir::Graph& to);

  // What stands for a result of a node that add() or set() was called for.
  ir::Value operator[](ir::ValueId id) const;
  // The same for all operands of a node of `from`.
  std::vector<ir::Value> operands(const ir::Node& node) const;

  // Adds node number `node` of `from`, with its scope and line, on what stands for its operands.
  void add(size_t node);
  // Lets values of `to` stand for the results of that node. More of them than it has are allowed:
  // the first ones count as its own.
  void set(size_t node, std::vector<ir::Value> results);
  // add() for all nodes.
  void add_nodes();
  // Gives `to` the outputs of `from`: names, values and what they donate.
  void add_outputs() const;

 private:
  const ir::Graph& from_;
  ir::Graph& to_;
  std::vector<std::vector<ir::Value>> made_;  // by node of from_
};

}  // namespace rhea::passes
