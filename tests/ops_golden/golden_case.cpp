// Reading the cases, running them and comparing.
#include "golden_case.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <cmath>

#include "rhea/base/error.h"
#include "rhea/base/json.h"
#include "rhea/base/mapped_file.h"
#include "rhea/exec/cpu/backend.h"
#include "rhea/ops/ops.h"
#include "rhea/passes/autodiff.h"

namespace rhea::testing {
namespace {

const std::string kFolder = RHEA_SOURCE_DIR "/tests/data/golden/ops/";

void compare(const std::string& what, const Numbers& got, const Numbers& want, double tolerance) {
  ASSERT_EQ(got.size(), want.size()) << what;
  double largest = 0;
  for (const double value : want) {
    if (std::isfinite(value)) largest = std::max(largest, std::abs(value));
  }
  size_t worst = 0;
  double error = 0;
  for (size_t i = 0; i < want.size(); ++i) {
    if (got[i] == want[i] || (std::isnan(got[i]) && std::isnan(want[i]))) continue;
    ASSERT_TRUE(std::isfinite(want[i]) && std::isfinite(got[i]))
        << what << " element " << i << ": expected " << want[i] << ", got " << got[i];
    if (std::abs(got[i] - want[i]) > error) {
      error = std::abs(got[i] - want[i]);
      worst = i;
    }
  }
  EXPECT_LE(error, tolerance * largest)
      << what << " element " << worst << ": expected " << want[worst] << ", got " << got[worst]
      << ", an error of " << error / largest << " of the largest element";
}

}  // namespace

GoldenCase::GoldenCase(const safetensors::File& file, std::string name,
                       const nlohmann::json& description)
    : file_(file),
      name_(std::move(name)),
      attributes_(description.value("attributes", nlohmann::json::object())),
      description_(description),
      dtype_(description.value("dtype", "float32") == "bfloat16" ? DType::bf16 : DType::f32) {}

bool GoldenCase::has(const std::string& tensor) const {
  return file_.find(name_ + "." + tensor) != nullptr;
}

ir::Shape GoldenCase::shape(const std::string& tensor) const {
  return file_.at(name_ + "." + tensor).shape;
}

Numbers GoldenCase::numbers(const std::string& tensor) const {
  const safetensors::TensorView& view = file_.at(name_ + "." + tensor);
  if (safetensors::is_float(view.dtype)) return safetensors::read_vector<double>(view);
  const auto integers = safetensors::read_vector<int64_t>(view);
  return Numbers(integers.begin(), integers.end());
}

std::vector<std::string> GoldenCase::inputs() const {
  return description_.at("inputs").get<std::vector<std::string>>();
}

ir::Value GoldenGraph::constant(const std::string& name, ir::Type type, Numbers values) {
  feed[name] = std::move(values);
  return graph.input(name, std::move(type));
}

std::vector<Isa> usable_isas() {
  std::vector<Isa> isas;
  for (const Isa isa : {Isa::plain, Isa::avx2, Isa::avx512, Isa::avx512_bf16}) {
    if (isa <= detected_isa()) isas.push_back(isa);
  }
  return isas;
}

std::map<std::string, Numbers> run_graph(const ir::Graph& graph,
                                         const std::map<std::string, Numbers>& feed, Isa isa) {
  ThreadPool pool(2);
  const auto exe = exec::cpu::compile(graph, pool, exec::cpu::make_arena(), {.isa = isa});
  std::vector<std::shared_ptr<void>> memory;
  const auto allocate = [&](const ir::Type& type) {
    memory.push_back(exec::cpu::allocate_state(ir::byte_size(type) + 64));
    return memory.back().get();
  };
  for (const ir::GraphInput& input : graph.inputs()) {
    const ir::Type& type = graph.type(input.value);
    void* data = allocate(type);
    const Numbers& values = feed.at(input.name);
    RHEA_CHECK(static_cast<int64_t>(values.size()) == ir::num_elements(type.shape),
               "input '{}' has {} elements", input.name, values.size());
    for (size_t i = 0; i < values.size(); ++i)
      store_from_f64(data, type.dtype, static_cast<int64_t>(i), values[i]);
    exe->bind_input(input.name, data);
  }
  std::map<std::string, void*> results;
  for (const ir::GraphOutput& output : graph.outputs()) {
    results[output.name] = allocate(graph.type(output.value));
    exe->bind_output(output.name, results[output.name]);
  }
  exe->run();
  std::map<std::string, Numbers> outputs;
  for (const ir::GraphOutput& output : graph.outputs()) {
    const ir::Type& type = graph.type(output.value);
    Numbers& values = outputs[output.name];
    for (int64_t i = 0; i < ir::num_elements(type.shape); ++i)
      values.push_back(load_as_f64(results[output.name], type.dtype, i));
  }
  return outputs;
}

namespace {

void check_case(const GoldenCase& c, const Build& build, const Tolerances& tolerances) {
  GoldenGraph g;
  std::vector<ir::Value> wrt;
  for (const std::string& name : c.inputs()) {
    g.in[name] = g.constant(name, {c.dtype(), c.shape(name)}, c.numbers(name));
    wrt.push_back(g.in[name]);
  }
  const ir::Value y = build(c, g);
  g.graph.output("y", y);
  if (c.has("dy")) {
    const ir::Value dy = g.constant("dy", {DType::f32, y.shape()}, c.numbers("dy"));
    const ir::Value product = ops::multiply(ops::convert(y, DType::f32), dy);
    std::vector<int64_t> all;
    for (int64_t d = 0; d < y.type().rank(); ++d) all.push_back(d);
    const std::vector<ir::Value> gradients =
        passes::gradients(g.graph, ops::reduce_sum(product, all), wrt);
    for (size_t i = 0; i < wrt.size(); ++i) {
      const std::string name = "d" + c.inputs()[i];
      ASSERT_EQ(c.has(name), gradients[i].valid()) << name;
      if (c.has(name)) g.graph.output(name, gradients[i]);
    }
  }
  const bool bf16 = c.dtype() == DType::bf16;
  for (const Isa isa : usable_isas()) {
    const auto outputs = run_graph(g.graph, g.feed, isa);
    for (const auto& [name, values] : outputs) {
      double tolerance = bf16 ? tolerances.bf16 : (name == "y" ? tolerances.y : tolerances.dx);
      if (isa == Isa::plain && name == "y") tolerance *= tolerances.plain_factor;
      compare(fmt::format("{} {} with {}", c.name(), name, isa_name(isa)), values, c.numbers(name),
              tolerance);
    }
  }
}

}  // namespace

void check_cases(const std::string& file, int expected,
                 const std::function<bool(const GoldenCase&)>& accepts, const Build& build,
                 const std::function<Tolerances(const GoldenCase&)>& tolerances) {
  const safetensors::File tensors(kFolder + file + ".safetensors");
  const nlohmann::json cases =
      parse_json(read_file(kFolder + "ops.json")).at("files").at(file).at("cases");
  int count = 0;
  for (const auto& [name, description] : cases.items()) {
    const GoldenCase c(tensors, name, description);
    if (!accepts(c)) continue;
    ++count;
    SCOPED_TRACE(file + "/" + name);
    check_case(c, build, tolerances ? tolerances(c) : Tolerances{});
  }
  EXPECT_EQ(count, expected) << "cases of " << file;
}

}  // namespace rhea::testing
