// Commands that only look at a model hold it once.
#include <fstream>
#include <span>

#include "rhea/components/safetensors/writer.h"
#include "tests/runs/run_test.h"

namespace rhea {
namespace {

constexpr int64_t kDim = 512, kHidden = 2048;

class PeakMemory : public RunTest {
 protected:
  // A Llama of `layers` layers with zeros for weights; returns their bytes. Its head is tied, and
  // the file may repeat it.
  static int64_t write_model(const fs::path& folder, int64_t layers, int64_t vocabulary,
                             bool repeats_head = false) {
    fs::create_directories(folder);
    std::ofstream(folder / "config.json") << fmt::format(
        R"({{"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": {},
 "intermediate_size": {}, "num_hidden_layers": {}, "num_attention_heads": 8,
 "num_key_value_heads": 8, "vocab_size": {}, "max_position_embeddings": 64, "rms_norm_eps": 1e-5,
 "rope_theta": 10000.0, "tie_word_embeddings": true, "torch_dtype": "float32"}})",
        kDim, kHidden, layers, vocabulary);
    std::vector<safetensors::TensorSpec> specs;
    const auto add = [&](const std::string& name, std::vector<int64_t> shape) {
      specs.push_back({name, safetensors::ElementType::F32, std::move(shape)});
    };
    add("model.embed_tokens.weight", {vocabulary, kDim});
    add("model.norm.weight", {kDim});
    if (repeats_head) add("lm_head.weight", {vocabulary, kDim});
    for (int64_t i = 0; i < layers; ++i) {
      const std::string layer = fmt::format("model.layers.{}.", i);
      for (const char* name : {"input_layernorm", "post_attention_layernorm"})
        add(layer + name + ".weight", {kDim});
      for (const char* name : {"q", "k", "v", "o"})
        add(fmt::format("{}self_attn.{}_proj.weight", layer, name), {kDim, kDim});
      for (const char* name : {"gate", "up"})
        add(fmt::format("{}mlp.{}_proj.weight", layer, name), {kHidden, kDim});
      add(layer + "mlp.down_proj.weight", {kDim, kHidden});
    }
    safetensors::Writer writer(folder / "model.safetensors", specs);
    const std::vector<std::byte> zeros(kDim * 4);
    int64_t bytes = 0;
    for (size_t i = 0; i < specs.size(); ++i) {
      const auto& shape = specs[i].shape;
      const int64_t rows = shape.size() == 2 ? shape[0] * shape[1] / kDim : 1;
      for (int64_t row = 0; row < rows; ++row) writer.write(i, zeros);
      bytes += rows * kDim * 4;
    }
    writer.finish();
    for (const char* name : {"tokenizer.json", "tokenizer_config.json"})
      fs::copy_file(fs::path(RHEA_SOURCE_DIR) / "tests/assets/tokenizer" / name, folder / name);
    return bytes;
  }

  int64_t peak(Words words, const fs::path& model) {
    words.insert(words.begin() + 1, {"--model", model.string(), "--threads", "2"});
    return peak(words);
  }
  int64_t peak(const Words& words) {
    support::Process process(words, temp_.path() / "log");
    EXPECT_EQ(process.wait(), 0) << process.output();
    return process.peak_bytes();
  }

  // What the program itself and its buffers take is that of a model of one layer and few words.
  // `share`: what one copy of the weights takes in memory, of what it takes in the files.
  void expect_once(const Words& words, double share = 1) {
    const auto more = static_cast<double>(peak(words, big_) - peak(words, small_model_));
    const auto in_files = static_cast<double>(big_bytes_ - small_bytes_);
    EXPECT_LE(more, (share + 0.1) * in_files) << words[0];
    EXPECT_GE(more, share / 2 * in_files) << words[0] << " has not loaded the model";
  }

  Words score_words() const {
    fs::create_directories(temp_.path() / "results");
    const fs::path input = temp_.path() / "in.safetensors";
    const safetensors::TensorSpec spec{"input_ids", safetensors::ElementType::I64, {1, 8}};
    safetensors::Writer writer(input, std::vector{spec});
    const std::vector<int64_t> ids(8, 1);
    writer.write(0, std::as_bytes(std::span(ids)));
    writer.finish();
    return {"score", "--input", input.string(), "--output",
            (temp_.path() / "results/out.safetensors").string()};
  }

  void SetUp() override {
    small_bytes_ = write_model(small_model_, 1, 2048);
    big_bytes_ = write_model(big_, 9, 32768);
    std::ofstream(text_) << "a few words of text, and some more of them\n";
  }

  const fs::path small_model_ = temp_.path() / "small", big_ = temp_.path() / "big";
  const fs::path text_ = temp_.path() / "text.txt";
  int64_t small_bytes_ = 0, big_bytes_ = 0;
};

TEST_F(PeakMemory, Eval) {
  expect_once({"eval", "--dataset", "text", "--dataset_path", text_.string(), "--seq_len", "16"});
}

TEST_F(PeakMemory, Generate) {
  expect_once({"generate", "--prompt", "a few", "--max_new_tokens", "4"});
}

TEST_F(PeakMemory, Score) { expect_once(score_words()); }

TEST_F(PeakMemory, ScoreInBf16) {
  Words words = score_words();
  words.insert(words.end(), {"--dtype", "bf16"});
  expect_once(words, 0.5);
}

// The copy of the head is compared with the embedding and is not kept.
TEST_F(PeakMemory, ATiedHeadThatTheFileRepeats) {
  const fs::path repeated = temp_.path() / "repeated";
  write_model(repeated, 9, 32768, true);
  constexpr double kHead = 32768.0 * kDim * 4;
  EXPECT_LE(static_cast<double>(peak(score_words(), repeated) - peak(score_words(), big_)),
            0.1 * kHead);
  const auto converting = [&](const fs::path& model) {
    return peak({"convert", "--from", model.string(), "--to", model.string() + "_converted"});
  };
  EXPECT_LE(static_cast<double>(converting(repeated) - converting(big_)), 0.1 * kHead);
}

}  // namespace
}  // namespace rhea
