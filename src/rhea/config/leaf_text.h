// Leaf values as text: how the command line writes them, how help and problems show them.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "rhea/config/visitor.h"

namespace rhea::config {

// "8", "true", "None", "a,b,c"; what parse_leaf reads back to the same value.
std::string leaf_text(const Leaf& leaf);
// "int", "float?", "list", ...: the type column of help. `?` = may be None.
std::string leaf_type(const Leaf& leaf);
// Whether the option is a flag: set by its name alone.
bool is_flag(const Leaf& leaf);
// Stores what `text` says; returns what was expected when it does not fit the type, and then stores
// nothing.
std::optional<std::string> parse_leaf(const Leaf& leaf, std::string_view text);
// Same for an option without a place: only the check.
std::optional<std::string> check_text(OptionType type, std::string_view text);

std::vector<std::string> split(std::string_view text, char separator);
// "a, b, c"
std::string join(const std::vector<std::string_view>& words);
std::string double_text(double value);

}  // namespace rhea::config
