#include "rhea/base/text.h"

#include <fmt/core.h>

#include <algorithm>
#include <vector>

namespace rhea {

std::string with_commas(int64_t value) {
  const std::string digits = fmt::format("{}", value);
  std::string text;
  for (size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && digits[i - 1] != '-' && (digits.size() - i) % 3 == 0) text += ',';
    text += digits[i];
  }
  return text;
}

std::string lower_case(std::string_view text) {
  std::string made(text);
  for (char& c : made)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return made;
}

size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> before(b.size() + 1), previous(b.size() + 1), current(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) previous[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    current[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      current[j] =
          std::min({previous[j] + 1, current[j - 1] + 1, previous[j - 1] + (a[i - 1] != b[j - 1])});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        current[j] = std::min(current[j], before[j - 2] + 1);
    }
    std::swap(before, previous);
    std::swap(previous, current);
  }
  return previous[b.size()];
}

std::string printable(std::string_view message) {
  constexpr size_t kLongest = 12'000, kHead = 8'000, kTail = 2'000;  // bytes of a line
  std::string text;
  for (size_t begin = 0; begin < message.size();) {
    const size_t end = std::min(message.find('\n', begin), message.size());
    for (size_t i = begin; i < end; ++i) {
      if (i == begin + kHead && end - begin > kLongest) {
        const size_t left_out = end - begin - kHead - kTail;
        text += fmt::format(" [... {} bytes ...] ", left_out);
        i += left_out;
      }
      const auto c = static_cast<unsigned char>(message[i]);
      if (c < 0x20 || c == 0x7f)
        text += fmt::format("\\x{:02x}", c);
      else
        text += message[i];
    }
    if (end < message.size()) text += '\n';
    begin = end + 1;
  }
  return text;
}

}  // namespace rhea
