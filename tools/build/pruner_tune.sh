#!/usr/bin/env bash
# What `bazel run :NAME.tune` runs: PRUNERC RECORDS VERB ARGUMENTS. The search goes on from the checked-in records; the best
# is written back to them in the source tree.
set -euo pipefail

prunerc="$1"
records="$2"
shift 2
[[ -n "${BUILD_WORKSPACE_DIRECTORY:-}" ]] || { echo "error: to be started by \`bazel run\`" >&2; exit 2; }
work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT
export PRUNERC_DB="$work/db.sqlite"
"$prunerc" db import "$records"
# A search that was interrupted has measured something too.
status=0
"$prunerc" "$@" || status=$?
"$prunerc" db export --best "$work/best.jsonl"
# What the file had of other operators, sizes and targets stays.
while IFS= read -r line || [[ -n "$line" ]]; do
  task="${line#*\"hash\":\"}"
  grep -qF "\"hash\":\"${task%%\"*}\"" "$work/best.jsonl" || printf '%s\n' "$line"
done <"$records" >"$work/others.jsonl"
# A file of this workspace has the same path in the source tree. Not moved: it may be a link.
cat "$work/others.jsonl" "$work/best.jsonl" >"$BUILD_WORKSPACE_DIRECTORY/$records"
echo "wrote $records" >&2
exit "$status"
