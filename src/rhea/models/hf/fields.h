// Reads the fields of one config.json. Every field of a file is used, known to have no effect on
// training, or an error that names it.
#pragma once
#include <cstdint>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "rhea/base/error.h"

namespace rhea::models::hf {

struct Notes;

// Beyond them a number is damage, not a model.
inline constexpr int64_t kLargestSize = 1 << 20;
inline constexpr int64_t kLargestVocabulary = 1 << 22;
inline constexpr int64_t kMostLayers = 10'000;
inline constexpr int64_t kMostPositions = 2'147'483'647;

// What a family's files call a field of Llama's; the first name is the one of the class defaults.
struct Spelling {
  std::string_view field;
  std::vector<std::string_view> names;
};

// The names of Llama's field; itself where the family has no other.
std::vector<std::string_view> names_of(std::span<const Spelling> spellings, std::string_view field);

// A field is looked up in the file, then in the class defaults of its model type. A null in the
// file counts as given: the maybe_ functions return nothing for it, the others treat it as missing.
class Fields {
 public:
  Fields(const nlohmann::json& object, const nlohmann::json& defaults, std::string origin,
         Notes& notes, std::span<const Spelling> spellings = {});

  // In the file and not null.
  bool given(std::string_view name) const;
  int64_t integer(std::string_view name, int64_t largest = kLargestSize);
  // One that may also be as low as `lowest`: counts that may be 0, -1 for the last one.
  int64_t integer_from(std::string_view name, int64_t lowest);
  std::optional<int64_t> maybe_integer(std::string_view name, int64_t largest = kLargestSize,
                                       int64_t lowest = 1);
  // The same under the names that the family has for Llama's field: whichever the file gives, else
  // the class default. Throws Error where two of them disagree.
  std::optional<int64_t> maybe_spelled(std::string_view field, int64_t largest = kLargestSize,
                                       int64_t lowest = 1);
  int64_t spelled(std::string_view field, int64_t largest = kLargestSize, int64_t lowest = 1);
  // The family's first name of Llama's field.
  std::string_view name_of(std::string_view field) const {
    return hf::names_of(spellings_, field)[0];
  }
  double number(std::string_view name);
  std::optional<double> maybe_number(std::string_view name);
  double number_or(std::string_view name, double fallback);
  // Known, and a number where the file gives one; its class default is not taken.
  void check_number(std::string_view name);
  bool flag(std::string_view name);
  bool flag_or(std::string_view name, bool fallback);
  std::string text(std::string_view name);
  std::optional<std::string> maybe_text(std::string_view name);
  std::vector<double> numbers(std::string_view name);  // empty when absent or null
  std::vector<int64_t> integers(std::string_view name);
  std::vector<std::string> texts(std::string_view name);

  // The value must be absent, null or what the text says in JSON: "false", "0".
  void only(std::string_view name, std::string_view harmless);
  void only(std::initializer_list<std::pair<std::string_view, std::string_view>> values) {
    for (const auto& [name, harmless] : values) only(name, harmless);
  }
  // No effect on what training computes here.
  void ignore(std::initializer_list<std::string_view> names);
  // Probabilities of dropout, which is not applied: a warning where one is not 0.
  void dropout(std::initializer_list<std::string_view> names);

  // The object under that name: of the file, else (also for null) of the class defaults, else an
  // empty one.
  Fields section(std::string_view name);
  // An object or a list of the file without entries.
  bool is_empty(std::string_view name) const;
  // "name = value" of the fields that nobody asked for.
  std::vector<std::string> unread() const;
  // Throws Error listing them.
  void refuse_unknown() const;

  Error error(const std::string& what) const { return Error("{}: {}", origin_, what); }
  const std::string& origin() const { return origin_; }
  void warn(std::string text);

 private:
  void note_default(std::string_view name, const nlohmann::json& value);
  // Null: absent or null.
  const nlohmann::json* find(std::string_view name);
  const nlohmann::json& required(std::string_view name);
  int64_t as_integer(std::string_view name, const nlohmann::json& value, int64_t largest,
                     int64_t lowest = 1) const;
  double as_number(std::string_view name, const nlohmann::json& value) const;

  const nlohmann::json* object_;
  const nlohmann::json* defaults_;
  std::string origin_;
  Notes* notes_;
  std::span<const Spelling> spellings_;
  std::set<std::string, std::less<>> used_;
  std::set<std::string, std::less<>> noted_;  // in notes_->defaulted
};

}  // namespace rhea::models::hf
