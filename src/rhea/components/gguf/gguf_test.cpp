// Values of every block type against the gguf package, whole files against the weights they were
// made from, damaged headers. tests/data/gguf is made by tools/make_gguf_goldens.py.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>

#include "rhea/base/error.h"
#include "rhea/base/json.h"
#include "rhea/base/mapped_file.h"
#include "rhea/components/gguf/published.h"
#include "rhea/components/gguf/test_bytes.h"
#include "rhea/components/safetensors/reader.h"
#include "tests/support/error_of.h"
#include "tests/support/temp_folder.h"

namespace rhea::gguf {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using support::error_of;
using testing::AllOf;
using testing::HasSubstr;

const fs::path kData = fs::path(RHEA_SOURCE_DIR) / "tests/data/gguf";

TEST(GgufBlocks, ValuesAreThoseOfTheReferenceBitForBit) {
  const safetensors::File golden(kData / "blocks.safetensors");
  int num_types = 0;
  for (uint32_t id = 0; id < 64; ++id) {
    const BlockType* type = find_block_type(id);
    if (type == nullptr || type->dequantize == nullptr) continue;
    ++num_types;
    const auto& blocks = golden.at(fmt::format("{}.blocks", type->name));
    const auto expected =
        safetensors::read_vector<float>(golden.at(fmt::format("{}.values", type->name)));
    ASSERT_EQ(blocks.shape[1], type->bytes) << type->name;
    std::vector<float> values(expected.size());
    dequantize(*type, blocks.bytes, values);
    for (size_t i = 0; i < values.size(); ++i)
      ASSERT_EQ(std::bit_cast<uint32_t>(values[i]), std::bit_cast<uint32_t>(expected[i]))
          << type->name << " value " << i << ": " << values[i] << ", expected " << expected[i];
  }
  EXPECT_EQ(num_types, 13);
}

void expect_published(const char* name) {
  const File file(kData / fmt::format("{}.gguf", name));
  const safetensors::File golden(kData / fmt::format("{}.safetensors", name));
  const auto tensors = published_tensors(file);
  ASSERT_EQ(tensors.size(), golden.tensors().size()) << name;
  for (const PublishedTensor& tensor : tensors) {
    const auto* expected = golden.find(tensor.name);
    ASSERT_NE(expected, nullptr) << name << ": " << tensor.name;
    EXPECT_EQ(tensor.shape, expected->shape) << tensor.name;
    std::vector<float> values(static_cast<size_t>(expected->num_elements()));
    tensor.read(DType::f32, std::as_writable_bytes(std::span(values)));
    EXPECT_EQ(values, safetensors::read_vector<float>(*expected)) << name << ": " << tensor.name;
  }
}

TEST(GgufModels, WeightsAreThePublishedOnes) {
  for (const char* name : {"llama", "llama_spm", "qwen2", "qwen3moe", "gemma2", "gemma", "gemma3",
                           "olmo2", "granite", "phi3", "phi3_long", "mixtral", "qwen2moe"})
    expect_published(name);
}

json parsed(const std::string& text) { return parse_json(text); }

TEST(GgufModels, MetadataBecomesConfigJson) {
  const json llama = parsed(published_files(File(kData / "llama.gguf")).config_json);
  EXPECT_EQ(llama["model_type"], "llama");
  EXPECT_EQ(llama["architectures"], json::array({"LlamaForCausalLM"}));
  EXPECT_EQ(llama["hidden_size"], 32);
  EXPECT_EQ(llama["num_key_value_heads"], 1);
  EXPECT_EQ(llama["head_dim"], 16);
  EXPECT_EQ(llama["vocab_size"], 260);
  EXPECT_EQ(llama["rms_norm_eps"], 1e-5);
  EXPECT_EQ(llama["tie_word_embeddings"], false);
  EXPECT_EQ(llama["eos_token_id"], 258);
  EXPECT_EQ(llama["rope_parameters"],
            parsed(R"({"rope_theta":500000.0,"rope_type":"llama3","factor":32.0,
                       "low_freq_factor":1.0,"high_freq_factor":4.0,
                       "original_max_position_embeddings":8192.0})"));
  const json gemma = parsed(published_files(File(kData / "gemma2.gguf")).config_json);
  EXPECT_EQ(gemma["tie_word_embeddings"], true);
  EXPECT_EQ(gemma["attn_logit_softcapping"], 50);
  EXPECT_EQ(gemma["query_pre_attn_scalar"], 32);
  const json moe = parsed(published_files(File(kData / "qwen3moe.gguf")).config_json);
  EXPECT_EQ(moe["num_experts"], 3);
  EXPECT_EQ(moe["norm_topk_prob"], true);
}

TEST(GgufModels, WhatOnlySomeArchitecturesHaveIsInTheConfig) {
  const auto config = [](const char* name) {
    return parsed(published_files(File(kData / fmt::format("{}.gguf", name))).config_json);
  };
  const json gemma3 = config("gemma3");
  EXPECT_EQ(gemma3["model_type"], "gemma3_text");
  EXPECT_EQ(gemma3["layer_types"][4], "sliding_attention");
  EXPECT_EQ(gemma3["layer_types"][5], "full_attention");
  EXPECT_EQ(gemma3["rope_parameters"]["full_attention"]["factor"], 8);
  EXPECT_EQ(gemma3["rope_parameters"]["sliding_attention"]["rope_theta"], 10000);
  EXPECT_EQ(config("granite")["residual_multiplier"], 0.22);
  EXPECT_EQ(config("granite")["logits_scaling"], 8);
  EXPECT_EQ(config("phi3")["sliding_window"], 16);
  EXPECT_EQ(config("mixtral")["model_type"], "mixtral");
  EXPECT_EQ(config("mixtral")["num_local_experts"], 2);
  EXPECT_EQ(config("qwen2moe")["shared_expert_intermediate_size"], 64);
  EXPECT_EQ(config("qwen2moe")["norm_topk_prob"], false);
}

TEST(GgufModels, LongRopeIsReadFromItsTensors) {
  const json config = parsed(published_files(File(kData / "phi3_long.gguf")).config_json);
  EXPECT_EQ(config["head_dim"], 16);
  EXPECT_EQ(config["original_max_position_embeddings"], 16);
  const json& rope = config["rope_parameters"];
  EXPECT_EQ(rope["rope_type"], "longrope");
  EXPECT_EQ(rope["partial_rotary_factor"], 0.75);
  EXPECT_EQ(rope["long_factor"], json({1.5, 3.0, 4.5, 6.0, 7.5, 9.0}));
  EXPECT_EQ(rope["short_factor"], json({1.0, 1.2, 1.4, 1.6, 1.8, 2.0}));
  EXPECT_FALSE(rope.contains("attention_factor")) << "it is what follows from the lengths";
}

TEST(GgufModels, ByteLevelTokenizer) {
  const auto files = published_files(File(kData / "llama.gguf"));
  const json tokenizer = parsed(files.tokenizer_json);
  EXPECT_EQ(tokenizer["model"]["type"], "BPE");
  EXPECT_EQ(tokenizer["model"]["ignore_merges"], true);
  EXPECT_EQ(tokenizer["model"]["merges"], parsed(R"([["a","b"],["Ġ","a"]])"));
  EXPECT_EQ(tokenizer["model"]["vocab"]["ab"], 256);
  ASSERT_EQ(tokenizer["added_tokens"].size(), 2U);
  EXPECT_EQ(tokenizer["added_tokens"][0]["content"], "<|end|>");
  EXPECT_EQ(tokenizer["added_tokens"][0]["special"], true);
  EXPECT_EQ(tokenizer["added_tokens"][1]["special"], false) << "defined by the user";
  EXPECT_EQ(tokenizer["post_processor"]["single"][0]["SpecialToken"]["id"], "<|end|>")
      << "Llama 3 begins with its bos unless the file says otherwise";
  EXPECT_EQ(parsed(files.tokenizer_config_json)["chat_template"], files.chat_template);
  EXPECT_THAT(files.chat_template, HasSubstr("messages"));
  const json qwen = parsed(published_files(File(kData / "qwen2.gguf")).tokenizer_json);
  EXPECT_EQ(qwen["normalizer"]["type"], "NFC");
  EXPECT_TRUE(qwen["post_processor"].is_null());
}

TEST(GgufModels, SentencepieceTokenizerMergesByScore) {
  const json tokenizer = parsed(published_files(File(kData / "llama_spm.gguf")).tokenizer_json);
  EXPECT_EQ(tokenizer["model"]["byte_fallback"], true);
  EXPECT_EQ(tokenizer["model"]["merges"], parsed("[[\"a\",\"b\"],[\"\u2581\",\"ab\"]]"));
  EXPECT_EQ(tokenizer["normalizer"]["normalizers"][0]["type"], "Prepend");
  EXPECT_EQ(tokenizer["post_processor"]["single"][0]["SpecialToken"]["id"], "<s>");
}

TEST(GgufHeader, WhatIsNoGgufFileIsRefusedByName) {
  EXPECT_THAT(Bytes().string("nothing").error(), HasSubstr("no GGUF file"));
  EXPECT_THAT(Bytes().header(0, 0, 1).error(), HasSubstr("version 1"));
  EXPECT_THAT(Bytes().header(0, 0, 0x03000000).error(), HasSubstr("big-endian"));
  EXPECT_EQ(Bytes().header(0, 0, 2).error(), "no error");
  EXPECT_EQ(Bytes().header(0, 0).error(), "no error");
}

TEST(GgufHeader, CountsAndLengthsStayInsideTheFile) {
  EXPECT_THAT(Bytes().header(~0ULL, 0).error(), HasSubstr("the number of tensors is"));
  EXPECT_THAT(Bytes().header(0, 1ULL << 60).error(), HasSubstr("the number of metadata entries"));
  EXPECT_THAT(Bytes().header(0, 1).number<uint64_t>(~0ULL).number<uint64_t>(0).error(),
              HasSubstr("a metadata key"));
  EXPECT_THAT(Bytes()
                  .header(0, 1)
                  .string("k")
                  .number<uint32_t>(9)
                  .number<uint32_t>(8)
                  .number<uint64_t>(1ULL << 61)
                  .error(),
              HasSubstr("k is 2305843009213693952"));
  EXPECT_THAT(Bytes().header(0, 1).string("k").number<uint32_t>(13).number<uint64_t>(0).error(),
              HasSubstr("unknown kind 13"));
  EXPECT_THAT(Bytes().header(0, 1).string("k").number<uint32_t>(7).number<uint64_t>(2).error(),
              HasSubstr("a boolean of value 2"));
  EXPECT_THAT(Bytes()
                  .header(0, 2)
                  .string("k")
                  .number<uint32_t>(0)
                  .number<uint8_t>(1)
                  .string("k")
                  .number<uint32_t>(0)
                  .number<uint8_t>(1)
                  .error(),
              HasSubstr("'k' comes twice"));
}

TEST(GgufHeader, TensorsTileTheData) {
  EXPECT_EQ(Bytes().header(1, 0).tensor("a", {8}, 0, 0).data(32).error(), "no error");
  EXPECT_THAT(Bytes().header(1, 0).tensor("a", {8}, 0, 0).data(31).error(), HasSubstr("truncated"));
  EXPECT_THAT(Bytes().header(1, 0).tensor("a", {8}, 0, 32).data(64).error(),
              HasSubstr("the next free byte is at 0"));
  EXPECT_THAT(Bytes().header(2, 0).tensor("a", {16}, 0, 0).tensor("b", {8}, 0, 32).data(96).error(),
              AllOf(HasSubstr("'b'"), HasSubstr("the one before it ends at 64")));
  EXPECT_THAT(Bytes().header(2, 0).tensor("a", {8}, 0, 0).tensor("a", {8}, 0, 32).data(64).error(),
              HasSubstr("'a' comes twice"));
  EXPECT_THAT(Bytes().header(1, 0).tensor("a", {8}, 99, 0).data(32).error(),
              HasSubstr("unknown type 99"));
  EXPECT_THAT(Bytes().header(1, 0).tensor("a", {33}, 2, 0).data(64).error(),
              HasSubstr("blocks of 32"));
  EXPECT_THAT(Bytes().header(1, 0).tensor("a", {0}, 0, 0).data(64).error(),
              HasSubstr("a dimension of 0"));
  EXPECT_THAT(Bytes().header(1, 0).tensor("a", {1, 1, 1, 1, 1}, 0, 0).data(64).error(),
              HasSubstr("5 dimensions"));
  EXPECT_THAT(Bytes().header(1, 0).tensor("a", {1ULL << 40, 1ULL << 40}, 0, 0).data(64).error(),
              HasSubstr("overflows"));
}

TEST(GgufHeader, AlignmentIsAPowerOfTwo) {
  const auto with = [](uint32_t alignment) {
    return Bytes()
        .header(0, 1)
        .string("general.alignment")
        .number<uint32_t>(4)
        .number(alignment)
        .error();
  };
  EXPECT_EQ(with(64), "no error");
  EXPECT_THAT(with(0), HasSubstr("general.alignment"));
  EXPECT_THAT(with(48), HasSubstr("power of two"));
}

std::string model_error(const char* name, std::string_view from, std::string_view to) {
  const support::TempFolder folder;
  std::string bytes = read_file(kData / name);
  for (size_t at = bytes.find(from); at != std::string::npos; at = bytes.find(from, at + to.size()))
    bytes.replace(at, from.size(), to);
  std::ofstream(folder.path() / "x.gguf", std::ios::binary) << bytes;
  return error_of([&] {
    const File file(folder.path() / "x.gguf");
    published_tensors(file);
    published_files(file);
  });
}

TEST(GgufModels, WhatIsNotUnderstoodIsNamed) {
  EXPECT_THAT(model_error("qwen2.gguf", "qwen2.", "qwenX."), HasSubstr("qwen2.embedding_length"));
  EXPECT_THAT(model_error("llama.gguf", "llama.vocab_size", "llama.vocab_form"),
              AllOf(HasSubstr("may change the computation"), HasSubstr("llama.vocab_form")));
  EXPECT_THAT(model_error("llama.gguf", "blk.0.ffn_gate", "blk.0.ffn_gaze"),
              HasSubstr("blk.0.ffn_gaze.weight"));
  EXPECT_THAT(model_error("llama.gguf", "llama-bpe", "llama-bqe"), HasSubstr("'llama-bqe'"));
  EXPECT_THAT(model_error("phi3_long.gguf", "factors_short", "factors_shirt"),
              HasSubstr("rope_factors_short.weight with 6 elements"));
  EXPECT_THAT(model_error("llama_spm.gguf", "ggml.scores", "ggml.scales"),
              HasSubstr("no tokenizer.ggml.scores"));
}

}  // namespace
}  // namespace rhea::gguf
