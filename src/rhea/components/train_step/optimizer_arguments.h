// The arguments of a param group against those that its optimizer takes.
#pragma once
#include <string>
#include <vector>

#include "rhea/components/train_step/optimizers.h"
#include "rhea/config/report.h"

namespace rhea::train_step {

// `given` with the defaults of the optimizer for what is not set.
OptimizerKwargs with_defaults(const Optimizer& optimizer, const OptimizerKwargs& given);

// Name, arguments and their values; `path` is that of the group ("optimizer.param_groups.0").
void check_group(const ParamGroup& group, const std::string& path,
                 std::vector<config::Problem>& problems);

// "{lr: 0.0008, betas: (0.9, 0.95), ...}": the arguments that are set.
std::string describe(const OptimizerKwargs& kwargs);

}  // namespace rhea::train_step
