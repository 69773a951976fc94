// The metrics file is the witness of a run: what users read.
#include "tests/support/run.h"

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>

#include "rhea/base/json.h"
#include "rhea/base/log.h"
#include "rhea/cli/run_config.h"
#include "rhea/components/checkpoint/step_reader.h"
#include "rhea/components/safetensors/writer.h"
#include "rhea/trainer.h"
#include "rhea/trainer_state.h"

namespace rhea::support {

Words join(Words left, const Words& right) {
  left.insert(left.end(), right.begin(), right.end());
  return left;
}

Words with_option(Words words, const std::string& option) {
  const std::string name = option.substr(0, option.find('=') + 1);
  const auto at =
      std::ranges::find_if(words, [&](const std::string& word) { return word.starts_with(name); });
  if (at == words.end()) throw Error("no word sets {}", name);
  *at = option;
  return words;
}

RunResult train(const Words& words, const std::filesystem::path& dump_folder,
                const std::function<void(TrainerConfig&)>& change) {
  log::set_level(log::Level::error);
  RunResult result;
  auto config = cli::run_config(join(words, {"--dump_folder=" + dump_folder.string()}), 1);
  if (change) change(config);
  Trainer trainer(std::move(config));
  result.code = trainer.train();
  result.rows = read_rows(dump_folder);
  const StockTensors tensors = checkpoint_tensors(trainer.step());
  for (const auto& tensor : tensors.tensors()) {
    const auto bytes = tensor.bytes();
    result.tensors[tensor.name] = {bytes.begin(), bytes.end()};
  }
  return result;
}

std::vector<StepRow> read_rows(const std::filesystem::path& dump_folder) {
  std::vector<StepRow> rows;
  std::ifstream file(dump_folder / "metrics/rank_0.jsonl");
  for (std::string line; std::getline(file, line);) {
    const auto json = parse_json(line);
    if (!json.contains("grad_norm")) continue;
    StepRow row{.step = json.at("step"),
                .loss = json.at("loss_metrics/global_avg_loss"),
                .grad_norm = json.at("grad_norm")};
    row.tokens_seen = static_cast<int64_t>(json.at("n_tokens_seen").get<double>());
    for (const auto& [key, value] : json.items())
      if (key.starts_with("lr/")) row.lr = value;
    rows.push_back(row);
  }
  return rows;
}

void write_tokens(const std::filesystem::path& file, const std::vector<int64_t>& shape,
                  std::span<const int32_t> input, std::span<const int32_t> labels,
                  std::span<const int32_t> positions) {
  std::vector<safetensors::TensorView> tensors;
  const auto add = [&](const char* name, std::span<const int32_t> ids) {
    if (!ids.empty())
      tensors.push_back({name, safetensors::ElementType::I32, shape, std::as_bytes(ids)});
  };
  add("input", input);
  add("labels", labels);
  add("positions", positions);
  safetensors::write_file(file, tensors);
}

Words small_run(const std::filesystem::path& folder) {
  std::ofstream(folder / "config.json") << R"({"architectures": ["LlamaForCausalLM"],
 "model_type": "llama", "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2,
 "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 8, "vocab_size": 2048,
 "hidden_act": "silu", "rms_norm_eps": 1e-05, "rope_theta": 10000.0, "attention_bias": false,
 "mlp_bias": false, "max_position_embeddings": 4096, "tie_word_embeddings": false})";
  std::ofstream text(folder / "text.jsonl");
  for (int i = 0; i < 40; ++i) {
    text << R"({"text": ")";
    for (int j = 0; j < 5 + i * 7 % 60; ++j) text << i * j << " follows " << i + j << ". ";
    text << "\"}\n";
  }
  return {"--module=llama3",
          "--config=llama3_from_config",
          "--hf_assets_path=" + folder.string(),
          "--tokenizer.path=" RHEA_SOURCE_DIR "/tests/assets/tokenizer",
          "--dataloader.dataset=jsonl",
          "--dataloader.dataset_path=" + (folder / "text.jsonl").string(),
          "--debug.seed=7",
          "--training.local_batch_size=2",
          "--training.seq_len=64",
          "--training.steps=12",
          "--training.mixed_precision_param=float32",
          "--lr_scheduler.warmup_steps=2",
          "--metrics.log_freq=1",
          "--metrics.peak_flops=1e12"};
}

std::string difference(const std::map<std::string, std::vector<std::byte>>& a,
                       const std::map<std::string, std::vector<std::byte>>& b) {
  if (a.empty() || b.empty()) return "no tensors";
  for (const auto& [name, bytes] : a) {
    const auto at = b.find(name);
    if (at == b.end()) return fmt::format("'{}' is in the first only", name);
    if (at->second == bytes) continue;
    const auto where = std::ranges::mismatch(bytes, at->second);
    return fmt::format("'{}' differs from byte {} of {} on", name, where.in1 - bytes.begin(),
                       bytes.size());
  }
  if (a.size() != b.size()) return "the second has more tensors";
  return "";
}

std::map<std::string, std::vector<std::byte>> read_step(const std::filesystem::path& step_folder) {
  std::map<std::string, std::vector<std::byte>> tensors;
  const checkpoint::StepReader reader(step_folder);
  for (const auto& [name, stored] : reader.manifest().tensors) {
    auto& bytes = tensors[name];
    bytes.resize(static_cast<size_t>(ir::num_elements(stored.shape) * dtype_size(stored.dtype)));
    reader.read({name, stored.dtype, stored.shape, bytes.data()});
  }
  for (const char* part : {"train_state", "lr_scheduler", "optimizer", "dataloader", "rng"}) {
    const std::string& text = reader.manifest().state.at(part);
    const auto bytes = std::as_bytes(std::span(text));
    tensors[std::string("state.") + part] = {bytes.begin(), bytes.end()};
  }
  return tensors;
}

}  // namespace rhea::support
