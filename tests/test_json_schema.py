"""The language of a compiled schema compared with jsonschema, on random schemas and instances.

The oracle judges values (oracles/oracle.py). Texts vary the order of keys, blanks, escapes and numerals, and
sometimes repeat a key. `STRUCTGEN_LONG=100` makes a long run; `STRUCTGEN_SEED` changes its seeds.
"""

from __future__ import annotations

import collections

import pytest

from oracles import harness, oracle, strategies
from oracles.harness import Empty
from oracles.strategies import Features, Source
from structgen import errors

TALLY: collections.Counter = collections.Counter()

KINDS = {
    "plain": strategies.PLAIN,
    "combined": Features(negate=False, refs=False),
    "negated": Features(depth=2),
    "recursive": Features(depth=3, combine=True, negate=False),
    "unevaluated": Features(unevaluated=True, depth=2),
    "everything": Features(unevaluated=True),
}


def differential(features: Features, source: Source, texts: int = 12) -> None:
    schema = strategies.schema(source, features)
    judge = oracle.JsonOracle(schema)
    grammar = harness.compiled(schema, property_order="any")
    if grammar is None:
        TALLY["too complex"] += 1
        return
    TALLY["unsatisfiable" if grammar is Empty else "compiled"] += 1
    for _ in range(texts):
        value = strategies.instance(source, schema)
        if source.chance(50):
            value = strategies.mutated(source, value)
        text = strategies.text(source, value)
        expected = judge.accepts(text)
        TALLY[expected] += 1
        try:
            found = harness.verdict(grammar, text)
        except errors.SchemaTooComplex:  # `test_seeded` bounds the number of these
            TALLY["too complex"] += 1
            return
        assert found == expected, f"{schema}\n{text}\nis {'' if expected else 'not '}an instance"


@pytest.mark.parametrize("kind", KINDS)
def test_seeded(kind) -> None:
    TALLY.clear()
    harness.seeded(lambda source: differential(KINDS[kind], source), 300)
    judged = TALLY[True] + TALLY[False]
    assert TALLY[True] > judged // 10 and TALLY[False] > judged // 10, TALLY  # the samples had both verdicts
    assert TALLY["too complex"] <= 0.02 * sum(TALLY[k] for k in ("too complex", "compiled")), TALLY


@pytest.mark.parametrize("kind", KINDS)
def test_shrinking(kind) -> None:
    harness.shrinking(lambda source: differential(KINDS[kind], source, texts=6), 40)


def test_schema_order_is_a_part_of_any_order() -> None:
    """Every text under property_order="schema" is also a text under "any". For an instance whose members come
    from one `properties` map, "schema" accepts the text that has the map's order."""

    def check(source: Source) -> None:
        schema = strategies.schema(source, strategies.PLAIN)
        ordered = harness.compiled(schema, property_order="schema")
        free = harness.compiled(schema, property_order="any")
        assert (ordered is Empty) == (free is Empty)
        if ordered is None or free is None:
            return
        for _ in range(6):
            value = strategies.instance(source, schema)
            text = strategies.text(source, value)
            if harness.verdict(ordered, text):
                assert harness.verdict(free, text), text
            elif harness.verdict(free, text):
                sorted_value = _in_order(schema, value)
                text = strategies.text(source, sorted_value, shuffle=False, odd=False)
                assert harness.verdict(ordered, text), f"{schema}\n{text}"

    harness.seeded(check, 150)


def _in_order(schema, value):
    """The value, in which the members of each object follow `properties`; other members come last."""
    if isinstance(value, list):
        prefix = schema.get("prefixItems", []) if isinstance(schema, dict) else []
        rest = schema.get("items", True) if isinstance(schema, dict) else True
        return [_in_order(prefix[i] if i < len(prefix) else rest, v) for i, v in enumerate(value)]
    if not isinstance(value, dict):
        return value
    properties = schema.get("properties", {}) if isinstance(schema, dict) else {}
    names = [n for n in properties if n in value] + [n for n in value if n not in properties]
    return {n: _in_order(properties.get(n, True), value[n]) for n in names}


def test_regex_language() -> None:
    """`compiler.regex` accepts exactly the texts that Python's `fullmatch` accepts."""

    def check(source: Source) -> None:
        pattern = strategies.pattern(source)
        grammar = harness.compiler().regex(pattern)
        for _ in range(8):
            text = strategies.subject(source)
            assert harness.verdict(grammar, text) == oracle.regex_matches(pattern, text), (
                pattern,
                text,
            )

    harness.seeded(check, 400)


@pytest.mark.parametrize(
    ("number", "least"), [("1.5e0", 2), ("2.0", 2), ("20e-1", 2), ("0.1e1", 1), ("-3.5", 0), ("1e-400", 1)]
)
def test_counts_are_numbers_in_any_spelling(number: str, least: int) -> None:
    for keyword, opening, item in (("minLength", '"', "a"), ("minItems", "[", "1,")):
        matcher = harness.compiler().json_schema(f'{{"{keyword}": {number}}}', whitespace="compact").matcher()
        assert matcher.accept_bytes(opening)
        for n in range(least + 1):
            inside = item * n if item == "a" else (item * n).rstrip(",")
            ended = opening + inside + ('"' if item == "a" else "]")
            fresh = matcher.fork()
            assert fresh.accept_bytes(ended[1:]) == (n >= least), ended


@pytest.mark.parametrize(
    "schema, note",
    [
        (
            {"dependentRequired": {"a": "b"}},
            "dependentRequired: ignored in part: 'a' is not an array of names",
        ),
        (
            {"dependentRequired": {"a": [5]}},
            "dependentRequired: ignored in part: 'a' has an item that is not a name",
        ),
        ({"required": ["a", 5]}, "required: ignored in part: an item is not a name"),
        ({"allOf": [{}, "a"]}, "allOf: ignored in part: 1 is not a schema"),
        ({"properties": {"a": "b"}}, "properties: ignored in part: 'a' is not a schema"),
        ({"type": ["string", 5]}, "type: ignored in part: an item is not the name of a type"),
    ],
)
def test_misshapen_parts_are_reported(schema, note) -> None:
    assert f"#: {note}" in [str(entry) for entry in harness.compiler().json_schema(schema).report]
