// Kinds of tokenizers: who knows which files, and how they are read.
#pragma once
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "rhea/base/named_table.h"
#include "rhea/components/tokenizer/tokenizer.h"
#include "rhea/config/sections/data.h"

namespace rhea::tokenizer {

// What is read, and for whom.
struct ReadOptions {
  std::filesystem::path path;  // a folder or a file that exists
  // The section of the run, for readers whose fields a config derived from it adds; null outside of
  // a run.
  const rhea::TokenizerConfig* config = nullptr;
};

// A row of the table: a kind of tokenizer files.
struct Reader {
  std::string name;  // in `tokenizer.kind`
  // Whether `path`, a folder or a file that exists, is of this kind; empty: it is read only when
  // `tokenizer.kind` names it.
  std::function<bool(const std::filesystem::path& path)> knows = {};
  // Throws Error naming file and fault; what is odd but usable is appended to `warnings`.
  std::function<std::shared_ptr<const Tokenizer>(const ReadOptions& options,
                                                 std::vector<std::string>& warnings)>
      read;
};

// In the order in which `auto` asks them: tokenizer_json, merges (vocab.json with merges.txt),
// sentencepiece, tiktoken, words (a word list); then those that modules add.
NamedTable<Reader>& readers();

// `tokenizer.kind` of a run that leaves it to the files.
inline constexpr std::string_view kAnyKind = "auto";

// The kinds that know the files of `path`, in the order in which they are asked: `auto` takes the
// first.
std::vector<std::string> kinds_of(const std::filesystem::path& path);

// Like load_tokenizer(path, warnings), by the reader of that kind. Throws Error that lists the
// kinds there are, or where the files are of none.
std::shared_ptr<const Tokenizer> load_tokenizer(const ReadOptions& options, std::string_view kind,
                                                std::vector<std::string>* warnings = nullptr);

}  // namespace rhea::tokenizer
