// Forward passes of the small blocks.
#include "rhea/nn/modules.h"

#include "rhea/base/error.h"
#include "rhea/ops/ops.h"

namespace rhea::nn {

InitConfig::InitConfig(const Init& init) : std(init.std), cut(init.cut) {
  constexpr const char* names[] = {"zeros",    "ones",   "normal", "truncated_normal",
                                   "constant", "uniform"};
  distribution = names[static_cast<int>(init.kind)];
}

Init InitConfig::init() const {
  if (distribution == "zeros") return Init::zeros();
  if (distribution == "ones") return Init::ones();
  if (distribution == "constant") return Init::constant(std);
  if (distribution == "uniform") return Init::uniform(std);
  return distribution == "normal" ? Init::normal(std) : Init::truncated_normal(std, cut);
}

void InitConfig::fields(Visitor& v) {
  v("distribution", distribution, "shape of the initial distribution",
    one_of{"zeros", "ones", "normal", "truncated_normal", "constant", "uniform"});
  v("std", std, "standard deviation; the value of a constant, the bound of uniform");
  v("cut", cut, "absolute bound of truncated_normal");
}

Value Linear::Config::forward(Trace& trace, Value x) const {
  const Value w_NK = trace.parameter("weight", {out_features, in_features}, init.init());
  const Value y = ops::linear(x, ops::convert(w_NK, x.dtype()));
  if (!bias) return y;
  const Value b = ops::convert(trace.parameter("bias", {out_features}, Init::zeros()), x.dtype());
  return y + ops::broadcast_in_dim(b, y.shape(), {y.type().rank() - 1});
}

Value Linear::Config::adapted(Trace&, Value, Value y) const { return y; }

void Linear::Config::fields(Visitor& v) {
  v("in_features", in_features, "columns of the weight", at_least(1));
  v("out_features", out_features, "rows of the weight", at_least(1));
  v("bias", bias, "adds a bias");
  v("init", init, "how the weight starts");
}

Value Embedding::Config::forward(Trace& trace, Value ids_T) const {
  const Value x_TD = ops::embedding(
      trace.parameter("weight", {num_embeddings, embedding_dim}, init.init()), ids_T);
  if (!padding_idx) return x_TD;
  const Value padding_T = trace.graph().constant(static_cast<double>(*padding_idx), ids_T.type());
  const Value is_padding_TD =
      ops::broadcast_in_dim(ops::compare(ids_T, padding_T, "EQ"), x_TD.shape(), {0});
  return ops::select(is_padding_TD, ops::stop_gradient(x_TD), x_TD);
}

void Embedding::Config::fields(Visitor& v) {
  v("num_embeddings", num_embeddings, "rows: vocabulary", at_least(1));
  v("embedding_dim", embedding_dim, "columns: model dim", at_least(1));
  v("padding_idx", padding_idx, "token whose row gets no gradient from the embedding");
  v("init", init, "how the table starts");
}

RopeSpec RopeFields::spec() const {
  return {.rotary_dim = dim,
          .theta = theta,
          .scaling = parse_scaling(scaling),
          .factor = factor,
          .original_max = original_max_position_embeddings,
          .low_freq_factor = low_freq_factor,
          .high_freq_factor = high_freq_factor,
          .beta_fast = beta_fast,
          .beta_slow = beta_slow,
          .truncate = truncate,
          .mscale = mscale,
          .mscale_all_dim = mscale_all_dim,
          .attention_factor = attention_factor,
          .short_factor = short_factor,
          .long_factor = long_factor,
          .short_mscale = short_mscale,
          .long_mscale = long_mscale};
}

void RopeFields::fields(Visitor& v) {
  v("dim", dim, "rotated dims of a head");
  v("max_position_embeddings", max_position_embeddings, "longest sequence the model is made for");
  v("theta", theta, "base of the frequencies");
  v("scaling", scaling, "scaling of the frequencies",
    one_of{"none", "linear", "dynamic", "llama3", "yarn", "longrope"});
  v("factor", factor, "context extension of the scaling");
  v("original_max_position_embeddings", original_max_position_embeddings,
    "context before the extension");
  v("low_freq_factor", low_freq_factor, "llama3: below this many turns a dim is interpolated");
  v("high_freq_factor", high_freq_factor, "llama3: above this many turns a dim is kept");
  v("beta_fast", beta_fast, "yarn: turns from which a dim is kept");
  v("beta_slow", beta_slow, "yarn: turns up to which a dim is interpolated");
  v("truncate", truncate, "yarn: round the ramp's ends to whole dims");
  v("mscale", mscale, "yarn: magnitude, 0 = not given");
  v("mscale_all_dim", mscale_all_dim, "yarn: magnitude of all dims, 0 = not given");
  v("attention_factor", attention_factor, "replaces the magnitude, 0 = computed");
  v("short_factor", short_factor, "longrope: divisors up to the original context");
  v("long_factor", long_factor, "longrope: divisors beyond it");
  v("short_mscale", short_mscale, "longrope: magnitude up to the original context, 0 = computed");
  v("long_mscale", long_mscale, "longrope: magnitude beyond it");
}

Value RopeFields::rotate(Trace& trace, Value x_TNH, bool interleaved) const {
  const RopeSpec rope = spec();
  check(rope);
  if (max_position_embeddings > 0 && trace.options().seq_len > max_position_embeddings &&
      !rope.depends_on_length())
    throw Error(
        "Training sequence length {} exceeds attention RoPE maximum supported sequence length {}.",
        trace.options().seq_len, max_position_embeddings);
  const auto tables = trace.rope_tables(rope);
  return ops::rope(x_TNH, tables.cos_SP, tables.sin_SP, trace.positions(), interleaved);
}

}  // namespace rhea::nn
