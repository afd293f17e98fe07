"""Results files: reading them, and the curves and bars that their rows' names and notes hold."""

import json
import math
import re
from dataclasses import dataclass

NUMBER = r"[-+]?\d+(?:\.\d+)?(?:e[-+]?\d+)?"

# Goals of these are upper limits, which older files and those of Python do not say.
AT_MOST = re.compile(
    r"(draft_50000_s|net_wall|net_overhead|net_unhidden|overhead|features_512_ms|features_derive_ms)/"
    r"|(infer_512_ms|update_2000_s)$"
    r"|(hostile_(?!control$)\w+|lost_acknowledged|invalid_databases|orphans|writers_(failed|lost)|disk_full_\w+|winners_(wrong|refused)"
    r"|missed_threats|violations)$"
    r"|(found_where_none_is|derive_(median|worst)|mutants_accepted|above_bound_\d+|right_refused|false_alarms|strays_missed|traces_unsupported"
    r"|fpv_twin_\w+_ms|fpv_twins_not_equal)$"
    r"|gain/(relu|half|argmax|saturated)_between$|prune/(filter_ns|\d+/seconds)$|.+/(O1-ratio|whole_over_tasks)$"
)


class Damaged(Exception):
    """A file that is not what a benchmark writes."""


@dataclass(frozen=True)
class Row:
    name: str
    value: float  # None where the benchmark had no number
    unit: str = ""
    goal: float = None
    note: str = ""
    noisy: bool = False  # other work had the CPUs in a round, however often it was repeated
    at_most: bool = False  # the goal is an upper limit; see also AT_MOST

    def meets_goal(self):
        """None without a goal; what has no number meets none."""
        if self.goal is None:
            return None
        if self.value is None:
            return False
        return self.value <= self.goal if self.at_most or AT_MOST.match(self.name) else self.value >= self.goal


@dataclass(frozen=True)
class Results:
    bench: str
    machine: str
    date: str
    commit: str  # of the code that was measured
    seeds: tuple
    history: str  # how date, commit and seeds came to be known, if not when the file was written
    rows: dict  # by name, in the order of the file

    def short_machine(self):
        """"znver5" of "AMD EPYC, 2 threads (znver5)"."""
        found = re.search(r"\(([\w-]+)\)$", self.machine)
        return found[1] if found else self.machine


@dataclass(frozen=True)
class Point:
    """A value with its range over seeds, or its interval; the same three times where there is none."""

    value: float
    low: float
    high: float


def number(value, what):
    if value is None:
        return None
    try:
        made = float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else math.nan
    except OverflowError:
        made = math.nan
    if not math.isfinite(made):
        raise Damaged(f"{what} is not a number")
    return made


def text(fields, key, what):
    value = fields.get(key, "")
    if not isinstance(value, str):
        raise Damaged(f"{what}: {key} is not a text")
    return value


def parse(content):
    """Results of a file's text. Raises Damaged, also where machine, date, commit or seeds are missing."""
    try:
        data = json.loads(content)
    except (ValueError, RecursionError) as problem:
        raise Damaged(f"no JSON: {problem}") from None
    if not isinstance(data, dict) or not isinstance(data.get("bench"), str):
        raise Damaged("no results of a benchmark")
    if not isinstance(data.get("rows"), list):
        raise Damaged("rows are missing")
    rows = {}
    for i, fields in enumerate(data["rows"]):
        what = f"row {i}"
        if not isinstance(fields, dict) or not isinstance(fields.get("name"), str) or "value" not in fields:
            raise Damaged(f"{what} has no name or value")
        what += f", {fields['name']}"
        if fields["name"] in rows:
            raise Damaged(f"{what}: is there twice")
        rows[fields["name"]] = Row(
            fields["name"],
            number(fields["value"], f"{what}: value"),
            text(fields, "unit", what),
            number(fields.get("goal"), f"{what}: goal"),
            text(fields, "note", what),
            fields.get("noisy") is True,
            fields.get("at_most") is True,
        )
    machine, date, commit, history = (text(data, key, "the file") for key in ("machine", "date", "commit", "history"))
    if not machine:
        raise Damaged("names no machine")
    if not re.fullmatch(r"20\d\d-[01]\d-[0-3]\d", date):
        raise Damaged("names no date")
    if not commit:
        raise Damaged("names no commit")
    seeds = data.get("seeds")
    if not isinstance(seeds, list) or not seeds or not all(type(seed) is int for seed in seeds):
        raise Damaged("names no seeds")
    return Results(data["bench"], machine, date, commit, tuple(seeds), history, rows)


def read(path):
    try:
        with open(path, encoding="utf-8") as file:
            return parse(file.read())
    except (OSError, UnicodeDecodeError) as problem:
        raise Damaged(f"cannot be read: {problem}") from None


def stated(row):
    """Of a row with a value. The first "A to B" of the note is its range, which need not hold the value: a mean may lie
    outside of the quartiles."""
    found = re.search(rf"({NUMBER}) to ({NUMBER})", row.note)
    if found is None:
        return Point(row.value, row.value, row.value)
    return Point(row.value, float(found[1]), float(found[2]))


def point(row):
    """The same with a range that holds the value: bars that end short of it cannot be drawn, and notes are rounded."""
    said = stated(row)
    return Point(row.value, min(row.value, said.low), max(row.value, said.high))


def matching(rows, pattern):
    """(match, row) of the rows with a value whose whole name matches."""
    expression = re.compile(pattern)
    for row in rows.values():
        found = expression.fullmatch(row.name)
        if found and row.value is not None:
            yield found, row


def put(tree, keys, leaf):
    for key in keys[:-1]:
        tree = tree.setdefault(key, {})
    tree[keys[-1]] = leaf


def values(rows, prefix):
    """{REST: Row} of the rows PREFIX/REST, REST without a slash."""
    return {found[1]: row for found, row in matching(rows, re.escape(prefix) + "/([^/]+)")}


def mean(numbers):
    return sum(numbers) / len(numbers)


def rates(rows):
    """{TARGET/OPERATOR: {SKETCH: per second}}; the sketch "programs" is that of a program for each candidate."""
    out = {}
    for found, row in matching(rows, r"draft_per_s/([^/]+/[^/]+)/(.+)"):
        put(out, (found[1], found[2]), row.value)
    for found, row in matching(rows, r"programs_per_s/([^/]+/[^/]+)"):
        put(out, (found[1], "programs"), row.value)
    return out


def draft_quality(rows):
    """{CLASS: {ANALYZER: {drafted: Point of Best-1}}}."""
    out = {}
    for found, row in matching(rows, r"best1_at_(\d+)/([^/]+)"):
        size, cls = int(found[1]), found[2]
        put(out, (cls, "prunerc", size), point(row))
        for analyzer, value in re.findall(rf"\b(release|paper|calibrated|random) ({NUMBER})", row.note):
            put(out, (cls, analyzer, size), Point(float(value), float(value), float(value)))
    for found, row in matching(rows, r"best1_at_(\d+)_release/([^/]+)"):
        put(out, (found[2], "release", int(found[1])), point(row))
    return out


def penalties(rows):
    """{ANALYZER: {PART: (Best-1 at 512 drafted without it, with it)}}, means over the classes."""
    found_in = {}
    for found, row in matching(rows, r"best1_at_128_without/([^/]+)/([^/]+)/([^/]+)"):
        both = re.search(rf"@512 without ({NUMBER}), with ({NUMBER})", row.note)
        if both:
            found_in.setdefault(found[1], {}).setdefault(found[2], []).append((float(both[1]), float(both[2])))
    return {
        analyzer: {part: tuple(mean(column) for column in zip(*pairs)) for part, pairs in parts.items()}
        for analyzer, parts in found_in.items()
    }


def accuracy(rows):
    """{METRIC: {MODEL: {percent of the training rows: Point}}}."""
    out = {}
    for found, row in matching(rows, r"(top1|top5|pairwise)/([^/@]+)(?:@(\d+)%)?"):
        if not found[2].startswith("pacm_less_"):
            put(out, (found[1], found[2], int(found[3] or 100)), point(row))
    return out


def differences(rows):
    """{METRIC: {MODEL: {CLASS, or "all": Point of our score less the model's}}}."""
    out = {}
    for found, row in matching(rows, r"(top1|pairwise)/pacm_less_([^/]+)(?:/([^/]+))?"):
        put(out, (found[1], found[2], found[3] or "all"), point(row))
    return out


def pruning(rows):
    """{METRIC: {KIND: {percent removed: Point}}}; the kind "all" has removed nothing."""
    out = {}
    for found, row in matching(rows, r"(top1|pairwise)_pruned/([^/@]+)(?:@(\d+)%)?"):
        put(out, (found[1], found[2], 100 - int(found[3] or 100)), point(row))
    return out


def transfer(rows):
    """{(FROM, TO): {METRIC: {METHOD: {records of each task: Point}}}}."""
    out = {}
    for found, row in matching(rows, r"(top1|pairwise)/(.+?)_to_(.+)/([^/@]+)@(\d+)"):
        put(out, ((found[2], found[3]), found[1], found[4], int(found[5])), point(row))
    return out


def transfer_searches(rows):
    """{(FROM, TO): {METHOD: {trials: Point of the pool's best / best so far}}}."""
    out = {}
    for found, row in matching(rows, r"tuned/(.+?)_to_(.+)/([^/@]+)@(\d+)"):
        put(out, ((found[1], found[2]), found[3], int(found[4])), point(row))
    return out


def beside_baselines(rows, prefix):
    """{BASELINE: {STRATEGY: value}} of the rows PREFIX/STRATEGY_vs_BASELINE."""
    out = {}
    for found, row in matching(rows, re.escape(prefix) + r"/([^/]+?)_vs_([^/]+)"):
        put(out, (found[2], found[1]), row.value)
    return out


def search_curves(rows, prefix):
    """{STRATEGY: {trials or seconds: Point}} of the rows PREFIX/STRATEGY@AT."""
    out = {}
    for found, row in matching(rows, re.escape(prefix) + r"/([^/]+)@([\d.]+)"):
        put(out, (found[1], float(found[2])), point(row))
    return out
