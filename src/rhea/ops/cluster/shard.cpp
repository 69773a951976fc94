#include "rhea/ops/cluster/shard.h"

#include <map>
#include <numeric>
#include <vector>

#include "rhea/base/error.h"

namespace rhea::ops {
namespace {

class Factors {
 public:
  explicit Factors(const ir::Graph& body) : body_(body) {
    for (const ir::Node& node : body.nodes()) {
      first_.emplace_back();
      for (const ir::Type& type : node.outputs) {
        first_.back().push_back(parent_.size());
        parent_.resize(parent_.size() + type.shape.size());
      }
    }
    std::iota(parent_.begin(), parent_.end(), size_t{0});
    whole_.assign(parent_.size(), false);
    one_.assign(parent_.size(), false);
    for (size_t n = 0; n < body.nodes().size(); ++n) {
      if (!body.nodes()[n].inputs.empty()) tie(n);
    }
  }

  std::string text() {
    std::string result;
    const auto list = [&](const auto& values) {
      for (size_t i = 0; i < values.size(); ++i) {
        if (i > 0) result += ',';
        for (size_t dim = 0; dim < body_.type(values[i].value).shape.size(); ++dim)
          result += letter(place(values[i].value, dim));
      }
    };
    list(body_.inputs());
    result += "->";
    list(body_.outputs());
    return result;
  }

 private:
  size_t place(ir::ValueId id, size_t dim) const {
    return first_[static_cast<size_t>(id.node)][static_cast<size_t>(id.output)] + dim;
  }
  size_t root(size_t i) const {
    while (parent_[i] != i) i = parent_[i];
    return i;
  }

  // Dims of node n's operands and results with the same letter are one factor.
  void tie(size_t n) {
    const ir::Node& node = body_.nodes()[n];
    std::vector<ir::ValueId> values = node.inputs;
    std::vector<ir::Type> in;
    for (const ir::ValueId id : node.inputs) in.push_back(body_.type(id));
    for (size_t j = 0; j < node.outputs.size(); ++j)
      values.push_back({static_cast<int32_t>(n), static_cast<int32_t>(j)});
    std::map<char, size_t> factor;
    size_t value = 0, dim = 0;
    bool whole = false;
    for (const char c : node.op->shard({node.op, in, node.outputs, &node.attrs})) {
      if (c == '!') {
        whole = true;
      } else if (c == ',' || c == '>') {
        ++value;
        dim = 0;
      } else if (c != '-') {
        const size_t at = root(place(values.at(value), dim++));
        if (c == '1') {
          one_[at] = true;
        } else {
          const size_t to = root(factor.try_emplace(c, at).first->second);
          whole_[to] = whole_[to] || whole_[at] || whole;
          parent_[at] = to;
        }
        whole = false;
      }
    }
    // What a sum leaves out is a partial sum only as long as nothing in the body reads it.
    for (const auto& [c, at] : factor) {
      if (is_summed(node, n, at)) whole_[root(at)] = true;
    }
  }

  // Does a result of node n that another node reads lack this factor?
  bool is_summed(const ir::Node& node, size_t n, size_t factor) const {
    for (const ir::Node& reader : body_.nodes()) {
      for (const ir::ValueId id : reader.inputs) {
        if (id.node != static_cast<int32_t>(n)) continue;
        bool has = false;
        const auto& shape = node.outputs[static_cast<size_t>(id.output)].shape;
        for (size_t dim = 0; dim < shape.size(); ++dim) has |= root(place(id, dim)) == root(factor);
        if (!has) return true;
      }
    }
    return false;
  }

  std::string letter(size_t at) {
    const size_t factor = root(at);
    if (one_[factor]) return "1";
    const auto [entry, added] = letters_.try_emplace(factor, letters_.size());
    RHEA_CHECK(entry->second < 52, "a cluster has more than 52 independent dims");
    const auto index = static_cast<char>(entry->second % 26);
    return std::string(whole_[factor] ? "!" : "") +
           static_cast<char>((entry->second < 26 ? 'a' : 'A') + index);
  }

  const ir::Graph& body_;
  std::vector<std::vector<size_t>> first_;  // by node and result: number of its first dim
  std::vector<size_t> parent_;              // of a factor: itself
  std::vector<bool> whole_, one_;           // of factors: may not be split; is stretched
  std::map<size_t, size_t> letters_;
};

}  // namespace

std::string shard_of_body(const ir::Graph& body) { return Factors(body).text(); }

}  // namespace rhea::ops
