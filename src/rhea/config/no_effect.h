// Options that a user gave although nothing in this run reads them.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "rhea/config/report.h"
#include "rhea/config/trainer_config.h"

namespace rhea::config {

// One warning for each option of `given` (paths) whose value is not the default and that nothing
// reads in this run: "comm.port has no effect: ..."; also for initial_load_model_only, whose
// default asks for something. A recipe's own values are not meant: they are written for every run
// of it.
void warn_without_effect(const TrainerConfig& config, const std::vector<std::string>& given,
                         Report& report);

// Whether the table has a row for the option, so that a new option cannot be forgotten.
bool may_have_no_effect(std::string_view option);

}  // namespace rhea::config
