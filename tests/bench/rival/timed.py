#!/usr/bin/env python3
"""One search's winner in a process of its own, by the clock that all winners are timed with (cpu/suite/worker.py).

usage: timed.py WHO FILE.prn OP THREADS SEED FOLDER LIBRARY"""

import ctypes
import os
import sys

sys.dont_write_bytecode = True
sys.path[:0] = [os.path.dirname(os.path.realpath(__file__))]

import operators
import contestants
import values
import worker


class Tensor(ctypes.Structure):
    """DLTensor of dlpack.h: CPU, f32."""
    _fields_ = [("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device", ctypes.c_int32), ("ndim", ctypes.c_int32),
                ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16), ("shape", ctypes.POINTER(ctypes.c_int64)),
                ("strides", ctypes.POINTER(ctypes.c_int64)), ("offset", ctypes.c_uint64)]


class Any(ctypes.Structure):
    """TVMFFIAny of tvm/ffi/c_api.h."""
    _fields_ = [("type", ctypes.c_int32), ("padding", ctypes.c_uint32), ("value", ctypes.c_void_p)]


TENSOR = 7  # kTVMFFIDLTensorPtr, and kTVMDLTensorHandle of older versions


def tensor_of(array, kept):
    shape = (ctypes.c_int64 * array.ndim)(*array.shape)
    strides = (ctypes.c_int64 * array.ndim)(*(n // array.itemsize for n in array.strides))
    cpu, real = 1, 2  # kDLCPU, kDLFloat
    made = Tensor(array.ctypes.data, cpu, 0, array.ndim, real, 32, 1, shape, strides, 0)
    kept += [shape, strides, made]
    return ctypes.addressof(made)


class Packed(contestants.Machine):
    """A function of TVM's, called as compiled code calls it: without Python, with the arguments as they lie there."""

    def __init__(self, task):
        import tvm  # its runtime, which the library calls
        is_old = not hasattr(tvm, "tirx")
        # Its own loader first: it tells the library where the runtime's functions are.
        self.module = tvm.runtime.load_module(task.library)
        super().__init__(task, task.library, "main" if is_old else "__tvm_ffi_main")
        self.kept = []
        tensors = [tensor_of(a, self.kept) for a in self.arrays + self.results]
        num = len(tensors)
        if is_old:
            arguments, result = (ctypes.c_void_p * num)(*tensors), ctypes.c_void_p()
            types, result_type = (ctypes.c_int * num)(*[TENSOR] * num), ctypes.c_int()
            call = [ctypes.addressof(arguments), ctypes.addressof(types), num, ctypes.addressof(result), ctypes.addressof(result_type), 0]
            self.kept += [arguments, types, result, result_type]
        else:
            arguments, result = (Any * num)(*(Any(TENSOR, 0, t) for t in tensors)), Any()
            call = [0, ctypes.addressof(arguments), num, ctypes.addressof(result)]
            self.kept += [arguments, result]
        self.num, self.pointers = len(call), (ctypes.c_void_p * len(call))(*call)


def main():
    who, path, name, threads, seed, folder, library = sys.argv[1:8]

    def prepare():
        operator = operators.read(path)[name]
        task = worker.Task(name, operator, int(threads), folder, library, values.inputs(operator, int(seed)))
        return task, Packed(task) if who in ("tvm", "ansor") else contestants.Kernel(task)

    worker.serve(prepare)


if __name__ == "__main__":
    main()
