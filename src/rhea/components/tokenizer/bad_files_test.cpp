// Damaged and contradictory tokenizer files are refused with the place and the reason.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "rhea/base/error.h"
#include "rhea/base/mapped_file.h"
#include "rhea/components/tokenizer/tokenizer.h"

namespace rhea::tokenizer {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

std::string message_of(const std::string& content, const std::string& text = "") {
  try {
    const auto tokenizer = parse_tokenizer(content, "", "file");
    tokenizer->encode(text);
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

std::string with_model(const std::string& model, const std::string& more = "") {
  return "{" + more + R"("model":)" + model + "}";
}
const char* const kWords = R"({"type":"WordLevel","vocab":{"a":0},"unk_token":"a"})";

TEST(BadTokenizer, models) {
  const std::pair<const char*, const char*> cases[] = {
      {R"({"type":"BPE","dropout":0.1,"vocab":{},"merges":[]})",
       "file: model.dropout: merges dropped at random"},
      {R"({"type":"BPE","unk_token":"?","vocab":{},"merges":[]})",
       "file: model.unk_token: \"?\" is not in the vocabulary"},
      {R"({"type":"BPE","vocab":{"a":0,"b":0},"merges":[]})", "id 0 is given to both"},
      {R"({"type":"BPE","continuing_subword_prefix":"##","vocab":{"a":0,"b":1},"merges":["a b"]})",
       "is shorter than the prefix \"##\""},
      {R"({"type":"Unigram","vocab":[]})", "file: model.vocab: a Unigram model needs at least one"},
      {R"({"type":"Unigram","vocab":[["a",-1],["b"]]})", "model.vocab[1]: expected [piece, score]"},
      {R"({"type":"Unigram","unk_id":2,"vocab":[["a",-1]]})", "model.unk_id: 2 is beyond"},
      {R"({"type":"WordPiece","vocab":{"a":-1}})", "must lie in [0, 2^22]"},
      {R"({"type":"WordLevel","vocab":[]})", "file: model.vocab: expected an object"}};
  for (const auto& [model, message] : cases)
    EXPECT_THAT(message_of(with_model(model)), HasSubstr(message)) << model;
}

TEST(BadTokenizer, text_that_a_model_has_no_token_for) {
  EXPECT_THAT(message_of(with_model(R"({"type":"Unigram","vocab":[["a",-1]]})"), "ab"),
              HasSubstr("no entry for \"b\" and no unknown token"));
  EXPECT_THAT(message_of(with_model(R"({"type":"WordPiece","vocab":{"a":0}})"), "ab"),
              HasSubstr("the unknown token \"[UNK]\" is not in the vocabulary"));
  EXPECT_THAT(message_of(with_model(R"({"type":"WordLevel","vocab":{"a":0}})"), "b"),
              HasSubstr("the unknown token \"<unk>\" is not in the vocabulary"));
}

TEST(BadTokenizer, components) {
  const std::pair<const char*, const char*> cases[] = {
      {R"("pre_tokenizer":{"type":"Metaspace","replacement":"__"},)", "expected one character"},
      {R"("pre_tokenizer":{"type":"Metaspace","prepend_scheme":"last"},)",
       "\"last\" is not one of always, first, never"},
      {R"("pre_tokenizer":{"type":"Metaspace","prepend_scheme":"first","add_prefix_space":false},)",
       "contradicts prepend_scheme"},
      {R"("pre_tokenizer":{"type":"FixedLength","length":0},)", "at least 1 character"},
      {R"("pre_tokenizer":{"type":"CharDelimiterSplit","delimiter":""},)",
       "expected one character"},
      {R"("pre_tokenizer":{"type":"Split","pattern":{"Regex":"[a&&b]"},"behavior":"Isolated"},)",
       "the intersection of classes at byte 2"},
      {R"("pre_tokenizer":{"type":"Split","pattern":{"Regex":"[a[b]]"},"behavior":"Isolated"},)",
       "a class inside a class at byte 2"},
      {R"("pre_tokenizer":{"type":"Split","pattern":{"Regex":"a"},"behavior":"Odd"},)",
       "split behavior \"Odd\""},
      {R"("normalizer":{"type":"Precompiled","precompiled_charsmap":"*"},)", "not base64"},
      {R"("normalizer":{"type":"Precompiled","precompiled_charsmap":"AAE="},)", "too short"},
      {R"("normalizer":{"type":"Precompiled","precompiled_charsmap":"/////w=="},)",
       "says that its table has 4294967295 bytes"},
      {R"("truncation":{"max_length":3,"strategy":"OnlySecond"},)", "\"OnlySecond\""},
      {R"("truncation":{"max_length":-3},)", "file: truncation.max_length"},
      {R"("padding":{"strategy":"BatchLongest","pad_id":7},)", "pad_id 7 is no token"},
      {R"("padding":{"strategy":"Odd","pad_id":0},)", "expected \"BatchLongest\""}};
  for (const auto& [field, message] : cases)
    EXPECT_THAT(message_of(with_model(kWords, field)), HasSubstr(message)) << field;
}

TEST(BadTokenizer, tiktoken_files) {
  EXPECT_THAT(message_of("YQ== 0\nYg== 1\n"), "no error");
  EXPECT_THAT(message_of("YQ== 0\nYg==\n"), HasSubstr("file:2: expected \"base64 rank\""));
  EXPECT_THAT(message_of("YQ== 0\n*b== 1\n"), HasSubstr("file:2: \"*b==\" is not base64"));
  EXPECT_THAT(message_of("YQ== 0\nYQ== 1\n"),
              HasSubstr("file:2: the bytes \"YQ==\" have two ranks"));
  EXPECT_THAT(message_of("YQ== 0\nYg== 0\n"), HasSubstr("id 0 is given to both"));
  EXPECT_THAT(message_of(R"({"bpe_ranks":"! x YQ=="})"),
              HasSubstr("\"!\" must be followed by a rank"));
}

TEST(BadTokenizer, sentencepiece_files) {
  EXPECT_THAT(message_of("\n\x0e garbage"), HasSubstr("file: neither a SentencePiece model nor"));
}

class TokenizerFolder : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::path(testing::TempDir()) /
              (std::string("rhea_tokenizer_") +
               testing::UnitTest::GetInstance()->current_test_info()->name());
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }
  void write(const char* name, const std::string& text) { write_file_atomic(folder_ / name, text); }
  std::shared_ptr<const Tokenizer> load() { return load_tokenizer(folder_, &warnings_); }

  fs::path folder_;
  std::vector<std::string> warnings_;
};

TEST_F(TokenizerFolder, without_files_says_what_was_looked_for) {
  EXPECT_THAT([&] { load(); },
              testing::ThrowsMessage<Error>(testing::AllOf(
                  HasSubstr("tokenizer.json"), HasSubstr("tokenizer.model"),
                  HasSubstr("merges.txt"), HasSubstr(".tiktoken"), HasSubstr("vocab.txt"))));
}

TEST_F(TokenizerFolder, word_lists_are_whole_words_or_berts_pieces) {
  write("vocab.txt", "[UNK]\nthe\nun\n##able\r\n[CLS]");
  EXPECT_EQ(load()->encode("the unable x"), (std::vector<int32_t>{1, 0, 0}));
  write("tokenizer_config.json", R"({"tokenizer_class":"BertTokenizer","unk_token":"[UNK]"})");
  EXPECT_EQ(load()->encode("The unable, x"), (std::vector<int32_t>{1, 2, 3, 0, 0}));
  write("tokenizer_config.json", R"({"tokenizer_class":"BertTokenizer","do_lower_case":false})");
  EXPECT_EQ(load()->encode("The the"), (std::vector<int32_t>{0, 1}));
}

// The class of a folder with SentencePiece's file alone says what stands around a text.
TEST_F(TokenizerFolder, classes_of_sentencepiece_add_what_transformers_adds) {
  write("tokenizer.model",
        read_file(RHEA_SOURCE_DIR "/tests/fuzz/corpus/tokenizer/sentencepiece_bpe"));
  const auto encode = [&](const std::string& config) {
    write("tokenizer_config.json", config);
    return load()->encode("the");
  };
  const std::vector<int32_t> bare = encode("{}");
  std::vector<int32_t> with_bos = bare;
  with_bos.insert(with_bos.begin(), 1);
  std::vector<int32_t> with_eos = bare;
  with_eos.push_back(2);
  EXPECT_EQ(encode(R"({"tokenizer_class":"LlamaTokenizer"})"), with_bos);
  EXPECT_EQ(encode(R"({"tokenizer_class":"LlamaTokenizer","add_bos_token":false})"), bare);
  EXPECT_EQ(encode(R"({"tokenizer_class":"T5Tokenizer"})"), with_eos);
}

// Ids that Transformers 5.24 gives for the same files.
TEST_F(TokenizerFolder, xlm_roberta_numbers_the_pieces_of_its_file_anew) {
  write("sentencepiece.bpe.model",
        read_file(RHEA_SOURCE_DIR "/tests/fuzz/corpus/tokenizer/sentencepiece_unigram"));
  write("tokenizer_config.json", R"({"tokenizer_class":"XLMRobertaTokenizer"})");
  const auto tokenizer = load();
  EXPECT_EQ(tokenizer->vocab_size(), 37);
  EXPECT_EQ(tokenizer->encode("the"), (std::vector<int32_t>{0, 4, 5, 9, 8, 2}));
  EXPECT_EQ(tokenizer->encode("the theo \u00e9 x"),
            (std::vector<int32_t>{0, 4, 5, 9, 8, 4, 5, 9, 8, 6, 4, 3, 4, 30, 2}));
  EXPECT_EQ(tokenizer->encode("a <mask> b"), (std::vector<int32_t>{0, 10, 36, 4, 7, 2}));
  EXPECT_EQ(tokenizer->encode("ab</s>c"), (std::vector<int32_t>{0, 10, 7, 2, 4, 23, 2}));
  EXPECT_EQ(tokenizer->bos_id(), 0);
  EXPECT_EQ(tokenizer->pad_id(), 1);
  EXPECT_EQ(tokenizer->eos_id(), 2);
  for (const char* other : {"CamembertTokenizer", "XGLMTokenizer", "NllbTokenizer"}) {
    write("tokenizer_config.json", fmt::format(R"({{"tokenizer_class":"{}"}})", other));
    EXPECT_THAT([&] { load(); }, testing::ThrowsMessage<Error>(testing::AllOf(
                                     HasSubstr(other), HasSubstr("tokenizer.json"))));
  }
}

TEST_F(TokenizerFolder, tokens_of_older_programs_lie_beside_the_vocabulary) {
  write("vocab.json", R"({"a":0,"b":1,"ab":2})");
  write("merges.txt", "#version: 0.2\na b\n");
  write("added_tokens.json", R"({"<x>":5})");
  write("tokenizer_config.json", "{}");
  EXPECT_EQ(load()->encode("ab<x>a"), (std::vector<int32_t>{2, 5, 0}));
  write("added_tokens.json", R"({"<x>":"5"})");
  EXPECT_THAT([&] { load(); },
              testing::ThrowsMessage<Error>(HasSubstr("<x>: expected a token id")));
}

TEST_F(TokenizerFolder, the_map_of_special_tokens_fills_in_for_the_config) {
  write("vocab.json", R"({"[UNK]":0,"<s>":1,"</s>":2,"<p>":3})");
  write("special_tokens_map.json",
        R"({"bos_token":{"content":"<s>"},"eos_token":"</s>","pad_token":"<p>"})");
  EXPECT_EQ(load()->bos_id(), 1);
  EXPECT_EQ(load()->pad_id(), 3);
  write("tokenizer_config.json", R"({"bos_token":"</s>"})");
  EXPECT_EQ(load()->bos_id(), 2);
  EXPECT_EQ(load()->eos_id(), 2);
  write("special_tokens_map.json", R"({"mask_token":7})");
  EXPECT_THAT([&] { load(); }, testing::ThrowsMessage<Error>(HasSubstr("mask_token")));
}

}  // namespace
}  // namespace rhea::tokenizer
