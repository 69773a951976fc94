// The text of a report.
#include "rhea/check/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <ostream>

namespace rhea::check {
namespace {

constexpr size_t kMostTensors = 12;  // of one answer

// The number by which a tensor is judged.
double error_of(const TensorAnswer& tensor) {
  return tensor.other_error.value_or(tensor.difference.max_rel);
}

std::string line_of(const TensorAnswer& tensor) {
  std::string line =
      fmt::format("{:<34} {:<20} max abs {:<9.3g} max rel {:<9.3g}", tensor.name,
                  ir::to_string(tensor.type), tensor.difference.max_abs, tensor.difference.max_rel);
  if (tensor.other_error)
    line +=
        fmt::format(" from f64 {:.2g} (stock {:.2g})", *tensor.other_error, *tensor.stock_error);
  if (!tensor.fault.empty()) line += "  FAULT: " + tensor.fault;
  return line;
}

}  // namespace

void Report::subject(const std::string& text) {
  subject_ = text;
  faults_ = answers_ = without_reference_ = too_many_flops_ = 0;
  not_checked_ = false;
  comparable_ = true;
  out_ << text << '\n';
}

void Report::answer(std::string_view setting, const Question& question, const Answer& answer) {
  const double allowed = tolerance(question);
  const bool exact = question.exact && question.dtype == DType::f32;
  ++answers_;
  out_ << fmt::format("  {}, {}\n", setting,
                      exact ? "movement of data or rotation: not a bit may differ"
                            : fmt::format("tolerance {:g}", allowed));
  if (!answer.has_reference) {
    ++without_reference_;
    if (answer.too_many_flops) ++too_many_flops_;
    out_ << "    WITHOUT THE F64 REFERENCE, compared with stock alone: " << answer.no_reference
         << '\n';
  }
  std::vector<TensorAnswer> tensors = answer.tensors;
  std::ranges::stable_sort(tensors, [](const TensorAnswer& a, const TensorAnswer& b) {
    return error_of(a) > error_of(b);
  });
  std::ranges::stable_partition(tensors, [](const TensorAnswer& t) { return !t.fault.empty(); });
  const size_t shown = std::min(question.timed ? kMostTensors : size_t{1}, tensors.size());
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (i < shown || !tensors[i].fault.empty()) out_ << "    " << line_of(tensors[i]) << '\n';
    if (!tensors[i].fault.empty()) ++faults_;
  }
  if (shown < tensors.size())
    out_ << fmt::format("    and {} more that are closer\n", tensors.size() - shown);
  for (const std::string& text : answer.faults) fault(text);
  if (const std::string ulps = answer.ulps.text(); !ulps.empty())
    out_ << "    units in the last place from stock: " << ulps << '\n';
  if (!question.timed) return;
  out_ << fmt::format("    time {:.4g} ms, stock {:.4g} ms\n", 1e3 * answer.other_seconds,
                      1e3 * answer.stock_seconds);
}

void Report::note(std::string_view text) { out_ << "  " << text << '\n'; }

void Report::fault(std::string_view text) {
  ++faults_;
  out_ << "    FAULT: " << text << '\n';
}

void Report::not_checked(std::string_view text) {
  not_checked_ = true;
  out_ << "    NOT CHECKED: " << text << '\n';
}

void Report::nothing_to_compare(std::string_view why) {
  comparable_ = false;
  note(why);
}

void Report::end_subject() {
  if (faults_ > 0) {
    failed_.push_back(subject_);
    out_ << "  FAILED\n";
  } else if (not_checked_) {
    unchecked_.push_back(subject_);
    out_ << "  NOT CHECKED\n";
  } else if (!comparable_) {
    ++without_counterpart_;
    out_ << "  nothing to compare\n";
  } else {
    ++passed_;
    if (without_reference_ == 0) {
      out_ << "  ok\n";
      return;
    }
    const std::string hint =
        too_many_flops_ == 0 ? "" : fmt::format(" ({} raises the bound)", kReferenceOption);
    reserved_.push_back(
        fmt::format("{} of {} comparisons{}: {}", without_reference_, answers_, hint, subject_));
    out_ << fmt::format("  ok, but {} of {} comparisons without the f64 reference\n",
                        without_reference_, answers_);
  }
}

bool Report::finish() {
  const bool good = failed_.empty() && unchecked_.empty();
  if (good && passed_ > 0)
    out_ << fmt::format("rhea check: {} checked, all within their tolerances\n", passed_);
  if (!reserved_.empty()) {
    out_ << fmt::format("rhea check: {} passed without the f64 reference, against stock alone:\n",
                        reserved_.size());
    for (const std::string& text : reserved_) out_ << "  " << text << '\n';
  }
  if (without_counterpart_ > 0)
    out_ << fmt::format("rhea check: {} have nothing to be compared with\n", without_counterpart_);
  const auto list = [&](const std::vector<std::string>& subjects, std::string_view verdict) {
    if (subjects.empty()) return;
    out_ << fmt::format("rhea check: {} of {} {}\n", subjects.size(),
                        passed_ + failed_.size() + unchecked_.size(), verdict);
    for (const std::string& text : subjects) out_ << "  " << text << '\n';
  };
  list(failed_, "FAILED");
  list(unchecked_, "NOT CHECKED");
  return good;
}

}  // namespace rhea::check
