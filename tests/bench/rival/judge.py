"""Rows of results from searches: what each ended with, how fast it got there, and all of it beside ours.

A search is a dictionary: op, seed, who, trials (the budget), done (trials that were made), wall (seconds of the process), curve
([trial, ns, second] at each gain, by its own clock), us (of its winner, one for each round in which all winners of this operator and
seed took turns), refused (why there is none), noisy; of TVM's also ready (the second in which its modules were there)."""

import math
import statistics

OURS = "pruner"
NEAR = 0.01  # of an end, as in ../draft/curve.h


def row(name, value, unit, note, noisy=False):
    return {"name": name, "value": None if value is None else float(f"{value:.6g}"), "unit": unit, "goal": None, "note": note, "noisy": noisy}


def geomean(values):
    return math.exp(sum(map(math.log, values)) / len(values))


def final_us(search):
    return statistics.median(search["us"]) if search["us"] else None


def reached(search, ns):
    """The second in which a search's own clock first showed this; None if it never did."""
    return next((second for _, best, second in search["curve"] if best <= ns), None)


def gain(theirs, ours, within=0.0):
    """(seconds in which they first had their end, within so much of it, over ours until as fast, whether ours ever was). Each search's
    curve is in the common clock once its end is what the common clock says of its winner. Who never got there has spent all and counts
    as 1 at most."""
    own_end, our_end = theirs["curve"][-1][1], ours["curve"][-1][1]
    spent = reached(theirs, own_end * (1 + within))
    wanted_us = final_us(theirs) * (1 + within)
    mine = reached(ours, our_end * wanted_us / final_us(ours) * (1 + 1e-9))
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


def reach_rows(name, pairs):
    """Of one operator, or of all."""
    out = []
    for kind, within, words in (("own", 0.0, "seconds to its own end"), ("near", NEAR, "seconds to within 1 % of its end")):
        gains = [gain(theirs, ours, within) for theirs, ours in pairs]
        never = sum(not ever for _, ever in gains)
        # Of many operators the mean of a ratio is geometric.
        values = [value for value, _ in gains]
        out.append(summary(f"reach_{kind}/{name}", values, "x", f"{words} / ours to the same speed; {never} of ours never"))
    return out


def rows_of(searches):
    """All rows of all searches."""
    by = {}
    for one in searches:
        by.setdefault((one["op"], one["trials"]), {}).setdefault(one["who"], {})[one["seed"]] = one
    out, ratios, reaches = [], {}, {}
    for (op, trials), found in by.items():
        ours = {seed: one for seed, one in found.get(OURS, {}).items() if one["us"]}
        for who, seeds in found.items():
            name = f"{op}/{who}@{trials}"
            good = {seed: one for seed, one in seeds.items() if one["us"]}
            why = sorted({one["refused"] for one in seeds.values() if one["refused"]})
            failed = f"{len(seeds) - len(good)} failed: {'; '.join(why)}" if why else ""
            out.append(summary(f"speed/{name}", [final_us(one) for one in good.values()], "us", failed, any(one["noisy"] for one in good.values())))
            out.append(summary(f"seconds/{name}", [one["wall"] for one in seeds.values() if one["wall"]], "s", f"{trials} trials"))
            pairs = [(good[seed], ours[seed]) for seed in good if seed in ours]
            if who == OURS or not pairs:
                continue
            values = [final_us(theirs) / final_us(mine) for theirs, mine in pairs]
            out.append(summary(f"ratio/{name}", values, "x", "its time / ours"))
            ratios.setdefault((who, trials), []).append((statistics.median(values), op))
            made = reach_rows(name, pairs)
            out += made
            reaches.setdefault((who, trials), []).append(made)
    for who in dict.fromkeys(one["who"] for one in searches if "ready" in one):
        seconds = [one["ready"] for one in searches if one["who"] == who and "ready" in one]
        out.append(row(f"startup/{who}", statistics.median(seconds), "s", f"{spread(seconds)}; of the seconds above, for importing its modules"))
    for (who, trials), found in ratios.items():
        values = [value for value, _ in found]
        low, high = min(found), max(found)
        out.append(row(f"geomean/{who}@{trials}", geomean(values), "x", f"its time / ours, {len(values)} operators, ours behind on "
                       f"{sum(value < 1 for value in values)}; {low[0]:.3f} {low[1]} to {high[0]:.3f} {high[1]}"))
        for i, kind in enumerate(("own", "near")):
            values = [made[i]["value"] for made in reaches[who, trials]]
            out.append(row(f"geomean_reach_{kind}/{who}@{trials}", geomean(values), "x", f"{spread(values)}, {len(values)} operators"))
    return out
