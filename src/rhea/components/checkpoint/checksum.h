// XXH64 (Yann Collet's public algorithm): finds flipped bits at memory speed. No protection against
// intent.
#pragma once
#include <cstdint>
#include <span>

namespace rhea::checkpoint {

uint64_t xxh64(std::span<const std::byte> data);

}  // namespace rhea::checkpoint
