#!/usr/bin/env python3
"""Whole networks beside today's inference engines, in one run.

Each measurement is a process of its own; the rounds visit all contestants in turn. What is told of a round is the median of
its runs, and of a contestant the median of its rounds, with the smallest and the largest. Peers come from `./dev setup
--peers`; all get the same file, the same number of threads and float32. Ours is what `prunerc bench` gives: tuned where
the database has records, else the schedules of -O0, or of -O1 with --o1.

usage: ./dev bench network MODEL.onnx[@NAME=N,...]... [--threads 1,2] [--rounds 5] [--trials N | --time 10m] [--o1] [--db PATH]
           [--peers onnxruntime,openvino] [--json OUT]          after @: named dimensions, "x.0" for one without a name
"""

import argparse
import datetime
import json
import os
import statistics
import subprocess
import sys

SEED = 0
MIN_SECONDS, MIN_RUNS = 1.0, 5

# Run in the peers' virtual environment: MODEL THREADS DIMENSIONS -> a line with the median in ns.
WORKERS = {
    "onnxruntime": """
import sys, onnxruntime as ort
options = ort.SessionOptions()
options.intra_op_num_threads, options.inter_op_num_threads, options.log_severity_level = int(sys.argv[2]), 1, 4
session = ort.InferenceSession(sys.argv[1], options, providers=["CPUExecutionProvider"])
feeds = {i.name: filled(i.name, i.type) for i in session.get_inputs()}
call = lambda: session.run(None, feeds)
""",
    "openvino": """
import sys, openvino as ov
core = ov.Core()
settings = {"INFERENCE_NUM_THREADS": int(sys.argv[2]), "NUM_STREAMS": 1, "PERFORMANCE_HINT": "LATENCY",
            "INFERENCE_PRECISION_HINT": "f32"}
model = core.read_model(sys.argv[1])
# A port has the names of all tensors that are the same.
named = lambda port: next(name for name in port.get_names() if name in sizes)
model.reshape({port.any_name: sizes[named(port)] for port in model.inputs})
request = core.compile_model(model, "CPU", settings).create_infer_request()
for i, port in enumerate(request.model_inputs):
    value = filled(named(model.inputs[i]), port.element_type.to_string())
    request.set_input_tensor(i, ov.Tensor(value, shared_memory=False))
call = lambda: request.infer()
""",
}
PROLOGUE = """
import time
import numpy as np
import json, sys
import onnx
known = json.loads(sys.argv[3])
def size_of(name, i, dim):
    if dim.HasField("dim_value") and dim.dim_value > 0:
        return dim.dim_value
    return known["%s.%d" % (name, i) if dim.dim_param in ("", "?") else dim.dim_param]
inputs = onnx.load(sys.argv[1], load_external_data=False).graph.input
sizes = {p.name: [size_of(p.name, i, d) for i, d in enumerate(p.type.tensor_type.shape.dim)] for p in inputs}
def filled(name, type):
    shape = sizes[name]
    rng = np.random.default_rng(1)
    if "float" in type or type == "f32":
        return rng.uniform(-1, 1, shape).astype(np.float32)
    return rng.integers(0, 2, shape).astype(np.int32 if "32" in type else np.int64)
"""
EPILOGUE = """
for _ in range(3): call()
times = []
begin = time.perf_counter_ns()
while len(times) < %d or time.perf_counter_ns() - begin < %d:
    at = time.perf_counter_ns()
    call()
    times.append(time.perf_counter_ns() - at)
times.sort()
print(times[len(times) // 2])
""" % (MIN_RUNS, int(MIN_SECONDS * 1e9))


def folder_of_binaries():
    # Not resolved: Bazel puts a link to this file beside the binaries.
    return os.path.dirname(os.path.abspath(sys.argv[0]))


def peers_python():
    cache = os.environ.get("XDG_CACHE_HOME", os.path.expanduser("~/.cache"))
    return os.path.join(cache, "prunerc", "peers", "bin", "python")


def cpu_model():
    with open("/proc/cpuinfo", encoding="utf-8") as info:
        for line in info:
            if line.startswith("model name"):
                return "%s, %d threads" % (line.split(":", 1)[1].strip(), os.cpu_count())
    return "unknown"


def dims_of(model):
    """"m.onnx@x.0=1,n=2" -> "m.onnx", {"x.0": 1, "n": 2}."""
    path, _, dims = model.partition("@")
    pairs = [item.split("=") for item in dims.split(",") if item]
    return path, {name: int(value) for name, value in pairs}


def time_peer(name, model, threads):
    path, dims = dims_of(model)
    command = [peers_python(), "-c", PROLOGUE + WORKERS[name] + EPILOGUE, path, str(threads), json.dumps(dims)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        reason = (done.stderr.strip().splitlines() or ["no message"])[-1]
        print("network: %s on %s: %s" % (name, model, reason), file=sys.stderr)
        return None
    return float(done.stdout.split()[-1])


def prunerc(options, *words):
    binary = os.path.join(folder_of_binaries(), "..", "..", "..", "tools", "prunerc", "prunerc")
    path, dims = dims_of(words[1])
    words = [words[0], path, *words[2:]] + [word for name, n in dims.items() for word in ("-D", "%s=%d" % (name, n))]
    command = [binary] + list(words) + (["--db", options.db] if options.db else [])
    return subprocess.run(command, capture_output=True, text=True)


def time_ours(options, model, threads):
    words = ["bench", model, "--threads", str(threads), "--json"] + (["-O1", "--heuristic"] if options.o1 else [])
    done = prunerc(options, *words)
    if done.returncode != 0:
        print("network: prunerc on %s: %s" % (model, done.stderr.strip().splitlines()[-1:]), file=sys.stderr)
        return None
    return json.loads(done.stdout.splitlines()[-1])["rows"][0]


def measure(options, model, threads):
    """ns of each round by who; "tasks": what the tuned tasks take one by one, added up, if all are tuned."""
    times = {}
    for _ in range(options.rounds):
        row = time_ours(options, model, threads)
        if row is not None:
            times.setdefault("prunerc", []).append(row["median_ns"])
            if row["sum_alone_ns"] > 0:
                times.setdefault("tasks", []).append(row["sum_alone_ns"])
        for name in options.peers:
            ns = time_peer(name, model, threads)
            if ns is not None:
                times.setdefault(name, []).append(ns)
    return times


def name_of(model):
    return os.path.basename(dims_of(model)[0]).removesuffix(".onnx")


def result_rows(measured):
    """Of (model, threads, {who: ns of each round}): medians with their ranges, and the better peer over ours by round."""
    rows = []
    for model, threads, times in measured:
        for who, ns in times.items():
            note = "%.4g to %.4g ms, rounds" % (min(ns) * 1e-6, max(ns) * 1e-6)
            rows.append({"name": "%s/t%d/%s" % (name_of(model), threads, who), "value": round(statistics.median(ns) * 1e-6, 5),
                         "unit": "ms", "goal": None, "note": note})
        if "tasks" in times:
            parts = [whole / alone for whole, alone in zip(times["prunerc"], times["tasks"])]
            note = "%.3f to %.3f by round" % (min(parts), max(parts))
            rows.append({"name": "%s/t%d/whole_over_tasks" % (name_of(model), threads), "value": round(statistics.median(parts), 4),
                         "unit": "", "goal": 1.05, "note": note})
        peers = [ns for who, ns in times.items() if who in WORKERS]
        if peers:
            better = min(peers, key=statistics.median)
            ratios = [theirs / ours for theirs, ours in zip(better, times["prunerc"])]
            note = "%.3f to %.3f by round" % (min(ratios), max(ratios))
            rows.append({"name": "%s/t%d/ratio" % (name_of(model), threads), "value": round(statistics.median(ratios), 4),
                         "unit": "", "goal": None, "note": note})
    for threads in sorted({threads for _, threads, _ in measured}):
        ratios = [row["value"] for row in rows if row["name"].endswith("/t%d/ratio" % threads)]
        if ratios:
            rows.append({"name": "geomean/t%d" % threads, "value": round(statistics.geometric_mean(ratios), 4), "unit": "",
                         "goal": 1.10, "note": "%d networks" % len(ratios)})
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+")
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--trials", type=int, default=0)
    parser.add_argument("--time")
    parser.add_argument("--o1", action="store_true")
    parser.add_argument("--db")
    parser.add_argument("--peers", default="onnxruntime,openvino")
    parser.add_argument("--json")
    options = parser.parse_args()
    options.peers = [name for name in options.peers.split(",") if name]
    measured = []
    print("%-24s %7s %10s %17s  %s" % ("model", "threads", "ours, ms", "smallest-largest", "peers, ms (ratio to ours)"))
    for model in options.models:
        for threads in map(int, options.threads.split(",")):
            if options.trials or options.time:
                budget = ["--trials", str(options.trials)] if options.trials else ["--time", options.time]
                done = prunerc(options, "tune", model, "--threads", str(threads), "--seed", str(SEED), *budget)
                if done.returncode != 0:
                    print(done.stderr, file=sys.stderr)
            times = measure(options, model, threads)
            if "prunerc" not in times:
                continue
            ours = statistics.median(times["prunerc"])
            peers = "  ".join(
                "%s %.2f (%.2f)" % (name, statistics.median(t) * 1e-6, statistics.median(t) / ours)
                for name, t in times.items()
                if name in WORKERS
            )
            spread = "%.2f-%.2f" % (min(times["prunerc"]) * 1e-6, max(times["prunerc"]) * 1e-6)
            print("%-24s %7d %10.2f %17s  %s" % (os.path.basename(dims_of(model)[0]), threads, ours * 1e-6, spread, peers), flush=True)
            measured.append((model, threads, times))
    if options.json:
        result = {
            "bench": "network",
            "machine": cpu_model(),
            "date": datetime.date.today().isoformat(),
            "commit": os.environ.get("PRUNERC_COMMIT", ""),
            "seeds": [SEED],
            "rows": result_rows(measured),
        }
        with open(options.json, "w", encoding="utf-8") as out:
            json.dump(result, out, indent=1)


if __name__ == "__main__":
    main()
