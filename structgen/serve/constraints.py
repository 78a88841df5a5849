"""Finds the constraint that a request asks for in the request's fields.

Enters: the constraint fields of a request, its tools. Leaves: a `RequestConstraint`: how to compile it, which
field it came from. Cost: nothing is compiled here. ApiError: two constraints, or one that is malformed.

No text of a client can name a file or an address: `$ref` reaches only the document itself and the
metaschemas, and `%import` only the grammars in the package lark (see `Compiler`).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ..compiler import Compiler
from ..errors import GrammarError
from ..frontend import tool_lists
from ..frontend import tools as tool_frontend
from ..frontend.tools import Strictness
from ..grammar import CompiledGrammar
from ..json_options import style_in
from ..kinds import KINDS, response_format
from ..linting import surely
from ..reasoning import Reasoning
from .errors import ApiError
from .requests import Constrained, OwnOptions

_WARNED = 10
_OUTPUTS = "structured_outputs"
# Fields whose empty value sets no constraint.
_OFF = ("grammar", f"{_OUTPUTS}.json_object")
Build = Callable[[Compiler], CompiledGrammar]


@dataclass(frozen=True, slots=True)
class ToolUse:
    """The tools of a request, checked. `choice` is "auto", "none", "required" or a function's name.

    `strict` are the names of the tools that ask for arguments by their schema.
    `custom` are the names of OpenAI's custom tools, whose call has a text in place of arguments; `remote`
    has the server's label and name of each MCP tool.
    """

    tools: list[dict[str, Any]]
    choice: str
    parallel: bool
    style: str
    options: OwnOptions = field(default_factory=OwnOptions)
    strict: frozenset[str] = frozenset()
    strictness: Strictness = "parameter"
    custom: frozenset[str] = frozenset()
    remote: Mapping[str, tuple[str, str]] = field(default_factory=dict)

    @property
    def parameters(self) -> dict[str, Any]:
        """The schema of the arguments by the function's name."""
        return {
            tool["function"]["name"]: tool["function"].get("parameters") or tool_frontend.NOTHING
            for tool in self.tools
        }


@dataclass(frozen=True, slots=True)
class RequestConstraint:
    """The constraint of a request.

    Attributes:
        param: the field of the request that has the constraint.
        build: compiles the constraint.
        schema: the JSON Schema, for models that read one; None if the constraint is no JSON Schema.
        identity: a JSON value that is equal for two constraints only if the constraints are equal.
        parameters: the schemas of functions, by name.
    """

    param: str
    build: Build
    schema: Any = None
    identity: Any = None
    parameters: dict[str, Any] = field(default_factory=dict)

    def warnings(self) -> list[str]:
        """Returns the mistakes that a JSON Schema surely has, such as a `required` that is no list."""
        found: list[str] = []
        for name, schema in (("", self.schema), *self.parameters.items()):
            found += [f"{name}: {text}" if name else text for text in surely(schema)]
            if len(found) >= _WARNED:
                break
        return found[:_WARNED]

    def key(self) -> str | None:
        """Returns the identity as text; None if it is nested too deeply to be written. Cost: linear in the
        text."""
        try:
            return json.dumps(self.identity)
        except (RecursionError, ValueError):
            return None


@dataclass(slots=True)
class _Found:
    """The constraints that were found so far, by field."""

    options: OwnOptions
    items: list[RequestConstraint] = field(default_factory=list)

    def schema(self, param: str, schema: Any, whitespace: str | None = None) -> None:
        if isinstance(schema, str):
            try:
                schema = json.loads(schema)
            except json.JSONDecodeError as error:
                raise _no_schema(
                    param,
                    f"the schema is not JSON: {error}",
                    error.msg,
                    line=error.lineno,
                    column=error.colno,
                ) from None
            except (ValueError, RecursionError) as error:
                raise _no_schema(param, f"the schema is not JSON: {error}") from None
        if not isinstance(schema, (dict, bool)):
            raise _no_schema(param, "a schema is an object or a boolean", pointer="", keyword="")
        if isinstance(schema, dict) and schema.get("type") in ("json_schema", "json_object", "function"):
            words = f"{schema['type']!r} is no type of a JSON Schema: give the schema itself"
            raise _no_schema(param, words, pointer="", keyword="type")
        how = self.options.json_options() | ({"whitespace": whitespace} if whitespace else {})

        def build(compiler: Compiler) -> CompiledGrammar:
            return compiler.json_schema(schema, **how)

        self.items.append(RequestConstraint(param, build, schema, ["schema", how, schema]))

    def add(self, kind: str, param: str, value: Any, whitespace: str | None = None) -> None:
        """Adds a constraint of any kind. Raises an ApiError if a schema or `response_format` is malformed."""
        if kind == "response_format":
            try:
                asked = response_format(value, param)
            except GrammarError as error:
                place = param + (error.pointer or "").replace("/", ".")
                raise ApiError(error.message, param=place) from None
            if asked is None:
                return
            kind, value = asked
        if kind in ("json_schema", "json_object"):
            value = {"type": "object"} if kind == "json_object" else value
            self.schema(param, value, whitespace)
            return
        style = self.options.json_options(whitespace="one-blank")
        build: Build = lambda compiler: compiler.compile(kind, value, **style)  # noqa: E731
        self.items.append(RequestConstraint(param, build, None, [kind, value, style]))


def _no_schema(param: str, message: str, reason: str | None = None, **place: Any) -> ApiError:
    details = {**place, "reason": message if reason is None else reason}
    return ApiError(message, param=param, code="invalid_grammar", details=details)


def request_constraint(
    request: Constrained, text_format: dict[str, Any] | None = None
) -> RequestConstraint | None:
    """Returns the constraint from all fields except `tools`; None if any text is allowed.

    Args:
        text_format: `text.format` of `/v1/responses`.
    """
    found = _Found(request.structgen)
    for name, kind in KINDS.items():
        for field_name in kind.fields:
            value = text_format if field_name == "text.format" else _given(request, field_name)
            if value is None or (not value and field_name in _OFF):
                continue
            found.add(name, field_name, value, _gaps(request, field_name))
    outputs = request.structured_outputs
    if outputs is not None and not any(item.param.startswith(_OUTPUTS) for item in found.items):
        words = "json, json_object, regex, choice, grammar, structural_tag"
        raise ApiError(f"'{_OUTPUTS}' has none of {words}", param=_OUTPUTS)
    if len(found.items) > 1:
        names = ", ".join(f"'{item.param}'" for item in found.items)
        raise ApiError(f"one constraint a request, not several: {names}", param=found.items[1].param)
    return found.items[0] if found.items else None


def _given(request: Constrained, name: str) -> Any:
    """Returns the value of a field, whose name has a dot where it stands in `structured_outputs`."""
    *outer, inner = name.split(".")
    for part in outer:
        request = getattr(request, part)
    return getattr(request, "json_" if outer and inner == "json" else inner, None)


def _gaps(request: Constrained, name: str) -> str | None:
    """Returns the option `whitespace` for a field's JSON. In vLLM's requests a field beside the schema sets
    it."""
    if request.structured_outputs is not None and name.startswith(_OUTPUTS):
        return request.structured_outputs.whitespace_pattern
    return request.guided_whitespace_pattern if name == "guided_json" else None


def tool_use(
    tools: list[dict[str, Any]] | None,
    choice: Any,
    parallel: bool | None,
    style: str,
    options: OwnOptions | None = None,
    strictness: Strictness = "parameter",
) -> ToolUse | None:
    """Returns the tools of a request in one form; None if the request has no tools.

    It takes the values that `frontend.tools.listed` takes. Raises an ApiError if a tool is no function, two
    tools have one name, or the choice names no tool.
    """
    if not tools:
        if choice not in (None, "none", "auto"):
            raise ApiError("'tool_choice' needs 'tools'", param="tool_choice")
        return None
    try:
        plain, custom, strict = _functions(tools)
    except tool_lists.ToolError as error:
        raise ApiError(error.message, param=error.place) from None
    named: str
    if isinstance(choice, dict):
        if choice.get("type") == "allowed_tools":
            plain, choice = _allowed_tools(plain, choice)
            named = choice
        else:
            name = tool_lists.name_of(choice)
            if not isinstance(name, str):
                raise ApiError("'tool_choice' has no function with a name", param="tool_choice")
            named = name
            if named in ("auto", "none", "required"):
                words = (
                    f"'tool_choice' names the function {named!r}, which is a mode: give the mode as a text"
                )
                raise ApiError(words, param="tool_choice")
    elif choice is None:
        named = "auto"
    elif choice in ("auto", "none", "required"):
        named = choice
    elif choice == "any":  # Mistral's word
        named = "required"
    else:
        raise ApiError(
            f'\'tool_choice\' is "auto", "none", "required" or a function, not {choice!r:.60}',
            param="tool_choice",
        )
    names = {tool["function"]["name"] for tool in plain}
    if named not in ("auto", "none", "required") and named not in names:
        raise ApiError(f"'tool_choice' names {named!r}, which is no tool", param="tool_choice")
    own = options or OwnOptions()
    held = max(own.tool_strictness or "auto", strictness, key=tool_frontend.STRICTNESS.index)
    return ToolUse(plain, named, parallel is not False, style, own, strict, held, custom)


def _functions(tools: list[dict[str, Any]]) -> tuple[list[dict[str, Any]], frozenset[str], frozenset[str]]:
    """Returns the tools as OpenAI's functions, the names of custom tools and of strict ones. ToolError:
    none."""
    plain: list[dict[str, Any]] = []
    custom: set[str] = set()
    strict: set[str] = set()
    for i, (tool, said) in enumerate(zip(tool_lists.listed(tools), tools, strict=True)):
        if tool.get("type", "function") != "function":
            words = f"tool {i} is a {tool['type']!r:.60}: functions and custom tools are supported"
            raise tool_lists.ToolError(words, i, "type")
        if slip := tool_frontend.misspelled(tool, i):
            raise tool_lists.ToolError(slip, i)
        function = tool.get("function", tool)
        if (
            not isinstance(function, dict)
            or not isinstance(function.get("name"), str)
            or not function["name"]
        ):
            raise tool_lists.ToolError(f"tool {i} has no function with a name", i, "name")
        parameters = function.get("parameters")
        if parameters is not None and not isinstance(parameters, (dict, bool)):
            raise tool_lists.ToolError(f"the parameters of tool {i} are no JSON Schema", i, "parameters")
        kept = {k: v for k, v in function.items() if k not in ("type", "strict") and v is not None}
        plain.append({"type": "function", "function": kept})
        if function.get("strict") is True:
            strict.add(function["name"])
        if said.get("type") == "custom" and tool is not said and "input_schema" not in said:
            custom.add(function["name"])
    tool_lists.check_names([tool["function"]["name"] for tool in plain])
    return plain, frozenset(custom), frozenset(strict)


def _allowed_tools(tools: list[dict[str, Any]], choice: dict[str, Any]) -> tuple[list[dict[str, Any]], str]:
    """Returns the allowed tools of OpenAI's `allowed_tools`, and its mode."""
    inner = choice.get("allowed_tools", choice)
    listed = inner.get("tools") if isinstance(inner, dict) else None
    mode = inner.get("mode", "auto") if isinstance(inner, dict) else None
    if not isinstance(listed, list) or mode not in ("auto", "required"):
        raise ApiError("'allowed_tools' has a mode (auto, required) and a list of tools", param="tool_choice")
    wanted = {tool_lists.name_of(tool) for tool in listed}
    kept = [tool for tool in tools if tool["function"]["name"] in wanted]
    if not kept or len(kept) != len(wanted):
        raise ApiError("'allowed_tools' names a function that is no tool", param="tool_choice")
    return kept, mode


def with_thoughts(answer: RequestConstraint | None, reasoning: Reasoning) -> RequestConstraint:
    """Returns the constraint for thoughts, and then the answer that the request asks for, or any text."""

    def build(compiler: Compiler) -> CompiledGrammar:
        return compiler.with_reasoning(None if answer is None else answer.build(compiler), reasoning)

    found = RequestConstraint("reasoning", build) if answer is None else answer
    return replace(found, build=build, identity=["reasoning", repr(reasoning), found.identity])


def with_tools(use: ToolUse, text: RequestConstraint | None, never: Sequence[str] = ()) -> RequestConstraint:
    """Returns the constraint of tool calls in the model's style or, where calls may be left out, of the text
    that the request asks for.

    `never`: texts that are forbidden in the free text around calls.
    """

    style = _within(use.options)

    def build(compiler: Compiler) -> CompiledGrammar:
        choice = use.choice
        if text is not None and choice == "auto":
            choice = "required"
        tools = [{**tool["function"], "strict": tool["function"]["name"] in use.strict} for tool in use.tools]
        spec = tool_frontend.structural_tag(
            tools,
            choice,
            use.style,
            use.parallel,
            never,
            extra_keys=use.options.json_options()["extra_keys"],
            strictness=use.strictness,
        )
        if text is not None and use.choice == "auto":
            answer = {"type": "json_schema", "json_schema": text.schema}
            if "whitespace" not in use.options.model_fields_set:
                answer["max_whitespace_cnt"] = 0  # A schema without tools is written in the same way.
            spec["format"] = {"type": "or", "elements": [answer, spec["format"]]}
        return compiler.structural_tag(spec, **style)

    if text is not None and use.choice == "none":
        return text
    if text is not None and use.choice != "auto":
        text = None  # A call is required, so no other text is allowed.
    if text is not None and text.schema is None:
        raise ApiError("beside 'tools' only a JSON Schema can constrain the text", param=text.param)
    answer = None if text is None else text.schema
    identity = [
        "tools",
        use.tools,
        use.choice,
        use.parallel,
        use.style,
        use.strictness,
        sorted(use.strict),
        [*never],
        style,
        use.options.json_options()["extra_keys"],
        answer,
    ]
    parameters = use.parameters if answer is None else {**use.parameters, "": answer}
    return RequestConstraint("tools", build, None, identity, parameters)


def _within(options: OwnOptions) -> dict[str, Any]:
    """Returns how schemas inside tags and grammars are written. A gap has at most one blank, because models
    write `{"a": 1, "b": 2}` there; a request may name another `whitespace`."""
    return style_in(options.json_options(whitespace="one-blank"))
