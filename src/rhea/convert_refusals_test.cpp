// What convert refuses: parts that do not belong together, models that nothing could load, places
// that are taken. Nothing is left behind then.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "rhea/base/error.h"
#include "rhea/base/json.h"
#include "rhea/base/mapped_file.h"
#include "rhea/base/output_folder.h"
#include "rhea/components/safetensors/reader.h"
#include "rhea/components/safetensors/writer.h"
#include "rhea/convert.h"
#include "rhea/model_files.h"
#include "rhea/published_model.h"
#include "rhea/score.h"
#include "tests/support/error_of.h"
#include "tests/support/temp_folder.h"

namespace rhea {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using support::error_of;
using testing::AllOf;
using testing::HasSubstr;

const fs::path kData = fs::path(RHEA_SOURCE_DIR) / "tests/data";
const fs::path kLlama = kData / "golden/models/llama3_rope_tied";
const fs::path kTokenizer = fs::path(RHEA_SOURCE_DIR) / "tests/assets/tokenizer";
constexpr auto kNative = ConvertOptions::Format::native;

class Refusals : public testing::Test {
 protected:
  fs::path at(const std::string& name) const { return temporary_.path() / name; }
  // A copy of kLlama whose config.json has other values.
  fs::path with_config(const std::string& name, const json& changes) const {
    fs::create_directories(at(name));
    fs::copy_file(kLlama / "model.safetensors", at(name) / "model.safetensors",
                  fs::copy_options::overwrite_existing);
    json config = parse_json(read_file(kLlama / "config.json"));
    config.merge_patch(changes);
    std::ofstream(at(name) / "config.json") << config;
    return at(name);
  }
  // Both formats refuse with a message that holds `text`, and leave nothing.
  void expect_refused(ConvertOptions options, const testing::Matcher<std::string>& text) {
    for (const auto format : {ConvertOptions::Format::hf, kNative}) {
      options.to = at("out");
      options.format = format;
      EXPECT_THAT(error_of([&] { convert(options); }), text);
      for (const auto& item : fs::directory_iterator(temporary_.path()))
        EXPECT_FALSE(item.path().filename().string().starts_with("out")) << item.path();
    }
  }
  support::TempFolder temporary_;
};

TEST_F(Refusals, AssetsOfAnotherModel) {
  const fs::path native = at("native");
  convert({.from = kLlama, .to = native, .format = kNative});
  const struct {
    json change;
    const char* names;
  } kOthers[] = {
      {{{"rope_theta", 12345.0}, {"rope_parameters", {{"rope_theta", 12345.0}}}}, "rope_theta"},
      {{{"rms_norm_eps", 0.5}}, "rms_norm_eps"},
      {{{"hidden_size", 128}}, "hidden_size"},
      {{{"vocab_size", 7}}, "vocab_size"},
      {{{"num_hidden_layers", 1}}, "num_hidden_layers"},
      {{{"tie_word_embeddings", false}}, "tie_word_embeddings"},
      {{{"model_type", "mistral"}, {"rope_scaling", nullptr}}, "model_type"}};
  for (const auto& other : kOthers)
    for (const fs::path& from : {kLlama, native})
      expect_refused({.from = from, .hf_assets_path = with_config("assets", other.change)},
                     AllOf(HasSubstr("assets/config.json"), HasSubstr(other.names)));
  expect_refused({.from = kLlama, .hf_assets_path = at("none")}, HasSubstr("no config.json"));
}

// Without a config.json of its own the input is what the assets say, if its tensors fit.
TEST_F(Refusals, TensorsThatTheConfigDoesNotAskFor) {
  fs::create_directories(at("bare"));
  fs::copy_file(kLlama / "model.safetensors", at("bare") / "model.safetensors");
  expect_refused({.from = at("bare")}, HasSubstr("no config.json"));
  expect_refused({.from = at("bare"), .hf_assets_path = with_config("a", {{"vocab_size", 7}})},
                 AllOf(HasSubstr("of another shape"), HasSubstr("embed_tokens")));
  expect_refused(
      {.from = at("bare"), .hf_assets_path = with_config("a", {{"num_hidden_layers", 1}})},
      AllOf(HasSubstr("unexpected"), HasSubstr("model.layers.1.")));
  for (const auto format : {ConvertOptions::Format::hf, kNative}) {
    convert({.from = at("bare"), .to = at("good"), .format = format, .hf_assets_path = kLlama});
    EXPECT_EQ(error_of([&] { PublishedModel{at("good")}; }), "no error");
    fs::remove_all(at("good"));
  }
}

// Whatever loading refuses, with the same words.
TEST_F(Refusals, ModelsThatNothingCouldLoad) {
  const json kConfigs[] = {
      {{"model_type", "mistral"}, {"layer_types", {"full_attention", "none"}}},
      {{"model_type", "unheard_of"}},
      {{"hidden_act", "unheard_of"}},
      {{"num_hidden_layers", 1}},
      {{"num_attention_heads", 3}},
      {{"hidden_size", "wide"}},
      {{"rope_scaling", {{"rope_type", "unheard_of"}}}, {"rope_parameters", nullptr}}};
  for (const json& change : kConfigs) {
    const fs::path folder = with_config("model", change);
    const std::string loading = error_of([&] { PublishedModel{folder}; });
    ASSERT_NE(loading, "no error") << change;
    expect_refused({.from = folder}, testing::Eq(loading));
  }
}

TEST_F(Refusals, ATokenizerBeyondTheVocabulary) {
  const fs::path assets = with_config("assets", json::object());
  for (const char* file : {"tokenizer.json", "tokenizer_config.json"})
    fs::copy_file(kTokenizer / file, assets / file);
  expect_refused({.from = kLlama, .hf_assets_path = assets},
                 AllOf(HasSubstr("the tokenizer of " + assets.string()), HasSubstr("2047")));
  std::ofstream(assets / "tokenizer.json") << "{";
  expect_refused({.from = kLlama, .hf_assets_path = assets}, HasSubstr("tokenizer.json"));
}

TEST_F(Refusals, AKilledConvertIsCleanedUpByTheNext) {
  const std::string host_and_pid = temporary_path("").string();
  const std::string dead = host_and_pid.substr(0, host_and_pid.rfind('-') + 1) + "4000000";
  fs::create_directories(at("out" + dead) / "inside");
  convert({.from = kData / "gguf/llama.gguf", .to = at("out"), .format = kNative});
  EXPECT_FALSE(fs::exists(at("out" + dead)));
  EXPECT_EQ(std::distance(fs::directory_iterator(temporary_.path()), {}), 1);
}

// A result in the place of weights, or beside them where it would be read as some.
TEST_F(Refusals, ResultsInTheFolderOfAModel) {
  const fs::path model = with_config("model", json::object());
  const std::vector<int64_t> ids = {1, 2, 3};
  safetensors::write_file(
      at("in.safetensors"),
      std::vector<safetensors::TensorView>{
          {"input_ids", safetensors::ElementType::I64, {1, 3}, std::as_bytes(std::span(ids))}});
  convert({.from = model, .to = at("native"), .format = kNative});
  const std::string weights = read_file(model / "model.safetensors");
  ThreadPool pool(1);
  fs::create_directory_symlink(model, at("link"));
  for (const fs::path& output :
       {model / "model.safetensors", model / "new.safetensors", at("link") / "model.safetensors",
        model / "config.json", at("native") / "rank-00000.safetensors"}) {
    EXPECT_THAT(error_of([&] {
                  score({.model = model, .input = at("in.safetensors"), .output = output}, pool);
                }),
                AllOf(HasSubstr(output.string()), HasSubstr("that of a model")));
  }
  EXPECT_THAT(error_of([&] {
                score(
                    {.model = model, .input = at("in.safetensors"), .output = at("in.safetensors")},
                    pool);
              }),
              HasSubstr("is the file of --input"));
  EXPECT_EQ(read_file(model / "model.safetensors"), weights);
  score({.model = model, .input = at("in.safetensors"), .output = at("out.safetensors")}, pool);
  score({.model = model, .input = at("in.safetensors"), .output = at("out.safetensors")}, pool);
  EXPECT_TRUE(fs::exists(at("out.safetensors")));
}

}  // namespace
}  // namespace rhea
