"""Lossless speculative drafting under a grammar.

`sg.generate(..., speculate="auto")` is all that most users need. Here are the drafters, to choose among them,
and `Speculation`, to set limits. The generated text depends on none of these.
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
