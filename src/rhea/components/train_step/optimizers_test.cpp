// The table of optimizers: arguments, defaults, and an update that a user's file brings.
#include "rhea/components/train_step/optimizer_arguments.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "rhea/components/train_step/test_training.h"
#include "rhea/ops/ops.h"
#include "tests/support/error_of.h"

namespace rhea::train_step {
namespace {

using support::error_of;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// Lion, with its decay named so that OptimizerKwargs has no field for it.
Optimizer lion() {
  Optimizer row;
  row.name = "Lion";
  row.defaults.lr = 1e-4;
  row.defaults.betas = {0.9, 0.99};
  row.defaults.more = {"lambda=0.5"};
  row.state = [](const OptimizerKwargs&) { return std::vector<std::string>{"momentum"}; };
  row.update = [](const UpdateInputs& in, const OptimizerKwargs& k) {
    const double b1 = (*k.betas)[0], b2 = (*k.betas)[1], lambda = more_number(k, "lambda");
    const Value p = in.weight(), g = in.gradient(), m = in.state_value(0);
    const Value direction = ops::sign(ops::multiply(m, b1) + ops::multiply(g, 1 - b1));
    return std::vector{p - in.spread(in.lr) * (direction + ops::multiply(p, lambda)),
                       ops::multiply(m, b2) + ops::multiply(g, 1 - b2)};
  };
  return row;
}

void add_lion() {
  if (optimizers().find("Lion") == nullptr) optimizers().add(lion(), "lion.cpp");
}

std::vector<std::string> problems(const ParamGroup& group) {
  std::vector<config::Problem> found;
  check_group(group, "optimizer.param_groups.0", found);
  std::vector<std::string> texts;
  for (const auto& problem : found) texts.push_back(to_string(problem));
  return texts;
}

TEST(Optimizers, DefaultsFillWhatIsNotSet) {
  OptimizerKwargs given;
  given.betas = {0.5, 0.6};
  const OptimizerKwargs adamw = with_defaults(*optimizers().find("AdamW"), given);
  EXPECT_EQ(describe(adamw), "{lr: 0.001, betas: (0.5, 0.6), eps: 1e-08, weight_decay: 0.01}");
  EXPECT_EQ(with_defaults(*optimizers().find("Adam"), given).weight_decay, 0.0);
  EXPECT_EQ(describe(with_defaults(*optimizers().find("SGD"), {})),
            "{lr: 0.001, weight_decay: 0, momentum: 0, dampening: 0, nesterov: false}");
  add_lion();
  given.more = {"lambda=2"};
  EXPECT_EQ(describe(with_defaults(*optimizers().find("Lion"), given)),
            "{lr: 0.0001, betas: (0.5, 0.6), lambda: 2}");
  EXPECT_EQ(more_number(with_defaults(*optimizers().find("Lion"), {}), "lambda"), 0.5);
  given.more = {"lambdas=2", "beta", "gamma=2x", "delta="};
  const auto error = [&](const char* name) { return error_of([&] { more_number(given, name); }); };
  EXPECT_EQ(error("lambda"), "the optimizer has no argument 'lambda'");
  EXPECT_EQ(error("beta"), "optimizer argument 'beta' is no number");
  EXPECT_EQ(error("gamma"), "optimizer argument 'gamma=2x' is no number");
  EXPECT_EQ(error("delta"), "optimizer argument 'delta=' is no number");
}

TEST(Optimizers, MistakesInAGroupAreNamedWithWhatThereIs) {
  add_lion();
  ParamGroup group;
  group.optimizer_name = "Adagrad";
  EXPECT_THAT(problems(group), ElementsAre(testing::AllOf(
                                   HasSubstr("Optimizer Adagrad not added. Optimizers: AdamW, "),
                                   HasSubstr("Lion"))));
  group.optimizer_name = "AdamW";
  group.optimizer_kwargs.momentum = 0.9;
  group.optimizer_kwargs.more = {"lambda=1"};
  EXPECT_THAT(problems(group),
              ElementsAre(HasSubstr("optimizer_kwargs.momentum: AdamW has no such argument; it "
                                    "has: lr, betas, eps, weight_decay"),
                          HasSubstr("optimizer_kwargs.more lambda=1: AdamW has no such argument")));
  group.optimizer_kwargs = {};
  group.optimizer_kwargs.betas = {0.9};
  EXPECT_THAT(problems(group), ElementsAre(HasSubstr("betas = 0.9: must be two numbers")));
  group.optimizer_name = "SGD";
  group.optimizer_kwargs = {};
  group.optimizer_kwargs.nesterov = true;
  EXPECT_THAT(problems(group),
              ElementsAre(HasSubstr("nesterov = true: needs a momentum above 0 and dampening 0")));
  group.optimizer_name = "Lion";
  group.optimizer_kwargs = {};
  group.optimizer_kwargs.more = {"lambda=0.25"};
  EXPECT_THAT(problems(group), IsEmpty());
  group.optimizer_kwargs.more = {"lambda"};
  EXPECT_THAT(problems(group), ElementsAre(HasSubstr("it has: lr, betas, lambda")));
}

TEST(Optimizers, RowsThatCannotBeAreRefused) {
  add_lion();
  EXPECT_EQ(error_of([] { optimizers().add(lion(), "other.cpp"); }),
            "optimizer 'Lion' is already registered by lion.cpp; other.cpp must take another name");
  Optimizer row = lion();
  row.name = "Tiger";
  row.defaults.lr.reset();
  EXPECT_EQ(error_of([&] { optimizers().add(row, "t.cpp"); }),
            "optimizer 'Tiger' of t.cpp has no default of lr");
  row = lion();
  row.update = nullptr;
  EXPECT_EQ(error_of([&] { optimizers().add(row, "t.cpp"); }),
            "optimizer 'Lion' of t.cpp has no update function");
}

StepOptions options_of(const std::string& optimizer, DType param_dtype, DType compute_dtype) {
  StepOptions options = small_options(compute_dtype, 0);
  options.trace.param_dtype = param_dtype;
  options.accumulates = false;
  options.optimizer->param_groups[0].optimizer_name = optimizer;
  return options;
}

// An update made of ordinary ops, against its formula, beside graphs that read the new weights in
// another dtype and layout.
TEST(Optimizers, AnOutsideUpdateFollowsItsFormulaOverSteps) {
  add_lion();
  const StepOptions options = options_of("Lion", DType::f32, DType::bf16);
  ThreadPool pool(2);
  TrainStep step(build_step_graphs(small_model(), options), options.trace, {}, pool);
  step.initialise(7);
  EXPECT_EQ(step.memory().optimizer, step.memory().parameters) << "one tensor of state each";
  std::vector<int32_t> ids(kSmallTokens), positions(kSmallTokens);
  for (size_t i = 0; i < ids.size(); ++i) {
    ids[i] = static_cast<int32_t>(i * 7 % kSmallVocab);
    positions[i] = static_cast<int32_t>(i % kSmallSeqLen);
  }
  const auto floats = [](const StateTensor& tensor) {
    const auto* data = static_cast<const float*>(tensor.data);
    return std::vector<float>(data, data + ir::num_elements(tensor.type.shape));
  };
  constexpr double kClip = 0.5, kLr = 1e-3;
  double loss = 0;
  for (int64_t s = 1; s <= 3; ++s) {
    const double last = loss;
    loss = step.forward_backward({ids.data(), ids.data(), positions.data()}, 1.0 / kSmallTokens);
    if (s > 1) {
      EXPECT_LT(loss, last) << "the new weights are what the next step reads";
    }
    step.gradient_norm();
    std::vector<std::vector<float>> p, g, m;
    for (size_t i = 0; i < step.parameters().size(); ++i) {
      p.push_back(floats(step.parameters()[i]));
      g.push_back(floats(step.gradients()[i]));
      m.push_back(floats(step.optimizer_state()[i]));
    }
    step.update(s, std::vector{kLr}, kClip);
    for (size_t i = 0; i < p.size(); ++i) {
      ASSERT_TRUE(step.optimizer_state()[i].name.starts_with("momentum."));
      const auto new_p = floats(step.parameters()[i]), new_m = floats(step.optimizer_state()[i]);
      for (size_t j = 0; j < p[i].size(); ++j) {
        const double grad = kClip * g[i][j];
        const double mixed = 0.9 * m[i][j] + 0.1 * grad;
        const double direction = mixed > 0 ? 1 : mixed < 0 ? -1 : 0;
        ASSERT_NEAR(new_p[j], p[i][j] - kLr * (direction + 0.5 * p[i][j]),
                    2e-7 * (1 + std::abs(p[i][j])))
            << step.parameters()[i].name;
        ASSERT_NEAR(new_m[j], 0.99 * m[i][j] + 0.01 * grad, 1e-6 * (1 + std::abs(grad)));
      }
    }
  }
}

TEST(Optimizers, ResultsAreRoundedToTheStoredDtype) {
  add_lion();
  const StepOptions options = options_of("Lion", DType::bf16, DType::bf16);
  const StepGraphs graphs = build_step_graphs(small_model(), options);
  for (const auto& output : graphs.update.outputs()) {
    if (!output.name.starts_with("new.")) continue;
    EXPECT_EQ(graphs.update.type(output.value).dtype, DType::bf16) << output.name;
  }
}

TEST(Optimizers, AnUpdateOfTheWrongFormIsAnErrorThatNamesIt) {
  Optimizer row = lion();
  row.name = "Forgetful";
  row.update = [](const UpdateInputs& in, const OptimizerKwargs&) { return std::vector{in.p}; };
  optimizers().add(row, "f.cpp");
  EXPECT_THAT(error_of([] {
                build_step_graphs(small_model(), options_of("Forgetful", DType::f32, DType::f32));
              }),
              HasSubstr("optimizer Forgetful gives 1 values for tok_embeddings.weight: expected "
                        "the parameter and 1 of state"));
  row.name = "Flat";
  row.update = [](const UpdateInputs& in, const OptimizerKwargs&) {
    return std::vector{in.p, in.lr};
  };
  optimizers().add(row, "f.cpp");
  EXPECT_THAT(error_of([] {
                build_step_graphs(small_model(), options_of("Flat", DType::f32, DType::f32));
              }),
              HasSubstr("optimizer Flat gives f32[] as value 1 of tok_embeddings.weight, expected "
                        "f32[96,32]"));
}

}  // namespace
}  // namespace rhea::train_step
