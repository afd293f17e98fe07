#!/usr/bin/env bash
# Published: Momentum adaptation of a K80 checkpoint: 4.82 times less search time than Ansor (Pruner, ASPLOS'25,
#   arXiv 2402.02361, abstract). Hardware features: 25 to 40 % of the baseline's tuning time on hardware not seen
#   before (Verma et al., arXiv 2304.05430).
# Here: A model of one instruction set meets another, and operators that it never saw: replayed searches by trials,
#   and accuracy on the rows that have not arrived yet by records of each task that have; AVX2 to AVX-512 and back.
# Work: Trainings: 2 ways x 3 seeds (`--seeds`) x 2 checkpoints, then 7 methods x 8 updates. Replays: 2 ways x 3 seeds x
#   7 methods x at most 8 pools of 150 trials.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../../.."
TIMEFORMAT="%0lR of wall time"
time ./dev bench costmodel --only transfer --json tests/bench/results/transfer.json "$@"
