"""What the figures share: colours, panels, and bars, dots and curves of points."""

import io

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

# Okabe and Ito's colours, told apart with every common colour blindness; markers and hatches for print.
COLOURS = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#999999"]
MARKERS = ["o", "s", "^", "D", "v", "P", "X", "*", "<", ">", "p"]
HATCHES = ["", "//", "..", "xx", "\\\\", "++", "--", "oo"]

plt.rcParams.update({
    "figure.dpi": 110,
    "font.size": 9,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#dddddd",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "legend.frameon": False,
    "hatch.linewidth": 0.4,
})


def panels(count, width=3.4, height=2.9, columns=3):
    """Figure and `count` axes; a legend goes below."""
    columns = min(columns, count)
    lines = -(-count // columns)
    figure, axes = plt.subplots(lines, columns, figsize=(max(4.5, width * columns), height * lines), squeeze=False,
                                layout="constrained")
    flat = list(axes.flat)
    for unused in flat[count:]:
        unused.set_visible(False)
    return figure, flat[:count]


def legend(figure, axes):
    entries = {}
    for axis in axes:
        for handle, label in zip(*axis.get_legend_handles_labels()):
            entries.setdefault(label, handle)
    if entries:
        figure.legend(entries.values(), entries.keys(), loc="upper center", bbox_to_anchor=(0.5, -0.01),
                      ncols=min(6, len(entries)))


def look_of(i):
    """Colours come again after eight, with other markers."""
    return {"color": COLOURS[i % len(COLOURS)], "marker": MARKERS[i % len(MARKERS)]}


def goal_line(axis, value, label, **style):
    axis.axhline(value, color="#000000", linewidth=1, **{"linestyle": "--", **style}, label=label)


def draw_curves(axis, curves, order):
    """`curves`: {NAME: {x: Point}}; `order` fixes colour and marker of each name over all panels."""
    for name, curve in curves.items():
        look = look_of(order.index(name))
        xs = sorted(curve)
        axis.plot(xs, [curve[x].value for x in xs], **look, markersize=4, label=name)
        low, high = [curve[x].low for x in xs], [curve[x].high for x in xs]
        if low != high:
            axis.fill_between(xs, low, high, color=look["color"], alpha=0.15, linewidth=0)


def draw_bars(axis, groups, order):
    """`groups`: {GROUP: {NAME: Point}}, a group of bars side by side for each."""
    width = 0.8 / len(order)
    for i, name in enumerate(order):
        have = [(x, group[name]) for x, group in enumerate(groups.values()) if name in group]
        if not have:
            continue
        points = [point for _, point in have]
        errors = [[p.value - p.low for p in points], [p.high - p.value for p in points]]
        style = i % len(COLOURS)
        axis.bar([x - 0.4 + (i + 0.5) * width for x, _ in have], [p.value for p in points], width, label=name,
                 color=COLOURS[style], hatch=HATCHES[style], edgecolor="white", linewidth=0.5,
                 yerr=errors if any(map(any, errors)) else None, error_kw={"elinewidth": 1, "capsize": 2})
    axis.set_xticks(range(len(groups)), groups.keys(), rotation=30 if len(groups) > 3 else 0,
                    ha="right" if len(groups) > 3 else "center")
    axis.grid(axis="x", visible=False)


def draw_dots(axis, groups, order):
    """As bars, but for values whose distance from zero says nothing: the axis need not begin there."""
    for i, name in enumerate(order):
        have = [(x, group[name]) for x, group in enumerate(groups.values()) if name in group]
        axis.errorbar([x - 0.35 + (i + 0.5) * 0.7 / len(order) for x, _ in have], [p.value for _, p in have],
                      yerr=[[p.value - p.low for _, p in have], [p.high - p.value for _, p in have]], label=name,
                      **look_of(i), linestyle="", markersize=5, elinewidth=1, capsize=2)
    axis.set_xticks(range(len(groups)), groups.keys(), rotation=30 if len(groups) > 3 else 0,
                    ha="right" if len(groups) > 3 else "center")
    for x in range(1, len(groups)):
        axis.axvline(x - 0.5, color="#dddddd", linewidth=1)
    axis.grid(axis="x", visible=False)


def png_of(figure):
    out = io.BytesIO()
    # No version of the library in the file: the same rows give the same bytes.
    figure.savefig(out, format="png", bbox_inches="tight", metadata={"Software": None})
    plt.close(figure)
    return out.getvalue()
