#!/usr/bin/env python3
"""Everything that is to be known of a GPU: its limits, known answers of instructions on silicon, hand-written schedules and programs
from all over the search space checked on it, operators tuned, and a table beside PyTorch. No step stops the others; what failed is
said, and its output is in the log beside the results."""

import argparse
import concurrent.futures
import datetime
import glob
import json
import os
import re
import statistics
import subprocess
import sys
import tarfile
import time

import operators

PARALLEL = 8  # checks that share the device; nothing is timed meanwhile
HERE = os.path.dirname(os.path.realpath(__file__))
TREE = os.path.dirname(os.path.dirname(os.path.dirname(HERE)))
# Where a build has them, below the folder that has the same tree; pack.sh puts them side by side.
BINARIES = {"prunerc": "tools/prunerc/prunerc", "silicon_test": "tests/runtime/cuda_host/silicon_test",
            "gpu_host": "tests/bench/gpu_host/gpu_host"}
SEED = 0  # of every search and fill
LAST_SECONDS = 30  # what was begun in time may take so long
HAND_WRITTEN = [
    ("hgemm_4096", "tests/bench/gpu/hgemm_4096.prc", "tests/bench/gpu/hgemm.trace"),
    ("hgemm_wgmma_4096", "tests/bench/gpu/hgemm_4096.prc", "tests/bench/gpu/hgemm_wgmma.trace"),
    ("hgemm_wgmma_f16_4096", "tests/bench/gpu/hgemm_4096_f16.prc", "tests/bench/gpu/hgemm_wgmma_f16.trace"),
    ("hgemm_wgmma_f16_cluster_4096", "tests/bench/gpu/hgemm_4096_f16.prc", "tests/bench/gpu/hgemm_wgmma_f16_cluster.trace"),
]
LIMITS = {"launch_ns": "ns", "fma_gflops": "GFLOP/s", "tensor_f16_gflops": "GFLOP/s", "memory_read_gbps": "GB/s",
          "memory_copy_gbps": "GB/s", "l2_read_gbps": "GB/s", "shared_read_gbps": "GB/s"}


class Steps:
    def __init__(self, options):
        self.options = options
        self.end = time.time() + 60 * options.minutes
        self.rows = []
        self.failed = []
        self.log = open(options.json + ".log", "w", encoding="utf-8")
        self.target = "cuda:" + options.arch
        self.packed = os.path.exists(os.path.join(options.bin, "prunerc"))
        self.machine = "unknown"  # until the platform is known
        self.database = os.path.join(options.bin, "gpu.sqlite")
        self.operators = [o for o in operators.OPERATORS if not options.operators or o.name in options.operators.split(",")]

    def left(self):
        return self.end - time.time()

    def call(self, name, command, seconds):
        """(exit code, stdout, stderr), within what is left."""
        limit = min(seconds, max(5, self.left()))
        # NVRTC and CUPTI may be where PyTorch's packages brought them.
        environment = {"VIRTUAL_ENV": sys.prefix, **os.environ, "XDG_CACHE_HOME": os.path.join(self.options.bin, "cache")}
        try:
            done = subprocess.run(command, cwd=TREE, env=environment, capture_output=True, text=True,
                                  timeout=limit, check=False)
            code, out, err = done.returncode, done.stdout, done.stderr
        except subprocess.TimeoutExpired as stopped:
            out, err = ((text or b"").decode(errors="replace") for text in (stopped.stdout, stopped.stderr))
            code, err = 124, err + f"{name} took longer than {limit:.0f} s"
        except OSError as error:
            code, out, err = 127, "", str(error)
        self.log.write(f"==== {name}: {code}\n{' '.join(command)}\n{out}{err}\n")
        self.log.flush()
        return code, out, err

    def say(self, name, code, text=""):
        if code != 0:
            self.failed.append(name)
        print(f"{'ok    ' if code == 0 else 'FAILED'} {name}  {text}", flush=True)

    def row(self, name, value, unit, note=""):
        self.rows.append({"name": name, "value": value, "unit": unit, "goal": None, "note": note})

    def binary(self, name):
        if self.packed:
            return os.path.join(self.options.bin, name)
        return os.path.join(os.path.dirname(os.path.abspath(sys.argv[0])), "../../..", BINARIES[name])

    def prunerc(self, *arguments):
        return [self.binary("prunerc"), *arguments]

    def doctor(self):
        code, out, err = self.call("doctor", self.prunerc("doctor"), 60)
        self.say("doctor", code, (out + err)[-300:] if code else "")

    def platform(self):
        """The limits of the device, measured now: what searches and cost models will take for its peaks."""
        code, out, err = self.call("platform", self.prunerc("devices", "--remeasure", "--json"), 60)
        try:
            gpu = next(device for device in json.loads(out)["devices"] if device["target"].startswith("cuda"))
            self.machine = gpu["model"]
            limits = gpu["limits"]
        except (LookupError, ValueError, StopIteration):
            return self.say("platform", code or 1, (out + err)[-500:])
        for key, unit in LIMITS.items():
            self.row("limit/" + key, float(limits[key]), unit, str(limits["timer"]))
        return self.say("platform", code, self.machine + "".join(f" {key}={limits[key]:.0f}" for key in LIMITS))

    def silicon(self):
        code, out, err = self.call("silicon", [self.binary("silicon_test")], 300)
        self.say("silicon", 1 if "skipped" in out + err else code, (out + err)[-300:] if code else "")

    def export(self):
        library = os.path.join(self.options.bin, "matmul_f16.so")
        if not os.path.exists(library):
            example = "tools/examples/gpu/matmul_f16"
            os.makedirs(self.options.bin, exist_ok=True)
            self.call("compile", self.prunerc("compile", example + ".prc", "--schedule", example + ".trace", "--target", self.target,
                                              "-o", library), 60)
        code, out, err = self.call("export", [sys.executable, os.path.join(HERE, "export.py"), library], 60)
        self.say("export", code, (out + err)[-300:].strip())

    def golden(self):
        programs = sorted(glob.glob(os.path.join(TREE, "tests/golden/gpu/*.prc")))

        def verify(program):
            trace = program.replace("_ragged.prc", ".prc")[:-4] + ".trace"
            code, out, _ = self.call(os.path.basename(program), self.prunerc(
                "verify", program, "--schedule", trace, "--target", self.target, "--seeds", "1"), 60)
            return code or "ran on the GPU" not in out

        with concurrent.futures.ThreadPoolExecutor(PARALLEL) as pool:
            wrong = sum(bool(code) for code in pool.map(verify, programs))
        self.row("golden_right", len(programs) - wrong, "programs", f"of {len(programs)} hand-written schedules")
        self.say("golden", wrong, f"{len(programs) - wrong} of {len(programs)} right")

    def programs(self):
        """Programs from all over the search space: values on the device beside the interpreter's."""
        code, out, err = self.call("programs", [self.binary("gpu_host"), "--on-gpu", "--only", "programs",
                                                "--programs", str(self.options.programs), "--json", self.options.json + ".host"], 240)
        try:
            with open(self.options.json + ".host", encoding="utf-8") as file:
                rows = {row["name"]: row for row in json.load(file)["rows"]}
            os.remove(self.options.json + ".host")
            drawn, right = rows["programs"], rows["programs_ok"]
        except (OSError, LookupError, ValueError):
            return self.say("programs", code or 1, (out + err)[-500:])
        self.row("programs_right", right["value"], "programs", f"of {drawn['value']:.0f}: {drawn['note']}")
        wrong = int(drawn["value"] - right["value"])
        return self.say("programs", code or wrong, f"{right['value']:.0f} of {drawn['value']:.0f} right" + "".join(
            "\n" + line for line in out.splitlines() if "FAILED" in line))

    def arguments(self, operator):
        return [operator.file, "--op", operator.op, "-D", operator.bindings, "--target", self.target, "--db", self.database]

    def bench(self, name, arguments):
        """The median in ns, cold; None if there is none."""
        code, out, err = self.call(name, self.prunerc("bench", *arguments, "--cold", "--samples", "50", "--json"), 60)
        try:
            row = next(row for row in json.loads(out.strip().splitlines()[-1])["rows"] if row.get("median_ns"))
            return row["median_ns"]
        except (LookupError, ValueError, StopIteration):
            self.say(name, code or 1, (out + err)[-300:])
            return None

    def hand(self):
        for name, program, trace in HAND_WRITTEN:
            ns = self.bench(name, [program, "--schedule", trace, "--target", self.target])
            if ns:
                self.row(f"time/{name}/prunerc", ns / 1e3, "us", f"hand-written schedule, {2 * 4096**3 / ns / 1e3:.0f} TFLOP/s")
                self.say(name, 0, f"{ns / 1e3:.1f} us")

    def tune(self):
        trials = ["--trials", str(self.options.trials)] if self.options.trials else []
        for operator in self.operators:
            budget = min(self.options.seconds, self.left() / 2)
            if budget < 3:
                self.say(operator.name, 1, "no time is left to tune it")
                continue
            code, out, err = self.call("tune " + operator.name, self.prunerc(
                "tune", *self.arguments(operator), "--seed", str(SEED), "--time", f"{budget:.0f}s", *trials), budget + 40)
            best = best_of(out + err)
            if best:
                self.row("tuned/" + operator.name, best[0] / 1e3, "us", f"{best[1]}; {operators.rate(operator, best[0])}")
            self.say("tune " + operator.name, code or not best, f"{best[0] / 1e3:.2f} us, {best[1]}" if best else (out + err)[-300:])

    def beside(self):
        """Ours, as tuned and by -O1, and PyTorch's, in turns."""
        times = {}  # (operator, who): one of each round

        def add(name, who, ns):
            if ns:
                times.setdefault((name, who), []).append(ns)

        for _ in range(self.options.rounds):
            code, out, err = self.call("peers", [sys.executable, os.path.join(HERE, "peers.py"),
                                                 *(o.name for o in self.operators)], 240)
            try:
                peers = json.loads(out.strip().splitlines()[-1])
            except (LookupError, ValueError):
                peers = {}
                self.say("peers", code or 1, (out + err)[-500:])
            for name, each in peers.items():
                for who, ns in each.items():
                    add(name, who, ns)
            for operator in self.operators:
                add(operator.name, "prunerc", self.bench(operator.name, self.arguments(operator)))
                if self.options.o1:
                    add(operator.name, "o1", self.bench(operator.name, [*self.arguments(operator), "-O1", "--heuristic"]))
        for operator in self.operators:
            found = {who: times[operator.name, who] for who in ("prunerc", "o1", "torch", "compile") if (operator.name, who) in times}
            for who, rounds in found.items():
                ns = statistics.median(rounds)
                self.row(f"time/{operator.name}/{who}", ns / 1e3, "us", f"{min(rounds) / 1e3:.2f} to {max(rounds) / 1e3:.2f}, "
                         f"{len(rounds)} rounds; {operators.rate(operator, ns)}")
            rivals = [statistics.median(found[who]) for who in ("torch", "compile") if who in found]
            text = "".join(f" {who} {statistics.median(rounds) / 1e3:.1f}" for who, rounds in found.items())
            if rivals and "prunerc" in found:
                text += f" rival/ours {min(rivals) / statistics.median(found['prunerc']):.3f}"
            self.say(operator.name, "prunerc" not in found, text)

    def drafted(self):
        """Libraries that `candidates draft` made elsewhere: all run and agree, the fastest and what -O1 chooses beside PyTorch, in turns."""
        command = [sys.executable, os.path.join(HERE, "candidates.py"), os.path.join(self.options.bin, "drafted"),
                   "--times", self.options.json + ".times", "--rounds", str(self.options.rounds), "--seconds", f"{max(5, self.left() - LAST_SECONDS):.0f}"]
        if self.options.operators:
            command += ["--operators", self.options.operators]
        for stale in (self.options.json + ".times", *(os.path.join(self.options.bin, "drafted", name) for name in ("lost", "current"))):
            if os.path.exists(stale):
                os.remove(stale)
        for _ in range(4):  # a start ends where a library loses the context
            code, out, err = self.call("drafted", command, self.left())
            print(out[:out.rfind("\n{")], flush=True)
            if code == 0:
                break
        try:
            rounds = json.loads(out.strip().splitlines()[-1]) if code == 0 else {}
            with open(self.options.json + ".times", encoding="utf-8") as file:
                screened = json.load(file)
        except (OSError, LookupError, ValueError):
            return self.say("drafted", code or 1, (out + err)[-500:])
        ran = [row for rows in screened.values() for row in rows if "ns" in row]
        self.row("drafted_right", sum(row["right"] for row in ran), "candidates", f"of {len(ran)} drafted candidates that ran agree with more than half of their operator's")
        for operator in self.operators:
            for who, times in rounds.get(operator.name, {}).items():
                ns = statistics.median(times)
                what = {"prunerc": f"fastest of {len(screened[operator.name])} drafted; "}.get(who, "")
                self.row(f"time/{operator.name}/{who}", ns / 1e3, "us", f"{min(times) / 1e3:.2f} to {max(times) / 1e3:.2f}, {len(times)} rounds; "
                         f"{what}{operators.rate(operator, ns)}")
        return self.say("drafted", code or len(ran) - sum(row["right"] for row in ran), f"{len(ran)} candidates of {len(screened)} operators")

    def record(self):
        """Pools of measured candidates: what drafts and models are judged by."""
        folder = os.path.join(os.path.dirname(self.options.json), "pools")
        os.makedirs(folder, exist_ok=True)
        for operator in self.operators:
            path = os.path.join(folder, operator.name + ".pool")
            code, out, err = self.call("record " + operator.name, self.prunerc(
                "dataset", "record", operator.file, "--op", operator.op, "-D", operator.bindings, "--target", self.target,
                "--seed", str(SEED), "--candidates", "2000", "--time", f"{self.options.seconds:.0f}s", "--out", path),
                self.options.seconds + 60)
            self.say("record " + operator.name, code, (out + err).strip().splitlines()[-1][-200:] if out + err else "")


def best_of(text):
    """(ns, "48 candidates ok") of what `tune` printed of one operator; None if nothing was verified."""
    best = re.search(r"^\w+: ([\d.]+) (ns|us|ms|s) \(.*verified: ", text, re.M)
    candidates = re.findall(r"^  candidates: (.*)$", text, re.M)
    scale = {"ns": 1, "us": 1e3, "ms": 1e6, "s": 1e9}
    return (float(best[1]) * scale[best[2]], "candidates: " + candidates[-1]) if best and candidates else None


def commit_of(folder):
    """$PRUNERC_COMMIT, else what pack.sh wrote beside the binaries."""
    if "PRUNERC_COMMIT" in os.environ:
        return os.environ["PRUNERC_COMMIT"]
    try:
        with open(os.path.join(folder, "commit"), encoding="utf-8") as file:
            return file.read().strip()
    except OSError:
        return "unknown"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", default=os.path.join(HERE, "build"), help="folder of pack.sh, and of what is cached")
    parser.add_argument("--arch", default="sm_90a")
    parser.add_argument("--minutes", type=float, default=25)
    parser.add_argument("--seconds", type=float, default=30, help="of each search and each pool")
    parser.add_argument("--trials", type=int, default=0, help="of each search at most")
    parser.add_argument("--rounds", type=int, default=2, help="of timing: ours and the peers' in turns")
    parser.add_argument("--programs", type=int, default=420)
    parser.add_argument("--operators", default="", help="comma-separated; default: all of operators.py")
    parser.add_argument("--o1", action="store_true", help="time what -O1 chooses, too")
    parser.add_argument("--only", default="doctor,platform,silicon,export,golden,programs,hand,tune,beside")
    parser.add_argument("--json")
    options = parser.parse_args()
    options.bin = os.path.abspath(options.bin)
    options.json = os.path.abspath(options.json or os.path.join(HERE, "results.json"))
    packed = os.path.join(options.bin, "bin.tgz")
    if os.path.exists(packed) and not os.path.exists(os.path.join(options.bin, "prunerc")):
        with tarfile.open(packed) as archive:
            archive.extractall(options.bin, filter="data")
    steps = Steps(options)
    today = datetime.datetime.now(datetime.timezone.utc).date().isoformat()
    for step in options.only.split(","):
        started = time.time()
        getattr(steps, step)()
        print(f"       {step}: {time.time() - started:.0f} s", flush=True)
        facts = {"bench": "gpu", "machine": steps.machine, "date": today, "commit": commit_of(options.bin), "seeds": [SEED]}
        with open(options.json + ".draft", "w", encoding="utf-8") as file:
            head = "".join(f" {json.dumps(key)}: {json.dumps(value)},\n" for key, value in facts.items())
            lines = ",\n".join("  " + json.dumps(row) for row in steps.rows)
            file.write("{\n" + head + ' "rows": [\n' + lines + "\n ]\n}\n")
        os.replace(options.json + ".draft", options.json)
    print(f"{len(steps.failed)} failed{': ' if steps.failed else ''}{', '.join(steps.failed)}; {options.json}")
    return 1 if steps.failed else 0


if __name__ == "__main__":
    sys.exit(main())
