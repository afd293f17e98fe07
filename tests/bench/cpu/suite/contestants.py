"""Who runs an operator: a function `prepare` for each, which returns a Contestant or raises Refused with the reason.

A Contestant has `time(calls)`, nanoseconds of so many calls by its own clock, and `outputs()`, of the last call."""

import ctypes
import ctypes.util
import importlib.util
import os
import re
import shutil
import subprocess
import time

import numpy as np

from values import STORED

# A call through a pointer with as many arguments as a compiled operator has, and the clock around the calls.
TIMER = """
#include <time.h>
typedef int (*call_1)(void*); typedef int (*call_2)(void*, void*); typedef int (*call_3)(void*, void*, void*);
typedef int (*call_4)(void*, void*, void*, void*); typedef int (*call_5)(void*, void*, void*, void*, void*);
typedef int (*call_6)(void*, void*, void*, void*, void*, void*); typedef int (*call_7)(void*, void*, void*, void*, void*, void*, void*);
static int call(void* f, void** p, int n) {
  switch (n) {
    case 0: ((void (*)(void**))f)(p); return 0;
    case 2: return ((call_2)f)(p[0], p[1]);
    case 3: return ((call_3)f)(p[0], p[1], p[2]);
    case 4: return ((call_4)f)(p[0], p[1], p[2], p[3]);
    case 5: return ((call_5)f)(p[0], p[1], p[2], p[3], p[4]);
    case 6: return ((call_6)f)(p[0], p[1], p[2], p[3], p[4], p[5]);
    case 7: return ((call_7)f)(p[0], p[1], p[2], p[3], p[4], p[5], p[6]);
  }
  return -1;
}
long timed(void* f, void** p, int n, long calls) {
  struct timespec from, to;
  clock_gettime(CLOCK_MONOTONIC, &from);
  for (long i = 0; i < calls; i++) if (call(f, p, n)) return -1;
  clock_gettime(CLOCK_MONOTONIC, &to);
  return (to.tv_sec - from.tv_sec) * 1000000000L + to.tv_nsec - from.tv_nsec;
}
"""


# Sums may be reordered, as ours are; NaN and infinities stay what they are.
REORDER = ("-fassociative-math", "-fno-signed-zeros", "-fno-trapping-math", "-fno-math-errno")


class Refused(Exception):
    """Why someone does not run this operator, in a few words."""


def compile_c(text, path, *flags):
    source = path.removesuffix(".so") + ".c"
    with open(source, "w", encoding="utf-8") as file:
        file.write(text)
    done = subprocess.run(["gcc", "-O3", "-march=native", "-shared", "-fPIC", *flags, source, "-o", path, "-lm"], capture_output=True, text=True)
    if done.returncode != 0:
        raise Refused("gcc: " + (done.stderr.strip().splitlines() or ["no message"])[0])


def aligned(value):
    """A copy that begins at a cache line."""
    room = np.empty(value.nbytes + 64, np.uint8)
    start = -room.ctypes.data % 64
    out = room[start:start + value.nbytes].view(value.dtype).reshape(value.shape)
    out[...] = value
    return out


class Machine:
    """Machine code that takes pointers: `run(void**)` of C."""

    def __init__(self, task, library, symbol):
        timer = os.path.join(task.folder, f"timer_{os.getpid()}.so")
        if not os.path.exists(timer):
            compile_c(TIMER, timer)
        self.timed = ctypes.CDLL(timer).timed
        self.timed.restype = ctypes.c_long
        self.library = ctypes.CDLL(library)
        self.function = ctypes.cast(getattr(self.library, symbol), ctypes.c_void_p)
        self.arrays = [aligned(task.arrays[p.name]) for p in task.operator.inputs]
        self.results = [aligned(np.zeros(p.shape, STORED[p.dtype])) for p in task.operator.outputs]
        every = self.arrays + self.results
        self.pointers = (ctypes.c_void_p * len(every))(*(a.ctypes.data for a in every))
        self.num = 0  # of arguments; 0: an array of them

    def time(self, calls):
        ns = self.timed(self.function, self.pointers, self.num, ctypes.c_long(calls))
        if ns < 0:
            raise Refused("the call fails")
        return ns

    def outputs(self):
        return self.results


class Kernel(Machine):
    """A function of prunerc, with an argument for each port. Weights are prepared once, as peers do in their sessions."""

    def __init__(self, task):
        symbol = "op_" + task.name
        super().__init__(task, task.library, symbol)
        inputs = list(zip(self.arrays, task.operator.inputs))
        every = [a for a, p in inputs if not p.const] + self.results
        weights = [a for a, p in inputs if p.const]
        if weights:
            with open(task.library[:-len("so")] + "h", encoding="utf-8") as header:
                size = int(re.search(r"_PREPARED_BYTES (\d+)", header.read())[1])
            every.append(aligned(np.zeros(size, np.uint8)))
            prepare = getattr(self.library, symbol + "_prepare")
            if prepare(*(ctypes.c_void_p(a.ctypes.data) for a in (*weights, every[-1]))) != 0:
                raise Refused("the weights are not prepared")
        self.kept = every
        self.pointers = (ctypes.c_void_p * len(every))(*(a.ctypes.data for a in every))
        self.num = len(every)


def prepare_prunerc(task):
    return Kernel(task)


def prepare_gcc(task):
    if not task.operator.loops:
        raise Refused("no loops in the table")
    path = os.path.join(task.folder, f"loops_{task.threads}.so")
    compile_c(task.operator.c(task.threads), path, *REORDER, *(["-fopenmp"] if task.threads > 1 else []))
    return Machine(task, path, "run")


class Called:
    """A Python function; the clock stands around its calls, in its process."""

    def __init__(self, function, outputs):
        self.function, self.outputs = function, outputs

    def time(self, calls):
        function = self.function
        start = time.perf_counter_ns()
        for _ in range(calls):
            function()
        return time.perf_counter_ns() - start


def fastest(made):
    """Of several forms of an operator, what is fastest in a short race; reasons of those that fail."""
    ready, reasons = [], []
    for make in made:
        try:
            one = make()
            one.time(2)
            ready.append((min(one.time(3) for _ in range(3)), len(ready), one))
        except Exception as problem:  # whatever a library throws at a graph that it does not take
            reasons.append(str(problem).strip().splitlines()[0][:100] if str(problem).strip() else type(problem).__name__)
    if not ready:
        raise Refused(reasons[0])
    return min(ready)[2]


def as_ml_dtypes(task):
    import graph
    return {p.name: task.arrays[p.name].view(graph.NUMPY[p.dtype]) for p in task.operator.inputs}


def prepare_onnxruntime(task):
    import graph
    import onnxruntime as ort
    arrays = as_ml_dtypes(task)

    def make(nodes):
        options = ort.SessionOptions()
        options.intra_op_num_threads, options.inter_op_num_threads = task.threads, 1
        options.log_severity_level = 4
        session = ort.InferenceSession(graph.model(task.operator, nodes, arrays), options, providers=["CPUExecutionProvider"])
        binding = session.io_binding()
        kept = []
        for port in task.operator.inputs:
            if not port.const:
                value = aligned(arrays[port.name])
                kept.append(value)
                binding.bind_input(port.name, "cpu", 0, graph.ONNX[port.dtype], port.shape, value.ctypes.data)
        results = [aligned(np.zeros(p.shape, STORED[p.dtype])) for p in task.operator.outputs]
        for port, result in zip(task.operator.outputs, results):
            binding.bind_output(port.name, "cpu", 0, graph.ONNX[port.dtype], port.shape, result.ctypes.data)
        one = Called(lambda: session.run_with_iobinding(binding), lambda: results)
        one.kept = kept
        return one

    return fastest([lambda nodes=nodes: make(nodes) for nodes in task.operator.graphs])


def prepare_openvino(task):
    import graph
    import openvino as ov
    arrays = as_ml_dtypes(task)
    # On a CPU with bf16 instructions the default would round f32 operators to bf16.
    bf16 = any(p.dtype == "bf16" for p in task.operator.inputs)
    settings = {"INFERENCE_NUM_THREADS": task.threads, "NUM_STREAMS": 1, "PERFORMANCE_HINT": "LATENCY",
                "INFERENCE_PRECISION_HINT": "bf16" if bf16 else "f32"}
    core = ov.Core()

    def make(nodes):
        request = core.compile_model(core.read_model(graph.model(task.operator, nodes, arrays)), "CPU", settings).create_infer_request()
        kept = []
        for i, port in enumerate(p for p in task.operator.inputs if not p.const):
            if port.dtype == "bf16":
                tensor = ov.Tensor(ov.Type.bf16, ov.Shape(list(port.shape)))
                tensor.data.view(np.uint16)[...] = task.arrays[port.name]
            else:
                value = aligned(arrays[port.name])
                kept.append(value)
                tensor = ov.Tensor(value, shared_memory=True)
            request.set_input_tensor(i, tensor)
            kept.append(tensor)

        def outputs():
            found = [request.get_output_tensor(i).data for i in range(len(task.operator.outputs))]
            return [np.ascontiguousarray(x).view(STORED[p.dtype]) for x, p in zip(found, task.operator.outputs)]

        # Without copies, and in this thread: start_async and wait cost more.
        one = Called(lambda: request.infer(share_inputs=True, share_outputs=True), outputs)
        one.kept = kept
        return one

    return fastest([lambda nodes=nodes: make(nodes) for nodes in task.operator.graphs])


def prepare_torch(task):
    import torch
    import torch.nn.functional as functional
    if task.operator.torch is None:
        raise Refused("no function in the table")
    torch.set_num_threads(task.threads)
    stored = [aligned(task.arrays[p.name]) for p in task.operator.inputs]
    tensors = [torch.from_numpy(x.view(np.int16)).view(torch.bfloat16) if p.dtype == "bf16" else torch.from_numpy(x)
               for p, x in zip(task.operator.inputs, stored)]
    last = []

    def call():
        last[:] = [task.operator.torch(torch, functional, *tensors)]

    with torch.inference_mode():
        call()

    def guarded():
        with torch.inference_mode():
            call()

    def outputs():
        value = last[0].contiguous()
        bits = value.view(torch.int16) if value.dtype == torch.bfloat16 else value
        return [bits.numpy().view(STORED[task.operator.outputs[0].dtype])]

    return Called(guarded, outputs)


def prepare_openblas(task):
    """`cblas_sgemm`, for what is one product of f32 matrices and nothing else."""
    kinds = [node[0] for node in task.operator.graphs[0]]
    a, b = (task.operator.inputs + (None, None))[:2]
    plain = kinds in (["MatMul", "Identity"], ["Transpose", "MatMul", "Identity"]) and b is not None and len(a.shape) == 2 and a.dtype == "f32"
    if not plain:
        raise Refused("not one product of f32 matrices")
    blas = ctypes.CDLL("libopenblas.so.0")
    blas.openblas_set_num_threads(task.threads)
    (m, k), n = a.shape, task.operator.outputs[0].shape[1]
    turned = kinds[0] == "Transpose"
    left, right = aligned(task.arrays["A"]), aligned(task.arrays["B"])
    result = aligned(np.zeros((m, n), np.float32))
    row_major, plain_order, other_order = 101, 111, 112  # of cblas.h
    pointer = lambda x: ctypes.c_void_p(x.ctypes.data)
    arguments = (row_major, plain_order, other_order if turned else plain_order, m, n, k, ctypes.c_float(1), pointer(left), k,
                 pointer(right), k if turned else n, ctypes.c_float(0), pointer(result), n)
    one = Called(lambda: blas.cblas_sgemm(*arguments), lambda: [result])
    one.kept = (left, right)
    return one


# In the order of a turn.
PEERS = {"onnxruntime": prepare_onnxruntime, "openvino": prepare_openvino, "torch": prepare_torch, "openblas": prepare_openblas, "gcc": prepare_gcc}
EVERYONE = {"prunerc": prepare_prunerc, "prunerc-O1": prepare_prunerc, **PEERS}
MODULES = {"onnxruntime": ["onnxruntime", "onnx"], "openvino": ["openvino", "onnx"], "torch": ["torch"]}
# Rivals that one would look for in the table.
NEVER = {
    "onednn": "PyPI's wheel is a SYCL build: its CPU engine works through an OpenCL driver; OpenVINO has its own copy, --suite base Debian's",
    "xnnpack": "no driver for it in this suite",
    "zentorch": "no driver for it in this suite; it extends torch",
}


def absent():
    """{peer: why it runs no operator at all}"""
    out = dict(NEVER)
    for who, modules in MODULES.items():
        lacking = [name for name in modules if importlib.util.find_spec(name) is None]
        if lacking:
            out[who] = f"not installed: {', '.join(lacking)}"
    if ctypes.util.find_library("openblas") is None:
        out["openblas"] = "not installed: libopenblas"
    if shutil.which("gcc") is None:
        out["gcc"] = "not installed: gcc"
    return out
