#!/usr/bin/env python3
"""Nothing is called verified unless it was: programs that are not valid, verdicts that are none, values of two programs."""

import os
import sqlite3

import command

BLOCK = 'for i in {n} @L{id} {{ block "{name}" @B{id} [v: S({n}) = i] {{ {body} }} }}'


def program(*blocks, head="A: f32[64], B: f32[64]", outputs="C: f32[64]", buffers=""):
    """Blocks are (name, body) or (name, body, extent)."""
    lines = [BLOCK.format(id=i, name=b[0], body=b[1], n=b[2] if len(b) > 2 else 64) for i, b in enumerate(blocks)]
    return f"program p({head}) -> ({outputs}) {{\n{buffers}\n" + "\n".join(lines) + "\n}\n"


# Some inputs lead it outside of A.
OUTSIDE = program(("C", "C[v] = A[v + select(B[v] < 5f32, 1, 0)]"))
INVALID = {
    "index": OUTSIDE,
    "gather": program(("C", "C[v] = A[n[v]]"), head="A: f32[64], n: i64[64]"),
    "unwritten": program(("C", "C[v] = A[v]", 60)),
    "order": program(("C", "C[v] = T[v]"), ("T", "T[v] = A[v]"), buffers="buffer T: f32[64] global"),
}
SAYS = {"index": "index v \\+ select", "gather": "needs a condition around the access",
        "unwritten": "(C\\[60\\]|elements 60 .. 63 of dimension 0 of output 'C')", "order": "T\\[0\\]"}


class Validity(command.CommandTest):
    def test_what_is_not_valid_is_a_diagnostic_everywhere_and_stores_nothing(self):
        for name, text in INVALID.items():
            path = self.write(name + ".prc", text)
            for arguments in (
                ["tune", path, "--trials", "2"],
                ["run", path, "--input", "A=ones", "--input", "B=ones"],
                ["compile", path, "-o", self.path("p.so")],
                ["bench", path],
                ["explain", path],
                ["show", path],
            ):
                with self.subTest(program=name, verb=arguments[0]):
                    result = self.prunerc(*arguments, expect=1)
                    self.assertEqual("", result.out)
                    self.assertRegex(result.err, "error: the program 'p' is not valid: .*" + SAYS[name])
                    self.assertRegex(result.err, "hint: `prunerc verify")
        self.assertFalse(os.path.exists(self.path("p.so")))
        if os.path.exists(self.db):
            with sqlite3.connect(self.db) as db:
                self.assertEqual([(0,)], db.execute("select count(*) from record").fetchall())

    def test_verify_says_invalid(self):
        for name, text in INVALID.items():
            result = self.prunerc("verify", self.write("x.prc", text), expect=4)
            self.assertRegex(result.out, "^p \\(program\\): invalid: .*" + SAYS[name])
            self.assertIn("error: a program is not valid", result.err)

    def test_nothing_is_equal_to_an_invalid_program(self):
        good = self.write("good.prc", program(("C", "C[v] = A[v]")))
        for name, text in INVALID.items():
            if name == "gather":
                continue  # it takes other inputs
            with self.subTest(program=name):
                bad = self.write("bad.prc", text)
                result = self.prunerc("verify", good, "--seeds", "1", "--against", bad, expect=4)
                self.assertRegex(result.out, "reference invalid: .*" + SAYS[name])

    def test_a_gather_that_is_guarded_or_clamped_runs(self):
        guarded = program(("C", "C[v] = select(0 <= n[v] && n[v] < 64, A[n[v]], 0f32)"), head="A: f32[64], n: i64[64]")
        path = self.write("g.prc", guarded)
        self.assertIn("right on 2 of 2 inputs", self.prunerc("verify", path, "--seeds", "2").out)
        out = self.prunerc("run", path, "--input", "A=ones", "--input", "n=rand:int(-1000,1000)").out
        self.assertIn("C: f32[64] = ", out)

    def test_a_buffer_that_is_written_twice_verifies(self):
        text = program(
            ("B1", "T[v] = 2f32*A[v]"), ("C", "C[v] = T[v] + 1f32"), ("B2", "T[v] = 3f32*A[v]"), ("D", "D[v] = T[v] + 1f32"),
            outputs="C: f32[64], D: f32[64]", buffers="buffer T: f32[64] global")
        result = self.prunerc("verify", self.write("twice.prc", text), "--schedule", "/dev/null", "--interpret")
        self.assertIn("right on 3 of 3 inputs", result.out)
        self.assertIn("of them in double", result.out)

    def test_evidence_names_inputs(self):
        report = self.prunerc("tune", self.ops, "--op", "scale", "--trials", "2", "--json")
        self.assertRegex(report.out, r"verified: 40 outputs equal to .* on whole numbers in \[-8, 8\], seed \d+, and 40 on floats in \[-1, 1\); on a twin equal")

    def test_where_finite_fields_have_no_verdict_the_line_and_the_record_say_so(self):
        # The sign of a number in a field is none, so that its product with an infinity has no value there; no input of the
        # tool's takes this branch.
        path = self.write("inf.prc", program(("C", "C[v] = select(B[v] < 100f32, A[v], A[v]*f32.inf)")))
        report = self.prunerc("tune", path, "--trials", "2")
        self.assertRegex(report.out, r"verified: .*on .*seed \d+.*; these values alone: finite fields gave no verdict \(.+\)")
        with sqlite3.connect(self.db) as db:
            stored = [row[0] for row in db.execute("select evidence from record where evidence <> ''")]
        self.assertTrue(stored)
        for evidence in stored:
            self.assertIn("finite fields gave no verdict", evidence)
        self.assertRegex(self.prunerc("verify", path).out, r"in finite fields: no verdict \(.+\); compared were the values above alone, on 3 sets of ")

    def against(self, value, spec, expect=0, head="A: f32[64], B: f32[64]"):
        mine = self.write("mine.prc", program(("C", "C[v] = " + value), head=head))
        theirs = self.write("theirs.prc", program(("C", "C[v] = " + spec), head=head))
        return self.prunerc("verify", mine, "--schedule", "/dev/null", "--seeds", "1", "--against", theirs, expect=expect).out

    def test_values_of_two_programs_are_compared(self):
        out = self.against("A[v] + B[v]", "B[v] + A[v]")
        self.assertRegex(out, r"\n  against .*, in numbers: 256 elements within what rounding may do to the reference, on floats in ")
        # Equal in every field, and not in numbers.
        out = self.against("((A[v] + B[v]) + 1e8f32) - 1e8f32", "A[v] + B[v]", expect=4)
        self.assertIn("in finite fields: equal", out)
        self.assertRegex(out, r"in numbers: C\[\d+\] is \S+, the reference gives \S+ \(allowed: \S+\), on floats in ")
        # Right where numbers are small.
        out = self.against("(A[v]*1.2089258196146292e24f32*A[v]*A[v])*8.271806125530277e-25f32", "A[v]*A[v]*A[v]", expect=4)
        self.assertRegex(out, r"in numbers: C\[\d+\] is .*, on (large floats|floats of magnitudes)")

    def test_nothing_that_can_be_compared_is_not_checked(self):
        path = self.write("nan.prn", "op f<N=64>(A: f32[N]) -> (B: f32[N]) { B[i] = sqrt(-1 - A[i]*A[i]); }\n")
        result = self.prunerc("verify", path, expect=5)
        self.assertIn("not checked: right on 0 of 3 inputs; no output is a number", result.out)
        # No field says what infinity times a number is, and no value is finite.
        out = self.against("A[v]*f32.inf", "f32.inf*A[v]", expect=5)
        self.assertRegex(out, r"not checked: .*\n  against .*, in finite fields: no verdict \(.+\)\n  against .*, in numbers: 0 elements ")

    def test_a_more_accurate_program_is_right(self):
        self.against("A[v]", "((A[v] + 1e8f32) - 1e8f32)")
        self.against("A[v]*(B[v] + 1f32)", "A[v]*B[v] + A[v]")


if __name__ == "__main__":
    command.main()
