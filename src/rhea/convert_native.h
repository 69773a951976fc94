// Published files into a native step folder.
#pragma once
#include <filesystem>

#include "rhea/convert.h"

namespace rhea {

// Writes step folder `to` (step 0, weights only) with the model of the Hugging Face folder `from`
// under the names of options.module. It serves as initial_load_path and for rhea score, generate
// and convert. Memory: the model once. Throws Error as loading does.
void write_native(const ConvertOptions& options, const std::filesystem::path& from,
                  const std::filesystem::path& to);

}  // namespace rhea
