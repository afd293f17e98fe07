#!/usr/bin/env bash
# What pruner_library's NAME.tune runs writes records into the source tree that the build then uses, and keeps those of
# other tasks.
source tests/examples/consumer.sh "$1"

tune="$root/tools/build/pruner_tune.sh"
mkdir -p "$work/tree/pkg" "$work/run"
cp -L tests/examples/bazel/dense_relu.prn "$work/tree/pkg"
: >"$work/tree/pkg/dense_relu.jsonl"
ln -s "$work/tree/pkg" "$work/run/pkg"
# As `bazel run` does: in a folder of links to the inputs.
cd "$work/run"
export BUILD_WORKSPACE_DIRECTORY="$work/tree"
arguments=(--target cpu:haswell --threads 1 -D M=16,N=16,K=16 --trials 2)
"$tune" "$binary" pkg/dense_relu.jsonl tune pkg/dense_relu.prn "${arguments[@]}"
[[ "$(wc -l <pkg/dense_relu.jsonl)" == 1 ]] || fail "not one record"
"$tune" "$binary" pkg/dense_relu.jsonl tune pkg/dense_relu.prn "${arguments[@]}" -D N=24
[[ "$(wc -l <pkg/dense_relu.jsonl)" == 2 ]] || fail "not two records"

compile() { "$binary" compile pkg/dense_relu.prn --db pkg/dense_relu.jsonl --threads 1 --target cpu:haswell -D "$1" --require-tuned -o "$work/k.o" 2>&1; }
has "$(compile M=16,N=16,K=16)" "schedule: record; "
has "$(compile M=16,N=24,K=16)" "schedule: record; "
if other="$(compile M=17,N=24,K=16)"; then fail "a record was found for another size"; fi
has "$other" "no record of 'dense_relu'"
# A search that is interrupted, here one that ends as an interrupt does, leaves what it measured; a last line may lack its end.
printf '#!/bin/sh\n"%s" "$@"\n[ "$1" != tune ] || exit 130\n' "$binary" >"$work/interrupted"
chmod +x "$work/interrupted"
printf '%s' "$(<pkg/dense_relu.jsonl)" >"$work/cut" && cat "$work/cut" >pkg/dense_relu.jsonl
status=0
"$tune" "$work/interrupted" pkg/dense_relu.jsonl tune pkg/dense_relu.prn "${arguments[@]}" -D M=48 || status=$?
[[ "$status" == 130 ]] || fail "an interrupted search ended with $status"
[[ "$(grep -c . pkg/dense_relu.jsonl)" == 3 ]] || fail "not three records after an interrupt"
# Another schedule in a record's place is no other record's: it is refused, not compiled.
if (unset BUILD_WORKSPACE_DIRECTORY; "$tune" "$binary" pkg/dense_relu.jsonl tune pkg/dense_relu.prn); then fail "ran outside of Bazel"; fi
echo "6 passed, 0 failed"
