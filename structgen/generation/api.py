"""One call from a prompt and a constraint to a value: `sg.generate`, and `sg.agenerate` for asyncio.

Enters: a model, a prompt, a constraint. Leaves: `Result`: text, value, tokens, log-probabilities. Cost: a
forward and a mask for each token; n samples share the forward (run.py).
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar, overload

from ..constraints import constraint_of
from ..errors import UnsatisfiableSchema
from ..frontend.tool_calls import ToolReply
from ..lm.load import language_model
from .options import GrammarOptions, Options, Settings, TextOptions, ToolOptions, settings_of
from .plan import Plan, opened, planned
from .results import InvalidValue, Result
from .retry import again
from .run import Clock, Run, Text

if TYPE_CHECKING:
    import enum
    from typing import Unpack

    from .speculative import SpeculativeRun

    E = TypeVar("E", bound=enum.Enum)

T = TypeVar("T")


class Call:
    """A call, checked and set up: its model, plan and texts.

    Args:
        given: the keyword arguments. Errors: those of `generate`.
    """

    def __init__(self, model: Any, prompt: Any, schema: Any, given: Mapping[str, Any]) -> None:
        self.listed: bool = given.get("n") is not None
        settings, named = settings_of(given)
        self.settings: Settings = settings
        constraint = constraint_of({"schema": schema, **named} if schema is not None else named)
        self.clock: Clock = Clock()
        lm = language_model(model)
        self.clock.lap("load")
        self.plan: Plan = planned(lm, prompt, constraint, self.settings, self.clock)
        self.texts: list[Text] = self.plan.texts()
        self.run: Run | SpeculativeRun = opened(self.plan, self.texts, self.clock)

    def results(self, stop: Callable[[], bool] = lambda: False) -> list[Result[Any]]:
        """Runs the texts to their ends. InvalidValue: a validator refuses a value, and no attempt is left."""
        while self.run.live:
            if stop():
                raise Cancelled
            self.run.step()
        found: list[Result[Any]] = []
        timings = self.timings()
        for text in self.texts:
            try:
                result = self.result(text, timings)
            except InvalidValue as error:
                result = self._again(text, error, stop)
            found.append(result)
        return found

    def timings(self) -> dict[str, float]:
        """Returns the seconds that each part of the call has taken so far, speculation included."""
        statistics = getattr(self.run, "statistics", None)
        found = self.clock.total()
        for part, seconds in statistics.seconds.items() if statistics is not None else ():
            found[part] = found.get(part, 0.0) + seconds
        return found

    def result(self, text: Text, timings: Mapping[str, float] | None = None) -> Result[Any]:
        """Returns the result of a finished text. InvalidValue: a validator refuses its value."""
        statistics = getattr(self.run, "statistics", None)
        if statistics is not None:
            self.plan.finish([text])
        return self.plan.result(text, self.timings() if timings is None else timings, statistics)

    def _again(self, text: Text, failed: InvalidValue, stop: Callable[[], bool]) -> Result[Any]:
        plan: Plan = self.plan
        attempts = list(failed.attempts)
        for _ in range(self.settings.retries):
            try:
                plan = again(plan, failed, self.clock)
            except UnsatisfiableSchema:  # the validator has refused every value
                break
            fresh = plan.text(text.index)
            run = opened(plan, [fresh], self.clock)
            while run.live:
                if stop():
                    raise Cancelled
                run.step()
            statistics = getattr(run, "statistics", None)
            if statistics is not None:
                plan.finish([fresh])
            try:
                return plan.result(fresh, self.clock.total(), statistics, len(attempts) + 1)
            except InvalidValue as error:
                failed = error
                attempts += error.attempts
        raise InvalidValue(failed.text, failed.error, attempts) from failed.error


class Cancelled(BaseException):
    """The caller no longer waits for the result."""


# `typing.overload` keeps the decorated functions until the interpreter exits, and with them this module and
# every model that it reaches. The core would then report the models as leaked, so overloads exist only for
# type checkers.
if TYPE_CHECKING:

    @overload
    def generate(model: Any, prompt: Any, schema: type[T], **options: Unpack[Options]) -> Result[T]: ...
    @overload
    def generate(
        model: Any, prompt: Any, schema: type[T], *, n: int, **options: Unpack[Options]
    ) -> list[Result[T]]: ...
    @overload
    def generate(model: Any, prompt: Any, *, choice: type[E], **options: Unpack[Options]) -> Result[E]: ...
    @overload
    def generate(
        model: Any, prompt: Any, *, choice: type[E], n: int, **options: Unpack[Options]
    ) -> list[Result[E]]: ...
    @overload
    def generate(model: Any, prompt: Any, **options: Unpack[TextOptions]) -> Result[str]: ...
    @overload
    def generate(model: Any, prompt: Any, *, n: int, **options: Unpack[TextOptions]) -> list[Result[str]]: ...
    @overload
    def generate(model: Any, prompt: Any, **options: Unpack[ToolOptions]) -> Result[ToolReply]: ...
    @overload
    def generate(
        model: Any, prompt: Any, *, n: int, **options: Unpack[ToolOptions]
    ) -> list[Result[ToolReply]]: ...
    @overload
    def generate(
        model: Any, prompt: Any, schema: Any = None, **options: Unpack[GrammarOptions]
    ) -> Result[Any]: ...
    @overload
    def generate(
        model: Any, prompt: Any, schema: Any = None, *, n: int, **options: Unpack[GrammarOptions]
    ) -> list[Result[Any]]: ...


def generate(model: Any, prompt: Any, schema: Any = None, **options: Any) -> Any:
    """Generate a text that the constraint accepts.

    Args:
        model: None or "embedded" (the model that comes with structgen), "embedded-thinking" (the same behind
            thoughts by a script), a folder or hub id, a pair
            (model, tokenizer) of transformers, or a `LanguageModel`. Folders and ids stay loaded (the last
            two); make a `TransformersLM` to use a pair again and again.
        prompt: a text, token ids, or a list of chat messages ({"role": ..., "content": ...}).

    One of these constrains the text; without any, every text is allowed:
        schema: a JSON Schema as dict, bool, JSON text or `pathlib.Path`, or a Python type; also a function,
            which stands for the arguments of a call, or a list of texts, which is a choice. Numbers and
            strings are written in the plain way (`Compiler.json_schema`), unless `numbers` and `strings` say
            otherwise.
        regex: a pattern that the whole text matches, or a compiled one of `re`.
        choice: a list of texts, a Literal of texts, or an Enum of texts, whose member is the value.
        gbnf, lark: the text of a grammar, or a Path to one.
        grammar: a `CompiledGrammar`; a `Template`; or a text or Path in either dialect.
        tools: a list of Python functions or of OpenAI's objects. `tool_choice` is "auto" (text and calls, or
            text alone), "required", "none", or a function; `tool_style` a style of `Compiler.tools`, by
            default the model's own; `parallel_tool_calls` False allows one call; `tool_strictness` is
            `strictness` of `Compiler.tools`. The value is a `ToolReply`.
        response_format: OpenAI's object, or a Python type.

    Beside any of these:
        condition: what the whole text meets, too: `without("fool") & max_bytes(80)`, say. It judges the text
            as it is written (`CompiledGrammar.__and__`).

    How tokens are drawn:
        temperature: 0 takes the most probable allowed token, the lowest id where two are equal. By default 0,
            and 1 where `n` is above 1.
        top_k: draw among the k most probable allowed tokens.
        top_p: draw among the fewest of those whose probabilities sum to at least this.
        min_p: draw among those at least this times as probable as the most probable one.
        frequency_penalty, presence_penalty: as in OpenAI's interface, on the text's tokens.
        repetition_penalty: a penalty on the tokens of prompt and text; above 1 makes them less probable.
        structure_penalty: a factor below 1 on the probability of a token that would continue a repeated
            structure of the text, whatever its words; it is applied once for each repeated place beyond four.
            It ends loops that a grammar allows. Without a constraint it has no effect.
        logit_bias: dict of token id (or a special token's name) to a number that is added.
        seed: draws repeat under the same seed; result i does not depend on n.
        n: the number of results, which come as a list.

    Where the text ends:
        max_tokens: the most ids drawn, end-of-sequence included; fewer if the model's context ends before.
        stop: a text or several. The result ends before the first stop text that is complete. "ab" and "b" are
            complete at the same character; then the result ends before the longer one.
        complete: allow only tokens after which the text can still be completed within `max_tokens`.

    Thoughts in front of the answer:
        reasoning: how the model thinks before it answers: a `Reasoning`, the name of a family
            (`Reasoning.of`), or True or "auto", which read the model's chat template. The constraint
            applies to the answer; `Result.reasoning` has the thoughts. Masks keep room for an answer.
        answer_tokens: the least number of tokens that thoughts leave to the answer. None: a quarter of
            `max_tokens`; 0: the tokens of a shortest answer.

    Other options:
        whitespace, property_order, numbers, strings, formats, draft, registry, extra_keys, digits: options of
            JSON, as in `Compiler.json_schema`.
        format: "plain" gives the prompt to the model as it is; "chat" puts it into the tokenizer's chat
            template, "embedded" into the form that the embedded model was trained on; "auto" is "embedded"
            for that model, "chat" for messages, else "plain".
        retries: how often a text is drawn again after a validator of its type refused the value. `on_invalid`
            "forbid" forbids the refused value where it stood; "tell" adds the error to the prompt.
        speculate: "auto", a list of drafters or a `structgen.speculation.Speculation`: several tokens in a
            forward. The text is the one without drafts, also under a seed. Two things may change it: a near
            tie that a wider forward rounds the other way, and masks that met a limit of work (with
            on_limit="subset"). If the model cannot take drafts back, "auto" does nothing, and drafters raise
            LanguageModelError.
        logprobs: False leaves `Result.logprobs` empty. That saves work with `speculate`.
        top_logprobs: the k most probable tokens of each place, before and after the mask.
        confidence: the most prefixes to read for each leaf of the answer, at most 4,096 (64 make most bounds
            equal). Above 0, `Result.field_probabilities` has the probability of each leaf's value.
        compiler: compiles the constraint; by default one per model, kept with its caches.

    Returns:
        A `Result`, or a list of them where `n` is given.

    Raises:
        TypeError, ValueError: arguments of the wrong type, outside their range, or that make no sense
            together.
        LanguageModelError: the model cannot be loaded; the prompt does not fit (ContextTooLong).
        VocabularyError: tokenizer, model and grammar do not belong together.
        GrammarError: the constraint cannot be compiled; UnsatisfiableBudget: `max_tokens` is too small.
        InvalidValue: a validator written in Python refuses the value.
    """
    call = Call(model, prompt, schema, options)
    found = call.results()
    return found if call.listed else found[0]


if TYPE_CHECKING:

    @overload
    async def agenerate(
        model: Any, prompt: Any, schema: type[T], **options: Unpack[Options]
    ) -> Result[T]: ...
    @overload
    async def agenerate(
        model: Any, prompt: Any, schema: type[T], *, n: int, **options: Unpack[Options]
    ) -> list[Result[T]]: ...
    @overload
    async def agenerate(
        model: Any, prompt: Any, *, choice: type[E], **options: Unpack[Options]
    ) -> Result[E]: ...
    @overload
    async def agenerate(
        model: Any, prompt: Any, *, choice: type[E], n: int, **options: Unpack[Options]
    ) -> list[Result[E]]: ...
    @overload
    async def agenerate(model: Any, prompt: Any, **options: Unpack[TextOptions]) -> Result[str]: ...
    @overload
    async def agenerate(
        model: Any, prompt: Any, *, n: int, **options: Unpack[TextOptions]
    ) -> list[Result[str]]: ...
    @overload
    async def agenerate(model: Any, prompt: Any, **options: Unpack[ToolOptions]) -> Result[ToolReply]: ...
    @overload
    async def agenerate(
        model: Any, prompt: Any, *, n: int, **options: Unpack[ToolOptions]
    ) -> list[Result[ToolReply]]: ...
    @overload
    async def agenerate(
        model: Any, prompt: Any, schema: Any = None, **options: Unpack[GrammarOptions]
    ) -> Result[Any]: ...
    @overload
    async def agenerate(
        model: Any, prompt: Any, schema: Any = None, *, n: int, **options: Unpack[GrammarOptions]
    ) -> list[Result[Any]]: ...


async def agenerate(model: Any, prompt: Any, schema: Any = None, **options: Any) -> Any:
    """`generate` in a worker thread, with the same arguments. If the task is cancelled, the work stops before
    the next forward pass."""
    stop = threading.Event()

    def work() -> Any:
        call = Call(model, prompt, schema, options)
        try:
            found = call.results(stop.is_set)
        except Cancelled:
            return None
        return found if call.listed else found[0]

    try:
        return await asyncio.to_thread(work)
    except asyncio.CancelledError:
        stop.set()
        raise
