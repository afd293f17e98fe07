#!/usr/bin/env python3
"""One contestant with one operator, in a process of its own that is stopped while others run.

usage: worker.py WHO OPERATOR THREADS SEED FOLDER [LIBRARY]

Answers each line on stdin with a line of JSON: `check` with the outputs' deviation from the float64 reference, `time SECONDS`
with nanoseconds a call, samples of a millisecond or longer. A refusal is the only line of a process that ends."""

import ctypes
import json
import os
import signal
import sys
from dataclasses import dataclass

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))

import numpy as np

import contestants
import table
import values

SAMPLE_NS = 1e6
LEAST, LONG_NS = 3, 1e9


@dataclass
class Task:
    name: str
    operator: object
    threads: int
    folder: str
    library: str
    arrays: dict


def read_task(name, threads, seed, folder, library):
    operator = next(row for row in table.ROWS + table.ALGEBRA + table.NETWORKS if row.name == name).operator()
    arrays = values.inputs(operator, seed)
    return Task(name, operator, threads, folder, library, arrays)


def reference_of(task):
    """The float64 outputs; made once for all contestants of a task."""
    path = os.path.join(task.folder, f"reference_{task.name}.npz")
    if not os.path.exists(path):
        draft = f"{path}.{os.getpid()}.npz"
        np.savez(draft, *values.reference(task.operator, task.arrays))
        os.replace(draft, path)
    with np.load(path) as stored:
        return [stored[name] for name in stored.files]


def samples(contestant, seconds):
    """Nanoseconds a call: after warm calls for a fifth of the time, as many samples as fit. What takes long gets three of each all the
    same, so that no time is that of a cold call, unless these take longer than LONG_NS."""
    calls, warm, spent = 1, 0, 0
    while (spent < 0.2e9 * seconds or warm < LEAST) and not spent > LONG_NS:
        took = contestant.time(calls)
        spent += took
        warm += 1
        calls = max(1, round(SAMPLE_NS * calls / max(took, 1)))
    taken, spent = [], 0
    while (spent < 0.8e9 * seconds or len(taken) < LEAST) and not (taken and spent > LONG_NS):
        took = contestant.time(calls)
        spent += took
        taken.append(took / calls)
    return taken


def die_with_parent():
    """A stopped process would outlive a suite that is killed."""
    pr_set_pdeathsig = 1  # of linux/prctl.h
    ctypes.CDLL(None).prctl(pr_set_pdeathsig, signal.SIGKILL)


def serve(prepare):
    """Answers lines until there are none. `prepare`: returns (task, contestant)."""
    die_with_parent()
    answer = lambda **fields: print(json.dumps(fields), flush=True)
    # Libraries print what they like; our lines alone go to the parent.
    channel = os.dup(1)
    os.dup2(2, 1)
    sys.stdout = os.fdopen(channel, "w")
    try:
        task, contestant = prepare()
        contestant.time(1)
    except contestants.Refused as reason:
        answer(refused=str(reason))
        return
    except ModuleNotFoundError as problem:
        answer(refused=f"not installed: {problem.name}")
        return
    except Exception as problem:  # of a library: its row says so, and the suite goes on
        answer(refused=(str(problem).strip().splitlines() or [type(problem).__name__])[0][:120])
        return
    answer(ready=True)
    for line in sys.stdin:
        verb, *rest = line.split()
        if verb == "check":
            off, allowed = values.deviation(task.operator, contestant.outputs(), reference_of(task))
            answer(deviation=off if np.isfinite(off) else None, allowed=allowed)
        elif verb == "time":
            answer(ns=samples(contestant, float(rest[0])))


def main():
    who, name, threads, seed, folder = sys.argv[1:6]

    def prepare():
        task = read_task(name, int(threads), int(seed), folder, sys.argv[6] if len(sys.argv) > 6 else "")
        return task, contestants.EVERYONE[who](task)

    serve(prepare)


if __name__ == "__main__":
    main()
