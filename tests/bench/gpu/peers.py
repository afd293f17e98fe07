"""What others reach on this GPU, in a process of its own: cuBLAS and a copy by PyTorch, cold L2, median of 50."""

import json
import statistics
import sys

try:
    import torch
except ImportError:
    sys.exit("PyTorch is not installed: no peers")
if not torch.cuda.is_available():
    sys.exit("PyTorch sees no GPU: no peers")

flush = torch.empty(256 << 20, dtype=torch.int8, device="cuda")


def median_ns(run):
    for _ in range(3):
        run()
    times = []
    for _ in range(50):
        flush.zero_()
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        run()
        end.record()
        torch.cuda.synchronize()
        times.append(start.elapsed_time(end) * 1e6)
    return statistics.median(times)


def product(dtype, n):
    a, b = torch.randn(n, n, device="cuda").to(dtype), torch.randn(n, n, device="cuda").to(dtype)
    ns = median_ns(lambda: a @ b)
    return {"median_us": round(ns / 1e3, 2), "tflops": round(2 * n**3 / ns / 1e3, 2), "timer": "events"}


def copy(n):
    x = torch.randn(n, device="cuda")
    y = torch.empty_like(x)
    ns = median_ns(lambda: y.copy_(x))
    return {"median_us": round(ns / 1e3, 2), "gb_per_s": round(8 * n / ns, 1), "timer": "events"}


def rows(run, shape):
    x = torch.randn(shape, device="cuda")
    ns = median_ns(lambda: run(x))
    return {"median_us": round(ns / 1e3, 2), "gb_per_s": round(8 * x.numel() / ns, 1), "timer": "events"}


def attention(h, t, e):
    q, k, v = (torch.randn(1, h, t, e, device="cuda", dtype=torch.float16) for _ in range(3))
    ns = median_ns(lambda: torch.nn.functional.scaled_dot_product_attention(q, k, v))
    return {"median_us": round(ns / 1e3, 2), "tflops": round(4 * h * t * t * e / ns / 1e3, 2), "timer": "events"}


torch.backends.cuda.matmul.allow_tf32 = False
print(json.dumps([
    {"name": "cublas_f16_4096", **product(torch.float16, 4096)},
    {"name": "cublas_f32_1024", **product(torch.float32, 1024)},
    {"name": "torch_attention_f16_32x1024x64", **attention(32, 1024, 64)},
    {"name": "copy_1GB", **copy(1 << 28)},
    {"name": "torch_softmax_4096x4096", **rows(lambda x: torch.softmax(x, 1), (4096, 4096))},
    {"name": "torch_layer_norm_8192x1024", **rows(lambda x: torch.nn.functional.layer_norm(x, (1024,)), (8192, 1024))},
]))
