#!/usr/bin/env bash
# Builds what a machine with a GPU needs and packs it, stripped, into FOLDER/bin.tgz (default: tests/bench/gpu/build,
# which git ignores), for architecture $ARCH (default: sm_90a): copy the source tree with that folder there and call run.sh.
# With $LIKE, a pool whose platform is that GPU, candidates of all operators are drafted and compiled here: run.sh --only drafted.
set -euo pipefail
root="$(cd "$(dirname "${BASH_SOURCE[0]}")/../../.." && pwd)"
folder="${1:-$root/tests/bench/gpu/build}"
cd "$root"
./dev build //tools/prunerc //tests/runtime/cuda_host:silicon_test //tests/support:gpu_worker //tests/bench/gpu_host \
  //tests/bench/gpu:candidates
bin="$(bazel info bazel-bin 2>/dev/null)"
mkdir -p "$folder/tests/support"
pack() { strip -o "$folder/$2" "$bin/$1"; }
pack tools/prunerc/prunerc prunerc
pack tests/runtime/cuda_host/silicon_test silicon_test
pack tests/bench/gpu_host/gpu_host gpu_host
pack tests/support/gpu_worker tests/support/gpu_worker
# A library as users export it; built here, since a machine with a GPU may have neither NVRTC nor a compiler.
example=tools/examples/gpu/matmul_f16
"$bin/tools/prunerc/prunerc" compile "$example.prc" --schedule "$example.trace" --target "cuda:${ARCH:-sm_90a}" \
  -o "$folder/matmul_f16.so" || echo "pack.sh: no exported library; ./dev setup --cuda installs NVRTC" >&2
if [[ -n "${LIKE:-}" ]]; then
  # shellcheck disable=SC2046  # words
  "$bin/tests/bench/gpu/candidates" draft "$folder/drafted" --like "$LIKE" $(python3 tests/bench/gpu/operators.py)
fi
# Results name the code that they are of; the machine with a GPU may have no repository.
commit="$(git rev-parse --short=12 HEAD 2>/dev/null || echo "${PRUNERC_COMMIT:-unknown}")"
[[ -z "$(git status --porcelain -- . ':!*.md' ':!tests/bench/results' 2>/dev/null)" ]] || commit+=-dirty
echo "$commit" >"$folder/commit"
(cd "$folder" && tar -czf bin.tgz prunerc silicon_test gpu_host tests commit $(ls matmul_f16.* drafted/*.so drafted/*.h drafted/manifest.tsv 2>/dev/null))
du -h "$folder/bin.tgz"
