// dtypes, random numbers, thread pool, files.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cmath>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <vector>

#include "rhea/base/dtype.h"
#include "rhea/base/error.h"
#include "rhea/base/json.h"
#include "rhea/base/mapped_file.h"
#include "rhea/base/output_file.h"
#include "rhea/base/rng.h"
#include "rhea/base/thread_pool.h"

namespace rhea {
namespace {

TEST(DType, Bf16RoundsToNearestEvenAndKeepsNan) {
  EXPECT_EQ(bf16(1.0F).bits, 0x3f80);
  EXPECT_EQ(bf16(std::bit_cast<float>(0x3f808000U)).bits, 0x3f80);  // tie to even
  EXPECT_EQ(bf16(std::bit_cast<float>(0x3f818000U)).bits, 0x3f82);
  EXPECT_TRUE(std::isnan(static_cast<float>(bf16(std::bit_cast<float>(0x7f800001U)))));
  EXPECT_TRUE(std::isinf(static_cast<float>(bf16(std::numeric_limits<float>::max()))));
}

TEST(DType, F16RoundTripsEveryBitPattern) {
  for (uint32_t bits = 0; bits < 0x10000U; ++bits) {
    f16 value;
    value.bits = static_cast<uint16_t>(bits);
    const float wide = static_cast<float>(value);
    if (std::isnan(wide)) {
      EXPECT_TRUE(std::isnan(static_cast<float>(f16(wide))));
    } else {
      ASSERT_EQ(f16(wide).bits, value.bits) << bits;
    }
  }
  EXPECT_EQ(f16(65519.0F).bits, 0x7bff);
  EXPECT_EQ(f16(65520.0F).bits, 0x7c00);
}

TEST(Rng, PhiloxMatchesThePublishedVector) {
  const auto words = philox({0xffffffffffffffffULL}, 0xffffffffffffffffULL, 0xffffffffffffffffULL);
  EXPECT_THAT(words, testing::ElementsAre(0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd));
}

TEST(ThreadPool, EveryItemRunsOnceForAnyNumberOfThreads) {
  for (const int threads : {1, 2, 5}) {
    ThreadPool pool(threads);
    for (const int64_t grain : {1, 3}) {
      std::vector<std::atomic<int>> hits(1001);
      pool.parallel_for(
          1001,
          [&](int64_t begin, int64_t end, int) {
            for (int64_t i = begin; i < end; ++i) ++hits[static_cast<size_t>(i)];
          },
          grain);
      for (const auto& hit : hits) ASSERT_EQ(hit.load(), 1);
    }
  }
}

// Workers that wake up late meet the end of the pool in place of the grid that they were called
// for.
TEST(ThreadPool, EndsWhileWorkersAreWakingUp) {
  std::atomic<int> items{0};
  for (int i = 0; i < 3000; ++i) {
    ThreadPool pool(5);
    pool.parallel_for(
        2, [&](int64_t begin, int64_t end, int) { items += static_cast<int>(end - begin); });
  }
  EXPECT_EQ(items, 6000);
}

TEST(ThreadPool, RethrowsAnItemsException) {
  ThreadPool pool(3);
  EXPECT_THROW(pool.parallel_for(10, [](int64_t, int64_t, int) { throw Error("item"); }), Error);
  int64_t sum = 0;
  pool.parallel_for(1, [&](int64_t, int64_t, int) { sum = 1; });
  EXPECT_EQ(sum, 1);
}

TEST(Integers, NarrowAndDivExactNameTheNumbers) {
  EXPECT_EQ(narrow<int32_t>(int64_t{5}), 5);
  EXPECT_THROW(narrow<int32_t>(int64_t{1} << 40), Error);
  EXPECT_THROW(narrow<uint32_t>(int64_t{-1}), Error);
  try {
    div_exact(7, 2);
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), testing::AllOf(testing::HasSubstr("7"), testing::HasSubstr("2")));
  }
}

TEST(Files, AtomicWriteThenMap) {
  const auto path = std::filesystem::path(testing::TempDir()) / "rhea_atomic";
  write_file_atomic(path, "hello");
  EXPECT_EQ(MappedFile(path).text(), "hello");
  EXPECT_EQ(read_file(path), "hello");
  EXPECT_THROW(MappedFile("/nonexistent/file"), Error);
}

// Root may read everything, so it becomes somebody else for the while.
TEST(Files, OneThatMayNotBeReadIsNamedWithTheReason) {
  const auto path = std::filesystem::path(testing::TempDir()) / "rhea_secret";
  write_file_atomic(path, "x");
  std::filesystem::permissions(path, std::filesystem::perms::none);
  constexpr uid_t kNobody = 65534;
  const bool is_root = ::geteuid() == 0;
  if (is_root && ::seteuid(kNobody) != 0) GTEST_SKIP() << "root cannot become another user here";
  std::string message;
  try {
    MappedFile file(path);
  } catch (const Error& error) {
    message = error.what();
  }
  if (is_root) {
    ASSERT_EQ(::seteuid(0), 0);
  }
  EXPECT_EQ(message, fmt::format("cannot open {}: Permission denied", path.string()));
  std::filesystem::remove(path);
}

// A reader of a pipe would wait for ever, a writer would replace the pipe by a file.
TEST(Files, OnlyRegularFilesAreReadAndReplaced) {
  const auto folder = std::filesystem::path(testing::TempDir()) / "rhea_places";
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  const auto pipe = folder / "pipe";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_THROW(MappedFile{pipe}, Error);
  const auto link = folder / "link";
  std::filesystem::create_symlink("pipe", link);
  for (const auto& place : {pipe, link, folder, folder / "absent" / "file",
                            std::filesystem::path("/dev/null"), std::filesystem::path()}) {
    EXPECT_THROW(write_file_atomic(place, "x"), Error) << place;
  }
  EXPECT_TRUE(std::filesystem::is_fifo(pipe));
  EXPECT_TRUE(std::filesystem::is_character_file("/dev/null"));
  check_output_file(folder / "new");
  check_output_file("new");  // in the working folder
  std::filesystem::remove_all(folder);
}

TEST(JsonDepth, CountsBracketsOutsideOfStrings) {
  const auto nested = [](int depth) {
    return std::string(static_cast<size_t>(depth), '[') +
           std::string(static_cast<size_t>(depth), ']');
  };
  check_json_depth(nested(kMaxJsonDepth), "x");
  check_json_depth("[" + nested(kMaxJsonDepth - 1) + "," + nested(kMaxJsonDepth - 1) + "]", "x");
  check_json_depth(R"({"a": ")" + nested(1000) + R"(\"" , "b": "\\"})", "x");
  check_json_depth(R"("\" [[)", "x");
  check_json_depth("\"open \\", "x");
  for (const std::string& deep : {nested(kMaxJsonDepth + 1), std::string(1'000'000, '{'),
                                  R"(["\\", )" + nested(kMaxJsonDepth) + "]"}) {
    try {
      check_json_depth(deep, "file.json");
      FAIL() << "was accepted";
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find("file.json: values are nested"), std::string::npos);
    }
  }
}

TEST(ParseJson, NamesTheTextAndThePlaceThatIsNoJson) {
  const auto error_of = [](auto&& parse) -> std::string {
    try {
      parse();
    } catch (const Error& error) {
      return error.what();
    }
    return "was accepted";
  };
  const std::string deep(kMaxJsonDepth + 1, '[');
  for (const bool ordered : {false, true}) {
    const auto parse = [&](std::string_view text) {
      if (ordered)
        parse_ordered_json(text, "dir/a.json");
      else
        parse_json(text, "dir/a.json");
    };
    const std::string broken = error_of([&] { parse("{\"a\": 1,\n}"); });
    EXPECT_TRUE(broken.starts_with("dir/a.json: not valid JSON: parse error at line 2, column 1"))
        << broken;
    EXPECT_TRUE(error_of([&] { parse(""); }).starts_with("dir/a.json")) << "empty";
    EXPECT_TRUE(error_of([&] { parse(deep); }).starts_with("dir/a.json: values are nested"));
    EXPECT_EQ(error_of([&] { parse("{\"a\": [1, 2]}"); }), "was accepted");
  }
}

}  // namespace
}  // namespace rhea
