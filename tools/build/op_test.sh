#!/usr/bin/env bash
# What a prunerc_test runs: PRUNERC VERB ARGUMENTS, with a database and a cache folder of its own.
set -euo pipefail

export PRUNERC_DB="$TEST_TMPDIR/op_test.sqlite" XDG_CACHE_HOME="$TEST_TMPDIR/cache"
exec "$@"
