#!/usr/bin/env python3
"""`prunerc compile` and `show`: what they write can be used by others."""

import os
import re
import shutil
import subprocess
import unittest

import command

CALLER = r"""
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include "dense.h"

static int32_t in_turn(const PrunercLaunch* self, int64_t n, PrunercTask body, void* closure) {
  (void)self;
  for (int64_t i = 0; i < n; ++i) body(i, 0, closure);
  return 0;
}

static _Alignas(64) float x[16 * 24], w[24 * 32], bias[32], y[16 * 32];
static _Alignas(64) char workspace[@ENTRY@_WORKSPACE_BYTES(1) + 64];

int main(void) {
  for (int i = 0; i < 16 * 24; ++i) x[i] = (float)(i % 5 - 2);
  for (int i = 0; i < 24 * 32; ++i) w[i] = (float)(i % 7 - 3);
  for (int i = 0; i < 32; ++i) bias[i] = (float)(i - 16);
  void* args[] = {x, w, bias, y};
  PrunercLaunch launch = {in_turn, 1, NULL};
  PrunercKernel kernel = &@ENTRY@;
#ifdef BY_NAME
  void* library = dlopen("./dense.so", RTLD_NOW);
  if (library == NULL) return 2;
  *(void**)&kernel = dlsym(library, "@ENTRY@");
  if (kernel == NULL) return 3;
#endif
  if (kernel(args, workspace, &launch) != 0) return 4;
  for (int i = 0; i < 16; ++i) {
    for (int j = 0; j < 32; ++j) {
      float sum = bias[j];
      for (int k = 0; k < 24; ++k) sum += x[i * 24 + k] * w[k * 32 + j];
      if (y[i * 32 + j] != (sum > 0 ? sum : 0)) return 1;
    }
  }
  puts("right");
  return 0;
}
"""


class Compile(command.CommandTest):
    def compile(self, *outputs):
        arguments = []
        for output in outputs:
            arguments += ["-o", output]
        return self.prunerc("compile", self.ops, "--op", "dense", *arguments)

    def build_caller(self, *flags):
        with open(self.path("dense.h"), encoding="utf-8") as header:
            entry = re.search(r"int32_t (\w+)\(void\* const\* args", header.read())[1]
        self.write("caller.c", CALLER.replace("@ENTRY@", entry))
        subprocess.run(
            ["gcc", "-std=c11", "-Wall", "-Wextra", "-Werror", "-O1", "caller.c", "-o", "caller", *flags],
            cwd=self.folder,
            check=True,
        )
        return subprocess.run(["./caller"], cwd=self.folder, stdout=subprocess.PIPE, check=True).stdout

    @unittest.skipUnless(shutil.which("gcc"), "no C compiler")
    def test_a_shared_library_serves_a_c_program(self):
        result = self.compile("dense.so")
        self.assertIn("schedule: heuristic", result.err)
        self.assertEqual("", result.out)
        self.assertTrue(os.path.exists(self.path("dense.h")))
        self.assertEqual(b"right\n", self.build_caller("./dense.so", "-Wl,-rpath,$ORIGIN"))

    @unittest.skipUnless(shutil.which("gcc"), "no C compiler")
    def test_an_object_links_into_a_c_program(self):
        self.compile("dense.o")
        self.assertEqual(b"right\n", self.build_caller("dense.o", "-lm"))

    def test_text_forms(self):
        self.compile("dense.s", "dense.ll", "dense.h")
        with open(self.path("dense.s"), encoding="utf-8") as text:
            self.assertIn(".globl\tprunerc_", text.read())
        with open(self.path("dense.ll"), encoding="utf-8") as text:
            self.assertIn("define", text.read())

    def test_the_same_command_writes_the_same_bytes(self):
        self.compile("one.o", "two.o")
        with open(self.path("one.o"), "rb") as one, open(self.path("two.o"), "rb") as two:
            self.assertEqual(one.read(), two.read())

    def test_another_cpu_is_compiled_for_without_having_it(self):
        target = ["--target", "cpu:haswell"]
        self.prunerc("compile", self.ops, "--op", "dense", *target, "-o", "haswell.s")
        with open(self.path("haswell.s"), encoding="utf-8") as text:
            listing = text.read()
        self.assertNotIn("%zmm", listing)
        self.assertIn("%ymm", listing)

    def test_a_record_is_used_and_offline_is_content(self):
        self.prunerc("tune", self.ops, "--op", "dense", "--trials", "2")
        result = self.prunerc("compile", self.ops, "--op", "dense", "--offline", "-o", "dense.o")
        self.assertIn("schedule: record", result.err)

    def test_compiling_measures_nothing(self):
        cache = self.path("cache")
        environment = self.with_variables({"XDG_CACHE_HOME": cache})
        for target in ("cpu", "cpu:haswell"):
            result = self.prunerc("compile", self.ops, "--op", "dense", "--target", target, "-o", "d.o", env=environment)
            self.assertNotIn("measuring", result.err)
        kept = os.path.join(cache, "prunerc")
        self.assertFalse(os.path.isdir(kept) and os.listdir(kept))

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
