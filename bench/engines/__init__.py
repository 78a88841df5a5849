"""Engine adapters, each imported only when it is named, so that a missing peer costs nothing."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bench.data import Tokens
    from bench.engines.base import Engine

NAMES = ("structgen", "llguidance", "xgrammar")


def load(name: str, tokens: Tokens) -> Engine:
    """The adapter called `name` over the vocabulary `tokens`. Costs seconds: tries and caches are built."""
    if name not in NAMES:
        raise ValueError(f"unknown engine {name!r}; one of {', '.join(NAMES)}")
    return importlib.import_module(f"bench.engines.{name}").create(tokens)
