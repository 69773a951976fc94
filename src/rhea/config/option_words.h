// Command line words before their meaning: which word is an option, which its value.
#pragma once
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "rhea/config/option_index.h"
#include "rhea/config/report.h"

namespace rhea::config {

// `--section.option value`, `--section.option=value`, `--section.flag`.
struct OptionWord {
  std::string flag;  // as typed, without a value: "--training.local-batch-size"
  std::string path;  // "training.local_batch_size"
  std::optional<std::string> value;
  bool equals_sign = false;
};

// `section:alternative`.
struct UnionWord {
  std::string text;
  std::string section;
  std::string alternative;
};

struct Words {
  std::vector<OptionWord> options;
  std::vector<UnionWord> unions;
};

// Words that are neither go into the report. `index` says which options are flags, and so take no
// value.
Words split_words(std::span<const std::string> args, const OptionIndex& index, Report& report);

// The flag named by `path`, also in its no_ form; sets `negated` for that.
const Option* find_flag(const OptionIndex& index, const std::string& path, bool& negated);

}  // namespace rhea::config
