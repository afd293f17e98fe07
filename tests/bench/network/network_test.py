#!/usr/bin/env python3
"""Rows of networks, and who has no time; no engine and no compiler is needed."""

import contextlib
import io
import json
import os
import sys
import tempfile
import types
import unittest

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)

import network

network.facts.machine = lambda prunerc: "a machine"


def rows_of(*measured):
    return {row["name"]: row for row in network.result_rows(measured)}


class Rows(unittest.TestCase):
    def test_ratios_are_by_round_beside_the_better_engine(self):
        times = {"prunerc": [1e6, 2e6, 1e6], "tasks": [1e6, 1e6, 1e6], "onnxruntime": [3e6, 9e6, 3e6], "openvino": [2e6, 8e6, 2e6]}
        rows = rows_of(("a/m.onnx@n=1", 2, times, "outputs as ONNX Runtime's", "", {"openvino"}))
        self.assertEqual((True, False), (rows["m/t2/ratio"]["noisy"], rows["m/t2/onnxruntime"]["noisy"]))
        self.assertEqual((2.0, "2.000 to 4.000 by round"), (rows["m/t2/ratio"]["value"], rows["m/t2/ratio"]["note"]))
        self.assertEqual("1 to 2 ms, rounds; outputs as ONNX Runtime's", rows["m/t2/prunerc"]["note"])
        self.assertEqual((1.0, 1.05), (rows["m/t2/whole_over_tasks"]["value"], rows["m/t2/whole_over_tasks"]["goal"]))
        self.assertEqual("3 to 9 ms, rounds", rows["m/t2/onnxruntime"]["note"])
        self.assertEqual((2.0, "1 of 1 networks; median 2.00; behind on 0"), (rows["geomean/t2"]["value"], rows["geomean/t2"]["note"]))

    def test_a_network_that_fails_stays_in_sight(self):
        good = ("good.onnx", 1, {"prunerc": [1e6], "openvino": [2e6]}, "", "", set())
        rows = rows_of(good, ("bad.onnx", 1, {"openvino": [2e6]}, "", "wrong values: y[0] is 1", set()))
        self.assertEqual((None, "wrong values: y[0] is 1"), (rows["bad/t1/prunerc"]["value"], rows["bad/t1/prunerc"]["note"]))
        self.assertNotIn("bad/t1/ratio", rows)
        self.assertEqual("1 of 2 networks; median 2.00; behind on 0", rows["geomean/t1"]["note"])

    def test_a_file_is_whole_or_not_there(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "out.json")
            network.write(path, network.result_rows([("m.onnx", 1, {"prunerc": [1e6]}, "", "", set())]))
            with open(path, encoding="utf-8") as file:
                self.assertEqual("network", json.load(file)["bench"])
            self.assertEqual(["out.json"], os.listdir(folder))

    def test_a_file_is_gone_on_with(self):
        before = network.result_rows([(name, 1, {"prunerc": [1e6], "openvino": [2e6]}, "", "", set()) for name in ("a.onnx", "b.onnx")])
        rows = network.result_rows([("b.onnx", 1, {"prunerc": [1e6], "openvino": [8e6]}, "", "", set())], before)
        self.assertEqual([("a/t1/ratio", 2.0), ("b/t1/ratio", 8.0)], [(one["name"], one["value"]) for one in rows if one["name"].endswith("ratio")])
        self.assertEqual([("geomean/t1", 4.0)], [(one["name"], one["value"]) for one in rows if one["name"].startswith("geomean")])
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "out.json")
            network.write(path, rows)
            self.assertEqual(rows, network.rows_before(path))
            self.addCleanup(setattr, network.facts, "machine", network.facts.machine)
            network.facts.machine = lambda prunerc: "another"
            with self.assertRaises(SystemExit) as ended:
                network.rows_before(path)
            self.assertIn("another machine", ended.exception.code)


class Quiet(unittest.TestCase):
    def tries(self, loads, times):
        """Others' CPU seconds and our ns of each try."""
        clock, answers = [0.0], iter(times)
        loads = iter(loads)
        def turn():
            clock[0] += next(loads)
            return next(answers)
        self.addCleanup(setattr, network, "others_seconds", network.others_seconds)
        network.others_seconds = lambda: clock[0]
        return network.quiet(turn, lambda ns: ns)

    def test_a_turn_is_repeated_until_others_are_quiet(self):
        self.assertEqual((9, False), self.tries([50, 0], [5, 9]))
        self.assertEqual((5, True), self.tries([50, 50, 50], [7, 5, 6]))
        self.assertEqual((None, False), self.tries([50], [None]))


class Measured(unittest.TestCase):
    def measure(self, ours, peers, verdict=("", "")):
        """ours: (row, why not) by round; peers: {name: ns by round}."""
        ours, peers = iter(ours), {name: iter(times) for name, times in peers.items()}
        for name, stub in (("checked", lambda *_: verdict), ("time_ours", lambda *_: next(ours)), ("time_peer", lambda name, *_: next(peers[name]))):
            self.addCleanup(setattr, network, name, getattr(network, name))
            setattr(network, name, stub)
        return network.measure(types.SimpleNamespace(rounds=2, peers=list(peers)), "m.onnx", 1)

    def test_who_fails_in_one_round_has_no_time(self):
        row = {"median_ns": 5, "sum_alone_ns": 4}
        times, _, refused, _ = self.measure([(row, ""), (row, "")], {"onnxruntime": [7, None], "openvino": [8, 9]})
        self.assertEqual(({"prunerc": [5, 5], "tasks": [4, 4], "openvino": [8, 9]}, ""), (times, refused))
        times, _, refused, _ = self.measure([(row, ""), (None, "exit 1")], {"openvino": [8, 9]})
        self.assertEqual(({"openvino": [8, 9]}, "exit 1"), (times, refused))

    def test_wrong_values_have_no_time(self):
        times, _, refused, _ = self.measure([], {"openvino": [8, 9]}, ("", "wrong values: y[0] is 1"))
        self.assertEqual(({"openvino": [8, 9]}, "wrong values: y[0] is 1"), (times, refused))

    def test_wholes_are_not_compared_with_tasks_of_some_rounds(self):
        tuned, untuned = {"median_ns": 5, "sum_alone_ns": 4}, {"median_ns": 5, "sum_alone_ns": 0}
        times, _, _, _ = self.measure([(tuned, ""), (untuned, "")], {})
        self.assertEqual({"prunerc": [5, 5]}, times)


class Checked(unittest.TestCase):
    def answer(self, stdout, stderr="", recorded=("0", "")):
        for name, stub in (("run_engine", lambda *_: recorded), ("prunerc", lambda *_: types.SimpleNamespace(stdout=stdout, stderr=stderr))):
            self.addCleanup(setattr, network, name, getattr(network, name))
            setattr(network, name, stub)
        return network.checked(types.SimpleNamespace(o1=True, db=None), "m.onnx@n=1", 1)

    def test_a_verdict_is_of_what_was_recorded(self):
        verdict = lambda what, recorded: json.dumps({"verdict": what, "recorded": recorded, "difference": "y[0] is 1", "sensitivity": []})
        self.assertEqual(("outputs as ONNX Runtime's", ""), self.answer(verdict("right", 1)))
        self.assertEqual(("outputs not compared with ONNX Runtime's", ""), self.answer(verdict("right", 0)))
        self.assertEqual(("", "wrong values: y[0] is 1"), self.answer(verdict("wrong", 0)))
        self.assertEqual(("outputs not compared: no such file", ""), self.answer("", "no such file\n"))
        self.assertEqual(("outputs not compared: ONNX Runtime: no module", ""), self.answer("", recorded=(None, "no module")))

    def test_who_is_sensitive_to_roundings_is_not_called_right(self):
        def verdict(what, recorded, *of_largest):
            sensitivity = [{"tensor": "y", "deviation": 1, "of_largest": part} for part in of_largest]
            return json.dumps({"verdict": what, "recorded": recorded, "difference": "", "sensitivity": sensitivity})
        self.assertEqual(("outputs as ONNX Runtime's within what roundings change (y: 1.2% of its largest)", ""),
                         self.answer(verdict("within sensitivity", 1, 0.012)))
        words = "outputs not verifiable, since roundings change them (y: 40% of its largest, y: unknown of its largest)"
        self.assertEqual((words, ""), self.answer(verdict("not verifiable", 1, 0.4, None)))
        self.assertEqual((words + ", and not compared with ONNX Runtime's", ""), self.answer(verdict("not verifiable", 0, 0.4, None)))
        self.assertEqual("wrong values: ", self.answer(verdict("another", 1))[1])


class Arguments(unittest.TestCase):
    def test_the_reason_is_the_error_and_not_its_hint(self):
        self.assertEqual("no such operator", network.reason_of("warning: x\nerror: no such\n  operator\nhint: --partial\n"))
        self.assertEqual("no message", network.reason_of(""))

    def fails_with(self, path):
        self.addCleanup(setattr, network, "measure", network.measure)
        self.addCleanup(setattr, sys, "argv", sys.argv)
        network.measure = lambda *_: ({}, "", "exit 1", set())
        sys.argv = ["network.py", "MODEL.onnx", "--threads", "1", "--json", path]
        with self.assertRaises(SystemExit) as ended, contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            network.main()
        self.assertEqual("network: ours has no time of 1 of 1", ended.exception.code)

    def test_nothing_is_written_where_nothing_ran(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "out.json")
            self.fails_with(path)
            self.assertEqual([], os.listdir(folder))
            network.write(path, network.result_rows([("m.onnx", 1, {"prunerc": [1e6]}, "", "", set())]))
            self.fails_with(path)
            self.assertEqual(["m/t1/prunerc", "MODEL/t1/prunerc"], [row["name"] for row in network.rows_before(path)])


if __name__ == "__main__":
    unittest.main()
