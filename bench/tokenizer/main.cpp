// Speed of encoding and of training a vocabulary: one line of JSON for bench/tokenizer/compare.py.
#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>

#include "rhea/base/error.h"
#include "rhea/base/json.h"
#include "rhea/base/thread_pool.h"
#include "rhea/components/tokenizer/bpe_trainer.h"
#include "rhea/components/tokenizer/sha256.h"
#include "rhea/components/tokenizer/tokenizer.h"

namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

// One JSON string a line.
std::vector<std::string> read_documents(const char* path) {
  std::ifstream file(path);
  std::vector<std::string> documents;
  for (std::string line; std::getline(file, line);)
    documents.push_back(rhea::parse_json(line).get<std::string>());
  if (documents.empty()) throw rhea::Error("{}: no documents", path);
  return documents;
}

// SHA-256 of the ids of all documents, each with its number of ids before it, as 4-byte integers.
std::string digest_of(const std::vector<std::vector<int32_t>>& documents) {
  std::string bytes;
  const auto append = [&](const int32_t* values, size_t count) {
    bytes.append(reinterpret_cast<const char*>(values), count * sizeof *values);
  };
  for (const auto& ids : documents) {
    const auto count = static_cast<int32_t>(ids.size());
    append(&count, 1);
    append(ids.data(), ids.size());
  }
  return rhea::tokenizer::sha256_hex(bytes);
}

void encode(const char* tokenizer_path, const std::vector<std::string>& documents, int threads) {
  const auto tokenizer = rhea::tokenizer::load_tokenizer(tokenizer_path);
  rhea::ThreadPool pool(threads);
  std::vector<std::vector<int32_t>> ids(documents.size());
  const auto begin = Clock::now();
  pool.parallel_for(static_cast<int64_t>(documents.size()), [&](int64_t first, int64_t last, int) {
    for (auto i = static_cast<size_t>(first); i < static_cast<size_t>(last); ++i)
      ids[i] = tokenizer->encode(documents[i], {.add_specials = false});
  });
  const double seconds = seconds_since(begin);
  size_t num_tokens = 0;
  for (const auto& document : ids) num_tokens += document.size();
  fmt::print("{{\"seconds\":{},\"tokens\":{},\"digest\":\"{}\"}}\n", seconds, num_tokens,
             digest_of(ids));
}

void train(int64_t vocab_size, const std::vector<std::string>& documents) {
  const auto begin = Clock::now();
  rhea::tokenizer::BpeTrainer trainer({.vocab_size = vocab_size,
                                       .min_frequency = 0,
                                       .pattern = rhea::tokenizer::CutPattern::gpt2,
                                       .special_tokens = {}});
  for (const std::string& document : documents) trainer.add(document);
  const auto bpe = trainer.train();
  fmt::print("{{\"seconds\":{},\"merges\":[", seconds_since(begin));
  for (size_t i = 0; i < bpe.merges.size(); ++i) {
    const auto& [left, right] = bpe.merges[i];
    fmt::print("{}{}", i == 0 ? "" : ",",
               nlohmann::json(
                   {bpe.tokens[static_cast<size_t>(left)], bpe.tokens[static_cast<size_t>(right)]})
                   .dump());
  }
  fmt::print("]}}\n");
}

}  // namespace

int main(int argc, char** argv) {
  try {
    if (argc == 5 && std::strcmp(argv[1], "encode") == 0) {
      encode(argv[2], read_documents(argv[3]), std::atoi(argv[4]));
    } else if (argc == 4 && std::strcmp(argv[1], "train") == 0) {
      train(std::atoll(argv[2]), read_documents(argv[3]));
    } else {
      std::fputs("usage: tokenizer encode TOKENIZER DOCUMENTS THREADS | train ENTRIES DOCUMENTS\n",
                 stderr);
      return 2;
    }
  } catch (const std::exception& error) {
    std::fprintf(stderr, "tokenizer: %s\n", error.what());
    return 1;
  }
  return 0;
}
