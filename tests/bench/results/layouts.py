"""The tables of each claim: a function takes {file name: Results} and returns the tables as lists of rows of text, heads first.

A ▼ stands where a rival is ahead of what it is compared with."""

import re
import statistics

import rows as results

BEHIND = " ▼"


def marked(text, is_behind):
    return text + (BEHIND if is_behind else "")


def shown(value):
    """Three significant digits; thousands in full."""
    if value is None:
        return ""
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.3g}" if abs(value) < 100 else f"{value:.0f}"


def share(value):
    return f"{100 * value:.0f} %"


def part(point):
    """A score between 0 and 1, with its range where it has one."""
    spread = f" ({point.low:.3f} to {point.high:.3f})" if point.low != point.high else ""
    return f"{point.value:.3f}{spread}"


def gain(row):
    """"12 x (8 to 25)"; behind below 1, where the baseline was there first."""
    if row is None:
        return ""
    point = results.point(row) if " by seed " in row.note else results.Point(row.value, row.value, row.value)
    spread = f" ({shown(point.low)} to {shown(point.high)})" if point.low != point.high else ""
    return marked(f"{shown(row.value)} x{spread}", row.value < 1)


def end(row):
    """The baseline's latency at its end over ours: "1.035 x (0.990 to 1.008)"."""
    point = results.point(row)
    spread = f" ({point.low:.3f} to {point.high:.3f})" if point.low != point.high else ""
    return marked(f"{row.value:.4g} x{spread}", row.value < 1)


def spread_of(values, show=shown):
    """"median (least to most)"."""
    values = list(values)
    if not values:
        return ""
    middle = statistics.median(values)
    return show(middle) if len(values) == 1 else f"{show(middle)} ({show(min(values))} to {show(max(values))})"


def never(row, seeds):
    """"2 of 3": searches that did not get to the baseline's end; behind if these are most of them."""
    found = re.search(r"(\d+) never", row.note)
    if found is None:
        return ""
    return marked(f"{found[1]} of {len(seeds)}", 2 * int(found[1]) > len(seeds))


def class_of(task):
    return re.split(r"[_\d]", task)[0]


def rate(row):
    """One decimal, and the range over rounds where the file has it."""
    point = results.point(row)
    return f"{row.value:.1f}" + (f" ({point.low:.1f} to {point.high:.1f})" if point.low != point.high else "")


def kernels(files, threads):
    """One table: ours, the strongest peer and the limit, for one number of threads."""
    table = [["operator", "unit", "prunerc", "strongest peer", "ours / peer", "limit", "ours / limit"]]
    for read in files.values():
        cases = dict.fromkeys(name.split("/")[0] for name in read.rows)
        for case in cases:
            by_who = {who: row for who, row in results.values(read.rows, f"{case}/t{threads}").items() if row.value}
            ours, limit = by_who.pop("prunerc", None), by_who.pop("limit", None)
            if ours is None or limit is None or not by_who:
                continue
            peer = max(by_who, key=lambda who: by_who[who].value)
            ratio = ours.value / by_who[peer].value
            table.append([case, ours.unit, rate(ours), f"{rate(by_who[peer])} ({peer})",
                          marked(f"{ratio:.3f}", ratio < 1), f"{limit.value:.1f}", share(ours.value / limit.value)])
    return table


def cpu(files):
    return [("1 thread", kernels(files, 1)), ("2 threads", kernels(files, 2))]


def networks(files):
    """One line for each network and number of threads."""
    table = [["network", "threads", "ours, ms", "better engine, ms", "", "engine / ours", "whole / tasks alone"]]
    for read in files.values():
        for found, row in results.matching(read.rows, r"(.+)/t(\d+)/ratio"):
            model, threads = found[1], found[2]
            mine = read.rows[f"{model}/t{threads}/prunerc"]
            who, best = min(((who, read.rows[f"{model}/t{threads}/{who}"]) for who in ("onnxruntime", "openvino")
                             if f"{model}/t{threads}/{who}" in read.rows), key=lambda item: item[1].value)
            ratio = results.point(row)
            parts = read.rows.get(f"{model}/t{threads}/whole_over_tasks")
            table.append([model, threads, shown(mine.value), shown(best.value), who,
                          marked(f"{row.value:.2f} ({ratio.low:.2f} to {ratio.high:.2f})", row.value < 1),
                          f"{parts.value:.2f}" if parts else ""])
        for found, row in results.matching(read.rows, r"geomean/t(\d+)"):
            table.append([f"geometric mean, {row.note}", found[1], "", "", "", marked(f"{row.value:.2f}", row.value < 1), ""])
    return [("", table)]


TABLE_ROWS = 30  # that a page can be read by


def suite_means(read):
    """Geometric means by class, lowest first; then all classes together."""
    table = [["class", "threads", "operators", "best peer / ours", "aim", "-O1 / tuned"]]
    lines = []
    for found, row in results.matching(read.rows, r"geomean/([^/]+)/t(\d+)/ratio"):
        cls, threads = found[1], found[2]
        untuned = read.rows.get(f"geomean/{cls}/t{threads}/O1-ratio")
        aim = "" if row.goal is None else f"{row.goal:.2f}"
        lines.append((cls == "all", row.value, [cls, threads, row.note, marked(f"{row.value:.3f}", row.value < 1), aim,
                                                f"{untuned.value:.2f}" if untuned and untuned.value else ""]))
    lines.sort(key=lambda line: line[:2])
    return chunks("Geometric means, lowest first", table[0], [cells for _, _, cells in lines])


def chunks(caption, head, lines):
    """Tables of at most TABLE_ROWS lines each."""
    out = []
    for start in range(0, len(lines), TABLE_ROWS):
        part_of = lines[start:start + TABLE_ROWS]
        out.append((f"{caption} ({start + 1} to {start + len(part_of)} of {len(lines)})" if len(lines) > TABLE_ROWS else caption, [head] + part_of))
    return out


def suite_operators(read, threads):
    """Lowest ratios first; before them what has none."""
    lines = []
    for found, row in ((re.fullmatch(rf"([^/]+)/([^/]+)/t{threads}/ratio", name), row) for name, row in read.rows.items()):
        if not found or found[1] == "geomean":
            continue
        get = lambda who: read.rows.get(f"{found[1]}/{found[2]}/t{threads}/{who}", results.Row("", None))
        ours, limit, untuned = get("prunerc"), get("limit"), get("O1-ratio")
        peer = row.note.partition(";")[0] if row.value else ""
        ratio = marked(f"{row.value:.3f} ({results.point(row).low:.3f} to {results.point(row).high:.3f})", row.value < 1) if row.value else "none" + BEHIND
        lines.append((row.value or 0, [found[2], found[1], shown(ours.value) or ours.note, f"{untuned.value:.2f}" if untuned.value else "",
                                       f"{shown(get(peer).value)} ({peer})" if peer else "", ratio,
                                       share(limit.value / ours.value) if limit.value and ours.value else ""]))
    head = ["operator", "class", "ours, µs", "-O1 / tuned", "best peer, µs", "best peer / ours", "of the limit"]
    return chunks(f"{threads} thread{'s' * (threads > 1)}, lowest first", head, [cells for _, cells in sorted(lines, key=lambda line: line[0])])


def suite_calls(read):
    """What a call costs: it adds to every time of who is called that way."""
    table = [["who", "1 thread, µs", "2 threads, µs"]]
    calls = {}
    for found, row in results.matching(read.rows, r"call/[^/]+/t(\d+)/(?!limit)([^/]+)"):
        calls.setdefault(found[2], {})[found[1]] = shown(row.value)
    table += [[who, by.get("1", ""), by.get("2", "")] for who, by in calls.items()]
    return [("A call of an operator on one element", table)] if calls else []


def suite_who(read):
    """Versions, and who did not run what."""
    found, versions = {}, []
    for name, row in read.rows.items():
        if name.startswith("version/"):
            versions.append([name.split("/")[1], "", "version " + row.note])
        elif name.startswith("absent/"):
            found[name.split("/")[1], row.note] = "all"
        elif row.value is None and row.unit == "us":
            key = name.split("/")[3], row.note
            found[key] = found.get(key, 0) + 1
    lines = versions + [[who, str(count), why] for (who, why), count in sorted(found.items())]
    return chunks("Who took part, and who is missing in how many rows", ["who", "missing in rows", "what or why"], lines) if lines else []


def cpu_suite(files):
    tables = []
    for name, read in files.items():
        mine = suite_means(read) + suite_operators(read, 1) + suite_operators(read, 2) + suite_calls(read) + suite_who(read)
        tables += [(f"{caption} (`{name}.json`)" if len(files) > 1 else caption, table) for caption, table in mine]
    return tables


def seconds_to_tvm(files):
    table = [["operator", "machine", "seconds, median", "TVM's", "limit reached, median", "by seed", "TVM's", "never"]]
    for read in files.values():
        for task, row in results.values(read.rows, "seconds_to_tvm_ansor").items():
            reached = read.rows[f"fraction_of_limit/{task}"]
            by_seed = re.search(r"by seed ([\d. ]+);", reached.note)
            missed = never(row, read.seeds)
            # The goal is a fifth of what TVM's search took.
            table.append([task, read.short_machine(), "never" if missed.endswith(BEHIND) else shown(row.value), shown(5 * row.goal),
                          marked(f"{reached.value:.2f}", reached.value < reached.goal),
                          by_seed[1] if by_seed else "", f"{reached.goal:.2f}", missed])
    return [("", [table[0]] + sorted(table[1:], key=lambda line: line[0]))]


def live(files):
    """Searches by the wall clock, one line for each task and strategy on each machine."""
    table = [["machine", "task", "ours", "beside", "trials", "seconds", "seconds, own", "seconds, near", "end, theirs / ours",
              "searching and learning", "never"]]
    for read in files.values():
        for found, row in results.matching(read.rows, r"live_trials_to_([^/]+?)/(.+)"):
            other, task = found[1], found[2]
            if other.endswith(("_own", "_near")):
                continue
            get = lambda name: read.rows.get(f"{name}/{task}")
            name, _, strategy = task.partition("@")
            first, final = ("pruner", "live_final") if other == "ansor" else ("pruner-offline", f"live_final_{other}")
            table.append([read.short_machine(), name, strategy or first, other, gain(row),
                          gain(get(f"live_time_to_{other}")), gain(get(f"live_time_to_{other}_own")),
                          gain(get(f"live_time_to_{other}_near")), end(get(final)), share(get("live_overhead_fraction").value),
                          never(row, read.seeds)])
    return [("", table)]


def o1(files):
    by_class = {}
    for read in files.values():
        for task, row in results.values(read.rows, "o1_ratio").items():
            by_class.setdefault(class_of(task), {}).setdefault(read.short_machine(), []).append(row.value)
    machines = [read.short_machine() for read in files.values()]
    table = [["class", "operators"] + machines]
    for cls, found in by_class.items():
        table.append([cls, str(len(found[machines[0]]))] + [spread_of(found[m], lambda v: f"{v:.2f}") for m in machines])
    good = [read.rows["o1_good"] for read in files.values()]
    table.append(["within 1.5 x", good[0].unit] + [shown(row.value) for row in good])
    return [("Latency without measuring over the tuned one, median (least to most); below 1 the tuned kernel is slower", table)]


def draft_throughput(files):
    table = [["target, operator", "machine", "drafted, million/s: median of sketches (least to most)", "nearly exhausted sketches",
              "a program for each, 1/s", "50,000 candidates, s"]]
    for read in files.values():
        million = lambda v: f"{v / 1e6:.2f}"
        for case, sketches in results.rates(read.rows).items():
            programs = sketches.pop("programs", None)
            full = [v for name, v in sketches.items() if "exhausted" not in name]
            spent = [v for name, v in sketches.items() if "exhausted" in name]
            whole = read.rows.get(f"draft_50000_s/{case}")
            table.append([case, read.short_machine(), spread_of(full, million), spread_of(spent, million), shown(programs),
                          shown(whole.value) if whole else ""])
    return [("", [table[0]] + sorted(table[1:], key=lambda line: line[0]))]


def beside_rivals(curves, size, ours, rivals):
    """Cells of `ours` and of each rival; ▼ where a rival is ahead as printed."""
    have = [curves[who][size] for who in rivals if size in curves.get(who, {})]
    mine = curves[ours][size]
    behind = any(f"{p.value:.3f}" > f"{mine.value:.3f}" for p in have)
    others = [part(curves[who][size]) if size in curves.get(who, {}) else "" for who in rivals]
    return [marked(part(mine), behind)] + others


def draft_quality(files):
    (read,) = files.values()
    rivals = ["release", "paper", "random"]
    tables = []
    for size in (128, 512):
        table = [["class", "prunerc"] + rivals]
        for cls, curves in results.draft_quality(read.rows).items():
            table.append([cls] + beside_rivals(curves, size, "prunerc", rivals))
        tables.append((f"Best of {size} drafted (1: the pool's best), with a 95 % interval", table))
    spaces = [["class", "prunerc"] + rivals]
    for cls, row in results.values(read.rows, "space_quality").items():
        middle = {who: float(value) for who, value in re.findall(rf"(\w+) ({results.NUMBER}) \(", row.note)}
        behind = min(middle[who] for who in rivals) < middle["prunerc"]
        spaces.append([cls, marked(shown(middle["prunerc"]), behind)] + [shown(middle[who]) for who in rivals])
    tables.append(("Median latency of the 128 drafted, in units of the best", spaces))
    without = [["analyzer", "penalty", "best of 512 without it", "with it"]]
    for analyzer, parts in results.penalties(read.rows).items():
        for name, pair in parts.items():
            left_out, whole = (f"{value:.3f}" for value in pair)
            without.append([analyzer, name, left_out, marked(whole, left_out > whole)])
    return tables + [("The published analyzers with one penalty left out, means over the classes", without)]


def t4(files):
    """One table for each file and class of pools; ▼ where an analyzer that knows no times of the GPUs orders better than ours. What other
    GPUs' times say stands in the first file only: it does not depend on the analyzer."""
    tables, columns, first = [], ["spearman", "best1", "best8", "best64"], next(iter(files), "")
    for name, read in files.items():
        pools = {}
        for found, row in results.matching(read.rows, r"(spearman|best\d+)/([^/]+)/([^/]+)"):
            pools.setdefault(found[2], {}).setdefault(found[3], {})[found[1]] = row.value
        for cls in dict.fromkeys(pool.split("_")[0] for pool in pools):
            head, table = ["GPU", "order by", "rank correlation", "best of the first", "of the first 8", "of the first 64"], []
            for pool in (p for p in pools if p.split("_")[0] == cls):
                methods = pools[pool]
                rivals = [methods[m] for m in ("random", "roofline", "paper", "release") if m in methods]
                for method, scores in methods.items():
                    if method.startswith("from_") and name != first:
                        continue
                    behind = lambda c: method in ("ours", "fitted") and any(r.get(c, -1) > scores[c] for r in rivals)
                    table.append([pool.split("_", 1)[1], method.replace("from_", "times of ")] +
                                 [marked(f"{scores[c]:.3f}", behind(c)) if c in scores else "" for c in columns])
            tables += chunks(f"`{name}.json`, {cls}", head, table)
    return tables


def ablation(files):
    (read,) = files.values()
    means = results.values(read.rows, "regret")
    pools = {}
    for found, row in results.matching(read.rows, r"regret/([^/]+)/([^/]+)"):
        pools.setdefault(found[2], {})[found[1]] = row.value
    table = [["variant", "mean log2(best so far / best)", "pools where it is worse", "better", "range of the difference"]]
    for variant, row in means.items():
        differences = [value - pools["all"][pool] for pool, value in pools[variant].items()]
        worse, better = sum(d > 0 for d in differences), sum(d < 0 for d in differences)
        table.append([variant, marked(f"{row.value:.4f}", row.value < means["all"].value), str(worse), str(better),
                      "" if variant == "all" else f"{min(differences):+.3f} to {max(differences):+.3f}"])
    return [("▼ marks what does better when a part is left out", table)]


def replays(files):
    (read,) = files.values()
    table = [["operator", "trials", "seconds", "trials, own", "seconds, own", "seconds, near", "end, of the pool's best", "ansor's",
              "searching and learning", "never"]]
    for task, row in results.values(read.rows, "trials_to_ansor").items():
        get = lambda name: read.rows[f"{name}/{task}"]
        ours, theirs = (f"{get(name).value:.3f}" for name in ("pruner_final", "ansor_final"))
        table.append([task, gain(row), gain(get("time_to_ansor")), gain(get("trials_to_ansor_own")), gain(get("time_to_ansor_own")),
                      gain(get("time_to_ansor_near")), marked(ours, ours < theirs), theirs,
                      share(get("overhead_fraction").value), never(row, read.seeds)])
    return [("Medians over seeds", table)]


def end_to_end(files):
    pairs = [["ours", "beside", "seconds", "geometric", "trials", "geometric", "seconds, own", "seconds, near",
              "end, theirs / ours", "never"]]
    finals, overheads, tasks = {}, {}, {}
    for read in files.values():
        for found, row in results.matching(read.rows, r"speedup/([^/]+)_vs_([^/]+)"):
            pair = f"{found[1]}_vs_{found[2]}"
            trials, own, near, final = (read.rows[f"{p}/{pair}"] for p in ("trials", "speedup_own", "speedup_near", "final"))
            geometric = lambda r: re.search(rf"geometric ({results.NUMBER})", r.note)[1] + " x"
            pairs.append([found[1], found[2], gain(row), geometric(row), gain(trials), geometric(trials), gain(own), gain(near),
                          end(final), re.search(r"(\d+ of \d+) runs never", row.note)[1]])
            for task, single in results.values(read.rows, f"speedup/{pair}").items():
                tasks.setdefault(task, {})[f"{found[1]} / {found[2]}"] = gain(single)
        for task, by_strategy in results.final_latencies(read.rows).items():
            finals.setdefault(task, {}).update(by_strategy)
        for found, row in results.matching(read.rows, r"overhead/([^/]+)/(.+)"):
            overheads.setdefault(found[1], []).append(row.value)
    strategies = list(dict.fromkeys(s for by in finals.values() for s in by))
    columns = list(dict.fromkeys(c for by in tasks.values() for c in by))
    ends = [["operator"] + strategies]
    for task, by in finals.items():
        best = max(by.values())
        ends.append([task] + [marked(f"{by[s]:.3f}", f"{by[s]:.3f}" < f"{best:.3f}") if s in by else "" for s in strategies])
    ends.append(["searching and learning"] + [spread_of(overheads[s], share) for s in strategies])
    by_operator = [["operator"] + columns] + [[task] + [by.get(c, "") for c in columns] for task, by in tasks.items()]
    return [("Means over eight operators", pairs), ("Seconds by operator", by_operator),
            ("End, of the pool's best, medians over seeds; ▼ where another strategy ends faster", ends)]


OURS = ("pacm", "verifier", "analyzer")  # of the models; the others are rivals


def model_accuracy(files):
    scores, lines = {}, {}
    for read in files.values():
        for metric, by_model in results.accuracy(read.rows).items():
            for model, curve in by_model.items():
                scores.setdefault(metric, {}).setdefault(model, {}).update(curve)
                lines.update(((percent, model), None) for percent in curve)
    table = [["model", "rows", "top-1", "top-5", "pairwise"]]
    for percent, model in sorted(lines, key=lambda line: -line[0]):
        cells = []
        for metric in ("top1", "top5", "pairwise"):
            point = scores[metric].get(model, {}).get(percent)
            rivals = [c[percent].value for m, c in scores[metric].items() if percent in c and m not in OURS]
            behind = point and model in OURS and f"{max(rivals, default=0):.3f}" > f"{point.value:.3f}"
            cells.append(marked(part(point) if point else "", behind))
        table.append([model, f"{percent} %"] + cells)
    less = [["`pacm` less", "file", "top-1 (95 %)", "pairwise (95 %)", "classes where it is surely behind in top-1"]]
    for file, read in files.items():
        found = results.differences(read.rows)
        for model, classes in found.get("top1", {}).items():
            points = [classes["all"], found["pairwise"][model]["all"]] if "all" in classes else []
            if points:
                worse = [cls for cls, p in classes.items() if p.high < 0]
                cells = [marked(f"{p.value:+.3f} ({p.low:+.3f} to {p.high:+.3f})", p.value < 0) for p in points]
                less.append([model, file] + cells + [", ".join(worse)])
    return [("Means over cases, with the range over seeds", table), ("Paired differences", less)]


def as_rows(files):
    table = [["row", "value", "unit", "aim", "note"]]
    for read in files.values():
        table += [[name, shown(row.value), row.unit, shown(row.goal), row.note] for name, row in read.rows.items()]
    return [("", table)]


def data_pruning(files):
    (read,) = files.values()
    found = results.pruning(read.rows)
    table = [["kept", "rows left out", "pairwise", "top-1"]]
    whole = {metric: found[metric]["all"][0] for metric in ("pairwise", "top1")}
    lines = sorted({(percent, kind) for kind, curve in found["pairwise"].items() for percent in curve})
    for percent, kind in lines:
        points = {metric: found[metric][kind][percent] for metric in whole}
        table.append([kind, f"{percent} %"] + [marked(part(p), p.value < whole[metric].value) for metric, p in points.items()])
    return [("▼ marks a loss beside all rows", table)]


MINE = ("warm", "moa")  # of the ways to adapt


def transfer(files):
    (read,) = files.values()
    scores, searches = results.transfer(read.rows), results.transfer_searches(read.rows)
    tables = []
    for way, metrics in scores.items():
        columns = {"top-1, 64 records": {m: c[64] for m, c in metrics["top1"].items()},
                   "pairwise, 64 records": {m: c[64] for m, c in metrics["pairwise"].items()},
                   "search, 10 trials": {m: c[10] for m, c in searches[way].items()},
                   "search, 150 trials": {m: c[150] for m, c in searches[way].items()}}
        table = [["method"] + list(columns)]
        for method in columns["pairwise, 64 records"]:
            cells = []
            for column in columns.values():
                best = max(p.value for m, p in column.items() if m not in MINE)
                behind = method in MINE and f"{best:.3f}" > f"{column[method].value:.3f}"
                cells.append(marked(part(column[method]), behind))
            table.append([method] + cells)
        tables.append((f"{way[0]} to {way[1]}; `warm` and `moa` are ours", table))
    return tables


LAYOUTS = {
    "cpu-zen5-2core": cpu, "cpu_suite": cpu_suite, "network": networks, "tuned_network": networks, "seconds_to_tvm": seconds_to_tvm, "resnet50": live, "search_live": live, "end_to_end": end_to_end,
    "search_vs_ansor": replays, "o1": o1, "draft_throughput": draft_throughput, "draft_quality": draft_quality, "t4": t4, "ablation": ablation,
    "model_accuracy": model_accuracy, "model_speed": as_rows, "data_pruning": data_pruning, "transfer": transfer,
    "schedule-zen4-2core": as_rows, "robust": as_rows,
}
