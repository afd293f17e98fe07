"""Stencils, transposes, concatenation, and element-wise chains: what should run at the speed of the memory."""

import reference
from description import Operator, f32

np = reference.np


def stencil_2d(h, w, weights):
    """A 3x3 stencil with clamped edges; zero weights are left out, as one would write it."""
    terms, code = [], []
    for dy, line in enumerate(weights):
        for dx, weight in enumerate(line):
            row, column = (("max(i-1,0)", "i", f"min(i+1,{h - 1})")[dy], ("max(j-1,0)", "j", f"min(j+1,{w - 1})")[dx])
            if weight:
                terms.append(f"{weight} * X[{row},{column}]")
                y, x = ("(i ? i-1 : 0)", "i", f"(i < {h - 1} ? i+1 : i)")[dy], ("(j ? j-1 : 0)", "j", f"(j < {w - 1} ? j+1 : j)")[dx]
                code.append(f"{weight}f * X[{y}*{w} + {x}]")

    def ref(a):
        x = np.pad(a["X"], 1, mode="edge")
        return [sum(weights[p][q] * x[p:p + h, q:q + w] for p in range(3) for q in range(3))]

    nodes = (("Reshape", ["X", "s4"], ["x4"], {}), ("Pad", ["x4", "pads"], ["xp"], {"mode": "edge"}),
             ("Conv", ["xp", "K"], ["y4"], {}), ("Reshape", ["y4", "s2"], ["Y"], {}))
    consts = {"s4": ("i64", [1, 1, h, w]), "s2": ("i64", [h, w]), "pads": ("i64", [0, 0, 1, 1, 0, 0, 1, 1]), "K": ("f32", [[weights]])}
    return Operator(
        "Y[i,j] = " + " + ".join(terms) + ";", {}, (f32("X", h, w),), (f32("Y", h, w),), ref, (nodes,), consts,
        lambda t, F, X: F.conv2d(F.pad(X[None, None], (1, 1, 1, 1), mode="replicate"), t.tensor([[weights]]))[0, 0],
        f"  PARALLEL\n  for (long i = 0; i < {h}; i++) for (long j = 0; j < {w}; j++) Y[i*{w}+j] = {' + '.join(code)};")


def stencil_3d(l, h, w):
    """Seven points, zero outside."""
    reads = ["X[z,y,x]"] + [f"(X[{p}] or 0)" for p in ("z-1,y,x", "z+1,y,x", "z,y-1,x", "z,y+1,x", "z,y,x-1", "z,y,x+1")]

    def ref(a):
        x = np.pad(a["X"], 1)
        inner = lambda z, y, q: x[1 + z:1 + z + l, 1 + y:1 + y + h, 1 + q:1 + q + w]
        return [0.4 * a["X"] + 0.1 * (inner(-1, 0, 0) + inner(1, 0, 0) + inner(0, -1, 0) + inner(0, 1, 0) + inner(0, 0, -1) + inner(0, 0, 1))]

    kernel = [[[0, 0, 0], [0, 0.1, 0], [0, 0, 0]], [[0, 0.1, 0], [0.1, 0.4, 0.1], [0, 0.1, 0]], [[0, 0, 0], [0, 0.1, 0], [0, 0, 0]]]
    nodes = (("Reshape", ["X", "s5"], ["x5"], {}), ("Conv", ["x5", "K"], ["y5"], {"pads": [1] * 6}), ("Reshape", ["y5", "s3"], ["Y"], {}))
    consts = {"s5": ("i64", [1, 1, l, h, w]), "s3": ("i64", [l, h, w]), "K": ("f32", [[kernel]])}
    at = f"(z*{h}+y)*{w}+x"
    return Operator(
        f"Y[z,y,x] = 0.4 * {reads[0]} + 0.1 * ({' + '.join(reads[1:])});", {}, (f32("X", l, h, w),), (f32("Y", l, h, w),), ref, (nodes,), consts,
        lambda t, F, X: F.conv3d(X[None, None], t.tensor([[kernel]]), padding=1)[0, 0],
        f"""  PARALLEL
  for (long z = 0; z < {l}; z++) for (long y = 0; y < {h}; y++) for (long x = 0; x < {w}; x++) {{
    float sum = 0;
    if (z > 0) sum += X[{at}-{h * w}];
    if (z < {l - 1}) sum += X[{at}+{h * w}];
    if (y > 0) sum += X[{at}-{w}];
    if (y < {h - 1}) sum += X[{at}+{w}];
    if (x > 0) sum += X[{at}-1];
    if (x < {w - 1}) sum += X[{at}+1];
    Y[{at}] = 0.4f * X[{at}] + 0.1f * sum;
  }}""")


def transpose(m, n, add=False):
    """Y[j,i] = X[i,j] (+ Z[j,i])"""
    nodes = [("Transpose", ["X"], ["t" if add else "Y"], {"perm": [1, 0]})] + [("Add", ["t", "Z"], ["Y"], {})] * add
    return Operator(
        "Y[j,i] = X[i,j]" + " + Z[j,i]" * add + ";", dict(M=m, N=n), (f32("X", m, n),) + (f32("Z", n, m),) * add, (f32("Y", n, m),),
        lambda a: [a["X"].T + (a["Z"] if add else 0)], (tuple(nodes),),
        torch=lambda t, F, X, *Z: X.T + Z[0] if add else X.T.contiguous(),
        loops="  PARALLEL\n  for (long j = 0; j < N; j++) for (long i = 0; i < M; i++) Y[j*M+i] = X[i*N+j]" + " + Z[j*M+i]" * add + ";")


def permute(shape, order):
    """Y = X with its four axes in another order."""
    names = "abcd"
    out = tuple(shape[i] for i in order)
    flat = lambda dims, letters: f"(({letters[0]}*{dims[1]}+{letters[1]})*{dims[2]}+{letters[2]})*{dims[3]}+{letters[3]}"
    moved = [names[i] for i in order]
    loop = " ".join(f"for (long {x} = 0; {x} < {size}; {x}++)" for x, size in zip(moved, out))
    return Operator(
        f"Y[{','.join(moved)}] = X[{','.join(names)}];", {}, (f32("X", *shape),), (f32("Y", *out),), lambda a: [a["X"].transpose(order)],
        ((("Transpose", ["X"], ["Y"], {"perm": list(order)}),),), torch=lambda t, F, X: X.permute(order).contiguous(),
        loops=f"  PARALLEL\n  {loop} Y[{flat(out, moved)}] = X[{flat(shape, names)}];")


def concat(parts, h, w):
    """Channels of several maps behind one another."""
    names = "ABCD"[:len(parts)]
    total, starts = sum(parts), [sum(parts[:i]) for i in range(len(parts))]
    text = f"{names[-1]}[c - {starts[-1]},i,j] or 0"
    for name, start, size in reversed(list(zip(names, starts, parts))[:-1]):
        text = f"if c < {start + size} then ({name}[c - {start},i,j] or 0) else ({text})"
    copies = "\n".join(f"  memcpy(Y + {start * h * w}L, {name}, {size * h * w}L * 4);" for name, start, size in zip(names, starts, parts))
    return Operator(
        f"Y[c,i,j] = {text};", {}, tuple(f32(x, size, h, w) for x, size in zip(names, parts)),
        (f32("Y", total, h, w),), lambda a: [np.concatenate([a[x] for x in names])], ((("Concat", list(names), ["Y"], {"axis": 0}),),),
        torch=lambda t, F, *xs: t.cat(xs), loops=copies)


def pad_edges(c, h, w, pad):
    return Operator(
        f"Y[c,i,j] = X[c,i - {pad},j - {pad}] or 0;", {}, (f32("X", c, h, w),), (f32("Y", c, h + 2 * pad, w + 2 * pad),),
        lambda a: [np.pad(a["X"], ((0, 0), (pad, pad), (pad, pad)))], ((("Pad", ["X", "pads"], ["Y"], {}),),),
        {"pads": ("i64", [0, pad, pad, 0, pad, pad])}, lambda t, F, X: F.pad(X, (pad,) * 4),
        f"""  PARALLEL
  for (long c = 0; c < {c}; c++) for (long i = 0; i < {h + 2 * pad}; i++) for (long j = 0; j < {w + 2 * pad}; j++)
    Y[(c*{h + 2 * pad}+i)*{w + 2 * pad}+j] = i < {pad} || i >= {h + pad} || j < {pad} || j >= {w + pad} ? 0 : X[(c*{h}+i-{pad})*{w}+j-{pad}];""")


def bias_gelu(m, n):
    return Operator(
        "let z[i,j] = X[i,j] + v[j];\nY[i,j] = 0.5 * z[i,j] * (1 + erf(z[i,j] * 0.70710678118654752440));", dict(M=m, N=n),
        (f32("X", m, n), f32("v", n, const=True)), (f32("Y", m, n),), lambda a: [reference.gelu(a["X"] + a["v"])],
        ((("Add", ["X", "v"], ["z"], {}), ("Gelu", ["z"], ["Y"], {})),), torch=lambda t, F, X, v: F.gelu(X + v),
        loops="""  PARALLEL
  for (long i = 0; i < M; i++) for (long j = 0; j < N; j++) {
    float z = X[i*N+j] + v[j];
    Y[i*N+j] = 0.5f * z * (1 + erff(z * 0.70710678f));
  }""")


def silu_mul(m, n):
    return Operator(
        "Y[i,j] = X[i,j] * sigmoid(X[i,j]) * U[i,j];", dict(M=m, N=n), (f32("X", m, n), f32("U", m, n)), (f32("Y", m, n),),
        lambda a: [reference.silu(a["X"]) * a["U"]],
        ((("Sigmoid", ["X"], ["s"], {}), ("Mul", ["X", "s"], ["t"], {}), ("Mul", ["t", "U"], ["Y"], {})),),
        torch=lambda t, F, X, U: F.silu(X) * U,
        loops="  PARALLEL\n  for (long i = 0; i < M*N; i++) Y[i] = X[i] / (1 + expf(-X[i])) * U[i];")


def add_relu(m, n):
    return Operator(
        "Y[i,j] = max(X[i,j] + U[i,j], 0);", dict(M=m, N=n), (f32("X", m, n), f32("U", m, n)), (f32("Y", m, n),),
        lambda a: [reference.relu(a["X"] + a["U"])], ((("Add", ["X", "U"], ["s"], {}), ("Relu", ["s"], ["Y"], {})),),
        torch=lambda t, F, X, U: F.relu(X + U),
        loops="  PARALLEL\n  for (long i = 0; i < M*N; i++) Y[i] = X[i] + U[i] > 0 ? X[i] + U[i] : 0;")
