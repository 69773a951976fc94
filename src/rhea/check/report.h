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
  // The verdict of the subject, and at the end that of everything.
  void end_subject();
  bool finish();

 private:
  std::ostream& out_;
  std::string subject_;
  size_t faults_ = 0;  // of the subject
  size_t subjects_ = 0;
  std::vector<std::string> failed_;
};

}  // namespace rhea::check
