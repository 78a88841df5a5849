"""One prompt with its constraint, ready to run: the grammar, the first context, the budget.

Enters: a model, a prompt, a constraint, settings. Leaves: a `Plan`, which makes `Text`s and reads finished
ones into `Result`s. Cost: a compile, a tokenized prompt, and one mask if the budget may narrow masks.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from .._drawing import Drawing
from .._draws import Noise
from .._structure import StructureTrace
from .._text import TextStream
from ..constraints import Constraint
from ..errors import DoubtfulAnswer
from ..grammar import CompiledGrammar
from ..linting import outside
from ..lm.asked import ask, style_of
from ..lm.doubt import doubt
from ..lm.load import room_after
from ..matcher import can_end_within
from .confidence import FieldProbability, field_probabilities
from .options import Settings
from .partial import IncompleteString, Unknown, partial_arguments, partial_json, plain, typed
from .results import InvalidValue, Result
from .run import Clock, Run, Text, bound_by_budget

if TYPE_CHECKING:
    from ..compiler import Compiler
    from ..lm.base import Context, LanguageModel
    from ..reasoning import Reasoning
    from ..speculation import Statistics
    from .speculative import SpeculativeRun


@dataclass(slots=True)
class Plan:
    """What all texts of one prompt share.

    Attributes:
        room: the most tokens of a text.
        budget: the text must end within so many tokens. None: it need not.
        attempt: the number of earlier attempts for this prompt; each attempt has its own noise.
        told: the warnings about the schema that the compile has given.
        answer: the grammar of the answer alone, which `read` reads; `grammar` is that of the whole text.
    """

    lm: LanguageModel
    settings: Settings
    sampling: Drawing
    prompt: Any
    constraint: Constraint | None
    grammar: CompiledGrammar | None
    read: Callable[[str], Any]
    start: Context
    room: int
    budget: int | None
    names: Mapping[int, bytes] = field(default_factory=dict)
    attempt: int = 0
    told: list[str] = field(default_factory=list)
    answer: CompiledGrammar | None = None

    def texts(self) -> list[Text]:
        return [self.text(i) for i in range(self.settings.n)]

    def text(self, index: int) -> Text:
        settings, sampling = self.settings, self.sampling
        noise = None
        if sampling.seed is not None:
            noise = Noise(sampling.seed, index + self.attempt * settings.n)
        seen = frozenset(self.start.tokens) if sampling.repetition_penalty != 1.0 else frozenset()
        return Text(
            self.start,
            None if self.grammar is None else self.grammar.matcher(),
            sampling,
            noise,
            self.room,
            self.budget,
            TextStream(settings.stops, reasoning=None if self.grammar is None else self.grammar.reasoning),
            names=self.names,
            index=index,
            tops=settings.top_logprobs,
            prompt=seen,
            trace=StructureTrace()
            if sampling.structure_penalty != 1.0 and self.grammar is not None
            else None,
        )

    def result(
        self,
        text: Text,
        timings: Mapping[str, float],
        statistics: Statistics | None = None,
        attempts: int = 1,
    ) -> Result[Any]:
        """Returns the result of a finished text. InvalidValue: a validator of the type refuses the value."""
        said = text.so_far
        return Result(
            said,
            self._value(text, said),
            text.tokens,
            text.logprobs if self.settings.logprobs else [],
            text.finish or "length",
            len(self.start),
            dict(timings),
            self.sampling,
            statistics,
            text.bound,
            text.stream.stopped_by,
            self._captures(text, said),
            text.top_logprobs,
            attempts,
            self._warnings(text),
            text.reasoning,
            text.reasoning_tokens,
            field_probabilities=self._confidence(text, said),
        )

    def _confidence(self, text: Text, said: str) -> list[FieldProbability]:
        if not self.settings.confidence:
            return []
        is_json = self.constraint is not None and self.constraint.document() is not None
        ended = text.finish == "stop"
        reads = self.settings.confidence
        return field_probabilities(
            self.lm, self.start, self.grammar, text.tokens, said, is_json, ended, reads
        )

    @property
    def _as_trained(self) -> bool:
        """Whether the model's limit for doubtful answers was measured on answers such as this plan's."""
        settings, constraint = self.settings, self.constraint
        greedy = self.sampling.temperature == 0 and self.sampling.plain
        form = settings.format in ("auto", "embedded") and settings.whitespace == "compact"
        words = isinstance(self.prompt, str) or not isinstance(self.prompt[0], int)
        return greedy and form and words and (constraint is None or constraint.document() is not None)

    def _warnings(self, text: Text) -> list[str]:
        """Returns the warnings of a result; a doubt is also a Python warning. A text that a limit or a stop
        string shaped gets no doubt, because the model did not choose its tokens."""
        drawn = text.logprobs if len(text.logprobs) == len(text.tokens) else []
        told = doubt(self.lm, sum(drawn), len(drawn))
        if told is None or not text.done or text.bound or not self._as_trained:
            return [*self.told]
        warnings.warn(told, DoubtfulAnswer, stacklevel=outside())
        return [*self.told, told]

    def _value(self, text: Text, said: str) -> Any:
        if not text.stream.answering:
            return None
        if self.answer is None:
            return said
        if not text.done and not self.answer._holds(said):
            return None
        try:
            return self.read(said)
        except Exception as error:  # a validator written in Python may raise any exception
            raise InvalidValue(said, error, [(said, error)]) from error

    def _captures(self, text: Text, said: str) -> dict[str, Any]:
        if self.answer is None or not self.answer.capture_names:
            return {}
        if (
            self.answer is self.grammar
            and text.done
            and text.matcher is not None
            and text.matcher.is_terminated()
        ):
            return text.matcher.captures()
        matcher = self.answer.matcher()
        matcher.accept_bytes(said)
        return matcher.captures()

    def partial(self) -> Callable[[str], Any]:
        """Returns a function from the beginning of a text to its partial value. It gives None if nothing is
        known."""
        constraint = self.constraint
        if constraint is None or self.answer is None:
            return IncompleteString
        if constraint.is_tools:
            return constraint.partial_reader(style_of(self.lm, constraint), partial_arguments)
        if self.answer._options is None:
            return IncompleteString
        make = typed(constraint.python_type) if constraint.python_type is not None else None

        def read(text: str) -> Any:
            value = partial_json(text)
            if value is Unknown:
                return None
            return plain(value) if make is None else make(value)

        return read

    def finish(self, texts: list[Text]) -> None:
        """Finds out, for texts from speculation, whether the budget refused a token that the grammar
        allows."""
        if self.budget is not None and self.grammar is not None:
            for text in texts:
                text.bound = bound_by_budget(self.grammar, text.tokens, self.budget)


def promised(lm: LanguageModel, settings: Settings, grammar: CompiledGrammar | None, room: int) -> int | None:
    """Returns the number of tokens within which the text must end: `room`, or None if the text may be cut
    off. If the caller asked for an end within the limit and it cannot be promised, a Python warning says so.
    Errors: those of `can_end_within`."""
    if not settings.complete or grammar is None or grammar.answer is None:
        return None
    whose = ""
    if room < settings.max_tokens:
        whose = f", which the prompt leaves of the model's context of {lm.max_context}"
    if can_end_within(grammar, room, whose):
        return room
    warnings.warn(
        f"no completion of the grammar was found, so the answer may be cut off after {room} tokens{whose}",
        RuntimeWarning,
        stacklevel=outside(),
    )
    return None


def planned(
    lm: LanguageModel,
    prompt: Any,
    constraint: Constraint | None,
    settings: Settings,
    clock: Clock,
    *,
    sampling: Drawing | None = None,
    attempt: int = 0,
) -> Plan:
    """Compiles the constraint and encodes the prompt. Errors: those of `sg.generate`."""
    asked = ask(
        lm,
        prompt,
        constraint,
        settings.json,
        settings.compiler,
        settings.format,
        reasoning=settings.reasoning,
        max_tokens=settings.max_tokens,
        answer_tokens=settings.answer_tokens,
        complete=settings.complete,
    )
    clock.lap("compile")
    grammar = asked.grammar
    room = room_after(lm, asked.start, settings.max_tokens)
    budget = promised(lm, settings, grammar, room)
    if sampling is None:
        sampling = settings.sampling(lm.vocabulary.vocab_size, lm.vocabulary.special_tokens)
    return Plan(
        lm,
        settings,
        sampling,
        prompt,
        constraint,
        grammar,
        asked.read,
        asked.start,
        room,
        budget,
        asked.names,
        attempt,
        asked.warnings,
        asked.answer,
    )


def opened(plan: Plan, texts: list[Text], clock: Clock) -> Run | SpeculativeRun:
    """Returns a run of the plan's texts. It is speculative if the call asks for speculation and the model
    supports it."""
    settings = plan.settings
    if settings.speculate is not None:
        from ..speculation.options import resolve

        options = resolve(settings.speculate, plan.lm)
        if options is not None:
            from .speculative import SpeculativeRun

            again = None
            if plan.constraint is not None and not isinstance(plan.constraint.value, CompiledGrammar):
                style = style_of(plan.lm, plan.constraint)
                thinks = None if plan.grammar is None else plan.grammar.reasoning
                again = partial(_compiled, plan.constraint, settings, style, thinks)
            return SpeculativeRun(
                plan.lm,
                texts,
                options,
                clock,
                grammar=plan.grammar,
                compile=again,
                prompt=plan.prompt if isinstance(plan.prompt, str) else None,
                logprobs=settings.logprobs,
            )
    run = Run(plan.lm, clock)
    for text in texts:
        run.add(text)
    return run


def _compiled(
    constraint: Constraint, settings: Settings, style: str, thinks: Reasoning | None, compiler: Compiler
) -> CompiledGrammar:
    return constraint.compile(compiler, settings.json, style=style, reasoning=thinks)
