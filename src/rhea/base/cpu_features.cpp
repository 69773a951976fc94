// Detection of instruction sets.
#include "rhea/base/cpu_features.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>

#include "rhea/base/cpu_tiles.h"
#include "rhea/base/error.h"

namespace rhea {

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

Isa active_isa() {
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
