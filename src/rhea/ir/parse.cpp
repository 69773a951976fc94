// Recursive descent over the lines of a graph.
#include "rhea/ir/parse.h"

#include <fmt/core.h>

#include <charconv>
#include <cmath>
#include <map>
#include <optional>

#include "rhea/base/error.h"

namespace rhea::ir {
namespace {

constexpr int64_t kMaxDim = int64_t{1} << 40;
constexpr int64_t kMaxElements = int64_t{1} << 57;  // times 8 bytes
constexpr size_t kMaxRank = 32;

class Parser {
 public:
  Parser(std::string_view text, const FindOp& find_op) : text_(text), find_op_(find_op) {}

  Graph run() {
    for (skip_blank_lines(); at_ < text_.size(); skip_blank_lines()) {
      if (peek() == '%') {
        node();
      } else {
        output();
      }
      end_of_line();
    }
    graph_.set_context(0, -1);
    return std::move(graph_);
  }

 private:
  // ---- characters

  char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }

  [[noreturn]] void fail(const std::string& message) const { fail_at(at_, message); }
  [[noreturn]] void fail_at(size_t place, const std::string& message) const {
    size_t line = 1, column = 1;
    for (size_t i = 0; i < place && i < text_.size(); ++i) {
      column = text_[i] == '\n' ? 1 : column + 1;
      line += text_[i] == '\n';
    }
    throw Error("graph text, line {}, column {}: {}", line, column, message);
  }

  void skip_spaces() {
    while (peek() == ' ' || peek() == '\t' || peek() == '\r') ++at_;
  }
  void skip_blank_lines() {
    while (at_ < text_.size()) {
      skip_spaces();
      if (peek() != '\n') return;
      ++at_;
    }
  }
  bool accept(std::string_view token) {
    skip_spaces();
    if (text_.substr(at_, token.size()) != token) return false;
    at_ += token.size();
    return true;
  }
  void expect(std::string_view token) {
    if (!accept(token)) fail(fmt::format("expected '{}'", token));
  }
  void end_of_line() {
    skip_spaces();
    if (at_ < text_.size() && peek() != '\n') fail("expected the end of the line");
  }

  // ---- words

  static bool is_name(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  }
  std::string_view name() {
    skip_spaces();
    const size_t begin = at_;
    while (is_name(peek())) ++at_;
    if (begin == at_) fail("expected a name");
    return text_.substr(begin, at_ - begin);
  }

  int64_t integer() {
    skip_spaces();
    int64_t value = 0;
    const char* begin = text_.data() + at_;
    const auto [end, error] = std::from_chars(begin, text_.data() + text_.size(), value);
    if (error == std::errc::result_out_of_range) fail("the integer does not fit 64 bits");
    if (error != std::errc()) fail("expected an integer");
    at_ += static_cast<size_t>(end - begin);
    return value;
  }

  std::vector<int64_t> list() {
    const size_t begin = at_;
    std::vector<int64_t> values;
    expect("[");
    if (accept("]")) return values;
    do {
      values.push_back(integer());
      if (values.back() > kMaxDim || values.back() < -kMaxDim)
        fail(fmt::format("{} is beyond the largest dim {}", values.back(), kMaxDim));
    } while (accept(","));
    expect("]");
    if (values.size() > kMaxRank)
      fail_at(begin, fmt::format("{} entries, at most {}", values.size(), kMaxRank));
    return values;
  }

  std::string string() {
    skip_spaces();
    if (peek() != '"') fail("expected a name in double quotes");
    ++at_;
    std::string value;
    while (peek() != '"') {
      if (at_ >= text_.size() || peek() == '\n') fail("the quoted name does not end on its line");
      if (peek() != '\\') {
        value += text_[at_++];
        continue;
      }
      ++at_;
      if (peek() == '"' || peek() == '\\') {
        value += text_[at_++];
      } else if (peek() == 'x') {
        unsigned byte = 0;
        const char* digits = text_.data() + at_ + 1;
        if (text_.size() - at_ < 3) fail("\\x needs two hexadecimal digits");
        const auto [end, error] = std::from_chars(digits, digits + 2, byte, 16);
        if (error != std::errc() || end != digits + 2) fail("\\x needs two hexadecimal digits");
        value += static_cast<char>(byte);
        at_ += 3;
      } else {
        fail("unknown escape in a quoted name");
      }
    }
    ++at_;
    return value;
  }

  // A scope or a source line: a word without spaces, '-' for none, or quoted.
  std::string context_word() {
    skip_spaces();
    if (peek() == '"') return string();
    const size_t begin = at_;
    while (static_cast<unsigned char>(peek()) > ' ') ++at_;
    if (begin == at_) fail("expected a scope or a source line, or '-'");
    const std::string_view word = text_.substr(begin, at_ - begin);
    return word == "-" ? "" : std::string(word);
  }

  // ---- parts of a node

  DType dtype(std::string_view word, size_t place) const {
    for (int i = 0; i < kNumDTypes; ++i) {
      if (dtype_name(static_cast<DType>(i)) == word) return static_cast<DType>(i);
    }
    fail_at(place, fmt::format("'{}' is no element type", word));
  }

  Attr number() {
    const size_t begin = at_;
    const char* first = text_.data() + begin;
    const char* last = text_.data() + text_.size();
    int64_t whole = 0;
    const auto [end, error] = std::from_chars(first, last, whole);
    const char next = end < last ? *end : '\0';
    const bool fraction = next == '.' || next == 'e' || next == 'i' || next == 'n';
    if (error == std::errc() && !fraction) {
      at_ += static_cast<size_t>(end - first);
      return whole;
    }
    if (error == std::errc::result_out_of_range && !fraction)
      fail("the integer does not fit 64 bits");
    double value = 0;
    const auto [real_end, real_error] = std::from_chars(first, last, value);
    if (real_error != std::errc()) fail("expected a number that fits its type");
    at_ += static_cast<size_t>(real_end - first);
    return value;
  }

  Attr attribute() {
    skip_spaces();
    const char c = peek();
    if (c == '"') return string();
    if (c == '[') return list();
    if (c == '-' || (c >= '0' && c <= '9')) return number();
    const size_t begin = at_;
    const std::string_view word = name();
    if (word == "nan") return std::nan("");
    if (word == "inf") return HUGE_VAL;
    return dtype(word, begin);
  }

  Attrs attributes() {
    Attrs attrs;
    if (!accept("{")) return attrs;
    do {
      const size_t place = at_;
      const std::string key(name());
      expect("=");
      if (attrs.has(key)) fail_at(place, fmt::format("attribute '{}' is given twice", key));
      Attr value = attribute();
      if (key == "shape" && std::holds_alternative<std::vector<int64_t>>(value))
        check_size(std::get<std::vector<int64_t>>(value), place);
      attrs.set(key, std::move(value));
    } while (accept(","));
    expect("}");
    return attrs;
  }

  void check_size(const Shape& shape, size_t place) const {
    int64_t count = 1;
    for (const int64_t dim : shape) {
      if (dim < 0 || dim > kMaxDim) fail_at(place, fmt::format("dim {} is out of range", dim));
      if (dim != 0 && count > kMaxElements / dim)
        fail_at(place, fmt::format("{} has too many elements", to_string(shape)));
      count *= dim == 0 ? 1 : dim;
    }
  }

  Type type() {
    skip_spaces();
    const size_t place = at_;
    Type result;
    result.dtype = dtype(name(), place);
    result.shape = list();
    check_size(result.shape, place);
    if (accept("{panels_nk}")) result.layout = Layout::panels_nk;
    if (accept("{panels_kn}")) result.layout = Layout::panels_kn;
    return result;
  }

  // "%3" or "%3.1" on the left of a node: the number of the node and of the result.
  std::pair<int64_t, std::optional<int64_t>> result_name() {
    expect("%");
    const int64_t node = integer();
    if (!accept(".")) return {node, std::nullopt};
    return {node, integer()};
  }

  Value operand() {
    skip_spaces();
    const size_t place = at_;
    const auto [node, output] = result_name();
    const auto found = nodes_.find(node);
    if (found == nodes_.end()) fail_at(place, fmt::format("%{} is not defined above", node));
    const auto count = static_cast<int64_t>(found->second.size());
    const int64_t i = output.value_or(0);
    if (output.has_value() == (count == 1) || i < 0 || i >= count) {
      fail_at(place, fmt::format("%{} has {} result{}", node, count,
                                 count == 1 ? "" : "s, named %N.0, %N.1, ..."));
    }
    return found->second[static_cast<size_t>(i)];
  }

  void node() {
    const size_t begin = at_;
    int64_t number = 0, count = 0;
    bool several = false;
    do {
      const auto [node, output] = result_name();
      several = output.has_value();
      if ((count > 0 && (node != number || !several)) || output.value_or(0) != count)
        fail_at(begin, "results of a node are named %N, or %N.0, %N.1, ...");
      number = node;
      ++count;
    } while (accept(","));
    if (several && count == 1) fail_at(begin, "a single result is named %N");
    if (nodes_.contains(number)) fail_at(begin, fmt::format("%{} is defined twice", number));
    expect("=");
    skip_spaces();
    const size_t op_place = at_;
    const std::string op_name(name());
    const OpDef* op = op_name == kInput.name      ? &kInput
                      : op_name == kConstant.name ? &kConstant
                                                  : find_op_(op_name);
    if (op == nullptr) fail_at(op_place, fmt::format("unknown op '{}'", op_name));
    std::vector<Value> operands;
    expect("(");
    if (!accept(")")) {
      do operands.push_back(operand());
      while (accept(","));
      expect(")");
    }
    Attrs attrs = attributes();
    expect(":");
    const size_t types_place = at_;
    std::vector<Type> types;
    do types.push_back(type());
    while (accept(","));
    int32_t scope = 0, location = 0;
    if (accept("#")) {
      scope = graph_.intern_scope(context_word());
      location = graph_.intern_location(context_word());
    }
    graph_.set_context(scope, location);
    std::vector<Value> results = add(*op, op_place, operands, std::move(attrs), types);
    if (static_cast<int64_t>(results.size()) != count) {
      fail_at(begin,
              fmt::format("'{}' has {} results, {} are named", op_name, results.size(), count));
    }
    for (size_t i = 0; i < results.size() || i < types.size(); ++i) {
      if (i >= results.size() || i >= types.size() || results[i].type() != types[i]) {
        fail_at(types_place,
                fmt::format("result {} is {} by inference, but {} is written", i,
                            i < results.size() ? to_string(results[i].type()) : "absent",
                            i < types.size() ? to_string(types[i]) : "nothing"));
      }
      check_size(types[i].shape, types_place);
    }
    nodes_.emplace(number, std::move(results));
  }

  std::vector<Value> add(const OpDef& op, size_t place, const std::vector<Value>& operands,
                         Attrs attrs, const std::vector<Type>& types) {
    try {
      if (&op != &kInput) return graph_.add(op, operands, std::move(attrs));
      // An input is more than a node: the graph keeps its name.
      const Attr* input_name = attrs.find("name");
      if (input_name == nullptr || !std::holds_alternative<std::string>(*input_name))
        throw Error("input needs the attribute name=\"...\"");
      if (!operands.empty()) throw Error("input takes no operands, got {}", operands.size());
      const Value value = graph_.input(std::get<std::string>(*input_name), types.front());
      if (graph_.nodes().back().attrs != attrs)
        throw Error("the attributes of an input must repeat its type {}", to_string(value.type()));
      return {value};
    } catch (const Error& error) {
      fail_at(place, error.what());
    }
  }

  void output() {
    expect("output");
    const size_t place = at_;
    const std::string output_name = string();
    if (graph_.find_output(output_name) != nullptr)
      fail_at(place, fmt::format("output '{}' is given twice", output_name));
    expect("=");
    const Value value = operand();
    graph_.output(output_name, value, accept("donates") ? string() : "");
  }

  std::string_view text_;
  const FindOp& find_op_;
  size_t at_ = 0;
  Graph graph_;
  std::map<int64_t, std::vector<Value>> nodes_;
};

}  // namespace

Graph parse(std::string_view text, const FindOp& find_op) { return Parser(text, find_op).run(); }

}  // namespace rhea::ir
