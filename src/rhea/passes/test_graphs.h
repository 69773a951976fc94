// Shared by the tests of passes: how often an op occurs, and values in f64.
#pragma once
#include <algorithm>
#include <cmath>
#include <map>
#include <string>

#include "rhea/ops/evaluate.h"
#include "rhea/ops/ops.h"

namespace rhea::passes::test {

inline int64_t count(const ir::Graph& graph, const ir::OpDef& op) {
  return std::count_if(graph.nodes().begin(), graph.nodes().end(),
                       [&](const ir::Node& node) { return node.op == &op; });
}

// Some values for every float input of the graph, the same ones for the same name and size.
inline std::map<std::string, ops::Tensor> some_inputs(const ir::Graph& graph) {
  std::map<std::string, ops::Tensor> values;
  for (const auto& input : graph.inputs()) {
    const ir::Type& type = graph.type(input.value);
    auto& tensor = values[input.name];
    uint64_t state = 1;
    for (const char c : input.name) state = state * 31 + static_cast<unsigned char>(c);
    for (int64_t i = 0; i < ir::num_elements(type.shape); ++i) {
      state = state * 6364136223846793005u + 1442695040888963407u;
      const double uniform = static_cast<double>(state >> 11) * 0x1p-53;
      tensor.push_back(is_float(type.dtype) ? 2 * uniform - 1 : std::floor(3 * uniform));
    }
  }
  return values;
}

}  // namespace rhea::passes::test
