// Base64 (RFC 4648), as tokenizer files hold bytes in it.
#pragma once
#include <optional>
#include <string>
#include <string_view>

namespace rhea::tokenizer {

// The bytes; nothing where `text` is not base64 with its padding.
std::optional<std::string> decode_base64(std::string_view text);

}  // namespace rhea::tokenizer
