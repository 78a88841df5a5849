"""Draws the diagnostics of a run as a picture.

Enters: `Samples`, a file name. Leaves: a PNG, SVG or PDF of up to four panels: the certified bracket, the
effective sample size, the mass that the grammar takes at each position, the heaviest texts. Cost: the import
of matplotlib, which only this file needs (extra `plot`).
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from .._extras import missing
from ..errors import StructgenError

if TYPE_CHECKING:
    from .results import Samples

_KINDS = (".png", ".svg", ".pdf")
_TEXTS = 12
_SHOWN = 36  # the most characters of a text in the picture


def check(path: str | os.PathLike[str]) -> None:
    """Raises an error if the picture could not be written, before any work is done.

    Raises:
        MissingDependency: matplotlib is not installed.
        StructgenError: the folder is missing, or the ending is unknown.
    """
    name = Path(path)
    if name.suffix not in _KINDS:
        raise StructgenError(f"a picture ends in {', '.join(_KINDS)}, and {name.name!r} does not")
    if not name.absolute().parent.is_dir():
        raise StructgenError(f"cannot write {name}: no such folder")
    try:
        import matplotlib  # noqa: F401
    except ImportError as error:
        raise missing(error, "pictures") from None


def save(found: Samples, path: str | os.PathLike[str]) -> None:
    """Writes the picture to a file."""
    check(path)
    from matplotlib.figure import Figure

    about = found.diagnostics
    panels: list[Any] = []
    if len(about.brackets) > 1 and found.log_bracket is not None:
        panels.append(_bracket)
    if len(about.ess) > 1:
        panels.append(_sizes)
    if about.mass_lost:
        panels.append(_lost)
    if len(found):
        panels.append(_texts)
    rows = max(1, (len(panels) + 1) // 2)
    figure = Figure(figsize=(9, 2.6 * rows), layout="constrained")
    grid = figure.add_gridspec(rows, 2)
    for at, draw in enumerate(panels):
        alone = at == len(panels) - 1 and at % 2 == 0  # A last panel alone in its row fills the row.
        draw(figure.add_subplot(grid[at // 2, :] if alone else grid[at // 2, at % 2]), found)
    figure.suptitle(f"{about.method}: {len(found)} texts, {about.positions} forwards", fontsize=10)
    figure.savefig(path, dpi=110)


def _bracket(axes: Any, found: Samples) -> None:
    at, lows, highs = np.array(found.diagnostics.brackets).T
    seen = np.isfinite(lows)
    axes.plot(at, highs, label="upper")
    axes.plot(at[seen], lows[seen], label="lower")
    axes.fill_between(at[seen], lows[seen], highs[seen], alpha=0.2)
    axes.set_title("certified bounds on log P(language)", fontsize=9)
    axes.set_xlabel("draws")
    axes.set_ylabel("log probability")
    axes.legend(fontsize=8)


def _sizes(axes: Any, found: Samples) -> None:
    about = found.diagnostics
    axes.plot(np.arange(1, len(about.ess) + 1), about.ess)
    for step in about.resampled:
        axes.axvline(step, color="grey", linewidth=0.6)
    axes.set_ylim(bottom=0)
    axes.set_title("effective sample size (grey: resampled)", fontsize=9)
    axes.set_xlabel("block")
    axes.set_ylabel("texts")


def _lost(axes: Any, found: Samples) -> None:
    mass = [lost for _, lost in found.diagnostics.mass_lost]
    axes.bar(np.arange(len(mass)), mass, width=0.9)
    axes.set_ylim(0, 1)
    axes.set_title("probability removed at each position", fontsize=9)
    axes.set_xlabel("position in the text (tokens)")
    axes.set_ylabel("probability")


def _texts(axes: Any, found: Samples) -> None:
    best = list(found.posterior().items())[:_TEXTS][::-1]
    names = [text if len(text) <= _SHOWN else text[: _SHOWN - 3] + "..." for text, _ in best]
    # A dollar sign would begin a formula.
    axes.barh(np.arange(len(best)), [p for _, p in best])
    axes.set_yticks(np.arange(len(best)), [name.replace("$", r"\$") for name in names], fontsize=7)
    axes.set_title("heaviest texts", fontsize=9)
    axes.set_xlabel("share of the weight")
