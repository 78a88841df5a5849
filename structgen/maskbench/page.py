"""A report as one HTML page. Style sheet and SVG are inside; the page has no scripts and makes no requests.

Enters: a `Report`. Leaves: text. The page follows the reader's light or dark setting and fits narrow screens;
each wide table scrolls by itself. Every string from a run is escaped.
"""

from __future__ import annotations

from html import escape
from pathlib import Path

from . import charts
from .figures import OUTCOMES
from .report import Report, Table

_COLOURS = 8
_SHORT = {
    "coverage": "Coverage",
    "causes": "Causes",
    "worst": "Worst",
    "cases": "Long and large",
    "endtoend": "End to end",
    "method": "Method",
    "setup": "Setup",
}


def render(report: Report) -> str:
    slot = {engine: min(index, _COLOURS - 1) for index, engine in enumerate(report.engines)}
    body: list[str] = [f"<header><h1>{escape(report.title)}</h1>", _lead(report), "</header>"]
    sections: list[tuple[str, str, str]] = []
    if report.speed:
        curves = [
            f"<figure>{charts.curves(found, title, slot)}<figcaption>{escape(title)}</figcaption></figure>"
            for found, title in (
                (report.ttfm, "Time to first mask, over all that each engine takes"),
                (report.tbm, "Time between masks, over all that each engine takes"),
            )
            if found
        ]
        sections.append(("speed", "Speed", "".join(map(_table, report.speed)) + "".join(curves)))
    if report.pairs:
        text = "<p>Ratios below 1 mean that the first named is faster.</p>"
        sections.append(("pairs", "Head to head", text + "".join(map(_table, report.pairs))))
    if report.coverage:
        sections.append(("coverage", "Coverage by data set", _coverage(report)))
    if report.causes:
        sections.append(("causes", "What went wrong", _table(report.causes)))
    if report.worst:
        folds = "".join(
            f"<details{' open' if i == 0 else ''}><summary>{escape(t.caption)}</summary>"
            f"{_table(t, caption=False)}</details>"
            for i, t in enumerate(report.worst)
        )
        sections.append(("worst", "Worst schemas", folds))
    if report.cases:
        sections.append(("cases", "Long outputs and large schemas", "".join(map(_table, report.cases))))
    if report.endtoend:
        sections.append(("endtoend", "End to end with a model", "".join(map(_table, report.endtoend))))
    method = "".join(f"<p>{escape(text)}</p>" for text in report.method)
    flatters = "".join(f"<li>{escape(text)}</li>" for text in report.flatters)
    sections.append(
        ("method", "How it was measured", f"{method}<h3>What flatters whom</h3><ul>{flatters}</ul>")
    )
    about = "".join(_table(t) for t in (report.versions, report.runs) if t is not None)
    sections.append(("setup", "Engines and machines", about))
    links = "".join(f'<a href="#{key}">{escape(_SHORT.get(key, title))}</a>' for key, title, _ in sections)
    body.append(f"<nav>{links}</nav><main>")
    body += [f'<section id="{key}"><h2>{escape(title)}</h2>{text}</section>' for key, title, text in sections]
    body.append("</main>")
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        f"<title>{escape(report.title)}</title>\n<style>{_style()}</style>\n</head>\n<body>\n"
        + "\n".join(body)
        + "\n</body>\n</html>\n"
    )


def _lead(report: Report) -> str:
    said = [f"<p>{escape(text)}</p>" for text in report.lead[:2]]
    return "".join([*said, *(f'<p class="warning">{escape(text)}</p>' for text in report.warnings)])


def _numeric(text: str) -> bool:
    return not text or text[0].isdigit() or text == "–"


def _table(table: Table, caption: bool = True) -> str:
    numbers = [all(_numeric(row[i]) for row in table.rows) for i in range(len(table.columns))]
    head = "".join(
        f'<th scope="col"{" class=n" if n else ""}>{escape(c)}</th>'
        for c, n in zip(table.columns, numbers, strict=True)
    )
    rows = []
    for i, row in enumerate(table.rows):
        cells = []
        for j, (cell, number) in enumerate(zip(row, numbers, strict=True)):
            classes = [name for name, is_so in (("n", number), ("best", (i, j) in table.best)) if is_so]
            mark = f' class="{" ".join(classes)}"' if classes else ""
            tag = "th" if j == 0 and not number else "td"
            scope = ' scope="row"' if tag == "th" else ""
            cells.append(f"<{tag}{scope}{mark}>{escape(cell)}</{tag}>")
        strong = ' class="ratio"' if row[0].endswith(", ratio") else ""
        rows.append(f"<tr{strong}>{''.join(cells)}</tr>")
    said = f"<caption><span>{escape(table.caption)}</span></caption>" if caption else ""
    return (
        f'<div class="scroll" tabindex="0"><table>{said}<thead><tr>{head}</tr></thead>'
        f"<tbody>{''.join(rows)}</tbody></table></div>"
    )


def _coverage(report: Report) -> str:
    names = list(next(iter(report.coverage.values())))
    key = "".join(f'<span class="key"><i class="o-{kind}"></i>{kind}</span>' for kind in OUTCOMES)
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in names)
    rows = []
    for split, found in report.coverage.items():
        total = max((sum(counts.values()) for counts in found.values()), default=0)
        cells = [f'<th scope="row">{escape(split)} <small>{total:,}</small></th>']
        for name in names:
            counts = found.get(name, {})
            count = sum(counts.values())
            if not count:
                cells.append("<td></td>")
                continue
            said = ", ".join(f"{counts[kind]} {kind}" for kind in OUTCOMES if counts.get(kind))
            bars = "".join(
                f'<i class="o-{kind}" style="width:{counts[kind] / count:.2%}"></i>'
                for kind in OUTCOMES
                if counts.get(kind)
            )
            share = counts.get("right", 0) / count
            percent = "100%" if share == 1 else f"{min(share, 0.999):.1%}" if share > 0.99 else f"{share:.0%}"
            cells.append(
                f'<td title="{escape(said)}"><div class="bar" role="img" '
                f'aria-label="{escape(said)}">{bars}</div><small>{percent} right</small></td>'
            )
        rows.append(f"<tr>{''.join(cells)}</tr>")
    return (
        f'<p class="keys">{key}</p><div class="scroll" tabindex="0">'
        f'<table class="bars" style="min-width:{150 + 112 * len(names)}px"><thead><tr>'
        f"<th></th>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table></div>"
    )


def _style() -> str:
    rules = (Path(__file__).with_name("page.css")).read_text(encoding="utf-8")
    colours = (
        f".line.s{i},.lead.s{i}{{stroke:var(--s{i})}}.dot.s{i},.label.s{i}{{fill:var(--s{i})}}"
        for i in range(_COLOURS)
    )
    return rules + "\n".join(colours)
