// Configs that parts.cpp reads and replacements.cpp puts into runs.
#pragma once
#include "rhea/config/sections/data.h"
#include "rhea/config/sections/loss.h"

namespace parts {

// A section `dataloader` with a field of its own.
struct CountdownConfig : rhea::DataloaderConfig {
  int64_t start = 1000;
  void fields(rhea::Visitor& v) override {
    DataloaderConfig::fields(v);
    v("start", start, "where the first countdown begins");
  }
};

// Cross entropy plus z_weight times the squares of the logs of the denominators.
struct ZLoss : rhea::LossConfig {
  double z_weight = 1e-3;
  void fields(rhea::Visitor& v) override {
    v("z_weight", z_weight, "weight of the squares", rhea::at_least{0});
  }
};

}  // namespace parts
