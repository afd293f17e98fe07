#!/usr/bin/env python3
"""`prunerc tune`: what it prints, what it keeps, how it goes on and how it stops."""

import os
import signal
import sqlite3
import time

import command

SECONDS = ("build", "measure", "search", "learn", "verify", "total", "busy")
KEYS = (
    "schema", "op", "target", "seed", "timer", "best_ns", "gflops", "gbps", "limit_fraction", "trials", "verified",
    "seconds", "failures", "repro",
)


class Tune(command.CommandTest):
    def records(self):
        with sqlite3.connect(self.db) as db:
            return db.execute("select count(*) from record").fetchone()[0]

    def check_task(self, task, op):
        for key in KEYS:
            self.assertIn(key, task)
        self.assertEqual(op, task["op"])
        self.assertEqual("prunerc.tune/1", task["schema"])
        self.assertGreater(task["best_ns"], 0)
        self.assertGreaterEqual(task["limit_fraction"], 0)
        self.assertIs(True, task["verified"])
        for key in SECONDS:
            self.assertGreaterEqual(task["seconds"][key], 0)
        self.assertLessEqual(task["seconds"]["busy"], task["seconds"]["total"])

    def test_the_result_is_on_stdout_and_the_table_on_stderr(self):
        result = self.prunerc("tune", self.ops, "--op", "dense", "--trials", "4", "--seed", "3")
        self.assertRegex(result.out, r"^dense: [0-9.]+ [num]s \(.* GFLOP/s, .*\), verified: .*\n$")
        for part in ("target: cpu", "GFLOP/s", "tuning time: search", "candidates: ", "repro: prunerc tune "):
            self.assertIn(part, result.err)
        self.assertNotIn("\x1b", result.err)

    def test_the_plan_comes_first_and_fits_four_lines(self):
        fresh = self.with_variables({"XDG_CACHE_HOME": self.path("fresh")})
        tune = ["tune", self.ops, "--op", "dense", "-D", "M=8"]
        lines = self.prunerc(*tune, "--trials", "2", env=fresh).err.splitlines()
        for line, wanted in zip(lines, (
            f"measuring this machine, .*kept in {self.path('fresh')}/prunerc",
            r"target: cpu .* \d+ thread\(s\)",
            f"plan: dense M=8 by strategy pruner, 2 trials; records go to {self.db}",
            r"time: about \d+ s: one trial of dense takes \d+\.\d+ s; Ctrl-C ends it and keeps what was measured",
        )):
            self.assertRegex(line, f"^{wanted}")
        again = self.prunerc(*tune, "--time", "1s", env=fresh).err
        self.assertNotIn("measuring", again)
        self.assertIn("as many trials as the time allows", again)
        self.assertIn("time: it ends after 1s; Ctrl-C", again)

    def test_quiet_leaves_results_alone(self):
        result = self.prunerc("tune", self.ops, "--op", "dense", "--trials", "2", "--quiet", "--json")
        self.assertEqual("", result.err)
        self.assertRegex(result.out.splitlines()[0], "^dense: ")
        self.check_task(result.json(), "dense")

    def test_json_is_the_last_line_and_has_every_key(self):
        task = self.prunerc("tune", self.ops, "--op", "dense", "--trials", "4", "--json", "--threads", "1").json()
        self.check_task(task, "dense")
        self.assertEqual(4, task["trials"])
        self.assertIsInstance(task["failures"], dict)
        self.assertNotIn("ok", task["failures"])
        self.assertIn("--op dense", task["repro"])
        self.assertIn("--seed 0", task["repro"])
        self.assertIn("--threads 1", task["repro"])

    def test_the_repro_line_runs_as_it_is(self):
        first = self.prunerc("tune", self.ops, "--op", "dense", "-D", "M=8,N=16", "--trials", "2", "--json").json()
        words = first["repro"].split()
        self.assertEqual("prunerc", words[0])
        again = self.prunerc(*words[1:], "--json").json()
        self.assertEqual(first["trials"], again["trials"])
        self.assertEqual(first["repro"], again["repro"])

    def test_several_operators_give_a_list_and_a_total(self):
        two = "op a(A: f32[32]) -> (B: f32[32]) { B[i] = A[i] * 2; }\nop b(A: f32[48]) -> (B: f32[48]) { B[i] = A[i] + 1; }\n"
        result = self.prunerc("tune", self.write("two.prn", two), "--trials", "2", "--json").json()
        self.assertEqual("prunerc.tune/1", result["schema"])
        self.assertEqual(["a", "b"], [task["op"] for task in result["tasks"]])
        for task in result["tasks"]:
            self.check_task(task, task["op"])
        total = sum(task["best_ns"] for task in result["tasks"])
        self.assertAlmostEqual(total, result["total_weighted_ns"], delta=1e-6 * total)

    def test_several_files_share_trials_and_weights(self):
        one = self.write("one.prn", "op a<N=32>(A: f32[N]) -> (B: f32[N]) { B[i] = A[i] * 2; }\n")
        two = self.write("two.prn", "op b<M=48>(A: f32[M]) -> (B: f32[M]) { B[i] = A[i] + 1; }\n")
        result = self.prunerc("tune", one, two, "--weights", "3,1", "--trials", "4", "-D", "N=64", "--json").json()
        self.assertEqual(["a", "b"], [task["op"] for task in result["tasks"]])
        self.assertEqual(8, sum(task["trials"] for task in result["tasks"]))
        total = 3 * result["tasks"][0]["best_ns"] + result["tasks"][1]["best_ns"]
        self.assertAlmostEqual(total, result["total_weighted_ns"], delta=1e-6 * total)
        wrong = self.prunerc("tune", one, two, "--weights", "3", expect=2)
        self.assertIn("needs a number for each of 2 operators", wrong.err)

    def test_a_net_is_tuned_as_a_list_with_weights(self):
        net = self.write("net.prn", "op s<N=32>(A: f32[N]) -> (B: f32[N]) { B[i] = A[i] * 2; }\n"
                                    "net n { 5 * s<N=64> as large; s; }\n")
        result = self.prunerc("tune", net, "--trials", "2", "--json").json()
        self.assertEqual(["large", "s"], [task["op"] for task in result["tasks"]])
        total = 5 * result["tasks"][0]["best_ns"] + result["tasks"][1]["best_ns"]
        self.assertAlmostEqual(total, result["total_weighted_ns"], delta=1e-6 * total)
        listed = self.prunerc("tune", os.path.join(os.environ["TEST_SRCDIR"], os.environ["TEST_WORKSPACE"],
                                                   "tools/std/nets/resnet50.prn"), "-O0").out
        self.assertEqual(27, len(listed.splitlines()))

    def test_every_strategy_replays_a_pool_without_a_device(self):
        self.prunerc("dataset", "record", self.ops, "--op", "dense", "--threads", "1", "--candidates", "60",
                     "--out", "d.pool")
        for strategy in ("pruner", "pruner-paper", "pruner-release", "random", "grid", "evolution", "ansor", "metaschedule"):
            arguments = ("tune", "--replay", "d.pool", "--strategy", strategy, "--trials", "24", "--seed", "5", "-v")
            first = self.prunerc(*arguments)
            self.assertRegex(first.out, r"^dense: [0-9.]+ [num]s ", strategy)
            choices = [line for line in first.err.splitlines() if line.startswith(("ask ", "tell "))]
            self.assertEqual(48, len(choices))
            again = self.prunerc(*arguments).err.splitlines()
            self.assertEqual(choices, [line for line in again if line.startswith(("ask ", "tell "))], strategy)
        result = self.prunerc("tune", "--replay", "d.pool", "--strategy", "grid", "--trials", "1000", "--json").json()
        self.assertEqual(60, result["trials"])
        self.assertEqual("recorded", result["timer"])
        self.assertEqual(3, len(result["curve"][0]))
        self.assertIn("tune --replay d.pool", result["repro"])
        self.assertEqual(0, os.path.exists(self.db) and self.records())

    def test_a_second_run_goes_on_and_fresh_starts_anew(self):
        arguments = ["tune", self.ops, "--op", "dense", "--json"]
        first = self.prunerc(*arguments, "--trials", "4").json()
        self.assertEqual(0, first["reused"])
        kept = self.records()
        self.assertGreaterEqual(kept, 4)
        second = self.prunerc(*arguments, "--trials", "4").json()
        self.assertGreater(second["reused"], 0)
        self.assertLessEqual(second["best_ns"], 1.5 * first["best_ns"])
        before = self.records()
        third = self.prunerc(*arguments, "--trials", "4", "--fresh").json()
        self.assertEqual(0, third["reused"])
        # What was there stays.
        self.assertGreater(self.records(), before)

    def test_time_is_a_limit(self):
        start = time.monotonic()
        task = self.prunerc("tune", self.ops, "--op", "dense", "--time", "1s", "--json").json()
        self.assertGreater(task["trials"], 0)
        self.assertLess(time.monotonic() - start, 30)

    def test_low_effort_measures_nothing(self):
        self.assertEqual(
            "dense: heuristic schedule, not measured\n", self.prunerc("tune", self.ops, "--op", "dense", "-O0").out
        )
        self.assertEqual(
            "dense: model schedule, not measured\n", self.prunerc("tune", self.ops, "--op", "dense", "-O1").out
        )

    def test_the_random_strategy_works(self):
        task = self.prunerc("tune", self.ops, "--op", "dense", "--strategy", "random", "--trials", "3", "--json").json()
        self.check_task(task, "dense")

    def test_an_interrupt_keeps_every_record(self):
        process = self.start("tune", self.ops, "--op", "dense", "-D", "M=64,N=64,K=64", "--trials", "100000")
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            try:
                if self.records() > 0:
                    break
            except sqlite3.Error:
                pass  # not made yet
            time.sleep(0.05)
        # To the whole group, as a terminal does.
        os.killpg(process.pid, signal.SIGINT)
        out, err = process.communicate(timeout=60)
        self.assertEqual(130, process.returncode, err)
        self.assertIn("run the same command to go on", err)
        self.assertIn("repro: ", err)
        kept = self.records()
        self.assertGreater(kept, 0)
        self.prunerc("db", "validate")
        again = self.prunerc(
            "tune", self.ops, "--op", "dense", "-D", "M=64,N=64,K=64", "--trials", "1", "--json"
        ).json()
        self.assertGreater(again["reused"], 0)
        self.assertGreaterEqual(self.records(), kept)


if __name__ == "__main__":
    command.main()
