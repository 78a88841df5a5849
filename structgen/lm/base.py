"""The protocol of a language model: contexts in, log-probabilities out.

Enters: a prompt, then token ids one at a time. Leaves: natural-log next-token probabilities, float32.
Cost: an implementation's own; the protocol asks for one batched forward a call.

A context is a node of a prefix tree: equal prefixes are one object as long as somebody holds it, so work
done for a prefix is found again by whoever reaches it. The vector of a context is frozen when it is first
computed. Models are not deterministic to the last bit (other batch, other kernel), and a sampler whose
weights come from one vector and whose draw comes from another is wrong in a way that no test sees.
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
    """A model that cannot be loaded, a prompt that it cannot read, an output that is no distribution."""


class ContextTooLong(LanguageModelError):
    """More tokens than the model has positions for."""


class Context(Protocol):
    """A prefix: the prompt and what was appended. Immutable; the same prefix is the same object."""

    @property
    def tokens(self) -> list[int]:
        """The ids of the prefix, prompt included."""
        ...

    def __len__(self) -> int:
        """How many ids that is."""
        ...

    def extend(self, token: int) -> Self:
        """The prefix with one id more; no forward. LanguageModelError: no such id."""
        ...


@runtime_checkable
class LanguageModel(Protocol):
    """The protocol of a model for generation, sampling and speculation.

    V is `vocabulary.vocab_size`: the width of the model's logits. Laws: `logprobs` does not depend on the
    order, grouping or repetition of its contexts but for rounding, and returns for one context the same
    bits each time as long as the context is held.

    A model on another device may also have `resident(contexts)`, which gives the same rows where they lie
    (`resident.py`), or None where that is the CPU; draws then copy no row.
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
        """Tokens of prompt and answer together that it can read; None: no limit is known."""
        ...

    def start(self, prompt: str | Sequence[int]) -> Context:
        """The context of a prompt. ContextTooLong: it exceeds `max_context`."""
        ...

    def logprobs(self, contexts: Sequence[Context]) -> npt.NDArray[np.float32]:
        """Natural-log probabilities of the next token, float32, shape (len(contexts), V); a fresh array."""
        ...


def check_logprobs(rows: npt.NDArray[np.float32], contexts: int, width: int) -> None:
    """LanguageModelError: what a model gave for so many contexts is no row of log-probabilities for each.

    One pass: the maximum of a row with a NaN is NaN. A row of -inf alone is left to whoever draws from it.
    """
    if rows.shape != (contexts, width):
        raise LanguageModelError(
            f"the model gave log-probabilities of shape {rows.shape} for {contexts} contexts and "
            f"{width} tokens"
        )
    if rows.size and not rows.max() < float("inf"):
        raise LanguageModelError("the model gave NaN or infinite log-probabilities: they are no distribution")
