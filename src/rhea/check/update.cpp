// An optimizer from outside: one update, against that of stock.
#include <fmt/ranges.h>

#include <set>

#include "rhea/base/error.h"
#include "rhea/check/part.h"
#include "rhea/check/subjects.h"

namespace rhea::check {
namespace {

constexpr size_t kMostParameters = 6;

// Parameters of different shapes; of each the new value.
std::vector<std::string> some_outputs(const train_step::StepGraphs& graphs) {
  std::vector<std::string> names;
  std::set<ir::Shape> shapes;
  for (const nn::Parameter& parameter : graphs.parameters) {
    const std::string name = "new." + parameter.fqn;
    if (names.size() == kMostParameters || graphs.update.find_output(name) == nullptr) continue;
    if (shapes.insert(parameter.shape).second) names.push_back(name);
  }
  return names;
}

Side side_of(train_step::StepGraphs& graphs, const std::vector<std::string>& names) {
  std::vector<ir::Value> results;
  for (const std::string& name : names) {
    const ir::GraphOutput* output = graphs.update.find_output(name);
    if (output == nullptr) throw Error("the replacement does not update {}", name.substr(4));
    results.push_back(graphs.update.value(output->value));
  }
  Side side;
  side.graph = cut_part(
      graphs.update, {.arguments = {}, .results = results, .parameters = {}, .gradients = false});
  fill_inputs(side.graph,
              {.parameters = graphs.parameters, .constants = graphs.constants, .rope_specs = {}},
              side.inputs);
  return side;
}

}  // namespace

void check_update(const TrainerConfig& stock, const TrainerConfig& changed, const Means& means,
                  Report& report) {
  const Setting setting = settings_of(stock).front();
  train_step::StepGraphs theirs = graphs_of(stock, setting), mine = graphs_of(changed, setting);
  const std::vector<std::string> names = some_outputs(theirs);
  try {
    Question question;
    question.timed = true;
    question.stock = side_of(theirs, names);
    question.stock.options.added_kernels = false;
    question.other = side_of(mine, names);
    compare_into(report, fmt::format("float32, step 3: {}", fmt::join(names, " ")),
                 std::move(question), means);
  } catch (const Error& error) {
    report.fault(error.what());
  }
}

}  // namespace rhea::check
