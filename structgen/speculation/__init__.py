"""Lossless speculative drafting under a grammar.

Most users need `sg.generate(..., speculate="auto")` alone. This package exports the drafters, for those who
choose among them, and `Speculation`, which sets limits. No drafter and no limit changes the law of the
generated text. The rule "coupled", the default, also keeps the text itself; docs/speculation.md names the
exceptions.
"""

from __future__ import annotations

from . import drafters
from .base import Cursor, Drafter, Here, Likely, Session, Start, Step
from .drafters import *  # noqa: F403
from .goodput import CostTable
from .options import Speculation, standard_drafters
from .statistics import DrafterStatistics, Statistics

__all__ = ["CostTable", "Cursor", "Drafter", "DrafterStatistics", "Here", "Likely", "Session", "Speculation"]
__all__ += ["Start", "Statistics", "Step", "standard_drafters", *drafters.__all__]
