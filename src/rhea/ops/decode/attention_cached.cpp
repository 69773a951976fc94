// Attention of a few new tokens over a key-value cache.
//
// T new tokens, C rows of the cache, N query heads, K kv heads, H head dim, V value dim
#include <algorithm>
#include <cmath>
#include <limits>

#include "rhea/base/error.h"
#include "rhea/ops/attention/attention_shape.h"
#include "rhea/ops/element.h"
#include "rhea/ops/ops.h"
#include "rhea/ops/row.h"

namespace rhea::ops {
namespace {

using ir::OpInstance;
using ir::Type;

// Places of the operands that may be absent; -1: absent.
struct Operands {
  int sink = -1, bias = -1;
  size_t count = 4;
  explicit Operands(const ir::Attrs& attrs) {
    if (attrs.flag("has_sink")) sink = static_cast<int>(count++);
    if (attrs.flag("has_bias")) bias = static_cast<int>(count++);
  }
};

std::vector<Type> infer(std::span<const Type> in, const ir::Attrs& attrs) {
  const Operands at(attrs);
  if (in.size() != at.count) throw Error("takes {} operands, got {}", at.count, in.size());
  const Type &q = in[0], &k = in[1], &v = in[2];
  if (!is_float(q.dtype) || q.rank() != 3 || k.rank() != 3 || v.rank() != 3 || k.dtype != q.dtype ||
      v.dtype != q.dtype)
    throw Error("q, k_cache, v_cache must be floats of rank 3 and one dtype, got {}, {}, {}",
                to_string(q), to_string(k), to_string(v));
  if (k.shape[0] != v.shape[0] || k.shape[1] != v.shape[1] || k.shape[2] != q.shape[2])
    throw Error("q {}, k_cache {} and v_cache {} do not fit", to_string(q), to_string(k),
                to_string(v));
  if (k.shape[1] == 0 || q.shape[1] % k.shape[1] != 0)
    throw Error("{} query heads are no multiple of {} kv heads", q.shape[1], k.shape[1]);
  if (q.shape[0] > k.shape[0])
    throw Error("{} new tokens exceed the cache of {}", q.shape[0], k.shape[0]);
  if (in[3] != Type{DType::i32, {}}) throw Error("start must be i32[], got {}", to_string(in[3]));
  if (attrs.i64("window") < 0 || attrs.f64("softcap") < 0)
    throw Error("window and softcap must not be negative");
  if (at.sink >= 0) check_sink(in[static_cast<size_t>(at.sink)], q);
  if (at.bias >= 0) check_bias(in[static_cast<size_t>(at.bias)], q, k.shape[0]);
  return {{q.dtype, {q.shape[0], q.shape[1], v.shape[2]}}};
}

struct Sizes {
  int64_t n, k, h, v, capacity, window;
  double scale, softcap;
  Operands at;
  DType sink_dtype = DType::f32;
  int64_t bias_row = 0;

  Sizes(std::span<const Type> in, const ir::Attrs& attrs)
      : n(in[0].shape[1]),
        k(in[1].shape[1]),
        h(in[0].shape[2]),
        v(in[2].shape[2]),
        capacity(in[1].shape[0]),
        window(attrs.i64("window")),
        scale(attrs.f64("scale")),
        softcap(attrs.f64("softcap")),
        at(attrs) {
    if (at.sink >= 0) sink_dtype = in[static_cast<size_t>(at.sink)].dtype;
    if (at.bias >= 0) bias_row = in[static_cast<size_t>(at.bias)].shape[1];
  }
  // Keys [first, last) that the token at `position` sees.
  int64_t last(int64_t position) const { return std::min(position + 1, capacity); }
  int64_t first(int64_t position) const {
    return window > 0 ? std::max<int64_t>(0, position + 1 - window) : 0;
  }
};

// One head of one token; scores has room for `capacity` numbers. load and store convert to and from
// the accumulator type; sink is -inf where there is none.
template <class A, class LoadQ, class LoadK, class LoadV, class LoadBias, class Store>
void attend(const Sizes& s, int64_t position, A* scores, A sink, const LoadQ& q, const LoadK& key,
            const LoadV& value, const LoadBias& bias, const Store& store) {
  const int64_t first = s.first(position), last = s.last(position);
  A highest = sink;
  for (int64_t c = first; c < last; ++c) {
    A dot = 0;
    for (int64_t i = 0; i < s.h; ++i) dot += q(i) * key(c, i);
    dot *= static_cast<A>(s.scale);
    if (s.softcap > 0) dot = static_cast<A>(s.softcap) * std::tanh(dot / static_cast<A>(s.softcap));
    if (s.at.bias >= 0) dot += bias(c) - bias(position);
    scores[c] = dot;
    highest = std::max(highest, dot);
  }
  A sum = s.at.sink >= 0 ? std::exp(sink - highest) : A{0};
  for (int64_t c = first; c < last; ++c) sum += scores[c] = std::exp(scores[c] - highest);
  for (int64_t i = 0; i < s.v; ++i) {
    A o = 0;
    for (int64_t c = first; c < last; ++c) o += scores[c] * value(c, i);
    store(i, last > first ? o / sum : A{0});
  }
}

template <class T>
void run(const ir::KernelArgs& args) {
  const auto& s = *static_cast<const Sizes*>(args.state);
  using A = Accum<T>;
  const int64_t start = *args.in[3].as<const int32_t>();
  for (int64_t item = args.begin; item < args.end; ++item) {
    const int64_t t = item / s.n, head = item % s.n, kv = head / (s.n / s.k);
    const T* q = args.in[0].as<const T>() + item * s.h;
    const T* k = args.in[1].as<const T>() + kv * s.h;
    const T* v = args.in[2].as<const T>() + kv * s.v;
    T* o = args.out[0].as<T>() + item * s.v;
    const A sink = s.at.sink < 0
                       ? -std::numeric_limits<A>::infinity()
                       : static_cast<A>(load_as_f64(args.in[s.at.sink].data, s.sink_dtype, head));
    const float* bias =
        s.at.bias < 0 ? nullptr : args.in[s.at.bias].as<const float>() + head * s.bias_row;
    attend(
        s, start + t, static_cast<A*>(args.scratch), sink,
        [&](int64_t i) { return static_cast<A>(q[i]); },
        [&](int64_t c, int64_t i) { return static_cast<A>(k[c * s.k * s.h + i]); },
        [&](int64_t c, int64_t i) { return static_cast<A>(v[c * s.k * s.v + i]); },
        [&](int64_t c) { return static_cast<A>(bias[c]); },
        [&](int64_t i, A value) { o[i] = static_cast<T>(value); });
  }
}

ir::KernelPlan plan(const OpInstance& op) {
  ir::KernelPlan made;
  auto sizes = std::make_shared<Sizes>(op.in, *op.attrs);
  made.grid = {op.in[0].shape[0] * sizes->n};
  made.scratch_bytes = sizes->capacity * 8;
  made.run = dispatch_float(op.in[0].dtype, []<class T>() { return &run<T>; });
  made.state = std::move(sizes);
  return made;
}

void reference(const ir::ReferenceArgs& args) {
  const Sizes s(args.in_types, args.attrs);
  std::vector<double> scores(static_cast<size_t>(s.capacity));
  const int64_t items = args.in_types[0].shape[0] * s.n;
  const auto start = static_cast<int64_t>(args.in[3][0]);
  const auto at = [](const std::vector<double>& x, int64_t i) { return x[static_cast<size_t>(i)]; };
  for (int64_t item = 0; item < items; ++item) {
    const int64_t head = item % s.n, kv = head / (s.n / s.k);
    const double sink =
        s.at.sink < 0 ? -INFINITY : at(args.in[static_cast<size_t>(s.at.sink)], head);
    attend(
        s, start + item / s.n, scores.data(), sink,
        [&](int64_t i) { return at(args.in[0], item * s.h + i); },
        [&](int64_t c, int64_t i) { return at(args.in[1], (c * s.k + kv) * s.h + i); },
        [&](int64_t c, int64_t i) { return at(args.in[2], (c * s.k + kv) * s.v + i); },
        [&](int64_t c) {
          return at(args.in[static_cast<size_t>(s.at.bias)], head * s.bias_row + c);
        },
        [&](int64_t i, double value) { args.out[0][static_cast<size_t>(item * s.v + i)] = value; });
  }
}

}  // namespace

const OpDef kAttentionCached{
    .name = "attention_cached",
    .attrs = {{"scale", ir::AttrKind::f64, {}},
              {"window", ir::AttrKind::i64, ir::Attr{int64_t{0}}},
              {"softcap", ir::AttrKind::f64, ir::Attr{0.0}},
              {"has_sink", ir::AttrKind::i64, ir::Attr{int64_t{0}}},
              {"has_bias", ir::AttrKind::i64, ir::Attr{int64_t{0}}}},
    .infer = infer,
    .shard =
        [](const OpInstance& op) {
          const Operands at(*op.attrs);
          std::string in = "!tk!h,!ck!h,!ckv,";
          if (at.sink >= 0) in += ",k";
          if (at.bias >= 0) in += ",k!p";
          return in + "->!tkv";
        },
    .cpu = {{.name = "plain", .plan = plan}},
    .cost =
        [](const OpInstance& op) {
          const Sizes s(op.in, *op.attrs);
          const double pairs = static_cast<double>(op.in[0].shape[0] * s.n * s.capacity);
          return ir::Cost{2 * pairs * static_cast<double>(s.h + s.v), operand_and_result_bytes(op)};
        },
    .samples =
        [] {
          // Inference only: no gradient.
          const auto sample = [](const char* name, DType dtype, int64_t t, int64_t n, int64_t k,
                                 int64_t v, double start, int64_t window, double softcap,
                                 bool sink = false, bool bias = false) {
            ir::Sample made{.name = name,
                            .inputs = {uniform(dtype, {t, n, 6}), uniform(dtype, {9, k, 6}),
                                       uniform(dtype, {9, k, v}), values(DType::i32, {}, {start})},
                            .attrs = {{"scale", 0.5},
                                      {"window", window},
                                      {"softcap", softcap},
                                      {"has_sink", int64_t{sink}},
                                      {"has_bias", int64_t{bias}}},
                            .check_vjp = false};
            if (sink) made.inputs.push_back(uniform(dtype, {n}));
            if (bias) made.inputs.push_back(uniform(DType::f32, {n, 11}, -3, 3));
            return made;
          };
          return std::vector<ir::Sample>{
              sample("grouped", DType::f32, 3, 4, 2, 6, 2, 0, 0),
              sample("window", DType::f32, 1, 2, 2, 5, 7, 3, 0),
              sample("capped", DType::f64, 2, 2, 1, 6, 0, 0, 2),
              sample("bf16", DType::bf16, 1, 4, 4, 6, 8, 0, 0),
              sample("sink", DType::f32, 3, 4, 2, 6, 1, 2, 0, true),
              sample("bias", DType::f32, 3, 4, 2, 5, 4, 0, 0, false, true),
              sample("bf16_all", DType::bf16, 2, 4, 2, 6, 5, 4, 2, true, true),
              sample("none", DType::f32, 0, 2, 1, 6, 0, 0, 0)};
        },
    .reference = reference,
};

Value attention_cached(Value q_TNH, Value k_cache_CKH, Value v_cache_CKV, Value start,
                       const AttentionOptions& options, std::optional<Value> sink_N,
                       std::optional<Value> bias_NP, Where where) {
  std::vector<Value> in = {q_TNH, k_cache_CKH, v_cache_CKV, start};
  if (sink_N) in.push_back(*sink_N);
  if (bias_NP) in.push_back(*bias_NP);
  return q_TNH.graph->add(kAttentionCached, in,
                          {{"scale", options.scale},
                           {"window", options.window},
                           {"softcap", options.softcap},
                           {"has_sink", int64_t{sink_N.has_value()}},
                           {"has_bias", int64_t{bias_NP.has_value()}}},
                          where)[0];
}

}  // namespace rhea::ops
