"""The constraint of a call, from its arguments: `schema=`, `regex=`, `choice=`, `tools=` and so on.

Enters: the arguments of `sg.generate`, `sg.sample` or the command line that name a constraint. Leaves: a
`Constraint`, which compiles itself, says what a prompt tells of it, and reads a finished text. Cost: nothing
is compiled here; a file is read once.
"""

from __future__ import annotations

import functools
import os
import re
import types
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from ._checks import truth
from ._siblings import beside
from .conditions import Condition
from .errors import GrammarError, UnsatisfiableSchema
from .frontend.source import meant
from .frontend.tool_calls import ToolReply, known_or_meant, partial_reply, reply
from .frontend.tool_lists import listed
from .frontend.tools import STRICTNESS, Strictness, callable_tools, row_of
from .grammar import CompiledGrammar
from .json_options import WRITTEN, JsonOptions
from .kinds import ARGUMENTS, KINDS, TOOL_OPTIONS, response_format
from .templates import Template

if TYPE_CHECKING:
    from .compiler import Compiler
    from .reasoning import Reasoning

# All arguments of a call that constrain its text.
NAMED = (*ARGUMENTS, *TOOL_OPTIONS, "condition")


@dataclass(frozen=True)
class Constraint:
    """A constraint on a text.

    Attributes:
        param: the argument that gave the constraint, one of `kinds.ARGUMENTS`.
        value: the value of that argument.
        name: the source's name in errors; "" if the value is an object of Python.
        documents: the documents that the constraint's file refers to, by URI.
        style: the style of tool calls; None means the model's style.
        condition: a condition that the whole text must meet, too; None if there is none.
    """

    param: str
    value: Any
    name: str = ""
    tool_choice: Any = "auto"
    style: str | None = None
    parallel: bool = True
    strictness: Strictness = "parameter"
    documents: dict[str, Any] = field(default_factory=dict, repr=False)
    condition: Condition | None = None

    @property
    def is_tools(self) -> bool:
        return self.param == "tools"

    def compile(
        self,
        compiler: Compiler,
        options: Mapping[str, Any] | None = None,
        *,
        style: str = "hermes",
        reasoning: Reasoning | None = None,
    ) -> CompiledGrammar:
        """Returns the grammar over the compiler's vocabulary.

        Args:
            options: the fields of `JsonOptions` that differ from `WRITTEN`.
            style: the style of tool calls if the constraint names none.
            reasoning: how the model thinks before it answers; the grammar is that of thoughts and answer.

        Raises:
            GrammarError: the constraint does not compile. The message begins with the name of its file, if
                any.
            UnsatisfiableCondition: no text of the constraint meets the condition.
        """
        grammar = self._compiled(
            compiler, options or {}, style, None if self.condition is not None else reasoning
        )
        if self.condition is not None:
            grammar = grammar & self.condition
        if reasoning is not None and grammar.reasoning is None:
            return compiler.with_reasoning(grammar, reasoning)
        return grammar

    def _compiled(
        self, compiler: Compiler, options: Mapping[str, Any], style: str, reasoning: Reasoning | None
    ) -> CompiledGrammar:
        if isinstance(self.value, CompiledGrammar):
            return self.value
        how = JsonOptions.of(options, **WRITTEN).arguments()
        if self.documents and isinstance(how["registry"], dict | None):
            how["registry"] = {**self.documents, **(how["registry"] or {})}
        try:
            tools = (self.tool_choice, self.style or style, self.parallel, self.strictness)
            if self.is_tools:
                how |= {**dict(zip(TOOL_OPTIONS, tools, strict=True)), "reasoning": reasoning}
            return KINDS[ARGUMENTS[self.param]].compile(compiler, self.value, how)
        except GrammarError as error:
            from .linting import enlarge

            schemas = self.schemas()
            if self.python_type is not None and isinstance(error, UnsatisfiableSchema):
                from .frontend.python_types import schema_of

                schemas = [schema_of(self.value, how["extra_keys"] != "allow", how["digits"])[0]]
            enlarge(error, schemas, draft=how["draft"], registry=how["registry"])
            raise error if not self.name else named(error, self.name, self.value) from None

    def schemas(self) -> list[Any]:
        """Returns the JSON Schemas in the constraint, as dict, bool or JSON text."""
        if self.param == "schema":
            return [self.value] if isinstance(self.value, dict | bool | str) else []
        if self.param == "response_format" and isinstance(self.value, dict):
            inner = self.value.get("json_schema", self.value)
            return [inner.get("schema")] if isinstance(inner, dict) else []
        if not self.is_tools:
            return []
        found = [tool.get("function", tool) for tool in self.value if isinstance(tool, dict)]
        return [function.get("parameters") for function in found if isinstance(function, dict)]

    def warn(self, options: Mapping[str, Any] | None = None) -> list[str]:
        """Gives a `SchemaWarning` for each sure mistake in a JSON Schema, and returns the sentences."""
        schemas = self.schemas()
        if not schemas:
            return []
        from .linting import warn

        draft = (options or {}).get("draft")
        return [text for schema in schemas for text in warn(schema, self.name, draft=draft)]

    def warn_of(self, grammar: CompiledGrammar, told: Sequence[str]) -> list[str]:
        """Gives a `SchemaWarning` for each keyword that the grammar leaves out, and returns the sentences.

        Args:
            told: sentences that `warn` has given. A place that they name gets no second warning.
        """
        if not isinstance(self.value, CompiledGrammar) and grammar.report:
            from .linting import not_enforced, warned

            return warned(not_enforced(grammar.report, told), self.name)
        return []

    def document(self, style: str = "hermes") -> Any:
        """Returns the schema that a prompt shows to the embedded model; None if the constraint has none.

        Args:
            style: the style of tool calls if the constraint names none.
        """
        if isinstance(self.value, CompiledGrammar):
            return self.value.source
        if isinstance(self.value, Template):
            return self.value.document()
        if self.param == "schema":
            return self.value
        if self.param == "response_format":
            if not isinstance(self.value, dict):
                return self.value
            from .frontend.python_types import unwrap_openai

            return unwrap_openai(self.value)[0]
        if self.is_tools and self.tool_choice != "none":
            from .frontend.tools import answer_document

            return answer_document(self.value, self.tool_choice, self.style or style)
        return None

    def objects(self) -> list[dict[str, Any]] | None:
        """Returns the tools as OpenAI's objects, for a chat template; None if the constraint has no tools."""
        if not self.is_tools:
            return None
        from .frontend.tools import described

        return [described(tool) for tool in self.value]

    def reader(self, grammar: CompiledGrammar, style: str = "hermes") -> Callable[[str], Any]:
        """Returns the function that makes the value of a finished text."""
        if self.is_tools:
            if self.tool_choice == "none":
                return lambda text: ToolReply(text, [])
            compiler, tools = _compiler_of(grammar), callable_tools(self.value, self.tool_choice)
            return lambda text: reply(text, self.style or style, tools, compiler)
        if self.param == "choice" and isinstance(self.value, type):
            members = {member.value: member for member in cast(Any, self.value)}
            return lambda text: members[text]
        if isinstance(self.value, Template):
            return functools.partial(self.value.read, grammar)
        return grammar.parse

    @property
    def python_type(self) -> Any:
        """The Python type that was given; None if the constraint is no Python type."""
        given = self.param in ("schema", "response_format")
        if not given or isinstance(self.value, dict | str | bytes | bool | list | tuple):
            return None
        return None if isinstance(self.value, types.FunctionType | types.MethodType) else self.value

    def partial_reader(
        self, style: str, arguments: Callable[[str], dict[str, Any]]
    ) -> Callable[[str], ToolReply]:
        """Returns the function that reads the beginning of a text with calls. It returns the reply as far as
        it is known.

        Args:
            arguments: reads the beginning of a call's arguments.
        """
        return partial_reply(self.style or style, callable_tools(self.value, self.tool_choice), arguments)


def constraint_of(given: Mapping[str, Any]) -> Constraint | None:
    """Returns the constraint among the arguments of a call; None if any text is allowed.

    A `Constraint` given as `schema` is returned as it is.

    Raises:
        ValueError: several constraints, or options of tools without tools. TypeError: an argument has a wrong
            type. OSError: a file cannot be read.
    """
    found, condition = _constraint_of(given), given.get("condition")
    if condition is None:
        return found
    if not isinstance(condition, Condition):
        raise TypeError(
            f"condition= takes what sg.without, containing, Regex, max_bytes and min_bytes give, "
            f"not {condition!r:.60}"
        )
    return replace(found or Constraint("regex", "(?s:.*)"), condition=condition)


def _constraint_of(given: Mapping[str, Any]) -> Constraint | None:
    if isinstance(given.get("schema"), Constraint):
        return cast(Constraint, given["schema"])
    wanted = [kind for kind in ARGUMENTS if given.get(kind) is not None]
    if len(wanted) > 1:
        raise ValueError(
            f"a call takes one constraint, not {' and '.join(f'{kind}=' for kind in wanted)}: "
            "both at once are a schema's allOf, or one grammar"
        )
    for name in TOOL_OPTIONS:
        if given.get(name) is not None and wanted != ["tools"]:
            raise ValueError(f"{name}= goes with tools=, and no tools are given")
    if not wanted:
        return None
    (param,) = wanted
    value, name, documents = given[param], "", {}
    if param == "schema" and isinstance(value, CompiledGrammar | Template):
        param = "grammar"
    if param == "schema" and isinstance(value, list | tuple) and value and _are_texts(value):
        param = "choice"
    KINDS[ARGUMENTS[param]].check(value)
    if isinstance(value, os.PathLike):
        name, value = os.fspath(value), _read(value, param)
        documents = beside(name, value) if param == "schema" else {}
    if isinstance(value, re.Pattern):
        value = _pattern_text(value)
    if param == "response_format" and isinstance(value, dict) and response_format(value) is None:
        return None
    if param != "tools":
        return Constraint(param, value, name, documents=documents)
    choice, style, parallel, strictness = (given.get(option) for option in TOOL_OPTIONS)
    if parallel is not None:
        truth("parallel_tool_calls", parallel)
    if callable(choice) and not isinstance(choice, str | dict):
        choice = getattr(choice, "__name__", choice)
    if style is not None and row_of(style) is None:
        raise ValueError(f"there is no tool_style {style!r}{known_or_meant(style)}")
    if strictness is not None and strictness not in STRICTNESS:
        hint = meant(str(strictness), STRICTNESS) or f"; known: {', '.join(STRICTNESS)}"
        raise ValueError(f"there is no tool_strictness {strictness!r:.40}{hint}")
    return Constraint(
        param,
        listed(value),
        tool_choice="auto" if choice is None else choice,
        style=style,
        parallel=parallel is not False,
        strictness=strictness or "parameter",
    )


def _are_texts(value: Sequence[Any]) -> bool:
    return all(isinstance(text, str) for text in value)


def _read(path: Any, param: str) -> str:
    """Returns the text of a file. ValueError: the file is not UTF-8. OSError: it cannot be read."""
    try:
        return Path(path).read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(
            f"the file {os.fspath(path)} of {param}= is not UTF-8 (byte {error.start})"
        ) from None


def named(error: GrammarError, name: str, text: Any) -> GrammarError:
    """Returns the same error with the file's name and, where they are known, line and column in front.

    The offset of an error about invalid JSON counts in the text. Other errors count in a pattern of the
    schema.
    """
    where = name
    if error.message.startswith("invalid JSON") and error.offset is not None and isinstance(text, str):
        error.placed(text)
    if error.line is not None:
        where += f":{error.line}:{error.column or 1}"
        error.line = None  # The prefix names the line already.
    error.message = f"{where}: {error.message}"
    return error


def _pattern_text(pattern: re.Pattern[Any]) -> str:
    """Returns a compiled pattern of Python as text that begins with its flags.

    Raises:
        ValueError: a flag cannot be written there. TypeError: the pattern is one of bytes.
    """
    if isinstance(pattern.pattern, bytes):
        raise TypeError("regex= takes a pattern of text, not one of bytes")
    if pattern.flags & (re.VERBOSE | re.MULTILINE | re.LOCALE):
        raise ValueError("regex= takes no pattern with the flags VERBOSE, MULTILINE or LOCALE")
    flags = "".join(
        letter
        for letter, flag in (("i", re.IGNORECASE), ("s", re.DOTALL), ("a", re.ASCII))
        if pattern.flags & flag
    )
    # Without an excluded class, every text that the pattern matches under ASCII rules it also matches in
    # Unicode. An excluded class (`\W`, `[^a]`) needs the Unicode rules, so the pattern gets the flag "u".
    if not pattern.flags & re.ASCII and _EXCLUDES.search(pattern.pattern):
        flags += "u"
    return f"(?{flags}){pattern.pattern}" if flags else str(pattern.pattern)


_EXCLUDES = re.compile(r"\\[DWSbB]|\[\^|\(\?<?!")


def _compiler_of(grammar: CompiledGrammar) -> Compiler:
    from .compiler import Compiler

    return Compiler(grammar.vocabulary)
