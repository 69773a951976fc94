// Names are literals of ours, so the lines need no escaping.
#include "rhea/components/metrics/structured_log.h"

#include <fmt/core.h>

#include <chrono>
#include <cmath>
#include <exception>

#include "rhea/base/error.h"
#include "rhea/base/output_file.h"

namespace rhea::metrics {

StructuredLog::StructuredLog(const std::filesystem::path& file, int rank) : rank_(rank) {
  if (file.empty()) return;
  std::error_code error;
  std::filesystem::create_directories(file.parent_path(), error);
  if (error)
    throw Error("cannot make the folder {}: {}; choose another --dump_folder",
                file.parent_path().string(), error.message());
  file_ = std::fopen(file.c_str(), "ae");
  if (file_ == nullptr) throw_file_error(file, "open");
}

StructuredLog::~StructuredLog() {
  if (file_ != nullptr) std::fclose(file_);
}

void StructuredLog::set_step(int64_t step) {
  step_ = step;
  if (first_step_ < 0) first_step_ = step;
}

void StructuredLog::scalar(std::string_view name, double value) { event(name, "", value); }

void StructuredLog::event(std::string_view name, std::string_view suffix, double value) {
  if (file_ == nullptr) return;
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const int64_t micros = std::chrono::duration_cast<std::chrono::microseconds>(now).count();
  const std::string number = std::isfinite(value) ? fmt::format("{}", value) : "null";
  fmt::print(file_,
             "{{\"rank\": {}, \"source\": \"training\", \"step\": {}, \"relative_step\": {}, "
             "\"log_type_name\": \"{}{}\", "
             "\"value\": {}, \"step_tags\": [], \"time_us\": {}, \"seq_id\": {}}}\n",
             rank_, step_, first_step_ < 0 ? 0 : step_ - first_step_, name, suffix, number, micros,
             sequence_++);
  std::fflush(file_);
}

StructuredLog::Span::Span(StructuredLog& log, std::string_view name)
    : log_(log), name_(name), exceptions_(std::uncaught_exceptions()) {
  log_.event(name_, "_start", 0);
  if (log_.listener_) log_.listener_(name_);
}

StructuredLog::Span::~Span() {
  if (log_.listener_) log_.listener_({});
  log_.event(name_, std::uncaught_exceptions() > exceptions_ ? "_error" : "_end", 0);
}

}  // namespace rhea::metrics
