#!/bin/bash
# Qwen3 three ways, then kernels and a rotary embedding from outside. Outputs go to ./outputs of the
# source tree.
set -eu
cd "$(dirname "$0")/../.."
here=examples/qwen3_three_ways
rhea() { echo "\$ rhea $*"; "${RHEA:-./rhea}" "$@"; echo; }
train() { rhea run --nproc_per_node=1 train "$@"; }
# The first lines say which model it is.
plan() { rhea plan "$@" | sed -n '1,8p'; echo; }

# Way 1: the model as Transformers defines it, with random weights; then from the folder that this
# run leaves behind; then the real size.
train --module $here/v5_qwen3.cpp --config v5_qwen3
train --module $here/v5_qwen3.cpp --config v5_qwen3_finetune
rhea generate --model outputs/v5_qwen3_finetune/checkpoint/step-20 --prompt "The first" --max_new_tokens 12
plan --module $here/v5_qwen3.cpp --config v5_qwen3_4b

# Way 2: the native model.
train --module $here/native_qwen3.cpp --config native_qwen3
plan --module $here/native_qwen3.cpp --config native_qwen3_4b

# Way 3: native experts, with the stock kernels, then with kernels from a file, then with a rotary
# embedding from another file on top.
train --module $here/moe_qwen3.cpp --config moe_qwen3
train --module $here/moe_qwen3.cpp --config moe_qwen3 --dump_folder outputs/moe_qwen3_kernels \
  --override.imports $here/grouped_experts.cpp
train --module $here/moe_qwen3.cpp --config moe_qwen3 --dump_folder outputs/moe_qwen3_rope \
  --override.imports $here/grouped_experts.cpp $here/my_rope.cpp
rhea check --module $here/moe_qwen3.cpp --config moe_qwen3 --override.imports $here/my_rope.cpp
rhea check --module $here/moe_qwen3.cpp --config moe_qwen3 --override.imports $here/grouped_experts.cpp
plan --module $here/moe_qwen3.cpp --config moe_qwen3_wide
