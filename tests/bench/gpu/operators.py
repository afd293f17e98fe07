"""Operators that are tuned on a GPU, and what PyTorch calls for the same: shapes, data types and layouts are equal."""

import math
from dataclasses import dataclass
from typing import Callable


@dataclass(frozen=True)
class Operator:
    name: str
    file: str
    op: str
    bindings: str
    work: float  # of one run, in `unit`
    unit: str  # flop, where arithmetic limits; byte, where memory does
    torch: Callable  # of the module torch: a function without arguments that runs it
    compiled: bool = False  # torch.compile makes kernels of its own for it


def _random(torch, *shape, dtype="float32"):
    return torch.randn(shape, device="cuda").to(getattr(torch, dtype))


def _product(m, n, k, dtype, transposed=False):
    def make(torch):
        a = _random(torch, m, k, dtype=dtype)
        b = _random(torch, n, k, dtype=dtype).t() if transposed else _random(torch, k, n, dtype=dtype)
        return lambda: a @ b
    return make


def _bias_gelu(m, n, k):
    def make(torch):
        a, b, bias = (_random(torch, *shape, dtype="float16") for shape in ((m, k), (k, n), (n,)))
        return lambda: torch.nn.functional.gelu(torch.addmm(bias, a, b))
    return make


def _product_i8(m, n, k):
    def make(torch):
        a, b = (torch.randint(-8, 9, shape, device="cuda", dtype=torch.int8) for shape in ((m, k), (k, n)))
        return lambda: torch._int_mm(a, b)
    return make


def _conv_nhwc(n, size, ci, co, kernel):
    def make(torch):
        x = _random(torch, n, ci, size, size, dtype="float16").to(memory_format=torch.channels_last)
        f = _random(torch, co, ci, kernel, kernel, dtype="float16").to(memory_format=torch.channels_last)
        return lambda: torch.nn.functional.conv2d(x, f, padding=kernel // 2)
    return make


def _depthwise(n, c, size):
    def make(torch):
        x, f = _random(torch, n, c, size, size), _random(torch, c, 1, 3, 3)
        return lambda: torch.nn.functional.conv2d(x, f, padding=1, groups=c)
    return make


def _attention(heads, queries, keys, channels, causal=False):
    def make(torch):
        q, k, v = (_random(torch, 1, heads, length, channels, dtype="float16") for length in (queries, keys, keys))
        return lambda: torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal)
    return make


def _of(run, *shapes, dtype="float32"):
    """run(torch, tensors...) on tensors of these shapes."""
    def make(torch):
        tensors = [_random(torch, *shape, dtype=dtype) for shape in shapes]
        return lambda: run(torch, *tensors)
    return make


GEMM, NORM, REDUCE = "tools/std/gemm.prn", "tools/std/norm.prn", "tools/std/reduce.prn"
ELEMENTWISE, CONV = "tools/std/elementwise.prn", "tools/std/conv.prn"
ATTENTION = "tools/examples/gpu/attention.prn"

OPERATORS = [
    Operator("gemm_f16_4096", GEMM, "gemm_f16", "M=4096,N=4096,K=4096", 2 * 4096**3, "flop", _product(4096, 4096, 4096, "float16")),
    Operator("gemm_f16_1024", GEMM, "gemm_f16", "M=1024,N=1024,K=1024", 2 * 1024**3, "flop", _product(1024, 1024, 1024, "float16")),
    Operator("gemm_f16_ragged", GEMM, "gemm_f16", "M=1000,N=1500,K=2000", 2 * 3e9, "flop", _product(1000, 1500, 2000, "float16")),
    Operator("gemm_f16_nt_2048", GEMM, "gemm_f16_nt", "M=2048,N=2048,K=2048", 2 * 2048**3, "flop",
             _product(2048, 2048, 2048, "float16", transposed=True)),
    Operator("gemm_bf16_2048", GEMM, "gemm_bf16", "M=2048,N=2048,K=2048", 2 * 2048**3, "flop", _product(2048, 2048, 2048, "bfloat16")),
    Operator("gemm_f16_bias_gelu", GEMM, "gemm_f16_bias_gelu", "M=4096,N=4096,K=1024", 2 * 2**34, "flop", _bias_gelu(4096, 4096, 1024), True),
    Operator("gemm_f32_1024", GEMM, "gemm_nn", "M=1024,N=1024,K=1024", 2 * 1024**3, "flop", _product(1024, 1024, 1024, "float32")),
    Operator("gemm_f32_2048", GEMM, "gemm_nn", "M=2048,N=2048,K=2048", 2 * 2048**3, "flop", _product(2048, 2048, 2048, "float32")),
    Operator("gemm_i8_2048", "tools/std/quantized.prn", "gemm_i8", "M=2048,N=2048,K=2048", 2 * 2048**3, "flop", _product_i8(2048, 2048, 2048)),
    Operator("matvec_8192", GEMM, "matvec", "M=8192,K=8192", 4 * 8192**2, "byte",
             _of(lambda _, a, x: a @ x, (8192, 8192), (8192,))),
    Operator("conv3x3_f16_56", CONV, "conv2d_f16_nhwc", "N=8,H=56,W=56,CI=64,CO=64", 2 * 8 * 56**2 * 64 * 64 * 9, "flop",
             _conv_nhwc(8, 56, 64, 64, 3)),
    Operator("conv3x3_f16_14", CONV, "conv2d_f16_nhwc", "N=8,H=14,W=14,CI=256,CO=256", 2 * 8 * 14**2 * 256 * 256 * 9, "flop",
             _conv_nhwc(8, 14, 256, 256, 3)),
    Operator("depthwise_112", CONV, "depthwise_conv2d", "N=8,C=64,H=112,W=112", 8 * 8 * 64 * 112**2, "byte", _depthwise(8, 64, 112)),
    Operator("softmax_4096", NORM, "softmax", "M=4096,N=4096", 8 * 4096**2, "byte",
             _of(lambda torch, x: torch.softmax(x, 1), (4096, 4096)), True),
    Operator("layer_norm_8192x1024", NORM, "layer_norm", "M=8192,N=1024", 8 * 8192 * 1024, "byte",
             _of(lambda torch, x, g, b: torch.nn.functional.layer_norm(x, (1024,), g, b), (8192, 1024), (1024,), (1024,)), True),
    Operator("rms_norm_f16_8192x4096", NORM, "rms_norm_f16", "M=8192,N=4096", 4 * 8192 * 4096, "byte",
             _of(lambda torch, x, g: torch.nn.functional.rms_norm(x, (4096,), g, 1e-6), (8192, 4096), (4096,), dtype="float16"), True),
    Operator("row_sum_8192", REDUCE, "row_sum", "M=8192,N=8192", 4 * 8192**2, "byte", _of(lambda _, x: x.sum(1), (8192, 8192)), True),
    Operator("col_sum_8192", REDUCE, "col_sum", "M=8192,N=8192", 4 * 8192**2, "byte", _of(lambda _, x: x.sum(0), (8192, 8192)), True),
    Operator("row_argmax_8192", REDUCE, "row_argmax", "M=8192,N=8192", 4 * 8192**2, "byte", _of(lambda _, x: x.argmax(1), (8192, 8192)), True),
    Operator("silu_mul_8192x4096", ELEMENTWISE, "silu_mul", "M=8192,N=4096", 12 * 8192 * 4096, "byte",
             _of(lambda torch, g, u: torch.nn.functional.silu(g) * u, (8192, 4096), (8192, 4096)), True),
    Operator("transpose_4096", ELEMENTWISE, "transpose2d", "M=4096,N=4096", 8 * 4096**2, "byte",
             _of(lambda _, x: x.t().contiguous(), (4096, 4096)), True),
    Operator("max_pool_112", "tools/std/pool.prn", "max_pool2d", "N=8,C=64,H=112,W=112", 5 * 8 * 64 * 112**2, "byte",
             _of(lambda torch, x: torch.nn.functional.max_pool2d(x, 3, 2, 1), (8, 64, 112, 112)), True),
    Operator("attention_f16_1024", ATTENTION, "attention", "H=32,T=1024,S=1024,E=64", 4 * 32 * 1024**2 * 64, "flop",
             _attention(32, 1024, 1024, 64)),
    Operator("causal_f16_1024", ATTENTION, "causal_attention", "H=32,T=1024,E=64", 2 * 32 * 1024**2 * 64, "flop",
             _attention(32, 1024, 1024, 64, causal=True)),
    Operator("split_attention_f16_4096", ATTENTION, "split_attention", "H=16,T=4096,S=4096,E=64", 4 * 16 * 4096**2 * 64, "flop",
             _attention(16, 4096, 4096, 64)),
    Operator("split_attention_f16_4096x128", ATTENTION, "split_attention", "H=16,T=4096,S=4096,E=128", 4 * 16 * 4096**2 * 128, "flop",
             _attention(16, 4096, 4096, 128)),
    Operator("tiled_attention_f16_1024", ATTENTION, "split_attention", "H=32,T=1024,S=1024,E=64,B=64", 4 * 32 * 1024**2 * 64, "flop",
             _attention(32, 1024, 1024, 64)),
    Operator("tiled_attention_f16_4096", ATTENTION, "split_attention", "H=16,T=4096,S=4096,E=64,B=64", 4 * 16 * 4096**2 * 64, "flop",
             _attention(16, 4096, 4096, 64)),
    Operator("tiled_attention_f16_4096x128", ATTENTION, "split_attention", "H=16,T=4096,S=4096,E=128,B=64", 4 * 16 * 4096**2 * 128, "flop",
             _attention(16, 4096, 4096, 128)),
    Operator("gemm_f16_16x4096", GEMM, "gemm_f16", "M=16,N=4096,K=4096", 2 * 4096**2, "byte", _product(16, 4096, 4096, "float16")),
    Operator("gemm_f16_8192", GEMM, "gemm_f16", "M=8192,N=8192,K=8192", 2 * 8192**3, "flop", _product(8192, 8192, 8192, "float16")),
]


def rate(operator, ns):
    """"712.3 TFLOP/s" or "2104 GB/s"."""
    per_ns = operator.work / ns
    return f"{per_ns / 1e3:.1f} TFLOP/s" if operator.unit == "flop" else f"{per_ns:.0f} GB/s"


assert all(math.isfinite(operator.work) for operator in OPERATORS)

if __name__ == "__main__":  # what `candidates draft` is given
    for each in OPERATORS:
        print(f"--op {each.name}={each.file},{each.op},{each.bindings}")
