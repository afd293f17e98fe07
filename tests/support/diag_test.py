#!/usr/bin/env python3
"""Fails if a row of ir/support/diag.def is expected by no test.

What a test expects is read off its text. A row counts as shown where a test or a golden file names it, as
CHECK_DIAG(result, Row), "Row" or == Diag::kRow, or holds a message of it on one line: in a golden's `# expect:`, in the
string that a command's output is searched for. Whether the expectation holds is for that test to say.

usage: diag_test.py [ROOT]
"""

import os
import re
import sys
import unittest

TABLE = "ir/support/diag.def"
ROW = re.compile(r'^PRUNERC_DIAG\((\w+), "((?:[^"\\]|\\.)*)"\)', re.M)
# Shorter texts would be found anywhere; such rows must be named.
FEWEST_LETTERS = 10
TEST_FILES = (".cc", ".py", ".sh", ".prc", ".prn", ".expected")
# Benchmarks are no tests.
LEFT_OUT = ("tests/bench/",)

# Rows that no test can show, each with its reason.
EXCEPTIONS = {
    "Cancelled": "stands for an interrupted command in the table of exit codes; commands that are interrupted say so "
                 "in their report",
    "KernelRun": "made by benchmarks alone, which stop at a kernel that fails",
}
# Rows whose tests are on the way. A row that has one must go from here.
PENDING = [
    "NvrtcMissing",
]


def rows_of(table):
    """Name to message, in order."""
    return dict(ROW.findall(table))


def is_named(name, text):
    return re.search(rf'CHECK_DIAG\([^;]*?,\s*{name}\)|(?<!!= )"{name}"|==\s+(error\()?Diag::k{name}\b', text) is not None


def is_quoted(message, text):
    parts = message.replace('\\"', '"').split("{}")
    if len(re.sub(r"[^A-Za-z]", "", "".join(parts))) < FEWEST_LETTERS:
        return False
    # The longest part first: most texts do not have it, and a search for a string is fast.
    return max(parts, key=len) in text and re.search(".*?".join(re.escape(p) for p in parts), text) is not None


def unshown(rows, texts):
    return [name for name, message in rows.items()
            if not any(is_named(name, text) or is_quoted(message, text) for text in texts)]


def faults(rows, texts, exceptions, pending):
    missing = unshown(rows, texts)
    out = [f"{name}: no test expects it" for name in missing if name not in exceptions and name not in pending]
    for name in [*exceptions, *pending]:
        if name not in rows:
            out.append(f"{name}: is listed in diag_test.py, but is no row of {TABLE}")
        elif name not in missing:
            out.append(f"{name}: has a test now; take it out of the list in diag_test.py")
    return out


def find_root():
    if len(sys.argv) > 1:
        return sys.argv.pop(1)
    # Bazel runs a link to this file.
    return os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))


def read(path):
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.read()


def test_texts(root):
    texts = []
    for folder, folders, names in os.walk(os.path.join(root, "tests")):
        folders.sort()
        for name in sorted(names):
            path = os.path.relpath(os.path.join(folder, name), root)
            if name.endswith(TEST_FILES) and not path.startswith(LEFT_OUT) and name != "diag_test.py":
                texts.append(read(os.path.join(root, path)))
    return texts


class TheRulesCanFail(unittest.TestCase):
    ROWS = {"LoopLost": "loop {} is lost in {}", "Short": "{}: {}"}

    def test_a_row_is_shown_by_its_name(self):
        for text in ("CHECK_DIAG(f(a, b),\n LoopLost)", 'row("LoopLost")', "e.id() == Diag::kLoopLost)",
                     "text ==\n error(Diag::kLoopLost, id).message()"):
            self.assertEqual(["Short"], unshown(self.ROWS, [text]))
        for text in ("LoopLost", "return error(Diag::kLoopLost, id)", "CHECK_DIAG(f(), LoopLostToo)", '"LoopLosts"', 'x != "LoopLost"'):
            self.assertEqual(["LoopLost", "Short"], unshown(self.ROWS, [text]))

    def test_a_row_is_shown_by_its_message(self):
        self.assertEqual(["Short"], unshown(self.ROWS, ["# expect: 3:1: loop @L3 is lost in block @B0"]))
        self.assertEqual(["LoopLost", "Short"], unshown(self.ROWS, ["# expect: loop @L3\nis lost in @B0"]))

    def test_a_short_message_shows_nothing(self):
        self.assertEqual(["LoopLost", "Short"], unshown(self.ROWS, ["a: b"]))

    def test_lists_may_not_outlive_their_reason(self):
        text = ['"LoopLost"']
        self.assertEqual(["Short: no test expects it"], faults(self.ROWS, text, {}, []))
        self.assertEqual([], faults(self.ROWS, text, {"Short": "a reason"}, []))
        self.assertEqual(1, len(faults(self.ROWS, text, {"Short": "a reason"}, ["LoopLost"])))
        self.assertEqual(1, len(faults(self.ROWS, text, {"Short": "a reason", "Gone": "a reason"}, [])))


class TheTable(unittest.TestCase):
    root = None

    def test_every_row_is_read(self):
        table = read(os.path.join(self.root, TABLE))
        self.assertEqual(len(re.findall(r"^PRUNERC_DIAG\(", table, re.M)), len(rows_of(table)))
        self.assertGreater(len(rows_of(table)), 100)

    def test_every_row_is_expected_by_a_test(self):
        rows = rows_of(read(os.path.join(self.root, TABLE)))
        self.assertEqual([], faults(rows, test_texts(self.root), EXCEPTIONS, PENDING))


if __name__ == "__main__":
    TheTable.root = find_root()
    unittest.main()
