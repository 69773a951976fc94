// Ten steps of each optimizer against torch.optim (tests/data/golden/optim), through every kernel
// that runs here.
#include <fmt/core.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "rhea/base/json.h"
#include "rhea/base/mapped_file.h"
#include "rhea/components/safetensors/reader.h"
#include "rhea/ops/ops.h"
#include "rhea/ops/run_kernel.h"
#include "tests/support/kernel_run.h"

namespace rhea::testing {
namespace {

using Values = std::vector<double>;
using nlohmann::json;

constexpr const char* kParameters[] = {"a", "b", "c", "d"};
constexpr int kSteps = 10;

std::filesystem::path folder() {
  return std::filesystem::path(RHEA_SOURCE_DIR) / "tests/data/golden/optim";
}

DType dtype_of_element(safetensors::ElementType type) {
  return type == safetensors::ElementType::BF16 ? DType::bf16 : DType::f32;
}

struct Recorded {
  std::string name;
  const ir::OpDef* op;
  ir::Attrs attrs;
};

// The runs of optim.json that the rows stand for.
std::vector<Recorded> runs() {
  std::vector<Recorded> all;
  const json file = parse_json(read_file(folder() / "optim.json"));
  for (const json& run : file.at("runs")) {
    const std::string name = run.at("file").get<std::string>(),
                      optimizer = run.at("optimizer").get<std::string>();
    const json& options = run.at("options");
    if (!std::filesystem::exists(folder() / name)) continue;
    if (optimizer == "SGD") {
      all.push_back({name,
                     &ops::kSgd,
                     {{"momentum", options.at("momentum").get<double>()},
                      {"dampening", options.at("dampening").get<double>()},
                      {"nesterov", int64_t{options.at("nesterov").get<bool>()}},
                      {"weight_decay", options.at("weight_decay").get<double>()}}});
    } else if (optimizer == "Adam" || optimizer == "AdamW") {
      all.push_back({name,
                     &ops::kAdam,
                     {{"beta1", options.at("betas").at(0).get<double>()},
                      {"beta2", options.at("betas").at(1).get<double>()},
                      {"eps", options.at("eps").get<double>()},
                      {"weight_decay", options.at("weight_decay").get<double>()},
                      {"decoupled", int64_t{optimizer == "AdamW"}}}});
    }
  }
  return all;
}

// Largest difference, in units of `unit`.
void expect_close(const Values& got, const Values& wanted, DType dtype, const std::string& what) {
  ASSERT_EQ(got.size(), wanted.size()) << what;
  for (size_t i = 0; i < got.size(); ++i) {
    // bf16: one unit in the last place; f32: 2e-6.
    const double allowed =
        dtype == DType::bf16
            ? std::ldexp(1.0, std::ilogb(std::max(std::fabs(wanted[i]), 1e-30)) - 7)
            : 2e-6;
    EXPECT_NEAR(got[i], wanted[i], allowed * 1.0001) << what << " element " << i;
  }
}

void check_parameter(const Recorded& run, const safetensors::File& file,
                     const ir::CpuKernel& kernel, const std::string& x, ThreadPool& pool) {
  const auto& start = file.at("p0." + x);
  const DType dtype = dtype_of_element(start.dtype);
  const bool adam = run.op == &ops::kAdam;
  const std::vector<std::string> states = adam ? std::vector<std::string>{"exp_avg", "exp_avg_sq"}
                                               : std::vector<std::string>{"momentum_buffer"};
  const auto* first_state = file.find("state." + x + "." + states[0]);
  const DType state_dtype = first_state == nullptr ? dtype : dtype_of_element(first_state->dtype);
  const ir::Type p{dtype, start.shape}, state{state_dtype, start.shape}, number{DType::f32, {}},
      counter{DType::i64, {}};
  std::vector<ir::Type> types = {p, p};
  for (size_t i = 0; i < states.size(); ++i) types.push_back(state);
  types.insert(types.end(), {number, number, counter});
  const Call call(*run.op, types, run.attrs);

  Values parameter = safetensors::read_vector<double>(start);
  std::vector<Values> moments(states.size(), Values(parameter.size(), 0.0));
  const Values lr = safetensors::read_vector<double>(file.at("lr"));
  double step = 0;
  for (int s = 1; s <= kSteps; ++s) {
    const auto* gradient = file.find(fmt::format("g{}.{}", s, x));
    if (gradient == nullptr)
      continue;  // no gradient: skipped, without decay and without counting the step
    std::vector<Values> in = {parameter, safetensors::read_vector<double>(*gradient)};
    in.insert(in.end(), moments.begin(), moments.end());
    in.insert(in.end(), {{1.0}, {lr[static_cast<size_t>(s - 1)]}, {++step}});
    const auto out = rhea::testing::run(call, kernel, in, pool);
    parameter = out[0].values();
    for (size_t i = 0; i < moments.size(); ++i) moments[i] = out[i + 1].values();
    expect_close(parameter, safetensors::read_vector<double>(file.at(fmt::format("p{}.{}", s, x))),
                 dtype, fmt::format("p{}.{}", s, x));
  }
  for (size_t i = 0; i < states.size(); ++i) {
    const auto* wanted = file.find("state." + x + "." + states[i]);
    if (wanted != nullptr)
      expect_close(moments[i], safetensors::read_vector<double>(*wanted), state_dtype,
                   states[i] + " of " + x);
  }
}

TEST(OptimGolden, TenStepsEqualTorch) {
  ThreadPool pool(2);
  const auto all = runs();
  EXPECT_EQ(all.size(), 11U);
  for (const Recorded& run : all) {
    const safetensors::File file(folder() / run.name);
    for (const auto& kernel : run.op->cpu) {
      if (kernel.isa > active_isa()) continue;
      SCOPED_TRACE(fmt::format("{} {}", run.name, kernel.name));
      for (const char* x : kParameters) check_parameter(run, file, kernel, x, pool);
    }
  }
}

TEST(OptimGolden, GlobalNormEqualsTorch) {
  ThreadPool pool(2);
  const safetensors::File file(folder() / "clip_grad_norm.safetensors");
  // squares_overflow is absent on purpose: torch's sum of squares in f32 is infinite there, ours is
  // in f64 and finite.
  for (const std::string name :
       {"above", "below", "inf", "just_above", "large_finite", "max_norm_zero", "nan"}) {
    SCOPED_TRACE(name);
    std::vector<ir::Type> types;
    std::vector<Values> in;
    for (const char* x : kParameters) {
      const auto& tensor = file.at(name + ".in." + x);
      types.push_back({DType::f32, tensor.shape});
      in.push_back(safetensors::read_vector<double>(tensor));
    }
    const Call call(ops::kGlobalNorm, types, {});
    const double wanted = safetensors::read_vector<double>(file.at(name + ".total_norm"))[0];
    for (const ir::CpuKernel* kernel : usable_kernels(call)) {
      const double got = run(call, *kernel, in, pool)[0].values()[0];
      if (std::isnan(wanted)) {
        EXPECT_TRUE(std::isnan(got));
      } else if (std::isinf(wanted)) {
        EXPECT_EQ(got, wanted);
      } else {
        EXPECT_NEAR(got, wanted, 1e-6 * wanted);
      }
    }
  }
}

using Bytes = std::shared_ptr<void>;

// Runs one kernel on memory in any layout; returns the memory of the results.
std::vector<Bytes> run_on_memory(const ir::OpDef& op, const ir::CpuKernel& kernel,
                                 const std::vector<ir::Type>& types, const ir::Attrs& attrs,
                                 const std::vector<Bytes>& in, ThreadPool& pool) {
  const Call call(op, types, attrs);
  ops::KernelRun run(kernel, call.instance(), pool);
  std::vector<Bytes> out;
  std::vector<void*> in_data, out_data;
  for (const Bytes& x : in) in_data.push_back(x.get());
  for (const ir::Type& type : call.out_types) {
    out.push_back(ops::aligned_bytes(ir::byte_size(type)));
    std::memset(out.back().get(), 0xff, static_cast<size_t>(ir::byte_size(type)));
    out_data.push_back(out.back().get());
  }
  run(in_data, out_data);
  return out;
}

// The last kernel of a list runs everywhere.
std::vector<Bytes> run_last(const ir::OpDef& op, const std::vector<ir::Type>& types,
                            const ir::Attrs& attrs, const std::vector<Bytes>& in,
                            ThreadPool& pool) {
  return run_on_memory(op, op.cpu.back(), types, attrs, in, pool);
}

TEST(AdamPack, WritesTheBitsOfAdamConvertAndPack) {
  ThreadPool pool(3);
  for (const DType copy : {DType::bf16, DType::f32}) {
    for (const ir::Shape& shape : {ir::Shape{256, 128}, ir::Shape{131, 77}, ir::Shape{1, 64}}) {
      const ir::Type matrix{DType::f32, shape}, number{DType::f32, {}};
      const std::vector<ir::Type> types = {matrix, matrix, matrix,          matrix,
                                           number, number, {DType::i64, {}}};
      const std::vector<double> scalars = {0.7, 0.01, 5};
      std::vector<Bytes> in;
      for (size_t i = 0; i < types.size(); ++i) {
        in.push_back(ops::aligned_bytes(ir::byte_size(types[i])));
        for (int64_t e = 0; e < ir::num_elements(types[i].shape); ++e)
          store_from_f64(in[i].get(), types[i].dtype, e,
                         i < 4 ? rng_uniform({i}, static_cast<uint64_t>(e)) : scalars[i - 4]);
      }
      const auto separate = run_last(ops::kAdam, types, {}, in, pool);
      const ir::Type copy_type{copy, shape};
      const Bytes rounded =
          run_last(ops::kConvert, {matrix}, {{"dtype", copy}}, {separate[0]}, pool)[0];
      std::vector<Bytes> expected = separate;
      expected.push_back(rounded);
      for (const int64_t layout : {1, 2})
        expected.push_back(
            run_last(ops::kPack, {copy_type}, {{"layout", layout}}, {rounded}, pool)[0]);
      const ir::Attrs attrs = {{"copy_dtype", copy}, {"copies", std::vector<int64_t>{0, 1, 2}}};
      const Call call(ops::kAdamPack, types, attrs);
      for (const ir::CpuKernel* kernel : usable_kernels(call)) {
        const auto got = run_on_memory(ops::kAdamPack, *kernel, types, attrs, in, pool);
        for (size_t r = 0; r < got.size(); ++r)
          EXPECT_EQ(std::memcmp(got[r].get(), expected[r].get(),
                                static_cast<size_t>(ir::byte_size(call.out_types[r]))),
                    0)
              << kernel->name << " result " << r << " " << ir::to_string(call.out_types[r]);
      }
    }
  }
}

}  // namespace
}  // namespace rhea::testing
