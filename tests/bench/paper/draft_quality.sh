#!/usr/bin/env bash
# Published: TenSet's T4 programs, 4,000 a subgraph, 512 drafted: Best-1 0.995; 0.880 without the penalties of
#   compute, 0.930 without those of memory (Pruner, ASPLOS'25, arXiv 2402.02361, Table 10).
# Here: The same on pools measured on the CPU, by operator class, for 64 to 512 drafted, with the published
#   analyzers and chance beside ours; the published analyzers with each penalty left out.
# Work: No search and nothing measured: analyzers on the pools, 400 resamplings for each interval (`--bootstrap`).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../../.."
TIMEFORMAT="%0lR of wall time"
time ./dev bench draft --only quality --json tests/bench/results/draft_quality.json "$@"
