"""Softmax, norms, reductions, scans and positions of extremes."""

import reference
from description import Operator, Port, f32


def softmax(m, n, log=False):
    last = "Y[i,j] = X[i,j] - m[i] - log(s[i]);" if log else "Y[i,j] = e[i,j] / s[i];"
    value = "X[i*N+j] - best - logf(sum)" if log else "Y[i*N+j] / sum"

    def ref(a):
        y = reference.softmax(a["X"])
        return [reference.np.log(y) if log else y]

    return Operator(
        f"""let m[i] = max[j] X[i,j];
            let e[i,j] = exp(X[i,j] - m[i]);
            let s[i] = sum[j] e[i,j];
            {last}""", dict(M=m, N=n), (f32("X", m, n),), (f32("Y", m, n),), ref,
        ((("LogSoftmax" if log else "Softmax", ["X"], ["Y"], {"axis": -1}),),),
        torch=lambda t, F, X: F.log_softmax(X, -1) if log else F.softmax(X, -1),
        loops=f"""  PARALLEL
  for (long i = 0; i < M; i++) {{
    float best = X[i*N], sum = 0;
    for (long j = 1; j < N; j++) best = X[i*N+j] > best ? X[i*N+j] : best;
    for (long j = 0; j < N; j++) sum += Y[i*N+j] = expf(X[i*N+j] - best);
    for (long j = 0; j < N; j++) Y[i*N+j] = {value};
  }}""")


def layer_norm(m, n):
    return Operator(
        """let mean[i] = (sum[j] X[i,j]) / N;
           let var[i] = (sum[j] (X[i,j] - mean[i]) * (X[i,j] - mean[i])) / N;
           Y[i,j] = (X[i,j] - mean[i]) * rsqrt(var[i] + 1e-5) * g[j] + b[j];""", dict(M=m, N=n),
        (f32("X", m, n), f32("g", n, const=True), f32("b", n, const=True)), (f32("Y", m, n),),
        lambda a: [reference.layer_norm(a["X"], a["g"], a["b"])],
        ((("LayerNormalization", ["X", "g", "b"], ["Y"], {"axis": -1, "epsilon": 1e-5}),),),
        torch=lambda t, F, X, g, b: F.layer_norm(X, (n,), g, b, 1e-5),
        loops="""  PARALLEL
  for (long i = 0; i < M; i++) {
    float mean = 0, var = 0;
    for (long j = 0; j < N; j++) mean += X[i*N+j];
    mean /= N;
    for (long j = 0; j < N; j++) var += (X[i*N+j] - mean) * (X[i*N+j] - mean);
    float scale = 1 / sqrtf(var / N + 1e-5f);
    for (long j = 0; j < N; j++) Y[i*N+j] = (X[i*N+j] - mean) * scale * g[j] + b[j];
  }""")


def rms_norm(m, n):
    plain = (("Mul", ["X", "X"], ["s"], {}), ("ReduceMean", ["s", "axes"], ["v"], {"keepdims": 1}), ("Add", ["v", "eps"], ["w"], {}),
             ("Sqrt", ["w"], ["q"], {}), ("Div", ["X", "q"], ["y"], {}), ("Mul", ["y", "g"], ["Y"], {}))
    whole = (("RMSNormalization", ["X", "g"], ["Y"], {"axis": -1, "epsilon": 1e-6}),)

    def ref(a):
        return [a["X"] / reference.np.sqrt((a["X"] ** 2).mean(axis=1, keepdims=True) + 1e-6) * a["g"]]

    return Operator(
        """let q[i] = (sum[j] X[i,j] * X[i,j]) / N;
           Y[i,j] = X[i,j] * rsqrt(q[i] + 1e-6) * g[j];""", dict(M=m, N=n),
        (f32("X", m, n), f32("g", n, const=True)), (f32("Y", m, n),), ref, (plain, whole), {"axes": ("i64", [-1]), "eps": ("f32", 1e-6)},
        lambda t, F, X, g: F.rms_norm(X, (n,), g, 1e-6),
        """  PARALLEL
  for (long i = 0; i < M; i++) {
    float sum = 0;
    for (long j = 0; j < N; j++) sum += X[i*N+j] * X[i*N+j];
    float scale = 1 / sqrtf(sum / N + 1e-6f);
    for (long j = 0; j < N; j++) Y[i*N+j] = X[i*N+j] * scale * g[j];
  }""")


def batch_norm(c, h, w):
    consts = tuple(f32(name, c, const=True) for name in ("g", "b", "mean", "var"))

    def ref(a):
        g, b, mean, var = (a[p.name].reshape(1, c, 1, 1) for p in consts)
        return [(a["X"] - mean) * g / reference.np.sqrt(var + 1e-5) + b]

    return Operator(
        """let s[c] = g[c] * rsqrt(var[c] + 1e-5);
           Y[n,c,h,w] = (X[n,c,h,w] - mean[c]) * s[c] + b[c];""", {},
        (f32("X", 1, c, h, w),) + consts, (f32("Y", 1, c, h, w),), ref,
        ((("BatchNormalization", ["X", "g", "b", "mean", "var"], ["Y"], {"epsilon": 1e-5}),),),
        torch=lambda t, F, X, g, b, mean, var: F.batch_norm(X, mean, var, g, b, False, 0.0, 1e-5),
        loops=f"""  PARALLEL
  for (long c = 0; c < {c}; c++) {{
    float scale = g[c] / sqrtf(var[c] + 1e-5f);
    for (long i = 0; i < {h * w}; i++) Y[c*{h * w}+i] = (X[c*{h * w}+i] - mean[c]) * scale + b[c];
  }}""")


def group_norm(c, h, w, g):
    """g groups of c/g channels each."""
    k = c // g

    def ref(a):
        x = a["X"].reshape(g, -1)
        y = (x - x.mean(axis=1, keepdims=True)) / reference.np.sqrt(x.var(axis=1, keepdims=True) + 1e-5)
        return [y.reshape(1, c, h, w) * a["s"].reshape(1, c, 1, 1) + a["b"].reshape(1, c, 1, 1)]

    return Operator(
        f"""let mean[g in 0..G] = (sum[c in 0..K, h in 0..{h}, w in 0..{w}] X[0, g*K + c, h, w]) / (K*{h * w});
            let var[g in 0..G] = (sum[c in 0..K, h in 0..{h}, w in 0..{w}] (X[0, g*K + c, h, w] - mean[g]) * (X[0, g*K + c, h, w] - mean[g])) / (K*{h * w});
            Y[n,c,h,w] = (X[n,c,h,w] - mean[c/K]) * rsqrt(var[c/K] + 1e-5) * s[c] + b[c];""", dict(G=g, K=k),
        (f32("X", 1, c, h, w), f32("s", c, const=True), f32("b", c, const=True)), (f32("Y", 1, c, h, w),), ref,
        ((("GroupNormalization", ["X", "s", "b"], ["Y"], {"num_groups": g, "epsilon": 1e-5}),),),
        torch=lambda t, F, X, s, b: F.group_norm(X, g, s, b, 1e-5),
        loops=f"""  PARALLEL
  for (long g = 0; g < G; g++) {{
    const float* x = X + g*K*{h * w};
    float mean = 0, var = 0;
    for (long i = 0; i < K*{h * w}; i++) mean += x[i];
    mean /= K*{h * w};
    for (long i = 0; i < K*{h * w}; i++) var += (x[i] - mean) * (x[i] - mean);
    float scale = 1 / sqrtf(var / (K*{h * w}) + 1e-5f);
    for (long c = g*K; c < g*K + K; c++) for (long i = 0; i < {h * w}; i++)
      Y[c*{h * w}+i] = (X[c*{h * w}+i] - mean) * scale * s[c] + b[c];
  }}""")


def reduction(kind, m, n, axis=1):
    """sum, max or mean of the rows (axis 1), the columns (0) or of everything (None)."""
    index = {1: ("[i]", "j"), 0: ("[j]", "i"), None: ("[o]", "i,j")}[axis]
    shape = {1: (m,), 0: (n,), None: (1,)}[axis]
    function = {"sum": "ReduceSum", "max": "ReduceMax", "mean": "ReduceMean"}[kind]
    over = "max" if kind == "max" else "sum"
    body = f"Y{index[0]} = {over}[{index[1]}] X[i,j];"
    if kind == "mean":
        body = f"let t{index[0]} = sum[{index[1]}] X[i,j];\nY{index[0]} = t{index[0]} / {'N' if axis == 1 else 'M'};"
    step = "acc = X[i*N+j] > acc ? X[i*N+j] : acc" if kind == "max" else "acc += X[i*N+j]"
    first = "-INFINITY" if kind == "max" else "0"
    loops = {
        1: f"  PARALLEL\n  for (long i = 0; i < M; i++) {{ float acc = {first}; for (long j = 0; j < N; j++) {step}; Y[i] = acc{' / N' * (kind == 'mean')}; }}",
        0: f"  for (long j = 0; j < N; j++) Y[j] = {first};\n  for (long i = 0; i < M; i++) for (long j = 0; j < N; j++) "
           + ("Y[j] = X[i*N+j] > Y[j] ? X[i*N+j] : Y[j];" if kind == "max" else "Y[j] += X[i*N+j];"),
        None: f"  float acc = 0;\n{'  PARALLEL reduction(+:acc)'}\n  for (long i = 0; i < M; i++) for (long j = 0; j < N; j++) {step};\n  Y[0] = acc;",
    }[axis]
    return Operator(
        body, dict(M=m, N=n), (f32("X", m, n),), (f32("Y", *shape),),
        lambda a: [getattr(reference.np, kind)(a["X"], axis=axis).reshape(shape)],
        (((function, ["X", "axes"], ["r"], {"keepdims": 0}), ("Reshape", ["r", "shape"], ["Y"], {})),),
        {"axes": ("i64", [0, 1] if axis is None else [axis]), "shape": ("i64", list(shape))},
        lambda t, F, X: (X.sum() if axis is None else {"sum": t.sum, "max": t.amax, "mean": t.mean}[kind](X, dim=axis)).reshape(shape), loops)


def variance(m, n):
    nodes = (("ReduceMean", ["X", "axes"], ["mean"], {"keepdims": 1}), ("Sub", ["X", "mean"], ["d"], {}), ("Mul", ["d", "d"], ["s"], {}),
             ("ReduceMean", ["s", "axes"], ["Y"], {"keepdims": 0}))
    return Operator(
        """let mean[i] = (sum[j] X[i,j]) / N;
           let s[i] = sum[j] (X[i,j] - mean[i]) * (X[i,j] - mean[i]);
           Y[i] = s[i] / N;""", dict(M=m, N=n), (f32("X", m, n),), (f32("Y", m),), lambda a: [a["X"].var(axis=1)],
        (nodes,), {"axes": ("i64", [1])}, lambda t, F, X: t.var(X, 1, unbiased=False),
        """  PARALLEL
  for (long i = 0; i < M; i++) {
    float mean = 0, sum = 0;
    for (long j = 0; j < N; j++) mean += X[i*N+j];
    mean /= N;
    for (long j = 0; j < N; j++) sum += (X[i*N+j] - mean) * (X[i*N+j] - mean);
    Y[i] = sum / N;
  }""")


def argmax(m, n, axis=1):
    out, index = (m, "[i] = argmax[j]") if axis == 1 else (n, "[j] = argmax[i]")
    loops = """  PARALLEL
  for (long i = 0; i < M; i++) {
    long at = 0;
    for (long j = 1; j < N; j++) if (X[i*N+j] > X[i*N+at]) at = j;
    Y[i] = at;
  }""" if axis == 1 else """  PARALLEL
  for (long j = 0; j < N; j++) Y[j] = 0;
  for (long i = 1; i < M; i++) for (long j = 0; j < N; j++) if (X[i*N+j] > X[Y[j]*N+j]) Y[j] = i;"""
    return Operator(
        f"Y{index} X[i,j];", dict(M=m, N=n), (f32("X", m, n),), (Port("Y", "i64", (out,)),), lambda a: [a["X"].argmax(axis=axis)],
        ((("ArgMax", ["X"], ["Y"], {"axis": axis, "keepdims": 0}),),), torch=lambda t, F, X: t.argmax(X, axis), loops=loops)


def cumsum(m, n, axis=1):
    body = "Y[i,j] = sum[k in 0..N | k <= j] X[i,k];" if axis == 1 else "Y[i,j] = sum[k in 0..M | k <= i] X[k,j];"
    loops = """  PARALLEL
  for (long i = 0; i < M; i++) {
    float sum = 0;
    for (long j = 0; j < N; j++) Y[i*N+j] = sum += X[i*N+j];
  }""" if axis == 1 else """  for (long j = 0; j < N; j++) Y[j] = X[j];
  for (long i = 1; i < M; i++) for (long j = 0; j < N; j++) Y[i*N+j] = Y[i*N-N+j] + X[i*N+j];"""
    return Operator(
        body, dict(M=m, N=n), (f32("X", m, n),), (f32("Y", m, n),), lambda a: [a["X"].cumsum(axis=axis)],
        ((("CumSum", ["X", "axis"], ["Y"], {}),),), {"axis": ("i64", axis)}, lambda t, F, X: t.cumsum(X, axis), loops)
