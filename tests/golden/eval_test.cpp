// rhea eval against losses that Transformers computed in float64 (tools/eval_reference.py).
#include "rhea/eval.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "rhea/base/error.h"
#include "rhea/base/mapped_file.h"
#include "rhea/published_model.h"

namespace rhea {
namespace {

namespace fs = std::filesystem;

constexpr const char* kText =
    "Once upon a time, there was a little girl named Lily. She loved to play outside in the park. "
    "One day, she saw a big, red ball and she wanted to play with it.\n"
    "\n"
    "The end.\n"
    "\n"
    "Tom had a dog. The dog was happy! \"Let us go home,\" said Tom. They ran and ran until the "
    "sun "
    "went down behind the hill, and then they slept.\n";

class Eval : public testing::Test {
 protected:
  void SetUp() override {
    options_.model = RHEA_SHARED_DIR "/data/weights/stories260K";
    if (!fs::exists(options_.model))
      GTEST_SKIP() << options_.model << " is absent; these weights are read from the shared data.";
    file_ = fs::path(testing::TempDir()) / "rhea_eval_test.txt";
    write_file_atomic(file_, kText);
    options_.dataset = "text";
    options_.dataset_path = file_.string();
  }
  void TearDown() override { fs::remove(file_); }

  EvalOptions options_;
  fs::path file_;
  ThreadPool pool_{2};
};

TEST_F(Eval, windows_give_the_loss_of_transformers) {
  struct Case {
    int64_t seq_len, stride;
    double loss;
  };
  for (const Case& c : {Case{32, 12, 161.08686758577022}, Case{64, 0, 165.13636705964126}}) {
    options_.seq_len = c.seq_len;
    options_.stride = c.stride;
    const EvalResult result = evaluate(options_, pool_);
    EXPECT_EQ(result.num_documents, 3);
    EXPECT_EQ(result.num_bytes, 305);
    EXPECT_EQ(result.num_tokens, 120);
    EXPECT_NEAR(result.loss, c.loss, 1e-5 * c.loss) << "seq_len " << c.seq_len;
    EXPECT_DOUBLE_EQ(result.perplexity_per_byte(), std::exp(result.loss / 305.0));
  }
}

// Half the memory, and what a run that rounds f32 weights itself would compute.
TEST_F(Eval, bf16_keeps_every_weight_in_two_bytes_rounded_once) {
  const PublishedModel wide(options_.model, &pool_);
  const PublishedModel narrow(options_.model, &pool_, DType::bf16);
  ASSERT_EQ(narrow.tensors().size(), wide.tensors().size());
  for (size_t i = 0; i < wide.tensors().size(); ++i) {
    const auto &from = wide.tensors()[i], &to = narrow.tensors()[i];
    ASSERT_EQ(to.name, from.name);
    ASSERT_EQ(to.dtype, DType::bf16) << to.name;
    const auto* values = static_cast<const float*>(from.data);
    const auto* rounded = static_cast<const bf16*>(to.data);
    for (int64_t k = 0; k < from.num_elements(); ++k)
      ASSERT_EQ(rounded[k].bits, bf16(values[k]).bits) << to.name << " " << k;
  }
  options_.seq_len = 64;
  options_.dtype = DType::bf16;
  EXPECT_NEAR(evaluate(options_, pool_).loss, 165.136, 0.8);
}

// A document that is longer than the model sees at once still has every token predicted once.
TEST_F(Eval, every_token_counts_once_whatever_the_stride) {
  options_.max_documents = 1;
  options_.seq_len = 16;
  int64_t expected = 0;
  for (const int64_t stride : {16, 15, 7, 1}) {
    options_.stride = stride;
    const EvalResult result = evaluate(options_, pool_);
    EXPECT_EQ(result.num_documents, 1);
    if (expected == 0) expected = result.num_tokens;
    EXPECT_EQ(result.num_tokens, expected) << stride;
  }
}

TEST_F(Eval, wrong_options_are_refused_by_name) {
  options_.stride = options_.seq_len + 1;
  EXPECT_THAT([&] { evaluate(options_, pool_); },
              testing::ThrowsMessage<Error>(testing::HasSubstr("stride = 1025")));
  options_.stride = 0;
  options_.dataset = "tokens";
  EXPECT_THAT([&] { evaluate(options_, pool_); },
              testing::ThrowsMessage<Error>(testing::HasSubstr("dataset = tokens")));
}

}  // namespace
}  // namespace rhea
