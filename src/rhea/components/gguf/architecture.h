// What differs between the architectures of GGUF files. A new one: a row in architecture.cpp.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <set>
#include <span>
#include <string>
#include <string_view>

#include "rhea/components/gguf/file.h"

namespace rhea::gguf {

// "blk.3.attn_q.weight" is part "attn_q" of layer 3; names outside layers have their own part.
struct PartName {
  std::string_view gguf;
  std::string_view hf;
};

// Metadata of one architecture, "llama.block_count" and so on; remembers what was read.
class ArchitectureKeys {
 public:
  explicit ArchitectureKeys(const File& file);

  const File& file() const { return file_; }
  bool has(std::string_view name) const { return file_.has(full(name)); }
  int64_t integer(std::string_view name);
  int64_t integer(std::string_view name, int64_t fallback);
  double number(std::string_view name);
  double number(std::string_view name, double fallback);
  std::string text(std::string_view name, const std::string& fallback);
  // Reads nothing, but the key is known to change nothing.
  void ignore(std::string_view name) { used_.insert(full(name)); }
  // Throws Error listing the keys of the architecture that were not read.
  void refuse_unread() const;

 private:
  std::string full(std::string_view name) const { return prefix_ + std::string(name); }

  const File& file_;
  std::string prefix_;
  std::set<std::string> used_;
};

struct Architecture {
  std::string_view name;            // general.architecture
  std::string_view model_type;      // of config.json
  std::string_view class_name;      // of config.json's architectures
  bool permuted = false;            // rows of q and k are adjacent pairs
  bool norms_plus_one = false;      // norm weights are stored as 1 + w
  std::span<const PartName> parts;  // besides the common ones; they win
  std::string_view experts = "";    // "{}" is the expert: "mlp.experts.{}."
  void (*fields)(ArchitectureKeys& keys, nlohmann::ordered_json& config) = nullptr;
};

// The architecture of a file. Throws Error naming it and those that are supported.
const Architecture& architecture_of(const File& file);
// config.json.
nlohmann::ordered_json config_of(const File& file, const Architecture& architecture);
// Name of a tensor outside experts, "" when there is no place for it.
std::string published_name(const Architecture& architecture, std::string_view gguf_name);

}  // namespace rhea::gguf
