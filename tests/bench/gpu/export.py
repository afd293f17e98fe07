"""Calls an exported library on the device: ones times ones, by DLPack tensors over memory of the driver's.

    export.py LIBRARY.so [LIBCUDA]
"""

import ctypes
import re
import sys

EXTENT = 128
CUDA, FLOAT = 2, 2
ONE_F16 = b"\x00\x3c"


class DLTensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32),
                ("ndim", ctypes.c_int32), ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8),
                ("lanes", ctypes.c_uint16), ("shape", ctypes.POINTER(ctypes.c_int64)),
                ("strides", ctypes.POINTER(ctypes.c_int64)), ("byte_offset", ctypes.c_uint64)]


def check(code, what):
    if code != 0:
        raise SystemExit(f"{what}: error {code}")


class Device:
    def __init__(self, path):
        self.cuda = ctypes.CDLL(path)
        context = ctypes.c_void_p()
        check(self.cuda.cuInit(0), "cuInit")
        check(self.cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0), "cuDevicePrimaryCtxRetain")
        check(self.cuda.cuCtxSetCurrent(context), "cuCtxSetCurrent")

    def tensor(self, bits, content):
        at = ctypes.c_uint64()
        check(self.cuda.cuMemAlloc_v2(ctypes.byref(at), ctypes.c_size_t(len(content))), "cuMemAlloc")
        check(self.cuda.cuMemcpyHtoD_v2(at, content, ctypes.c_size_t(len(content))), "cuMemcpyHtoD")
        shape = (ctypes.c_int64 * 2)(EXTENT, EXTENT)
        return DLTensor(at.value, CUDA, 0, 2, FLOAT, bits, 1, shape, None, 0)

    def content(self, tensor, count):
        out = (ctypes.c_float * count)()
        check(self.cuda.cuCtxSynchronize(), "cuCtxSynchronize")
        check(self.cuda.cuMemcpyDtoH_v2(out, ctypes.c_uint64(tensor.data), ctypes.c_size_t(4 * count)), "cuMemcpyDtoH")
        return list(out)


def main():
    path = sys.argv[1]
    with open(path[:-3] + ".h", encoding="utf-8") as header:
        symbol = re.search(r"int32_t (\w+)_dlpack\(", header.read())[1]
    library = ctypes.CDLL(path)
    run, reason = getattr(library, symbol + "_dlpack"), getattr(library, symbol + "_error")
    reason.restype = ctypes.c_char_p
    device = Device(sys.argv[2] if len(sys.argv) > 2 else "libcuda.so.1")
    operand = ONE_F16 * EXTENT**2
    tensors = [device.tensor(16, operand), device.tensor(16, operand), device.tensor(32, bytes(4 * EXTENT**2))]
    pointers = (ctypes.c_void_p * 3)(*(ctypes.addressof(tensor) for tensor in tensors))
    code = run(pointers, 3, None)
    if code != 0:
        raise SystemExit(f"error {code}: {reason().decode()}")
    wrong = sum(value != EXTENT for value in device.content(tensors[2], EXTENT**2))
    print(f"{wrong} of {EXTENT**2} elements are wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
