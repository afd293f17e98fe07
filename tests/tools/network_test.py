#!/usr/bin/env python3
"""The verbs on a net: run, show, bench, verify, tune, compile."""

import ctypes
import json
import os
import struct
import subprocess

import command
from command import read_npy, write_npy

NET = command.DENSE + """net mlp(x: f32[3,5]) -> (y: f32[3,4]) {
  const W1: f32[5,6]; const b1: f32[6] = 0.5;
  const W2: f32[6,4] = "down"; const b2: f32[4];
  let h = dense(x, W1, b1) as up;
  y = dense(h, W2, b2) as down;
}
"""


def dense(x, w, b, m, k, n):
    return [max(sum(x[i * k + c] * w[c * n + j] for c in range(k)) + b[j], 0) for i in range(m) for j in range(n)]


class Network(command.CommandTest):
    def setUp(self):
        super().setUp()
        self.net = self.write("mlp.prn", NET)
        self.x = [i % 5 - 2 for i in range(15)]
        w1, w2, b2 = [i % 3 - 1 for i in range(30)], [i % 4 - 2 for i in range(24)], [1, -2, 3, 0]
        self.want = dense(dense(self.x, w1, [0.5] * 6, 3, 5, 6), w2, b2, 3, 6, 4)
        tensors, data, header = {"W1": ([5, 6], w1), "down": ([6, 4], w2), "b2": ([4], b2)}, b"", {}
        for name, (shape, values) in tensors.items():
            raw = struct.pack("<%df" % len(values), *values)
            header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [len(data), len(data) + len(raw)]}
            data += raw
        text = json.dumps(header).encode()
        with open(self.path("w.safetensors"), "wb") as file:
            file.write(struct.pack("<Q", len(text)) + text + data)
        write_npy(self.path("x.npy"), "<f4", (3, 5), self.x)

    def test_run_gives_what_the_definition_says(self):
        self.prunerc("run", self.net, "--weights", "w.safetensors", "--input", "x=@x.npy", "--output", "y=y.npy")
        self.assertEqual(("<f4", (3, 4), self.want), read_npy(self.path("y.npy")))

    def test_weights_may_stand_beside_the_net_and_must_stand_somewhere(self):
        named = self.write("named.prn", NET.replace("(y: f32[3,4]) {", '(y: f32[3,4]) weights "w.safetensors" {'))
        self.prunerc("run", named, "--input", "x=@x.npy", "--output", "y=y.npy")
        self.assertEqual(self.want, read_npy(self.path("y.npy"))[2])
        self.assertIn("--weights", self.prunerc("run", self.net, "--input", "x=@x.npy", expect=1).err)
        self.assertIn("'x'", self.prunerc("run", named, expect=2).err)
        self.assertIn("no input 'z'", self.prunerc("run", named, "--input", "z=ones", expect=1).err)

    def test_a_net_that_gives_no_numbers_is_not_right(self):
        net = self.write("nan.prn", """op root<N>(x: f32[N]) -> (y: f32[N]) { y[i] = sqrt(-1 - x[i]*x[i]); }
net n(x: f32[8]) -> (y: f32[8]) { y = root(x) as only; }
""")
        self.assertIn("wrong: no output is a number", self.prunerc("verify", net, expect=4).out)

    def test_the_text_of_a_net_can_be_run_again(self):
        text = self.prunerc("show", self.net).out
        again = self.write("again.prn", text)
        self.assertEqual(text, self.prunerc("show", again).out)
        self.prunerc("run", again, "--weights", "w.safetensors", "--input", "x=@x.npy", "--output", "y=y.npy")
        self.assertEqual(self.want, read_npy(self.path("y.npy"))[2])
        self.assertIn("2 tasks of 2 calls", self.prunerc("show", self.net, "--stage", "tasks").out)
        self.assertIn("arena: ", self.prunerc("show", self.net, "--stage", "plan").out)
        self.assertIn("split", self.prunerc("show", self.net, "--stage", "kernels").out)
        self.prunerc("show", self.net, "--stage", "asm", expect=2)
        self.prunerc("show", self.ops, "--op", "dense", "--stage", "net", expect=2)

    def test_tune_bench_and_verify_take_the_net(self):
        tuned = self.prunerc("tune", self.net, "--trials", "4")
        self.assertIn("tuned 2 tasks", tuned.out + tuned.err)
        self.assertIn("within mlp: ", tuned.out)
        bench = json.loads(self.prunerc("bench", self.net, "--threads", "1,2", "--samples", "5", "--json").out)
        self.assertEqual("prunerc.bench_net/1", bench["schema"])
        self.assertEqual([1, 2], [row["threads"] for row in bench["rows"]])
        for row in bench["rows"]:
            self.assertEqual(["up", "down"], [step["step"] for step in row["steps"]])
            self.assertGreater(row["median_ns"], 0)
        self.assertIn("of limit", self.prunerc("bench", self.net, "--samples", "5").out)
        self.assertIn("right on 3 seeds", self.prunerc("verify", self.net, "--cuts").out)
        verdict = json.loads(self.prunerc("verify", self.net, "--seeds", "1", "--json").out)
        self.assertEqual(("right", 12), (verdict["verdict"], verdict["elements"]))
        for verb, option in (("verify", ("--interpret",)), ("verify", ("--timeout", "1s")), ("bench", ("--cold",)),
                             ("run", ("--timeout", "1s"))):
            self.assertIn("not of a net" if verb != "bench" else "within a net",
                          self.prunerc(verb, self.net, *option, expect=2).err)

    def test_a_ranking_without_time_is_said_to_be_left_out(self):
        told = self.prunerc("tune", self.net, "--trials", "2", "--time", "20s", "--json")
        self.assertIsNone(told.json()["network"])
        self.assertIn("no time was left to rank schedules within the network", told.err)
        self.assertNotIn("within mlp: ", told.out)
        self.assertNotIn("network", self.prunerc("tune", self.ops, "--op", "scale", "--trials", "1", "--json").json())

    def test_a_note_of_several_tasks_is_one_line(self):
        self.prunerc("tune", self.net, "--trials", "2")
        told = self.prunerc("tune", self.net, "--time", "1ms").err
        self.assertIn("note: no time was left to measure 2 of 2 tasks anew: give more --time\n", told)

    def test_tuning_needs_no_weights(self):
        named = self.write("named.prn", NET.replace("(y: f32[3,4]) {", '(y: f32[3,4]) weights "later.safetensors" {'))
        told = self.prunerc("tune", named, "--trials", "2")
        self.assertIn("within mlp: ", told.out)
        self.assertIn("other weights are timed", told.err)
        self.assertIn("later.safetensors", told.err)

    def test_tuning_needs_no_constant_of_a_file_that_is_there(self):
        named = NET.replace("(y: f32[3,4]) {", '(y: f32[3,4]) weights "w.safetensors" {')
        for old, new, told in (("b2: f32[4];", 'b2: f32[4] = "later";', "later"),
                               ("W1: f32[5,6];", 'W1: f32[5,6] = "down";', "needs f32[5,6]")):
            net = self.write("named.prn", named.replace(old, new))
            tuned = self.prunerc("tune", net, "--trials", "2")
            self.assertIn("within mlp: ", tuned.out)
            self.assertIn("other weights are timed", tuned.err)
            self.assertIn(told, tuned.err)
        whole = self.prunerc("tune", self.write("named.prn", named), "--trials", "2")
        self.assertNotIn("other weights", whole.err)

    def test_a_library_is_not_written_over_its_weights(self):
        os.rename(self.path("w.safetensors"), self.path("mlp.weights"))
        with open(self.path("mlp.weights"), "rb") as file:
            before = file.read()
        refused = self.prunerc("compile", self.net, "--weights", "mlp.weights", "-o", "libmlp.so", "-o", "mlp.weights", expect=2).err
        self.assertIn("over what the net is read from", refused)
        self.assertNotIn("calls of", refused)  # before kernels are compiled
        self.assertFalse(os.path.exists(self.path("libmlp.so")))
        with open(self.path("mlp.weights"), "rb") as file:
            self.assertEqual(before, file.read())

    def test_tuned_tasks_are_used_whatever_is_asked_of_the_others(self):
        self.prunerc("tune", self.net, "--trials", "2", "--threads", "1")
        for effort in ("-O0", "-O1"):
            text = self.prunerc("bench", self.net, effort, "--threads", "1", "--samples", "3", "--json").json()
            self.assertEqual(["record"] * 2, [step["schedule"] for step in text["rows"][0]["steps"]])
        self.prunerc("compile", self.net, "-O1", "--require-tuned", "--threads", "1", "--weights", "ones", "-o", "libmlp.so")
        other = self.prunerc("compile", self.net, "--threads", "2", "--weights", "ones", "-o", "libmlp.so").err
        self.assertIn("note: records of 2 of them exist for 1 thread: --threads 1 uses these", other)

    def test_compiling_measures_nothing(self):
        elsewhere = self.path("cache")
        told = self.prunerc("compile", self.net, "--weights", "ones", "-o", "libmlp.so", env=self.with_variables({"XDG_CACHE_HOME": elsewhere})).err
        self.assertNotIn("measuring this machine", told)
        self.assertFalse(os.path.exists(elsewhere))

    def test_the_same_command_writes_the_same_bytes(self):
        written = []
        for perturb in ("0", "90"):
            self.prunerc("compile", self.net, "--weights", "ones", "--threads", "1", "-o", "mlp.a", "-o", "mlp.weights",
                         env=self.with_variables({"MALLOC_PERTURB_": perturb}))
            with open(self.path("mlp.weights"), "rb") as file:
                written.append(file.read())
        self.assertEqual(written[0], written[1])

    def test_const_calls_are_in_no_run(self):
        ops = """
op turned<M, N>(X: f32[M,N]) -> (Y: f32[N,M]) { Y[i,j] = X[j,i]; }
op plus<N>(a: f32[N], b: f32[N]) -> (c: f32[N]) { c[i] = a[i] + b[i]; }
op quarter<N>() -> (c: f32[N]) { c[i] = 0.25; }
"""
        text = NET.replace("const W1: f32[5,6]; const b1: f32[6] = 0.5;", """const V1: f32[6,5] = "V1"; let W1 = turned(V1);
  let q = quarter<N=6>(); let b1 = plus(q, q);""")
        net = self.write("turned.prn", ops + text)
        w1 = [i % 3 - 1 for i in range(30)]
        with open(self.path("w.safetensors"), "rb") as file:
            raw = file.read()
        turned = struct.pack("<30f", *(w1[k * 6 + n] for n in range(6) for k in range(5)))
        raw = raw.replace(b'"W1"', b'"V1"').replace(b"[5, 6]", b"[6, 5]").replace(struct.pack("<30f", *w1), turned)
        with open(self.path("v.safetensors"), "wb") as file:
            file.write(raw)
        self.prunerc("run", net, "--weights", "v.safetensors", "--input", "x=@x.npy", "--output", "y=y.npy")
        self.assertEqual(self.want, read_npy(self.path("y.npy"))[2])
        for stage in ("plan", "tasks"):
            shown = self.prunerc("show", net, "--stage", stage).out
            self.assertIn("3 const calls (made once, 168 bytes)", shown)
            self.assertNotIn("b1", shown)
        self.assertIn("2 tasks of 2 calls", shown)
        row = json.loads(self.prunerc("bench", net, "--threads", "1", "--samples", "3", "--json").out)["rows"][0]
        self.assertEqual(["up", "down"], [step["step"] for step in row["steps"]])
        self.assertIn("right on 3 seeds", self.prunerc("verify", net, "--cuts").out)
        self.assertIn("tuned 2 tasks", self.prunerc("tune", net, "--trials", "1").err)
        self.prunerc("compile", net, "--weights", "v.safetensors", "-o", "libturned.so")
        y = (ctypes.c_float * 12)()
        self.assertEqual(0, ctypes.CDLL(self.path("libturned.so")).net_mlp((ctypes.c_float * 15)(*self.x), y))
        self.assertEqual(self.want, list(y))

    def test_several_nets_are_linked_into_one_program(self):
        archives = []
        for name in ("one", "two"):
            self.prunerc("compile", self.net, "--weights", "w.safetensors", "--symbol", name, "-o", name + ".a")
            archives.append(self.path(name + ".a"))
        values = ", ".join(str(value) for value in self.x)
        wanted = " && ".join(f"y[{i}] == {value}" for i, value in enumerate(self.want))
        main = self.write("main.c", f"""#include "one.h"
#include "two.h"
int main(void) {{
  const float x[15] = {{{values}}};
  float y[12] = {{0}};
  if (one(x, y) != 0 || !({wanted})) return 1;
  for (int i = 0; i < 12; ++i) y[i] = 0;
  return two(x, y) != 0 || !({wanted});
}}
""")
        program = self.path("main")
        subprocess.run(["cc", "-pthread", main, *archives, "-o", program], check=True)
        self.assertEqual(0, subprocess.run([program], check=False).returncode)

    def test_a_library_needs_its_inputs_and_nothing_else(self):
        self.prunerc("compile", self.net, "--require-tuned", "--weights", "w.safetensors", "-o", "libmlp.so", expect=6)
        self.prunerc("compile", self.net, "-o", "libmlp.so", expect=1)
        self.prunerc("compile", self.net, "--weights", "w.safetensors", "-o", "mlp.s", expect=2)
        self.prunerc("compile", self.net, "--weights", "w.safetensors", "-o", "libmlp.so", "-o", "libmlp.a")
        library = ctypes.CDLL(self.path("libmlp.so"))
        x, y = (ctypes.c_float * 15)(*self.x), (ctypes.c_float * 12)()
        self.assertEqual(0, library.net_mlp(x, y))
        self.assertEqual(self.want, list(y))
        self.assertEqual(1, library.net_mlp(None, y))
        library.net_mlp_error.restype = ctypes.c_char_p
        self.assertIn(b"NULL", library.net_mlp_error())
        # What is not declared is hidden.
        for hidden in ("net_mlp_k0", "net_mlp_k0_prepare", "net_mlp_weights", "net_mlp_code", "prunerc_net_run"):
            self.assertFalse(hasattr(library, hidden), hidden)
        with open(self.path("libmlp.h"), encoding="utf-8") as header:
            self.assertIn("int net_mlp(const float* x, float* y);", header.read())


if __name__ == "__main__":
    command.main()
