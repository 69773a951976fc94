// Sections of a run replaced by configs with a field more, which the rows of parts.cpp read.
#include "rhea/plugin/plugin.h"
#include "shared.h"

struct Capitals : rhea::Config {
  bool upper = true;
  void fields(rhea::Visitor& v) override {
    v("upper", upper, "small letters are read as capitals");
  }
};

RHEA_PLUGIN(p) {
  p.override<rhea::LrSchedulerConfig>("quarter", {}, [](const rhea::LrSchedulerConfig& stock) {
    return rhea::derive<parts::HalvesConfig>(stock, {{"rest", 0.25}});
  });
  p.override<rhea::TokenizerConfig>(
      "capitals", {}, [](const rhea::TokenizerConfig& stock, const Capitals& arguments) {
        return rhea::derive<parts::BytesConfig>(stock,
                                                {{"kind", "bytes"}, {"upper", arguments.upper}});
      });
  p.override<rhea::MetricsConfig>("own_file", {}, [](const rhea::MetricsConfig& stock) {
    return rhea::derive<parts::CsvConfig>(stock, {{"csv_file", "mine.csv"}});
  });
}
