#!/usr/bin/env python3
"""Our search beside others' on the same machine, in turns: TVM's MetaSchedule and Ansor in their own spaces, Optuna's TPE and chance in
ours. Operator by operator and seed by seed all search one after the other, then their winners are timed in turns by one clock.

usage: ./dev bench rival [--ops REGEX] [--trials 64] [--seeds 5] [--threads 1] [--who ours,tvm,ansor,optuna,random] [--minutes N] [--json OUT]

An existing OUT of the same machine, commit and settings is gone on with: another --trials, --who or --seeds adds to it; with another --who
all of an operator and seed search again, since winners take turns. Rivals: `./dev setup --rivals`."""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.realpath(__file__))
SUITE = os.path.join(HERE, "..", "cpu", "suite")
FROZEN = os.path.join(HERE, "..", "..", "data", "frozen", "search.prn")
sys.path[:0] = [HERE, SUITE]
sys.path.append(os.path.join(HERE, ".."))
CACHE = os.path.join(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "prunerc")

ENVIRONMENTS = {"tvm": "rivals", "optuna": "rivals", "ansor": "ansor"}  # of `./dev setup --rivals`
STRATEGIES = {"pruner": ["pruner"], "pruner-bare": ["pruner", "--heuristics", "off", "--checkpoint", "none"], "random": ["random"]}  # of `prunerc tune`
EVERYONE = ("pruner", "tvm", "ansor", "optuna", "random", "pruner-bare")
ROUNDS, SECONDS = 5, 0.4  # of timing winners
START_S, TRIAL_S = 600, 20  # after which a search is given up: so much, and so much more for each trial


def with_numpy():
    """Starts again with a Python that has it."""
    try:
        import numpy  # noqa: F401
    except ModuleNotFoundError:
        for python in (os.path.join(CACHE, "rivals", "bin", "python"), "/usr/bin/python3"):
            if os.path.exists(python) and os.path.realpath(python) != os.path.realpath(sys.executable):
                os.execv(python, [python] + sys.argv)
        sys.exit("rival: wants numpy: ./dev setup --rivals")


def python_of(who):
    """None where it is not installed."""
    path = os.path.join(CACHE, ENVIRONMENTS[who], "bin", "python") if who in ENVIRONMENTS else sys.executable
    return path if os.path.exists(path) else None


def last_json(text):
    lines = [line for line in text.splitlines() if line.startswith("{")]
    return json.loads(lines[-1]) if lines else None


def reason_of(text):
    lines = [line for line in text.strip().splitlines() if line.strip()]
    return (lines[-1] if lines else "no message")[:120]


class Searching:
    """One operator and seed: the searches, then their winners in turns."""

    def __init__(self, options, op, seed, trials, folder):
        self.options, self.op, self.seed, self.trials, self.folder = options, op, seed, trials, folder

    def library(self, who):
        return os.path.join(self.folder, f"{self.op}_{self.seed}_{who}.so")

    def command(self, who, database):
        options = self.options
        common = [options.file, self.op, str(self.trials)]
        threads = str(options.threads)
        if who in STRATEGIES:
            return [options.prunerc, "tune", options.file, "--op", self.op, "--trials", str(self.trials), "--seed", str(self.seed), "--threads", threads,
                    "--strategy", *STRATEGIES[who], "--db", database, "--json", "--quiet", "--fresh"]
        if who == "optuna":
            return [python_of(who), os.path.join(HERE, "tune_optuna.py"), options.space, *common, str(self.seed), threads, database]
        return [python_of(who), os.path.join(HERE, "tune_tvm.py"), who, *common, str(options.round), str(self.seed), threads, str(time.monotonic()),
                self.library(who)]

    def search(self, who):
        out = {"op": self.op, "seed": self.seed, "who": who, "trials": self.trials, "done": 0, "wall": None, "curve": [], "us": [], "refused": "",
               "noisy": False}
        if python_of(who) is None:
            return dict(out, refused="not installed: ./dev setup --rivals")
        database = os.path.join(self.folder, f"{self.op}_{self.seed}_{who}.db")
        env = dict(os.environ, TVM_NUM_THREADS=str(self.options.threads), PYTHONPATH=os.pathsep.join((HERE, SUITE)))
        start = time.monotonic()
        try:
            done = subprocess.run(self.command(who, database), capture_output=True, text=True, env=env, cwd=self.folder,
                                  timeout=START_S + TRIAL_S * self.trials)
        except subprocess.TimeoutExpired as late:
            return dict(out, wall=time.monotonic() - start, refused=f"no end in {late.timeout:.0f} s")
        out["wall"] = time.monotonic() - start
        report = last_json(done.stdout)
        if done.returncode != 0 or report is None or not report["curve"]:
            return dict(out, refused=f"exit {done.returncode}: {reason_of(done.stderr)}")
        out.update(done=report["trials"], curve=report["curve"])
        if "ready" in report:
            return dict(out, ready=report["ready"], failed=report["failed"])
        # Seconds of ours count from the call; what came before it and after it is put before it.
        total = report["seconds"]["total"] if isinstance(report["seconds"], dict) else report["seconds"]
        out["curve"] = [[trial, ns, second + out["wall"] - total] for trial, ns, second in report["curve"]]
        path = self.library(who)
        compiled = subprocess.run([self.options.prunerc, "compile", self.options.file, "--op", self.op, "--threads", str(self.options.threads), "--db", database,
                                   "--require-tuned", "-o", path, "-o", path[:-len("so")] + "h"], capture_output=True, text=True)
        return out if compiled.returncode == 0 else dict(out, refused=reason_of(compiled.stderr))

    def time_winners(self, searches):
        import suite

        class Winner(suite.Contestant):
            def __init__(self, task, who):
                self.start(who, task.options.threads, [python_of(who), os.path.join(HERE, "timed.py"), who, task.options.file, task.op, str(task.options.threads),
                                                       str(task.seed), task.folder, task.library(who)])

        running = []
        try:
            for one in searches:
                if not one["refused"]:
                    running.append((one, Winner(self, one["who"])))
            for _, winner in running:
                winner.check()
            for _ in range(ROUNDS):
                for _, winner in running:
                    winner.turn(SECONDS)
        finally:
            for _, winner in running:
                winner.end()
        for one, winner in running:
            one.update(us=winner.us, refused=winner.refused, noisy=winner.noisy)


def versions():
    """Of the rivals, by the lists that they are installed from."""
    found = {}
    for who, folder, packages in (("tvm", "rivals", ("apache-tvm", "apache-tvm-ffi", "xgboost")), ("optuna", "rivals", ("optuna",)),
                                  ("ansor", "ansor", ("hhb-tvm", "xgboost"))):
        path = os.path.join(CACHE, folder, f"packages-{folder}.txt")
        if os.path.exists(path):
            with open(path, encoding="utf-8") as file:
                pinned = dict(re.findall(r"^([\w-]+)==(\S+)", file.read(), re.M))
            found[who] = ", ".join(f"{name} {pinned[name]}" for name in packages if name in pinned)
    return found


class Results:
    """The searches so far, in a file that can be gone on with."""

    def __init__(self, options):
        import facts
        import judge
        self.judge, self.path, self.searches = judge, options.json, []
        self.facts = facts.of("rival", options.prunerc, settings={
            "file": os.path.basename(options.file), "threads": options.threads, "round": options.round, "versions": versions()})
        if self.path and os.path.exists(self.path):
            with open(self.path, encoding="utf-8") as file:
                stored = json.load(file)
            for key in ("bench", "machine", "commit", "settings"):
                if stored.get(key) != self.facts[key]:
                    sys.exit(f"rival: {self.path} has another {key}: {stored.get(key)}, not {self.facts[key]}; move it away, or give another --json")
            self.facts["date"], self.searches = stored["date"], stored["searches"]

    def who(self, op, seed, trials):
        """Who has searched there."""
        return [one["who"] for one in self.searches if (one["op"], one["seed"], one["trials"]) == (op, seed, trials)]

    def add(self, searches):
        """Replaces what is there of this operator, seed and number of trials: winners are compared within one turn of all, so that whoever
        was there has to be among them."""
        key = lambda one: (one["op"], one["seed"], one["trials"])
        self.searches = [one for one in self.searches if key(one) != key(searches[0])] + searches
        if not self.path:
            return
        self.judge.write(self.path, self.facts, self.searches)

    def rows(self):
        return self.judge.all_rows(self.facts, self.searches)


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    binaries = os.path.dirname(os.path.abspath(sys.argv[0]))
    parser.add_argument("--ops", default="", metavar="REGEX", help="only operators whose names it is found in")
    parser.add_argument("--trials", type=int, default=64)
    parser.add_argument("--round", type=int, default=64, help="trials of TVM's searches that are chosen at once: 64 is their default")
    parser.add_argument("--seeds", type=int, default=5, help="so many, from 0 on")
    parser.add_argument("--threads", type=int, default=1, help="of a kernel")
    parser.add_argument("--who", default=",".join(EVERYONE), help="of " + ",".join(EVERYONE) + "; ours is pruner")
    parser.add_argument("--minutes", type=float, default=0, help="begin nothing after so many; what is there is kept (0: no limit)")
    parser.add_argument("--file", default=FROZEN, help="operators of the frozen names in other sizes, to try a change on")
    parser.add_argument("--prunerc", default=os.path.join(binaries, "..", "..", "..", "tools", "prunerc", "prunerc"), help=argparse.SUPPRESS)
    parser.add_argument("--space", default=os.path.join(binaries, "space"), help=argparse.SUPPRESS)
    parser.add_argument("--json", metavar="OUT")
    options = parser.parse_args()
    options.who = ["pruner" if who == "ours" else who for who in options.who.split(",")]
    if unknown := sorted(set(options.who) - set(EVERYONE)):
        parser.error(f"--who {unknown[0]}: not one of {', '.join(EVERYONE)}")
    if options.trials < 1 or options.seeds < 1 or options.round < 1 or options.threads < 1:
        parser.error("--trials, --seeds, --round and --threads want at least 1")
    for name in ("file", "prunerc", "space"):
        setattr(options, name, os.path.realpath(getattr(options, name)))
    return options


def main():
    with_numpy()
    options = parse_arguments()
    import operators
    names = [name for name in operators.read(options.file) if re.search(options.ops, name)]
    if not names:
        sys.exit(f"rival: --ops {options.ops}: no such operator")
    results, start = Results(options), time.monotonic()
    turn = 0
    for seed in range(options.seeds):
        for op in names:
            turn += 1
            there = results.who(op, seed, options.trials)
            if set(options.who) <= set(there):
                continue
            who = list(dict.fromkeys(options.who + there))
            if options.minutes and time.monotonic() - start > 60 * options.minutes:
                print("rival: the time is over; the same command goes on", file=sys.stderr)
                return
            with tempfile.TemporaryDirectory(prefix="prunerc-rival") as folder:
                one = Searching(options, op, seed, options.trials, folder)
                # Nobody is always the first.
                order = [who[(i + turn) % len(who)] for i in range(len(who))]
                found = [one.search(each) for each in order]
                one.time_winners(found)
            results.add(found)
            for search in sorted(found, key=lambda s: min(s["us"], default=float("inf"))):
                us = results.judge.final_us(search)
                print("%-28s seed %d  %-8s %10s us  %7.1f s  %s" %
                      (op, seed, search["who"], "" if us is None else "%.1f" % us, search["wall"] or 0, search["refused"]), flush=True)
    for row in results.rows():
        if row["name"].startswith("geomean"):
            print("%-32s %.3f  %s" % (row["name"], row["value"], row["note"]))


if __name__ == "__main__":
    main()
