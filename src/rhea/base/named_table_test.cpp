// Names, origins and faults of the rows of a table.
#include "rhea/base/named_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/error_of.h"

namespace rhea {
namespace {

struct Row {
  std::string name;
  int value = 0;
};

NamedTable<Row> table() {
  NamedTable<Row> made("optimizer");
  made.add({"AdamW", 1}, kInTree);
  made.add({"SGD", 2}, kInTree);
  return made;
}

TEST(NamedTable, FindsWhatWasAddedAndKeepsTheOrder) {
  NamedTable<Row> t = table();
  const Row* first = t.find("AdamW");
  t.add({"Lion", 3}, "lion.cpp");
  EXPECT_EQ(t.find("AdamW"), first) << "a row stays where it is";
  EXPECT_EQ(t.at("Lion").value, 3);
  EXPECT_EQ(t.find("lion"), nullptr);
  EXPECT_THAT(t.names(), testing::ElementsAre("AdamW", "SGD", "Lion"));
  EXPECT_THAT(t.outside_names(), testing::ElementsAre("Lion (lion.cpp)"));
}

TEST(NamedTable, AClashNamesBothOrigins) {
  NamedTable<Row> t = table();
  t.add({"Lion", 3}, "lion.cpp");
  EXPECT_EQ(support::error_of([&] { t.add({"SGD"}, "mine.cpp"); }),
            "optimizer 'SGD' is already registered by rhea; mine.cpp must take another name");
  EXPECT_EQ(support::error_of([&] { t.add({"Lion"}, "other.cpp"); }),
            "optimizer 'Lion' is already registered by lion.cpp; other.cpp must take another name");
  EXPECT_EQ(t.at("Lion").value, 3) << "the first one stays";
}

TEST(NamedTable, AnUnknownNameIsAnErrorThatListsTheOthers) {
  const NamedTable<Row> t = table();
  EXPECT_EQ(support::error_of([&] { t.at("Lion"); }),
            "optimizer 'Lion' is unknown; known: AdamW, SGD");
}

TEST(NamedTable, ARowNeedsANameAndNoFault) {
  NamedTable<Row> t("optimizer", [](const Row& row) -> std::string_view {
    return row.value < 0 ? "has a value below 0" : "";
  });
  EXPECT_EQ(support::error_of([&] {
              t.add({"Down", -1}, "mine.cpp");
            }),
            "optimizer 'Down' of mine.cpp has a value below 0");
  EXPECT_EQ(t.find("Down"), nullptr);
  EXPECT_EQ(support::error_of([&] { t.add({}, "mine.cpp"); }),
            "mine.cpp: the name of the optimizer is empty");
}

}  // namespace
}  // namespace rhea
