// What `rhea check` prints.
#pragma once
#include <iosfwd>
#include <string>
#include <string_view>
#include <vector>

#include "rhea/check/compare.h"

namespace rhea::check {

class Report {
 public:
  explicit Report(std::ostream& out) : out_(out) {}

  // Begins a subject: a node, an op, a row.
  void subject(const std::string& text);
  // `setting`: "float32, 2 rows of 64 (the run)". Questions that are timed show every tensor,
  // others the worst one.
  void answer(std::string_view setting, const Question& question, const Answer& answer);
  void note(std::string_view text);
  void fault(std::string_view text);
  // A part of the subject that nothing ran, and why: no fault that was seen, but no pass either.
  void not_checked(std::string_view text);
  // The subject has nothing that could be compared, which is no reason to fail.
  void nothing_to_compare(std::string_view why);
  // The verdict of the subject, and at the end that of everything: false where a subject has a
  // fault or was not checked.
  void end_subject();
  bool finish();

 private:
  std::ostream& out_;
  std::string subject_;
  // Of the subject. A pass without the f64 reference is one with a reservation.
  size_t faults_ = 0, answers_ = 0, without_reference_ = 0, too_many_flops_ = 0;
  bool not_checked_ = false, comparable_ = true;
  size_t passed_ = 0, without_counterpart_ = 0;
  std::vector<std::string> reserved_;
  std::vector<std::string> failed_, unchecked_;
};

}  // namespace rhea::check
