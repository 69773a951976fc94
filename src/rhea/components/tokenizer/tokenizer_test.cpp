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

}  // namespace
}  // namespace rhea::tokenizer
