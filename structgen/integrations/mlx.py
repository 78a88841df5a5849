"""Grammars in mlx-lm's `generate` and `stream_generate`: a logits processor.

Enters, for each call: the ids of prompt and text so far, and the logits. Leaves: new logits with -inf where a
token is not allowed. Cost: a mask, and copies of the ids and of a mask between MLX and numpy.

    model, tokenizer = mlx_lm.load(name)
    vocabulary = Vocabulary.from_huggingface(tokenizer._tokenizer, vocab_size=width_of(model))
    grammar = Compiler(vocabulary).compile("json_schema", schema)
    mlx_lm.generate(model, tokenizer, prompt, logits_processors=[LogitsProcessor(grammar)])

The first call's ids are the prompt. A later call belongs to the same text if it begins with that prompt and
continues as rows.py expects. Any other call has a new prompt. With a `draft_model` the host shortens drafts
and passes them again, which rows.py can follow. Written for mlx-lm 0.32.
"""

from __future__ import annotations

from typing import Any

try:
    import mlx.core as mx
except ImportError as _missing:
    from .._extras import missing

    raise missing(_missing, "logits processors of mlx-lm") from None

from ..errors import VocabularyError
from ..grammar import CompiledGrammar
from ..logits import allowed_bits
from .rows import Rows, listed


def width_of(model: Any) -> int:
    """Returns the number of columns of a model's logits. The tokenizer may have fewer tokens."""
    return int(model(mx.array([[0]])).shape[-1])


class LogitsProcessor:
    """Constrains the texts of one model, one at a time, each from the start of the grammar.

    Args:
        grammar: over a vocabulary as wide as the model's logits.
        max_new_tokens: with it, only tokens are allowed after which the text can be completed in time.

    Raises:
        VocabularyError: when called: the vocabulary has another width than the logits.
    """

    def __init__(self, grammar: CompiledGrammar, *, max_new_tokens: int | None = None) -> None:
        self._rows = Rows(listed(grammar), max_new_tokens, "eos", "raise")
        self._prompt: list[int] | None = None

    def __call__(self, tokens: Any, logits: Any) -> Any:
        """Returns new logits, shape (1, V); `logits` stay as they are."""
        size = self._rows.vocabulary.vocab_size
        if size != logits.shape[-1]:
            raise VocabularyError(
                f"the grammar's vocabulary has {size} ids and the model {logits.shape[-1]} logits: make it "
                "with vocab_size=width_of(model)"
            )
        ids: list[int] = tokens.tolist()
        known = self._prompt
        if known is None or ids[: len(known)] != known or not self._rows.follow([ids[len(known) :]]):
            self.reset()
            self._prompt = ids
            self._rows.follow([[]])
        return mx.where(mx.array(allowed_bits(self._rows.fill(), size)), logits, -mx.inf)

    def reset(self) -> None:
        """Makes the next call begin a new text, whatever its prompt."""
        self._prompt = None
        self._rows.reset()
