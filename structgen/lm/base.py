"""The protocol of a language model: contexts in, log-probabilities out.

Enters: a prompt, then token ids one at a time. Leaves: natural-log next-token probabilities, float32. Cost:
it depends on the implementation; the protocol asks for one batched forward for each call.

A context is a node of a prefix tree. Equal prefixes are one object as long as some code holds this object, so
every caller that reaches a prefix finds the work that was done for the prefix. The vector of a context is
frozen when it is first computed, because models are not deterministic to the last bit (another batch, another
kernel). A sampler whose weights and draws came from two different vectors would be wrong, and no test would
notice.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol, Self, runtime_checkable

from ..errors import StructgenError

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from ..vocabulary import Vocabulary


class LanguageModelError(StructgenError, ValueError):
    """A model cannot be loaded, a model cannot read its prompt, or a model's output is no distribution."""


class ContextTooLong(LanguageModelError):
    """Raised if a context has more tokens than the model has positions."""


class Context(Protocol):
    """A prefix: the prompt and the appended tokens. It is immutable, and equal prefixes are one object."""

    @property
    def tokens(self) -> list[int]:
        """The ids of the prefix, prompt included."""
        ...

    def __len__(self) -> int:
        """Returns the number of ids, prompt included."""
        ...

    def extend(self, token: int) -> Self:
        """Returns the prefix with one more id. It runs no forward. Raises a LanguageModelError if there is no
        such id."""
        ...


@runtime_checkable
class LanguageModel(Protocol):
    """The protocol of a model for generation, sampling and speculation.

    V is `vocabulary.vocab_size`: the width of the model's logits. Laws: up to rounding, `logprobs` does not
    depend on the order, grouping or repetition of its contexts. For one context it returns the same bits each
    time, as long as the context is held.

    A model on another device may also have `resident(contexts)`. This method gives the rows on the model's
    device (`resident.py`), so draws copy no row; it gives None if the device is the CPU.
    """

    @property
    def vocabulary(self) -> Vocabulary:
        """The bytes of the ids that the model predicts."""
        ...

    @property
    def eos_token_ids(self) -> Sequence[int]:
        """The ids that end a text."""
        ...

    @property
    def max_context(self) -> int | None:
        """The most tokens of prompt and answer together; None if no limit is known."""
        ...

    def start(self, prompt: str | Sequence[int]) -> Context:
        """Returns the context of a prompt. Raises ContextTooLong if the prompt exceeds `max_context`."""
        ...

    def logprobs(self, contexts: Sequence[Context]) -> npt.NDArray[np.float32]:
        """Returns natural-log probabilities of the next token, float32, shape (len(contexts), V); a fresh
        array."""
        ...


def check_logprobs(rows: npt.NDArray[np.float32], contexts: int, width: int) -> None:
    """Raises LanguageModelError unless a model gave one row of log-probabilities for each context.

    The check takes one pass over the rows, because the maximum of a row with a NaN is NaN. A row of only -inf
    is not an error here; the draw from such a row raises one.
    """
    if rows.shape != (contexts, width):
        raise LanguageModelError(
            f"the model gave log-probabilities of shape {rows.shape} for {contexts} contexts and "
            f"{width} tokens"
        )
    if rows.size and not rows.max() < float("inf"):
        raise LanguageModelError("the model gave NaN or infinite log-probabilities: they are no distribution")
