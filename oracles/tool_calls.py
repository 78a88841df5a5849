"""Random tools whose calls are written in every style: the engine accepts what the style's reader reads.

`one` takes a family of schemas and a source of choices. `called` lets a random model call tools, under every
choice, strictness and budget, with and without thoughts; jsonschema judges the calls. Time: tens of
milliseconds per case.
"""

from __future__ import annotations

import collections
import json
import re
from typing import Any

import jsonschema
import numpy as np

import structgen as sg
from oracles import oracle, strategies
from oracles.differential import check, instances
from oracles.differential.judge import DRAFTS, METASCHEMAS, Judge
from oracles.strategies import Source
from oracles.tool_styles import STYLE_READERS
from structgen import errors
from structgen.frontend.tools import STYLES
from structgen.reasoning import FAMILIES

MARKS = ("</parameter>", "</parameter", "\n", "\nab", "a</arg_value>", "<|close|>", '"a', "&quot;", "a>b")


REFERENCE = re.compile(r'"\$(recursiveR|dynamicR|r)ef"|"\$?id"')


COMPILER = check.compiler()


def grammar(schema, style, using=COMPILER, **fields):
    """The grammar of the calls; None past the limit of work, check.EMPTY if no text exists. Numbers have
    every JSON spelling."""
    spec = {"type": "json_schema", "style": style, "json_schema": schema, **fields}
    try:
        return using.structural_tag({"type": "structural_tag", "format": spec}, numbers="any")
    except errors.UnsatisfiableSchema:
        return check.EMPTY
    except errors.SchemaTooComplex:
        return None


def accepted(found, text: str) -> bool:
    if found is check.EMPTY:
        return False
    matcher = found.matcher()
    return matcher.accept_bytes(text.encode()) and matcher.is_accepting()


def arguments(source: Source, guide: instances.Guide, judge: Judge, turn: int) -> dict:
    for _ in range(6):
        value = guide.draw()
        if isinstance(value, dict) and judge.accepts_value(oracle.loads(json.dumps(value))):
            break
    for _ in range(turn % 3):
        value = strategies.mutated(source, value)
    if not isinstance(value, dict):
        value = {source.pick(("a", "b", "ab")): value}
    if source.chance(12):  # sometimes a string holds pieces of the style's marks
        value = {**value, source.pick((*MARKS, "a")): source.pick(MARKS)}
    return value


def one(family: str, source: Source, tally: collections.Counter[str]) -> None:
    drafts = [d for d in DRAFTS if d >= check.FIRST_DRAFT.get(family, 4)]
    draft = source.pick((*drafts, 2020))
    schema = check.FAMILIES[family](source, draft)
    if source.chance(50) and not REFERENCE.search(
        json.dumps(schema)
    ):  # most of these schemas are about values other than objects
        schema = {"properties": {"a": schema, "b": schema}, "required": ["a"]}
    if isinstance(schema, dict):
        schema = {"$schema": METASCHEMAS[draft], **schema}
    elif draft < 2020:
        return
    judge = Judge(schema, draft)
    second = oracle.JsonOracle(check.patterns_in_python(schema), check.VALIDATORS[draft])
    guide = instances.Guide(source, judge)
    name = source.pick(tuple(STYLE_READERS))
    style = STYLE_READERS[name]
    found = grammar(schema, name, any_order=True)
    tally["too complex" if found is None else "schemas"] += 1
    if found is None:
        return

    def valid(text: str) -> bool:
        return any(judge.accepts_value(value) for value in style.readings(text))

    for turn in range(12):
        if turn % 4 == 3 and found is not check.EMPTY:
            try:
                written = instances.walk(source, found.matcher(), source.integer(2, 80))
            except (errors.SchemaTooComplex, errors.BudgetExceeded):
                continue
            if instances.HUGE.search(written):
                continue
            text = written.decode()
            assert valid(text), (name, schema, text)
            tally["walked"] += 1
            continue
        value = arguments(source, guide, judge, turn)
        text = style.text(source, value)
        if instances.HUGE.search(text.encode()):
            continue
        expected = valid(text)
        tally["valid" if expected else "invalid"] += 1
        try:
            assert accepted(found, text) == expected, (name, schema, text, expected)
        except errors.SchemaTooComplex:
            return
        try:
            tally["jsonschema agrees"] += any(map(second.accepts_value, style.readings(text))) == expected
        except (TypeError, RecursionError, LookupError, AttributeError):
            continue


_NAMES = ("f", "get_weather", "a-b", "read.file", "x1")
_VALUES: tuple[dict[str, Any], ...] = (
    {"type": "string", "maxLength": 3},
    {"type": "integer", "minimum": -2, "maximum": 30},
    {"type": "boolean"},
    {"enum": ["a", "b c", 3, None]},
    {"type": "array", "items": {"type": "integer", "minimum": 0, "maximum": 9}, "maxItems": 2},
    {"type": "object", "properties": {"k": {"type": "boolean"}}, "additionalProperties": False},
    {"anyOf": [{"type": "null"}, {"const": "z"}]},
    {"$ref": "#/$defs/node"},
)


def tool(source: Source, name: str) -> dict[str, Any]:
    """Returns a random tool, in the form of OpenAI's clients or of an MCP server."""
    keys = source.some(("a", "city", "n", "key_2"), 0, 3)
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {key: source.pick(_VALUES) for key in keys},
        "required": source.some(keys, 0, len(keys)),
        "additionalProperties": False,
        "$defs": {"node": {"type": "object", "properties": {"next": {"$ref": "#/$defs/node"}},
                           "additionalProperties": False}},
    }  # fmt: skip
    if source.chance(40):
        return {"name": name, "description": "d", "inputSchema": schema}
    return {"type": "function", "function": {"name": name, "parameters": schema, "strict": source.chance(50)}}


def called(source: Source, tally: collections.Counter[str]) -> None:
    """A random model writes a text of calls. The text ends within the budget, is read back correctly, and is
    as strict as required."""
    names = source.some(_NAMES, 1, 3)
    tools = [tool(source, name) for name in names]
    choice = source.pick(
        ("auto", "required", "required", {"type": "function", "function": {"name": names[0]}})
    )
    style, strictness = source.pick(list(STYLES)), source.pick(("auto", "function", "parameter", "parameter"))
    thinks = None
    if source.chance(30):
        family = FAMILIES[STYLES[style].family]
        thinks = sg.Reasoning(family.start, family.end, source.pick((None, 3)), required=True, gap=family.gap)
    try:
        grammar = COMPILER.tools(
            tools, choice, style=style, strictness=strictness, reasoning=thinks, parallel=source.chance(50)
        )
    except errors.GrammarError as error:
        assert "name" in str(error) or "may also begin" in str(error), (style, names, error)
        tally["refused"] += 1
        return
    room = grammar.matcher().tokens_needed() + source.pick((0, 1, 5, 60))
    matcher, tokens = grammar.matcher(max_tokens=room), list[int]()
    mask = oracle.fresh_mask(COMPILER.vocabulary.vocab_size)
    while not matcher.is_terminated():
        assert len(tokens) < room, (style, strictness, tools, tokens)
        matcher.fill_bitmask(mask, 0)
        allowed = np.flatnonzero(oracle.bits(mask, COMPILER.vocabulary.vocab_size))
        tokens.append(int(source.pick(allowed)))
        assert matcher.accept_token(tokens[-1])
    text = COMPILER.vocabulary.decode(tokens).decode()
    answer = text if thinks is None else thinks.split(text)[1]
    found = sg.parse_tool_calls(answer, style=style, tools=tools)
    schemas = {
        name: each.get("inputSchema") or each["function"]["parameters"]
        for name, each in zip(names, tools, strict=True)
    }
    of_function = [each.get("function", {}) for each in tools]
    strict = {name: bool(each.get("strict")) for name, each in zip(names, of_function, strict=True)}
    assert found.calls or choice == "auto", (style, strictness, tools, text)
    for call in found.calls:
        tally["calls"] += 1
        assert call.name in schemas, (style, call.name, text)
        if strictness == "parameter" or strict[call.name]:
            if strictness == "auto" and choice == "auto" and not any(strict.values()):
                continue
            jsonschema.Draft202012Validator(schemas[call.name]).validate(call.arguments)
            tally["judged"] += 1
