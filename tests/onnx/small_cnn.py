#!/usr/bin/env python3
"""Writes tools/examples/small_cnn.onnx: two convolutions, one normalised, pools, a product and a softmax; made-up weights.

usage: small_cnn.py OUT.onnx        without the onnx package: the few messages are written field by field (onnx.proto)
"""

import math
import struct
import sys

FLOAT = 1


def varint(value):
    out = b""
    while value > 127:
        out += bytes([value & 127 | 128])
        value >>= 7
    return out + bytes([value])


def message(field, payload):
    payload = payload.encode() if isinstance(payload, str) else payload
    return varint(field << 3 | 2) + varint(len(payload)) + payload


def number(field, value):
    return varint(field << 3) + varint(value)


def tensor(name, dims, values):
    raw = struct.pack("<%df" % len(values), *values)
    return b"".join(number(1, d) for d in dims) + number(2, FLOAT) + message(8, name) + message(9, raw)


def attribute(name, value):
    if isinstance(value, int):
        return message(1, name) + number(3, value) + number(20, 2)
    return message(1, name) + b"".join(number(8, v) for v in value) + number(20, 7)


def node(op, inputs, output, **attributes):
    return (
        b"".join(message(1, name) for name in inputs)
        + message(2, output)
        + message(3, op.lower() + "_" + output)
        + message(4, op)
        + b"".join(message(5, attribute(name, value)) for name, value in attributes.items())
    )


def port(name, dims):
    shape = b"".join(message(1, number(1, d)) for d in dims)
    return message(1, name) + message(2, message(1, number(1, FLOAT) + message(2, shape)))


def made_up(count, scale, first):
    """Numbers that differ from each other, from a sine, so that every machine makes the same."""
    return [round(scale * math.sin(first + 12.9898 * i), 4) for i in range(count)]


def model():
    nodes = [
        node("Conv", ["image", "conv1.weight"], "c1", pads=[2, 2, 2, 2]),
        node("BatchNormalization", ["c1", "bn.scale", "bn.bias", "bn.mean", "bn.var"], "n1"),
        node("Relu", ["n1"], "r1"),
        node("MaxPool", ["r1"], "p1", kernel_shape=[2, 2], strides=[2, 2]),
        node("Conv", ["p1", "conv2.weight", "conv2.bias"], "c2", pads=[1, 1, 1, 1]),
        node("Relu", ["c2"], "r2"),
        node("MaxPool", ["r2"], "p2", kernel_shape=[2, 2], strides=[2, 2]),
        node("Flatten", ["p2"], "flat"),
        node("Gemm", ["flat", "fc.weight", "fc.bias"], "logits", transB=1),
        node("Softmax", ["logits"], "probabilities", axis=1),
    ]
    weights = [
        tensor("conv1.weight", [8, 1, 5, 5], made_up(200, 0.3, 0.1)),
        tensor("bn.scale", [8], made_up(8, 0.5, 0.2)),
        tensor("bn.bias", [8], made_up(8, 0.2, 0.3)),
        tensor("bn.mean", [8], made_up(8, 0.1, 0.4)),
        tensor("bn.var", [8], [abs(v) + 0.5 for v in made_up(8, 0.4, 0.5)]),
        tensor("conv2.weight", [16, 8, 3, 3], made_up(1152, 0.2, 0.6)),
        tensor("conv2.bias", [16], made_up(16, 0.1, 0.7)),
        tensor("fc.weight", [10, 784], made_up(7840, 0.05, 0.8)),
        tensor("fc.bias", [10], made_up(10, 0.1, 0.9)),
    ]
    graph = (
        b"".join(message(1, n) for n in nodes)
        + message(2, "small_cnn")
        + b"".join(message(5, w) for w in weights)
        + message(11, port("image", [1, 1, 28, 28]))
        + message(12, port("probabilities", [1, 10]))
    )
    return number(1, 8) + message(7, graph) + message(8, number(2, 17))


if __name__ == "__main__":
    with open(sys.argv[1], "wb") as out:
        out.write(model())
