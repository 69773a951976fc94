// Attributes of a node: constants that belong to the operation, never data of the step.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "rhea/base/dtype.h"

namespace rhea::ir {

// Flags are integers 0 and 1.
using Attr = std::variant<int64_t, double, std::string, std::vector<int64_t>, DType>;

// Small map, sorted by name, so that equal attributes compare and print equal.
class Attrs {
 public:
  Attrs() = default;
  // As {{"eps", 1e-5}, {"axis", int64_t{0}}}.
  Attrs(std::initializer_list<std::pair<std::string, Attr>> items);

  // Adds the attribute, or replaces its value.
  void set(std::string_view name, Attr value);
  const Attr* find(std::string_view name) const;  // nullptr when absent
  // Whether there is an attribute of that name.
  bool has(std::string_view name) const { return find(name) != nullptr; }

  // Typed access; an absent name or another type is a failed internal check (infer has verified the
  // row's AttrSpecs).
  int64_t i64(std::string_view name) const;
  double f64(std::string_view name) const;
  const std::string& str(std::string_view name) const;
  const std::vector<int64_t>& list(std::string_view name) const;
  DType dtype(std::string_view name) const;
  bool flag(std::string_view name) const { return i64(name) != 0; }

  // The (name, value) pairs, by name.
  auto begin() const { return items_.begin(); }
  auto end() const { return items_.end(); }
  // Whether there are none.
  bool empty() const { return items_.empty(); }
  bool operator==(const Attrs&) const = default;

 private:
  std::vector<std::pair<std::string, Attr>> items_;
};

// Text that reads back to the same attribute.
std::string to_string(const Attr& attr);
// In double quotes, with \" \\ and \xNN for what must not stand there.
std::string quoted(std::string_view text);

}  // namespace rhea::ir
