"""Constrained texts for a data set, with Ray Data: a schema a row, workers of one model each.

Enters: batches of rows, as dictionaries of columns. Leaves: the same with the columns `text` and `error`.
Cost: that of the model; each worker compiles what its rows ask for, once.

    rows = ray.data.read_parquet("prompts")  # columns: prompt, kind, constraint
    rows.map_batches(Texts, fn_constructor_kwargs={"model": "target"}, batch_size=16, concurrency=2)

A constraint travels as its kind and text, since both are plain data; a compiled grammar would be compiled
again where it is read. A row whose constraint is refused or whose text fails says so and ends no other.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import StructgenError
from ..generation import generate
from ..lm.load import compiler_of, language_model
from .hosts import compiled

__all__ = ["Texts"]


class Texts:
    """What `map_batches` makes in every worker.

    Args:
        model: as in `structgen.generate`; None: the embedded model.
        max_tokens: of each text.
        options: further arguments of `structgen.generate`, such as `temperature` and `seed`.
    """

    def __init__(self, model: Any = None, max_tokens: int = 200, **options: Any) -> None:
        self._lm = language_model(model)
        self._compiler = compiler_of(self._lm)
        self._max_tokens = max_tokens
        self._options = options

    def __call__(self, batch: dict[str, Any]) -> dict[str, Any]:
        """Texts for the columns `prompt`, `kind` and `constraint` of a batch."""
        texts, errors = [], []
        for prompt, kind, constraint in zip(batch["prompt"], batch["kind"], batch["constraint"], strict=True):
            try:
                texts.append(self._text(str(prompt), str(kind), constraint))
                errors.append("")
            except (StructgenError, ValueError) as error:
                texts.append("")
                errors.append(f"{type(error).__name__}: {error}")
        return {**batch, "text": np.array(texts, object), "error": np.array(errors, object)}

    def _text(self, prompt: str, kind: str, constraint: Any) -> str:
        grammar = compiled(self._compiler, kind, constraint)
        made = generate(
            self._lm, prompt, grammar=grammar, max_tokens=self._max_tokens, logprobs=False, **self._options
        )
        return str(made.text)
