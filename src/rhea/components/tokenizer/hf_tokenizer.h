// A tokenizer made of the parts that tokenizer.json lists.
#pragma once
#include <memory>
#include <mutex>

#include "rhea/components/tokenizer/added_tokens.h"
#include "rhea/components/tokenizer/decoder.h"
#include "rhea/components/tokenizer/length_limits.h"
#include "rhea/components/tokenizer/normalizer.h"
#include "rhea/components/tokenizer/post_processor.h"
#include "rhea/components/tokenizer/pre_tokenizer.h"
#include "rhea/components/tokenizer/token_model.h"
#include "rhea/components/tokenizer/tokenizer.h"
#include "rhea/components/tokenizer/tokenizer_config.h"

namespace rhea::tokenizer {

class HfTokenizer : public Tokenizer {
 public:
  // `tokenizer` is the content of tokenizer.json, `config` that of tokenizer_config.json or null;
  // `name` stands in messages. `model`: takes the place of the field "model".
  HfTokenizer(const JsonField& tokenizer, const TokenizerConfig* config, const std::string& name,
              std::vector<std::string>& warnings, std::optional<TokenModel> model = std::nullopt);
  ~HfTokenizer() override;

  std::vector<int32_t> encode(std::string_view text, const EncodeOptions& options) const override;
  std::string decode(const std::vector<int32_t>& ids, bool skip_special) const override;
  int64_t vocab_size() const override { return vocab_size_; }
  int64_t num_tokens() const override { return num_tokens_; }
  std::optional<int32_t> bos_id() const override { return bos_id_; }
  std::optional<int32_t> eos_id() const override { return eos_id_; }
  std::optional<int32_t> pad_id() const override { return pad_id_; }
  std::string token_text(int32_t id) const override;
  std::optional<int32_t> token_id(std::string_view token) const override;
  bool is_special(int32_t id) const override;
  std::vector<int32_t> prefix_ids(const EncodeOptions& options) const override;
  std::vector<int32_t> suffix_ids(const EncodeOptions& options) const override;
  std::string description() const override;
  std::string chat_template() const override { return chat_template_; }

 private:
  struct Scratch;
  void add_tokens(const JsonField& tokenizer, const TokenizerConfig* config);
  void find_special_tokens(const TokenizerConfig* config, const std::string& name);
  void encode_text(std::string_view text, SpecialTokensInText specials, Scratch& scratch,
                   std::vector<int32_t>& ids) const;
  void encode_words(std::string_view text, bool at_start, Scratch& scratch,
                    std::vector<int32_t>& ids) const;
  // Scratch that no other thread is using.
  std::unique_ptr<Scratch> take_scratch() const;
  void give_scratch(std::unique_ptr<Scratch> scratch) const;

  Normalizer normalizer_;
  PreTokenizer pre_tokenizer_;
  bool reads_bytes_;  // the model takes plain bytes for the byte alphabet
  TokenModel model_;
  PostProcessor post_processor_;
  LengthLimits limits_;
  Decoder decoder_;
  AddedTokens added_;
  std::optional<int32_t> bos_id_, eos_id_, pad_id_;
  std::optional<bool> add_bos_default_, add_eos_default_;
  int64_t vocab_size_ = 0;
  int64_t num_tokens_ = 0;
  std::string chat_template_;

  mutable std::mutex scratch_mutex_;
  mutable std::vector<std::unique_ptr<Scratch>> free_scratch_;
};

}  // namespace rhea::tokenizer
