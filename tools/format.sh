#!/usr/bin/env bash
# usage: tools/format.sh [--check] [FILES]    formats the C++ sources (default: all); --check only names what would change
set -euo pipefail
cd "$(dirname "$0")/.."

check=0
if [[ "${1:-}" == --check ]]; then
  check=1
  shift
fi
if [[ $# -gt 0 ]]; then
  files=()
  for file in "$@"; do
    case "$file" in
      *.h | *.cc) files+=("$file") ;;
      *) echo "format.sh: not C++, left as it is: $file" >&2 ;;
    esac
  done
else
  mapfile -t files < <(git ls-files --cached --others --exclude-standard -- '*.h' '*.cc' | while read -r f; do [[ -f "$f" ]] && echo "$f"; done)
fi
[[ ${#files[@]} -eq 0 ]] && exit 0

clang_format="$(command -v clang-format-14 || command -v clang-format)"
if [[ "$check" == 0 ]]; then
  printf '%s\0' "${files[@]}" | xargs -0 -P "$(nproc)" -n 16 "$clang_format" -i --style=file
  exit 0
fi
# One line per file instead of one per difference.
status=0
for file in "${files[@]}"; do
  if ! "$clang_format" --style=file "$file" | cmp -s - "$file"; then
    echo "not formatted: $file"
    status=1
  fi
done
exit "$status"
