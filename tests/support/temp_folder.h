// A folder of one test, removed at its end.
#pragma once
#include <fmt/core.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <string>

namespace rhea::support {

class TempFolder {
 public:
  // `label` tells several folders of one test apart.
  explicit TempFolder(const std::string& label = "0") {
    const auto* info = testing::UnitTest::GetInstance()->current_test_info();
    std::string name =
        fmt::format("rhea_{}_{}_{}_{}", info->test_suite_name(), info->name(), ::getpid(), label);
    for (char& c : name)
      if (c == '/') c = '_';
    path_ = std::filesystem::temp_directory_path() / name;
    std::filesystem::remove_all(path_);
    std::filesystem::create_directories(path_);
  }
  ~TempFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace rhea::support
