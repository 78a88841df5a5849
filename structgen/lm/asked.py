"""What a call asks of a model: the grammar of its constraint, and the prompt as the model reads it.

Enters: a model, a prompt, a constraint. Leaves: `Asked`. Cost: a compile and a tokenized prompt. `AskOptions`
has the names and types of what calls say about this; `sg.generate` says what each means.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ..constraints import Constraint
from ..grammar import CompiledGrammar
from ..json_options import JsonArguments
from .load import check_vocabulary, compiler_of, special_names, tool_style
from .prompts import Format, formatted

if TYPE_CHECKING:
    from ..compiler import Compiler
    from ..conditions import Condition
    from .base import Context, LanguageModel

__all__ = ["AskOptions", "Asked", "ask", "style_of"]


class AskOptions(JsonArguments, total=False):
    """How JSON is written, who compiles, and how the prompt is put: the same in every call."""

    compiler: Compiler | None
    format: Format
    condition: Condition | None


@dataclass(frozen=True, slots=True)
class Asked:
    """The grammar (None: any text), what makes a value of a text, the prompt's context, and the special
    tokens that are spelled out in texts, and what was told of the schema as Python warnings."""

    grammar: CompiledGrammar | None
    read: Callable[[str], Any]
    start: Context
    names: Mapping[int, bytes]
    warnings: list[str] = field(default_factory=list)


def ask(
    lm: LanguageModel,
    prompt: Any,
    constraint: Constraint | None,
    json: Mapping[str, Any],
    compiler: Compiler | None = None,
    format: Format = "auto",
) -> Asked:
    """Compiles the constraint and reads the prompt.

    Args:
        json: those of `JsonOptions` that are not as `json_options.WRITTEN` has them.
    """
    if compiler is not None and not hasattr(compiler, "json_schema"):
        raise TypeError(f"compiler is a structgen.Compiler, not {compiler!r:.60}")
    if constraint is None:
        return Asked(None, str, lm.start(formatted(lm, prompt, None, format)), {})
    told = constraint.warn(json)
    style = style_of(lm, constraint)
    grammar = constraint.compile(compiler or compiler_of(lm), json, style=style)
    told += constraint.warn_of(grammar, told)
    check_vocabulary(grammar.vocabulary, lm.vocabulary)
    start = lm.start(formatted(lm, prompt, constraint.document(style), format, constraint.objects()))
    names = special_names(lm) if constraint.is_tools else {}
    return Asked(grammar, constraint.reader(grammar, style), start, names, told)


def style_of(lm: LanguageModel, constraint: Constraint) -> str:
    """The style in which the model writes the constraint's tool calls, if it has any."""
    return tool_style(lm, constraint.value, constraint.tool_choice) if constraint.is_tools else tool_style(lm)
