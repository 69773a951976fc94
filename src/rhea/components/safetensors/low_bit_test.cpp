// All codes of the small types against those of PyTorch.
#include "rhea/components/safetensors/low_bit.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <filesystem>

#include "rhea/base/error.h"
#include "rhea/components/safetensors/reader.h"

namespace rhea::safetensors {
namespace {

const File& golden() {
  static const File file(std::filesystem::path(RHEA_SOURCE_DIR) /
                         "tests/data/golden/ops/low_bit.safetensors");
  return file;
}

void expect_table(const char* type, std::span<const float> table) {
  const auto codes = read_vector<uint8_t>(golden().at(fmt::format("{}.codes", type)));
  const auto values = read_vector<float>(golden().at(fmt::format("{}.values", type)));
  ASSERT_EQ(codes.size(), table.size()) << type;
  for (size_t i = 0; i < codes.size(); ++i) {
    const float found = table[codes[i]];
    if (std::isnan(values[i]))
      EXPECT_TRUE(std::isnan(found)) << type << " code " << int{codes[i]};
    else
      EXPECT_EQ(std::bit_cast<uint32_t>(found), std::bit_cast<uint32_t>(values[i]))
          << type << " code " << int{codes[i]} << ": " << found << ", expected " << values[i];
  }
}

TEST(LowBit, EveryCodeHasTheValueOfPyTorch) {
  expect_table("e4m3fn", e4m3_values());
  expect_table("e5m2", e5m2_values());
  expect_table("e8m0", e8m0_values());
  expect_table("e2m1", kE2m1Values);
}

TEST(LowBit, FnuzKindsHaveOneZeroAndOneNan) {
  EXPECT_TRUE(std::isnan(e4m3fnuz_values()[0x80]));
  EXPECT_EQ(e4m3fnuz_values()[0x7f], 240);
  EXPECT_EQ(e4m3fnuz_values()[0x40], 1);
  EXPECT_EQ(e4m3fnuz_values()[0x01], std::ldexp(1.0F, -10));
  EXPECT_TRUE(std::isnan(e5m2fnuz_values()[0x80]));
  EXPECT_EQ(e5m2fnuz_values()[0x7f], 57344);
  EXPECT_EQ(e5m2fnuz_values()[0x40], 1);
  EXPECT_EQ(e5m2fnuz_values()[0x01], std::ldexp(1.0F, -17));
}

}  // namespace
}  // namespace rhea::safetensors
