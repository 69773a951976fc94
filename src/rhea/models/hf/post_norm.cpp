#include "rhea/models/hf/post_norm.h"

#include "rhea/ops/ops.h"

namespace rhea::models::hf {

using nn::Trace;
using nn::Value;

Value PostNormBlock::Config::forward(Trace& trace, Value x_TD) const {
  const Value h_TD = call(trace, names->attention_norm, *attention_norm,
                          x_TD + call(trace, names->attention, *attention, x_TD));
  return call(trace, names->ffn_norm, *ffn_norm,
              h_TD + call(trace, names->feed_forward, *feed_forward, h_TD));
}

Value NormedResidualBlock::Config::forward(Trace& trace, Value x_TD) const {
  const Value a_TD = call(trace, names->attention_norm, *attention_norm, x_TD);
  const Value h_TD = a_TD + call(trace, names->attention, *attention, a_TD);
  const Value f_TD = call(trace, names->ffn_norm, *ffn_norm, h_TD);
  return f_TD + call(trace, names->feed_forward, *feed_forward, f_TD);
}

}  // namespace rhea::models::hf
