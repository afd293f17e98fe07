#!/usr/bin/env bash
# Installs a built prunerc: tools/install.sh BINARY PREFIX. The folder may be moved afterwards: nothing in it names its
# place. $DESTDIR, if set, is put before PREFIX.
set -euo pipefail

[[ $# == 2 ]] || { echo "usage: tools/install.sh BINARY PREFIX" >&2; exit 2; }
binary="$1"
# Not resolved: in a test's folder of links the files beside this one are those that the test names.
root="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
prefix="${DESTDIR:-}$2"
[[ -z "${DESTDIR:-}" || "$2" == /* ]] || { echo "install: with DESTDIR the prefix must be absolute, found '$2'" >&2; exit 2; }
version="$("$binary" --version)"
version="${version#prunerc }"

# put MODE SOURCE TARGET
put() {
  install -D -m "$1" "$root/$2" "$prefix/$3"
}
# put_template SOURCE TARGET: with the version filled in.
put_template() {
  mkdir -p "$(dirname "$prefix/$2")"
  sed "s/@VERSION@/$version/g" "$root/$1" >"$prefix/$2"
}
# put_output FILE ARGS...: what `prunerc ARGS` prints.
put_output() {
  mkdir -p "$(dirname "$prefix/$1")"
  "$binary" "${@:2}" >"$prefix/$1"
}

install -D -m 755 "$binary" "$prefix/bin/prunerc"
put 644 runtime/kernel.h include/prunerc/kernel.h
put_template tools/install/prunerc.pc lib/pkgconfig/prunerc.pc
put_template tools/install/prunerc-config-version.cmake lib/cmake/prunerc/prunerc-config-version.cmake
put 644 tools/install/prunerc-config.cmake lib/cmake/prunerc/prunerc-config.cmake
put 644 tools/install/prunerc_add_kernel.cmake lib/cmake/prunerc/prunerc_add_kernel.cmake

put_output share/man/man1/prunerc.1 help --man
# The pages that hints name.
for page in ir/README.md ir/lang/README.md schedule/README.md; do put 644 "$page" "share/doc/prunerc/$page"; done
put_output share/bash-completion/completions/prunerc completion bash
put_output share/zsh/site-functions/_prunerc completion zsh
put_output share/fish/vendor_completions.d/prunerc.fish completion fish

# A Bazel repository with the labels of the source tree, around the installed binary.
bazel=share/prunerc/bazel
put 644 tools/install/bazel/repository.WORKSPACE "$bazel/WORKSPACE"
put 644 tools/install/bazel/prunerc.BUILD "$bazel/tools/prunerc/BUILD.bazel"
ln -sfn ../../../../../bin/prunerc "$prefix/$bazel/tools/prunerc/prunerc"
put 644 tools/build/BUILD.bazel "$bazel/tools/build/BUILD.bazel"
for file in op_test.bzl pruner_library.bzl; do put 644 "tools/build/$file" "$bazel/tools/build/$file"; done
for file in op_test.sh pruner_tune.sh; do put 755 "tools/build/$file" "$bazel/tools/build/$file"; done

for file in "$root"/tools/examples/*.prn; do
  put 644 "tools/examples/${file##*/}" "share/prunerc/examples/${file##*/}"
done
for consumer in bazel cmake make net python; do
  for file in "$root/tests/examples/$consumer"/*; do
    [[ -f "$file" ]] || continue
    put 644 "tests/examples/$consumer/${file##*/}" "share/prunerc/examples/$consumer/${file##*/}"
  done
done
put 644 tools/examples/small_cnn.onnx share/prunerc/examples/net/small_cnn.onnx
# The Bazel consumer is a package of this repository; there it is a workspace of its own.
example="$prefix/share/prunerc/examples/bazel"
put 644 tools/install/bazel/example.WORKSPACE share/prunerc/examples/bazel/WORKSPACE
sed -i -e 's|load("//|load("@prunerc//|' -e '/^# Of this repository alone/,$d' "$example/BUILD.bazel"
echo "installed prunerc $version in $prefix" >&2
