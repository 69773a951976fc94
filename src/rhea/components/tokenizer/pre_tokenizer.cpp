// The pre-tokenizers of tokenizer.json.
#include "rhea/components/tokenizer/pre_tokenizer.h"

#include <nlohmann/json.hpp>

#include <algorithm>

#include "rhea/components/tokenizer/characters.h"
#include "rhea/components/tokenizer/utf8.h"

namespace rhea::tokenizer {
namespace {

// The pattern that ByteLevel with use_regex stands for (GPT-2's).
constexpr const char* kByteLevelPattern =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

// Writes the pieces anew, one behind the other: insert(piece, in_front) is put before a piece, and
// map(part, out) appends what a part of it becomes. The first `front` bytes of the text stem from
// the character that began the whole text; so do, from then on, those made of them.
template <class Insert, class Map>
void rewrite(std::string& text, size_t& front, std::vector<Range>& pieces, Insert&& insert,
             Map&& map) {
  std::string result;
  result.reserve(text.size() + pieces.size());
  size_t new_front = 0;
  for (Range& piece : pieces) {
    const auto part = [&](size_t from, size_t to) {
      return std::string_view(text).substr(from, to - from);
    };
    const size_t begin = result.size();
    const bool in_front = piece.begin < front;
    const size_t border = std::clamp(front, piece.begin, piece.end);
    result += insert(part(piece.begin, piece.end), in_front);
    map(part(piece.begin, border), result);
    if (in_front) new_front = result.size();
    map(part(border, piece.end), result);
    piece = {begin, result.size()};
  }
  text = std::move(result);
  front = new_front;
}

}  // namespace

PreTokenizer::Behavior PreTokenizer::parse_behavior(const JsonField& field) {
  const std::string name = field.string();
  if (name == "Isolated") return Behavior::isolated;
  if (name == "Removed") return Behavior::removed;
  if (name == "MergedWithPrevious") return Behavior::merged_with_previous;
  if (name == "MergedWithNext") return Behavior::merged_with_next;
  if (name == "Contiguous") return Behavior::contiguous;
  field.fail("split behavior \"" + name +
             "\" is not one of Isolated, Removed, MergedWithPrevious, MergedWithNext, Contiguous");
}

void PreTokenizer::add_regex(const std::string& pattern, Behavior behavior, bool literal,
                             bool invert) {
  stages_.emplace_back(Cut{Regex(pattern, literal), behavior, invert});
}

void PreTokenizer::add_predicate(Predicate predicate, Behavior behavior) {
  stages_.emplace_back(Cut{predicate, behavior, false});
}

void PreTokenizer::add_byte_level(const JsonField& field) {
  if (field["add_prefix_space"].boolean_or(true)) stages_.emplace_back(PrefixSpace{});
  if (field["use_regex"].boolean_or(true)) add_regex(kByteLevelPattern, Behavior::isolated);
  stages_.emplace_back(ByteAlphabet{});
}

void PreTokenizer::add_metaspace(const JsonField& field) {
  const Metaspace metaspace = parse_metaspace(field);
  stages_.emplace_back(metaspace);
  if (metaspace.split) add_regex(metaspace.mark, Behavior::merged_with_next, /*literal=*/true);
}

void PreTokenizer::add(const JsonField& field, int depth) {
  if (field.is_null()) return;
  const std::string type = field["type"].string();
  if (type == "Sequence") {
    if (depth == kMaxComponentDepth) field.fail("Sequences are nested too deeply");
    const JsonField list = field["pretokenizers"];
    for (size_t i = 0; i < list.array().size(); ++i) add(list.item(i), depth + 1);
    return;
  }
  if (type == "Split") {
    const JsonField pattern = field["pattern"];
    const bool literal = pattern.object().contains("String");
    add_regex(pattern[literal ? "String" : "Regex"].string(), parse_behavior(field["behavior"]),
              literal, field["invert"].boolean_or(false));
  } else if (type == "ByteLevel") {
    add_byte_level(field);
  } else if (type == "Metaspace") {
    add_metaspace(field);
  } else if (type == "Digits") {
    const bool individual = field["individual_digits"].boolean_or(false);
    add_predicate(is_number, individual ? Behavior::isolated : Behavior::contiguous);
  } else if (type == "Punctuation") {
    add_predicate(is_punctuation, field["behavior"].is_null() ? Behavior::isolated
                                                              : parse_behavior(field["behavior"]));
  } else if (type == "BertPreTokenizer") {
    add_predicate(is_white_space, Behavior::removed);
    add_predicate(is_punctuation, Behavior::isolated);
  } else if (type == "Whitespace") {
    add_predicate(is_white_space, Behavior::removed);
    add_predicate(is_word, Behavior::contiguous);
  } else if (type == "WhitespaceSplit") {
    add_predicate(is_white_space, Behavior::removed);
  } else if (type == "CharDelimiterSplit") {
    const std::string delimiter = field["delimiter"].string();
    if (delimiter.empty() || decode_code_point(delimiter, 0).length != delimiter.size())
      field["delimiter"].fail("expected one character, found \"" + delimiter + "\"");
    add_regex(delimiter, Behavior::removed, /*literal=*/true);
  } else if (type == "UnicodeScripts") {
    stages_.emplace_back(ScriptRuns{});
  } else if (type == "FixedLength") {
    const int32_t length = field["length"].is_null() ? 5 : field["length"].id();
    if (length == 0) field["length"].fail("pieces need at least 1 character");
    stages_.emplace_back(FixedLength{length});
  } else {
    field.fail("pre-tokenizer type \"" + type +
               "\" is not one of the format (Split, ByteLevel, Metaspace, Digits, Punctuation, "
               "BertPreTokenizer, Whitespace, WhitespaceSplit, CharDelimiterSplit, UnicodeScripts, "
               "FixedLength, Sequence)");
  }
  description_ += (description_.empty() ? "" : ", ") + type;
}

bool PreTokenizer::ends_in_byte_alphabet() const {
  const auto is_alphabet = [](const Stage& stage) {
    return std::holds_alternative<ByteAlphabet>(stage);
  };
  return !stages_.empty() && is_alphabet(stages_.back()) &&
         std::count_if(stages_.begin(), stages_.end(), is_alphabet) == 1;
}

void PreTokenizer::keep_bytes() { stages_.pop_back(); }

void PreTokenizer::split(std::string& text, bool at_start, Scratch& scratch) const {
  scratch.pieces.assign(1, Range{0, text.size()});
  size_t front = at_start ? decode_code_point(text, 0).length : 0;
  const auto keep = [](std::string_view part, std::string& out) { out += part; };
  for (const Stage& stage : stages_) {
    if (std::holds_alternative<PrefixSpace>(stage)) {
      const auto space = [](std::string_view piece, bool) {
        return std::string_view(piece.starts_with(' ') ? "" : " ");
      };
      rewrite(text, front, scratch.pieces, space, keep);
      continue;
    }
    if (std::holds_alternative<ByteAlphabet>(stage)) {
      const auto nothing = [](std::string_view, bool) { return std::string_view(); };
      rewrite(text, front, scratch.pieces, nothing, [](std::string_view part, std::string& out) {
        for (const char byte : part) append_utf8(out, byte_to_char(static_cast<uint8_t>(byte)));
      });
      continue;
    }
    if (const auto* metaspace = std::get_if<Metaspace>(&stage)) {
      const auto mark = [&](std::string_view piece, bool in_front) {
        const bool marked = piece.starts_with(' ') || piece.starts_with(metaspace->mark);
        const bool wanted = metaspace->prepend == Metaspace::Prepend::always ||
                            (metaspace->prepend == Metaspace::Prepend::first && in_front);
        return wanted && !marked ? std::string_view(metaspace->mark) : std::string_view();
      };
      rewrite(text, front, scratch.pieces, mark, [&](std::string_view part, std::string& out) {
        for (const char byte : part) {
          if (byte == ' ') {
            out += metaspace->mark;
          } else {
            out.push_back(byte);
          }
        }
      });
      continue;
    }
    scratch.next.clear();
    for (const Range& piece : scratch.pieces) {
      if (const auto* separators = std::get_if<Cut>(&stage)) cut(*separators, text, piece, scratch);
      if (std::holds_alternative<ScriptRuns>(stage)) cut_scripts(text, piece, scratch.next);
      if (const auto* fixed = std::get_if<FixedLength>(&stage))
        cut_lengths(fixed->length, text, piece, scratch.next);
    }
    std::swap(scratch.pieces, scratch.next);
  }
}

void PreTokenizer::cut_scripts(std::string_view text, Range piece, std::vector<Range>& pieces) {
  constexpr int32_t kAny = -1;
  constexpr int32_t kNone = -2;
  int32_t last = kNone;
  for (size_t at = piece.begin; at < piece.end;) {
    const CodePoint c = decode_code_point(text, at);
    const int32_t run = script_run(c.value);
    // What stands before the first character that has a script belongs to no run and is dropped,
    // as in the reference.
    const bool begins = run != kAny && run != last;
    if (begins) {
      pieces.push_back({at, at + c.length});
    } else if (last != kNone) {
      pieces.back().end = at + c.length;
    }
    if (run != kAny) last = run;
    at += c.length;
  }
}

void PreTokenizer::cut_lengths(int32_t length, std::string_view text, Range piece,
                               std::vector<Range>& pieces) {
  int32_t count = length;
  for (size_t at = piece.begin; at < piece.end; ++count) {
    const size_t end = at + decode_code_point(text, at).length;
    if (count == length) {
      pieces.push_back({at, end});
      count = 0;
    } else {
      pieces.back().end = end;
    }
    at = end;
  }
}

void PreTokenizer::cut(const Cut& stage, std::string_view text, Range piece, Scratch& scratch) {
  // A piece is a text of its own: look-around does not see its neighbours.
  const std::string_view inside = text.substr(piece.begin, piece.end - piece.begin);
  scratch.matches.clear();
  if (const auto* regex = std::get_if<Regex>(&stage.separator)) {
    regex->find_all(inside, scratch.regex, scratch.matches);
  } else {
    const Predicate is_separator = std::get<Predicate>(stage.separator);
    for (size_t at = 0; at < inside.size();) {
      const CodePoint c = decode_code_point(inside, at);
      if (is_separator(c.value)) scratch.matches.push_back({at, at + c.length});
      at += c.length;
    }
  }
  const size_t first = scratch.next.size();
  bool previous = false;  // whether the part before was a separator
  // Calls f(range, is_separator) for matches and the parts between them, front to back.
  const auto for_each_part = [&](auto&& f) {
    size_t at = piece.begin;
    for (const Range& match : scratch.matches) {
      if (at < piece.begin + match.begin) f(Range{at, piece.begin + match.begin}, stage.invert);
      f(Range{piece.begin + match.begin, piece.begin + match.end}, !stage.invert);
      at = piece.begin + match.end;
    }
    if (at < piece.end) f(Range{at, piece.end}, stage.invert);
  };
  switch (stage.behavior) {
    case Behavior::isolated:
      for_each_part([&](Range part, bool) { scratch.next.push_back(part); });
      break;
    case Behavior::removed:
      for_each_part([&](Range part, bool separator) {
        if (!separator) scratch.next.push_back(part);
      });
      break;
    case Behavior::merged_with_previous:
      for_each_part([&](Range part, bool separator) {
        if (separator && !previous && scratch.next.size() > first) {
          scratch.next.back().end = part.end;
        } else {
          scratch.next.push_back(part);
        }
        previous = separator;
      });
      break;
    case Behavior::merged_with_next: {
      bool pending = false;  // the last pushed part is a separator that the next part takes in
      for_each_part([&](Range part, bool separator) {
        if (pending && !separator) {
          scratch.next.back().end = part.end;
        } else {
          scratch.next.push_back(part);
        }
        pending = separator;
      });
      break;
    }
    case Behavior::contiguous:
      for_each_part([&](Range part, bool separator) {
        if (separator == previous && scratch.next.size() > first) {
          scratch.next.back().end = part.end;
        } else {
          scratch.next.push_back(part);
        }
        previous = separator;
      });
      break;
  }
  // Empty matches cut, and leave nothing.
  const auto begin = scratch.next.begin() + static_cast<std::ptrdiff_t>(first);
  const auto is_empty = [](const Range& part) { return part.begin == part.end; };
  scratch.next.erase(std::remove_if(begin, scratch.next.end(), is_empty), scratch.next.end());
}

}  // namespace rhea::tokenizer
