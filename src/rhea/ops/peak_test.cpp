// What is kept of a measurement, and when another one replaces it.
#include "rhea/ops/peak.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <fstream>
#include <functional>
#include <sstream>

#include "tests/support/temp_folder.h"

namespace rhea::ops {
namespace {

namespace fs = std::filesystem;

std::string read(const fs::path& file) {
  std::ostringstream text;
  text << std::ifstream(file).rdbuf();
  return text.str();
}

// The one line that a measurement left, with another number.
void put_number(const fs::path& file, std::string_view number) {
  const std::string text = read(file);
  std::ofstream(file) << text.substr(0, text.find('\t')) << '\t' << number << '\n';
}
double number_in(const fs::path& file) {
  const std::string text = read(file);
  return std::stod(text.substr(text.find('\t')));
}

using Measured = std::function<double(ThreadPool&, const fs::path&, Measure)>;

class Peak : public testing::TestWithParam<Measured> {};

TEST_P(Peak, IsMeasuredOnceAndReplacedByWhatIsFaster) {
  const Measured& measured = GetParam();
  const support::TempFolder folder;
  const fs::path file = folder.path() / "peak.txt";
  ThreadPool pool(1);
  const double first = measured(pool, folder.path(), Measure::once);
  EXPECT_GT(first, 0);

  put_number(file, "5");  // of a machine that had other things to do
  EXPECT_EQ(measured(pool, folder.path(), Measure::once), 5);
  const double again = measured(pool, folder.path(), Measure::again);
  EXPECT_GT(again, 5);
  EXPECT_NEAR(number_in(file), again, 1e-4 * again);

  put_number(file, "1e30");
  const double slower = measured(pool, folder.path(), Measure::again);
  EXPECT_LT(slower, 1e30);
  EXPECT_EQ(number_in(file), 1e30);
}

TEST_P(Peak, NonsenseInTheFileIsMeasuredAnew) {
  const support::TempFolder folder;
  ThreadPool pool(1);
  GetParam()(pool, folder.path(), Measure::once);
  for (const char* nonsense : {"-3", "nan", "inf", "", "x"}) {
    put_number(folder.path() / "peak.txt", nonsense);
    const double found = GetParam()(pool, folder.path(), Measure::once);
    EXPECT_GT(found, 0) << nonsense;
    EXPECT_LT(found, 1e30) << nonsense;
  }
}

INSTANTIATE_TEST_SUITE_P(Ops, Peak,
                         testing::Values(
                             [](ThreadPool& pool, const fs::path& folder, Measure when) {
                               return measured_peak_flops(DType::f32, pool, folder, when);
                             },
                             [](ThreadPool& pool, const fs::path& folder, Measure when) {
                               return measured_bandwidth(pool, folder, when);
                             }));

}  // namespace
}  // namespace rhea::ops
