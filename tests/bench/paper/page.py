"""The page of the claims that have results: one HTML file that needs nothing else, and a short text with the pictures."""

import base64
import html
from dataclasses import dataclass, field

STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; max-width: 62rem; margin: 2rem auto; padding: 0 1rem; color: #1a1a1a; background: #fff; }
h2 { margin-top: 2.5rem; border-top: 1px solid #ccc; padding-top: 1rem; }
dt { font-weight: 600; float: left; width: 6rem; } dd { margin: 0 0 .3rem 6rem; }
img { max-width: 100%; height: auto; } .rows { overflow-x: auto; }
table { border-collapse: collapse; font-size: 13px; } th, td { border-bottom: 1px solid #ddd; padding: .15rem .6rem; text-align: left; }
td.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
.met::before { content: "\\2713  "; } .missed { font-weight: 600; } .missed::before { content: "\\2717  "; }
"""


@dataclass(frozen=True)
class Picture:
    name: str  # of NAME.png
    title: str
    png: bytes


@dataclass
class Section:
    """What one file of results says about one claim."""

    claim: object
    source: str  # the file
    machine: str
    rows: list
    pictures: list = field(default_factory=list)


def shown(value):
    return "" if value is None else f"{value:,.4g}" if abs(value) < 1e4 else f"{value:,.0f}"


def row_html(row):
    mark = {None: "", True: " met", False: " missed"}[row.meets_goal()]
    cells = [
        f"<td>{html.escape(row.name)}</td>",
        f'<td class="number">{shown(row.value) or "none"}</td>',
        f"<td>{html.escape(row.unit)}</td>",
        f'<td class="number{mark}">{shown(row.goal)}</td>',
        f"<td>{html.escape(row.note)}</td>",
    ]
    return "<tr>" + "".join(cells) + "</tr>"


def picture_html(picture):
    data = base64.b64encode(picture.png).decode("ascii")
    return f'<p><img alt="{html.escape(picture.title, quote=True)}" src="data:image/png;base64,{data}"></p>'


def section_html(section):
    claim = section.claim
    facts = [
        ("Published", claim.paper),
        ("Here", claim.here),
        ("Script", f"tests/bench/paper/{claim.name}.sh"),
        ("Measured", f"{section.source}, on {section.machine or 'a machine that the file does not name'}"),
    ]
    goals = [row.meets_goal() for row in section.rows if row.meets_goal() is not None]
    if goals:
        facts.append(("Goals", f"{sum(goals)} of {len(goals)} met"))
    lines = [f"<h2>{html.escape(claim.title)}</h2>", "<dl>"]
    lines += [f"<dt>{name}</dt><dd>{html.escape(value)}</dd>" for name, value in facts]
    lines += ["</dl>"] + [picture_html(picture) for picture in section.pictures]
    shut = "" if section.pictures else " open"
    lines.append(f'<details{shut}><summary>{len(section.rows)} rows</summary><div class="rows"><table>')
    lines.append("<tr><th>row</th><th>value</th><th>unit</th><th>goal</th><th>note</th></tr>")
    lines += [row_html(row) for row in section.rows]
    lines.append("</table></div></details>")
    return lines


def page_html(sections, missing):
    """`missing`: the claims that no file has rows of."""
    title = "The paper's claims, measured again"
    lines = ["<!doctype html>", '<html lang="en"><head><meta charset="utf-8">', f"<title>{title}</title>"]
    lines += [f"<style>{STYLE}</style></head><body>", f"<h1>{title}</h1>"]
    lines.append("<p>Published figures are of GPUs and of other data sets: they say what was claimed, and ours are not to be "
                 "read as the same experiment. Bars and bands are ranges over seeds, or 95 % intervals where a row says so.</p>")
    for section in sections:
        lines += section_html(section)
    if missing:
        lines.append("<h2>Not measured yet</h2><ul>")
        lines += [f"<li>{html.escape(claim.title)}: tests/bench/paper/{claim.name}.sh</li>" for claim in missing]
        lines.append("</ul>")
    lines.append("</body></html>")
    return "\n".join(lines) + "\n"


def page_markdown(sections):
    lines = ["# Plots", "", "Drawn by `tests/bench/paper/plot.sh`; `index.html` beside them has the rows as well.", ""]
    for section in sections:
        if not section.pictures:
            continue
        lines += [f"## {section.claim.title}", "", f"{section.source}, on {section.machine}", ""]
        for picture in section.pictures:
            lines += [f"![{picture.title}]({picture.name}.png)", ""]
    return "\n".join(lines).rstrip("\n") + "\n"
