// From the text of a config.json through its row to a decoder.
#include "rhea/models/hf/config_json.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "rhea/base/json.h"
#include "rhea/base/log.h"
#include "rhea/base/mapped_file.h"
#include "rhea/config/traverse.h"
#include "rhea/models/hf/table.h"
#include "rhea/nn/mla.h"
#include "rhea/nn/moe.h"

namespace rhea::models::hf {
namespace {

using nlohmann::json;

constexpr double kMostParameters = 1e15;

const Row& row_of(const json& document, const std::string& origin) {
  const auto type = document.find("model_type");
  if (type == document.end()) throw Error("{}: model_type is missing", origin);
  if (!type->is_string())
    throw Error("{}: model_type must be a string, got {}", origin, type->dump());
  const Row& row = [&]() -> const Row& {
    try {
      return find_row(type->get<std::string>());
    } catch (const Error& error) {
      throw Error("{}: {}", origin, error.what());
    }
  }();
  const auto names = document.find("architectures");
  if (names == document.end() || names->is_null()) return row;
  const bool known = names->is_array() && !names->empty() && names->front().is_string() &&
                     std::find(row.architectures.begin(), row.architectures.end(),
                               names->front().get<std::string>()) != row.architectures.end();
  if (!known)
    throw Error("{}: architectures is {}, model_type '{}' needs [\"{}\"]", origin, names->dump(),
                row.model_type, row.architectures.front());
  return row;
}

// Counted in floating point: sizes that are fine one by one may overflow an integer together.
void check_total(nn::Decoder::Config& model, const std::string& origin) {
  double total = 0;
  const auto number = [](int64_t value) { return static_cast<double>(value); };
  config::traverse(model, [&](const config::Node& node) {
    if (const auto* linear = dynamic_cast<const nn::Linear::Config*>(&node.config))
      total += number(linear->in_features) * number(linear->out_features);
    if (const auto* table = dynamic_cast<const nn::Embedding::Config*>(&node.config))
      total += number(table->num_embeddings) * number(table->embedding_dim);
    if (const auto* experts = dynamic_cast<const nn::Experts::Config*>(&node.config))
      total +=
          3 * number(experts->num_experts) * number(experts->hidden_dim) * number(experts->dim);
    return true;
  });
  if (total > kMostParameters)
    throw Error("{}: its sizes make a model of {:.3g} parameters, more than any machine holds",
                origin, total);
}

// Weights that are stored in fewer bits: the model is that of the decoded ones.
void check_quantization(Fields& fields) {
  if (!fields.given("quantization_config")) return fields.ignore({"quantization_config"});
  const std::string method = fields.section("quantization_config").text("quant_method");
  // Which of their formats are read shows when the weights are (components/checkpoint/quantized.h).
  if (method != "fp8" && method != "mxfp4" && method != "compressed-tensors")
    throw fields.error(
        fmt::format("quantization_config.quant_method '{}' is not supported; "
                    "supported: fp8, mxfp4, compressed-tensors",
                    method));
}

// A token beyond the vocabulary never comes; -1 is the last one, as in PyTorch.
std::optional<int64_t> padding_of(const Row& row, Fields& fields, int64_t vocab_size) {
  const auto token = fields.maybe_integer("pad_token_id", kMostPositions, -1);
  if (!row.pads || !token || *token >= vocab_size) return {};
  return *token < 0 ? vocab_size - 1 : *token;
}

}  // namespace

PublishedConfig parse_config(std::string_view text, std::string_view origin_view) {
  const std::string origin(origin_view);
  const json document = parse_json(text, origin);
  if (!document.is_object()) throw Error("{}: expected a JSON object", origin);
  const Row& row = row_of(document, origin);
  PublishedConfig config;
  config.model_type = row.model_type;
  const json defaults = parse_json(row.defaults);
  Fields fields(document, defaults, origin, config.notes, row.spellings);
  config.decoder = row.build(fields);
  config.decoder.tok_embeddings->padding_idx = padding_of(row, fields, config.decoder.vocab_size());
  check_quantization(fields);
  fields.refuse_unknown();
  check_total(config.decoder, origin);
  return config;
}

PublishedConfig read_config(const std::filesystem::path& file) {
  return parse_config(read_file(file), file.string());
}

void log_notes(const PublishedConfig& config, std::string_view origin) {
  if (!config.notes.defaulted.empty())
    log::info("model", "{}: not given, so as the class {} has it: {}", origin, config.model_type,
              fmt::join(config.notes.defaulted, ", "));
  for (const auto& warning : config.notes.warnings)
    log::warning("model", "{}: {}", origin, warning);
}

}  // namespace rhea::models::hf
