#!/usr/bin/env python3
"""The claims: what was published, what is measured here, where the results are, and how to measure them again.

usage: ./dev bench paper                     the claims, each with its command
       ./dev bench paper --all               every claim with its results files: machine, date, commit, seeds; what is not measured
       ./dev bench paper NAME [ARGUMENTS]    measures one: writes tests/bench/results/NAME.json; ARGUMENTS go to the benchmark
"""

import os
import subprocess
import sys
import time

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.realpath(__file__))
RESULTS = os.path.join(os.path.dirname(HERE), "results")
sys.path.insert(0, RESULTS)
import claims
import tables


def listing():
    lines = []
    for claim in claims.CLAIMS:
        lines += [f"{claim.name}: {claim.title}", f"  published: {claim.published or 'nothing'}", f"  here: {claim.here}", *(f"  {command}" for command in claim.commands()), ""]
    return "\n".join(lines)


def inventory(folder=RESULTS):
    """Lines of cells, heads first. Raises tables.Refused where a file says too little."""
    files = tables.read_all(folder)
    lines = [["claim", "results", "machine", "date", "commit", "seeds"]]
    for claim in claims.CLAIMS:
        mine = tables.files_of(claim, files)
        lines += [[claim.name, f"{name}.json", read.machine, read.date, read.commit, tables.seeds_text(read.seeds)] for name, read in mine.items()]
        if not mine:
            lines.append([claim.name, "not measured", "", "", "", ""])
    return lines


def print_columns(lines):
    widths = [max(len(line[i]) for line in lines) for i in range(len(lines[0]))]
    for line in lines:
        print("  ".join(cell.ljust(width) for cell, width in zip(line, widths)).rstrip())


def main(arguments):
    if not arguments:
        print(listing(), end="")
        return 0
    if arguments == ["--all"]:
        try:
            print_columns(inventory())
        except tables.Refused as problem:
            print(f"paper: {problem}", file=sys.stderr)
            return 1
        return 0
    if arguments[0] in ("-h", "--help"):
        print(__doc__, end="")
        return 0
    claim = next((claim for claim in claims.CLAIMS if claim.name == arguments[0]), None)
    if claim is None:
        print(f"paper: no claim '{arguments[0]}'; there are {', '.join(c.name for c in claims.CLAIMS)}", file=sys.stderr)
        return 2
    # What stands there for a reader's own files is theirs to name.
    command = [word for word in claim.command().split() if word != "MODEL.onnx..."]
    if len(command) < len(claim.command().split()) and not arguments[1:]:
        print(f"paper: {claim.name} wants models: paper {claim.name} MODEL.onnx...; see tests/bench/README.md", file=sys.stderr)
        return 2
    started = time.monotonic()
    status = subprocess.call(command + arguments[1:], cwd=os.path.join(HERE, "..", "..", ".."))
    print(f"{time.monotonic() - started:.0f} s of wall time", file=sys.stderr)
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
