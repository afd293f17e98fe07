#!/usr/bin/env python3
"""Measures a claim again, by the command that its stored results were made with.

usage: tests/bench/paper/measure.py                   the claims: what was published, what is measured here, by which command
       tests/bench/paper/measure.py NAME [ARGUMENTS]  writes tests/bench/results/NAME.json; ARGUMENTS go to the benchmark
"""

import os
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "results"))
import claims


def listing():
    lines = []
    for claim in claims.CLAIMS:
        lines += [f"{claim.name}: {claim.title}", f"  published: {claim.published or 'nothing'}", f"  here: {claim.here}", f"  {claim.command()}", ""]
    return "\n".join(lines)


def main(arguments):
    if not arguments:
        print(listing(), end="")
        return 0
    claim = next((claim for claim in claims.CLAIMS if claim.name == arguments[0]), None)
    if claim is None:
        print(f"measure.py: no claim '{arguments[0]}'; there are {', '.join(c.name for c in claims.CLAIMS)}", file=sys.stderr)
        return 2
    started = time.monotonic()
    status = subprocess.call(claim.command().split() + arguments[1:], cwd=os.path.join(HERE, "..", "..", ".."))
    print(f"{time.monotonic() - started:.0f} s of wall time", file=sys.stderr)
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
