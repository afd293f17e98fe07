#!/usr/bin/env python3
"""Optuna's TPE on our space: it chooses the sketch and each decision's value, `space` does the rest.

usage: tune_optuna.py SPACE FILE.prn OP TRIALS SEED THREADS DATABASE

The last line is JSON, the report of `space`."""

import json
import math
import subprocess
import sys

REFUSED = 1000  # in a row, after which a search ends


def suggest(trial, sketches):
    """Sketch and values; what is a tile is an integer, as its values are in order, and what is a choice has none."""
    sketch = trial.suggest_categorical("sketch", range(len(sketches)))
    values = []
    for i, decision in enumerate(sketches[sketch]):
        name = f"{sketch}.{i}"
        if decision["tile"]:
            values.append(trial.suggest_int(name, 0, decision["values"] - 1))
        else:
            values.append(trial.suggest_categorical(name, range(decision["values"])))
    return [sketch, *values]


class Space:
    """The process that measures."""

    def __init__(self, command):
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def read(self):
        line = self.process.stdout.readline()
        if not line:
            sys.exit(f"space ended with status {self.process.wait()}")
        return json.loads(line)

    def write(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()


class Answers:
    """Tells a study times as logarithms. What is refused or fails is told as twice as slow as the slowest, since of failed trials TPE learns
    nothing; before anything ran it is a failed trial."""

    def __init__(self, study, states):
        self.study, self.states, self.worst = study, states, None

    def tell(self, trial, ns):
        if ns is not None:
            self.worst = math.log(ns) if self.worst is None else max(self.worst, math.log(ns))
            self.study.tell(trial, math.log(ns))
        elif self.worst is not None:
            self.study.tell(trial, self.worst + math.log(2))
        else:
            self.study.tell(trial, state=self.states.FAIL)


def search(space, study, states):
    """Answers what `space` asks until it reports; what was asked for before gets the answer that it got then."""
    sketches, asked, known, refused = space.read()["sketches"], {}, {}, 0
    answers = Answers(study, states)
    trial = choice = None
    while True:
        line = space.read()
        if "report" in line:
            return line["report"]
        if "ask" in line:
            if refused >= REFUSED:
                space.write("end")
                continue
            trial = study.ask()
            choice = tuple(suggest(trial, sketches))
            space.write(" ".join(map(str, choice)))
        elif "id" in line:
            refused, asked[line["id"]] = 0, (trial, choice)
        elif "refused" in line:
            refused += 1
            answers.tell(trial, known.get(choice))
        elif "told" in line:
            told, values = asked[line["told"]]
            known[values] = line["ns"]
            answers.tell(told, line["ns"])


def main():
    import optuna
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    study = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=int(sys.argv[5])))
    print(json.dumps(search(Space(sys.argv[1:8]), study, optuna.trial.TrialState)))


if __name__ == "__main__":
    main()
