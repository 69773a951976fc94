#include "rhea/passes/fuse.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "rhea/base/error.h"
#include "rhea/ir/op_def.h"
#include "rhea/ops/cluster/body.h"
#include "rhea/ops/cluster/cluster.h"

namespace rhea::passes {
namespace {

constexpr size_t kMaxMembers = 64;
constexpr size_t kMaxOperands = 32;

// Nodes that run together, at the place of the last of them.
struct Group {
  std::vector<int32_t> members;  // ascending; without splat constants and broadcasts
};

class Fuser {
 public:
  explicit Fuser(const ir::Graph& graph) : graph_(graph), nodes_(graph.nodes()) {}

  ir::Graph run() {
    find_users();
    for (int32_t n = 0; n < size(); ++n) {
      if (!live_[at(n)] || !is_member(n)) continue;
      group_of_[at(n)] = static_cast<int32_t>(groups_.size());
      groups_.push_back({{n}});
      for (const ir::ValueId id : nodes_[at(n)].inputs) try_join(id.node, n);
    }
    return rebuild();
  }

 private:
  static size_t at(int32_t i) { return static_cast<size_t>(i); }
  int32_t size() const { return static_cast<int32_t>(nodes_.size()); }
  const ir::Node& node(int32_t n) const { return nodes_[at(n)]; }
  const ir::Shape& space(int32_t n) const { return node(n).outputs[0].shape; }
  int64_t bytes(int32_t n) const {
    int64_t sum = 0;
    for (const ir::Type& type : node(n).outputs) sum += ir::byte_size(type);
    return sum;
  }

  // Constants and broadcasts are copied into every cluster that reads them.
  bool is_spread(int32_t n) const {
    return (node(n).op == &ir::kConstant || node(n).op->name == "broadcast_in_dim") &&
           ops::can_cluster(graph_, node(n));
  }
  bool is_member(int32_t n) const {
    return node(n).op != &ir::kConstant && node(n).op->name != "broadcast_in_dim" &&
           ops::can_cluster(graph_, node(n)) && ir::num_elements(space(n)) > 0;
  }

  void find_users() {
    users_.resize(nodes_.size());
    group_of_.assign(nodes_.size(), -1);
    is_output_.assign(nodes_.size(), false);
    for (const auto& out : graph_.outputs()) is_output_[at(out.value.node)] = true;
    live_ = is_output_;
    for (int32_t n = size(); n-- > 0;) {
      if (node(n).op->has_side_effect) live_[at(n)] = true;
      if (!live_[at(n)]) continue;
      for (const ir::ValueId id : node(n).inputs) live_[at(id.node)] = true;
    }
    for (int32_t n = 0; n < size(); ++n) {
      if (!live_[at(n)]) continue;
      for (const ir::ValueId id : node(n).inputs) users_[at(id.node)].push_back(n);
    }
  }

  // What the members of two groups read from outside both.
  std::set<ir::ValueId> operands(const Group& a, const Group& b) const {
    std::set<ir::ValueId> result;
    const auto inside = [&](int32_t n) {
      return std::ranges::binary_search(a.members, n) || std::ranges::binary_search(b.members, n);
    };
    for (const Group* group : {&a, &b}) {
      for (const int32_t m : group->members) {
        for (const ir::ValueId id : node(m).inputs) {
          if (is_spread(id.node)) {
            for (const ir::ValueId small : node(id.node).inputs) result.insert(small);
          } else if (!inside(id.node)) {
            result.insert(id);
          }
        }
      }
    }
    return result;
  }

  // Moves the group of producer `p` to the place of `n`, into n's group, if that is right and pays.
  void try_join(int32_t p, int32_t n) {
    if (group_of_[at(p)] < 0 || group_of_[at(p)] == group_of_[at(n)] || space(p) != space(n))
      return;
    Group& from = groups_[at(group_of_[at(p)])];
    Group& to = groups_[at(group_of_[at(n)])];
    if (from.members.size() + to.members.size() > kMaxMembers) return;
    int64_t saved = 0;
    for (const int32_t m : from.members) {
      bool needed_outside = is_output_[at(m)];
      for (const int32_t user : users_[at(m)]) {
        if (group_of_[at(user)] >= 0 &&
            (group_of_[at(user)] == group_of_[at(m)] || group_of_[at(user)] == group_of_[at(n)]))
          continue;
        if (user < n) return;  // needs the value before n runs
        needed_outside = true;
      }
      if (!needed_outside) saved += bytes(m);
    }
    const auto read = operands(from, to);
    if (read.size() > kMaxOperands) return;
    if (kept_longer(from, n) > saved) return;

    Group joined;
    std::ranges::merge(from.members, to.members, std::back_inserter(joined.members));
    for (const int32_t m : from.members) group_of_[at(m)] = group_of_[at(n)];
    from.members.clear();
    to = std::move(joined);
  }

  // Bytes that would live until `n` because the group runs there and not at its own place.
  int64_t kept_longer(const Group& group, int32_t n) const {
    int64_t sum = 0;
    bool only_views_between = true;
    for (int32_t k = group.members.back() + 1; k < n; ++k) {
      if (group_of_[at(k)] != group_of_[at(n)] && !is_spread(k)) only_views_between = false;
      if (!only_views_between) break;
    }
    if (only_views_between) return 0;
    for (const ir::ValueId id : operands(group, {})) {
      if (node(id.node).op == &ir::kInput) continue;
      const auto& users = users_[at(id.node)];
      if (users.empty() || users.back() >= n || is_output_[at(id.node)]) continue;
      sum += ir::byte_size(graph_.type(id));
    }
    return sum;
  }

  // A node alone is a cluster only if it reads splats or broadcasts, which then take no memory.
  bool becomes_cluster(const Group& group) const {
    if (group.members.size() > 1) return true;
    return std::ranges::any_of(node(group.members[0]).inputs,
                               [&](ir::ValueId id) { return is_spread(id.node); });
  }

  ir::Value moved(ir::ValueId id) const { return map_[at(id.node)][at(id.output)]; }

  ir::Graph rebuild() {
    map_.resize(nodes_.size());
    for (int32_t n = 0; n < size(); ++n) {
      const int32_t g = group_of_[at(n)];
      if (g >= 0 && becomes_cluster(groups_[at(g)])) {
        if (groups_[at(g)].members.back() == n) emit_cluster(groups_[at(g)]);
        continue;
      }
      if (!live_[at(n)] || (is_spread(n) && !needed_alone(n))) continue;
      std::vector<ir::Value> inputs;
      for (const ir::ValueId id : node(n).inputs) inputs.push_back(moved(id));
      map_[at(n)] = to_.add_like(graph_, node(n), inputs);
    }
    for (const auto& out : graph_.outputs()) to_.output(out.name, moved(out.value), out.donates);
    return std::move(to_);
  }

  // Is the value of a constant or broadcast read by anything but clusters?
  bool needed_alone(int32_t n) const {
    if (is_output_[at(n)]) return true;
    return std::ranges::any_of(users_[at(n)], [&](int32_t user) {
      const int32_t group = group_of_[at(user)];
      return group < 0 || !becomes_cluster(groups_[at(group)]);
    });
  }

  void emit_cluster(const Group& group) {
    std::vector<ir::Value> operands;
    ir::Graph body;
    std::map<ir::ValueId, ir::Value> inside;
    const auto operand = [&](ir::ValueId id) {
      const auto [entry, added] = inside.try_emplace(id);
      if (added) {
        entry->second = body.input(fmt::format("{}", operands.size()), graph_.type(id));
        operands.push_back(moved(id));
      }
      return entry->second;
    };
    // Operands are numbered first, so they are all declared before the first statement.
    for (const int32_t m : group.members) {
      for (const ir::ValueId id : node(m).inputs) {
        if (node(id.node).op == &ir::kConstant) continue;
        if (is_spread(id.node)) {
          operand(node(id.node).inputs[0]);
        } else if (!std::ranges::binary_search(group.members, id.node)) {
          operand(id);
        }
      }
    }
    const auto value = [&](ir::ValueId id) {
      if (const auto found = inside.find(id); found != inside.end()) return found->second;
      std::vector<ir::Value> in;
      if (node(id.node).op != &ir::kConstant) in.push_back(inside.at(node(id.node).inputs[0]));
      return inside[id] = body.add_like(graph_, node(id.node), in)[0];
    };
    std::vector<int32_t> results;
    for (const int32_t m : group.members) {
      std::vector<ir::Value> in;
      for (const ir::ValueId id : node(m).inputs) in.push_back(value(id));
      inside[{m, 0}] = body.add_like(graph_, node(m), in)[0];
      const bool outside = is_output_[at(m)] || std::ranges::any_of(users_[at(m)], [&](int32_t u) {
                             return !std::ranges::binary_search(group.members, u);
                           });
      if (outside) {
        body.output(fmt::format("{}", m), inside[{m, 0}]);
        results.push_back(m);
      }
    }
    const auto values = to_.add_as(graph_, node(group.members.back()), ops::kCluster, operands,
                                   {{"body", ops::cluster_body(body)}});
    for (size_t i = 0; i < results.size(); ++i) map_[at(results[i])] = {values[i]};
  }

  const ir::Graph& graph_;
  const std::vector<ir::Node>& nodes_;
  std::vector<std::vector<int32_t>> users_;  // by node, ascending
  std::vector<bool> is_output_, live_;
  std::vector<int32_t> group_of_;  // -1: not a member
  std::vector<Group> groups_;
  std::vector<std::vector<ir::Value>> map_;
  ir::Graph to_;
};

}  // namespace

ir::Graph fuse(const ir::Graph& graph) { return Fuser(graph).run(); }

}  // namespace rhea::passes
