// Configs that parts.cpp reads and replacements.cpp and sections.cpp put into runs.
#pragma once
#include "rhea/config/sections/data.h"
#include "rhea/config/sections/loss.h"
#include "rhea/config/sections/metrics.h"
#include "rhea/config/sections/optimizer.h"

namespace parts {

// A section `dataloader` with a field of its own.
struct CountdownConfig : rhea::DataloaderConfig {
  int64_t start = 1000;
  void fields(rhea::Visitor& v) override {
    DataloaderConfig::fields(v);
    v("start", start, "where the first countdown begins");
  }
};

// A section `lr_scheduler`: how much of the rate is left in the second half of the decay.
struct HalvesConfig : rhea::LrSchedulerConfig {
  double rest = 0.5;
  void fields(rhea::Visitor& v) override {
    LrSchedulerConfig::fields(v);
    v("rest", rest, "factor of the second half", rhea::between{0, 1});
  }
};

// A section `tokenizer`: what else the bytes are.
struct BytesConfig : rhea::TokenizerConfig {
  bool upper = false;
  void fields(rhea::Visitor& v) override {
    TokenizerConfig::fields(v);
    v("upper", upper, "small letters are read as capitals");
  }
};

// A section `metrics`: where the losses go.
struct CsvConfig : rhea::MetricsConfig {
  std::string csv_file = "losses.csv";
  void fields(rhea::Visitor& v) override {
    MetricsConfig::fields(v);
    v("csv_file", csv_file, "under dump_folder");
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
