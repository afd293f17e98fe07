"""The figures: each function takes rows by name and returns a figure, or None where it has no such rows."""

import rows as results
from draw import COLOURS, HATCHES, draw_bars, draw_curves, draw_dots, goal_line, legend, look_of, panels

METRICS = {"top1": "Top-1", "top5": "Top-5", "pairwise": "pairwise accuracy"}


def names_of(trees):
    """All keys of some dicts, in the order in which they come."""
    return list(dict.fromkeys(key for tree in trees for key in tree))


RATE_KINDS = {
    "": ("drafted", COLOURS[0], HATCHES[0]),
    "exhausted": ("drafted, most of the space seen", COLOURS[5], HATCHES[2]),
    "programs": ("a program for each", COLOURS[7], HATCHES[1]),
}


def draft_rates(rows):
    cases = results.rates(rows)
    if not cases:
        return None
    figure, axes = panels(len(cases), width=4.2, columns=2)
    for axis, (case, sketches) in zip(axes, cases.items()):
        for sketch, rate in sketches.items():
            kind = next((kind for kind in ("programs", "exhausted") if kind in sketch), "")
            label, colour, hatch = RATE_KINDS[kind]
            axis.barh(sketch.removesuffix(" (exhausted)"), rate, color=colour, hatch=hatch, edgecolor="white", label=label)
        axis.axvline(1e6, color="#000000", linestyle="--", linewidth=1, label="goal")
        axis.set(title=case, xscale="log", xlim=(1e3, 1e7), xlabel="candidates / CPU second, one thread", ylabel="sketch")
        axis.invert_yaxis()
        axis.grid(axis="y", visible=False)
    legend(figure, axes)
    return figure


def draft_best1(rows):
    classes = results.draft_quality(rows)
    if not classes:
        return None
    order = names_of(classes.values())
    figure, axes = panels(len(classes))
    for axis, (cls, analyzers) in zip(axes, classes.items()):
        draw_curves(axis, analyzers, order)
        sizes = sorted({size for curve in analyzers.values() for size in curve})
        axis.set(title=cls, xlabel="candidates drafted", ylabel="Best-1 (1 = best of the pool)")
        axis.set_xscale("log", base=2)
        axis.set_xticks(sizes, sizes)
    legend(figure, axes)
    return figure


def draft_penalties(rows):
    analyzers = results.penalties(rows)
    if not analyzers:
        return None
    figure, axes = panels(len(analyzers), columns=2)
    for axis, (analyzer, parts) in zip(axes, analyzers.items()):
        for y, (without, whole) in enumerate(parts.values()):
            axis.plot([without, whole], [y, y], color=COLOURS[7], linewidth=1)
            axis.plot(without, y, "o", color=COLOURS[1], label="without it" if y == 0 else None)
            axis.plot(whole, y, "|", color=COLOURS[0], markersize=12, markeredgewidth=2, label="with all" if y == 0 else None)
        axis.set_yticks(range(len(parts)), parts.keys())
        axis.set(title=analyzer, xlabel="Best-1 of 512 drafted, mean of the classes", ylabel="penalty left out")
    legend(figure, axes)
    return figure


def regrets(rows):
    variants = results.values(rows, "regret")
    if not variants:
        return None
    figure, (axis,) = panels(1, width=6, height=2.6)
    axis.barh(list(variants), [row.value for row in variants.values()],
              color=[COLOURS[0] if name == "all" else COLOURS[1] for name in variants])
    axis.invert_yaxis()
    axis.grid(axis="y", visible=False)
    axis.set(xlabel="mean over trials of log2(best so far / best of the pool); less is better", ylabel="variant")
    return figure


def o1_speeds(rows):
    tasks = {}
    for label, name in (("-O1", "o1_speed"), ("8 trials", "first8"), ("64 trials", "first64")):
        for task, row in results.values(rows, name).items():
            tasks.setdefault(task, {})[label] = results.Point(row.value, row.value, row.value)
    if not tasks:
        return None
    figure, (axis,) = panels(1, width=max(5, 0.6 * len(tasks) + 2), height=3.4)
    draw_bars(axis, tasks, ["-O1", "8 trials", "64 trials"])
    goal_line(axis, 1, "the tuned kernel", linestyle="-")
    axis.set(ylabel="speed, of the tuned kernel's", xlabel="operator")
    legend(figure, [axis])
    return figure


def model_bars(rows):
    """Of the largest part of the training rows that any model was given; models without it are left out."""
    metrics = results.accuracy(rows)
    percents = [percent for by_model in metrics.values() for curve in by_model.values() for percent in curve]
    if not percents:
        return None
    models = {}
    for metric, by_model in metrics.items():
        for model, curve in by_model.items():
            if max(percents) in curve:
                models.setdefault(model, {})[METRICS[metric]] = curve[max(percents)]
    figure, (axis,) = panels(1, width=max(6, 1.2 * len(models)), height=3.4)
    draw_dots(axis, models, [metric for metric in METRICS.values() if any(metric in scores for scores in models.values())])
    axis.set(ylabel="score on tasks not seen in training\n(1 = always right)",
             xlabel=f"model, {max(percents)} % of the training rows")
    legend(figure, [axis])
    return figure


def model_volumes(rows):
    metrics = {m: c for m, c in results.accuracy(rows).items() if any(len(curve) > 1 for curve in c.values())}
    if not metrics:
        return None
    order = names_of(metrics.values())
    figure, axes = panels(len(metrics))
    for axis, (metric, curves) in zip(axes, metrics.items()):
        draw_curves(axis, curves, order)
        percents = sorted({percent for curve in curves.values() for percent in curve})
        axis.set(xlabel="training rows used (%)", ylabel=f"{METRICS[metric]} on tasks not seen", xscale="log")
        axis.set_xticks(percents, percents)
        axis.minorticks_off()
    legend(figure, axes)
    return figure


def model_differences(rows):
    metrics = results.differences(rows)
    if not metrics:
        return None
    models = names_of(metrics.values())
    most = max(len(classes) for by_model in metrics.values() for classes in by_model.values())
    figure, axes = panels(len(metrics), width=4.6, height=0.11 * most * len(models) + 1.8, columns=2)
    for axis, (metric, by_model) in zip(axes, metrics.items()):
        classes = names_of(by_model.values())
        for i, model in enumerate(models):
            shift = (i + 0.5) / len(models) * 0.8 - 0.4
            have = [(classes.index(cls) + shift, p) for cls, p in by_model.get(model, {}).items()]
            axis.errorbar([p.value for _, p in have], [y for y, _ in have],
                          xerr=[[p.value - p.low for _, p in have], [p.high - p.value for _, p in have]],
                          **look_of(i), linestyle="", markersize=4, elinewidth=1, label=model)
        axis.axvline(0, color="#000000", linewidth=1)
        axis.set_yticks(range(len(classes)), classes)
        axis.invert_yaxis()
        axis.set(xlabel=f"pacm less the model, {METRICS[metric]}; 95 %", ylabel="operator class")
    legend(figure, axes)
    return figure


def pruning_curves(rows):
    metrics = results.pruning(rows)
    if not metrics:
        return None
    order = names_of({kind: 0 for kind in curves if kind != "all"} for curves in metrics.values())
    figure, axes = panels(len(metrics), width=4.2, columns=2)
    for axis, (metric, curves) in zip(axes, metrics.items()):
        whole = curves.get("all", {}).get(0)
        # Every kind starts from the same training with all rows.
        draw_curves(axis, {k: {**({0: whole} if whole else {}), **c} for k, c in curves.items() if k != "all"}, order)
        if whole:
            goal_line(axis, whole.value, "all rows", linestyle="-")
        axis.axvline(45, color="#000000", linestyle=":", linewidth=1, label="published: 45 % at no loss")
        axis.set(xlabel="training rows removed (%)", ylabel=f"{METRICS[metric]} on tasks not seen")
    legend(figure, axes)
    return figure


def transfer_curves(rows):
    ways = results.transfer(rows)
    if not ways:
        return None
    cases = [(way, metric, curves) for way, metrics in ways.items() for metric, curves in metrics.items()]
    order = names_of(curves for _, _, curves in cases)
    figure, axes = panels(len(cases), width=4.2, columns=2)
    for axis, ((source, target), metric, curves) in zip(axes, cases):
        draw_curves(axis, curves, order)
        axis.set(title=f"{source} to {target}", xlabel="records of each task on the new platform", ylabel=METRICS[metric])
    legend(figure, axes)
    return figure


def transfer_searches(rows):
    ways = results.transfer_searches(rows)
    if not ways:
        return None
    order = names_of(ways.values())
    figure, axes = panels(len(ways), width=4.6, height=3.6, columns=2)
    for axis, ((source, target), curves) in zip(axes, ways.items()):
        draw_curves(axis, curves, order)
        trials = sorted({trial for curve in curves.values() for trial in curve})
        axis.set(title=f"{source} to {target}", xlabel="trials", xscale="log",
                 ylabel="least latency of the pool / best so far\n(1 = the best was found)")
        axis.set_xticks(trials, trials)
        axis.minorticks_off()
    legend(figure, axes)
    return figure


# What the abstract says of these pairs.
PUBLISHED_SPEEDUPS = {("pruner-untrained", "ansor+heuristics"): 2.6, ("moa-pruner", "ansor+heuristics"): 4.82,
                      ("pruner-offline", "tenset-offline"): 4.75, ("pruner-offline", "tlp-offline"): 4.05}
BESIDE = {"speedup_own": "times fewer seconds", "trials_own": "times fewer trials", "final": "times faster at the end"}


def search_gains(rows):
    measures = {prefix: baselines for prefix in BESIDE if (baselines := results.beside_baselines(rows, prefix))}
    if not measures:
        return None
    order = names_of(measures.values())
    figure, axes = panels(len(measures), width=9.5, height=2.7, columns=1)
    for axis, (prefix, baselines) in zip(axes, measures.items()):
        strategies = names_of(baselines.values())
        for i, baseline in enumerate(order):
            for strategy, value in baselines.get(baseline, {}).items():
                x = strategies.index(strategy) - 0.35 + (i + 0.5) * 0.7 / len(order)
                axis.plot(x, value, **look_of(i), markersize=7, linestyle="", label=f"beside {baseline}")
                if prefix == "speedup_own" and (strategy, baseline) in PUBLISHED_SPEEDUPS:
                    axis.plot(x, PUBLISHED_SPEEDUPS[strategy, baseline], "_", color="#000000", markersize=14, markeredgewidth=2,
                              linestyle="", label="published, GPUs, whole budget")
        axis.axhline(1, color="#000000", linewidth=1)
        axis.set_xticks(range(len(strategies)), strategies)
        axis.grid(axis="x", visible=False)
        axis.set(ylabel=BESIDE[prefix], xlabel="strategy")
        if prefix != "final":
            axis.set_yscale("log", base=2)
            axis.yaxis.set_major_formatter("{x:g}")
    legend(figure, axes)
    return figure


def search_curves(rows):
    units = {unit: curves for prefix, unit in (("curve", "trials"), ("curve_s", "seconds"))
             if (curves := results.search_curves(rows, prefix))}
    if not units:
        return None
    order = names_of(units.values())
    figure, axes = panels(len(units), width=6, height=4, columns=2)
    for axis, (unit, curves) in zip(axes, units.items()):
        draw_curves(axis, curves, order)
        axis.set(xlabel=unit, xscale="log", ylabel="least latency of the pool / best so far, medians and quartiles")
    legend(figure, axes)
    return figure


# By claim: name of the picture, its title, what draws it (None where its rows are missing).
FIGURES = {
    "draft_throughput": [("draft_per_s", "Candidates drafted per CPU second", draft_rates)],
    "draft_quality": [
        ("draft_best1", "Best-1 by draft size and operator class", draft_best1),
        ("draft_penalties", "The published analyzers without each penalty", draft_penalties),
    ],
    "ablation": [("ablation", "The default strategy with one thing changed", regrets)],
    "o1": [("o1_speed", "Answers without measuring, and after few trials, beside tuned ones", o1_speeds)],
    "model_accuracy": [
        ("model_accuracy", "Accuracy of the models on held-out tasks", model_bars),
        ("model_volumes", "Accuracy by volume of training data", model_volumes),
        ("model_differences", "Our model less each other, paired", model_differences),
    ],
    "data_pruning": [("data_pruning", "Accuracy after pruning the training data", pruning_curves)],
    "transfer": [
        ("transfer_searches", "Searches on a new platform", transfer_searches),
        ("transfer", "Accuracy on a new platform as its records arrive", transfer_curves),
    ],
    "searches": [
        ("search_gains", "Search time to where a baseline ends, over what the baseline took to it", search_gains),
        ("search_curves", "Searches by trials and seconds", search_curves),
    ],
}
