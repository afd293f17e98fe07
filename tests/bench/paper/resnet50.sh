#!/usr/bin/env bash
# Published: ResNet-50 of batch 1 on an A100: Ansor's final latency after 1,930 s instead of 6,691 s, 3.47 times
#   less (logs of the release of Pruner, ASPLOS'25, arXiv 2402.02361).
# Here: The 27 distinct subgraphs of ResNet-50 of batch 1 on the CPU, two threads, one seed, the gradient task
#   scheduler.
# Work: By the wall clock, on a quiet machine: 4 strategies x 1,500 trials for all tasks together (`--net-trials`).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../../.."
TIMEFORMAT="%0lR of wall time"
time ./dev bench draft --only net --json tests/bench/results/resnet50.json "$@"
