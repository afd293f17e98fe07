#!/usr/bin/env python3
"""The frozen operators are those that were committed before any of them was measured."""

import hashlib
import os
import sys
import unittest

FROZEN = os.path.join(os.path.dirname(os.path.abspath(__file__)), "frozen")


class Frozen(unittest.TestCase):
    def test_hashes(self):
        with open(os.path.join(FROZEN, "SHA256SUMS"), encoding="ascii") as file:
            sums = dict(reversed(line.split()) for line in file)
        self.assertEqual({"models.prn", "search.prn"}, set(sums))
        for name, expected in sums.items():
            with open(os.path.join(FROZEN, name), "rb") as file:
                self.assertEqual(expected, hashlib.sha256(file.read()).hexdigest(), name)


if __name__ == "__main__":
    sys.exit(unittest.main())
