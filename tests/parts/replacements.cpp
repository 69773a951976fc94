// Optimizer, loss and data of a run replaced as nodes of its config, by parts of parts.cpp.
#include "rhea/plugin/plugin.h"
#include "shared.h"

RHEA_PLUGIN(p) {
  p.override<rhea::OptimizerConfig>("lion", {}, [](const rhea::OptimizerConfig& stock) {
    rhea::OptimizerConfig made = stock;
    for (auto& group : made.param_groups) {
      group.optimizer_name = "Lion";
      group.optimizer_kwargs = {};
      group.optimizer_kwargs.lr = 1e-3;
      group.optimizer_kwargs.more = {"lambda=0.01"};
    }
    return made;
  });
  p.override<rhea::ChunkedLossConfig>("z_loss", {}, [](const rhea::ChunkedLossConfig&) {
    parts::ZLoss made;
    made.z_weight = 1e-4;
    return made;
  });
  p.override<rhea::DataloaderConfig>("countdown", {.fqns = {"dataloader"}},
                                     [](const rhea::DataloaderConfig& stock) {
                                       auto made = rhea::derive<parts::CountdownConfig>(stock);
                                       made.dataset = "countdown";
                                       made.start = 1003;
                                       return made;
                                     });
}
