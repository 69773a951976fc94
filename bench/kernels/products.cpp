// Matrix products of every layer: T tokens, weight [N, K].
#include <fmt/core.h>

#include "bench/kernels/case.h"
#include "bench/kernels/models.h"

namespace rhea::bench {
namespace {

using ir::Layout;

std::vector<Layer> all_layers() {
  std::vector<Layer> all;
  for (const Model& m : kModels) {
    for (const int64_t tokens : {kTokens, int64_t{512}})
      for (Layer& layer : layers_of(m, tokens)) all.push_back(std::move(layer));
    all.push_back(vocabulary_of(m));
  }
  all.push_back({"debugmodel.qkv", 16384, 768, 256});
  all.push_back({"debugmodel.gate", 16384, 768, 256});
  all.push_back({"debugmodel.down", 16384, 256, 768});
  return all;
}

void add_layer(const Layer& given, DType t) {
  const auto& [layer, T, N, K] = given;
  const std::string end = fmt::format("{}/{}", dtype_name(t), layer);
  const auto product = [&](const char* name, ir::Type lhs, ir::Type rhs, int64_t lhs_contract,
                           int64_t rhs_contract, DType result, const char* instead) {
    add_case({.name = fmt::format("product/{}/{}", name, end),
              .op = &ops::kDotGeneral,
              .operands = {{std::move(lhs)}, {std::move(rhs)}},
              .attrs = {{"lhs_contract", lhs_contract},
                        {"rhs_contract", rhs_contract},
                        {"dtype", result}},
              .instead = instead});
  };
  const ir::Type x{t, {T, K}}, dy{t, {T, N}}, w{t, {N, K}};
  // As passes/pack_weights.cpp has it.
  const bool packs_kn = t == DType::bf16;
  product("forward_packed", x, {t, {N, K}, Layout::panels_nk}, 1, 1, t, "");
  product("forward", x, w, 1, 1, t, "forward_packed");
  product("input_gradient_packed", dy, {t, {N, K}, Layout::panels_kn}, 1, 0, t,
          packs_kn ? "" : "input_gradient");
  product("input_gradient", dy, w, 1, 0, t, packs_kn ? "input_gradient_packed" : "");
  product("weight_gradient", dy, x, 0, 0, DType::f32,
          "weight_gradient_squares, but with several microbatches a step");
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
    for (const Layer& layer : all_layers()) add_layer(layer, t);
}

}  // namespace rhea::bench
