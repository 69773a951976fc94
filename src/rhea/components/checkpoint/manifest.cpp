// JSON of the manifest.
#include "rhea/components/checkpoint/manifest.h"

#include <charconv>
#include <nlohmann/json.hpp>

#include "rhea/base/error.h"
#include "rhea/base/json.h"
#include "rhea/components/checkpoint/checksum.h"
#include "rhea/components/safetensors/header.h"

namespace rhea::checkpoint {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kFormat = "rhea checkpoint";
constexpr int kVersion = 1;
// The end of every manifest; the 16 digits are the checksum of the text in which they are zeros.
constexpr std::string_view kSealHead = "\"manifest_xxh64\": \"";
constexpr std::string_view kSealTail = "\"\n}\n";
constexpr size_t kSealDigits = 16;
constexpr std::string_view kZeros = "0000000000000000";

std::string hex(uint64_t value) { return fmt::format("{:016x}", value); }

uint64_t from_hex(const std::string& text) {
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, 16);
  if (error != std::errc() || end != text.data() + text.size() || text.size() != kSealDigits)
    throw Error("'{}' is not a checksum", text);
  return value;
}

uint64_t hash_of(std::string_view text) { return xxh64(std::as_bytes(std::span(text))); }

// Position of the digits, or npos.
size_t seal_position(std::string_view text) {
  const size_t size = kSealHead.size() + kSealDigits + kSealTail.size();
  if (text.size() < size || !text.ends_with(kSealTail)) return std::string_view::npos;
  const size_t begin = text.size() - size;
  return text.substr(begin).starts_with(kSealHead) ? begin + kSealHead.size()
                                                   : std::string_view::npos;
}

Json to_json(const StoredTensor& tensor) {
  Json chunks = Json::array();
  for (const Chunk& chunk : tensor.chunks) {
    Json checksums = Json::array();
    for (const uint64_t checksum : chunk.checksums) checksums.push_back(hex(checksum));
    chunks.push_back({{"offset", chunk.offset},
                      {"shape", chunk.shape},
                      {"file", chunk.file},
                      {"bytes", {chunk.begin, chunk.end}},
                      {"xxh64", checksums}});
  }
  return {{"dtype", dtype_name(tensor.dtype)}, {"shape", tensor.shape}, {"chunks", chunks}};
}

std::vector<int64_t> sizes(const Json& json) {
  std::vector<int64_t> values;
  for (const Json& item : json) {
    if (!item.is_number_unsigned() || item.get<uint64_t>() > INT64_MAX)
      throw Error("{} is not a size", item.dump());
    values.push_back(item.get<int64_t>());
  }
  return values;
}

Chunk chunk_from(const Json& json, const Manifest& manifest, const StoredTensor& tensor) {
  Chunk chunk;
  chunk.offset = sizes(json.at("offset"));
  chunk.shape = sizes(json.at("shape"));
  chunk.file = json.at("file").get<std::string>();
  const auto range = sizes(json.at("bytes"));
  if (range.size() != 2 || range[0] > range[1])
    throw Error("bytes {} are no range", json.at("bytes").dump());
  chunk.begin = static_cast<uint64_t>(range[0]);
  chunk.end = static_cast<uint64_t>(range[1]);
  const auto file = manifest.files.find(chunk.file);
  if (file == manifest.files.end()) throw Error("file '{}' is not listed under files", chunk.file);
  if (chunk.end > file->second)
    throw Error("bytes up to {} of '{}', which has {}", chunk.end, chunk.file, file->second);
  if (chunk.offset.size() != tensor.shape.size() || chunk.shape.size() != tensor.shape.size())
    throw Error("a chunk has another number of dimensions than the tensor");
  for (size_t d = 0; d < tensor.shape.size(); ++d) {
    if (chunk.offset[d] > tensor.shape[d] || chunk.shape[d] > tensor.shape[d] - chunk.offset[d])
      throw Error("a chunk reaches outside the tensor in dimension {}", d);
  }
  const uint64_t bytes =
      safetensors::tensor_bytes(safetensors::element_type_of(tensor.dtype), chunk.shape, "chunk");
  if (bytes != chunk.end - chunk.begin)
    throw Error("a chunk of {} bytes has a range of {}", bytes, chunk.end - chunk.begin);
  for (const Json& checksum : json.at("xxh64"))
    chunk.checksums.push_back(from_hex(checksum.get<std::string>()));
  if (chunk.checksums.size() != (bytes + kChecksumBlock - 1) / kChecksumBlock)
    throw Error("{} checksums for {} bytes", chunk.checksums.size(), bytes);
  return chunk;
}

StoredTensor tensor_from(const Json& json, const Manifest& manifest) {
  StoredTensor tensor;
  tensor.dtype = parse_dtype(json.at("dtype").get<std::string>());
  tensor.shape = sizes(json.at("shape"));
  const uint64_t bytes =
      safetensors::tensor_bytes(safetensors::element_type_of(tensor.dtype), tensor.shape, "tensor");
  uint64_t found = 0;
  for (const Json& item : json.at("chunks")) {
    tensor.chunks.push_back(chunk_from(item, manifest, tensor));
    found += tensor.chunks.back().end - tensor.chunks.back().begin;
  }
  if (found != bytes) throw Error("chunks hold {} of its {} bytes", found, bytes);
  return tensor;
}

Manifest from_json(const Json& json) {
  if (json.at("format").get<std::string>() != kFormat) throw Error("format is not '{}'", kFormat);
  if (const int version = json.at("version").get<int>(); version != kVersion)
    throw Error("version {} was written by another release; this one reads {}", version, kVersion);
  Manifest manifest;
  const auto kind = json.at("kind").get<std::string>();
  if (kind != "full" && kind != "model_only") throw Error("unknown kind '{}'", kind);
  manifest.kind = kind == "full" ? Manifest::Kind::full : Manifest::Kind::model_only;
  manifest.step = json.at("step").get<int64_t>();
  for (const auto& [name, size] : json.at("files").items()) {
    if (name.empty() || name.find('/') != std::string::npos || name == "..")
      throw Error("'{}' is no plain file name", name);
    manifest.files[name] = size.get<uint64_t>();
  }
  for (const auto& [name, tensor] : json.at("tensors").items()) {
    try {
      manifest.tensors[name] = tensor_from(tensor, manifest);
    } catch (const std::exception& error) {
      throw Error("tensor '{}': {}", name, json_reason(error.what()));
    }
  }
  for (const auto& [name, part] : json.at("state").items()) manifest.state[name] = part.dump();
  return manifest;
}

}  // namespace

void seal_manifest(std::string& text) {
  const size_t at = seal_position(text);
  RHEA_CHECK(at != std::string::npos, "a manifest without its last line");
  text.replace(at, kSealDigits, kZeros);
  text.replace(at, kSealDigits, hex(hash_of(text)));
}

std::string format_manifest(const Manifest& manifest) {
  std::string text = fmt::format(
      "{{\n\"format\": \"{}\",\n\"version\": {},\n\"kind\": \"{}\",\n\"step\": {},\n\"files\": "
      "{},\n",
      kFormat, kVersion, manifest.kind == Manifest::Kind::full ? "full" : "model_only",
      manifest.step, Json(manifest.files).dump());
  const auto object = [&](std::string_view name, const auto& items, const auto& dump) {
    text += fmt::format("\"{}\": {{", name);
    std::string_view separator = "\n";
    for (const auto& [key, value] : items) {
      text += fmt::format("{} {}: {}", separator, Json(key).dump(), dump(value));
      separator = ",\n";
    }
    text += "},\n";
  };
  object("tensors", manifest.tensors,
         [](const StoredTensor& tensor) { return to_json(tensor).dump(); });
  object("state", manifest.state,
         [](const std::string& part) { return parse_ordered_json(part).dump(); });
  text.append(kSealHead).append(kZeros).append(kSealTail);
  seal_manifest(text);
  return text;
}

Manifest parse_manifest(std::string_view text, std::string_view where) {
  const size_t at = seal_position(text);
  if (at == std::string_view::npos)
    throw Error("{}: the end is missing; the file is truncated or damaged", where);
  std::string zeroed(text);
  zeroed.replace(at, kSealDigits, kZeros);
  if (hex(hash_of(zeroed)) != text.substr(at, kSealDigits))
    throw Error("{}: its checksum is wrong; the file is damaged", where);
  check_json_depth(text, where);
  try {
    return from_json(parse_ordered_json(text));
  } catch (const std::exception& error) {
    throw Error("{}: {}", where, json_reason(error.what()));
  }
}

}  // namespace rhea::checkpoint
