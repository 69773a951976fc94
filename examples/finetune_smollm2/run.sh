#!/bin/bash
# From a GGUF file to a fine-tuned model that other tools load. usage: run.sh FILE.gguf FOLDER
set -eu
gguf=$(realpath "$1")
mkdir -p "$2"
out=$(realpath "$2")
cd "$(dirname "$0")/../.."
rhea() { echo "\$ rhea ${*//$out/OUT}"; "${RHEA:-./rhea}" "$@"; }

# 1. The file as a model folder: config.json, safetensors, tokenizer.
rhea convert --from "$gguf" --to "$out/model"

# 2. What it says before.
rhea generate --model "$out/model" --prompt "The first rule of programming is" --max_new_tokens 32

# 3. 30 steps on debug_text, the texts of Debian's fortune packages. The last save is a folder for
#    other tools.
rhea train --module transformers_modeling_backend --config transformers_modeling_backend_full \
  --hf_model "$out/model" --hf_assets_path "$out/model" --dump_folder "$out/run" \
  --debug.no_print_config --debug.seed 0 --metrics.log_freq 1 \
  --training.local_batch_size 4 --training.seq_len 256 --training.steps 30 \
  --optimizer.param_groups.0.optimizer_kwargs.lr 1e-4 \
  --validator.enable --validator.freq 15 --validator.steps 8 \
  --validator.dataloader.dataset debug_text_validation \
  --checkpoint.enable --checkpoint.interval 1000 \
  --checkpoint.initial_load_path "$out/model" --checkpoint.initial_load_in_hf \
  --checkpoint.initial_load_model_only --checkpoint.last_save_model_only \
  --checkpoint.last_save_in_hf --checkpoint.no_keep_last_full

# 4. The export, read again.
rhea generate --model "$out/run/checkpoint/step-30" --prompt "The first rule of programming is" \
  --max_new_tokens 32

# 5. Where Python has the packages: weights, ids and the logits of `rhea score` beside Transformers,
#    which reads the GGUF file by itself, and the export in Transformers.
python=${RHEA_PYTHON:-python3}
if missing=$("$python" -c "import torch, transformers, accelerate, gguf, safetensors" 2>&1); then
  echo "\$ tools/check_gguf_with_transformers rhea $(basename "$gguf") OUT/run/checkpoint/step-30"
  TQDM_DISABLE=1 "$python" tools/check_gguf_with_transformers "${RHEA:-./rhea}" "$gguf" \
    "$out/run/checkpoint/step-30"
else
  echo "Not compared with Transformers: $python: ${missing##*$'\n'}"
fi
