#include "rhea/config/leaf_text.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>

namespace rhea::config {
namespace {

template <class... Cases>
struct Overloaded : Cases... {
  using Cases::operator()...;
};
template <class... Cases>
Overloaded(Cases...) -> Overloaded<Cases...>;

// Digits may be grouped by single underscores, as in 1_000.
std::optional<std::string> without_underscores(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '_') {
      out += text[i];
      continue;
    }
    const auto digit = [&](size_t at) {
      return at < text.size() && text[at] >= '0' && text[at] <= '9';
    };
    if (i == 0 || !digit(i - 1) || !digit(i + 1)) return std::nullopt;
  }
  return out;
}

template <class T>
bool parse_whole(const std::string& text, T& value) {
  const char* begin = text.data();
  const char* end = begin + text.size();
  if (end - begin > 1 && *begin == '+' && begin[1] != '-') ++begin;
  const auto [rest, error] = std::from_chars(begin, end, value);
  return error == std::errc() && rest == end && begin != end;
}

std::optional<std::string> parse(std::string_view text, int64_t& value) {
  const auto digits = without_underscores(text);
  int64_t parsed = 0;
  if (!digits || !parse_whole(*digits, parsed)) return "expected an integer";
  value = parsed;
  return std::nullopt;
}

std::optional<std::string> parse(std::string_view text, double& value) {
  const auto digits = without_underscores(text);
  double parsed = 0;
  if (!digits || !parse_whole(*digits, parsed) || !std::isfinite(parsed))
    return "expected a finite number";
  value = parsed;
  return std::nullopt;
}

std::optional<std::string> parse(std::string_view text, std::string& value) {
  value = text;
  return std::nullopt;
}

std::optional<std::string> parse(std::string_view text, bool& value) {
  if (text != "true" && text != "false") return "expected true or false";
  value = text == "true";
  return std::nullopt;
}

template <class T>
std::optional<std::string> parse(std::string_view text, std::vector<T>& value) {
  std::vector<T> items;
  if (!text.empty()) {
    for (const std::string& word : split(text, ',')) {
      T item{};
      if (auto expected = parse(word, item))
        return fmt::format("{} for each item of the comma list, got '{}'", *expected, word);
      items.push_back(std::move(item));
    }
  }
  value = std::move(items);
  return std::nullopt;
}

std::optional<std::string> parse(std::string_view text,
                                 std::vector<std::vector<std::string>>& value) {
  value.clear();
  if (text.empty()) return std::nullopt;
  for (const std::string& part : split(text, ';')) value.push_back(split(part, ','));
  return std::nullopt;
}

template <class T>
std::optional<std::string> parse(std::string_view text, std::optional<T>& value) {
  if (text == "None") {
    value.reset();
    return std::nullopt;
  }
  T parsed{};
  if (auto expected = parse(text, parsed)) return *expected + " or None";
  value = std::move(parsed);
  return std::nullopt;
}

std::string text_of(bool value) { return value ? "true" : "false"; }
std::string text_of(int64_t value) { return std::to_string(value); }
std::string text_of(double value) { return double_text(value); }
std::string text_of(const std::string& value) { return value; }

template <class T>
std::string text_of(const std::vector<T>& value) {
  constexpr char separator = std::is_same_v<T, std::vector<std::string>> ? ';' : ',';
  std::string out;
  for (size_t i = 0; i < value.size(); ++i) {
    if (i > 0) out += separator;
    out += text_of(value[i]);
  }
  return out;
}

template <class T>
std::string text_of(const std::optional<T>& value) {
  return value ? text_of(*value) : "None";
}

}  // namespace

std::string double_text(double value) { return fmt::format("{}", value); }

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  size_t begin = 0;
  for (size_t i = 0; i <= text.size(); ++i) {
    if (i < text.size() && text[i] != separator) continue;
    parts.emplace_back(text.substr(begin, i - begin));
    begin = i + 1;
  }
  return parts;
}

std::string join(const std::vector<std::string_view>& words) {
  return fmt::format("{}", fmt::join(words, ", "));
}

std::string leaf_text(const Leaf& leaf) {
  return std::visit([](const auto* value) { return text_of(*value); }, leaf);
}

std::string leaf_type(const Leaf& leaf) {
  return std::visit(
      Overloaded{
          [](const bool*) { return "flag"; }, [](const int64_t*) { return "int"; },
          [](const double*) { return "float"; }, [](const std::string*) { return "text"; },
          [](const std::optional<bool>*) { return "flag?"; },
          [](const std::optional<int64_t>*) { return "int?"; },
          [](const std::optional<double>*) { return "float?"; },
          [](const std::optional<std::string>*) { return "text?"; },
          [](const std::vector<int64_t>*) { return "ints"; },
          [](const std::vector<double>*) { return "floats"; },
          [](const std::vector<std::string>*) { return "list"; },
          [](const std::optional<std::vector<double>>*) { return "floats?"; },
          [](const std::optional<std::vector<std::vector<std::string>>>*) { return "lists?"; }},
      leaf);
}

bool is_flag(const Leaf& leaf) {
  return std::holds_alternative<bool*>(leaf) || std::holds_alternative<std::optional<bool>*>(leaf);
}

std::optional<std::string> parse_leaf(const Leaf& leaf, std::string_view text) {
  return std::visit([&](auto* value) { return parse(text, *value); }, leaf);
}

std::optional<std::string> check_text(OptionType type, std::string_view text) {
  switch (type) {
    case OptionType::integer: {
      int64_t value = 0;
      return parse(text, value);
    }
    case OptionType::number: {
      double value = 0;
      return parse(text, value);
    }
    default:
      return std::nullopt;
  }
}

}  // namespace rhea::config
