// Small helpers for text that people read and write.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace rhea {

// 1234567 -> "1,234,567"
std::string with_commas(int64_t value);

// ASCII letters in lower case.
std::string lower_case(std::string_view text);

// Edits (insert, remove, change, swap of neighbours) from one word to the other: how likely one is
// a typo of the other.
size_t edit_distance(std::string_view a, std::string_view b);

// A message as it may go to a terminal: control characters other than line ends become \xNN, and
// the middle of a line longer than any should be is left out.
std::string printable(std::string_view message);

}  // namespace rhea
