#!/usr/bin/env bash
# What Rhea exports, loaded by the real Transformers where this machine has it. usage: exports_in_transformers.sh SOURCE_DIR RHEA
set -euo pipefail
command -v python3 >/dev/null || { echo "skipped: this machine has no python3"; exit 77; }
exec python3 "$1/tools/check_exports_with_transformers" "$2" "$1/tests/data/golden/models"
