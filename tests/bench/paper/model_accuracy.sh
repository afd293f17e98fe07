#!/usr/bin/env bash
# Published: Top-1 / Top-5 on TenSet: T4 PaCM 0.892 / 0.962, TenSetMLP 0.859 / 0.941, TLP 0.862 / 0.935; K80 PaCM
#   0.897 / 0.969, TenSetMLP 0.878 / 0.958, TLP 0.880 / 0.947 (Pruner, ASPLOS'25, arXiv 2402.02361, Table 11). PaCM
#   needs less data (Fig. 15).
# Here: Top-1, Top-5 and pairwise accuracy of six models on held-out tasks of CPU pools, several seeds, at several
#   volumes of data; differences to ours paired over tasks and seeds.
# Work: Trainings: 6 models x 3 volumes (`--volumes`) x 3 seeds (`--seeds`); `--models pacm,xgb` takes some alone.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../../.."
TIMEFORMAT="%0lR of wall time"
time ./dev bench costmodel --only accuracy --json tests/bench/results/model_accuracy.json "$@"
