#!/usr/bin/env bash
# Installs the build into a fresh prefix, then configures, builds and runs outside projects against it.
# usage: install_test.sh BUILD_DIR SOURCE_DIR CXX_COMPILER
set -euo pipefail
build=$1 source=$2 compiler=$3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

cmake --install "$build" --prefix "$work/prefix" >/dev/null
program_version=$("$work/prefix/bin/rhea" --version | head -n 1)
build_outside() {  # SOURCE_DIR BUILD_DIR
  cmake -S "$1" -B "$2" -G Ninja -DCMAKE_PREFIX_PATH="$work/prefix" -DCMAKE_CXX_COMPILER="$compiler" >/dev/null
  cmake --build "$2"
}
build_outside "$source/tests/install/outside" "$work/build"
library_version=$("$work/build/outside")
if [[ $program_version != "$library_version" || $library_version != rhea\ [0-9]* ]]; then
  echo "the installed program says '$program_version', the installed library '$library_version'"
  exit 1
fi
if grep -rl "$build" "$work/prefix" --include='*.cmake'; then
  echo "the files above refer to the build folder: the package would break when it is moved"
  exit 1
fi

# Every installed header is whole: what it includes is installed too, and none needs a library that plugins do not have.
(cd "$work/prefix/include" && find rhea recipes -name '*.h' | sort | sed 's/.*/#include "&"/') >"$work/all.cpp"
"$compiler" -std=c++20 -fsyntax-only -I "$work/prefix/include" "$work/all.cpp"
if "$compiler" -std=c++20 -M -I "$work/prefix/include" "$work/all.cpp" | grep -E 'nlohmann|spdlog|/CLI/|dnnl|/regex'; then
  echo "installed headers include the files above: they cost every plugin compile time"
  exit 1
fi

# The rule of the list: a public header that includes an internal one stops the build.
mkdir "$work/broken"
cp -r "$source/src" "$source/recipes" "$work/broken"
echo '#include "rhea/base/thread_pool.h"' >>"$work/broken/src/rhea/nn/init.h"
echo '#include <rhea/config/report.h>' >>"$work/broken/src/rhea/ir/type.h"
cat >"$work/list.cmake" <<LIST
cmake_policy(VERSION 3.25)
include($source/cmake/PublicHeaders.cmake)
rhea_public_headers(\${TREE} headers)
LIST
cmake -DTREE="$source" -P "$work/list.cmake"
if cmake -DTREE="$work/broken" -P "$work/list.cmake" 2>"$work/list.log" ||
  ! grep -q 'rhea/nn/init.h includes rhea/base/thread_pool.h' "$work/list.log" ||
  ! grep -q 'rhea/ir/type.h includes rhea/config/report.h' "$work/list.log"; then
  echo "a public header that includes an internal one is not refused"
  exit 1
fi

# What is installed with it, and the examples, compile against the installed headers.
export RHEA_CACHE_DIR="$work/cache"
examples=$source/examples/qwen3_three_ways
"$work/prefix/bin/rhea" plan --module qwen3 --config qwen3_debugmodel --override.imports fused_swiglu.fused_swiglu \
  fused_mla.fused_mla >/dev/null
"$work/prefix/bin/rhea" plan --module "$examples/moe_qwen3.cpp" --config moe_qwen3 \
  --override.imports "$examples/grouped_experts.cpp" "$examples/my_rope.cpp" >/dev/null

build_outside "$source/examples/out_of_tree" "$work/bigram"
ctest --test-dir "$work/bigram" --output-on-failure
