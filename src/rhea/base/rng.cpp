// Philox and the uniform numbers drawn from it.
#include "rhea/base/rng.h"

namespace rhea {
namespace {

double to_unit(uint32_t high, uint32_t low) {  // 53 bits, never 0 or 1
  const uint64_t bits = ((static_cast<uint64_t>(high) << 32) | low) >> 11;
  return (static_cast<double>(bits) + 0.5) * 0x1p-53;
}

}  // namespace

RngKey rng_key(uint64_t seed, std::string_view name) {
  uint64_t hash = 0xcbf29ce484222325ULL ^ (seed * 0x9e3779b97f4a7c15ULL);
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL;
  hash ^= hash >> 30;
  hash *= 0xbf58476d1ce4e5b9ULL;
  hash ^= hash >> 27;
  hash *= 0x94d049bb133111ebULL;
  return {hash ^ (hash >> 31)};
}

std::array<uint32_t, 4> philox(RngKey key, uint64_t counter_low, uint64_t counter_high) {
  std::array<uint32_t, 4> x = {
      static_cast<uint32_t>(counter_low), static_cast<uint32_t>(counter_low >> 32),
      static_cast<uint32_t>(counter_high), static_cast<uint32_t>(counter_high >> 32)};
  uint32_t k0 = static_cast<uint32_t>(key.value);
  uint32_t k1 = static_cast<uint32_t>(key.value >> 32);
  for (int round = 0; round < 10; ++round) {
    const uint64_t p0 = 0xD2511F53ULL * x[0];
    const uint64_t p1 = 0xCD9E8D57ULL * x[2];
    x = {static_cast<uint32_t>(p1 >> 32) ^ x[1] ^ k0, static_cast<uint32_t>(p1),
         static_cast<uint32_t>(p0 >> 32) ^ x[3] ^ k1, static_cast<uint32_t>(p0)};
    k0 += 0x9E3779B9U;
    k1 += 0xBB67AE85U;
  }
  return x;
}

double rng_uniform(RngKey key, uint64_t index) {
  const auto words = philox(key, index);
  return to_unit(words[0], words[1]);
}

uint64_t rng_below(RngKey key, uint64_t index, uint64_t bound) {
  const auto words = philox(key, index);
  const uint64_t bits = (static_cast<uint64_t>(words[0]) << 32) | words[1];
  __extension__ using Wide = unsigned __int128;
  return static_cast<uint64_t>((static_cast<Wide>(bits) * bound) >> 64);
}

}  // namespace rhea
