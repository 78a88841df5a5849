"""One call from a prompt and a schema to a value: `sg.generate`.

Enters: a model, a prompt, what the text must be. Leaves: `Result`: text, value, tokens, log-probabilities.
Cost: one forward a token (n samples share it), one mask a token, a sort of V numbers with `top_p`.

Each step, in this order: the model's log-probabilities; the mask; temperature; top-k; top-p; the draw. The
mask comes first, so that top-k and top-p choose among allowed tokens and never leave none. The law of the
result is *local*: each token follows the model's distribution over the tokens allowed there, which is not
the model's distribution over whole texts of the language. Forced tokens are drawn like others: each costs
a forward, and each has a log-probability.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, Union, cast, overload

import numpy as np
import numpy.typing as npt

from ._draws import Noise, draw
from .errors import BudgetExceeded, StructgenError, UnsatisfiableBudget
from .grammar import CompiledGrammar, Matcher, fill_bitmasks
from .lm.load import check_vocabulary, compiler_of, language_model, room_after
from .lm.prompts import Format, formatted
from .logits import allocate_bitmask, apply_bitmask

if TYPE_CHECKING:
    from .compiler import Compiler
    from .lm.base import Context, LanguageModel
    from .speculation import Drafter, Speculation, Statistics
    from .vocabulary import Vocabulary

__all__ = ["Result", "Sampling", "generate"]

Speculate = Union["Literal['auto']", "Sequence[Drafter]", "Speculation", None]


@dataclass(frozen=True, slots=True)
class Sampling:
    """How tokens were drawn. `order` is the order of the operations on the log-probabilities.

    `seed` repeats the draws also where none was given. `law` names the distribution: "local" is the model
    renormalised over the allowed tokens of each step.
    """

    temperature: float
    top_k: int | None
    top_p: float | None
    seed: int | None
    order: tuple[str, ...] = ("mask", "temperature", "top_k", "top_p")
    law: str = "local"


@dataclass(frozen=True, slots=True)
class Result:
    """One generated text.

    Attributes:
        text: the text, without end-of-sequence tokens; bytes that are no UTF-8 become U+FFFD.
        value: what the grammar makes of the text (parsed JSON, the Python type); the text itself without a
            grammar; None when it was cut off.
        tokens: the ids drawn, end-of-sequence included.
        logprobs: the model's natural-log probability of each, before mask and temperature.
        finish_reason: "stop" after an end-of-sequence token, "length" when the tokens ran out.
        budget_bound: whether `max_tokens` forbade a token on the way that the grammar allows, so that the
            text could still end in time. The text may then be shorter than the model would have had it. A
            text that stopped where this is False is the same under any larger `max_tokens`.
        prompt_tokens: ids of the prompt.
        timings: seconds of the whole call, shared by its n results: "load", "compile", "prompt" (the first
            forward), "forward" (the others), "mask", "sample", "total"; speculating, the
            parts of `Statistics.seconds` instead.
        sampling: how the tokens were drawn.
        speculation: what speculative decoding did, all n results together; None without it.
    """

    text: str
    value: Any
    tokens: list[int]
    logprobs: list[float]
    finish_reason: Literal["stop", "length"]
    prompt_tokens: int
    timings: dict[str, float]
    sampling: Sampling
    speculation: Statistics | None = None
    budget_bound: bool = False


@dataclass(slots=True)
class _Sequence:
    """One sample in the making; `matcher` is None without a grammar."""

    context: Context
    matcher: Matcher | None
    noise: Noise | None
    tokens: list[int] = field(default_factory=list)
    logprobs: list[float] = field(default_factory=list)
    done: bool = False
    bound: bool = False  # the budget narrowed a mask


class _Clock:
    """Seconds by part of the work."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._begin = self._last = time.perf_counter()

    def lap(self, part: str) -> None:
        now = time.perf_counter()
        self.seconds[part] = self.seconds.get(part, 0.0) + now - self._last
        self._last = now

    def total(self) -> dict[str, float]:
        return {**self.seconds, "total": time.perf_counter() - self._begin}


# `typing.overload` keeps what it decorates, and with it this module's globals and all models that they lead
# to, beyond the last collection at exit; the core would then report them as leaked.
if TYPE_CHECKING:

    @overload
    def generate(
        model: Any,
        prompt: Any,
        schema: Any = None,
        *,
        max_tokens: int = 256,
        temperature: float = 0.0,
        top_k: int | None = None,
        top_p: float | None = None,
        seed: int | None = None,
        n: Literal[1] = 1,
        grammar: CompiledGrammar | None = None,
        compiler: Compiler | None = None,
        whitespace: str = "compact",
        extra_keys: Literal["allow", "forbid"] = "allow",
        format: Format = "auto",
        complete: bool = True,
        speculate: Speculate = None,
        logprobs: bool = True,
    ) -> Result: ...

    @overload
    def generate(
        model: Any,
        prompt: Any,
        schema: Any = None,
        *,
        max_tokens: int = 256,
        temperature: float = 0.0,
        top_k: int | None = None,
        top_p: float | None = None,
        seed: int | None = None,
        n: int,
        grammar: CompiledGrammar | None = None,
        compiler: Compiler | None = None,
        whitespace: str = "compact",
        extra_keys: Literal["allow", "forbid"] = "allow",
        format: Format = "auto",
        complete: bool = True,
        speculate: Speculate = None,
        logprobs: bool = True,
    ) -> Result | list[Result]: ...


def generate(
    model: Any,
    prompt: Any,
    schema: Any = None,
    *,
    max_tokens: int = 256,
    temperature: float = 0.0,
    top_k: int | None = None,
    top_p: float | None = None,
    seed: int | None = None,
    n: int = 1,
    grammar: CompiledGrammar | None = None,
    compiler: Compiler | None = None,
    whitespace: str = "compact",
    extra_keys: Literal["allow", "forbid"] = "allow",
    format: Format = "auto",
    complete: bool = True,
    speculate: Speculate = None,
    logprobs: bool = True,
) -> Result | list[Result]:
    """Generate a text that the schema or grammar accepts.

    Args:
        model: None or "embedded" (the model that comes with structgen), a folder or hub id, a pair
            (model, tokenizer) of transformers, or a `LanguageModel`. Folders and ids stay loaded (the last
            two); make a `TransformersLM` to use a pair again and again.
        prompt: a text, token ids, or a list of chat messages ({"role": ..., "content": ...}).
        schema: dict, bool, JSON text or a Python type; None: no schema. Numbers are written in the
            canonical way and strings in the plain one (`Compiler.json_schema`); `grammar` takes others.
        max_tokens: ids drawn at most, end-of-sequence included; less where the model's context ends.
        temperature: 0 takes the most probable allowed token, the lowest id where two are equal.
        top_k: draw among the k most probable allowed tokens.
        top_p: draw among the fewest of those whose probabilities sum to at least this.
        seed: draws repeat under the same seed; result i does not depend on n.
        n: how many results; more than one needs a temperature above 0. A list is returned for n > 1.
        grammar: a compiled grammar instead of a schema.
        compiler: compiles the schema; by default one per model, kept with its caches.
        whitespace: of the JSON text, as in `Compiler.json_schema`.
        extra_keys: "forbid" closes the objects of the schema, as in `Compiler.json_schema`.
        format: "plain" gives the prompt to the model as it is; "chat" puts it into the tokenizer's chat
            template, "embedded" into the form that the embedded model was trained on; "auto" is "embedded"
            for that model, "chat" for messages, else "plain".
        complete: allow only tokens after which the text can still be completed within `max_tokens`.
        speculate: "auto", a list of drafters or a `structgen.speculation.Speculation`: several tokens a
            forward, and the same ones as without, under the same seed too (but for models whose floating
            point decides a near tie differently in a wider forward). "auto" does nothing for a model that
            cannot take drafts back; drafters raise LanguageModelError there.
        logprobs: False leaves `Result.logprobs` empty, which saves work when speculating.

    Raises:
        ValueError: arguments that make no sense together.
        LanguageModelError: the model cannot be loaded; the prompt does not fit (ContextTooLong).
        VocabularyError: tokenizer, model and grammar do not belong together.
        GrammarError: the schema cannot be compiled; UnsatisfiableBudget: `max_tokens` is too small for it.
    """
    _check(max_tokens, temperature, top_k, top_p, n, schema, grammar)
    clock = _Clock()
    lm = language_model(model)
    clock.lap("load")
    if grammar is None and schema is not None:
        grammar = _compiled(schema, whitespace, extra_keys, compiler or compiler_of(lm))
    if grammar is not None:
        check_vocabulary(grammar.vocabulary, lm.vocabulary)
    clock.lap("compile")
    start = lm.start(formatted(lm, prompt, schema if grammar is None else grammar.source, format))
    room = room_after(lm, start, max_tokens)
    if temperature > 0 and seed is None:
        seed = cast(int, np.random.SeedSequence().entropy)
    sampling = Sampling(temperature, top_k, top_p, seed if temperature > 0 else None)
    sequences = [
        _Sequence(start, None if grammar is None else grammar.matcher(), noise)
        for noise in _noises(sampling, n)
    ]
    budget = room if complete and grammar is not None and _can_budget(grammar, room) else None
    statistics = None
    if speculate is not None:
        from .speculation.api import decode
        from .speculation.options import resolve

        options = resolve(speculate, lm)
        if options is not None:
            again = None
            if schema is not None:
                again = partial(_compiled, schema, whitespace, extra_keys)
            statistics = decode(
                lm,
                start.tokens,
                sequences,
                sampling,
                options,
                room=room,
                budget=budget,
                grammar=grammar,
                compile=again,
                text=prompt if isinstance(prompt, str) else None,
                logprobs=logprobs,
            )
            clock.lap("speculation")
            if budget is not None and grammar is not None:
                for sequence in sequences:
                    sequence.bound = _narrowed(grammar, sequence.tokens, budget)
            for part, seconds in statistics.seconds.items():
                clock.seconds[part] = clock.seconds.get(part, 0.0) + seconds
    for step in range(room if statistics is None else 0):
        live = [s for s in sequences if not s.done]
        if not live:
            break
        _step(lm, live, sampling, None if budget is None else budget - step, clock)
    timings = clock.total()
    results = [_result(s, lm, grammar, len(start), sampling, timings, statistics) for s in sequences]
    if not logprobs:
        results = [replace(r, logprobs=[]) for r in results]
    return results[0] if n == 1 else results


def _compiled(
    schema: Any, whitespace: str, extra_keys: Literal["allow", "forbid"], compiler: Compiler
) -> CompiledGrammar:
    return compiler.json_schema(
        schema, whitespace=whitespace, numbers="canonical", strings="plain", extra_keys=extra_keys
    )


def _can_budget(grammar: CompiledGrammar, room: int) -> bool:
    """False where no completion that fits is found and none is ruled out; the answer may then be cut off.
    UnsatisfiableBudget: it is proved that nothing fits."""
    matcher = grammar.matcher()
    try:
        if matcher._bounds(False)[1] > room:
            matcher.fill_bitmask(allocate_bitmask(1, grammar.vocabulary.vocab_size), max_tokens=room)
    except UnsatisfiableBudget:
        raise
    except BudgetExceeded:
        return False
    return True


def _step(
    lm: LanguageModel, live: list[_Sequence], sampling: Sampling, budget: int | None, clock: _Clock
) -> None:
    """One token for every live sequence."""
    from .lm.base import check_logprobs

    clock.lap("sample")
    raw = lm.logprobs([s.context for s in live])
    check_logprobs(raw, len(live), lm.vocabulary.vocab_size)
    clock.lap("forward" if live[0].tokens else "prompt")
    allowed = _masked(raw, live, budget, lm.vocabulary)
    clock.lap("mask")
    for row, sequence in enumerate(live):
        token = draw(allowed[row], sampling, sequence.noise, len(sequence.tokens))
        sequence.tokens.append(token)
        sequence.logprobs.append(float(raw[row, token]))
        if sequence.matcher is None:
            sequence.done = token in lm.eos_token_ids
        elif not sequence.matcher.accept_token(token):
            raise StructgenError(f"token {token} was allowed and then refused: this is a bug in structgen")
        else:
            sequence.done = sequence.matcher.is_terminated()
        if not sequence.done:
            sequence.context = sequence.context.extend(token)
    clock.lap("sample")


def _masked(
    raw: npt.NDArray[np.float32], live: list[_Sequence], budget: int | None, vocabulary: Vocabulary
) -> npt.NDArray[np.float32]:
    """The log-probabilities with -inf where a token is not allowed; notes where the budget forbids more."""
    held = [s.matcher for s in live if s.matcher is not None]
    if not held:
        return raw
    mask = allocate_bitmask(len(held), vocabulary.vocab_size)
    fill_bitmasks(held, mask)
    if budget is not None:
        wide = mask.copy()
        for row, matcher in enumerate(held):
            matcher.fill_bitmask(mask, row, max_tokens=budget)
            live[row].bound |= not np.array_equal(mask[row], wide[row])
    return apply_bitmask(raw, mask)


def _narrowed(grammar: CompiledGrammar, tokens: list[int], budget: int) -> bool:
    """Whether the budget forbade a token at some place of a finished text."""
    matcher = grammar.matcher()
    wide, mask = (allocate_bitmask(1, grammar.vocabulary.vocab_size) for _ in range(2))
    for position, token in enumerate(tokens):
        matcher.fill_bitmask(wide)
        matcher.fill_bitmask(mask, max_tokens=budget - position)
        if not np.array_equal(wide, mask):
            return True
        matcher.accept_token(token)
    return False


def _noises(sampling: Sampling, n: int) -> list[Noise | None]:
    """The noise of each sample; None for greedy decoding."""
    if sampling.seed is None:
        return [None] * n
    return [Noise(sampling.seed, i) for i in range(n)]


def _result(
    sequence: _Sequence,
    lm: LanguageModel,
    grammar: CompiledGrammar | None,
    prompt_tokens: int,
    sampling: Sampling,
    timings: dict[str, float],
    statistics: Statistics | None,
) -> Result:
    text = lm.vocabulary.decode(sequence.tokens).decode("utf-8", "replace")
    value: Any = None
    if grammar is None:
        value = text
    elif sequence.done:
        value = grammar.parse(text)
    return Result(
        text,
        value,
        sequence.tokens,
        sequence.logprobs,
        "stop" if sequence.done else "length",
        prompt_tokens,
        dict(timings),
        sampling,
        statistics,
        sequence.bound,
    )


def _check(
    max_tokens: int,
    temperature: float,
    top_k: int | None,
    top_p: float | None,
    n: int,
    schema: Any,
    grammar: CompiledGrammar | None,
) -> None:
    if max_tokens < 1:
        raise ValueError(f"max_tokens must be at least 1, not {max_tokens}")
    if not 0 <= temperature < float("inf"):
        raise ValueError(f"temperature must be 0 or more, not {temperature}")
    if top_k is not None and top_k < 1:
        raise ValueError(f"top_k must be at least 1, not {top_k}")
    if top_p is not None and not 0 < top_p <= 1:
        raise ValueError(f"top_p must be above 0 and at most 1, not {top_p}")
    if n < 1:
        raise ValueError(f"n must be at least 1, not {n}")
    if n > 1 and temperature == 0:
        raise ValueError("n > 1 needs a temperature above 0: greedy texts would all be the same")
    if schema is not None and grammar is not None:
        raise ValueError("give a schema or a grammar, not both")
