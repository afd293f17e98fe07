"""The operators of a file as TVM's tensor expressions and as float64 numpy, by name; shapes are the file's.

Ports are read from the heads of the `.prn` text. A definition is written as TVM's own operator library writes it: padding is a stage of
its own, which both of its searches may inline."""

import os
import re
import sys

import numpy as np

HERE = os.path.dirname(os.path.realpath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "cpu", "suite")]

import reference as ref
from description import Operator, Port

HEAD = re.compile(r"^op (\w+)\((.*?)\) -> \((.*?)\) \{", re.M)


def ports(text):
    return tuple(Port(name, dtype, tuple(int(n) for n in shape.split(",")))
                 for name, dtype, shape in re.findall(r"(\w+): (\w+)\[([\d,]+)\]", text))


def read(path):
    """{name: Operator} of a file, in its order; those without a definition here are left out."""
    with open(path, encoding="utf-8") as file:
        heads = HEAD.findall(file.read())
    return {name: Operator("", {}, ports(inputs), ports(outputs), REFERENCES[name]) for name, inputs, outputs in heads if name in DEFINITIONS}


def tensors(te, name, operator):
    """[inputs..., output] for te.create_prim_func."""
    inputs = [te.placeholder(p.shape, name=p.name, dtype="float32") for p in operator.inputs]
    return inputs + [DEFINITIONS[name](te, *inputs)]


def padded(te, x, axes, pad):
    """x with so many zeros before and after these axes."""
    sizes = [int(n) for n in x.shape]
    shape = tuple(n + 2 * pad if a in axes else n for a, n in enumerate(sizes))

    def value(*at):
        inside = [c for a in axes for c in (at[a] >= pad, at[a] < sizes[a] + pad)]
        return te.if_then_else(te.all(*inside), x(*(i - pad if a in axes else i for a, i in enumerate(at))), te.const(0.0, "float32"))

    return te.compute(shape, value, name="pad")


def zero(te):
    return te.const(0.0, "float32")


def gemm(te, A, B):
    k = te.reduce_axis((0, A.shape[1]), name="k")
    return te.compute((A.shape[0], B.shape[1]), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="C")


def gemm_transposed_bias_relu(te, X, W, b):
    k = te.reduce_axis((0, X.shape[1]), name="k")
    T = te.compute((X.shape[0], W.shape[0]), lambda i, j: te.sum(X[i, k] * W[j, k], axis=k), name="T")
    return te.compute(T.shape, lambda i, j: te.max(T[i, j] + b[j], zero(te)), name="Y")


def gemm_batched(te, A, B):
    k = te.reduce_axis((0, A.shape[2]), name="k")
    return te.compute((A.shape[0], A.shape[1], B.shape[2]), lambda b, i, j: te.sum(A[b, i, k] * B[b, k, j], axis=k), name="C")


def conv_nchw(te, X, F, stride=1, pad=0):
    x = padded(te, X, (2, 3), pad) if pad else X
    n, ci, h, w = x.shape
    co, _, kh, kw = F.shape
    rc, rh, rw = (te.reduce_axis((0, size), name=name) for size, name in ((ci, "rc"), (kh, "rh"), (kw, "rw")))
    return te.compute((n, co, (h - kh) // stride + 1, (w - kw) // stride + 1),
                      lambda b, c, i, j: te.sum(x[b, rc, i * stride + rh, j * stride + rw] * F[c, rc, rh, rw], axis=[rc, rh, rw]), name="conv")


def conv_nchw_3x3(te, X, F, b):
    T = conv_nchw(te, X, F, pad=1)
    return te.compute(T.shape, lambda n, c, i, j: te.max(T[n, c, i, j] + b[c], zero(te)), name="Y")


def conv_nchw_1x1(te, X, F, b):
    T = conv_nchw(te, X, F)
    return te.compute(T.shape, lambda n, c, i, j: T[n, c, i, j] + b[c], name="Y")


def conv_nhwc(te, X, F, pad):
    x = padded(te, X, (1, 2), pad)
    n, h, w, ci = x.shape
    kh, kw, _, co = F.shape
    rh, rw, rc = (te.reduce_axis((0, size), name=name) for size, name in ((kh, "rh"), (kw, "rw"), (ci, "rc")))
    return te.compute((n, h - kh + 1, w - kw + 1, co), lambda b, i, j, c: te.sum(x[b, i + rh, j + rw, rc] * F[rh, rw, rc, c], axis=[rh, rw, rc]), name="conv")


def conv_1d(te, X, F):
    x = padded(te, X, (2,), int(F.shape[2]) // 2)
    rc, rk = te.reduce_axis((0, F.shape[1]), name="rc"), te.reduce_axis((0, F.shape[2]), name="rk")
    return te.compute((X.shape[0], F.shape[0], X.shape[2]), lambda n, c, i: te.sum(x[n, rc, i + rk] * F[c, rc, rk], axis=[rc, rk]), name="conv")


def conv_grouped(te, X, F):
    x = padded(te, X, (2, 3), 1)
    co, ci, kh, kw = (int(n) for n in F.shape)
    each = co // (int(X.shape[1]) // ci)  # outputs of a group
    rc, rh, rw = (te.reduce_axis((0, size), name=name) for size, name in ((ci, "rc"), (kh, "rh"), (kw, "rw")))
    return te.compute((X.shape[0], co, X.shape[2], X.shape[3]),
                      lambda n, c, i, j: te.sum(x[n, c // each * ci + rc, i + rh, j + rw] * F[c, rc, rh, rw], axis=[rc, rh, rw]), name="conv")


def depthwise_nchw_3x3(te, X, F, b):
    x = padded(te, X, (2, 3), 1)
    rh, rw = te.reduce_axis((0, F.shape[1]), name="rh"), te.reduce_axis((0, F.shape[2]), name="rw")
    T = te.compute(X.shape, lambda n, c, i, j: te.sum(x[n, c, i + rh, j + rw] * F[c, rh, rw], axis=[rh, rw]), name="T")
    return te.compute(X.shape, lambda n, c, i, j: te.max(T[n, c, i, j] + b[c], zero(te)), name="Y")


def depthwise_nhwc_5x5(te, X, F):
    x = padded(te, X, (1, 2), 2)
    rh, rw = te.reduce_axis((0, F.shape[0]), name="rh"), te.reduce_axis((0, F.shape[1]), name="rw")
    return te.compute(X.shape, lambda n, i, j, c: te.sum(x[n, i + rh, j + rw, c] * F[rh, rw, c], axis=[rh, rw]), name="Y")


def softmax_rows(te, X):
    k, q = te.reduce_axis((0, X.shape[1]), name="k"), te.reduce_axis((0, X.shape[1]), name="q")
    m = te.compute((X.shape[0],), lambda i: te.max(X[i, k], axis=k), name="m")
    e = te.compute(X.shape, lambda i, j: te.exp(X[i, j] - m[i]), name="e")
    s = te.compute((X.shape[0],), lambda i: te.sum(e[i, q], axis=q), name="s")
    return te.compute(X.shape, lambda i, j: e[i, j] / s[i], name="Y")


def norm_layer(te, X, g, b):
    n = float(int(X.shape[1]))
    k, q = te.reduce_axis((0, X.shape[1]), name="k"), te.reduce_axis((0, X.shape[1]), name="q")
    total = te.compute((X.shape[0],), lambda i: te.sum(X[i, k], axis=k), name="total")
    mean = te.compute((X.shape[0],), lambda i: total[i] / te.const(n, "float32"), name="mean")
    squares = te.compute((X.shape[0],), lambda i: te.sum((X[i, q] - mean[i]) * (X[i, q] - mean[i]), axis=q), name="squares")
    return te.compute(X.shape, lambda i, j: (X[i, j] - mean[i]) * te.rsqrt(squares[i] / te.const(n, "float32") + te.const(1e-5, "float32")) * g[j] + b[j],
                      name="Y")


def reduce_rows(te, X):
    k = te.reduce_axis((0, X.shape[1]), name="k")
    return te.compute((X.shape[0],), lambda i: te.sum(X[i, k], axis=k), name="Y")


def reduce_columns(te, X):
    k = te.reduce_axis((0, X.shape[0]), name="k")
    return te.compute((X.shape[1],), lambda j: te.max(X[k, j], axis=k), name="Y")


def pool_average_3x3_s2(te, X):
    rh, rw = te.reduce_axis((0, 3), name="rh"), te.reduce_axis((0, 3), name="rw")
    n, c, h, w = X.shape
    T = te.compute((n, c, (h - 3) // 2 + 1, (w - 3) // 2 + 1), lambda b, d, i, j: te.sum(X[b, d, i * 2 + rh, j * 2 + rw], axis=[rh, rw]), name="T")
    return te.compute(T.shape, lambda b, d, i, j: T[b, d, i, j] / te.const(9.0, "float32"), name="Y")


def elementwise_bias_gelu(te, X, b):
    T = te.compute(X.shape, lambda i, j: X[i, j] + b[j], name="T")
    half, root, one = (te.const(x, "float32") for x in (0.5, 0.70710678, 1.0))
    return te.compute(X.shape, lambda i, j: half * T[i, j] * (one + te.erf(T[i, j] * root)), name="Y")


DEFINITIONS = {
    "gemm_square": gemm, "gemm_ragged": gemm, "gemm_skinny": gemm, "gemm_transposed_bias_relu": gemm_transposed_bias_relu, "gemm_batched": gemm_batched,
    "conv_nchw_3x3": conv_nchw_3x3, "conv_nchw_3x3_s2": lambda te, X, F: conv_nchw(te, X, F, stride=2), "conv_nchw_1x1": conv_nchw_1x1,
    "conv_nhwc_3x3": lambda te, X, F: conv_nhwc(te, X, F, 1), "conv_nhwc_5x5": lambda te, X, F: conv_nhwc(te, X, F, 2), "conv_1d": conv_1d,
    "conv_grouped": conv_grouped, "depthwise_nchw_3x3": depthwise_nchw_3x3, "depthwise_nhwc_5x5": depthwise_nhwc_5x5, "softmax_rows": softmax_rows,
    "norm_layer": norm_layer, "reduce_rows": reduce_rows, "reduce_columns": reduce_columns, "pool_average_3x3_s2": pool_average_3x3_s2,
    "elementwise_bias_gelu": elementwise_bias_gelu,
}


def channels_last(x):
    return np.moveaxis(x, 1, -1)


def channels_first(x):
    return np.moveaxis(x, -1, 1)


def bias(b):
    return b[:, None, None]


def conv_last(x, f, pad):
    return channels_last(ref.conv(channels_first(x), np.moveaxis(f, (3, 2), (0, 1)), 1, pad))


def product(a):
    return [a["A"] @ a["B"]]


# By name: (float64 arrays by port) -> the outputs.
REFERENCES = {
    "gemm_square": product, "gemm_ragged": product, "gemm_skinny": product, "gemm_batched": product,
    "gemm_transposed_bias_relu": lambda a: [ref.relu(a["X"] @ a["W"].T + a["b"])],
    "conv_nchw_3x3": lambda a: [ref.relu(ref.conv(a["X"], a["F"], 1, 1) + bias(a["b"]))],
    "conv_nchw_3x3_s2": lambda a: [ref.conv(a["X"], a["F"], 2)],
    "conv_nchw_1x1": lambda a: [ref.conv(a["X"], a["F"]) + bias(a["b"])],
    "conv_nhwc_3x3": lambda a: [conv_last(a["X"], a["F"], 1)],
    "conv_nhwc_5x5": lambda a: [conv_last(a["X"], a["F"], 2)],
    "conv_1d": lambda a: [ref.conv(a["X"], a["F"], 1, a["F"].shape[2] // 2)],
    "conv_grouped": lambda a: [ref.conv(a["X"], a["F"], 1, 1, 1, a["X"].shape[1] // a["F"].shape[1])],
    "depthwise_nchw_3x3": lambda a: [ref.relu(ref.conv(a["X"], a["F"][:, None], 1, 1, 1, len(a["F"])) + bias(a["b"]))],
    "depthwise_nhwc_5x5": lambda a: [channels_last(ref.conv(channels_first(a["X"]), np.moveaxis(a["F"], 2, 0)[:, None], 1, 2, 1, a["F"].shape[2]))],
    "softmax_rows": lambda a: [ref.softmax(a["X"])],
    "norm_layer": lambda a: [ref.layer_norm(a["X"], a["g"], a["b"])],
    "reduce_rows": lambda a: [a["X"].sum(axis=1)],
    "reduce_columns": lambda a: [a["X"].max(axis=0)],
    "pool_average_3x3_s2": lambda a: [ref.avg_pool(a["X"], 3, 2)],
    "elementwise_bias_gelu": lambda a: [ref.gelu(a["X"] + a["b"])],
}
