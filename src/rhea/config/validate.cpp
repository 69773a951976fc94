#include "rhea/config/validate.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "rhea/config/leaf_text.h"
#include "rhea/config/rules.h"

namespace rhea::config {
namespace {

constexpr const char* kEmpty = "is empty: the config function must fill it";

// Choices and ranges that fields() states.
class FieldChecker final : public Visitor {
 public:
  explicit FieldChecker(Report& report) : report_(report) {}
  void alias(std::string_view, std::string_view, std::string_view) override {}
  void no_effect(std::string_view, OptionType, std::string_view, std::string_view) override {}

 private:
  void leaf(const FieldInfo& info, Leaf value) override {
    if (auto* v = std::get_if<int64_t*>(&value))
      range(info, static_cast<double>(**v), std::to_string(**v));
    if (auto* v = std::get_if<double*>(&value)) range(info, **v, double_text(**v));
    if (auto* v = std::get_if<std::optional<int64_t>*>(&value); v && **v)
      range(info, static_cast<double>(***v), std::to_string(***v));
    if (auto* v = std::get_if<std::optional<double>*>(&value); v && **v)
      range(info, ***v, double_text(***v));
    if (auto* v = std::get_if<std::vector<double>*>(&value)) numbers(info, **v);
    if (auto* v = std::get_if<std::optional<std::vector<double>>*>(&value); v && **v)
      numbers(info, ***v);
    if (auto* v = std::get_if<std::string*>(&value)) choice(info, **v);
    if (auto* v = std::get_if<std::optional<std::string>*>(&value); v && **v) choice(info, ***v);
    if (auto* v = std::get_if<std::vector<std::string>*>(&value)) {
      for (const std::string& word : **v) choice(info, word);
    }
  }
  void section(const FieldInfo& info, Config& config) override {
    enter(std::string(info.name), config);
  }
  void slot(const FieldInfo& info, SlotBase& slot) override {
    // A model may still be missing here, and in one many parts are left out by an empty slot.
    if (slot)
      enter(std::string(info.name), *slot.get());
    else if (info.required || !prefix_.starts_with("model_spec."))
      report_.add_anywhere(path(info), "", kEmpty);
  }
  void list(const FieldInfo& info, ConfigList& list) override {
    for (size_t i = 0; i < list.size(); ++i) enter(fmt::format("{}.{}", info.name, i), list.at(i));
  }

  void flat(std::string_view name, SlotBase& slot) override {
    // The config around it takes its fields from it, and cannot do without.
    if (slot)
      slot.get()->fields(*this);
    else
      report_.add_anywhere(prefix_ + std::string(name), "", kEmpty);
  }

  std::string path(const FieldInfo& info) const { return prefix_ + std::string(info.name); }
  void enter(const std::string& name, Config& config) {
    const std::string parent = prefix_;
    prefix_ += name + ".";
    config.fields(*this);
    prefix_ = parent;
  }
  void numbers(const FieldInfo& info, const std::vector<double>& values) {
    for (const double value : values) range(info, value, double_text(value));
  }
  void range(const FieldInfo& info, double value, const std::string& text) {
    if (!std::isfinite(value))
      return report_.add_anywhere(path(info), text, "must be a finite number");
    const bool low = info.above_min ? value <= info.min : value < info.min;
    if (!low && value <= info.max) return;
    if (std::isfinite(info.max))
      report_.add_anywhere(path(info), text,
                           fmt::format("must be between {} and {}", info.min, info.max));
    else
      report_.add_anywhere(
          path(info), text,
          fmt::format("must be {} {}", info.above_min ? "greater than" : "at least", info.min));
  }
  void choice(const FieldInfo& info, const std::string& word) {
    if (info.choices.empty() || std::ranges::find(info.choices, word) != info.choices.end()) return;
    report_.add_anywhere(path(info), "'" + word + "'",
                         fmt::format("expected one of: {}", join(info.choices)));
  }

  Report& report_;
  std::string prefix_;
};

}  // namespace

void check_fields(const Config& config, Report& report) {
  FieldChecker checker(report);
  // fields() is not const because other visitors write; this one only reads.
  const_cast<Config&>(config).fields(checker);
}

Report validate(const TrainerConfig& config, const WorldFacts& world) {
  Report report;
  check_fields(config, report);
  check_training(config, world, report);
  check_parallelism(config, world, report);
  check_batch(config, world, report);
  check_compile(config, report);
  check_optimizer(config, world, report);
  check_checkpoint(config, world, report);
  if (world.reads_files) check_data(config, report);
  check_observation(config, world, report);
  check_scope(config, world, report);
  if (world.model)
    for (const Problem& problem : world.model->problems) report.problems.push_back(problem);
  return report;
}

}  // namespace rhea::config
