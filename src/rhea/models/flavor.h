// Look-up in a family's table of flavors, and what model_registry makes of one.
#pragma once
#include <fmt/core.h>
#include <fmt/ranges.h>

#include <array>
#include <string_view>
#include <vector>

#include "rhea/base/error.h"
#include "rhea/config/trainer_config.h"
#include "rhea/nn/decoder.h"

namespace rhea::models {

// The row of that name. Throws Error that lists the flavors there are.
template <class Flavor, size_t N>
const Flavor& find_flavor(std::string_view family, const std::array<Flavor, N>& table,
                          std::string_view name) {
  std::vector<std::string_view> known;
  for (const Flavor& flavor : table) {
    if (flavor.name == name) return flavor;
    known.push_back(flavor.name);
  }
  throw Error("{} has no flavor '{}'; flavors: {}", family, name, fmt::join(known, ", "));
}

// Throws Error for a name that is unknown, or that needs experts on several ranks.
void check_moe_comm_backend(std::string_view name);

// `attn_backend`: flex, varlen and flex_flash mask documents, sdpa is plain causal; another word is
// an error.
ModelSpec make_spec(std::string_view family, std::string_view flavor, nn::Decoder::Config model,
                    std::string_view attn_backend);

}  // namespace rhea::models
