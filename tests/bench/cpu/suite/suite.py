#!/usr/bin/env python3
"""Operators of all classes beside the libraries that one would call otherwise, in turns, each in a process of its own that
is stopped while others run.

usage: ./dev bench cpu --suite all|algebra [--only REGEX] [--threads 1,2] [--trials N] [--db FILE] [--json OUT]

An existing OUT of the same machine, commit and settings is gone on with. Peers: `./dev setup --peers`."""

import argparse
import json
import os
import re
import select
import signal
import statistics
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.realpath(__file__))
sys.path.insert(0, HERE)
sys.path.append(os.path.join(HERE, "..", ".."))

import contestants
import facts
import networks
import noise
import score
import table

SEED = 0  # of searches and inputs
START_SECONDS, TURN_SECONDS = 240, 120  # after which a contestant is given up


def cpu_seconds_of(pid):
    with open(f"/proc/{pid}/stat", encoding="ascii") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Contestant:
    """A worker process, stopped except during its turns."""

    def __init__(self, who, row, threads, folder, library=""):
        self.start(who, threads, [sys.executable, os.path.join(HERE, "worker.py"), who, row.name, str(threads), str(SEED), folder, library])

    def start(self, who, threads, command):
        self.who, self.refused, self.us, self.noisy = who, "", [], False
        env = dict(os.environ, OMP_NUM_THREADS=str(threads), OPENBLAS_NUM_THREADS=str(threads), PRUNERC_NUM_THREADS=str(threads))
        if "avx512f" in cpu_flags():
            env["OPENBLAS_CORETYPE"] = "SkylakeX"  # Debian's OpenBLAS does not know newer CPUs and falls back to 256-bit code
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=env,
                                        start_new_session=True, text=True)
        self.take(self.listen(START_SECONDS))
        if not self.refused:
            os.killpg(self.process.pid, signal.SIGSTOP)

    def listen(self, seconds):
        ready, _, _ = select.select([self.process.stdout], [], [], seconds)
        if not ready:
            return {"refused": f"no answer in {seconds} s"}
        line = self.process.stdout.readline()
        return json.loads(line) if line else {"refused": f"ended with status {self.process.wait()}"}

    def take(self, answer):
        """Keeps a refusal and ends the process; else the answer is the caller's."""
        if "refused" in answer:
            self.refused, self.us = answer["refused"], []
            self.end()
        return answer

    def ask(self, line):
        if self.refused:
            return {}
        os.killpg(self.process.pid, signal.SIGCONT)
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        answer = self.take(self.listen(TURN_SECONDS))
        if not self.refused:
            os.killpg(self.process.pid, signal.SIGSTOP)
        return answer

    def check(self):
        answer = self.ask("check")
        if "deviation" in answer and not (answer["deviation"] is not None and answer["deviation"] <= answer["allowed"]):
            self.take({"refused": f"wrong values: off by {answer['deviation'] or float('nan'):.2g} of the largest"})

    def turn(self, seconds):
        """One round; of several tries, where others had the CPUs, the fastest."""
        best, noisy = None, True
        for _ in range(1 + noise.RETRIES):
            if self.refused:
                return
            start, all_before, own_before = time.monotonic(), noise.cpu_seconds(), cpu_seconds_of(self.process.pid)
            answer = self.ask(f"time {seconds}")
            if "ns" not in answer:
                return
            others = noise.cpu_seconds() - all_before - (cpu_seconds_of(self.process.pid) - own_before)
            us = statistics.median(answer["ns"]) / 1000
            best = us if best is None else min(best, us)
            noisy = noise.is_loud(others, time.monotonic() - start)
            if not noisy:
                break
        self.us.append(best)
        self.noisy = self.noisy or noisy

    def end(self):
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()

    def timed(self):
        return score.Timed(self.us, self.refused, self.noisy)


def cpu_flags():
    with open("/proc/cpuinfo", encoding="utf-8") as info:
        return next((line.split() for line in info if line.startswith("flags")), [])


class Prunerc:
    """Our compiler for one operator and number of threads."""

    def __init__(self, options, row, threads, folder):
        self.options, self.row, self.threads, self.folder = options, row, threads, folder
        self.source = os.path.join(folder, row.name + ".prn")
        with open(self.source, "w", encoding="utf-8") as file:
            file.write(row.operator().prn(row.name))

    def call(self, verb, *more, db=None):
        """(exit status, last line of JSON or None, the last line of stderr)"""
        command = [self.options.prunerc, verb, self.source, "--threads", str(self.threads), "--db", db or self.options.db, *more]
        done = subprocess.run(command, capture_output=True, text=True)
        lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
        reasons = [line for line in done.stderr.splitlines() if "error:" in line] or done.stderr.strip().splitlines() or ["no message"]
        return done.returncode, json.loads(lines[-1]) if lines else None, reasons[0].split("error: ")[-1][:120]

    def library(self, name, *more, db=None):
        """(path, "") or ("", why not)"""
        path = os.path.join(self.folder, f"{self.row.name}_{self.threads}_{name}.so")
        status, _, reason = self.call("compile", "-o", path, "-o", path[:-len("so")] + "h", *more, db=db)
        return (path, "") if status == 0 else ("", reason)

    def tune(self):
        print(f"cpu: tuning {self.row.name} on {self.threads} thread(s)", file=sys.stderr)
        derived = ["--algebra", "auto"] if self.options.suite == "algebra" else []
        status, answer, reason = self.call("tune", "--trials", str(self.options.trials), "--seed", str(SEED), *derived, "--json")
        if status != 0 or answer is None:
            print(f"cpu: prunerc tune {self.row.name}: exit {status}: {reason}", file=sys.stderr)

    def limit_us(self):
        """What the operator would take at the limit of the level where its data lie."""
        status, answer, _ = self.call("bench", "--json")
        if status != 0 or not answer or not answer.get("rows") or not answer["rows"][0].get("limit_fraction"):
            return None
        return answer["rows"][0]["median_ns"] * answer["rows"][0]["limit_fraction"] / 1000


class Tasks:
    """The tasks of a network in the place of a contestant: a turn is the sum of what each takes, as often as the network runs it."""

    def __init__(self, options, row, threads):
        self.who, self.refused, self.us, self.noisy = score.OURS, "", [], False
        self.options, self.threads = options, threads
        self.source = os.path.join(options.nets, row.name + ".prn")
        with open(self.source, encoding="utf-8") as file:
            self.tasks = networks.tasks(file.read())

    def call(self, verb, *more):
        command = [self.options.prunerc, verb, self.source, "--threads", str(self.threads), "--db", self.options.db, "--json", *more]
        done = subprocess.run(command, capture_output=True, text=True)
        lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
        if done.returncode != 0 or not lines:
            self.refused = f"prunerc {verb}: exit {done.returncode}"
            return None
        return json.loads(lines[-1])

    def tune(self):
        print(f"cpu: tuning {self.source} on {self.threads} thread(s)", file=sys.stderr)
        self.call("tune", "--trials", str(self.options.trials), "--seed", str(SEED))

    def check(self):
        """Each winner was verified when it was found."""

    def turn(self, _):
        us = 0
        for _, operator, sizes, count in self.tasks:
            if self.refused:
                return
            answer = self.call("bench", "--op", operator, "-D", ",".join(f"{k}={v}" for k, v in sizes.items()), "--samples", "7")
            if answer:
                one = answer["rows"][0]
                if one["schedule"] != "record":
                    self.refused = f"not tuned: {operator} {sizes}"
                us += count * one["median_ns"] / 1000
                self.noisy = self.noisy or one["noisy"]
        self.us.append(us)

    def end(self):
        pass

    def timed(self):
        return score.Timed([] if self.refused else self.us, self.refused, self.noisy)


class Results:
    """The rows so far, in a file that can be gone on with."""

    def __init__(self, options):
        self.path = options.json
        self.facts = facts.of("cpu", options.prunerc, seeds=[SEED], settings={
            "suite": options.suite, "network": options.network, "trials": options.trials, "rounds": options.rounds,
            "seconds": options.seconds, "peers_only": options.peers_only, "versions": versions()})
        self.who = [score.row(f"version/{who}", None, "", version) for who, version in sorted(versions().items())]
        self.who += [score.row(f"absent/{who}", None, "", reason) for who, reason in sorted(contestants.absent().items())]
        self.rows = []
        if self.path and os.path.exists(self.path):
            with open(self.path, encoding="utf-8") as file:
                stored = json.load(file)
            for key in ("bench", "machine", "commit", "seeds", "settings"):
                if stored.get(key) != self.facts[key]:
                    sys.exit(f"cpu: {self.path} has another {key}: {stored.get(key)}, not {self.facts[key]}; move it away, or give another --json")
            self.facts["date"] = stored["date"]
            self.rows = [row for row in stored["rows"] if not row["name"].startswith(("geomean/", "version/", "absent/"))]

    def has(self, row, threads):
        return any(one["name"].startswith(f"{row.cls}/{row.name}/t{threads}/") for one in self.rows)

    def add(self, rows):
        self.rows += rows
        if not self.path:
            return
        draft = self.path + ".draft"
        with open(draft, "w", encoding="utf-8") as out:
            out.write("{\n" + "".join(" %s: %s,\n" % (json.dumps(k), json.dumps(v)) for k, v in self.facts.items()) + ' "rows": [\n')
            out.write(",\n".join("  " + json.dumps(row) for row in self.rows + score.means(self.rows) + self.who) + "\n ]\n}\n")
        os.replace(draft, self.path)


def versions():
    """Of the peers that are installed, as far as Python's packages know."""
    import importlib.metadata
    found = {}
    for name in ("onnxruntime", "openvino", "torch"):
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    gcc = subprocess.run(["gcc", "-dumpfullversion"], capture_output=True, text=True).stdout.strip()
    return dict(found, gcc=gcc)


def measure(options, row, threads, folder):
    """The rows of one operator with one number of threads."""
    ours, limit_us, failed = {}, None, {}
    if not options.peers_only and row.cls != score.NETWORK:
        prunerc = Prunerc(options, row, threads, folder)
        # A record that an earlier run left is what this run would search for.
        if options.trials > 0 and not (options.resumes and prunerc.library("tuned", "--require-tuned")[0]):
            prunerc.tune()
        fresh = os.path.join(folder, "nothing.db")
        for who, path, reason in ((score.OURS, *prunerc.library("tuned", "--require-tuned")), (score.UNTUNED, *prunerc.library("O1", "-O1", db=fresh))):
            if path:
                ours[who] = path
            else:
                failed[who] = score.Timed([], reason)
        limit_us = prunerc.limit_us()
    running = []
    if row.cls == score.NETWORK and not options.peers_only:
        running.append(Tasks(options, row, threads))
        if options.trials > 0 and not options.resumes:
            running[0].tune()
    try:
        absent = contestants.absent()
        for who in list(ours) + [peer for peer in contestants.PEERS if peer not in absent]:
            running.append(Contestant(who, row, threads, folder, ours.get(who, "")))
        for one in running:
            one.check()
        for _ in range(options.rounds):
            for one in running:
                one.turn(options.seconds)
    finally:
        for one in running:
            one.end()
    timed = dict(failed, **{one.who: one.timed() for one in running})
    for who in (score.OURS, score.UNTUNED):
        if who in timed and timed[who].refused:
            print(f"cpu: {row.name}, {threads} thread(s): {who}: {timed[who].refused}", file=sys.stderr)
    return score.rows_of(row.cls, row.name, threads, timed, list(contestants.PEERS), limit_us)


def print_table(rows, who_runs):
    """Lowest ratios first; then geometric means, and who did not run."""
    split = [(one, one["name"].split("/")) for one in rows]
    by_task = {}
    for one, (cls, name, threads, who) in split:
        by_task.setdefault((threads, name, cls), {})[who] = one
    for threads in sorted({key[0] for key in by_task}):
        print("\n%-38s %10s %7s %10s %-12s %6s %-15s %6s" %
              (threads[1:] + " thread(s)", "prunerc us", "O1/it", "best us", "peer", "ratio", "of the rounds", "limit"))
        tasks = [(name, found) for (t, name, cls), found in by_task.items() if t == threads and cls not in ("geomean", score.CALL)]
        for name, found in sorted(tasks, key=lambda item: (item[1].get("ratio") or {}).get("value") or 0):
            value = lambda who: (found.get(who) or {}).get("value")
            best, _, note = (found["ratio"]["note"] if value("ratio") else "").partition("; ")
            best = best or score.best_peer({who: score.Timed([one["value"]]) for who, one in found.items() if one["value"]}, list(contestants.PEERS))
            cell = lambda number, form="%.1f": "-" if number is None else form % number
            share = value("limit") / value("prunerc") if value("limit") and value("prunerc") else None
            print("%-38s %10s %7s %10s %-12s %6s %-15s %6s%s" % (
                name, cell(value("prunerc")), cell(value("O1-ratio"), "%.2f"), cell(value(best)) if best else "-", best or "-", cell(value("ratio"), "%.3f"),
                note.split(",")[0], cell(share and 100 * share, "%.0f %%"), " *" if found.get("ratio", {}).get("noisy") else ""))
    for one, (cls, _, threads, who) in split:
        if cls == score.CALL and one["value"] is not None and who != "limit":
            print("a call of %-12s %s thread(s): %.2f us" % (who, threads[1:], one["value"]))
    print("\n* = the CPUs were shared with other work\n")
    for one, (cls, name, threads, who) in split:
        if cls == "geomean":
            goal = "" if one["goal"] is None else " (goal %s %.4g)" % ("<=" if who == "O1-ratio" else ">=", one["goal"])
            print("geometric mean of %-8s %-16s %s thread(s): %.3f%s; %s" % (who, name, threads[1:], one["value"], goal, one["note"]))
    for who, reason, count in score.missing(rows):
        print("without %-12s %3d rows: %s" % (who, count, reason))
    for one in who_runs:
        what, who = one["name"].split("/")
        print("without %-12s all rows: %s" % (who, one["note"]) if what == "absent" else "with %s %s" % (who, one["note"]))


def parse_arguments():
    parser = argparse.ArgumentParser(prog="./dev bench cpu", description=__doc__.splitlines()[0])
    parser.add_argument("--suite", choices=list(table.SUITES), default="all",
                        help="operators of all classes, or those that algebra makes faster, tuned with `--algebra auto`")
    parser.add_argument("--only", metavar="REGEX", help="operators whose CLASS/NAME this finds (default: all)")
    parser.add_argument("--list", action="store_true", help="say which operators there are, and nothing else")
    parser.add_argument("--trials", type=int, help="measured candidates per operator (default 128; of a network 2000; 0: what the database has)")
    parser.add_argument("--rounds", type=int, default=7, help="turns of each contestant (default 7)")
    parser.add_argument("--seconds", type=float, default=0.15, help="of a turn, the first fifth warms up (default 0.15)")
    parser.add_argument("--threads", default="1,2", help="numbers of threads (default 1,2)")
    parser.add_argument("--db", help="tuning database; what it has is not searched again (default: a fresh one)")
    parser.add_argument("--peers-only", action="store_true", help="leave us out")
    parser.add_argument("--json", metavar="OUT", help="results; a file that is there is gone on with")
    parser.add_argument("--network", action="store_true", help="the sum of ResNet-50's tasks beside engines that run all of it, and nothing else")
    parser.add_argument("--prunerc", required=True, help=argparse.SUPPRESS)
    parser.add_argument("--nets", default=os.path.join(HERE, "..", "..", "..", "..", "tools", "std", "nets"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.trials is None:
        options.trials = 2000 if options.network else 128
    options.threads = [int(t) for t in options.threads.split(",")]
    options.resumes = options.db is not None and os.path.exists(options.db)
    if options.trials == 0 and options.db is None and not options.peers_only and not options.list:
        parser.error("--trials 0 wants --db FILE")
    if options.network and options.suite != "all":
        parser.error("--network wants --suite all")
    try:
        rows = table.NETWORKS if options.network else table.SUITES[options.suite]
        options.rows = [row for row in rows if re.search(options.only or "", f"{row.cls}/{row.name}")]
    except re.error as problem:
        parser.error(f"--only: {problem}")
    if not options.rows:
        parser.error(f"--only {options.only}: no such operator; --list names them")
    return options


def main():
    options = parse_arguments()
    if options.list:
        for row in options.rows:
            print("%-16s %s" % (row.cls, row.name))
        return
    results = Results(options)
    with tempfile.TemporaryDirectory(prefix="prunerc-bench") as folder:
        options.db = options.db or os.path.join(folder, "bench.db")
        for row in options.rows:
            for threads in options.threads:
                if not results.has(row, threads):
                    results.add(measure(options, row, threads, folder))
    chosen = {(row.cls, row.name) for row in options.rows}
    rows = [one for one in results.rows if tuple(one["name"].split("/")[:2]) in chosen]
    print(results.facts["machine"])
    print_table(rows + score.means(rows), results.who)
    if any(one["value"] is None and one["note"].startswith("wrong values") and one["name"].split("/")[3].startswith("prunerc") for one in rows):
        sys.exit("cpu: prunerc computed wrong values")


if __name__ == "__main__":
    main()
