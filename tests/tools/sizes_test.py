#!/usr/bin/env python3
"""A model with several values for its dimensions: one library, tuned, timed and verified for each."""

import ctypes
import json
import os
import re
import subprocess

import command
from command import read_npy, write_npy


class Tensor(ctypes.Structure):
    """DLTensor."""

    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


def tensor(array, shape):
    extents = (ctypes.c_int64 * len(shape))(*shape)
    return Tensor(ctypes.addressof(array), 1, 0, len(shape), 2, 32, 1, extents, None, 0)


def floats(count):
    return (ctypes.c_float * count)()


class Sizes(command.CommandTest):
    def write_model(self, name, inside, inputs, outputs):
        """`inside`: nodes and weights. Inputs and outputs are pairs of a name and its dimensions."""
        m = self.onnx

        def port(name, dims):
            dims = [m.message(1, m.message(2, d) if isinstance(d, str) else m.number(1, d)) for d in dims]
            return m.message(1, name) + m.message(2, m.message(1, m.number(1, 1) + m.message(2, b"".join(dims))))

        graph = inside + m.message(2, name)
        graph += b"".join(m.message(11, port(*one)) for one in inputs) + b"".join(m.message(12, port(*one)) for one in outputs)
        with open(self.path(name + ".onnx"), "wb") as out:
            out.write(m.number(1, 8) + m.message(7, graph) + m.message(8, m.number(2, 13)))
        return self.path(name + ".onnx")

    def setUp(self):
        super().setUp()
        self.onnx = m = command.onnx_writer()
        # A softmax over seq: rows that are not there would change it. What is made of z does not depend on seq.
        nodes = [
            m.node("MatMul", ["x", "w"], "h"),
            m.node("Softmax", ["h"], "s", axis=1),
            m.node("MatMul", ["s", "v"], "y"),
            m.node("ReduceMean", ["s"], "mean", axes=[1], keepdims=0),
            m.node("Gemm", ["mean", "u", "b"], "z"),
        ]
        weights = [
            m.tensor("w", [4, 8], m.made_up(32, 0.9, 0.1)),
            m.tensor("v", [8, 5], m.made_up(40, 0.7, 0.3)),
            m.tensor("u", [8, 3], m.made_up(24, 0.8, 0.5)),
            m.tensor("b", [3], [0.5, -0.5, 0.25]),
        ]
        inside = b"".join(m.message(1, node) for node in nodes) + b"".join(m.message(5, weight) for weight in weights)
        outputs = [("y", ["batch", "seq", 5]), ("z", ["batch", 3])]
        self.model = self.write_model("rows", inside, [("x", ["batch", "seq", 4])], outputs)

    def wanted(self, batch, seq):
        """The input, and what `run` gives with one value of each."""
        x = [((i * 7) % 23 - 11) / 5 for i in range(batch * seq * 4)]
        write_npy(self.path("x.npy"), "<f4", (batch, seq, 4), x)
        self.prunerc("run", self.model, "--input", "x=@x.npy", "--output", "y=y.npy", "--output", "z=z.npy")
        return (ctypes.c_float * len(x))(*x), read_npy(self.path("y.npy")), read_npy(self.path("z.npy"))

    def assert_close(self, wanted, got):
        self.assertEqual(len(wanted), len(got))
        for w, g in zip(wanted, got):
            self.assertAlmostEqual(w, g, places=5)

    def test_one_library_is_exact_for_each_listed_size(self):
        out = self.prunerc("compile", self.model, "-D", "seq=3,17,batch=1,2", "-o", "librows.so").err
        self.assertIn("rows batch=2,seq=17: 5 calls of 5 kernels", out)
        # That of z once for each batch.
        self.assertIn("rows for 4 combinations of sizes: 18 kernels", out)
        library = ctypes.CDLL(self.path("librows.so"))
        library.net_rows_error.restype = ctypes.c_char_p
        call, size = library.net_rows, ctypes.c_int64
        for batch, seq in ((1, 3), (1, 17), (2, 3), (2, 17)):
            x, (_, y_shape, y), (_, z_shape, z) = self.wanted(batch, seq)
            self.assertEqual(((batch, seq, 5), (batch, 3)), (y_shape, z_shape))
            got_y, got_z = floats(len(y)), floats(len(z))
            self.assertEqual(0, call(size(batch), size(seq), x, got_y, got_z))
            self.assert_close(y, got_y)
            self.assert_close(z, got_z)
            # Tensors bring their sizes.
            by_tensor = floats(len(y)), floats(len(z))
            views = [tensor(x, (batch, seq, 4)), tensor(by_tensor[0], y_shape), tensor(by_tensor[1], z_shape)]
            pointers = (ctypes.POINTER(Tensor) * 3)(*(ctypes.pointer(view) for view in views))
            self.assertEqual(0, library.net_rows_dlpack(pointers, 3))
            self.assertEqual((list(got_y), list(got_z)), (list(by_tensor[0]), list(by_tensor[1])))
        x, y, z = floats(200), floats(200), floats(6)
        for batch, seq in ((2, 16), (3, 17), (0, 0), (-1, 1 << 40)):
            self.assertEqual(5, call(size(batch), size(seq), x, y, z))
            error = library.net_rows_error().decode()
            self.assertEqual(f"it was not compiled for batch={batch},seq={seq}, but for batch = 1, 2; seq = 3, 17", error)
        views = [tensor(x, (2, 4, 4)), tensor(y, (2, 4, 5)), tensor(z, (2, 3))]
        pointers = (ctypes.POINTER(Tensor) * 3)(*(ctypes.pointer(view) for view in views))
        self.assertEqual(5, library.net_rows_dlpack(pointers, 3))
        self.assertIn(b"batch = 1, 2; seq = 3, 17", library.net_rows_error())
        # Shapes that do not go together.
        views[0] = tensor(x, (2, 3, 4))
        pointers[0] = ctypes.pointer(views[0])
        self.assertEqual(5, library.net_rows_dlpack(pointers, 3))
        self.assertEqual(1, library.net_rows_dlpack(pointers, 2))
        self.assertEqual(1, library.net_rows_dlpack(None, 3))
        self.assertEqual(1, call(size(1), size(3), None, y, z))
        self.assertIn(b"NULL", library.net_rows_error())
        self.assertEqual([0] * 200, list(y))

    def test_recorded_runs_are_compared_at_their_sizes(self):
        m, (x, y, z) = self.onnx, self.wanted(2, 3)
        os.makedirs(self.path("test_data_set_0"))

        def write(name, dims, values):
            with open(self.path("test_data_set_0/%s.pb" % name), "wb") as out:
                out.write(m.tensor(name, dims, values))

        write("input_0", [2, 3, 4], list(x))
        write("output_0", list(y[1]), y[2])
        write("output_1", list(z[1]), z[2])

        def verify(sizes, expect=0):
            return self.prunerc("verify", self.model, "--seeds", "1", "-D", sizes, expect=expect)

        self.assertIn("on 1 recorded run", verify("batch=2,seq=3").out)
        for sizes in ("batch=1,seq=3", "batch=1,seq=3,4"):
            told = verify(sizes)
            self.assertNotIn("recorded", told.out)
            self.assertIn("test_data_set_0 is of other sizes: not compared", told.err)
        # Outputs of other shapes are wrong at any size.
        write("output_1", [3, 2], z[2])
        for sizes in ("batch=2,seq=3", "batch=2,seq=3,4"):
            self.assertIn("f32[2,3]", verify(sizes, expect=1).err)
        # So are inputs of another rank or type.
        write("input_0", [2, 12], list(x))
        self.assertIn("needs f32[1,3,4], found f32[2,12]", verify("batch=1,seq=3", expect=1).err)
        with open(self.path("test_data_set_0/input_0.pb"), "wb") as out:
            dims = b"".join(m.number(1, d) for d in (2, 3, 4))
            out.write(dims + m.number(2, 6) + m.message(9, bytes(96)))
        self.assertIn("needs f32[1,3,4], found i32[2,3,4]", verify("batch=1,seq=3,4", expect=1).err)

    def test_a_program_in_c_and_in_cxx_calls_each_kernel(self):
        self.prunerc("compile", self.model, "-D", "seq=2,5,batch=1", "--symbol", "rows", "-o", "rows.a")
        main = self.write("main.c", """#include "rows.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static int32_t serially(const PrunercLaunch* self, int64_t num_tasks, PrunercTask body, void* closure) {
  (void)self;
  for (int64_t task = 0; task < num_tasks; ++task) body(task, 0, closure);
  return 0;
}
int main(void) {
  const int64_t sizes[] = {2, 5};
  const PrunercLaunch launch = {serially, 1, NULL};
  void* workspace = NULL;
  if (posix_memalign(&workspace, PRUNERC_ALIGNMENT, ROWS_WORKSPACE_BYTES(1) + 1) != 0) return 1;
  if (ROWS_NUM_SIZES != 2 || rows_info()->num_sizes != 2) return 2;
  if (strcmp(rows_info()[0].bindings, "seq=2") != 0 || strcmp(rows_info()[1].bindings, "seq=5") != 0) return 3;
  for (int i = 0; i < 2; ++i) {
    const int64_t seq = sizes[i];
    float x[20], y[25], z[3], y2[25], z2[3];
    for (int j = 0; j < 20; ++j) x[j] = (float)(j % 7) / 7;
    const PrunercInfo* info = &rows_info()[i];
    if (info->num_params != 3 || info->params[0].shape[1] != seq || info->params[1].shape[1] != seq) return 4;
    if (rows(seq, x, y, z) != 0) return 5;
    void* args[] = {x, y2, z2};
    if (rows_kernel(seq, args, workspace, &launch) != 0) return 6;
    if (memcmp(y, y2, (size_t)seq * 5 * sizeof(float)) != 0 || memcmp(z, z2, sizeof z) != 0) return 7;
    if (rows_kernel(seq + 1, args, workspace, &launch) != PRUNERC_ERROR_SIZES) return 8;
  }
  free(workspace);
  printf("%s\\n", rows_error());
  return 0;
}
""")
        for compiler in (["gcc"], ["g++", "-x", "c++"]):
            line = [*compiler, "-Wall", "-Wextra", "-Werror", "-O1", "-pthread", main, "-x", "none", self.path("rows.a")]
            subprocess.run([*line, "-o", self.path("main")], check=True)
            out = subprocess.run([self.path("main")], check=True, capture_output=True, text=True).stdout
            self.assertEqual("it was not compiled for seq=6, but for seq = 2, 5\n", out)
        with open(self.path("rows.h"), encoding="utf-8") as header:
            text = header.read()
        self.assertIn(" *   [0] x: f32[1, seq, 4]\n *   [1] out y: f32[1, seq, 5]\n *   [2] out z: f32[1, 3]\n", text)
        self.assertIn("Compiled for seq = 2, 5,", text)

    def test_dimensions_may_be_called_like_what_the_library_has(self):
        dims = ["args", "launch", "workspace", "sizes"]
        node = self.onnx.message(1, self.onnx.node("Relu", ["sizes"], "tensors"))
        model = self.write_model("words", node, [("sizes", dims)], [("tensors", dims)])
        values = ",".join(dim + "=1,2" for dim in dims)
        self.prunerc("compile", model, "-D", values, "-o", "words.so", "-o", "words.h")
        with open(self.path("words.h"), encoding="utf-8") as header:
            declared = re.search(r"^int net_words\((.*), const float\* sizes_, float\* tensors\);", header.read(), re.M)
        names = ("args_", "launch_", "workspace_", "sizes")
        self.assertEqual({"int64_t " + name for name in names}, set(declared[1].split(", ")))
        main = self.write("main.c", '#include "words.h"\nint main(void) { return net_words_info()->num_sizes != 16; }\n')
        for compiler in (["gcc"], ["g++", "-x", "c++"]):
            line = [*compiler, "-Wall", "-Wextra", "-Werror", main, "-x", "none", self.path("words.so"), "-o", self.path("main")]
            subprocess.run(line, check=True)
            subprocess.run([self.path("main")], check=True)
        x, y = (ctypes.c_float * 16)(*(i - 8 for i in range(16))), floats(16)
        self.assertEqual(0, ctypes.CDLL(self.path("words.so")).net_words(*[ctypes.c_int64(2)] * 4, x, y))
        self.assertEqual([max(i - 8, 0) for i in range(16)], list(y))

    def test_dimensions_may_end_comments(self):
        dim = "*/ no declaration /*"
        node = self.onnx.message(1, self.onnx.node("Relu", ["x"], "y"))
        model = self.write_model("comment", node, [("x", [dim, 4])], [("y", [dim, 4])])
        self.prunerc("compile", model, "-D", dim + "=1,2", "-o", "comment.so", "-o", "comment.h")
        main = self.write("main.c", '#include "comment.h"\nint main(void) { return net_comment_info()->num_sizes != 2; }\n')
        for compiler in (["gcc"], ["g++", "-x", "c++"]):
            subprocess.run([*compiler, "-Wall", "-Wextra", "-Werror", "-fsyntax-only", main], check=True)
        library = ctypes.CDLL(self.path("comment.so"))
        library.net_comment_error.restype = ctypes.c_char_p
        x, y = floats(8), floats(8)
        self.assertEqual(5, library.net_comment(ctypes.c_int64(3), x, y))
        name = "".join(c if c.isalnum() else "_" for c in dim)
        self.assertEqual(f"it was not compiled for {name}=3, but for {name} = 1, 2", library.net_comment_error().decode())

    def test_tune_bench_and_verify_take_lists(self):
        tuned = self.prunerc("tune", self.model, "-D", "batch=2,seq=3,17", "--trials", "1")
        # That of z is one task.
        self.assertIn("tuned 9 tasks", tuned.err)
        self.assertIn("y@seq=17: ", tuned.out)
        # Each size has the last word about its schedules.
        self.assertIn("within rows seq=3: ", tuned.out)
        self.assertIn("within rows seq=17: ", tuned.out)
        self.assertNotIn("z@seq", tuned.out)
        self.assertIn("-D batch=2,seq=3,17", tuned.err)
        rows = self.prunerc("bench", self.model, "-D", "batch=2,seq=3,17", "--samples", "3", "--threads", "1,2").out
        self.assertEqual(5, len(rows.splitlines()))
        self.assertIn("rows seq=17 ", rows)
        out = self.prunerc("bench", self.model, "-D", "batch=2,seq=17,3", "--samples", "3", "--json").out
        bench = json.loads(out)["rows"]
        self.assertEqual(["seq=17", "seq=3"], [row["sizes"] for row in bench])
        for row in bench:
            self.assertEqual(["record"] * 5, [step["schedule"] for step in row["steps"]])
            self.assertGreater(row["median_ns"], 0)
        lines = self.prunerc("verify", self.model, "-D", "batch=2,seq=3,17", "--cuts").out.splitlines()
        self.assertEqual(["rows seq=3: right on 3 seeds", "rows seq=17: right on 3 seeds"], [line[: line.index("seeds") + 5] for line in lines])
        verdicts = self.prunerc("verify", self.model, "-D", "batch=1,2,seq=3", "--seeds", "1", "--json").out.splitlines()
        self.assertEqual([("batch=1", "right"), ("batch=2", "right")], [(v["sizes"], v["verdict"]) for v in map(json.loads, verdicts)])
        # Each size has its records.
        self.prunerc("compile", self.model, "-D", "batch=2,seq=3,17", "--require-tuned", "-o", "librows.so")
        missing = self.prunerc("compile", self.model, "-D", "batch=2,seq=3,4", "--require-tuned", "-o", "librows.so", expect=6).err
        self.assertIn("of net 'rows seq=4'", missing)

    def test_what_cannot_be_listed_is_refused(self):
        def refused(*arguments, expect=2):
            return self.prunerc(*arguments, expect=expect).err

        library = ("-o", "librows.so")
        self.assertIn("lists seq=3,4, where one value is needed", refused("run", self.model, "-D", "batch=1,seq=3,4"))
        self.assertIn("compile, tune, bench and verify", refused("show", self.model, "-D", "batch=1,seq=3,4"))
        self.assertIn("where one value", refused("compile", self.ops, "--op", "dense", "-D", "M=3,4", *library))
        self.assertIn("where one value", refused("tune", self.ops, "--op", "dense", "-D", "M=3,4"))
        self.assertIn("where one value", refused("tune", "-e", "y[i] = x[i]", "-D", "i=3,4"))
        self.assertIn("seq=3 twice", refused("compile", self.model, "-D", "seq=3,5,3,batch=1", *library))
        self.assertIn("found 'x'", refused("compile", self.model, "-D", "seq=3,x,batch=1", *library))
        self.assertIn("found '0'", refused("compile", self.model, "-D", "seq=0,1,batch=1", *library))
        self.assertIn("found ''", refused("compile", self.model, "-D", "seq=3,,batch=1", *library))
        self.assertIn("found '4'", refused("compile", self.model, "-D", "4,seq=3", *library))
        many = "seq=1,2,3,4,5,6,7,8,9,batch=1,2,3,4,5,6,7,8"
        self.assertIn("more than 64 combinations", refused("compile", self.model, "-D", many, *library))
        self.assertIn("no dimension 'rows'", refused("compile", self.model, "-D", "seq=3,4,batch=1,rows=1,2", *library, expect=1))
        self.assertIn("without a value: batch", refused("compile", self.model, "-D", "seq=3,4", *library, expect=1))
        self.assertFalse(os.path.exists(self.path("librows.so")))


if __name__ == "__main__":
    command.main()
