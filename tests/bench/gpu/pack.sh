#!/usr/bin/env bash
# Builds what a machine with a GPU needs and puts it, stripped, into FOLDER (default: tests/bench/gpu/build, which git
# ignores): copy the source tree with that folder there and call run.sh.
set -euo pipefail
root="$(cd "$(dirname "${BASH_SOURCE[0]}")/../../.." && pwd)"
folder="${1:-$root/tests/bench/gpu/build}"
cd "$root"
./dev build //tools/prunerc //tests/runtime/cuda_host:silicon_test
bin="$(bazel info bazel-bin 2>/dev/null)"
mkdir -p "$folder"
for file in tools/prunerc/prunerc tests/runtime/cuda_host/silicon_test; do
  strip -o "$folder/$(basename "$file")" "$bin/$file"
done
du -sh "$folder"
