"""What is sampled: the law, written down.

Enters: a language model at a prompt, a grammar, sampling parameters, a length, potentials.
Leaves: `Target`, which answers one question for a prefix: which tokens may come next, and with which
log-probability under the model. Cost of an answer: one row of a forward, one mask, two passes over V.

The law is  P_L(s) = P(s) * 1[s in L] * phi(s) / Z  over token strings s that end with end-of-sequence:

- P is the model *after* temperature, top-k and top-p, applied to its raw logits before any mask, then
  normalised in double precision. They are part of the definition, not of the sampler. Where the valid
  tokens lie outside the nucleus the support is empty there, and such a prefix has probability 0.
- All end-of-sequence ids are one event, written as the first of them.
- L holds the texts of the grammar that end within `max_tokens`, end-of-sequence included. With
  budget="mask" tokens are allowed only while the shortest completion still fits (no dead ends; L loses
  the texts whose beginnings the engine cannot promise to complete); with budget="reject" L is every text
  that fits, and beginnings that run out of room have weight 0.
"""

from __future__ import annotations

import hashlib
import json
import math
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Protocol

import numpy as np
import numpy.typing as npt

from ..errors import BudgetExceeded, StructgenError, UnsatisfiableBudget
from ..grammar import fill_bitmasks
from ..logits import allocate_bitmask, masked_logsumexp
from .logspace import NEVER, Doubles
from .potential import Potential, Prefix, Product, identity, weight

if TYPE_CHECKING:
    from ..grammar import CompiledGrammar
    from ..lm.base import Context, LanguageModel
    from ..vocabulary import Vocabulary

__all__ = ["AnyText", "Expansion", "Law", "Spent", "Target"]

Ids = npt.NDArray[np.int32]
_ROW_BYTES = 64 << 20  # double-precision rows that lie in memory at once
_LOSS = -1e-6  # log mass from which a diagnostic names the token that was lost


@dataclass(frozen=True, slots=True)
class Law:
    """The sampling parameters that define P.

    Attributes:
        temperature: divides the logits; above 0.
        top_k: keep the k most probable tokens of the whole vocabulary, lower ids first where equal.
        top_p: keep the fewest of those whose probabilities sum to at least this.
    """

    temperature: float = 1.0
    top_k: int | None = None
    top_p: float | None = None

    def __post_init__(self) -> None:
        if not 0 < self.temperature < float("inf"):
            raise ValueError(f"temperature must be above 0 to sample a distribution, not {self.temperature}")
        if self.top_k is not None and self.top_k < 1:
            raise ValueError(f"top_k must be at least 1, not {self.top_k}")
        if self.top_p is not None and not 0 < self.top_p <= 1:
            raise ValueError(f"top_p must be above 0 and at most 1, not {self.top_p}")

    def apply(self, logprobs: npt.NDArray[np.float32]) -> Doubles:
        """Rows of P: float64, the shape of the input, each normalised; -inf outside the nucleus."""
        rows = logprobs.astype(np.float64)
        if self.temperature != 1.0:
            rows -= rows.max(axis=-1, keepdims=True)  # keeps a tiny temperature finite
            rows /= self.temperature
        if self.top_k is not None or self.top_p is not None:
            for row in rows:
                self._cut(row)
        # The fused kernel: a third of the time of numpy's, which writes rows of temporaries.
        rows -= masked_logsumexp(rows, allocate_bitmask(1, rows.shape[-1])[0])[..., None]
        return rows

    def _cut(self, row: Doubles) -> None:
        order = np.argsort(-row, kind="stable")
        keep = row.size if self.top_k is None else min(self.top_k, row.size)
        if self.top_p is not None and self.top_p < 1:
            sums = np.cumsum(np.exp(row[order[:keep]] - row[order[0]]))
            keep = min(keep, int(np.searchsorted(sums, self.top_p * sums[-1] * (1 - 1e-12))) + 1)
        row[order[keep:]] = NEVER


@dataclass(slots=True)
class Spent:
    """Counters of the work done."""

    calls: int = 0  # batched calls of the model
    positions: int = 0  # prefixes whose next-token vector was computed: a forward each, one by one
    visits: int = 0  # prefixes that walks stood on: the forwards of a sampler without a trie
    masks: int = 0
    tests: int = 0  # evaluations of potentials
    tests_saved: int = 0  # verdicts that were remembered

    @property
    def saved(self) -> int:
        """Forwards that known prefixes saved; what was fetched ahead in vain counts against it."""
        return self.visits - self.positions


@dataclass(slots=True)
class Expansion:
    """What a prefix allows.

    Attributes:
        ids: the tokens with weight, ascending, int32, shape (k,); end-of-sequence as its first id.
        logp: log P of each, float64, shape (k,).
        score: logp plus the shaping potentials; the same array where there are none.
        log_mass: log of the summed exp(score): the exact local normaliser.
        sums: ascending cumulated weights in proportion to exp(score), float64, shape (k,).
        lost: the most probable token that is not allowed, (id, log P); empty if nothing is lost.
        reason: why nothing is allowed; empty where something is.
    """

    ids: Ids
    logp: Doubles
    score: Doubles
    log_mass: float
    sums: Doubles
    lost: tuple[tuple[int, float], ...] = ()
    reason: str = ""


class AnyText:
    """Stands in for a grammar where there is none: every token of text, and the end anywhere."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self.vocabulary = vocabulary
        ids = [i for i, text in enumerate(vocabulary.tokens) if text]
        bits = np.zeros((vocabulary.vocab_size + 31) // 32 * 32, np.uint8)
        bits[ids] = 1
        bits[list(vocabulary.eos_token_ids)] = 1
        self.words = np.packbits(bits, bitorder="little").view(np.int32)
        self.source = None


class Cursor(Protocol):
    """A running sequence, as `Target.expand` needs it."""

    tokens: list[int]
    context: Any
    matcher: Any
    synced: int


@dataclass(eq=False)
class Target:
    """The law and everything that defines it."""

    lm: LanguageModel
    start: Context
    grammar: CompiledGrammar | AnyText
    max_tokens: int
    law: Law = field(default_factory=Law)
    budget: Literal["mask", "reject"] = "mask"
    shaping: Potential | None = None
    condition: Potential | None = None
    critic: Potential | None = None

    def __post_init__(self) -> None:
        self.vocabulary = self.lm.vocabulary
        self.ends: list[int] = sorted(int(i) for i in self.lm.eos_token_ids)
        if not self.ends:
            raise StructgenError("the model has no end-of-sequence token, so no text ever ends")
        self.end = self.ends[0]
        self.spent = Spent()
        self.cancelled = threading.Event()
        if self.max_tokens < 1:
            raise ValueError(f"max_tokens must be at least 1, not {self.max_tokens}")
        if self.shaping is not None and self.shaping.prefix(Prefix((), b"")) != 0.0:
            raise ValueError("a potential with logw_next must weigh the empty text 1 (log weight 0)")
        self.remark = ""
        if self.budget == "mask" and not self._can_budget():
            self.budget = "reject"
            self.remark = (
                "budget is 'reject': without a grammar, or with one whose shortest completion is too "
                "expensive to find, texts that run out of room weigh 0"
            )

    @classmethod
    def of(
        cls, lm: LanguageModel, start: Context, grammar: Any, potential: Potential | None, **how: Any
    ) -> Target:
        """A target with its potentials sorted: what shapes the proposal, Boolean conditions, critics."""
        factors = (
            []
            if potential is None
            else (potential.factors if isinstance(potential, Product) else [potential])
        )
        shaping = [f for f in factors if f.shapes]
        others = [f for f in factors if not f.shapes]
        return cls(
            lm,
            start,
            AnyText(lm.vocabulary) if grammar is None else grammar,
            shaping=_one(shaping),
            condition=_one([f for f in others if f.boolean]),
            critic=_one([f for f in others if not f.boolean]),
            **how,
        )

    @property
    def bounded(self) -> bool:
        """Whether no factor is above 1, so that bounds of the trie are bounds."""
        return all(p is None or p.bounded for p in (self.shaping, self.condition, self.critic))

    def text(self, tokens: Sequence[int]) -> bytes:
        """The bytes of ids, end-of-sequence left out."""
        return self.vocabulary.decode([t for t in tokens if t not in self.ends])

    def expand(self, cursors: Sequence[Cursor]) -> list[Expansion]:
        """The expansions of distinct prefixes: the missing vectors in one batch, the masks in another."""
        found: list[Expansion] = []
        at_once = max(1, _ROW_BYTES // (8 * self.vocabulary.vocab_size))
        for first in range(0, len(cursors), at_once):
            if self.cancelled.is_set():
                raise StructgenError("sampling was cancelled")
            found += self._expand(cursors[first : first + at_once])
        return found

    def _expand(self, cursors: Sequence[Cursor]) -> list[Expansion]:
        for cursor in cursors:
            self._sync(cursor)
        raw = self.lm.logprobs([cursor.context for cursor in cursors])
        self.spent.calls += 1
        self.spent.positions += len(cursors)
        rows = self.law.apply(raw)
        masks = self._masks(cursors)
        self.spent.masks += len(cursors)
        self._merge_ends(rows)
        return [self._expansion(*each) for each in zip(cursors, rows, masks, strict=True)]

    def _sync(self, cursor: Cursor) -> None:
        """Bring the context and the matcher, which known prefixes leave behind, up to the tokens."""
        behind = cursor.tokens[cursor.synced :]
        if cursor.context is None:
            cursor.context = self.start
        for token in behind:
            cursor.context = cursor.context.extend(token)
        if not isinstance(self.grammar, AnyText):
            if cursor.matcher is None:
                cursor.matcher = self.grammar.matcher()
            if not cursor.matcher.accept_tokens(behind):
                raise StructgenError(f"tokens {behind} were allowed and then refused: a bug in structgen")
        cursor.synced = len(cursor.tokens)

    def _masks(self, cursors: Sequence[Cursor]) -> npt.NDArray[np.int32]:
        masks = allocate_bitmask(len(cursors), self.vocabulary.vocab_size)
        if isinstance(self.grammar, AnyText):
            masks[:] = self.grammar.words
        elif self.budget == "reject":
            fill_bitmasks([cursor.matcher for cursor in cursors], masks)
        else:
            for i, cursor in enumerate(cursors):
                try:
                    cursor.matcher.fill_bitmask(masks, i, max_tokens=self.max_tokens - len(cursor.tokens))
                except UnsatisfiableBudget:  # the empty text itself does not fit
                    masks[i] = 0
        for i, cursor in enumerate(cursors):
            if len(cursor.tokens) >= self.max_tokens - 1:  # the last slot: only the end fits
                masks[i] &= self._end_words
        return masks

    @property
    def _end_words(self) -> npt.NDArray[np.int32]:
        words = np.zeros((self.vocabulary.vocab_size + 31) // 32, np.int64)
        for end in self.ends:
            words[end // 32] |= 1 << (end % 32)
        return words.astype(np.uint32).view(np.int32)

    def _merge_ends(self, rows: Doubles) -> None:
        """All end-of-sequence ids become the first, with their summed probability."""
        for other in self.ends[1:]:
            rows[:, self.end] = np.logaddexp(rows[:, self.end], rows[:, other])
            rows[:, other] = NEVER

    def _expansion(self, cursor: Cursor, row: Doubles, mask: npt.NDArray[np.int32]) -> Expansion:
        bits = np.unpackbits(mask.view(np.uint8), bitorder="little")[: row.size]
        ids = np.flatnonzero(bits).astype(np.int32)
        logp = score = row[ids]
        if self.shaping is not None:
            self.spent.tests += 1
            text = Prefix(tuple(cursor.tokens), self.text(cursor.tokens))
            factor = np.asarray(self.shaping.logw_next(text), np.float64)[ids]
            if ids.size:
                weight(float(factor.max()), text, self.shaping.bounded)  # NaN is the largest
            score = logp + factor
        if ids.size and not score.min() > NEVER:
            alive = score > NEVER
            whole = score is logp
            ids, logp = ids[alive], logp[alive]
            score = logp if whole else score[alive]
        if not ids.size:
            return Expansion(ids, logp, score, NEVER, score, (), self._why_empty(cursor, bits))
        top = float(score.max())
        weights = np.exp(score - top)
        mass = top + math.log(float(weights.sum()))
        if self.shaping is None:
            mass = min(mass, 0.0)
        lost: tuple[tuple[int, float], ...] = ()
        if mass < _LOSS:
            row[ids] = NEVER
            best = int(np.argmax(row))
            lost = ((best, float(row[best])),) if row[best] > NEVER else ()
        return Expansion(ids, logp, score, mass, np.cumsum(weights), lost)

    def _why_empty(self, cursor: Cursor, bits: npt.NDArray[np.uint8]) -> str:
        if not bits.any():
            return "length" if len(cursor.tokens) >= self.max_tokens - 1 else "dead end"
        if self.law.top_k is not None or self.law.top_p is not None:
            return "nucleus"
        return "probability 0" if self.shaping is None else "potential"

    def _can_budget(self) -> bool:
        if isinstance(self.grammar, AnyText):
            return False
        try:
            self.grammar.matcher().tokens_needed()
        except BudgetExceeded:
            return False
        return True

    def key(self) -> str:
        """A digest of everything that the numbers of a trie depend on, but for the model's weights."""
        tokens = self.vocabulary.tokens
        parts = hashlib.sha256()
        for text in tokens:
            parts.update(len(text).to_bytes(4, "little") + text)
        record = {
            "vocabulary": parts.hexdigest(),
            "ends": self.ends,
            "prompt": hashlib.sha256(np.asarray(self.start.tokens, np.int64).tobytes()).hexdigest(),
            "grammar": _spelled(self.grammar.source),
            "law": [self.law.temperature, self.law.top_k, self.law.top_p],
            "max_tokens": self.max_tokens,
            "budget": self.budget,
            "potentials": [identity(p) for p in (self.shaping, self.condition, self.critic)],
        }
        return hashlib.sha256(json.dumps(record, sort_keys=True).encode()).hexdigest()


def _one(factors: list[Potential]) -> Potential | None:
    return None if not factors else factors[0] if len(factors) == 1 else Product(factors)


def _spelled(source: Any) -> str:
    try:
        return json.dumps(source, sort_keys=True)
    except (TypeError, ValueError):
        return repr(source)
