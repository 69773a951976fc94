// The in-tree data sets.
#pragma once
#include "rhea/components/data/datasets.h"

namespace rhea::data {

void add_builtin_datasets(NamedTable<Dataset>& table);

}  // namespace rhea::data
