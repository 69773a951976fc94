#include "rhea/models/hf/rope.h"

#include <fmt/ranges.h>

#include <cmath>

namespace rhea::models::hf {
namespace {

using Scaling = nn::RopeSpec::Scaling;

constexpr double kDefaultTheta = 10000;

// Numbers at the top level that the objects below refer to.
struct Top {
  int64_t head_dim = 0;
  int64_t context = 0;          // max_position_embeddings
  std::optional<double> theta;  // as the file gives it
  double default_theta = 0;     // that, or the class default
  // original_max_position_embeddings beside the object, of the file or the class
  std::optional<double> original;
  double partial = 1;
  std::vector<std::string_view> longrope_names;
  bool longrope_magnitudes = false;
};

Top read_top(Fields& fields, int64_t head_dim, const RopeSpelling& spelling = {}) {
  Top top;
  top.head_dim = head_dim;
  top.longrope_names = spelling.longrope;
  top.longrope_magnitudes = spelling.longrope_magnitudes;
  top.context = fields.integer("max_position_embeddings", kMostPositions);
  top.default_theta = fields.number_or(spelling.theta, kDefaultTheta);
  if (fields.given(spelling.theta)) top.theta = top.default_theta;
  top.original = fields.maybe_number("original_max_position_embeddings");
  top.partial = fields.number_or(spelling.partial, 1);
  return top;
}

void read_scaling(Fields& inner, const Top& top, Scaling scaling, Rope& rope) {
  if (scaling == Scaling::none) return;
  const double context = static_cast<double>(top.context);
  const auto original = inner.maybe_number("original_max_position_embeddings");
  if (scaling == Scaling::dynamic || scaling == Scaling::linear) {
    rope.original_max_position_embeddings = context;
    rope.factor = inner.number("factor");
    return;
  }
  if (scaling == Scaling::llama3 && !original && !top.original)
    throw inner.error("original_max_position_embeddings is missing");
  // The one at the top is the older place and wins, as in Transformers.
  rope.original_max_position_embeddings = top.original.value_or(original.value_or(context));
  if (scaling == Scaling::llama3) {
    rope.factor = inner.number("factor");
    rope.low_freq_factor = inner.number("low_freq_factor");
    rope.high_freq_factor = inner.number("high_freq_factor");
    return;
  }
  rope.factor = inner.number_or("factor", context / rope.original_max_position_embeddings);
  rope.attention_factor = inner.number_or("attention_factor", 0);
  if (scaling == Scaling::yarn) {
    rope.beta_fast = inner.number_or("beta_fast", 32);
    rope.beta_slow = inner.number_or("beta_slow", 1);
    rope.mscale = inner.number_or("mscale", 0);
    rope.mscale_all_dim = inner.number_or("mscale_all_dim", 0);
    rope.truncate = inner.flag_or("truncate", true);
  } else {
    rope.short_factor = inner.numbers("short_factor");
    rope.long_factor = inner.numbers("long_factor");
    if (top.longrope_magnitudes) {
      rope.short_mscale = inner.number("short_mscale");
      rope.long_mscale = inner.number("long_mscale");
      if (!(rope.short_mscale > 0 && rope.long_mscale > 0))
        throw inner.error(fmt::format("short_mscale and long_mscale must be above 0, got {} and {}",
                                      rope.short_mscale, rope.long_mscale));
    }
  }
}

// One object of settings; an empty one is plain rotation.
Rope read_object(Fields& inner, const Top& top) {
  Rope rope;
  rope.max_position_embeddings = top.context;
  const auto theta = inner.maybe_number("rope_theta");
  if (theta && top.theta && *theta != *top.theta)
    throw inner.error(
        fmt::format("rope_theta is {} here and {} at the top of the file", *theta, *top.theta));
  rope.theta = theta.value_or(top.theta.value_or(top.default_theta));
  const auto old_type = inner.maybe_text("type");
  std::string type =
      inner.maybe_text("rope_type").value_or(old_type.value_or(std::string("default")));
  for (const auto name : top.longrope_names)
    if (type == name) type = "longrope";
  const Scaling scaling = [&] {
    try {
      return nn::parse_scaling(type);
    } catch (const Error& error) {
      throw inner.error(error.what());
    }
  }();
  rope.scaling = scaling == Scaling::none ? "none" : type;
  const double partial = inner.number_or("partial_rotary_factor", top.partial);
  if (!(partial > 0 && partial <= 1))
    throw inner.error(fmt::format("partial_rotary_factor must lie in (0, 1], got {}", partial));
  rope.dim = static_cast<int64_t>(static_cast<double>(top.head_dim) * partial);
  read_scaling(inner, top, scaling, rope);
  inner.ignore({"original_max_position_embeddings"});
  return rope;
}

Rope checked(const Fields& fields, Rope rope) {
  try {
    nn::check(rope.spec());
  } catch (const Error& error) {
    throw fields.error(error.what());
  }
  return rope;
}

// rope_parameters, or the older rope_scaling, of which an empty object says nothing.
const char* place(Fields& fields) {
  const bool old = fields.given("rope_scaling") && !fields.is_empty("rope_scaling");
  if (old && fields.given("rope_parameters"))
    throw fields.error("rope_parameters and rope_scaling are both given");
  fields.ignore({"rope_parameters", "rope_scaling"});
  return old ? "rope_scaling" : "rope_parameters";
}

}  // namespace

Rope read_rope(Fields& fields, int64_t head_dim, const RopeSpelling& spelling) {
  Top top = read_top(fields, head_dim, spelling);
  const char* name = place(fields);
  Fields inner = fields.section(name);
  // The object of the class is complete, as in Transformers: a theta beside it is not read.
  if (!fields.given(name) && inner.given("rope_theta") && top.theta) {
    if (*top.theta != inner.number("rope_theta"))
      fields.warn(
          fmt::format("{} = {} has no effect without rope_parameters or rope_scaling: then all "
                      "rotary settings are those of the class",
                      spelling.theta, *top.theta));
    top.theta.reset();
  }
  const Rope rope = read_object(inner, top);
  inner.refuse_unknown();
  return checked(fields, rope);
}

LayerRopes read_layer_ropes(Fields& fields, int64_t head_dim) {
  Top top = read_top(fields, head_dim);
  Top local = top;
  local.default_theta = fields.number("rope_local_base_freq");
  local.theta.reset();
  const char* name = place(fields);
  Fields settings = fields.section(name);
  LayerRopes ropes;
  if (std::string_view(name) == "rope_scaling") {
    if (settings.given("type") && !settings.given("rope_type"))
      throw settings.error(
          "type is not read for this model type, in Transformers neither: write rope_type");
    ropes.full = read_object(settings, top);
    settings.refuse_unknown();
    Fields plain = fields.section("no settings");
    ropes.sliding = read_object(plain, local);
  } else {
    // Each kind of layer has an object of its own; nobody reads plain values beside them, which
    // Transformers keeps when it saves a file of an older version.
    top.theta.reset();
    Fields full = settings.section("full_attention"),
           sliding = settings.section("sliding_attention");
    ropes = {read_object(full, top), read_object(sliding, local)};
    full.refuse_unknown();
    sliding.refuse_unknown();
    if (const auto unread = settings.unread(); !unread.empty())
      fields.warn(
          fmt::format("rope_parameters: not read, because each kind of layer has an object of its "
                      "own (full_attention, sliding_attention): {}",
                      fmt::join(unread, ", ")));
  }
  return {checked(fields, ropes.full), checked(fields, ropes.sliding)};
}

Rope read_alpha_rope(Fields& fields, int64_t head_dim) {
  Fields inner = fields.section(place(fields));
  const auto old_type = inner.maybe_text("type");
  if (inner.maybe_text("rope_type").value_or(old_type.value_or("")) != "dynamic" ||
      !inner.given("alpha"))
    return read_rope(fields, head_dim);
  const Top top = read_top(fields, head_dim);
  const double alpha = inner.number("alpha");
  if (!(alpha > 0)) throw inner.error(fmt::format("alpha must be above 0, got {}", alpha));
  Rope rope;
  rope.max_position_embeddings = top.context;
  rope.dim = head_dim;
  const auto dim = static_cast<double>(head_dim);
  rope.theta = top.theta.value_or(inner.number_or("rope_theta", top.default_theta)) *
               std::pow(alpha, dim / (dim - 2));
  // Settings of other scalings that these files repeat.
  inner.ignore({"factor", "beta_fast", "beta_slow", "mscale", "mscale_all_dim", "rope_theta"});
  inner.refuse_unknown();
  return checked(fields, rope);
}

}  // namespace rhea::models::hf
