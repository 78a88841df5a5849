"""Grammar-aligned sampling: texts from the model's own distribution, given the grammar.

    result = sg.sample(model, prompt, schema, n=100)
    result.posterior()        # text -> probability
    result.log_bracket        # certified bounds on log P(text in the language)

`walk.py` holds the one walk, and `trie.py` keeps what walks learn. Every algorithm is a file that builds on
these two: local.py, asap.py, cars.py, smc.py (resampling.py, awrs.py), mcmc.py, auto.py. `potential.py`
defines conditions beyond the grammar. The texts of searches follow no law of probability: `sg.search`
(searches.py, best_first.py), beam.py, cautious.py, repetition.py, extract.py.
"""

from __future__ import annotations

from . import potential
from .api import Method, prepare, sample, sample_async
from .beam import Guide, beam_search
from .best_first import Partial, SearchPlan, Standing
from .cautious import cautious
from .contract import check_laws
from .contrast import Contrast, Reward
from .extract import Span, exact_extract
from .lexical import Look, Without
from .outcome import Found
from .potential import *  # noqa: F403
from .repetition import penalised
from .results import Diagnostics, Sample, Samples
from .search_tree import SearchTree
from .searches import Candidate, Searched, search
from .smc import SmcOptions
from .target import Law
from .trie import Trie
from .trie_file import load_trie, save_trie

__all__ = [
    "Candidate",
    "Contrast",
    "Diagnostics",
    "Found",
    "Guide",
    "Law",
    "Look",
    "Method",
    "Partial",
    "Reward",
    "Sample",
    "Samples",
    "SearchPlan",
    "SearchTree",
    "Searched",
    "SmcOptions",
    "Span",
    "Standing",
    "Trie",
    "Without",
    "beam_search",
    "cautious",
    "check_laws",
    "exact_extract",
    "load_trie",
    "penalised",
    "prepare",
    "sample",
    "sample_async",
    "save_trie",
    "search",
]
__all__ += potential.__all__
