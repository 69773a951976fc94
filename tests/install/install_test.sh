#!/usr/bin/env bash
# Installs the build into a fresh prefix, then configures, builds and runs an outside project against it.
# usage: install_test.sh BUILD_DIR OUTSIDE_SOURCE_DIR CXX_COMPILER
set -euo pipefail
build=$1 outside=$2 compiler=$3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

cmake --install "$build" --prefix "$work/prefix" >/dev/null
program_version=$("$work/prefix/bin/rhea" --version | head -n 1)
cmake -S "$outside" -B "$work/build" -G Ninja -DCMAKE_PREFIX_PATH="$work/prefix" -DCMAKE_CXX_COMPILER="$compiler" >/dev/null
cmake --build "$work/build"
library_version=$("$work/build/outside")
if [[ $program_version != "$library_version" || $library_version != rhea\ [0-9]* ]]; then
  echo "the installed program says '$program_version', the installed library '$library_version'"
  exit 1
fi
if grep -rl "$build" "$work/prefix" --include='*.cmake'; then
  echo "the files above refer to the build folder: the package would break when it is moved"
  exit 1
fi
