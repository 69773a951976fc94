// Memory of executables: what moves, and whose scratch shares a page.
#include "rhea/exec/cpu/arena.h"

#include <gmock/gmock.h>

namespace rhea::exec::cpu {
namespace {

using testing::ElementsAre;

constexpr int64_t kHugePage = int64_t{2} << 20;

TEST(PlaceScratch, LiesDenselyOnOneNode) {
  const ScratchPlaces places = place_scratch(4160, 3, {});
  EXPECT_THAT(places.begin, ElementsAre(0, 4160, 2 * 4160));
  EXPECT_EQ(places.bytes, 3 * 4160);
  EXPECT_EQ(place_scratch(0, 3, {}).bytes, 0);
}

TEST(PlaceScratch, NodesShareNoHugePage) {
  const ScratchPlaces places = place_scratch(4160, 5, {0, 0, 1, 1, 2});
  EXPECT_THAT(places.begin, ElementsAre(0, 4160, kHugePage, kHugePage + 4160, 2 * kHugePage));
  EXPECT_EQ(places.bytes, 2 * kHugePage + 4160);
  EXPECT_THAT(place_scratch(3 * kHugePage / 2, 3, {0, 0, 1}).begin,
              ElementsAre(0, 3 * kHugePage / 2, 3 * kHugePage));
}

TEST(Arena, ScratchGrowsBesideTheValues) {
  Arena arena;
  arena.reserve(1000);
  const std::byte* values = arena.data();
  const uint64_t before = arena.generation();
  arena.reserve_scratch(100, 3, {0, 1, 1});
  EXPECT_NE(arena.generation(), before);
  const std::byte* scratch = arena.scratch();
  ASSERT_NE(scratch, nullptr);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(scratch) % kHugePage, 0U);
  EXPECT_GE(arena.scratch_bytes(), kHugePage + 200);
  EXPECT_EQ(scratch[arena.scratch_bytes() - 1], std::byte{0});
  const uint64_t after = arena.generation();
  const auto places = arena.scratch_places().begin;
  arena.reserve_scratch(50, 3, {0, 1, 1});  // of another graph of the same step
  EXPECT_EQ(arena.generation(), after);
  EXPECT_EQ(arena.scratch(), scratch);
  EXPECT_EQ(arena.scratch_places().begin, places);
  EXPECT_EQ(arena.data(), values);
}

}  // namespace
}  // namespace rhea::exec::cpu
