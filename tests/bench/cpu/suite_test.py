#!/usr/bin/env python3
"""The suite's table, its forms of each operator beside one another, its arithmetic, and a run of it without any peer but gcc.

usage: suite_test.py PRUNERC"""

import collections
import contextlib
import io
import json
import os
import re
import subprocess
import sys
import tempfile
import time
import types
import unittest
from concurrent.futures import ThreadPoolExecutor

sys.dont_write_bytecode = True
try:
    import numpy as np
except ModuleNotFoundError:
    # Of several Pythons on the path, Debian's has Debian's numpy.
    if sys.executable == "/usr/bin/python3":
        raise
    os.execv("/usr/bin/python3", ["/usr/bin/python3"] + sys.argv)

SUITE = os.path.join(os.path.dirname(os.path.realpath(__file__)), "suite")
sys.path[:0] = [SUITE, os.path.dirname(SUITE)]

import contestants
import cpu
import networks
import score
import suite
import table
import values

NET = os.path.join(SUITE, "..", "..", "..", "..", "tools", "std", "nets", "resnet50.prn")
PRUNERC = os.path.abspath(sys.argv.pop(1)) if len(sys.argv) > 1 else "prunerc"
SEED = 5
EVERY = table.ROWS + table.ALGEBRA

# What an independent benchmark found slow or fast.
NAMED = """tconv_128x16_4x4s2 gconv_64x56_3x3s2_g4 transpose_add_1024x1536 attention_12x128x64 conv_512x7_3x3 gemm_16x1024x1024 softmax_64x5000
conv_256x14_3x3_d2 bert_up_128x3072x768_gelu resnet_128x28_3x3_relu conv_64x56_3x3 gemm_333x517x259_relu gemm_197x768x768 bmm_12x128x128x64
conv_3x224_7x7s2 dw_96x112_3x3s2 layernorm_128x768 col_sum_1024x1024 maxpool_64x112_3x3s2 stencil_1024x1024_5 cumsum_256x1024
argmax_1024x1024""".split()


def one_a_family():
    """The first row of each definition and class."""
    return list({(row.cls, row.family): row for row in reversed(EVERY)}.values())


def row_of(name):
    return next(row for row in EVERY if row.name == name)


def scratch(test):
    folder = tempfile.TemporaryDirectory(dir=os.environ.get("TEST_TMPDIR"))
    test.addCleanup(folder.cleanup)
    return folder.name


def text_of(path):
    try:
        with open(path, encoding="ascii") as file:
            return file.read()
    except FileNotFoundError:
        return ") X"


def in_parallel(function, items):
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return list(pool.map(function, items))


class Table(unittest.TestCase):
    def test_names_are_unique_and_what_was_found_slow_or_fast_is_there(self):
        names = [row.name for row in EVERY]
        self.assertEqual(len(set(names)), len(names))
        self.assertGreaterEqual(len(names), 60)
        self.assertEqual([], [name for name in NAMED if name not in names])
        for row in EVERY:
            self.assertRegex(row.name, r"^[a-z][a-z0-9_]*$")
            self.assertRegex(row.cls, r"^[a-z0-9 -]+$")
        self.assertEqual([], [cls for cls in {**score.GOALS, **score.GCC_GOALS} if cls not in table.classes()])

    def test_each_row_has_the_forms_that_its_class_wants(self):
        for row in EVERY:
            with self.subTest(row=row.name):
                operator = row.operator()
                ports = {p.name for p in operator.inputs}
                for nodes in operator.graphs:
                    made = {name for _, _, outputs, _ in nodes for name in outputs}
                    read = {name for _, inputs, _, _ in nodes for name in inputs}
                    self.assertEqual(set(), read - made - ports - set(operator.consts), "every value comes from somewhere")
                    self.assertLessEqual({p.name for p in operator.outputs}, made)
                    self.assertEqual(set(), ports - read - {spec[1] for spec in operator.consts.values() if spec[0] == "reshape"})
                self.assertTrue(operator.graphs)
                self.assertTrue(operator.loops or row.cls == "bf16 gemm")
                self.assertLess(0, sum(not p.const for p in operator.inputs), "something differs between calls")

    def test_every_definition_compiles(self):
        folder = scratch(self)

        def show(row):
            path = os.path.join(folder, row.name + ".prn")
            with open(path, "w", encoding="utf-8") as file:
                file.write(row.operator().prn(row.name))
            done = subprocess.run([PRUNERC, "show", path], capture_output=True, text=True)
            return (row.name, done.stderr) if done.returncode else None

        self.assertEqual([], [problem for problem in in_parallel(show, EVERY) if problem])


class Values(unittest.TestCase):
    def run_all(self, library, rows, make):
        for row in rows:
            with self.subTest(row=row.name):
                operator = row.tiny()
                arrays = values.inputs(operator, SEED)
                task = types.SimpleNamespace(name=row.name, operator=operator, folder=self.folder, arrays=arrays, library=library(row))
                machine = make(task)
                machine.time(2)
                off, allowed = values.deviation(operator, machine.outputs(), values.reference(operator, arrays))
                self.assertLessEqual(off, allowed)

    def test_the_loops_agree_with_the_reference(self):
        self.folder = scratch(self)
        library = os.path.join(self.folder, "loops.so")
        rows = [row for row in EVERY if row.tiny().loops]
        contestants.compile_c("\n".join(row.tiny().c(2, "run_" + row.name) for row in rows), library, "-fopenmp", "-O1", *contestants.REORDER)
        self.run_all(lambda row: library, rows, lambda task: contestants.Machine(task, task.library, "run_" + task.name))

    def test_the_definitions_agree_with_the_reference(self):
        self.folder = scratch(self)
        library = lambda row: os.path.join(self.folder, row.name + ".so")

        def build(row):
            path = os.path.join(self.folder, row.name + ".prn")
            with open(path, "w", encoding="utf-8") as file:
                file.write(row.tiny().prn(row.name))
            command = [PRUNERC, "compile", path, "-O0", "--threads", "1", "--db", os.path.join(self.folder, "none.db"), "-o", library(row), "-o", library(row)[:-len("so")] + "h"]
            return subprocess.run(command, capture_output=True, text=True).stderr if not os.path.exists(library(row)) else ""

        rows = one_a_family()
        in_parallel(build, rows)
        self.run_all(library, rows, contestants.prepare_prunerc)

    def test_a_wrong_value_is_noticed(self):
        operator = row_of("gemm_512").tiny()
        arrays = values.inputs(operator, SEED)
        wanted = values.reference(operator, arrays)
        right = [wanted[0].astype(np.float32)]
        off, allowed = values.deviation(operator, right, wanted)
        self.assertLess(off, allowed)
        for wrong in (float(right[0][0, 0]) + 0.01 * np.abs(wanted[0]).max(), np.nan, np.inf):
            bad = right[0].copy()
            bad[0, 0] = wrong
            off, allowed = values.deviation(operator, [bad], wanted)
            self.assertGreater(off, allowed)
        self.assertGreater(values.deviation(operator, [right[0][:-1]], wanted)[0], allowed, "a part of it is no answer")
        self.assertGreater(values.deviation(operator, [], wanted)[0], allowed, "nor is nothing")
        self.assertGreater(values.deviation(operator, [np.zeros_like(right[0])], wanted)[0], allowed)

    def test_each_output_has_its_own_tolerance(self):
        port = lambda name, dtype: types.SimpleNamespace(name=name, dtype=dtype)
        operator = types.SimpleNamespace(outputs=(port("y", "f32"), port("i", "i64")))
        wanted = [np.array([1.0, 2.0]), np.array([3.0, 10_000.0])]
        right = [wanted[0].astype(np.float32), wanted[1].astype(np.int64)]
        off, allowed = values.deviation(operator, right, wanted)
        self.assertLessEqual(off, allowed)
        # One of ten thousand is less than what f32 may be off.
        off, allowed = values.deviation(operator, [right[0], right[1] - np.array([0, 1])], wanted)
        self.assertGreater(off, allowed)

    def test_bf16_is_rounded_to_even(self):
        for value, rounded in ((1.0, 1.0), (1 + 2**-8, 1.0), (1 + 3 * 2**-8, 1 + 2**-6), (1 + 2**-8 + 2**-12, 1 + 2**-7), (-3.0, -3.0)):
            self.assertEqual(rounded, float(values.to_float64(values.to_bf16(np.array([value])), "bf16")[0]))

    def test_inputs_are_equal_for_all(self):
        operator = row_of("gemm_512").tiny()
        one, two, other = values.inputs(operator, 1), values.inputs(operator, 1), values.inputs(operator, 2)
        self.assertTrue(all((one[name] == two[name]).all() for name in one))
        self.assertFalse(any((one[name] == other[name]).all() for name in one))


class Base(unittest.TestCase):
    def test_peers_that_compute_something_else_are_noticed(self):
        self.assertEqual([], cpu.odd_one_out({}))
        self.assertEqual([], cpu.odd_one_out({"onednn": 100.0, "eigen": 100.01}))
        self.assertEqual(["eigen"], cpu.odd_one_out({"onednn": 100.0, "eigen": 90.0, "openblas": 100.0}))
        self.assertEqual(["eigen"], cpu.odd_one_out({"onednn": 100.0, "eigen": 0.0, "openblas": 100.0}))
        self.assertEqual(["onednn", "eigen"], cpu.odd_one_out({"onednn": 100.0, "eigen": 90.0}))


class Network(unittest.TestCase):
    def test_the_graph_has_the_convolutions_of_the_tasks(self):
        with open(NET, encoding="utf-8") as file:
            tasks = networks.tasks(file.read())
        self.assertEqual(27, len(tasks))
        theirs = collections.Counter()
        for _, operator, sizes, count in tasks:
            if operator.startswith("conv"):
                after = operator.removeprefix("conv_bias").removeprefix("_")
                theirs[(*(int(sizes[key]) for key in ("H", "CI", "CO", "KH", "S")), after)] += count
        self.assertEqual(theirs, collections.Counter(networks.build(224).convs))

    def test_its_shapes_fit(self):
        operator = networks.resnet50(image=32)
        arrays = values.inputs(operator, SEED)
        (out,) = values.reference(operator, arrays)
        self.assertEqual((1, 1000), out.shape)
        self.assertTrue(np.isfinite(out).all() and out.std() > 0)


class Score(unittest.TestCase):
    def test_the_ratio_is_of_each_round(self):
        # The second round ran on a machine that was half as fast.
        self.assertEqual((2.0, 2.0, 3.0), score.ratio([20, 40, 30], [10, 20, 10]))
        self.assertAlmostEqual(1.0, score.geomean([0.5, 2.0, 1.0]))

    def test_the_best_peer_is_the_fastest_that_ran(self):
        timed = {"prunerc": score.Timed([10, 10, 10]), "prunerc-O1": score.Timed([15, 15, 15]), "openvino": score.Timed([9, 8, 30]),
                 "onnxruntime": score.Timed([8, 12, 12]), "gcc": score.Timed([], "wrong values: off by 1")}
        peers = ["onnxruntime", "openvino", "torch", "gcc"]
        self.assertEqual("openvino", score.best_peer(timed, peers))
        self.assertIsNone(score.best_peer({"gcc": timed["gcc"]}, peers))
        rows = {row["name"]: row for row in score.rows_of("stencil", "blur", 2, timed, peers, 5)}
        self.assertEqual((0.9, 0.9), (rows["stencil/blur/t2/ratio"]["value"], rows["stencil/blur/t2/ratio"]["goal"]))
        self.assertEqual("openvino; 0.800 to 3.000, 3 rounds", rows["stencil/blur/t2/ratio"]["note"])
        self.assertEqual((1.5, None), (rows["stencil/blur/t2/O1-ratio"]["value"], rows["stencil/blur/t2/gcc-ratio"]["value"]))
        self.assertEqual((None, "wrong values: off by 1"), (rows["stencil/blur/t2/gcc"]["value"], rows["stencil/blur/t2/gcc"]["note"]))
        self.assertEqual([("gcc", "wrong values: off by 1", 1)], score.missing(list(rows.values())))

    def test_nothing_is_compared_with_nothing(self):
        for timed in ({}, {"prunerc": score.Timed([1])}, {"gcc": score.Timed([1])}, {"prunerc": score.Timed([], "no"), "gcc": score.Timed([1])}):
            rows = {row["name"]: row["value"] for row in score.rows_of("scan", "sums", 1, timed, ["gcc"], None)}
            self.assertIsNone(rows["scan/sums/t1/ratio"])
            self.assertNotIn("scan/sums/t1/limit", rows)
        self.assertEqual(["call/call_1x1/t1/prunerc", "call/call_1x1/t1/gcc"],
                         [row["name"] for row in score.rows_of("call", "call_1x1", 1, {"prunerc": score.Timed([1]), "gcc": score.Timed([1])}, ["gcc"], None)])

    def test_means_are_by_class_and_of_all(self):
        ratio = lambda name, value: score.row(name, value, "x", "")
        rows = [ratio("gemm/a/t1/ratio", 0.5), ratio("gemm/b/t1/ratio", 2.0), ratio("scan/c/t1/ratio", 8.0), ratio("scan/c/t2/ratio", 3.0),
                ratio("scan/d/t1/ratio", None), ratio("gemm/a/t1/O1-ratio", 1.5), ratio("gemm/a/t1/gcc-ratio", 9.0)]
        found = {row["name"]: row for row in score.means(rows)}
        self.assertEqual({"geomean/all/t1/ratio": 2.0, "geomean/gemm/t1/ratio": 1.0, "geomean/scan/t1/ratio": 8.0, "geomean/all/t2/ratio": 3.0,
                          "geomean/scan/t2/ratio": 3.0, "geomean/all/t1/O1-ratio": 1.5, "geomean/gemm/t1/O1-ratio": 1.5},
                         {name: round(row["value"], 5) for name, row in found.items()})
        self.assertEqual("3 operators, behind on 1; lowest 0.500, a; 1 more have no ratio", found["geomean/all/t1/ratio"]["note"])
        self.assertEqual("2 operators, behind on 1; lowest 0.500, a", found["geomean/gemm/t1/ratio"]["note"])
        self.assertEqual(score.GEOMEAN_GOAL, found["geomean/all/t1/ratio"]["goal"])
        self.assertEqual(list(score.means(rows)), list(score.means(rows + score.means(rows))), "means are no operators")


class Run(unittest.TestCase):
    def call(self, *arguments, **more):
        command = [sys.executable, os.path.join(SUITE, "suite.py"), "--prunerc", PRUNERC, *arguments]
        return subprocess.run(command, capture_output=True, text=True, **more)

    def test_it_lists_what_only_chooses(self):
        done = self.call("--list", "--only", "^scan/|tconv")
        self.assertEqual([row.name for row in table.ROWS if row.cls in ("scan", "transposed conv")], [line.split()[-1] for line in done.stdout.splitlines()])
        done = self.call("--suite", "algebra", "--list")
        self.assertEqual([row.name for row in table.ALGEBRA], [line.split()[-1] for line in done.stdout.splitlines()])

    def test_derived_programs_are_for_the_suite_that_has_them(self):
        folder = scratch(self)
        stub, asked = os.path.join(folder, "prunerc"), os.path.join(folder, "asked")
        with open(stub, "w", encoding="utf-8") as file:
            file.write(f"#!/bin/sh\necho \"$@\" >{asked}\necho '{{}}'\n")
        os.chmod(stub, 0o755)
        for name, is_derived in (("all", False), ("algebra", True)):
            options = types.SimpleNamespace(suite=name, prunerc=stub, db=os.path.join(folder, "none.db"), trials=2)
            with contextlib.redirect_stderr(io.StringIO()):
                suite.Prunerc(options, row_of("chain3"), 1, folder).tune()
            self.assertEqual(is_derived, "--algebra auto" in text_of(asked))

    def test_wrong_arguments_are_refused(self):
        for arguments, reason in ((["--only", "nothing"], "no such operator"), (["--only", "("], "--only"), (["--trials", "0"], "wants --db"),
                                  (["--suite", "algebra", "--network"], "wants --suite all"), (["--suite", "base"], "invalid choice")):
            done = self.call(*arguments)
            self.assertEqual((2, True), (done.returncode, reason in done.stderr), done.stderr)

    def test_ours_beside_gcc_and_on_from_there(self):
        folder = scratch(self)
        out, db = os.path.join(folder, "out.json"), os.path.join(folder, "tuned.db")
        arguments = ["--only", "scan/cumsum_c", "--threads", "1", "--rounds", "2", "--seconds", "0.01", "--trials", "2", "--db", db, "--json", out]
        done = self.call(*arguments, env=dict(os.environ, PRUNERC_COMMIT="0123456789ab"))
        self.assertEqual(0, done.returncode, done.stderr)
        with open(out, encoding="utf-8") as file:
            first = file.read()
        stored = json.loads(first)
        rows = {row["name"].removeprefix("scan/cumsum_columns_256x512/t1/"): row for row in stored["rows"]}
        for who in ("prunerc", "prunerc-O1", "gcc", "limit", "ratio", "O1-ratio"):
            self.assertGreater(rows[who]["value"], 0, who)
        for who in contestants.absent():
            self.assertIsNone(rows["absent/" + who]["value"])
        self.assertRegex(rows["ratio"]["note"], r"^\w+; [\d.]+ to [\d.]+, 2 rounds$")
        self.assertEqual(("cpu", "0123456789ab", [0]), (stored["bench"], stored["commit"], stored["seeds"]))
        self.assertRegex(stored["machine"], r", \d+ threads \([\w-]+\)$")
        again = self.call(*arguments, env=dict(os.environ, PRUNERC_COMMIT="0123456789ab"))
        self.assertEqual((0, "", done.stdout), (again.returncode, again.stderr, again.stdout), "nothing is measured twice")
        other = self.call(*arguments, env=dict(os.environ, PRUNERC_COMMIT="ba9876543210"))
        self.assertEqual((1, True), (other.returncode, "has another commit" in other.stderr), other.stderr)
        algebra = self.call("--suite", "algebra", *arguments[2:], env=dict(os.environ, PRUNERC_COMMIT="0123456789ab"))
        self.assertEqual((1, True), (algebra.returncode, "has another settings" in algebra.stderr), algebra.stderr)

    def test_a_contestant_rests_between_its_turns(self):
        row = row_of("cumsum_256x1024")
        one = suite.Contestant("gcc", row, 1, scratch(self))
        self.addCleanup(one.end)
        one.check()
        one.turn(0.01)
        end, state = time.monotonic() + 10, ""
        while state != "T" and time.monotonic() < end:
            state = text_of(f"/proc/{one.process.pid}/stat").rsplit(")", 1)[1].split()[0]
        self.assertEqual((1, "", "T"), (len(one.us), one.refused, state))

    def test_nobody_outlives_a_suite_that_is_killed(self):
        # A parent that starts one contestant, says its number and is killed.
        text = ("import sys, os; sys.path.insert(0, sys.argv[1]); import suite, table\n"
                "row = next(row for row in table.ROWS if row.name == 'cumsum_256x1024')\n"
                "one = suite.Contestant('gcc', row, 1, sys.argv[2])\n"
                "print(one.process.pid, flush=True); os.kill(os.getpid(), 9)")
        done = subprocess.run([sys.executable, "-c", text, SUITE, scratch(self)], capture_output=True, text=True)
        self.assertEqual(-9, done.returncode, done.stderr)
        stat, end = f"/proc/{int(done.stdout)}/stat", time.monotonic() + 10
        alive = lambda: text_of(stat).rsplit(")", 1)[1].split()[0] not in "ZX"
        while alive() and time.monotonic() < end:
            time.sleep(0.01)
        self.assertFalse(alive())

    def test_wrong_values_are_no_times(self):
        row = row_of("cumsum_256x1024")
        one = suite.Contestant("gcc", row, 1, scratch(self))
        self.addCleanup(one.end)
        one.ask = lambda line: {"deviation": 0.5, "allowed": 2e-4}
        one.check()
        one.turn(0.01)
        self.assertEqual(([], "wrong values: off by 0.5 of the largest"), (one.us, one.refused))

    def test_the_table_shows_the_lowest_ratio_first(self):
        rows = []
        for name, us in (("fast", 20), ("slow", 5)):
            rows += score.rows_of("scan", name, 1, {"prunerc": score.Timed([10]), "gcc": score.Timed([us])}, ["gcc"], 5)
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            suite.print_table(rows + score.means(rows), [score.row("absent/torch", None, "", "not installed: torch")])
        lines = printed.getvalue().splitlines()
        names = [line.split()[0] for line in lines if re.match("fast|slow", line)]
        self.assertEqual(["slow", "fast"], names)
        self.assertIn("without torch        all rows: not installed: torch", lines)


if __name__ == "__main__":
    unittest.main()
