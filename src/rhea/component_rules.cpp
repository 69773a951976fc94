#include "rhea/component_rules.h"

#include <fmt/format.h>

#include <ostream>

#include "rhea/components/data/open_dataset.h"
#include "rhea/components/lr_scheduler/lr_scheduler.h"
#include "rhea/components/metrics/sinks.h"
#include "rhea/components/tokenizer/readers.h"
#include "rhea/components/train_step/optimizer_arguments.h"
#include "rhea/models/registry.h"
#include "rhea/nn/losses.h"

namespace rhea {
namespace {

using Problems = std::vector<config::Problem>;

template <class Row>
void check_word(const NamedTable<Row>& table, const char* path, const std::string& word,
                Problems& problems) {
  if (table.find(word) != nullptr) return;
  problems.push_back(
      {path, "'" + word + "'", fmt::format("expected one of: {}", joined(table.names())), true});
}

void check_loader(const DataloaderConfig& loader, const std::string& path, Problems& problems) {
  if (loader.sources.empty())
    data::check_source({loader.dataset, loader.dataset_path}, path, problems);
  for (size_t i = 0; i < loader.sources.size(); ++i)
    data::check_source({loader.sources[i].dataset, loader.sources[i].dataset_path},
                       fmt::format("{}.sources.{}", path, i), problems);
}

template <class Row>
void print(const NamedTable<Row>& table, std::ostream& out) {
  out << fmt::format("  {:<24}  {}\n", table.kind(), joined(table.names()));
  for (const std::string& name : table.outside_names()) out << "    from outside: " << name << '\n';
}

}  // namespace

void check_components(const TrainerConfig& config, bool reads_files, Problems& problems) {
  const auto& groups = config.optimizer->param_groups;
  for (size_t i = 0; i < groups.size(); ++i)
    train_step::check_group(groups[i], fmt::format("optimizer.param_groups.{}", i), problems);
  check_word(lr_scheduler::decays(), "lr_scheduler.decay_type", config.lr_scheduler->decay_type,
             problems);
  for (const std::string& sink : config.metrics->sinks)
    check_word(metrics::sinks(), "metrics.sinks", sink, problems);
  if (config.tokenizer->kind != tokenizer::kAnyKind)
    check_word(tokenizer::readers(), "tokenizer.kind", config.tokenizer->kind, problems);
  if (!reads_files) return;
  check_loader(*config.dataloader, "dataloader", problems);
  if (config.validator->enable)
    check_loader(*config.validator->dataloader, "validator.dataloader", problems);
}

void print_components(std::ostream& out) {
  print(models::families(), out);
  print(data::datasets(), out);
  print(tokenizer::readers(), out);
  print(nn::losses(), out);
  print(train_step::optimizers(), out);
  print(lr_scheduler::decays(), out);
  print(metrics::sinks(), out);
}

}  // namespace rhea
