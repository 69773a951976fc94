// Every component of tokenizer.json with every option, against what the package `tokenizers` gives
// (tests/data/golden/tokenizer/components.json, made by tools/tokenizer_reference.py).
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "rhea/base/json.h"
#include "rhea/base/mapped_file.h"
#include "rhea/components/tokenizer/bpe_trainer.h"
#include "rhea/components/tokenizer/decoder.h"
#include "rhea/components/tokenizer/normalizer.h"
#include "rhea/components/tokenizer/pre_tokenizer.h"
#include "rhea/components/tokenizer/tokenizer.h"

namespace rhea::tokenizer {
namespace {

using nlohmann::json;

const json& goldens() {
  static const json file =
      rhea::parse_json(read_file(RHEA_SOURCE_DIR "/tests/data/golden/tokenizer/components.json"));
  return file;
}

TEST(ComponentGolden, normalizers) {
  for (const json& entry : goldens().at("normalizers")) {
    const Normalizer normalizer(JsonField(entry.at("component"), "normalizer"));
    for (const json& example : entry.at("cases")) {
      auto text = example.at(0).get<std::string>();
      normalizer.apply(text);
      EXPECT_EQ(text, example.at(1).get<std::string>())
          << entry.at("component") << " of " << example.at(0);
    }
  }
}

TEST(ComponentGolden, pre_tokenizers) {
  PreTokenizer::Scratch scratch;
  for (const json& entry : goldens().at("pre_tokenizers")) {
    const PreTokenizer pre_tokenizer(JsonField(entry.at("component"), "pre_tokenizer"));
    for (const json& example : entry.at("cases")) {
      auto text = example.at(0).get<std::string>();
      pre_tokenizer.split(text, /*at_start=*/true, scratch);
      json pieces = json::array();
      for (const Range& piece : scratch.pieces)
        pieces.push_back(text.substr(piece.begin, piece.end - piece.begin));
      EXPECT_EQ(pieces, example.at(1)) << entry.at("component") << " of " << example.at(0);
    }
  }
}

TEST(ComponentGolden, decoders) {
  for (const json& entry : goldens().at("decoders")) {
    const Decoder decoder(JsonField(entry.at("component"), "decoder"));
    for (const json& example : entry.at("cases")) {
      std::vector<Decoder::Piece> pieces;
      for (const json& token : example.at(0)) pieces.push_back({token.get<std::string>(), false});
      EXPECT_EQ(decoder.decode(pieces), example.at(1).get<std::string>())
          << entry.at("component") << " of " << example.at(0);
    }
  }
}

// Models, added tokens, post-processors, truncation and padding, in random combinations.
TEST(ComponentGolden, tokenizers) {
  size_t number = 0;
  for (const json& entry : goldens().at("tokenizers")) {
    const auto tokenizer = parse_tokenizer(entry.at("json").dump(), "", "golden");
    for (const json& example : entry.at("cases")) {
      const auto text = example.at("text").get<std::string>();
      const auto where = [&] {
        json parts = entry.at("json");
        parts["model"].erase("vocab");
        parts["model"].erase("merges");
        return "tokenizer " + std::to_string(number) + " " + parts.dump() + " of " +
               example.at("text").dump();
      };
      EXPECT_EQ(json(tokenizer->encode(text, {.add_specials = false})), example.at("ids"))
          << where();
      const auto ids = tokenizer->encode(text);
      EXPECT_EQ(json(ids), example.at("with_specials")) << where();
      EXPECT_EQ(json(tokenizer->encode(text, {.truncate_and_pad = true})), example.at("limited"))
          << where();
      EXPECT_EQ(tokenizer->decode(ids), example.at("decoded").get<std::string>()) << where();
    }
    ++number;
  }
}

TEST(ComponentGolden, trained_merges) {
  for (const json& entry : goldens().at("trained")) {
    BpeTrainer trainer({.vocab_size = entry.at("vocab_size"),
                        .min_frequency = entry.at("min_frequency"),
                        .pattern = CutPattern::gpt2,
                        .special_tokens = {}});
    for (const json& document : entry.at("documents")) trainer.add(document.get<std::string>());
    const TrainedBpe bpe = trainer.train();
    EXPECT_EQ(json(bpe.tokens), entry.at("tokens"));
    json merges = json::array();
    for (const auto& [left, right] : bpe.merges)
      merges.push_back(
          {bpe.tokens[static_cast<size_t>(left)], bpe.tokens[static_cast<size_t>(right)]});
    EXPECT_EQ(merges, entry.at("merges"));
  }
}

}  // namespace
}  // namespace rhea::tokenizer
