// One arena for programs that take turns: their own values, and the tensors that one of them makes
// for another.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "rhea/exec/cpu/backend.h"
#include "rhea/exec/cpu/program.h"

namespace rhea::exec::cpu {

// A program of a round. Rounds follow one another, so the first program comes after the last.
struct Turn {
  Program* program = nullptr;
  bool optional = false;  // may be left out of a round
  bool repeats = false;   // may run several times in a row
};

// Sets the offsets of all places in the arena and MemoryPlan::arena and ::live of every program.
// An output (that donates nothing) with the name of an input of another program is such a tensor:
// both lie in the arena, not in memory of the caller. It has its bytes from the step that first
// writes it to the last one that reads it, and others have them for the rest of the round;
// `share` false: for the whole round.
ArenaPeak lay_out_arena(std::span<const Turn> turns, bool share = true);

}  // namespace rhea::exec::cpu
