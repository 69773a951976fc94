#!/bin/bash
# LoRA on SmolLM2: adapters of 0.7 % of the parameters lower the loss. usage: run.sh FILE.gguf FOLDER
set -eu
gguf=$(realpath "$1")
mkdir -p "$2"
out=$(realpath "$2")
cd "$(dirname "$0")/../.."
rhea() { echo "\$ rhea ${*//$out/OUT}"; "${RHEA:-./rhea}" "$@"; }

# 1. The file as a model folder: config.json, safetensors, tokenizer.
[ -d "$out/model" ] || rhea convert --from "$gguf" --to "$out/model"

# The run: the published model frozen, adapters of rank 8 at the projections of attention.
run=(--module transformers_modeling_backend --config transformers_modeling_backend_lora
  --hf_model "$out/model" --hf_assets_path "$out/model" --dump_folder "$out/lora"
  --debug.no_print_config --debug.seed 0 --metrics.log_freq 1
  --training.local_batch_size 4 --training.seq_len 256 --training.steps 30
  --optimizer.param_groups.0.optimizer_kwargs.lr 1e-3
  --validator.enable --validator.freq 15 --validator.steps 8
  --validator.dataloader.dataset debug_text_validation
  --checkpoint.enable --checkpoint.interval 1000 --checkpoint.initial_load_in_hf)

# 2. What it needs, before it runs; and what training every parameter would need.
rhea plan "${run[@]}" | sed -n '1,/^Time of a step/p' | grep -E "parameters|trainable|optimizer|gradients|total"
full=("${run[@]/transformers_modeling_backend_lora/transformers_modeling_backend_full}")
rhea plan "${full[@]}" | sed -n '1,/^Time of a step/p' | grep -E "parameters|trainable|optimizer|gradients|total"

# 3. 30 steps on debug_text, the texts of Debian's fortune packages.
rhea train "${run[@]}"

# 4. The adapters alone, as PEFT stores them; and the model with the adapters merged in.
ls -l "$out/lora/checkpoint/export/step-30" | awk 'NR > 1 {print $5, $9}'
[ -d "$out/merged" ] || rhea convert --from "$out/lora/checkpoint/step-30" --to "$out/merged"
rhea generate --model "$out/merged" --prompt "The first rule of programming is" --max_new_tokens 32
