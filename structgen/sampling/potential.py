"""Potentials: weights on texts beyond the model and the grammar.

Enters: a `Prefix` (token ids and their bytes). Leaves: a natural-log weight; -inf forbids the text. Cost: it
depends on the implementation. The samplers evaluate each prefix once, in batches.

The problem. A condition on whole texts (a test passes, a second model likes it) is no grammar. A sampler that
asks the condition only about whole texts throws finished texts away. A sampler that asks about unfinished
texts may forbid a text that would meet the condition at its end.

The idea. A potential phi turns the target into  P(s) * 1[s in L] * phi.complete(s) / Z.  A potential answers
three questions:

    complete(s)     the weight of a whole text. Only this decides what is sampled.
    prefix(u)       a guess on the way. It is divided out again, except -inf, which ends a text early and
                    therefore promises that every extension is -inf, too (`contract.py` checks this when it
                    runs).
    logw_next(u)    an exact factor for each next token. It is mixed into the proposal, so that its
                    normaliser is exact.

For ``Predicate(lambda t: "x" not in t, at="token", monotone=True)`` the values of `prefix` are 0.0 for `ab`
and -inf for `abx`. Without ``monotone=True`` a function is asked at the end alone.

Potentials multiply: log weights add up, and -inf wins. A `Product` asks a later factor only about texts that
earlier factors left alive.

The names are those of Loula et al. 2025 and genlm-control.

Invariants. The laws stand at `Potential`; `contract.check_laws` tests them for any implementation.
- A bounded potential has no value above 0. CARS, ASAp and the certified bracket rely on this; `weight` checks
  each value.
- Different potentials without a name have different identities (`identity`), so that a trie of one is never
  used for the other.
"""

from __future__ import annotations

import math
import uuid
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal
from weakref import WeakKeyDictionary

import numpy as np

from .._checks import above_zero, function, one_of
from .._extras import missing
from ..errors import StructgenError
from ..logits import allocate_bitmask, allowed_ids
from ..matcher import Forks
from .logspace import NEVER, Doubles

if TYPE_CHECKING:
    from ..grammar import CompiledGrammar
    from ..lm.base import Context, LanguageModel
    from ..vocabulary import Vocabulary

__all__ = [
    "Canonical",
    "GrammarPotential",
    "JsonSchemaValid",
    "LanguageModelPotential",
    "Potential",
    "PotentialError",
    "Predicate",
    "Prefix",
    "Product",
]


_ROUNDING = 1e-5  # nats; float32 rows of 200,000 probabilities sum to 1 up to a tenth of this
_MATCHERS = 1024  # the most matchers that a GrammarPotential keeps


class PotentialError(StructgenError):
    """A potential breaks its contract, so samples drawn with it would be biased."""


@dataclass(frozen=True)
class Prefix:
    """A text so far: the ids after the prompt, without end-of-sequence, and their bytes."""

    tokens: tuple[int, ...]
    data: bytes

    @cached_property
    def text(self) -> str:
        """The bytes as text; an unfinished character at the end becomes U+FFFD."""
        return self.data.decode("utf-8", "replace")


class Potential:
    """A weight on texts. Methods that are not overridden give the weight 1.

    Laws, which `contract.check_laws` tests:

    - prefix = -inf implies that prefix and complete of every extension are -inf.
    - With `shapes`, prefix(ub) = prefix(u) + logw_next(u)[b]. With e the end-of-sequence id,
      complete(u) = prefix(u) + logw_next(u)[e].
    - A batch gives the values of single calls.

    Attributes:
        name: stands for the potential in the key of a trie. Without a name a trie serves only the same object
            (for a predicate: the same function) in the same process.
        boolean: every value is 0 or -inf.
        bounded: no value is above 0, and none of `logw_next`. CARS, ASAp and the certified bracket need that.
        shapes: the potential has `logw_next`, which is mixed into the proposal.
        guides: `prefix` may differ from 0 before the end. False lets samplers skip the calls.
    """

    name: str | None = None
    boolean: bool = False
    bounded: bool = False
    shapes: bool = False
    guides: bool = True

    def prefix(self, text: Prefix) -> float:
        """Returns the log weight of a text that goes on. -inf means that every text with this beginning has
        no weight."""
        return 0.0

    def complete(self, text: Prefix) -> float:
        """Returns the log weight of a whole text."""
        return 0.0

    def logw_next(self, text: Prefix) -> Doubles:
        """Returns the log weight of each next token, float64, shape (V,).

        All end-of-sequence ids have the same weight.
        """
        raise NotImplementedError(f"{type(self).__name__} has no logw_next")

    def prefix_batch(self, texts: Sequence[Prefix]) -> list[float]:
        """Returns the value of `prefix` for each text."""
        return [self.prefix(text) for text in texts]

    def complete_batch(self, texts: Sequence[Prefix]) -> list[float]:
        """Returns the value of `complete` for each text."""
        return [self.complete(text) for text in texts]

    def __mul__(self, other: Potential) -> Product:
        return Product([self, other])


class Product(Potential):
    """The product of potentials: log weights add up, and -inf wins."""

    def __init__(self, factors: Iterable[Potential]) -> None:
        found: list[Potential] = []
        for factor in factors:
            found += factor.factors if isinstance(factor, Product) else [factor]
        self.factors: list[Potential] = found
        self.boolean: bool = all(f.boolean for f in found)
        self.bounded: bool = all(f.bounded for f in found)
        self.shapes: bool = bool(found) and all(f.shapes for f in found)
        self.guides: bool = any(f.guides for f in found)

    def prefix(self, text: Prefix) -> float:
        return _sum(factor.prefix(text) for factor in self.factors if factor.guides)

    def complete(self, text: Prefix) -> float:
        return _sum(factor.complete(text) for factor in self.factors)

    def logw_next(self, text: Prefix) -> Doubles:
        total = self.factors[0].logw_next(text).copy()
        for factor in self.factors[1:]:
            total += factor.logw_next(text)
        return total

    def prefix_batch(self, texts: Sequence[Prefix]) -> list[float]:
        return self._batch(texts, [f for f in self.factors if f.guides], "prefix_batch")

    def complete_batch(self, texts: Sequence[Prefix]) -> list[float]:
        return self._batch(texts, self.factors, "complete_batch")

    def _batch(self, texts: Sequence[Prefix], factors: list[Potential], name: str) -> list[float]:
        """Asks each factor in turn, about the texts that earlier factors left alive."""
        values = [0.0] * len(texts)
        for factor in factors:
            alive = [i for i, value in enumerate(values) if value > NEVER]
            found = getattr(factor, name)([texts[i] for i in alive])
            for i, value in zip(alive, found, strict=True):
                values[i] += float(value)
        return values


def _sum(values: Iterable[float]) -> float:
    total = 0.0
    for value in values:
        if value == NEVER:
            return NEVER
        total += value
    return total


class Predicate(Potential):
    """A condition as a Python function: text (or bytes) in, True or False out.

    Args:
        fn: the function. It gets the text, or its bytes with `takes="bytes"`.
        at: when the function is asked. "token": after every token. "unit": when the text ends with one of
            `ends`, and at the end. "end": only about whole texts.
        monotone: whether a text that fails has only extensions that fail. If not, the function is asked at
            the end alone, whatever `at` is, because an early False would forbid texts that are fine in the
            end.
        ends: the texts that close a unit.
    """

    boolean = True
    bounded = True

    def __init__(
        self,
        fn: Callable[[Any], bool],
        at: Literal["token", "unit", "end"] = "end",
        *,
        monotone: bool | None = None,
        ends: Sequence[str] = ("\n", ".", ";"),
        takes: Literal["text", "bytes"] = "text",
    ) -> None:
        function("fn", fn, "a text")
        one_of("at", at, ("token", "unit", "end"))
        one_of("takes", takes, ("text", "bytes"))
        if at != "end" and monotone is None:
            raise ValueError(
                f"at={at!r} needs monotone=True (a text that fails never becomes fine again) or "
                "monotone=False (then it is asked at the end)"
            )
        self.fn = fn
        self.at = at if monotone or at == "end" else "end"
        self.takes = takes
        self.guides: bool = self.at != "end"
        self.ends: tuple[bytes, ...] = tuple(end.encode() for end in ends)

    def prefix(self, text: Prefix) -> float:
        if self.at == "end" or (self.at == "unit" and not text.data.endswith(self.ends)):
            return 0.0
        return self.complete(text)

    def complete(self, text: Prefix) -> float:
        return 0.0 if self.fn(text.data if self.takes == "bytes" else text.text) else NEVER


class JsonSchemaValid(Potential):
    """Accepts whole texts that are JSON and valid under a schema. The library jsonschema decides.

    This potential is for conditions that the grammar lacks: a second schema, a custom format, a draft that
    the engine refuses.

    Raises:
        MissingDependency: jsonschema is not installed.
    """

    boolean = True
    bounded = True
    guides = False

    def __init__(self, schema: Any, *, formats: bool = True) -> None:
        try:
            import jsonschema  # type: ignore[import-untyped, unused-ignore]
        except ImportError as error:
            raise missing(error, "potentials of a JSON Schema") from None
        kind: Any = jsonschema.validators.validator_for(schema, default=jsonschema.Draft202012Validator)
        kind.check_schema(schema)
        self._validator = kind(schema, format_checker=kind.FORMAT_CHECKER if formats else None)

    def complete(self, text: Prefix) -> float:
        import json

        try:
            value = json.loads(text.data)
        except (ValueError, RecursionError):
            return NEVER
        return 0.0 if self._validator.is_valid(value) else NEVER


class Canonical(Potential):
    """Accepts texts whose tokens are the tokenizer's own tokenization of their bytes.

    A target is a law over token strings, and a model gives some probability to other tokenizations. Only
    whole texts are judged, because another tokenization may become the canonical one with the next token.
    """

    name: str = "canonical"  # the vocabulary is in the key of a trie already
    boolean = True
    bounded = True
    guides = False

    def __init__(self, vocabulary: Vocabulary) -> None:
        self.vocabulary = vocabulary

    def complete(self, text: Prefix) -> float:
        return 0.0 if tuple(self.vocabulary.encode(text.data)) == text.tokens else NEVER


class GrammarPotential(Potential):
    """A second grammar over the same vocabulary. The texts of both languages remain.

    Its `logw_next` is a mask (0 or -inf). Mixed into the proposal, the mask adds no variance, but the
    intersection may have dead ends, which sampling learns.
    """

    boolean = True
    bounded = True
    shapes = True

    def __init__(self, grammar: CompiledGrammar) -> None:
        self.grammar = grammar
        self._size = grammar.vocabulary.vocab_size
        self._mask = allocate_bitmask(1, self._size)
        self._forks = Forks(grammar, _MATCHERS)

    def prefix(self, text: Prefix) -> float:
        return 0.0 if self._forks.at(text.tokens) is not None else NEVER

    def complete(self, text: Prefix) -> float:
        matcher = self._forks.at(text.tokens)
        return 0.0 if matcher is not None and matcher.is_accepting() else NEVER

    def logw_next(self, text: Prefix) -> Doubles:
        matcher = self._forks.at(text.tokens)
        out = np.full(self._size, NEVER)
        if matcher is not None:
            matcher.fill_bitmask(self._mask)
            out[allowed_ids(self._mask, self._size)] = 0.0
        return out


class LanguageModelPotential(Potential):
    """A second model over the same vocabulary, to a power: phi(s) = P2(s | prompt) ** power.

    With power 1 the target is the product of both experts. Its log-probabilities shape the proposal. With the
    model that is sampled itself, and power a - 1, the target is P(s)^a: whole texts sharpened, which no
    temperature does, because it sharpens token by token.
    """

    bounded = True
    shapes = True

    def __init__(self, lm: LanguageModel, prompt: str | Sequence[int], power: float = 1.0) -> None:
        above_zero("power", power)
        self.lm = lm
        self.power = power
        self._start = lm.start(prompt)
        self._ends = [int(i) for i in lm.eos_token_ids]

    def prefix(self, text: Prefix) -> float:
        return self.prefix_batch([text])[0]

    def complete(self, text: Prefix) -> float:
        end = self._next([text])[0][self._ends[0]]
        return self.prefix(text) + float(end)

    def weigh(self, rows: Doubles) -> Doubles:
        """Returns the log factor of every next token, from the second model's log-probabilities."""
        rows *= self.power
        return rows

    def prefix_batch(self, texts: Sequence[Prefix]) -> list[float]:
        paths = [[self._start] for _ in texts]
        for path, text in zip(paths, texts, strict=True):
            for token in text.tokens:
                path.append(path[-1].extend(token))
        asked = [node for path in paths for node in path[:-1]]
        rows = iter(self._rows(asked)) if asked else iter(())
        return [sum(float(next(rows)[token]) for token in text.tokens) for text in texts]

    def logw_next(self, text: Prefix) -> Doubles:
        row: Doubles = self._next([text])[0]
        return row

    def _next(self, texts: Sequence[Prefix]) -> Doubles:
        nodes = []
        for text in texts:
            node = self._start
            for token in text.tokens:
                node = node.extend(token)
            nodes.append(node)
        return self._rows(nodes)

    def _rows(self, nodes: Sequence[Context]) -> Doubles:
        """Returns log factors after prefixes. Each end gets the log factor of the summed probability of all
        ends."""
        rows: Doubles = self.lm.logprobs(nodes).astype(np.float64)
        rows[:, self._ends] = np.logaddexp.reduce(rows[:, self._ends], axis=1, keepdims=True)
        return self.weigh(_rounded(rows))


def _rounded(logprobs: Doubles) -> Doubles:
    """Sets log-probabilities that rounding made larger than 0 to 0, in place.

    Float32 rows sum to 1 only up to rounding, so a token with nearly all probability, or the sum of several
    ends, may come out above 1. A value further above 0 does not come from rounding, and `weight` refuses it.
    """
    logprobs[(logprobs > 0.0) & (logprobs < _ROUNDING)] = 0.0
    return logprobs


def weight(value: float, text: Prefix, bounded: bool = False) -> float:
    """Returns a potential's value, checked. Raises a PotentialError if the value is NaN or infinite, or
    breaks the potential's own bound."""
    value = float(value)
    if not value < math.inf:
        raise PotentialError(f"a potential gave {text.text[-60:]!r} the log weight {value}")
    if bounded and value > 0.0:
        raise PotentialError(
            f"a potential with bounded=True gave {text.text[-60:]!r} the log weight {value}: "
            "say bounded=False"
        )
    return value


_serials: WeakKeyDictionary[Any, str] = WeakKeyDictionary()


def identity(potential: Potential | None) -> str:
    """Returns a text that differs for different potentials, for the key of a trie."""
    if potential is None:
        return ""
    if potential.name is not None:
        return f"name {potential.name}"
    if isinstance(potential, Product):
        return "*".join(identity(factor) for factor in potential.factors)
    if isinstance(potential, Predicate):
        return f"predicate {_serial(potential.fn)} {potential.at} {potential.takes} {potential.ends}"
    return _serial(potential)


def _serial(thing: Any) -> str:
    """Returns a name that no other object of any process has during this object's life."""
    try:
        if thing not in _serials:
            _serials[thing] = uuid.uuid4().hex
        return _serials[thing]
    except TypeError:  # The object allows no weak reference or no hash, so each call gives a new name.
        return uuid.uuid4().hex


def as_potential(value: Any) -> Potential | None:
    """Makes one potential of a potential, a function (asked at the end) or a list of these. Returns None for
    None and for a list without any."""
    if value is None or isinstance(value, Potential):
        return value
    if isinstance(value, (list, tuple)):
        parts = [part for part in map(as_potential, value) if part is not None]
        return Product(parts) if len(parts) > 1 else (parts[0] if parts else None)
    if callable(value):
        return Predicate(value)
    raise TypeError(f"a potential is a Potential, a function or a list of these, not {type(value).__name__}")
