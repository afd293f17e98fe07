"""What PyTorch reaches on this GPU, in a process of its own: its own kernels (cuBLAS, cuDNN, FlashAttention) and, where those are
kernels of a compiler, torch.compile's. The clock is ours (CUPTI: the sum of a run's kernels) and the second level of the cache is
overwritten before each run, as it is for us. Prints one JSON object: {operator: {"torch": ns, "compile": ns or null}}.

    peers.py [NAME...]
"""

import json
import statistics
import sys

import operators

try:
    import torch
except ImportError:
    sys.exit("PyTorch is not installed: no peers")
if not torch.cuda.is_available():
    sys.exit("PyTorch sees no GPU: no peers")

RUNS, WARM_UP = 50, 5
flush = torch.empty(256 << 20, dtype=torch.int8, device="cuda")


def is_kernel(event):
    """Of a device, and no span that the host names: those of torch.compile lie around kernels."""
    return (event.device_type == torch.autograd.DeviceType.CUDA and not getattr(event, "is_user_annotation", False)
            and not event.name.startswith(("##", "Torch-Compiled", "ProfilerStep")))


def is_flush(event):
    return ("Memset" in event.name or "FillFunctor" in event.name) and event.time_range.elapsed_us() > 40


def kernel_ns(run):
    """Of each run, the time of its kernels together."""
    for _ in range(WARM_UP):
        run()
    torch.cuda.synchronize()
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.CUDA]) as profiler:
        for _ in range(RUNS):
            torch.cuda.synchronize()
            flush.zero_()
            run()
        torch.cuda.synchronize()
    on_device = [event for event in profiler.events() if is_kernel(event)]
    on_device.sort(key=lambda event: event.time_range.start)
    runs = []
    for event in on_device:
        if is_flush(event):
            runs.append(0)
        elif runs:
            runs[-1] += 1e3 * event.time_range.elapsed_us()
    runs = [ns for ns in runs if ns > 0]
    if len(runs) < RUNS - 5:
        raise RuntimeError(f"{len(runs)} of {RUNS} runs were seen among {[event.name for event in on_device[:6]]}")
    return statistics.median(runs)


def times_of(operator):
    """{"torch": ns, "compile": ns or None}; one that fails is a gap in the table, and says why."""
    times = {"torch": None, "compile": None}
    try:
        run = operator.torch(torch)
        times["torch"] = kernel_ns(run)
        if operator.compiled:
            times["compile"] = kernel_ns(torch.compile(run))
    except Exception as problem:  # pylint: disable=broad-except
        print(f"{operator.name}: {type(problem).__name__}: {str(problem)[:300]}", file=sys.stderr)
    torch.cuda.empty_cache()
    return times


torch.backends.cuda.matmul.allow_tf32 = False
torch.backends.cudnn.benchmark = True
torch.manual_seed(0)
if __name__ == "__main__":
    print(json.dumps({operator.name: times_of(operator) for operator in operators.OPERATORS
                      if len(sys.argv) == 1 or operator.name in sys.argv[1:]}))
