#!/usr/bin/env bash
# A CMake project finds an installed prunerc, calls its kernels, and makes anew what changed and nothing else.
source tests/examples/consumer.sh "$1"

project="$work/project"
cp -rL tests/examples/cmake "$project"
build() { cmake --build "$project/build" 2>&1; }
made="Compiling kernel"

cmake -S "$project" -B "$project/build" -DCMAKE_BUILD_TYPE=Release -DCMAKE_PREFIX_PATH="$prefix"
first="$(build)"
echo "$first"
has "$first" "schedule: record; "
(cd "$project/build" && ctest --output-on-failure)

lacks "$(build)" "$made"
touch "$project/softmax.prn"
again="$(build)"
has "$again" "$made softmax"
lacks "$again" "$made dense_relu"
touch "$project/dense_relu.jsonl"
again="$(build)"
has "$again" "$made dense_relu"
lacks "$again" "$made softmax"
touch "$prefix/bin/prunerc"
has "$(build)" "$made dense_relu"
[[ ! -e "$XDG_CACHE_HOME/prunerc" ]] || fail "the build left files in the cache folder: it measured"

# What is asked for wrongly is refused where it is written.
refused() {
  printf 'cmake_minimum_required(VERSION 3.16)\nproject(p C)\nfind_package(prunerc 0.1 REQUIRED)\n%s\n' "$1" >"$work/refused/CMakeLists.txt"
  local text
  if text="$(cmake -S "$work/refused" -B "$work/refused/build" -DCMAKE_PREFIX_PATH="$prefix" 2>&1)"; then fail "taken: $1"; fi
  has "$text" "$2"
}
mkdir "$work/refused"
refused "prunerc_add_kernel(k k.prn THREAD 1)" "what is"
refused "prunerc_add_kernel(k k.prn STATIC SHARED)" "not both"
refused "prunerc_add_kernel(k k.prn REQUIRE_TUNED)" "needs RECORDS"
refused "find_package(prunerc 9 REQUIRED)" "9"
echo "10 passed, 0 failed"
