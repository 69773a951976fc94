// Look-up, types and ranges of fields.
#include "rhea/models/hf/fields.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "rhea/base/json.h"
#include "rhea/models/hf/published_config.h"

namespace rhea::models::hf {
namespace {

using nlohmann::json;

// Known to have no effect on what training computes here, whatever the model type: names, ids,
// generation, and what other programs keep in the file.
constexpr std::string_view kNoEffect[] = {"architectures",
                                          "model_type",
                                          "transformers_version",
                                          "torch_dtype",
                                          "dtype",
                                          "use_cache",
                                          "bos_token_id",
                                          "eos_token_id",
                                          "eod_token_id",
                                          "sep_token_id",
                                          "decoder_start_token_id",
                                          "initializer_range",
                                          "pretraining_tp",
                                          "_name_or_path",
                                          "auto_map",
                                          "is_llama_config",
                                          "_attn_implementation_autoset",
                                          "_attn_implementation",
                                          "attn_implementation",
                                          "_flash_attn_2_enabled",
                                          "_commit_hash",
                                          "id2label",
                                          "label2id",
                                          "num_labels",
                                          "output_attentions",
                                          "output_hidden_states",
                                          "return_dict",
                                          "tokenizer_class",
                                          "keys_to_ignore_at_inference",
                                          "problem_type",
                                          "task_specific_params",
                                          "cache_implementation",
                                          "transformers.js_config",
                                          "prefix",
                                          "n_ctx",
                                          "gradient_checkpointing",
                                          "model_max_length",
                                          "max_sequence_length",
                                          "temperature",
                                          "top_k",
                                          "top_p",
                                          "max_length",
                                          "unsloth_version",
                                          "unsloth_fixed"};

// Beyond it a number is damage; json would also convert its unsigned numbers unchecked.
constexpr double kLargestExact = 9007199254740992.0;

bool is_null(const json& object, std::string_view name) {
  const auto at = object.find(name);
  return at == object.end() || at->is_null();
}

}  // namespace

std::vector<std::string_view> names_of(std::span<const Spelling> spellings,
                                       std::string_view field) {
  const auto at = std::find_if(spellings.begin(), spellings.end(),
                               [&](const Spelling& one) { return one.field == field; });
  return at == spellings.end() ? std::vector{field} : at->names;
}

Fields::Fields(const json& object, const json& defaults, std::string origin, Notes& notes,
               std::span<const Spelling> spellings)
    : object_(&object),
      defaults_(&defaults),
      origin_(std::move(origin)),
      notes_(&notes),
      spellings_(spellings) {
  if (!object.is_object()) throw Error("{}: expected a JSON object", origin_);
}

void Fields::warn(std::string text) { notes_->warnings.push_back(std::move(text)); }

bool Fields::given(std::string_view name) const { return !is_null(*object_, name); }

void Fields::note_default(std::string_view name, const json& value) {
  if (noted_.emplace(name).second)
    notes_->defaulted.push_back(fmt::format("{} = {}", name, value.dump()));
}

const json* Fields::find(std::string_view name) {
  used_.emplace(name);
  if (const auto at = object_->find(name); at != object_->end())
    return at->is_null() ? nullptr : &*at;
  const auto at = defaults_->find(name);
  if (at == defaults_->end() || at->is_null()) return nullptr;
  note_default(name, *at);
  return &*at;
}

const json& Fields::required(std::string_view name) {
  const json* value = find(name);
  if (value == nullptr) throw Error("{}: {} is missing", origin_, name);
  return *value;
}

int64_t Fields::as_integer(std::string_view name, const json& value, int64_t largest,
                           int64_t lowest) const {
  const auto low = static_cast<double>(lowest);
  const double size = value.is_number() ? value.get<double>() : low - 1;
  // Some files write whole numbers as 64.0.
  if (!(size >= low && size <= static_cast<double>(largest)) || size > kLargestExact ||
      size != static_cast<double>(static_cast<int64_t>(size)))
    throw Error("{}: {} must be a {} of at most {}, got {}", origin_, name,
                lowest == 1 ? std::string("positive integer")
                            : fmt::format("integer of at least {}", lowest),
                largest, value.dump());
  return static_cast<int64_t>(size);
}

double Fields::as_number(std::string_view name, const json& value) const {
  if (!value.is_number())
    throw Error("{}: {} must be a number, got {}", origin_, name, value.dump());
  return value.get<double>();
}

int64_t Fields::integer_from(std::string_view name, int64_t lowest) {
  return as_integer(name, required(name), kMostPositions, lowest);
}

int64_t Fields::integer(std::string_view name, int64_t largest) {
  return as_integer(name, required(name), largest);
}

std::optional<int64_t> Fields::maybe_integer(std::string_view name, int64_t largest,
                                             int64_t lowest) {
  const json* value = find(name);
  if (value == nullptr) return {};
  return as_integer(name, *value, largest, lowest);
}

std::optional<int64_t> Fields::maybe_spelled(std::string_view field, int64_t largest,
                                             int64_t lowest) {
  const auto names = names_of(spellings_, field);
  std::optional<int64_t> found;
  std::string_view found_as;
  for (const auto name : names) {
    if (!given(name)) {
      ignore({name});
      continue;
    }
    const int64_t value = as_integer(name, required(name), largest, lowest);
    if (found && *found != value)
      throw error(fmt::format("{} is {} and {} is {}: two spellings of one number", found_as,
                              *found, name, value));
    found = value;
    found_as = name;
  }
  return found ? found : maybe_integer(names.front(), largest, lowest);
}

int64_t Fields::spelled(std::string_view field, int64_t largest, int64_t lowest) {
  const auto value = maybe_spelled(field, largest, lowest);
  if (!value) throw error(fmt::format("{} is missing", name_of(field)));
  return *value;
}

double Fields::number(std::string_view name) { return as_number(name, required(name)); }

std::optional<double> Fields::maybe_number(std::string_view name) {
  const json* value = find(name);
  if (value == nullptr) return {};
  return as_number(name, *value);
}

double Fields::number_or(std::string_view name, double fallback) {
  return maybe_number(name).value_or(fallback);
}

void Fields::check_number(std::string_view name) {
  used_.emplace(name);
  if (given(name)) as_number(name, *object_->find(name));
}

bool Fields::flag(std::string_view name) {
  const json& value = required(name);
  if (!value.is_boolean())
    throw Error("{}: {} must be true or false, got {}", origin_, name, value.dump());
  return value.get<bool>();
}

bool Fields::flag_or(std::string_view name, bool fallback) {
  return find(name) == nullptr ? fallback : flag(name);
}

std::string Fields::text(std::string_view name) {
  const json& value = required(name);
  if (!value.is_string())
    throw Error("{}: {} must be a string, got {}", origin_, name, value.dump());
  return value.get<std::string>();
}

std::optional<std::string> Fields::maybe_text(std::string_view name) {
  if (find(name) == nullptr) return {};
  return text(name);
}

std::vector<double> Fields::numbers(std::string_view name) {
  const json* list = find(name);
  if (list == nullptr) return {};
  if (!list->is_array()) throw Error("{}: {} must be a list of numbers", origin_, name);
  std::vector<double> values;
  for (const json& item : *list) {
    if (!item.is_number())
      throw Error("{}: {} must be a list of numbers, it holds {}", origin_, name, item.dump());
    values.push_back(item.get<double>());
  }
  return values;
}

std::vector<int64_t> Fields::integers(std::string_view name) {
  std::vector<int64_t> values;
  for (const double value : numbers(name)) {
    if (!(std::abs(value) <= static_cast<double>(kMostPositions)) ||
        value != static_cast<double>(static_cast<int64_t>(value)))
      throw Error("{}: {} must be a list of integers, it holds {}", origin_, name, value);
    values.push_back(static_cast<int64_t>(value));
  }
  return values;
}

std::vector<std::string> Fields::texts(std::string_view name) {
  const json* list = find(name);
  if (list == nullptr) return {};
  if (!list->is_array()) throw Error("{}: {} must be a list of strings", origin_, name);
  std::vector<std::string> values;
  for (const json& item : *list) {
    if (!item.is_string())
      throw Error("{}: {} must be a list of strings, it holds {}", origin_, name, item.dump());
    values.push_back(item.get<std::string>());
  }
  return values;
}

void Fields::only(std::string_view name, std::string_view harmless) {
  const json* value = find(name);
  if (value != nullptr && *value != parse_json(harmless))
    throw Error("{}: {} = {} is not supported; supported: {}", origin_, name, value->dump(),
                harmless);
}

void Fields::ignore(std::initializer_list<std::string_view> names) {
  for (const auto name : names) used_.emplace(name);
}

void Fields::dropout(std::initializer_list<std::string_view> names) {
  for (const auto name : names) {
    used_.emplace(name);
    if (is_null(*object_, name)) continue;
    if (const double share = as_number(name, (*object_)[name]); share != 0)
      warn(fmt::format("{} = {} has no effect: dropout is not applied", name, share));
  }
}

Fields Fields::section(std::string_view name) {
  static const json kEmpty = json::object();
  used_.emplace(name);
  const json& from = given(name) ? *object_ : *defaults_;
  if (!given(name) && !is_null(from, name)) note_default(name, *from.find(name));
  return {is_null(from, name) ? kEmpty : *from.find(name), kEmpty,
          fmt::format("{}: {}", origin_, name), *notes_};
}

bool Fields::is_empty(std::string_view name) const {
  const auto at = object_->find(name);
  return at != object_->end() && at->is_structured() && at->empty();
}

std::vector<std::string> Fields::unread() const {
  std::vector<std::string> found;
  for (const auto& [name, value] : object_->items()) {
    const bool harmless =
        std::find(std::begin(kNoEffect), std::end(kNoEffect), name) != std::end(kNoEffect);
    if (!harmless && !used_.contains(name))
      found.push_back(fmt::format("{} = {}", name, value.dump()));
  }
  return found;
}

void Fields::refuse_unknown() const {
  if (const auto unknown = unread(); !unknown.empty())
    throw Error("{}: fields that are not understood and may change the computation: {}", origin_,
                fmt::join(unknown, ", "));
}

}  // namespace rhea::models::hf
