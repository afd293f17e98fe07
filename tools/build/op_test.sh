#!/usr/bin/env bash
# What a prunerc_test runs: PRUNERC TUNING VERB ARGUMENTS, with a database and a cache folder of its own.
set -euo pipefail

prunerc="$1"
tuning="$2"
shift 2
export PRUNERC_DB="$TEST_TMPDIR/op_test.sqlite" XDG_CACHE_HOME="$TEST_TMPDIR/cache"
[[ "$tuning" == - ]] || "$prunerc" db import "$tuning"
exec "$prunerc" "$@"
