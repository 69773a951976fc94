#!/usr/bin/env bash
# Adapters of a LoRA run, loaded by the real PEFT where this machine has it. usage: adapters_in_peft.sh SOURCE_DIR RHEA
# RHEA_PYTHON: the Python that has it, if it is another one than python3.
set -euo pipefail
python=${RHEA_PYTHON:-python3}
command -v "$python" >/dev/null || { echo "skipped: this machine has no $python"; exit 77; }
"$python" -c "import torch, transformers, peft, safetensors" 2>/dev/null ||
  { echo "skipped: $python lacks torch, transformers, peft or safetensors"; exit 77; }
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
# gpt2 stores its projections input dim first.
for model in qwen3 gpt2; do
  base="$1/tests/data/golden/models/$model"
  "$2" train --module transformers_modeling_backend --config transformers_modeling_backend_lora --hf_assets_path "$base" \
    --dump_folder "$out/$model" --debug.no_print_config --debug.seed 0 --dataloader.dataset random \
    --training.local_batch_size 2 --training.seq_len 32 --training.steps 6 --optimizer.param_groups.0.optimizer_kwargs.lr 1e-2 \
    --checkpoint.enable --checkpoint.initial_load_in_hf --metrics.peak_flops 1e12
  adapters="$out/$model/checkpoint/export/step-6"
  "$2" convert --from "$out/$model/checkpoint/step-6" --to "$out/$model/native"
  "$2" convert --from "$adapters" --hf_assets_path "$base" --to "$out/$model/merged"
  for merged in native merged; do
    "$python" "$1/tools/check_adapters_with_peft" "$2" "$base" "$adapters" "$out/$model/$merged"
  done
done
