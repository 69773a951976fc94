// The file's own spelling is kept, so that what reads the text afterwards sees one number, not two.
#include "rhea/models/hf/override_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>
#include <nlohmann/json.hpp>

#include "rhea/base/error.h"
#include "rhea/base/json_depth.h"
#include "rhea/models/hf/table.h"

namespace rhea::models::hf {
namespace {

using nlohmann::ordered_json;
using Spellings = std::initializer_list<const char*>;

// Fields with an entry for each layer.
constexpr const char* kPerLayer[] = {"layer_types", "no_rope_layers", "mlp_layer_types"};

class Editor {
 public:
  Editor(std::string_view text, std::string_view origin) : origin_(origin) {
    check_json_depth(text, origin_);
    try {
      document_ = ordered_json::parse(text);
    } catch (const ordered_json::exception& error) {
      throw Error("{}: not valid JSON: {}", origin_, json_reason(error.what()));
    }
    if (!document_.is_object()) throw Error("{}: expected a JSON object", origin_);
  }

  // Every spelling that the file has gets the number; when it has none, that of its model type for
  // the first of them.
  template <class T>
  void set(const std::optional<T>& value, Spellings names) {
    if (!value) return;
    bool found = false;
    for (const char* name : names) {
      if (!has(document_, name)) continue;
      replace(document_, name, name, *value);
      found = true;
    }
    if (found) return;
    const std::string name = usual(*names.begin());
    replace(document_, name.c_str(), name, *value);
  }

  void set_layers(const std::optional<int64_t>& value) {
    if (!value) return;
    set(value, {"num_hidden_layers", "n_layer", "n_layers", "num_layers"});
    const auto kept = static_cast<size_t>(*value);
    for (const char* name : kPerLayer) {
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
    for (const char* name : {"rope_theta", "rotary_emb_base"}) {
      if (!has(document_, name)) continue;
      replace(document_, name, name, *theta);
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
    if (const auto row = row_of(); row != nullptr && !settings) {
      auto defaults = ordered_json::parse(row->defaults);
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
      replace(document_, "rope_theta", "rope_theta", *theta);
  }

  OverriddenConfig result(std::string_view text) {
    if (replaced_.empty()) return {std::string(text), {}};
    return {document_.dump(2) + "\n", std::move(replaced_)};
  }

 private:
  // Null where the file's model type is none of the table.
  const Row* row_of() const {
    const auto type = document_.find("model_type");
    if (type == document_.end() || !type->is_string()) return nullptr;
    const auto known = model_types();
    const auto name = type->get<std::string>();
    return std::find(known.begin(), known.end(), name) == known.end() ? nullptr : &find_row(name);
  }
  std::string usual(const char* name) const {
    const Row* row = row_of();
    return std::string(row != nullptr ? row->spelling(name) : name);
  }
  bool has_object(const char* name) const {
    return has(document_, name) && document_[name].is_object() && !document_[name].empty();
  }
  static bool has(const ordered_json& object, const char* name) {
    return object.contains(name) && !object[name].is_null();
  }

  template <class T>
  void replace(ordered_json& object, const char* name, std::string_view shown, const T& value) {
    const ordered_json made = value;
    const bool there = object.contains(name);
    if (there && object[name] == made) return;
    replaced_.push_back(
        fmt::format("{} {} -> {}", shown, there ? object[name].dump() : "absent", made.dump()));
    object[name] = made;
  }

  std::string origin_;
  ordered_json document_;
  std::vector<std::string> replaced_;
};

}  // namespace

OverriddenConfig override_config(std::string_view json, std::string_view origin,
                                 const HfOverridesConfig& o) {
  Editor editor(json, origin);
  editor.set(o.dim, {"hidden_size", "n_embd", "n_embed", "d_model"});
  editor.set_layers(o.n_layers);
  editor.set(o.n_heads, {"num_attention_heads", "n_head", "n_heads"});
  editor.set(o.n_kv_heads, {"num_key_value_heads", "num_kv_heads", "n_head_kv"});
  editor.set(o.vocab_size, {"vocab_size"});
  editor.set(o.intermediate_size, {"intermediate_size", "ffn_hidden_size", "ffn_dim", "n_inner"});
  editor.set(o.norm_eps,
             {"rms_norm_eps", "layer_norm_eps", "layer_norm_epsilon", "norm_epsilon", "norm_eps"});
  editor.set_theta(o.rope_theta);
  editor.set(o.num_experts,
             {"num_experts", "num_local_experts", "n_routed_experts", "moe_num_experts"});
  editor.set(o.num_experts_per_tok, {"num_experts_per_tok", "moe_k", "num_experts_per_token"});
  editor.set(o.moe_intermediate_size, {"moe_intermediate_size"});
  editor.set(o.decoder_sparse_step, {"decoder_sparse_step"});
  editor.set(o.norm_topk_prob, {"norm_topk_prob"});
  return editor.result(json);
}

}  // namespace rhea::models::hf
