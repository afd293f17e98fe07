"""Matrix products: square, skinny, ragged, batched, narrow types, with what follows them in a network."""

import reference
from description import Operator, Port, f32

# What may follow a product or a convolution: in `.prn`, ONNX, PyTorch, C.
PRN_AFTER = {"": "{}", "relu": "max({}, 0)", "relu6": "clamp({}, 0, 6)", "gelu": "0.5 * {0} * (1 + erf({0} * 0.70710678118654752440))"}
C_AFTER = {"": "{}", "relu": "fmaxf({}, 0)", "relu6": "fminf(fmaxf({}, 0), 6)", "gelu": "0.5f * ({0}) * (1 + erff(({0}) * 0.70710678f))"}
TORCH_AFTER = {"": lambda F, y: y, "relu": lambda F, y: F.relu(y), "relu6": lambda F, y: F.relu6(y), "gelu": lambda F, y: F.gelu(y)}


def onnx_after(after, source, target):
    """Nodes, with the constants that they need."""
    if after == "relu6":
        return [("Clip", [source, "zero", "six"], [target], {})], {"zero": ("f32", 0), "six": ("f32", 6)}
    kind = {"": "Identity", "relu": "Relu", "gelu": "Gelu"}[after]
    return [(kind, [source], [target], {})], {}


def gemm(m, n, k, bias=False, after="", residual=False, nt=False):
    """C = after(A B + bias) + R. B is a weight; with `nt` it is [n, k] and no weight, as in a scalar product of two batches."""
    b = f32("B", n, k) if nt else f32("B", k, n, const=True)
    read = "B[j,k]" if nt else "B[k,j]"
    inputs = [f32("A", m, k), b] + [f32("v", n, const=True)] * bias + [f32("R", m, n)] * residual
    value = PRN_AFTER[after].format("z[i,j]") if after == "gelu" else PRN_AFTER[after].format("(T[i,j]" + " + v[j]" * bias + ")")
    lines = [f"C[i,j] = sum[k] A[i,k] * {read};"]
    if bias or after or residual:
        lines = [f"let T[i,j] = sum[k] A[i,k] * {read};"]
        lines += ["let z[i,j] = T[i,j]" + " + v[j]" * bias + ";"] if after == "gelu" else []
        lines += [f"C[i,j] = {value}" + " + R[i,j]" * residual + ";"]
    nodes = [("Transpose", ["B"], ["Bt"], {"perm": [1, 0]})] if nt else []
    nodes += [("MatMul", ["A", "Bt" if nt else "B"], ["p"], {})] + [("Add", ["p", "v"], ["pb"], {})] * bias
    more, consts = onnx_after(after, "pb" if bias else "p", "q" if residual else "C")
    nodes += more + [("Add", ["q", "R"], ["C"], {})] * residual

    def ref(a):
        y = a["A"] @ (a["B"].T if nt else a["B"]) + (a["v"] if bias else 0)
        return [reference.ACTIVATIONS[after](y) + (a["R"] if residual else 0)]

    def torch(t, F, A, B, *rest):
        y = t.matmul(A, B.T if nt else B) + (rest[0] if bias else 0)
        return TORCH_AFTER[after](F, y) + (rest[-1] if residual else 0)

    last = C_AFTER[after].format("C[i*N+j]" + " + v[j]" * bias) + " + R[i*N+j]" * residual
    loops = """  PARALLEL
  for (long i = 0; i < M; i++) {
    for (long j = 0; j < N; j++) C[i*N+j] = 0;
    for (long k = 0; k < K; k++) for (long j = 0; j < N; j++) C[i*N+j] += A[i*K+k] * B[k*N+j];
""" if not nt else """  PARALLEL
  for (long i = 0; i < M; i++) {
    for (long j = 0; j < N; j++) {
      float sum = 0;
      for (long k = 0; k < K; k++) sum += A[i*K+k] * B[j*K+k];
      C[i*N+j] = sum;
    }
"""
    loops += f"    for (long j = 0; j < N; j++) C[i*N+j] = {last};\n  }}" if len(lines) > 1 else "  }"
    return Operator("\n".join(lines), dict(M=m, N=n, K=k), tuple(inputs), (f32("C", m, n),), ref, (tuple(nodes),), consts, torch, loops)


def batched(b, m, n, k, nt=False):
    shape = (b, n, k) if nt else (b, k, n)
    read = "Y[b,j,k]" if nt else "Y[b,k,j]"
    nodes = [("Transpose", ["Y"], ["Yt"], {"perm": [0, 2, 1]})] if nt else []
    at = "Y[(b*N+j)*K+k]" if nt else "Y[(b*K+k)*N+j]"
    return Operator(
        f"Z[b,i,j] = sum[k] X[b,i,k] * {read};", dict(B=b, M=m, N=n, K=k), (f32("X", b, m, k), f32("Y", *shape)), (f32("Z", b, m, n),),
        lambda a: [a["X"] @ (a["Y"].swapaxes(1, 2) if nt else a["Y"])],
        (tuple(nodes + [("MatMul", ["X", "Yt" if nt else "Y"], ["Z"], {})]),),
        torch=lambda t, F, X, Y: t.matmul(X, Y.transpose(1, 2) if nt else Y),
        loops=f"""  PARALLEL
  for (long b = 0; b < B; b++) for (long i = 0; i < M; i++) {{
    for (long j = 0; j < N; j++) Z[(b*M+i)*N+j] = 0;
    for (long k = 0; k < K; k++) for (long j = 0; j < N; j++) Z[(b*M+i)*N+j] += X[(b*M+i)*K+k] * {at};
  }}""")


def int8(m, n, k):
    return Operator(
        "C[i,j] = sum:i32[k] A[i,k] * B[k,j];", dict(M=m, N=n, K=k),
        (Port("A", "u8", (m, k)), Port("B", "i8", (k, n), True)), (Port("C", "i32", (m, n)),),
        lambda a: [a["A"] @ a["B"]], ((("MatMulInteger", ["A", "B"], ["C"], {}),),),
        loops="""  PARALLEL
  for (long i = 0; i < M; i++) {
    for (long j = 0; j < N; j++) C[i*N+j] = 0;
    for (long k = 0; k < K; k++) for (long j = 0; j < N; j++) C[i*N+j] += A[i*K+k] * B[k*N+j];
  }""")


def bf16(m, n, k):
    return Operator(
        "C[i,j] = bf16(sum:f32[k] A[i,k] * B[k,j]);", dict(M=m, N=n, K=k),
        (Port("A", "bf16", (m, k)), Port("B", "bf16", (k, n), True)), (Port("C", "bf16", (m, n)),),
        lambda a: [a["A"] @ a["B"]], ((("MatMul", ["A", "B"], ["C"], {}),),), torch=lambda t, F, A, B: t.matmul(A, B))


def gemm_layer_norm(m, n, k):
    """The end of a transformer's block: product, bias, what went around it, layer norm."""
    nodes = (("MatMul", ["A", "B"], ["p"], {}), ("Add", ["p", "v"], ["q"], {}), ("Add", ["q", "R"], ["r"], {}),
             ("LayerNormalization", ["r", "g", "b"], ["Y"], {"axis": -1, "epsilon": 1e-5}))
    return Operator(
        """let T[i,j] = sum[k] A[i,k] * B[k,j];
           let z[i,j] = T[i,j] + v[j] + R[i,j];
           let mean[i] = (sum[j] z[i,j]) / N;
           let var[i] = (sum[j] (z[i,j] - mean[i]) * (z[i,j] - mean[i])) / N;
           Y[i,j] = (z[i,j] - mean[i]) * rsqrt(var[i] + 1e-5) * g[j] + b[j];""", dict(M=m, N=n, K=k),
        (f32("A", m, k), f32("B", k, n, const=True), f32("v", n, const=True), f32("R", m, n), f32("g", n, const=True), f32("b", n, const=True)),
        (f32("Y", m, n),), lambda a: [reference.layer_norm(a["A"] @ a["B"] + a["v"] + a["R"], a["g"], a["b"])], (nodes,),
        torch=lambda t, F, A, B, v, R, g, b: F.layer_norm(t.matmul(A, B) + v + R, (n,), g, b),
        loops="""  PARALLEL
  for (long i = 0; i < M; i++) {
    float *y = Y + i*N, mean = 0, var = 0;
    for (long j = 0; j < N; j++) y[j] = v[j] + R[i*N+j];
    for (long k = 0; k < K; k++) for (long j = 0; j < N; j++) y[j] += A[i*K+k] * B[k*N+j];
    for (long j = 0; j < N; j++) mean += y[j];
    mean /= N;
    for (long j = 0; j < N; j++) var += (y[j] - mean) * (y[j] - mean);
    float scale = 1 / sqrtf(var / N + 1e-5f);
    for (long j = 0; j < N; j++) y[j] = (y[j] - mean) * scale * g[j] + b[j];
  }""")
