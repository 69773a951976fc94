// Kernels and tile functions against the definition, however they are called.
#include "rhea/base/cpu_features.h"
#include "rhea/base/error.h"
#include "rhea/ops/contract/checks.h"

namespace rhea::ops {

using ir::KernelPlan;
using ir::Sample;
using ir::Type;

namespace {

// Nothing of how a kernel is called may change a bit of its results.
void check_calls(const ContractCase& c, const KernelPlan& plan, const std::vector<Tensor>& results,
                 Findings& f) {
  const auto expect_same = [&](const Layouts& layouts, const std::string& how) {
    const std::vector<Tensor> again = run_kernel(c, plan, layouts, f);
    for (size_t r = 0; r < results.size(); ++r)
      f.expect(same_bits(again[r], results[r]), "result {} differs {}", r, how);
  };
  expect_same({}, "in a second run");
  expect_same({.pieces = 3}, "with the grid cut into 3");
  for (const auto& pair : plan.in_place)
    expect_same({.shared = pair}, fmt::format("in place of operand {}", pair.first));
  for (size_t i = 0; i < c.in.size(); ++i) {
    if ((plan.strided_in >> i & 1) != 0 && !c.in[i].shape.empty())
      expect_same({.wide_in = static_cast<int64_t>(i)}, fmt::format("with wide operand {}", i));
  }
  for (size_t i = 0; i < c.out.size(); ++i) {
    if ((plan.strided_out >> i & 1) != 0 && !c.out[i].shape.empty())
      expect_same({.wide_out = static_cast<int64_t>(i)}, fmt::format("with wide result {}", i));
  }
}

}  // namespace

void check_kernels(const OpDef& op, Findings& f) {
  for (const Sample& sample : samples_of(op)) {
    const Findings::Place place(f, fmt::format("sample {}", sample.name));
    const auto c = make_case(op, sample);
    std::vector<Tensor> first_tile_results;
    size_t accepted = 0;
    for (const auto& [name, plan, added] : runnable_kernels(*c)) {
      ++accepted;
      const Findings::Place kernel(f, fmt::format("kernel {}", name));
      const std::vector<Tensor> results = run_kernel(*c, plan, {}, f);
      expect_close(*c, results, c->expected, f);
      check_calls(*c, plan, results, f);
      // Tiles are the row's own, in as many instruction sets as the machine has; an added kernel
      // and the one in f64 may round otherwise.
      if (op.tile[0] == nullptr || added || !name.starts_with("tiles_")) continue;
      if (first_tile_results.empty()) first_tile_results = results;
      if (is_float(c->out[0].dtype) && c->out[0].dtype != DType::f64)
        f.expect(same_bits(results[0], first_tile_results[0]),
                 "instruction sets give different bits");
    }
    const bool has_definition = op.reference || op.decompose;
    if (accepted == 0 && !op.cpu.empty() && !has_definition) f.fail("no kernel accepts the sample");
  }
}

// The tile functions alone, as clusters call them: any length, and the result over an operand.
void check_tiles(const OpDef& op, Findings& f) {
  if (op.tile[0] == nullptr) return f.skip("not elementwise");
  for (const Sample& sample : samples_of(op)) {
    const auto c = make_case(op, sample);
    bool f32 = c->out[0].dtype == DType::f32;
    for (const Type& type : c->in) f32 &= type.dtype == DType::f32;
    if (!f32 || c->inputs.empty()) continue;
    const Findings::Place place(f, fmt::format("sample {}", sample.name));
    const auto n = static_cast<int64_t>(c->inputs[0].size());
    std::vector<Tensor> expected;
    for (int isa = 0; isa <= static_cast<int>(detected_isa()); ++isa) {
      const ir::TileFn tile = op.tile[static_cast<size_t>(isa)];
      if (tile == nullptr) continue;
      for (const bool over_operand : {false, true}) {
        const Type tile_type{DType::f32, {round_up(n, 16)}};
        std::vector<Memory> in;
        std::vector<const float*> pointers;
        for (const Tensor& x : c->inputs) {
          in.emplace_back(tile_type);
          in.back().fill(x);
          pointers.push_back(in.back().buffer().as<float>());
        }
        Memory out(tile_type);
        Memory& result = over_operand ? in[0] : out;
        tile(n, pointers.data(), result.buffer().as<float>(), c->attrs);
        f.expect(result.guard_is_whole(), "wrote past the result");
        Tensor values = result.read();
        values.resize(static_cast<size_t>(n));
        if (expected.empty()) {
          expected = {values};
          expect_close(*c, expected, c->expected, f);
        }
        f.expect(same_bits(values, expected[0]), "{}{}: other bits",
                 isa_name(static_cast<Isa>(isa)), over_operand ? " over an operand" : "");
      }
    }
  }
}

}  // namespace rhea::ops
