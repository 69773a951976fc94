// Attention forward and backward. Only pairs that a query may see count: the causal half, the
// window, the document.
#include <fmt/core.h>

#include <algorithm>

#include "bench/kernels/case.h"
#include "bench/kernels/models.h"

namespace rhea::bench {
namespace {

// Lengths of packed documents, repeated; about 370 tokens in the mean.
constexpr int64_t kDocuments[] = {700, 64, 250, 1100, 30, 400, 180, 240};

// Position of every token in its document, and how many pairs a row of `length` sees.
struct Positions {
  std::vector<int32_t> values;
  double pairs = 0;
};

Positions positions_of(int64_t length, bool packed) {
  Positions made;
  size_t document = 0;
  int64_t left = packed ? kDocuments[0] : length, position = 0;
  for (int64_t t = 0; t < length; ++t) {
    if (left == 0) {
      document = (document + 1) % std::size(kDocuments);
      left = kDocuments[document];
      position = 0;
    }
    made.values.push_back(static_cast<int32_t>(position++));
    made.pairs += static_cast<double>(position);
    --left;
  }
  return made;
}

struct Shape {
  std::string name;
  DType dtype;
  int64_t length, heads, kv_heads, width;
  int64_t window = 0;
  bool packed = false;
};

void add_shape(const Shape& shape) {
  const int64_t rows = std::max<int64_t>(1, kTokens / shape.length);
  const int64_t tokens = rows * shape.length;
  const ir::Type q{shape.dtype, {tokens, shape.heads, shape.width}};
  const ir::Type k{shape.dtype, {tokens, shape.kv_heads, shape.width}};
  const Positions positions = positions_of(shape.length, shape.packed);
  const auto length = static_cast<double>(shape.length);
  const Operand position = {
      {DType::i32, {tokens}}, [values = positions.values](int64_t i) {
        return static_cast<double>(values[static_cast<size_t>(i) % values.size()]);
      }};
  const std::string name = fmt::format("{}/head{}/{}/{}", dtype_name(shape.dtype), shape.width,
                                       shape.length, shape.name);
  Case made{.name = "attention/forward/" + name,
            .op = &ops::kAttention,
            .operands = {{q}, {k}, {k}, position},
            .attrs = {{"scale", 0.1},
                      {"seq_len", shape.length},
                      {"window", shape.window},
                      {"documents", int64_t{1}}},
            .flops_scale = shape.packed ? positions.pairs / (length * (length + 1) / 2) : 1};
  add_case(made);
  made.name = "attention/backward/" + name;
  made.op = &ops::kAttentionGrad;
  // o, lse, do. The denominators are of the right size, so that no exponential overflows.
  made.operands.push_back({q});
  made.operands.push_back({{DType::f32, {tokens, shape.heads}}, [](int64_t) { return 5.0; }});
  made.operands.push_back({q});
  add_case(made);
}

}  // namespace

void add_attention() {
  for (const DType t : {DType::bf16, DType::f32}) {
    for (const int64_t width : {16, 32, 64, 96, 128, 256})
      for (const int64_t length : {256, 512, 2048, 8192, 16384}) {
        const int64_t heads = std::max<int64_t>(4, 512 / width);
        add_shape({"plain", t, length, heads, heads, width});
      }
    for (const int64_t width : {64, 128})
      for (const int64_t length : {512, 2048, 8192}) {
        const int64_t heads = 1024 / width;
        add_shape({"groups_of_2", t, length, heads, heads / 2, width});
        add_shape({"groups_of_8", t, length, heads, heads / 8, width});
        add_shape({"window_256", t, length, heads, heads, width, 256});
        add_shape({"documents", t, length, heads, heads, width, 0, true});
      }
    for (const Model& m : kModels)
      for (const int64_t length : {512, 2048})
        add_shape({m.name, t, length, m.heads, m.kv_heads, m.H});
  }
}

}  // namespace rhea::bench
