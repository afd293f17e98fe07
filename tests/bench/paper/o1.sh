#!/usr/bin/env bash
# Published: No such mode. The draft's share shows after one round a task: ResNet-50 on an A100 is at 2.26 ms
#   instead of 3.07 ms after 270 trials (logs of the release of Pruner, ASPLOS'25, arXiv 2402.02361).
# Here: Latency of what `-O1` chooses without measuring, over that of the tuned kernel, in turns on one thread.
# Work: By the wall clock, on a quiet machine: 64 trials (`--o1-trials`) for each of the tasks in
#   tests/data/pools/tasks.prn.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../../.."
TIMEFORMAT="%0lR of wall time"
time ./dev bench draft --only o1 --json tests/bench/results/o1.json "$@"
