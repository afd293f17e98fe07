#!/usr/bin/env python3
"""Imported records are claims: whatever they say, they win nothing before they were verified and timed here."""

import json
import os

import command

DENSE = ("--op", "dense", "--threads", "1")
LEFT_ASIDE = (r"(?m)^note: of 'dense' %d stored record\(s\) left aside: record 1 of prunerc \S+ gives no program in this build: "
              r"its schedule does not make the program that it names$")


class Claims(command.CommandTest):
    ROWS = None  # made by the first test that asks

    def tuned(self):
        """Records of dense, as another machine would export them: ok and verified ones alone."""
        if Claims.ROWS is None:
            Claims.ROWS = self.measured()
        return [dict(row) for row in Claims.ROWS]

    def measured(self):
        there = self.path("there.sqlite")
        self.prunerc("tune", self.ops, *DENSE, "--trials", "4", "--db", there)
        self.prunerc("db", "export", "there.jsonl", "--db", there)
        with open(self.path("there.jsonl"), encoding="utf-8") as file:
            rows = [json.loads(line) for line in file]
        return [row for row in rows if row["status"] == "ok"]

    def imports(self, rows, expect=0):
        self.write("rows.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
        return self.prunerc("db", "import", "rows.jsonl", expect=expect)

    @staticmethod
    def forge(row, ns, **changes):
        """The row with another time, and whatever else a liar would write."""
        return dict(row, median_ns=ns, samples_ns=[ns] * 9, verified="trust me", **changes)


    def test_an_export_replaces_no_database_and_an_import_makes_none_of_lines(self):
        self.imports(self.tuned())
        listed = self.prunerc("db", "ls").out
        self.prunerc("db", "export", "lines.jsonl")
        for again in (self.db, "lines.jsonl"):
            refused = self.prunerc("db", "export", again, "--db", again, expect=2)
            self.assertIn("is the database, which it would replace", refused.err)
        self.assertEqual(listed, self.prunerc("db", "ls").out)
        refused = self.prunerc("db", "import", "lines.jsonl", "--db", "new.jsonl", expect=2)
        self.assertIn("exported records, which are only read", refused.err)
        self.assertFalse(os.path.exists(self.path("new.jsonl")))

    def test_a_time_that_cannot_be_is_refused(self):
        row = self.tuned()[0]
        result = self.imports([self.forge(row, 1e-9)], expect=1)
        self.assertIn("line 1 of 'rows.jsonl' cannot be imported: no machine of its target is so fast", result.err)
        result = self.imports([row, dict(row, median_ns=1e-9)], expect=1)
        self.assertIn("line 2 of 'rows.jsonl' cannot be imported: 'median_ns' is 1e-09", result.err)
        self.assertNotIn("dense", self.prunerc("db", "ls").out)

    def test_a_forged_time_wins_nothing_against_one_of_this_machine(self):
        row = self.tuned()[0]
        self.prunerc("tune", self.ops, *DENSE, "--trials", "2")
        before = self.prunerc("db", "best", "--op", "dense").out
        self.imports([self.forge(row, 50.0)])
        self.assertEqual(before, self.prunerc("db", "best", "--op", "dense").out)
        self.assertNotIn("trust me", before)
        listed = self.prunerc("db", "ls").out
        self.assertRegex(listed, r"\n +1 dense .* 1 +[0-9.]+ .s\n")

    def test_lists_show_the_mark_and_validate_says_what_is_not_verified(self):
        self.imports([self.forge(self.tuned()[0], 50.0)])
        self.assertRegex(self.prunerc("db", "ls").out, r"\n +1 dense .* 1 +1 +imported\n")
        best = self.prunerc("db", "best", "--op", "dense").out
        self.assertTrue(best.startswith("# imported, nothing of it was checked here: dense on"), best)
        self.assertIn("# it claims: trust me\n", best)
        self.assertNotIn("# verified", best)
        found = self.prunerc("db", "validate").out
        self.assertIn("record 1: imported; its result and its time were not checked here\n", found)
        self.assertIn(": 0 problem(s), 1 imported record(s) not verified here", found)
        self.assertIn("verified  0\nimported  1\n", self.prunerc("db", "stats").out)

    def test_who_runs_a_kernel_verifies_and_times_it_first(self):
        rows = self.tuned()
        self.imports([self.forge(row, 50.0 + i) for i, row in enumerate(rows)])
        result = self.prunerc("bench", self.ops, *DENSE, "--samples", "3", "--json")
        self.assertRegex(result.err, r"\d imported record\(s\) of 'dense' were verified and timed here first")
        self.assertEqual("record", result.json()["rows"][0]["schedule"])
        best = self.prunerc("db", "best", "--op", "dense").out
        self.assertRegex(best, r"(?m)^# dense on .*, record \d+ of ")
        self.assertRegex(best, r"(?m)^# verified: 512 outputs equal to the unscheduled program")
        self.assertNotIn(": 50.0", best)
        again = self.prunerc("bench", self.ops, *DENSE, "--samples", "3", "--json")
        self.assertNotIn("imported record", again.err)

    def test_tuning_measures_claims_before_anything_else(self):
        rows = self.tuned()
        self.imports([self.forge(row, 50.0) for row in rows])
        report = self.prunerc("tune", self.ops, *DENSE, "--trials", "1", "--json").json()
        self.assertEqual(1, report["trials"])
        self.assertGreater(report["best_ns"], 50.0)

    def test_compile_takes_a_claim_that_finite_fields_show_to_be_right_and_says_so(self):
        self.imports([self.forge(self.tuned()[0], 50.0)])
        outputs = []
        for name in ("a.s", "b.s"):
            result = self.prunerc("compile", self.ops, *DENSE, "--require-tuned", "-o", self.path(name))
            self.assertRegex(result.err, r"schedule: record; imported, equal \(chance of error 2\^-\d+, .*\), in finite fields; "
                                         r"not timed here\n")
            with open(self.path(name), encoding="utf-8") as file:
                outputs.append(file.read())
        self.assertEqual(outputs[0], outputs[1])

    def test_claims_of_which_this_build_makes_no_program_leave_room_for_others(self):
        row = self.tuned()[0]
        stale = [self.forge(row, 50.0 + n, fingerprint=f"{n:032x}") for n in range(20)]
        self.imports(stale + [self.forge(row, 90.0)])
        result = self.prunerc("compile", self.ops, *DENSE, "--require-tuned", "-o", self.path("a.s"))
        self.assertIn("schedule: record; imported, equal ", result.err)
        self.assertRegex(result.err, LEFT_ASIDE % 20)
        # In a ranking by time, those are first.
        self.assertRegex(self.prunerc("db", "ls").out, r"\n +1 dense .* imported\n")
        tuned = self.prunerc("tune", self.ops, *DENSE, "--trials", "1", "--json")
        self.assertRegex(tuned.err, LEFT_ASIDE % 20)
        self.assertEqual(20, tuned.json()["left_aside"])

    def test_what_gives_no_program_is_marked(self):
        self.imports([self.forge(self.tuned()[0], 50.0, fingerprint="0" * 32)])
        self.assertRegex(self.prunerc("db", "ls").out, r"\n +1 dense .* imported  gives no program in this build\n")
        self.assertRegex(self.prunerc("db", "best", "--op", "dense").out, r"(?m)^# not used: record 1 of prunerc \S+ gives no program")
        result = self.prunerc("compile", self.ops, *DENSE, "-o", self.path("a.s"))
        self.assertRegex(result.err, LEFT_ASIDE % 1)
        self.assertIn("schedule: heuristic\n", result.err)  # not that there is no record

    def test_verify_and_best_pass_over_claims_of_which_this_build_makes_no_program(self):
        row = self.tuned()[0]
        stale = [self.forge(row, 50.0 + n, fingerprint=f"{n:032x}") for n in range(20)]
        self.imports(stale + [self.forge(row, 90.0)])
        result = self.prunerc("verify", self.db, "--seeds", "1", expect=5)
        self.assertEqual(4, result.out.count("its schedule does not make the program that it names"))
        self.assertIn("16 more imported record(s) of 'dense' give no program any more\n", result.err)
        self.assertRegex(result.out, r"(?m)^dense \(imported record 21\): right on 1 of 1 inputs")
        self.assertIn(", record 21 of ", self.prunerc("db", "best", "--op", "dense").out)

    def test_a_wrong_schedule_is_refuted_marked_and_not_used(self):
        row = self.tuned()[0]
        # Another program's trace under this one's fingerprint, and one that no program is made of.
        lies = [self.forge(row, 50.0, trace="parallel(@L0)\n", fingerprint="0" * 32),
                self.forge(row, 51.0, trace="split(@L77, [2, 2]) -> @L78, @L79\n", fingerprint="1" * 32)]
        self.imports(lies)
        result = self.prunerc("compile", self.ops, *DENSE, "--require-tuned", "-o", self.path("p.s"), expect=6)
        self.assertFalse(os.path.exists(self.path("p.s")))
        self.assertIn("no record of 'dense'", result.err)
        self.assertIn("using the heuristic", self.prunerc(
            "run", self.ops, *DENSE, "--input", "X=ones", "--input", "W=ones", "--input", "bias=ones").err)

    def test_verify_of_a_database_checks_claims(self):
        row = self.tuned()[0]
        self.imports([self.forge(row, 50.0)])
        out = self.prunerc("verify", self.db, "--seeds", "1").out
        self.assertRegex(out, r"^dense \(imported record 1\): right on 1 of 1 inputs")
        # An invalid program does not come in at all.
        outside = row["program"].replace("[v0]", "[v0 + 1]") if "[v0]" in row["program"] else None
        if outside:
            self.assertIn("'hash' is not that", self.imports([dict(row, program=outside)], expect=1).err)


if __name__ == "__main__":
    command.main()
