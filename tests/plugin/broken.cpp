// One mistake of an author of ops, kernels and modules for each value of RHEA_CASE;
// outside_test.cpp says what Rhea answers.
#include <cstdlib>
#include <stdexcept>

#include "recipes/qwen3.h"
#include "rhea/nn/feed_forward.h"
#include "rhea/ops/ops.h"
#include "rhea/ops/row.h"
#include "rhea/plugin/plugin.h"

namespace {

using rhea::ir::Attrs;
using rhea::ir::CpuKernel;
using rhea::ir::Graph;
using rhea::ir::KernelPlan;
using rhea::ir::OpInstance;
using rhea::ir::Type;
using rhea::nn::Value;
using Values = std::vector<Value>;

bool is(std::string_view name) {
  const char* wanted = std::getenv("RHEA_CASE");
  return wanted != nullptr && wanted == name;
}

// Before anything of this file is called.
const int kEarly = is("static throws 7") ? throw 7 : is("static exits") ? (std::exit(0), 1) : 1;

// The input of a graph that is nobody's.
Value foreign() {
  static Graph other;
  static const Value value = other.input("x", {rhea::DType::f32, {4, 4}});
  return value;
}

std::vector<Type> infer(std::span<const Type> in, const Attrs&) {
  if (is("infer gives nothing")) return {};
  if (is("infer gives a negative dim")) return {{in[0].dtype, {-1, 4}}};
  if (is("infer gives too much")) return {{in[0].dtype, {int64_t{1} << 40, int64_t{1} << 40}}};
  if (is("infer gives a scalar")) return {{in[0].dtype, {}}};
  if (is("infer throws 7")) throw 7;
  if (is("infer throws out_of_range")) throw std::out_of_range("no such dim");
  return {in[0]};
}

Values decompose(Graph&, std::span<const Value> in, const Attrs&) {
  const Value twice = in[0] + in[0];
  if (is("decompose gives nothing")) return {};
  if (is("decompose gives two")) return {twice, twice};
  if (is("decompose gives f64")) return {rhea::ops::convert(twice, rhea::DType::f64)};
  if (is("decompose gives an empty value")) return {Value()};
  if (is("decompose gives a foreign value")) return {foreign()};
  if (is("decompose throws 7")) throw 7;
  return {twice};
}

Values vjp(const rhea::ir::VjpArgs& args) {
  const Value dy = args.cotangents[0];
  if (is("vjp gives nothing")) return {};
  if (is("vjp gives another shape")) return {rhea::ops::reshape(dy, {dy.dim(1), dy.dim(0)})};
  if (is("vjp gives f64")) return {rhea::ops::convert(dy, rhea::DType::f64)};
  if (is("vjp gives a foreign value")) return {foreign()};
  if (is("vjp uses an empty value")) return {dy + Value()};
  if (is("vjp throws 7")) throw 7;
  return {dy + dy};
}

void run(const rhea::ir::KernelArgs&) {}

KernelPlan plan(const OpInstance&) {
  KernelPlan made;
  made.run = run;
  if (is("plan without run")) made.run = nullptr;
  if (is("plan of no items")) made.grid = {0};
  if (is("plan of -3 items")) made.grid = {-3};
  if (is("plan of too many items")) made.grid = {1, int64_t{1} << 62};
  if (is("plan of negative scratch")) made.scratch_bytes = -64;
  if (is("plan of too much workspace")) made.workspace_bytes = int64_t{1} << 60;
  if (is("plan in place of nothing")) made.in_place = {{3, 0}};
  if (is("plan throws 7")) throw 7;
  return made;
}

std::string accepts(const OpInstance&) {
  if (is("accepts throws 7")) throw 7;
  if (is("accepts exits")) std::exit(0);
  return is("accepts refuses") ? "not today" : "";
}

int64_t items(const OpInstance&) {
  if (is("items throws 7")) throw 7;
  return is("items gives 0") ? 0 : 1;
}

void run_items(const rhea::ir::KernelArgs&, const OpInstance&) {}

rhea::ir::OpDef twice_row() {
  rhea::ir::OpDef row{.name = "my_twice", .infer = infer, .decompose = decompose, .vjp = vjp};
  const std::string_view wanted = std::getenv("RHEA_CASE");
  if (wanted.starts_with("plan ") || wanted.starts_with("accepts ") || wanted.starts_with("rows "))
    row.cpu = {{.name = "my_kernel", .accepts = accepts, .plan = plan}};
  if (wanted.starts_with("items "))
    row.cpu = {rhea::ops::to_cpu_kernel({.name = "my_kernel", .items = items, .run = run_items})};
  if (is("kernel of the row without run"))
    row.cpu = {rhea::ops::to_cpu_kernel({.name = "my_kernel"})};
  if (is("kernel of the row without name")) row.cpu = {{.plan = plan}};
  if (is("rows without run"))
    row.rows = [](const OpInstance&, rhea::Isa) { return rhea::ir::RowPlan{.roles = "r->r"}; };
  return row;
}
const rhea::ir::OpDef kTwice = twice_row();

// Doubles what the stock feed-forward gives.
struct Doubled : rhea::nn::FeedForward::Config {
  Value forward(rhea::nn::Trace& trace, Value x_TD) const override {
    const Value y_TD = rhea::nn::FeedForward::Config::forward(trace, x_TD);
    if (is("module uses a foreign value")) return y_TD + foreign();
    if (is("module gives a foreign value")) return foreign();
    if (is("module uses an empty value")) return y_TD + Value();
    const Value made_TD = trace.graph().add1(kTwice, {y_TD});
    return is("infer gives a scalar")
               ? rhea::ops::broadcast_in_dim(made_TD, {y_TD.dim(0), made_TD.dim(-1)}, {0, 1})
               : made_TD;
  }
};

struct MyLoss : rhea::LossConfig {
  void fields(rhea::Visitor&) override {}
};
Value my_loss(const rhea::nn::LossInputs& in, const MyLoss&) {
  if (is("loss throws 7")) throw 7;
  if (is("loss gives nothing")) return {};
  return is("loss gives a foreign value") ? foreign() : in.logits();
}

Values update(const rhea::train_step::UpdateInputs& in, const rhea::OptimizerKwargs&) {
  if (is("optimizer throws 7")) throw 7;
  if (is("optimizer gives nothing")) return {};
  return {is("optimizer gives an empty value") ? Value() : in.p};
}

rhea::TrainerConfig broken() {
  if (is("config throws 7")) throw 7;
  if (is("config exits")) std::exit(0);
  rhea::TrainerConfig c = rhea::recipes::qwen3_debugmodel();
  c.training.local_batch_size = 1;
  c.training.seq_len = 32;
  c.training.mixed_precision_param = "float32";
  c.override.imports = {"broken.cpp"};
  const std::string_view wanted = std::getenv("RHEA_CASE");
  if (wanted.starts_with("loss ")) c.loss = MyLoss();
  if (wanted.starts_with("optimizer ")) {
    c.optimizer->param_groups.resize(1);
    c.optimizer->param_groups[0] = {};
    c.optimizer->param_groups[0].optimizer_name = "mine";
  }
  return c;
}
RHEA_CONFIG(broken)

}  // namespace

RHEA_PLUGIN(p) {
  if (is("plugin throws 7")) throw 7;
  if (is("plugin exits")) std::exit(0);
  p.op(kTwice);
  p.loss<MyLoss>("mine", my_loss);
  rhea::OptimizerKwargs defaults;
  defaults.lr = 1e-3;
  p.optimizer({.name = "mine",
               .defaults = defaults,
               .state = [](const rhea::OptimizerKwargs&) { return std::vector<std::string>(); },
               .update = update});
  if (is("kernel without run")) p.cpu_kernel("rope", rhea::ops::SimpleKernel{.name = "my_kernel"});
  if (is("kernel without plan")) p.cpu_kernel("rope", CpuKernel{.name = "my_kernel"});
  if (is("kernel without name")) p.cpu_kernel("rope", CpuKernel{.plan = plan});
  p.override<rhea::nn::FeedForward::Config>("doubled", {},
                                            [](const rhea::nn::FeedForward::Config& stock) {
                                              if (is("override throws 7")) throw 7;
                                              return rhea::derive<Doubled>(stock);
                                            });
}
