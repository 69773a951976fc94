// Matrix products of every layer: T tokens, weight [N, K].
#include <fmt/core.h>

#include "bench/kernels/case.h"
#include "bench/kernels/models.h"

namespace rhea::bench {
namespace {

using ir::Layout;

struct Weight {
  std::string name;
  int64_t T, N, K;
};

std::vector<Weight> weights() {
  std::vector<Weight> all;
  for (const Model& m : kModels) {
    const auto add = [&](const char* layer, int64_t tokens, int64_t N, int64_t K) {
      all.push_back({fmt::format("{}.{}", m.name, layer), tokens, N, K});
    };
    add("qkv", kTokens, (m.heads + 2 * m.kv_heads) * m.H, m.D);
    add("o", kTokens, m.D, m.heads * m.H);
    add("gate", kTokens, m.F, m.D);
    add("down", kTokens, m.D, m.F);
    add("vocabulary", 512, m.V, m.D);  // the chunk of the fused loss
  }
  all.push_back({"debugmodel.qkv", 16384, 768, 256});
  all.push_back({"debugmodel.gate", 16384, 768, 256});
  all.push_back({"debugmodel.down", 16384, 256, 768});
  return all;
}

void add_weight(const Weight& weight, DType t) {
  const auto& [layer, T, N, K] = weight;
  const std::string end = fmt::format("{}/{}", dtype_name(t), layer);
  const auto product = [&](const char* name, ir::Type lhs, ir::Type rhs, int64_t lhs_contract,
                           int64_t rhs_contract, DType result) {
    add_case(
        {.name = fmt::format("product/{}/{}", name, end),
         .op = &ops::kDotGeneral,
         .operands = {{std::move(lhs)}, {std::move(rhs)}},
         .attrs = {
             {"lhs_contract", lhs_contract}, {"rhs_contract", rhs_contract}, {"dtype", result}}});
  };
  const ir::Type x{t, {T, K}}, dy{t, {T, N}}, w{t, {N, K}};
  product("forward_packed", x, {t, {N, K}, Layout::panels_nk}, 1, 1, t);
  product("forward", x, w, 1, 1, t);
  product("input_gradient_packed", dy, {t, {N, K}, Layout::panels_kn}, 1, 0, t);
  product("input_gradient", dy, w, 1, 0, t);
  product("weight_gradient", dy, x, 0, 0, DType::f32);
  add_case({.name = fmt::format("product/weight_gradient_squares/{}", end),
            .op = &ops::kWeightGradSquares,
            .operands = {{dy}, {x}}});
  add_case({.name = fmt::format("product/weight_gradient_add/{}", end),
            .op = &ops::kWeightGradAdd,
            .operands = {{dy}, {x}, {{DType::f32, {N, K}}}}});
  for (const auto& [name, layout] :
       {std::pair{"nk", Layout::panels_nk}, std::pair{"kn", Layout::panels_kn}})
    add_case({.name = fmt::format("pack/{}/{}", name, end),
              .op = &ops::kPack,
              .operands = {{w}},
              .attrs = {{"layout", static_cast<int64_t>(layout)}}});
}

}  // namespace

void add_products() {
  for (const DType t : {DType::bf16, DType::f32})
    for (const Weight& weight : weights()) add_weight(weight, t);
}

}  // namespace rhea::bench
