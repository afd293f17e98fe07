#!/usr/bin/env python3
"""Declared iteration kinds: what is false is not loaded, what is not shown is reported."""

import command

PROGRAM = """program p(X: f32[8, 8]) -> (Y: f32[8]) {
  for i in 8 @L0 { for j in 8 @L1 {
    block "y" @B0 [v: S(8) = i, w: R(8) = j] {
      init { Y[v] = 0f32 }
      Y[v] = Y[v] + X[v, w]
  } } }
}
"""
# Its ids are not in program order.
TWO_BLOCKS = """program p(X: f32[8, 8]) -> (Y: f32[8]) {
  buffer T: f32[8, 8] global
  for i in 8 @L3 { for j in 8 @L2 {
    block "t" @B1 [v: S(8) = i, w: S(8) = j] { T[v, w] = X[v, w]*2f32 }
  } }
  for i in 8 @L0 { for j in 8 @L1 {
    block "y" @B0 [v: S(8) = i, w: R(8) = j] {
      init { Y[v] = 0f32 }
      Y[v] = Y[v] + T[v, w]
  } } }
}
"""
FALSE = "block @B0 does not have the iteration kinds that it declares: " \
        "instances that differ in a spatial variable write one element"


class Kinds(command.CommandTest):
    def test_a_program_with_false_kinds_is_refused_by_every_verb(self):
        program = self.write("false.prc", PROGRAM.replace("w: R(8)", "w: S(8)"))
        script = self.write("s.txt", "split(@L0, [2, 4])\n")
        for verb in (["run", "--input", "X=ones"], ["compile", "-o", self.path("x.o")], ["tune", "--trials", "1"],
                     ["verify"], ["bench"], ["show"]):
            with self.subTest(verb=verb):
                result = self.prunerc(verb[0], program, *verb[1:], expect=1)
                self.assertIn(f"false.prc: error: {FALSE}\n", result.err)
        self.assertIn(FALSE, self.prunerc("apply", program, script, expect=1).err)

    def test_verify_reports_kinds_that_are_not_shown(self):
        indirect = PROGRAM.replace("Y[v]", "Y[v*(v + 1) - v*v]")
        program = self.write("unknown.prc", indirect)
        result = self.prunerc("verify", program, "--schedule", "/dev/null", "--seeds", "1")
        self.assertIn("right on 1 of 1 inputs", result.out)
        line = "not shown of block @B0: instances that differ in a spatial variable write one element"
        self.assertIn(f"\n  iteration kinds: {line}\n", result.out)
        found = self.prunerc("verify", program, "--schedule", "/dev/null", "--seeds", "1", "--json").json()
        self.assertEqual([[line]], [r["kinds"] for r in found["results"]])

    def test_verify_is_silent_about_kinds_that_are_shown(self):
        program = self.write("p.prc", PROGRAM)
        result = self.prunerc("verify", program, "--seeds", "1")
        self.assertIn("right on 1 of 1 inputs", result.out)
        self.assertNotIn("iteration kinds", result.out)

    def test_a_script_is_checked_on_the_program_that_it_was_written_for(self):
        script = self.write("s.txt", "compute_inline(@B1)\nsplit(@L1, [2, 4])\n")
        result = self.prunerc("verify", self.write("p.prc", TWO_BLOCKS), "--schedule", script, "--seeds", "1")
        self.assertIn("right on 1 of 1 inputs", result.out)
        self.assertIn("in finite fields: equal", result.out)


if __name__ == "__main__":
    command.main()
