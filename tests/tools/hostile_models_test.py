#!/usr/bin/env python3
"""Models that lie: each ends in an error of one message, within 2 s and 1 GiB. Prints a table by kind of lie."""

import os
import re
import resource
import struct
import subprocess
import time

import command

SECONDS, BYTES = 2, 1 << 30
# Of the system under load: what a test may take longer than the command would alone.
SLACK = 8

onnx = command.onnx_writer()
message, number, node, port, tensor = onnx.message, onnx.number, onnx.node, onnx.port, onnx.tensor


def signed(field, value):
    return number(field, value % (1 << 64))


def ints(name, *values):
    return message(5, message(1, name) + b"".join(signed(8, v) for v in values) + number(20, 7))


def integer(name, value):
    return message(5, message(1, name) + signed(3, value) + number(20, 2))


def real(name, value):
    return message(5, message(1, name) + b"\x15" + struct.pack("<f", value) + number(20, 1))


def longs(name, values, dims=None):
    raw = struct.pack("<%dq" % len(values), *values)
    dims = [len(values)] if dims is None else dims
    return b"".join(signed(1, d) for d in dims) + number(2, 7) + message(8, name) + message(9, raw)


def value(name, dims, kind=1):
    shape = b"".join(message(1, signed(1, d)) for d in dims)
    return message(1, name) + message(2, message(1, number(1, kind) + message(2, shape)))


def graph(nodes=(), inputs=(), outputs=(), weights=()):
    return (
        b"".join(message(1, n) for n in nodes)
        + message(2, "g")
        + b"".join(message(5, w) for w in weights)
        + b"".join(message(11, p) for p in inputs)
        + b"".join(message(12, p) for p in outputs)
    )


def model(body, opset=17):
    return number(1, 8) + message(7, body) + message(8, signed(2, opset))


def one(op, *attributes, inputs=("x",), x=(1, 3, 8, 8), weights=(), kind=1, opset=17, outputs=("y",)):
    """A model of one node."""
    text = b"".join(message(1, i) for i in inputs) + b"".join(message(2, o) for o in outputs) + message(4, op)
    return model(graph([text + b"".join(attributes)], [value("x", x, kind)], [value("y", [])], weights), opset)


def external(location, offset=None, length=None, dims=(4,)):
    """A model whose weight lies in a file."""
    pairs = {"location": location, "offset": offset, "length": length}
    entries = b"".join(message(13, message(1, k) + message(2, v)) for k, v in pairs.items() if v is not None)
    weight = b"".join(number(1, d) for d in dims) + number(2, 1) + message(8, "w") + entries + number(14, 1)
    return model(graph([node("Add", ["x", "w"], "y")], [value("x", dims)], [value("y", [])], [weight]))


def nested(depth):
    body = graph([node("Relu", ["x"], "y")], [], [value("y", [2])])
    for _ in range(depth):
        branch = message(5, message(1, "then_branch") + message(6, body) + number(20, 5))
        body = graph([message(1, "c") + message(2, "y") + message(4, "If") + branch], [], [value("y", [2])])
    return model(message(11, value("x", [2])) + message(11, value("c", [], 9)) + body)


def chain(count, last="y"):
    nodes = [node("Relu", ["x" if i == 0 else "t%d" % i], last if i + 1 == count else "t%d" % (i + 1)) for i in range(count)]
    return model(graph(nodes, [value("x", [2])], [value("y", [2])]))


def recurrent(count):
    """Networks whose steps are more calls than a net has."""
    weights = [tensor("w", [1, 4, 1], [0.5] * 4), tensor("r", [1, 4, 1], [0.5] * 4)]
    nodes = [message(1, "x") + message(1, "w") + message(1, "r") + message(2, "y%d" % i) + message(4, "LSTM") for i in range(count)]
    return model(graph(nodes, [value("x", [1024, 1, 1])], [value("y%d" % i, []) for i in range(count)], weights))


def products(count):
    """Matrices that the importer could multiply, one after the other, before it finds what it has not."""
    chained = [node("MatMul", ["w" if i == 0 else "t%d" % i, "w"], "t%d" % (i + 1)) for i in range(count)]
    last = node("NoSuchThing", ["t%d" % count], "y")
    return model(graph(chained + [last], [value("x", [2])], [value("y", [2])], [tensor("w", [60, 60], [0.01] * 3600)]))


def calls(count):
    """Nodes none of which is one of the functions."""
    functions = b"".join(message(25, message(1, "F%d" % i) + message(10, "me")) for i in range(count))
    nodes = [node("Relu", ["x" if i == 0 else "t%d" % i], "t%d" % (i + 1)) for i in range(count - 1)]
    return model(graph(nodes + [node("NoSuchThing", ["x"], "y")], [value("x", [2])], [value("y", [2])])) + functions


HUGE = [1 << 62, 1 << 40, (1 << 63) - 1, -5, -(1 << 63)]


def truncated():
    whole = onnx.model()
    for i in range(40):
        yield "the first %d of 40 parts" % i, whole[: len(whole) * i // 40]


def no_models():
    yield "text", b"not a model\n"
    yield "zeros", bytes(4096)
    yield "ones", b"\xff" * 4096
    yield "a varint without an end", b"\x80" * 100
    yield "a length beyond the end", b"\x3a\xff\xff\xff\xff\x07"
    yield "no graph", number(1, 8)
    yield "an empty graph", model(b"")
    yield "a group that does not end", b"\x3b" * 100
    yield "10^5 groups in each other", b"\x3b" * 100000 + b"\x3c" * 100000
    yield "messages 10^4 deep", deep_messages(10000)


def deep_messages(depth):
    body = b""
    for _ in range(depth):
        body = message(7, body)
    return body


def sizes():
    for extent in HUGE:
        yield "an input of %d" % extent, model(graph([node("Relu", ["x"], "y")], [value("x", [extent, 2])], [value("y", [])]))
        weight = signed(1, extent) + number(2, 1) + message(8, "w") + message(9, bytes(16))
        yield "a weight of %d" % extent, one("Add", inputs=("x", "w"), weights=[weight])
    for count in (0, 1, 3, 5, 1000):
        weight = number(1, 4) + number(2, 1) + message(8, "w") + message(9, bytes(4 * count))
        if count != 4:
            yield "4 elements that are %d" % count, one("Add", inputs=("x", "w"), x=(4,), weights=[weight])
    yield "extents whose product wraps around", one("Relu", x=[1 << 32, 1 << 32])
    yield "17 dimensions", one("Relu", x=[1] * 17)
    yield "10^5 dimensions", one("Relu", x=[1] * 100000)
    yield "a type that there is not", one("Relu", kind=99)
    yield "strings", one("Relu", kind=8)
    yield "complex numbers", one("Relu", kind=14)


def names():
    add = node("Add", ["x", "x"], "y")
    ports = ([value("x", [2])], [value("y", [2])])
    yield "a node that reads itself", model(graph([node("Add", ["x", "y"], "y")], *ports))
    yield "two that read each other", model(graph([node("Add", ["x", "b"], "y"), node("Relu", ["y"], "b")], *ports))
    ring = [node("Add", ["x", "t%d" % ((i + 1) % 500)], "t%d" % i) for i in range(500)]
    yield "a ring of 500", model(graph(ring + [node("Relu", ["t0"], "y")], *ports))
    yield "an input that nothing gives", model(graph([node("Add", ["x", "z"], "y")], *ports))
    yield "two that give the same", model(graph([add, add], *ports))
    yield "a node that gives an input", model(graph([node("Relu", ["x"], "x"), add], *ports))
    yield "an output that nothing gives", model(graph([add], ports[0], [value("z", [2])]))
    yield "an output twice", model(graph([add], ports[0], ports[1] * 2))
    yield "no output", model(graph([add], ports[0]))
    yield "an input twice", model(graph([add], ports[0] * 2, ports[1]))
    yield "a weight twice", model(graph([node("Add", ["x", "w"], "y")], *ports, [longs("w", [1, 2])] * 2))
    yield "an operator that there is not", one("NoSuchThing")
    yield "an operator of nobody", model(graph([node("Relu", ["x"], "y") + message(7, "my.domain")], *ports))
    yield "an operator without a name", one("")
    yield "control characters", one("\x1b[2J\x07")
    yield "no UTF-8", model(graph([message(1, b"x") + message(2, b"y") + message(4, b"\xff\xfe")], *ports))
    yield "a name of 10^6 letters", one("Q" * 10**6)
    yield "no inputs", one("Relu", inputs=())
    yield "no node", model(graph([], *ports))
    yield "too many outputs", one("Relu", outputs=("y",) + tuple("o%d" % i for i in range(50)))


def graphs():
    for depth in (65, 1000, 20000):
        yield "graphs %d deep" % depth, nested(depth)
    yield "100,001 nodes", chain(100001)
    yield "150,000 nodes, and no end", chain(150000, last="z")
    function = message(1, "F") + message(4, "x") + message(5, "y") + message(10, "me")
    calls_itself = function + message(7, message(1, "x") + message(2, "y") + message(4, "F") + message(7, "me"))
    body = message(1, "x") + message(2, "y") + message(4, "F") + message(7, "me")
    whole = model(graph([body], [value("x", [2])], [value("y", [2])]))
    yield "a function that calls itself", whole + message(25, calls_itself) + message(8, message(1, "me") + number(2, 1))
    many = b""
    for i in range(30):
        nodes = b"".join(
            message(7, message(1, "x" if k == 0 else "t%d" % k) + message(2, "y" if k == 9 else "t%d" % (k + 1)) +
                    message(4, "F%d" % (i + 1)) + message(7, "me")) for k in range(10))
        many += message(25, message(1, "F%d" % i) + message(4, "x") + message(5, "y") + nodes + message(10, "me"))
    body = message(1, "x") + message(2, "y") + message(4, "F0") + message(7, "me")
    whole = model(graph([body], [value("x", [2])], [value("y", [2])]))
    yield "functions of 10^30 nodes", whole + many + message(8, message(1, "me") + number(2, 1))
    yield "60 networks of 1024 steps", recurrent(60)
    yield "2000 products of constants", products(2000)
    yield "100,000 functions, and as many nodes", calls(100000)
    for opset in (0, 1, 5, 99, -1, 1 << 62):
        yield "opset %d" % opset, one("BatchNormalization", inputs=("x", "x", "x", "x", "x"), opset=opset)


def attributes():
    weight = tensor("w", [4, 3, 3, 3], [0.5] * 108)

    def conv(*given):
        return one("Conv", *given, inputs=("x", "w"), weights=[weight])

    for n in HUGE + [0]:
        yield "strides of %d" % n, conv(ints("strides", n, n)) if n <= 0 else conv(ints("strides", -n, n))
        yield "dilations of %d" % n, conv(ints("dilations", n, n))
        yield "groups of %d" % n, conv(integer("group", n))
        yield "a kernel of %d" % n, conv(ints("kernel_shape", n, n))
        yield "pads of %d" % n, conv(ints("pads", n, n, n, n)) if n != 0 else conv(ints("pads", 0, 0, 0))
        yield "a pool of %d" % n, one("MaxPool", ints("kernel_shape", n, n))
        yield "axis %d" % n, one("Softmax", integer("axis", n if n != 0 else 4))
        yield "a permutation with %d" % n, one("Transpose", ints("perm", 0, 1, 2, n))
        yield "a reshape to %d" % n, one("Reshape", inputs=("x", "s"), weights=[longs("s", [n if n else 7, 3])])
        yield "an expansion to %d" % n, one("Expand", inputs=("x", "s"), weights=[longs("s", [n if n else -1] * 4)])
        yield "%d tiles" % n, one("Tile", inputs=("x", "s"), weights=[longs("s", [n if n else -1] * 4)])
        yield "a fill of %d" % n, one("ConstantOfShape", inputs=("s",), weights=[longs("s", [n if n else -1, 9])])
        yield "a pad of %d" % n, one("Pad", inputs=("x", "s"), weights=[longs("s", [n if n else -99] * 8)])
        yield "top %d" % n, one("TopK", inputs=("x", "s"), weights=[longs("s", [n if n else 99])], outputs=("y", "i"))
        yield "gather along %d" % n, one("Gather", integer("axis", n if n else 4), inputs=("x", "s"), weights=[longs("s", [0])])
        yield "one-hot of %d" % n, one("OneHot", inputs=("s", "d", "v"), weights=[
            longs("s", [1]), longs("d", [n]), longs("v", [0, 1])])
    ends = [longs("a", [0], []), longs("b", [1 << 60], []), longs("c", [1], [])]
    yield "a range of 2^60", one("Range", inputs=("a", "b", "c"), weights=ends)
    billion = [ends[0], longs("b", [999999999], []), ends[2]]
    yield "a range of 10^9", one("Range", inputs=("a", "b", "c"), weights=billion)
    many = [longs("a", [0], []), longs("b", [1 << 24], []), longs("c", [1], [])]
    ranges = [message(1, "a") + message(1, "b") + message(1, "c") + message(2, "y%d" % i) + message(4, "Range") for i in range(100)]
    yield "100 ranges of 2^24", model(graph(ranges, [], [value("y99", [])], many))
    yield "a range of step 0", one("Range", inputs=("a", "b", "c"), weights=[ends[0], ends[1], longs("c", [0], [])])
    for scale in (1e30, -1.0, 0.0, float("nan"), float("inf")):
        weights = [tensor("s", [4], [1, 1, scale, scale])]
        yield "a scale of %r" % scale, one("Resize", inputs=("x", "", "s"), weights=weights)
    yield "a split that does not add up", one("Split", inputs=("x", "s"), weights=[longs("s", [1, 7])], outputs=("y", "z"))
    yield "shapes that do not fit", one("MatMul", inputs=("x", "w"), weights=[tensor("w", [7, 2], [1] * 14)])
    yield "an equation of nothing", one("Einsum", message(5, message(1, "equation") + message(4, "->->") + number(20, 3)))
    yield "a text where a number stands", one("Softmax", message(5, message(1, "axis") + message(4, "one") + number(20, 3)))
    yield "an LSTM of %d" % (1 << 40), one("LSTM", integer("hidden_size", 1 << 40), inputs=("x", "x", "x"), x=(1, 1, 1))


def files():
    for location in ("../w.bin", "/etc/passwd", "a/../../w.bin", "", ".", "..", "/", "a\0b", "w" * 5000, "missing.bin",
                     "link.bin", "folder", "pipe", "linked/w.bin", "file:///etc/passwd", "//w.bin", "./../w.bin", "hard.bin"):
        yield "a weight in %r" % location[:30], external(location)
    for offset in ("-1", "8", "99999999999999999999999", "0x0", "18446744073709551615", " 0"):
        yield "at offset %r" % offset, external("w.bin", offset=offset)
    for length in ("15", "17", "0", "-16", "99999999999999999999"):
        yield "of length %r" % length, external("w.bin", length=length)
    yield "of 2^40 elements", external("w.bin", dims=(1 << 20, 1 << 20))


KINDS = {
    "truncated": truncated,
    "no model": no_models,
    "sizes": sizes,
    "names and cycles": names,
    "graphs and functions": graphs,
    "attributes": attributes,
    "files of weights": files,
}


def limit_memory():
    resource.setrlimit(resource.RLIMIT_DATA, (BYTES, BYTES))


class HostileModels(command.CommandTest):
    def outcome(self, data):
        path = self.path("hostile.onnx")
        with open(path, "wb") as out:
            out.write(data)
        begin = time.monotonic()
        process = subprocess.Popen(
            [command.BINARY, "show", path, "--stage", "tasks"], cwd=self.folder, env=self.environment, stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, preexec_fn=limit_memory)
        try:
            err = process.communicate(timeout=SECONDS * SLACK)[1].decode("utf-8", "backslashreplace")
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            return "no end within %d s" % (SECONDS * SLACK), 0
        used = time.monotonic() - begin
        if process.returncode not in (1, 2):
            return "exit code %d: %s" % (process.returncode, err[-300:]), used
        first = err.splitlines()[0] if err else ""
        if not first.startswith("error: ") or not re.search(r"hint: |; give -D ", err):
            return "no error and no hint: %r" % err[-300:], used
        if re.search(r"bad_alloc|std::|[\x00-\x08\x0e-\x1f]", err):
            return "not a message of ours: %r" % err[-300:], used
        return "", used

    maxDiff = None

    def test_each_is_an_error_soon(self):
        with open(self.path("w.bin"), "wb") as out:
            out.write(bytes(16))
        os.symlink("w.bin", self.path("link.bin"))
        os.mkdir(self.path("folder"))
        os.symlink("folder", self.path("linked"))
        os.mkfifo(self.path("pipe"))
        os.link(self.path("w.bin"), self.path("second.bin"))
        os.link(self.path("w.bin"), self.path("hard.bin"))
        with open(self.path("folder/w.bin"), "wb") as out:
            out.write(bytes(16))
        faults, total = [], 0
        print("%-24s %6s %12s" % ("kind", "models", "slowest"))
        for kind, models in KINDS.items():
            count, slowest = 0, 0
            for name, data in models():
                fault, used = self.outcome(data)
                count, slowest = count + 1, max(slowest, used)
                if fault:
                    faults.append("%s: %s: %s" % (kind, name, fault))
            print("%-24s %6d %10.2f s" % (kind, count, slowest))
            total += count
        print("%-24s %6d" % ("all", total))
        self.assertEqual([], faults)
        self.assertGreaterEqual(total, 200)


if __name__ == "__main__":
    command.main()
