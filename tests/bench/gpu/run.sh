#!/usr/bin/env bash
# Everything that is to be known of a GPU, in at most 25 minutes: its limits, known answers of instructions on silicon, every
# hand-written schedule verified, timers compared, operators tuned, and a table beside cuBLAS (by PyTorch, where that is
# installed). Ends with a short table; RESULTS (default: tests/bench/gpu/results.json) holds all of it.
#   tests/bench/gpu/run.sh [--arch sm_90a] [--minutes 25] [--bin FOLDER] [--json RESULTS]
set -uo pipefail
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
root="$(cd "$here/../../.." && pwd)"
exec python3 "$here/run.py" --root "$root" "$@"
