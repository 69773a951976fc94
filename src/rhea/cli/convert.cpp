// `rhea convert`
#include "rhea/convert.h"

#include "rhea/base/error.h"
#include "rhea/cli/parse_app.h"

namespace rhea::cli {

int cmd_convert(Args args) {
  ConvertOptions options;
  std::string format = "hf", dtype, spelling = "v5", shard_size = "5GB";
  CLI::App app("Weights, config and tokenizer of a model into another form", "rhea convert");
  app.add_option("--from", options.from,
                 "Hugging Face folder, step-N folder of rhea train, .gguf file, or folder of PEFT, "
                 "whose adapters are merged into their base model")
      ->required();
  app.add_option("--to", options.to, "folder to write; it must not exist yet, or be empty")
      ->required();
  app.add_option("--format", format,
                 "hf: safetensors with config.json and tokenizer; native: a step folder for "
                 "checkpoint.initial_load_path")
      ->check(CLI::IsMember({"hf", "native"}))
      ->capture_default_str();
  app.add_option("--export_dtype,--export-dtype", dtype,
                 "of floats; default: as stored (GGUF float32, FP8 and MXFP4 bfloat16, native "
                 "float32)")
      ->check(CLI::IsMember({"float32", "bfloat16", "float16"}));
  app.add_option(
      "--hf_assets_path,--hf-assets-path", options.hf_assets_path,
      "folder of the same model whose config.json and tokenizer are taken instead of the "
      "input's; of adapters: of their base model");
  app.add_option("--config_spelling,--config-spelling", spelling,
                 "config.json as Transformers 4 or 5 writes it")
      ->check(CLI::IsMember({"v4", "v5"}))
      ->capture_default_str();
  app.add_option("--max_shard_size,--max-shard-size", shard_size, "largest file of weights")
      ->capture_default_str();
  app.add_option("--module", options.module,
                 "native: the family whose names the checkpoint gets (llama3, qwen3); default: "
                 "transformers_modeling_backend");
  app.add_flag(
      "--only_adapters,--only-adapters", options.only_adapters,
      "of a checkpoint with LoRA: the adapters alone, as PEFT stores them; without it they "
      "are merged into the weights");
  if (const auto done = parse(app, args)) return *done;
  options.format = format == "hf" ? ConvertOptions::Format::hf : ConvertOptions::Format::native;
  if (!dtype.empty()) options.export_dtype = parse_dtype(dtype);
  options.spelling = checkpoint::parse_config_spelling(spelling);
  options.max_shard_bytes = parse_size(shard_size);
  if (!options.module.empty() && options.format == ConvertOptions::Format::hf)
    throw Error("--module names the family of a native checkpoint; it needs --format native");
  if (options.only_adapters && options.format != ConvertOptions::Format::hf)
    throw Error("--only_adapters writes the files of PEFT; it needs --format hf");
  convert(options);
  return 0;
}

}  // namespace rhea::cli
