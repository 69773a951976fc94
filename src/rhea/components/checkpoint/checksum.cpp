// XXH64 with seed 0.
#include "rhea/components/checkpoint/checksum.h"

#include <bit>
#include <cstring>

namespace rhea::checkpoint {
namespace {

constexpr uint64_t kPrime1 = 0x9e3779b185ebca87;
constexpr uint64_t kPrime2 = 0xc2b2ae3d27d4eb4f;
constexpr uint64_t kPrime3 = 0x165667b19e3779f9;
constexpr uint64_t kPrime4 = 0x85ebca77c2b2ae63;
constexpr uint64_t kPrime5 = 0x27d4eb2f165667c5;

template <class T>
T load(const std::byte* data) {
  T value;
  std::memcpy(&value, data, sizeof value);
  return value;
}

uint64_t mix(uint64_t lane, uint64_t input) {
  return std::rotl(lane + input * kPrime2, 31) * kPrime1;
}
uint64_t merge(uint64_t hash, uint64_t lane) { return (hash ^ mix(0, lane)) * kPrime1 + kPrime4; }

}  // namespace

uint64_t xxh64(std::span<const std::byte> data) {
  const std::byte* at = data.data();
  const std::byte* const end = at + data.size();
  uint64_t hash = kPrime5;
  if (data.size() >= 32) {
    uint64_t lanes[4] = {kPrime1 + kPrime2, kPrime2, 0, 0 - kPrime1};
    for (; end - at >= 32; at += 32) {
      for (int i = 0; i < 4; ++i) lanes[i] = mix(lanes[i], load<uint64_t>(at + 8 * i));
    }
    hash = std::rotl(lanes[0], 1) + std::rotl(lanes[1], 7) + std::rotl(lanes[2], 12) +
           std::rotl(lanes[3], 18);
    for (const uint64_t lane : lanes) hash = merge(hash, lane);
  }
  hash += data.size();
  for (; end - at >= 8; at += 8)
    hash = std::rotl(hash ^ mix(0, load<uint64_t>(at)), 27) * kPrime1 + kPrime4;
  if (end - at >= 4) {
    hash = std::rotl(hash ^ (load<uint32_t>(at) * kPrime1), 23) * kPrime2 + kPrime3;
    at += 4;
  }
  for (; at != end; ++at)
    hash = std::rotl(hash ^ (static_cast<uint64_t>(*at) * kPrime5), 11) * kPrime1;
  hash = (hash ^ (hash >> 33)) * kPrime2;
  hash = (hash ^ (hash >> 29)) * kPrime3;
  return hash ^ (hash >> 32);
}

}  // namespace rhea::checkpoint
