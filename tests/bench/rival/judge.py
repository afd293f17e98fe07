"""Rows of results from searches: what each ended with, how fast it got there, and all of it beside ours.

usage: judge.py FILE     makes the rows of a results file anew from the searches that are in it

A search is a dictionary: op, seed, who, trials (the budget), done (trials that were made), wall (seconds of the process), curve
([trial, ns, second] at each gain, by its own clock), us (of its winner, one for each round in which all winners of this operator and
seed took turns), refused (why there is none), noisy; of TVM's also ready (the second in which its modules were there) and failed (trials
that did not build or run)."""

import json
import math
import os
import statistics
import sys

OURS = "pruner"
NEAR = 0.01  # of an end, as in ../draft/curve.h


def row(name, value, unit, note, noisy=False):
    return {"name": name, "value": None if value is None else float(f"{value:.6g}"), "unit": unit, "goal": None, "note": note, "noisy": noisy}


def geomean(values):
    return math.exp(sum(map(math.log, values)) / len(values))


def final_us(search):
    return statistics.median(search["us"]) if search["us"] else None


def ratio_of(theirs, ours):
    """Its time over ours, round by round, since a machine's state is that of a round."""
    return statistics.median(a / b for a, b in zip(theirs["us"], ours["us"]))


def reached(search, ns):
    """The second in which a search's own clock first showed this; None if it never did."""
    return next((second for _, best, second in search["curve"] if best <= ns), None)


def gain(theirs, ours, within=0.0, begin=0.0):
    """(seconds in which they first had their end, within so much of it, over ours until as fast, whether ours ever was); theirs count from
    `begin`. Each search's curve is in the common clock once its end is what the common clock says of its winner. Who never got there has
    spent all and counts as 1 at most, which is an upper limit: what it would have taken is not known."""
    own_end, our_end = theirs["curve"][-1][1], ours["curve"][-1][1]
    spent = reached(theirs, own_end * (1 + within)) - begin
    mine = reached(ours, our_end * ratio_of(theirs, ours) * (1 + within) * (1 + 1e-9))
    if mine is None:
        return min(1.0, spent / ours["wall"]), False
    return spent / max(mine, 1e-9), True


def spread(values, digits=4):
    return f"{min(values):.{digits}g} to {max(values):.{digits}g}"


def summary(name, values, unit, words, noisy=False):
    """The median over seeds; None of nothing."""
    if not values:
        return row(name, None, unit, words)
    seeds = f"{spread(values)}, {len(values)} seed{'s' if len(values) > 1 else ''}"
    return row(name, statistics.median(values), unit, seeds + ("; " + words if words else ""), noisy)


# What counts as reached: how near an end, and whether importing modules is left out.
KINDS = {"own": (0.0, False, "seconds to its own end"), "near": (NEAR, False, "seconds to within 1 % of its end"),
         "ready": (0.0, True, "seconds from its modules' being there to its own end")}


def reach_rows(name, pairs):
    """Of one operator: {kind: row}, and how many of ours never got there. `ready` is of those alone that say when they were."""
    out, never = {}, 0
    for kind, (within, is_late, words) in KINDS.items():
        if is_late and not all("ready" in theirs for theirs, _ in pairs):
            continue
        gains = [gain(theirs, ours, within, theirs["ready"] if is_late else 0.0) for theirs, ours in pairs]
        missed = sum(not ever for _, ever in gains)
        never = missed if kind == "own" else never
        out[kind] = summary(f"reach_{kind}/{name}", [value for value, _ in gains], "x", f"{words} / ours to the same speed; {missed} of ours never")
    return out, never


def short_of(searches, trials):
    """Words on searches that made fewer trials than they were given, or whose trials failed."""
    found = [one for one in searches if one["curve"]]
    fewer, failed = [one["done"] for one in found if one["done"] < trials], [one["failed"] for one in found if one.get("failed")]
    words = [f"{len(fewer)} made fewer trials: {min(fewer)} at least"] if fewer else []
    return words + ([f"{max(failed)} trials failed at most"] if failed else [])


class Mean:
    """What one rival's operators come to at one budget."""

    def __init__(self):
        self.ratios, self.by_seed, self.reaches = [], {}, []
        self.never = self.runs = 0

    def add(self, op, pairs, reaches, never):
        by_seed = {theirs["seed"]: ratio_of(theirs, mine) for theirs, mine in pairs}
        self.ratios.append((statistics.median(by_seed.values()), op))
        for seed, value in by_seed.items():
            self.by_seed.setdefault(seed, []).append(value)
        self.reaches.append(reaches)
        self.never, self.runs = self.never + never, self.runs + len(pairs)

    def rows(self, name, num_operators):
        values, low, high = [value for value, _ in self.ratios], min(self.ratios), max(self.ratios)
        # A seed that lacks some of the operators has another mean.
        whole = [geomean(of) for of in self.by_seed.values() if len(of) == len(values)]
        seeds = f"; by seed {spread(whole)}" if len(whole) > 1 else ""
        out = [row(f"geomean/{name}", geomean(values), "x", f"its time / ours, {len(values)} of {num_operators} operators, ours behind on "
                   f"{sum(value < 1 for value in values)}; median {statistics.median(values):.3f}; least {low[0]:.3f} {low[1]}, most {high[0]:.3f} {high[1]}{seeds}")]
        for kind in KINDS:
            found = [each[kind]["value"] for each in self.reaches if kind in each]
            if len(found) < len(values):
                continue
            out.append(row(f"geomean_reach_{kind}/{name}", geomean(found), "x",
                           f"{spread(found)}, {len(found)} operators; {self.never} of {self.runs} of ours never"))
        return out


def rows_of(searches):
    """All rows of all searches."""
    by = {}
    for one in searches:
        by.setdefault((one["op"], one["trials"]), {}).setdefault(one["who"], {})[one["seed"]] = one
    out, means = [], {}
    for (op, trials), found in by.items():
        ours = {seed: one for seed, one in found.get(OURS, {}).items() if one["us"]}
        for who, seeds in found.items():
            name = f"{op}/{who}@{trials}"
            good = {seed: one for seed, one in seeds.items() if one["us"]}
            why = sorted({one["refused"] for one in seeds.values() if one["refused"]})
            words = ([f"{len(seeds) - len(good)} failed: {'; '.join(why)}"] if why else []) + short_of(seeds.values(), trials)
            out.append(summary(f"speed/{name}", [final_us(one) for one in good.values()], "us", "; ".join(words), any(one["noisy"] for one in good.values())))
            out.append(summary(f"seconds/{name}", [one["wall"] for one in seeds.values() if one["wall"]], "s", f"{trials} trials"))
            pairs = [(good[seed], ours[seed]) for seed in good if seed in ours]
            if who == OURS or not pairs:
                continue
            noisy = any(one["noisy"] for pair in pairs for one in pair)
            out.append(summary(f"ratio/{name}", [ratio_of(theirs, mine) for theirs, mine in pairs], "x", "its time / ours", noisy))
            made, never = reach_rows(name, pairs)
            out += made.values()
            means.setdefault((who, trials), Mean()).add(op, pairs, made, never)
    for who in dict.fromkeys(one["who"] for one in searches if "ready" in one):
        seconds = [one["ready"] for one in searches if one["who"] == who and "ready" in one]
        out.append(row(f"startup/{who}", statistics.median(seconds), "s", f"{spread(seconds)}; of the seconds above, for importing its modules"))
    for (who, trials), mean in means.items():
        out += mean.rows(f"{who}@{trials}", sum(budget == trials for _, budget in by))
    return out


def write(path, facts, searches):
    """The results file: its facts, the rows of its searches, and these."""
    facts = dict(facts, seeds=sorted({one["seed"] for one in searches}))
    draft = path + ".draft"
    with open(draft, "w", encoding="utf-8") as out:
        out.write("{\n" + "".join(" %s: %s,\n" % (json.dumps(k), json.dumps(v)) for k, v in facts.items()))
        for name, listed, end in (("rows", all_rows(facts, searches), ",\n"), ("searches", searches, "\n}\n")):
            out.write(f' "{name}": [\n' + ",\n".join("  " + json.dumps(one) for one in listed) + "\n ]" + end)
    os.replace(draft, path)


def all_rows(facts, searches):
    return rows_of(searches) + [row(f"version/{who}", None, "", text) for who, text in facts["settings"]["versions"].items()]


def main():
    if len(sys.argv) != 2 or sys.argv[1].startswith("-"):
        sys.exit(__doc__)
    with open(sys.argv[1], encoding="utf-8") as file:
        stored = json.load(file)
    write(sys.argv[1], {key: value for key, value in stored.items() if key not in ("rows", "searches")}, stored["searches"])


if __name__ == "__main__":
    main()
