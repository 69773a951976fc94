// The contract of the op table, as a library: what every row promises, checked on its samples. The
// rows that come with Rhea are checked by the tests, rows and kernels from outside by `rhea check`.
#pragma once
#include <fmt/format.h>

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "rhea/ir/op_def.h"

namespace rhea::ops {

// What a check found. Each failure is one line that begins with its place: "sample half: kernel
// mine: result 0 element 3: expected 1, got 2".
class Findings {
 public:
  // While it lives, failures and notes are of this place.
  class Place {
   public:
    Place(Findings& findings, std::string text);
    ~Place() { findings_.places_.pop_back(); }
    Place(const Place&) = delete;
    Place& operator=(const Place&) = delete;

   private:
    Findings& findings_;
  };

  template <class... Args>
  void fail(fmt::format_string<Args...> format, Args&&... args) {
    failures_.push_back(placed(fmt::format(format, std::forward<Args>(args)...)));
  }
  // Fails unless `good`, which it returns.
  template <class... Args>
  bool expect(bool good, fmt::format_string<Args...> format, Args&&... args) {
    if (!good) fail(format, std::forward<Args>(args)...);
    return good;
  }
  // Not wrong, but worth knowing.
  template <class... Args>
  void note(fmt::format_string<Args...> format, Args&&... args) {
    notes_.push_back(placed(fmt::format(format, std::forward<Args>(args)...)));
  }
  // The check has no meaning for the row.
  void skip(std::string reason) { skipped_ = std::move(reason); }

  const std::vector<std::string>& failures() const { return failures_; }
  const std::vector<std::string>& notes() const { return notes_; }
  const std::string& skipped() const { return skipped_; }

 private:
  std::string placed(std::string text) const;

  std::vector<std::string> places_, failures_, notes_;
  std::string skipped_;
};

struct ContractCheck {
  std::string_view name;
  void (*run)(const ir::OpDef& op, Findings& findings);
};
// Complete; inferred types, sharding letters and cost hold; decomposition and reference agree;
// every kernel of every instruction set (added ones too) agrees with the f64 definition however its
// grid is cut, in place and with wide rows; NaN and infinities spread as defined; gradients agree
// with central differences; halves along a factor make the whole; text reads back.
// Rows from outside may leave out the sharding rule (they stay whole then) and a kernel for every
// CPU where they have a decomposition or reference.
std::span<const ContractCheck> contract_checks();

}  // namespace rhea::ops
