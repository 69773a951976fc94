// The decoders of tokenizer.json.
#include "rhea/components/tokenizer/decoder.h"

#include <nlohmann/json.hpp>

#include <charconv>

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
  } else {
    field.fail("decoder type \"" + type +
               "\" is not supported (ByteLevel, ByteFallback, Fuse, Replace, Strip, Sequence are)");
  }
}

std::string Decoder::decode(std::vector<Piece> pieces) const {
  if (pieces.empty()) return {};
  for (const auto& step : steps_) step(pieces);
  std::string text;
  for (const auto& piece : pieces) {
    if (steps_.empty() && !text.empty()) text += ' ';
    text += piece.text;
  }
  return replace_invalid_utf8(text);
}

}  // namespace rhea::tokenizer
