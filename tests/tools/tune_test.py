#!/usr/bin/env python3
"""`prunerc tune`: what it prints, what it keeps, how it goes on and how it stops."""

import json
import os
import re
import signal
import sqlite3
import threading
import time

import command

SECONDS = ("build", "measure", "search", "learn", "verify", "total", "busy")
KEYS = (
    "schema", "op", "target", "seed", "timer", "best_ns", "gflops", "gbps", "limit_fraction", "trials", "stop", "verified",
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
        lost = self.prunerc(*tune, "--trials", "2", "--db", ":memory:").err
        self.assertIn("records go to memory and end with this command; --db FILE keeps them\n", lost)
        self.assertRegex(lost, r"(?m); Ctrl-C ends it$")
        open_end = self.prunerc(*tune, "--trials", "0", "--early-stop", "2", "--strategy", "random").err
        self.assertIn(", as many trials as there are candidates; ", open_end)
        self.assertIn("time: it ends once nothing new is found; Ctrl-C", open_end)

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
        wrong = self.prunerc("tune", "--replay", "d.pool", "--weights", "3,1", expect=2)
        self.assertIn("needs a number for each of 1 operators", wrong.err)
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

    def test_a_time_too_short_for_a_trial_is_said_where_a_record_is_there(self):
        self.prunerc("tune", self.ops, "--op", "dense", "--trials", "2")
        result = self.prunerc("tune", self.ops, "--op", "dense", "--time", "1ms", "--json")
        self.assertEqual(0, result.json()["trials"])
        self.assertIn("no time was left to measure 'dense' anew: give more --time", result.err)

    def test_time_is_a_deadline_for_verification_and_finals_too(self):
        start = time.monotonic()
        result = self.prunerc("tune", self.ops, "--op", "dense", "-D", "M=384,N=384,K=384", "--time", "4s", "--json")
        took = time.monotonic() - start
        self.assertTrue(result.json()["verified"])
        # Either in time, with slack for a machine that has other work, or it says by how much it was not.
        late = re.search(r"time: ([0-9.]+) s past the 4s of --time", result.err)
        self.assertLess(took, 4 + 2 + (float(late[1]) if late else 0), result.err)

    def test_an_operator_that_was_not_begun_in_time_is_named(self):
        # So large that a second verification is not expected to fit.
        ops = "".join(f"op {name}(A: f32[4000000]) -> (B: f32[4000000]) {{ B[i] = A[i] + {name.count('a')}; }}\n"
                      for name in ("a", "aa"))
        result = self.prunerc("tune", self.write("two.prn", ops), "--time", "1s", "--json", expect=3)
        self.assertRegex(result.err, "error: the time was over before a candidate of 'a+' was measured")
        self.assertIn("hint: more --time; the same command goes on", result.err)
        self.assertEqual(["time", "time"], [task["stop"] for task in result.json()["tasks"]])

    def test_integer_operators_have_rates_of_integer_operations(self):
        ops = self.write("int.prn", "op product<N=48>(A: i8[N,N], B: i8[N,N], s: f32) -> (C: f32[N,N]) {\n"
                                    "  let T[i,j] = sum[k] i32(A[i,k]) * i32(B[k,j]);\n  C[i,j] = f32(T[i,j]) * s;\n}\n")
        result = self.prunerc("tune", ops, "--trials", "2", "--threads", "1", "--json")
        # How fast integers are multiplied is known of matrix tiles alone.
        self.assertRegex(result.out, r"product: [0-9.]+ [num]s \([0-9.]+ GOP/s, [0-9.]+ GB/s(, [0-9]+% of the limit)?\), verified")
        task = result.json()
        self.assertEqual("% of the limit" in result.out, "+amx-int8" in task["machine"])
        operations = 2 * 48**3 + 48**2
        self.assertAlmostEqual(operations / task["best_ns"], task["gops"], delta=0.01 * task["gops"])
        self.assertAlmostEqual(48**2 / task["best_ns"], task["gflops"], delta=0.01 * task["gflops"])
        self.assertEqual("+amx-int8" in task["machine"], task["limit_fraction"] > 0)
        table = self.prunerc("bench", ops, "--threads", "1", "--samples", "3").out
        self.assertRegex(table, r" GOP/s +[0-9.]+ +\d+ +(-|[0-9]+%)")

    def test_what_is_stored_says_what_the_machine_was_like(self):
        self.prunerc("tune", self.ops, "--op", "dense", "--trials", "2", "--threads", "1")
        with sqlite3.connect(self.db) as db:
            rows = db.execute("select reference_ns, clock_ghz, load from record where status = 'ok'").fetchall()
        self.assertTrue(rows)
        for reference_ns, clock_ghz, load in rows:
            self.assertTrue(1e5 < reference_ns < 1e8, reference_ns)
            self.assertTrue(0.3 < clock_ghz < 10, clock_ghz)
            self.assertGreaterEqual(load, 0)

    def test_more_threads_than_cpus_are_refused(self):
        cpus = len(os.sched_getaffinity(0))
        for verb in (["tune", "--trials", "1"], ["run", "--input", "X=ones", "--input", "W=ones", "--input", "bias=ones"],
                     ["bench"], ["verify"], ["explain"]):
            arguments = [verb[0], self.ops, "--op", "dense", *verb[1:], "--threads", "999"]
            result = self.prunerc(*arguments, expect=2)
            self.assertRegex(result.err, r"error: option --threads: this process may use \d+ CPUs? of this machine, found 999")
            self.assertLessEqual(int(re.search(r"may use (\d+)", result.err)[1]), cpus)
        # What is made for another machine runs there.
        self.prunerc("compile", self.ops, "--op", "dense", "--target", "cpu:skylake-avx512", "--threads", "64", "-o", "d.s")

    def test_low_effort_measures_nothing(self):
        self.assertEqual(
            "dense: heuristic schedule, not measured\n", self.prunerc("tune", self.ops, "--op", "dense", "-O0").out
        )
        self.assertEqual(
            "dense: model schedule, not measured\n", self.prunerc("tune", self.ops, "--op", "dense", "-O1").out
        )

    def test_the_answer_of_low_effort_is_what_every_verb_can_use(self):
        told = self.prunerc("tune", self.ops, "--op", "dense", "-O1", "-v").err
        self.assertIn("nothing is stored", told)
        self.assertIn("by -O1", told)
        one = ["--op", "dense", "-O1"]
        trace = self.prunerc("show", self.ops, *one, "--stage", "trace").out
        self.assertIn(trace, told)
        self.assertEqual("model", self.prunerc("bench", self.ops, *one, "--samples", "3", "--json").json()["rows"][0]["schedule"])
        self.assertIn("dense (model): right", self.prunerc("verify", self.ops, *one, "--seeds", "1").out)
        self.assertIn("dense", self.prunerc("explain", self.ops, *one).out)
        inputs = ["--input", "X=ones", "--input", "W=ones", "--input", "bias=ones"]
        self.assertIn("using the model schedule", self.prunerc("run", self.ops, *one, *inputs).err)
        self.assertIn("schedule: model", self.prunerc("compile", self.ops, *one, "-o", "d.s").err)

    def test_records_for_other_threads_are_named(self):
        self.prunerc("tune", self.ops, "--op", "dense", "--trials", "2", "--threads", "1")
        two = ["--op", "dense", "--threads", "2"]
        note = r"note: a record of 'dense' exists for 1 thread \([0-9.]+ [num]s\): --threads 1 uses it"
        inputs = ["--input", "X=ones", "--input", "W=ones", "--input", "bias=ones"]
        for verb, code in ((["compile", "-o", "d.s"], 0), (["compile", "--require-tuned", "-o", "d.s"], 6), (["explain"], 0),
                           (["run", *inputs], 0), (["bench", "--samples", "3"], 0)):
            self.assertRegex(self.prunerc(verb[0], self.ops, *two, *verb[1:], expect=code).err, note)
        self.assertNotIn("note:", self.prunerc("bench", self.ops, "--op", "dense", "--threads", "1", "--samples", "3").err)
        other = self.prunerc("compile", self.ops, "--op", "dense", "--target", "cpu:skylake-avx512", "--threads", "1", "-o", "d.s").err
        self.assertRegex(other, r"note: a record of 'dense' exists for cpu .*, 1 thread \(")

    def test_the_random_strategy_works(self):
        task = self.prunerc("tune", self.ops, "--op", "dense", "--strategy", "random", "--trials", "3", "--json").json()
        self.check_task(task, "dense")

    def test_an_interrupt_says_what_is_left(self):
        for options, left in (
            (["--fresh"], "is kept: run the same command without --fresh to go on"),
            (["--db", ":memory:"], "ends with this command, --db FILE keeps it"),
        ):
            process = self.start("tune", self.ops, "--op", "dense", "-D", "M=64,N=64,K=64", "--trials", "100000", "--json", *options)
            # The plan comes before the search, which an interrupt ends; a line of progress is from within.
            deadline = threading.Timer(60, os.killpg, (process.pid, signal.SIGKILL))
            deadline.daemon = True
            deadline.start()
            for line in process.stderr:
                if line.startswith("tune cpu"):
                    break
            else:
                self.fail("no progress was shown")
            deadline.cancel()
            os.killpg(process.pid, signal.SIGINT)
            out, err = process.communicate(timeout=60)
            self.assertEqual(130, process.returncode, err)
            self.assertIn(f"interrupted; what was measured {left}\n", err)
            self.assertEqual("cancelled", json.loads(out.splitlines()[-1])["stop"])

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
