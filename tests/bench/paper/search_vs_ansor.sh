#!/usr/bin/env bash
# Published: 2.6 times less search time than Ansor's final latency takes, mean of three GPUs (Pruner, ASPLOS'25,
#   arXiv 2402.02361, abstract).
# Here: The whole budget of `ansor` in trials and recorded seconds over what our search with boosted trees needs to
#   be as fast as `ansor` is at its end; median over seeds; a search that never gets there counts as 1 at most.
# Work: Replays: 2 strategies x pools x 5 seeds (`--seeds`) of up to 1,000 trials (`--trials`).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../../.."
TIMEFORMAT="%0lR of wall time"
time ./dev bench draft --only replay --json tests/bench/results/search_vs_ansor.json "$@"
