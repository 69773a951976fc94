#include "rhea/base/cpu_tiles.h"

#include <cstdlib>

#if defined(__x86_64__) && defined(__linux__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>
#endif

#include "rhea/base/cpu_features.h"

namespace rhea {
namespace {

#if defined(__x86_64__) && defined(__linux__)
bool detect() {
  constexpr uint32_t kOsxsave = 1U << 27;                           // of leaf 1, ecx
  constexpr uint32_t kAmxBf16 = 1U << 22, kAmxTile = 1U << 24;      // of leaf 7, edx
  constexpr uint32_t kTileConfig = 1U << 17, kTileData = 1U << 18;  // of XCR0
  uint32_t a = 0, b = 0, c = 0, d = 0;
  if (__get_cpuid(1, &a, &b, &c, &d) == 0 || (c & kOsxsave) == 0) return false;
  if (__get_cpuid_count(7, 0, &a, &b, &c, &d) == 0) return false;
  if ((d & kAmxBf16) == 0 || (d & kAmxTile) == 0) return false;
  uint32_t low = 0, high = 0;
  asm volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  if ((low & kTileConfig) == 0 || (low & kTileData) == 0) return false;
  // Linux (5.16 and later) gives a process the 8 KiB of tiles when it asks; a sandbox may refuse.
  // Asking twice is harmless: oneDNN asks for itself.
  constexpr long kRequestPermission = 0x1023, kTileDataFeature = 18;
  return syscall(SYS_arch_prctl, kRequestPermission, kTileDataFeature) == 0;
}
#else
bool detect() { return false; }
#endif

}  // namespace

bool detected_tiles() {
  static const bool detected = detect();
  return detected;
}

bool active_tiles() {
  if (active_isa() < Isa::avx512_bf16) return false;
  const char* text = std::getenv("RHEA_ISA");
  return text == nullptr || *text == '\0' ? detected_tiles() : text == kTilesWord;
}

}  // namespace rhea
