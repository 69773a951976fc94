// Claims on the unchanged tree, then conflicts, then replacements.
#include "rhea/config/override.h"

#include <cxxabi.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <set>
#include <typeindex>

#include "rhea/base/log.h"
#include "rhea/base/rethrow.h"
#include "rhea/base/text.h"
#include "rhea/config/glob.h"
#include "rhea/config/json_values.h"
#include "rhea/config/traverse.h"

namespace rhea::config {
namespace {

constexpr std::string_view kModelPrefix = "model_spec.model.";
constexpr size_t kMaxNear = 5;

struct Claim {
  std::string path;
  SlotBase* slot;
  const ActiveOverride* by;
  int depth;
};

bool selects(const Override& override, std::string_view path) {
  const auto& globs = override.options.fqns;
  std::string_view below = path;
  if (below.starts_with(kModelPrefix)) below.remove_prefix(kModelPrefix.size());
  return globs.empty() || std::ranges::any_of(globs, [&](const std::string& glob) {
           const Glob compiled(glob);
           return compiled.matches(path) || compiled.matches(below);
         });
}

class Collector {
 public:
  explicit Collector(std::span<const ActiveOverride> active) : active_(active) {}

  std::vector<Claim> run(Config& root) {
    traverse(root, [&](const Node& node) {
      visit(node);
      return true;
    });
    return std::move(claims_);
  }

 private:
  void visit(const Node& node) {
    while (!around_.empty() && around_.back().depth >= node.depth) around_.pop_back();
    const ActiveOverride* by = claimant(node);
    if (by == nullptr) return;
    if (!around_.empty()) {
      const Claim& outer = around_.back();
      if (outer.by == by) return;
      throw Error(
          "Override '{}' claims '{}', an ancestor of '{}' claimed by '{}'. Nested overrides are "
          "order-dependent; narrow their fqns selectors.",
          outer.by->override->name, outer.path, node.path, by->override->name);
    }
    if (node.slot == nullptr)
      throw Error("Override '{}': {} ({}) cannot be overridden; pick the component's Config",
                  by->override->name, type_name(node.config), node.path);
    claims_.push_back({node.path, node.slot, by, node.depth});
    around_.push_back(claims_.back());
  }

  const ActiveOverride* claimant(const Node& node) const {
    const ActiveOverride* by = nullptr;
    for (const ActiveOverride& active : active_) {
      if (!active.override->is_target(node.config) || !selects(*active.override, node.path))
        continue;
      if (by != nullptr)
        throw Error(
            "Overrides '{}' and '{}' both claim node '{}'. Narrow their fqns selectors so they "
            "target disjoint nodes.",
            by->override->name, active.override->name, node.path);
      by = &active;
    }
    return by;
  }

  std::span<const ActiveOverride> active_;
  std::vector<Claim> claims_, around_;
};

// The replacement, checked against the slot; its history is on it.
std::unique_ptr<SlotBase> make(const Claim& claim) {
  const Override& override = *claim.by->override;
  std::unique_ptr<SlotBase> made;
  try {
    made = override.make(*claim.slot->get(), claim.by->arguments);
    claim.slot->check_fits(*made);
  } catch (...) {
    rethrow_with(fmt::format("Override '{}' of {} failed at '{}'", override.name, override.origin,
                             claim.path));
  }
  Slot<Config> stock;
  stock.replace(*claim.slot);
  made->get()->replaced =
      std::make_shared<const Replaced>(Replaced{override.name, claim.path, std::move(stock)});
  return made;
}

// A type with all its bases. C++ names the bases of a type nowhere but in its run-time type
// information, whose layout the common ABI of GCC and Clang fixes.
void add_lineage(const std::type_info& type, std::set<std::type_index>& lineage) {
  lineage.insert(type);
  if (const auto* single = dynamic_cast<const abi::__si_class_type_info*>(&type))
    return add_lineage(*single->__base_type, lineage);
  if (const auto* several = dynamic_cast<const abi::__vmi_class_type_info*>(&type))
    for (unsigned i = 0; i < several->__base_count; ++i)
      add_lineage(*several->__base_info[i].__base_type, lineage);
}

struct Candidate {
  std::string text;
  // Types of the lineage that are not shared with the target (0: derived from it), then how much
  // the names differ.
  std::pair<size_t, size_t> distance;
};

std::pair<size_t, size_t> type_distance(const Config& node, const Override& override) {
  std::set<std::type_index> target, own, common;
  add_lineage(*override.target_type, target);
  add_lineage(typeid(node), own);
  std::ranges::set_intersection(target, own, std::inserter(common, common.end()));
  return {target.size() - common.size(), edit_distance(type_name(node), override.target)};
}

std::vector<std::string> nearest(std::vector<Candidate> candidates) {
  std::ranges::stable_sort(candidates, {}, &Candidate::distance);
  std::vector<std::string> texts;
  for (const Candidate& candidate : candidates)
    if (texts.size() < kMaxNear && std::ranges::find(texts, candidate.text) == texts.end())
      texts.push_back(candidate.text);
  return texts;
}

// What the user probably meant: paths of the target type nearest to the globs, or types of the tree
// nearest to the target, those derived from it first, then those that share most bases with it.
std::string near_misses(Config& root, const Override& override) {
  std::vector<Candidate> paths, types;
  std::set<std::type_index> seen;
  bool has_derived = false;
  traverse(root, [&](const Node& node) {
    if (node.slot == nullptr) return true;
    if (seen.insert(typeid(node.config)).second) {
      const auto distance = type_distance(node.config, override);
      has_derived = has_derived || distance.first == 0;
      types.push_back({fmt::format("{}{} ({})", type_name(node.config),
                                   distance.first == 0 ? ", derived from it" : "", node.path),
                       distance});
    }
    if (!override.is_target(node.config)) return true;
    size_t distance = SIZE_MAX;
    for (const std::string& glob : override.options.fqns)
      distance = std::min(distance, edit_distance(glob, node.path));
    paths.push_back({node.path, {0, distance}});
    return true;
  });
  const char* exactly = override.options.exact ? "exactly " : "";
  if (paths.empty())
    return fmt::format("No node has {}type {}; the nearest types are: {}{}", exactly,
                       override.target, fmt::join(nearest(types), ", "),
                       has_derived ? "; without `exact` the derived ones match" : "");
  return fmt::format("No node of {}type {} matches fqns [{}]; the nearest are: {}", exactly,
                     override.target, fmt::join(override.options.fqns, ", "),
                     fmt::join(nearest(paths), ", "));
}

// Leaves nodes out that nothing is built from.
void drop_unused(std::vector<Claim>& claims,
                 const std::function<std::string(const Config& node)>& unused) {
  const auto why = [&](const Claim& claim) { return unused(*claim.slot->get()); };
  const auto is_used = [&](const Claim& claim) { return why(claim).empty(); };
  for (const Claim& claim : claims) {
    if (is_used(claim)) continue;
    const std::string& name = claim.by->override->name;
    const bool has_others = std::ranges::any_of(
        claims, [&](const Claim& other) { return other.by == claim.by && is_used(other); });
    if (!has_others)
      throw Error("Override '{}' replaces {}, which this model does not use: {}", name, claim.path,
                  why(claim));
    log::info("override", "Override '{}' leaves {} out, which this model does not use: {}", name,
              claim.path, why(claim));
  }
  std::erase_if(claims, [&](const Claim& claim) { return !is_used(claim); });
}

void warn_unclaimed(Config& root, std::span<const ActiveOverride> active,
                    const std::vector<Claim>& claims) {
  for (const ActiveOverride& each : active) {
    if (std::ranges::find(claims, &each, &Claim::by) != claims.end()) continue;
    const std::string& description = each.override->options.description;
    log::warning("override", "override.imports=[{}]{} produced no replacements. {}",
                 each.override->name, description.empty() ? "" : fmt::format(" ({})", description),
                 near_misses(root, *each.override));
  }
}

}  // namespace

std::vector<std::string> Applied::names() const {
  std::vector<std::string> names;
  for (const Node& node : nodes)
    if (std::ranges::find(names, node.override_name) == names.end())
      names.push_back(node.override_name);
  return names;
}

Applied apply_overrides(Config& root, std::span<const std::string> imports,
                        const OverrideRegistry& registry, const LoadModule& load,
                        const std::function<std::string(const Config& node)>& unused) {
  Applied applied;
  if (imports.empty()) return applied;
  const ResolvedImports resolved = resolve_imports(imports, registry, load);
  const std::vector<ActiveOverride>& active = resolved.active;
  std::vector<Claim> claims = Collector(active).run(root);
  if (unused) drop_unused(claims, unused);
  std::vector<std::unique_ptr<SlotBase>> made;
  for (const Claim& claim : claims) made.push_back(make(claim));
  for (const std::string& origin : resolved.without_overrides)
    log::info("override", "{} registers no override; the rest of it (kernels, ops, ...) is active",
              origin);
  warn_unclaimed(root, active, claims);
  for (size_t i = 0; i < claims.size(); ++i) {
    const Claim& claim = claims[i];
    const std::string& name = claim.by->override->name;
    const std::string& arguments = claim.by->arguments;
    const std::string before = type_name(*claim.slot->get());
    claim.slot->replace(*made[i]);
    log::info("override", "[Override] {}: {} {} -> {}{}", name, claim.path, before,
              type_name(*claim.slot->get()),
              arguments.empty() ? "" : " with " + json_members(arguments));
    applied.nodes.push_back({claim.path, name});
  }
  log::info("override", "Applied {} override(s)", applied.nodes.size());
  return applied;
}

}  // namespace rhea::config
