// Files and tokenizers for the tests of data sets.
#pragma once
#include <zlib.h>
#include <zstd.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "rhea/components/tokenizer/tokenizer.h"
#include "tests/support/error_of.h"
#include "tests/support/temp_folder.h"

namespace rhea::data {

using support::error_of;

// A folder that goes away with the test.
class TestFolder {
 public:
  std::string write(const std::string& name, std::string_view content) const {
    std::ofstream(folder_.path() / name, std::ios::binary) << content;
    return (folder_.path() / name).string();
  }
  std::string write_gzip(const std::string& name, std::string_view content) const {
    const std::string path = (folder_.path() / name).string();
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
  std::string path() const { return folder_.path().string(); }

 private:
  support::TempFolder folder_;
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

}  // namespace rhea::data
