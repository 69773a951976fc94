// Our matrix products beside oneDNN's, in turns in one process; and gate and up as one product
// beside two. Usage: rivals [REGEX] [ROUNDS], the regular expression for names as
// "forward/bf16/model_a.qkv", "joined_forward/f32/qwen3_0_6b.gate".
//
// oneDNN gets weights that were packed once in the layout that it asks for (format `any`), and runs
// in two ways: one thread a call, from our pool over blocks of 256 rows, and with its own threads.
// Its weight gradient packs both operands in the call, as ours does; ours sums up the squares, too.
#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <dnnl.hpp>
#include <map>
#include <memory>
#include <regex>
#include <string>
#include <thread>

#include "bench/kernels/case.h"
#include "bench/kernels/models.h"
#include "rhea/base/error.h"
#include "rhea/ops/dot_general/onednn.h"
#include "rhea/ops/peak.h"
#include "rhea/ops/run_kernel.h"

extern "C" void omp_set_num_threads(int count);

namespace rhea::bench {
namespace {

using ir::Layout;
using Run = std::function<void()>;

constexpr int64_t kRowsPerBlock = 256;

struct Tensor {
  ir::Type type;
  std::shared_ptr<void> data;
};

Tensor zeros(ir::Type type) {
  const int64_t bytes = ir::byte_size(type);
  return {std::move(type), ops::aligned_bytes(bytes)};
}

Tensor pattern(ir::Type type, size_t index) {
  Tensor made = zeros(std::move(type));
  fill({made.type}, index, made.data.get());
  return made;
}

// ---- ours

// The kernel of that name; empty: the one that training takes.
const ir::CpuKernel& kernel_of(const ir::OpInstance& node, std::string_view name) {
  for (const auto& kernel : node.op->cpu) {
    const bool runs =
        kernel.isa <= active_isa() && (!kernel.accepts || kernel.accepts(node).empty());
    if (runs && (name.empty() || kernel.name == name)) return kernel;
  }
  throw Error("{} {}: no kernel {} accepts it", node.op->name, to_string(node.in[0]), name);
}

Run ours(const ir::OpDef& op, std::vector<Tensor> in, std::vector<Tensor> out, ir::Attrs attrs = {},
         std::string_view name = "") {
  struct Node {
    std::vector<Tensor> tensors;
    std::vector<ir::Type> in, out;
    std::vector<void*> in_data, out_data;
    ir::Attrs attrs;
    std::unique_ptr<ops::KernelRun> run;
  };
  const auto node = std::make_shared<Node>();
  node->attrs = std::move(attrs);
  for (Tensor& tensor : in) {
    node->in.push_back(tensor.type);
    node->in_data.push_back(tensor.data.get());
    node->tensors.push_back(std::move(tensor));
  }
  for (Tensor& tensor : out) {
    node->out.push_back(tensor.type);
    node->out_data.push_back(tensor.data.get());
    node->tensors.push_back(std::move(tensor));
  }
  const ir::OpInstance instance{&op, node->in, node->out, &node->attrs};
  node->run = std::make_unique<ops::KernelRun>(kernel_of(instance, name), instance, pool());
  return [node] { (*node->run)(node->in_data, node->out_data); };
}

ir::Attrs contract(int64_t lhs, int64_t rhs, DType result) {
  return {{"lhs_contract", lhs}, {"rhs_contract", rhs}, {"dtype", result}};
}

Tensor packed(const Tensor& w, Layout layout) {
  ir::Type type = w.type;
  type.layout = layout;
  Tensor result = zeros(type);
  ours(ops::kPack, {w}, {result}, {{"layout", static_cast<int64_t>(layout)}})();
  return result;
}

// ---- oneDNN's

const dnnl::engine& engine() {
  static const dnnl::engine made(dnnl::engine::kind::cpu, 0);
  return made;
}

dnnl::memory::data_type library_dtype(DType dtype) {
  return dtype == DType::bf16 ? dnnl::memory::data_type::bf16 : dnnl::memory::data_type::f32;
}

// A product with the packed copy of its weights.
struct Library {
  dnnl::matmul::primitive_desc desc;
  dnnl::matmul primitive;
  std::shared_ptr<void> weights;  // in the layout of `desc`
  std::vector<Tensor> tensors;
  std::vector<std::shared_ptr<void>> scratch;  // by worker

  // Made for `threads` of its own; `b` in rows as the shape says.
  Library(const ops::MatmulShape& s, const Tensor& b, int threads, int workers) {
    omp_set_num_threads(threads);
    const auto in = library_dtype(s.in), out = library_dtype(s.out);
    dnnl::primitive_attr attr;
    attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    const dnnl::memory::desc a({s.m, s.k}, in, dnnl::memory::dims{s.a_row, s.a_column});
    const dnnl::memory::desc any({s.k, s.n}, in, dnnl::memory::format_tag::any);
    const dnnl::memory::desc rows({s.k, s.n}, in, dnnl::memory::dims{s.b_row, s.b_column});
    const dnnl::memory::desc c({s.m, s.n}, out, dnnl::memory::dims{s.c_row, 1});
    // A weight gradient has no weights: its right operand is an activation, in rows.
    const bool packs = s.a_row != 1;
    desc =
        dnnl::matmul::primitive_desc(dnnl::matmul::desc(a, packs ? any : rows, c), attr, engine());
    primitive = dnnl::matmul(desc);
    weights = b.data;
    if (packs) {
      weights = ops::aligned_bytes(static_cast<int64_t>(desc.weights_desc().get_size()));
      dnnl::memory from(rows, engine(), b.data.get());
      dnnl::memory to(desc.weights_desc(), engine(), weights.get());
      dnnl::stream stream(engine());
      dnnl::reorder(from, to).execute(stream, from, to);
      stream.wait();
    }
    for (int i = 0; i < workers; ++i)
      scratch.push_back(
          ops::aligned_bytes(static_cast<int64_t>(desc.scratchpad_desc().get_size())));
    omp_set_num_threads(1);
  }

  void run(char* a, char* c, int worker) const {
    thread_local dnnl::stream stream(engine());
    const auto memory = [](const dnnl::memory::desc& of, void* data) {
      return dnnl::memory(of, engine(), data);
    };
    primitive.execute(
        stream, {{DNNL_ARG_SRC, memory(desc.src_desc(), a)},
                 {DNNL_ARG_WEIGHTS, memory(desc.weights_desc(), weights.get())},
                 {DNNL_ARG_DST, memory(desc.dst_desc(), c)},
                 {DNNL_ARG_SCRATCHPAD,
                  memory(desc.scratchpad_desc(), scratch[static_cast<size_t>(worker)].get())}});
  }
};

Run on_our_pool(ops::MatmulShape shape, const Tensor& a, const Tensor& b, const Tensor& c) {
  const int64_t blocks = div_exact(shape.m, kRowsPerBlock),
                a_bytes = kRowsPerBlock * shape.a_row * dtype_size(shape.in),
                c_bytes = kRowsPerBlock * shape.c_row * dtype_size(shape.out);
  shape.m = kRowsPerBlock;
  const auto library = std::make_shared<Library>(shape, b, 1, pool().num_threads());
  library->tensors = {a, c};
  return [=, from = static_cast<char*>(a.data.get()), to = static_cast<char*>(c.data.get())] {
    pool().parallel_for(blocks, [&](int64_t begin, int64_t end, int worker) {
      omp_set_num_threads(1);
      for (int64_t i = begin; i < end; ++i)
        library->run(from + i * a_bytes, to + i * c_bytes, worker);
    });
  };
}

Run on_its_threads(const ops::MatmulShape& shape, const Tensor& a, const Tensor& b,
                   const Tensor& c) {
  const int threads = pool().num_threads();
  const auto library = std::make_shared<Library>(shape, b, threads, 1);
  library->tensors = {a, c};
  return [=, from = static_cast<char*>(a.data.get()), to = static_cast<char*>(c.data.get())] {
    omp_set_num_threads(threads);
    library->run(from, to, 0);
    // What the kernels of our rows expect of the calling thread.
    omp_set_num_threads(1);
  };
}

// ---- measuring

struct Side {
  Run run;
  std::vector<double> seconds;

  double median() const {
    std::vector<double> sorted = seconds;
    std::sort(sorted.begin(), sorted.end());
    return sorted[sorted.size() / 2];
  }
  double best() const { return *std::min_element(seconds.begin(), seconds.end()); }
};

double timed(const Run& run) {
  const auto start = std::chrono::steady_clock::now();
  run();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

void take_turns(std::vector<Side>& sides, int rounds) {
  constexpr double kTurn = 0.025;
  for (int round = 0; round < rounds; ++round)
    for (Side& side : sides) {
      // OpenMP's threads spin for some milliseconds after their last work.
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
      double first = timed(side.run), spent = 0;
      if (first > 2 * kTurn) {
        side.seconds.push_back(first);
        continue;
      }
      while (spent < kTurn) {
        side.seconds.push_back(timed(side.run));
        spent += side.seconds.back();
      }
    }
}

// Every 97th element; a rival that computes something else would be no rival.
void expect_equal(const std::string& name, const Tensor& ours, const Tensor& theirs) {
  const double allowed = ours.type.dtype == DType::bf16 ? 0.02 : 1e-3;
  for (int64_t i = 0; i < ir::num_elements(ours.type.shape); i += 97) {
    const double a = load_as_f64(ours.data.get(), ours.type.dtype, i),
                 b = load_as_f64(theirs.data.get(), theirs.type.dtype, i);
    if (!(std::abs(a - b) <= allowed * std::abs(a)))
      throw Error("{}: element {} is {} of ours and {} of oneDNN's", name, i, a, b);
  }
}

// The best that was measured so far: whatever else runs makes a peak smaller, never larger.
double peak_of(DType dtype) {
  static std::map<DType, double> best;
  double& peak = best[dtype];
  peak = std::max(peak, ops::measure_peak_flops(dtype, pool(), 0.1));
  return peak;
}

class Table {
 public:
  Table(std::string filter, int rounds) : filter_(filter), rounds_(rounds) {}

  bool wants(const std::string& name) const { return std::regex_search(name, filter_); }

  // `run` writes `result`, and so does what `library_on_pool` makes of another one.
  void beside_library(const std::string& name, const ops::MatmulShape& shape, const Tensor& a,
                      const Tensor& b, const Tensor& result, Run run,
                      const std::function<Run(const Tensor& to)>& library_on_pool) {
    const Tensor from_pool = zeros(result.type), from_own = zeros(result.type);
    std::vector<Side> sides(3);
    sides[0].run = std::move(run);
    sides[1].run = library_on_pool(from_pool);
    sides[2].run = on_its_threads(shape, a, b, from_own);
    for (const Side& side : sides) side.run();
    expect_equal(name, result, from_pool);
    expect_equal(name, result, from_own);
    take_turns(sides, rounds_);
    head(
        "| product | ours, ms | best call, of the peak | oneDNN on our pool | with its threads | "
        "ours is faster by | by medians |\n|---|---|---|---|---|---|---|");
    const double flops = 2.0 * static_cast<double>(shape.m) * static_cast<double>(shape.n) *
                         static_cast<double>(shape.k);
    const double peak = peak_of(shape.in);
    double best[3], median[3];
    for (size_t i = 0; i < 3; ++i) {
      best[i] = 100 * flops / sides[i].best() / peak;
      median[i] = 100 * flops / sides[i].median() / peak;
    }
    fmt::print("| {} | {:.2f} | {:.1f} % | {:.1f} % | {:.1f} % | {:+.1f} points | {:+.1f} |\n",
               name, 1e3 * sides[0].best(), best[0], best[1], best[2],
               best[0] - std::max(best[1], best[2]), median[0] - std::max(median[1], median[2]));
    std::fflush(stdout);
  }

  void beside_joined(const std::string& name, Run two, Run joined) {
    std::vector<Side> sides(2);
    sides[0].run = std::move(two);
    sides[1].run = std::move(joined);
    for (const Side& side : sides) side.run();
    take_turns(sides, rounds_);
    head(
        "| gate and up | two products, best call, ms | joined, ms | joined takes | by medians "
        "|\n|---|---|---|---|---|");
    fmt::print("| {} | {:.2f} | {:.2f} | {:+.1f} % | {:+.1f} % |\n", name, 1e3 * sides[0].best(),
               1e3 * sides[1].best(), 100 * (sides[1].best() / sides[0].best() - 1),
               100 * (sides[1].median() / sides[0].median() - 1));
    std::fflush(stdout);
  }

 private:
  void head(const std::string& words) {
    if (head_ != words) fmt::print("\n{}\n", words);
    head_ = words;
  }

  std::regex filter_;
  int rounds_;
  std::string head_;
};

void compare_layer(Table& table, const Layer& layer, DType t) {
  const auto& [layer_name, T, N, K] = layer;
  const std::string end = fmt::format("/{}/{}", dtype_name(t), layer_name);
  const std::string forward = "forward" + end, input = "input_gradient" + end,
                    weight = "weight_gradient" + end;
  if (table.wants(forward)) {
    const Tensor x = pattern({t, {T, K}}, 0), w = pattern({t, {N, K}}, 1), y = zeros({t, {T, N}});
    const ops::MatmulShape shape{.m = T,
                                 .n = N,
                                 .k = K,
                                 .a_row = K,
                                 .b_row = 1,
                                 .b_column = K,
                                 .c_row = N,
                                 .in = t,
                                 .out = t};
    table.beside_library(
        forward, shape, x, w, y,
        ours(ops::kDotGeneral, {x, packed(w, Layout::panels_nk)}, {y}, contract(1, 1, t)),
        [&](const Tensor& to) { return on_our_pool(shape, x, w, to); });
  }
  if (table.wants(input)) {
    const Tensor dy = pattern({t, {T, N}}, 0), w = pattern({t, {N, K}}, 1), dx = zeros({t, {T, K}});
    const ops::MatmulShape shape{
        .m = T, .n = K, .k = N, .a_row = N, .b_row = K, .c_row = K, .in = t, .out = t};
    // As passes/pack_weights.cpp has it.
    const Tensor right = t == DType::bf16 ? packed(w, Layout::panels_kn) : w;
    table.beside_library(input, shape, dy, w, dx,
                         ours(ops::kDotGeneral, {dy, right}, {dx}, contract(1, 0, t)),
                         [&](const Tensor& to) { return on_our_pool(shape, dy, w, to); });
  }
  if (table.wants(weight)) {
    const Tensor dy = pattern({t, {T, N}}, 0), x = pattern({t, {T, K}}, 1),
                 dw = zeros({DType::f32, {N, K}}), squares = zeros({DType::f64, {}});
    const ops::MatmulShape shape{.m = N,
                                 .n = K,
                                 .k = T,
                                 .a_row = 1,
                                 .a_column = N,
                                 .b_row = K,
                                 .c_row = K,
                                 .in = t,
                                 .out = DType::f32};
    // On our pool in strips of rows, as the row's own entry for oneDNN has it.
    table.beside_library(
        weight, shape, dy, x, dw, ours(ops::kWeightGradSquares, {dy, x}, {dw, squares}),
        [&](const Tensor& to) {
          return ours(ops::kDotGeneral, {dy, x}, {to}, contract(0, 0, DType::f32), "onednn");
        });
  }
}

// Of two layers [F, D] with one input. What reads or writes their results would take the halves of
// rows of 2 F, which costs it nothing.
void compare_joined(Table& table, const Layer& layer, DType t) {
  const auto& [layer_name, T, F, D] = layer;
  const std::string end = fmt::format("/{}/{}", dtype_name(t), layer_name);
  const std::string forward = "joined_forward" + end, input = "joined_input_gradient" + end,
                    weight = "joined_weight_gradient" + end;
  const auto both = [](Run first, Run second) {
    return [first = std::move(first), second = std::move(second)] {
      first();
      second();
    };
  };
  if (table.wants(forward)) {
    const Tensor x = pattern({t, {T, D}}, 0);
    const auto product = [&](int64_t n, size_t index) {
      return ours(ops::kDotGeneral, {x, packed(pattern({t, {n, D}}, index), Layout::panels_nk)},
                  {zeros({t, {T, n}})}, contract(1, 1, t));
    };
    table.beside_joined(forward, both(product(F, 1), product(F, 2)), product(2 * F, 3));
  }
  if (table.wants(input)) {
    const auto product = [&](int64_t n, size_t index, const Tensor& dx) {
      const Tensor w = pattern({t, {n, D}}, index);
      return ours(
          ops::kDotGeneral,
          {pattern({t, {T, n}}, index + 1), t == DType::bf16 ? packed(w, Layout::panels_kn) : w},
          {dx}, contract(1, 0, t));
    };
    const Tensor first = zeros({t, {T, D}}), second = zeros(first.type), sum = zeros(first.type);
    table.beside_joined(input,
                        both(both(product(F, 1, first), product(F, 2, second)),
                             ours(ops::kAdd, {first, second}, {sum})),
                        product(2 * F, 3, zeros(first.type)));
  }
  if (table.wants(weight)) {
    const Tensor x = pattern({t, {T, D}}, 0);
    const auto product = [&](int64_t n, size_t index) {
      return ours(ops::kWeightGradSquares, {pattern({t, {T, n}}, index), x},
                  {zeros({DType::f32, {n, D}}), zeros({DType::f64, {}})});
    };
    table.beside_joined(weight, both(product(F, 1), product(F, 2)), product(2 * F, 3));
  }
}

void compare_all(Table& table) {
  std::vector<Layer> layers, gates;
  for (const Model& m : kModels) {
    for (const int64_t tokens : {kTokens, int64_t{512}}) {
      if (tokens != kTokens && std::string_view(m.name) != "qwen3_0_6b") continue;
      for (const Layer& layer : layers_of(m, tokens)) {
        layers.push_back(layer);
        if (layer.name.find(".gate") != std::string::npos) gates.push_back(layer);
      }
    }
    layers.push_back(vocabulary_of(m));
  }
  for (const DType t : {DType::bf16, DType::f32})
    for (const Layer& layer : layers) compare_layer(table, layer, t);
  for (const DType t : {DType::bf16, DType::f32})
    for (const Layer& layer : gates) compare_joined(table, layer, t);
}

}  // namespace
}  // namespace rhea::bench

int main(int argc, char** argv) {
  using namespace rhea;
  try {
    bench::Table table(argc > 1 ? argv[1] : "", argc > 2 ? std::stoi(argv[2]) : 5);
    fmt::print(stderr, "{} threads, limits: {}\n", bench::pool().num_threads(),
               describe(bench::machine_rates()));
    compare_all(table);
    fmt::print(stderr, "limits at the end: {}\n", describe(bench::measure_rates()));
  } catch (const std::exception& e) {
    fmt::print(stderr, "rivals: {}\n", e.what());
    return 1;
  }
}
