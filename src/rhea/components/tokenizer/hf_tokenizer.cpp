// The pipeline: added tokens, normalizer, cuts, merges, special tokens around the text.
#include "rhea/components/tokenizer/hf_tokenizer.h"

#include <nlohmann/json.hpp>

#include <fmt/format.h>

#include <algorithm>

#include "rhea/base/error.h"
#include "rhea/components/tokenizer/utf8.h"

namespace rhea::tokenizer {

struct HfTokenizer::Scratch {
  PreTokenizer::Scratch pieces;
  BpeModel::Scratch model;
  std::vector<AddedTokens::Part> parts, inner_parts;
  std::string normalized, words;
};

HfTokenizer::HfTokenizer(const JsonField& tokenizer, const TokenizerConfig* config,
                         const std::string& name, std::vector<std::string>& warnings)
    : normalizer_(tokenizer["normalizer"]),
      pre_tokenizer_(tokenizer["pre_tokenizer"]),
      model_(tokenizer["model"], pre_tokenizer_.byte_level()),
      post_processor_(tokenizer["post_processor"]),
      decoder_(tokenizer["decoder"]) {
  if (model_.num_missing_bytes() > 0)
    warnings.push_back(
        fmt::format("{}: {} of the 256 bytes have no entry and there is no unknown token: they "
                    "vanish from text",
                    name, model_.num_missing_bytes()));
  add_tokens(tokenizer, config);
  find_special_tokens(config, name);
  if (config != nullptr) {
    chat_template_ = config->chat_template;
    add_bos_default_ = config->add_bos_token;
    add_eos_default_ = config->add_eos_token;
  }
  vocab_size_ = static_cast<int64_t>(model_.tokens().size());
  num_tokens_ = static_cast<int64_t>(model_.vocabulary().size());
  for (const AddedToken& token : added_.tokens()) {
    vocab_size_ = std::max<int64_t>(vocab_size_, token.id + 1);
    if (model_.vocabulary().count(token.content) == 0) ++num_tokens_;
  }
  for (const auto* ids : {&post_processor_.prefix, &post_processor_.suffix})
    for (const int32_t id : *ids)
      if (token_text(id).empty())
        tokenizer["post_processor"].fail(fmt::format("adds id {}, which no token has", id));
}

HfTokenizer::~HfTokenizer() = default;

void HfTokenizer::add_tokens(const JsonField& tokenizer, const TokenizerConfig* config) {
  const JsonField list = tokenizer["added_tokens"];
  if (!list.is_null())
    for (size_t i = 0; i < list.array().size(); ++i)
      added_.add(parse_added_token(list.item(i), list.item(i)["id"].id()));
  if (config != nullptr) {
    for (AddedToken token : config->added_tokens) {
      // The tokenizer's own id counts; the config only says how the token is matched.
      if (const auto known = token_id(token.content)) {
        token.id = *known;
      } else if (!token_text(token.id).empty()) {
        throw Error(
            "tokenizer_config.json gives id {} to \"{}\", but in tokenizer.json it is \"{}\"",
            token.id, token.content, token_text(token.id));
      }
      added_.add(std::move(token));
    }
  }
  added_.finish(normalizer_);
}

void HfTokenizer::find_special_tokens(const TokenizerConfig* config, const std::string& name) {
  const auto look_up = [&](const std::optional<std::string>& token,
                           const char* role) -> std::optional<int32_t> {
    if (!token) return std::nullopt;
    const auto id = token_id(*token);
    if (!id)
      throw Error("{}: tokenizer_config.json says {} is \"{}\", which is not a token", name, role,
                  *token);
    return id;
  };
  if (config != nullptr) {
    bos_id_ = look_up(config->bos_token, "bos_token");
    eos_id_ = look_up(config->eos_token, "eos_token");
    if (config->pad_token) pad_id_ = token_id(*config->pad_token);
  } else {
    // Without the config the post-processor is all there is to go by.
    if (!post_processor_.prefix.empty()) bos_id_ = post_processor_.prefix.front();
    if (!post_processor_.suffix.empty()) eos_id_ = post_processor_.suffix.back();
  }
}

std::string HfTokenizer::token_text(int32_t id) const {
  if (const AddedToken* token = added_.find(id)) return token->content;
  if (id < 0 || static_cast<size_t>(id) >= model_.tokens().size()) return {};
  return model_.tokens()[static_cast<size_t>(id)];
}

std::optional<int32_t> HfTokenizer::token_id(std::string_view token) const {
  if (const AddedToken* added = added_.find(token)) return added->id;
  const auto found = model_.vocabulary().find(std::string(token));
  if (found == model_.vocabulary().end()) return std::nullopt;
  return found->second;
}

bool HfTokenizer::is_special(int32_t id) const {
  const AddedToken* token = added_.find(id);
  return token != nullptr && token->special;
}

std::vector<int32_t> HfTokenizer::prefix_ids(const EncodeOptions& options) const {
  std::vector<int32_t> ids = options.add_specials ? post_processor_.prefix : std::vector<int32_t>();
  const std::optional<bool> add_bos =
      options.add_bos || !options.add_specials ? options.add_bos : add_bos_default_;
  if (!add_bos) return ids;
  if (!bos_id_) {
    if (*add_bos && options.add_bos) throw Error("add_bos: the tokenizer has no bos token");
    return ids;
  }
  std::erase(ids, *bos_id_);
  if (*add_bos) ids.insert(ids.begin(), *bos_id_);
  return ids;
}

std::vector<int32_t> HfTokenizer::suffix_ids(const EncodeOptions& options) const {
  std::vector<int32_t> ids = options.add_specials ? post_processor_.suffix : std::vector<int32_t>();
  const std::optional<bool> add_eos =
      options.add_eos || !options.add_specials ? options.add_eos : add_eos_default_;
  if (!add_eos) return ids;
  if (!eos_id_) {
    if (*add_eos && options.add_eos) throw Error("add_eos: the tokenizer has no eos token");
    return ids;
  }
  std::erase(ids, *eos_id_);
  if (*add_eos) ids.push_back(*eos_id_);
  return ids;
}

std::vector<int32_t> HfTokenizer::encode(std::string_view text,
                                         const EncodeOptions& options) const {
  if (const size_t bad = find_invalid_utf8(text); bad != std::string_view::npos)
    throw Error("text is not UTF-8: bad byte 0x{:02X} at offset {} of {}",
                static_cast<unsigned char>(text[bad]), bad, text.size());
  std::vector<int32_t> ids = prefix_ids(options);
  const size_t text_begin = ids.size();
  auto scratch = take_scratch();
  encode_text(text, options.special_tokens_in_text, *scratch, ids);
  give_scratch(std::move(scratch));

  // Asked for explicitly means exactly one: a text that begins with bos (a chat template wrote it)
  // gets no second one. Where bos and eos are the same token, one token of the text cannot be both:
  // the first erasure has taken it.
  if (options.add_bos.value_or(false) && ids.size() > text_begin && ids[text_begin] == *bos_id_)
    ids.erase(ids.begin() + static_cast<std::ptrdiff_t>(text_begin));
  if (options.add_eos.value_or(false) && ids.size() > text_begin && ids.back() == *eos_id_)
    ids.pop_back();
  const std::vector<int32_t> suffix = suffix_ids(options);
  ids.insert(ids.end(), suffix.begin(), suffix.end());
  return ids;
}

void HfTokenizer::encode_text(std::string_view text, SpecialTokensInText specials, Scratch& scratch,
                              std::vector<int32_t>& ids) const {
  scratch.parts.clear();
  added_.split(text, /*normalized=*/false, specials, scratch.parts);
  for (const AddedTokens::Part& part : scratch.parts) {
    if (part.id >= 0) {
      ids.push_back(part.id);
      continue;
    }
    scratch.normalized.assign(text, part.begin, part.end - part.begin);
    normalizer_.apply(scratch.normalized);
    scratch.inner_parts.clear();
    added_.split(scratch.normalized, /*normalized=*/true, specials, scratch.inner_parts);
    for (const AddedTokens::Part& inner : scratch.inner_parts) {
      if (inner.id >= 0) {
        ids.push_back(inner.id);
      } else {
        encode_words(
            std::string_view(scratch.normalized).substr(inner.begin, inner.end - inner.begin),
            scratch, ids);
      }
    }
  }
}

void HfTokenizer::encode_words(std::string_view text, Scratch& scratch,
                               std::vector<int32_t>& ids) const {
  scratch.words.assign(text);
  pre_tokenizer_.split(scratch.words, scratch.pieces);
  const std::string_view words = scratch.words;
  for (const Range& piece : scratch.pieces.pieces)
    model_.encode(words.substr(piece.begin, piece.end - piece.begin), scratch.model, ids);
}

std::string HfTokenizer::decode(const std::vector<int32_t>& ids, bool skip_special) const {
  std::vector<Decoder::Piece> pieces;
  pieces.reserve(ids.size());
  for (const int32_t id : ids) {
    const AddedToken* token = added_.find(id);
    if (token != nullptr && token->special && skip_special) continue;
    std::string text = token_text(id);
    if (text.empty())
      throw Error("decode: no token has id {} (the largest is {})", id, vocab_size_ - 1);
    pieces.push_back({std::move(text), token != nullptr});
  }
  return decoder_.decode(std::move(pieces));
}

std::string HfTokenizer::description() const {
  std::string text = pre_tokenizer_.byte_level() ? "byte-level BPE" : "BPE";
  text += fmt::format(", {} merges", model_.num_merges());
  if (!normalizer_.description().empty()) text += ", normalizer " + normalizer_.description();
  if (!pre_tokenizer_.description().empty())
    text += ", pre-tokenizer " + pre_tokenizer_.description();
  return text;
}

std::unique_ptr<HfTokenizer::Scratch> HfTokenizer::take_scratch() const {
  {
    const std::lock_guard lock(scratch_mutex_);
    if (!free_scratch_.empty()) {
      auto scratch = std::move(free_scratch_.back());
      free_scratch_.pop_back();
      return scratch;
    }
  }
  return std::make_unique<Scratch>();
}

void HfTokenizer::give_scratch(std::unique_ptr<Scratch> scratch) const {
  const std::lock_guard lock(scratch_mutex_);
  free_scratch_.push_back(std::move(scratch));
}

}  // namespace rhea::tokenizer
