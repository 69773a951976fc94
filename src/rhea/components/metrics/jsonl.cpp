// One object per line.
#include "rhea/components/metrics/jsonl.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "rhea/base/mapped_file.h"
#include "rhea/base/output_file.h"

namespace rhea::metrics {
namespace {

nlohmann::ordered_json number(double value) {
  // Whole numbers without a fraction, so that counts read as counts.
  if (value == std::floor(value) && std::fabs(value) < 9e15) return static_cast<int64_t>(value);
  return value;
}

}  // namespace

JsonlWriter::JsonlWriter(const std::filesystem::path& path) : path_(path) {
  std::filesystem::create_directories(path.parent_path());
  if (std::filesystem::exists(path)) {
    const MappedFile old(path);
    const size_t end = old.text().rfind('\n');
    const size_t whole = end == std::string_view::npos ? 0 : end + 1;
    if (whole != old.text().size()) std::filesystem::resize_file(path, whole);
  }
  file_ = std::fopen(path.c_str(), "abe");
  if (file_ == nullptr) throw_file_error(path, "open");
}

JsonlWriter::~JsonlWriter() { std::fclose(file_); }

void JsonlWriter::write(int64_t step, double unix_time, std::span<const Metric> metrics) {
  nlohmann::ordered_json line = {{"step", step}, {"time", unix_time}};
  for (const Metric& metric : metrics) line[metric.key] = number(metric.value);
  const std::string text = line.dump() + "\n";
  if (std::fwrite(text.data(), 1, text.size(), file_) != text.size() || std::fflush(file_) != 0)
    throw_file_error(path_, "write");
}

}  // namespace rhea::metrics
