// Tables of what there is of one kind (optimizers, data sets, ...): the in-tree rows, and those
// that a user's file adds by the same call. Public: outside code reads them, to build on a row that
// is there.
#pragma once
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "rhea/base/error.h"

namespace rhea {

// Where the in-tree rows come from; of a user's row it is the file.
inline constexpr std::string_view kInTree = "rhea";

// "a, b, c"
std::string joined(const std::vector<std::string>& words);

// Throws Error where a table of `kind` must not take a row: its name is empty, it has a `fault`, or
// `taken_by` has the name.
void check_new_row(std::string_view kind, std::string_view name, std::string_view origin,
                   std::string_view fault, const std::string* taken_by);

// Rows of a type with a member `name`, in the order in which they were added. Rows are added at the
// start of the program, by one thread; afterwards any thread may read. A row stays where it is.
template <class Row>
class NamedTable {
 public:
  // `kind` stands in messages: "optimizer". `fault` says why a row cannot be used, "has no update";
  // empty: it can.
  using Fault = std::string_view (*)(const Row&);
  // A table without rows.
  explicit NamedTable(
      std::string_view kind, Fault fault = [](const Row&) { return std::string_view(); })
      : kind_(kind), fault_(fault) {}

  // Throws Error that names the fault, or both origins where the name is taken.
  const Row& add(Row row, std::string_view origin) {
    const Entry* old = entry(row.name);
    check_new_row(kind_, row.name, origin, fault_(row), old != nullptr ? &old->origin : nullptr);
    rows_.push_back(std::make_unique<Entry>(Entry{std::move(row), std::string(origin)}));
    return rows_.back()->row;
  }
  // Null when there is none of that name.
  const Row* find(std::string_view name) const {
    const Entry* found = entry(name);
    return found != nullptr ? &found->row : nullptr;
  }
  // Throws Error that lists the names there are.
  const Row& at(std::string_view name) const {
    if (const Row* found = find(name)) return *found;
    throw Error("{} '{}' is unknown; known: {}", kind_, name, joined(names()));
  }
  // In the order of adding.
  std::vector<std::string> names() const {
    std::vector<std::string> all;
    for (const auto& entry : rows_) all.emplace_back(entry->row.name);
    return all;
  }
  // One line for each row that did not come with the program: "NAME (FILE)".
  std::vector<std::string> outside_names() const {
    std::vector<std::string> all;
    for (const auto& entry : rows_)
      if (entry->origin != kInTree)
        all.push_back(std::string(entry->row.name) + " (" + entry->origin + ")");
    return all;
  }
  // Calls visit(row) for every row, in the order of adding.
  template <class F>
  void for_each(F&& visit) const {
    for (const auto& entry : rows_) visit(entry->row);
  }
  // What messages call a row.
  const std::string& kind() const { return kind_; }

 private:
  struct Entry {
    Row row;
    std::string origin;
  };
  const Entry* entry(std::string_view name) const {
    for (const auto& entry : rows_)
      if (entry->row.name == name) return entry.get();
    return nullptr;
  }

  std::string kind_;
  Fault fault_;
  std::vector<std::unique_ptr<Entry>> rows_;
};

}  // namespace rhea
