"""What a search said that it had stored, and what of it a database has."""

import json
import re

TELL = re.compile(r"^tell \d+ ([0-9a-f]{32}) (\S+) ([\d.]+)$")
FINAL = re.compile(r"^final \d+ ([0-9a-f]{32}) ([\d.]+)$")


def whole_lines(text):
    """A killed process may leave half a line, which says nothing."""
    return text[:text.rfind("\n") + 1].splitlines()


def claims(log):
    """{(fingerprint, outcome)} and {(fingerprint, time)} of the lines of `tune -v` that say what was stored."""
    told, finals = set(), set()
    for line in whole_lines(log):
        tell, final = TELL.match(line), FINAL.match(line)
        if tell:
            told.add((tell[1], tell[2]))
        if final:
            finals.add((final[1], final[2]))
    return told, finals


def stored(world, database, counter=[0]):
    """The records of a database as it exports them; None if it cannot be read."""
    counter[0] += 1
    path = world.path("export%d.jsonl" % counter[0])
    if world.run(["db", "export", path, "--db", database]).code != 0:
        return None
    with open(path, encoding="utf-8") as file:
        return [json.loads(line) for line in file]
