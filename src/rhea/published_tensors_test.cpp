// What stands for what when tensors are compared with those that a model asks for.
#include "rhea/published_tensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "rhea/base/mapped_file.h"
#include "rhea/components/safetensors/reader.h"
#include "rhea/models/hf/config_json.h"
#include "tests/support/error_of.h"

namespace rhea {
namespace {

namespace fs = std::filesystem;
using safetensors::TensorSource;
using support::error_of;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

constexpr int64_t kExperts = 5;

class Published : public testing::Test {
 protected:
  static fs::path folder() {
    return fs::path(RHEA_SOURCE_DIR) / "tests/data/golden/models/qwen3_moe_norm";
  }
  Published()
      : asked_for_(
            models::hf::parse_config(read_file(folder() / "config.json"), "config.json").decoder) {
    const safetensors::File file(folder() / "model.safetensors");
    for (const auto& tensor : file.tensors())
      tensors_.push_back({{tensor.name, tensor.dtype, tensor.shape}, nullptr});
  }
  // Experts of a layer as one tensor: gate and up of each after the other.
  void join(const std::string& layer) {
    const std::string stem = layer + ".mlp.experts.";
    const std::vector<int64_t> up = shape_of(stem + "0.up_proj.weight"),
                               down = shape_of(stem + "0.down_proj.weight");
    std::erase_if(tensors_, [&](const TensorSource& t) { return t.spec.name.starts_with(stem); });
    add(stem + "gate_up_proj", {kExperts, 2 * up[0], up[1]});
    add(stem + "down_proj", {kExperts, down[0], down[1]});
  }
  void add(const std::string& name, std::vector<int64_t> shape) {
    tensors_.push_back({{name, safetensors::ElementType::F32, std::move(shape)}, nullptr});
  }
  TensorSource& find(const std::string& name) {
    return *std::ranges::find_if(tensors_,
                                 [&](const TensorSource& t) { return t.spec.name == name; });
  }
  std::vector<int64_t> shape_of(const std::string& name) { return find(name).spec.shape; }
  std::string error() const {
    return error_of([&] { asked_for_.compare(tensors_, "the input"); });
  }

  PublishedTensors asked_for_;
  std::vector<TensorSource> tensors_;
};

TEST_F(Published, ExpertsMayBeJoined) {
  EXPECT_EQ(error(), "no error");
  join("model.layers.0");
  EXPECT_EQ(error(), "no error");
}

TEST_F(Published, AJoinedTensorStandsForItsOwnMatrixOnly) {
  join("model.layers.0");
  std::erase_if(tensors_, [](const TensorSource& t) {
    return t.spec.name == "model.layers.0.mlp.experts.down_proj";
  });
  EXPECT_THAT(
      error(),
      AllOf(HasSubstr("missing"), HasSubstr("model.layers.0.mlp.experts.0.down_proj.weight"),
            HasSubstr("model.layers.0.mlp.experts.4.down_proj.weight"), Not(HasSubstr("up_proj"))));
}

TEST_F(Published, AJoinedTensorHasRoomForEveryExpert) {
  join("model.layers.0");
  TensorSource& down = find("model.layers.0.mlp.experts.down_proj");
  down.spec.shape[0] = kExperts - 1;
  EXPECT_THAT(error(),
              AllOf(HasSubstr("model.layers.0.mlp.experts.down_proj: [4, "), HasSubstr("[5, ")));
  down.spec.shape = {kExperts, 2, 3};
  EXPECT_THAT(error(), HasSubstr("model.layers.0.mlp.experts.down_proj: [5, 2, 3] in the input"));
}

TEST_F(Published, MixtralsNamesStandForTheSameWeights) {
  const std::string from = ".mlp.experts.0.up_proj.weight";
  find("model.layers.0" + from).spec.name = "model.layers.0.block_sparse_moe.experts.0.w3.weight";
  EXPECT_EQ(error(), "no error");
  find("model.layers.0.block_sparse_moe.experts.0.w3.weight").spec.shape = {1};
  EXPECT_THAT(error(), HasSubstr("w3.weight: [1] in the input"));
}

TEST_F(Published, OneExpertTooManyIsUnexpected) {
  add("model.layers.0.mlp.experts.5.up_proj.weight", {1, 1});
  EXPECT_THAT(error(), AllOf(HasSubstr("unexpected"),
                             HasSubstr("model.layers.0.mlp.experts.5.up_proj.weight")));
}

}  // namespace
}  // namespace rhea
