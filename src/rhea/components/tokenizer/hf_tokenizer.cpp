// The pipeline: added tokens, normalizer, cuts, merges, special tokens around the text.
#include "rhea/components/tokenizer/hf_tokenizer.h"

#include <nlohmann/json.hpp>

#include <fmt/format.h>

#include <algorithm>

#include "rhea/base/error.h"
#include "rhea/components/tokenizer/piece_cache.h"
#include "rhea/components/tokenizer/utf8.h"

namespace rhea::tokenizer {

struct HfTokenizer::Scratch {
  PreTokenizer::Scratch pieces;
  TokenModel::Scratch model;
  PieceCache cache;
  std::vector<AddedTokens::Part> parts, inner_parts;
  std::string normalized, words;
};

HfTokenizer::HfTokenizer(const JsonField& tokenizer, const TokenizerConfig* config,
                         const std::string& name, std::vector<std::string>& warnings,
                         std::optional<TokenModel> model)
    : normalizer_(tokenizer["normalizer"]),
      pre_tokenizer_(tokenizer["pre_tokenizer"]),
      reads_bytes_(!model && pre_tokenizer_.ends_in_byte_alphabet() &&
                   TokenModel::can_read_bytes(tokenizer["model"])),
      model_(model ? std::move(*model) : TokenModel(tokenizer["model"], reads_bytes_)),
      post_processor_(tokenizer["post_processor"]),
      limits_(tokenizer["truncation"], tokenizer["padding"]),
      decoder_(tokenizer["decoder"]) {
  if (reads_bytes_) pre_tokenizer_.keep_bytes();
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
  const Vocabulary& vocabulary = model_.vocabulary();
  vocab_size_ = vocabulary.end_id();
  num_tokens_ = static_cast<int64_t>(vocabulary.num_entries());
  for (const AddedToken& token : added_.tokens()) {
    vocab_size_ = std::max<int64_t>(vocab_size_, token.id + 1);
    if (vocabulary.find(token.content) < 0) ++num_tokens_;
  }
  for (const auto* ids : {&post_processor_.prefix, &post_processor_.suffix})
    for (const int32_t id : *ids)
      if (token_text(id).empty())
        tokenizer["post_processor"].fail(fmt::format("adds id {}, which no token has", id));
  if (limits_.padding && token_text(limits_.padding->id).empty())
    tokenizer["padding"].fail(fmt::format("pad_id {} is no token", limits_.padding->id));
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
  return model_.vocabulary().contains(id) ? model_.vocabulary().token(id) : std::string();
}

std::optional<int32_t> HfTokenizer::token_id(std::string_view token) const {
  if (const AddedToken* added = added_.find(token)) return added->id;
  const int32_t id = model_.vocabulary().find(token);
  return id < 0 ? std::nullopt : std::optional(id);
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
  const std::vector<int32_t> suffix = suffix_ids(options);
  const size_t text_begin = ids.size();
  auto scratch = take_scratch();
  if (options.truncate_and_pad) {
    std::vector<int32_t> inner;
    encode_text(text, options.special_tokens_in_text, *scratch, inner);
    limits_.truncate(inner, ids.size() + suffix.size());
    ids.insert(ids.end(), inner.begin(), inner.end());
  } else {
    encode_text(text, options.special_tokens_in_text, *scratch, ids);
  }
  give_scratch(std::move(scratch));

  // Asked for explicitly means exactly one: a text that begins with bos (a chat template wrote it)
  // gets no second one. Where bos and eos are the same token, one token of the text cannot be both:
  // the first erasure has taken it.
  if (options.add_bos.value_or(false) && ids.size() > text_begin && ids[text_begin] == *bos_id_)
    ids.erase(ids.begin() + static_cast<std::ptrdiff_t>(text_begin));
  if (options.add_eos.value_or(false) && ids.size() > text_begin && ids.back() == *eos_id_)
    ids.pop_back();
  ids.insert(ids.end(), suffix.begin(), suffix.end());
  if (options.truncate_and_pad) limits_.pad(ids);
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
    const bool front_removed = normalizer_.apply(scratch.normalized);
    scratch.inner_parts.clear();
    added_.split(scratch.normalized, /*normalized=*/true, specials, scratch.inner_parts);
    for (const AddedTokens::Part& inner : scratch.inner_parts) {
      if (inner.id >= 0) {
        ids.push_back(inner.id);
        continue;
      }
      encode_words(
          std::string_view(scratch.normalized).substr(inner.begin, inner.end - inner.begin),
          part.begin == 0 && inner.begin == 0 && !front_removed, scratch, ids);
    }
  }
}

void HfTokenizer::encode_words(std::string_view text, bool at_start, Scratch& scratch,
                               std::vector<int32_t>& ids) const {
  scratch.words.assign(text);
  pre_tokenizer_.split(scratch.words, at_start, scratch.pieces);
  const std::string_view words = scratch.words;
  for (const Range& range : scratch.pieces.pieces) {
    const std::string_view piece = words.substr(range.begin, range.end - range.begin);
    for (size_t begin = 0; begin < piece.size();) {
      const size_t end = model_.part_end(piece, begin);
      const std::string_view part = piece.substr(begin, end - begin);
      begin = end;
      if (scratch.cache.recall(part, ids)) continue;
      const size_t first = ids.size();
      model_.encode(part, scratch.model, ids);
      scratch.cache.remember(part, std::span(ids).subspan(first));
    }
  }
}

std::string HfTokenizer::decode(const std::vector<int32_t>& ids, bool skip_special) const {
  std::vector<Decoder::Piece> pieces;
  pieces.reserve(ids.size());
  for (const int32_t id : ids) {
    const AddedToken* token = added_.find(id);
    if (token != nullptr && token->special && skip_special) continue;
    std::string text = token_text(id);
    if (text.empty() && !model_.vocabulary().contains(id))
      throw Error("decode: no token has id {} (the largest is {})", id, vocab_size_ - 1);
    if (token != nullptr) text = token->text;
    pieces.push_back({std::move(text), token != nullptr});
  }
  return decoder_.decode(std::move(pieces));
}

std::string HfTokenizer::description() const {
  std::string text = model_.description();
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
