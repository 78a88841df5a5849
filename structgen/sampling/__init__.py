"""Grammar-aligned sampling: texts from the model's own distribution, given the grammar.

    result = sg.sample(model, prompt, schema, n=100)
    result.posterior()        # text -> probability
    result.log_bracket        # certified bounds on log P(text in the language)

`walk.py` holds the one walk, `trie.py` what it learns; every algorithm is a file over them: local.py,
asap.py, cars.py, smc.py (resampling.py, awrs.py), mcmc.py, auto.py. `potential.py` is the
noun for conditions beyond the grammar. What searches rather than samples is in `search.py` and its
neighbours, and follows no law.
"""

from __future__ import annotations

from .api import Method, sample, sample_async
from .contract import PotentialError, check_laws
from .potential import (
    GrammarPotential,
    JsonSchemaValid,
    LanguageModelPotential,
    Potential,
    Predicate,
    Prefix,
    Product,
)
from .results import Diagnostics, Sample, Samples
from .smc import Options as SmcOptions
from .target import Law
from .trie import Trie
from .trie_file import load_trie, save_trie

__all__ = [
    "Diagnostics",
    "GrammarPotential",
    "JsonSchemaValid",
    "LanguageModelPotential",
    "Law",
    "Method",
    "Potential",
    "PotentialError",
    "Predicate",
    "Prefix",
    "Product",
    "Sample",
    "Samples",
    "SmcOptions",
    "Trie",
    "check_laws",
    "load_trie",
    "sample",
    "sample_async",
    "save_trie",
]
