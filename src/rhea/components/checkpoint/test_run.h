// What the checkpoint tests share: a folder of their own, and a tiny run with a model and optimizer
// state.
#pragma once
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "rhea/base/error.h"
#include "rhea/base/mapped_file.h"
#include "rhea/components/checkpoint/checkpointer.h"
#include "tests/support/error_of.h"
#include "tests/support/temp_folder.h"

namespace rhea::checkpoint {

using support::error_of;

class TestFolder : public testing::Test {
 protected:
  support::TempFolder temporary_;
  std::filesystem::path folder_ = temporary_.path();
};

// Two parameters and their AdamW moments; everything holds the number of the last step.
struct TinyRun {
  std::vector<float> weight = std::vector<float>(6, 0);
  std::vector<float> bias = std::vector<float>(3, 0);
  std::vector<float> weight_m = std::vector<float>(6, 0);
  std::vector<float> bias_m = std::vector<float>(3, 0);
  int64_t step = 0;

  std::vector<NamedTensor> tensors() {
    return {{"layers.0.weight", DType::f32, {2, 3}, weight.data()},
            {"layers.0.bias", DType::f32, {3}, bias.data()},
            {"optimizer.state.layers.0.weight.exp_avg", DType::f32, {2, 3}, weight_m.data()},
            {"optimizer.state.layers.0.bias.exp_avg", DType::f32, {3}, bias_m.data()}};
  }
  void advance() { set(step + 1); }
  void set(int64_t value) {
    step = value;
    for (auto* tensor : {&weight, &bias, &weight_m, &bias_m})
      tensor->assign(tensor->size(), static_cast<float>(value));
  }
  StateMap state() const {
    return {{"train_state", fmt::format(R"({{"step":{},"ntokens_seen":{}}})", step, step * 100)},
            {"lr_scheduler", fmt::format(R"({{"step":{}}})", step)},
            {"dataloader", R"({"epoch":0})"}};
  }
  // All tensors hold `value`.
  bool holds(float value) const {
    for (const auto* tensor : {&weight, &bias, &weight_m, &bias_m}) {
      if (*tensor != std::vector<float>(tensor->size(), value)) return false;
    }
    return true;
  }
};

}  // namespace rhea::checkpoint
