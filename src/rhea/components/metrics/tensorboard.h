// TensorBoard event files, written without TensorFlow: TFRecord frames around hand-encoded protobuf
// messages.
#pragma once
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace rhea::metrics {

// `{dump}/{save_tb_folder}/YYYYmmdd-HHMM[/rank_r]` in local time; `rank` is given when every rank
// writes.
std::filesystem::path tensorboard_folder(const std::filesystem::path& dump_folder,
                                         const std::string& save_tb_folder, int64_t unix_seconds,
                                         std::optional<int> rank);

// One event file in `folder`, named as TensorBoard looks for it. Errors of the disk throw Error
// naming the file.
class EventWriter {
 public:
  // `unix_time` stamps the file name and the version record.
  EventWriter(const std::filesystem::path& folder, double unix_time);
  ~EventWriter();
  EventWriter(const EventWriter&) = delete;
  EventWriter& operator=(const EventWriter&) = delete;

  void scalar(std::string_view tag, double value, int64_t step, double unix_time);
  // Hands everything to the system; what was flushed survives a kill.
  void flush();
  const std::filesystem::path& path() const { return path_; }

 private:
  void record(std::string_view message);

  std::filesystem::path path_;
  std::FILE* file_ = nullptr;
};

// One scalar of an event file.
struct ScalarEvent {
  std::string tag;
  float value = 0;
  int64_t step = 0;
  double unix_time = 0;
};
// Reads a file back. Throws Error on a damaged record; a torn last record is dropped.
std::vector<ScalarEvent> read_events(const std::filesystem::path& path);

}  // namespace rhea::metrics
