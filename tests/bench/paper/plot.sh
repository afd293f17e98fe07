#!/usr/bin/env bash
# usage: tests/bench/paper/plot.sh [--out FOLDER] [FILES]    draws results (default: those of tests/bench/results)
set -euo pipefail
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
"$here/../../../dev" setup --paper
# Debian's own interpreter sees Debian's packages; another one may come first in PATH.
python=/usr/bin/python3
[[ -x "$python" ]] || python=python3
exec "$python" -B "$here/plot.py" "$@"
