#!/usr/bin/env bash
# Published: Without the draft, both search time and final latency rise, offline too (Pruner, ASPLOS'25, arXiv
#   2402.02361, Tables 12 and 13).
# Here: The default strategy with one thing changed, by replay on every pool: how far the best so far is from the
#   pool's best, mean over trials.
# Work: Replays: variants x pools x 5 seeds (`--seeds`) of 160 trials (`--ablation-trials`).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../../.."
TIMEFORMAT="%0lR of wall time"
time ./dev bench draft --only ablation --json tests/bench/results/ablation.json "$@"
