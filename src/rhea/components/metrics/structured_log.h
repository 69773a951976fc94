// structured_logs/rank_r.jsonl: when each phase of the run began and ended, for tools.
#pragma once
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <string_view>
#include <utility>

namespace rhea::metrics {

// One object per event: rank, source, step, relative_step, log_type_name, value, step_tags,
// time_us, seq_id.
class StructuredLog {
 public:
  // An empty path writes nothing.
  StructuredLog(const std::filesystem::path& file, int rank);
  ~StructuredLog();
  StructuredLog(const StructuredLog&) = delete;
  StructuredLog& operator=(const StructuredLog&) = delete;

  void set_step(int64_t step);
  void scalar(std::string_view name, double value);
  // Called at the begin (with the name) and at the end (with an empty one) of every span, whether
  // or not a file is written.
  void set_listener(std::function<void(std::string_view name)> listener) {
    listener_ = std::move(listener);
  }

  // `name`_start when made, `name`_end when destroyed, `name`_error when an exception passes.
  class Span {
   public:
    Span(StructuredLog& log, std::string_view name);
    ~Span();
    Span(const Span&) = delete;
    Span& operator=(const Span&) = delete;

   private:
    StructuredLog& log_;
    std::string_view name_;
    int exceptions_;
  };

 private:
  void event(std::string_view name, std::string_view suffix, double value);

  std::function<void(std::string_view)> listener_;
  std::FILE* file_ = nullptr;
  int rank_;
  int64_t step_ = 0, first_step_ = -1, sequence_ = 0;
};

}  // namespace rhea::metrics
