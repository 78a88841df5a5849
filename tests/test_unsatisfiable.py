"""An unsatisfiable schema is refused with the pointer of the part that has no value."""

from __future__ import annotations

import pytest

from structgen import errors
from tests.harness import compiler

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


def test_a_part_that_may_be_missing_is_never_offered() -> None:
    schema = {
        "type": "object",
        "properties": {"a": NOTHING, "b": {"type": "null"}},
        "additionalProperties": False,
    }
    matcher = compiler().json_schema(schema, whitespace="compact").matcher()
    assert matcher.accept_bytes(b'{"')
    assert not matcher.fork().accept_bytes(b"a")
    assert matcher.accept_bytes(b'b":null}') and matcher.is_accepting()
