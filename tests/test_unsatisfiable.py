"""An unsatisfiable schema is refused with the pointer of the part without a value. No satisfiable schema is
refused."""

from __future__ import annotations

import itertools
import json
import random
import re

import pytest

import structgen
from oracles import closed
from oracles.harness import compiler
from structgen import errors

NOTHING = {"allOf": [{"type": "string"}, {"type": "number"}]}

CASES = {
    "itself": ({"type": "integer", "minimum": 3, "maximum": 2}, ""),
    "required property": (
        {"type": "object", "properties": {"a": NOTHING, "b": {}}, "required": ["b", "a"]},
        "/properties/a",
    ),
    "reference": (
        {"$ref": "#/$defs/n", "$defs": {"n": {"minLength": 3, "maxLength": 2, "type": "string"}}},
        "/$defs/n",
    ),
    "allOf": (
        {"allOf": [{}, {"type": "object", "required": ["x"], "properties": {"x": False}}]},
        "/allOf/1/properties/x",
    ),
    "items": ({"type": "array", "minItems": 1, "items": NOTHING}, "/items"),
    "prefix": ({"type": "array", "minItems": 2, "prefixItems": [{}, NOTHING]}, "/prefixItems/1"),
    "contains": ({"type": "array", "contains": {"type": "array", "contains": NOTHING}}, "/contains/contains"),
    "every branch": ({"anyOf": [NOTHING, {"enum": []}]}, "/anyOf/0"),
}


@pytest.mark.parametrize("name", CASES)
def test_the_pointer(name: str) -> None:
    schema, pointer = CASES[name]
    with pytest.raises(errors.UnsatisfiableSchema) as caught:
        compiler().json_schema(schema)
    assert caught.value.pointer == pointer


@pytest.mark.parametrize("on_limit", ["error", "subset"])
def test_what_is_too_much_to_tell_is_not_called_unsatisfiable(on_limit: str) -> None:
    """A thousand distinct integers exist, so the schema has a value. Under on_limit="subset" the engine once
    took the values that it kept for all values."""
    schema = {"type": "array", "contains": {"type": "integer"}, "minContains": 1000, "uniqueItems": True}
    with pytest.raises(errors.SchemaTooComplex):
        compiler().json_schema(schema, on_limit=on_limit)


def test_a_part_that_may_be_missing_is_never_offered() -> None:
    schema = closed({"a": NOTHING, "b": {"type": "null"}}, ())
    matcher = compiler().json_schema(schema, whitespace="compact").matcher()
    assert matcher.accept_bytes(b'{"')
    assert not matcher.fork().accept_bytes(b"a")
    assert matcher.accept_bytes(b'b":null}') and matcher.is_accepting()


# Schemas that look simple and have only few values, or none. The engine's shortcuts before its solver must
# decide them rightly.
STEPS = {"allOf": [{"multipleOf": 6}, {"multipleOf": 10}], "type": "integer"}
NAMES = {"type": "object", "properties": {"a": {}}, "additionalProperties": False}
CLOSE = {
    "no integer between": ({"type": "integer", "minimum": 1.2, "maximum": 1.8}, False),
    "one integer between": ({"type": "integer", "exclusiveMinimum": 1, "exclusiveMaximum": 3}, True),
    "exclusive ends": ({"type": "number", "exclusiveMinimum": 1, "exclusiveMaximum": 1}, False),
    "one number": ({"type": "number", "minimum": 1, "maximum": 1}, True),
    "no multiple between": ({"multipleOf": 7, "minimum": 8, "maximum": 13, "type": "number"}, False),
    "the last multiple": ({"multipleOf": 7, "minimum": 8, "maximum": 14, "type": "number"}, True),
    "two steps": ({**STEPS, "minimum": 1, "maximum": 29}, False),
    "two steps meet": ({**STEPS, "minimum": 1, "maximum": 30}, True),
    "far apart": ({"type": "integer", "minimum": -1e14, "maximum": 1e14}, True),
    "digits below a double's": (
        '{"type": "integer", "minimum": 9007199254740992.5, "maximum": 9007199254740992.9}', False,
    ),
    "half a pair": ({"const": "\ud800"}, False),
    "half a pair and more": ({"enum": ["\ud800", "a"]}, True),
    "a name of half a pair": ({"type": "object", "required": ["\ud800"]}, False),
    "a required name too many": ({"type": "object", "required": ["a", "b"], "maxProperties": 1}, False),
    "two conditions on a member": (
        {"type": "object", "required": ["a"], "properties": {"a": {"type": "string"}},
         "patternProperties": {"^a": {"type": "number"}}}, False,
    ),
    "nothing but names": ({**NAMES, "required": ["a", "c"]}, False),
    "a value that is none": (
        {"type": "object", "required": ["a"], "additionalProperties": {"type": "object", "required": ["b"],
         "properties": {"b": False}}}, False,
    ),
    "without end": ({"$ref": "#/$defs/n", "$defs": {"n": {"type": "object", "required": ["n"],
                     "properties": {"n": {"$ref": "#/$defs/n"}}}}}, False),
    "with an end": ({"$ref": "#/$defs/n", "$defs": {"n": {"type": "object", "required": ["n"],
                     "properties": {"n": {"anyOf": [{"$ref": "#/$defs/n"}, {"const": 1}]}}}}}, True),
}  # fmt: skip


@pytest.mark.parametrize("name", CLOSE)
def test_by_a_hair(name: str) -> None:
    schema, satisfiable = CLOSE[name]
    if satisfiable:
        assert compiler().json_schema(schema).matcher().shortest_completion()
    else:
        with pytest.raises(errors.UnsatisfiableSchema):
            compiler().json_schema(schema)


# ---- characters that JSON can only write as escapes ----

PIECES = {  # patterns, and texts that match them
    r'"': ['"'],
    r"\\": ["\\"],
    r"\t": ["\t"],
    r"\u0001": ["\x01"],
    r"[\u0000-\u001f]$": ["\x02", "\n"],
    "^[^a]": ["b", '"', "\t"],
    "a.{2}$": ["axy", 'a"\\'],
    "^.{2,4}$": ["ab", '"\t', "abcd"],
    "[b-d]": ["b"],
    r'^["\\ab\t]*$': ["ab", '"\\\t'],
    "^[^ -~]*$": ["\t", "\x01"],
}


@pytest.mark.parametrize("seed", range(60))
def test_an_intersection_whose_texts_need_escapes_is_not_empty(seed: int) -> None:
    """The search for a text of an intersection omits only escapes of characters that have another
    spelling."""
    rng = random.Random(seed)
    patterns = rng.sample(list(PIECES), rng.randint(2, 4))
    readers = [re.compile(pattern.replace("$", r"\Z").replace(".", r"[^\n]")) for pattern in patterns]

    def fits(text: str) -> bool:
        return all(reader.search(text) for reader in readers)

    parts = [text for pattern in patterns for text in PIECES[pattern]]
    texts = ("".join(some) for count in (1, 2, 3) for some in itertools.product(parts, repeat=count))
    found = min((json.dumps(text, ensure_ascii=False) for text in texts if fits(text)), key=len, default=None)
    schema = {"type": "string", "allOf": [{"pattern": pattern} for pattern in patterns]}
    try:
        grammar = compiler().json_schema(schema)
    except structgen.UnsatisfiableSchema:
        assert found is None, (patterns, found)
        return
    shortest = grammar.matcher().shortest_completion().decode()
    assert fits(json.loads(shortest)), (patterns, shortest)
    assert found is None or len(shortest) <= len(found), (patterns, shortest, found)
