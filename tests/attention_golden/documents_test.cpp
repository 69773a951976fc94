// Packed documents: what one document computes does not depend on the numbers of the others, bit
// for bit, and agrees with running it alone.
#include <gtest/gtest.h>

#include "rhea/ops/ops.h"
#include "tests/support/kernel_run.h"

namespace rhea::testing {
namespace {

using Values = std::vector<double>;

struct Packing {
  std::vector<int64_t> lengths;  // of the documents of the one row
  int64_t window;
  int64_t heads, kv_heads, width;
};
const Packing kPackings[] = {{{4, 4}, 0, 2, 2, 8},
                             {{37, 64, 120, 3, 201}, 0, 4, 2, 16},
                             {{130, 126, 300}, 0, 2, 2, 64},
                             {{100, 5, 333}, 50, 2, 1, 40},
                             {{1, 1, 70, 1}, 0, 1, 1, 128}};

struct Outcome {
  std::vector<Values> results;  // o, lse, dq, dk, dv
};

// Numbers of token t come from streams named by `seeds[t]`, so that documents can be redrawn alone.
Values draw_tokens(const std::string& name, const std::vector<uint64_t>& seeds,
                   const ir::Type& type, double range) {
  const int64_t width = type.shape[1] * type.shape[2];
  Values values;
  for (size_t t = 0; t < seeds.size(); ++t) {
    const RngKey key = rng_key(seeds[t], name);
    for (int64_t i = 0; i < width; ++i)
      values.push_back(
          range *
          (2 * rng_uniform(key, t * static_cast<size_t>(width) + static_cast<size_t>(i)) - 1));
  }
  return values;
}

Outcome run_all(const Packing& p, DType dtype, size_t kernel, const std::vector<uint64_t>& seeds,
                const Values& positions, ThreadPool& pool) {
  const auto tokens = static_cast<int64_t>(seeds.size());
  const ir::Type q{dtype, {tokens, p.heads, p.width}}, k{dtype, {tokens, p.kv_heads, p.width}};
  const ir::Attrs attrs = {{"scale", 0.3}, {"seq_len", tokens}, {"window", p.window}};
  std::vector<ir::Type> types = {q, k, k, {DType::i32, {tokens}}};
  std::vector<Values> in = {draw_tokens("q", seeds, q, 3), draw_tokens("k", seeds, k, 3),
                            draw_tokens("v", seeds, k, 1), positions};
  const Call forward(ops::kAttention, types, attrs);
  Outcome outcome;
  for (const Tensor& tensor : run(forward, *usable_kernels(forward)[kernel], in, pool))
    outcome.results.push_back(tensor.values());
  types.insert(types.end(), {forward.out_types[0], forward.out_types[1], q});
  in.insert(in.end(), {outcome.results[0], outcome.results[1], draw_tokens("do", seeds, q, 1)});
  const Call backward(ops::kAttentionGrad, types, attrs);
  for (const Tensor& tensor : run(backward, *usable_kernels(backward)[kernel], in, pool))
    outcome.results.push_back(tensor.values());
  return outcome;
}

size_t num_kernels(DType dtype) {
  const ir::Type q{dtype, {4, 1, 8}};
  return usable_kernels(Call(ops::kAttention, {q, q, q, {DType::i32, {4}}},
                             {{"scale", 1.0}, {"seq_len", int64_t{4}}}))
      .size();
}

// Elements of tokens [begin, end) of a result.
Values part(const Values& values, int64_t tokens, int64_t begin, int64_t end) {
  const auto width = static_cast<int64_t>(values.size()) / tokens;
  return {values.begin() + begin * width, values.begin() + end * width};
}

TEST(Documents, ChangingOneLeavesTheOthersBitsAlone) {
  ThreadPool pool(2);
  for (const DType dtype : {DType::f32, DType::bf16})
    for (const Packing& packing : kPackings) {
      Values positions;
      std::vector<int64_t> starts;
      for (const int64_t length : packing.lengths) {
        starts.push_back(static_cast<int64_t>(positions.size()));
        for (int64_t i = 0; i < length; ++i) positions.push_back(static_cast<double>(i));
      }
      const auto tokens = static_cast<int64_t>(positions.size());
      starts.push_back(tokens);
      const std::vector<uint64_t> seeds(positions.size(), 1);
      for (size_t kernel = 0; kernel < num_kernels(dtype); ++kernel) {
        const Outcome before = run_all(packing, dtype, kernel, seeds, positions, pool);
        for (size_t changed = 0; changed + 1 < starts.size(); ++changed) {
          std::vector<uint64_t> other = seeds;
          std::fill(other.begin() + starts[changed], other.begin() + starts[changed + 1],
                    uint64_t{2});
          const Outcome after = run_all(packing, dtype, kernel, other, positions, pool);
          for (size_t r = 0; r < before.results.size(); ++r)
            for (size_t d = 0; d + 1 < starts.size(); ++d) {
              const Values x = part(before.results[r], tokens, starts[d], starts[d + 1]);
              const Values y = part(after.results[r], tokens, starts[d], starts[d + 1]);
              // A document of one token attends to itself alone: o = v and dq = dk = 0.
              if (d == changed && packing.lengths[d] > 1) {
                EXPECT_NE(x, y) << "result " << r;
              }
              if (d != changed) {
                EXPECT_EQ(x, y) << "kernel " << kernel << " result " << r << " document " << d;
              }
            }
        }
      }
    }
}

TEST(Documents, EachAgreesWithRunningItAlone) {
  ThreadPool pool(2);
  for (const DType dtype : {DType::f32, DType::bf16})
    for (const Packing& packing : kPackings) {
      Values positions;
      std::vector<uint64_t> seeds;
      for (const int64_t length : packing.lengths)
        for (int64_t i = 0; i < length; ++i) {
          positions.push_back(static_cast<double>(i));
          seeds.push_back(7);
        }
      const auto tokens = static_cast<int64_t>(positions.size());
      for (size_t kernel = 0; kernel < num_kernels(dtype); ++kernel) {
        const Outcome packed = run_all(packing, dtype, kernel, seeds, positions, pool);
        // The first document begins at token 0, so its numbers are the same when it runs alone.
        const int64_t length = packing.lengths[0];
        const Outcome alone =
            run_all(packing, dtype, kernel, {seeds.begin(), seeds.begin() + length},
                    {positions.begin(), positions.begin() + length}, pool);
        for (size_t r = 0; r < packed.results.size(); ++r) {
          const Values x = part(packed.results[r], tokens, 0, length);
          double largest = 1e-3, error = 0;
          for (size_t i = 0; i < x.size(); ++i) {
            largest = std::max(largest, std::abs(alone.results[r][i]));
            error = std::max(error, std::abs(x[i] - alone.results[r][i]));
          }
          EXPECT_LE(error / largest, dtype == DType::f32 ? 5e-6 : 1.5e-2)
              << "kernel " << kernel << " result " << r;
        }
      }
    }
}

}  // namespace
}  // namespace rhea::testing
