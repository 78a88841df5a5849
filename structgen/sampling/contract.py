"""Tests the promise of potentials: if a prefix is refused, every extension of it must be refused, too.

Enters: a target, and prefixes when they are refused. Leaves: nothing, or `PotentialError` with the text that
breaks the promise. Cost: for a share of refused prefixes, a few random completions under the grammar (masks,
no forwards) and as many evaluations.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from ..errors import BudgetExceeded
from ..logits import allocate_bitmask, allowed_bits
from .chance import Seeds
from .logspace import NEVER
from .outcome import Purpose
from .potential import Potential, PotentialError, Prefix
from .target import AnyText, Target

if TYPE_CHECKING:
    from ..vocabulary import Vocabulary

__all__ = ["PotentialError", "Probe", "check_laws"]

_COMPLETIONS = 4
_FREE_TOKENS = 24  # the most random tokens of a completion; the shortest way to the end follows


class Probe:
    """Watches refused prefixes of one run and tries to complete a share of them.

    Args:
        share: between 0 and 1.
    """

    def __init__(self, target: Target, share: float, seeds: Seeds) -> None:
        if not 0 < share <= 1:
            raise ValueError(f"check is a share between 0 and 1, not {share}")
        if isinstance(target.grammar, AnyText):
            raise ValueError("check completes texts by the grammar, and there is none")
        self.target = target
        self.share = share
        self._random = np.random.default_rng([seeds.seed, Purpose.SEARCH])

    def refused(self, text: Prefix) -> None:
        """Takes a prefix that a potential refused (-inf), and tries to complete it. Raises a PotentialError
        if the condition allows a completion."""
        if self._random.random() >= self.share:
            return
        condition = self.target.condition
        assert condition is not None
        for free in range(_COMPLETIONS):
            whole = self._complete(text, _FREE_TOKENS * free // _COMPLETIONS)
            if whole is None:
                continue
            for length in range(len(text.tokens) + 1, len(whole.tokens) + 1):
                tokens = whole.tokens[:length]
                part = Prefix(tokens, self.target.text(tokens))
                if condition.prefix(part) > NEVER and condition.guides:
                    self._fail(text, part, "is allowed as a beginning")
            if condition.complete(whole) > NEVER:
                self._fail(text, whole, "is allowed")

    def _fail(self, text: Prefix, found: Prefix, how: str) -> None:
        raise PotentialError(
            f"the potential refused the beginning {text.text!r}, but {found.text!r} {how}: give "
            "monotone=False, so that only whole texts are judged"
        )

    def _complete(self, text: Prefix, free: int) -> Prefix | None:
        """Returns a random continuation of up to `free` tokens, then the shortest way to the end."""
        assert not isinstance(self.target.grammar, AnyText)
        matcher = self.target.grammar.matcher()
        tokens = list(text.tokens)
        if not matcher.accept_tokens(tokens):
            return None
        mask = allocate_bitmask(1, self.target.vocabulary.vocab_size)
        for _ in range(free):
            matcher.fill_bitmask(mask)
            bits = allowed_bits(mask[0])
            bits[self.target.ends] = False
            allowed = np.flatnonzero(bits)
            if not allowed.size:
                break
            token = int(allowed[self._random.integers(allowed.size)])
            matcher.accept_token(token)
            tokens.append(token)
        try:
            rest = matcher.shortest_completion()
        except BudgetExceeded:
            return None
        data = self.target.text(tokens) + rest
        return Prefix((*tokens, *self.target.vocabulary.encode(rest)), data)


def check_laws(
    potential: Potential, vocabulary: Vocabulary, texts: Sequence[Sequence[int]], *, tolerance: float = 1e-6
) -> None:
    """Tests the laws of a potential on whole texts, given as ids without end-of-sequence.

    If prefix is -inf, every extension is -inf; logw_next is the difference between the values of prefix and
    complete; batches equal single calls.

    Raises:
        PotentialError: a law does not hold; the message gives the text.
    """
    end = vocabulary.eos_token_ids[0]
    wholes = []
    for tokens in texts:
        prefixes = [
            Prefix(tuple(tokens[:at]), vocabulary.decode(tokens[:at])) for at in range(len(tokens) + 1)
        ]
        wholes.append(prefixes[-1])
        values = [potential.prefix(part) for part in prefixes]
        whole = potential.complete(prefixes[-1])
        for at, value in enumerate(values):
            if value == NEVER and max([*values[at + 1 :], whole]) > NEVER:
                raise PotentialError(
                    f"prefix of {prefixes[at].text!r} is -inf, but an extension of it has weight"
                )
        if potential.shapes:
            _check_factors(potential, prefixes, [*values, whole], [*tokens, end], tolerance)
        if not _close(potential.prefix_batch(prefixes), values, tolerance):
            raise PotentialError(f"prefix_batch differs from prefix on prefixes of {prefixes[-1].text!r}")
    if not _close(potential.complete_batch(wholes), [potential.complete(t) for t in wholes], tolerance):
        raise PotentialError("complete_batch differs from complete")


def _check_factors(
    potential: Potential, prefixes: list[Prefix], values: list[float], tokens: list[int], tolerance: float
) -> None:
    for part, value, after, token in zip(prefixes, values[:-1], values[1:], tokens, strict=True):
        if value == NEVER:
            return
        factor = float(potential.logw_next(part)[token])
        if not _close([value + factor], [after], tolerance):
            raise PotentialError(
                f"logw_next after {part.text!r} gives token {token} {factor}, but the weights differ by "
                f"{after - value}"
            )


def _close(a: Sequence[float], b: Sequence[float], tolerance: float) -> bool:
    return len(a) == len(b) and all(
        x == y or (math.isfinite(x) and math.isfinite(y) and abs(x - y) <= tolerance * (1 + abs(x)))
        for x, y in zip(a, b, strict=True)
    )
