"""`sg.denoise`: a text from a masked-diffusion model under a constraint, its slots filled in any order.

Enters: a `DiffusionLM`, a prompt, a constraint, a number of slots and steps. Leaves: `Denoised`. Cost: one
forward a step, and a check of the canvas for every token that is about to be committed.

The law: in every step a scheduler chooses masked slots and their order. The tokens of a slot are tried in the
order of their scores, or as they are drawn, and the slot takes the first one that the canvas allows. With
``scheduler="random"`` and one slot in each step this is the masked any-order law: a slot is drawn uniformly,
and its token from the model's distribution over the allowed tokens. It is not P(text | the text fits),
because it ignores the probability that the other slots can still be filled.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from .._checks import one_of, whole
from ..canvas import Canvas
from ..constraints import constraint_of
from ..grammar import CompiledGrammar
from ..lm.base import LanguageModelError
from ..lm.diffusion import DiffusionLM
from ..lm.load import compiler_of

_Scores = npt.NDArray[np.float64]
_TRIED = 64  # the most tokens of a slot that are checked one by one, before a mask of the slot is made


class Chance(Protocol):
    """A source of draws. Tests put an enumerator in its place."""

    def draw(self, weights: _Scores) -> int:
        """Returns an index, in proportion to the weights, whose sum is positive."""
        ...


class _Random:
    def __init__(self, seed: int) -> None:
        self._source = np.random.default_rng(seed)

    def draw(self, weights: _Scores) -> int:
        sums = np.cumsum(weights)
        return int(np.searchsorted(sums, self._source.random() * sums[-1], side="right"))


#: (probabilities of the masked slots, the slots, how many a step has to fill at least, chance) ->
#: slots in the order in which they are to be filled, as many as are to be.
Scheduler = Callable[[_Scores, Sequence[int], int, Chance], "list[int]"]


def confidence(probabilities: _Scores, masked: Sequence[int], least: int, chance: Chance) -> list[int]:
    """Chooses the slots with the most probable tokens (LLaDA)."""
    order = np.argsort(-probabilities.max(axis=1), kind="stable")
    return [masked[i] for i in order[:least]]


def threshold(probabilities: _Scores, masked: Sequence[int], least: int, chance: Chance) -> list[int]:
    """Chooses all slots with a token of probability 0.9 or more, and at least `least` slots (Dimple,
    Fast-dLLM)."""
    best = probabilities.max(axis=1)
    order = np.argsort(-best, kind="stable")
    return [masked[i] for i in order[: max(least, int((best >= 0.9).sum()))]]


def at_random(probabilities: _Scores, masked: Sequence[int], least: int, chance: Chance) -> list[int]:
    """Draws slots uniformly."""
    left, out = list(masked), []
    for _ in range(least):
        out.append(left.pop(chance.draw(np.ones(len(left)))))
    return out


SCHEDULERS: dict[str, Scheduler] = {"confidence": confidence, "random": at_random, "threshold": threshold}


@dataclass
class Denoised:
    """What `sg.denoise` returns.

    Attributes:
        text, value: the text, and its value as `sg.generate` reads it.
        tokens: the token of every slot, with the end token and the padding behind it.
        checks: the number of tokens that were checked before a commit.
        refused: the model's tokens that the canvas proved wrong.
        unknown: tokens that the canvas could not decide; they were not committed.
        completed: tokens that the canvas wrote because no token of the model was allowed, or the steps ran
            out.
        steps: forwards of the model. seconds: wall-clock time, with the canvas's time apart.
    """

    text: str
    value: Any
    tokens: list[int]
    checks: int
    refused: int
    unknown: int
    completed: int
    steps: int
    seconds: dict[str, float] = field(default_factory=dict)
    grammar: CompiledGrammar | None = field(default=None, repr=False)


def _distribution(logits: npt.NDArray[np.float32], temperature: float, mask: int) -> _Scores:
    """Returns the probabilities of each slot. The mask token gets 0, because no text contains it."""
    scores = np.asarray(logits, dtype=np.float64) / (temperature if temperature > 0 else 1.0)
    if mask < scores.shape[1]:
        scores[:, mask] = -np.inf
    scores -= scores.max(axis=1, keepdims=True)
    out = np.exp(scores)
    out /= out.sum(axis=1, keepdims=True)
    if not np.isfinite(out).all():
        raise LanguageModelError("the model's scores are no distribution")
    return out


class _Filler:
    """Fills slots of a canvas. It counts the checks, the refused tokens, and the tokens that the canvas could
    not decide."""

    def __init__(self, canvas: Canvas, greedy: bool, chance: Chance) -> None:
        self.canvas = canvas
        self.greedy = greedy
        self.chance = chance
        self.checks = self.refused = self.unknown = 0

    def fill(self, slot: int, probabilities: _Scores) -> bool:
        """Fills a slot with the first allowed token. False: no allowed token was found."""
        left = probabilities.copy()
        for _ in range(min(_TRIED, len(left))):
            if left.max() <= 0:
                return False
            token = int(left.argmax()) if self.greedy else self.chance.draw(left)
            if self._take(slot, token):
                return True
            # The token is drawn again from the other tokens, so the result is a draw among the allowed
            # tokens.
            left[token] = 0.0
        return self._by_mask(slot, left)

    def _take(self, slot: int, token: int) -> bool:
        self.checks += 1
        told = self.canvas.commit(slot, token)
        self.refused += told is False
        self.unknown += told is None
        return told is True

    def _by_mask(self, slot: int, left: _Scores) -> bool:
        from ..logits import allocate_bitmask, allowed_bits

        mask = allocate_bitmask(1, self.canvas.vocabulary.vocab_size)
        self.canvas.fill_bitmask(mask, slot)
        left = left * allowed_bits(mask[0], len(left))
        if left.max() <= 0:
            return False
        return self._take(slot, int(left.argmax()) if self.greedy else self.chance.draw(left))


def denoise(
    model: DiffusionLM,
    prompt: Any,
    schema: Any = None,
    *,
    slots: int,
    steps: int | None = None,
    scheduler: str | Scheduler = "confidence",
    temperature: float = 0.0,
    seed: int | None = None,
    pad: int | None = None,
    chance: Chance | None = None,
    **constraint: Any,
) -> Denoised:
    """Writes a text with a masked-diffusion model. The text always fits the constraint and the slots.

    Args:
        model: a `DiffusionLM`, `structgen.lm.diffusion.TransformersDiffusionLM` for one.
        prompt: text, or ids.
        schema: a JSON Schema or a Python type; or another constraint by its name, as `sg.generate` takes it.
        slots: tokens of the text, its end and padding included.
        steps: forwards; as many as slots by default.
        scheduler: "confidence", "threshold", "random", or a function (`Scheduler`).
        temperature: 0 takes the best allowed token; above 0 tokens are drawn.
        seed: repeats the draws.
        pad: what stands behind the end token; that token again by default.

    Returns:
        A `Denoised`, whose text always belongs to the grammar.

    Source: masked diffusion as in LLaDA (Nie et al., 2025).

    Raises:
        UnsatisfiableBudget: the slots cannot hold the shortest text; the message says how many slots can.
        LanguageModelError: the model is no masked-diffusion model, or it returned wrong scores.
        ValueError, TypeError: there is no constraint, a number is out of range, or the scheduler is unknown.
    """
    if not isinstance(model, DiffusionLM):
        raise TypeError(
            f"denoise: the model is a DiffusionLM (with a mask token), not {type(model).__name__}"
        )
    count = slots if steps is None else whole("denoise: steps", steps, 1)
    if isinstance(scheduler, str):
        one_of("denoise: scheduler", scheduler, tuple(SCHEDULERS))
        scheduler = SCHEDULERS[scheduler]
    if not temperature >= 0:
        raise ValueError(f"denoise: temperature must not be negative: {temperature}")
    wanted = constraint_of({"schema": schema, **constraint} if schema is not None else constraint)
    if wanted is None:
        raise ValueError("denoise needs a constraint: schema=, regex=, lark=, grammar= or another one")
    grammar = wanted.compile(compiler_of(model))  # type: ignore[arg-type]
    began = time.perf_counter()
    canvas = grammar.canvas(slots, pad=pad)
    checked = time.perf_counter() - began
    context = model.encode(prompt)
    filler = _Filler(canvas, temperature == 0, chance or _Random(0 if seed is None else seed))
    forwards = 0
    while (masked := canvas.masked) and forwards < count:
        row = [model.mask_token_id if t is None else t for t in canvas.tokens]
        scores = np.asarray(model.logits(context, row))
        forwards += 1
        if scores.shape[0] != slots or scores.ndim != 2:
            raise LanguageModelError(f"the model scored {scores.shape}, not a row a slot ({slots})")
        probabilities = _distribution(scores[masked], temperature, model.mask_token_id)
        at = {slot: i for i, slot in enumerate(masked)}
        least = -(-len(masked) // (count - forwards + 1))
        mine = time.perf_counter()
        for slot in scheduler(probabilities, masked, least, filler.chance):
            filler.fill(slot, probabilities[at[slot]])
        checked += time.perf_counter() - mine
    completed = len(canvas.masked)
    mine = time.perf_counter()
    tokens = canvas.complete()
    checked += time.perf_counter() - mine
    text = canvas.text(tokens).decode("utf-8", "replace")
    return Denoised(
        text=text,
        value=wanted.reader(grammar)(text),
        tokens=tokens,
        checks=filler.checks,
        refused=filler.refused,
        unknown=filler.unknown,
        completed=completed,
        steps=forwards,
        seconds={"all": time.perf_counter() - began, "canvas": checked},
        grammar=grammar,
    )
