#include "rhea/config/duration.h"

#include <charconv>

#include "rhea/base/error.h"

namespace rhea::config {

int64_t parse_duration(std::string_view text) {
  const auto refuse = [&]() -> int64_t {
    throw Error(
        "'{}' is no duration: write it as 3h30m, 900s or 1d (units d, h, m, s; at most 100 years)",
        text);
  };
  constexpr std::string_view units = "dhms";
  constexpr int64_t seconds[] = {86400, 3600, 60, 1};
  // A century. Clocks count nanoseconds in 64 bits and end after three.
  constexpr int64_t kLongest = int64_t{36525} * 86400;
  int64_t total = 0;
  size_t next_unit = 0;
  std::string_view rest = text;
  while (!rest.empty()) {
    int64_t count = 0;
    const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), count);
    if (error != std::errc() || count < 0 || end == rest.data() + rest.size()) return refuse();
    const size_t unit = units.find(*end, next_unit);
    if (unit == std::string_view::npos || count > kLongest) return refuse();
    total += count * seconds[unit];
    next_unit = unit + 1;
    rest.remove_prefix(static_cast<size_t>(end - rest.data()) + 1);
  }
  return total > 0 && total <= kLongest ? total : refuse();
}

}  // namespace rhea::config
