#!/usr/bin/env python3
"""The verbs on an ONNX model: show, run, tune, bench, verify, compile."""

import ctypes
import os
import shutil
import struct

import command
from command import read_npy, write_npy

ROOT = os.getcwd()


class Onnx(command.CommandTest):
    def setUp(self):
        super().setUp()
        self.made = command.onnx_writer()
        self.model = self.path("small_cnn.onnx")
        shutil.copy(os.path.join(ROOT, "tools/examples/small_cnn.onnx"), self.model)
        self.image = [((i * 7) % 19 - 9) / 9 for i in range(784)]
        write_npy(self.path("image.npy"), "<f4", (1, 1, 28, 28), self.image)

    def write_model(self, name, data):
        with open(self.path(name), "wb") as out:
            out.write(data)
        return self.path(name)

    def test_the_example_is_what_its_script_makes(self):
        with open(self.model, "rb") as file:
            self.assertEqual(self.made.model(), file.read())

    def test_run_is_a_distribution_and_the_library_gives_the_same(self):
        self.prunerc("run", self.model, "--input", "image=@image.npy", "--output", "probabilities=y.npy")
        kind, shape, y = read_npy(self.path("y.npy"))
        self.assertEqual(("<f4", (1, 10)), (kind, shape))
        self.assertAlmostEqual(1, sum(y), places=5)
        self.assertGreater(max(y) - min(y), 0.01)
        self.prunerc("compile", self.model, "-o", "libsmall_cnn.so")
        library, out = ctypes.CDLL(self.path("libsmall_cnn.so")), (ctypes.c_float * 10)()
        self.assertEqual(0, library.net_small_cnn((ctypes.c_float * 784)(*self.image), out))
        for ours, theirs in zip(out, y):
            self.assertAlmostEqual(ours, theirs, places=5)

    def test_tune_bench_verify_and_show(self):
        text = self.prunerc("show", self.model, "--stage", "net").out
        self.assertIn("net small_cnn(image: f32[1,1,28,28]) -> (probabilities: f32[1,10])", text)
        self.assertIn("tasks of", self.prunerc("show", self.model, "--stage", "tasks").out)
        network = self.prunerc("tune", self.model, "--trials", "8", "--json").json()["network"]
        self.assertLessEqual(network["after_ns"], network["before_ns"])
        self.assertGreater(network["after_ns"], 0)
        self.assertIn("right on 3 seeds", self.prunerc("verify", self.model, "--cuts").out)
        self.assertIn("of limit", self.prunerc("bench", self.model, "--samples", "3").out)

    def test_recorded_runs_beside_the_model_are_compared(self):
        os.makedirs(self.path("test_data_set_0"))
        self.prunerc("run", self.model, "--input", "image=@image.npy", "--output", "probabilities=y.npy")
        y = read_npy(self.path("y.npy"))[2]
        self.write_model("test_data_set_0/input_0.pb", self.made.tensor("image", [1, 1, 28, 28], self.image))
        self.write_model("test_data_set_0/output_0.pb", self.made.tensor("y", [1, 10], y))
        self.assertIn("on 1 recorded run", self.prunerc("verify", self.model, "--seeds", "1").out)
        y[3] += 0.5
        self.write_model("test_data_set_0/output_0.pb", self.made.tensor("y", [1, 10], y))
        self.assertIn("recorded in", self.prunerc("verify", self.model, "--seeds", "1", expect=4).out)
        self.write_model("test_data_set_0/output_0.pb", self.made.tensor("y", [5, 2], y))
        self.assertIn("f32[1,10]", self.prunerc("verify", self.model, "--seeds", "1", expect=1).err)

    def test_dimensions_operands_and_what_is_missing(self):
        m = self.made
        named = m.message(1, "x") + m.message(2, m.message(1, m.number(1, 1) + m.message(2, m.message(1, m.message(2, "batch")))))
        ports = m.message(11, named) + m.message(12, m.port("y", []))
        relu = m.number(1, 8) + m.message(7, m.message(1, m.node("Relu", ["x"], "y")) + m.message(2, "g") + ports)
        model = self.write_model("relu.onnx", relu + m.message(8, m.number(2, 17)))
        self.assertIn("without a value: batch; give -D batch=N", self.prunerc("run", model, expect=1).err)
        self.assertIn("f32[3]", self.prunerc("run", model, "-D", "batch=3", "--input", "x=ones").out)
        write_npy(self.path("x.npy"), "<f4", (5,), [1, -1, 2, -2, 3])
        self.assertIn("f32[5] = 1, 0, 2, 0, 3", self.prunerc("run", model, "--input", "x=@x.npy").out)
        self.assertIn("no dimension 'seq'", self.prunerc("run", model, "-D", "batch=3,seq=2", expect=1).err)
        self.prunerc("run", model, "-D", "batch=0", expect=2)
        strange = self.write_model("strange.onnx", relu.replace(b"Relu", b"Rolu") + m.message(8, m.number(2, 17)))
        err = self.prunerc("tune", strange, "-D", "batch=3", expect=1).err
        self.assertIn("Rolu (1 node: 'relu_y'): there is no such operator here", err)
        self.assertIn("hint: --partial imports the rest", err)
        self.assertIn("all of it", self.prunerc("tune", strange, "-D", "batch=3", "--partial", expect=1).err)
        broken = self.write_model("broken.onnx", relu[:-9])
        self.assertIn("not a readable ONNX model", self.prunerc("run", broken, expect=1).err)
        for verb in (("explain", self.model), ("algebra", self.model), ("apply", self.model, "/dev/null")):
            err = self.prunerc(*verb, expect=1).err
            self.assertIn("where one operator is asked for", err)
            self.assertIn("--stage fused", err)
        self.assertIn("not of a model", self.prunerc("tune", self.model, "--op", "x", "--trials", "1", expect=2).err)

    def test_products_between_quantisers_that_stay_in_floats_are_told(self):
        m = self.made

        def byte(name, kind, dims, value):
            return b"".join(m.number(1, d) for d in dims) + m.number(2, kind) + m.message(8, name) + m.message(9, bytes([value]))

        nodes = [
            m.node("QuantizeLinear", ["x", "s", "z"], "q"),
            m.node("DequantizeLinear", ["q", "s", "z"], "d"),
            m.node("DequantizeLinear", ["w", "s", "zero"], "e"),
            m.node("Conv", ["d", "e"], "y"),
        ]
        constants = [m.tensor("s", [], [0.5]), byte("z", 2, [], 3), byte("w", 3, [1, 1, 1, 1], 2), byte("zero", 3, [], 0)]
        graph = b"".join(m.message(1, one) for one in nodes) + b"".join(m.message(5, one) for one in constants) + m.message(2, "g")
        graph += m.message(11, m.port("x", [1, 1, 2, 2])) + m.message(12, m.port("y", []))
        model = self.write_model("quantised.onnx", m.number(1, 8) + m.message(7, graph) + m.message(8, m.number(2, 17)))
        run = self.prunerc("run", model, "--input", "x=ones")
        self.assertIn("note: in floats, not in 8 bits: Conv (1 node: 'conv_y'): a result that goes on in floats", run.err)
        self.assertIn("f32[1, 1, 2, 2] = 1, 1, 1, 1", run.out)
        self.assertNotIn("in floats", self.prunerc("show", self.model, "--stage", "net").err)

    def test_what_the_hint_says_leads_to_an_operator(self):
        text = self.prunerc("show", self.model, "--stage", "fused").out
        operators = self.write("net.prn", text)
        name = text.split("op ", 1)[1].split("(")[0].split("<")[0]
        self.assertIn("schedule", self.prunerc("explain", operators, "--op", name).out + self.prunerc("show", operators, "--op", name, "--stage", "scheduled").err)

    def test_const_takes_a_file_or_a_number(self):
        m = self.made
        shape = m.message(1, "s") + m.message(2, m.message(1, m.number(1, 7) + m.message(2, m.message(1, m.number(1, 2)))))
        graph = m.message(1, m.node("Expand", ["x", "s"], "y")) + m.message(2, "g")
        graph += m.message(11, m.port("x", [2])) + m.message(11, shape) + m.message(12, m.port("y", []))
        model = self.write_model("expand.onnx", m.number(1, 8) + m.message(7, graph) + m.message(8, m.number(2, 17)))
        self.assertIn("--const NAME=@FILE.npy", self.prunerc("run", model, "--input", "x=ones", expect=1).err)
        write_npy(self.path("s.npy"), "<i8", (2,), [3, 2])
        self.assertIn("f32[3, 2]", self.prunerc("run", model, "--input", "x=ones", "--const", "s=@s.npy").out)
        self.assertIn("--const", self.prunerc("run", model, "--const", "s=many", expect=2).err)
        self.assertIn("'z'", self.prunerc("run", model, "--const", "z=3", expect=1).err)
        self.assertIn("'s' needs i64[2], found i64", self.prunerc("run", model, "--const", "s=3", expect=1).err)
        write_npy(self.path("t.npy"), "<i8", (3,), [1, 3, 2])
        self.assertIn("'s' needs i64[2], found i64[3]", self.prunerc("run", model, "--const", "s=@t.npy", expect=1).err)

    def test_const_goes_before_what_the_model_holds(self):
        m = self.made
        graph = m.message(1, m.node("Add", ["x", "w"], "y")) + m.message(2, "g") + m.message(5, m.tensor("w", [2], [1, 2]))
        graph += m.message(11, m.port("x", [2])) + m.message(11, m.port("w", [2])) + m.message(12, m.port("y", []))
        model = self.write_model("add.onnx", m.number(1, 8) + m.message(7, graph) + m.message(8, m.number(2, 17)))
        self.assertIn("f32[2] = 2, 3", self.prunerc("run", model, "--input", "x=ones").out)
        write_npy(self.path("w.npy"), "<f4", (2,), [5, 7])
        self.assertIn("f32[2] = 6, 8", self.prunerc("run", model, "--input", "x=ones", "--const", "w=@w.npy").out)

    def test_recorded_runs_with_other_constants_are_not_compared(self):
        m = self.made
        named = m.message(1, "x") + m.message(2, m.message(1, m.number(1, 1) + m.message(2, m.message(1, m.message(2, "batch")))))
        shape = m.message(1, "s") + m.message(2, m.message(1, m.number(1, 7) + m.message(2, m.message(1, m.number(1, 2)))))
        graph = m.message(1, m.node("Expand", ["x", "s"], "y")) + m.message(2, "g")
        graph += m.message(11, named) + m.message(11, shape) + m.message(12, m.port("y", []))
        model = self.write_model("expand.onnx", m.number(1, 8) + m.message(7, graph) + m.message(8, m.number(2, 17)))
        write_npy(self.path("s.npy"), "<i8", (2,), [3, 2])

        def record(rows):
            sizes = m.number(1, 2) + m.number(2, 7) + m.message(8, "s") + m.message(9, struct.pack("<2q", rows, 2))
            self.write_model("test_data_set_0/input_1.pb", sizes)
            self.write_model("test_data_set_0/output_0.pb", m.tensor("y", [rows, 2], [1, -1] * rows))

        def verify(expect=0):
            return self.prunerc("verify", model, "--seeds", "1", "--const", "s=@s.npy", "-D", "batch=1,2", expect=expect)

        os.makedirs(self.path("test_data_set_0"))
        self.write_model("test_data_set_0/input_0.pb", m.tensor("x", [2], [1, -1]))
        record(5)
        told = verify()
        self.assertNotIn("recorded", told.out)
        self.assertEqual(2, told.err.count("test_data_set_0 does not have the constants of --const: not compared"))
        record(3)
        told = verify()
        self.assertIn("on 1 recorded run", told.out)
        self.assertIn("is of other sizes", told.err)
        self.write_model("test_data_set_0/output_0.pb", m.tensor("y", [3, 2], [1, -2] * 3))
        self.assertIn("recorded in", verify(expect=4).out)

    def test_a_number_is_a_recorded_constant_of_one_element(self):
        m = self.made
        shape = m.message(1, "s") + m.message(2, m.message(1, m.number(1, 7) + m.message(2, m.message(1, m.number(1, 1)))))
        graph = m.message(1, m.node("Expand", ["x", "s"], "y")) + m.message(2, "g")
        graph += m.message(11, m.port("x", [1])) + m.message(11, shape) + m.message(12, m.port("y", []))
        model = self.write_model("expand.onnx", m.number(1, 8) + m.message(7, graph) + m.message(8, m.number(2, 17)))
        os.makedirs(self.path("test_data_set_0"))
        self.write_model("test_data_set_0/input_0.pb", m.tensor("x", [1], [2]))
        sizes = m.number(1, 1) + m.number(2, 7) + m.message(8, "s") + m.message(9, struct.pack("<q", 3))
        self.write_model("test_data_set_0/input_1.pb", sizes)
        for y, expect, text in ([2, 2, 2], 0, "on 1 recorded run"), ([2, 2, 5], 4, "recorded in"):
            self.write_model("test_data_set_0/output_0.pb", m.tensor("y", [3], y))
            told = self.prunerc("verify", model, "--seeds", "1", "--const", "s=3", expect=expect)
            self.assertIn(text, told.out)
            self.assertNotIn("not compared", told.err)
        told = self.prunerc("verify", model, "--seeds", "1", "--const", "s=4")
        self.assertIn("does not have the constants of --const: not compared", told.err)

    def test_a_library_is_not_written_over_the_data_of_its_model(self):
        m, data = self.made, struct.pack("<2f", 1, 2)
        self.write_model("add.weights", data)
        place = m.message(13, m.message(1, "location") + m.message(2, "add.weights"))
        weight = m.number(1, 2) + m.number(2, 1) + m.message(8, "w") + place + m.number(14, 1)
        graph = m.message(1, m.node("Add", ["x", "w"], "y")) + m.message(2, "g") + m.message(5, weight)
        graph += m.message(11, m.port("x", [2])) + m.message(12, m.port("y", [2]))
        model = self.write_model("add.onnx", m.number(1, 8) + m.message(7, graph) + m.message(8, m.number(2, 17)))
        refused = self.prunerc("compile", model, "-o", "libadd.so", "-o", "add.weights", expect=2).err
        self.assertIn("over what the net is read from", refused)
        self.assertNotIn("calls of", refused)  # before kernels are compiled
        self.assertFalse(os.path.exists(self.path("libadd.so")))
        with open(self.path("add.weights"), "rb") as file:
            self.assertEqual(data, file.read())
        self.prunerc("compile", model, "-o", "libadd.so", "-o", "other.weights")

    def test_recorded_outputs_of_a_part_are_those_of_its_names(self):
        m = self.made
        nodes = m.message(1, m.node("Rolu", ["x"], "y")) + m.message(1, m.node("Relu", ["x"], "z"))
        graph = nodes + m.message(2, "g") + m.message(11, m.port("x", [2]))
        graph += m.message(12, m.port("y", [2])) + m.message(12, m.port("z", [2]))
        model = self.write_model("part.onnx", m.number(1, 8) + m.message(7, graph) + m.message(8, m.number(2, 17)))
        os.makedirs(self.path("test_data_set_0"))
        self.write_model("test_data_set_0/input_0.pb", m.tensor("x", [2], [1, -1]))
        self.write_model("test_data_set_0/output_0.pb", m.tensor("y", [2], [7, 8]))
        self.write_model("test_data_set_0/output_1.pb", m.tensor("z", [2], [1, 0]))
        self.assertIn("on 1 recorded run", self.prunerc("verify", model, "--seeds", "1", "--partial").out)
        self.write_model("test_data_set_0/output_1.pb", m.tensor("z", [2], [7, 8]))
        self.assertIn("recorded in", self.prunerc("verify", model, "--seeds", "1", "--partial", expect=4).out)


if __name__ == "__main__":
    command.main()
