#!/usr/bin/env bash
# The Bazel example of a prefix builds, passes its tests and can be tuned: a Bazel of its own, hence by hand.
set -euo pipefail

root="$(cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/../.." && pwd)"
binary="$(realpath "$1")"
# Not the account's home: Bazel's caches are where the account's are.
export HOME="$(getent passwd "$(id -u)" | cut -d: -f6)"
prefix="$TEST_TMPDIR/prefix"
"$root/tools/install.sh" "$binary" "$prefix"
cd "$prefix/share/prunerc/examples/bazel"
# What Bazel 4 would download for itself.
offline=(
  --override_repository=rules_cc="$root/third_party/rules_cc"
  --override_repository=remote_coverage_tools="$root/third_party/coverage_tools"
  --override_repository=rules_java=/usr/share/bazel/rules/java
  --override_repository=rules_proto=/usr/share/bazel/rules/proto
  --color=no --curses=no --spawn_strategy=local
)
startup=(--batch --output_base="${XDG_CACHE_HOME:-$HOME/.cache}/prunerc/out-example")
unset TEST_TMPDIR
bazel "${startup[@]}" test "${offline[@]}" //...
bazel "${startup[@]}" run "${offline[@]}" :dense_relu_benchmark
before="$(cksum <dense_relu.jsonl)"
bazel "${startup[@]}" run "${offline[@]}" :dense_relu.tune -- --trials 8 --fresh
[[ "$(cksum <dense_relu.jsonl)" != "$before" ]] || { echo "the tuning file is as before" >&2; exit 1; }
bazel "${startup[@]}" test "${offline[@]}" //...
echo "4 passed, 0 failed"
