// Cases of tests/data/golden/ops (numbers of PyTorch in f64): a graph of ops is built for a case,
// differentiated, compiled by the CPU backend for every instruction set, run and compared.
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "rhea/base/cpu_features.h"
#include "rhea/components/safetensors/reader.h"
#include "rhea/ir/graph.h"

namespace rhea::testing {

using Numbers = std::vector<double>;

class GoldenCase {
 public:
  GoldenCase(const safetensors::File& file, std::string name, const nlohmann::json& description);

  const std::string& name() const { return name_; }
  DType dtype() const { return dtype_; }  // f32 or bf16
  const nlohmann::json& attributes() const { return attributes_; }
  double attribute(const char* key, double fallback) const {
    return attributes_.value(key, fallback);
  }
  bool has(const std::string& tensor) const;
  ir::Shape shape(const std::string& tensor) const;
  Numbers numbers(const std::string& tensor) const;
  std::vector<std::string> inputs() const;

 private:
  const safetensors::File& file_;
  std::string name_;
  nlohmann::json attributes_, description_;
  DType dtype_;
};

// The graph of a case while it is built.
struct GoldenGraph {
  ir::Graph graph;
  std::map<std::string, ir::Value> in;  // the case's inputs, in its dtype
  std::map<std::string, Numbers> feed;  // graph input -> elements

  // A graph input that is no operand of the gradient.
  ir::Value constant(const std::string& name, ir::Type type, Numbers values);
};
using Build = std::function<ir::Value(const GoldenCase&, GoldenGraph&)>;

// f32 outputs 2e-6, f32 gradients 5e-6, bf16 1.5e-2, each relative to the largest element of the
// tensor: the bounds of the data's README.
struct Tolerances {
  double y = 2e-6, dx = 5e-6, bf16 = 1.5e-2;
  double plain_factor = 1;  // times y for kernels without fused multiply-adds
};

// Runs every case of `file` for which `accepts` holds; at least `expected` of them. Case outputs
// are compared with "y", gradients with "d<input>" where the case has them.
void check_cases(const std::string& file, int expected,
                 const std::function<bool(const GoldenCase&)>& accepts, const Build& build,
                 const std::function<Tolerances(const GoldenCase&)>& tolerances = nullptr);

// Runs a graph on the CPU backend limited to `isa`.
std::map<std::string, Numbers> run_graph(const ir::Graph& graph,
                                         const std::map<std::string, Numbers>& feed, Isa isa);
std::vector<Isa> usable_isas();

}  // namespace rhea::testing
