// A step in bf16 where the CPU has matrix tiles: the library multiplies, on weights in rows.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "rhea/base/cpu_features.h"
#include "rhea/base/cpu_tiles.h"
#include "rhea/components/train_step/test_training.h"
#include "rhea/ops/onednn_version.h"
#include "rhea/ops/ops.h"
#include "tests/support/scoped_environment.h"

namespace rhea::train_step {
namespace {

using support::ScopedEnvironment;
using testing::Each;
using testing::HasSubstr;
using testing::StartsWith;

// Rows enough for packed weights.
StepOptions many_rows() {
  StepOptions options = small_options(DType::bf16);
  options.trace.num_tokens = 256;
  options.accumulates = false;
  return options;
}

struct Products {
  std::set<std::string> kernels, notes;
  int64_t num_sums = 0;    // with the squares of what they write
  int64_t num_packed = 0;  // copies of weights in panels, that the update writes
};

Products products() {
  const StepGraphs graphs = build_step_graphs(small_model(), many_rows());
  Products found;
  for (const ir::Node& node : graphs.update.nodes()) {
    for (const ir::Type& type : node.outputs)
      found.num_packed += type.layout == ir::Layout::row_major ? 0 : 1;
  }
  const StepPlan plan = plan_step(graphs, 2, {});
  for (const auto& [name, report] : plan.graphs) {
    for (const auto& node : report.nodes) {
      if (node.op == "weight_grad_squares") ++found.num_sums;
      if (node.op != "dot_general") continue;
      found.kernels.insert(node.kernel);
      found.notes.insert(node.note);
    }
  }
  return found;
}

TEST(StepOnTiles, LeavesWeightsInRowsForTheLibrary) {
  const ScopedEnvironment isa("RHEA_ISA", "amx_bf16");
  if (!active_tiles() || ops::onednn_version() == "not built in")
    GTEST_SKIP() << "oneDNN multiplies as for tiles on CPUs with avx512_bf16 and in builds that "
                    "have it; here: "
                 << isa_name(detected_isa()) << ", oneDNN " << ops::onednn_version();
  const Products found = products();
  EXPECT_THAT(found.kernels, testing::ElementsAre("onednn_amx"));
  EXPECT_THAT(found.notes, Each(HasSubstr("before panels: the CPU has matrix tiles")));
  EXPECT_EQ(found.num_packed, 0);
  EXPECT_EQ(found.num_sums, 0);
}

// RHEA_ISA=avx512_bf16 leaves tiles unused.
TEST(StepOnTiles, OrNotAtAll) {
  const ScopedEnvironment isa("RHEA_ISA", "avx512_bf16");
  const Products found = products();
  EXPECT_THAT(found.kernels, Each(StartsWith("panels_")));
  if (active_isa() >= Isa::avx512 && ops::onednn_version() != "not built in") {
    EXPECT_THAT(found.notes, Each(HasSubstr("before onednn: faster")));
  }
  EXPECT_GT(found.num_packed, 0);
  EXPECT_GT(found.num_sums, 0);
}

}  // namespace
}  // namespace rhea::train_step
