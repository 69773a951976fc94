// Attention in f64, straight from the formulas. For a query t and the keys s that it sees:
//
//   c = cap tanh(scale q k / cap)  (cap 0: scale q k)    u = c + bias of s - bias of t
//   p = exp(u - lse)    lse = log(sum exp(u) + exp(sink))    o = sum p v
//   dp = do v    du = p (dp - do o + dlse)    dsink = -sum exp(sink - lse) (do o - dlse)
//   dq = scale sum du (1 - (c / cap)^2) k    dk, dv likewise over the queries
#include <algorithm>
#include <cmath>

#include "rhea/ops/attention/attention.h"
#include "rhea/ops/attention/attention_shape.h"

namespace rhea::ops {
namespace {

// Everything needed to walk over (query, head) with the scores of the visible keys.
class Walk {
 public:
  explicit Walk(const ir::ReferenceArgs& args)
      : args_(args),
        shape_(AttentionShape::of({nullptr, args.in_types, args.out_types, &args.attrs})),
        first_(static_cast<size_t>(shape_.tokens)),
        bias_(AttentionOperands(args.attrs, false).bias) {
    std::vector<int32_t> positions(args.in[3].begin(), args.in[3].end());
    for (int64_t t = 0; t < shape_.tokens; t += shape_.row)
      first_visible_keys(shape_, positions.data() + t, first_.data() + t);
  }

  const AttentionShape& shape() const { return shape_; }

  // f(query token, query head, kv head, first visible token, u of the visible keys, c likewise)
  template <class F>
  void each(F&& f) {
    std::vector<double> u, c;
    for (int64_t t = 0; t < shape_.tokens; ++t)
      for (int64_t n = 0; n < shape_.query_heads; ++n) {
        const int64_t kv = n / shape_.group;
        const int64_t start = t / shape_.row * shape_.row + first_[static_cast<size_t>(t)];
        u.clear();
        c.clear();
        for (int64_t s = start; s <= t; ++s) {
          c.push_back(score(q_at(t, n), k_at(s, kv)));
          u.push_back(c.back() + bias(n, t, s));
        }
        f(t, n, kv, start, u, c);
      }
  }

  size_t q_at(int64_t t, int64_t n) const { return at(t, n, shape_.query_heads, shape_.width); }
  size_t o_at(int64_t t, int64_t n) const {
    return at(t, n, shape_.query_heads, shape_.value_width);
  }
  size_t k_at(int64_t s, int64_t kv) const { return at(s, kv, shape_.kv_heads, shape_.width); }
  size_t v_at(int64_t s, int64_t kv) const {
    return at(s, kv, shape_.kv_heads, shape_.value_width);
  }

 private:
  // What key s gets beside its score from query t.
  double bias(int64_t n, int64_t t, int64_t s) const {
    if (bias_ < 0) return 0;
    const std::vector<double>& table = args_.in[static_cast<size_t>(bias_)];
    const auto entry = [&](int64_t token) {
      return table[static_cast<size_t>(n * shape_.bias_row) +
                   static_cast<size_t>(args_.in[3][static_cast<size_t>(token)])];
    };
    return entry(s) - entry(t);
  }

  static size_t at(int64_t token, int64_t head, int64_t heads, int64_t width) {
    return static_cast<size_t>((token * heads + head) * width);
  }
  double score(size_t q, size_t k) const {
    double sum = 0;
    for (size_t i = 0; i < static_cast<size_t>(shape_.width); ++i)
      sum += args_.in[0][q + i] * args_.in[1][k + i];
    sum *= shape_.scale;
    return shape_.softcap > 0 ? shape_.softcap * std::tanh(sum / shape_.softcap) : sum;
  }

  const ir::ReferenceArgs& args_;
  AttentionShape shape_;
  std::vector<int32_t> first_;
  int bias_;  // its operand, -1: none
};

}  // namespace

void attention_reference(const ir::ReferenceArgs& args) {
  Walk walk(args);
  const AttentionShape& shape = walk.shape();
  const AttentionOperands at(args.attrs, false);
  std::fill(args.out[0].begin(), args.out[0].end(), 0.0);
  walk.each([&](int64_t t, int64_t n, int64_t kv, int64_t start, const std::vector<double>& u,
                const std::vector<double>&) {
    const bool has_sink = at.sink >= 0;
    const double sink =
        has_sink ? args.in[static_cast<size_t>(at.sink)][static_cast<size_t>(n)] : -INFINITY;
    double top = sink;
    for (const double x : u) top = x > top || std::isnan(x) ? x : top;
    double sum = has_sink ? std::exp(sink - top) : 0;
    for (const double x : u) sum += std::exp(x - top);
    const double lse = top + std::log(sum);
    args.out[1][static_cast<size_t>(t * shape.query_heads + n)] = lse;
    double* const o = args.out[0].data() + walk.o_at(t, n);
    for (size_t s = 0; s < u.size(); ++s) {
      const double p = std::exp(u[s] - lse);
      const double* const v = args.in[2].data() + walk.v_at(start + static_cast<int64_t>(s), kv);
      for (int64_t i = 0; i < shape.value_width; ++i) o[i] += p * v[i];
    }
  });
}

void attention_grad_reference(const ir::ReferenceArgs& args) {
  Walk walk(args);
  const AttentionShape& shape = walk.shape();
  const AttentionOperands at(args.attrs, true);
  const auto operand = [&](int i) -> const std::vector<double>& {
    return args.in[static_cast<size_t>(i)];
  };
  const auto &q = args.in[0], &k = args.in[1], &v = args.in[2];
  const auto &o = operand(at.o), &d_o = operand(at.d_o);
  for (auto& out : args.out) std::fill(out.begin(), out.end(), 0.0);
  walk.each([&](int64_t t, int64_t n, int64_t kv, int64_t start, const std::vector<double>& u,
                const std::vector<double>& c) {
    const auto pair = static_cast<size_t>(t * shape.query_heads + n);
    const size_t o_row = walk.o_at(t, n), q_row = walk.q_at(t, n);
    const double lse = operand(at.lse)[pair];
    double delta = at.d_lse >= 0 ? -operand(at.d_lse)[pair] : 0;
    for (size_t i = 0; i < static_cast<size_t>(shape.value_width); ++i)
      delta += o[o_row + i] * d_o[o_row + i];
    if (at.sink >= 0)
      args.out[3][static_cast<size_t>(n)] -=
          std::exp(operand(at.sink)[static_cast<size_t>(n)] - lse) * delta;
    for (size_t j = 0; j < u.size(); ++j) {
      const size_t k_row = walk.k_at(start + static_cast<int64_t>(j), kv);
      const size_t v_row = walk.v_at(start + static_cast<int64_t>(j), kv);
      const double p = std::exp(u[j] - lse);
      double dp = 0;
      for (size_t i = 0; i < static_cast<size_t>(shape.value_width); ++i) {
        dp += d_o[o_row + i] * v[v_row + i];
        args.out[2][v_row + i] += p * d_o[o_row + i];
      }
      const double capped = shape.softcap > 0 ? c[j] / shape.softcap : 0;
      const double ds = shape.scale * p * (dp - delta) * (1 - capped * capped);
      for (size_t i = 0; i < static_cast<size_t>(shape.width); ++i) {
        args.out[0][q_row + i] += ds * k[k_row + i];
        args.out[1][k_row + i] += ds * q[q_row + i];
      }
    }
  });
}

}  // namespace rhea::ops
