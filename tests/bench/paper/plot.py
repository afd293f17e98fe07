#!/usr/bin/env python3
"""Draws what the results files hold, a PNG a figure.

usage: tests/bench/paper/plot.sh [--out FOLDER] [FILES]

Without FILES: of each claim ../results/NAME.json. What is missing is skipped with a word; a damaged file is as well, and
makes the exit status 1.
"""

import argparse
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
RESULTS = os.path.join(os.path.dirname(HERE), "results")
sys.path.insert(0, RESULTS)
import claims
import draw
import figures
import rows as results


def say(message):
    print(f"plot: {message}", file=sys.stderr)


def pictures_of(claim, read, suffix):
    """{file name: PNG}."""
    rows = {name: row for name, row in read.rows.items() if claim.has(name)}
    out = {}
    for name, title, make in figures.FIGURES.get(claim.name, []):
        figure = make(rows)
        if figure is None:
            say(f"no {name}.png: there are no such rows")
            continue
        figure.suptitle(f"{title}\n{read.machine}, {read.date}, commit {read.commit}", fontsize=9)
        out[f"{name}{suffix}.png"] = draw.png_of(figure)
    return out


def main():
    parser = argparse.ArgumentParser(description="plots of the results that exist")
    parser.add_argument("files", nargs="*", help="results (default: those of tests/bench/results)")
    parser.add_argument("--out", default=os.path.join(HERE, "plots"), help="folder (default: plots beside this file)")
    options = parser.parse_args()

    files, damaged = {}, 0
    for path in options.files or [os.path.join(RESULTS, claim.name + ".json") for claim in claims.CLAIMS if claim.rows]:
        try:
            files[path] = results.read(path)
        except results.Damaged as problem:
            say(f"{path} is skipped: {problem}")
            damaged += 1
    os.makedirs(options.out, exist_ok=True)
    drawn = 0
    for claim in claims.CLAIMS:
        sources = [read for read in files.values() if read.bench == claim.bench and any(map(claim.has, read.rows))]
        for i, read in enumerate(sources):
            for name, png in pictures_of(claim, read, f"_{i + 1}" if len(sources) > 1 else "").items():
                with open(os.path.join(options.out, name), "wb") as out:
                    out.write(png)
                drawn += 1
    say(f"{drawn} plots in {options.out}")
    return 1 if damaged else 0


if __name__ == "__main__":
    sys.exit(main())
