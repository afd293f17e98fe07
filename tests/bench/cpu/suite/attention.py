"""Attention: plain, causal, with shared heads, and one query against a long cache."""

import math

import reference
from description import Operator, f32


def attention(b, t, s, e, g=1, causal=False):
    """O[b,t,e]: b heads, groups of g of which share keys and values."""
    kv = b // g
    head = "h" if g == 1 else "h/G"
    plain = [("Transpose", ["K"], ["Kt"], {"perm": [0, 2, 1]})]
    q, o = "Q", "O"
    if g > 1:  # [kv, g, t, e] with [kv, 1, e, s]
        plain += [("Reshape", ["Q", "q_shape"], ["Qg"], {}), ("Unsqueeze", ["Kt", "one"], ["Ku"], {}), ("Unsqueeze", ["V", "one"], ["Vu"], {})]
        q, o = "Qg", "Og"
    key, value = ("Kt", "V") if g == 1 else ("Ku", "Vu")
    plain += [("MatMul", [q, key], ["a"], {}), ("Mul", ["a", "scale"], ["c"], {})]
    plain += [("Add", ["c", "mask"], ["d"], {})] if causal else []
    plain += [("Softmax", ["d" if causal else "c"], ["p"], {"axis": -1}), ("MatMul", ["p", value], [o], {})]
    plain += [("Reshape", ["Og", "o_shape"], ["O"], {})] if g > 1 else []
    whole = [("Unsqueeze", [x, "zero"], [x + "4"], {}) for x in "QKV"]
    whole += [("Attention", ["Q4", "K4", "V4"], ["O4"], {"is_causal": int(causal)}), ("Squeeze", ["O4", "zero"], ["O"], {})]
    consts = {"scale": ("f32", 1 / math.sqrt(e)), "zero": ("i64", [0]), "one": ("i64", [1]), "q_shape": ("i64", [kv, g, t, e]),
              "o_shape": ("i64", [b, t, e])}
    if causal:
        consts["mask"] = ("f32", [[0.0 if j <= i else -math.inf for j in range(s)] for i in range(t)])

    def torch(t_, F, Q, K, V):
        Q, K, V = (x.unsqueeze(0) for x in (Q, K.repeat_interleave(g, 0), V.repeat_interleave(g, 0)))
        return F.scaled_dot_product_attention(Q, K, V, is_causal=causal)[0]

    upto = "i + 1" if causal else "S"
    return Operator(
        f"""let a[h,t,s] = (sum[e] Q[h,t,e] * K[{head},s,e]) * (1 / sqrt(E));
            let m[h,t] = max[s{' | s <= t' if causal else ''}] a[h,t,s];
            let p[h,t,s] = {'if s <= t then exp(a[h,t,s] - m[h,t]) else 0' if causal else 'exp(a[h,t,s] - m[h,t])'};
            let l[h,t] = sum[s] p[h,t,s];
            let o[h,t,e] = sum[s] p[h,t,s] * V[{head},s,e];
            O[h,t,e] = o[h,t,e] / l[h,t];""", dict(H=b, T=t, S=s, E=e, G=g),
        (f32("Q", b, t, e), f32("K", kv, s, e), f32("V", kv, s, e)), (f32("O", b, t, e),),
        lambda a: [reference.attention(a["Q"], a["K"], a["V"], causal)], (tuple(plain), tuple(whole)), consts, torch,
        f"""  PARALLEL
  for (long h = 0; h < H; h++) for (long i = 0; i < T; i++) {{
    const float *q = Q + (h*T+i)*E, *k = K + h/G*S*E, *v = V + h/G*S*E;
    float p[S], best = -INFINITY, sum = 0, *o = O + (h*T+i)*E;
    for (long j = 0; j < {upto}; j++) {{
      p[j] = 0;
      for (long d = 0; d < E; d++) p[j] += q[d] * k[j*E+d];
      p[j] /= sqrtf(E);
      best = p[j] > best ? p[j] : best;
    }}
    for (long j = 0; j < {upto}; j++) sum += p[j] = expf(p[j] - best);
    for (long d = 0; d < E; d++) o[d] = 0;
    for (long j = 0; j < {upto}; j++) for (long d = 0; d < E; d++) o[d] += p[j] / sum * v[j*E+d];
  }}""")
