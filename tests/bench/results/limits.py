"""The page of what the results do not show. Counts and spreads are those of the JSON files; the rest is text."""

import re
import statistics

import claims
import rows as results

TEMPLATE = """# What these results show, and what they do not

Made by `tests/bench/results/tables.py` from the JSON files beside it; the results are in `README.md`.

**Machines.** {num_files} files; those of CPUs are of virtual machines with two cores. What was measured before all benchmarks named a machine
alike may have other rows for the same one:

{machines}

No kernel of a CPU was measured on more cores, on a laptop, on Arm, or on a machine that nobody else shares.

{gpus} Elsewhere programs for GPUs are compiled by NVRTC and run on the host, in six orders and under a race checker
(`./dev bench gpu_host`): that says that they are right, not that they are fast. What the analyzer says of other GPUs is judged by times that
others published, of kernels that are not ours.

**Noise.** {noise} A difference below that between two single runs says nothing; ratios are taken round by round, in turns, for that reason.

**Seeds.** {few_seeds} of {num_files} files are of fewer than three seeds; {history} were given date, commit and seeds afterwards, from the
repository's history. A range over three seeds is no interval.

**Development and judgement.** Defaults, features and recipes were chosen by the pools in `tests/data/pools`. What is measured on these pools
(`searches`, `draft_quality`, `ablation`, `model_accuracy`, `transfer`, `data_pruning`) is how well the choice fits them, and favours ours. What
judges is `tests/data/frozen`: lists that were committed before anything of them was measured. `rival` and `frozen_models` are the first looks at
them, `o1` a later one. They are {num_frozen} operators, small and dense, f32, one thread, and say nothing of others.

**Replay.** A replayed search proposes only what was recorded: the best of a pool is not the best of the space, and every search ends near it.

**Rivals.** In `rival`, `tvm` and `ansor` are TVM's own. Elsewhere `ansor`, `metaschedule`, `tenset-offline`, `tlp-offline` and the `*-paper`
strategies are our implementations, in our space, by the published settings (`costmodel/pruner/ORIGINAL.md` lists what differs). They tell
strategies apart, not systems. Engines and libraries are measured as their wheels or packages come; {versions}.

**Not measured yet**: {unmeasured}.

So a reader may conclude that on such machines, for operators like these, the compiler's kernels stand to the named versions of the named
libraries as the tables say, losses included; that one strategy needs fewer trials than another in this space where the
quartiles of its curves do not overlap; and nothing about other GPUs, about larger machines, or about how much better either would do with more time than it had.
"""


def spreads(files, ours):
    """Of each time with rounds: the slowest round over the fastest, less one."""
    out = []
    for read in files.values():
        for row in read.rows.values():
            if re.search(r"/t\d+/", row.name) is None or row.name.endswith("ratio") or row.name.endswith("/prunerc") != ours:
                continue
            found = re.match(rf"({results.NUMBER}) to ({results.NUMBER})[^;]* rounds", row.note)
            if found and float(found[1]) > 0:
                out.append(float(found[2]) / float(found[1]) - 1)
    return sorted(out)


def noise(files):
    texts = []
    for who, ours in (("our kernels and networks", True), ("the others'", False)):
        found = spreads(files, ours)
        if found:
            texts.append(f"of {who} {100 * statistics.median(found):.0f} % (median of {len(found)}; one in ten: "
                         f"{100 * found[(9 * len(found)) // 10]:.0f} % or more)")
    return "The slowest of the rounds of one time is above the fastest: " + "; ".join(texts) + "." if texts else "No file has rounds."


def gpus(files):
    """What ran on a GPU."""
    measured = [read for read in files.values() if read.bench == "gpu"]
    if not measured:
        return "**No GPU was measured.**"
    names = ", ".join(sorted({read.machine for read in measured}))
    operators = {name.split("/")[1] for read in measured for name in read.rows if name.startswith("time/") and name.endswith("/torch")}
    return (f"**Of GPUs only {names} was measured**, for some minutes: {len(operators)} operators beside PyTorch, candidates of one draft with one seed.")


def versions(files):
    """Which files say whose versions."""
    named = [f"`{name}`" for name, read in files.items() if any(row.startswith("version/") for row in read.rows)]
    return f"their versions stand in {', '.join(named)}, and nowhere else" if named else "no file names their versions"


def page(files, files_of, num_frozen):
    machines = {}
    for read in files.values():
        machines.setdefault(read.machine, []).append(read)
    lines = ["| machine | files | dates |", "|---|---|---|"]
    for machine, reads in sorted(machines.items()):
        dates = sorted({read.date for read in reads})
        lines.append(f"| {machine} | {len(reads)} | {dates[0]}" + (f" to {dates[-1]}" if len(dates) > 1 else "") + " |")
    missing = [claim.name for claim in claims.CLAIMS if not files_of(claim, files)]
    return TEMPLATE.format(
        num_files=len(files), machines="\n".join(lines),
        gpus=gpus(files), noise=noise(files), versions=versions(files), few_seeds=sum(len(read.seeds) < 3 for read in files.values()),
        history=sum(bool(read.history) for read in files.values()), num_frozen=num_frozen,
        unmeasured=", ".join(f"`{name}`" for name in missing) or "nothing that has a command")
