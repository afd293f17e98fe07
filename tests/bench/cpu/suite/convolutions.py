"""Convolutions of one to three dimensions, transposed ones, pooling; all channels-first."""

import reference
from description import Operator, f32
from products import C_AFTER, PRN_AFTER, TORCH_AFTER, onnx_after

AXES = {1: "w", 2: "hw", 3: "lhw"}


def spatial(rank, h, w, l):
    return {1: (w,), 2: (h, w), 3: (l, h, w)}[rank]


def conv(rank=2, ci=64, co=64, h=1, w=1, l=1, kernel=3, stride=1, pad=1, dilation=1, g=1, bias=False, after="", residual=False):
    """Y[1,co,...] = after(conv(X, F) + v + R); with as many groups as channels, F is [c,kernel...], as depthwise convolutions are written."""
    space = spatial(rank, h, w, l)
    out = tuple((size + 2 * pad - dilation * (kernel - 1) - 1) // stride + 1 for size in space)
    depthwise = g == ci == co
    weights = (co,) + (() if depthwise else (ci // g,)) + (kernel,) * rank
    inputs = [f32("X", 1, ci, *space), f32("F", *weights, const=True)] + [f32("v", co, const=True)] * bias + [f32("R", 1, co, *out)] * residual
    names = AXES[rank]
    os, ks = [f"o{a}" for a in names], [f"k{a}" for a in names]
    scaled = lambda o, k: (f"{o}*{stride}" if stride > 1 else o) + " + " + (f"{k}*{dilation}" if dilation > 1 else k) + (f" - {pad}" if pad else "")
    places = ", ".join(scaled(o, k) for o, k in zip(os, ks))
    channel = "c" if depthwise else f"co/{co // g}*{ci // g} + ci" if g > 1 else "ci"
    c = "c" if depthwise else "co"
    read = f"(X[n, {channel}, {places}] or 0)" if pad else f"X[n, {channel}, {places}]"
    over = ([] if depthwise else [f"ci in 0..{ci // g}"]) + [f"{k} in 0..{kernel}" for k in ks]
    weight = ",".join([c] + ([] if depthwise else ["ci"]) + ks)
    target = ",".join(["n", c] + os)
    body = [f"Y[{target}] = sum[{', '.join(over)}] {read} * F[{weight}];"]
    if bias or after or residual:
        value = PRN_AFTER[after].format(f"(acc[{target}]" + f" + v[{c}]" * bias + f" + R[{target}]" * residual + ")")
        body = ["let acc" + body[0][1:], f"Y[{target}] = {value};"]
    conv_attributes = {"strides": [stride] * rank, "pads": [pad] * (2 * rank), "dilations": [dilation] * rank, "group": g}
    onnx_weights = "F"
    consts = {}
    if depthwise:
        onnx_weights, consts = "F4", {"F4": ("reshape", "F", (co, 1) + (kernel,) * rank)}
    nodes = [("Conv", ["X", onnx_weights] + ["v"] * bias, ["p"], conv_attributes)] + [("Add", ["p", "R"], ["q"], {})] * residual
    more, extra = onnx_after(after, "q" if residual else "p", "Y")
    consts.update(extra)

    def ref(a):
        f = a["F"].reshape(co, ci // g, *[kernel] * rank)
        y = reference.conv(a["X"], f, stride, pad, dilation, g)
        y = y + (a["v"].reshape(1, co, *[1] * rank) if bias else 0) + (a["R"] if residual else 0)
        return [reference.ACTIVATIONS[after](y)]

    def torch(t, F, X, weights, *rest):
        run = {1: F.conv1d, 2: F.conv2d, 3: F.conv3d}[rank]
        y = run(X, weights.reshape(co, ci // g, *[kernel] * rank), rest[0] if bias else None, stride, pad, dilation, g)
        return TORCH_AFTER[after](F, y + rest[-1] if residual else y)

    return Operator("\n".join(body), {}, tuple(inputs), (f32("Y", 1, co, *out),), ref, (tuple(nodes + more),), consts, torch,
                    conv_loops(rank, ci, co, space, out, kernel, stride, pad, dilation, g, bias, after, residual))


def conv_loops(rank, ci, co, space, out, kernel, stride, pad, dilation, g, bias, after, residual):
    """The loops as one would write them: channels, places, kernel; padding is left out by the bounds' check."""
    full = lambda some: (1,) * (3 - rank) + tuple(some)
    (sl, sh, sw), (ol, oh, ow), (kl, kh, kw) = full(space), full(out), full((kernel,) * rank)
    pads = [0] * (3 - rank) + [pad] * rank
    last = C_AFTER[after].format("sum" + " + v[c]" * bias + f" + R[((c*{ol}+z)*{oh}+y)*{ow}+x]" * residual)
    return f"""  PARALLEL
  for (long c = 0; c < {co}; c++)
    for (long z = 0; z < {ol}; z++) for (long y = 0; y < {oh}; y++) for (long x = 0; x < {ow}; x++) {{
      float sum = 0;
      for (long d = 0; d < {ci // g}; d++)
        for (long kz = 0; kz < {kl}; kz++) for (long ky = 0; ky < {kh}; ky++) for (long kx = 0; kx < {kw}; kx++) {{
          long iz = z*{stride} + kz*{dilation} - {pads[0]}, iy = y*{stride} + ky*{dilation} - {pads[1]}, ix = x*{stride} + kx*{dilation} - {pads[2]};
          if (iz < 0 || iz >= {sl} || iy < 0 || iy >= {sh} || ix < 0 || ix >= {sw}) continue;
          sum += X[(((c/{co // g}*{ci // g} + d)*{sl}+iz)*{sh}+iy)*{sw}+ix] * F[(((c*{ci // g}+d)*{kl}+kz)*{kh}+ky)*{kw}+kx];
        }}
      Y[((c*{ol}+z)*{oh}+y)*{ow}+x] = {last};
    }}"""


def depthwise(c, h, w, kernel=3, stride=1, pad=1, bias=False, after=""):
    return conv(2, c, c, h, w, kernel=kernel, stride=stride, pad=pad, g=c, bias=bias, after=after)


def transposed(ci, co, h, w, kernel, stride, pad):
    oh, ow = ((size - 1) * stride - 2 * pad + kernel for size in (h, w))
    return Operator(
        """Y[n,co,oh,ow] = sum[ci,kh,kw | (oh+P-kh) % S == 0 && (ow+P-kw) % S == 0]
           (X[n,ci,(oh+P-kh)/S,(ow+P-kw)/S] or 0) * F[ci,co,kh,kw];""", dict(S=stride, P=pad),
        (f32("X", 1, ci, h, w), f32("F", ci, co, kernel, kernel, const=True)), (f32("Y", 1, co, oh, ow),),
        lambda a: [reference.conv_transpose(a["X"], a["F"], stride, pad)],
        ((("ConvTranspose", ["X", "F"], ["Y"], {"strides": [stride] * 2, "pads": [pad] * 4}),),),
        torch=lambda t, F, X, weights: F.conv_transpose2d(X, weights, None, stride, pad),
        loops=f"""  PARALLEL
  for (long c = 0; c < {co}; c++) for (long y = 0; y < {oh}; y++) for (long x = 0; x < {ow}; x++) {{
    float sum = 0;
    for (long d = 0; d < {ci}; d++) for (long ky = 0; ky < {kernel}; ky++) for (long kx = 0; kx < {kernel}; kx++) {{
      long ty = y + P - ky, tx = x + P - kx;
      if (ty < 0 || tx < 0 || ty % S || tx % S || ty / S >= {h} || tx / S >= {w}) continue;
      sum += X[(d*{h} + ty/S)*{w} + tx/S] * F[((d*{co} + c)*{kernel}+ky)*{kernel}+kx];
    }}
    Y[(c*{oh}+y)*{ow}+x] = sum;
  }}""")


def max_pool(c, h, w, kernel, stride, pad):
    oh, ow = ((size + 2 * pad - kernel) // stride + 1 for size in (h, w))
    return Operator(
        f"Y[n,c,oh,ow] = max[kh in 0..{kernel}, kw in 0..{kernel}] (X[n,c, oh*{stride} + kh - {pad}, ow*{stride} + kw - {pad}] or -inf);", {},
        (f32("X", 1, c, h, w),), (f32("Y", 1, c, oh, ow),), lambda a: [reference.max_pool(a["X"], kernel, stride, pad)],
        ((("MaxPool", ["X"], ["Y"], {"kernel_shape": [kernel] * 2, "strides": [stride] * 2, "pads": [pad] * 4}),),),
        torch=lambda t, F, X: F.max_pool2d(X, kernel, stride, pad),
        loops=f"""  PARALLEL
  for (long c = 0; c < {c}; c++) for (long y = 0; y < {oh}; y++) for (long x = 0; x < {ow}; x++) {{
    float best = -INFINITY;
    for (long ky = 0; ky < {kernel}; ky++) for (long kx = 0; kx < {kernel}; kx++) {{
      long iy = y*{stride} + ky - {pad}, ix = x*{stride} + kx - {pad};
      if (iy < 0 || iy >= {h} || ix < 0 || ix >= {w}) continue;
      float value = X[(c*{h}+iy)*{w}+ix];
      best = value > best ? value : best;
    }}
    Y[(c*{oh}+y)*{ow}+x] = best;
  }}""")


def avg_pool(c, h, w, kernel, stride):
    oh, ow = ((size - kernel) // stride + 1 for size in (h, w))
    return Operator(
        f"""let T[n,c,oh,ow] = sum[kh in 0..{kernel}, kw in 0..{kernel}] X[n,c, oh*{stride} + kh, ow*{stride} + kw];
            Y[n,c,oh,ow] = T[n,c,oh,ow] / {kernel * kernel};""", {},
        (f32("X", 1, c, h, w),), (f32("Y", 1, c, oh, ow),), lambda a: [reference.avg_pool(a["X"], kernel, stride)],
        ((("AveragePool", ["X"], ["Y"], {"kernel_shape": [kernel] * 2, "strides": [stride] * 2}),),),
        torch=lambda t, F, X: F.avg_pool2d(X, kernel, stride),
        loops=f"""  PARALLEL
  for (long c = 0; c < {c}; c++) for (long y = 0; y < {oh}; y++) for (long x = 0; x < {ow}; x++) {{
    float sum = 0;
    for (long ky = 0; ky < {kernel}; ky++) for (long kx = 0; kx < {kernel}; kx++) sum += X[(c*{h} + y*{stride}+ky)*{w} + x*{stride}+kx];
    Y[(c*{oh}+y)*{ow}+x] = sum / {kernel * kernel};
  }}""")


def separable(c, co, h, w):
    """MobileNet's pair: depthwise 3x3 with bias and ReLU6, then 1x1 with bias."""
    nodes = (("Conv", ["X", "D4", "u"], ["d"], {"pads": [1] * 4, "group": c}), ("Clip", ["d", "zero", "six"], ["e"], {}),
             ("Conv", ["e", "F4", "v"], ["Y"], {}))
    consts = {"D4": ("reshape", "D", (c, 1, 3, 3)), "F4": ("reshape", "F", (co, c, 1, 1)), "zero": ("f32", 0), "six": ("f32", 6)}

    def ref(a):
        d = reference.relu6(reference.conv(a["X"], a["D"].reshape(c, 1, 3, 3), 1, 1, 1, c) + a["u"].reshape(1, c, 1, 1))
        return [reference.conv(d, a["F"].reshape(co, c, 1, 1)) + a["v"].reshape(1, co, 1, 1)]

    return Operator(
        f"""let d[n,c,h in 0..{h},w in 0..{w}] = sum[kh,kw] (X[n, c, h + kh - 1, w + kw - 1] or 0) * D[c,kh,kw];
           let e[n,c,h,w] = clamp(d[n,c,h,w] + u[c], 0, 6);
           let p[n,co,h,w] = sum[c] e[n,c,h,w] * F[co,c];
           Y[n,co,h,w] = p[n,co,h,w] + v[co];""", {},
        (f32("X", 1, c, h, w), f32("D", c, 3, 3, const=True), f32("u", c, const=True), f32("F", co, c, const=True), f32("v", co, const=True)),
        (f32("Y", 1, co, h, w),), ref, (nodes,), consts,
        torch=lambda t, F, X, D, u, W, v: F.conv2d(F.relu6(F.conv2d(X, D.reshape(c, 1, 3, 3), u, 1, 1, 1, c)), W.reshape(co, c, 1, 1), v),
        loops=f"""  static float e[{c * h * w}];
  PARALLEL
  for (long c = 0; c < {c}; c++) for (long y = 0; y < {h}; y++) for (long x = 0; x < {w}; x++) {{
    float sum = u[c];
    for (long ky = 0; ky < 3; ky++) for (long kx = 0; kx < 3; kx++) {{
      long iy = y + ky - 1, ix = x + kx - 1;
      if (iy >= 0 && iy < {h} && ix >= 0 && ix < {w}) sum += X[(c*{h}+iy)*{w}+ix] * D[(c*3+ky)*3+kx];
    }}
    e[(c*{h}+y)*{w}+x] = fminf(fmaxf(sum, 0), 6);
  }}
  PARALLEL
  for (long o = 0; o < {co}; o++) {{
    for (long i = 0; i < {h * w}; i++) Y[o*{h * w}+i] = v[o];
    for (long c = 0; c < {c}; c++) for (long i = 0; i < {h * w}; i++) Y[o*{h * w}+i] += F[o*{c}+c] * e[c*{h * w}+i];
  }}""")
