#!/usr/bin/env python3
"""prunerc apply: a script over a program; what is wrong is shown with the script's line."""

import command

PROGRAM = """program matmul(A: f32[16, 32], B: f32[32, 16]) -> (C: f32[16, 16]) {
  for i in 16 @L0 { for j in 16 @L1 { for k in 32 @L2 {
    block "C" @B0 [vi: S(16) = i, vj: S(16) = j, vk: R(32) = k] {
      init { C[vi, vj] = 0f32 }
      C[vi, vj] = C[vi, vj] + A[vi, vk]*B[vk, vj]
  } } } }
}
"""
SCRIPT = """# one block of threads per tile of rows
split(@L0, [4, 4])
split(@L2, [-1, 8]) -> @L20, @L21   # labels of the script's own
bind(@L3, "block.x")
bind(@L1, "thread.x")
unroll(@L21)
"""


MOMENTS = """program moments(X: f32[5, 24]) -> (N: f32[5], Mean: f32[5], M2: f32[5]) {
  for i in 5 @L0 { for k in 24 @L1 {
    block "moments" @B0 [vi: S(5) = i, vk: R(24) = k] {
      init { N[vi] = 0f32 Mean[vi] = 0f32 M2[vi] = 0f32 }
      combine (n1, m1, s1), (n2, m2, s2) ->
          (n1 + n2, m1 + (m2 - m1)*n2/(n1 + n2), s1 + s2 + (m2 - m1)*(m2 - m1)*n1*n2/(n1 + n2))
      M2[vi] = M2[vi] + (X[vi, vk] - Mean[vi])*(X[vi, vk] - Mean[vi])*N[vi]/(N[vi] + 1f32)
      Mean[vi] = Mean[vi] + (X[vi, vk] - Mean[vi])/(N[vi] + 1f32)
      N[vi] = N[vi] + 1f32
  } } }
}
"""


# A matrix stored row by row in one dimension, and read by two indices.
FLAT = """program flat(X: f32[6, 4]) -> (Y: f32[6, 4]) {
  buffer T: f32[24] global
  for i in 6 @L0 { for j in 4 @L1 {
    block "T" @B0 [vi: S(6) = i, vj: S(4) = j] { T[vi*4 + vj] = X[vi, vj]*2f32 }
  } }
  for k in 24 @L2 { block "Y" @B1 [v: S(24) = k] { Y[v // 4, v % 4] = T[v] + 1f32 } }
}
"""

# T is written anew in each iteration; the last elements of Y are nobody's.
ONE_ITERATION = """program p(X: f32[8]) -> (Y: f32[8]) {
  buffer T: f32[8] global
  for i in 8 @L0 {
    block "T" @B0 [v: S(8) = i] { T[v] = X[v] }
    block "Y" @B1 [v: S(8) = i] { Y[v] = select(1 <= v, T[v - 1], 0f32) }
  }
}
"""
NO_TAIL = """program p(X: f32[16]) -> (Y: f32[16]) {
  for i in 16 @L0 { block "Y" @B0 [v: S(16) = i] where i < 13 { Y[v] = X[v] } }
}
"""


class Apply(command.CommandTest):
    def test_a_stage_that_is_stored_in_one_dimension_is_inlined_moved_and_verified(self):
        program = self.write("flat.prc", FLAT)
        for n, script in enumerate(["compute_inline(@B0)", "reverse_compute_inline(@B1)",
                                    "reverse_compute_at(@B1, @L0)", "compute_at(@B0, @L2)"]):
            result = self.prunerc("verify", program, "--schedule", self.write(f"s{n}.txt", script + "\n"), "--seeds", "1")
            self.assertIn("right on 1 of 1 inputs", result.out)
            self.assertIn("in finite fields: equal", result.out)

    def test_a_program_that_reads_what_another_iteration_made_or_leaves_elements_out_is_refused(self):
        for text, what in [(ONE_ITERATION, "block @B1 reads 'T' at [i - 1], but 'T' lives in one iteration of loop @L0"),
                           (NO_TAIL, "elements 13 .. 15 of dimension 0 of output 'Y' are never written")]:
            program = self.write("bad.prc", text)
            script = self.write("none.txt", "# nothing\n")
            for command_line in [("show", program), ("apply", program, script)]:
                self.assertIn("error: the program 'p' is not valid: " + what, self.prunerc(*command_line, expect=1).err)
            self.assertIn("p (program): invalid: the program 'p' is not valid: " + what,
                          self.prunerc("verify", program, expect=4).out)

    def test_a_refusal_names_loops_as_the_script_does(self):
        script = self.write("s.txt", SCRIPT + "parallel(@L21)\n")
        refused = self.prunerc("apply", self.write("p.prc", PROGRAM), script, expect=1)
        self.assertIn("s.txt:7:1: error: loop @L21 must be serial, but is unrolled", refused.err)
        depends = self.write("d.txt", "split(@L2, [-1, 8]) -> @L20, @L21\nparallel(@L21)\n")
        refused = self.prunerc("apply", self.write("p.prc", PROGRAM), depends, expect=1)
        self.assertIn("iterations of loop @L21 depend on each other through buffer 'C'", refused.err)

    def test_the_scheduled_program_goes_to_stdout(self):
        result = self.prunerc("apply", self.write("p.prc", PROGRAM), self.write("s.txt", SCRIPT))
        self.assertEqual("", result.err)
        self.assertIn("@L3 bind(block.x) {", result.out)
        self.assertIn("@L1 bind(thread.x) {", result.out)
        self.assertIn("@L6 unrolled {", result.out)

    def test_a_reduction_of_ones_own_is_factored_compiled_and_verified(self):
        program = self.write("m.prc", MOMENTS)
        script = self.write("m.txt", "split(@L1, [4, 6])\nrfactor(@L2, -1)\nparallel(@L0)\n")
        self.assertIn("Mean_rf[vi, vk_0]", self.prunerc("apply", program, script).out)
        self.prunerc("verify", program, "--schedule", script, "--interpret")
        wrong = self.write("w.prc", MOMENTS.replace("m1 + (m2 - m1)*n2/(n1 + n2)", "(m1 + m2)/2f32"))
        refused = self.prunerc("apply", wrong, script, expect=1)
        self.assertIn("m.txt:2:1: error: block @B0 ", refused.err)
        self.assertIn("does not combine as its reducer does: a result combined with the init is another in 'Mean'", refused.err)

    def test_its_output_is_input_again(self):
        first = self.prunerc("apply", self.write("p.prc", PROGRAM), self.write("s.txt", SCRIPT)).out
        again = self.prunerc("apply", self.write("q.prc", first), self.write("e.txt", "\n# nothing\n"))
        self.assertEqual(first, again.out)

    def test_the_script_comes_back_as_a_trace(self):
        program = self.write("p.prc", PROGRAM)
        script = self.write("s.txt", SCRIPT)
        trace = self.prunerc("apply", program, script, "--print", "trace").out
        self.assertIn("split(@L2, [-1, 8]) -> @L5, @L6\n", trace)
        self.assertEqual(
            self.prunerc("apply", program, script).out,
            self.prunerc("apply", program, self.write("t.txt", trace)).out,
        )
        self.assertEqual("bind", self.prunerc("apply", program, script, "--print", "json").json()["steps"][2]["do"])

    def test_mistakes_are_shown_where_they_are(self):
        program = self.write("p.prc", PROGRAM)
        for text, place, message in (
            ("split(@L0, [4, 4])\n\nbind(@L2, \"block.x\")\n", "s.txt:3:1: error: ", "takes part in the reduction"),
            ("split(@L0, [4, 4]\n", "s.txt:2:1: error: ", "expected ')'"),
            ("frobnicate(@L0)\n", "s.txt:1:1: error: ", "unknown name 'frobnicate'"),
            ("# hm\nsplit(@L0, [3, 4])\n", "s.txt:2:1: error: ", "split factors multiply to 12"),
        ):
            with self.subTest(text=text):
                result = self.prunerc("apply", program, self.write("s.txt", text), expect=1)
                self.assertEqual("", result.out)
                self.assertIn(place, result.err)
                self.assertIn(message, result.err)

    def test_a_program_that_cannot_be_read(self):
        script = self.write("s.txt", SCRIPT)
        result = self.prunerc("apply", self.write("p.prc", "program p( {"), script, expect=1)
        self.assertIn("p.prc:1:12: error: ", result.err)
        twice = PROGRAM.replace("@L1", "@L0")
        self.assertIn("@L0 appears twice", self.prunerc("apply", self.write("p.prc", twice), script, expect=1).err)
        self.prunerc("apply", "none.prc", script, expect=5)
        self.prunerc("apply", self.write("p.prc", PROGRAM), "none.txt", expect=5)
        self.prunerc("apply", self.write("p.prc", PROGRAM), expect=2)


class Schedule(command.CommandTest):
    """--schedule: verbs that make code take a script instead of a record."""

    DENSE = "split(@L0, [-1, 4]) -> @L20, @L21\nunroll(@L21)\n"

    def test_every_verb_that_makes_code_takes_a_script(self):
        script = self.write("s.txt", self.DENSE)
        op = [self.ops, "--op", "dense", "--schedule", script]
        shown = self.prunerc("show", *op, "--stage", "scheduled")
        self.assertIn("unrolled {", shown.out)
        self.assertIn("schedule: script", shown.err)
        self.prunerc("compile", *op, "-o", self.path("x.o"))
        self.assertIn("right on 1 of 1 inputs", self.prunerc("verify", *op, "--seeds", "1").out)
        self.assertEqual("script", self.prunerc("bench", *op, "--json").json()["rows"][0]["schedule"])
        run = self.prunerc("run", *op, "--input", "X=ones", "--input", "W=ones", "--input", "bias=zeros",
                           "--output", f"Y={self.path('y.npy')}")
        self.assertNotIn("no record", run.err)
        self.assertEqual([24.0] * (16 * 32), command.read_npy(self.path("y.npy"))[2])

    def test_an_empty_script_is_the_program_as_written(self):
        program = self.prunerc("show", self.ops, "--op", "dense").out
        shown = self.prunerc("show", self.ops, "--op", "dense", "--schedule", "/dev/null", "--stage", "scheduled")
        self.assertEqual(program, shown.out)

    def test_a_script_that_cannot_be_applied_is_shown_with_its_line(self):
        script = self.write("s.txt", self.DENSE + "parallel(@L2)\n")
        for verb in (["show", "--stage", "asm"], ["compile", "-o", self.path("x.o")], ["bench"], ["verify"], ["run"]):
            with self.subTest(verb=verb):
                result = self.prunerc(*verb, self.ops, "--op", "dense", "--schedule", script,
                                      *(["--input", "X=ones", "--input", "W=ones", "--input", "bias=ones"] if verb == ["run"] else []),
                                      expect=1)
                self.assertIn("s.txt:3:1: error: iterations of loop @L2 depend on each other", result.err)
        self.prunerc("show", self.ops, "--op", "dense", "--schedule", "nowhere.txt", "--stage", "asm", expect=5)


if __name__ == "__main__":
    command.main()
