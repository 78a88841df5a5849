"""`sg.trace`: shows why each token of a text was chosen.

Enters: the arguments of `sg.generate`. Leaves: a `Trace`: for each token the model's probability, the
probability that the mask forbade, the best allowed and the best forbidden tokens; as a table, in colours, or
as one HTML page. Cost: that of `sg.generate`, and for each token two sums and two partial sorts of the
vocabulary.
"""

from __future__ import annotations

import html
import math
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar, overload

from .._readable import visible
from .api import Call
from .results import Result
from .watch import Seen

T = TypeVar("T")
_COLOURS = {"forced": "#9aa0a6", "constrained": "#b06000", "free": "#1a73e8"}
_STYLE = (
    "body{font-family:system-ui,sans-serif;margin:2rem;max-width:75rem}table{border-collapse:collapse}"
    "th,td{text-align:left;padding:.2rem .7rem;border-bottom:1px solid #ddd;vertical-align:top}"
    "@media(prefers-color-scheme:dark){body{background:#111;color:#eee}td,th{border-color:#444}}"
)
_MEANING = {
    "forced": "the grammar left one token",
    "constrained": "the grammar took 1% of the probability or more",
    "free": "the model's own choice",
}


@dataclass(frozen=True)
class Trace(Sequence[Seen], Generic[T]):
    """The steps of one text, as a sequence of `Seen`.

    Attributes:
        result: the text, as `sg.generate` gives it.
        steps: one a token: `kind` ("forced", "constrained", "free"), `logprob` of the model, `masked` among
            the allowed tokens, `kept` (the probability of all allowed tokens), `allowed` (how many), `best`
            and `refused`.
        names: the text of each token that stands in a step, by id.
    """

    result: Result[T]
    steps: list[Seen]
    names: dict[int, str]

    def __len__(self) -> int:
        return len(self.steps)

    @overload
    def __getitem__(self, index: int) -> Seen: ...
    @overload
    def __getitem__(self, index: slice) -> list[Seen]: ...
    def __getitem__(self, index: int | slice) -> Seen | list[Seen]:
        return self.steps[index]

    def rows(self) -> Iterator[tuple[str, str, str, str, str, str]]:
        """Returns the rows of the table: token, kind, the model's probability, the probability after the
        mask, the probability of all allowed tokens, alternatives."""
        for step in self.steps:
            others = [f"{self.names[i]} {_percent(masked)}" for i, _, masked in step.best if i != step.token][
                :3
            ]
            yield (
                self.names[step.token],
                step.kind,
                _percent(step.logprob),
                _percent(step.masked),
                f"{step.kept:.1%} of {step.allowed}",
                "  ".join(others),
            )

    def __str__(self) -> str:
        head = ("token", "kind", "model", "masked", "allowed", "alternatives")
        table = [head, *self.rows()]
        widths = [min(30, max(len(row[i]) for row in table)) for i in range(5)]
        lines = ["  ".join(f"{cell[:w]:{w}}" for cell, w in zip(row, widths, strict=False)) for row in table]
        return "\n".join(f"{line}  {row[5]}".rstrip() for line, row in zip(lines, table, strict=True))

    def __repr__(self) -> str:
        counts = {kind: sum(s.kind == kind for s in self.steps) for kind in _COLOURS}
        told = ", ".join(f"{n} {kind}" for kind, n in counts.items() if n)
        return f"Trace({self.result.text!r:.60}, {len(self.steps)} tokens: {told})"

    def rich(self) -> Any:
        """Returns a table of the package rich, with tokens coloured by kind. MissingDependency: rich is not
        installed."""
        from .._extras import missing

        try:
            from rich.table import Table
            from rich.text import Text
        except ImportError as error:
            raise missing(error, "coloured tables") from None
        table = Table("token", "kind", "model", "masked", "allowed", "alternatives")
        for row in self.rows():
            table.add_row(Text(row[0], style=_COLOURS[row[1]]), *map(Text, row[1:]))
        return table

    def _repr_html_(self) -> str:
        tokens = "".join(self._span(step) for step in self.steps)
        rows = "".join(self._row(n, step) for n, step in enumerate(self.steps, 1))
        legend = " ".join(
            f'<span style="color:{_COLOURS[kind]}">&#9632; {kind}: {words}</span>'
            for kind, words in _MEANING.items()
        )
        return (
            f'<div style="font-family:ui-monospace,monospace;font-size:13px"><p style="white-space:pre-wrap">'
            f"{tokens}</p><p>{legend}</p><table><thead><tr><th>#</th><th>token</th><th>kind</th><th>model</th>"
            "<th>after the mask</th><th>allowed</th><th>best allowed</th><th>best forbidden</th></tr></thead>"
            f"<tbody>{rows}</tbody></table></div>"
        )

    def html(self) -> str:
        """Returns one HTML page that loads no other file."""
        about = f"{len(self.steps)} tokens, finish reason {self.result.finish_reason}"
        return (
            '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>structgen trace</title>'
            '<meta name="viewport" content="width=device-width, initial-scale=1">'
            f"<style>{_STYLE}</style></head><body><h1>How this text came about</h1>"
            f"<p>{html.escape(about)}</p>{self._repr_html_()}</body></html>\n"
        )

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the page."""
        Path(path).write_text(self.html(), encoding="utf-8")

    def _span(self, step: Seen) -> str:
        text = self.names[step.token]
        title = f"{step.kind}: model {_percent(step.logprob)}, after the mask {_percent(step.masked)}"
        style = f"color:{_COLOURS[step.kind]}"
        return f'<span style="{style}" title="{html.escape(title)}">{html.escape(text)}</span>'

    def _row(self, number: int, step: Seen) -> str:
        best = ", ".join(f"{self.names[i]} {_percent(m)}" for i, _, m in step.best[:5])
        refused = ", ".join(f"{self.names[i]} {_percent(p)}" for i, p in step.refused[:3])
        cells = [
            str(number),
            self.names[step.token],
            step.kind,
            _percent(step.logprob),
            _percent(step.masked),
            f"{step.kept:.1%}, {step.allowed} tokens",
            best,
            refused,
        ]
        return "<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in cells) + "</tr>"


def trace(model: Any, prompt: Any, schema: Any = None, **options: Any) -> Trace[Any]:
    """Generates a text and records how each of its tokens came about.

        print(sg.trace(None, "Ana ordered 2 lamps", Order))
        sg.trace(None, "Ana ordered 2 lamps", Order).save("trace.html")

    Takes the arguments of `sg.generate` except `n`, `speculate` and `retries`, and raises the same errors.
    """
    for name in ("n", "speculate", "retries"):
        if options.get(name):
            raise ValueError(f"a trace is of one text as it is made: leave {name}= out")
    call = Call(model, prompt, schema, options)
    (text,) = call.texts
    text.seen = []
    (result,) = call.results()
    vocabulary = call.plan.lm.vocabulary
    special = {i: name for name, i in vocabulary.special_tokens.items()}
    wanted = {i for s in text.seen for i in (s.token, *(b[0] for b in s.best), *(r[0] for r in s.refused))}
    names = {}
    for token in wanted:
        data = vocabulary.tokens[token]
        names[token] = visible(data) if data else special.get(token, f"<{token}>")
    return Trace(result, text.seen, names)


def _percent(logprob: float) -> str:
    p = math.exp(min(0.0, logprob)) if logprob > -math.inf else 0.0
    return f"{p:.1%}" if p >= 0.0005 else f"{p:.0e}" if p > 0 else "0%"
