#!/usr/bin/env bash
# Published: None: the paper's baselines are its own runs of TVM on GPUs. The figures to reach are of one run each
#   of TVM 0.9's Ansor on this class of machine, 256 trials, two threads.
# Here: Seconds until `pruner` reaches the fraction of the multiply-add limit that TVM's Ansor ended with; the goal
#   is a fifth of Ansor's seconds.
# Work: By the wall clock, on a quiet machine: 4 operators x 3 seeds (`--live-seeds`) x 256 trials
#   (`--live-trials`).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../../.."
TIMEFORMAT="%0lR of wall time"
time ./dev bench draft --only tvm --json tests/bench/results/seconds_to_tvm.json "$@"
