"""Random operators, each tuned, and the stored winner run on inputs of ours: every output against a reference in Python.

The reference is generate.py's tree evaluated by arithmetic.py, with a bound for each element. In each operator one element is
changed afterwards by more than its bound, and must be found: `winners_control`.
"""

import os
import random

import arithmetic
import common
import generate

ROOM = 4  # bounds are to first order
STRATEGIES = ["pruner", "random", "ansor", "evolution"]


def is_wrong(got, expected):
    v, e = expected
    if e == arithmetic.INF:
        return False  # rounding may decide
    if got != got or got in (arithmetic.INF, -arithmetic.INF) or v != v or v in (arithmetic.INF, -arithmetic.INF):
        return not (got == v or (got != got and v != v))
    return abs(got - v) > ROOM * e


def first_wrong(got, expected):
    for at, (a, b) in enumerate(zip(got, expected)):
        if is_wrong(a, b):
            return at
    return None if len(got) == len(expected) else min(len(got), len(expected))


def is_telling(expected, scale):
    """Whether an element's bound is small beside the values of its output."""
    return expected[1] != arithmetic.INF and ROOM * expected[1] <= 0.01 * scale


def detects_a_change(rng, got, expected, dtype):
    """None if no element is telling."""
    scale = max([abs(v) for v, e in expected if e != arithmetic.INF and abs(v) != arithmetic.INF] or [0]) or 1
    telling = [at for at, pair in enumerate(expected) if is_telling(pair, scale)]
    if not telling:
        return None
    at = rng.choice(telling)
    changed = list(got)
    changed[at] += max(0.02 * scale, 1 if not arithmetic.is_float(dtype) else 0)
    return first_wrong(changed, expected) == at


class Case:
    def __init__(self, world, number, seed):
        self.world, self.number = world, number
        self.rng = random.Random("%d/%d" % (seed, number))
        self.operator, self.family = generate.generate(self.rng)
        self.threads = self.rng.choice(["1", "2"])
        self.file = world.write("winner%d.prn" % number, self.operator.text())
        self.database = world.path("winner%d.sqlite" % number)

    def tune(self, trials):
        self.strategy = self.rng.choice(STRATEGIES)
        done = self.world.run(["tune", self.file, "--db", self.database, "--trials", str(trials), "--threads", self.threads,
                               "--strategy", self.strategy, "--seed", str(self.number), "-q"])
        self.said = done.out + done.err
        return done.code == 0

    def outputs(self):
        """The arrays that the winner computes; None where it does not run."""
        arguments = ["run", self.file, "--db", self.database, "--threads", self.threads]
        for tensor in self.operator.inputs:
            path = self.world.path("%s.npy" % tensor.name)
            with open(path, "wb") as out:
                out.write(arithmetic.npy([v for v, _ in tensor.values], tensor.dtype, tensor.shape))
            arguments += ["--input", "%s=@%s" % (tensor.name, path)]
        for tensor in self.operator.outputs():
            path = self.world.path("%s.npy" % tensor.name)
            if os.path.exists(path):
                os.remove(path)
            arguments += ["--output", "%s=%s" % (tensor.name, path)]
        done = self.world.run(arguments)
        self.said += done.out + done.err
        if done.code != 0:
            return None
        found = []
        for tensor in self.operator.outputs():
            with open(self.world.path("%s.npy" % tensor.name), "rb") as file:
                found.append(arithmetic.from_npy(file.read(), tensor.dtype))
        return found

    def evidence(self, what):
        self.world.save("winner%d.txt" % self.number, "%s\nfamily %s, strategy %s, threads %s\n%s\n%s" %
                        (what, self.family, self.strategy, self.threads, self.operator.text(), self.said))


def measure(world, options):
    checked = wrong = refused = planted = found = elements = telling = 0
    families = {}
    number = 0
    while checked < options.winners and max(refused, wrong) <= options.winners // 10 + 3:
        case = Case(world, number, options.seed)
        number += 1
        if not case.tune(case.rng.choice([4, 6, 10])):
            refused += 1
            case.evidence("not tuned")
            continue
        outputs = case.outputs()
        if outputs is None:
            wrong += 1
            case.evidence("the winner does not run")
            continue
        case.operator.run()
        checked += 1
        families[case.family] = families.get(case.family, 0) + 1
        for tensor, got in zip(case.operator.outputs(), outputs):
            at = first_wrong(got, tensor.values)
            if at is not None:
                wrong += 1
                case.evidence("%s[%d] is %r, expected %r" % (tensor.name, at, got[at] if at < len(got) else None, tensor.values[at]))
                continue
            scale = max([abs(v) for v, e in tensor.values if abs(v) != arithmetic.INF] or [0]) or 1
            elements += len(got)
            telling += sum(is_telling(pair, scale) for pair in tensor.values)
            noticed = detects_a_change(case.rng, got, tensor.values, tensor.dtype)
            if noticed is not None:
                planted += 1
                found += noticed
        for path in (case.file, case.database):
            os.remove(path)
    mix = ", ".join("%d %s" % (count, name) for name, count in sorted(families.items(), key=lambda item: -item[1]))
    share = 100 * telling / max(1, elements)
    return [
        common.row("winners_checked", checked, "operators", options.winners, mix),
        common.row("winners_wrong", wrong, "operators", 0, "of %d elements; %.1f %% have a bound below 1 %% of their output" % (elements, share)),
        common.row("winners_refused", refused, "operators", 0, "that could not be tuned"),
        common.row("winners_control", found, "found", planted, "one element of each changed by 2 %% of its output's largest: %d" % planted),
    ]
