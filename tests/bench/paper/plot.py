#!/usr/bin/env python3
"""Draws what the result files hold: PNGs, and one HTML page with them and all rows.

usage: tests/bench/paper/plot.sh [--out FOLDER] [FILES]

Without FILES: of each claim ../results/NAME.json, or, where that is missing, every file there that has its rows. What is
missing is skipped with a word; a damaged file is as well, and makes the exit status 1.
"""

import argparse
import glob
import os
import sys

import claims
import draw
import figures
import page
import rows as results

HERE = os.path.dirname(os.path.abspath(__file__))
RESULTS = os.path.join(os.path.dirname(HERE), "results")


def say(message):
    print(f"plot: {message}", file=sys.stderr)


def read_all(paths):
    """({path: Results}, number of damaged files)."""
    out, damaged = {}, 0
    for path in paths:
        try:
            read = results.read(path)
        except results.Damaged as problem:
            say(f"{path} is skipped: {problem}")
            damaged += 1
            continue
        if read is None:
            say(f"{path} is skipped: nothing of it is drawn here")
        else:
            out[path] = read
    return out, damaged


def section_of(claim, path, read, suffix):
    rows = {name: row for name, row in read.rows.items() if claim.has(name)}
    section = page.Section(claim, os.path.basename(path), read.machine, list(rows.values()))
    for name, title, make in figures.FIGURES.get(claim.name, []):
        figure = make(rows)
        if figure is None:
            say(f"no {name}.png from {os.path.basename(path)}: it has no such rows")
            continue
        section.pictures.append(page.Picture(name + suffix, title, draw.png_of(figure)))
    return section


def remove_old(folder):
    """Pictures of ours that this run may not draw again."""
    for name in (figure[0] for some in figures.FIGURES.values() for figure in some):
        for old in glob.glob(os.path.join(folder, name + ".png")) + glob.glob(os.path.join(folder, name + "_[0-9].png")):
            os.remove(old)


def main():
    parser = argparse.ArgumentParser(description="plots of the results that exist")
    parser.add_argument("files", nargs="*", help="results (default: those of tests/bench/results)")
    parser.add_argument("--out", default=os.path.join(HERE, "plots"), help="folder (default: plots beside this file)")
    options = parser.parse_args()

    files, damaged = read_all(options.files or sorted(glob.glob(os.path.join(RESULTS, "*.json"))))
    sections, missing = [], []
    for claim in claims.CLAIMS:
        sources = claims.sources_of(claim, files, prefer_own=not options.files)
        if not sources:
            say(f"{claim.name}: not measured yet")
            missing.append(claim)
        for i, path in enumerate(sources):
            sections.append(section_of(claim, path, files[path], f"_{i + 1}" if len(sources) > 1 else ""))

    os.makedirs(options.out, exist_ok=True)
    remove_old(options.out)
    for section in sections:
        for picture in section.pictures:
            with open(os.path.join(options.out, picture.name + ".png"), "wb") as out:
                out.write(picture.png)
    for name, content in (("index.html", page.page_html(sections, missing)), ("README.md", page.page_markdown(sections))):
        with open(os.path.join(options.out, name), "w", encoding="utf-8") as out:
            out.write(content)
    say(f"{sum(len(section.pictures) for section in sections)} plots and index.html in {options.out}")
    return 1 if damaged else 0


if __name__ == "__main__":
    sys.exit(main())
