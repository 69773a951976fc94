// Rules of batches: the same rows whatever the threads, exact resume, documents kept apart.
#include "rhea/components/data/data_loader.h"

#include <gmock/gmock.h>

#include <map>
#include <nlohmann/json.hpp>
#include <random>
#include <set>

#include "rhea/base/json.h"
#include "rhea/components/data/debug_text.h"
#include "rhea/components/data/epoch_order.h"
#include "rhea/components/data/numbered_rows.h"
#include "rhea/components/data/test_files.h"
#include "rhea/components/safetensors/reader.h"
#include "rhea/components/safetensors/writer.h"

namespace rhea::data {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using Ints = std::vector<int32_t>;

// `count` documents of letters, of 0 to `longest` of them; as JSON lines.
std::string random_rows(int count, size_t longest, unsigned seed = 1) {
  std::mt19937 random(seed);
  std::string rows;
  for (int i = 0; i < count; ++i) {
    std::string text;
    for (size_t left = random() % (longest + 1); left > 0; --left)
      text.push_back(static_cast<char>('a' + random() % 26));
    rows += "{\"text\":\"" + text + "\"}\n";
  }
  return rows;
}

DataLoaderOptions small_options(const std::string& path) {
  DataLoaderOptions options;
  options.dataset = "jsonl";
  options.dataset_path = path;
  options.rows = 3;
  options.seq_len = 8;
  return options;
}

// Input, labels and positions of up to `count` batches, one after the other.
std::vector<Ints> take(DataLoader& loader, int count) {
  std::vector<Ints> rows;
  Batch batch;
  for (int i = 0; i < count && loader.next(batch); ++i) {
    rows.push_back(batch.input);
    rows.push_back(batch.labels);
    rows.push_back(batch.positions);
  }
  return rows;
}

std::vector<Ints> take(const DataLoaderOptions& options, int count) {
  DataLoader loader(options, letter_tokenizer());
  return take(loader, count);
}

TEST(DebugText, has_15217_documents_in_two_parts) {
  if (!std::filesystem::exists(kDebugTextFolder))
    GTEST_SKIP() << "fortunes and fortunes-min are not installed";
  const int64_t train = *open_debug_text(kDebugTextFolder, DebugTextPart::train)->num_documents();
  const int64_t validation =
      *open_debug_text(kDebugTextFolder, DebugTextPart::validation)->num_documents();
  EXPECT_EQ(read_debug_text(kDebugTextFolder).size(), 2576674U);
  EXPECT_EQ(train + validation, 15217);
  EXPECT_EQ(validation, 15217 / 50);
}

TEST(DebugText, a_separator_is_a_line_that_is_exactly_a_percent_sign) {
  EXPECT_EQ(split_fortunes("a\nb\n%\n%DCL-I\n%\n%\n\n%\nx\b_\n"),
            (std::vector<std::string>{"a\nb", "%DCL-I", "x\b_"}));
}

TEST(DataLoader, D14_no_token_is_lost_or_doubled_at_a_seam) {
  const TestFolder folder;
  // With bos and eos: 9 tokens (8 positions, one row) and 30 tokens (29 positions).
  const std::string rows =
      "{\"text\":\"abcdefg\"}\n{\"text\":\"abcdefghijklmnopqrstuvwxyzab\"}\n{\"text\":\"z\"}\n{"
      "\"text\":\"z\"}\n";
  DataLoaderOptions options = small_options(folder.write("a.jsonl", rows));
  options.rows = 1;
  options.infinite = false;
  DataLoader loader(options, letter_tokenizer());
  Batch batch;
  ASSERT_TRUE(loader.next(batch));
  EXPECT_THAT(batch.input, ElementsAre(0, 2, 3, 4, 5, 6, 7, 8));
  EXPECT_THAT(batch.labels, ElementsAre(2, 3, 4, 5, 6, 7, 8, 1));
  EXPECT_THAT(batch.positions, ElementsAre(0, 1, 2, 3, 4, 5, 6, 7));
  Ints input, labels;
  for (int row = 0; row < 3; ++row) {
    ASSERT_TRUE(loader.next(batch));
    EXPECT_THAT(batch.positions, ElementsAre(0, 1, 2, 3, 4, 5, 6, 7));
    input.insert(input.end(), batch.input.begin(), batch.input.end());
    labels.insert(labels.end(), batch.labels.begin(), batch.labels.end());
  }
  for (size_t i = 0; i + 1 < input.size(); ++i) EXPECT_EQ(labels[i], input[i + 1]);
  ASSERT_TRUE(loader.next(batch));
  EXPECT_THAT(batch.input, ElementsAre(25, 26, 27, 2, 3, 0, 27, 0));
  EXPECT_THAT(batch.labels, ElementsAre(26, 27, 2, 3, 1, 27, 1, 27));
  EXPECT_THAT(batch.positions, ElementsAre(0, 1, 2, 3, 4, 0, 1, 0));
  EXPECT_EQ(batch.num_valid_labels, 8);
  EXPECT_FALSE(loader.next(batch));
  EXPECT_FALSE(loader.next(batch));
}

TEST(DataLoader, rows_do_not_depend_on_workers_and_prefetch) {
  const TestFolder folder;
  for (const std::string& path : {folder.write("a.jsonl", random_rows(100, 30)),
                                  folder.write_gzip("a.gz", random_rows(100, 30))})
    for (const Packing packing : {Packing::concat, Packing::first_fit, Packing::greedy}) {
      DataLoaderOptions options = small_options(path);
      options.packing = packing;
      const auto expected = take(options, 120);
      for (const int workers : {1, 2, 5})
        for (const int prefetch : {1, 7}) {
          options.num_workers = workers;
          options.prefetch_factor = prefetch;
          ASSERT_EQ(take(options, 120), expected) << workers << " workers, prefetch " << prefetch;
        }
    }
}

TEST(DataLoader, D11_resumes_anywhere_with_the_same_rows) {
  const TestFolder folder;
  for (const std::string& path : {folder.write("a.jsonl", random_rows(40, 60)),
                                  folder.write_zstd("a.zst", random_rows(40, 60))})
    for (const Packing packing : {Packing::concat, Packing::first_fit, Packing::greedy})
      for (const int workers : {0, 3}) {
        DataLoaderOptions options = small_options(path);
        options.packing = packing;
        options.shuffle = packing != Packing::concat;
        options.num_workers = workers;
        constexpr int kBatches = 150;  // several epochs
        DataLoader whole(options, letter_tokenizer());
        std::vector<std::string> states = {whole.state()};
        std::vector<Ints> expected;
        for (int i = 0; i < kBatches; ++i) {
          const auto batch = take(whole, 1);
          expected.insert(expected.end(), batch.begin(), batch.end());
          states.push_back(whole.state());
        }
        // In pieces, each from the state that the piece before it ended with.
        std::vector<Ints> pieces;
        std::string state = states[0];
        for (const int length : {1, 2, 60, 40, 47}) {
          DataLoader loader(options, letter_tokenizer());
          loader.restore(state);
          const auto piece = take(loader, length);
          pieces.insert(pieces.end(), piece.begin(), piece.end());
          state = loader.state();
        }
        ASSERT_EQ(pieces, expected);
        ASSERT_EQ(state, states[kBatches]);
        EXPECT_GE(parse_json(state).at("source").at("epoch").get<int>(), 2);
      }
}

TEST(DataLoader, D16_the_order_of_epochs_follows_the_loaders_own_seed) {
  const TestFolder folder;
  DataLoaderOptions options = small_options(folder.write("a.jsonl", random_rows(50, 20)));
  const auto first = take(options, 60);
  EXPECT_EQ(take(options, 60), first);
  options.seed = 43;
  const auto other = take(options, 60);
  EXPECT_NE(other, first);
  // Epoch 0 is in file order for every seed.
  EXPECT_EQ(Ints(other[0]), Ints(first[0]));
  options.shuffle = true;
  EXPECT_NE(take(options, 1)[0], first[0]);
}

TEST(DataLoader, every_document_once_per_epoch_over_all_ranks) {
  const TestFolder folder;
  std::string rows;
  for (int i = 0; i < 26; ++i)
    rows += std::string("{\"text\":\"") + static_cast<char>('a' + i) + "\"}\n";
  for (const std::string& path : {folder.write("a.jsonl", rows), folder.write_gzip("a.gz", rows)})
    for (const int dp_size : {1, 3, 4}) {
      std::map<int32_t, int> seen;
      for (int rank = 0; rank < dp_size; ++rank) {
        DataLoaderOptions options = small_options(path);
        options.rows = 1;
        options.seq_len = 2;  // bos and the letter
        options.infinite = false;
        options.dp_rank = rank;
        options.dp_size = dp_size;
        options.shuffle = true;
        DataLoader loader(options, letter_tokenizer());
        for (Batch batch; loader.next(batch);) ++seen[batch.input[1]];
      }
      EXPECT_EQ(seen.size(), 26U);
      for (const auto& [token, count] : seen) EXPECT_EQ(count, 1) << token;
    }
}

TEST(DataLoader, another_number_of_ranks_goes_on_with_every_document) {
  const TestFolder folder;
  std::string rows;
  constexpr int kLetters = 26;
  for (int i = 0; i < kLetters; ++i)
    rows += std::string("{\"text\":\"") + static_cast<char>('a' + i) + "\"}\n";
  for (const std::string& path : {folder.write("a.jsonl", rows), folder.write_gzip("a.gz", rows)}) {
    DataLoaderOptions options = small_options(path);
    options.rows = 1;
    options.seq_len = 2;  // bos and the letter
    options.shuffle = true;
    std::map<int32_t, int> seen;
    std::vector<std::string> states;
    // 3 ranks take 2 rows each, then 2 ranks take 3 each, then 4 ranks take the rest of the epoch.
    for (const auto& [dp_size, count] : {std::pair{3, 2}, {2, 3}, {4, 4}}) {
      std::vector<std::string> next_states;
      for (int rank = 0; rank < dp_size; ++rank) {
        options.dp_rank = rank;
        options.dp_size = dp_size;
        options.infinite = dp_size != 4;
        DataLoader loader(options, letter_tokenizer());
        if (!states.empty()) loader.restore(states);
        Batch batch;
        for (int i = 0; i < count && loader.next(batch); ++i) ++seen[batch.input[1]];
        next_states.push_back(loader.state());
      }
      states = next_states;
    }
    EXPECT_EQ(seen.size(), static_cast<size_t>(kLetters)) << path;
    for (const auto& [token, count] : seen) EXPECT_EQ(count, 1) << token;
  }
}

TEST(DataLoader, carried_tokens_of_other_ranks_come_first) {
  const TestFolder folder;
  const std::string path = folder.write(
      "a.jsonl", "{\"text\":\"abcdefghijkl\"}\n{\"text\":\"mnopqrstuvwx\"}\n{\"text\":\"yyy\"}\n");
  DataLoaderOptions options = small_options(path);
  options.rows = 1;
  options.dp_size = 2;
  std::vector<std::string> states;
  for (options.dp_rank = 0; options.dp_rank < 2; ++options.dp_rank) {
    DataLoader loader(options, letter_tokenizer());
    take(loader, 1);
    states.push_back(loader.state());
  }
  options.dp_rank = 0;
  options.dp_size = 1;
  DataLoader loader(options, letter_tokenizer());
  loader.restore(states);
  Batch batch;
  ASSERT_TRUE(loader.next(batch));
  // Rank 0 has read the first document, rank 1 the second; 5 positions of each are left.
  EXPECT_EQ(batch.input, (Ints{9, 10, 11, 12, 13, 21, 22, 23}));
  EXPECT_EQ(batch.labels, (Ints{10, 11, 12, 13, 1, 22, 23, 24}));
  EXPECT_EQ(batch.positions, (Ints{0, 1, 2, 3, 4, 0, 1, 2}));
  EXPECT_THAT(error_of([&] { loader.restore(states[0]); }),
              HasSubstr("dp_size was 2, now it is 1"));
}

TEST(DataLoader, fewer_documents_than_ranks_is_refused) {
  const TestFolder folder;
  DataLoaderOptions options = small_options(folder.write("a.jsonl", random_rows(3, 5)));
  options.dp_size = 4;
  EXPECT_THAT(error_of([&] { DataLoader(options, letter_tokenizer()); }),
              HasSubstr("fewer than the 4 data-parallel ranks"));
}

TEST(DataLoader, a_bad_row_stops_after_the_rows_before_it_or_is_counted) {
  const TestFolder folder;
  const std::string path = folder.write(
      "a.jsonl",
      "{\"text\":\"abcdefg\"}\n\n{\"text\":7}\n{\"text\":\"\"}\n{\"text\":\"abcdefg\"}\n");
  DataLoaderOptions options = small_options(path);
  options.rows = 1;
  options.infinite = false;
  Batch batch;
  DataLoader stopping(options, letter_tokenizer());
  EXPECT_TRUE(stopping.next(batch));
  EXPECT_THAT(error_of([&] { stopping.next(batch); }),
              HasSubstr(path + ":3: field \"text\" is number, not a string"));
  options.on_bad_row = OnBadRow::skip;
  DataLoader skipping(options, letter_tokenizer());
  EXPECT_TRUE(skipping.next(batch));
  EXPECT_TRUE(skipping.next(batch));
  EXPECT_FALSE(skipping.next(batch));
  EXPECT_EQ(skipping.stats().num_bad_rows, 1);
  EXPECT_EQ(skipping.stats().num_empty, 1);
  EXPECT_EQ(skipping.stats().num_documents, 2);
}

TEST(DataLoader, an_epoch_without_text_ends_in_an_error) {
  const TestFolder folder;
  const DataLoaderOptions options =
      small_options(folder.write("a.jsonl", "{\"text\":\"\"}\n{\"text\":\"\"}\n"));
  EXPECT_THAT(error_of([&] { take(options, 1); }),
              HasSubstr("no document with text in a whole epoch of 2 rows"));
  EXPECT_THAT(error_of([&] { take(small_options(folder.write("b.jsonl", "\n")), 1); }),
              HasSubstr("0 documents"));
}

TEST(DataLoader, whole_documents_are_packed_into_rows_with_room) {
  const TestFolder folder;
  // Positions with bos and eos: 5, 6, 3, 9 (too long), 2.
  const std::string path = folder.write("a.jsonl",
                                        "{\"text\":\"aaaa\"}\n{\"text\":\"bbbbb\"}\n{\"text\":"
                                        "\"cc\"}\n{\"text\":\"dddddddd\"}\n{\"text\":\"e\"}\n");
  DataLoaderOptions options = small_options(path);
  options.rows = 2;
  options.infinite = false;
  options.packing = Packing::first_fit;
  DataLoader loader(options, letter_tokenizer());
  Batch batch;
  ASSERT_TRUE(loader.next(batch));
  EXPECT_EQ(batch.input, (Ints{0, 2, 2, 2, 2, 0, 4, 4, 0, 3, 3, 3, 3, 3, 0, 6}));
  EXPECT_EQ(batch.labels, (Ints{2, 2, 2, 2, 1, 4, 4, 1, 3, 3, 3, 3, 3, 1, 6, 1}));
  EXPECT_EQ(batch.positions, (Ints{0, 1, 2, 3, 4, 0, 1, 2, 0, 1, 2, 3, 4, 5, 0, 1}));
  EXPECT_EQ(loader.stats().num_too_long, 1);
  EXPECT_FALSE(loader.next(batch));

  options.packing = Packing::greedy;
  options.pad_last_batch = true;
  DataLoader greedy(options, letter_tokenizer());
  ASSERT_TRUE(greedy.next(batch));
  EXPECT_EQ(batch.input, (Ints{0, 2, 2, 2, 2, 0, 0, 0, 0, 3, 3, 3, 3, 3, 0, 0}));
  EXPECT_EQ(batch.labels, (Ints{2, 2, 2, 2, 1, -100, -100, -100, 3, 3, 3, 3, 3, 1, -100, -100}));
  EXPECT_EQ(batch.positions, (Ints{0, 1, 2, 3, 4, 0, 1, 2, 0, 1, 2, 3, 4, 5, 0, 1}));
  EXPECT_EQ(batch.num_valid_labels, 11);
  ASSERT_TRUE(greedy.next(batch));
  EXPECT_EQ(batch.num_valid_labels, 5);
  EXPECT_EQ(batch.labels[8], kIgnoreLabel);
  EXPECT_FALSE(greedy.next(batch));
}

TEST(DataLoader, a_state_of_other_data_is_refused_with_both_values) {
  const TestFolder folder;
  DataLoaderOptions options = small_options(folder.write("a.jsonl", random_rows(9, 9)));
  DataLoader loader(options, letter_tokenizer());
  const std::string state = loader.state();
  options.seed = 43;
  DataLoader other(options, letter_tokenizer());
  EXPECT_THAT(error_of([&] { other.restore(state); }), HasSubstr("seed was 42, now it is 43"));
  for (const char* broken : {"", "{}", "[1]", "{\"version\":1}", "nonsense"})
    EXPECT_NE(error_of([&] { loader.restore(broken); }), "no error") << broken;
}

TEST(DataLoader, wrong_options_are_listed_together) {
  DataLoaderOptions options;
  options.rows = 0;
  options.prefetch_factor = 0;
  options.sources = {{.weight = -1}, {.infinite = false}};
  EXPECT_THAT(error_of([&] { DataLoader(options, letter_tokenizer()); }),
              testing::AllOf(HasSubstr("local_batch_size = 0"), HasSubstr("prefetch_factor = 0"),
                             HasSubstr("sources.0.weight = -1"), HasSubstr("sources.1.infinite")));
}

TEST(Mixture, draws_rows_by_weight_and_resumes) {
  const TestFolder folder;
  DataLoaderOptions options = small_options("");
  options.rows = 1;
  options.seq_len = 3;
  options.sources = {{"jsonl", folder.write("a.jsonl", "{\"text\":\"aa\"}\n"), true, 3},
                     {"jsonl", folder.write("b.jsonl", "{\"text\":\"bb\"}\n"), true, 1}};
  DataLoader loader(options, letter_tokenizer());
  const auto first = take(loader, 100);
  const std::string state = loader.state();
  const auto second = take(loader, 900);
  DataLoader resumed(options, letter_tokenizer());
  resumed.restore(state);
  EXPECT_EQ(take(resumed, 900), second);
  int from_a = 0;
  for (const auto* part : {&first, &second})
    for (size_t i = 0; i < part->size(); i += 3) from_a += (*part)[i][1] == 2;
  EXPECT_NEAR(from_a, 750, 60);
}

TEST(Mixture, stops_with_the_first_or_the_last_source) {
  const TestFolder folder;
  DataLoaderOptions options = small_options("");
  options.rows = 1;
  options.seq_len = 2;
  options.sources = {
      {"jsonl", folder.write("a.jsonl", "{\"text\":\"a\"}\n"), false, 1},
      {"jsonl", folder.write("b.jsonl", "{\"text\":\"b\"}\n{\"text\":\"b\"}\n{\"text\":\"b\"}\n"),
       false, 1}};
  options.stopping_strategy = StoppingStrategy::all_exhausted;
  EXPECT_EQ(take(options, 100).size(), 4U * 3);
  options.stopping_strategy = StoppingStrategy::on_first_exhausted;
  EXPECT_LT(take(options, 100).size(), 4U * 3);
}

std::string write_tokens(const TestFolder& folder, const std::string& name, const Ints& input,
                         const Ints& labels, const Ints& positions = {}) {
  const std::string path = folder.path() + "/" + name;
  std::vector<safetensors::TensorSpec> specs;
  std::vector<const Ints*> values;
  const auto add = [&](const char* tensor, const Ints& content) {
    if (content.empty()) return;
    specs.push_back({tensor, safetensors::ElementType::I32, {2, 2, 4}});
    values.push_back(&content);
  };
  add("input", input);
  add("labels", labels);
  add("positions", positions);
  safetensors::Writer writer(path, specs);
  for (size_t k = 0; k < values.size(); ++k) writer.write(k, std::as_bytes(std::span(*values[k])));
  writer.finish();
  return path;
}

TEST(TokenRows, are_read_in_order_without_a_tokenizer) {
  const TestFolder folder;
  Ints input(16);
  for (size_t i = 0; i < input.size(); ++i) input[i] = static_cast<int32_t>(i);
  DataLoaderOptions options = small_options(write_tokens(folder, "t.safetensors", input, {}));
  options.dataset = "tokens";
  options.rows = 2;
  options.seq_len = 4;
  DataLoader loader(options, nullptr);
  Batch batch;
  ASSERT_TRUE(loader.next(batch));
  EXPECT_EQ(batch.input, (Ints{0, 1, 2, 3, 4, 5, 6, 7}));
  EXPECT_EQ(batch.labels, (Ints{1, 2, 3, -100, 5, 6, 7, -100}));
  EXPECT_EQ(batch.positions, (Ints{0, 1, 2, 3, 0, 1, 2, 3}));
  const std::string state = loader.state();
  ASSERT_TRUE(loader.next(batch));
  EXPECT_EQ(batch.input.front(), 8);
  ASSERT_TRUE(loader.next(batch));
  EXPECT_EQ(batch.input.front(), 0);
  DataLoader resumed(options, nullptr);
  resumed.restore(state);
  ASSERT_TRUE(resumed.next(batch));
  EXPECT_EQ(batch.input.front(), 8);
  // Two ranks share each global batch.
  options.rows = 1;
  options.dp_size = 2;
  options.dp_rank = 1;
  DataLoader second_rank(options, nullptr);
  ASSERT_TRUE(second_rank.next(batch));
  EXPECT_EQ(batch.input.front(), 4);
  ASSERT_TRUE(second_rank.next(batch));
  EXPECT_EQ(batch.input.front(), 12);
  options.seq_len = 5;
  EXPECT_THAT(error_of([&] { DataLoader(options, nullptr); }), HasSubstr("training.seq_len = 5"));
}

TEST(TokenRows, ids_outside_the_vocabulary_are_refused_with_their_place) {
  const TestFolder folder;
  Ints labels(16, 3);
  labels[9] = -100;
  labels[14] = 10;
  DataLoaderOptions options =
      small_options(write_tokens(folder, "t.safetensors", Ints(16, 9), labels));
  options.dataset = "tokens";
  options.rows = 1;
  options.seq_len = 4;
  options.vocab_size = 10;
  DataLoader loader(options, nullptr);
  EXPECT_EQ(take(loader, 3).size(), 9U);
  EXPECT_THAT(error_of([&] { take(loader, 1); }),
              HasSubstr("row 3, position 2: label is 10, outside [0, 10) and not -100 (no label)"));
}

// They index tables of seq_len rows, and say where documents begin.
TEST(TokenRows, positions_that_no_document_has_are_refused) {
  const TestFolder folder;
  DataLoaderOptions options = small_options("");
  options.dataset = "tokens";
  options.rows = 4;
  options.seq_len = 4;
  const auto load = [&](const Ints& last_row) {
    Ints positions = {0, 1, 2, 3, 0, 0, 1, 0, 1, 2, 3, 0};
    positions.insert(positions.end(), last_row.begin(), last_row.end());
    options.dataset_path = write_tokens(folder, "p.safetensors", Ints(16, 9), {}, positions);
    DataLoader loader(options, nullptr);
    return take(loader, 1);
  };
  EXPECT_EQ(load({0, 1, 0, 1}).back(), (Ints{0, 1, 2, 3, 0, 0, 1, 0, 1, 2, 3, 0, 0, 1, 0, 1}));
  for (const int32_t outside : {4, 1'000'000'000, -1})
    EXPECT_THAT(error_of([&] {
                  load({outside, 0, 1, 2});
                }),
                testing::AllOf(HasSubstr("p.safetensors: row 3, position 0: position is"),
                               HasSubstr("outside [0, 4)")));
  for (const Ints& jump : {Ints{0, 2, 3, 0}, {3, 2, 1, 0}, {0, 1, 1, 2}})
    EXPECT_THAT(error_of([&] { load(jump); }), HasSubstr("neither restarts at 0 nor follows"));
}

TEST(RandomRows, are_a_function_of_seed_and_row_and_resume) {
  DataLoaderOptions options;
  options.dataset = "random";
  options.rows = 2;
  options.seq_len = 300;
  options.vocab_size = 7;
  DataLoader loader(options, nullptr);
  Batch first, second;
  ASSERT_TRUE(loader.next(first));
  EXPECT_EQ(first.num_valid_labels, 600);
  EXPECT_EQ(first.positions[299], 299);
  EXPECT_EQ(first.positions[300], 0);
  for (size_t i = 0; i + 1 < 300; ++i) ASSERT_EQ(first.labels[i], first.input[i + 1]);
  EXPECT_EQ(std::set<int32_t>(first.input.begin(), first.input.end()),
            (std::set<int32_t>{0, 1, 2, 3, 4, 5, 6}));
  const std::string state = loader.state();
  ASSERT_TRUE(loader.next(second));
  EXPECT_NE(first.input, second.input);

  DataLoader resumed(options, nullptr);
  resumed.restore(state);
  Batch batch;
  ASSERT_TRUE(resumed.next(batch));
  EXPECT_EQ(batch.input, second.input);
  // Two ranks share each global batch.
  options.rows = 1;
  options.dp_size = 2;
  options.dp_rank = 1;
  DataLoader second_rank(options, nullptr);
  ASSERT_TRUE(second_rank.next(batch));
  EXPECT_TRUE(std::equal(batch.input.begin(), batch.input.end(), first.input.begin() + 300));
  options.vocab_size = 0;
  EXPECT_THAT(error_of([&] { DataLoader(options, nullptr); }), HasSubstr("vocabulary is 0"));
}

TEST(EpochOrder, is_a_permutation_for_any_count_and_other_in_each_epoch) {
  for (const int64_t count : {1, 2, 3, 4, 5, 17, 1000, 4097}) {
    std::vector<bool> hit(static_cast<size_t>(count), false);
    int64_t fixed = 0;
    for (int64_t i = 0; i < count; ++i) {
      const int64_t image = permute(i, count, 42, 1);
      ASSERT_FALSE(hit.at(static_cast<size_t>(image)));
      hit[static_cast<size_t>(image)] = true;
      fixed += permute(i, count, 42, 2) == image;
    }
    if (count >= 1000) {
      EXPECT_LT(fixed, 10);
    }
  }
}

// The rows that torchtitan made of the same text with the same tokenizer.
TEST(DataLoader, gives_the_rows_of_torchtitan) {
  const std::filesystem::path shared = std::filesystem::path(RHEA_SHARED_DIR) / "data";
  const auto golden = shared / "golden/titan/llama3_small/tokens.safetensors";
  if (!std::filesystem::exists(golden))
    GTEST_SKIP() << golden << " is absent: it is not in the repository";
  DataLoaderOptions options;
  options.dataset = "jsonl";
  options.dataset_path = (shared / "text/c4_mini_train.jsonl").string();
  options.rows = 4;
  options.seq_len = 256;
  DataLoader text(options, tokenizer::load_tokenizer(shared / "tokenizers/titan_test"));
  options.dataset = "tokens";
  options.dataset_path = golden.string();
  options.infinite = false;
  DataLoader ready(options, nullptr);
  Batch expected, batch;
  int steps = 0;
  for (; ready.next(expected); ++steps) {
    ASSERT_TRUE(text.next(batch));
    ASSERT_EQ(batch.input, expected.input) << "step " << steps;
    ASSERT_EQ(batch.labels, expected.labels) << "step " << steps;
    ASSERT_EQ(batch.positions, expected.positions) << "step " << steps;
  }
  EXPECT_EQ(steps, 30);
}

}  // namespace
}  // namespace rhea::data
