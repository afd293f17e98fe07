#!/usr/bin/env bash
# tools/install.sh puts everything where other tools look for it, and nothing there names the place.
source tests/examples/consumer.sh "$1"

if grep -rlF "$work" "$prefix"; then fail "these files name the prefix"; fi
"$prefix/bin/prunerc" compile "$prefix/share/prunerc/examples/softmax.prn" -D M=4,N=8 -o "$work/softmax.o"
[[ -s "$work/softmax.o" && -s "$work/softmax.h" ]] || fail "no kernel"
version="$("$prefix/bin/prunerc" --version)"

export PKG_CONFIG_PATH="$prefix/lib/pkgconfig"
[[ "prunerc $(pkg-config --modversion prunerc)" == "$version" ]] || fail "pkg-config has another version"
# What pkg-config prints is for a shell.
eval "named=$(pkg-config --variable=prunerc prunerc)"
[[ "$named" -ef "$prefix/bin/prunerc" ]] || fail "pkg-config names no prunerc"
printf '#include <prunerc/kernel.h>\nPrunercKernel kernel;\n' >"$work/abi.c"
eval "cc -c -o '$work/abi.o' '$work/abi.c' $(pkg-config --cflags prunerc)"

has "$(head -1 "$prefix/share/man/man1/prunerc.1")" ".TH"
for file in bash-completion/completions/prunerc zsh/site-functions/_prunerc fish/vendor_completions.d/prunerc.fish; do
  has "$(cat "$prefix/share/$file")" "prunerc"
done
bash -n "$prefix/share/bash-completion/completions/prunerc"
for page in ir/README.md ir/lang/README.md schedule/README.md; do
  [[ -s "$prefix/share/doc/prunerc/$page" ]] || fail "no $page"
done

# As a packager does.
DESTDIR="$work/stage" tools/install.sh "$binary" /usr
cmp "$work/stage/usr/bin/prunerc" "$prefix/bin/prunerc"
[[ "$(cd "$work/stage/usr" && find . | sort)" == "$(cd "$prefix" && find . | sort)" ]] || fail "DESTDIR changes what is installed"
if DESTDIR="$work/stage" tools/install.sh "$binary" usr; then fail "a relative prefix below DESTDIR was taken"; fi
echo "7 passed, 0 failed"
