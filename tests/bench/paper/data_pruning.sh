#!/usr/bin/env bash
# Published: Up to 45 % of the data removed at no loss of pairwise accuracy (Verma et al., arXiv 2304.05430).
# Here: Pairwise and Top-1 accuracy on held-out tasks after pruning by chance, by quantiles of the latency and by
#   operator class.
# Work: Trainings: 13 data sets x 3 seeds (`--seeds`).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../../.."
TIMEFORMAT="%0lR of wall time"
time ./dev bench costmodel --only prune --json tests/bench/results/data_pruning.json "$@"
