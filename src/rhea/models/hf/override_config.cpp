// The file's own spelling is kept, so that what reads the text afterwards sees one number, not two.
#include "rhea/models/hf/override_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "rhea/base/error.h"
#include "rhea/base/json.h"
#include "rhea/models/hf/table.h"

namespace rhea::models::hf {
namespace {

using nlohmann::ordered_json;

// Fields with an entry for each layer.
constexpr std::string_view kPerLayer[] = {"layer_types", "no_rope_layers", "mlp_layer_types"};

class Editor {
 public:
  Editor(std::string_view text, std::string_view origin)
      : origin_(origin), document_(parse_ordered_json(text, origin)) {
    if (!document_.is_object()) throw Error("{}: expected a JSON object", origin_);
    row_ = row_of();
  }

  // Every name of Llama's field that the row knows and the file has gets the number; where the file
  // has none, the row's first one.
  template <class T>
  void set(const std::optional<T>& value, std::string_view field) {
    if (!value) return;
    const auto names = names_in_files(field);
    bool found = false;
    for (const auto name : names) {
      if (!has(document_, name)) continue;
      replace(document_, name, name, *value);
      found = true;
    }
    if (!found) replace(document_, names.front(), names.front(), *value);
  }

  void set_layers(const std::optional<int64_t>& value) {
    if (!value) return;
    set(value, "num_hidden_layers");
    const auto kept = static_cast<size_t>(*value);
    for (const auto name : kPerLayer) {
      if (!has(document_, name) || !document_[name].is_array()) continue;
      auto& list = document_[name];
      if (list.size() <= kept) continue;
      replaced_.push_back(fmt::format("{}: the first {} of {}", name, kept, list.size()));
      list.erase(list.begin() + static_cast<std::ptrdiff_t>(kept), list.end());
    }
  }

  void set_theta(const std::optional<double>& theta) {
    if (!theta) return;
    bool found = false;
    const auto top = names_in_files("rope_theta").front();
    if (has(document_, top)) {
      replace(document_, top, top, *theta);
      found = true;
    }
    for (const char* place : {"rope_parameters", "rope_scaling"}) {
      if (!has(document_, place) || !document_[place].is_object()) continue;
      auto& rope = document_[place];
      if (std::any_of(rope.begin(), rope.end(),
                      [](const ordered_json& value) { return value.is_object(); }))
        throw Error(
            "{}: {} has a rope_theta for each kind of layer, hf_overrides.rope_theta is one "
            "number; change the file, or leave the option at None",
            origin_, place);
      if (!has(rope, "rope_theta")) continue;
      replace(rope, "rope_theta", fmt::format("{}.rope_theta", place), *theta);
      found = true;
    }
    const bool settings = has_object("rope_parameters") || has_object("rope_scaling");
    if (found && settings) return;
    // Settings of the class, which go before a theta at the top, become those of the file.
    if (row_ != nullptr && !settings) {
      auto defaults = parse_ordered_json(row_->defaults);
      if (has(defaults, "rope_parameters") && has(defaults["rope_parameters"], "rope_theta")) {
        document_["rope_parameters"] = defaults["rope_parameters"];
        replace(document_["rope_parameters"], "rope_theta", "rope_parameters.rope_theta", *theta);
        return;
      }
    }
    if (found) return;
    if (has_object("rope_parameters"))
      replace(document_["rope_parameters"], "rope_theta", "rope_parameters.rope_theta", *theta);
    else
      replace(document_, top, top, *theta);
  }

  OverriddenConfig result(std::string_view text) {
    if (replaced_.empty()) return {std::string(text), {}};
    return {document_.dump(2) + "\n", std::move(replaced_)};
  }

 private:
  // Llama's own where the reader will refuse the model type.
  std::vector<std::string_view> names_in_files(std::string_view field) const {
    return row_ != nullptr ? names_of(row_->spellings, field) : std::vector{field};
  }
  // Null where the file's model type is none of the table.
  const Row* row_of() const {
    const auto type = document_.find("model_type");
    if (type == document_.end() || !type->is_string()) return nullptr;
    const auto known = model_types();
    const auto name = type->get<std::string>();
    return std::find(known.begin(), known.end(), name) == known.end() ? nullptr : &find_row(name);
  }
  bool has_object(const char* name) const {
    return has(document_, name) && document_[name].is_object() && !document_[name].empty();
  }
  static bool has(const ordered_json& object, std::string_view name) {
    return object.contains(name) && !object[name].is_null();
  }

  template <class T>
  void replace(ordered_json& object, std::string_view name, std::string_view shown,
               const T& value) {
    const ordered_json made = value;
    const bool there = object.contains(name);
    if (there && object[name] == made) return;
    replaced_.push_back(
        fmt::format("{} {} -> {}", shown, there ? object[name].dump() : "absent", made.dump()));
    object[name] = made;
  }

  std::string origin_;
  ordered_json document_;
  const Row* row_ = nullptr;
  std::vector<std::string> replaced_;
};

}  // namespace

OverriddenConfig override_config(std::string_view json, std::string_view origin,
                                 const HfOverridesConfig& o) {
  Editor editor(json, origin);
  editor.set(o.dim, "hidden_size");
  editor.set_layers(o.n_layers);
  editor.set(o.n_heads, "num_attention_heads");
  editor.set(o.n_kv_heads, "num_key_value_heads");
  editor.set(o.vocab_size, "vocab_size");
  editor.set(o.intermediate_size, "intermediate_size");
  editor.set(o.norm_eps, "rms_norm_eps");
  editor.set_theta(o.rope_theta);
  editor.set(o.num_experts, "num_experts");
  editor.set(o.num_experts_per_tok, "num_experts_per_tok");
  editor.set(o.moe_intermediate_size, "moe_intermediate_size");
  editor.set(o.decoder_sparse_step, "decoder_sparse_step");
  editor.set(o.norm_topk_prob, "norm_topk_prob");
  editor.set(o.attn_implementation, "attn_implementation");
  return editor.result(json);
}

}  // namespace rhea::models::hf
