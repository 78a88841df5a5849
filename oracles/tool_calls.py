"""Random tools whose calls are written in every style: the engine takes what the style's reader reads.

`one` takes a family of schemas and a source of choices. Cost: tens of milliseconds a case.
"""

from __future__ import annotations

import collections
import json
import re

from oracles import oracle, strategies
from oracles.differential import check, instances
from oracles.differential.judge import DRAFTS, METASCHEMAS, Judge
from oracles.strategies import Source
from oracles.tool_styles import STYLE_READERS
from structgen import errors

MARKS = ("</parameter>", "</parameter", "\n", "\nab", "a</arg_value>", "<|close|>", '"a', "&quot;", "a>b")


REFERENCE = re.compile(r'"\$(recursiveR|dynamicR|r)ef"|"\$?id"')


COMPILER = check.compiler()


def grammar(schema, style, using=COMPILER, **fields):
    """None past the budget, check.EMPTY where nothing can be written. Numbers in every spelling of JSON."""
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
    if source.chance(12):  # what marks are made of
        value = {**value, source.pick((*MARKS, "a")): source.pick(MARKS)}
    return value


def one(family: str, source: Source, tally: collections.Counter[str]) -> None:
    drafts = [d for d in DRAFTS if d >= check.FIRST_DRAFT.get(family, 4)]
    draft = source.pick((*drafts, 2020))
    schema = check.FAMILIES[family](source, draft)
    if source.chance(50) and not REFERENCE.search(
        json.dumps(schema)
    ):  # most are of other values than objects
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
