#!/usr/bin/env python3
"""`prunerc explain`: the parts of an estimate beside what was measured, for records, pools and operators."""

import re

import command


class Explain(command.CommandTest):
    def check_parts(self, text):
        self.assertRegex(text, r"\n  measured +[0-9.]+ [num]s +100%  spread ")
        self.assertRegex(text, r"\n  predicted +[0-9.]+ [num]s +[0-9]+%  by the analyzer\n")
        self.assertRegex(text, r"\n  limit +[0-9.]+ [num]s +[0-9]+%  (arithmetic|L1|L2|L3|memory)")
        self.assertRegex(text, r"\n  nest +total +core")
        # One line for each nest: a total and its parts.
        self.assertRegex(text, r"\n  1 \w+ +([0-9.]+ [num]s|-) +([0-9.]+ [num]s|-)")
        self.assertRegex(text, r"\n  launch +([0-9.]+ [num]s|-)\n")
        self.assertRegex(text, r"code [0-9]+ statements, largest tile [0-9]+ vector registers\n")

    def test_a_record_by_its_number(self):
        self.prunerc("tune", self.ops, "--op", "dense", "--trials", "3", "--threads", "1")
        best = self.prunerc("db", "best").out
        number = re.search(r"record (\d+) of", best)[1]
        out = self.prunerc("explain", number).out
        self.assertRegex(out, rf"^record {number}: dense .*, sketch .*, ok\n")
        self.check_parts(out)
        self.assertIn("no record 123456 in", self.prunerc("explain", "123456", expect=6).err)

    def test_rows_of_a_pool(self):
        self.prunerc("dataset", "record", self.ops, "--op", "dense", "--threads", "1", "--candidates", "8", "--out",
                     "d.pool")
        out = self.prunerc("explain", "d.pool", "--top", "3").out
        self.assertEqual(3, len(re.findall(r"^row \d+: dense ", out, re.M)))
        self.check_parts(out)
        self.assertRegex(self.prunerc("explain", "d.pool", "--row", "2").out, r"^row 2: dense ")
        self.prunerc("explain", "d.pool", "--row", "1000", expect=2)
        self.prunerc("explain", "none.pool", expect=5)

    def test_the_schedule_of_an_operator_is_timed_now(self):
        out = self.prunerc("explain", self.ops, "--op", "dense", "--threads", "1").out
        self.assertRegex(out, r"^dense .*, heuristic schedule\n")
        self.check_parts(out)
        script = self.write("d.trace", self.prunerc("show", self.ops, "--op", "dense", "--stage", "trace").out)
        out = self.prunerc("explain", self.ops, "--op", "dense", "--threads", "1", "--schedule", script).out
        self.assertRegex(out, r"^dense .*, script schedule\n")

    def test_a_device_that_is_not_here_has_no_measured_part(self):
        for more in [[], ["-O1"]]:
            out = self.prunerc("explain", self.ops, "--op", "dense", "--target", "cuda:h100", *more).out
            self.assertRegex(out, r"^dense .* schedule, not timed: its device is not here\n")
            self.assertNotIn("measured", out)
            self.assertRegex(out, r"\n  predicted +[0-9.]+ [num]s +-  by the analyzer\n")
            self.assertRegex(out, r"\n  nest +total +l2")


if __name__ == "__main__":
    command.main()
