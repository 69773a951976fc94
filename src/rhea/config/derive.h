// derive(): a config of one type from a config of another, as overrides make replacements.
#pragma once
#include <concepts>
#include <initializer_list>

#include "rhea/config/sections/override.h"

namespace rhea {

namespace config {
// Fields of `from` into the fields of `to` of the same name. Throws Error for a field of another
// type.
void copy_fields(Config& to, const Config& from);
// Sets fields by name. Throws Error naming all that `to` lacks, or the first of another type.
void set_deltas(Config& to, std::initializer_list<NamedValue> deltas);
}  // namespace config

// A Target with what it shares with `source`: everything where Target is derived from it, else the
// fields of the same name. `deltas` win; other fields of Target keep their defaults, other fields
// of the source are dropped:
//   derive<MyRoPE::Config>(stock, {{"block", 256}})
// Throws Error: `derive() got deltas for fields not on X: [...]`; a field that has the same name
// and another type.
template <std::derived_from<Config> Target, std::derived_from<Config> Source>
Target derive(const Source& source, std::initializer_list<NamedValue> deltas = {}) {
  Target target;
  // Copies what is no field, too.
  if constexpr (std::derived_from<Target, Source>)
    static_cast<Source&>(target) = source;
  else
    config::copy_fields(target, source);
  config::set_deltas(target, deltas);
  return target;
}

}  // namespace rhea
