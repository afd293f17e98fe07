"""Operators as trees that print as .prn text and evaluate by themselves: what the generator makes and the reference runs.

`text()` is the operator language; `value(at)` is a pair of arithmetic.py, with `at` from index names to whole numbers.
"""

import itertools

import arithmetic


class Tensor:
    def __init__(self, name, dtype, shape):
        self.name, self.dtype, self.shape = name, dtype, tuple(shape)
        self.values = None  # pairs, in C order

    def offset(self, indices):
        flat = 0
        for i, n in zip(indices, self.shape):
            if not 0 <= i < n:
                return None
            flat = flat * n + i
        return flat

    def type_text(self):
        return self.dtype + ("[%s]" % ",".join(map(str, self.shape)) if self.shape else "")


class Index:
    """An index, or a whole number made of indices: only in subscripts, and in casts."""

    dtype = "i64"

    def __init__(self, text, function):
        self._text, self.function = text, function

    def text(self):
        return self._text

    def value(self, at):
        return self.function(at), 0.0


def index(name):
    return Index(name, lambda at: at[name])


class Constant:
    def __init__(self, value, dtype):
        self.number, self.dtype = value, dtype

    def text(self):
        if arithmetic.is_float(self.dtype):
            return ("(%s)" if self.number < 0 else "%s") % repr(float(self.number))
        return ("(%d)" if self.number < 0 else "%d") % self.number

    def value(self, at):
        return self.number, 0.0


class Read:
    def __init__(self, tensor, subscripts, otherwise=None):
        self.tensor, self.subscripts, self.otherwise, self.dtype = tensor, subscripts, otherwise, tensor.dtype

    def text(self):
        if not self.tensor.shape:
            return self.tensor.name
        inner = "%s[%s]" % (self.tensor.name, ",".join(s.text() for s in self.subscripts))
        return inner if self.otherwise is None else "(%s or %s)" % (inner, self.otherwise.text())

    def value(self, at):
        indices, unsure = [], False
        for s in self.subscripts:
            v, e = s.value(at)
            unsure |= e > 0
            indices.append(v)
        flat = self.tensor.offset(indices)
        if flat is None:
            if self.otherwise is None:
                raise AssertionError("a read outside of " + self.tensor.name)
            return self.otherwise.value(at)
        v, e = self.tensor.values[flat]
        return v, arithmetic.INF if unsure else e


class Binary:
    FUNCTIONS = {"+": arithmetic.add, "-": arithmetic.subtract, "*": arithmetic.multiply, "/": arithmetic.divide,
                 "%": arithmetic.modulo, "max": arithmetic.larger, "min": arithmetic.smaller}

    def __init__(self, op, a, b):
        self.op, self.a, self.b, self.dtype = op, a, b, a.dtype
        self.function = self.FUNCTIONS[op]

    def text(self):
        if self.op in ("max", "min"):
            return "%s(%s, %s)" % (self.op, self.a.text(), self.b.text())
        return "(%s %s %s)" % (self.a.text(), self.op, self.b.text())

    def value(self, at):
        return self.function(self.a.value(at), self.b.value(at), self.dtype)


class Function:
    def __init__(self, name, a):
        self.name, self.a, self.dtype = name, a, a.dtype

    def text(self):
        return "%s(%s)" % (self.name, self.a.text())

    def value(self, at):
        return arithmetic.function(self.name, self.a.value(at), self.dtype)


class Cast:
    def __init__(self, dtype, a):
        self.dtype, self.a = dtype, a

    def text(self):
        return "%s(%s)" % (self.dtype, self.a.text())

    def value(self, at):
        return arithmetic.convert(self.a.value(at), self.a.dtype, self.dtype)


class Compare:
    dtype = "bool"

    def __init__(self, op, a, b):
        self.op, self.a, self.b = op, a, b

    def text(self):
        return "(%s %s %s)" % (self.a.text(), self.op, self.b.text())

    def value(self, at):
        return arithmetic.compare(self.op, self.a.value(at), self.b.value(at))


class If:
    """`if` evaluates one side, `select` both."""

    def __init__(self, condition, a, b, lazy=True):
        self.condition, self.a, self.b, self.lazy, self.dtype = condition, a, b, lazy, a.dtype

    def text(self):
        if self.lazy:
            return "(if %s then %s else %s)" % (self.condition.text(), self.a.text(), self.b.text())
        return "select(%s, %s, %s)" % (self.condition.text(), self.a.text(), self.b.text())

    def value(self, at):
        condition = self.condition.value(at)
        if condition[1]:
            return (self.a if condition[0] else self.b).value(at)[0], arithmetic.INF
        return (self.a if condition[0] else self.b).value(at)


class Reduce:
    """Over (name, extent) pairs; of a type that may be wider than its terms'."""

    NEUTRAL = {"sum": 0, "prod": 1}

    def __init__(self, kind, indices, body, guard=None, dtype=None):
        self.kind, self.indices, self.body, self.guard = kind, indices, body, guard
        self.wider = dtype
        self.dtype = dtype or ("i64" if kind.startswith("arg") else body.dtype)

    def text(self):
        ranges = ", ".join("%s in 0..%d" % pair for pair in self.indices)
        guard = " | %s" % self.guard.text() if self.guard else ""
        wider = ":" + self.wider if self.wider else ""
        return "(%s%s[%s%s] (%s))" % (self.kind, wider, ranges, guard, self.body.text())

    def value(self, at):
        at = dict(at)
        names = [name for name, _ in self.indices]
        terms, unsure = [], False
        for values in itertools.product(*(range(n) for _, n in self.indices)):
            at.update(zip(names, values))
            if self.guard is not None:
                holds, e = self.guard.value(at)
                unsure |= e > 0
                if not holds:
                    continue
            term = self.body.value(at)
            if self.wider:
                term = arithmetic.convert(term, self.body.dtype, self.wider)
            terms.append(term)
        if not terms:
            return (float if arithmetic.is_float(self.dtype) else int)(self.NEUTRAL[self.kind]), 0.0
        type_of_terms = self.body.dtype if self.kind.startswith("arg") else self.dtype
        v, e = arithmetic.fold(self.kind, terms, type_of_terms)
        return v, arithmetic.INF if unsure else e


class Statement:
    def __init__(self, tensor, names, expression, is_output):
        self.tensor, self.names, self.expression, self.is_output = tensor, names, expression, is_output

    def text(self):
        ranges = ", ".join("%s in 0..%d" % pair for pair in zip(self.names, self.tensor.shape))
        target = self.tensor.name + ("[%s]" % ranges if self.names else "")
        typed = "" if self.is_output else ": " + self.tensor.dtype
        return "  %s%s%s = %s;" % ("" if self.is_output else "let ", target, typed, self.expression.text())

    def run(self):
        self.tensor.values = []
        for values in itertools.product(*(range(n) for n in self.tensor.shape)):
            pair = self.expression.value(dict(zip(self.names, values)))
            self.tensor.values.append(arithmetic.convert(pair, self.expression.dtype, self.tensor.dtype))


class Operator:
    def __init__(self, name, inputs, statements):
        self.name, self.inputs, self.statements = name, inputs, statements

    def outputs(self):
        return [s.tensor for s in self.statements if s.is_output]

    def text(self):
        inputs = ", ".join("%s: %s" % (t.name, t.type_text()) for t in self.inputs)
        outputs = ", ".join("%s: %s" % (t.name, t.type_text()) for t in self.outputs())
        return "op %s(%s) -> (%s) {\n%s\n}\n" % (self.name, inputs, outputs, "\n".join(s.text() for s in self.statements))

    def run(self):
        """Fills the values of all tensors; those of inputs are there."""
        for statement in self.statements:
            statement.run()
