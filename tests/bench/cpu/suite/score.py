"""Rows of results from what was timed: medians, ratios of the best peer over ours, geometric means and what they are to reach.

A row's name is CLASS/OPERATOR/tTHREADS/WHO, and `ratio` in place of WHO for best peer / ours; classes together are `geomean`."""

import math
import re
import statistics
from dataclasses import dataclass

OURS, UNTUNED = "prunerc", "prunerc-O1"
# Of best peer / ours, by class; elsewhere LOWEST. No operator is to be below it.
LOWEST = 0.9
GOALS = {"gemm": 0.97, "skinny gemm": 0.97, "batched gemm": 0.97, "int8 gemm": 0.97, "bf16 gemm": 0.97, "transposed conv": 1.1,
         "grouped conv": 1.0, "attention": 1.3, "softmax": 1.2, "transpose": 1.1, "depthwise conv": 1.3}
GCC_GOALS = {"stencil": 1.5}  # of gcc / ours
NETWORK = "network"  # the class of whole networks, of which ours is the sum of its tasks
NETWORK_GOAL = 1 / 0.9
CALL = "call"  # the class of what does nothing: its times are those of a call, and nobody's score
GEOMEAN_GOAL, UNTUNED_GOAL = 1.1, 1.25  # the latter of -O1 / tuned, at most


@dataclass
class Timed:
    """Microseconds a call, one for each round, in which all who run an operator take turns; or why there are none."""

    us: list
    refused: str = ""
    noisy: bool = False


def row(name, value, unit, note, goal=None, noisy=False):
    return {"name": name, "value": None if value is None else float(f"{value:.6g}"), "unit": unit, "goal": goal, "note": note, "noisy": noisy}


def spread(values):
    return "%.4g to %.4g, %d rounds" % (min(values), max(values), len(values))


def ratio(theirs, ours):
    """(median, lowest, highest) of theirs / ours, each round beside itself: what slows a machine down slows both."""
    rounds = [a / b for a, b in zip(theirs, ours)]
    return statistics.median(rounds), min(rounds), max(rounds)


def geomean(values):
    return math.exp(sum(map(math.log, values)) / len(values))


def best_peer(timed, peers):
    """Whose median is the shortest; None where nobody ran."""
    ran = [who for who in peers if who in timed and timed[who].us]
    return min(ran, key=lambda who: statistics.median(timed[who].us)) if ran else None


def rows_of(cls, name, threads, timed, peers, limit_us):
    """The rows of one operator with one number of threads; `timed` by who."""
    prefix = f"{cls}/{name}/t{threads}"
    rows = []
    for who, one in timed.items():
        value = statistics.median(one.us) if one.us else None
        rows.append(row(f"{prefix}/{who}", value, "us", spread(one.us) if one.us else one.refused, noisy=one.noisy))
    if limit_us:
        rows.append(row(f"{prefix}/limit", limit_us, "us", "of the level where the data lie"))
    if cls == CALL:
        return rows
    ours, best = timed.get(OURS), best_peer(timed, peers)
    pairs = [("ratio", best, NETWORK_GOAL if cls == NETWORK else GOALS.get(cls, LOWEST))]
    if cls in GCC_GOALS:
        pairs.append(("gcc-ratio", "gcc", GCC_GOALS[cls]))
    for what, who, goal in pairs:
        if ours is None or not ours.us or who not in timed or not timed[who].us:
            rows.append(row(f"{prefix}/{what}", None, "x", "nothing to compare", goal))
            continue
        middle, low, high = ratio(timed[who].us, ours.us)
        noisy = ours.noisy or timed[who].noisy
        rows.append(row(f"{prefix}/{what}", middle, "x", f"{who}; {low:.3f} to {high:.3f}, {len(ours.us)} rounds", goal, noisy))
    if ours and ours.us and UNTUNED in timed and timed[UNTUNED].us:
        middle, low, high = ratio(timed[UNTUNED].us, ours.us)
        rows.append(row(f"{prefix}/O1-ratio", middle, "x", f"{low:.3f} to {high:.3f}, {len(ours.us)} rounds", None, ours.noisy or timed[UNTUNED].noisy))
    return rows


def means(rows):
    """Geometric means of all rows so far, by class and number of threads."""
    by, without = {}, {}
    for one in rows:
        found = re.fullmatch(r"([^/]+)/([^/]+)/t(\d+)/(ratio|O1-ratio)", one["name"])
        if not found or found[1] in ("geomean", NETWORK):
            continue
        for key in ((int(found[3]), found[4], cls) for cls in (found[1], "all")):
            if one["value"] is None:
                without[key] = without.get(key, 0) + 1
            else:
                by.setdefault(key, []).append((one["value"], found[2]))
    out = []
    for (threads, what, cls), found in sorted(by.items(), key=lambda item: (item[0][0], item[0][1] != "ratio", item[0][2] != "all")):
        values = [value for value, _ in found]
        lowest, name = min(found)
        goal = None if cls != "all" else GEOMEAN_GOAL if what == "ratio" else UNTUNED_GOAL
        note = f"{len(values)} operators, behind on {sum(v < 1 for v in values)}; lowest {lowest:.3f}, {name}"
        if missed := without.get((threads, what, cls)):
            note += f"; {missed} more have no ratio"
        out.append(row(f"geomean/{cls}/t{threads}/{what}", geomean(values), "x", note if what == "ratio" else f"{len(values)} operators", goal))
    return out


def missing(rows):
    """[(who, why, number of rows)] of those who were asked for an operator and did not run it."""
    found = {}
    for one in rows:
        if one["unit"] == "us" and one["value"] is None:
            key = one["name"].rsplit("/", 1)[1], one["note"]
            found[key] = found.get(key, 0) + 1
    return [(who, why, count) for (who, why), count in sorted(found.items())]
