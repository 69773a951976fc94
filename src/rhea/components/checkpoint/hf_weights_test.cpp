// Import from and export to Hugging Face folders: permuted rows, several parts, tied heads, FP8
// blocks.
#include "rhea/components/checkpoint/hf_weights.h"

#include <fstream>
#include <numeric>

#include "rhea/base/thread_pool.h"
#include "rhea/components/checkpoint/test_run.h"
#include "rhea/components/safetensors/reader.h"
#include "rhea/components/safetensors/writer.h"

namespace rhea::checkpoint {
namespace {

namespace fs = std::filesystem;
using safetensors::ElementType;
using safetensors::File;
using safetensors::read_vector;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

safetensors::TensorView view(const std::string& name, std::vector<int64_t> shape,
                             const std::vector<float>& values) {
  return {name, ElementType::F32, std::move(shape), std::as_bytes(std::span(values))};
}

std::vector<float> counted(size_t count) {
  std::vector<float> values(count);
  std::iota(values.begin(), values.end(), 0.0F);
  return values;
}

// q is permuted as in llama3 (two heads of four rows), experts are one native tensor of two
// matrices, balance has no key.
KeyMap example_map() {
  KeyMap map;
  map.to_hf = [](const std::string& native, std::span<const int64_t> shape) -> std::vector<HfPart> {
    if (native == "q")
      return {{"q_proj", {shape.begin(), shape.end()}, half_split_rows(shape[0], 4)}};
    if (native == "experts") return {{"experts.0", {2, 3}, {0, 1}}, {"experts.1", {2, 3}, {2, 3}}};
    if (native == "embed") return {{"embed", {shape.begin(), shape.end()}}};
    if (native == "balance") return {};
    throw Error("unknown parameter {}", native);
  };
  map.tied = {{"lm_head", "embed"}};
  map.ignorable = [](const std::string& hf) { return hf == "inv_freq"; };
  return map;
}

struct Model {
  std::vector<float> q = std::vector<float>(8);
  std::vector<float> experts = std::vector<float>(12);
  std::vector<float> embed = std::vector<float>(2);
  std::vector<NamedTensor> tensors() {
    return {{"q", DType::f32, {8, 1}, q.data()},
            {"experts", DType::f32, {2, 2, 3}, experts.data()},
            {"embed", DType::f32, {2, 1}, embed.data()}};
  }
};

class HfWeights : public TestFolder {
 protected:
  void write_source(const std::vector<safetensors::TensorView>& more) {
    std::vector<safetensors::TensorView> all = {
        view("q_proj", {8, 1}, q_), view("experts.0", {2, 3}, first_),
        view("experts.1", {2, 3}, second_), view("embed", {2, 1}, embed_)};
    all.insert(all.end(), more.begin(), more.end());
    safetensors::write_file(folder_ / "model.safetensors", all);
  }
  std::string import_error() {
    return error_of([&] { import_hf(folder_, map_, model_.tensors()); });
  }
  std::vector<float> q_ = counted(8);
  std::vector<float> first_ = {0, 1, 2, 3, 4, 5};
  std::vector<float> second_ = {6, 7, 8, 9, 10, 11};
  std::vector<float> embed_ = {3, 4};
  KeyMap map_ = example_map();
  Model model_;
};

TEST_F(HfWeights, ImportPermutesAndJoins) {
  write_source({});
  ASSERT_EQ(import_error(), "no error");
  // Rows 0 1 | 2 3 of a head in the file are its even and odd rows here.
  EXPECT_THAT(model_.q, ElementsAre(0, 2, 1, 3, 4, 6, 5, 7));
  EXPECT_EQ(model_.experts, counted(12));
  EXPECT_THAT(model_.embed, ElementsAre(3, 4));
}

TEST_F(HfWeights, LoadThenExportGivesTheSameTensors) {
  write_source({});
  import_hf(folder_, map_, model_.tensors());
  fs::create_directories(folder_ / "assets");
  std::ofstream(folder_ / "assets/config.json")
      << R"({"model_type":"x","torch_dtype":"float32","tie_word_embeddings":true})";
  std::ofstream(folder_ / "assets/tokenizer.json") << "{}";
  const fs::path out = folder_ / "out/step-3";
  auto tensors = model_.tensors();
  float balance = 0;
  float moment = 0;
  tensors.push_back({"balance", DType::f32, {}, &balance});
  tensors.push_back({"optimizer.state.q.exp_avg", DType::f32, {}, &moment});
  testing::internal::CaptureStdout();
  export_hf(out, tensors, map_, {folder_ / "assets"}, DType::f32);
  EXPECT_THAT(testing::internal::GetCapturedStdout(),
              AllOf(HasSubstr("WARNING"), HasSubstr("balance")));
  const File before(folder_ / "model.safetensors");
  const File after(out / "model.safetensors");
  ASSERT_EQ(after.tensors().size(), before.tensors().size());
  for (const auto& tensor : before.tensors()) {
    EXPECT_EQ(after.at(tensor.name).shape, tensor.shape);
    EXPECT_EQ(read_vector<float>(after.at(tensor.name)), read_vector<float>(tensor)) << tensor.name;
  }
  EXPECT_EQ(read_file(out / "tokenizer.json"), "{}");
}

TEST_F(HfWeights, TheTokenizerOfTheRunIsExported) {
  fs::create_directories(folder_ / "assets");
  std::ofstream(folder_ / "assets/tokenizer.json") << "the assets'";
  fs::create_directories(folder_ / "own");
  std::ofstream(folder_ / "own/tokenizer.json") << "the run's";
  std::ofstream(folder_ / "own/tokenizer_config.json") << "{}";
  fs::create_directories(folder_ / "empty");
  const auto exported = [&](const fs::path& tokenizer) {
    fs::remove_all(folder_ / "out");
    testing::internal::CaptureStdout();
    export_hf(folder_ / "out", model_.tensors(), map_,
              {.folder = folder_ / "assets", .tokenizer = tokenizer, .config_json = "{}"},
              DType::f32);
    return testing::internal::GetCapturedStdout();
  };
  exported("");
  EXPECT_EQ(read_file(folder_ / "out/tokenizer.json"), "the assets'");
  exported(folder_ / "own");
  EXPECT_EQ(read_file(folder_ / "out/tokenizer.json"), "the run's");
  EXPECT_TRUE(fs::exists(folder_ / "out/tokenizer_config.json"));
  exported(folder_ / "own/tokenizer.json");
  EXPECT_EQ(read_file(folder_ / "out/tokenizer.json"), "the run's");
  EXPECT_FALSE(fs::exists(folder_ / "out/tokenizer_config.json")) << "the run did not read it";
  std::ofstream(folder_ / "own/qwen.tiktoken") << "words";
  exported(folder_ / "own");
  EXPECT_EQ(read_file(folder_ / "out/qwen.tiktoken"), "words");
  exported(folder_ / "own/qwen.tiktoken");
  EXPECT_EQ(read_file(folder_ / "out/qwen.tiktoken"), "words");
  EXPECT_FALSE(fs::exists(folder_ / "out/tokenizer.json"));
  EXPECT_THAT(exported(folder_ / "empty"), HasSubstr("The export has no tokenizer files"));
}

TEST_F(HfWeights, K12ExportDtypeIsInTheFilesAndInTheConfig) {
  model_.embed = {1.0F, 1.00390625F};  // the second is a tie that rounds to even
  fs::create_directories(folder_ / "assets");
  export_hf(
      folder_ / "step-1", model_.tensors(), map_,
      {.folder = folder_ / "assets",
       .config_json = R"({"torch_dtype":"float32","dtype":"float32","quantization_config":{}})"},
      DType::bf16);
  const File file(folder_ / "step-1/model.safetensors");
  for (const auto& tensor : file.tensors()) EXPECT_EQ(tensor.dtype, ElementType::BF16);
  EXPECT_THAT(read_vector<float>(file.at("embed")), ElementsAre(1, 1));
  const std::string config = read_file(folder_ / "step-1/config.json");
  EXPECT_THAT(config,
              AllOf(HasSubstr(R"("torch_dtype": "bfloat16")"), HasSubstr(R"("dtype": "bfloat16")"),
                    testing::Not(HasSubstr("quantization"))));
}

TEST_F(HfWeights, TiedCopiesMustBeEqual) {
  const std::vector<float> other = {3, 5};
  write_source({view("lm_head", {2, 1}, embed_)});
  EXPECT_EQ(import_error(), "no error");
  write_source({view("lm_head", {2, 1}, other)});
  EXPECT_THAT(import_error(),
              AllOf(HasSubstr("'lm_head' and 'embed' differ"), HasSubstr("tie_word_embeddings")));
}

TEST_F(HfWeights, ImportIsStrict) {
  const std::vector<float> value = {1};
  write_source({view("inv_freq", {1}, value), view("extra", {1}, value)});
  EXPECT_THAT(import_error(), AllOf(HasSubstr("unexpected"), HasSubstr("extra"),
                                    testing::Not(HasSubstr("inv_freq"))));
  safetensors::write_file(folder_ / "model.safetensors",
                          std::vector{view("q_proj", {4, 2}, q_), view("experts.0", {2, 3}, first_),
                                      view("embed", {2, 1}, embed_)});
  EXPECT_THAT(import_error(),
              AllOf(HasSubstr("missing"), HasSubstr("experts.1"),
                    HasSubstr("q_proj: F32 [4, 2] in the file, f32 [8, 1] in the model")));
  EXPECT_THAT(model_.embed, ElementsAre(0, 0)) << "nothing was read";
}

TEST_F(HfWeights, AMissingHeadSaysThatTyingIsTheRemedy) {
  write_source({});
  map_.to_hf = [inner = map_.to_hf](const std::string& native,
                                    std::span<const int64_t> shape) -> std::vector<HfPart> {
    if (native == "output") return {{"lm_head", {shape.begin(), shape.end()}}};
    return inner(native, shape);
  };
  map_.tied.clear();
  map_.head = "lm_head";
  std::vector<float> head(2);
  auto tensors = model_.tensors();
  tensors.push_back({"output", DType::f32, {2, 1}, head.data()});
  EXPECT_THAT(error_of([&] { import_hf(folder_, map_, tensors); }),
              AllOf(HasSubstr("lm_head"), HasSubstr("Tying the head")));
}

TEST_F(HfWeights, W14EdgeBlocksOfFp8AreCropped) {
  const std::vector<uint8_t> ones(130 * 129, 0x38);
  const std::vector<float> scales = {1, 2, 3, 4};
  const std::vector<safetensors::TensorView> stored = {
      {"w", ElementType::F8_E4M3, {130, 129}, std::as_bytes(std::span(ones))},
      view("w_scale_inv", {2, 2}, scales)};
  safetensors::write_file(folder_ / "model.safetensors", stored);
  std::vector<float> weight(130 * 129);
  const std::vector<NamedTensor> targets = {{"w", DType::f32, {130, 129}, weight.data()}};
  EXPECT_EQ(import_hf(folder_, identity_key_map(), targets).num_fp8, 1);
  EXPECT_EQ(std::accumulate(weight.begin(), weight.end(), 0.0), 17416);
  EXPECT_EQ(weight[129 * 129], 3);
  EXPECT_EQ(weight[129 * 129 + 127], 3);
  EXPECT_EQ(weight[129 * 129 + 128], 4);
  safetensors::write_file(folder_ / "model.safetensors", std::vector{stored[0]});
  EXPECT_THAT(error_of([&] { import_hf(folder_, identity_key_map(), targets); }),
              HasSubstr("'w_scale_inv' is not there"));
}

TEST_F(HfWeights, TablesOfOlderFilesAreSkippedAndNamed) {
  const std::vector<float> value = {1};
  write_source({view("inv_freq", {1}, value)});
  EXPECT_THAT(import_hf(folder_, map_, model_.tensors()).skipped, ElementsAre("inv_freq"));
}

TEST_F(HfWeights, ThreadsReadTheSame) {
  write_source({});
  ThreadPool pool(3);
  EXPECT_EQ(import_hf(folder_, map_, model_.tensors(), {.pool = &pool}).num_tensors, 4);
  EXPECT_THAT(model_.q, ElementsAre(0, 2, 1, 3, 4, 6, 5, 7));
  EXPECT_EQ(model_.experts, counted(12));
}

TEST_F(HfWeights, ALoadThatIsNotStrictListsWhatItLeavesOut) {
  const std::vector<float> value = {1};
  write_source({view("extra", {1}, value)});
  float balance = 7;
  auto tensors = model_.tensors();
  tensors.push_back({"balance", DType::f32, {}, &balance});
  const auto result = import_hf(folder_, map_, tensors, {.strict = false});
  EXPECT_THAT(result.left_out, ElementsAre("extra: not in the model"));
  EXPECT_THAT(result.without_key, ElementsAre("balance"));
  EXPECT_EQ(balance, 7);
  EXPECT_THAT(model_.embed, ElementsAre(3, 4));
  safetensors::write_file(folder_ / "model.safetensors", std::vector{view("q_proj", {4, 2}, q_)});
  EXPECT_THAT(error_of([&] { import_hf(folder_, map_, tensors, {.strict = false}); }),
              HasSubstr("of another shape"));
}

// What the files have of a parameter is read; the rest has the values that the caller draws before.
TEST_F(HfWeights, ALoadThatIsNotStrictReadsThePartsThatAreThere) {
  safetensors::write_file(
      folder_ / "model.safetensors",
      std::vector{view("q_proj", {8, 1}, q_), view("experts.1", {2, 3}, second_),
                  view("embed", {2, 1}, embed_)});
  const auto initialise = [&](const std::vector<std::string>& names) {
    EXPECT_THAT(names, ElementsAre("experts"));
    EXPECT_THAT(model_.embed, ElementsAre(0, 0)) << "nothing was read yet";
    std::ranges::fill(model_.experts, -1.0F);
  };
  const auto result =
      import_hf(folder_, map_, model_.tensors(), {.strict = false, .initialise = initialise});
  EXPECT_THAT(model_.experts, ElementsAre(-1, -1, -1, -1, -1, -1, 6, 7, 8, 9, 10, 11));
  EXPECT_THAT(model_.embed, ElementsAre(3, 4));
  EXPECT_THAT(result.left_out,
              ElementsAre("experts.0: not in the files, keeps its initial values"));
  EXPECT_THAT(result.absent, ElementsAre("experts"));
  EXPECT_EQ(result.num_tensors, 3);
  EXPECT_EQ(result.num_elements, 8 + 6 + 2);
}

TEST_F(HfWeights, EveryKeyIsListed) {
  const std::vector<float> value = {1};
  std::vector<safetensors::TensorView> more;
  for (int i = 0; i < 50; ++i) more.push_back(view(fmt::format("extra.{}.end", i), {1}, value));
  write_source(more);
  const std::string error = import_error();
  for (const auto& tensor : more) EXPECT_THAT(error, HasSubstr("\n    " + tensor.name));
}

// Transformers writes them for what a config has none of, and misses them in an export.
TEST_F(HfWeights, TensorsWithoutElementsAreExportedAgain) {
  const std::vector<float> nothing;
  write_source({view("shared.up", {0, 3}, nothing)});
  ASSERT_EQ(import_error(), "no error");
  export_hf(folder_ / "out", model_.tensors(), map_, {.folder = folder_}, DType::bf16);
  const File exported(folder_ / "out/model.safetensors");
  EXPECT_EQ(exported.tensors().size(), 5U);
  EXPECT_EQ(exported.at("shared.up").shape, (std::vector<int64_t>{0, 3}));
}

std::vector<NamedTensor> named(std::vector<std::pair<std::string, std::vector<float>*>> list,
                               std::vector<std::vector<int64_t>> shapes) {
  std::vector<NamedTensor> tensors;
  for (size_t i = 0; i < list.size(); ++i)
    tensors.push_back({list[i].first, DType::f32, shapes[i], list[i].second->data()});
  return tensors;
}

// A file of the base model has no "model." in its names; its export has none either.
TEST_F(HfWeights, ThePrefixOfTheBaseModelMayBeAbsent) {
  const std::vector<float> norm = {1, 2}, up = {3, 4};
  safetensors::write_file(
      folder_ / "model.safetensors",
      std::vector{view("norm.weight", {2}, norm), view("layers.0.up.weight", {2}, up)});
  std::vector<float> a(2), b(2);
  const auto tensors =
      named({{"model.norm.weight", &a}, {"model.layers.0.up.weight", &b}}, {{2}, {2}});
  import_hf(folder_, identity_key_map(), tensors);
  EXPECT_EQ(a, norm);
  EXPECT_EQ(b, up);
  export_hf(folder_ / "out", tensors, identity_key_map(), {.folder = folder_}, DType::f32);
  const File exported(folder_ / "out/model.safetensors");
  EXPECT_EQ(exported.tensors().size(), 2U);
  EXPECT_EQ(read_vector<float>(exported.at("norm.weight")), norm);
  EXPECT_EQ(read_vector<float>(exported.at("layers.0.up.weight")), up);
}

// gate and up of expert e follow each other in the joined tensor; the model asks for either form.
TEST_F(HfWeights, ExpertsMayBeJoinedOrOneByOne) {
  const std::string base = "model.layers.0.mlp.experts.";
  const std::vector<float> gate_up = counted(2 * 4 * 3), down = counted(2 * 3 * 2);
  safetensors::write_file(folder_ / "model.safetensors",
                          std::vector{view(base + "gate_up_proj", {2, 4, 3}, gate_up),
                                      view(base + "down_proj", {2, 3, 2}, down)});
  std::vector<std::vector<float>> parts(6, std::vector<float>(6));
  std::vector<NamedTensor> single;
  for (int e = 0; e < 2; ++e) {
    int i = 0;
    for (const char* matrix : {"gate_proj", "up_proj", "down_proj"})
      single.push_back({fmt::format("{}{}.{}.weight", base, e, matrix), DType::f32,
                        i == 2 ? std::vector<int64_t>{3, 2} : std::vector<int64_t>{2, 3},
                        parts[static_cast<size_t>(e * 3 + i++)].data()});
  }
  const auto result = import_hf(folder_, identity_key_map(), single);
  EXPECT_EQ(result.num_tensors, 2) << "of the files";
  EXPECT_EQ(result.num_elements, 36);
  EXPECT_THAT(parts[0], ElementsAre(0, 1, 2, 3, 4, 5));
  EXPECT_THAT(parts[1], ElementsAre(6, 7, 8, 9, 10, 11));
  EXPECT_THAT(parts[3], ElementsAre(12, 13, 14, 15, 16, 17));
  EXPECT_THAT(parts[5], ElementsAre(6, 7, 8, 9, 10, 11));
  export_hf(folder_ / "joined", single, identity_key_map(), {.folder = folder_}, DType::f32);
  const File joined(folder_ / "joined/model.safetensors");
  EXPECT_EQ(joined.tensors().size(), 2U);
  EXPECT_EQ(read_vector<float>(joined.at(base + "gate_up_proj")), gate_up);

  export_hf(folder_ / "single", single, identity_key_map(), {.folder = folder_ / "none"},
            DType::f32);
  EXPECT_EQ(File(folder_ / "single/model.safetensors").tensors().size(), 6U);
  std::vector<float> whole(24), whole_down(12);
  import_hf(folder_ / "single", identity_key_map(),
            named({{base + "gate_up_proj", &whole}, {base + "down_proj", &whole_down}},
                  {{2, 4, 3}, {2, 3, 2}}));
  EXPECT_EQ(whole, gate_up);
  EXPECT_EQ(whole_down, down);
}

TEST_F(HfWeights, MixtralSpellsItsExpertsInItsOwnWay) {
  const std::vector<float> gate = counted(4), router = {1, 2};
  const std::string base = "model.layers.3.block_sparse_moe.";
  safetensors::write_file(folder_ / "model.safetensors",
                          std::vector{view(base + "experts.0.w1.weight", {2, 2}, gate),
                                      view(base + "gate.weight", {1, 2}, router)});
  std::vector<float> a(4), b(2);
  const auto tensors = named({{"model.layers.3.mlp.experts.0.gate_proj.weight", &a},
                              {"model.layers.3.mlp.gate.weight", &b}},
                             {{2, 2}, {1, 2}});
  import_hf(folder_, identity_key_map(), tensors);
  EXPECT_EQ(a, gate);
  EXPECT_EQ(b, router);
  export_hf(folder_ / "out", tensors, identity_key_map(), {.folder = folder_}, DType::f32);
  EXPECT_NE(File(folder_ / "out/model.safetensors").find(base + "experts.0.w1.weight"), nullptr);
}

TEST_F(HfWeights, BiasesThatChooseExpertsKeepFloat32) {
  std::vector<float> bias = {1.0001F}, weight = {1.0001F};
  export_hf(folder_ / "out",
            named({{"model.mlp.gate.e_score_correction_bias", &bias}, {"model.w.weight", &weight}},
                  {{1}, {1}}),
            identity_key_map(), {.folder = folder_}, DType::bf16);
  const File file(folder_ / "out/model.safetensors");
  EXPECT_EQ(file.at("model.mlp.gate.e_score_correction_bias").dtype, ElementType::F32);
  EXPECT_EQ(file.at("model.w.weight").dtype, ElementType::BF16);
}

TEST(KeyMap, HalfSplitRowsAreTheSpecs) {
  EXPECT_THAT(half_split_rows(8, 4), ElementsAre(0, 2, 1, 3, 4, 6, 5, 7));
}

}  // namespace
}  // namespace rhea::checkpoint
