#!/usr/bin/env bash
# Another project can build against prunerc: the workspace in embed/ builds with the same Bazel and its tests pass.
set -euo pipefail

root="$(cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")" && pwd)"
# Not the account's home: Bazel's caches are where the account's are.
export HOME="$(getent passwd "$(id -u)" | cut -d: -f6)"
unset TEST_TMPDIR
cd "$root/embed"
bazel --output_base="${XDG_CACHE_HOME:-$HOME/.cache}/prunerc/out-embed" test \
  --experimental_convenience_symlinks=ignore --color=no --curses=no //...
echo "1 passed, 0 failed"
