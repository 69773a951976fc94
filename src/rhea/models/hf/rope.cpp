#include "rhea/models/hf/rope.h"

#include <fmt/ranges.h>

#include <cmath>

namespace rhea::models::hf {
namespace {

using Scaling = nn::RopeSpec::Scaling;

constexpr double kDefaultTheta = 10000;

// Numbers at the top level that the objects below refer to. Those that an object may replace are
// looked up when it does not: a class default that is looked up is reported as taken.
struct Top {
  Fields* fields = nullptr;
  int64_t head_dim = 0;
  int64_t context = 0;          // max_position_embeddings
  std::optional<double> theta;  // as the file gives it
  std::string_view theta_field, partial_field;
  std::vector<std::string_view> longrope_names;
  bool longrope_magnitudes = false;

  // That of the file, or the class default.
  double default_theta() const { return fields->number_or(theta_field, kDefaultTheta); }
  double partial() const { return fields->number_or(partial_field, 1); }
  // original_max_position_embeddings beside the object, of the file or the class
  std::optional<double> original() const {
    return fields->maybe_number("original_max_position_embeddings");
  }
};

Top read_top(Fields& fields, int64_t head_dim, const RopeSpelling& spelling = {}) {
  Top top{.fields = &fields,
          .head_dim = head_dim,
          .context = fields.integer("max_position_embeddings", kMostPositions),
          .theta = {},
          .theta_field = spelling.theta,
          .partial_field = spelling.partial,
          .longrope_names = spelling.longrope,
          .longrope_magnitudes = spelling.longrope_magnitudes};
  if (fields.given(spelling.theta)) top.theta = fields.number(spelling.theta);
  for (const auto name :
       {spelling.theta, spelling.partial, std::string_view("original_max_position_embeddings")})
    fields.check_number(name);
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
  const auto above = top.original();
  if (scaling == Scaling::llama3 && !original && !above)
    throw inner.error("original_max_position_embeddings is missing");
  // The one at the top is the older place and wins, as in Transformers.
  rope.original_max_position_embeddings = above.value_or(original.value_or(context));
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
  rope.theta = theta ? *theta : top.theta ? *top.theta : top.default_theta();
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
  const auto own_partial = inner.maybe_number("partial_rotary_factor");
  const double partial = own_partial ? *own_partial : top.partial();
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
  local.theta_field = "rope_local_base_freq";
  local.theta.reset();
  fields.check_number(local.theta_field);
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
  const auto own = inner.maybe_number("rope_theta");
  const double theta = top.theta ? *top.theta : own ? *own : top.default_theta();
  rope.theta = theta * std::pow(alpha, dim / (dim - 2));
  // Settings of other scalings that these files repeat.
  inner.ignore({"factor", "beta_fast", "beta_slow", "mscale", "mscale_all_dim", "rope_theta"});
  inner.refuse_unknown();
  return checked(fields, rope);
}

}  // namespace rhea::models::hf
