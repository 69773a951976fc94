// The difference between the tensors that a run has and those that a source offers.
#pragma once
#include <string>
#include <vector>

namespace rhea::checkpoint {

// Loading is strict: any entry is an error, so that nothing stays random and nothing is dropped in
// silence.
struct KeyReport {
  std::vector<std::string> missing;     // the run has it, the source does not
  std::vector<std::string> unexpected;  // the source has it, the run does not
  std::vector<std::string> unequal;     // "name: f32 [2] in the checkpoint, f32 [3] in the model"
  std::vector<std::string> contradictions = {};  // whole sentences

  // Throws Error naming `source` and every key of each kind, unless all are empty. `hint` is
  // added where something is missing.
  void raise(const std::string& source, const std::string& hint = "") const;
};

}  // namespace rhea::checkpoint
