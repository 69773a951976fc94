// Text to token ids and back: what training, `rhea generate` and `rhea tokenizer` need of a
// tokenizer.
#pragma once
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace rhea::tokenizer {

// What text that spells a special token (`<|end_of_text|>` in the middle of a document) becomes.
enum class SpecialTokensInText { control, plain };

// How a text becomes ids.
struct EncodeOptions {
  // Empty: as the file's post-processor says (and, for a folder, tokenizer_config.json). True:
  // exactly one, also when the text or the post-processor brings it already. False: none is added.
  std::optional<bool> add_bos;  // the begin-of-text token in front
  std::optional<bool> add_eos;  // the end-of-text token behind
  // False: nothing is added around the text, unless add_bos or add_eos ask for it.
  bool add_specials = true;
  // `control`: its id; `plain`: the tokens of its spelling.
  SpecialTokensInText special_tokens_in_text = SpecialTokensInText::control;
  // True: shortened and filled up as the fields "truncation" and "padding" of tokenizer.json say.
  bool truncate_and_pad = false;
};

// Immutable after loading; all functions may be called from many threads at once.
class Tokenizer {
 public:
  virtual ~Tokenizer() = default;

  // `text` must be UTF-8: throws Error naming the offset of the first bad byte.
  virtual std::vector<int32_t> encode(std::string_view text,
                                      const EncodeOptions& options = {}) const = 0;
  // The text of `ids`; with skip_special, special tokens are left out. Bytes that do not form UTF-8
  // become U+FFFD. Throws Error for an id that the tokenizer does not have.
  virtual std::string decode(const std::vector<int32_t>& ids, bool skip_special = false) const = 0;

  // Largest id + 1 (ids may have gaps), and the number of entries.
  virtual int64_t vocab_size() const = 0;
  virtual int64_t num_tokens() const = 0;

  // The special tokens, where the files name them.
  virtual std::optional<int32_t> bos_id() const = 0;
  virtual std::optional<int32_t> eos_id() const = 0;
  virtual std::optional<int32_t> pad_id() const = 0;
  // Entry as it is spelled in the file; empty where the id is not used.
  virtual std::string token_text(int32_t id) const = 0;
  // The id of an entry by that spelling; none where there is no such entry.
  virtual std::optional<int32_t> token_id(std::string_view token) const = 0;
  // Whether decode() leaves the id out with skip_special.
  virtual bool is_special(int32_t id) const = 0;
  // Ids that options put in front of and behind a text that does not begin or end with them.
  virtual std::vector<int32_t> prefix_ids(const EncodeOptions& options) const = 0;
  virtual std::vector<int32_t> suffix_ids(const EncodeOptions& options) const = 0;
  // One line for logs: model kind and pipeline, "BPE, byte level, normalizer NFC".
  virtual std::string description() const = 0;
  // Jinja source of the chat template of tokenizer_config.json; empty where there is none.
  virtual std::string chat_template() const = 0;
};

// Reads a folder or one file. Of a folder, with tokenizer_config.json beside it, the first of:
// tokenizer.json; vocab.json + merges.txt; tokenizer.model, spiece.model or sentencepiece.bpe.model
// (SentencePiece or tiktoken); a *.tiktoken file; vocab.json or vocab.txt (a word list). Throws
// Error that names the file and the field, component or token at fault. What is odd but usable (no
// tokenizer_config.json, bytes that no entry can spell) is appended to `warnings`; without it, it
// goes to the log.
std::shared_ptr<const Tokenizer> load_tokenizer(const std::filesystem::path& path,
                                                std::vector<std::string>* warnings = nullptr);

// From the content of a tokenizer.json, a tokenizer.model or a tiktoken file and, unless empty, of
// a tokenizer_config.json; `name` stands in messages.
std::shared_ptr<const Tokenizer> parse_tokenizer(std::string_view content,
                                                 std::string_view tokenizer_config_json,
                                                 const std::string& name,
                                                 std::vector<std::string>* warnings = nullptr);

// Refuses a tokenizer that can give ids which the model's embedding does not have: names the token
// and both numbers.
void check_vocabulary(const Tokenizer& tokenizer, int64_t model_vocab_size);

}  // namespace rhea::tokenizer
