"""Drafters, one in each file. The import loads no heavy package; models load at their first use."""

from __future__ import annotations

# Recipe, drafter 2: its export.
from .copying import PromptLookup, SourceCopy
from .corpus import Corpus, CorpusDrafter
from .draft_model import DraftModel
from .grammar import Forced
from .head_trim import TrimmedHead
from .layer_choice import LayerChoice
from .layer_skip import layer_skip
from .logit_ngrams import LogitNgrams
from .lookahead import Lookahead
from .lookahead_window import LookaheadWindow
from .schema_order import SchemaOrder
from .string_draft import StringDraft
from .suffix_automaton import SuffixAutomatonDrafter
from .suffix_tree import SuffixTree, SuffixTreeDrafter
from .token_intersection import TokenIntersection
from .token_recycling import TokenRecycling
from .trigram import Trigram

__all__ = [
    "Corpus",
    "CorpusDrafter",
    "DraftModel",
    "Forced",
    "LayerChoice",
    "LogitNgrams",
    "Lookahead",
    "LookaheadWindow",
    "PromptLookup",
    "SchemaOrder",
    "SourceCopy",
    "StringDraft",
    "SuffixAutomatonDrafter",
    "SuffixTree",
    "SuffixTreeDrafter",
    "TokenIntersection",
    "TokenRecycling",
    "Trigram",
    "TrimmedHead",
    "layer_skip",
]
