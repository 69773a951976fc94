// MXFP4 against the values of Transformers and of compressed-tensors; what is refused.
#include "rhea/components/checkpoint/quantized.h"

#include <fstream>
#include <nlohmann/json.hpp>

#include "rhea/base/json.h"
#include "rhea/base/mapped_file.h"
#include "rhea/components/checkpoint/hf_weights.h"
#include "rhea/components/checkpoint/test_run.h"
#include "rhea/components/safetensors/reader.h"
#include "rhea/components/safetensors/writer.h"

namespace rhea::checkpoint {
namespace {

namespace fs = std::filesystem;
using safetensors::ElementType;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

class Quantized : public TestFolder {
 protected:
  void write_bytes(const std::string& values, std::vector<int64_t> values_shape,
                   const std::vector<uint8_t>& codes, const std::string& scales,
                   std::vector<int64_t> scales_shape, const std::vector<uint8_t>& scale_codes) {
    safetensors::write_file(
        folder_ / "model.safetensors",
        std::vector<safetensors::TensorView>{
            {values, ElementType::U8, std::move(values_shape), std::as_bytes(std::span(codes))},
            {scales, ElementType::U8, std::move(scales_shape),
             std::as_bytes(std::span(scale_codes))}});
  }
  std::vector<float> load(const std::string& name, const std::vector<int64_t>& shape) {
    int64_t count = 1;
    for (const int64_t dim : shape) count *= dim;
    std::vector<float> values(static_cast<size_t>(count));
    const std::vector<NamedTensor> targets = {{name, DType::f32, shape, values.data()}};
    num_mxfp4_ = import_hf(folder_, identity_key_map(), targets).num_mxfp4;
    return values;
  }
  int64_t num_mxfp4_ = 0;
};

TEST_F(Quantized, W15LowNibbleFirstThenTheAxesAreSwapped) {
  std::vector<uint8_t> codes(16);
  codes[0] = 0x21, codes[1] = 0xa3, codes[2] = 0x7f, codes[3] = 0x08;
  write_bytes("e.w_blocks", {1, 1, 1, 16}, codes, "e.w_scales", {1, 1, 1}, {128});
  const auto values = load("e.w", {1, 32, 1});
  EXPECT_THAT(std::vector(values.begin(), values.begin() + 8),
              ElementsAre(1, 2, 3, -2, -12, 12, -0.0F, 0));
  EXPECT_TRUE(std::signbit(values[6]));
  EXPECT_EQ(num_mxfp4_, 1);
}

TEST_F(Quantized, BlocksAreThoseOfTransformers) {
  const safetensors::File golden(fs::path(RHEA_SOURCE_DIR) /
                                 "tests/data/golden/ops/low_bit.safetensors");
  const auto bytes = [&](const char* name) {
    return safetensors::read_vector<uint8_t>(golden.at(name));
  };
  write_bytes("w_blocks", {2, 5, 3, 16}, bytes("mxfp4.blocks"), "w_scales", {2, 5, 3},
              bytes("mxfp4.scales"));
  EXPECT_EQ(load("w", {2, 96, 5}),
            safetensors::read_vector<float>(golden.at("mxfp4.transformers_layout")));
}

TEST_F(Quantized, PackedIsThatOfCompressedTensors) {
  const fs::path path = fs::path(RHEA_SHARED_DIR) / "data/mxfp4-reference.json";
  if (!fs::exists(path)) GTEST_SKIP() << path << " is not there";
  const auto reference = parse_json(read_file(path));
  std::vector<uint8_t> packed, scales;
  std::vector<float> expected;
  for (const auto& row : reference["weight_packed"])
    for (const auto& code : row) packed.push_back(code.get<uint8_t>());
  for (const auto& row : reference["weight_scale"])
    for (const auto& code : row) scales.push_back(code.get<uint8_t>());
  for (const auto& row : reference["dequantized"])
    for (const auto& value : row) expected.push_back(value.get<float>());
  const auto rows = static_cast<int64_t>(reference["weight_packed"].size());
  const auto columns = static_cast<int64_t>(expected.size()) / rows;
  write_bytes("w_packed", {rows, columns / 2}, packed, "w_scale", {rows, columns / 32}, scales);
  EXPECT_EQ(load("w", {rows, columns}), expected);
}

TEST_F(Quantized, CodesAndScalesMustFit) {
  const std::vector<uint8_t> codes(32);
  write_bytes("w_blocks", {1, 1, 2, 16}, codes, "w_scales", {1, 1, 1}, {127});
  EXPECT_THAT(error_of([&] {
                load("w", {1, 32, 1});
              }),
              AllOf(HasSubstr("'w_blocks' is U8 [1, 1, 2, 16]"), HasSubstr("'w_scales'"),
                    HasSubstr("16 bytes")));
  write_bytes("w_blocks", {1, 1, 2, 16}, codes, "other", {1}, {127});
  EXPECT_THAT(error_of([&] { load("w", {1, 64, 1}); }), HasSubstr("'w_scales' is not there"));
}

TEST_F(Quantized, OtherMethodsAreNamed) {
  const auto error = [&](const char* config) {
    std::ofstream(folder_ / "config.json") << config;
    return error_of([&] { read_quantization(folder_); });
  };
  EXPECT_THAT(error(R"({"quantization_config":{"quant_method":"gptq","bits":4}})"),
              AllOf(HasSubstr("gptq"), HasSubstr("fp8")));
  EXPECT_THAT(
      error(R"({"quantization_config":{"quant_method":"fp8","weight_block_size":[1,128]}})"),
      HasSubstr("[1,128]"));
  EXPECT_EQ(error(R"({"quantization_config":{"quant_method":"fp8","weight_block_size":[64,64]}})"),
            "no error");
  EXPECT_EQ(read_quantization(folder_).fp8_block_size, 64);
}

}  // namespace
}  // namespace rhea::checkpoint
