// Data sets that a user's file registers are loaded, resumed and checked as the in-tree ones.
#include "rhea/components/data/open_dataset.h"

#include <gmock/gmock.h>

#include "rhea/components/data/data_loader.h"
#include "rhea/components/data/test_files.h"
#include "tests/support/error_of.h"

namespace rhea::data {
namespace {

using support::error_of;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// A section with a field of its own.
struct SquaresConfig : DataloaderConfig {
  int64_t count = 3;
};

// Row n holds n * n everywhere.
class Squares : public NumberedRows {
 public:
  explicit Squares(int64_t count) : count_(count) {}
  std::optional<int64_t> num_rows() const override { return count_; }
  void read(int64_t number, const RowView& row) const override {
    std::ranges::fill(row.input, static_cast<int32_t>(number * number));
    fill_from_input(row);
  }
  std::string description() const override { return "the squares"; }

 private:
  int64_t count_;
};

void add_squares() {
  if (datasets().find("squares") != nullptr) return;
  datasets().add({.name = "squares",
                  .rows =
                      [](const SourceOptions& source, const DataLoaderOptions&) {
                        const auto* config = dynamic_cast<const SquaresConfig*>(source.config);
                        return std::make_unique<Squares>(config == nullptr ? 2 : config->count);
                      },
                  .path = Dataset::Path::ignored},
                 "squares.cpp");
}

DataLoaderOptions squares_options() {
  add_squares();
  DataLoaderOptions options;
  options.dataset = "Squares";
  options.rows = 1;
  options.seq_len = 2;
  return options;
}

std::vector<int32_t> first_rows(DataLoader& loader, int count) {
  std::vector<int32_t> first_ids;
  Batch batch;
  for (int i = 0; i < count && loader.next(batch); ++i) first_ids.push_back(batch.input[0]);
  return first_ids;
}

TEST(OutsideDataset, ReadyRowsAreDealtLoopedAndResumed) {
  const DataLoaderOptions options = squares_options();
  EXPECT_FALSE(needs_tokenizer("squares"));
  DataLoader loader(options, nullptr);
  EXPECT_EQ(loader.description(), "squares dataset from the squares");
  EXPECT_THAT(first_rows(loader, 3), ElementsAre(0, 1, 0));
  DataLoader resumed(options, nullptr);
  resumed.restore(loader.state());
  EXPECT_THAT(first_rows(resumed, 2), ElementsAre(1, 0));
}

TEST(OutsideDataset, AFiniteOneEndsAndAVocabularyBoundsItsIds) {
  DataLoaderOptions options = squares_options();
  options.infinite = false;
  DataLoader loader(options, nullptr);
  EXPECT_THAT(first_rows(loader, 9), ElementsAre(0, 1));
  options.vocab_size = 1;
  DataLoader bounded(options, nullptr);
  EXPECT_THAT(error_of([&] { first_rows(bounded, 2); }),
              HasSubstr("the squares: row 1, position 0: input is 1, outside [0, 1)"));
}

TEST(OutsideDataset, SeesTheFieldsOfADerivedSection) {
  DataLoaderOptions options = squares_options();
  SquaresConfig config;
  config.count = 4;
  options.config = &config;
  DataLoader loader(options, nullptr);
  EXPECT_THAT(first_rows(loader, 5), ElementsAre(0, 1, 4, 9, 0));
}

TEST(OutsideDataset, DocumentsGoThroughTokenizerAndPacking) {
  class Letters : public DocumentSource {
   public:
    std::optional<int64_t> num_documents() const override { return 2; }
    bool read(int64_t number, Document& document) override {
      document = {number == 0 ? "aaa" : "bbb", ""};
      return number < 2;
    }
    std::string description() const override { return "two words"; }
  };
  datasets().add({.name = "letters",
                  .documents = [](const SourceOptions&,
                                  const DocumentFormat&) { return std::make_unique<Letters>(); }},
                 "letters.cpp");
  DataLoaderOptions options;
  options.dataset = "letters";
  options.rows = 1;
  options.seq_len = 8;
  EXPECT_TRUE(needs_tokenizer("letters"));
  DataLoader loader(options, letter_tokenizer());
  Batch batch;
  ASSERT_TRUE(loader.next(batch));
  EXPECT_THAT(batch.positions, ElementsAre(0, 1, 2, 3, 0, 1, 2, 3));
  EXPECT_THAT(batch.input, ElementsAre(0, 2, 2, 2, 0, 3, 3, 3)) << "<s> a a a, <s> b b b";
}

TEST(Datasets, RowsThatCannotBeAreRefused) {
  add_squares();
  const auto rows = datasets().find("squares")->rows;
  EXPECT_EQ(error_of([&] { datasets().add({.name = "Loud", .rows = rows}, "x.cpp"); }),
            "data set 'Loud' of x.cpp must have a name in lower case");
  EXPECT_EQ(error_of([&] { datasets().add({.name = "none"}, "x.cpp"); }),
            "data set 'none' of x.cpp must open either documents or rows");
  EXPECT_EQ(error_of([&] { datasets().add({.name = "jsonl", .rows = rows}, "x.cpp"); }),
            "data set 'jsonl' is already registered by rhea; x.cpp must take another name");
  EXPECT_EQ(error_of([&] { datasets().add({.name = "squares", .rows = rows}, "x.cpp"); }),
            "data set 'squares' is already registered by squares.cpp; x.cpp must take another "
            "name");
}

TEST(Datasets, AreCheckedBeforeTheRun) {
  add_squares();
  const auto problems = [](const std::string& dataset, std::optional<std::string> path) {
    std::vector<config::Problem> found;
    check_source({dataset, std::move(path)}, "dataloader", found);
    std::vector<std::string> texts;
    for (const auto& problem : found) texts.push_back(to_string(problem));
    return texts;
  };
  EXPECT_THAT(problems("wiki", {}),
              ElementsAre(testing::AllOf(
                  HasSubstr("Dataset wiki is not supported. Supported datasets are: [debug_text, "),
                  HasSubstr("squares"))));
  EXPECT_THAT(problems("JSONL", {}),
              ElementsAre(HasSubstr("dataloader.dataset_path = None: dataset JSONL needs it")));
  EXPECT_THAT(problems("jsonl", "/absent/rows.jsonl"),
              ElementsAre(HasSubstr("there is no such file or folder")));
  EXPECT_THAT(problems("text", "/absent/*.txt"), ElementsAre(HasSubstr("no file matches")));
  EXPECT_THAT(problems("squares", "kept elsewhere"), IsEmpty());
  EXPECT_THAT(problems("debug_text", {}), IsEmpty());
}

}  // namespace
}  // namespace rhea::data
