"""Lossless speculative drafting under a grammar.

`sg.generate(..., speculate="auto")` is all that most users need. Here are the drafters, to choose among them,
and `Speculation`, to set limits. What is generated does not depend on any of it.
"""

from __future__ import annotations

from .base import Cursor, Drafter, Here, Likely, Session, Start, Step
from .drafters import (
    Corpus,
    CorpusDrafter,
    DraftModel,
    Forced,
    LayerChoice,
    LogitNgrams,
    Lookahead,
    LookaheadWindow,
    PromptLookup,
    SchemaOrder,
    SourceCopy,
    StringDraft,
    SuffixAutomatonDrafter,
    SuffixTree,
    SuffixTreeDrafter,
    TokenIntersection,
    TokenRecycling,
    Trigram,
    TrimmedHead,
    layer_skip,
)
from .goodput import CostTable
from .options import Speculation, standard_drafters
from .statistics import DrafterStatistics, Statistics

__all__ = [
    "Corpus",
    "CorpusDrafter",
    "CostTable",
    "Cursor",
    "DraftModel",
    "Drafter",
    "DrafterStatistics",
    "Forced",
    "Here",
    "Likely",
    "LayerChoice",
    "LogitNgrams",
    "Lookahead",
    "LookaheadWindow",
    "PromptLookup",
    "SchemaOrder",
    "Session",
    "SourceCopy",
    "Speculation",
    "Start",
    "Statistics",
    "Step",
    "StringDraft",
    "SuffixAutomatonDrafter",
    "SuffixTree",
    "SuffixTreeDrafter",
    "TokenIntersection",
    "TokenRecycling",
    "Trigram",
    "TrimmedHead",
    "layer_skip",
    "standard_drafters",
]
