#!/usr/bin/env python3
"""`prunerc compile` and `show`: which files they write (library_test.py calls what is in them)."""

import os

import command

class Compile(command.CommandTest):
    def compile(self, *outputs):
        arguments = []
        for output in outputs:
            arguments += ["-o", output]
        return self.prunerc("compile", self.ops, "--op", "dense", *arguments)

    def test_a_header_comes_along_unless_one_is_named(self):
        result = self.compile("dense.so")
        self.assertIn("schedule: heuristic; there is no record, `prunerc tune` looks for a faster one\n", result.err)
        self.assertEqual("", result.out)
        self.assertTrue(os.path.exists(self.path("dense.h")))
        self.compile("other.o", "named.h")
        self.assertTrue(os.path.exists(self.path("named.h")))
        self.assertFalse(os.path.exists(self.path("other.h")))

    def test_a_header_that_comes_along_takes_no_other_files_place(self):
        self.write("dense.h", "// mine\n")
        result = self.prunerc("compile", self.ops, "--op", "dense", "-o", "dense.so", expect=2)
        self.assertIn("option -o: needs a name for the header too: 'dense.h' is not prunerc's", result.err)
        self.assertFalse(os.path.exists(self.path("dense.so")))
        with open(self.path("dense.h"), encoding="utf-8") as header:
            self.assertEqual("// mine\n", header.read())
        self.compile("dense.so", "named.h")
        for outputs in (("dense.so", "dense.h"), ("dense.so",)):
            self.compile(*outputs)
            with open(self.path("dense.h"), encoding="utf-8") as header:
                self.assertIn("int op_dense(", header.read())

    def test_a_header_that_cannot_be_read_is_not_replaced(self):
        with open(self.path("dense.h"), "wb") as header:
            header.truncate((256 << 20) + 1)  # more than is read of a file
        result = self.prunerc("compile", self.ops, "--op", "dense", "-o", "dense.so", expect=2)
        self.assertIn("option -o: needs a name for the header too: 'dense.h' is not prunerc's", result.err)
        self.assertEqual((256 << 20) + 1, os.path.getsize(self.path("dense.h")))

    def test_text_forms(self):
        self.compile("dense.s", "dense.ll", "dense.h")
        with open(self.path("dense.s"), encoding="utf-8") as text:
            self.assertIn(".globl\top_dense_code", text.read())
        with open(self.path("dense.ll"), encoding="utf-8") as text:
            self.assertIn("define", text.read())

    def test_another_cpu_is_compiled_for_without_having_it(self):
        target = ["--target", "cpu:haswell"]
        self.prunerc("compile", self.ops, "--op", "dense", *target, "-o", "haswell.s")
        with open(self.path("haswell.s"), encoding="utf-8") as text:
            listing = text.read()
        self.assertNotIn("%zmm", listing)
        self.assertIn("%ymm", listing)

    def test_a_record_is_used_and_a_required_one_is_there(self):
        self.prunerc("tune", self.ops, "--op", "dense", "--trials", "2")
        result = self.prunerc("compile", self.ops, "--op", "dense", "--require-tuned", "-o", "dense.o")
        self.assertIn("schedule: record", result.err)

    def test_compiling_measures_nothing(self):
        cache = self.path("cache")
        environment = self.with_variables({"XDG_CACHE_HOME": cache})
        for target in ("cpu", "cpu:haswell"):
            result = self.prunerc("compile", self.ops, "--op", "dense", "--target", target, "-o", "d.o", env=environment)
            self.assertNotIn("measuring", result.err)
        kept = os.path.join(cache, "prunerc")
        self.assertFalse(os.path.isdir(kept) and os.listdir(kept))

    def test_what_the_c_compiler_says_is_shown(self):
        full = self.write("cc.sh", '#!/bin/sh\n[ "$1" = --version ] && exit 0\necho "final link failed: No space left on device"\nexit 1\n')
        os.chmod(full, 0o755)
        line = ("compile", self.ops, "--op", "dense", "-o", "dense.so")
        result = self.prunerc(*line, env=self.with_variables({"PRUNERC_CXX": full}), expect=None)
        self.assertNotEqual(0, result.code)
        self.assertIn("the compiler of C or C++ fails: final link failed: No space left on device", result.err)
        self.assertIn("TMPDIR names the folder for its files", result.err)
        self.assertFalse([name for name in os.listdir(self.folder) if name.startswith("dense")])

    def test_every_stage_can_be_shown(self):
        marks = {
            "ast": "op dense<M: int = 16",
            "prc": "program dense(",
            "sketches": "# sketch ",
            "trace": "(",
            "scheduled": "program dense(",
            "lowered": "program dense(",
            "llvm": "define",
            "asm": ".globl",
        }
        for stage, mark in marks.items():
            with self.subTest(stage=stage):
                self.assertIn(mark, self.prunerc("show", self.ops, "--op", "dense", "--stage", stage).out)

    def test_a_shown_program_is_an_operator_file(self):
        shown = self.prunerc("show", self.ops, "--op", "dense").out
        again = self.prunerc("show", self.write("dense.prc", shown))
        self.assertEqual(shown, again.out)
        inputs = ["--input", "X=ones", "--input", "W=ones", "--input", "bias=zeros"]
        result = self.prunerc("run", self.path("dense.prc"), *inputs)
        self.assertTrue(result.out.startswith("Y: f32[16, 32] = 24, 24"), result.out)

    def test_a_scheduled_program_compiles_as_it_is(self):
        scheduled = self.prunerc("show", self.ops, "--op", "dense", "--stage", "scheduled").out
        self.prunerc("compile", self.write("fast.prc", scheduled), "-o", "fast.o")


if __name__ == "__main__":
    command.main()
