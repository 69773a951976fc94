// torchtitan's second names that count in tokens or microbatches, turned into the options they
// stand for.
#pragma once
#include <map>
#include <string>

#include "rhea/config/report.h"
#include "rhea/config/trainer_config.h"

namespace rhea::config {

// What was written on the command line for one option: under which name (its own or an alias'), as
// which flag, and the value.
struct Given {
  std::string name;
  std::string flag;
  std::string value;
};
// By path of the option.
using GivenOptions = std::map<std::string, Given>;

// Whether the alias at this path is more than another name: its value must be converted first.
bool is_converted_alias(const std::string& path);

// Sets the options that the converted aliases in `given` stand for. An alias and its primary both
// given with different values is a problem, as is a number of tokens that is no multiple of
// seq_len.
void resolve_aliases(const GivenOptions& given, TrainerConfig& config, Report& report);

}  // namespace rhea::config
