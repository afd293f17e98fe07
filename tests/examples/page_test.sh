#!/usr/bin/env bash
# The commands of tools/install/README.md run as they are written; Bazel's are bazel_test.sh's.
source tests/examples/consumer.sh "$1"

script="$(awk '/^```sh$/ { on = 1; next } /^```$/ { on = 0 } on' tools/install/README.md | grep -v 'bazel test')"
[[ "$(wc -l <<<"$script")" -ge 8 ]] || fail "where are the commands?"
script="${script//\/tmp\//$TEST_TMPDIR/}"
script="${script//.\/dev install --prefix/tools\/install.sh \'$binary\'}"
bash -exc "$script"
echo "1 passed, 0 failed"
