#!/usr/bin/env python3
"""Targets cuda and cuda-host: what works without a GPU, and what says why it does not."""

import ctypes
import os
import subprocess

import command

FOLDER = os.path.abspath("tools/examples/gpu")
PROGRAM = os.path.join(FOLDER, "matmul_f16.prc")
SCHEDULE = ("--schedule", os.path.join(FOLDER, "matmul_f16.trace"))


class Gpu(command.CommandTest):
    def test_kernels_run_on_the_host_and_are_verified(self):
        result = self.prunerc("verify", PROGRAM, *SCHEDULE, "--target", "cuda-host:sm_80", "--json").json()
        self.assertEqual("right", result["results"][0]["verdict"])
        self.assertEqual("host", result["results"][0]["ran_on"])
        self.assertEqual(3, result["results"][0]["seeds"])
        self.assertTrue(result["results"][0]["equality"].startswith("equal"))
        self.assertRegex(result["results"][0]["races"], r"none among \d+ accesses in 2 blocks$")

    def test_verify_for_a_gpu_uses_the_host_where_there_is_none(self):
        if os.path.exists("/dev/nvidia0"):
            self.skipTest("this machine has a GPU")
        result = self.prunerc("verify", PROGRAM, *SCHEDULE, "--target", "cuda:sm_80", "--seeds", "1")
        self.assertIn("right on 1 of 1", result.out)
        self.assertIn("ran on this CPU, in place of a GPU", result.out)

    def test_run_gives_the_product(self):
        args = ("--input", "A=ones", "--input", "B=ones", "--target", "cuda-host:sm_80")
        self.assertIn("C: f32[128, 128] = 128, 128, 128", self.prunerc("run", PROGRAM, *SCHEDULE, *args).out)

    def test_the_text_of_kernels_is_written(self):
        path = os.path.join(self.folder, "k.cu")
        self.prunerc("compile", PROGRAM, *SCHEDULE, "--target", "cuda:sm_80", "-o", path)
        with open(path, encoding="utf-8") as file:
            text = file.read()
        for part in ("pr_mma_m16n8k16_f16(pr_regs<float, 4>(", "pr_cp_async_wait<1>();", "PR_KERNEL(128, 1)"):
            self.assertIn(part, text)
        self.assertNotIn("matmul_f16", text)

    def test_a_library_says_what_it_lacks(self):
        path = os.path.join(self.folder, "k.so")
        result = self.prunerc("compile", PROGRAM, *SCHEDULE, "--target", "cuda:sm_80", "-o", path, expect=None)
        if "NVRTC" in result.err:
            self.skipTest(result.err)
        self.assertEqual(0, result.code)
        with open(os.path.join(self.folder, "k.h"), encoding="utf-8") as file:
            header = file.read()
        self.assertIn("[2] out C: f32[128, 128]", header)
        self.assertIn("int32_t op_matmul_f16_dlpack(", header)
        library = ctypes.CDLL(path)
        reason = library.op_matmul_f16_error
        reason.restype = ctypes.c_char_p
        self.assertEqual(1, library.op_matmul_f16_dlpack(None, 0, None))
        self.assertEqual(b"0 arguments, not 3", reason())
        source = os.path.join(self.folder, "k.c")
        self.prunerc("compile", PROGRAM, *SCHEDULE, "--target", "cuda:sm_80", "-o", source)
        strict = ["g++", "-x", "c", "-std=c11", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", source]
        subprocess.run(strict, check=True)

    def test_compile_offers_no_search_where_none_can_run(self):
        if os.path.exists("/dev/nvidia0"):
            self.skipTest("this machine has a GPU")
        dense = os.path.abspath("tools/examples/dense_relu.prn")
        result = self.prunerc("compile", dense, "--target", "cuda:sm_80", "-o", self.path("k.cu"))
        self.assertIn("schedule: heuristic; there is no record\n", result.err)

    def test_what_cannot_be_is_said(self):
        path = os.path.join(self.folder, "k.ll")
        result = self.prunerc("compile", PROGRAM, *SCHEDULE, "--target", "cuda:sm_80", "-o", path, expect=2)
        self.assertIn("a kernel for cuda:sm_80 cannot be written to", result.err)
        self.assertFalse(os.path.exists(path))
        result = self.prunerc("tune", PROGRAM, "--target", "cuda-host:sm_80", "--db", ":memory:", expect=1)
        self.assertIn("have no times that mean anything", result.err)


if __name__ == "__main__":
    command.main()
