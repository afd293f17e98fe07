#!/usr/bin/env python3
"""Derived programs on the command line: options of tune, and links of other machines, which are claims."""

import json

import command

LORA = """
op lora(X: f32[6,16], A: f32[16,4], B: f32[4,24]) -> (Y: f32[6,24]) {
  let W[i,j] = sum[k] A[i,k] * B[k,j];
  Y[i,j] = sum[k] X[i,k] * W[k,j];
}
op other(X: f32[6,16], A: f32[16,4], B: f32[4,24]) -> (Y: f32[6,24]) {
  let T[i,j] = sum[k] X[i,k] * A[k,j];
  Y[i,j] = sum[k] T[i,k] * B[k,j];
}
op wrong(X: f32[6,16], A: f32[16,4], B: f32[4,24]) -> (Y: f32[6,24]) {
  let T[i,j] = sum[k] X[i,k] * A[k,j];
  Y[i,j] = sum[k] T[i,k] * B[3-k,j];
}
"""
LINK = {"recipe": "X*A first", "rules": 1, "numerics": "normal", "flops": 1920.0, "limit_ns": 9.5, "log2_error": -80.0, "tests": 2,
        "assumes": "", "created": "2026-11-22T10:00:00Z"}
MACHINE = ("--threads", "1")


class Algebra(command.CommandTest):
    ROWS = {}  # of each operator, made by the first test that asks

    def setUp(self):
        super().setUp()
        self.lora = self.write("lora.prn", LORA)

    def rows(self, op):
        """The best record of the operator, as `db export` writes it."""
        if op not in Algebra.ROWS:
            there = self.path(op + ".sqlite")
            self.prunerc("tune", self.lora, "--op", op, *MACHINE, "--trials", "3", "--db", there)
            self.prunerc("db", "export", "--best", op + ".jsonl", "--db", there)
            with open(self.path(op + ".jsonl"), encoding="utf-8") as file:
                Algebra.ROWS[op] = json.loads(file.readline())
        return dict(Algebra.ROWS[op])

    def linked(self, op, **changes):
        """A record of one operator that says to be derived from lora."""
        spec = self.rows("lora")
        link = dict(LINK, **{key: spec[key] for key in ("op", "hash", "bindings", "op_text", "program")})
        return dict(self.rows(op), derived_from=[dict(link, **changes)])

    def file_of(self, *rows):
        return self.write("records.jsonl", "".join(json.dumps(row) + "\n" for row in rows))

    def test_algebra_is_off_unless_asked_for(self):
        task = self.prunerc("tune", self.lora, "--op", "lora", *MACHINE, "--trials", "2", "--json").json()
        self.assertNotIn("algebra", task)
        self.assertNotIn("--algebra", task["repro"])
        self.assertRegex(self.prunerc("db", "stats").out, r"(?m)^derived +0$")

    def test_what_became_of_derived_programs_is_told(self):
        for mode in ("auto", "on"):
            result = self.prunerc("tune", self.lora, "--op", "other", *MACHINE, "--trials", "4", "--algebra", mode, "--json")
            task = result.json()
            self.assertEqual(4, task["trials"])
            self.assertIn("--algebra " + mode, task["repro"])
            self.assertEqual({"recipe", "tuned", "spec_ns", "log2_error", "numerics", "note"}, set(task["algebra"]))
            self.assertGreater(task["algebra"]["spec_ns"], 0)
            self.assertRegex(result.out, r"(?m)^  (as written|by '.*'[,;])")

    def test_algebra_without_measurements_is_refused(self):
        for more in (["-O0"], ["-O1"], ["--replay", "x.pool"]):
            err = self.prunerc("tune", self.lora, "--op", "lora", "--algebra", "on", *more, expect=2).err
            self.assertIn("--algebra", err)
            self.assertIn("hint: ", err)
        self.prunerc("tune", self.lora, "--op", "lora", "--algebra", "maybe", expect=2)

    def test_an_exported_link_is_shown_before_a_kernel_is_compiled_of_it(self):
        file = self.file_of(self.linked("other"))
        machine = ["--db", file, *MACHINE]
        built = self.prunerc("compile", self.lora, "--op", "lora", *machine, "--require-tuned", "-o", "lora.h", "-o", "lora.s")
        self.assertRegex(built.err, r"schedule: record by 'X\*A first'; imported, equal \(.*\), in finite fields; not timed here")
        with open(self.path("lora.h"), encoding="utf-8") as header:
            self.assertIn("int op_lora(const float* X, const float* A, const float* B, float* Y);", header.read())
        self.assertIn("derived   1\n", self.prunerc("db", "stats", "--db", file).out)
        verified = self.prunerc("verify", self.lora, "--op", "lora", *machine, "--seeds", "1").out
        self.assertRegex(verified, r"^lora, X\*A first \(record\): right on 1 of 1 inputs; .* of the operator as written: 144 outputs equal .* to the bit")
        self.assertRegex(verified, r"\n  derived program, in finite fields: 'X\*A first': equal \(")

    def test_an_exported_link_of_another_computation_is_refused(self):
        file = self.file_of(self.linked("wrong"))
        result = self.prunerc("compile", self.lora, "--op", "lora", "--db", file, *MACHINE, "-o", "lora.s", expect=3)
        self.assertIn("line 1 of", result.err)
        self.assertIn("'X*A first' of lora is not equal", result.err)

    def test_a_line_that_links_what_it_cannot_is_refused(self):
        for changes, why in (({"recipe": ""}, "'recipe' is empty"), ({"hash": "0" * 32}, "'hash' is not that"), ({"tests": -1}, "'tests' is no whole number")):
            file = self.file_of(self.linked("other", **changes))
            self.assertIn("of 'derived_from': " + why, self.prunerc("db", "import", file, expect=1).err)
        self.assertIn("tasks     0\n", self.prunerc("db", "stats").out)

    def test_an_imported_link_is_verified_and_timed_then_run_explained_and_exported(self):
        self.prunerc("db", "import", self.file_of(self.linked("other")))
        self.assertIn("the link of task", self.prunerc("db", "validate").out)
        bench = self.prunerc("bench", self.lora, "--op", "lora", *MACHINE, "--samples", "5", "--json")
        self.assertEqual("record", bench.json()["rows"][0]["schedule"])
        self.assertIn("1 imported record(s) of 'lora' were verified and timed here first", bench.err)
        self.assertIn("program of 'lora': derived by 'X*A first'", bench.err)
        # Now it is a link of this machine.
        self.assertNotIn("the link of task", self.prunerc("db", "validate").out)
        explained = self.prunerc("explain", self.lora, "--op", "lora", *MACHINE).out
        self.assertRegex(explained, r"\n  derived         'X\*A first': equal to 2\^-\d+ \(\d+ tests?\), normal rounding; nothing stored as written\n")
        self.prunerc("tune", self.lora, "--op", "lora", *MACHINE, "--trials", "2")
        number = self.prunerc("db", "best", "--op", "other").out.split("record ")[1].split()[0]
        explained = self.prunerc("explain", number).out
        self.assertRegex(explained, r"\n  derived         'X\*A first': .*; as written [0-9.]+ [num]s, [0-9.]+ times this\n")
        verified = self.prunerc("verify", self.db, "--seeds", "1").out
        self.assertRegex(verified, r"other \(link to lora\): right: 'X\*A first': equal")
        self.prunerc("db", "export", "again.jsonl")
        with open(self.path("again.jsonl"), encoding="utf-8") as file:
            links = [row["derived_from"] for row in map(json.loads, file) if "derived_from" in row]
        self.assertTrue(links)
        self.assertNotIn("imported", links[0][0])

    def test_arrays_run_through_a_derived_program(self):
        self.prunerc("db", "import", self.file_of(self.linked("other")))
        fills = ("--input", "X=ones", "--input", "A=ones", "--input", "B=ones", "--output", "Y=y.npy")
        self.prunerc("run", self.lora, "--op", "lora", *MACHINE, *fills)
        self.assertEqual([64.0] * 144, command.read_npy(self.path("y.npy"))[2])


if __name__ == "__main__":
    command.main()
