// rhea eval against losses that Transformers computed in float64 (tools/eval_reference.py).
#include "rhea/eval.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "rhea/base/error.h"
#include "rhea/base/mapped_file.h"

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
