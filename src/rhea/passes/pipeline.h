// The passes in the order in which they run, and what is done around each of them: switching off
// by name, verifying, dumping.
#pragma once
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "rhea/ir/graph.h"

namespace rhea::passes {

struct PassInfo {
  std::string_view name;
  std::string_view what;
  bool optional = true;  // may be switched off
};
// In the order in which they run; passes/pipeline.cpp is the list.
std::span<const PassInfo> all_passes();
// Throws Error for a name that is no pass, or one that cannot be switched off.
void check_pass_names(std::span<const std::string> disabled);

struct PipelineOptions {
  std::vector<std::string> disable_passes;
  std::string dump_graphs;            // folder, "" = none
  std::string name = "graph";         // file names begin with it
  bool verify = verify_by_default();  // after each pass

  // In builds without NDEBUG, and where the environment has RHEA_VERIFY_GRAPHS=1 as in all tests.
  static bool verify_by_default();
};

class Pipeline {
 public:
  // Throws Error for names that cannot be switched off.
  explicit Pipeline(PipelineOptions options);

  bool runs(std::string_view pass) const;
  // graph = body(graph), unless the pass is switched off.
  void run(std::string_view pass, ir::Graph& graph,
           const std::function<ir::Graph(const ir::Graph&)>& body);
  // Verifies and dumps a graph that was made by other means (traced, split).
  void check(std::string_view pass, const ir::Graph& graph);
  // Writes `text` as the pass's dump: for the last pass, whose result is no graph.
  void dump(std::string_view pass, std::string_view text);

 private:
  PipelineOptions options_;
};

}  // namespace rhea::passes
