#!/usr/bin/env python3
"""Compiled operators as libraries of other programs: called from C, C++ and by ctypes, rightly, wrongly and all at once."""

import ctypes
import os
import re
import shutil
import subprocess
import sys
import threading

import command

CALLERS = os.path.abspath("tests/tools/callers")
# Of callers/dense.h: large enough for several tasks and a workspace.
SIZES = ("-D", "M=192,N=192,K=96")
STRICT = ("-Wall", "-Wextra", "-Wpedantic", "-Werror", "-O1", "-pthread")
C = ("cc", "-std=c11", "-D_GNU_SOURCE", *STRICT)
CPP = ("c++", "-std=c++17", "-x", "c++", *STRICT)
NUM_CPUS = os.cpu_count()

# What a call needs, in Python.
LOAD_DENSE = """
import ctypes, os, sys, threading, time
library = ctypes.CDLL("./library.so")
arrays = [(ctypes.c_float * n)() for n in (192 * 96, 96 * 192, 192, 192 * 192)]
everywhere = os.sched_getaffinity(0)
"""

# What a feature of the CPU would need that no CPU has.
IMPOSSIBLE = "0x8000000000000000"
# Targets, and features of theirs as /proc/cpuinfo and LLVM name them.
NEWER_CPUS = (("cpu:sapphirerapids", "avx512_fp16", "avx512fp16"), ("cpu:znver4", "avx512_bf16", "avx512bf16"))


class Param(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("dtype", ctypes.c_char_p), ("is_output", ctypes.c_int32), ("ndim", ctypes.c_int32),
                ("shape", ctypes.POINTER(ctypes.c_int64))]


class Info(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("symbol", ctypes.c_char_p), ("bindings", ctypes.c_char_p), ("version", ctypes.c_char_p),
                ("record_id", ctypes.c_int64), ("record_version", ctypes.c_char_p), ("tuned_ns", ctypes.c_double),
                ("flops", ctypes.c_double), ("target", ctypes.c_char_p), ("cpu", ctypes.c_char_p), ("features", ctypes.c_char_p),
                ("num_threads", ctypes.c_int32), ("num_params", ctypes.c_int32), ("params", ctypes.POINTER(Param)),
                ("workspace_bytes", ctypes.c_int64), ("workspace_bytes_per_worker", ctypes.c_int64)]


class Tensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32),
                ("ndim", ctypes.c_int32), ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16),
                ("shape", ctypes.POINTER(ctypes.c_int64)), ("strides", ctypes.POINTER(ctypes.c_int64)),
                ("byte_offset", ctypes.c_uint64)]


class Library:
    """An operator's functions in a shared object."""

    def __init__(self, path, symbol):
        self.library, self.symbol = ctypes.CDLL(path), symbol
        self.function("_error").restype = ctypes.c_char_p
        self.function("_info").restype = ctypes.POINTER(Info)

    def function(self, suffix=""):
        return getattr(self.library, self.symbol + suffix)

    def error(self):
        return self.function("_error")().decode()

    def info(self):
        return self.function("_info")().contents


def longs(*values):
    return (ctypes.c_int64 * max(1, len(values)))(*values)


class LibraryTest(command.CommandTest):
    def compile(self, op, *outputs, arguments=(), **options):
        words = [word for output in outputs for word in ("-o", output)]
        return self.prunerc("compile", self.ops, "--op", op, *words, *arguments, **options)

    def compile_dense(self, *outputs, arguments=()):
        return self.compile("dense", *outputs, arguments=(*SIZES, "--threads", "2", *arguments))

    def build(self, compiler, source, *inputs):
        command_line = [*compiler, "-I.", os.path.join(CALLERS, source), "-x", "none", *inputs, "-o", "caller"]
        done = subprocess.run(command_line, cwd=self.folder, capture_output=True, text=True)
        self.assertEqual(0, done.returncode, f"{command_line}\n{done.stderr}")

    def run_caller(self, **variables):
        done = subprocess.run(["./caller"], cwd=self.folder, capture_output=True, text=True, timeout=120,
                              env=self.with_variables(variables))
        self.assertEqual((0, "right\n"), (done.returncode, done.stdout), done.stdout + done.stderr)

    def run_script(self, script, *arguments, **variables):
        done = subprocess.run([sys.executable, script, *arguments], cwd=self.folder, env=self.with_variables(variables),
                              capture_output=True, text=True, timeout=60)
        self.assertEqual("", done.stderr)
        return done.stdout

    def usable_cpus(self):
        """As prunerc counts them, which makes kernels for as many threads."""
        self.compile("dense", "all.so", arguments=SIZES)
        return Library(self.path("all.so"), "op_dense").info().num_threads

    def load(self, op, arguments=()):
        self.compile(op, op + ".so", arguments=arguments)
        return Library(self.path(op + ".so"), "op_" + op)

    def exported(self, file, *flags):
        """Names that others can link with, without those that every program has."""
        listing = subprocess.run(["nm", *flags, file], cwd=self.folder, capture_output=True, text=True, check=True).stdout
        return set(re.findall(r" T (\w+)$", listing, re.M)) - {"_init", "_fini"}


class Callers(LibraryTest):
    def test_programs_in_c_and_cpp_call_every_form(self):
        self.compile_dense("library.so", "library.a", "library.o", "library.c", "kernel.s", "library.h")
        for compiler in (C, CPP):
            for inputs in (("./library.so",), ("library.a",), ("library.o",)):
                with self.subTest(compiler=compiler[0], inputs=inputs):
                    self.build(compiler, "call.c", *inputs)
                    self.run_caller()
        # What the library has besides the kernel is C that any compiler takes.
        with self.subTest(inputs="library.c"):
            self.build(C, "call.c", "-x", "c", "library.c", "-x", "none", "kernel.s")
            self.run_caller()

    def test_only_what_the_header_declares_is_exported(self):
        self.compile_dense("library.so", "library.h")
        functions = {"op_dense" + suffix for suffix in ("", "_dlpack", "_error", "_info", "_kernel", "_set_launch")}
        self.assertEqual(functions, self.exported("library.so", "-D"))
        with open(self.path("library.h"), encoding="utf-8") as header:
            self.assertEqual(functions, set(re.findall(r"^\w[\w *]* \*?(op_dense\w*)\(", header.read(), re.M)))
        needed = subprocess.run(["readelf", "-d", "library.so"], cwd=self.folder, capture_output=True, text=True, check=True).stdout
        self.assertLessEqual(set(re.findall(r"NEEDED.*\[(.*)\]", needed)), {"libc.so.6", "ld-linux-x86-64.so.2"})

    def test_many_threads_and_forks(self):
        self.compile_dense("library.so", "library.h")
        self.build(C, "concurrent.c", "./library.so")
        for threads in ("", "1", "2", "999"):
            with self.subTest(threads=threads):
                self.run_caller(PRUNERC_NUM_THREADS=threads)

    def test_a_fork_at_exit(self):
        self.compile_dense("library.a", "library.h")
        self.build((*C, "-static"), "exit.c", "library.a")
        self.run_caller(PRUNERC_NUM_THREADS="2")

    def test_a_pool_of_the_user_and_his_settings(self):
        self.compile_dense("library.so", "library.h")
        self.build(C, "launch.c", "./library.so")
        self.run_caller()
        # Two loops: the first one's workers have memory of their own, or none has.
        path = os.path.join(CALLERS, "dense_steps.prn")
        for has_memory, place in ((True, "compute_at(@B0, @L20)\n"), (False, "")):
            with self.subTest(has_memory=has_memory):
                script = self.write("steps.txt", f"split(@L3, [2, -1]) -> @L20, @L21\n{place}parallel(@L20)\nparallel(@L5)\n")
                self.prunerc("compile", path, *SIZES, "--threads", "2", "--schedule", script, "-o", f"{has_memory}.so", "-o", "library.h")
                self.assertEqual(has_memory, Library(self.path(f"{has_memory}.so"), "op_dense").info().workspace_bytes_per_worker > 0)
                self.build(C, "launch.c", f"./{has_memory}.so")
                self.run_caller()

    def test_a_library_takes_its_threads_along(self):
        if NUM_CPUS < 2:
            self.skipTest("one CPU has no use for threads")
        self.compile_dense("library.so", "library.h")
        self.build(C, "reload.c", "-ldl")
        self.run_caller(PRUNERC_NUM_THREADS="2")

    def test_several_operators_in_one_program_share_their_threads(self):
        self.compile_dense("dense.a", "dense.h")
        self.compile("dense", "twin.o", "twin.h", arguments=(*SIZES, "--threads", "2", "--symbol", "twin"))
        self.compile("scale", "scale.a", "scale.h")
        self.write("library.h", '#include "dense.h"\n')
        source = self.write("several.c", r"""
#include "twin.h"
#include "scale.h"
#include "%s/dense.h"
int main(void) {
  Call c = make_call(1);
  check(op_dense(c.x, c.w, c.bias, c.y) == 0 && is_right(&c), "one");
  memset(c.y, 0, ROWS * COLUMNS * sizeof(float));
  check(twin(c.x, c.w, c.bias, c.y) == 0 && is_right(&c), "its twin");
  float a[40] = {3}, s = 2, b[40];
  check(op_scale(a, &s, b) == 0 && b[0] == 6, "another");
  printf("%%d\n", num_threads());
  return 0;
}
""" % CALLERS)
        subprocess.run([*C, "-I.", source, "dense.a", "twin.o", "scale.a", "-o", "caller"], cwd=self.folder, check=True)
        done = subprocess.run(["./caller"], cwd=self.folder, capture_output=True, text=True, timeout=60,
                              env=self.with_variables({"PRUNERC_NUM_THREADS": "2"}))
        self.assertEqual((0, f"{min(2, NUM_CPUS)}\n"), (done.returncode, done.stdout), done.stderr)


class Constants(LibraryTest):
    SUFFIXES = ("", "_dlpack", "_error", "_info", "_kernel", "_prepare", "_prepare_dlpack", "_set_launch")

    def compile_linear(self, *outputs, threads="1"):
        return self.compile("linear", *outputs, arguments=("--threads", threads))

    def test_programs_in_c_and_cpp_prepare_two_sets_of_weights(self):
        for threads in ("1", "2"):
            self.compile_linear("library.so", "library.a", "library.c", "kernel.s", "library.h", threads=threads)
            for compiler, inputs in ((C, ("./library.so",)), (CPP, ("library.a",)),
                                     (C, ("-x", "c", "library.c", "-x", "none", "kernel.s"))):
                with self.subTest(threads=threads, inputs=inputs):
                    self.build(compiler, "constant.c", *inputs)
                    self.run_caller()

    def test_only_what_the_header_declares_is_exported(self):
        self.compile_linear("library.so", "library.h")
        functions = {"op_linear" + suffix for suffix in self.SUFFIXES}
        self.assertEqual(functions, self.exported("library.so", "-D"))
        with open(self.path("library.h"), encoding="utf-8") as header:
            text = header.read()
        self.assertEqual(functions, set(re.findall(r"^\w[\w *]* \*?(op_linear\w*)\(", text, re.M)))
        self.assertIn("int op_linear_prepare(const float* W, const float* bias, void* prepared);", text)
        self.assertIn("int op_linear(const float* X, float* Y, const void* prepared);", text)

    def test_what_another_build_prepared_is_refused(self):
        """The forms of packed weights are the schedule's: one library's memory is noise to another."""
        first = self.load("linear", ("--threads", "1"))
        self.compile("linear", "other.so", arguments=("--threads", "1", "-D", "M=17", "--symbol", "other"))
        other = Library(self.path("other.so"), "other")
        x, w, bias = (ctypes.c_float * (17 * 24))(), (ctypes.c_float * (24 * 36))(), (ctypes.c_float * 36)()
        y = (ctypes.c_float * (17 * 36))()
        memory = (ctypes.c_char * 65536)()
        start = ctypes.c_void_p(-(-ctypes.addressof(memory) // 64) * 64)
        self.assertEqual(0, other.function("_prepare")(w, bias, start), other.error())
        self.assertEqual(0, other.function()(x, y, start))
        self.assertEqual(1, first.function()(x, y, start))
        self.assertIn("not filled by this library's op_linear_prepare", first.error())

    def test_a_tensor_called_prepared_is_another_one(self):
        path = self.write("words.prn", "op p<N=8>(X: f32[N], const prepared: f32[N]) -> (Y: f32[N]) { Y[i] = X[i] * prepared[i]; }")
        self.prunerc("compile", path, "-o", "words.so", "-o", "words.h")
        with open(self.path("words.h"), encoding="utf-8") as header:
            self.assertIn("int op_p_prepare(const float* prepared_, void* prepared);", header.read())

    def test_verbs_take_const_inputs_like_others(self):
        self.assertIn("(X: f32[M,K], const W: f32[K,N], const bias: f32[N]) -> (Y: f32[M,N])",
                      self.prunerc("show", self.ops, "--op", "linear", "--stage", "ast").out)
        command.write_npy(self.path("x.npy"), "<f4", (16, 24), [float(i % 5 - 2) for i in range(16 * 24)])
        command.write_npy(self.path("w.npy"), "<f4", (24, 36), [float(i % 7 - 3) for i in range(24 * 36)])
        command.write_npy(self.path("b.npy"), "<f4", (36,), [float(i) for i in range(36)])
        inputs = ("--input", "X=@x.npy", "--input", "W=@w.npy", "--input", "bias=@b.npy")
        self.prunerc("run", self.ops, "--op", "linear", *inputs, "--output", "Y=y.npy")
        _, _, found = command.read_npy(self.path("y.npy"))
        for i in range(16):
            for j in range(36):
                total = sum(((i * 24 + k) % 5 - 2) * ((k * 36 + j) % 7 - 3) for k in range(24))
                self.assertEqual(max(total + j, 0), found[i * 36 + j])
        for threads in ("1", "2"):
            tuned = self.prunerc("tune", self.ops, "--op", "linear", "--trials", "24", "--threads", threads)
            self.assertIn("linear", tuned.out)
            self.prunerc("bench", self.ops, "--op", "linear", "--threads", threads)
            self.prunerc("verify", self.ops, "--op", "linear", "--threads", threads)


class Arguments(LibraryTest):
    def test_arrays_that_do_not_fit_are_refused(self):
        library = self.load("scale")
        a, s, b = (ctypes.c_float * 40)(*range(40)), ctypes.c_float(3), (ctypes.c_float * 40)()
        call = library.function()
        self.assertEqual(0, call(a, ctypes.byref(s), b))
        self.assertEqual([3.0 * i for i in range(40)], list(b))
        misaligned = ctypes.c_void_p(ctypes.addressof(b) + 2)
        for arguments, message in (
            ((None, ctypes.byref(s), b), "argument 0 (A) is NULL"),
            ((a, ctypes.byref(s), None), "argument 2 (B) is NULL"),
            ((a, ctypes.byref(s), misaligned), "argument 2 (B) is not aligned to 4 bytes"),
            ((a, ctypes.byref(s), a), "argument 2 (B) overlaps argument 0 (A)"),
            ((a, ctypes.byref(b, 156), b), "argument 2 (B) overlaps argument 1 (s)"),
        ):
            with self.subTest(message=message):
                self.assertEqual(1, call(*arguments))
                self.assertEqual(message, library.error())
        # Two inputs may be one array, and what went wrong is another thread's business.
        self.assertEqual(0, call(a, a, b))
        seen = []
        thread = threading.Thread(target=lambda: seen.append(library.error()))
        thread.start()
        thread.join()
        self.assertEqual([""], seen)

    def test_tensors_that_do_not_fit_are_refused(self):
        library = self.load("dense")
        call, shapes = library.function("_dlpack"), ((16, 24), (24, 32), (32,), (16, 32))

        def tensors():
            made = []
            for shape in shapes:
                count = 1
                for extent in shape:
                    count *= extent
                memory = (ctypes.c_float * count)()
                made.append(Tensor(ctypes.addressof(memory), 1, 0, len(shape), 2, 32, 1, longs(*shape), None, 0))
                made[-1].memory = memory
            return made

        def code_of(made):
            return call((ctypes.c_void_p * len(made))(*(None if t is None else ctypes.addressof(t) for t in made)), len(made))

        def changed(index, **fields):
            made = tensors()
            for field, value in fields.items():
                setattr(made[index], field, value)
            return made

        for made in (tensors(), changed(0, strides=longs(24, 1)), changed(2, strides=longs(1)), changed(0, device_type=3)):
            self.assertEqual(0, code_of(made), library.error())
        gap = changed(1)
        gap[1] = None
        for made, message in (
            (tensors()[:3], "3 arguments, not 4"),
            (gap, "argument 1 (W) is NULL"),
            (changed(1, data=None), "argument 1 (W) is NULL"),
            (changed(0, device_type=2), "argument 0 (X) is not in the memory of the CPU"),
            (changed(0, ndim=1), "argument 0 (X) has 1 dimensions, not 2"),
            (changed(0, shape=None), "argument 0 (X) has no shape"),
            (changed(3, shape=longs(16, 31)), "argument 3 (Y) has extent 31 in dimension 1, not 32"),
            (changed(0, strides=longs(1, 16)), "argument 0 (X) is not dense and row-major"),
            (changed(0, strides=longs(0, 1)), "argument 0 (X) is not dense and row-major"),
            (changed(0, code=0), "argument 0 (X) has type code 0 with 32 bits x 1, not 2 with 32"),
            (changed(0, bits=64), "argument 0 (X) has type code 2 with 64 bits x 1, not 2 with 32"),
            (changed(0, lanes=4), "argument 0 (X) has type code 2 with 32 bits x 4, not 2 with 32"),
            (changed(0, byte_offset=2), "argument 0 (X) is not aligned to 4 bytes"),
        ):
            with self.subTest(message=message):
                self.assertEqual(1, code_of(made))
                self.assertEqual(message, library.error())
        self.assertEqual(1, call(None, 4))

    def test_every_type_has_its_c_type(self):
        program = self.write("types.prc", """program types(h: f16[4], b: bf16[4], f: f32[4], d: f64[4], i: i8[4], u: u8[4], n: i32[4],
    l: i64[4], t: bool[4]) -> (s: f64[1]) {
  for i in 1 @L0 { block "s" @B0 [v: S(1) = i] { reads d[v] writes s[v] s[v] = d[v] + d[v] } } }
""")
        self.prunerc("compile", program, "-o", "types.h")
        with open(self.path("types.h"), encoding="utf-8") as header:
            self.assertIn("int op_types(const uint16_t* h, const uint16_t* b, const float* f, const double* d, const int8_t* i, "
                          "const uint8_t* u, const int32_t* n, const int64_t* l, const uint8_t* t, double* s);", header.read())
        library = self.load("widen")
        one, two = (ctypes.c_uint16 * 9)(*[0x3F80] * 9), (ctypes.c_uint16 * 9)()
        self.assertEqual(0, library.function()(one, two))
        self.assertEqual([0x4000] * 9, list(two))


class Information(LibraryTest):
    def test_a_library_says_what_it_is(self):
        self.prunerc("tune", self.ops, "--op", "dense", "--trials", "2", "--threads", "1")
        info = self.load("dense", ("--threads", "1", "--require-tuned")).info()
        version = self.prunerc("--version").out.split()[1]
        self.assertEqual((b"dense", b"op_dense"), (info.name, info.symbol))
        self.assertEqual(version.encode(), info.version)
        self.assertEqual(version.encode(), info.record_version)
        self.assertIn(f"record {info.record_id}: dense", self.prunerc("explain", str(info.record_id)).out)
        self.assertGreater(info.tuned_ns, 0)
        self.assertGreaterEqual(info.flops, 2 * 16 * 32 * 24)
        self.assertEqual(1, info.num_threads)
        self.assertIn(b"sse4.2", info.features.split(b","))
        params = [info.params[i] for i in range(info.num_params)]
        self.assertEqual([b"X", b"W", b"bias", b"Y"], [p.name for p in params])
        self.assertEqual([b"f32"] * 4, [p.dtype for p in params])
        self.assertEqual([0, 0, 0, 1], [p.is_output for p in params])
        self.assertEqual([[16, 24], [24, 32], [32], [16, 32]], [p.shape[: p.ndim] for p in params])

    def test_without_a_record_there_is_none(self):
        info = self.load("total").info()
        self.assertEqual((0, b"", 0.0), (info.record_id, info.record_version, info.tuned_ns))
        self.assertEqual(0, info.params[1].ndim)


class Names(LibraryTest):
    def test_the_symbol_is_the_users(self):
        self.compile("scale", "s.so", "s.h", arguments=("--symbol", "my_scale"))
        self.assertIn("my_scale", self.exported("s.so", "-D"))
        self.assertNotIn("op_scale", self.exported("s.so", "-D"))

    def test_two_libraries_with_one_symbol_do_not_go_together(self):
        self.compile("scale", "one.so", "one.h")
        self.compile("scale", "two.so", "two.h", arguments=("-D", "N=8"))
        self.compile("scale", "other.so", "other.h", arguments=("-D", "N=8", "--symbol", "other"))
        # The same but for its code; and what headers of libraries for GPUs define.
        self.compile("scale", "haswell.o", "haswell.h", arguments=("--target", "cpu:haswell"))
        self.write("gpu.h", "#define PRUNERC_KERNEL_op_scale\n")
        # The same arrays, another number.
        shifted = self.write("shifted.prn", "op scale<N=40, K=2>(A: f32[N], s: f32) -> (B: f32[N]) { B[i] = A[i] * s + K; }\n")
        for k in ("2", "3"):
            self.prunerc("compile", shifted, "-D", f"K={k}", "-o", f"by{k}.so", "-o", f"by{k}.h")
        for first, second, code in (("one", "one", 0), ("one", "other", 0), ("one", "two", 1), ("one", "haswell", 0), ("gpu", "one", 1),
                                    ("by2", "by2", 0), ("by2", "by3", 1)):
            source = self.write("both.c", f'#include "{first}.h"\n#include "{second}.h"\nint main(void) {{ return 0; }}\n')
            for compiler in (C, CPP):
                with self.subTest(first=first, second=second, compiler=compiler[0]):
                    done = subprocess.run([*compiler, "-fsyntax-only", source], cwd=self.folder, capture_output=True, text=True)
                    self.assertEqual(code, done.returncode, done.stderr)
                    self.assertEqual(code == 1, "two libraries have a function op_scale: compile one of them with --symbol" in done.stderr)

    def test_what_c_cannot_call_is_refused(self):
        no_identifiers = ("int", "class", "co_await", "main", "2fast", "a-b", "_hidden", "x y", "NULL", "ü", "a" * 300)
        for symbols, why in ((no_identifiers, "needs an identifier of C and C++"),
                             (("pr", "pr_run", "PR", "Pr_launch"), "names that begin with pr_ are the library's own, found '{}'"),
                             (("exp", "read", "malloc", "pthread_create"), "'{}' is a name of the C library's")):
            for symbol in symbols:
                with self.subTest(symbol=symbol):
                    result = self.compile("scale", "s.so", arguments=("--symbol", symbol), expect=2)
                    self.assertIn("option --symbol: " + why.format(symbol), result.err)
        self.assertFalse(os.path.exists(self.path("s.so")))

    def test_tensors_may_be_called_like_what_the_library_calls(self):
        kept = ("sizes", "args", "workspace", "launch", "tensors", "num_tensors", "pr_run", "pr_array_1", "PR_EXPORT", "PR_OK", "SIGINT",
                "st_mtime", "O_RDONLY")
        moved = ("prepared", "int64_t", "uint8_t", "PrunercLaunch", "PRUNERC_ALIGNMENT", "INT64_MAX", "SIZE_MAX")
        names = kept + moved
        path = self.write("words.prn", f"""op words<N=8>({", ".join(name + ": f32[N]" for name in names)}, n: i64[N]) -> (sum_: f32[N], twice: i64[N]) {{
  sum_[i] = {" + ".join(name + "[i]" for name in names)};
  twice[i] = n[i] + n[i];
}}
""")
        self.prunerc("compile", path, "-o", "words.so", "-o", "words.h")
        with open(self.path("words.h"), encoding="utf-8") as header:
            said = ", ".join("const float* " + name for name in (*kept, *(name + "_" for name in moved)))
            self.assertIn(f"int op_words({said}, const int64_t* n, float* sum_, int64_t* twice);", header.read())
        source = self.write("words.c", '#include "words.h"\nint main(void) { return op_words_info()->num_params == 0; }\n')
        for compiler in (C, CPP):
            subprocess.run([*compiler, source, "-x", "none", "./words.so", "-o", "words"], cwd=self.folder, check=True)
        arrays = [(ctypes.c_float * 8)(*[k] * 8) for k in range(len(names))]
        n, total, twice = longs(*range(8)), (ctypes.c_float * 8)(), longs(*[0] * 8)
        library = Library(self.path("words.so"), "op_words")
        self.assertEqual(0, library.function()(*arrays, n, total, twice), library.error())
        self.assertEqual([sum(range(len(names)))] * 8, list(total))
        self.assertEqual([0, 2, 4, 6, 8, 10, 12, 14], list(twice))

    def test_names_of_the_language_can_be_keywords_of_c(self):
        path = self.write("words.prc", """program default(int: f32[8], new: f32[8]) -> (class: f32[8]) {
  for i in 8 @L0 { block "class" @B0 [v: S(8) = i] { reads int[v], new[v] writes class[v] class[v] = int[v] + new[v] } } }
""")
        self.prunerc("compile", path, "-o", "words.o")
        with open(self.path("words.h"), encoding="utf-8") as header:
            self.assertIn("int op_default(const float* int_, const float* new_, float* class_);", header.read())
        source = self.write("words.c", '#include "words.h"\nint main(void) { return op_default(0, 0, 0) - 1; }\n')
        for compiler in (C, CPP):
            subprocess.run([*compiler, source, "-x", "none", "words.o", "-o", "words"], cwd=self.folder, check=True)
            subprocess.run(["./words"], cwd=self.folder, check=True)


class Machines(LibraryTest):
    def test_threads_are_as_many_as_tuned_said_and_there(self):
        self.compile_dense("library.so", "library.h")
        script = self.write("count.py", LOAD_DENSE + """
if "bound" in sys.argv: os.sched_setaffinity(0, {min(everywhere)})
assert library.op_dense(*arrays) == 0
print(len(os.listdir("/proc/self/task")))
""")
        tuned, two = min(2, self.usable_cpus()), min(2, NUM_CPUS)
        for wish, expected in ((None, tuned), ("", tuned), ("1", 1), ("2", two), ("0", tuned), ("-1", tuned), ("many", tuned),
                               ("2 ", tuned), ("999", NUM_CPUS), ("9" * 40, NUM_CPUS)):
            with self.subTest(wish=wish):
                variables = {} if wish is None else {"PRUNERC_NUM_THREADS": wish}
                self.assertEqual(f"{expected}\n", self.run_script(script, **variables))
        # A wish is more than the process' CPUs.
        self.assertEqual("1\n", self.run_script(script, "bound"))
        self.assertEqual(f"{two}\n", self.run_script(script, "bound", PRUNERC_NUM_THREADS="2"))

    def test_a_first_call_from_a_bound_thread_binds_no_others(self):
        self.compile_dense("library.so", "library.h")
        script = self.write("bound.py", LOAD_DENSE + """
def call():
    os.sched_setaffinity(0, {min(everywhere)})
    assert library.op_dense(*arrays) == 0
    deadline, own, masks = time.monotonic() + 20, {os.getpid(), threading.get_native_id()}, [None]
    # A worker may start only now.
    while any(mask != everywhere for mask in masks) and time.monotonic() < deadline:
        time.sleep(0.01)
        masks = [os.sched_getaffinity(task) for task in map(int, os.listdir("/proc/self/task")) if task not in own]
    print(len(masks), all(mask == everywhere for mask in masks), len(os.sched_getaffinity(0)))
thread = threading.Thread(target=call)
thread.start()
thread.join()
""")
        self.assertEqual(f"{min(2, self.usable_cpus()) - 1} True 1\n", self.run_script(script))

    def test_quotas_of_control_groups_count(self):
        if len(os.sched_getaffinity(0)) < 2:
            self.skipTest("one CPU has no use for threads")
        self.compile_dense("library.a", "library.h")
        self.build(C, "quota.c", "library.a")
        own, unified, old = "proc/self/cgroup", "sys/fs/cgroup", "sys/fs/cgroup/cpu/cpu.cfs_"
        groups = {own: "4:memory:/m\n0::/a/b\n"}
        for files, wish, expected in (
            ({}, "", 2),
            ({**groups, unified + "/a/b/cpu.max": "max 100000\n"}, "", 2),
            ({**groups, unified + "/a/b/cpu.max": "100001 100000\n"}, "", 2),
            ({**groups, unified + "/a/b/cpu.max": "50000 100000\n"}, "", 1),
            ({**groups, unified + "/a/b/cpu.max": "max 100000\n", unified + "/a/cpu.max": "100000 100000\n"}, "", 1),
            ({**groups, unified + "/cpu.max": "100000 100000\n"}, "", 1),
            ({**groups, unified + "/a/cpu.max": "100000 100000\n"}, "2", 2),
            ({**groups, unified + "/a/cpu.max": "100000\n"}, "", 2),
            ({old + "quota_us": "-1\n", old + "period_us": "100000\n"}, "", 2),
            ({old + "quota_us": "100000\n", old + "period_us": "100000\n"}, "", 1),
            ({old + "quota_us": "100000\n"}, "", 2),
        ):
            with self.subTest(files=files, wish=wish):
                shutil.rmtree(self.path("system"), ignore_errors=True)
                for name, text in files.items():
                    os.makedirs(os.path.dirname(self.path("system/" + name)), exist_ok=True)
                    self.write("system/" + name, text)
                done = subprocess.run(["./caller"], cwd=self.folder, capture_output=True, text=True, timeout=60,
                                      env=self.with_variables({"PRUNERC_NUM_THREADS": wish}))
                self.assertEqual((0, f"{expected}\n"), (done.returncode, done.stdout), done.stderr)

    def test_one_thread_needs_no_pool(self):
        self.compile("dense", "one.so", "one.c", "one.h", arguments=(*SIZES, "--threads", "1"))
        with open(self.path("one.c"), encoding="utf-8") as source:
            self.assertNotIn("pthread_create", source.read())
        undefined = subprocess.run(["nm", "-D", "one.so"], cwd=self.folder, capture_output=True, text=True, check=True).stdout
        self.assertNotIn("pthread_create", undefined)

    def test_a_cpu_that_lacks_features_gets_an_error(self):
        self.compile("scale", "scale.c", "scale.s", "scale.h")
        with open(self.path("scale.c"), encoding="utf-8") as source:
            text = source.read()
        changed = re.sub(r'(\{"(?:sse3|sse4\.2)",.*), 0x0\}', rf"\1, {IMPOSSIBLE}}}", text)
        self.assertNotEqual(text, changed)
        self.write("scale.c", changed)
        subprocess.run(["cc", "-shared", "-fPIC", "-fvisibility=hidden", "scale.c", "scale.s", "-o", "scale.so"],
                       cwd=self.folder, check=True)
        library = Library(self.path("scale.so"), "op_scale")
        a, s, b = (ctypes.c_float * 40)(), ctypes.c_float(3), (ctypes.c_float * 40)()
        for _ in range(2):
            self.assertEqual(2, library.function()(a, ctypes.byref(s), b))
            self.assertEqual("the code needs sse3, sse4.2, which this CPU lacks", library.error())
        self.assertEqual(2, library.function("_kernel")(None, None, None))

    def test_code_for_a_newer_cpu_does_not_die_on_this_one(self):
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            flags = re.search(r"^flags\s*:(.*)$", file.read(), re.M)[1].split()
        newer = [(target, feature) for target, flag, feature in NEWER_CPUS if flag not in flags]
        if not newer:
            self.skipTest("this CPU has all that these targets have")
        target, feature = newer[0]
        self.compile("scale", "scale.so", arguments=("--target", target))
        library = Library(self.path("scale.so"), "op_scale")
        a, s, b = (ctypes.c_float * 40)(), ctypes.c_float(3), (ctypes.c_float * 40)()
        self.assertEqual(2, library.function()(a, ctypes.byref(s), b))
        self.assertRegex(library.error(), rf"^the code needs .*{feature}.*, which this CPU lacks$")
        result = self.prunerc("run", self.ops, "--op", "scale", "--input", "A=ones", "--input", "s=ones", "--target", target, expect=5)
        self.assertRegex(result.err, rf"the code needs .*{feature}.*, which this CPU lacks\n")

    def test_without_memory_for_a_workspace_the_call_says_so(self):
        # What lies between the operators of a net is in its workspace.
        net = self.write("two.prn", command.DENSE + """net two(x: f32[3,5], V: f32[5,6], b: f32[6], W: f32[6,4], c: f32[4]) -> (y: f32[3,4]) {
  let h = dense(x, V, b) as up;
  y = dense(h, W, c) as down;
}
""")
        self.prunerc("compile", net, "-o", "two.a", "-o", "two.h")
        source = self.write("two.c", """#include "two.h"
#include <errno.h>
#include <stdio.h>
// In the place of the C library's.
int posix_memalign(void** memory, size_t alignment, size_t size) {
  (void)memory, (void)alignment, (void)size;
  return ENOMEM;
}
int main(void) {
  float x[18] = {0}, V[30] = {0}, W[24] = {0}, y[12];
  const int code = net_two(x, V, x, W, x, y);
  puts(net_two_error());
  return code;
}
""")
        subprocess.run([*C, source, "two.a", "-o", "two"], cwd=self.folder, check=True)
        done = subprocess.run(["./two"], cwd=self.folder, check=False, capture_output=True, text=True)
        self.assertEqual(3, done.returncode, done.stdout)
        self.assertRegex(done.stdout, r"^no memory for a workspace of [1-9]\d* bytes\n$")

    def test_without_a_compiler_the_reason_is_said(self):
        lost = self.with_variables({"PRUNERC_CXX": "/no/such/compiler"})
        result = self.compile("scale", "scale.so", env=lost, expect=None)
        self.assertNotEqual(0, result.code)
        self.assertIn("PRUNERC_CXX names /no/such/compiler, which cannot be started", result.err)
        self.assertFalse(os.path.exists(self.path("scale.so")))
        self.compile("scale", "scale.s", "scale.c", env=lost)

    def test_the_same_command_writes_the_same_bytes(self):
        self.compile_dense("one.so", "one.a", "one.o")
        self.compile_dense("two.so", "two.a", "two.o")
        for suffix in ("so", "a", "o"):
            with self.subTest(suffix=suffix):
                with open(self.path("one." + suffix), "rb") as one, open(self.path("two." + suffix), "rb") as two:
                    self.assertEqual(one.read(), two.read())


if __name__ == "__main__":
    command.main()
