#!/usr/bin/env bash
# run.py with what pack.sh made, on a machine with a GPU and without this build:
#   tests/bench/gpu/run.sh [--arch sm_90a] [--minutes 25] [--seconds 30] [--only STEPS] [--json RESULTS]
set -uo pipefail
exec python3 "$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)/run.py" "$@"
