// The table of data sets.
#include "rhea/components/data/datasets.h"

#include "rhea/base/text.h"
#include "rhea/components/data/builtin_datasets.h"

namespace rhea::data {
namespace {

std::string_view fault_of(const Dataset& dataset) {
  if (dataset.name != lower_case(dataset.name)) return "must have a name in lower case";
  return !dataset.documents == !dataset.rows ? "must open either documents or rows" : "";
}

}  // namespace

NamedTable<Dataset>& datasets() {
  static NamedTable<Dataset> table = [] {
    NamedTable<Dataset> made("data set", fault_of);
    add_builtin_datasets(made);
    return made;
  }();
  return table;
}

}  // namespace rhea::data
