#!/usr/bin/env python3
"""Our best kernels beside OpenBLAS, oneDNN, Eigen and the machine's limit, in one run.

Each measurement is a process of its own, so that no idle thread pool takes a core from another; the rounds visit all of
them in turn, and a process that lost its CPU is run again. Only ratios inside one run count: the clock of a shared
machine wanders.

usage: ./dev bench cpu [--trials N] [--rounds N] [--threads 1,2] [--cases A,B] [--db PATH] [--peers-only] [--json OUT]
       ./dev bench cpu --suite all|algebra ...   operators of all classes, or those that algebra makes faster, beside today's
                                                 inference engines: suite/suite.py, which has --help
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.append(os.path.join(os.path.dirname(os.path.realpath(__file__)), ".."))
import facts

SUITES = ["all", "algebra"]  # of suite/suite.py
PEERS = ["openblas", "onednn", "eigen"]
RETRIES = 2
SEED = 0  # of each search
CHECKSUM = 1e-3  # how far sums of the peers' outputs, of equal inputs, may be apart

# How to call our compiler for each case: the operator of ops.prn and its parameters.
OURS = {
    "gemm_512": ("gemm", "M=512,N=512,K=512"),
    "gemm_1024": ("gemm", "M=1024,N=1024,K=1024"),
    "gemm_128x768x3072": ("gemm", "M=128,N=768,K=3072"),
    "conv2d_64x56_3x3": ("conv2d", "CI=64,CO=64,H=56,W=56,KH=3,S=1,P=1"),
    "dw_96x112_3x3s2": ("depthwise", "C=96,H=112,W=112,KH=3,S=2,P=1"),
    "softmax_1536x128": ("softmax", "M=1536,N=128"),
    "layernorm_128x768": ("layernorm", "M=128,N=768"),
    "dense_relu": ("dense_relu", "M=512,N=512,K=512"),
}

# What our rows are to reach: a part of another row of the same case and number of threads.
GOALS = {
    "gemm_1024": (0.6, "limit"),
    "conv2d_64x56_3x3": (0.5, "onednn"),
    "softmax_1536x128": (1.0, "onednn"),
    "layernorm_128x768": (1.0, "onednn"),
}


def folder_of_binaries():
    # Not resolved: Bazel puts a link to this file beside the binaries.
    return os.path.dirname(os.path.abspath(sys.argv[0]))


def last_json(text):
    for line in reversed(text.splitlines()):
        if line.startswith("{"):
            return json.loads(line)
    return None


def has_avx512():
    with open("/proc/cpuinfo", encoding="utf-8") as info:
        return any(line.startswith("flags") and "avx512f" in line.split() for line in info)


def odd_one_out(checksums):
    """Of {who: sum of the absolute outputs}, those that are off the middle one; of two that differ nobody knows which."""
    if not checksums:
        return []
    middle = statistics.median(checksums.values())
    return [who for who, one in checksums.items() if not abs(one - middle) <= CHECKSUM * abs(middle)]


def peer_environment(threads):
    env = dict(os.environ, OMP_NUM_THREADS=str(threads), OPENBLAS_NUM_THREADS=str(threads), OMP_WAIT_POLICY="active")
    if has_avx512():
        # Debian's OpenBLAS does not know newer CPUs and falls back to 256-bit code.
        env["OPENBLAS_CORETYPE"] = "SkylakeX"
    return env


class Bench:
    def __init__(self, options):
        self.options = options
        self.bin = folder_of_binaries()
        self.peers_binary = os.path.join(self.bin, "peers")
        self.prunerc = os.path.join(self.bin, "..", "..", "..", "tools", "prunerc", "prunerc")
        self.operators = os.path.join(os.path.dirname(os.path.realpath(__file__)), "ops.prn")
        self.facts = facts.of("cpu", self.prunerc, seeds=[SEED])
        self.times = {}  # (case, threads, who) -> [ns of each round]
        self.noisy = set()
        self.checksums = {}  # (case, threads) -> {peer: of its outputs}
        listed = subprocess.run([self.peers_binary, "list"], stdout=subprocess.PIPE, check=True, text=True).stdout
        self.cases = {c["case"]: c for c in map(json.loads, listed.splitlines())}
        for name in options.cases:
            if name not in self.cases:
                sys.exit("cpu: no case '%s'; there are %s" % (name, ", ".join(self.cases)))

    def keep(self, case, threads, who, ns, status):
        self.times.setdefault((case, threads, who), []).append(ns)
        if status == "noisy":
            self.noisy.add((case, threads, who))

    def time_peer(self, case, threads, who):
        command = [self.peers_binary, who, case, str(threads)]
        env = peer_environment(threads)
        best = None
        for _ in range(1 + RETRIES):
            done = subprocess.run(command, stdout=subprocess.PIPE, env=env, text=True, timeout=120)
            row = last_json(done.stdout)
            if done.returncode != 0 or row is None:
                return
            if best is None or row["ns"] < best["ns"]:
                best = row
            if row["status"] == "ok":
                break
        self.keep(case, threads, who, best["ns"], row["status"])
        if who != "limit":
            self.checksums.setdefault((case, threads), {})[who] = row["checksum"]

    def call_ours(self, verb, case, threads, *more):
        operator, bindings = OURS[case]
        command = [self.prunerc, verb, self.operators, "--op", operator, "-D", bindings, "--threads", str(threads)]
        command += ["--db", self.options.db, "--json"] + list(more)
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        answer = last_json(done.stdout)
        if done.returncode != 0 or answer is None:
            reason = (done.stderr.strip().splitlines() or ["no message"])[-1]
            print("cpu: prunerc %s %s: exit %d: %s" % (verb, case, done.returncode, reason), file=sys.stderr)
            return None
        return answer

    def tune(self, case, threads):
        print("cpu: tuning %s on %d thread(s)" % (case, threads), file=sys.stderr)
        self.call_ours("tune", case, threads, "--trials", str(self.options.trials), "--seed", str(SEED))

    def time_ours(self, case, threads):
        row = None
        for _ in range(1 + RETRIES):
            answer = self.call_ours("bench", case, threads)
            if answer is None or not answer.get("rows"):
                return
            again = answer["rows"][0]
            if row is None or again["median_ns"] < row["median_ns"]:
                row = again
            if not again["noisy"]:
                break
        self.keep(case, threads, "prunerc", row["median_ns"], "noisy" if again["noisy"] else "ok")

    def run(self):
        pairs = [(case, threads) for threads in self.options.threads for case in self.options.cases]
        if self.options.trials > 0 and not self.options.peers_only:
            for case, threads in pairs:
                self.tune(case, threads)
        for _ in range(self.options.rounds):
            for case, threads in pairs:
                self.time_peer(case, threads, "limit")
                if not self.options.peers_only:
                    self.time_ours(case, threads)
                for who in PEERS:
                    self.time_peer(case, threads, who)

    def drop_wrong(self):
        """Who computed something else than the other peers has no time."""
        for (case, threads), checksums in self.checksums.items():
            for who in odd_one_out(checksums):
                print("cpu: %s on %s, %d thread(s): its outputs add up to %g: others' do not" % (who, case, threads, checksums[who]), file=sys.stderr)
                self.times.pop((case, threads, who), None)

    def rate(self, case, ns):
        """In the case's unit: GFLOP/s, or GB/s of compulsory traffic."""
        facts = self.cases[case]
        return (facts["bytes"] if facts["memory_bound"] else facts["flops"]) / ns

    def value(self, case, threads, who):
        times = self.times.get((case, threads, who))
        if not times:
            return None
        # A limit is what was reached at any moment; the others are typical times.
        return self.rate(case, min(times) if who == "limit" else statistics.median(times))

    def rows(self):
        result = []
        for threads in self.options.threads:
            for case in self.options.cases:
                for who in ["prunerc"] + PEERS + ["limit"]:
                    value = self.value(case, threads, who)
                    name, unit = "%s/t%d/%s" % (case, threads, who), "GB/s" if self.cases[case]["memory_bound"] else "GFLOP/s"
                    if value is None:
                        # A peer may lack the operator; ours may not.
                        if who == "prunerc" and not self.options.peers_only:
                            result.append({"name": name, "value": None, "unit": unit, "goal": None, "note": "has no time", "noisy": False})
                        continue
                    goal = None
                    if who == "prunerc" and case in GOALS:
                        part, of = GOALS[case]
                        other = self.value(case, threads, of)
                        goal = part * other if other is not None else None
                    result.append({
                        "name": name,
                        "value": round(value, 3),
                        "unit": unit,
                        "goal": None if goal is None else round(goal, 3),
                        "note": "%.4g to %.4g" % tuple(
                            self.rate(case, pick(self.times[case, threads, who])) for pick in (max, min)),
                        "noisy": (case, threads, who) in self.noisy,
                    })
        return result

    def print_table(self, rows):
        by_name = {row["name"]: row for row in rows}
        print("%s; medians of %d rounds; * = the CPUs were shared with other work" % (self.facts["machine"], self.options.rounds))
        for threads in self.options.threads:
            print("\n%-20s %7s %11s %11s %11s %11s %11s %8s" %
                  ("%d thread(s)" % threads, "unit", "prunerc", *PEERS, "limit", "of limit"))
            for case in self.options.cases:
                def cell(who):
                    row = by_name.get("%s/t%d/%s" % (case, threads, who))
                    return "-" if row is None or row["value"] is None else "%.1f%s" % (row["value"], "*" if row["noisy"] else "")
                ours = self.value(case, threads, "prunerc")
                limit = self.value(case, threads, "limit")
                share = "-" if not ours or not limit else "%.0f%%" % (100 * min(1, ours / limit))
                if ours and limit and ours > limit:
                    share += ", limit raised to what ran"
                unit = "GB/s" if self.cases[case]["memory_bound"] else "GFLOP/s"
                print("%-20s %7s %11s %11s %11s %11s %11s %8s" %
                      (case, unit, cell("prunerc"), *[cell(p) for p in PEERS], cell("limit"), share))
        missed = [r for r in rows if r["goal"] is not None and r["value"] < r["goal"]]
        for row in missed:
            print("below its goal: %s: %.1f %s, goal %.1f" % (row["name"], row["value"], row["unit"], row["goal"]))


def suite_of(arguments):
    """(the suite, the arguments without it)"""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("--suite")
    options, rest = parser.parse_known_args(arguments)
    return options.suite, rest


def parse_arguments():
    parser = argparse.ArgumentParser(prog="./dev bench cpu", description=__doc__.splitlines()[0])
    parser.add_argument("--suite", choices=["base", *SUITES], default="base", help="these eight operators, or those of suite/table.py (default base)")
    parser.add_argument("--trials", type=int, default=200, help="measured candidates per operator (default 200; 0: what the database has)")
    parser.add_argument("--rounds", type=int, default=3, help="visits of each measurement (default 3)")
    parser.add_argument("--threads", default="1,2", help="numbers of threads (default 1,2)")
    parser.add_argument("--cases", default=",".join(OURS), help="which cases (default: all)")
    parser.add_argument("--db", help="tuning database to resume from (default: a fresh one)")
    parser.add_argument("--peers-only", action="store_true", help="the peers and the limits only")
    parser.add_argument("--json", help="write the rows to this file")
    options = parser.parse_args()
    options.threads = [int(t) for t in options.threads.split(",")]
    options.cases = options.cases.split(",")
    return options


def python_of_suite():
    """That of `./dev setup --peers`, else any that has numpy: a peer that is not installed is named in the table."""
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    for python in (os.path.join(cache, "prunerc", "peers", "bin", "python"), sys.executable, "/usr/bin/python3"):
        if os.path.exists(python) and subprocess.run([python, "-c", "import numpy"], stderr=subprocess.DEVNULL).returncode == 0:
            return python
    sys.exit("cpu: this suite wants numpy: ./dev setup --peers")


def run_suite(name, arguments):
    """Does not return."""
    python = python_of_suite()
    suite = os.path.join(os.path.dirname(os.path.realpath(__file__)), "suite", "suite.py")
    prunerc = os.path.join(folder_of_binaries(), "..", "..", "..", "tools", "prunerc", "prunerc")
    os.execv(python, [python, suite, "--prunerc", prunerc, "--suite", name] + arguments)


def main():
    suite, rest = suite_of(sys.argv[1:])
    if suite in SUITES:
        run_suite(suite, rest)
    options = parse_arguments()
    with tempfile.TemporaryDirectory(prefix="prunerc-bench") as scratch:
        options.db = options.db or os.path.join(scratch, "bench.db")
        bench = Bench(options)
        bench.run()
    bench.drop_wrong()
    rows = bench.rows()
    bench.print_table(rows)
    if options.json:
        with open(options.json + ".draft", "w", encoding="utf-8") as out:
            out.write("{\n" + "".join(" %s: %s,\n" % (json.dumps(k), json.dumps(v)) for k, v in bench.facts.items()) + ' "rows": [\n')
            out.write(",\n".join("  " + json.dumps(row) for row in rows) + "\n ]\n}\n")
        os.replace(options.json + ".draft", options.json)


if __name__ == "__main__":
    main()
