#!/usr/bin/env bash
# Published: No time of a prediction or an update is given; peak GPU memory of the model 1,694 MB, of TenSetMLP
#   1,546 MB, of TLP 4,812 MB (Pruner, ASPLOS'25, arXiv 2402.02361).
# Here: Milliseconds of 512 candidates with their features, and seconds of an online update with 2,000 records, on
#   two threads.
# Work: By the wall clock, on a quiet machine: two short trainings and 20 rounds.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../../.."
TIMEFORMAT="%0lR of wall time"
time ./dev bench costmodel --only speed --json tests/bench/results/model_speed.json "$@"
