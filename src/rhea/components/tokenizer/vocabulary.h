// The entries of a model: spelling to id and back.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "rhea/components/tokenizer/json_fields.h"

namespace rhea::tokenizer {

// Looks std::string keys up by std::string_view.
struct TextHash {
  using is_transparent = void;
  size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
};

class Vocabulary {
 public:
  Vocabulary() = default;
  // From an object of spelling to id. Throws Error for an id that two entries have.
  explicit Vocabulary(const JsonField& field);

  // The entry behind the last one. A spelling that is there already now means the new id.
  void append(std::string token);

  // -1: no such entry.
  int32_t find(std::string_view token) const {
    const auto found = ids_.find(token);
    return found == ids_.end() ? -1 : found->second;
  }
  // As find, for an entry that `field` names: throws Error where there is none.
  int32_t require(const JsonField& field, std::string_view token) const;
  bool contains(int32_t id) const {
    return id >= 0 && static_cast<size_t>(id) < tokens_.size() &&
           (!tokens_[static_cast<size_t>(id)].empty() || find("") == id);
  }
  // Spelling in the file; empty where the id is not used.
  const std::string& token(int32_t id) const { return tokens_[static_cast<size_t>(id)]; }
  // Largest id + 1.
  int32_t end_id() const { return static_cast<int32_t>(tokens_.size()); }
  size_t num_entries() const { return ids_.size(); }

  // Calls f(spelling, id) for each entry, in no order.
  template <class F>
  void for_each(F&& f) const {
    for (const auto& [token, id] : ids_) f(token, id);
  }

 private:
  std::vector<std::string> tokens_;
  std::unordered_map<std::string, int32_t, TextHash, std::equal_to<>> ids_;
};

}  // namespace rhea::tokenizer
