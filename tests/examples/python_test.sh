#!/usr/bin/env bash
# A Python program calls a kernel on numpy arrays.
source tests/examples/consumer.sh "$1"

out="$(python3 -B tests/examples/python/call.py "$prefix/bin/prunerc")"
echo "$out"
has "$out" "right"
PATH="$prefix/bin:$PATH" python3 -B tests/examples/python/call.py
echo "2 passed, 0 failed"
