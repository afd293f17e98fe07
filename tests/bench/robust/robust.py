#!/usr/bin/env python3
"""What prunerc does when it is killed, starved, crowded, lied to, or given what nobody sane would write.

Every group is a file beside this one with a function `measure(world, options)` that returns rows. Counts are of faults, so
0 is what rows with a goal want; each group plants a fault of its own first to show that it would be counted.

usage: ./dev bench robust [--only GROUP,GROUP] [--hostile N] [--kills N] [--winners N] [--seed N] [--json OUT]
"""

import argparse
import importlib
import json
import os
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
sys.path.append(os.path.join(sys.path[0], ".."))
import common
import facts

GROUPS = ["hostile", "kills", "writers", "disk", "winners", "threats"]


def parse_arguments():
    parser = argparse.ArgumentParser(prog="./dev bench robust", description=__doc__.splitlines()[0])
    parser.add_argument("--only", default=",".join(GROUPS), help="groups: %s (default: all)" % ", ".join(GROUPS))
    parser.add_argument("--hostile", type=int, default=1500, help="how many hostile files (default 1500)")
    parser.add_argument("--kills", type=int, default=1000, help="how often a search is killed (default 1000)")
    parser.add_argument("--places", type=int, default=30, help="writes at which the disk is full (default 30)")
    parser.add_argument("--writers", type=int, default=16, help="processes that write to one database (default 16)")
    parser.add_argument("--winners", type=int, default=300, help="random operators to tune and compare (default 300)")
    parser.add_argument("--seed", type=int, default=0, help="of everything random (default 0)")
    parser.add_argument("--keep", metavar="DIR", help="keep what is wrong in this folder")
    parser.add_argument("--binary", help="prunerc to run (default: the one that was built)")
    parser.add_argument("--json", help="write the rows to this file")
    options = parser.parse_args()
    options.only = options.only.split(",")
    for name in options.only:
        if name not in GROUPS:
            parser.error("no group '%s'; there are %s" % (name, ", ".join(GROUPS)))
    return options


def write_json(path, rows, said):
    with open(path + ".draft", "w", encoding="utf-8") as out:
        out.write("{\n" + "".join(" %s: %s,\n" % (json.dumps(k), json.dumps(v)) for k, v in said.items()) + ' "rows": [\n')
        out.write(",\n".join("  " + json.dumps(row) for row in rows) + "\n ]\n}\n")
    os.replace(path + ".draft", path)


def main():
    options = parse_arguments()
    # Bazel puts a link to this file beside the binaries.
    beside = os.path.dirname(os.path.abspath(sys.argv[0]))
    binary = options.binary or os.path.join(beside, "..", "..", "..", "tools", "prunerc", "prunerc")
    said = facts.of("robust", binary, seeds=[options.seed]) if options.json else {}
    rows = []
    for name in options.only:
        with common.World(binary, keep=options.keep) as world:
            world.beside = beside
            group = importlib.import_module(name).measure(world, options)
        for row in group:
            print("%-28s %8g %-10s %s%s" % (row["name"], row["value"], row["unit"], common.verdict(row), row["note"]), flush=True)
        rows += group
    if options.json:
        write_json(options.json, rows, said)
    sys.exit(1 if any(common.verdict(row) == "MISSED " for row in rows) else 0)


if __name__ == "__main__":
    main()
