// Rules of tokenizers on tiny vocabularies.
#include "rhea/components/tokenizer/tokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "rhea/base/error.h"

namespace rhea::tokenizer {
namespace {

using Ids = std::vector<int32_t>;

std::string byte_level(const std::string& merges, const std::string& added = "",
                       const std::string& post = "null", const std::string& more_vocab = "") {
  return R"({"added_tokens":[)" + added +
         R"(],"normalizer":null,"pre_tokenizer":{"type":"ByteLevel","add_prefix_space":false,"use_regex":true},)" +
         R"("post_processor":)" + post +
         R"(,"decoder":{"type":"ByteLevel"},"model":{"type":"BPE","unk_token":null,)" +
         R"("vocab":{"a":0,"b":1,"ab":2,"Ġ":3,"Ġa":4,"c":5)" + more_vocab + R"(},"merges":)" +
         merges + "}}";
}

TEST(Tokenizer, T1_two_spellings_of_merges) {
  for (const char* merges : {R"(["a b","Ġ a"])", R"([["a","b"],["Ġ","a"]])"}) {
    const auto tokenizer = parse_tokenizer(byte_level(merges), "", "t");
    EXPECT_EQ(tokenizer->encode("ab a"), (Ids{2, 4}));
    EXPECT_EQ(tokenizer->encode(" ab"), (Ids{3, 2}));
  }
}

TEST(Tokenizer, T2_a_merge_as_a_pair_may_hold_spaces) {
  const auto tokenizer = parse_tokenizer(
      R"({"model":{"type":"BPE","vocab":{"x":0," ":1,"y":2,"x ":3,"x y":4},"merges":[["x"," "],["x ","y"]]}})",
      "", "t");
  EXPECT_EQ(tokenizer->encode("x y"), (Ids{4}));
}

const char* const kEnd = R"({"id":6,"content":"<end>","special":true})";

TEST(Tokenizer, T3_a_special_token_inside_the_text_is_its_id) {
  const auto tokenizer = parse_tokenizer(byte_level(R"(["a b"])", kEnd), "", "t");
  EXPECT_EQ(tokenizer->encode("ab<end>a"), (Ids{2, 6, 0}));
  EXPECT_EQ(tokenizer->decode({2, 6, 0}), "ab<end>a");
  EXPECT_EQ(tokenizer->decode({2, 6, 0}, /*skip_special=*/true), "aba");
}

template <class F>
std::string message_of(F&& f) {
  try {
    f();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(Tokenizer, T4_a_merge_of_an_unknown_part_is_refused_by_name) {
  EXPECT_EQ(
      message_of([] { parse_tokenizer(byte_level(R"(["a b","b zq"])"), "", "tokenizer.json"); }),
      "tokenizer.json: model.merges[1]: merge of \"b\" and \"zq\": \"zq\" is not in the "
      "vocabulary");
  EXPECT_EQ(message_of([] { parse_tokenizer(byte_level(R"(["b a"])"), "", "t"); }),
            "t: model.merges[0]: merge of \"b\" and \"a\": \"ba\" is not in the vocabulary");
}

const char* const kBosTemplate =
    R"({"type":"TemplateProcessing","single":[{"SpecialToken":{"id":"<s>","type_id":0}},{"Sequence":{"id":"A","type_id":0}}],)"
    R"("special_tokens":{"<s>":{"id":"<s>","ids":[7],"tokens":["<s>"]}}})";
const char* const kBosEos =
    R"({"id":7,"content":"<s>","special":true},{"id":8,"content":"</s>","special":true})";
const char* const kBosEosConfig = R"({"bos_token":"<s>","eos_token":"</s>"})";

std::shared_ptr<const Tokenizer> with_bos(const std::string& config = kBosEosConfig) {
  return parse_tokenizer(
      byte_level(R"(["a b"])", kBosEos, kBosTemplate, R"(,"<":9,"/":10,"s":11,">":12)"), config,
      "t");
}

TEST(Tokenizer, T5_the_caller_decides_on_bos) {
  for (const char* config : {kBosEosConfig, ""}) {
    const auto tokenizer = with_bos(config);
    EXPECT_EQ(tokenizer->encode("ab"), (Ids{7, 2}));
    EXPECT_EQ(tokenizer->encode("ab", {.add_bos = false}), (Ids{2}));
    EXPECT_EQ(tokenizer->encode("ab", {.add_bos = true}), (Ids{7, 2}));
    EXPECT_EQ(tokenizer->encode("ab", {.add_specials = false}), (Ids{2}));
  }
}

TEST(Tokenizer, T6_a_text_that_brings_bos_gets_exactly_one) {
  EXPECT_EQ(with_bos()->encode("<s>ab", {.add_bos = true}), (Ids{7, 2}));
  EXPECT_EQ(with_bos()->encode("ab</s>", {.add_bos = true, .add_eos = true}), (Ids{7, 2, 8}));
}

TEST(Tokenizer, T7_plain_text_that_spells_a_special_token_stays_plain) {
  const EncodeOptions plain{.add_bos = false, .special_tokens_in_text = SpecialTokensInText::plain};
  EXPECT_EQ(with_bos()->encode("a</s>", plain), (Ids{0, 9, 10, 11, 12}));
  EXPECT_EQ(with_bos()->encode("a</s>", {.add_bos = false}), (Ids{0, 8}));
}

TEST(Tokenizer, T8_an_added_token_bypasses_the_byte_alphabet) {
  const auto tokenizer =
      parse_tokenizer(byte_level("[]", "{\"id\":6,\"content\":\"il\u00d6veyou\"}"), "", "t");
  EXPECT_EQ(tokenizer->encode("il\u00d6veyou"), (Ids{6}));
  EXPECT_EQ(tokenizer->decode({6}), "il\u00d6veyou");
}

TEST(Tokenizer, T9_special_tokens_as_strings_or_objects) {
  for (const char* config :
       {kBosEosConfig,
        R"({"bos_token":{"content":"<s>","lstrip":false},"eos_token":{"content":"</s>"}})"}) {
    EXPECT_EQ(with_bos(config)->bos_id(), 7);
    EXPECT_EQ(with_bos(config)->eos_id(), 8);
  }
  EXPECT_THAT(message_of([] { with_bos(R"({"bos_token":"<nope>"})"); }),
              testing::HasSubstr("bos_token is \"<nope>\""));
}

TEST(Tokenizer, T10_eos_asked_and_bos_of_the_template_are_both_there) {
  EXPECT_EQ(with_bos()->encode("ab", {.add_eos = true}), (Ids{7, 2, 8}));
}

TEST(Tokenizer, the_config_says_whether_bos_and_eos_are_added) {
  const auto tokenizer = with_bos(
      R"({"bos_token":"<s>","eos_token":"</s>","add_bos_token":false,"add_eos_token":true})");
  EXPECT_EQ(tokenizer->encode("ab"), (Ids{2, 8}));
  EXPECT_EQ(tokenizer->encode("ab", {.add_bos = true, .add_eos = false}), (Ids{7, 2}));
}

// The ids are those of Transformers 5.24 with the same two files.
TEST(Tokenizer, the_class_in_the_config_decides_on_the_space_before_the_text) {
  const auto ids = [](const std::string& file_value, const std::string& config) {
    std::string file = byte_level(R"(["a b","Ġ a"])");
    const std::string field = "\"add_prefix_space\":";
    file.replace(file.find(field) + field.size(), 5, file_value);
    return parse_tokenizer(file, config, "t")->encode("a");
  };
  const Ids plain{0};
  const Ids spaced{4};
  for (const char* file_value : {"false", "true"}) {
    for (const char* name : {"GPT2Tokenizer", "GPT2TokenizerFast", "RobertaTokenizer",
                             "GPTNeoXTokenizerFast", "Qwen2Tokenizer", "CohereTokenizer"}) {
      const std::string named = std::string(R"({"tokenizer_class":")") + name + '"';
      EXPECT_EQ(ids(file_value, named + R"(,"add_prefix_space":true})"), spaced) << name;
      EXPECT_EQ(ids(file_value, named + R"(,"add_prefix_space":false})"), plain) << name;
      EXPECT_EQ(ids(file_value, named + "}"), plain) << name;
    }
  }
  for (const char* other :
       {R"({"tokenizer_class":"PreTrainedTokenizerFast","add_prefix_space":true})",
        R"({"tokenizer_class":"LlamaTokenizerFast","add_prefix_space":true})",
        R"({"add_prefix_space":true})"}) {
    EXPECT_EQ(ids("false", other), plain) << other;
    EXPECT_EQ(ids("true", other), spaced) << other;
  }
}

TEST(Tokenizer, pre_tokenizers_of_a_wrong_type_are_refused_whatever_the_class) {
  const char* config = R"({"tokenizer_class":"GPT2Tokenizer","add_prefix_space":true})";
  for (const char* cuts : {"[]", "7", R"({"type":7})", R"({"type":"Sequence","pretokenizers":7})",
                           R"({"type":"Sequence","pretokenizers":[null,7]})"}) {
    const std::string file = std::string(R"({"pre_tokenizer":)") + cuts +
                             R"(,"model":{"type":"BPE","vocab":{"a":0},"merges":[]}})";
    EXPECT_THROW(parse_tokenizer(file, config, "t"), Error) << cuts;
  }
}

TEST(Tokenizer, bos_may_equal_eos) {
  const auto tokenizer = with_bos(R"({"bos_token":"<s>","eos_token":"<s>"})");
  const EncodeOptions both{.add_bos = true, .add_eos = true};
  EXPECT_EQ(tokenizer->encode("ab", both), (Ids{7, 2, 7}));
  EXPECT_EQ(tokenizer->encode("", both), (Ids{7, 7}));
  EXPECT_EQ(tokenizer->encode("<s>", both), (Ids{7, 7}));
}

TEST(Tokenizer, added_tokens_take_in_white_space_and_respect_words) {
  const char* added =
      R"({"id":6,"content":"<l>","lstrip":true},{"id":7,"content":"<r>","rstrip":true},{"id":8,"content":"ca","single_word":true})";
  const auto tokenizer = parse_tokenizer(byte_level("[]", added), "", "t");
  EXPECT_EQ(tokenizer->encode("a  <l> a"), (Ids{0, 6, 3, 0}));
  EXPECT_EQ(tokenizer->encode("a <r>  a"), (Ids{0, 3, 7, 0}));
  EXPECT_EQ(tokenizer->encode("ca aca"), (Ids{8, 3, 0, 5, 0}));
}

TEST(Tokenizer, the_longest_added_token_wins) {
  const auto tokenizer = parse_tokenizer(
      byte_level("[]", R"({"id":6,"content":"<a"},{"id":7,"content":"<a>"})"), "", "t");
  EXPECT_EQ(tokenizer->encode("<a><ab"), (Ids{7, 6, 1}));
}

TEST(Tokenizer, unknown_components_are_refused_by_name) {
  const auto with = [](const char* field) {
    return message_of([&] {
      parse_tokenizer(
          std::string("{") + field + R"(,"model":{"type":"BPE","vocab":{},"merges":[]}})", "", "f");
    });
  };
  EXPECT_THAT(with(R"("normalizer":{"type":"Odd"})"),
              testing::HasSubstr("f: normalizer: normalizer type \"Odd\""));
  EXPECT_THAT(with(R"("pre_tokenizer":{"type":"Odd"})"),
              testing::HasSubstr("pre-tokenizer type \"Odd\""));
  EXPECT_THAT(with(R"("post_processor":{"type":"Odd"})"),
              testing::HasSubstr("post-processor type \"Odd\""));
  EXPECT_THAT(with(R"("decoder":{"type":"Odd"})"), testing::HasSubstr("decoder type \"Odd\""));
  EXPECT_THAT(message_of([] { parse_tokenizer(R"({"model":{"type":"Odd"}})", "", "f"); }),
              testing::HasSubstr("f: model.type: model type \"Odd\""));
}

// Replacements that follow each other multiply: the text would fill the memory.
TEST(Tokenizer, a_normalizer_that_blows_text_up_is_refused) {
  std::string steps;
  for (int i = 0; i < 12; ++i)
    steps += std::string(i == 0 ? "" : ",") +
             R"({"type":"Replace","pattern":{"String":"a"},"content":"aaaaaaaaaa"})";
  std::string json = byte_level("[]");
  const std::string none = R"("normalizer":null)";
  json.replace(json.find(none), none.size(),
               R"("normalizer":{"type":"Sequence","normalizers":[)" + steps + "]}");
  const auto tokenizer = parse_tokenizer(json, "", "t");
  EXPECT_EQ(tokenizer->encode("b"), (Ids{1}));
  EXPECT_THAT([&] { tokenizer->encode("a"); },
              testing::ThrowsMessage<Error>(testing::HasSubstr("normalizer makes more than")));
}

// A recursive walk over such a value runs out of stack.
TEST(Tokenizer, deep_nesting_is_refused) {
  const std::string deep = std::string(300'000, '[') + std::string(300'000, ']');
  for (const char* field : {"added_tokens", "normalizer", "pre_tokenizer", "post_processor",
                            "decoder", "model", "truncation"})
    EXPECT_THAT(
        [&] { parse_tokenizer("{\"" + std::string(field) + "\":" + deep + "}", "", "t.json"); },
        testing::ThrowsMessage<Error>(testing::HasSubstr("t.json: values are nested")))
        << field;
}

TEST(Tokenizer, text_that_is_not_utf8_is_refused_with_its_place) {
  EXPECT_EQ(message_of([] { with_bos()->encode("ab\xff"); }),
            "text is not UTF-8: bad byte 0xFF at offset 2 of 3");
}

TEST(Tokenizer, ids_beyond_the_model_are_refused_at_start) {
  check_vocabulary(*with_bos(), 13);
  EXPECT_THAT(
      message_of([] { check_vocabulary(*with_bos(), 12); }),
      testing::AllOf(testing::HasSubstr("\">\" has id 12"), testing::HasSubstr("has 12 entries")));
}

TEST(Tokenizer, byte_fallback_spells_unknown_characters_in_bytes) {
  const auto tokenizer = parse_tokenizer(
      R"({"decoder":{"type":"Sequence","decoders":[{"type":"ByteFallback"},{"type":"Fuse"}]},"model":{"type":"BPE",)"
      R"("byte_fallback":true,"unk_token":"?","fuse_unk":true,"vocab":{"?":0,"a":1,"<0xC3>":2,"<0xA9>":3},"merges":[]}})",
      "", "t");
  EXPECT_EQ(tokenizer->encode("a\u00e9"), (Ids{1, 2, 3}));
  EXPECT_EQ(tokenizer->encode("a\u4e00\u4e00"), (Ids{1, 0}));
  EXPECT_EQ(tokenizer->decode({1, 2, 3}), "a\u00e9");
  EXPECT_EQ(tokenizer->decode({2, 1}),
            "\ufffd"
            "a");
}

}  // namespace
}  // namespace rhea::tokenizer
