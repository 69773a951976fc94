// Files and tokenizers for the tests of data sets.
#pragma once
#include <gtest/gtest.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "rhea/base/error.h"
#include "rhea/components/tokenizer/tokenizer.h"

namespace rhea::data {

// A folder that goes away with the test.
class TestFolder {
 public:
  TestFolder() {
    const auto* info = testing::UnitTest::GetInstance()->current_test_info();
    path_ = std::filesystem::path(testing::TempDir()) /
            (std::string("rhea_data_") + info->test_suite_name() + "_" + info->name() + "_" +
             std::to_string(getpid()));
    std::filesystem::remove_all(path_);
    std::filesystem::create_directories(path_);
  }
  ~TestFolder() { std::filesystem::remove_all(path_); }
  TestFolder(const TestFolder&) = delete;
  TestFolder& operator=(const TestFolder&) = delete;

  std::string write(const std::string& name, std::string_view content) const {
    std::ofstream(path_ / name, std::ios::binary) << content;
    return (path_ / name).string();
  }
  std::string write_gzip(const std::string& name, std::string_view content) const {
    const std::string path = (path_ / name).string();
    gzFile file = gzopen(path.c_str(), "wb");
    gzwrite(file, content.data(), static_cast<unsigned>(content.size()));
    gzclose(file);
    return path;
  }
  std::string write_zstd(const std::string& name, std::string_view content) const {
    std::string packed(ZSTD_compressBound(content.size()), '\0');
    packed.resize(ZSTD_compress(packed.data(), packed.size(), content.data(), content.size(), 3));
    return write(name, packed);
  }
  std::string path() const { return path_.string(); }

 private:
  std::filesystem::path path_;
};

// One token for each byte of ASCII text that is a letter, "a" = 2; bos 0, eos 1.
inline std::shared_ptr<const tokenizer::Tokenizer> letter_tokenizer() {
  std::string vocab;
  for (char c = 'a'; c <= 'z'; ++c)
    vocab += std::string(",\"") + c + "\":" + std::to_string(c - 'a' + 2);
  return tokenizer::parse_tokenizer(
      R"({"added_tokens":[{"id":0,"content":"<s>","special":true},{"id":1,"content":"</s>","special":true}],)"
      R"("model":{"type":"BPE","vocab":{"<s>":0,"</s>":1)" +
          vocab + R"(},"merges":[]}})",
      R"({"bos_token":"<s>","eos_token":"</s>"})", "letters");
}

template <class F>
std::string error_of(F&& f) {
  try {
    f();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace rhea::data
