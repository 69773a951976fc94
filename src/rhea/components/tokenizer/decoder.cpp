// The decoders of tokenizer.json.
#include "rhea/components/tokenizer/decoder.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <charconv>
#include <utility>

#include "rhea/components/tokenizer/metaspace.h"
#include "rhea/components/tokenizer/normalizer.h"
#include "rhea/components/tokenizer/utf8.h"

namespace rhea::tokenizer {
namespace {

using Pieces = std::vector<Decoder::Piece>;

// Joins everything into one piece. Characters may be cut anywhere between tokens, so ill-formed
// bytes are replaced last.
void from_byte_alphabet(Pieces& pieces) {
  std::string bytes;
  for (const auto& piece : pieces) {
    const auto decoded = piece.added ? std::nullopt : alphabet_to_bytes(piece.text);
    bytes += decoded ? *decoded : piece.text;
  }
  pieces.assign(1, {replace_invalid_utf8(bytes), false});
}

// The byte of "<0x4A>", or -1.
int fallback_byte(const Decoder::Piece& piece) {
  const std::string& text = piece.text;
  if (piece.added || text.size() != 6 || !text.starts_with("<0x") || text[5] != '>') return -1;
  int value = -1;
  const auto [end, error] = std::from_chars(text.data() + 3, text.data() + 5, value, 16);
  return error == std::errc() && end == text.data() + 5 ? value : -1;
}

// A run of byte tokens becomes its characters, or one U+FFFD for each byte if the run as a whole is
// not UTF-8.
void join_fallback_bytes(Pieces& pieces) {
  Pieces result;
  std::string run;
  const auto end_run = [&] {
    if (run.empty()) return;
    if (find_invalid_utf8(run) == std::string_view::npos) {
      result.push_back({run, false});
    } else {
      for (size_t i = 0; i < run.size(); ++i) result.push_back({"\xef\xbf\xbd", false});
    }
    run.clear();
  };
  for (auto& piece : pieces) {
    const int byte = fallback_byte(piece);
    if (byte >= 0) {
      run.push_back(static_cast<char>(byte));
    } else {
      end_run();
      result.push_back(std::move(piece));
    }
  }
  end_run();
  pieces = std::move(result);
}

void fuse(Pieces& pieces) {
  std::string text;
  for (const auto& piece : pieces) text += piece.text;
  pieces.assign(1, {std::move(text), false});
}

void strip(const std::string& content, int32_t from_start, int32_t from_end, Pieces& pieces) {
  for (auto& piece : pieces) {
    for (int32_t i = 0; i < from_start && piece.text.starts_with(content); ++i)
      piece.text.erase(0, content.size());
    for (int32_t i = 0; i < from_end && piece.text.ends_with(content); ++i)
      piece.text.resize(piece.text.size() - content.size());
  }
}

void replace_all(std::string& text, std::string_view from, std::string_view to) {
  if (from.empty() || text.find(from) == std::string::npos) return;
  std::string result;
  size_t at = 0;
  for (size_t next = text.find(from); next != std::string::npos; next = text.find(from, at)) {
    result.append(text, at, next - at).append(to);
    at = next + from.size();
  }
  text = result.append(text, at);
}

// English punctuation and contractions without the space that joining words put before them.
void clean_up_spaces(std::string& text) {
  constexpr std::pair<const char*, const char*> kReplacements[] = {
      {" .", "."},   {" ?", "?"},     {" !", "!"},    {" ,", ","},
      {" ' ", "'"},  {" n't", "n't"}, {" 'm", "'m"},  {" do not", " don't"},
      {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"}};
  for (const auto& [from, to] : kReplacements) replace_all(text, from, to);
}

void join_word_pieces(const std::string& prefix, bool clean_up, Pieces& pieces) {
  for (size_t i = 0; i < pieces.size(); ++i) {
    std::string& text = pieces[i].text;
    if (i > 0) {
      if (text.starts_with(prefix)) {
        text.erase(0, prefix.size());
      } else {
        text.insert(text.begin(), ' ');
      }
    }
    if (clean_up) clean_up_spaces(text);
  }
}

// The mark stands for a space; in the first piece it was put before the text.
void from_metaspace(const std::string& mark, bool drops_first, Pieces& pieces) {
  for (size_t i = 0; i < pieces.size(); ++i)
    replace_all(pieces[i].text, mark, i == 0 && drops_first ? "" : " ");
}

// The suffix ends a word.
void from_word_suffix(const std::string& suffix, Pieces& pieces) {
  for (size_t i = 0; i < pieces.size(); ++i)
    replace_all(pieces[i].text, suffix, i + 1 == pieces.size() ? "" : " ");
}

struct Ctc {
  std::string pad, word_delimiter;
  bool clean_up = true;
};

// Repeated pieces count once, padding is the border between equal letters.
void from_ctc(const Ctc& ctc, Pieces& pieces) {
  const auto repeats = [](const Decoder::Piece& a, const Decoder::Piece& b) {
    return a.text == b.text;
  };
  pieces.erase(std::unique(pieces.begin(), pieces.end(), repeats), pieces.end());
  for (auto& piece : pieces) {
    replace_all(piece.text, ctc.pad, "");
    if (!ctc.clean_up) continue;
    clean_up_spaces(piece.text);
    replace_all(piece.text, ctc.word_delimiter, " ");
  }
  std::erase_if(pieces, [](const Decoder::Piece& piece) { return piece.text.empty(); });
}

}  // namespace

void Decoder::add(const JsonField& field, int depth) {
  if (field.is_null()) return;
  const std::string type = field["type"].string();
  if (type == "Sequence") {
    if (depth == kMaxComponentDepth) field.fail("Sequences are nested too deeply");
    const JsonField list = field["decoders"];
    for (size_t i = 0; i < list.array().size(); ++i) add(list.item(i), depth + 1);
    return;
  }
  if (type == "ByteLevel") {
    steps_.emplace_back(from_byte_alphabet);
  } else if (type == "ByteFallback") {
    steps_.emplace_back(join_fallback_bytes);
  } else if (type == "Fuse") {
    steps_.emplace_back(fuse);
  } else if (type == "Replace") {
    steps_.emplace_back([replace = make_replace(field)](Pieces& pieces) {
      for (auto& piece : pieces) replace(piece.text);
    });
  } else if (type == "Strip") {
    const std::string content = field["content"].string();
    if (content.empty()) field["content"].fail("there is nothing to strip");
    steps_.emplace_back([content, start = field["start"].id(), stop = field["stop"].id()](
                            Pieces& pieces) { strip(content, start, stop, pieces); });
  } else if (type == "WordPiece") {
    const std::string prefix = field["prefix"].string_or("##");
    steps_.emplace_back([prefix, clean_up = field["cleanup"].boolean_or(true)](Pieces& pieces) {
      join_word_pieces(prefix, clean_up, pieces);
    });
  } else if (type == "Metaspace") {
    const Metaspace metaspace = parse_metaspace(field);
    steps_.emplace_back([metaspace](Pieces& pieces) {
      from_metaspace(metaspace.mark, metaspace.prepend != Metaspace::Prepend::never, pieces);
    });
  } else if (type == "BPEDecoder") {
    steps_.emplace_back([suffix = field["suffix"].string_or("</w>")](Pieces& pieces) {
      from_word_suffix(suffix, pieces);
    });
  } else if (type == "CTC") {
    const Ctc ctc{field["pad_token"].string_or("<pad>"),
                  field["word_delimiter_token"].string_or("|"), field["cleanup"].boolean_or(true)};
    steps_.emplace_back([ctc](Pieces& pieces) { from_ctc(ctc, pieces); });
  } else {
    field.fail("decoder type \"" + type +
               "\" is not one of the format (ByteLevel, ByteFallback, Fuse, Replace, Strip, "
               "WordPiece, Metaspace, BPEDecoder, CTC, Sequence)");
  }
}

std::string Decoder::decode(std::vector<Piece> pieces) const {
  if (pieces.empty()) return {};
  for (const auto& step : steps_) step(pieces);
  std::string text;
  for (size_t i = 0; i < pieces.size(); ++i) {
    if (joins_with_spaces_ && i > 0) text += ' ';
    text += pieces[i].text;
  }
  return replace_invalid_utf8(text);
}

}  // namespace rhea::tokenizer
