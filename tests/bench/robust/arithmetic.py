"""Numbers with what a machine may be wrong by: the arithmetic of the reference that winners are compared with.

A value is a pair (v, e): v in double or a whole number, e how far a result in the operator's own types may be from v, by
forward analysis to first order with some room. Python alone, and nothing of prunerc: its interpreter is what this doubts.
"""

import math
import struct

ROUNDOFF = {"f64": 2.0**-53, "f32": 2.0**-24, "f16": 2.0**-11, "bf16": 2.0**-8}
SMALLEST = {"f64": 1e-300, "f32": 1e-37, "f16": 2.0**-24, "bf16": 1e-37}
INTEGERS = {"i64": 64, "i32": 32, "i8": 8, "u8": 8}
INF = math.inf


def is_float(dtype):
    return dtype in ROUNDOFF


def wrap(value, dtype):
    """A whole number as its type holds it: overflow wraps."""
    bits = INTEGERS[dtype]
    value &= (1 << bits) - 1
    return value if dtype == "u8" or value < 1 << (bits - 1) else value - (1 << bits)


def rounded(value, dtype):
    """The nearest number of a float type: what an input holds."""
    if dtype == "f64":
        return value
    if dtype == "f32":
        return struct.unpack("<f", struct.pack("<f", value))[0]
    if dtype == "f16":
        return struct.unpack("<e", struct.pack("<e", value))[0]
    bits = struct.unpack("<I", struct.pack("<f", value))[0]
    bits = (bits + 0x7FFF + ((bits >> 16) & 1)) & 0xFFFF0000
    return struct.unpack("<f", struct.pack("<I", bits))[0]


def pack(values, dtype):
    """The bytes of an array."""
    if dtype == "bf16":
        return b"".join(struct.pack("<f", v)[2:] for v in values)
    form = {"f64": "d", "f32": "f", "f16": "e", "i64": "q", "i32": "i", "i8": "b", "u8": "B", "bool": "?"}[dtype]
    return struct.pack("<%d%s" % (len(values), form), *values)


def unpack(data, dtype):
    if dtype == "bf16":
        return [struct.unpack("<f", b"\0\0" + data[i:i + 2])[0] for i in range(0, len(data), 2)]
    form = {"f64": "d", "f32": "f", "f16": "e", "i64": "q", "i32": "i", "i8": "b", "u8": "B", "bool": "?"}[dtype]
    return list(struct.unpack("<%d%s" % (len(data) // struct.calcsize("<" + form), form), data))


DESCR = {"f64": "<f8", "f32": "<f4", "f16": "<f2", "bf16": "<V2", "i64": "<i8", "i32": "<i4", "i8": "|i1", "u8": "|u1",
         "bool": "|b1"}


def npy(values, dtype, shape):
    header = "{'descr': '%s', 'fortran_order': False, 'shape': (%s), }" % (DESCR[dtype], "".join("%d, " % n for n in shape))
    header += " " * (63 - (10 + len(header)) % 64) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + pack(values, dtype)


def from_npy(data, dtype):
    (length,) = struct.unpack("<H", data[8:10])
    return unpack(data[10 + length:], dtype)


def finish(v, e, dtype):
    """What an operation gives once it is rounded to its type."""
    if not is_float(dtype):
        return (wrap(v, dtype), 0.0) if dtype in INTEGERS else (v, 0.0)
    if math.isnan(v) or math.isinf(v):
        return v, INF if math.isnan(v) else e
    return v, e + ROUNDOFF[dtype] * abs(v) + SMALLEST[dtype]


def add(a, b, dtype):
    return finish(a[0] + b[0], a[1] + b[1], dtype)


def subtract(a, b, dtype):
    return finish(a[0] - b[0], a[1] + b[1], dtype)


def multiply(a, b, dtype):
    return finish(a[0] * b[0], abs(a[0]) * b[1] + abs(b[0]) * a[1] + a[1] * b[1] if a[1] or b[1] else 0.0, dtype)


def divide(a, b, dtype):
    if not is_float(dtype):
        return finish(a[0] // b[0], 0, dtype)  # both round down
    if abs(b[0]) <= 2 * b[1]:
        return 0.0, INF  # may be anything
    least = abs(b[0]) - b[1]
    v = a[0] / b[0]
    # Division may be by a reciprocal.
    return finish(v, (a[1] + abs(v) * b[1]) / least + 2 * ROUNDOFF[dtype] * abs(v), dtype)


def modulo(a, b, dtype):
    return finish(a[0] % b[0], 0, dtype)


def larger(a, b, dtype):
    return max(a[0], b[0]), max(a[1], b[1])


def smaller(a, b, dtype):
    return min(a[0], b[0]), max(a[1], b[1])


# Math functions may be off by some units in the last place.
ULPS = 8


def function(name, a, dtype):
    v, e = a
    u = ROUNDOFF.get(dtype, 0)
    if name == "abs":
        return (abs(v), e) if is_float(dtype) else finish(abs(v), 0, dtype)
    if e == INF:
        return 0.0, INF
    if name == "exp":
        w = math.exp(min(v, 700))
        return finish(w, w * (math.expm1(min(e, 700)) + (ULPS + abs(v)) * u), dtype)
    if name == "tanh":
        return finish(math.tanh(v), e + ULPS * u, dtype)
    if name == "sigmoid":
        return finish(1 / (1 + math.exp(-v)), e / 4 + ULPS * u, dtype)
    if name == "erf":
        return finish(math.erf(v), 1.13 * e + ULPS * u, dtype)
    if name == "sin":
        return finish(math.sin(v), e + ULPS * u * (1 + abs(v)), dtype)
    if name == "sqrt":
        if v - e <= 0:
            return 0.0, INF if e > 0 or v < 0 else ULPS * u
        w = math.sqrt(v)
        return finish(w, e / (2 * math.sqrt(v - e)) + ULPS * u * w, dtype)
    if name == "floor":
        return (math.floor(v), 0.0) if math.floor(v - e) == math.floor(v + e) else (math.floor(v), INF)
    raise AssertionError(name)


def convert(a, source, dtype):
    v, e = a
    if source == dtype:
        return a
    if is_float(dtype):
        return finish(float(v), e, dtype)
    if is_float(source):
        return (wrap(int(v), dtype), 0.0) if int(v - e) == int(v + e) else (0, INF)
    return wrap(int(v), dtype), 0.0


def compare(op, a, b):
    """(truth, e): infinite where rounding may decide."""
    e = a[1] + b[1]
    unsure = INF if e > 0 and abs(a[0] - b[0]) <= e else 0.0
    return {"<": a[0] < b[0], "<=": a[0] <= b[0], ">": a[0] > b[0], "==": a[0] == b[0]}[op], unsure


def choose(condition, a, b):
    if condition[1]:
        return (a if condition[0] else b)[0], INF
    return a if condition[0] else b


def fold(kind, terms, dtype):
    """A reduction over a list of values, in whatever order: exact sums, and the error of any order of adding."""
    if kind == "sum":
        if not is_float(dtype):
            return wrap(sum(v for v, _ in terms), dtype), 0.0
        size = math.fsum(abs(v) for v, _ in terms)
        return finish(math.fsum(v for v, _ in terms), math.fsum(e for _, e in terms) + len(terms) * ROUNDOFF[dtype] * size, dtype)
    if kind == "prod":
        result = (1 if not is_float(dtype) else 1.0, 0.0)
        for term in terms:
            result = multiply(result, term, dtype)
        return result
    if kind == "max":
        return max(v for v, _ in terms), max(e for _, e in terms)
    if kind == "min":
        return min(v for v, _ in terms), max(e for _, e in terms)
    if kind in ("any", "all"):
        truths = [v for v, _ in terms]
        return (any(truths) if kind == "any" else all(truths)), max([e for _, e in terms], default=0.0)
    # argmax, argmin: the first of equals.
    sign = 1 if kind == "argmax" else -1
    best = max(range(len(terms)), key=lambda i: (sign * terms[i][0], -i))
    for i, (v, e) in enumerate(terms):
        if i != best and e + terms[best][1] > 0 and abs(v - terms[best][0]) <= e + terms[best][1]:
            return best, INF
    return best, 0.0
