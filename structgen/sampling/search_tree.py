"""Shows the tree of a search to people.

Enters: the root of the tree, the vocabulary. Leaves: lines of text, or one HTML page that loads nothing.
Cost: a line for each shown place, by default at most 400.

If each place of a chain has one opened child, the chain is shown as one line. The best child comes first.
Children in the frontier are counted and not shown (`waiting=True` shows them). Lines beyond the limit are
only counted.
"""

from __future__ import annotations

import html
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from .._readable import visible
from .best_first import SearchPlace

if TYPE_CHECKING:
    from ..vocabulary import Vocabulary

_STYLE = "body{font-family:system-ui,sans-serif;margin:2rem;max-width:75rem}"


@dataclass(frozen=True, slots=True)
class _Line:
    level: int
    text: str
    about: str
    ended: bool


@dataclass(frozen=True)
class SearchTree:
    """The places that a search opened.

    Attributes:
        root: the first place, which leads to all others.
        most: the most lines shown. waiting: whether places that were not opened are shown, too.
    """

    root: SearchPlace
    vocabulary: Vocabulary
    end: int
    select: str = "best"
    most: int = 400
    waiting: bool = False

    def lines(self) -> Iterator[_Line]:
        todo: list[tuple[int, SearchPlace]] = [(0, self.root)]
        shown = 0
        while todo and shown < self.most:
            level, place = todo.pop()
            text = self._spelled(place)
            waiting = 0
            while True:
                children = [child for child in place.children if self.waiting or self._open(child)]
                waiting += len(place.children) - len(children)
                if len(children) != 1:
                    break
                place = children[0]
                text += self._spelled(place)
            about = self._about(place) + (f", {waiting} wait" if waiting else "")
            yield _Line(level, text or "<start>", about, place.ended)
            shown += 1
            todo += [(level + 1, child) for child in sorted(children, key=self._worth)]
        if todo:
            yield _Line(0, f"... {len(todo)} more branches", "", False)

    @staticmethod
    def _open(place: SearchPlace) -> bool:
        return place.ended or place.opened > 0 or place.visits > 0

    def _worth(self, place: SearchPlace) -> tuple[float, float]:
        """Returns a sort key, ascending, because the caller takes the best from the end of a list."""
        return (place.best if self.select == "descent" and place.visits else place.rank, -place.number)

    def _spelled(self, place: SearchPlace) -> str:
        parts = []
        for token in place.tokens:
            parts.append("<end>" if token == self.end else visible(self.vocabulary.token_bytes(token)))
        return "".join(parts)

    def _about(self, place: SearchPlace) -> str:
        if self.select == "descent":
            return f"visits {place.visits}, best {place.best:.3g}" if place.visits else "not visited"
        return f"f {place.rank:.4g}"

    def __str__(self) -> str:
        return "\n".join(
            "  " * line.level + line.text + (f"  [{line.about}]" if line.about else "")
            for line in self.lines()
        )

    def picture(self) -> str:
        """Returns the tree as HTML with parts that open and close."""
        parts: list[str] = []
        level = -1
        for line in self.lines():
            parts.append("</details>" * (level - line.level + 1))
            level = line.level
            colour = "#188038" if line.ended else "#1a73e8"
            parts.append(
                '<details open style="margin-left:1rem"><summary>'
                f'<code style="color:{colour}">{html.escape(line.text)}</code> '
                f"<small>{html.escape(line.about)}</small></summary>"
            )
        parts.append("</details>" * (level + 1))
        return "<div>" + "".join(parts) + "</div>"

    def html(self) -> str:
        """Returns the tree as one HTML page."""
        return (
            '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>structgen search</title>'
            '<meta name="viewport" content="width=device-width, initial-scale=1">'
            f"<style>{_STYLE}</style></head><body><h1>What the search opened</h1>"
            "<p>Green texts ended, blue ones go on.</p>"
            f"{self.picture()}</body></html>\n"
        )

    def _repr_html_(self) -> str:
        return self.picture()

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the page."""
        Path(path).write_text(self.html(), encoding="utf-8")
