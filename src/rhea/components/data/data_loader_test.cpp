// Rules of batches: the same rows whatever the threads, exact resume, documents kept apart.
#include "rhea/components/data/data_loader.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "rhea/base/error.h"
#include "rhea/components/data/debug_text.h"

namespace rhea::data {
namespace {

TEST(DebugText, has_15217_documents_in_two_parts) {
  if (!std::filesystem::exists(kDebugTextFolder)) GTEST_SKIP() << "fortunes is not installed";
  const int64_t train = *open_debug_text(kDebugTextFolder, DebugTextPart::train)->num_documents();
  const int64_t validation =
      *open_debug_text(kDebugTextFolder, DebugTextPart::validation)->num_documents();
  EXPECT_EQ(read_debug_text(kDebugTextFolder).size(), 2576674U);
  EXPECT_EQ(train + validation, 15217);
  EXPECT_EQ(validation, 15217 / 50);
}

TEST(DebugText, a_separator_is_a_line_that_is_exactly_a_percent_sign) {
  EXPECT_EQ(split_fortunes("a\nb\n%\n%DCL-I\n%\n%\n\n%\nx\b_\n"),
            (std::vector<std::string>{"a\nb", "%DCL-I", "x\b_"}));
}

}  // namespace
}  // namespace rhea::data
