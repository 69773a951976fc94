// What RHEA_ISA says of matrix tiles.
#include "rhea/base/cpu_tiles.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "rhea/base/cpu_features.h"
#include "tests/support/error_of.h"
#include "tests/support/scoped_environment.h"

namespace rhea {
namespace {

using support::ScopedEnvironment;

TEST(CpuTiles, AreUsedWhereTheyAre) {
  const ScopedEnvironment none("RHEA_ISA", "");
  EXPECT_EQ(allowed_isa(), detected_isa());
  EXPECT_EQ(active_tiles(), detected_tiles() && detected_isa() == Isa::avx512_bf16);
}

TEST(CpuTiles, TheirWordIsTheBestInstructionSetWithThem) {
  const ScopedEnvironment isa("RHEA_ISA", "amx_bf16");
  EXPECT_EQ(active_isa(), detected_isa());
  EXPECT_EQ(active_tiles(), detected_isa() == Isa::avx512_bf16);
}

TEST(CpuTiles, AnyOtherWordForbidsThem) {
  for (const char* word : {"plain", "avx2", "avx512", "avx512_bf16"}) {
    const ScopedEnvironment isa("RHEA_ISA", word);
    EXPECT_FALSE(active_tiles()) << word;
  }
  const ScopedEnvironment isa("RHEA_ISA", "amx");
  EXPECT_THAT(support::error_of([] { active_tiles(); }),
              testing::HasSubstr("avx512_bf16 amx_bf16"));
}

}  // namespace
}  // namespace rhea
