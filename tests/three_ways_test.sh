#!/bin/bash
# The commands of examples/qwen3_three_ways in a copy of the folder. usage: three_ways_test.sh SOURCE RHEA
set -eu
source=$1
export RHEA=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export XDG_CACHE_HOME=$work/cache
mkdir -p "$work/examples"
cp -r "$source/examples/qwen3_three_ways" "$work/examples/"
if ! "$work/examples/qwen3_three_ways/run.sh" > "$work/log" 2>&1; then
  cat "$work/log"
  exit 1
fi
missing() { echo "not in the log: $1"; cat "$work/log"; exit 1; }
count() {
  local found
  found=$(grep -cE "$1" "$work/log") || true
  [ "$found" = "$2" ] || { echo "$found lines with '$1', expected $2"; cat "$work/log"; exit 1; }
}
count 'Training completed' 6
# One model: the count of Transformers' definition and of the native one.
count '^  parameters  *4022468096' 2
count '^  parameters  *1906330624' 1
count '\[Override\] gather_free_rope: model_spec\.model\.layers\.[0-3]\.attention\.rope' 8
count '\[Override\] grouped_experts: model_spec\.model\.layers\.[0-3]\.moe\.routed_experts' 12
# The check says so, too: no difference in float32 at any shape.
count '^rhea check: [23] checked, all within their tolerances' 2
sed -n '/^override gather_free_rope/,/^  bfloat16/p' "$work/log" > "$work/rotation"
[ "$(grep -c 'max abs 0  *max rel 0 ' "$work/rotation")" -ge 6 ] || missing 'rows of the check of the rotation'
if grep 'max abs' "$work/rotation" | grep -v 'max abs 0 '; then missing 'a difference of 0 in float32'; fi
# The rotation is the stock one to the bit, the experts are to rounding.
losses() { grep -oE '"loss_metrics/global_avg_loss": *[^,}]*' "$work/outputs/$1/metrics/rank_0.jsonl"; }
[ "$(losses moe_qwen3_rope)" = "$(losses moe_qwen3_kernels)" ] ||
  missing 'equal losses with and without the rotary override'
# All six train, and the kernels from outside train the same model.
values() { losses "$1" | grep -oE '[0-9.]+$'; }
for run in v5_qwen3 v5_qwen3_finetune native_qwen3 moe_qwen3 moe_qwen3_kernels moe_qwen3_rope; do
  values "$run" | awk 'NR == 1 {first = $1} {last = $1} END {exit !(NR > 1 && last < first)}' || missing "a falling loss of $run"
done
paste <(values moe_qwen3) <(values moe_qwen3_kernels) |
  awk '{d = ($1 - $2) / $1; if (d * d > 1e-8) bad = 1} END {exit bad || NR == 0}' || missing 'equal losses of stock and outside experts'
