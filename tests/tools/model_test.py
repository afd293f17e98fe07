#!/usr/bin/env python3
"""`prunerc model` and `dataset split` and `prune`: from pools to a checkpoint, its quality, its use, and what is refused."""

import json
import os

import command


class Model(command.CommandTest):
    def read(self, name):
        with open(self.path(name), "rb") as file:
            return file.read()

    def pools(self):
        out = []
        for op in ("dense", "scale", "total"):
            name = self.path(op + ".pool")
            self.prunerc("dataset", "record", self.ops, "--op", op, "--threads", "1", "--candidates", "24", "--out", name)
            out.append(name)
        return out

    def train(self, *data, out="m.model", kind="pacm"):
        return self.prunerc("model", "train", *data, "--model", kind, "--epochs", "2", "--members", "1", "-o", self.path(out))

    def test_a_model_is_trained_judged_used_and_exported(self):
        pools = self.pools()
        self.prunerc("dataset", "split", *pools, "--by", "within-task", "--share", "0.3", "-o", self.path("rows.json"))
        rows = json.loads(self.read("rows.json"))
        self.assertEqual("prunerc.rows/1", rows["schema"])
        self.assertEqual(["dense", "scale", "total"], [pool["op"] for pool in rows["pools"]])
        for pool in rows["pools"]:
            self.assertFalse(set(pool["train"]) & set(pool["test"]))
            self.assertTrue(pool["train"] and pool["test"])
        self.prunerc("dataset", "split", *pools, "--hold", "dense", "-o", self.path("by_task.json"))
        for pool in json.loads(self.read("by_task.json"))["pools"]:
            self.assertEqual(pool["op"] == "dense", bool(pool["test"]), "whole tasks are held out where nothing else is said")
            self.assertNotEqual(bool(pool["train"]), bool(pool["test"]))
        pruned = self.prunerc("dataset", "prune", self.path("rows.json"), "--keep", "0.5", "-o", self.path("half.json"))
        self.assertRegex(pruned.out, r"half.json: \d+ rows train, \d+ test, of \d+\n$")
        # Of whole pools, under any name: what is left out tests, and both commands go together.
        self.prunerc("dataset", "prune", *pools, "--keep", "0.5", "-o", self.path("half.rows"))
        for pool in json.loads(self.read("half.rows"))["pools"]:
            self.assertFalse(set(pool["train"]) & set(pool["test"]))
            self.assertEqual(pool["rows"], len(pool["train"]) + len(pool["test"]))
        self.assertRegex(self.train(self.path("half.rows")).out, r"m.model: pacm of 1 member\(s\), \d+ programs, ")
        self.assertRegex(self.train(self.path("rows.json")).out, r"m.model: pacm of 1 member\(s\), \d+ programs, ")
        first = self.read("m.model")
        self.train(self.path("rows.json"))
        self.assertEqual(first, self.read("m.model"), "the same data and seed give the same model")
        judged = self.prunerc("model", "eval", self.path("m.model"), self.path("rows.json"), "--json").json()
        # A task with a single row in the test is no order.
        self.assertGreaterEqual(len(judged["tasks"]), 2)
        for field in ("top1", "top5", "pairwise"):
            self.assertTrue(0 < judged[field] <= 1, judged)
        self.assertLessEqual(judged["top1"], judged["top5"])
        self.assertIn("mean of ", self.prunerc("model", "eval", self.path("m.model"), *pools).out)
        self.prunerc("model", "export", self.path("m.model"), "-o", self.path("out"))
        text = json.loads(self.read("out/model.json"))
        self.assertEqual("pacm", text["kind"])
        self.assertEqual(1, len(text["platforms"]))
        for tensor in text["members"][0]:
            _, shape, values = command.read_npy(self.path("out/" + tensor["file"]))
            self.assertEqual(tuple(tensor["shape"]), shape)
            self.assertTrue(all(abs(v) < 1e6 for v in values))
        for strategy in ("pruner", "moa-pruner", "pruner-offline"):
            tuned = self.prunerc("tune", "--replay", pools[0], "--strategy", strategy, "--checkpoint",
                                 self.path("m.model"), "--trials", "20", "--json").json()
            self.assertGreater(tuned["best_ns"], 0)

    def test_a_model_says_what_it_was_trained_on(self):
        pools = [self.path("one.pool"), self.path("two.pool")]
        for threads, name in zip(("1", "2"), pools):
            self.prunerc("dataset", "record", self.ops, "--op", "dense", "--threads", threads, "--candidates", "16", "--out", name)
        rows = [self.path("first.json"), self.path("second.json")]
        held = []
        for pool, name in zip(pools, rows):
            self.train(pool)
            held.append(self.platforms("m.model")[0])
            self.prunerc("dataset", "split", *pools, "--by", "by-target", "--hold", held[-1], "-o", name)
        self.assertTrue(held[0].endswith("/1") and held[1].endswith("/2"), held)
        self.train(rows[1])
        self.assertEqual(held[:1], self.platforms("m.model"), "not on what tests")
        more = self.prunerc("model", "train", rows[0], "--from", self.path("m.model"), "--epochs", "1", "-o", self.path("n.model"))
        self.assertIn("too few held-out ones to compare", more.out)
        self.assertEqual(held, self.platforms("n.model"))
        refused = self.prunerc("model", "train", rows[0], "--from", self.path("m.model"), "--members", "2", "-o", self.path("x"), expect=2)
        self.assertIn("m.model' has 1", refused.err)

    def platforms(self, name):
        self.prunerc("model", "export", self.path(name), "-o", self.path("exported"))
        return json.loads(self.read("exported/model.json"))["platforms"]

    def test_offline_baselines_run_on_their_models(self):
        pools = self.pools()[:1]
        for kind, strategy in (("tenset-mlp", "tenset-offline"), ("tlp", "tlp-offline"), ("pacm-paper", "moa-pruner-paper")):
            self.train(*pools, out=kind, kind=kind)
            tuned = self.prunerc("tune", "--replay", pools[0], "--strategy", strategy, "--checkpoint", self.path(kind),
                                 "--trials", "16", "--json").json()
            self.assertGreater(tuned["best_ns"], 0)
            missing = self.prunerc("tune", "--replay", pools[0], "--strategy", strategy, "--trials", "4", expect=None)
            self.assertIn("needs a trained " + kind, missing.err)
            self.assertNotEqual(0, missing.code)

    def test_what_is_no_model_or_no_data_is_refused(self):
        pools = self.pools()[:1]
        self.assertIn("gpt not in {pacm,", self.prunerc("model", "train", *pools, "--model", "gpt", "-o", self.path("x"), expect=2).err)
        self.assertFalse(os.path.exists(self.path("x")))
        self.train(*pools)
        data = self.read("m.model")
        with open(self.path("cut.model"), "wb") as out:
            out.write(data[: len(data) // 2])
        self.assertIn("is damaged", self.prunerc("model", "eval", self.path("cut.model"), *pools, expect=1).err)
        self.assertIn("is damaged", self.prunerc("tune", "--replay", *pools, "--strategy", "pruner", "--checkpoint",
                                                 self.path("cut.model"), expect=None).err)
        wrong = self.prunerc("tune", "--replay", *pools, "--strategy", "tlp-offline", "--checkpoint",
                             self.path("m.model"), expect=None)
        self.assertIn("is a pacm, wanted is a tlp", wrong.err)
        self.assertIn("is a pacm", self.prunerc("model", "train", *pools, "--model", "tlp", "--from", self.path("m.model"),
                                                "-o", self.path("y"), expect=2).err)
        bad = self.write("bad.json", "{}")
        self.assertIn("cannot be used", self.prunerc("model", "train", bad, "-o", self.path("z"), expect=1).err)
        self.assertIn("cannot", self.prunerc("model", "eval", self.path("none.model"), *pools, expect=None).err)
        self.prunerc("model", "train", expect=2)
        for words, said in ((("--hold", "denes"), "cannot hold out 'denes'"), (("--by", "by-target"), "nothing tests"),
                            (("--share", "1", "--by", "within-task"), "nothing trains")):
            self.assertIn(said, self.prunerc("dataset", "split", *pools, *words, "-o", self.path("rows.json"), expect=1).err)
        self.assertFalse(os.path.exists(self.path("rows.json")))
        twice = self.prunerc("dataset", "split", pools[0], pools[0], "--by", "within-task", "-o", self.path("rows.json"), expect=1)
        self.assertIn("is named twice", twice.err)
        self.assertIn("hint: name each pool once", twice.err)
        self.assertIn("starts from none", self.prunerc("tune", "--replay", *pools, "--strategy", "random", "--checkpoint",
                                                       self.path("m.model"), expect=2).err)


if __name__ == "__main__":
    command.main()
