#!/usr/bin/env bash
# Published: Times less search time to the baseline's final latency: online 2.6 beside Ansor, 4.82 with momentum
#   adaptation; offline 4.75 beside TenSetMLP and 4.05 beside TLP (Pruner, ASPLOS'25, arXiv 2402.02361, abstract).
# Here: The same for `pruner`, `moa-pruner` and `pruner-offline` on the CPU, by replay with several seeds, and the
#   final latencies.
# Work: Replays: strategies x pools x seeds (`--seeds`).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../../.."
TIMEFORMAT="%0lR of wall time"
time ./dev bench costmodel --only tuning --json tests/bench/results/end_to_end.json "$@"
