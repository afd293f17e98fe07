"""What the tests of the command line share: running prunerc in a world of its own, and .npy files without numpy."""

import importlib.util
import json
import os
import re
import struct
import subprocess
import sys
import tempfile
import unittest

BINARY = None

# Small enough that a trial takes milliseconds.
OPERATORS = """
op dense<M=16, N=32, K=24>(X: f32[M,K], W: f32[K,N], bias: f32[N]) -> (Y: f32[M,N]) {
  let T[i,j] = sum[k] X[i,k] * W[k,j];
  Y[i,j] = max(T[i,j] + bias[j], 0);
}
op linear<M=16, N=36, K=24>(X: f32[M,K], const W: f32[K,N], const bias: f32[N]) -> (Y: f32[M,N]) {
  let T[i,j] = sum[k] X[i,k] * W[k,j];
  Y[i,j] = max(T[i,j] + bias[j], 0);
}
op scale<N=40>(A: f32[N], s: f32) -> (B: f32[N]) { B[i] = A[i] * s; }
op total<N=40>(A: f32[N]) -> (T: f32) { T = sum[i] A[i]; }
op widen<N=9>(A: bf16[N]) -> (B: bf16[N]) { B[i] = A[i] + A[i]; }
"""

# An operator for nets: a product with weights, a bias and a ReLU.
DENSE = """
op dense<M, N, K>(X: f32[M,K], W: f32[K,N], b: f32[N]) -> (Y: f32[M,N]) {
  let a[i,j] = sum[k] X[i,k] * W[k,j];
  Y[i,j] = max(a[i,j] + b[j], 0);
}
"""

FORMATS = {"<f4": "f", "<f8": "d", "<i4": "i", "<i8": "q", "|i1": "b", "|u1": "B", "<f2": "e", "<V2": "H", "|V2": "H"}


def write_npy(path, descr, shape, values):
    """Version 1.0, C order. Elements of two-byte void types are given as their bits."""
    extents = "".join(f"{n}, " for n in shape)
    header = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': ({extents}), }}"
    header += " " * (63 - (10 + len(header)) % 64) + "\n"
    with open(path, "wb") as out:
        out.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode())
        out.write(struct.pack(f"<{len(values)}{FORMATS[descr]}", *values))


def read_npy(path):
    """Returns (descr, shape, values)."""
    with open(path, "rb") as file:
        data = file.read()
    assert data[:8] == b"\x93NUMPY\x01\x00", data[:8]
    (length,) = struct.unpack("<H", data[8:10])
    assert (10 + length) % 64 == 0
    header = data[10 : 10 + length].decode()
    descr = re.search(r"'descr': '([^']*)'", header)[1]
    assert "'fortran_order': False" in header
    shape = tuple(int(n) for n in re.search(r"'shape': \(([^)]*)\)", header)[1].split(",") if n.strip())
    body = data[10 + length :]
    count = len(body) // struct.calcsize("<" + FORMATS[descr])
    return descr, shape, list(struct.unpack(f"<{count}{FORMATS[descr]}", body))


def onnx_writer():
    """tests/onnx/small_cnn.py, which writes ONNX models field by field. To be called in the folder that tests start in."""
    spec = importlib.util.spec_from_file_location("small_cnn", os.path.join(os.getcwd(), "tests/onnx/small_cnn.py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Result:
    def __init__(self, code, out, err):
        self.code = code
        self.out = out
        self.err = err

    def json(self):
        """The last line of stdout as JSON."""
        return json.loads(self.out.strip().splitlines()[-1])


class CommandTest(unittest.TestCase):
    """Each test has a folder with ops.prn and an empty database; the measured limits are kept for all of them."""

    @classmethod
    def setUpClass(cls):
        base = os.environ.get("TEST_TMPDIR") or tempfile.mkdtemp()
        cls.cache = os.path.join(base, "cache")

    def setUp(self):
        self.folder = tempfile.mkdtemp(dir=os.environ.get("TEST_TMPDIR"))
        self.ops = self.write("ops.prn", OPERATORS)
        self.db = self.path("db.sqlite")
        self.environment = dict(os.environ, XDG_CACHE_HOME=self.cache, PRUNERC_DB=self.db)

    def with_variables(self, variables):
        return dict(self.environment, **variables)

    def path(self, name):
        return os.path.join(self.folder, name)

    def write(self, name, text):
        with open(self.path(name), "w", encoding="utf-8") as out:
            out.write(text)
        return self.path(name)

    def start(self, *arguments, **options):
        return subprocess.Popen(
            [BINARY, *arguments],
            cwd=self.folder,
            env=options.get("env", self.environment),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            # A signal of the test must reach the command alone.
            start_new_session=True,
        )

    def prunerc(self, *arguments, expect=0, **options):
        process = self.start(*arguments, **options)
        out, err = process.communicate(timeout=120)
        result = Result(process.returncode, out, err)
        if expect is not None:
            self.assertEqual(expect, result.code, f"prunerc {' '.join(arguments)}\n{out}\n{err}")
        return result


def main():
    global BINARY
    # This module is loaded twice if it is imported under its name by what runs as __main__.
    sys.modules["command"].BINARY = os.path.abspath(sys.argv.pop(1))
    unittest.main()
