// Matrix tiles for bf16 (AMX). Not a level of Isa: no kernel of ours is compiled for them, a
// library multiplies with them.
#pragma once
#include <string_view>

namespace rhea {

// The word of RHEA_ISA that stands for the best level of Isa with tiles, see active_tiles().
inline constexpr std::string_view kTilesWord = "amx_bf16";

// The CPU multiplies bf16 on tiles, and the operating system lets this process use their registers.
bool detected_tiles();
// Are products chosen as for a CPU with tiles? detected_tiles() while RHEA_ISA is not set. With
// RHEA_ISA=amx_bf16 they are on every CPU with AVX-512 and bf16 instructions, so that the choice
// can be tried where there are no tiles: the library then computes without. Never with another
// word.
bool active_tiles();

}  // namespace rhea
