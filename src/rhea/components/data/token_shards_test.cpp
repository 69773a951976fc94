// Token files hold the very rows that training on the text would have had.
#include "rhea/components/data/token_shards.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "rhea/base/error.h"
#include "rhea/base/mapped_file.h"

namespace rhea::data {
namespace {

namespace fs = std::filesystem;
const fs::path kTokenizer = fs::path(RHEA_SOURCE_DIR) / "tests/assets/tokenizer";

class TokenShards : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::path(testing::TempDir()) /
              (std::string("rhea_token_shards_") +
               testing::UnitTest::GetInstance()->current_test_info()->name());
    fs::remove_all(folder_);
    fs::create_directories(folder_);
    std::string lines;
    for (int i = 0; i < 90; ++i) {
      std::string text = "document " + std::to_string(i);
      for (int k = 0; k < i % 7; ++k) text += " and";
      lines += "{\"text\":\"" + text + "\"}\n";
    }
    write_file_atomic(folder_ / "in.jsonl", lines);
    options_.tokenizer = kTokenizer;
    options_.data.dataset = "jsonl";
    options_.data.dataset_path = (folder_ / "in.jsonl").string();
    options_.data.seq_len = 32;
    options_.output = folder_ / "out";
  }
  void TearDown() override { fs::remove_all(folder_); }

  static std::vector<Batch> rows(DataLoaderOptions data, bool tokenize) {
    data.rows = 1;
    data.infinite = false;
    DataLoader loader(data, tokenize ? tokenizer::load_tokenizer(kTokenizer) : nullptr);
    std::vector<Batch> result;
    for (Batch batch; loader.next(batch);) result.push_back(batch);
    return result;
  }

  fs::path folder_;
  TokenShardOptions options_;
};

TEST_F(TokenShards, hold_the_rows_of_training) {
  for (const Packing packing : {Packing::concat, Packing::first_fit, Packing::greedy}) {
    fs::remove_all(options_.output);
    options_.data.packing = packing;
    options_.rows_per_file = 7;
    std::ostringstream report;
    write_token_shards(options_, report);
    EXPECT_TRUE(fs::exists(options_.output / "tokens-00001.safetensors"));
    const auto expected = rows(options_.data, true);
    DataLoaderOptions ready;
    ready.dataset = "tokens";
    ready.dataset_path = options_.output.string();
    ready.seq_len = options_.data.seq_len;
    const auto found = rows(ready, false);
    ASSERT_GT(expected.size(), 14U);
    ASSERT_EQ(found.size(), expected.size());
    for (size_t i = 0; i < found.size(); ++i) {
      EXPECT_EQ(found[i].input, expected[i].input) << i;
      EXPECT_EQ(found[i].labels, expected[i].labels) << i;
      EXPECT_EQ(found[i].positions, expected[i].positions) << i;
    }
    EXPECT_THAT(report.str(), testing::HasSubstr(std::to_string(found.size()) + " rows of 32"));
  }
}

TEST_F(TokenShards, do_not_mix_with_files_that_are_there) {
  std::ostringstream report;
  write_token_shards(options_, report);
  EXPECT_THAT([&] { write_token_shards(options_, report); },
              testing::ThrowsMessage<Error>(testing::HasSubstr("is there already")));
}

TEST_F(TokenShards, nothing_is_left_of_a_failure_and_the_reason_is_the_true_one) {
  const auto expect = [&](const auto& matcher) {
    std::ostringstream report;
    EXPECT_THAT([&] { write_token_shards(options_, report); },
                testing::ThrowsMessage<Error>(matcher));
    for (const auto& item : fs::directory_iterator(folder_))
      EXPECT_EQ(item.path().filename(), "in.jsonl");
  };
  using testing::AllOf;
  using testing::HasSubstr;
  options_.data.seq_len = 1 << 20;
  expect(AllOf(HasSubstr("its 90 documents do not fill one row of 1048576 tokens"),
               HasSubstr("lower --seq_len")));
  options_.data.seq_len = 2;
  options_.data.packing = Packing::greedy;
  expect(AllOf(HasSubstr("each of its 90 documents is longer than a row of 2 tokens"),
               HasSubstr("--packing concat")));
  options_.data.packing = Packing::concat;
  write_file_atomic(folder_ / "in.jsonl", "{\"text\":\"\"}\n{\"text\":3}\n");
  options_.data.on_bad_row = OnBadRow::skip;
  expect(HasSubstr("no document of 2 tokens or more (1 empty, 1 bad rows skipped)"));
  options_.data.on_bad_row = OnBadRow::stop;
  expect(HasSubstr("in.jsonl:2"));
}

TEST_F(TokenShards, rows_that_memory_cannot_hold_are_refused_before_anything_is_read) {
  options_.data.dataset_path = (folder_ / "absent.jsonl").string();
  const auto message = [&] {
    std::ostringstream report;
    try {
      write_token_shards(options_, report);
    } catch (const ExitError& error) {
      EXPECT_EQ(error.code(), ExitCode::out_of_memory);
      return std::string(error.what());
    }
    return std::string("no ExitError");
  };
  using testing::AllOf;
  using testing::HasSubstr;
  options_.rows_per_file = int64_t{1} << 40;
  EXPECT_THAT(message(), AllOf(HasSubstr("1099511627776 row(s) of 32 tokens"), HasSubstr("GiB"),
                               HasSubstr("lower --rows_per_file")));
  options_.rows_per_file = 0;
  options_.data.seq_len = int64_t{1} << 40;
  EXPECT_THAT(message(), AllOf(HasSubstr("a file of 1 row(s) of 1099511627776 tokens"),
                               HasSubstr("lower --seq_len")));
}

}  // namespace
}  // namespace rhea::data
