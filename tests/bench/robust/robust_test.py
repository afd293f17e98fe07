#!/usr/bin/env python3
"""A little of each group of this benchmark, and that what it counts would be counted."""

import argparse
import os
import random
import sys
import unittest

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.realpath(__file__))
sys.path.insert(0, HERE)
import acknowledged
import arithmetic
import common
import disk
import generate
import kills
import winners
import writers

BINARY = None


def values(rows):
    return {row["name"]: row["value"] for row in rows}


class Groups(unittest.TestCase):
    def setUp(self):
        self.world = common.World(BINARY)
        self.world.__enter__()
        self.addCleanup(self.world.__exit__, None, None, None)
        self.world.beside = os.path.dirname(os.path.abspath(sys.argv[0]))
        self.options = argparse.Namespace(kills=16, places=3, writers=3, winners=3, seed=1)

    def measured(self, group):
        rows = group.measure(self.world, self.options)
        for row in rows:
            self.assertNotEqual("MISSED ", common.verdict(row), row)
        return values(rows)

    def test_searches_may_be_killed(self):
        rows = self.measured(kills)
        self.assertEqual(16, rows["kills"])
        self.assertEqual(1, rows["orphan_control"])
        self.assertGreater(rows["acknowledged"], 0)

    def test_several_searches_write_to_one_database(self):
        self.measured(writers)

    def test_the_disk_may_be_full(self):
        self.measured(disk)

    def test_winners_compute_what_a_reference_of_its_own_computes(self):
        rows = self.measured(winners)
        self.assertEqual(3, rows["winners_checked"])
        self.assertGreater(rows["winners_control"], 0)


class Stub(winners.Case):
    """An operator that is tuned, and whose winner does not run."""

    def __init__(self, *_):
        pass

    rng = random.Random(0)
    tune = lambda self, trials: True
    outputs = lambda self: None
    evidence = lambda self, what: None


class Counting(unittest.TestCase):
    def test_winners_that_never_run_end_the_count(self):
        self.addCleanup(setattr, winners, "Case", winners.Case)
        winners.Case = Stub
        rows = values(winners.measure(None, argparse.Namespace(winners=10, seed=0)))
        self.assertEqual((0, 5), (rows["winners_checked"], rows["winners_wrong"]))

    def test_a_whole_run_does_not_complain_of_the_disk(self):
        said = lambda err, code=0: common.Done(code, "", err, 1.0)
        self.assertFalse(disk.complains(said("tell 0 ok\nfinal 0: compared, largest error 0.1 of the bound (chance of error 1e-9)\n")))
        self.assertTrue(disk.complains(said("tell 0 ok\nerror: database is full\n")))
        self.assertTrue(disk.complains(said("ops.prn:1:2: error: no\n")))
        self.assertTrue(disk.complains(said("warning: not stored\n")))
        self.assertTrue(disk.complains(said("", 1)))

    def test_half_a_line_acknowledges_nothing(self):
        line = "tell 0 " + "0" * 32 + " ok 12.5"
        self.assertEqual({("0" * 32, "ok")}, acknowledged.claims("plan\n" + line + "\n")[0])
        self.assertEqual(set(), acknowledged.claims("plan\n" + line)[0])

    def test_goals_of_faults_are_upper_limits(self):
        self.assertEqual("MISSED ", common.verdict(common.row("lost_acknowledged", 1, "records", 0)))
        self.assertEqual("MISSED ", common.verdict(common.row("winners_wrong", 1, "operators", 0)))
        for name in ("disk_full_lost", "disk_full_broken", "disk_full_silent", "writers_lost", "hostile_over_2s", "winners_refused", "missed_threats"):
            self.assertEqual(("MISSED ", "ok "), (common.verdict(common.row(name, 1, "", 0)), common.verdict(common.row(name, 0, "", 0))), name)
        self.assertEqual("MISSED ", common.verdict(common.row("hostile_control", 5, "faults", 6)))
        self.assertEqual("MISSED ", common.verdict(common.row("kills", 1, "kills", 2)))
        self.assertEqual("ok ", common.verdict(common.row("kills", 2, "kills", 2)))


class Reference(unittest.TestCase):
    """The arithmetic of the reference, on what is known."""

    def test_types_round_and_wrap(self):
        self.assertEqual(1.0, arithmetic.rounded(1.001, "bf16"))
        self.assertEqual(0.0999755859375, arithmetic.rounded(0.1, "f16"))
        self.assertEqual(-128, arithmetic.wrap(128, "i8"))
        self.assertEqual(255, arithmetic.wrap(-1, "u8"))
        self.assertEqual((-2, 0.0), arithmetic.divide((-3, 0), (2, 0), "i32"))

    def test_arrays_survive(self):
        for dtype, made in (("f32", [0.5, -1.0]), ("bf16", [1.5, -3.0]), ("i8", [-128, 127]), ("f16", [0.25, 2.0])):
            self.assertEqual(made, arithmetic.from_npy(arithmetic.npy(made, dtype, [2]), dtype))

    def test_where_rounding_may_decide_nothing_is_claimed(self):
        self.assertEqual(arithmetic.INF, arithmetic.compare("<", (1.0, 1e-6), (1.0, 0.0))[1])
        self.assertEqual(0.0, arithmetic.compare("<", (1.0, 1e-6), (2.0, 0.0))[1])
        self.assertEqual((1, arithmetic.INF), arithmetic.fold("argmax", [(1.0, 1e-6), (1.0000001, 0.0)], "f32"))
        self.assertEqual((0, 0.0), arithmetic.fold("argmax", [(5, 0.0), (5, 0.0)], "i32"))

    def test_a_wrong_element_is_wrong_and_a_rounded_one_is_not(self):
        expected = [(1.0, 1e-7), (2.0, 1e-7)]
        self.assertIsNone(winners.first_wrong([1.0 + 2e-7, 2.0], expected))
        self.assertEqual(1, winners.first_wrong([1.0, 2.001], expected))
        self.assertEqual(0, winners.first_wrong([float("nan"), 2.0], expected))
        self.assertEqual(1, winners.first_wrong([1.0], expected))

    def test_a_seed_is_an_operator(self):
        for seed in range(40):
            first, family = generate.generate(random.Random(seed))
            self.assertEqual(first.text(), generate.generate(random.Random(seed))[0].text())
            self.assertIn("op r(", first.text(), family)


if __name__ == "__main__":
    BINARY = sys.argv.pop(1)
    unittest.main(verbosity=2)
