// The default text: the quotations that the Debian packages fortunes and fortunes-min install.
#pragma once
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "rhea/components/data/document_source.h"

namespace rhea::data {

inline constexpr const char* kDebugTextFolder = "/usr/share/games/fortunes";
// Every document whose number + 1 is a multiple of this is held out for validation.
inline constexpr int64_t kHeldOutEvery = 50;

// The files that are read, in this order; nothing else in the folder counts.
std::span<const std::string_view> debug_text_files();

enum class DebugTextPart { train, validation };

// Documents of the part. Throws Error naming the first file that is absent and what to install.
std::unique_ptr<DocumentSource> open_debug_text(const std::filesystem::path& folder,
                                                DebugTextPart part);

// Pieces of `text` between lines that are exactly "%", without the line end before the separator;
// empty ones left out.
std::vector<std::string> split_fortunes(std::string_view text);
// All files one after the other, byte by byte: what the recorded SHA-256 of the text is about.
std::string read_debug_text(const std::filesystem::path& folder);

}  // namespace rhea::data
