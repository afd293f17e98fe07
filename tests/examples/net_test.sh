#!/usr/bin/env bash
# A network of an ONNX model is linked into programs of C and C++, statically and shared, its weights in a file beside them.
source tests/examples/consumer.sh "$1"

cp -r "$prefix/share/prunerc/examples/net" "$work/project"
export PKG_CONFIG_PATH="$prefix/lib/pkgconfig"
out="$(make -C "$work/project" check)"
echo "$out"
[[ "$(grep -c '^right, 50 calls in each of 2 threads$' <<<"$out")" == 2 ]] || fail "not both programs of C are right"
has "$out" "right, small_cnn for "
has "$(make -C "$work/project" call call_shared call_cc)" "up to date"

# Needs the C library and its loader, which gives threads their variables.
needed="$(readelf -d "$work/project/libsmall_cnn.so" | grep NEEDED)"
has "$needed" "[libc.so.6]"
if grep -v 'libc\.so\|ld-linux' <<<"$needed"; then fail "needs more than the C library"; fi

# Whoever moves a program takes the weights along; without them it says so and computes nothing.
mkdir "$work/moved program"
cd "$work/project"
cp call call_shared libsmall_cnn.so image.npy wanted.npy "$work/moved program"
cd "$work/moved program"
if said="$(./call image.npy wanted.npy 2>&1)"; then fail "ran without its weights"; fi
has "$said" "moved program/small_cnn.weights: No such file"
cp "$work/project/small_cnn.weights" .
(cd / && "$work/moved program/call_shared" "$work/moved program/image.npy" "$work/moved program/wanted.npy")
./call image.npy wanted.npy
printf 'x' | dd of=small_cnn.weights bs=1 seek=100 conv=notrunc status=none
if said="$(./call image.npy wanted.npy 2>&1)"; then fail "ran with other weights"; fi
has "$said" "not the bytes that this library was compiled with"

# Other numbers are noticed, too.
cp "$work/project/small_cnn.weights" .
if said="$(./call image.npy image.npy 2>&1)"; then fail "took wrong numbers"; fi
has "$said" "other probabilities"
echo "7 passed, 0 failed"
