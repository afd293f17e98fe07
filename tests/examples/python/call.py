#!/usr/bin/env python3
"""Compiles an operator and calls it on numpy arrays: by its C signature, and with DLPack tensors.

usage: call.py [PRUNERC]    where prunerc is, if it is not on the path
"""

import ctypes
import os
import subprocess
import sys
import tempfile

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
M, N, K = 64, 48, 32


def compile_operator(prunerc, folder):
    library = os.path.join(folder, "libdense_relu.so")
    source = os.path.join(HERE, "dense_relu.prn")
    subprocess.run([prunerc, "compile", source, "-D", f"M={M},N={N},K={K}", "-o", library], check=True)
    return ctypes.CDLL(library)


def array_of(*shape):
    return np.ctypeslib.ndpointer(np.float32, shape=shape, flags="C_CONTIGUOUS")


def bind(library):
    """The operator as a function of arrays; ctypes refuses what has another type, shape or layout."""
    typed = library.op_dense_relu
    typed.argtypes = [array_of(M, K), array_of(K, N), array_of(N), array_of(M, N)]
    typed.restype = ctypes.c_int
    return typed


def bind_dlpack(library):
    """The operator as a function of anything that has __dlpack__ and lies in main memory."""
    pointer_of = ctypes.pythonapi.PyCapsule_GetPointer
    pointer_of.argtypes = [ctypes.py_object, ctypes.c_char_p]
    pointer_of.restype = ctypes.c_void_p
    library.op_dense_relu_error.restype = ctypes.c_char_p

    def call(*arrays):
        # A capsule holds a DLManagedTensor, which begins with its DLTensor; both live as long as the capsule.
        capsules = [array.__dlpack__() for array in arrays]
        tensors = (ctypes.c_void_p * len(arrays))(*(pointer_of(capsule, b"dltensor") for capsule in capsules))
        if library.op_dense_relu_dlpack(tensors, ctypes.c_int32(len(arrays))) != 0:
            raise ValueError(library.op_dense_relu_error().decode())

    return call


def main():
    prunerc = sys.argv[1] if len(sys.argv) > 1 else "prunerc"
    random = np.random.default_rng(0)
    x, w, bias = (random.standard_normal(shape, dtype=np.float32) for shape in ((M, K), (K, N), N))
    wanted = np.maximum(x @ w + bias, 0)
    with tempfile.TemporaryDirectory() as folder:
        library = compile_operator(prunerc, folder)

        y = np.empty((M, N), np.float32)
        assert bind(library)(x, w, bias, y) == 0
        np.testing.assert_allclose(y, wanted, rtol=1e-4, atol=1e-4)

        dense_relu = bind_dlpack(library)
        z = np.empty((M, N), np.float32)
        dense_relu(x, w, bias, z)
        np.testing.assert_array_equal(z, y)
        try:
            dense_relu(x, w, bias[1:], z)
        except ValueError as refused:
            print("a bias that is too short is refused:", refused)
        else:
            raise AssertionError("a bias that is too short was taken")
    print("right")


if __name__ == "__main__":
    main()
