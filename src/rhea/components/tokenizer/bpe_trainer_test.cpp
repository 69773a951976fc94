// The BPE trainer on texts small enough to follow by hand, and its files read back.
#include "rhea/components/tokenizer/bpe_trainer.h"

#include <gtest/gtest.h>

#include "rhea/base/error.h"
#include "rhea/components/tokenizer/sha256.h"
#include "rhea/components/tokenizer/tokenizer.h"

namespace rhea::tokenizer {
namespace {

std::vector<std::string> merged_tokens(const std::vector<std::string>& documents,
                                       BpeTrainerOptions options = {}) {
  BpeTrainer trainer(options);
  for (const auto& document : documents) trainer.add(document);
  const TrainedBpe bpe = trainer.train();
  return {bpe.tokens.begin() + 256, bpe.tokens.end()};
}

TEST(BpeTrainer, merges_the_most_frequent_pair_first) {
  EXPECT_EQ(merged_tokens({"low", "low", "lowly", "newly", "newly", "newly"}),
            (std::vector<std::string>{"ly", "wly", "ewly", "lo", "newly", "low"}));
}

TEST(BpeTrainer, ties_go_to_the_lower_ids) {
  EXPECT_EQ(merged_tokens({"xy", "ab", "xy", "ab"}), (std::vector<std::string>{"ab", "xy"}));
}

TEST(BpeTrainer, runs_of_one_character) {
  EXPECT_EQ(merged_tokens({"aaaa", "aaaa"}), (std::vector<std::string>{"aa", "aaaa"}));
}

TEST(BpeTrainer, the_order_of_documents_does_not_matter) {
  std::vector<std::string> documents = {"the theme", "then there", "other others", "mother them"};
  const auto forward = merged_tokens(documents);
  std::reverse(documents.begin(), documents.end());
  EXPECT_EQ(merged_tokens(documents), forward);
}

TEST(BpeTrainer, stops_at_the_vocabulary_size_and_at_rare_pairs) {
  EXPECT_EQ(merged_tokens({"abab abab"}, {.vocab_size = 258}).size(), 2U);
  EXPECT_TRUE(merged_tokens({"abcdef"}).empty());
  EXPECT_THROW(BpeTrainer({.vocab_size = 256, .special_tokens = {"<s>"}}), Error);
}

TEST(BpeTrainer, its_files_load_and_give_the_text_back) {
  for (const CutPattern pattern : {CutPattern::gpt2, CutPattern::llama3, CutPattern::qwen}) {
    BpeTrainer trainer({.vocab_size = 300, .pattern = pattern, .special_tokens = {"<b>", "<e>"}});
    const std::string text = "It's a 12345 test,\n\n  isn't it? \u00e9\u4e00";
    trainer.add(text);
    trainer.add(text);
    const TrainedBpe bpe = trainer.train();
    const TokenizerFileOptions file{.pattern = pattern,
                                    .special_tokens = {"<b>", "<e>"},
                                    .bos_token = "<b>",
                                    .eos_token = "<e>",
                                    .pad_token = {},
                                    .chat_template = {}};
    const auto tokenizer =
        parse_tokenizer(format_tokenizer_json(bpe, file), format_tokenizer_config(bpe, file), "t");
    EXPECT_EQ(tokenizer->bos_id(), static_cast<int32_t>(bpe.tokens.size()));
    const auto ids = tokenizer->encode(text, {.add_eos = true});
    EXPECT_EQ(ids.front(), tokenizer->bos_id());
    EXPECT_EQ(ids.back(), tokenizer->eos_id());
    EXPECT_EQ(tokenizer->decode(ids, /*skip_special=*/true), text);
  }
}

// Examples of FIPS 180-4.
TEST(Sha256, known_sums) {
  EXPECT_EQ(sha256_hex(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(sha256_hex("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(sha256_hex("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(sha256_hex(std::string(1000000, 'a')),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

}  // namespace
}  // namespace rhea::tokenizer
