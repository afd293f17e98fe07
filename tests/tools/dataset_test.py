#!/usr/bin/env python3
"""`prunerc dataset`: pools that are recorded, go on after a kill, are looked into and exported."""

import json
import os
import signal
import time

import command


class Dataset(command.CommandTest):
    def record(self, out, *more, expect=0):
        return self.prunerc("dataset", "record", self.ops, "--op", "dense", "--threads", "1", "--out", out, *more,
                            expect=expect)

    def exported(self, *pools):
        lines = self.prunerc("dataset", "export", *pools).out.splitlines()
        return [json.loads(line) for line in lines]

    def test_a_pool_has_what_was_asked_for(self):
        result = self.record("dense.pool", "--candidates", "24")
        self.assertRegex(result.out, r"^dense.pool: 24 candidates of dense in .*, best [0-9.]+ [num]s; complete\n$")
        header, *rows = self.exported("dense.pool")
        self.assertEqual("prunerc.pool/1", header["schema"])
        self.assertEqual("dense", header["op"])
        self.assertEqual(24, header["rows"])
        self.assertEqual(24, len(rows))
        self.assertIn("op dense", header["op_text"])
        names = {sketch["name"] for sketch in header["sketches"]}
        for row in rows:
            self.assertIn(row["sketch"], names)
            self.assertIn(row["origin"], ("uniform", "searched"))
            if row["status"] == "ok":
                self.assertGreater(row["median_ns"], 0)
                self.assertGreater(row["samples"], 0)
                # All are among the best fifty.
                self.assertTrue(row["final"] and row["verified"], row)
        self.assertLess(os.path.getsize(self.path("dense.pool")), 40_000)

    def test_a_pool_is_not_overwritten_and_goes_on(self):
        self.record("p.pool", "--candidates", "8")
        self.assertIn("--resume goes on with it", self.record("p.pool", "--candidates", "8", expect=2).err)
        first = self.exported("p.pool")
        self.record("p.pool", "--candidates", "16", "--resume")
        second = self.exported("p.pool")
        self.assertEqual(17, len(second))
        self.assertEqual([row["decisions"] for row in first[1:]], [row["decisions"] for row in second[1:9]])
        other = self.prunerc("dataset", "record", self.ops, "--op", "dense", "-D", "M=17", "--threads", "1", "--out",
                             "p.pool", "--resume", expect=1)
        self.assertIn("the pool 'dense' was recorded with another operator: ", other.err)

    def test_the_best_are_measured_again(self):
        self.record("r.pool", "--candidates", "16")
        first = self.exported("r.pool")
        out = self.prunerc("dataset", "remeasure", "r.pool", "--threads", "1", "--best", "3", "--within", "0", "--turns", "2").out
        self.assertRegex(out, r"^r.pool: 3 rows in 2 turns, best [0-9.]+ [num]s; what was the best takes [0-9.]+ times as long\n$")
        second = self.exported("r.pool")
        self.assertEqual(first[0], second[0])
        changed = [a for a, b in zip(first[1:], second[1:]) if a != b]
        self.assertEqual(3, len(changed))
        times = sorted(row["median_ns"] for row in first[1:] if row["status"] == "ok")
        self.assertEqual(times[:3], sorted(row["median_ns"] for row in changed))
        kept = ("sketch", "decisions", "origin", "status", "seconds", "final", "verified")
        for a, b in zip(first[1:], second[1:]):
            self.assertEqual([a[key] for key in kept], [b[key] for key in kept])
        before = open(self.path("r.pool"), "rb").read()
        other = self.prunerc("dataset", "remeasure", "r.pool", "--threads", "2", expect=1)
        self.assertIn("the pool 'dense' was recorded with another target: ", other.err)
        self.assertIn("cannot read", self.prunerc("dataset", "remeasure", "none.pool", expect=5).err)
        self.assertIn("--turns", self.prunerc("dataset", "remeasure", "r.pool", "--turns", "0", expect=2).err)
        self.assertEqual(before, open(self.path("r.pool"), "rb").read())

    def test_a_kill_loses_a_batch_at_most(self):
        arguments = ["dataset", "record", self.ops, "--op", "dense", "--threads", "1", "--out", "k.pool",
                     "--candidates", "100000", "--resume"]
        process = self.start(*arguments)
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline and not os.path.exists(self.path("k.pool")):
            time.sleep(0.05)
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate(timeout=60)
        kept = len(self.exported("k.pool"))
        self.assertGreater(kept, 8)
        arguments[-2] = str(kept + 16)
        self.prunerc(*arguments)
        self.assertEqual(kept + 17, len(self.exported("k.pool")))

    def test_an_interrupt_and_a_time_limit_end_in_order(self):
        result = self.record("t.pool", "--candidates", "100000", "--time", "1s")
        self.assertIn("run the same command with --resume to go on", result.out)
        self.assertGreater(len(self.exported("t.pool")), 1)

    def test_several_operators_go_into_a_folder(self):
        arguments = ["dataset", "record", self.ops, "--candidates", "3", "--threads", "1", "--out"]
        self.assertIn("give a folder", self.prunerc(*arguments, "x.pool", expect=2).err)
        self.prunerc(*arguments, "pools/")
        names = sorted(os.listdir(self.path("pools")))
        self.assertEqual(["dense.pool", "linear.pool", "scale.pool", "total.pool", "widen.pool"], names)
        listed = self.prunerc("dataset", "list", *[f"pools/{name}" for name in names]).out
        self.assertEqual(6, len(listed.splitlines()))
        self.assertRegex(listed, r"pools/dense.pool +dense ")

    def test_statistics_say_what_is_in_a_pool(self):
        self.record("s.pool", "--candidates", "20")
        out = self.prunerc("dataset", "stats", "s.pool").out
        for part in ("rows      20 (", "outcomes  ", "uniform", "50%: ", "sketch ", "drawn", "timer     CLOCK_MONOTONIC"):
            self.assertIn(part, out)

    def test_what_another_autotuner_measured_becomes_a_pool(self):
        arguments = ["dataset", "import", "--t4", os.path.abspath("tools/examples/convolution_t4.json"), "-o", "c.pool"]
        refused = self.prunerc(*arguments, expect=1).err
        self.assertIn("no GPU is known as ''", refused)
        self.assertIn("--device names the GPU", refused)
        done = self.prunerc(*arguments, "--device", "cuda:a100-40").out
        self.assertIn("c.pool: 10 configurations of convolution on cuda:sm_80", done)
        self.assertIn("9 ok, 1 run error", done)
        self.assertIn("shared+padding", self.prunerc("dataset", "stats", "c.pool").out)
        self.prunerc("dataset", "export", "c.pool", "-o", "c.jsonl")
        wrong = ["dataset", "import", "--t4", self.path("c.jsonl"), "-o", "d.pool"]
        self.assertIn("cannot be taken: it is no JSON", self.prunerc(*wrong, expect=1).err)

    def test_damaged_files_are_errors(self):
        self.record("d.pool", "--candidates", "4")
        with open(self.path("d.pool"), "r+b") as file:
            file.seek(60)
            file.write(b"\0\0\0\0")
        for verb in ("stats", "list", "export"):
            self.assertIn("the pool 'd.pool' is damaged: ", self.prunerc("dataset", verb, "d.pool", expect=5).err)
        self.assertIn("cannot read", self.prunerc("dataset", "stats", "none.pool", expect=5).err)


if __name__ == "__main__":
    command.main()
