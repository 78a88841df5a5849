"""The options of `sg.generate` and its siblings: their names, types, defaults and checks.

Enters: keyword arguments. Leaves: `Settings`. Cost: nothing.

`Options` and `Settings` have the same names, which a test compares: `Options` is what type checkers read,
`Settings` what runs.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, Literal, Required, Union, cast

import numpy as np

from .._checks import no_option, number, one_of, whole
from .._drawing import Drawing
from ..constraints import NAMED
from ..json_options import WrittenOptions
from ..lm.asked import AskOptions
from ..lm.prompts import Format
from ..reasoning import Reasoning

if TYPE_CHECKING:
    from ..compiler import Compiler
    from ..grammar import CompiledGrammar
    from ..speculation import Drafter, Speculation
    from ..templates import Template

MOST_READS = 4_096  # the largest value of `confidence`
Speculate = Union["Literal['auto']", "Sequence[Drafter]", "Speculation", None]


class Options(AskOptions, total=False):
    """The options of every call; `sg.generate` explains each."""

    max_tokens: int
    temperature: float | None
    top_k: int | None
    top_p: float | None
    min_p: float
    frequency_penalty: float
    presence_penalty: float
    repetition_penalty: float
    structure_penalty: float
    logit_bias: Mapping[int | str, float] | None
    seed: int | None
    stop: str | Sequence[str] | None
    logprobs: bool
    top_logprobs: int
    confidence: int
    retries: int
    on_invalid: Literal["forbid", "tell"]
    complete: bool
    speculate: Speculate


class TextOptions(Options, total=False):
    """Options of constraints for which `Result.value` is the text."""

    regex: str | re.Pattern[str] | os.PathLike[str] | None
    choice: Iterable[str]
    gbnf: str | os.PathLike[str] | None
    lark: str | os.PathLike[str] | None


class GrammarOptions(Options, total=False):
    """Options of constraints for which `Result.value` is the result of the grammar's `parse`."""

    grammar: CompiledGrammar | Template | str | os.PathLike[str] | None
    response_format: Any


class ToolOptions(Options, total=False):
    """Options of tools, for which `Result.value` is a `ToolReply`."""

    tools: Required[Sequence[Callable[..., Any] | Mapping[str, Any]]]
    tool_choice: Any
    tool_style: str | None
    parallel_tool_calls: bool | None
    tool_strictness: Literal["auto", "function", "parameter"] | None


@dataclass(frozen=True, kw_only=True)
class Settings(WrittenOptions):
    """The checked options of one call."""

    max_tokens: int = 256
    temperature: float | None = None
    top_k: int | None = None
    top_p: float | None = None
    min_p: float = 0.0
    frequency_penalty: float = 0.0
    presence_penalty: float = 0.0
    repetition_penalty: float = 1.0
    structure_penalty: float = 1.0
    logit_bias: Mapping[int | str, float] | None = None
    seed: int | None = None
    stop: str | Sequence[str] | None = None
    logprobs: bool = True
    top_logprobs: int = 0
    confidence: int = 0
    retries: int = 0
    on_invalid: Literal["forbid", "tell"] = "forbid"
    compiler: Compiler | None = None
    format: Format = "auto"
    complete: bool = True
    speculate: Speculate = None
    reasoning: Reasoning | str | bool | None = None
    answer_tokens: int | None = None
    n: int = 1
    stops: tuple[str, ...] = field(default=(), init=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        whole("max_tokens", self.max_tokens, 1)
        whole("n", self.n, 1)
        if self.top_k is not None:
            whole("top_k", self.top_k, 1)
        for name in ("top_logprobs", "retries", "seed", "answer_tokens"):
            if getattr(self, name) is not None:
                whole(name, getattr(self, name), 0)
        whole("confidence", self.confidence, 0, MOST_READS)
        if self.temperature is not None:
            number("temperature", self.temperature, "0 or more", lambda x: 0 <= x < math.inf)
        if self.top_p is not None:
            number("top_p", self.top_p, "above 0 and at most 1", lambda x: 0 < x <= 1)
        number("min_p", self.min_p, "at least 0 and below 1", lambda x: 0 <= x < 1)
        number("repetition_penalty", self.repetition_penalty, "above 0", lambda x: 0 < x < math.inf)
        number("structure_penalty", self.structure_penalty, "above 0 and at most 1", lambda x: 0 < x <= 1)
        for name in ("frequency_penalty", "presence_penalty"):
            number(name, getattr(self, name), "a finite number", math.isfinite)
        if self.n > 1 and self.temperature == 0:
            raise ValueError("n > 1 needs a temperature above 0: greedy texts would all be the same")
        one_of("on_invalid", self.on_invalid, ("forbid", "tell"))
        object.__setattr__(self, "stops", _stops(self.stop))
        if self.speculate is not None and self.shaped:
            raise ValueError(
                "speculate= takes temperature, top_k and top_p; leave min_p, penalties, logit_bias and "
                "top_logprobs out"
            )

    @property
    def shaped(self) -> bool:
        """Whether an option changes the scores in a way that speculation does not support."""
        return bool(
            self.min_p
            or self.logit_bias
            or self.top_logprobs
            or (self.frequency_penalty, self.presence_penalty, self.repetition_penalty) != (0.0, 0.0, 1.0)
            or self.structure_penalty != 1.0
        )

    @property
    def json(self) -> dict[str, Any]:
        """The options of JSON Schemas."""
        return self.arguments()

    def sampling(self, vocab_size: int, special: Mapping[str, int]) -> Drawing:
        """Returns how tokens are drawn, with a random seed where draws need one and none is given.

        The default temperature is 0. For several texts it is 1, because they would be equal at 0.
        """
        temperature = self.temperature
        if temperature is None:
            temperature = 1.0 if self.n > 1 else 0.0
        seed = self.seed
        if temperature > 0 and seed is None:
            seed = cast(int, np.random.SeedSequence().entropy)
        return Drawing(
            temperature,
            self.top_k,
            self.top_p,
            seed if temperature > 0 else None,
            min_p=self.min_p,
            frequency_penalty=self.frequency_penalty,
            presence_penalty=self.presence_penalty,
            repetition_penalty=self.repetition_penalty,
            structure_penalty=self.structure_penalty,
            logit_bias=_biases(self.logit_bias, vocab_size, special),
        )


_NAMES = {f.name for f in fields(Settings) if f.init}


def settings_of(given: Mapping[str, Any]) -> tuple[Settings, dict[str, Any]]:
    """Splits the keyword arguments of a call into the settings and the arguments that name the constraint.

    Raises:
        TypeError: an argument that no call takes; the error names the nearest one.
        ValueError: a value outside its range.
    """
    constraint = {name: value for name, value in given.items() if name in NAMED}
    rest = {name: value for name, value in given.items() if name not in constraint}
    for name in rest:
        if name not in _NAMES:
            raise no_option(name, _NAMES, NAMED)
    if rest.get("n") is None:
        rest.pop("n", None)
    return Settings(**rest), constraint


def _stops(given: Any) -> tuple[str, ...]:
    if given is None:
        return ()
    stops = (given,) if isinstance(given, str) else given
    if not isinstance(stops, Sequence) or isinstance(stops, bytes | bytearray):
        raise TypeError(f"stop is a text or a list of texts, not {given!r:.60}")
    for stop in stops:
        if not isinstance(stop, str):
            raise TypeError(f"stop is a text or a list of texts, and {stop!r:.60} is none")
        if not stop:
            raise ValueError("a stop string must not be empty: it would end every text at once")
    return tuple(stops)


def _biases(
    given: Mapping[int | str, float] | None, vocab_size: int, special: Mapping[str, int]
) -> dict[int, float]:
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise TypeError(f"logit_bias is a dict of token id to number, not {given!r:.60}")
    found: dict[int, float] = {}
    for key, value in given.items():
        token: Any = key
        if isinstance(key, str):
            token = special.get(key, int(key) if key.lstrip("-").isdecimal() else key)
        if not hasattr(token, "__index__"):
            raise TypeError(
                f"logit_bias is a dict of token id to number, and {key!r:.40} is no id; "
                "vocabulary.encode(text) gives the ids of a text"
            )
        if not 0 <= token < vocab_size:
            raise ValueError(f"logit_bias names the id {token}, and ids end at {vocab_size - 1}")
        if isinstance(value, str) or not hasattr(value, "__float__") or math.isnan(float(value)):
            raise TypeError(f"logit_bias gives {key!r} the value {value!r:.40}, which is no number")
        found[int(token)] = float(value)
    return found
