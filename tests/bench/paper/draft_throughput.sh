#!/usr/bin/env bash
# Published: The draft takes load off the learned model: 512 candidates a round instead of 8,000 (Pruner, ASPLOS'25,
#   arXiv 2402.02361, around Table 7). Nothing is said of candidates per second.
# Here: Distinct candidates drawn or bred, checked, scored and offered to the best 512, per CPU second of one
#   thread; beside them a program built for each candidate.
# Work: Per sketch 2 s of CPU time (`--seconds`).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../../.."
TIMEFORMAT="%0lR of wall time"
time ./dev bench draft --only rate --json tests/bench/results/draft_throughput.json "$@"
