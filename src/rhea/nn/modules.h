// The blocks that native models and published ones are built from. A module is its Config: data
// plus forward(), so that an override that replaces the node replaces the computation.
//
// T tokens, D model dim, N query heads, H head dim
#pragma once
#include <functional>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "rhea/config/visitor.h"
#include "rhea/nn/decoder_names.h"
#include "rhea/nn/trace.h"

namespace rhea::nn {

// An Init as fields of a config.
struct InitConfig : Config {
  std::string distribution = "zeros";
  double std = 0;
  double cut = 0;

  InitConfig() = default;
  // The same distribution.
  InitConfig(const Init& init);  // NOLINT: a config field is set from an Init
  // What the fields say.
  Init init() const;
  void fields(Visitor& v) override;
};

struct Linear {
  // y = x w^T (+ b): x [..., in_features] -> [..., out_features], in the dtype of x
  struct Config : rhea::Config {
    int64_t in_features = 0;
    int64_t out_features = 0;
    bool bias = false;
    InitConfig init;
    virtual Value forward(Trace& trace, Value x) const;
    // The layer that holds weight and bias: itself, unless it wraps one.
    virtual const Config& base_layer() const { return *this; }
    // `y`, the base layer's product of `x`, with what a wrapper adds to it.
    virtual Value adapted(Trace& trace, Value x, Value y) const;
    void fields(Visitor& v) override;
  };
};

struct Embedding {
  // ids_T -> [T, D]
  struct Config : rhea::Config {
    int64_t num_embeddings = 0;
    int64_t embedding_dim = 0;
    // Token whose row gets no gradient from here (PyTorch's padding_idx); a head that is tied to
    // the table still moves it.
    std::optional<int64_t> padding_idx;
    InitConfig init;
    virtual Value forward(Trace& trace, Value ids_T) const;
    void fields(Visitor& v) override;
  };
};

struct RoPE {
  // Rotates q_TNH and k_TKH by the positions of the batch.
  struct Config : rhea::Config {
    virtual Value forward(Trace& trace, Value x_TNH) const = 0;
    // Tables that depend on the longest position of a batch are chosen by the host for each batch.
    virtual RopeSpec spec() const = 0;
  };
};

// The fields of a RopeSpec under torchtitan's and Hugging Face's names.
struct RopeFields : RoPE::Config {
  int64_t dim = 0;
  int64_t max_position_embeddings = 0;
  double theta = 10000;
  std::string scaling = "none";
  double factor = 1;
  double original_max_position_embeddings = 0;
  double low_freq_factor = 1, high_freq_factor = 4;
  double beta_fast = 32, beta_slow = 1;
  bool truncate = true;
  double mscale = 0, mscale_all_dim = 0, attention_factor = 0;
  std::vector<double> short_factor, long_factor;
  double short_mscale = 0, long_mscale = 0;

  RopeSpec spec() const override;
  void fields(Visitor& v) override;

 protected:
  // forward() for pairs (2i, 2i + 1) or (i, i + R/2). Throws Error where rows are longer than
  // max_position_embeddings (0: any length) and the tables do not depend on the length.
  Value rotate(Trace& trace, Value x_TNH, bool interleaved) const;
};

struct CosSinRoPE {
  // pairs (i, i + R/2)
  struct Config : RopeFields {
    Value forward(Trace& trace, Value x_TNH) const override { return rotate(trace, x_TNH, false); }
  };
};

struct ComplexRoPE {
  // pairs (2i, 2i + 1)
  struct Config : RopeFields {
    Value forward(Trace& trace, Value x_TNH) const override { return rotate(trace, x_TNH, true); }
  };
};

// The values of what forward() takes or gives. Structs of values have an overload beside them.
template <class F>
void for_each_value(const Trace&, Value& value, const F& f) {
  f(value);
}

namespace detail {

using StandIn = std::function<Value(const Value& value)>;

// What an override must keep: the types that the replaced module gives, and its parameters.
// `trace_stock` calls forward() of the stock module in a trace that is thrown away, with stand-ins
// of the arguments, `trace_replacement` that of the replacement; each gives the values of the
// result. What the latter throws comes out as an Error that names override and node, with the
// thrown one nested in it (an ExitError, which says how the process ends, as it is). Throws Error
// where types or shapes of parameters differ; parameters that one has and the other lacks are noted
// in the trace. The scope of the module is open.
void check_replacement(
    Trace& trace, const Replaced& replaced,
    const std::function<std::vector<Value>(Trace& stock_trace, const StandIn& like)>& trace_stock,
    const std::function<std::vector<Value>()>& trace_replacement);

template <class T>
std::vector<Value> values_of(const Trace& trace, T& made) {
  std::vector<Value> values;
  for_each_value(trace, made, [&](const Value& value) { values.push_back(value); });
  return values;
}

template <class T>
T stand_in(const Trace& trace, T argument, const StandIn& like) {
  for_each_value(trace, argument, [&](Value& value) { value = like(value); });
  return argument;
}

}  // namespace detail

// Calls a module's forward. Where it replaced another module, what it gives is checked against what
// that one gives; throws Error naming the override, the node and both types.
template <class C, class... Args>
auto checked_forward(Trace& trace, const C& module, const Args&... args) {
  using Made = decltype(module.forward(trace, args...));
  if (!module.replaced) return module.forward(trace, args...);
  std::optional<Made> made;
  detail::check_replacement(
      trace, *module.replaced,
      [&](Trace& stock_trace, const detail::StandIn& like) {
        const auto* stock = dynamic_cast<const C*>(module.replaced->stock.get());
        Made expected = stock->forward(stock_trace, detail::stand_in(trace, args, like)...);
        return detail::values_of(trace, expected);
      },
      [&] { return detail::values_of(trace, made.emplace(module.forward(trace, args...))); });
  return *std::move(made);
}

// Opens the child's scope ("" = stays in that of the caller) and calls its forward.
template <class C, class... Args>
auto call(Trace& trace, std::string_view name, const C& child, const Args&... args) {
  const ir::Scope scope(trace.graph(), name);
  if (trace.calls() == nullptr) return checked_forward(trace, child, args...);
  ModuleCall recorded{&child, {}, {}};
  const auto record = [&](auto values, std::vector<Value>& list) {
    for_each_value(trace, values, [&](const Value& value) {
      if (value.valid()) list.push_back(value);
    });
  };
  (record(args, recorded.arguments), ...);
  auto made = checked_forward(trace, child, args...);
  record(made, recorded.results);
  trace.calls()->push_back(std::move(recorded));
  return made;
}

}  // namespace rhea::nn
