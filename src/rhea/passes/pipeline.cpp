#include "rhea/passes/pipeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "rhea/base/error.h"
#include "rhea/ir/print.h"
#include "rhea/ir/verify.h"

namespace rhea::passes {
namespace {

constexpr PassInfo kPasses[] = {
    {"trace", "model code adds its nodes", false},
    {"autodiff", "gradients by the rows' vjp", false},
    {"simplify", "constants, common subexpressions, dead code, exact algebra"},
    {"pack_weights", "right operands of products in the layout of the kernels"},
    {"hoist", "what depends on parameters alone runs once per optimizer step", false},
    {"remat", "activation checkpointing: what is computed again in the backward pass"},
    {"norm_in_products", "products that write gradients also sum up their squares"},
    {"add_in_products", "gradients of further microbatches are added where the step's lie"},
    {"prepare_in_update",
     "the optimizer writes the casts and packed copies that the next step reads"},
    {"decompose", "ops without a kernel become simpler ones", false},
    {"fuse", "chains of elementwise ops and ops over rows run as one pass over memory"},
    {"order", "readers of a donated buffer run before it is overwritten"},
    {"zero_copy", "slices and joins are views; results take over dying operands"},
    {"share_arena", "gradients and prepared weights lie where activations are dead"},
};

const PassInfo* find(std::string_view name) {
  const auto* at = std::ranges::find(kPasses, name, &PassInfo::name);
  return at == std::end(kPasses) ? nullptr : at;
}

}  // namespace

std::span<const PassInfo> all_passes() { return kPasses; }

void check_pass_names(std::span<const std::string> disabled) {
  std::string names;
  for (const PassInfo& pass : kPasses) {
    if (pass.optional) names += fmt::format("{}{}", names.empty() ? "" : ", ", pass.name);
  }
  for (const std::string& name : disabled) {
    const PassInfo* pass = find(name);
    if (pass == nullptr)
      throw Error("there is no pass '{}': those that can be disabled are {}", name, names);
    if (!pass->optional)
      throw Error("pass '{}' cannot be disabled: those that can are {}", name, names);
  }
}

bool PipelineOptions::verify_by_default() {
#ifdef NDEBUG
  const char* wanted = std::getenv("RHEA_VERIFY_GRAPHS");
  return wanted != nullptr && std::string_view(wanted) == "1";
#else
  return true;
#endif
}

Pipeline::Pipeline(PipelineOptions options) : options_(std::move(options)) {
  check_pass_names(options_.disable_passes);
  if (!options_.dump_graphs.empty()) std::filesystem::create_directories(options_.dump_graphs);
}

bool Pipeline::runs(std::string_view pass) const {
  RHEA_CHECK(find(pass) != nullptr, "pass '{}' is not in the list of passes", pass);
  return std::ranges::find(options_.disable_passes, pass) == options_.disable_passes.end();
}

void Pipeline::run(std::string_view pass, ir::Graph& graph,
                   const std::function<ir::Graph(const ir::Graph&)>& body) {
  if (!runs(pass)) return;
  graph = body(graph);
  check(pass, graph);
}

void Pipeline::dump(std::string_view pass, std::string_view text) {
  const auto number = std::ranges::find(kPasses, pass, &PassInfo::name) - std::begin(kPasses);
  const auto path = std::filesystem::path(options_.dump_graphs) /
                    fmt::format("{}.{:02}_{}.txt", options_.name, number, pass);
  std::ofstream file(path);
  file << text;
  if (!file) throw Error("cannot write the graph to {}", path.string());
}

void Pipeline::check(std::string_view pass, const ir::Graph& graph) {
  if (!options_.dump_graphs.empty()) dump(pass, ir::to_text(graph));
  if (!options_.verify) return;
  try {
    ir::verify(graph);
  } catch (const Error& error) {
    throw Error("after pass {} of graph {}: {}", pass, options_.name, error.what());
  }
}

}  // namespace rhea::passes
