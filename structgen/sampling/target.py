"""The law that samplers draw from.

Enters: a language model at a prompt, a grammar, sampling parameters, a length, potentials.
Leaves: `Target`, which gives a vector for each prefix: the tokens that may come next, with their
log-probabilities under the model. Cost of a vector: one row of a forward, one mask, two passes over V.

The law is  P_L(s) = P(s) * 1[s in L] * phi(s) / Z  over token strings s that end with end-of-sequence:

- P is the model *after* temperature, top-k and top-p, applied to its raw logits before any mask, then
  normalised in double precision, after all ends were merged. Temperature, top-k and top-p are part of the
  law, not of the sampler. If all valid tokens of a prefix lie outside the nucleus, the prefix has probability
  0.
- All end-of-sequence ids are one event, written as the first of them; its probability is their sum, in
  double precision.
- L holds the texts of the grammar that end within `max_tokens`, end-of-sequence included. With
  budget="mask" a token is allowed only if a completion behind it is known to fit (no dead ends; L loses the
  texts with a beginning that the engine cannot promise to complete, see `Matcher.fill_bitmask`); with
  budget="reject" L is every text that fits, and beginnings that run out of room have weight 0.
"""

from __future__ import annotations

import functools
import hashlib
import json
import math
import threading
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Protocol
from weakref import WeakValueDictionary

import numpy as np
import numpy.typing as npt

from .._array_file import vocabulary_digest
from .._checks import number, whole
from ..errors import BudgetExceeded, StructgenError, UnsatisfiableBudget
from ..linting import outside
from ..lm.base import check_logprobs
from ..logits import Brief, allocate_bitmask, allowed_ids, brief_row, mask_of, masked_logsumexp
from ..matcher import fill_bitmasks
from . import vector as vectors
from .logspace import NEVER, Doubles
from .potential import Potential, Prefix, Product, identity, weight
from .vector import Vector

if TYPE_CHECKING:
    from ..grammar import CompiledGrammar
    from ..lm.base import Context, LanguageModel
    from ..lm.resident import Resident, Rest
    from ..vocabulary import Vocabulary

Ids = npt.NDArray[np.int32]
_ROW_BYTES = 32 << 20  # the most memory of float32 rows at one time
_DOUBLES = 1 << 20  # the most numbers in double precision at one time
_LOSS = -1e-6  # if the log mass is below this, diagnostics name the most probable forbidden token


@dataclass(frozen=True, slots=True)
class Law:
    """The sampling parameters that define P.

    Attributes:
        temperature: divides the logits; above 0.
        top_k: keeps the k most probable tokens of the whole vocabulary; of equal ones the lower ids.
        top_p: keeps the fewest of the remaining tokens whose probabilities sum to at least this.
    """

    temperature: float = 1.0
    top_k: int | None = None
    top_p: float | None = None

    def __post_init__(self) -> None:
        number(
            "temperature", self.temperature, "above 0 to sample a distribution", lambda x: 0 < x < math.inf
        )
        if self.top_k is not None:
            whole("top_k", self.top_k, 1)
        if self.top_p is not None:
            number("top_p", self.top_p, "above 0 and at most 1", lambda x: 0 < x <= 1)

    def apply(self, logprobs: npt.NDArray[np.float32]) -> Doubles:
        """Returns rows of log P: float64, the shape of the input, each normalised; -inf outside the
        nucleus."""
        scores = self.scores(logprobs)
        rows: Doubles = scores.astype(np.float64)
        rows -= normaliser(scores)[..., None]
        return rows

    def scores(self, logprobs: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
        """Returns scores that define P: log P up to a constant for each row, float32 as in the model.

        If no parameter changes the rows, the same rows are returned.
        """
        if self.temperature == 1.0 and self.top_k is None and self.top_p is None:
            return logprobs
        rows = logprobs.astype(np.float64)
        rows -= rows.max(axis=-1, keepdims=True)  # keeps a tiny temperature finite
        rows /= self.temperature
        made = rows.astype(np.float32)
        if self.top_k is not None or self.top_p is not None:
            for row in made:
                self._cut(row)
        return made

    def _cut(self, row: npt.NDArray[np.float32]) -> None:
        order = np.argsort(-row, kind="stable")
        keep = row.size if self.top_k is None else min(self.top_k, row.size)
        if self.top_p is not None and self.top_p < 1:
            sums = np.cumsum(np.exp(row[order[:keep]].astype(np.float64) - float(row[order[0]])))
            keep = min(keep, int(np.searchsorted(sums, self.top_p * sums[-1] * (1 - 1e-12))) + 1)
        row[order[keep:]] = NEVER


def normaliser(scores: npt.NDArray[np.float32]) -> Doubles:
    """Returns the log of the summed exponentials of float32 rows, to double precision.

    The fused kernel takes a third of numpy's time. It gets doubles, because its float32 results are right
    only to 1e-8.
    """
    everything = allocate_bitmask(1, scores.shape[-1])[0]
    if scores.size <= _DOUBLES or scores.ndim == 1:
        return np.asarray(masked_logsumexp(scores.astype(np.float64), everything))
    step = max(1, _DOUBLES // scores.shape[-1])
    return np.concatenate([normaliser(scores[at : at + step]) for at in range(0, len(scores), step)])


@dataclass(slots=True)
class Spent:
    """Counters of the work that was done."""

    calls: int = 0  # batched calls of the model
    positions: int = 0  # prefixes whose vector was computed: their forwards without batches
    visits: int = 0  # prefixes that walks visited: the forwards of a sampler without a trie
    masks: int = 0
    tests: int = 0  # evaluations of potentials
    tests_saved: int = 0  # verdicts that were remembered

    @property
    def saved(self) -> int:
        """The forward passes that known prefixes saved, minus those that were computed ahead and not used."""
        return self.visits - self.positions


class AnyText:
    """Replaces a missing grammar: allows every token of text, and the end anywhere."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self.vocabulary = vocabulary
        ids = [i for i, text in enumerate(vocabulary.tokens) if text]
        words = (vocabulary.vocab_size + 31) // 32
        self.words: npt.NDArray[np.int32] = mask_of([*ids, *vocabulary.eos_token_ids], words)
        self.source: None = None


class Cursor(Protocol):
    """A sequence in progress: the fields that `Target.expand` reads."""

    tokens: list[int]
    context: Any
    matcher: Any
    synced: int


@dataclass(slots=True)
class _Place:
    """A cursor without a model's context; its matcher has read its tokens."""

    tokens: list[int]
    matcher: Any
    context: Any = None
    synced: int = 0


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
    thin: bool = False  # whether vectors may be thin; no potential may shape or refuse single tokens

    def __post_init__(self) -> None:
        self.vocabulary: Vocabulary = self.lm.vocabulary
        self.ends: list[int] = sorted(int(i) for i in self.lm.eos_token_ids)
        if not self.ends:
            raise StructgenError("the model has no end-of-sequence token, so no text ever ends")
        self.end: int = self.ends[0]
        self.spent: Spent = Spent()
        self.cancelled: threading.Event = threading.Event()
        self.thin = self.thin and self.shaping is None and self.condition is None
        self._ids: WeakValueDictionary[bytes, Ids] = WeakValueDictionary()
        if self.max_tokens < 1:
            raise ValueError(f"max_tokens must be at least 1, not {self.max_tokens}")
        if self.shaping is not None and self.shaping.prefix(Prefix((), b"")) != 0.0:
            raise ValueError("a potential with logw_next must weigh the empty text 1 (log weight 0)")
        self.remark: str = ""
        self._check_budget()

    @classmethod
    def of(
        cls, lm: LanguageModel, start: Context, grammar: Any, potential: Potential | None, **how: Any
    ) -> Target:
        """Returns a target whose potentials are sorted: those that shape the proposal, Boolean conditions,
        critics."""
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
        """Whether no factor is above 1; only then the trie's bounds hold."""
        return all(p is None or p.bounded for p in (self.shaping, self.condition, self.critic))

    def text(self, tokens: Sequence[int]) -> bytes:
        """Returns the bytes of ids, without end-of-sequence."""
        return self.vocabulary.decode([t for t in tokens if t not in self.ends])

    def expand(self, cursors: Sequence[Cursor], thin: bool | None = None) -> list[Vector]:
        """Returns the vectors of distinct prefixes. One batch makes the missing rows, another the masks.

        Args:
            thin: whether vectors may be thin; by default the target's `thin`.
        """
        thin = self.thin if thin is None else thin
        found: list[Vector] = []
        at_once = max(1, _ROW_BYTES // (4 * self.vocabulary.vocab_size))
        for first in range(0, len(cursors), at_once):
            if self.cancelled.is_set():
                raise StructgenError("sampling was cancelled")
            found += self._expand(cursors[first : first + at_once], thin)
        return found

    def _expand(self, cursors: Sequence[Cursor], thin: bool) -> list[Vector]:
        for cursor in cursors:
            self.sync(cursor)
        resident = getattr(self.lm, "resident", None)
        there = None if resident is None else resident([cursor.context for cursor in cursors])
        if there is not None:
            return self._expand_there(cursors, there, thin)
        rows = _own(self.lm.logprobs([cursor.context for cursor in cursors]))
        check_logprobs(rows, len(cursors), self.vocabulary.vocab_size)
        raw = self.law.scores(rows)
        self.spent.calls += 1
        self.spent.positions += len(cursors)
        masks = self._masks(cursors)
        self.spent.masks += len(cursors)
        return [
            (self._thin(row, mask) if thin else None)
            or self._vector(cursor, row, float(normaliser(row)), mask)
            for cursor, row, mask in zip(cursors, raw, masks, strict=True)
        ]

    def _expand_there(self, cursors: Sequence[Cursor], rows: Resident, thin: bool) -> list[Vector]:
        """Returns the vectors of the cursors, as `_expand` does, from rows that stay on another device. Of
        each row only the values that its vector keeps are copied."""
        rows.shape_by(self.law)
        self.spent.calls += 1
        self.spent.positions += len(cursors)
        masks = self._masks(cursors)
        self.spent.masks += len(cursors)
        several = len(self.ends) > 1
        ends = rows.take_out(self.ends) if several else np.full(len(cursors), NEVER)
        at = [i for i in range(len(cursors)) if thin and _count(masks[i]) >= vectors.THIN_FROM]
        found: dict[int, Vector] = {}
        for i, brief in zip(at, rows.briefs(at, masks[at], self._kept), strict=True):
            vector = None if brief is None else self._of_brief(brief, float(ends[i]), masks[i])
            if vector is not None:
                found[i] = vector
        others = [i for i in range(len(cursors)) if i not in found]
        allowed = [self._allowed(masks[i]) for i in others]
        values = rows.values(others, allowed)
        sums = rows.sums(masks) if others else np.empty((0, 3))
        for i, ids, raw in zip(others, allowed, values, strict=True):
            shift, best, value = sums[i].tolist()
            lost = int(best), value
            if several:
                shift, end = float(np.logaddexp(shift, ends[i])), float(ends[i])
                raw = np.where(ids == self.end, end, raw.astype(np.float64))
                if self.end not in ids and end > value:
                    lost = (self.end, end)
            found[i] = self._whole(cursors[i], ids, raw, shift, functools.partial(_said, lost))
        return [found[i] for i in range(len(cursors))]

    def rest_there(self, cursor: Cursor, row: Vector) -> Rest | None:
        """Returns the tokens that a thin vector leaves out, with their scores; None if the model's rows are
        not on a device."""
        resident = getattr(self.lm, "resident", None)
        if resident is None:
            return None
        self.sync(cursor)
        rows: Resident | None = resident([cursor.context])
        if rows is None:
            return None
        rows.shape_by(self.law)
        self.spent.calls += 1
        self.spent.positions += 1
        self.spent.masks += 1
        mask = self._masks([cursor])
        if len(self.ends) > 1:
            mask &= ~self._end_words  # a thin vector already contains the end that stands for all ends
        return rows.rest(mask, row.ids, vectors.BLOCK)

    def _thin(self, row: npt.NDArray[np.float32], mask: npt.NDArray[np.int32]) -> Vector | None:
        """Returns a thin vector in one pass over the row, or None if too few tokens are allowed."""
        if _count(mask) < vectors.THIN_FROM:
            return None
        if len(self.ends) == 1:
            brief, end = brief_row(row, mask, vectors.TOP), NEVER
        else:
            ends = row[self.ends]
            row[self.ends] = NEVER
            brief, end = brief_row(row, mask, self._kept), self._together(ends)
            row[self.ends] = ends
        return None if brief is None else self._of_brief(brief, end, mask)

    @property
    def _kept(self) -> int:
        """The number of tokens that a thin vector lists: TOP, or TOP - 1 if the sum of several ends is added
        as one entry."""
        return max(1, vectors.TOP - (len(self.ends) > 1))

    def _of_brief(self, brief: Brief, end: float, mask: npt.NDArray[np.int32]) -> Vector | None:
        """Returns a thin vector; None if draws would often fall on a token that the vector leaves out.

        Args:
            brief: a row in brief, without its ends if there are several. end: the sum of the ends.
        """
        ids, values, lost = brief.ids, brief.values, brief.lost
        shift, tail, entropy = brief.shift, brief.tail, max(0.0, brief.entropy)
        if len(self.ends) > 1:
            shift = float(np.logaddexp(shift, end))
            if not mask[self.end // 32] >> (self.end % 32) & 1:
                lost = (self.end, end) if lost is None or end > lost[1] else lost
            elif end > NEVER:
                at, wide = int(np.searchsorted(ids, self.end)), values.astype(np.float64)
                texts = brief.best + math.log(float(np.exp(wide - brief.best).sum()) + tail)
                share = math.exp(end - float(np.logaddexp(texts, end)))
                entropy = (1 - share) * entropy + _entropy_of_two(share)
                tail *= math.exp(min(0.0, brief.best - end))
                ids, values = np.insert(ids, at, self.end), np.insert(wide, at, end)
        found = Vector(ids, values, shift, tail=tail, entropy=entropy)
        if tail > vectors.THIN_TAIL * math.exp(found.log_mass - found.top):
            return None
        if found.log_mass < _LOSS and lost is not None:
            found.lost = ((lost[0], lost[1] - shift),)
        return found

    def allows(self, cursor: Cursor, token: int) -> bool:
        """Returns whether the grammar allows a token, which is no end. The budget may still refuse it."""
        self.sync(cursor)
        if token in self.ends or not 0 <= token < self.vocabulary.vocab_size:
            return False
        return isinstance(self.grammar, AnyText) or cursor.matcher.validate_tokens([token]) == 1

    def sync(self, cursor: Cursor) -> None:
        """Moves the context and the matcher of a cursor to the end of its tokens.

        A step to a prefix that is known leaves them where they are, until they are needed.
        """
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
                except UnsatisfiableBudget:  # even the shortest text does not fit
                    masks[i] = 0
        for i, cursor in enumerate(cursors):
            if len(cursor.tokens) >= self.max_tokens - 1:  # the last slot: only the end fits
                masks[i] &= self._end_words
        return masks

    @property
    def _end_words(self) -> npt.NDArray[np.int32]:
        return mask_of(self.ends, (self.vocabulary.vocab_size + 31) // 32)

    @staticmethod
    def _together(ends: npt.NDArray[Any]) -> float:
        """Returns the sum of several ends in double precision. With a sum in float32, the bounds on Z might
        not contain Z."""
        return float(np.logaddexp.reduce(ends.astype(np.float64)))

    def _vector(
        self, cursor: Cursor, row: npt.NDArray[np.float32], shift: float, mask: npt.NDArray[np.int32]
    ) -> Vector:
        allowed = self._allowed(mask)
        whole: npt.NDArray[np.float32] | Doubles = row
        if len(self.ends) > 1:
            whole = row.astype(np.float64)
            whole[self.ends], whole[self.end] = NEVER, self._together(row[self.ends])
        raw = whole[allowed]

        def refused() -> tuple[int, float]:
            whole[allowed] = NEVER
            best = int(np.argmax(whole))
            return best, float(whole[best])

        return self._whole(cursor, allowed, raw, shift, refused)

    def _whole(
        self,
        cursor: Cursor,
        allowed: Ids,
        raw: npt.NDArray[np.float32] | Doubles,
        shift: float,
        refused: Callable[[], tuple[int, float]],
    ) -> Vector:
        """Returns a whole vector of the tokens that a mask allows.

        Args:
            refused: gives the most probable token that the mask refuses, and its value.
        """
        ids, factor = allowed, None
        if self.shaping is not None:
            self.spent.tests += 1
            text = Prefix(tuple(cursor.tokens), self.text(cursor.tokens))
            factor = np.asarray(self.shaping.logw_next(text), np.float64)[ids]
            if ids.size:
                weight(float(factor.max()), text, self.shaping.bounded)  # NaN is the largest
        taken = (ids[:0], raw[:0])  # tokens that the mask allows and that have no weight
        if ids.size and not (raw.min() > NEVER and (factor is None or factor.min() > NEVER)):
            alive = raw > NEVER if factor is None else (raw > NEVER) & (factor > NEVER)
            taken = (ids[~alive], raw[~alive])
            ids, raw = ids[alive], raw[alive]
            factor = None if factor is None else factor[alive]
        if not ids.size:
            return Vector(ids, raw, shift, factor, (), self._why_empty(cursor, allowed))
        if raw.dtype != np.float32 and not (ids == self.end).any():
            raw = raw.astype(np.float32)  # the numbers are those of the model, which are float32
        found = Vector(ids, raw, shift, factor)
        if found.log_mass < _LOSS:
            rivals = [refused(), *((int(taken[0][i]), float(taken[1][i])) for i in taken[1].argsort()[-1:])]
            best, value = max(rivals, key=lambda rival: rival[1])
            if value > NEVER:
                found.lost = ((best, value - shift),)
        return found

    def _allowed(self, mask: npt.NDArray[np.int32]) -> Ids:
        """Returns the ids of a mask. Equal masks that are in use share one array."""
        key = hashlib.blake2b(mask.tobytes(), digest_size=16).digest()
        found = self._ids.get(key)
        if found is None:
            found = allowed_ids(mask, self.vocabulary.vocab_size).astype(np.int32)
            found.flags.writeable = False
            self._ids[key] = found
        return found

    def _why_empty(self, cursor: Cursor, allowed: Ids) -> str:
        if not allowed.size:
            return "length" if len(cursor.tokens) >= self.max_tokens - 1 else "dead end"
        if self.law.top_k is not None or self.law.top_p is not None:
            return "nucleus"
        return "probability 0" if self.shaping is None else "potential"

    def _check_budget(self) -> None:
        """Changes the budget to "reject" if the first mask under it is unknown. Warns if no text fits."""
        try:
            if isinstance(self.grammar, AnyText):
                raise BudgetExceeded
            mask = allocate_bitmask(1, self.vocabulary.vocab_size)
            self.grammar.matcher().fill_bitmask(mask, max_tokens=self.max_tokens)
        except UnsatisfiableBudget as error:
            self.remark = f"no text has weight: {error}"
            warnings.warn(self.remark, RuntimeWarning, stacklevel=outside())
        except BudgetExceeded:
            if self.budget == "reject":
                return
            self.budget = "reject"
            self.remark = "budget is 'reject': texts that run out of room weigh 0, because "
            self.remark += self._why_no_promise()

    def _why_no_promise(self) -> str:
        if isinstance(self.grammar, AnyText):
            return "there is no grammar"
        try:
            enough = self.grammar.matcher().token_bounds()[1]
        except BudgetExceeded:
            return f"no completion within max_tokens={self.max_tokens} is found and none ruled out"
        return f"no text is known to fit max_tokens={self.max_tokens}; {enough} are known to suffice"

    def leaves_out_longer(self, prefixes: Sequence[Sequence[int]]) -> bool:
        """Returns whether max_tokens forbids, after one of these prefixes, a token that the grammar
        allows."""
        if isinstance(self.grammar, AnyText):
            return True
        allowed = allocate_bitmask(1, self.vocabulary.vocab_size)
        for tokens in prefixes:
            matcher = self.grammar.matcher()
            matcher.accept_tokens(list(tokens))
            matcher.fill_bitmask(allowed)
            cursor = _Place(list(tokens), matcher)
            if _count(allowed[0] & ~self._masks([cursor])[0]):
                return True
        return False

    def definition(self) -> dict[str, Any]:
        """Returns the parts of the law beside model, prompt and grammar, for results."""
        return {
            "temperature": self.law.temperature,
            "top_k": self.law.top_k,
            "top_p": self.law.top_p,
            "max_tokens": self.max_tokens,
            "budget": self.budget,
            "potentials": [
                factor.name or type(factor).__name__
                for part in (self.shaping, self.condition, self.critic)
                if part is not None
                for factor in (part.factors if isinstance(part, Product) else [part])
            ],
        }

    def parts(self) -> dict[str, Any]:
        """Returns the parts on which a trie's numbers depend, by name, in brief; without the model's
        weights."""
        return {
            "vocabulary": vocabulary_digest(self.vocabulary),
            "ends": self.ends,
            "prompt": hashlib.sha256(np.asarray(self.start.tokens, np.int64).tobytes()).hexdigest(),
            "grammar": hashlib.sha256(_identity(self.grammar).encode()).hexdigest(),
            "law": [self.law.temperature, self.law.top_k, self.law.top_p],
            "max_tokens": self.max_tokens,
            "budget": self.budget,
            "potentials": [identity(p) for p in (self.shaping, self.condition, self.critic)],
        }

    def key(self) -> str:
        """Returns a digest of `parts`."""
        return hashlib.sha256(json.dumps(self.parts(), sort_keys=True).encode()).hexdigest()


def _said(lost: tuple[int, float]) -> tuple[int, float]:
    """Stands for the argument `refused` of `_whole` if the value is already known."""
    return lost


def _count(mask: npt.NDArray[np.int32]) -> int:
    """Returns the number of set bits."""
    return int.from_bytes(mask.tobytes(), "little").bit_count()


def _entropy_of_two(p: float) -> float:
    """Returns the entropy of a coin, in nats."""
    return sum(-x * math.log(x) for x in (p, 1 - p) if x > 0)


def _own(rows: npt.NDArray[Any]) -> npt.NDArray[np.float32]:
    """Returns rows that may be changed: a copy if the model's rows are read-only."""
    mine = rows.base is None and rows.flags.writeable and rows.dtype == np.float32
    return rows if mine else np.array(rows, np.float32)


def _one(factors: list[Potential]) -> Potential | None:
    return None if not factors else factors[0] if len(factors) == 1 else Product(factors)


def _identity(grammar: CompiledGrammar | AnyText) -> str:
    return "any text" if isinstance(grammar, AnyText) else grammar._identity()
