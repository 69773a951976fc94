// The plan as JSON.
#include "rhea/components/profiler/memory_snapshot.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "rhea/base/log.h"
#include "rhea/base/mapped_file.h"

namespace rhea::profiler {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kLog = "profiler";

Json state_of(const train_step::StepGraphs& graphs) {
  Json list = Json::array();
  const auto add = [&](const std::string& name, const ir::Type& type) {
    if (type.rank() > 0)
      list.push_back(
          {{"name", name}, {"type", ir::to_string(type)}, {"bytes", ir::byte_size(type)}});
  };
  const auto& update = graphs.update;
  for (const auto& input : update.inputs()) add(input.name, update.type(input.value));
  for (const auto& parameter : graphs.frozen)
    if (update.find_input(parameter.fqn) == nullptr)
      add(parameter.fqn, {graphs.param_dtype, parameter.shape});
  for (const auto& out : graphs.prepare.outputs()) add(out.name, graphs.prepare.type(out.value));
  return list;
}

struct Value {
  const std::string* graph;
  const exec::cpu::NodeReport* node;
  exec::cpu::ArenaValue value;
};

// In the order of the calls; of more than `limit` the largest are kept.
Json arena_of(const train_step::StepPlan& plan, int64_t limit, size_t& left_out) {
  std::vector<Value> values;
  for (const auto& [name, report] : plan.graphs)
    for (const auto& value : report.values)
      values.push_back({&name, &report.nodes[static_cast<size_t>(value.first_call)], value});
  left_out = 0;
  if (values.size() > static_cast<size_t>(limit)) {
    left_out = values.size() - static_cast<size_t>(limit);
    std::ranges::stable_sort(values, std::greater<>(),
                             [](const Value& v) { return v.value.bytes; });
    values.resize(static_cast<size_t>(limit));
  }
  Json list = Json::array();
  for (const Value& v : values)
    list.push_back({{"graph", *v.graph},
                    {"fqn", v.node->fqn},
                    {"op", v.node->op},
                    {"types", v.node->types},
                    {"offset", v.value.offset},
                    {"bytes", v.value.bytes},
                    {"first_call", v.value.first_call},
                    {"last_call", v.value.last_call}});
  return list;
}

}  // namespace

MemorySnapshot::MemorySnapshot(const ProfilerConfig& config,
                               const std::filesystem::path& dump_folder,
                               const train_step::StepGraphs& graphs,
                               const train_step::StepPlan& plan, int rank)
    : freq_(config.memory_snapshot_freq.value_or(config.profile_freq)),
      folder_(dump_folder / config.save_memory_snapshot_folder),
      rank_(rank) {
  size_t left_out = 0;
  const auto& memory = plan.memory;
  Json json = {{"memory",
                {{"parameters", memory.parameters},
                 {"gradients", memory.gradients},
                 {"optimizer", memory.optimizer},
                 {"prepared", memory.prepared},
                 {"activations", memory.activations},
                 {"arena", memory.arena},
                 {"scratch", memory.scratch},
                 {"total", memory.total()}}},
               {"state", state_of(graphs)},
               {"arena", arena_of(plan, config.memory_snapshot_max_entries, left_out)}};
  json["arena_entries_left_out"] = left_out;
  body_ = json.dump(1);
  log::info(kLog, "Memory profiler active. Snapshot will be saved at {}", folder_.string());
}

void MemorySnapshot::end_step(int64_t step) {
  if (step % freq_ == 0) write(step, "");
}

void MemorySnapshot::write_at_exit(int64_t step) { write(step, "_exit"); }

void MemorySnapshot::write(int64_t step, const std::string& suffix) {
  const auto folder = folder_ / fmt::format("step_{:012d}{}", step, suffix);
  const auto file = folder / fmt::format("{:06d}_step_{}.json", rank_, step);
  std::filesystem::create_directories(folder);
  write_file_atomic(file, fmt::format("{{\n \"step\": {},{}\n", step, body_.substr(1)));
  log::info(kLog, "Memory snapshot of step {} written to {}", step, file.string());
}

}  // namespace rhea::profiler
