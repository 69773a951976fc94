// The LoRA adapters of a native checkpoint as a folder of PEFT.
#pragma once
#include <filesystem>

#include "rhea/convert.h"

namespace rhea {

// Throws Error where options.from is no native checkpoint or has no adapters.
void write_adapters(const ConvertOptions& options, const std::filesystem::path& to);

}  // namespace rhea
