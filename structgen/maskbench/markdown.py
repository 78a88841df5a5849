"""A report as Markdown: the tables of the page without the curves.

Enters: a `Report`. Leaves: text.
"""

from __future__ import annotations

from .figures import OUTCOMES
from .report import Report, Table


def render(report: Report) -> str:
    out = [f"# {report.title}", *report.lead[:2], *report.warnings]

    def section(title: str, tables: list[Table]) -> None:
        if tables:
            out.append(f"## {title}")
            out.extend(_table(t) for t in tables)

    section("Speed", report.speed)
    section("Head to head", report.pairs)
    if report.coverage:
        names = list(next(iter(report.coverage.values())))
        rows = [
            [split, *(_counts(found.get(name, {})) for name in names)]
            for split, found in report.coverage.items()
        ]
        section("Coverage by data set", [Table(" / ".join(OUTCOMES), ["data set", *names], rows)])
    section("What went wrong", [report.causes] if report.causes else [])
    section("Worst schemas", report.worst)
    section("Long outputs and large schemas", report.cases)
    section("End to end with a model", report.endtoend)
    out += ["## How it was measured", *report.method, "### What flatters whom"]
    out.append("\n".join(f"- {text}" for text in report.flatters))
    section("Engines and machines", [t for t in (report.versions, report.runs) if t is not None])
    return "\n\n".join(out) + "\n"


def _counts(found: dict[str, int]) -> str:
    return " / ".join(str(found.get(kind, 0)) for kind in OUTCOMES)


def _cell(text: str) -> str:
    return text.replace("\\", "\\\\").replace("|", "\\|").replace("\n", " ").replace("<", "&lt;")


def _table(table: Table) -> str:
    head = "| " + " | ".join(map(_cell, table.columns)) + " |"
    rule = "|" + "|".join("---" for _ in table.columns) + "|"
    rows = []
    for i, row in enumerate(table.rows):
        cells = [f"**{_cell(c)}**" if (i, j) in table.best else _cell(c) for j, c in enumerate(row)]
        rows.append("| " + " | ".join(cells) + " |")
    return "\n".join([f"**{_cell(table.caption)}**", "", head, rule, *rows])
