"""Random operators: odd shapes, primes, 1; reductions, guards, gathers, whole numbers, chains as softmax's, padded convolutions.

Every choice comes from one generator, so that a seed is an operator. Sizes are small enough for a reference in Python.
"""

import math

from arithmetic import is_float, rounded
from expressions import (Binary, Cast, Compare, Constant, Function, If, Index, Operator, Read, Reduce, Statement, Tensor,
                         index)

EXTENTS = [1, 1, 2, 3, 4, 5, 7, 8, 9, 11, 13, 16, 17, 19, 23, 31, 32, 33]
MAX_WORK = 40000  # terms of all statements of one operator


class Maker:
    def __init__(self, rng):
        self.rng = rng
        self.inputs, self.statements = [], []

    def extent(self, most=33):
        return self.rng.choice([n for n in EXTENTS if n <= most])

    def shape(self, rank, most_elements):
        while True:
            shape = [self.extent() for _ in range(rank)]
            if math.prod(shape) <= most_elements:
                return shape

    def input(self, dtype, shape):
        tensor = Tensor("I%d" % len(self.inputs), dtype, shape)
        rng, count = self.rng, math.prod(shape)
        if is_float(dtype):
            whole = rng.random() < 0.15
            made = [rounded(float(rng.randint(-4, 4)) if whole else rng.uniform(-1, 1), dtype) for _ in range(count)]
        else:
            low, high = {"u8": (0, 255), "i8": (-128, 127), "i32": (-9, 9), "i64": (-9, 9)}[dtype]
            made = [rng.randint(low, high) for _ in range(count)]
        tensor.values = [(v, 0.0) for v in made]
        self.inputs.append(tensor)
        return tensor

    def places(self, shape, extent):
        """An input of positions, some of them outside."""
        tensor = Tensor("I%d" % len(self.inputs), "i32", shape)
        slack = self.rng.choice([0, 2])
        tensor.values = [(self.rng.randint(-slack, extent - 1 + slack), 0.0) for _ in range(math.prod(shape))]
        self.inputs.append(tensor)
        return tensor

    def define(self, names, shape, expression, is_output=False, dtype=None):
        name = "O%d" % len(self.statements) if is_output else "T%d" % len(self.statements)
        tensor = Tensor(name, dtype or expression.dtype, shape)
        self.statements.append(Statement(tensor, names, expression, is_output))
        return tensor

    def operator(self):
        return Operator("r", self.inputs, self.statements)

    def constant(self, dtype="f32"):
        if is_float(dtype):
            return Constant(self.rng.choice([-2.0, -0.5, 0.0, 0.25, 0.5, 1.0, 1.5, 3.0]), dtype)
        return Constant(self.rng.randint(-5, 5), dtype)

    def unary(self, e):
        name = self.rng.choice(["tanh", "sigmoid", "erf", "abs", "exp", "relu", "square", "sin", "root"])
        if name == "exp":
            return Function("exp", Binary("min", e, Constant(2.0, e.dtype)))
        if name == "relu":
            return Binary("max", e, Constant(0.0, e.dtype))
        if name == "square":
            return Binary("*", e, e)
        if name == "root":
            return Function("sqrt", Binary("+", Function("abs", e), Constant(0.5, e.dtype)))
        return Function(name, e)

    def whole_unary(self, e):
        choice = self.rng.randrange(4)
        if choice == 0:
            return Binary("/", e, Constant(self.rng.choice([2, 3, 7]), e.dtype))
        if choice == 1:
            return Binary("%", e, Constant(self.rng.choice([2, 5, 8]), e.dtype))
        return Binary(self.rng.choice(["max", "min"]), e, self.constant(e.dtype)) if choice == 2 else Function("abs", e)

    def read_along(self, dtype, names, extents):
        """A new input read at some of the indices: as they are, in another order, shifted, backwards."""
        rng = self.rng
        chosen = [i for i in range(len(names)) if rng.random() < 0.75] or [rng.randrange(len(names))]
        rng.shuffle(chosen)
        if rng.random() < 0.6:
            chosen.sort()
        tensor = self.input(dtype, [extents[i] for i in chosen])
        subscripts, outside = [], False
        for i in chosen:
            name, n = names[i], extents[i]
            how = rng.random()
            if how < 0.12 and n > 1:
                subscripts.append(Index("%d - %s" % (n - 1, name), lambda at, name=name, n=n: n - 1 - at[name]))
            elif how < 0.2:
                subscripts.append(Index("(%s + 1) %% %d" % (name, n), lambda at, name=name, n=n: (at[name] + 1) % n))
            elif how < 0.3:
                shift = rng.choice([-2, -1, 1])
                subscripts.append(Index("%s + %d" % (name, shift) if shift > 0 else "%s - %d" % (name, -shift),
                                        lambda at, name=name, shift=shift: at[name] + shift))
                outside = True
            else:
                subscripts.append(index(name))
        return Read(tensor, subscripts, self.constant(dtype) if outside else None)

    def expression(self, dtype, names, extents, depth, leaves=()):
        """A random expression of a type over the indices."""
        rng = self.rng
        if depth == 0 or rng.random() < 0.15:
            if leaves and rng.random() < 0.6:
                return rng.choice(leaves)
            choice = rng.random()
            if choice < 0.15:
                return self.constant(dtype)
            if choice < 0.25 and names:
                name = rng.choice(names)
                return Cast(dtype, index(name))
            return self.read_along(dtype, names, extents)
        choice = rng.random()
        more = lambda: self.expression(dtype, names, extents, depth - 1, leaves)
        if choice < 0.55:
            return Binary(rng.choice(["+", "-", "*", "max", "min"]), more(), more())
        if choice < 0.7:
            return self.unary(more()) if is_float(dtype) else self.whole_unary(more())
        if choice < 0.75 and is_float(dtype):
            return Binary("/", more(), Binary("+", Function("abs", more()), Constant(1.0, dtype)))
        op = rng.choice(["<", "<=", ">"])
        if names and rng.random() < 0.6:
            i = rng.randrange(len(names))
            condition = Compare(op, index(names[i]), Constant(rng.randint(0, extents[i]), "i64"))
        else:
            condition = Compare(op, more(), self.constant(dtype))
        return If(condition, more(), more(), lazy=rng.random() < 0.5)


def elementwise(m):
    rank = m.rng.randint(1, 4)
    shape = m.shape(rank, 1500)
    names = ["i", "j", "k", "l"][:rank]
    dtype = m.rng.choice(["f32", "f32", "f32", "f64", "i32"])
    leaves = []
    for _ in range(m.rng.randint(0, 2)):
        stage = m.define(names, shape, m.expression(dtype, names, shape, 2))
        leaves.append(Read(stage, [index(n) for n in names]))
    m.define(names, shape, m.expression(dtype, names, shape, 3, leaves), True)


def contraction(m):
    rng = m.rng
    while True:
        b, i, j, k = m.extent(4) if rng.random() < 0.3 else 0, m.extent(), m.extent(), m.extent()
        if max(1, b) * i * j * k <= MAX_WORK // 3:
            break
    source, wide = rng.choice([("f32", None)] * 4 + [("f64", None), ("f16", "f32"), ("bf16", "f32"), ("i8", "i32"), ("u8", "i32"),
                                                     ("i32", None)])
    batch, names = ([("b", b)] if b else []), (["b"] if b else []) + ["i", "j"]
    lead = [n for _, n in batch]
    prefix = [index("b")] if b else []
    flip = rng.random() < 0.4
    left = m.input(source, lead + ([k, i] if flip else [i, k]))
    flop = rng.random() < 0.4
    right_batch = bool(b) and rng.random() < 0.6
    right = m.input(source, (lead if right_batch else []) + ([j, k] if flop else [k, j]))
    first = Read(left, prefix + ([index("k"), index("i")] if flip else [index("i"), index("k")]))
    second = Read(right, (prefix if right_batch else []) + ([index("j"), index("k")] if flop else [index("k"), index("j")]))
    if wide:
        first, second = Cast(wide, first), Cast(wide, second)
    guard = Compare("<=", index("k"), index("i")) if rng.random() < 0.15 else None
    dot = Reduce("sum", [("k", k)], Binary("*", first, second), guard)
    shape = lead + [i, j]
    product = m.define(names, shape, dot)
    here = Read(product, [index(n) for n in names])
    bias = m.input(product.dtype, [j])
    e = Binary("+", here, Read(bias, [index("j")])) if rng.random() < 0.7 else here
    if rng.random() < 0.6:
        e = m.unary(e) if is_float(product.dtype) else m.whole_unary(e)
    if source in ("f16", "bf16") and rng.random() < 0.5:
        e = Cast(source, e)
    m.define(names, shape, e, True)


def reduction(m):
    rng = m.rng
    rank = rng.randint(1, 4)
    shape = m.shape(rank, 4000)
    names = ["i", "j", "k", "l"][:rank]
    kept = [n for n in range(rank) if rng.random() < 0.5]
    if len(kept) == rank:
        kept.pop(rng.randrange(rank))
    reduced = [(names[n], shape[n]) for n in range(rank) if n not in kept]
    kind = rng.choice(["sum", "sum", "max", "min", "prod", "argmax", "argmin", "any", "all"])
    dtype = rng.choice(["f32", "f32", "f64", "i32"])
    if kind == "prod":
        dtype = "f32"
    body = m.expression(dtype, names, shape, 1)
    if kind == "prod":
        body = Binary("+", Constant(1.0, dtype), Binary("*", Constant(0.25, dtype), Function("tanh", body)))
    if kind in ("any", "all"):
        body = Compare(">", body, m.constant(dtype))
    if kind.startswith("arg"):
        reduced = reduced[:1]
        kept = [n for n in range(rank) if names[n] != reduced[0][0]]
    guard = None
    if kind in ("sum", "prod") and rng.random() < 0.3:
        name, n = rng.choice(reduced)
        guard = Compare("<", index(name), Constant(rng.randint(0, n), "i64"))
    names_kept, shape_kept = [names[n] for n in kept], [shape[n] for n in kept]
    result = m.define(names_kept, shape_kept, Reduce(kind, reduced, body, guard))
    here = Read(result, [index(n) for n in names_kept])
    if kind in ("any", "all"):
        here = If(here, Constant(1.0, "f32"), Constant(0.0, "f32"))
    elif kind.startswith("arg"):
        here = Cast("i32", here)
    elif is_float(dtype) and rng.random() < 0.4:
        here = m.unary(here)
    m.define(names_kept, shape_kept, here, True)


def softmax(m):
    rng = m.rng
    shape = m.shape(rng.randint(1, 3), 1500)
    names = ["i", "j", "k"][:len(shape)]
    over = rng.randrange(len(shape))
    kept = [n for n in range(len(shape)) if n != over]
    rest, rest_shape = [names[n] for n in kept], [shape[n] for n in kept]
    here = lambda t: Read(t, [index(n) for n in names])
    there = lambda t: Read(t, [index(n) for n in rest])
    x = m.define(names, shape, m.expression("f32", names, shape, 1))
    axis = [(names[over], shape[over])]
    top = m.define(rest, rest_shape, Reduce("max", axis, here(x)))
    part = m.define(names, shape, Function("exp", Binary("-", here(x), there(top))))
    total = m.define(rest, rest_shape, Reduce("sum", axis, here(part)))
    e = Binary("/", here(part), there(total))
    m.define(names, shape, Binary("*", e, m.read_along("f32", names, shape)) if rng.random() < 0.4 else e, True)


def norm(m):
    rng = m.rng
    rows, columns = m.extent(), m.extent()
    names, shape = ["i", "j"], [rows, columns]
    x = m.input("f32", shape)
    here = Read(x, [index("i"), index("j")])
    axis, share = [("j", columns)], Constant(1.0, "f32")
    mean = m.define(["i"], [rows], Binary("/", Reduce("sum", axis, here), Constant(float(columns), "f32")))
    centred = m.define(names, shape, Binary("-", here, Read(mean, [index("i")])))
    apart = Read(centred, [index("i"), index("j")])
    variance = m.define(["i"], [rows], Binary("/", Reduce("sum", axis, Binary("*", apart, apart)), Constant(float(columns), "f32")))
    root = Function("sqrt", Binary("+", Read(variance, [index("i")]), Constant(rng.choice([0.5, 0.125]), "f32")))
    gain = Read(m.input("f32", [columns]), [index("j")])
    m.define(names, shape, Binary("+", Binary("*", Binary("/", apart, root), gain), share), True)


def convolution(m):
    rng = m.rng
    rank = rng.choice([1, 2, 2])
    while True:
        space = [m.extent(17) for _ in range(rank)]
        window = [rng.choice([1, 2, 3, 3, 5]) for _ in range(rank)]
        stride, dilation, pad = rng.choice([1, 1, 2, 3]), rng.choice([1, 1, 2]), rng.choice([0, 1, 2])
        batch, inward, outward = rng.choice([1, 1, 2]), m.extent(8), m.extent(9)
        depthwise = rng.random() < 0.3
        if depthwise:
            inward = 1
        out = [(n + 2 * pad - dilation * (w - 1) - 1) // stride + 1 for n, w in zip(space, window)]
        if min(out) >= 1 and batch * outward * inward * math.prod(out) * math.prod(window) <= MAX_WORK // 2:
            break
    positions, windows = ["y", "x"][:rank], ["p", "q"][:rank]

    def at(position, offset):
        text = "%s%s + %s%s" % (position, " * %d" % stride if stride > 1 else "", offset, " * %d" % dilation if dilation > 1 else "")
        return Index(text + (" - %d" % pad if pad else ""),
                     lambda where: where[position] * stride + where[offset] * dilation - pad)

    channels_last = rng.random() < 0.4
    channel = index("o") if depthwise else index("c")
    image_channels = outward if depthwise else inward
    image = m.input("f32", [batch] + (space + [image_channels] if channels_last else [image_channels] + space))
    spots = [at(a, b) for a, b in zip(positions, windows)]
    read = Read(image, [index("n")] + (spots + [channel] if channels_last else [channel] + spots), Constant(0.0, "f32"))
    over = ([] if depthwise else [("c", inward)]) + list(zip(windows, window))
    pooling = rng.random() < 0.2
    if pooling:
        body = Reduce("max", over, Read(image, read.subscripts, Constant(-8.0, "f32")))
    else:
        weights = m.input("f32", [outward] + ([] if depthwise else [inward]) + window)
        weight = Read(weights, [index("o")] + ([] if depthwise else [index("c")]) + [index(w) for w in windows])
        body = Reduce("sum", over, Binary("*", read, weight))
    names = ["n"] + (positions + ["o"] if channels_last else ["o"] + positions)
    shape = [batch] + (out + [outward] if channels_last else [outward] + out)
    if pooling and not depthwise:
        names, shape = ["n"] + positions, [batch] + out
    result = m.define(names, shape, body)
    here = Read(result, [index(n) for n in names])
    m.define(names, shape, m.unary(here) if rng.random() < 0.6 else here, True)


def gather(m):
    rng = m.rng
    rows, columns, count = m.extent(), m.extent(), m.extent()
    table = m.input(rng.choice(["f32", "f32", "i32"]), [rows, columns])
    places = m.places([count], rows)
    place = Read(places, [index("i")])
    taken = Read(table, [place, index("j")], m.constant(table.dtype))
    if rng.random() < 0.4:
        e = Binary("*", taken, m.read_along(table.dtype, ["i", "j"], [count, columns]))
        m.define(["i", "j"], [count, columns], e, True)
    elif rng.random() < 0.5:
        m.define(["i"], [count], Reduce("sum", [("j", columns)], taken), True)
    else:
        # A scatter, read backwards: what is added to each row.
        source = m.input(table.dtype, [count, columns])
        m.inputs.remove(table)
        guard = Compare("==", Cast("i64", Read(places, [index("k")])), index("i"))
        term = Read(source, [index("k"), index("j")])
        zero = Constant(0.0 if is_float(table.dtype) else 0, table.dtype)
        # As a guard of the sum, or as a choice of its terms.
        total = Reduce("sum", [("k", count)], term, guard) if rng.random() < 0.5 else \
            Reduce("sum", [("k", count)], If(guard, term, zero))
        m.define(["i", "j"], [rows, columns], total, True)


def running(m):
    rng = m.rng
    rows, columns = m.extent(13), m.extent()
    x = m.input(rng.choice(["f32", "i32"]), [rows, columns])
    op = rng.choice(["<=", "<", ">"])
    guard = Compare(op, index("k"), index("j"))
    m.define(["i", "j"], [rows, columns], Reduce("sum", [("k", columns)], Read(x, [index("i"), index("k")]), guard), True)


def reshape(m):
    rng = m.rng
    a, b, c = m.extent(17), m.extent(9), m.extent(13)
    x = m.input(rng.choice(["f32", "i8", "u8", "f16", "i64"]), [a, b, c])
    if rng.random() < 0.5:
        read = Read(x, [Index("n / %d" % (b * c), lambda at: at["n"] // (b * c)),
                        Index("n / %d %% %d" % (c, b), lambda at: at["n"] // c % b),
                        Index("n %% %d" % c, lambda at: at["n"] % c)])
        m.define(["n"], [a * b * c], read, True)
    else:
        order = [0, 1, 2]
        rng.shuffle(order)
        names = ["i", "j", "k"]
        m.define([names[n] for n in order], [[a, b, c][n] for n in order], Read(x, [index(n) for n in names]), True)


FAMILIES = [elementwise, contraction, contraction, reduction, reduction, softmax, norm, convolution, convolution, gather, running,
            reshape]


def generate(rng):
    """An operator and the name of its family."""
    while True:
        family = FAMILIES[rng.randrange(len(FAMILIES))]
        maker = Maker(rng)
        family(maker)
        if maker.inputs:
            return maker.operator(), family.__name__
