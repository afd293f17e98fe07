"""Cells of tables, and tables in parts: what the layouts share.

A ▼ stands where a rival is ahead of what it is compared with."""

import statistics

import rows as results

BEHIND = " ▼"


def marked(text, is_behind):
    return text + (BEHIND if is_behind else "")


def shared(text, row):
    return text + "*" if row.noisy else text


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


def ranged(point):
    return shown(point.value) + (f" ({shown(point.low)} to {shown(point.high)})" if point.low != point.high else "")


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


def rate(row):
    """One decimal, and the range over rounds where the file has it."""
    point = results.point(row)
    return shared(f"{row.value:.1f}" + (f" ({point.low:.1f} to {point.high:.1f})" if point.low != point.high else ""), row)


TABLE_ROWS = 30  # that a page can be read by


def chunks(caption, head, lines):
    """Tables of at most TABLE_ROWS lines each."""
    out = []
    for start in range(0, len(lines), TABLE_ROWS):
        part_of = lines[start:start + TABLE_ROWS]
        out.append((f"{caption} ({start + 1} to {start + len(part_of)} of {len(lines)})" if len(lines) > TABLE_ROWS else caption, [head] + part_of))
    return out


def over_seeds(row):
    """A single one has no range."""
    return results.point(row) if " seeds" in row.note else results.Point(row.value, row.value, row.value)


def quartiles(point, show=shown):
    """"2.4 (1.9 to 3.1)": what stands in brackets are quartiles."""
    return f"{show(point.value)} ({show(point.low)} to {show(point.high)})"
