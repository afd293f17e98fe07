#!/usr/bin/env bash
# Published: At 2,000 trials each, 84.1 % of Ansor's whole compile time (Pruner, ASPLOS'25, arXiv 2402.02361, Table
#   7).
# Here: As by replay, live on two operators, medians over three seeds, with the seconds of each phase.
# Work: By the wall clock, on a quiet machine: 2 operators x 2 strategies x 3 seeds (`--live-seeds`) x 256 trials
#   (`--live-trials`).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../../.."
TIMEFORMAT="%0lR of wall time"
time ./dev bench draft --only live --json tests/bench/results/search_live.json "$@"
