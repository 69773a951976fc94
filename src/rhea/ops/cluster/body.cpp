#include "rhea/ops/cluster/body.h"

#include <fmt/format.h>

#include <cstdlib>

#include "rhea/base/error.h"
#include "rhea/ops/ops.h"

namespace rhea::ops {
namespace {

class Parser {
 public:
  explicit Parser(std::string_view text) : rest_(text) {}

  bool done() const { return rest_.empty(); }
  bool skip(std::string_view token) {
    if (!rest_.starts_with(token)) return false;
    rest_.remove_prefix(token.size());
    return true;
  }
  void expect(std::string_view token) {
    if (!skip(token)) fail(fmt::format("expected '{}'", token));
  }
  // Everything up to one of the stop characters.
  std::string word(std::string_view stops) {
    const auto end = std::min(rest_.find_first_of(stops), rest_.size());
    std::string text(rest_.substr(0, end));
    rest_.remove_prefix(end);
    return text;
  }
  int64_t integer() {
    const std::string text = word(",;()[]{}>");
    char* end = nullptr;
    const int64_t value = std::strtoll(text.c_str(), &end, 10);
    if (text.empty() || *end != '\0') fail(fmt::format("'{}' is no integer", text));
    return value;
  }
  [[noreturn]] void fail(const std::string& what) const {
    throw Error("cluster body: {} before '{}'", what, rest_.substr(0, 40));
  }

  ir::Attr attr(ir::AttrKind kind) {
    switch (kind) {
      case ir::AttrKind::i64:
        return integer();
      case ir::AttrKind::f64: {
        const std::string text = word(",}");
        char* end = nullptr;
        const double value = std::strtod(text.c_str(), &end);
        if (text.empty() || *end != '\0') fail(fmt::format("'{}' is no number", text));
        return value;
      }
      case ir::AttrKind::str: {
        expect("\"");
        std::string text = word("\"");
        expect("\"");
        return text;
      }
      case ir::AttrKind::list: {
        std::vector<int64_t> list;
        expect("[");
        while (!skip("]")) {
          if (!list.empty()) expect(",");
          list.push_back(integer());
        }
        return list;
      }
      default:
        return parse_dtype(word(",}"));
    }
  }

 private:
  std::string_view rest_;
};

const ir::AttrSpec& attr_spec(const ir::OpDef& op, const std::string& name, const Parser& parser) {
  for (const ir::AttrSpec& spec : op.attrs) {
    if (spec.name == name) return spec;
  }
  parser.fail(fmt::format("{} has no attribute '{}'", op.name, name));
}

}  // namespace

std::string cluster_body(const ir::Graph& graph) {
  std::vector<size_t> numbers(graph.nodes().size());
  for (size_t i = 0; i < graph.inputs().size(); ++i)
    numbers[static_cast<size_t>(graph.inputs()[i].value.node)] = i;
  size_t next = graph.inputs().size();
  const auto number = [&](ir::ValueId id) {
    return numbers[static_cast<size_t>(id.node)] + static_cast<size_t>(id.output);
  };
  std::string text;
  for (size_t n = 0; n < graph.nodes().size(); ++n) {
    const ir::Node& node = graph.nodes()[n];
    if (node.op == &ir::kInput) continue;
    numbers[n] = next;
    next += node.outputs.size();
    text += node.op->name;
    text += '(';
    for (size_t i = 0; i < node.inputs.size(); ++i)
      text += fmt::format("{}{}", i == 0 ? "" : ",", number(node.inputs[i]));
    text += ')';
    if (!node.attrs.empty()) {
      const char* before = "{";
      for (const auto& [name, value] : node.attrs) {
        text += fmt::format("{}{}={}", before, name, ir::to_string(value));
        before = ",";
      }
      text += '}';
    }
    text += ';';
  }
  text += "->";
  for (size_t i = 0; i < graph.outputs().size(); ++i)
    text += fmt::format("{}{}", i == 0 ? "" : ",", number(graph.outputs()[i].value));
  return text;
}

std::vector<ir::Value> inline_cluster(ir::Graph& graph, std::span<const ir::Value> operands,
                                      std::string_view body) {
  std::vector<ir::Value> values(operands.begin(), operands.end());
  Parser parser(body);
  const auto value = [&]() -> ir::Value {
    const int64_t number = parser.integer();
    if (number < 0 || number >= static_cast<int64_t>(values.size()))
      parser.fail(fmt::format("value {} is not defined", number));
    return values[static_cast<size_t>(number)];
  };
  while (!parser.skip("->")) {
    const std::string name = parser.word("(;");
    const ir::OpDef* op = find_op(name);
    if (op == nullptr) parser.fail(fmt::format("there is no op '{}'", name));
    parser.expect("(");
    std::vector<ir::Value> inputs;
    while (!parser.skip(")")) {
      if (!inputs.empty()) parser.expect(",");
      inputs.push_back(value());
    }
    ir::Attrs attrs;
    if (parser.skip("{")) {
      while (!parser.skip("}")) {
        if (!attrs.empty()) parser.expect(",");
        const std::string attr = parser.word("=");
        parser.expect("=");
        attrs.set(attr, parser.attr(attr_spec(*op, attr, parser).kind));
      }
    }
    parser.expect(";");
    for (const ir::Value& result : graph.add(*op, inputs, std::move(attrs)))
      values.push_back(result);
  }
  std::vector<ir::Value> results;
  while (!parser.done()) {
    if (!results.empty()) parser.expect(",");
    results.push_back(value());
  }
  return results;
}

std::vector<int32_t> body_nodes(const ir::Graph& body) {
  std::vector<int32_t> nodes;
  for (size_t n = 0; n < body.nodes().size(); ++n) {
    if (body.nodes()[n].op != &ir::kInput) nodes.push_back(static_cast<int32_t>(n));
  }
  return nodes;
}

}  // namespace rhea::ops
