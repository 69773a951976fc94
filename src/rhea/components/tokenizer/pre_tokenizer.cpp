// The pre-tokenizers of tokenizer.json.
#include "rhea/components/tokenizer/pre_tokenizer.h"

#include <nlohmann/json.hpp>

#include <algorithm>

namespace rhea::tokenizer {
namespace {

// The pattern that ByteLevel with use_regex stands for (GPT-2's).
constexpr const char* kByteLevelPattern =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

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
  Stage stage;
  stage.regex.emplace_back(pattern, literal);
  stage.behavior = behavior;
  stage.invert = invert;
  stages_.push_back(std::move(stage));
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
  // Later stages would have to match the byte alphabet instead of the text; no published tokenizer
  // does that.
  if (byte_level_)
    field.fail("\"" + type + "\" after ByteLevel: ByteLevel must be the last pre-tokenizer");
  if (type == "Split") {
    const JsonField pattern = field["pattern"];
    const bool literal = pattern.object().contains("String");
    const JsonField source = pattern[literal ? "String" : "Regex"];
    if (source.string().empty()) source.fail("an empty pattern matches nothing");
    add_regex(source.string(), parse_behavior(field["behavior"]), literal,
              field["invert"].boolean_or(false));
  } else if (type == "ByteLevel") {
    if (field["add_prefix_space"].boolean_or(true)) {
      Stage stage;
      stage.add_prefix_space = true;
      stages_.push_back(std::move(stage));
    }
    if (field["use_regex"].boolean_or(true)) add_regex(kByteLevelPattern, Behavior::isolated);
    byte_level_ = true;
  } else if (type == "Digits") {
    const bool individual = field["individual_digits"].boolean_or(false);
    add_regex(individual ? "\\p{N}" : "\\p{N}+", Behavior::isolated);
  } else if (type == "Whitespace") {
    add_regex("\\w+|[^\\w\\s]+", Behavior::removed, false, true);
  } else if (type == "WhitespaceSplit") {
    add_regex("\\s", Behavior::removed);
  } else {
    field.fail("pre-tokenizer type \"" + type +
               "\" is not supported (Split, ByteLevel, Digits, Whitespace, WhitespaceSplit, "
               "Sequence are)");
  }
  description_ += (description_.empty() ? "" : ", ") + type;
}

void PreTokenizer::split(std::string& text, Scratch& scratch) const {
  scratch.pieces.assign(1, Range{0, text.size()});
  for (const Stage& stage : stages_) {
    if (stage.add_prefix_space) {
      std::string spaced;
      for (Range& piece : scratch.pieces) {
        const size_t begin = spaced.size();
        if (text[piece.begin] != ' ') spaced.push_back(' ');
        spaced.append(text, piece.begin, piece.end - piece.begin);
        piece = {begin, spaced.size()};
      }
      text = std::move(spaced);
      continue;
    }
    scratch.next.clear();
    for (const Range& piece : scratch.pieces) split_piece(stage, text, piece, scratch);
    std::swap(scratch.pieces, scratch.next);
  }
}

void PreTokenizer::split_piece(const Stage& stage, std::string_view text, Range piece,
                               Scratch& scratch) {
  // A piece is a text of its own: look-around does not see its neighbours.
  scratch.matches.clear();
  stage.regex.front().find_all(text.substr(piece.begin, piece.end - piece.begin), scratch.regex,
                               scratch.matches);
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
}

}  // namespace rhea::tokenizer
