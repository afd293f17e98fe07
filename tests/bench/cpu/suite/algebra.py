"""Operators of `std/algebra.prn`: the same in another order costs less. Peers get the definition's order and the one that a user would write
who knows algebra; the loops and PyTorch get the latter alone. Only what is const there is a weight."""

import math

import reference
from description import Operator, f32

np = reference.np
EPS = {"axes": ("i64", [-1]), "eps": ("f32", 1e-6)}

LOW_RANK = """    float t[R];
    for (long r = 0; r < R; r++) t[r] = 0;
    for (long k = 0; k < K; k++) for (long r = 0; r < R; r++) t[r] += X[i*K+k] * A[k*R+r];
    for (long j = 0; j < N; j++) Y[i*N+j] = 0;
    for (long r = 0; r < R; r++) for (long j = 0; j < N; j++) Y[i*N+j] += t[r] * B[r*N+j];
"""


def lora_merged(m, n, k, r):
    """Y = X (A B): an update of rank r that was merged badly."""
    merged = (("MatMul", ["A", "B"], ["W"], {}), ("MatMul", ["X", "W"], ["Y"], {}))
    apart = (("MatMul", ["X", "A"], ["t"], {}), ("MatMul", ["t", "B"], ["Y"], {}))
    return Operator(
        """let W[k,n] = sum[r] A[k,r] * B[r,n];
           Y[m,n] = sum[k] X[m,k] * W[k,n];""", dict(M=m, K=k, N=n, R=r),
        (f32("X", m, k), f32("A", k, r), f32("B", r, n)), (f32("Y", m, n),),
        lambda a: [a["X"] @ a["A"] @ a["B"]], (merged, apart), torch=lambda t, F, X, A, B: X @ A @ B,
        loops=f"  PARALLEL\n  for (long i = 0; i < M; i++) {{\n{LOW_RANK}  }}")


def lora_added(m, n, k, r):
    """Y = X (W + A B)."""
    merged = (("MatMul", ["A", "B"], ["U"], {}), ("Add", ["W", "U"], ["Z"], {}), ("MatMul", ["X", "Z"], ["Y"], {}))
    apart = (("MatMul", ["X", "W"], ["p"], {}), ("MatMul", ["X", "A"], ["t"], {}), ("MatMul", ["t", "B"], ["q"], {}), ("Add", ["p", "q"], ["Y"], {}))
    return Operator(
        """let U[k,n] = sum[r] A[k,r] * B[r,n];
           Y[m,n] = sum[k] X[m,k] * (W[k,n] + U[k,n]);""", dict(M=m, K=k, N=n, R=r),
        (f32("X", m, k), f32("W", k, n), f32("A", k, r), f32("B", r, n)), (f32("Y", m, n),),
        lambda a: [a["X"] @ a["W"] + a["X"] @ a["A"] @ a["B"]], (merged, apart), torch=lambda t, F, X, W, A, B: X @ W + X @ A @ B,
        loops=f"""  PARALLEL
  for (long i = 0; i < M; i++) {{
{LOW_RANK}    for (long k = 0; k < K; k++) for (long j = 0; j < N; j++) Y[i*N+j] += X[i*K+k] * W[k*N+j];
  }}""")


def two_passes(term):
    """y = A w, where w holds the sums over j of `term`."""
    return f"""  float w[N];
  PARALLEL
  for (long i = 0; i < N; i++) {{
    float sum = 0;
    for (long j = 0; j < N; j++) sum += {term};
    w[i] = sum;
  }}
  PARALLEL
  for (long i = 0; i < N; i++) {{
    float sum = 0;
    for (long j = 0; j < N; j++) sum += A[i*N+j] * w[j];
    y[i] = sum;
  }}"""


def chain3(n):
    """y = (A B) v."""
    left = (("MatMul", ["A", "B"], ["C"], {}), ("MatMul", ["C", "v"], ["y"], {}))
    right = (("MatMul", ["B", "v"], ["w"], {}), ("MatMul", ["A", "w"], ["y"], {}))
    return Operator(
        """let C[i,j] = sum[k] A[i,k] * B[k,j];
           y[i] = sum[j] C[i,j] * v[j];""", dict(N=n), (f32("A", n, n), f32("B", n, n), f32("v", n)), (f32("y", n),),
        lambda a: [a["A"] @ (a["B"] @ a["v"])], (left, right), torch=lambda t, F, A, B, v: A @ (B @ v), loops=two_passes("B[i*N+j] * v[j]"))


def product_row_sums(n):
    """The sums of the rows of A B."""
    after = (("MatMul", ["A", "B"], ["C"], {}), ("ReduceSum", ["C", "axes"], ["y"], {"keepdims": 0}))
    before = (("ReduceSum", ["B", "axes"], ["w"], {"keepdims": 0}), ("MatMul", ["A", "w"], ["y"], {}))
    return Operator(
        """let C[i,j] = sum[k] A[i,k] * B[k,j];
           y[i] = sum[j] C[i,j];""", dict(N=n), (f32("A", n, n), f32("B", n, n)), (f32("y", n),),
        lambda a: [a["A"] @ a["B"].sum(axis=1)], (after, before), {"axes": ("i64", [1])}, lambda t, F, A, B: A @ B.sum(1), two_passes("B[i*N+j]"))


def linear_attention(t, e):
    """O = (Q K') V, without a softmax."""
    turned = ("Transpose", ["K"], ["Kt"], {"perm": [1, 0]})
    left = (turned, ("MatMul", ["Q", "Kt"], ["a"], {}), ("MatMul", ["a", "V"], ["O"], {}))
    right = (turned, ("MatMul", ["Kt", "V"], ["z"], {}), ("MatMul", ["Q", "z"], ["O"], {}))
    return Operator(
        """let a[t,s] = sum[e] Q[t,e] * K[s,e];
           O[t,f] = sum[s] a[t,s] * V[s,f];""", dict(T=t, E=e), (f32("Q", t, e), f32("K", t, e), f32("V", t, e)), (f32("O", t, e),),
        lambda a: [a["Q"] @ (a["K"].T @ a["V"])], (left, right), torch=lambda t_, F, Q, K, V: Q @ (K.T @ V),
        loops="""  float z[E*E];
  PARALLEL
  for (long d = 0; d < E; d++) {
    for (long f = 0; f < E; f++) z[d*E+f] = 0;
    for (long i = 0; i < T; i++) for (long f = 0; f < E; f++) z[d*E+f] += K[i*E+d] * V[i*E+f];
  }
  PARALLEL
  for (long i = 0; i < T; i++) {
    for (long f = 0; f < E; f++) O[i*E+f] = 0;
    for (long d = 0; d < E; d++) for (long f = 0; f < E; f++) O[i*E+f] += Q[i*E+d] * z[d*E+f];
  }""")


def outer_then_sum(n, e):
    """The sum of A's rows, each weighted by the sum of its products with B's."""
    pairs = (("Transpose", ["B"], ["Bt"], {"perm": [1, 0]}), ("MatMul", ["A", "Bt"], ["P"], {}),
             ("ReduceSum", ["P", "columns"], ["r"], {"keepdims": 0}), ("MatMul", ["r", "A"], ["s"], {}))
    sums = (("ReduceSum", ["B", "rows"], ["b"], {"keepdims": 0}), ("MatMul", ["A", "b"], ["r"], {}), ("MatMul", ["r", "A"], ["s"], {}))
    return Operator(
        """let P[i,j] = sum[d] A[i,d] * B[j,d];
           s[d] = sum[i,j] P[i,j] * A[i,d];""", dict(N=n, D=e), (f32("A", n, e), f32("B", n, e)), (f32("s", e),),
        lambda a: [a["A"] @ a["B"].sum(axis=0) @ a["A"]], (pairs, sums), {"rows": ("i64", [0]), "columns": ("i64", [1])},
        lambda t, F, A, B: A @ B.sum(0) @ A,
        """  float b[D];
  for (long d = 0; d < D; d++) b[d] = s[d] = 0;
  for (long j = 0; j < N; j++) for (long d = 0; d < D; d++) b[d] += B[j*D+d];
  for (long i = 0; i < N; i++) {
    float r = 0;
    for (long d = 0; d < D; d++) r += A[i*D+d] * b[d];
    for (long d = 0; d < D; d++) s[d] += r * A[i*D+d];
  }""")


def grouped_decode(b, g, s, e):
    """One query each of b heads, groups of g of which share keys and values."""
    kv = b // g
    groups = [("Reshape", ["Q", "groups"], ["Qg"], {}), ("Mul", ["Qg", "scale"], ["q"], {})]
    after = [("Softmax", ["a"], ["p"], {"axis": -1}), ("MatMul", ["p", "V"], ["o"], {}), ("Reshape", ["o", "heads"], ["O"], {})]
    plain = groups + [("Transpose", ["K"], ["Kt"], {"perm": [0, 2, 1]}), ("MatMul", ["q", "Kt"], ["a"], {})] + after
    # The queries are turned instead of the keys.
    turned = groups + [("Transpose", ["q"], ["qt"], {"perm": [0, 2, 1]}), ("MatMul", ["K", "qt"], ["at"], {}),
                       ("Transpose", ["at"], ["a"], {"perm": [0, 2, 1]})] + after
    whole = [("Reshape", ["Q", "one_query"], ["Q4"], {})] + [("Unsqueeze", [x, "zero"], [x + "4"], {}) for x in "KV"]
    whole += [("Attention", ["Q4", "K4", "V4"], ["O4"], {}), ("Reshape", ["O4", "heads"], ["O"], {})]
    consts = {"scale": ("f32", 1 / math.sqrt(e)), "zero": ("i64", [0]), "groups": ("i64", [kv, g, e]), "heads": ("i64", [b, e]),
              "one_query": ("i64", [1, b, 1, e])}

    def torch(t, F, Q, K, V):
        return F.scaled_dot_product_attention(Q.reshape(1, kv, g, e), K[None], V[None]).reshape(b, e)

    def ref(a):
        scores = a["Q"].reshape(kv, g, e) @ a["K"].swapaxes(1, 2) / math.sqrt(e)
        return [reference.softmax(scores) @ a["V"]]

    return Operator(
        """let a[h,s] = (sum[e] Q[h,e] * K[h/G,s,e]) / sqrt(E);
           let m[h] = max[s] a[h,s];
           let p[h,s] = exp(a[h,s] - m[h]);
           let l[h] = sum[s] p[h,s];
           let w[h,s] = p[h,s] / l[h];
           O[h,e] = sum[s] w[h,s] * V[h/G,s,e];""", dict(H=b, G=g, S=s, E=e),
        (f32("Q", b, e), f32("K", kv, s, e), f32("V", kv, s, e)), (f32("O", b, e),), ref, (tuple(plain), tuple(turned), tuple(whole)), consts, torch,
        """  PARALLEL
  for (long h = 0; h < H; h++) {
    const float *q = Q + h*E, *k = K + h/G*S*E, *v = V + h/G*S*E;
    float p[S], best = -INFINITY, sum = 0, *o = O + h*E;
    for (long j = 0; j < S; j++) {
      p[j] = 0;
      for (long d = 0; d < E; d++) p[j] += q[d] * k[j*E+d];
      p[j] /= sqrtf(E);
      best = p[j] > best ? p[j] : best;
    }
    for (long j = 0; j < S; j++) sum += p[j] = expf(p[j] - best);
    for (long d = 0; d < E; d++) o[d] = 0;
    for (long j = 0; j < S; j++) for (long d = 0; d < E; d++) o[d] += p[j] * v[j*E+d];
    for (long d = 0; d < E; d++) o[d] /= sum;
  }""")


def root_mean_square(x):
    """Nodes of the root of the mean square of each row of `x`; it is called `x`r."""
    return (("Mul", [x, x], [x + "2"], {}), ("ReduceMean", [x + "2", "axes"], [x + "m"], {"keepdims": 1}),
            ("Add", [x + "m", "eps"], [x + "e"], {}), ("Sqrt", [x + "e"], [x + "r"], {}))


def rms_normed(x):
    return x / np.sqrt((x ** 2).mean(axis=-1, keepdims=True) + 1e-6)


def rmsnorm_linear(m, n, k):
    plain = (*root_mean_square("X"), ("Div", ["X", "Xr"], ["x"], {}), ("Mul", ["x", "g"], ["z"], {}), ("MatMul", ["z", "W"], ["Y"], {}))
    behind = (*root_mean_square("X"), ("Mul", ["X", "g"], ["z"], {}), ("MatMul", ["z", "W"], ["p"], {}), ("Div", ["p", "Xr"], ["Y"], {}))
    whole = (("RMSNormalization", ["X", "g"], ["z"], {"axis": -1, "epsilon": 1e-6}), ("MatMul", ["z", "W"], ["Y"], {}))
    return Operator(
        """let ms[m] = (sum[k] X[m,k] * X[m,k]) / K;
           let x[m,k] = X[m,k] / sqrt(ms[m] + 1e-6) * g[k];
           Y[m,n] = sum[k] x[m,k] * W[k,n];""", dict(M=m, K=k, N=n), (f32("X", m, k), f32("g", k), f32("W", k, n)), (f32("Y", m, n),),
        lambda a: [(rms_normed(a["X"]) * a["g"]) @ a["W"]], (plain, behind, whole), EPS,
        lambda t, F, X, g, W: F.rms_norm(X, (k,), g, 1e-6) @ W,
        """  PARALLEL
  for (long i = 0; i < M; i++) {
    float sum = 0;
    for (long k = 0; k < K; k++) sum += X[i*K+k] * X[i*K+k];
    float scale = 1 / sqrtf(sum / K + 1e-6f);
    for (long j = 0; j < N; j++) Y[i*N+j] = 0;
    for (long k = 0; k < K; k++) for (long j = 0; j < N; j++) Y[i*N+j] += X[i*K+k] * scale * g[k] * W[k*N+j];
  }""")


def layernorm_linear(m, n, k):
    """Layer norm without scale and shift, then a product."""
    moments = (("ReduceMean", ["X", "axes"], ["mean"], {"keepdims": 1}), ("Sub", ["X", "mean"], ["d"], {}), ("Mul", ["d", "d"], ["d2"], {}),
               ("ReduceMean", ["d2", "axes"], ["v"], {"keepdims": 1}), ("Add", ["v", "eps"], ["ve"], {}), ("Sqrt", ["ve"], ["q"], {}))
    plain = (*moments, ("Div", ["d", "q"], ["x"], {}), ("MatMul", ["x", "W"], ["Y"], {}))
    behind = (*moments, ("MatMul", ["d", "W"], ["p"], {}), ("Div", ["p", "q"], ["Y"], {}))
    whole = (("LayerNormalization", ["X", "ones"], ["x"], {"axis": -1, "epsilon": 1e-5}), ("MatMul", ["x", "W"], ["Y"], {}))
    return Operator(
        """let mean[m] = (sum[k] X[m,k]) / K;
           let var[m] = (sum[k] (X[m,k] - mean[m]) * (X[m,k] - mean[m])) / K;
           let x[m,k] = (X[m,k] - mean[m]) / sqrt(var[m] + 1e-5);
           Y[m,n] = sum[k] x[m,k] * W[k,n];""", dict(M=m, K=k, N=n), (f32("X", m, k), f32("W", k, n)), (f32("Y", m, n),),
        lambda a: [reference.layer_norm(a["X"], 1, 0) @ a["W"]], (plain, behind, whole),
        {"axes": ("i64", [-1]), "eps": ("f32", 1e-5), "ones": ("f32", [1.0] * k)},
        lambda t, F, X, W: F.layer_norm(X, (k,), None, None, 1e-5) @ W,
        """  PARALLEL
  for (long i = 0; i < M; i++) {
    float mean = 0, var = 0;
    for (long k = 0; k < K; k++) mean += X[i*K+k];
    mean /= K;
    for (long k = 0; k < K; k++) var += (X[i*K+k] - mean) * (X[i*K+k] - mean);
    float scale = 1 / sqrtf(var / K + 1e-5f);
    for (long j = 0; j < N; j++) Y[i*N+j] = 0;
    for (long k = 0; k < K; k++) for (long j = 0; j < N; j++) Y[i*N+j] += (X[i*K+k] - mean) * scale * W[k*N+j];
  }""")


def raw_attention(b, t, s, e):
    """A softmax of scores that nothing scales, without its maximum, divided before the product."""
    scores = (("Transpose", ["K"], ["Kt"], {"perm": [0, 2, 1]}), ("MatMul", ["Q", "Kt"], ["a"], {}))
    sums = (*scores, ("Exp", ["a"], ["p"], {}), ("ReduceSum", ["p", "axes"], ["l"], {"keepdims": 1}))
    plain = (*sums, ("Div", ["p", "l"], ["w"], {}), ("MatMul", ["w", "V"], ["O"], {}))
    behind = (*sums, ("MatMul", ["p", "V"], ["o"], {}), ("Div", ["o", "l"], ["O"], {}))
    named = (*scores, ("Softmax", ["a"], ["p"], {"axis": -1}), ("MatMul", ["p", "V"], ["O"], {}))
    whole = (*(("Unsqueeze", [x, "zero"], [x + "4"], {}) for x in "QKV"), ("Attention", ["Q4", "K4", "V4"], ["O4"], {"scale": 1.0}),
             ("Squeeze", ["O4", "zero"], ["O"], {}))

    def ref(a):
        return [reference.softmax(a["Q"] @ a["K"].swapaxes(1, 2)) @ a["V"]]

    return Operator(
        """let p[h,t,s] = exp(sum[e] Q[h,t,e] * K[h,s,e]);
           let l[h,t] = sum[s] p[h,t,s];
           O[h,t,e] = sum[s] (p[h,t,s] / l[h,t]) * V[h,s,e];""", dict(H=b, T=t, S=s, E=e),
        (f32("Q", b, t, e), f32("K", b, s, e), f32("V", b, s, e)), (f32("O", b, t, e),), ref, (plain, behind, named, whole),
        {"axes": ("i64", [-1]), "zero": ("i64", [0])},
        lambda t_, F, Q, K, V: F.scaled_dot_product_attention(Q[None], K[None], V[None], scale=1.0)[0],
        """  PARALLEL
  for (long h = 0; h < H; h++) for (long i = 0; i < T; i++) {
    const float *q = Q + (h*T+i)*E, *k = K + h*S*E, *v = V + h*S*E;
    float p[S], sum = 0, *o = O + (h*T+i)*E;
    for (long j = 0; j < S; j++) {
      p[j] = 0;
      for (long d = 0; d < E; d++) p[j] += q[d] * k[j*E+d];
    }
    for (long j = 0; j < S; j++) sum += p[j] = expf(p[j]);
    for (long d = 0; d < E; d++) o[d] = 0;
    for (long j = 0; j < S; j++) for (long d = 0; d < E; d++) o[d] += p[j] * v[j*E+d];
    for (long d = 0; d < E; d++) o[d] /= sum;
  }""")


def qk_norm(b, t, s, e):
    """Scores of queries and keys that are normalised before."""
    roots = (*root_mean_square("Q"), *root_mean_square("K"))
    turned = lambda x: ("Transpose", [x], [x + "t"], {"perm": [0, 2, 1]})
    plain = (*roots, ("Div", ["Q", "Qr"], ["q"], {}), ("Div", ["K", "Kr"], ["k"], {}), turned("k"), ("MatMul", ["q", "kt"], ["A"], {}))
    behind = (*roots, turned("K"), turned("Kr"), ("MatMul", ["Q", "Kt"], ["a"], {}), ("Div", ["a", "Qr"], ["c"], {}),
              ("Div", ["c", "Krt"], ["A"], {}))
    whole = (*(("RMSNormalization", [x, "ones"], [x.lower()], {"axis": -1, "epsilon": 1e-6}) for x in "QK"),
             turned("k"), ("MatMul", ["q", "kt"], ["A"], {}))
    return Operator(
        """let q[h,t] = (sum[e] Q[h,t,e] * Q[h,t,e]) / E;
           let k[h,s] = (sum[e] K[h,s,e] * K[h,s,e]) / E;
           A[h,t,s] = sum[e] (Q[h,t,e] / sqrt(q[h,t] + 1e-6)) * (K[h,s,e] / sqrt(k[h,s] + 1e-6));""", dict(H=b, T=t, S=s, E=e),
        (f32("Q", b, t, e), f32("K", b, s, e)), (f32("A", b, t, s),),
        lambda a: [rms_normed(a["Q"]) @ rms_normed(a["K"]).swapaxes(1, 2)], (plain, behind, whole), dict(EPS, ones=("f32", [1.0] * e)),
        lambda t_, F, Q, K: F.rms_norm(Q, (e,), None, 1e-6) @ F.rms_norm(K, (e,), None, 1e-6).transpose(1, 2),
        """  PARALLEL
  for (long h = 0; h < H; h++) {
    float root[S];
    for (long j = 0; j < S; j++) {
      float sum = 0;
      for (long d = 0; d < E; d++) sum += K[(h*S+j)*E+d] * K[(h*S+j)*E+d];
      root[j] = sqrtf(sum / E + 1e-6f);
    }
    for (long i = 0; i < T; i++) {
      const float* q = Q + (h*T+i)*E;
      float sum = 0;
      for (long d = 0; d < E; d++) sum += q[d] * q[d];
      float scale = 1 / sqrtf(sum / E + 1e-6f);
      for (long j = 0; j < S; j++) {
        float dot = 0;
        for (long d = 0; d < E; d++) dot += q[d] * K[(h*S+j)*E+d];
        A[(h*T+i)*S+j] = dot * scale / root[j];
      }
    }
  }""")


def gated_mlp(m, n, k):
    """Two products of one input, one of them the other's gate."""
    after = (("Sigmoid", ["g"], ["w"], {}), ("Mul", ["g", "w"], ["z"], {}), ("Mul", ["z", "u"], ["Y"], {}))
    two = (("MatMul", ["X", "G"], ["g"], {}), ("MatMul", ["X", "U"], ["u"], {}), *after)
    # The weights side by side are a constant.
    one = (("Concat", ["G", "U"], ["GU"], {"axis": 1}), ("MatMul", ["X", "GU"], ["gu"], {}),
           ("Split", ["gu"], ["g", "u"], {"axis": -1, "num_outputs": 2}), *after)
    return Operator(
        """let g[m,n] = sum[k] X[m,k] * G[k,n];
           let u[m,n] = sum[k] X[m,k] * U[k,n];
           Y[m,n] = g[m,n] * sigmoid(g[m,n]) * u[m,n];""", dict(M=m, K=k, N=n),
        (f32("X", m, k), f32("G", k, n, const=True), f32("U", k, n, const=True)), (f32("Y", m, n),),
        lambda a: [reference.silu(a["X"] @ a["G"]) * (a["X"] @ a["U"])], (two, one), torch=lambda t, F, X, G, U: F.silu(X @ G) * (X @ U),
        loops="""  PARALLEL
  for (long i = 0; i < M; i++) {
    float u[N], *g = Y + i*N;
    for (long j = 0; j < N; j++) g[j] = u[j] = 0;
    for (long k = 0; k < K; k++) for (long j = 0; j < N; j++) {
      g[j] += X[i*K+k] * G[k*N+j];
      u[j] += X[i*K+k] * U[k*N+j];
    }
    for (long j = 0; j < N; j++) g[j] = g[j] / (1 + expf(-g[j])) * u[j];
  }""")
