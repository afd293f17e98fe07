#!/usr/bin/env bash
# A Makefile gets prunerc from pkg-config; the program runs with the kernel linked statically and shared.
source tests/examples/consumer.sh "$1"

cp -rL tests/examples/make "$work/project"
export PKG_CONFIG_PATH="$prefix/lib/pkgconfig"
make -C "$work/project" check
has "$(make -C "$work/project" call call_shared)" "up to date"
touch "$work/project/softmax.prn"
has "$(make -C "$work/project" call 2>&1)" "compile softmax.prn"

# Without any shared library, without optimisation, and as C++.
cd "$work/project"
libs="$(pkg-config --libs prunerc) -lm"
cc -static -O2 main.c libsoftmax.a $libs -o call_static
./call_static
g++ -x c++ -O0 -Wall -Wextra -Werror -c main.c -o main_cc.o
g++ main_cc.o libsoftmax.a $libs -o call_cc
./call_cc
echo "5 passed, 0 failed"
