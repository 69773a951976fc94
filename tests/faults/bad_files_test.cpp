// Every file of a model in every state that downloads, copies and mistakes leave it in, under every
// command that reads it: a message that names the file, no library's words, and no hanging.
#include <sys/stat.h>

#include <fstream>

#include "rhea/base/mapped_file.h"
#include "tests/faults/fault_test.h"

namespace rhea {
namespace {

const fs::path kData = fs::path(RHEA_SOURCE_DIR) / "tests/data";

struct Damage {
  const char* name;
  void (*make)(const fs::path& file);  // the file is there and good
};

void write(const fs::path& file, const std::string& content) {
  fs::remove_all(file);
  std::ofstream(file, std::ios::binary) << content;
}

const Damage kDamages[] = {
    {"empty", [](const fs::path& file) { write(file, ""); }},
    {"blank", [](const fs::path& file) { write(file, "  \n"); }},
    {"LFS pointer",
     [](const fs::path& file) {
       write(file, "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n");
     }},
    {"cut in half",
     [](const fs::path& file) {
       const std::string whole = read_file(file);
       write(file, whole.substr(0, whole.size() / 2));
     }},
    {"zeros", [](const fs::path& file) { write(file, std::string(4096, '\0')); }},
    {"HTML of an error page",
     [](const fs::path& file) { write(file, "<!DOCTYPE html><html>404</html>"); }},
    {"JSON that is not UTF-8",
     [](const fs::path& file) { write(file, "{\"model_type\": \"\xff\xfe\"}"); }},
    {"JSON list", [](const fs::path& file) { write(file, "[1, 2]"); }},
    {"JSON of other types",
     [](const fs::path& file) {
       write(file, R"({"model_type": 3, "model": [], "weight_map": {"a": 1}, "added_tokens": 5})");
     }},
    {"deep JSON", [](const fs::path& file) { write(file, std::string(100'000, '[')); }},
    {"huge header",
     [](const fs::path& file) { write(file, std::string(8, '\xff') + std::string(64, 'x')); }},
    {"folder",
     [](const fs::path& file) {
       fs::remove(file);
       fs::create_directories(file / "inside");
     }},
    {"pipe",
     [](const fs::path& file) {
       fs::remove(file);
       ASSERT_EQ(::mkfifo(file.c_str(), 0600), 0);
     }},
    // As root it stays readable, and nothing is wrong then.
    {"not readable", [](const fs::path& file) { fs::permissions(file, fs::perms::none); }},
    {"link to nothing",
     [](const fs::path& file) {
       fs::remove(file);
       fs::create_symlink("nowhere", file);
     }},
    {"link to itself",
     [](const fs::path& file) {
       fs::remove(file);
       fs::create_symlink(file.filename(), file);
     }},
};

class BadFiles : public FaultTest {
 protected:
  void SetUp() override {
    ASSERT_EQ(run({"convert", "--from", (kData / "gguf/llama.gguf").string(), "--to",
                   good().string(), "--max_shard_size", "60KB"})
                  .code,
              0);
    fs::copy_file(kData / "gguf/llama.gguf", good() / "model.gguf");
    fs::create_directories(temp_.path() / "results");
  }
  fs::path good() const { return temp_.path() / "good"; }
  fs::path bad() const { return temp_.path() / "bad"; }

  // `damage` may leave the command without a reason to fail; it must never fail in other words.
  void expect_clear(const Words& command, const std::string& file, const Damage& damage) {
    const std::string what = command[0] + " " + command[1] + ", " + file + ": " + damage.name;
    Process process(command, log());
    const int code = process.wait(20);
    const std::string output = process.output();
    EXPECT_THAT(code, testing::AnyOf(0, 2)) << what << "\n" << output;
    for (const char* raw : {"json.exception", "filesystem error", "basic_string", "std::",
                            "vector::", "bad_alloc", "out of memory", "terminate", "RHEA_CHECK"})
      EXPECT_THAT(output, Not(HasSubstr(raw))) << what;
    if (code != 0) {
      EXPECT_THAT(output, HasSubstr(bad().string())) << what;
    }
  }

  // Damages `file` in every way under every command.
  void expect_all_clear(const std::string& file, const std::vector<Words>& commands) {
    for (const Damage& damage : kDamages) {
      fs::remove_all(bad());
      fs::copy(good(), bad(), fs::copy_options::recursive);
      damage.make(bad() / file);
      for (const Words& command : commands) {
        expect_clear(command, file, damage);
        fs::remove_all(temp_.path() / "out");
      }
    }
  }
  Words inspect() const { return {"inspect", bad().string(), "--summary"}; }
  Words convert(const std::string& from = "") const {
    return {"convert", "--from", (from.empty() ? bad() : bad() / from).string(), "--to",
            (temp_.path() / "out").string()};
  }
  Words generate() const {
    return {"generate", "--model", bad().string(), "--prompt", "ab", "--max_new_tokens", "2"};
  }
};

TEST_F(BadFiles, Config) { expect_all_clear("config.json", {inspect(), convert(), generate()}); }
TEST_F(BadFiles, Index) {
  expect_all_clear("model.safetensors.index.json", {inspect(), convert(), generate()});
}
TEST_F(BadFiles, AShard) {
  std::string shard;
  for (const auto& item : fs::directory_iterator(good()))
    if (item.path().extension() == ".safetensors") shard = item.path().filename().string();
  expect_all_clear(shard, {inspect(), convert(), generate()});
}
TEST_F(BadFiles, Gguf) {
  expect_all_clear("model.gguf", {convert("model.gguf"),
                                  {"inspect", (bad() / "model.gguf").string(), "--summary"},
                                  {"score", "--model", (bad() / "model.gguf").string(), "--input",
                                   "x", "--output", (temp_.path() / "results/x").string()}});
}
TEST_F(BadFiles, Tokenizer) {
  const Words info = {"tokenizer", "info", "--tokenizer", bad().string()};
  for (const char* file : {"tokenizer.json", "tokenizer_config.json"})
    expect_all_clear(file, {info, generate(), convert()});
  fs::remove(good() / "tokenizer.json");
  for (const char* file :
       {"vocab.json", "merges.txt", "vocab.txt", "tokenizer.model", "x.tiktoken", "spiece.model"}) {
    std::ofstream(good() / file) << "{\"a\": 0}";
    if (std::string(file) == "merges.txt") std::ofstream(good() / "vocab.json") << "{\"a\": 0}";
    expect_all_clear(file, {info});
    fs::remove(good() / "vocab.json");
    fs::remove(good() / file);
  }
}
TEST_F(BadFiles, GenerationConfig) {
  expect_all_clear("generation_config.json", {generate(), convert()});
}

}  // namespace
}  // namespace rhea
