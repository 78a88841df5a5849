"""Prepares a call for a model: compiles the grammar of its constraint, and reads its prompt.

Enters: a model, a prompt, a constraint. Leaves: `Asked`. Cost: a compile and a tokenized prompt. `AskOptions`
has the names and types of the options; `sg.generate` explains each option.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from ..constraints import Constraint
from ..grammar import CompiledGrammar
from ..json_options import JsonArguments
from ..reasoning import Reasoning, mark_names, reasoning_of
from .load import check_vocabulary, compiler_of, room_after, special_names, tool_style
from .prompts import Format, formatted

if TYPE_CHECKING:
    from ..compiler import Compiler
    from ..conditions import Condition
    from .base import Context, LanguageModel


class AskOptions(JsonArguments, total=False):
    """The options that every call has: options of JSON, the compiler, and the form of the prompt."""

    compiler: Compiler | None
    format: Format
    condition: Condition | None
    reasoning: Reasoning | str | bool | None
    answer_tokens: int | None


@dataclass(frozen=True, slots=True)
class Asked:
    """A prepared call.

    Attributes:
        grammar: the grammar of the whole text; None allows any text.
        read: turns an answer into its value.
        start: the prompt's context.
        names: the special tokens that are spelled out in texts.
        warnings: the Python warnings that were given about the schema.
        answer: the grammar of the answer alone; None: any text.
    """

    grammar: CompiledGrammar | None
    read: Callable[[str], Any]
    start: Context
    names: Mapping[int, bytes]
    warnings: list[str] = field(default_factory=list)
    answer: CompiledGrammar | None = None

    @property
    def reasoning(self) -> Reasoning | None:
        """The marks of thoughts in the text; None if the text has no thoughts."""
        return None if self.grammar is None else self.grammar.reasoning


def ask(
    lm: LanguageModel,
    prompt: Any,
    constraint: Constraint | None,
    json: Mapping[str, Any],
    compiler: Compiler | None = None,
    format: Format = "auto",
    *,
    reasoning: Any = None,
    max_tokens: int = 0,
    answer_tokens: int | None = None,
    complete: bool = True,
) -> Asked:
    """Compiles the constraint and reads the prompt.

    Args:
        json: the fields of `JsonOptions` that differ from `json_options.WRITTEN`.
        reasoning: how the model thinks, as `reasoning_of` reads it.
        max_tokens: the most tokens of the whole text.
        answer_tokens: the tokens that thoughts leave for the answer.
        complete: whether thoughts leave room also for an answer that may be any text.
    """
    thinks = reasoning_of(reasoning, lm)
    if answer_tokens and thinks is None:
        raise ValueError("answer_tokens= goes with reasoning=: without thoughts the answer has max_tokens")
    if compiler is not None and not hasattr(compiler, "json_schema"):
        raise TypeError(f"compiler is a structgen.Compiler, not {compiler!r:.60}")
    if constraint is None:
        asked = Asked(None, str, lm.start(formatted(lm, prompt, None, format)), {})
    else:
        told = constraint.warn(json)
        style = style_of(lm, constraint)
        marked = thinks if constraint.is_tools else None  # Text around calls does not contain the start mark.
        grammar = constraint.compile(compiler or compiler_of(lm), json, style=style, reasoning=marked)
        told += constraint.warn_of(grammar, told)
        check_vocabulary(grammar.vocabulary, lm.vocabulary)
        start = lm.start(formatted(lm, prompt, constraint.document(style), format, constraint.objects()))
        names = special_names(lm) if constraint.is_tools else {}
        answer = grammar.answer
        read = str if answer is None else constraint.reader(answer, style)
        if thinks is None and grammar.reasoning is not None:  # The grammar includes thoughts.
            names = {**names, **mark_names(grammar.reasoning, lm.vocabulary)}
        asked = Asked(grammar, read, start, names, told, answer)
    if thinks is None:
        return asked
    names = mark_names(thinks, lm.vocabulary)
    thinks = thinks.behind_tokens(asked.start.tokens, lm.vocabulary, {})
    room = room_after(lm, asked.start, max_tokens)
    if answer_tokens is None and asked.answer is not None and asked.answer.around is not None:
        answer_tokens = 0  # Tokens of thoughts in front of a middle do not count.
    thinks = thinks.within(room, answer_tokens, lm.vocabulary, complete and asked.answer is None)
    grammar = (compiler or compiler_of(lm)).with_reasoning(asked.answer, thinks)
    return replace(asked, grammar=grammar, names={**names, **asked.names})


def style_of(lm: LanguageModel, constraint: Constraint) -> str:
    """Returns the style in which the model writes the constraint's tool calls, if it has any."""
    return tool_style(lm, constraint.value, constraint.tool_choice) if constraint.is_tools else tool_style(lm)
