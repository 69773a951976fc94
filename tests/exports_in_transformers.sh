#!/usr/bin/env bash
# What Rhea exports, loaded by the real Transformers where this machine has it. usage: exports_in_transformers.sh SOURCE_DIR RHEA
# RHEA_PYTHON: the Python that has it, if it is another one than python3.
set -euo pipefail
python=${RHEA_PYTHON:-python3}
command -v "$python" >/dev/null || { echo "skipped: this machine has no $python"; exit 77; }
exec "$python" "$1/tools/check_exports_with_transformers" "$2" "$1/tests/data/golden/models"
