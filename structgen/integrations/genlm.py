"""structgen inside genlm-control: a grammar as a potential over a language model's tokens.

Enters: contexts, which are lists of the model's token objects, in any order. Leaves: log weights, 0 or -inf.
Cost: one accept and one mask for each context that continues a known one. Other contexts are replayed.

    llm = PromptedLLM.from_name(name, backend="hf")
    potential = GrammarPotential(llm, engine_of(llm).compile("json_schema", schema))
    sampler = direct_token_sampler(llm * potential)

Written for genlm-control 0.4. `structgen.sample` gives the same posterior without genlm-control.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

try:
    from genlm.control import Potential
except ImportError as _missing:
    from .._extras import missing

    raise missing(_missing, "potentials of genlm-control") from None

from ..errors import VocabularyError
from ..grammar import CompiledGrammar
from ..logits import allocate_bitmask, allowed_ids
from ..matcher import Forks, Matcher
from .hosts import HostEngine

_Ids = tuple[int, ...]


def engine_of(llm: Any, **options: Any) -> HostEngine:
    """Returns one compiler for a `PromptedLLM`; `options` are those of `HostEngine`."""
    maps = llm.token_maps
    return HostEngine(llm.model.tokenizer, len(maps.decode), end_token_ids=maps.eos_idxs, **options)


class GrammarPotential(Potential):  # type: ignore[misc]
    """1 for the texts of a grammar and their beginnings, 0 for all others.

    Args:
        llm: a `PromptedLLM`, whose tokens the contexts are made of.
        grammar: compiled by `engine_of(llm)`.
        contexts: the number of contexts whose matchers are kept. More take memory, fewer cause replays.

    Raises:
        VocabularyError: a token of the model is outside the grammar's vocabulary.
    """

    def __init__(self, llm: Any, grammar: CompiledGrammar, *, contexts: int = 512) -> None:
        super().__init__(list(llm.vocab))
        size = grammar.vocabulary.vocab_size
        ids = [token.token_id for token in self.vocab]
        if max(ids) >= size:
            raise VocabularyError(
                f"the model has token {max(ids)} and the grammar's vocabulary {size} ids: compile it with "
                "engine_of(llm)"
            )
        self.grammar = grammar
        self._forks = Forks(grammar, contexts)
        self._places = np.full(size, -1, np.int64)  # id -> its place in the potential's vocabulary
        self._places[ids] = np.arange(len(ids))
        self._mask = allocate_bitmask(1, size)

    async def prefix(self, context: Sequence[Any]) -> float:
        """Returns 0.0 if some text begins with the context, otherwise -inf."""
        return 0.0 if self._at(context) is not None else -np.inf

    async def complete(self, context: Sequence[Any]) -> float:
        """Returns 0.0 for a text of the grammar, else -inf."""
        matcher = self._at(context)
        return 0.0 if matcher is not None and matcher.is_accepting() else -np.inf

    async def sparse_logw_next(self, context: Sequence[Any]) -> tuple[npt.NDArray[np.int64], float, float]:
        """Returns the places of the tokens that may come next, their log weight, and the end's log weight.

        Raises:
            ValueError: the context is no beginning of a text.
        """
        matcher = self._at(context)
        if matcher is None:
            raise ValueError(f"context {context!r:.200} has weight zero under the grammar")
        matcher.fill_bitmask(self._mask)
        places = self._places[allowed_ids(self._mask)]
        return places[places >= 0], 0.0, 0.0 if matcher.is_accepting() else -np.inf

    def _at(self, context: Sequence[Any]) -> Matcher | None:
        """Returns the matcher behind a context; callers must not change it. None: no text begins with the
        context."""
        matcher = self._forks.at(tuple(token.token_id for token in context))
        return None if matcher is None or matcher.is_terminated() else matcher
