// Nodes that overrides replaced, against what stood there.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>

#include "rhea/base/error.h"
#include "rhea/check/part.h"
#include "rhea/check/subjects.h"
#include "rhea/config/json.h"
#include "rhea/config/traverse.h"
#include "rhea/models/registry.h"
#include "rhea/nn/losses.h"

namespace rhea::check {
namespace {

constexpr std::string_view kModel = "model_spec.model";
constexpr std::string_view kHead = "model_spec.model.lm_head";

// Nodes that one override replaced in the same way: one of them stands for all.
struct Group {
  std::string by, path, before, after;
  std::vector<std::string> paths;
};

std::vector<Group> find_groups(TrainerConfig& config) {
  std::vector<Group> groups;
  std::map<std::string, size_t> index;
  config::traverse(config, [&](const config::Node& node) {
    if (!node.config.replaced) return true;
    const Replaced& replaced = *node.config.replaced;
    const Config& stock = *replaced.stock.get();
    const std::string key =
        replaced.by + '\n' + config::to_json(stock) + config::to_json(node.config);
    const auto [at, is_new] = index.emplace(key, groups.size());
    if (is_new)
      groups.push_back({replaced.by, node.path, type_name(stock), type_name(node.config), {}});
    groups[at->second].paths.push_back(node.path);
    return false;
  });
  return groups;
}

// The run as it would be without overrides.
TrainerConfig without_overrides(const TrainerConfig& config) {
  TrainerConfig stock = config;
  config::traverse(stock, [](const config::Node& node) {
    const std::shared_ptr<const Replaced> replaced = node.config.replaced;
    if (!replaced) return true;
    RHEA_CHECK(node.slot != nullptr, "{} was replaced, but is in no slot", node.path);
    node.slot->replace(replaced->stock);
    return false;
  });
  return stock;
}

config::Node find_node(TrainerConfig& config, const std::string& path) {
  std::unique_ptr<config::Node> found;
  config::traverse(config, [&](const config::Node& node) {
    if (node.path == path) found = std::make_unique<config::Node>(node);
    return !found;
  });
  RHEA_CHECK(found != nullptr, "no node {}", path);
  return *found;
}

// A model traced into one graph, with the calls of its modules.
struct Traced {
  Traced(const TrainerConfig& config, const Setting& setting) : trace(graph, setting.trace()) {
    const nn::Decoder::Config& model = models::decoder(config.model_spec);
    trace.record_calls(&calls);
    const ir::Value loss = nn::traced_loss(trace, model, *config.loss);
    trace.record_calls(nullptr);
    // The whole model stands for what is called by no module.
    std::erase_if(calls, [&](const nn::ModuleCall& call) {
      if (call.module == &model) tail = {&model, call.results, {loss}};
      return call.module == &model;
    });
    calls.push_back({&model, {}, {loss}});
  }

  std::vector<const nn::ModuleCall*> calls_of(const Config& module) const {
    std::vector<const nn::ModuleCall*> made;
    for (const nn::ModuleCall& call : calls) {
      if (call.module == &module) made.push_back(&call);
    }
    return made;
  }

  ir::Graph graph;
  nn::Trace trace;
  std::vector<nn::ModuleCall> calls;
  // From the last hidden states to the loss: the head, which the loss calls as it likes.
  nn::ModuleCall tail;
};

Side side_of(const Traced& traced, const nn::ModuleCall& call, const Setting& setting,
             int64_t vocab_size) {
  Side side;
  side.graph = cut_part(traced.graph, {.arguments = call.arguments,
                                       .results = call.results,
                                       .parameters = traced.trace.parameters()});
  side.parameters = traced.trace.parameters();
  fill_inputs(side.graph,
              {.parameters = side.parameters,
               .constants = traced.trace.constants(),
               .rope_specs = traced.trace.rope_specs(),
               .seq_len = setting.seq_len,
               .vocab_size = vocab_size},
              side.inputs);
  return side;
}

std::string types_of(const std::vector<ir::Value>& values) {
  std::string text;
  for (const ir::Value& value : values)
    text += (text.empty() ? "" : ", ") + ir::to_string(value.type());
  return text;
}

class NodeCheck {
 public:
  NodeCheck(const TrainerConfig& stock, TrainerConfig& changed, const Group& group,
            const Means& means, Report& report)
      : stock_(stock), variant_(stock), group_(group), means_(means), report_(report) {
    find_node(variant_, group.path).slot->replace(*find_node(changed, group.path).slot);
  }

  void check(const Setting& setting) {
    std::unique_ptr<Traced> stock, other;
    try {
      stock = std::make_unique<Traced>(stock_, setting);
      other = std::make_unique<Traced>(variant_, setting);
    } catch (const Error& error) {
      // Limits are fine where the run keeps them.
      const std::string text = fmt::format("{}: refused: {}", setting.text(), error.what());
      setting.of_run ? report_.fault(text) : report_.note(text);
      return;
    }
    if (group_.path == "loss" || group_.path == kHead) {
      if (setting.of_run) report_.note("compared from the last hidden states to the loss");
      compare_calls(*stock, stock->tail, *other, other->tail, setting, setting.text());
      return;
    }
    std::string path = group_.path;
    auto mine = other->calls_of(find_node(variant_, path).config);
    auto theirs = stock->calls_of(find_node(stock_, path).config);
    // A projection that was part of a larger product has no call of its own.
    while (path != kModel && (mine.empty() || mine.size() != theirs.size())) {
      path = parent_of(path);
      mine = other->calls_of(find_node(variant_, path).config);
      theirs = stock->calls_of(find_node(stock_, path).config);
    }
    if (path != group_.path && setting.of_run) report_.note("compared as part of " + path);
    std::vector<std::string> seen;
    for (size_t i = 0; i < mine.size(); ++i) {
      const std::string types = types_of(theirs[i]->arguments);
      if (std::ranges::find(seen, types) != seen.end()) continue;
      seen.push_back(types);
      compare_calls(*stock, *theirs[i], *other, *mine[i], setting,
                    fmt::format("{}{}{}", setting.text(), types.empty() ? "" : ": ", types));
    }
  }

 private:
  // The nearest node above that is a module.
  std::string parent_of(std::string path) {
    do {
      path.resize(path.rfind('.'));
    } while (path != kModel && !is_node(path));
    return path;
  }
  bool is_node(const std::string& path) {
    bool found = false;
    config::traverse(stock_, [&](const config::Node& node) {
      found |= node.path == path;
      return !found;
    });
    return found;
  }

  void compare_calls(const Traced& stock, const nn::ModuleCall& theirs, const Traced& other,
                     const nn::ModuleCall& mine, const Setting& setting, const std::string& where) {
    const int64_t vocab_size = models::decoder(stock_.model_spec).vocab_size();
    Question question;
    question.dtype = setting.dtype;
    question.timed = setting.of_run;
    question.stock = side_of(stock, theirs, setting, vocab_size);
    question.stock.options.added_kernels = false;
    question.exact = only_moves(cut_part(stock.graph, {.arguments = theirs.arguments,
                                                       .results = theirs.results,
                                                       .parameters = {},
                                                       .gradients = false}));
    try {
      question.other = side_of(other, mine, setting, vocab_size);
    } catch (const Error& error) {
      report_.fault(fmt::format("{}: {}", where, error.what()));
      return;
    }
    compare_into(report_, where, std::move(question), means_);
  }

  TrainerConfig stock_, variant_;
  const Group& group_;
  const Means& means_;
  Report& report_;
};

}  // namespace

size_t check_nodes(const TrainerConfig& config, const Means& means, Report& report) {
  TrainerConfig changed = config;
  const std::vector<Group> groups = find_groups(changed);
  if (groups.empty()) return 0;
  const TrainerConfig stock = without_overrides(config);
  for (const Group& group : groups) {
    report.subject(fmt::format(
        "override {}: {} {} -> {}{}", group.by, group.path, group.before, group.after,
        group.paths.size() == 1 ? ""
                                : fmt::format(", and {} nodes alike", group.paths.size() - 1)));
    if (group.path.starts_with(kModel) || group.path == "loss") {
      NodeCheck node(stock, changed, group, means, report);
      for (const Setting& setting : settings_of(config)) node.check(setting);
    } else if (group.path == "optimizer") {
      check_update(stock, config, means, report);
    } else {
      report.nothing_to_compare("no part of the model's function");
    }
    report.end_subject();
  }
  return groups.size();
}

}  // namespace rhea::check
