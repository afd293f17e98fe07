#!/usr/bin/env python3
"""`prunerc run`: arrays in, arrays out."""

import os
import struct

import command
from command import read_npy, write_npy


def bf16_bits(value):
    return struct.unpack("<I", struct.pack("<f", value))[0] >> 16


class Run(command.CommandTest):
    def test_data_in_an_address_is_read_in_each_branch_that_needs_it(self):
        """Rows of vectors that take one branch, and read at a place that is a number of its own."""
        branches = self.write("branches.prn", """
op f<N=64, C=64, M=128>(A: f32[N,C], X: f32[M,C], s: i64) -> (Y: f32[N,C]) {
  let g[i in 0..N,j] = X[s + i, j] or 0;
  Y[i,j] = if A[i,j] > 0 then g[i,j] else g[i,j] * 2;
}
""")
        write_npy(self.path("a.npy"), "<f4", (64, 64), [1 - 2 * (i % 2) for i in range(64) for _ in range(64)])
        write_npy(self.path("x.npy"), "<f4", (128, 64), list(range(128 * 64)))
        write_npy(self.path("s.npy"), "<i8", (), [5])
        wanted = [(64 * (i + 5) + j) * (1 + i % 2) for i in range(64) for j in range(64)]
        for effort in ("-O0", "-O1"):
            self.prunerc("run", branches, effort, "--input", "A=@a.npy", "--input", "X=@x.npy", "--input", "s=@s.npy", "--output", "Y=y.npy")
            self.assertEqual(wanted, read_npy(self.path("y.npy"))[2])
        behind = self.write("behind.prn", """
op f<N=64>(X: f32[N], s: i64) -> (Y: f32[N]) {
  let n = s*2 + 1;
  let g[i in 0..N] = X[n - i] or 0;
  Y[i] = (if X[i] > 0 then g[i] else 1) + (if X[i] < 2 then g[i] else 2);
}
""")
        self.assertIn("right", self.prunerc("verify", behind, "--seeds", "3").out)

    def test_dense_gives_what_the_definition_says(self):
        m, n, k = 3, 5, 4
        x = [i % 7 - 3 for i in range(m * k)]
        w = [i % 5 - 2 for i in range(k * n)]
        b = [i - 2 for i in range(n)]
        write_npy(self.path("x.npy"), "<f4", (m, k), x)
        write_npy(self.path("w.npy"), "<f4", (k, n), w)
        write_npy(self.path("b.npy"), "<f4", (n,), b)
        # M, N and K follow from the shapes of the files, since nothing else says what they are.
        text = command.OPERATORS.replace("<M=16, N=32, K=24>", "<M, N, K>")
        result = self.prunerc(
            "run", self.write("free.prn", text), "--op", "dense", "--input", "X=@x.npy", "--input", "W=@w.npy",
            "--input", "bias=@b.npy", "--output", "Y=y.npy",
        )
        self.assertIn("no record", result.err)
        self.assertEqual("", result.out)
        descr, shape, y = read_npy(self.path("y.npy"))
        self.assertEqual(("<f4", (m, n)), (descr, shape))
        want = [
            max(sum(x[i * k + c] * w[c * n + j] for c in range(k)) + b[j], 0) for i in range(m) for j in range(n)
        ]
        self.assertEqual(want, y)

    def test_scalars_are_arrays_without_dimensions(self):
        write_npy(self.path("s.npy"), "<f4", (), [2.5])
        write_npy(self.path("a.npy"), "<f4", (4,), [1, 2, 3, 4])
        self.prunerc(
            "run", self.ops, "--op", "scale", "-D", "N=4", "--input", "A=@a.npy", "--input", "s=@s.npy",
            "--output", "B=b.npy",
        )
        self.assertEqual(("<f4", (4,), [2.5, 5, 7.5, 10]), read_npy(self.path("b.npy")))
        self.prunerc("run", self.ops, "--op", "total", "-D", "N=4", "--input", "A=@a.npy", "--output", "T=t.npy")
        self.assertEqual(("<f4", (), [10]), read_npy(self.path("t.npy")))

    def test_bf16_is_a_two_byte_void(self):
        values = [0.0, 1.0, -2.5, 3.0, 0.5, 8.0, -0.125, 96.0, 1.5]
        for descr in ("<V2", "|V2"):
            write_npy(self.path("a.npy"), descr, (9,), [bf16_bits(v) for v in values])
            self.prunerc("run", self.ops, "--op", "widen", "--input", "A=@a.npy", "--output", "B=b.npy")
            self.assertEqual(
                ("<V2", (9,), [bf16_bits(2 * v) for v in values]), read_npy(self.path("b.npy"))
            )

    def test_fills_are_the_same_each_time_and_summaries_go_to_stdout(self):
        one = self.prunerc("run", self.ops, "--op", "total", "-D", "N=6", "--input", "A=arange")
        self.assertEqual("T: f32[] = 15\n", one.out)
        again = [
            self.prunerc("run", self.ops, "--op", "scale", "--input", f"A=rand:normal:seed={seed}", "--input", "s=ones")
            for seed in (7, 7, 8)
        ]
        self.assertEqual(again[0].out, again[1].out)
        self.assertNotEqual(again[0].out, again[2].out)
        self.assertRegex(again[0].out, r"^B: f32\[40\] = .*, \.\.\.\n$")

    def test_what_does_not_fit_is_refused(self):
        write_npy(self.path("long.npy"), "<f4", (7,), [0] * 7)
        write_npy(self.path("double.npy"), "<f8", (40,), [0] * 40)
        with open(self.path("short.npy"), "wb") as out:
            out.write(b"\x93NUMPY\x01\x00\x10\x00{'descr'")
        cases = [
            (["--input", "A=@long.npy", "-D", "N=40"], 1),
            (["--input", "A=@double.npy"], 1),
            (["--input", "A=@short.npy"], 1),
            (["--input", "A=@missing.npy"], 5),
            ([], 2),
            (["--input", "A=ones", "--input", "Z=ones"], 1),
            (["--input", "A=ones", "--output", "Z=z.npy"], 1),
        ]
        for arguments, code in cases:
            with self.subTest(arguments=arguments):
                result = self.prunerc("run", self.ops, "--op", "total", *arguments, expect=code)
                self.assertEqual("", result.out)
                self.assertIn("error: ", result.err)
                if "A=@double.npy" in arguments:
                    self.assertIn("error: 'A' needs f32[40], found f64[40]\n", result.err)
                for role, option in (("input", "Z=ones"), ("output", "Z=z.npy")):
                    if option in arguments:
                        self.assertIn(f"error: 'total' has no {role} 'Z'; it has '", result.err)
        result = self.prunerc("run", self.ops, "--op", "total", "-D", "N=40", "--input", "A=@long.npy", expect=1)
        self.assertIn("40", result.err)
        self.assertIn("7", result.err)

    def test_an_array_of_another_length_does_not_rebind_a_default(self):
        write_npy(self.path("long.npy"), "<f4", (7,), [1] * 7)
        total = ["run", self.ops, "--op", "total", "--input", "A=@long.npy"]
        result = self.prunerc(*total, expect=1)
        self.assertIn("is 7 in dimension 0, but 40 is declared; bind it with -D N=7", result.err)
        self.assertEqual("T: f32[] = 7\n", self.prunerc(*total, "-D", "N=7").out)

    def test_high_byte_first_and_byte_order_marks_are_read(self):
        write_npy(self.path("a.npy"), "<f4", (40,), [0] * 40)
        with open(self.path("a.npy"), "rb+") as file:
            bytes_ = file.read().replace(b"<f4", b">f4")[:-160] + struct.pack(">40f", *range(40))
            file.seek(0)
            file.write(bytes_)
        marked = self.write("marked.prn", "\ufeff" + command.OPERATORS)
        self.assertEqual("T: f32[] = 780\n", self.prunerc("run", marked, "--op", "total", "--input", "A=@a.npy").out)
        importer = self.write("importer.prn", '\ufeffimport "marked.prn";\nop g<N=3>(X: f32[N]) -> (Y: f32[N]) { Y[i] = X[i]; }\n')
        self.prunerc("show", importer)
        self.prunerc("show", marked.replace("marked", "mark\u00e9d"), expect=5)

    def test_an_output_that_cannot_be_written_ends_with_5(self):
        arguments = ["run", self.ops, "--op", "total", "--input", "A=ones", "--output", "T=nowhere/t.npy"]
        self.assertIn("nowhere/t.npy", self.prunerc(*arguments, expect=5).err)
        self.assertEqual([], [name for name in os.listdir(self.folder) if name.startswith("t.npy")])

    def test_a_stored_record_is_used(self):
        self.prunerc("tune", self.ops, "--op", "dense", "--trials", "3")
        inputs = ["--input", "X=ones", "--input", "W=ones", "--input", "bias=zeros"]
        result = self.prunerc("run", self.ops, "--op", "dense", *inputs)
        self.assertNotIn("no record", result.err)
        self.assertEqual("Y: f32[16, 32] = 24, 24, 24, 24, 24, 24, 24, 24, ...\n", result.out)


if __name__ == "__main__":
    command.main()
