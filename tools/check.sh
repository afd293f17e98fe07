#!/usr/bin/env bash
# usage: tools/check.sh [--full]
# What to run before a commit: formatting, build and fast tests (layering among them), clang-tidy on changed files.
# --full adds the slow tests, each header on its own, the address and undefined-behaviour sanitizers over all tests, and
# the thread sanitizer over search and the thread pool.
set -euo pipefail
cd "$(dirname "$0")/.."

full=0
case "${1:-}" in
  --full) full=1 ;;
  "") ;;
  *) sed -n '2,5s/^# //p' "$0" >&2; exit 2 ;;
esac

flags=(-std=c++20 -march=x86-64-v3 -DFMT_HEADER_ONLY -I. -isystem /usr/lib/llvm-19/include -isystem /usr/include/eigen3)
failed=()
step() {
  local name="$1"
  shift
  echo "== $name"
  "$@" || failed+=("$name")
}

changed_sources() {
  { git diff --name-only --diff-filter=d HEAD -- '*.cc'; git ls-files --others --exclude-standard -- '*.cc'; } |
    grep -v '^third_party/' | sort -u
}

tidy() {
  local files
  mapfile -t files < <(changed_sources)
  [[ ${#files[@]} -eq 0 ]] && return 0
  printf '%s\0' "${files[@]}" | xargs -0 -P "$(nproc)" -n 1 -I{} sh -c 'f=$1; shift; clang-tidy --quiet "$f" -- "$@" 2>/dev/null' sh {} "${flags[@]}"
}

# Each header must include what it uses.
headers_alone() {
  git ls-files -- '*.h' |
    xargs -P "$(nproc)" -I{} g++ "${flags[@]}" -x c++ -fsyntax-only -include {} /dev/null
}

step format ./dev fmt --check
step build ./dev build
step test ./dev test
step tidy tidy
if [[ "$full" == 1 ]]; then
  step headers headers_alone
  step slow ./dev test --test_tag_filters=slow,-gpu
  step asan ./dev test --config=asan
  step tsan ./dev test --config=tsan //tests/search/... //tests/ir/...
fi

if [[ ${#failed[@]} -gt 0 ]]; then
  echo "failed: ${failed[*]}"
  exit 1
fi
echo "all checks passed"
