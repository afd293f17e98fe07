# For tests of consumers, sourced with the path of a built prunerc as $1: installs it at $prefix, in a folder $work of
# the test with a space in its name. Installed elsewhere and moved: nothing may name the place.
set -euo pipefail

binary="$(realpath "$1")"
# Not resolved: the files of the test's own folder of links.
root="$PWD"
work="$TEST_TMPDIR/a folder"
prefix="$work/moved"
mkdir -p "$work"
"$root/tools/install.sh" "$binary" "$work/prefix"
mv "$work/prefix" "$prefix"
# Neither the account's records nor its limits.
export HOME="$work" XDG_CACHE_HOME="$work/cache"
unset PRUNERC_DB

fail() {
  echo "FAILED: $*" >&2
  exit 1
}
# has TEXT PATTERN, lacks TEXT PATTERN: by the shell's patterns.
has() { [[ "$1" == *$2* ]] || fail "'$2' is not in: $1"; }
lacks() { [[ "$1" != *$2* ]] || fail "'$2' is in: $1"; }
