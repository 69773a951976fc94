// One op on given operands, measured with every kernel of its row that accepts them.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "rhea/base/thread_pool.h"
#include "rhea/ops/ops.h"

namespace rhea::bench {

struct Operand {
  ir::Type type;
  // Element i; null: small positive floats.
  std::function<double(int64_t i)> value;
};

struct Case {
  std::string name;  // "product/forward/bf16/model_a.qkv"
  const ir::OpDef* op = nullptr;
  std::vector<Operand> operands;
  ir::Attrs attrs;
  bool in_place = false;   // results over the operands that the kernel allows
  double flops_scale = 1;  // where the cost of the row counts work that these operands spare
  // What training runs where this op stands in its graph, "forward_packed"; empty: this op, by its
  // first kernel.
  std::string instead = "";
};

// Registers one benchmark per kernel, "<name>/<kernel>"; the label of the first one that accepts
// says that training takes it ("chosen"), or what it takes instead.
// Counters: GFLOP/s, GB/s, share and best share of the limit, which is the slower of flops at the
// peak and bytes at the bandwidth that this run measured at its start (caches can beat the latter).
// Plain loops, and the chosen kernel compiled for older instruction sets, are left out; RHEA_ISA
// forces those.
void add_case(Case made);

// Element i of every operand, or the pattern; `index` of the operand gives another pattern.
void fill(const Operand& operand, size_t index, void* data);

// The threads of all benchmarks: environment variable RHEA_BENCH_THREADS, else all cores.
ThreadPool& pool();

// Measured at the first call.
struct MachineRates {
  double flops_f32 = 0, flops_bf16 = 0, bytes = 0;
};
const MachineRates& machine_rates();
MachineRates measure_rates();
std::string describe(const MachineRates& rates);

void add_products();
void add_experts();
void add_attention();
void add_rows();
void add_steps();
void add_loss_and_optimizer();

}  // namespace rhea::bench
