#!/usr/bin/env python3
"""The page of all results, that of what they do not show, and the small table of the root README, made from the JSON files beside this script.

usage: tables.py                      writes README.md and LIMITS.md beside it
       tables.py --check [README]...  exit status 1 where the page, or the part of a README between its marks, is not what
                                      the JSON files say, or where one of these lacks machine, date, commit or seeds
       tables.py --update README      replaces what stands between the marks <!-- results:begin --> and <!-- results:end -->
"""

import argparse
import glob
import os
import re
import sys

sys.dont_write_bytecode = True
import claims
import layouts
import limits
import rows as results

HERE = os.path.dirname(os.path.abspath(__file__))
BEGIN, END = "<!-- results:begin -->", "<!-- results:end -->"
SMALL = "cpu-zen5-2core"  # the file of the small table

HEAD = """# Results

Made by `tests/bench/results/tables.py` from the JSON files beside it: change those, not this page. A test fails where they differ.
What they do not show is in [LIMITS.md](LIMITS.md).

- ▼ marks where a rival is ahead. Values in brackets are ranges over seeds or rounds, or 95 % intervals where the table says so; a
  value without brackets is a single run, or its file has no range. `*`: other work had the CPUs in one of the rounds, however often it was
  repeated.
- The commit is that of the code that was measured. ° : date, commit and seeds were added later, from the repository's history, and the
  commit is the one that the rows came with, or the last before it.
- CPUs are those of virtual machines with two cores. Other machines will differ: run it on yours.
"""


class Refused(Exception):
    """Results that no page may be made of."""


def read_all(folder):
    """{file name without .json: Results}. Raises Refused."""
    out = {}
    for path in sorted(glob.glob(os.path.join(folder, "*.json"))):
        name = os.path.basename(path)
        try:
            read = results.read(path)
        except results.Damaged as problem:
            raise Refused(f"{name}: {problem}") from None
        if not re.fullmatch(r"[0-9a-f]{12,40}", read.commit):
            raise Refused(f"{name}: no committed code was measured: {read.commit}")
        out[name.removesuffix(".json")] = read
    return out


def files_of(claim, files):
    """The claim's own file, then those of other machines and rivals."""
    return {name: read for name, read in files.items() if re.fullmatch(re.escape(claim.name) + "([-_].+)?", name)}


def table_text(table):
    lines = ["| " + " | ".join(line) + " |" for line in table]
    return [lines[0], "|" + "---|" * len(table[0])] + lines[1:]


def seeds_text(seeds):
    run = len(seeds) > 2 and list(seeds) == list(range(seeds[0], seeds[-1] + 1))
    return f"{seeds[0]} to {seeds[-1]}" if run else ", ".join(map(str, seeds))


def anchor(title):
    """Of a heading, as pages of Markdown have it."""
    return re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-")


def contents(shown):
    return [f"- [{claim.title}](#{anchor(claim.title)})" for claim in shown] + [""]


def section(claim, files):
    lines = [f"## {claim.title}", "", claim.here]
    if claim.published:
        lines += ["", f"Published: {claim.published}"]
    lines += [""] + [f"    {command}" for command in claim.commands()] + [""]
    lines += table_text([["file", "machine", "date", "commit", "seeds"]] + [
        [f"`{name}.json`", read.machine, read.date, f"`{read.commit}`" + ("°" if read.history else ""), seeds_text(read.seeds)]
        for name, read in files.items()])
    if claim.unfair:
        lines += ["", "Caveats:", ""] + [f"- {text}" for text in claim.unfair]
    for caption, table in layouts.LAYOUTS[claim.name](files):
        lines += [""] + ([f"{caption}:", ""] if caption else []) + table_text(table)
    return lines + [""]


def page(folder):
    """The text of README.md. Raises Refused."""
    files = read_all(folder)
    found = [(claim, files_of(claim, files)) for claim in claims.CLAIMS]
    if left := set(files).difference(*(mine for _, mine in found)):
        raise Refused(f"no entry of claims.py shows {', '.join(sorted(left))}")
    shown = [(claim, mine) for claim, mine in found if mine]
    lines = HEAD.splitlines() + [""] + contents(claim for claim, _ in shown)
    for claim, mine in shown:
        lines += section(claim, mine)
    return "\n".join(lines).rstrip("\n") + "\n"


def bare(text):
    """Without the range, which stands on the page of all results."""
    return re.sub(r" \([^()]* to [^()]*\)", "", text)


def small_table(folder):
    """What stands between the marks of a README."""
    files = {SMALL: read_all(folder)[SMALL]}
    read = files[SMALL]
    table = [["operator (f32)", "unit", "1 thread", "strongest peer", "2 threads", "strongest peer"]]
    for one, two in zip(layouts.kernels(files, 1)[1:], layouts.kernels(files, 2)[1:]):
        mark = lambda line: bare(line[2]) + (layouts.BEHIND if line[4].endswith(layouts.BEHIND) else "")
        table.append([one[0], one[1], mark(one), bare(one[3]), mark(two), bare(two[3])])
    return "\n".join(table_text(table) + [
        "", f"Medians on {read.machine}, {read.date}, commit `{read.commit}`; ▼: the peer is ahead. Ranges:",
        "`tests/bench/results/README.md`."])


def update(text, table):
    """`text` with the table between its marks; unchanged without marks."""
    return re.sub(f"{BEGIN}.*?{END}", lambda _: f"{BEGIN}\n{table}\n{END}", text, flags=re.DOTALL)


def read_text(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def frozen_operators():
    """How many operators judge."""
    return sum(read_text(path).count("\nop ") for path in glob.glob(os.path.join(HERE, "..", "..", "data", "frozen", "*.prn")))


def pages(folder):
    """{file name: its text}. Raises Refused."""
    return {"README.md": page(folder), "LIMITS.md": limits.page(read_all(folder), files_of, frozen_operators())}


def check(folder, readmes):
    """What is wrong, a line each."""
    wrong = []
    for name, text in pages(folder).items():
        if read_text(os.path.join(folder, name)) != text:
            wrong.append(f"tests/bench/results/{name} is not what the JSON files say: run tests/bench/results/tables.py")
    for path in readmes:
        text = read_text(path)
        if update(text, small_table(folder)) != text:
            wrong.append(f"{path} is not what the JSON files say: run tests/bench/results/tables.py --update {path}")
    return wrong


def write(path, text):
    with open(path, "w", encoding="utf-8") as out:
        out.write(text)


def main():
    parser = argparse.ArgumentParser(description="tables of the results")
    parser.add_argument("--check", nargs="*", metavar="README", help="compare instead of writing")
    parser.add_argument("--update", metavar="README", help="write the small table between the marks of this file")
    parser.add_argument("--folder", default=HERE, help="of the JSON files (default: that of this script)")
    options = parser.parse_args()
    try:
        if options.check is not None:
            wrong = check(options.folder, options.check)
            print("\n".join(wrong) or "the tables are what the JSON files say")
            return 1 if wrong else 0
        if options.update:
            write(options.update, update(read_text(options.update), small_table(options.folder)))
        else:
            for name, text in pages(options.folder).items():
                write(os.path.join(options.folder, name), text)
    except (Refused, results.Damaged, OSError) as problem:
        print(f"tables.py: {problem}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
