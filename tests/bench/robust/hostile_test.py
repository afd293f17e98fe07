#!/usr/bin/env python3
"""Some of the hostile files of `./dev bench robust --only hostile`, of every kind, the same each time."""

import os
import sys
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
import common
import hostile
import hostile_bases
import hostile_files

FILES, SEED = 110, 1
# Made with little work of Python's own: the rest are run by the benchmark.
MUTATIONS = 900


class Hostile(unittest.TestCase):
    def test_each_fault_that_is_planted_is_noticed(self):
        with common.World(BINARY) as world:
            noticed, missed = hostile.control(world)
            self.assertEqual((len(hostile.PLANTED) - 1, []), (noticed, missed))

    def test_files_of_every_kind_are_refused_or_read_in_order(self):
        with common.World(BINARY) as world:
            bases = hostile_bases.make(world)
            found = hostile_files.pick(hostile_files.cases(bases, MUTATIONS, SEED), FILES, SEED)
            self.assertEqual(set(hostile_files.SHARES), {case.kind for case in found})
            results = hostile.run_cases(world, found, 2)
        # Seconds are for the benchmark, on a machine of its own; sanitizers take time and memory of their own.
        ignored = {"over_1s", "over_2s"} | ({"over_512mib", "over_1gib", "hung"} if hostile.is_sanitized(BINARY) else set())
        bad = [hostile.describe(*result) for result in results if result[2].faults - ignored]
        self.assertEqual([], bad)


if __name__ == "__main__":
    BINARY = os.path.abspath(sys.argv.pop(1))
    unittest.main()
