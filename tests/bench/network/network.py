#!/usr/bin/env python3
"""Whole networks beside today's inference engines, in one run.

Each measurement is a process of its own; the rounds visit all contestants in turn. What is told of a round is the median of
its runs, and of a contestant the median of its rounds, with the smallest and the largest. Peers come from `./dev setup
--peers`; all get the same file, the same number of threads and float32, and nobody's outputs are copied. Ours is what
`prunerc bench` gives: tuned where the database has records, else the schedules of -O0, or of -O1 with --o1. What ONNX
Runtime computes is recorded first, and `prunerc verify` compares ours with it: who is wrong has no time, and a row says where a
model was too sensitive to roundings to be told right. A turn in which other work had the CPUs is repeated. An OUT that is there is gone on with: networks that are named again replace theirs.

usage: ./dev bench network MODEL.onnx[@NAME=N,...]... [--threads 1,2] [--rounds 5] [--trials N | --time 10m] [--o1] [--db PATH]
           [--peers onnxruntime,openvino] [--json OUT]          after @: named dimensions, "x.0" for one without a name
"""

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "cpu", "suite"))
sys.path.append(os.path.join(os.path.dirname(os.path.realpath(__file__)), ".."))
import facts
import noise

SEED = 0
MIN_SECONDS, MIN_RUNS = 1.0, 5

SESSION = """
import sys, onnxruntime as ort
options = ort.SessionOptions()
options.intra_op_num_threads, options.inter_op_num_threads, options.log_severity_level = int(sys.argv[2]), 1, 4
session = ort.InferenceSession(sys.argv[1], options, providers=["CPUExecutionProvider"])
feeds = {i.name: filled(i.name, i.type) for i in session.get_inputs()}
found = session.run(None, feeds)
"""
# Run in the peers' virtual environment: MODEL THREADS DIMENSIONS -> a line with the median in ns.
WORKERS = {
    "onnxruntime": SESSION + """
binding = session.io_binding()
for name, value in feeds.items():
    binding.bind_cpu_input(name, value)
for port, value in zip(session.get_outputs(), found):
    # A model may declare another rank than it computes; then there is no place to give.
    place = (0, value.dtype, value.shape, value.ctypes.data) if len(port.shape) == value.ndim else ()
    binding.bind_output(port.name, "cpu", *place)
call = lambda: session.run_with_iobinding(binding)
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
call = lambda: request.infer(share_inputs=True, share_outputs=True)
""",
}
# MODEL THREADS DIMENSIONS FOLDER: writes inputs and outputs there, as ONNX's own tests have them.
RECORDER = SESSION + """
import os
for kind, values in (("input", [feeds[p.name] for p in inputs if p.name in feeds]), ("output", found)):
    for i, value in enumerate(values):
        with open(os.path.join(sys.argv[4], "%s_%d.pb" % (kind, i)), "wb") as out:
            out.write(onnx.numpy_helper.from_array(value).SerializeToString())
"""
PROLOGUE = """
import time
import numpy as np
import json, sys
import onnx, onnx.numpy_helper
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


def prunerc_binary():
    return os.path.join(folder_of_binaries(), "..", "..", "..", "tools", "prunerc", "prunerc")


def dims_of(model):
    """"m.onnx@x.0=1,n=2" -> "m.onnx", {"x.0": 1, "n": 2}."""
    path, _, dims = model.partition("@")
    pairs = [item.split("=") for item in dims.split(",") if item]
    return path, {name: int(value) for name, value in pairs}


def run_engine(script, model, threads, *more):
    """(its last word, "") or (None, why not)"""
    path, dims = dims_of(model)
    try:
        done = subprocess.run([peers_python(), "-c", PROLOGUE + script, path, str(threads), json.dumps(dims), *more], capture_output=True, text=True)
    except OSError as problem:
        return None, "%s: %s" % (peers_python(), problem.strerror)
    if done.returncode != 0:
        return None, (done.stderr.strip().splitlines() or ["no message"])[-1]
    return (done.stdout.split() or [""])[-1], ""


def time_peer(name, model, threads):
    word, reason = run_engine(WORKERS[name] + EPILOGUE, model, threads)
    if reason:
        print("network: %s on %s: %s" % (name, model, reason), file=sys.stderr)
    return float(word) if word else None


def prunerc(options, verb, model, *words):
    path, dims = dims_of(model)
    command = [prunerc_binary(), verb, path, *words] + [word for name, n in dims.items() for word in ("-D", "%s=%d" % (name, n))]
    return subprocess.run(command + (["--db", options.db] if options.db and "--db" not in words else []), capture_output=True, text=True)


def sensitivity_words(answer):
    return ", ".join("%s: %s of its largest" % (one["tensor"], "unknown" if one["of_largest"] is None else "%.2g%%" % (100 * one["of_largest"]))
                     for one in answer["sensitivity"])


def checked(options, model, threads):
    """(words on what ours was compared with, "") or ("", what is wrong)"""
    path, dims = dims_of(model)
    with tempfile.TemporaryDirectory(prefix="prunerc-network") as folder:
        copy, recorded = os.path.join(folder, "model.onnx"), os.path.join(folder, "test_data_set_0")
        os.symlink(os.path.abspath(path), copy)
        os.mkdir(recorded)
        _, reason = run_engine(RECORDER, model, threads, recorded)
        if reason:
            return "outputs not compared: ONNX Runtime: " + reason[:80], ""
        named = copy + ("@" + ",".join("%s=%d" % item for item in dims.items()) if dims else "")
        done = prunerc(options, "verify", named, "--threads", str(threads), "--seeds", "1", "--json", *(["-O1", "--db", ":memory:"] if options.o1 else []))
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    if not lines:
        return "outputs not compared: " + (done.stderr.strip().splitlines() or ["no message"])[-1][:80], ""
    answer = json.loads(lines[-1])
    if answer["verdict"] == "not verifiable":
        words = "outputs not verifiable, since roundings change them (%s)" % sensitivity_words(answer)
        return words + ("" if answer["recorded"] else ", and not compared with ONNX Runtime's"), ""
    if answer["verdict"] not in ("right", "within sensitivity"):
        return "", "wrong values: %s" % answer["difference"].replace("recorded in " + recorded, "by ONNX Runtime")
    words = "outputs as ONNX Runtime's" if answer["recorded"] else "outputs not compared with ONNX Runtime's"
    if answer["verdict"] == "right":
        return words, ""
    return words + " within what roundings change (%s)" % sensitivity_words(answer), ""


def reason_of(stderr):
    """The error, without what stands before it and the hints behind it."""
    text = stderr.strip() or "no message"
    found = text.rpartition("error: ")[2].split("\nhint:")[0]
    return " ".join(found.split())[:200]


def time_ours(options, model, threads):
    """(the row of `prunerc bench`, "") or (None, why not)"""
    done = prunerc(options, "bench", model, "--threads", str(threads), "--json", *(["-O1", "--heuristic"] if options.o1 else []))
    if done.returncode != 0:
        return None, reason_of(done.stderr)
    return json.loads(done.stdout.splitlines()[-1])["rows"][0], ""


def others_seconds():
    """CPU seconds of all processes but those that this one has waited for."""
    mine = resource.getrusage(resource.RUSAGE_CHILDREN)
    return noise.cpu_seconds() - mine.ru_utime - mine.ru_stime


def quiet(turn, ns_of):
    """(what `turn` answers, whether others had the CPUs): of several tries the first that is quiet, else the fastest."""
    best = None
    for _ in range(1 + noise.RETRIES):
        start, before = time.monotonic(), others_seconds()
        answer = turn()
        if ns_of(answer) is None or not noise.is_loud(others_seconds() - before, time.monotonic() - start):
            return answer, False
        best = answer if best is None or ns_of(answer) < ns_of(best) else best
    return best, True


def measure(options, model, threads):
    """({who: ns of each round}, words on our outputs, why ours has no time, who was timed while others had the CPUs); "tasks": what the
    tuned tasks take one by one, added up, if all are tuned. Who fails in one round has no time: rounds are compared one by one."""
    words, refused = checked(options, model, threads)
    times, lost, noisy = {}, set(), set()
    for _ in range(options.rounds):
        if not refused:
            (row, refused), loud = quiet(lambda: time_ours(options, model, threads), lambda answer: answer[0] and answer[0]["median_ns"])
            noisy.update({"prunerc", "tasks"} if loud else ())
            if row is not None:
                times.setdefault("prunerc", []).append(row["median_ns"])
                if row["sum_alone_ns"] > 0:
                    times.setdefault("tasks", []).append(row["sum_alone_ns"])
        for name in [name for name in options.peers if name not in lost]:
            ns, loud = quiet(lambda: time_peer(name, model, threads), lambda ns: ns)
            if ns is None:
                lost.add(name)
            noisy.update({name} if loud else ())
            times.setdefault(name, []).append(ns)
    for who in lost | ({"prunerc", "tasks"} if refused else set()):
        times.pop(who, None)
    if len(times.get("tasks", [])) < options.rounds:
        times.pop("tasks", None)
    return times, words, refused, noisy


def name_of(model):
    return os.path.basename(dims_of(model)[0]).removesuffix(".onnx")


def row(name, value, unit, note, goal=None, noisy=False):
    return {"name": name, "value": value, "unit": unit, "goal": goal, "note": note, "noisy": noisy}


def by_round(name, theirs, ours, goal=None, noisy=False):
    ratios = [a / b for a, b in zip(theirs, ours)]
    return row(name, round(statistics.median(ratios), 4), "", "%.3f to %.3f by round" % (min(ratios), max(ratios)), goal, noisy)


def prefix_of(model, threads):
    return "%s/t%d" % (name_of(model), threads)


def result_rows(measured, before=()):
    """Of (model, threads, {who: ns of each round}, words on our outputs, why ours has no time, who was timed while others had the CPUs), behind
    the rows of other networks that were there before: medians with their ranges, and the better peer over ours by round."""
    again = {"geomean"} | {prefix_of(*one[:2]) for one in measured}
    rows = [one for one in before if one["name"].rpartition("/")[0] not in again]
    for model, threads, times, words, refused, noisy in measured:
        prefix = prefix_of(model, threads)
        if refused:
            rows.append(row(prefix + "/prunerc", None, "ms", refused))
        for who, ns in times.items():
            note = "%.4g to %.4g ms, rounds" % (min(ns) * 1e-6, max(ns) * 1e-6) + ("; " + words if who == "prunerc" and words else "")
            rows.append(row("%s/%s" % (prefix, who), round(statistics.median(ns) * 1e-6, 5), "ms", note, noisy=who in noisy))
        peers = {who: ns for who, ns in times.items() if who in WORKERS}
        if "tasks" in times:
            rows.append(by_round(prefix + "/whole_over_tasks", times["prunerc"], times["tasks"], 1.05, "prunerc" in noisy))
        if peers and "prunerc" in times:
            best = min(peers, key=lambda who: statistics.median(peers[who]))
            rows.append(by_round(prefix + "/ratio", peers[best], times["prunerc"], noisy=bool({best, "prunerc"} & noisy)))
    return rows + means(rows)


def means(rows):
    """Geometric means of the ratios, for each number of threads."""
    out = []
    for threads in sorted({int(one["name"].split("/")[1][1:]) for one in rows}):
        ratios = [one["value"] for one in rows if one["name"].endswith("/t%d/ratio" % threads)]
        networks = {one["name"].rpartition("/")[0] for one in rows if "/t%d/" % threads in one["name"]}
        if ratios:
            out.append(row("geomean/t%d" % threads, round(statistics.geometric_mean(ratios), 4), "",
                           "%d of %d networks; median %.2f; behind on %d" %
                           (len(ratios), len(networks), statistics.median(ratios), sum(ratio < 1 for ratio in ratios)), 1.10))
    return out


def facts_now():
    return facts.of("network", prunerc_binary(), seeds=[SEED])


def versions(peers):
    """A row for each engine, by what its Python package says; none where they are not installed."""
    if not os.path.exists(peers_python()):
        return []
    script = "import importlib.metadata, sys; print(*map(importlib.metadata.version, sys.argv[1:]))"
    done = subprocess.run([peers_python(), "-c", script, *peers], capture_output=True, text=True)
    return [row("version/" + who, None, "", version) for who, version in zip(peers, done.stdout.split())]


def rows_before(path):
    """Those that OUT holds, if it is one of this code on this machine; else the program ends."""
    if not path or not os.path.exists(path):
        return []
    with open(path, encoding="utf-8") as file:
        stored = json.load(file)
    for key, value in facts_now().items():
        if key != "date" and stored.get(key) != value:
            sys.exit("network: %s has another %s: %s, not %s; move it away, or give another --json" % (path, key, stored.get(key), value))
    return [one for one in stored["rows"] if not one["name"].startswith("version/")]


def write(path, rows):
    with open(path + ".draft", "w", encoding="utf-8") as out:
        json.dump(dict(facts_now(), rows=rows), out, indent=1)
    os.replace(path + ".draft", path)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+")
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--trials", type=int, default=0)
    parser.add_argument("--time")
    parser.add_argument("--o1", action="store_true")
    parser.add_argument("--db", help="tuning database (default: where something is tuned a fresh one, else that of prunerc)")
    parser.add_argument("--peers", default="onnxruntime,openvino")
    parser.add_argument("--json")
    options = parser.parse_args()
    options.peers = [name for name in options.peers.split(",") if name]
    before = rows_before(options.json)
    scratch = tempfile.TemporaryDirectory(prefix="prunerc-network")
    if options.db is None and (options.trials or options.time):
        options.db = os.path.join(scratch.name, "bench.db")
    measured = []
    print("%-24s %7s %10s %17s  %s" % ("model", "threads", "ours, ms", "smallest-largest", "peers, ms (ratio to ours)"))
    for model in options.models:
        for threads in map(int, options.threads.split(",")):
            if options.trials or options.time:
                budget = ["--trials", str(options.trials)] if options.trials else ["--time", options.time]
                done = prunerc(options, "tune", model, "--threads", str(threads), "--seed", str(SEED), *budget)
                if done.returncode != 0:
                    print(done.stderr, file=sys.stderr)
            times, words, refused, noisy = measure(options, model, threads)
            measured.append((model, threads, times, words, refused, noisy))
            if refused:
                print("network: prunerc on %s: %s" % (model, refused), file=sys.stderr)
                continue
            ours = statistics.median(times["prunerc"])
            peers = "  ".join(
                "%s %.2f (%.2f)" % (name, statistics.median(t) * 1e-6, statistics.median(t) / ours)
                for name, t in times.items()
                if name in WORKERS
            )
            spread = "%.2f-%.2f%s" % (min(times["prunerc"]) * 1e-6, max(times["prunerc"]) * 1e-6, "*" if noisy else "")
            print("%-24s %7d %10.2f %17s  %s; %s" % (os.path.basename(dims_of(model)[0]), threads, ours * 1e-6, spread, peers, words), flush=True)
    failed = [one for one in measured if one[4]]
    if options.json and (before or len(failed) < len(measured)):
        write(options.json, result_rows(measured, before) + versions(options.peers))
    sys.exit("network: ours has no time of %d of %d" % (len(failed), len(measured)) if failed else 0)


if __name__ == "__main__":
    main()
