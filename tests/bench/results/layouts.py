"""The tables of each claim: a function takes {file name: Results} and returns the tables as lists of rows of text, heads first.

A ▼ stands where a rival is ahead of what it is compared with."""

import re
import statistics

import published
import rows as results
from cells import BEHIND, chunks, end, gain, marked, over_seeds, part, quartiles, ranged, rate, share, shared, shown, spread_of


def kernels(files, threads):
    """One table: ours, the strongest peer and the limit, for one number of threads."""
    table = [["operator", "unit", "prunerc", "strongest peer", "ours / peer", "limit", "ours / limit"]]
    for read in files.values():
        cases = dict.fromkeys(name.split("/")[0] for name in read.rows)
        for case in cases:
            by_who = {who: row for who, row in results.values(read.rows, f"{case}/t{threads}").items() if row.value}
            ours, limit = by_who.pop("prunerc", None), by_who.pop("limit", None)
            if limit is None or not by_who:
                continue
            peer = max(by_who, key=lambda who: by_who[who].value)
            if ours is None:
                if f"{case}/t{threads}/prunerc" in read.rows:
                    table.append([case, by_who[peer].unit, "none", f"{rate(by_who[peer])} ({peer})", "none" + BEHIND, f"{limit.value:.1f}", ""])
                continue
            ratio = ours.value / by_who[peer].value
            table.append([case, ours.unit, rate(ours), f"{rate(by_who[peer])} ({peer})",
                          marked(f"{ratio:.3f}", ratio < 1), f"{limit.value:.1f}", share(ours.value / limit.value)])
    return table


def cpu(files):
    return [("1 thread", kernels(files, 1)), ("2 threads", kernels(files, 2))]


def networks(files):
    """One table for each number of threads, one line for each network."""
    out = []
    for threads in sorted({found[1] for read in files.values() for found in map(re.compile(r".+/t(\d+)/prunerc").fullmatch, read.rows) if found}, key=int):
        table = [["network", "ours, ms", "better engine, ms", "", "engine / ours", "whole / tasks alone"]]
        for read in files.values():
            table += networks_at(read, threads)
        out.append(("1 thread" if threads == "1" else f"{threads} threads", table))
    return out


def networks_at(read, threads):
    lines = []
    for found, row in results.matching(read.rows, rf"(.+)/t{threads}/ratio"):
        rows = {who: read.rows.get(f"{found[1]}/t{threads}/{who}") for who in ("prunerc", "onnxruntime", "openvino", "whole_over_tasks")}
        who, best = min(((who, rows[who]) for who in ("onnxruntime", "openvino") if rows[who]), key=lambda item: item[1].value)
        ratio = results.point(row)
        lines.append([found[1], shared(shown(rows["prunerc"].value), rows["prunerc"]), shared(shown(best.value), best), who,
                      marked(shared(f"{row.value:.2f} ({ratio.low:.2f} to {ratio.high:.2f})", row), row.value < 1),
                      f"{rows['whole_over_tasks'].value:.2f}" if rows["whole_over_tasks"] else ""])
    for name, row in read.rows.items():
        if row.value is None and name.endswith(f"/t{threads}/prunerc"):
            lines.append([name.split("/")[0], row.note, "", "", "none" + BEHIND, ""])
    for found, row in results.matching(read.rows, rf"geomean/t{threads}"):
        lines.append([f"geometric mean, {row.note}", "", "", "", marked(f"{row.value:.2f}", row.value < 1), ""])
    return lines


def quantised_networks(files):
    """The same with what is known of the outputs in place of the tasks."""
    out = []
    for caption, table in networks(files):
        table[0][-1] = "outputs"
        threads = caption.split()[0]
        for line in table[1:]:
            notes = [row.note for read in files.values() for name, row in read.rows.items() if name == f"{line[0]}/t{threads}/prunerc"]
            said = notes[0].partition("outputs ")[2] if notes else ""
            shares = [float(share) for share in re.findall(r"([\d.]+(?:e[+-]\d+)?)% of its largest", said)]
            of = f" ({max(shares):g} % of the largest value{f', the most of {len(shares)} outputs' if len(shares) > 1 else ''})" if shares else ""
            head, _, tail = said.partition(" (")
            line[-1] = said if not shares else head.replace("as ONNX Runtime's within what roundings change", "within") + of + tail.partition(")")[2]
        out.append((caption, table))
    return out


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


def suite_operators(read, threads):
    """Lowest ratios first; before them what has none."""
    lines = []
    for found, row in ((re.fullmatch(rf"([^/]+)/([^/]+)/t{threads}/ratio", name), row) for name, row in read.rows.items()):
        if not found or found[1] == "geomean":
            continue
        get = lambda who: read.rows.get(f"{found[1]}/{found[2]}/t{threads}/{who}", results.Row("", None))
        ours, limit, untuned = get("prunerc"), get("limit"), get("O1-ratio")
        peer = row.note.partition(";")[0] if row.value else ""
        ratio = "none" + BEHIND
        if row.value:
            ratio = marked(shared(f"{row.value:.3f} ({results.point(row).low:.3f} to {results.point(row).high:.3f})", row), row.value < 1)
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


def rival_means(read):
    """A line for each rival and number of trials."""
    table = [["rival", "trials", "operators", "its time / ours", "median operator", "ours behind on", "seconds to its end / ours", "near", "without importing",
              "ours never"]]
    for found, row in results.matching(read.rows, r"geomean/([^/@]+)@(\d+)"):
        who, trials = found[1], found[2]
        said = re.search(r"(\d+ of \d+) operators, ours behind on (\d+); median ([\d.]+)", row.note)
        if said is None:
            raise results.Damaged(f"{row.name} is of an older benchmark: tests/bench/rival/judge.py makes the rows anew")
        operators, behind, middle = said.groups()
        reach = [read.rows.get(f"geomean_reach_{kind}/{who}@{trials}") for kind in ("own", "near", "ready")]
        cells = [marked(f"{shown(one.value)} x", one.value < 1) if one else "" for one in reach]
        table.append([who, trials, operators, marked(part(results.point(row)), row.value < 1), marked(middle, float(middle) < 1), behind] + cells +
                     [re.search(r"(\d+ of \d+) of ours never", reach[0].note)[1]])
    return table


def rivals(files):
    """Means by rival and trials; then each operator."""
    tables = []
    for name, read in files.items():
        tables.append((f"`{name}.json`, geometric means (in brackets those of each seed), {read.short_machine()}", rival_means(read)))
        found, short = {}, [["operator", "who", "trials", ""]]
        for match, row in results.matching(read.rows, r"speed/([^/]+)/([^/@]+)@(\d+)"):
            put = found.setdefault((int(match[3]), match[1]), {})
            put[match[2]] = (row, read.rows.get(f"ratio/{match[1]}/{match[2]}@{match[3]}"), read.rows[f"seconds/{match[1]}/{match[2]}@{match[3]}"])
        for match, row in ((re.fullmatch(r"speed/([^/]+)/([^/@]+)@(\d+)", name), row) for name, row in read.rows.items()):
            if match and (words := re.search(r"\d+ (failed|made fewer|trials failed).*", row.note)):
                short.append([match[1], match[2], match[3], words[0]])
        who = [name for name in ("tvm", "ansor", "optuna", "random", "pruner-bare") if any(name in each for each in found.values())]
        table = [["operator", "trials", "ours, us", "s"] + [head for name in who for head in (f"{name} / ours", "s")]]
        for (trials, op), each in sorted(found.items()):
            if "pruner" not in each:
                continue
            cells = [op, str(trials), shared(shown(each["pruner"][0].value), each["pruner"][0]), shown(each["pruner"][2].value)]
            for name in who:
                ratio, seconds = (each[name][1], each[name][2]) if name in each else (None, None)
                cells += [marked(shared(part(over_seeds(ratio)), ratio), ratio.value < 1) if ratio else "", shown(seconds.value) if seconds else ""]
            table.append(cells)
        tables += chunks("Each operator (in brackets the range over seeds); s: seconds of the search", table[0], table[1:])
        if len(short) > 1:
            tables += chunks("Searches that ended, failed or had trials that failed before their budget was spent", short[0], short[1:])
    return tables


def gpu(files):
    """What the device can do and what was right on it; each operator beside the rivals; hand-written schedules."""
    tables = []
    for name, read in files.items():
        device = [["on the device", "", "unit"]]
        device += [[row.note, shown(row.value), "right"] for row in read.rows.values() if row.name.endswith("_right")]
        device += [[found[1], shown(row.value), row.unit] for found, row in results.matching(read.rows, r"limit/(.+)")]
        tables.append((f"`{name}.json`, {read.machine}", device))
        times = {}
        for found, row in results.matching(read.rows, r"time/([^/]+)/(.+)"):
            times.setdefault(found[1], {})[found[2]] = row
        table = [["operator", "ours, us", "", "-O1", "torch", "compile", "best rival / ours", "/ -O1"]]
        ratios, first = [], []
        for op, each in times.items():
            rivals = [each[who].value for who in ("torch", "compile") if who in each]
            if not rivals and set(each) == {"prunerc"}:
                continue  # stands below
            ours = each.get("prunerc")
            ratio = min(rivals) / ours.value if rivals and ours else None
            cell = {who: ranged(results.point(row)) for who, row in each.items()}
            table.append([op, cell.get("prunerc", "none"), ours.note.split("; ")[-1] if ours else ""]
                         + [cell.get(who, "") for who in ("o1", "torch", "compile")]
                         + [marked(f"{ratio:.3f}", ratio < 1) if ratio else "none" + BEHIND if rivals else ""])
            ratios += [ratio] if ratio else []
            instant = min(rivals) / each["o1"].value if rivals and "o1" in each else None
            table[-1].append(marked(f"{instant:.3f}", instant < 1) if instant else "")
            first += [instant] if instant else []
        if ratios:
            both = [each for each in (ratios, first) if each]
            table.append([f"geometric mean of {len(ratios)} of {len(table) - 1}"] + [""] * 5 + [marked(f"{mean:.3f}", mean < 1) for mean in map(statistics.geometric_mean, both)])
            middle = [(statistics.median(each), sum(ratio < 1 for ratio in each)) for each in both]
            table.append(["median"] + [""] * 5 + [marked(f"{one:.3f}, behind on {count}", one < 1) for one, count in middle])
        if len(table) > 1:
            tables.append(("Times of operators, us", table))
        hand = [[op, shown(each["prunerc"].value), each["prunerc"].note] for op, each in times.items() if set(each) == {"prunerc"}]
        hand += [[found[1], shown(row.value), "tuned, the search's own time; " + row.note]
                 for found, row in results.matching(read.rows, r"tuned/(.+)") if found[1] not in times]
        if hand:
            tables.append(("Without a rival in that run", [["", "us", ""]] + hand))
    return tables


def cubins(files):
    """Rules and planted violations; then the main loops."""
    tables = []
    for read in files.values():
        rules = [["rule", "planted", "found"]]
        for found, row in results.matching(read.rows, r"violations_caught/(.+)"):
            rules.append([found[1], f"{row.goal:.0f}", marked(f"{row.value:.0f}", row.value < row.goal)])
        rules.append([f"of {read.rows['linted'].value:.0f} kernels as they are", "", f"{read.rows['violations'].value:.0f} {read.rows['violations'].note}".strip()])
        loops = [[found[1], found[2], f"{row.value:.0f} %", row.note] for found, row in results.matching(read.rows, r"sass/([^/]+)/(.+)")]
        tables.append(("Rules", rules))
        tables += chunks("Main loops", ["operator", "target", "multiply-adds", ""], loops)
    return tables + [("Kernels of others", published.PUBLISHED_KERNELS)]


def net_search(files):
    """Searches of a net by the wall clock, one line for each but the baseline on each machine."""
    table = [["machine", "who", "seconds, own", "seconds, near", "trials, own", "trials, near", "seconds, whole budget", "end, ansor's / its",
              "whole search, of ansor's seconds", "searching and learning", "never"]]
    for read in files.values():
        for who, own in results.values(read.rows, "net_time_own").items():
            get = lambda name: read.rows[f"net_{name}/{who}"]
            table.append([read.short_machine(), who] + [gain(get(name)) for name in ("time_own", "time_near", "trials_own", "trials_near", "time")]
                         + [end(get("final")), marked(f"{get('wall').value:.3f}", get("wall").value > 1), share(get("overhead").value),
                            re.search(r"(\d+ of \d+) searches never", own.note)[1]])
    return [("", table)]


def o1(files):
    """A table of each file's operators."""
    tables = []
    for name, read in files.items():
        table = [["operator", "-O1", "search of 8 trials", "of the first 64"]]
        names = ("o1_speed", "first8", "first64")
        cells = lambda found: [marked(f"{row.value:.3f} ({results.point(row).low:.3f} to {results.point(row).high:.3f})"
                                      if " to " in row.note else f"{row.value:.3f}", row.goal is not None and row.value < row.goal) for row in found]
        table += [[task] + cells(read.rows[f"{column}/{task}"] for column in names) for task in results.values(read.rows, "o1_speed")]
        means = [read.rows[f"geomean/{column}"] for column in names]
        table += [["geometric mean"] + cells(means), ["asked for"] + [f"{row.goal:.3f}" for row in means]]
        tables += chunks(f"`{name}.json`: speed, of the tuned kernel's; brackets: quartiles of turns, of means the least and the most", table[0], table[1:])
    return tables


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
        tables.append((f"Best of {size} drafted (1: the pool's best), with a 95 % interval over resampled candidates, not operators", table))
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
        known = [m for m in ("random", "roofline", "paper", "release", "ours", "fitted") if all(m in scores for scores in pools.values())]
        middle = [["order by", "rank correlation", "best of the first", "of the first 8", "of the first 64"]]
        middle += [[m] + [f"{statistics.median(found):.3f} ({min(found):.3f} to {max(found):.3f})" if found else "" for found in
                          ([scores[m][c] for scores in pools.values() if c in scores[m]] for c in columns)] for m in known]
        tables.append((f"`{name}.json`, medians of {len(pools)} pools (least to most)", middle))
        for cls in dict.fromkeys(pool.split("_")[0] for pool in pools):
            head, table = ["pool", "order by", "rank correlation", "best of the first", "of the first 8", "of the first 64"], []
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


def gains(read, is_equal):
    """Ours beside each baseline: those that both began with the same, or the others."""
    table = [["search", "beside", "seconds, own", "seconds, near", "trials, own", "trials, near", "seconds, whole budget", "trials, whole budget",
              "end, theirs / ours", "never"]]
    for found, own in results.matching(read.rows, r"speedup_own/([^/]+)_vs_([^/]+)"):
        if ("unequal start" in own.note) == is_equal:
            continue
        get = lambda name: read.rows[f"{name}/{found[1]}_vs_{found[2]}"]
        times = lambda row: marked(quartiles(results.stated(row)) + " x", row.value < 1)
        table.append([found[1], found[2], times(own), times(get("speedup_near")), times(get("trials_own")), times(get("trials_near")), times(get("speedup")),
                      times(get("trials")), marked(f"{get('final').value:.3f} x", get("final").value < 0.9995),
                      re.search(r"(\d+ of \d+) searches never", own.note)[1]])
    return table


def search_curves(read, prefix, unit):
    """Medians of the pool's best / best so far, by strategy; ▼ below the best of the column."""
    curves = results.search_curves(read.rows, prefix)
    columns = sorted({at for curve in curves.values() for at in curve})
    best = {at: max(curve[at].value for curve in curves.values()) for at in columns}
    return [["strategy"] + [f"{at:g} {unit}" for at in columns]] + [
        [name] + [marked(quartiles(curve[at], lambda v: f"{v:.3f}"), f"{curve[at].value:.3f}" < f"{best[at]:.3f}") for at in columns]
        for name, curve in curves.items()]


def model_ablation(files):
    (read,) = files.values()
    table = [["model", "left out", "Top-1 without it", "with it", "difference (95 %)", "pairwise without it", "with it", "difference (95 %)"]]
    for found, _ in results.matching(read.rows, r"top1/([^/]+)/all_less_(.+)"):
        cells = [found[1], found[2].replace("no_", "").replace("squared_error", "LambdaRank")]
        for metric in ("top1", "pairwise"):
            get = lambda name, metric=metric: read.rows[f"{metric}/{found[1]}/{name}"]
            difference = get("all_less_" + found[2])
            point = results.point(difference)
            cells += [part(results.point(get(found[2]))), f"{get('all').value:.3f}",
                      marked(f"{difference.value:+.3f} ({point.low:+.3f} to {point.high:+.3f})", difference.value <= 0)]
        table.append(cells)
    return [("▼ marks what does no worse without", table)]


def frozen_models(files):
    table = [["model", "seeds", "Top-1", "Top-5", "pairwise", "built-in less it: Top-1", "pairwise"]]
    differ = lambda row: "" if row is None else marked(f"{row.value:+.3f} ({results.point(row).low:+.3f} to {results.point(row).high:+.3f})", row.value < 0)
    seen = set()  # what learns nothing from a file's rows is the same in all
    for read in files.values():
        for found, top1 in results.matching(read.rows, r"frozen/top1/((?!built-in_less_)[^/]+)"):
            if found[1] in seen:
                continue
            seen.add(found[1])
            get = lambda metric, name=found[1], read=read: read.rows.get(f"frozen/{metric}/{name}")
            scores = [part(results.point(row)) for row in (top1, get("top5"), get("pairwise"))]
            seeds = str(len(read.seeds)) if "@" in found[1] else ""
            table.append([found[1], seeds] + scores + [differ(get(metric, "built-in_less_" + found[1])) for metric in ("top1", "pairwise")])
    rows = next(iter(files.values())).rows["frozen/rows"]
    return [(f"{rows.value:.0f} rows {rows.note}; 95 % over resampled operators", table)]


def searches(files):
    (read,) = files.values()
    overheads = [["strategy", "searching and learning"]] + [
        [found[1], quartiles(results.point(row), share)] for found, row in results.matching(read.rows, r"overhead/([^/]+)")]
    unequal = gains(read, False)
    return [("Times fewer than a baseline with an equal start, geometric means over operators (quartiles)", gains(read, True)),
            *chunks("The same where ours, or the baseline, began with more", unequal[0], unequal[1:]),
            ("By trials: the pool's best / best so far, medians over operators and seeds (quartiles)", search_curves(read, "curve", "trials")),
            ("By seconds, likewise", search_curves(read, "curve_s", "s")),
            ("Share of a search's seconds, medians (least to most)", overheads)]


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
    table = []
    for read in files.values():
        for name, row in read.rows.items():
            table.append([name, shown(row.value), row.unit, shown(row.goal) + (", missed" if row.meets_goal() is False else ""), row.note])
    return chunks("All rows", ["row", "value", "unit", "aim", "note"], table)


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
        most = max(next(iter(metrics["pairwise"].values())))  # records of each task
        columns = {f"top-1, {most} records": {m: c[most] for m, c in metrics["top1"].items()},
                   f"pairwise, {most} records": {m: c[most] for m, c in metrics["pairwise"].items()},
                   "search, 10 trials": {m: c[10] for m, c in searches[way].items()},
                   "search, 150 trials": {m: c[150] for m, c in searches[way].items()}}
        table = [["method"] + list(columns)]
        for method in columns[f"pairwise, {most} records"]:
            cells = []
            for column in columns.values():
                best = max(p.value for m, p in column.items() if m not in MINE)
                behind = method in MINE and f"{best:.3f}" > f"{column[method].value:.3f}"
                cells.append(marked(part(column[method]), behind))
            table.append([method] + cells)
        tables.append((f"{way[0]} to {way[1]}; `warm` and `moa` are ours", table))
    return tables


LAYOUTS = {
    "cpu-zen5-2core": cpu, "cpu_suite": cpu_suite, "network": networks, "tuned_network": networks, "quantised_network": quantised_networks, "rival": rivals, "gpu": gpu, "cubins": cubins, "analyzer_h100": t4, "resnet50": net_search, "searches": searches,
    "o1": o1, "draft_throughput": draft_throughput, "draft_quality": draft_quality, "t4": t4, "frozen_models": frozen_models, "model_ablation": model_ablation, "ablation": ablation,
    "model_accuracy": model_accuracy, "model_speed": as_rows, "data_pruning": data_pruning, "transfer": transfer,
    "algebra_find": as_rows, "algebra_prune": as_rows, "algebra_bound": as_rows, "algebra_speed": as_rows, "algebra_networks": as_rows, "algebra_peers": cpu_suite, "schedule-zen4-2core": as_rows, "robust": as_rows,
}
