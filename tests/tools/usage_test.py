#!/usr/bin/env python3
"""Exit codes and messages: what is wrong is said on stderr, once, with a code that scripts can rely on."""

import os
import re
import signal
import subprocess

import command


class Usage(command.CommandTest):
    def test_help_goes_to_stdout_and_names_every_verb(self):
        result = self.prunerc("--help")
        for verb in ("tune", "compile", "run", "bench", "verify", "show", "apply", "devices", "doctor", "db"):
            self.assertIn(f"\n  {verb} ", result.out)
        self.assertEqual("", result.err)

    def test_version(self):
        self.assertRegex(self.prunerc("--version").out, r"^prunerc \d+\.\d+\.\d+\n$")

    def test_a_command_line_that_cannot_be_read_ends_with_2(self):
        for arguments in (
            [],
            ["frobnicate"],
            ["tune"],
            ["tune", self.ops, "--no-such-option"],
            ["tune", self.ops, "--op", "dense", "--trials", "-3"],
            ["tune", self.ops, "--op", "dense", "--trials", "many"],
            ["tune", self.ops, "--op", "dense", "--time", "soon"],
            ["tune", self.ops, "--op", "dense", "--strategy", "prayer"],
            ["tune", self.ops, "--op", "dense", "-O0", "--weights", "nan"],
            ["tune", self.ops, "--op", "dense", "-D", "M"],
            ["tune", self.ops, "--op", "dense", "--target", "z80"],
            ["show", self.ops, "--stage", "poetry"],
            ["run", self.ops, "--op", "total", "--input", "A"],
            ["run", self.ops, "--op", "total", "--input", "A=rand:dice"],
            ["compile", self.ops, "--op", "dense", "-o", "x.txt"],
            ["db", "shred"],
        ):
            with self.subTest(arguments=arguments):
                result = self.prunerc(*arguments, expect=2)
                self.assertEqual("", result.out)
                self.assertNotEqual("", result.err)

    def test_the_debugging_switches_are_explained_and_checked(self):
        help_text = self.prunerc("--help-debug").out
        for variable, malformed in (
            ("PRUNERC_DUMP", "before:lunch"),
            ("PRUNERC_TIME", "tea"),
            ("PRUNERC_BISECT", "lower:-1"),
        ):
            with self.subTest(variable=variable):
                self.assertIn(f"  {variable}=", help_text)
                result = self.prunerc("show", self.ops, "--op", "dense", env=self.with_variables({variable: malformed}), expect=2)
                self.assertIn(variable, result.err)
                self.assertEqual("", result.out)

    def test_dumps_and_times_go_to_stderr_or_to_a_folder(self):
        show = ["show", self.ops, "--op", "dense", "--stage", "asm"]
        result = self.prunerc(*show, env=self.with_variables({"PRUNERC_DUMP": "after:lower/lower_blocks,llvm", "PRUNERC_TIME": "passes"}))
        self.assertIn("// after:lower/lower_blocks\nprogram ", result.err)
        self.assertNotIn("// after:lower/lower_init", result.err)
        self.assertIn("\n// llvm\n", result.err)
        self.assertRegex(result.err, r"after:lower/simplify_expressions +\d+\.\d+ ms\n")
        dumps = self.path("dumps")
        plain = self.prunerc(*show)
        quiet = self.prunerc(*show, env=self.with_variables({"PRUNERC_DUMP": "after:lower/*", "PRUNERC_DUMP_DIR": dumps}))
        self.assertEqual(plain.out, quiet.out)
        # The machine is measured anew by each.
        self.assertEqual(*(re.sub(r"\d+ GFLOP/s", "", result.err) for result in (plain, quiet)))
        self.assertIn("00000-after-lower-lower_init", os.listdir(dumps))

    def test_bisection_leaves_out_optional_passes(self):
        result = self.prunerc("show", self.ops, "--op", "dense", "--stage", "lowered",
                              env=self.with_variables({"PRUNERC_BISECT": "lower:0", "PRUNERC_TIME": "passes"}))
        self.assertIn("after:lower/lower_blocks", result.err)
        self.assertNotIn("after:lower/simplify_expressions", result.err)

    def test_a_bad_operator_ends_with_1_and_shows_the_place(self):
        bad = self.write("bad.prn", "op f(A: f32[4]) -> (B: f32[4]) {\n  B[i] = A[i] + C[i];\n}\n")
        for verb in (["tune"], ["show"], ["bench"], ["verify"], ["compile", "-o", self.path("x.o")]):
            with self.subTest(verb=verb):
                result = self.prunerc(*verb, bad, expect=1)
                self.assertIn("bad.prn:2:17: error: ", result.err)
                self.assertRegex(result.err, r"\n {16}\^")
                self.assertEqual("", result.out)

    def test_a_bad_program_text_ends_with_1(self):
        bad = self.write("bad.prc", "program f(A: f32[4]) -> (B: f32[4]) {\n  for i in 4 {\n")
        result = self.prunerc("show", bad, expect=1)
        self.assertRegex(result.err, r"bad\.prc:\d+:\d+: ")

    def test_a_program_text_that_touches_what_it_does_not_declare_ends_with_1(self):
        bad = self.write("bad.prc", """program p(A: f32[9]) -> (B: f32[8]) {
  for i in 8 @L0 { block "B" @B0 [v: S(8) = i] { reads A[v] writes B[v] B[v] = A[v + 1] } }
}
""")
        result = self.prunerc("compile", bad, "-o", self.path("x.o"), expect=1)
        self.assertIn("bad.prc: error: block @B0 accesses buffer 'A' outside its declared regions", result.err)

    def test_an_unknown_operator_or_parameter_ends_with_1(self):
        self.assertIn("nosuch", self.prunerc("tune", self.ops, "--op", "nosuch", expect=1).err)
        self.assertIn("Q", self.prunerc("show", self.ops, "--op", "dense", "-D", "Q=3", expect=1).err)
        # Several operators and none named.
        self.assertIn("dense", self.prunerc("show", self.ops, expect=1).err)

    def test_a_missing_file_ends_with_5(self):
        self.assertIn("nowhere.prn", self.prunerc("tune", "nowhere.prn", expect=5).err)

    def test_a_database_that_is_none_ends_with_5_and_is_left_alone(self):
        path = self.write("garbage.sqlite", "this is no database, but it is mine" * 200)
        self.prunerc("tune", self.ops, "--op", "dense", "--db", path, expect=5)
        self.prunerc("db", "ls", "--db", path, expect=5)
        with open(path, encoding="utf-8") as file:
            self.assertTrue(file.read().startswith("this is no database"))

    def test_measuring_for_another_kind_of_machine_ends_with_5(self):
        result = self.prunerc("tune", self.ops, "--op", "dense", "--target", "cuda:sm_90a", expect=5)
        self.assertIn("compile", result.err)

    def test_an_operator_that_no_candidate_can_run_ends_with_3_and_says_why(self):
        huge = ["-e", "C[i] = A[i] * 2", "-D", "i=200000000000"]
        result = self.prunerc("tune", *huge, "--trials", "2", expect=3)
        self.assertIn("no candidate of 'expr' ran", result.err)
        self.assertIn("not enough memory for the buffers", result.err)

    def test_what_cannot_be_printed_ends_with_5(self):
        with open("/dev/full", "wb") as full:
            done = subprocess.run([command.BINARY, "show", self.ops, "--op", "dense"], stdout=full, stderr=subprocess.PIPE, text=True,
                                  env=self.environment, check=False)
        self.assertEqual((5, True), (done.returncode, "the standard output" in done.stderr), done.stderr)

    def test_a_caller_may_ignore_how_children_end(self):
        done = subprocess.run([command.BINARY, "compile", self.ops, "--op", "dense", "-o", self.path("libdense.so")], stderr=subprocess.PIPE,
                              text=True, env=self.environment, check=False, preexec_fn=lambda: signal.signal(signal.SIGCHLD, signal.SIG_IGN))
        self.assertEqual(0, done.returncode, done.stderr)

    def test_required_without_a_record_ends_with_6_and_writes_nothing(self):
        out = self.path("x.o")
        self.prunerc("compile", self.ops, "--op", "dense", "--require-tuned", "-o", out, expect=6)
        self.assertFalse(os.path.exists(out))

    def test_mappings_are_ranked_and_one_becomes_a_script(self):
        gemm = self.write(
            "g.prn", "op g<M=20, N=24, K=10>(A: u8[M,K], B: i8[K,N]) -> (C: i32[M,N]) { C[i,j] = sum:i32[k] A[i,k] * B[k,j]; }\n"
        )
        listed = self.prunerc("show", gemm, "--stage", "mappings").out
        self.assertIn("# x86_vpdpbusd_16x4 (cpu with +avx512vnni): 1\n", listed)
        # 24 columns in registers of 16, 10 products in groups of 4.
        self.assertRegex(listed, r"#    1\. vi = \(vj\), vk = \(vk\), outside \(vi\), 62% useful; 24x10 padded to 32x12, \d+ elements copied\n")
        self.assertIn("# x86_vdpbf16ps_16x2: none: ", listed)
        self.assertNotIn("mma_", listed)
        self.assertIn("wmma_16x16x16_s8: none: ", self.prunerc("show", gemm, "--stage", "mappings", "--target", "cuda:sm_90a").out)
        script = self.prunerc("show", gemm, "--stage", "mappings", "--tensor", "x86_vpdpbusd_16x4").out
        program = self.prunerc("apply", gemm, self.write("m.trace", script)).out
        self.assertIn("tensor_x86_vpdpbusd_16x4", program)
        for arguments, code in (
            (["--tensor", "x86_vpdpbusd"], 2),
            (["--tensor", "wmma_16x16x16_s8"], 3),
            (["--tensor", "x86_vpdpbusd_16x4", "--rank", "2"], 3),
            (["--target", "cuda:sm_1"], 2),
        ):
            with self.subTest(arguments=arguments):
                self.assertIn("error: ", self.prunerc("show", gemm, "--stage", "mappings", *arguments, expect=code).err)

    def test_an_expression_needs_no_file(self):
        result = self.prunerc("show", "-e", "C[i,j] = sum[k] A[i,k] * B[k,j]", "-D", "i=4,j=5,k=6")
        self.assertIn("A: f32[4, 6]", result.out)
        self.prunerc("show", self.ops, "-e", "B[i] = A[i]", expect=2)


if __name__ == "__main__":
    command.main()
