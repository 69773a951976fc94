// Detection of instruction sets.
#include "rhea/base/cpu_features.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>

#include "rhea/base/cpu_tiles.h"
#include "rhea/base/error.h"

namespace rhea {
namespace {

// Intel's cores start a dot product of 32 pairs every other cycle, and two multiply-adds of 16
// lanes every cycle: 174 and 357 GFLOP/s on two of them. AMD's start as many of either.
bool dot_product_is_slow() {
#if defined(__x86_64__)
  return __builtin_cpu_is("intel") && !detected_tiles();
#else
  return false;
#endif
}

}  // namespace

std::string_view isa_name(Isa isa) {
  constexpr std::string_view names[] = {"plain", "avx2", "avx512", "avx512_bf16"};
  return names[static_cast<int>(isa)];
}

Isa detected_isa() {
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")) return Isa::plain;
  if (!__builtin_cpu_supports("avx512f") || !__builtin_cpu_supports("avx512bw") ||
      !__builtin_cpu_supports("avx512vl") || !__builtin_cpu_supports("avx512dq"))
    return Isa::avx2;
  return __builtin_cpu_supports("avx512bf16") ? Isa::avx512_bf16 : Isa::avx512;
#else
  return Isa::plain;
#endif
}

Isa allowed_isa() {
  const Isa detected = detected_isa();
  const char* text = std::getenv("RHEA_ISA");
  if (text == nullptr || *text == '\0') return detected;
  for (int i = 0; i <= static_cast<int>(Isa::avx512_bf16); ++i) {
    if (isa_name(static_cast<Isa>(i)) == text) return std::min(detected, static_cast<Isa>(i));
  }
  if (text == kTilesWord) return detected;
  throw Error("RHEA_ISA='{}' is not an instruction set; known: plain avx2 avx512 avx512_bf16 {}",
              text, kTilesWord);
}

Isa active_isa() {
  const Isa allowed = allowed_isa();
  const char* text = std::getenv("RHEA_ISA");
  const bool free = text == nullptr || *text == '\0';
  return free && multiplies_bf16(allowed) && dot_product_is_slow() ? Isa::avx512 : allowed;
}

std::string isa_in_use() {
  const Isa active = active_isa(), detected = detected_isa();
  const std::string name(isa_name(active));
  if (active == detected) return name;
  if (allowed_isa() < detected)
    return name + " (RHEA_ISA; the machine has " + std::string(isa_name(detected)) + ")";
  return name + " (the machine has " + std::string(isa_name(detected)) +
         ", whose products of bf16 are slower here than those of f32)";
}

std::string cpu_brand() {
  std::ifstream info("/proc/cpuinfo");
  std::string line;
  while (std::getline(info, line)) {
    if (line.starts_with("model name")) {
      const auto colon = line.find(": ");
      if (colon != std::string::npos) return line.substr(colon + 2);
    }
  }
  return "unknown CPU";
}

}  // namespace rhea
