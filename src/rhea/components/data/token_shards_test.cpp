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

TEST_F(TokenShards, a_text_shorter_than_a_row_is_refused) {
  options_.data.seq_len = 1 << 20;
  std::ostringstream report;
  EXPECT_THAT([&] { write_token_shards(options_, report); },
              testing::ThrowsMessage<Error>(testing::HasSubstr("does not fill one row")));
}

}  // namespace
}  // namespace rhea::data
