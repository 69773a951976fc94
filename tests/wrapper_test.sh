#!/usr/bin/env bash
# The wrapper script ./rhea with its tools replaced by stand-ins that write down how they were called.
# usage: wrapper_test.sh SOURCE_DIR
set -euo pipefail
source_dir=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

repo=$work/repo
mkdir -p "$repo"/{cmake,src,recipes,tests,bench,tools} "$work/bin"
cp "$source_dir/rhea" "$repo/rhea"
cp "$source_dir/tools/debian_packages.txt" "$repo/tools/"
touch "$repo/CMakeLists.txt" "$repo/CMakePresets.json" "$repo/src/a.cpp"
touch -d '1 minute ago' "$repo"/{,*/}*

stand_in() {  # NAME SCRIPT
  printf '#!/bin/bash\necho "%s $*" >>"%s/calls"\n%s\n' "$1" "$work" "$2" >"$work/bin/$1"
  chmod +x "$work/bin/$1"
}
all_packages=$(sed -n 's/^\([a-z0-9][^ ]*\).*/installed \1/p' "$repo/tools/debian_packages.txt")
stand_in dpkg-query "cat '$work/installed' 2>/dev/null"
stand_in git 'echo 0123abcd'
stand_in ctest ''
stand_in cmake "
mkdir -p '$repo/build/release/rhea/cli'
printf '#!/bin/bash\necho program \"\$@\"\n' >'$repo/build/release/rhea/cli/rhea'
chmod +x '$repo/build/release/rhea/cli/rhea'
[[ ! -f '$work/broken' ]] || { echo 'a.cpp:1: error: broken source'; exit 1; }"
for tool in bash sed awk find mkdir mv cat tail flock nproc env chmod; do ln -s "$(command -v "$tool")" "$work/bin/$tool"; done

run() {  # words; leaves out, err, status, and the calls of this run in `calls`
  : >"$work/calls"
  status=0
  PATH=$work/bin "$repo/rhea" "$@" >"$work/out" 2>"$work/err" || status=$?
  out=$(<"$work/out") err=$(<"$work/err") calls=$(<"$work/calls")
}
expect() {  # WHAT CONDITION...
  local what=$1
  shift
  "$@" || { printf 'failed: %s\nstatus %s\nout: %s\nerr: %s\ncalls: %s\n' "$what" "$status" "$out" "$err" "$calls"; exit 1; }
}
has() { [[ $1 == *"$2"* ]]; }
lacks() { [[ $1 != *"$2"* ]]; }

echo "$all_packages" | sed '/libdnnl-dev/d' >"$work/installed"
run doctor
expect "without apt it stops" test "$status" -eq 2
expect "without apt it lists what is missing" has "$err" "libdnnl-dev"
expect "without apt it does not list what is there" lacks "$err" "libfmt-dev"
expect "without apt nothing is configured" lacks "$calls" "--preset"

CMAKE_PREFIX_PATH=/opt/deps run doctor
expect "a prefix stands in for the packages" test "$status" -eq 0
expect "a prefix stands in for the packages" has "$calls" "cmake --preset release"
rm -r "$repo/build"

stand_in apt-get "echo '$all_packages' >'$work/installed'"
[[ $EUID == 0 ]] || stand_in sudo '"$@"'
run train
expect "missing packages are installed" has "$calls" "apt-get install -y --no-install-recommends libdnnl-dev"
expect "it says what it installs" has "$err" "installing 1 Debian packages"
expect "it configures and builds the program" has "$calls" "--target rhea_program"
expect "train alone means the default recipe" test "$out" = "program train --module llama3 --config llama3_debugmodel"

run train --module qwen3 --config 'a b'
expect "other words reach the program" test "$out" = "program train --module qwen3 --config a b"
expect "nothing is built when nothing changed" lacks "$calls" "cmake"
expect "it is silent when nothing changed" test -z "$err"

touch "$repo/src/a.cpp"
touch -d '2 seconds' "$repo/src/a.cpp"
run doctor
expect "a changed source is built" has "$calls" "cmake --build"
touch -d '1 minute ago' "$repo/src/a.cpp"

rm "$repo/src/a.cpp"
touch -d '2 seconds' "$repo/src"
run doctor
expect "a removed source is noticed" has "$calls" "cmake --build"
touch -d '1 minute ago' "$repo/src"

stand_in git 'echo another'
run doctor
expect "a new commit is noticed" has "$calls" "cmake --build"

run test -R config
expect "test builds everything" has "$calls" "--target all"
expect "test runs ctest with the further words" has "$calls" "-R config"

touch "$work/broken"
stand_in git 'echo third'
run train
expect "a failed build ends with exit code 2" test "$status" -eq 2
expect "a failed build shows the compiler's message" has "$err" "a.cpp:1: error: broken source"
expect "a failed build runs nothing" lacks "$out" "program"

