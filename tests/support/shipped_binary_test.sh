#!/usr/bin/env bash
# The shipped binary depends on nothing but glibc, so that it runs wherever Debian 12 or something newer does.
# usage: shipped_binary_test.sh BINARY
set -euo pipefail

# Reads `readelf -d` from standard input and prints the libraries that are not glibc's.
foreign_libraries() {
  sed -n 's/.*(NEEDED).*\[\(.*\)\].*/\1/p' |
    grep -vxE '(libc|libm|libdl|libpthread|librt)\.so\.[0-9]+|ld-linux-x86-64\.so\.2' || true
}

passed=0
expect() {
  local what="$1" want="$2" got="$3"
  if [[ "$want" != "$got" ]]; then
    echo "$what: expected '$want', found '$got'"
    echo "$passed passed, 1 failed"
    exit 1
  fi
  passed=$((passed + 1))
}

line() { echo " 0x0000000000000001 (NEEDED)             Shared library: [$1]"; }
expect "glibc's libraries are accepted" "" "$(for l in libc.so.6 libm.so.6 ld-linux-x86-64.so.2; do line "$l"; done | foreign_libraries)"
expect "other libraries are found" "libLLVM-19.so.1" "$({ line libc.so.6; line libLLVM-19.so.1; } | foreign_libraries)"

dynamic="$(readelf -d "$1")"
expect "$1 is linked dynamically against glibc (dlopen needs it)" "libc.so.6" "$(sed -n 's/.*\[\(libc\.so\.6\)\].*/\1/p' <<<"$dynamic")"
expect "libraries besides glibc's that $1 needs" "" "$(foreign_libraries <<<"$dynamic")"
expect "search paths that $1 carries" "" "$(sed -nE 's/.*\((RPATH|RUNPATH)\).*\[(.*)\].*/\2/p' <<<"$dynamic")"
echo "$passed passed, 0 failed"
