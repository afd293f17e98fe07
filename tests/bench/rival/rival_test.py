#!/usr/bin/env python3
"""What is made of searches, the table of operators, and a run on our space without TVM or Optuna.

usage: rival_test.py PRUNERC SPACE"""

import json
import math
import os
import subprocess
import sys
import tempfile
import types
import unittest

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "cpu", "suite")]
try:
    import numpy as np
except ModuleNotFoundError:
    # Of several Pythons on the path, Debian's has Debian's numpy.
    if sys.executable == "/usr/bin/python3":
        raise
    os.execv("/usr/bin/python3", ["/usr/bin/python3"] + sys.argv)

import contestants
import judge
import operators
import rival
import tune_optuna
import values

PRUNERC, SPACE = (os.path.abspath(path) for path in sys.argv[1:3])
SMALL = os.path.join(HERE, "small.prn")


def search(who, us, curve, op="gemm", seed=0, trials=64, wall=10.0, refused=""):
    return {"op": op, "seed": seed, "who": who, "trials": trials, "done": trials, "wall": wall, "curve": curve, "us": us, "refused": refused, "noisy": False}


def rows_of(*searches):
    return {row["name"]: row for row in judge.rows_of(searches)}


class Judge(unittest.TestCase):
    def test_a_ratio_is_taken_round_by_round(self):
        rows = rows_of(search("pruner", [2, 2, 8], [[1, 2000, 1]]), search("tvm", [4, 16, 16], [[1, 4000, 1]]),
                       search("pruner", [1], [[1, 1000, 1]], seed=1), search("tvm", [4], [[1, 4000, 1]], seed=1))
        self.assertEqual((3.0, "2 to 4, 2 seeds; its time / ours"), (rows["ratio/gemm/tvm@64"]["value"], rows["ratio/gemm/tvm@64"]["note"]))
        self.assertEqual(1.5, rows["speed/gemm/pruner@64"]["value"], "the median of a seed's rounds")
        self.assertNotIn("ratio/gemm/pruner@64", rows)

    def test_means_are_geometric_and_count_where_ours_is_behind(self):
        rows = rows_of(search("pruner", [2], [[1, 2000, 1]]), search("tvm", [1], [[1, 1000, 1]]),
                       search("pruner", [1], [[1, 1000, 1]], op="conv"), search("tvm", [8], [[1, 8000, 1]], op="conv"))
        self.assertEqual(2.0, rows["geomean/tvm@64"]["value"])
        self.assertIn("2 of 2 operators, ours behind on 1; median 4.250; least 0.500 gemm, most 8.000 conv", rows["geomean/tvm@64"]["note"])

    def test_means_say_of_how_many_operators_and_what_each_seed_gives(self):
        # The rival has one of two operators, and one of two seeds of the other.
        rows = rows_of(*[search("pruner", [1], [[1, 1000, 1]], op=op, seed=seed) for op in ("gemm", "conv") for seed in (0, 1)],
                       search("tvm", [2], [[1, 2000, 1]]), search("tvm", [8], [[1, 8000, 1]], seed=1), search("ansor", [2], [[1, 2000, 1]]),
                       search("ansor", [], [], op="conv", refused="no end"))
        self.assertIn("1 of 2 operators", rows["geomean/tvm@64"]["note"])
        self.assertTrue(rows["geomean/tvm@64"]["note"].endswith("; by seed 2 to 8"), rows["geomean/tvm@64"]["note"])
        self.assertIn("1 of 2 operators", rows["geomean/ansor@64"]["note"])
        self.assertNotIn("by seed", rows["geomean/ansor@64"]["note"])

    def test_who_made_fewer_trials_says_so(self):
        short, failing = search("tvm", [2], [[1, 2000, 1]]), search("ansor", [2], [[1, 2000, 1]])
        short["done"], failing["failed"] = 3, 9
        rows = rows_of(search("pruner", [2], [[1, 2000, 1]]), short, failing)
        self.assertIn("1 made fewer trials: 3 at least", rows["speed/gemm/tvm@64"]["note"])
        self.assertIn("9 trials failed at most", rows["speed/gemm/ansor@64"]["note"])
        self.assertNotIn("trials", rows["speed/gemm/pruner@64"]["note"])

    def test_without_importing_modules_a_rival_is_nearer(self):
        theirs, ours = search("tvm", [4], [[1, 4000, 12]]), search("pruner", [4], [[1, 4000, 1]])
        self.assertNotIn("reach_ready/gemm/tvm@64", rows_of(theirs, ours))
        theirs["ready"] = 10
        rows = rows_of(theirs, ours)
        self.assertEqual([12, 2, 2], [rows[name]["value"] for name in ("reach_own/gemm/tvm@64", "reach_ready/gemm/tvm@64", "geomean_reach_ready/tvm@64")])

    def test_other_work_shows_in_a_ratio(self):
        noisy = dict(search("pruner", [2], [[1, 2000, 1]]), noisy=True)
        self.assertTrue(rows_of(noisy, search("tvm", [2], [[1, 2000, 1]]))["ratio/gemm/tvm@64"]["noisy"])

    def test_rows_are_made_anew_from_a_file(self):
        with tempfile.TemporaryDirectory() as folder:
            path, facts = os.path.join(folder, "out.json"), {"bench": "rival", "seeds": [7], "settings": {"versions": {"tvm": "1"}}}
            searches = [search("pruner", [2], [[1, 2000, 1]]), search("tvm", [4], [[1, 4000, 1]])]
            judge.write(path, facts, searches)
            with open(path, encoding="utf-8") as file:
                first = file.read()
            with open(path, "w", encoding="utf-8") as file:
                file.write(first.replace('"ratio/', '"other/'))
            done = subprocess.run([sys.executable, os.path.join(HERE, "judge.py"), path], capture_output=True, text=True)
            self.assertEqual(0, done.returncode, done.stderr)
            with open(path, encoding="utf-8") as file:
                self.assertEqual(first, file.read())
            self.assertEqual([0], json.loads(first)["seeds"], "those of the searches")

    def test_who_failed_has_no_time_and_a_reason(self):
        rows = rows_of(search("pruner", [2], [[1, 2000, 1]]), search("tvm", [], [], wall=None, refused="no end"))
        self.assertEqual((None, "1 failed: no end"), (rows["speed/gemm/tvm@64"]["value"], rows["speed/gemm/tvm@64"]["note"]))
        self.assertEqual([None], [row["value"] for name, row in rows.items() if name.startswith("seconds/gemm/tvm")])
        self.assertFalse([name for name in rows if name.startswith(("ratio", "geomean", "reach"))])

    def test_budgets_are_not_mixed(self):
        rows = rows_of(search("pruner", [2], [[1, 2000, 1]]), search("tvm", [6], [[1, 6000, 1]], trials=256))
        self.assertFalse([name for name in rows if name.startswith("ratio")])

    def test_reach_is_of_the_same_speed(self):
        # They had 4 us first after 8 s; ours passed it after 2.
        theirs = search("tvm", [4], [[1, 9000, 3], [2, 4000, 8]])
        ours = search("pruner", [2], [[1, 5000, 1], [2, 3900, 2], [3, 2000, 9]])
        self.assertEqual((4.0, True), judge.gain(theirs, ours))

    def test_reach_is_in_the_common_clock(self):
        # Our own clock says half of what the common one says: 4 us of theirs are 2000 ns there.
        theirs, ours = search("tvm", [4], [[1, 4000, 8]]), search("pruner", [2], [[1, 2100, 1], [2, 2000, 4], [3, 1000, 9]])
        self.assertEqual((2.0, True), judge.gain(theirs, ours))

    def test_near_is_within_a_hundredth_for_both(self):
        theirs = search("tvm", [4], [[1, 4030, 2], [2, 4000, 8]])
        ours = search("pruner", [4], [[1, 4030, 1], [2, 4000, 4]])
        self.assertEqual((2.0, True), judge.gain(theirs, ours))
        self.assertEqual((2.0, True), judge.gain(theirs, ours, judge.NEAR))
        self.assertEqual((8.0, True), judge.gain(search("tvm", [4], [[1, 4050, 2], [2, 4000, 8]]), ours, judge.NEAR))

    def test_a_search_that_never_gets_there_gains_nothing(self):
        theirs, ours = search("tvm", [1], [[1, 1000, 30]]), search("pruner", [2], [[1, 2000, 1]])
        self.assertEqual((1.0, False), judge.gain(theirs, ours))
        theirs["curve"] = [[1, 1000, 5]]
        self.assertEqual((0.5, False), judge.gain(theirs, ours))
        rows = rows_of(theirs, ours)
        self.assertIn("1 of ours never", rows["reach_own/gemm/tvm@64"]["note"])
        self.assertIn("1 of 1 of ours never", rows["geomean_reach_own/tvm@64"]["note"])


class Operators(unittest.TestCase):
    def test_every_frozen_operator_has_a_definition_and_a_reference(self):
        frozen = operators.read(rival.FROZEN)
        self.assertEqual((20, list(frozen)), (len(frozen), list(operators.read(SMALL))))
        self.assertEqual(set(operators.DEFINITIONS), set(operators.REFERENCES))

    def test_the_references_agree_with_what_we_compile(self):
        with tempfile.TemporaryDirectory() as folder:
            for name, operator in operators.read(SMALL).items():
                with self.subTest(op=name):
                    path = os.path.join(folder, name + ".so")
                    command = [PRUNERC, "compile", SMALL, "--op", name, "-O0", "--threads", "1", "--db", os.path.join(folder, "none.db"), "-o", path, "-o",
                               path[:-len("so")] + "h"]
                    done = subprocess.run(command, capture_output=True, text=True)
                    self.assertEqual(0, done.returncode, done.stderr)
                    arrays = values.inputs(operator, 0)
                    task = types.SimpleNamespace(name=name, operator=operator, folder=folder, arrays=arrays, library=path)
                    kernel = contestants.Kernel(task)
                    kernel.time(1)
                    off, allowed = values.deviation(operator, kernel.outputs(), values.reference(operator, arrays))
                    self.assertLessEqual(off, allowed)


class Study:
    """In Optuna's place: always the first value, then chance."""

    def __init__(self):
        self.told, self.random, self.num = [], np.random.default_rng(0), 0

    def ask(self):
        self.num += 1
        return types.SimpleNamespace(suggest_categorical=lambda name, choices: choices[0] if self.num <= 2 else int(self.random.choice(choices)),
                                     suggest_int=lambda name, low, high: low if self.num <= 2 else int(self.random.integers(low, high + 1)))

    def tell(self, trial, value=None, state=None):
        self.told.append(value)


class Scripted:
    """In the place of `space`: says these lines."""

    def __init__(self, *lines):
        self.lines, self.written = list(lines), []

    def read(self):
        return self.lines.pop(0)

    def write(self, line):
        self.written.append(line)


class Optuna(unittest.TestCase):
    def test_what_is_refused_is_told_as_slower_than_the_slowest(self):
        ask, refuse, study = {"ask": True}, {"refused": "no"}, Study()
        space = Scripted({"sketches": [[{"values": 9, "tile": True}]]}, ask, refuse, ask, {"id": 0}, {"told": 0, "ns": 8.0, "status": "ok"},
                         ask, refuse, ask, {"id": 1}, {"told": 1, "ns": None, "status": "run_error"}, {"report": {"trials": 2}})
        self.assertEqual({"trials": 2}, tune_optuna.search(space, study, types.SimpleNamespace(FAIL="fail")))
        self.assertEqual([None] + [round(math.log(ns), 9) for ns in (8, 16, 16)], [told and round(told, 9) for told in study.told])
        self.assertEqual(4, len(space.written))


class Space(unittest.TestCase):
    def test_a_search_by_somebody_else_ends_with_a_record(self):
        with tempfile.TemporaryDirectory() as folder:
            database = os.path.join(folder, "own.db")
            study = Study()
            space = tune_optuna.Space([SPACE, SMALL, "gemm_square", "4", "0", "1", database])
            report = tune_optuna.search(space, study, types.SimpleNamespace(FAIL="fail"))
            self.assertEqual(0, space.process.wait())
            self.assertEqual((4, True), (report["trials"], report["best_ns"] > 0 and report["verified"]))
            self.assertGreaterEqual(len(study.told), 4)
            space.process.stdin.close()
            space.process.stdout.close()
            done = subprocess.run([PRUNERC, "compile", SMALL, "--op", "gemm_square", "--threads", "1", "--db", database, "--require-tuned", "-o",
                                   os.path.join(folder, "own.so")], capture_output=True, text=True)
            self.assertEqual(0, done.returncode, done.stderr)

    def test_what_is_no_candidate_is_refused_and_no_trial(self):
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run([SPACE, SMALL, "reduce_rows", "2", "0", "1", os.path.join(folder, "own.db")], input="99 0\n0\nword\nend\n",
                                  capture_output=True, text=True)
            lines = [json.loads(line) for line in done.stdout.splitlines()]
            self.assertEqual(3, sum("refused" in line for line in lines))
            self.assertEqual((1, 0), (done.returncode, lines[-1]["report"]["trials"]))


class Run(unittest.TestCase):
    def call(self, *arguments, commit="0123456789ab"):
        command = [sys.executable, os.path.join(HERE, "rival.py"), "--prunerc", PRUNERC, "--space", SPACE, "--file", SMALL, *arguments]
        return subprocess.run(command, capture_output=True, text=True, env=dict(os.environ, PRUNERC_COMMIT=commit))

    def test_wrong_arguments_are_refused(self):
        for arguments, reason in ((["--who", "nobody"], "not one of"), (["--trials", "0"], "at least 1"), (["--ops", "nothing"], "no such operator")):
            done = self.call(*arguments)
            self.assertEqual((True, True), (done.returncode != 0, reason in done.stderr), done.stderr)

    def test_a_run_is_gone_on_with(self):
        with tempfile.TemporaryDirectory() as folder:
            out = os.path.join(folder, "out.json")
            arguments = ["--ops", "^gemm_square$", "--who", "ours,random", "--trials", "2", "--json", out]
            done = self.call(*arguments, "--seeds", "1")
            self.assertEqual(0, done.returncode, done.stderr)
            with open(out, encoding="utf-8") as file:
                first = json.load(file)
            self.assertEqual({"pruner", "random"}, {one["who"] for one in first["searches"]})
            self.assertTrue(all(len(one["us"]) == rival.ROUNDS and not one["refused"] and one["curve"] for one in first["searches"]), first["searches"])
            rows = {row["name"]: row["value"] for row in first["rows"]}
            self.assertGreater(rows["ratio/gemm_square/random@2"], 0)
            again = self.call(*arguments, "--seeds", "2")
            self.assertEqual(0, again.returncode, again.stderr)
            with open(out, encoding="utf-8") as file:
                second = json.load(file)
            self.assertEqual(([0, 1], first["searches"]), (second["seeds"], second["searches"][:2]), "nothing is searched twice")
            # Who was there takes turns with who comes.
            more = self.call("--ops", "^gemm_square$", "--who", "pruner-bare", "--trials", "2", "--seeds", "1", "--json", out)
            self.assertEqual(0, more.returncode, more.stderr)
            with open(out, encoding="utf-8") as file:
                third = json.load(file)
            self.assertEqual([(0, "pruner"), (0, "pruner-bare"), (0, "random"), (1, "pruner"), (1, "random")],
                             sorted((one["seed"], one["who"]) for one in third["searches"]))
            other = self.call(*arguments, commit="ba9876543210")
            self.assertEqual((1, True), (other.returncode, "has another commit" in other.stderr), other.stderr)

    def test_a_rival_that_is_not_installed_has_a_reason(self):
        options = types.SimpleNamespace(threads=1)
        cache, rival.CACHE = rival.CACHE, "/nonexistent"
        self.addCleanup(setattr, rival, "CACHE", cache)
        found = rival.Searching(options, "gemm_square", 0, 2, "/nonexistent").search("tvm")
        self.assertEqual(("not installed: ./dev setup --rivals", []), (found["refused"], found["us"]))


if __name__ == "__main__":
    sys.argv[1:] = sys.argv[3:]
    unittest.main()
