#!/usr/bin/env bash
# Published: Times less search time to the baseline's final latency: online 2.6 beside Ansor, 4.82 with momentum
#   adaptation; offline 4.75 beside TenSetMLP and 4.05 beside TLP (Pruner, ASPLOS'25, arXiv 2402.02361, abstract).
# Here: The same for `pruner`, `moa-pruner` and `pruner-offline`, with the published forms and boosted trees beside
#   them, by replay on the CPU with several seeds; checkpoints know other operators, those of momentum
#   adaptation other machines as well. Final latencies.
# Work: 5 trainings; replays: 10 strategies (`--strategies pruner,ansor`) x 8 pools x 3 seeds (`--seeds`) of up to
#   600 trials (`--trials`).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../../.."
TIMEFORMAT="%0lR of wall time"
time ./dev bench costmodel --only tuning --json tests/bench/results/end_to_end.json "$@"
