"""The plain spelling of numbers: no exponent, no -0, and fractions of up to six digits may end with zeros.

The oracle decides every short text. A pattern gives the shape, jsonschema with exact numbers judges the
value, and `pointed` reads in the schema whether a whole number may have a point.
"""

from __future__ import annotations

import itertools
import json
import random
import re
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import pytest

import structgen as sg
from oracles import harness
from oracles.oracle import JsonOracle

BYTES = sg.Vocabulary.from_bytes([bytes([b]) for b in range(256)] + [b""], eos_token_ids=[256])
COMPILER = sg.Compiler(BYTES)
SHAPE = re.compile(r"(?!-0(\.0*)?$)-?(0|[1-9]\d*)(\.(\d*[1-9]|\d{1,6}))?")
LONGEST = 5


def _texts() -> Iterator[str]:
    """Returns all texts of the shape with up to `LONGEST` bytes and the digits 0, 1, 2 and 5."""
    for n in range(1, LONGEST + 1):
        for letters in itertools.product("-.0125", repeat=n):
            if SHAPE.fullmatch(text := "".join(letters)):
                yield text


SHORT = list(_texts())


def is_whole(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and value == int(value)


def pointed(schema: Any, text: str) -> bool:
    """Returns whether the schema lets a whole number be written with a point. `text` is such a number, and
    its value satisfies the schema."""
    if isinstance(schema, bool):
        return schema
    valid = JsonOracle(schema).accepts
    if not valid(text):
        return False
    kinds = schema.get("type", "number")
    if "integer" in kinds and "number" not in kinds:
        return False
    listed = schema.get("enum", [schema["const"]] if "const" in schema else [])
    if listed and all(is_whole(v) for v in listed if isinstance(v, int | float)):
        return False
    parts = {key: schema.get(key, []) for key in ("allOf", "anyOf", "oneOf")}
    may = [pointed(part, text) for part in parts["oneOf"]]
    return (
        all(pointed(part, text) for part in parts["allOf"])
        and (not parts["anyOf"] or any(pointed(part, text) for part in parts["anyOf"]))
        and (not may or any(may))
        and ("if" not in schema or _chosen(schema, text))
    )


def _chosen(schema: Any, text: str) -> bool:
    if JsonOracle(schema["if"]).accepts(text):
        return pointed(schema["if"], text) and pointed(schema.get("then", True), text)
    return pointed(schema.get("else", True), text)


def written(schema: Any, oracle: JsonOracle, text: str) -> bool:
    if not SHAPE.fullmatch(text) or not oracle.accepts(text):
        return False
    return "." not in text or Fraction(text).denominator != 1 or pointed(schema, text)


def takes(grammar: sg.CompiledGrammar, text: str) -> bool:
    matcher = grammar.matcher()
    return bool(matcher.accept_bytes(text) and matcher.is_accepting())


def check(schema: Any, seed: int = 0) -> None:
    """Grammar and oracle accept the same short texts, agree on longer ones, and every beginning can be
    completed."""
    oracle = JsonOracle(schema)
    right = {text for text in SHORT if written(schema, oracle, text)}
    try:
        grammar = COMPILER.json_schema(schema, numbers="plain")
    except sg.UnsatisfiableSchema:
        assert not right
        return
    matcher = grammar.matcher()
    found, prefixes = set(), []

    def walk(text: str) -> None:
        if matcher.is_accepting():
            found.add(text)
        prefixes.append((text, matcher.shortest_completion().decode()))
        if len(text) == LONGEST:
            return
        for letter in "-.0125":
            if matcher.accept_bytes(letter):
                walk(text + letter)
                matcher.rollback()

    walk("")
    assert found == right
    chance = random.Random(seed)
    for text, rest in chance.sample(prefixes, min(len(prefixes), 60)):
        assert written(schema, oracle, text + rest), (text, rest)
        shorter = (
            text + "".join(more)
            for n in range(min(len(rest), LONGEST - len(text)))
            for more in itertools.product("-.0125", repeat=n)
        )
        assert not any(t in right for t in shorter), (text, rest)
    for text in chance.sample(SHORT, 60):
        zeros = "0" * chance.randint(1, 7)
        longer = text + zeros if "." in text else f"{text}.{zeros}"
        for t in (longer, longer + "5", longer + "1"):
            assert takes(grammar, t) == written(schema, oracle, t), t


SCHEMAS: list[Any] = [
    {"type": "number"},
    {"type": "integer"},
    {"type": ["integer", "number"]},
    {"minimum": 0},
    {"exclusiveMinimum": 0},
    {"maximum": 0},
    {"exclusiveMaximum": 0},
    {"minimum": 1.05, "maximum": 1.25},
    {"exclusiveMinimum": 1.05, "exclusiveMaximum": 1.25},
    {"minimum": -1.5, "exclusiveMaximum": 2},
    {"exclusiveMinimum": -0.2, "exclusiveMaximum": 0.2},
    {"exclusiveMaximum": -0.0105},
    {"minimum": 2.0000001, "maximum": 2.000001},
    {"multipleOf": 0.01},
    {"multipleOf": 0.01, "type": "integer"},
    {"multipleOf": 0.5},
    {"multipleOf": 5},
    {"multipleOf": 10},
    {"multipleOf": 0.25, "minimum": -1, "maximum": 2},
    {"multipleOf": 0.125, "exclusiveMinimum": 0},
    {"multipleOf": 2.5, "type": "integer", "maximum": 55},
    {"multipleOf": 0.0000005, "maximum": 0.0001, "minimum": 0},
    {"multipleOf": 12345, "minimum": -12345},
    {"multipleOf": 0.00012345},
    {"multipleOf": 0.5, "maximum": -0.5},
    {"enum": [1, 2, 5]},
    {"enum": [0.5, 1, 2.25, -10]},
    {"enum": [0, "a", 1.5]},
    {"const": 12},
    {"const": 0},
    {"const": 0.5},
    {"const": 0.0000001},
    {"enum": [1, 2, 5], "minimum": 2},
    {"type": "integer", "enum": [0.5, 1, 2]},
    {"type": "number", "not": {"type": "integer"}},
    {"type": "number", "not": {"const": 1}},
    {"type": "number", "not": {"enum": [1, 0.5, 2]}},
    {"type": "number", "not": {"multipleOf": 0.5}},
    {"type": "number", "anyOf": [{"type": "integer"}, {"minimum": 5}]},
    {"type": "number", "oneOf": [{"type": "integer"}, {"minimum": 5}]},
    {"type": "number", "oneOf": [{"type": "integer"}, {"type": "number", "minimum": 2}, {"const": 0.5}]},
    {"if": {"type": "integer"}, "then": {"maximum": 5}, "else": {"minimum": 1}, "type": "number"},
    {"type": "number", "anyOf": [{"type": "integer", "minimum": 5}, {"multipleOf": 0.5, "maximum": 2}]},
    # few multiples of several divisors between bounds, tried one by one
    {"allOf": [{"multipleOf": 0.5}, {"multipleOf": 0.25}], "minimum": 0, "maximum": 3},
    {"allOf": [{"multipleOf": 0.5}, {"multipleOf": 0.2}], "minimum": 0, "maximum": 12, "type": "integer"},
    {
        "allOf": [{"multipleOf": 0.5}, {"anyOf": [{"multipleOf": 0.25}, {"type": "integer"}]}],
        "anyOf": [{"type": "integer"}, {"multipleOf": 2.5}, {"enum": [0.5, 1]}],
        "minimum": 0,
        "maximum": 11,
    },
    {
        "allOf": [{"multipleOf": 0.5}, {"not": {"multipleOf": 2}}],
        "oneOf": [{"type": "integer"}, {"multipleOf": 2.5}],
        "minimum": -2,
        "maximum": 11,
    },
]


@pytest.mark.parametrize("schema", SCHEMAS, ids=json.dumps)
def test_short_texts_are_those_of_the_definition(schema: Any) -> None:
    check({"type": "number", **schema})


def _random(chance: random.Random, depth: int, whole: bool) -> Any:
    """Returns a random schema of a number. The schema requires `integer` or forbids it, never both."""
    kind = chance.choice(["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "enum"])
    if chance.random() < 0.3:
        kind = "integer"
    if depth and chance.random() < 0.6:
        kind = chance.choice(["anyOf", "oneOf", "allOf", "not"])
    if kind == "integer":
        return {"type": "integer"} if whole else {"type": "number", "not": {"type": "integer"}}
    if kind == "multipleOf":
        return {kind: chance.choice([0.5, 0.25, 0.05, 1.5, 2, 0.01, 2.5, 1, 10, 0.75])}
    if kind == "enum":
        listed = chance.sample([0, 1, 2, 5, 10, 0.5, 1.5, -1, 0.25, -0.5], 3)
        return {kind: [int(v) for v in listed] if chance.random() < 0.4 else listed}
    if kind == "not":
        inner = _random(chance, 0, whole)
        return inner if "type" in inner else {"type": "number", "not": inner}
    if kind in ("anyOf", "oneOf", "allOf"):
        return {kind: [_random(chance, depth - 1, whole) for _ in range(chance.randint(1, 3))]}
    return {kind: chance.choice([0, 1, -1, 0.5, 1.25, -0.05, 2, 10, 12.5, 1.005])}


@pytest.mark.parametrize("seed", harness.seeds(60))
def test_random_conditions(seed: int) -> None:
    chance = random.Random(seed)
    parts = [_random(chance, 2, seed % 3 != 0) for _ in range(chance.randint(1, 3))]
    check({"type": "number", "allOf": parts}, seed)


def array(text: str) -> str:
    return f'{{"type": "array", "items": {text}, "uniqueItems": true}}'


def test_equal_numbers_in_other_spellings_are_equal() -> None:
    grammar = COMPILER.json_schema(array('{"type": "number"}'), numbers="plain", whitespace="compact")
    assert takes(grammar, "[1,1.50,2.0,0.0]")
    for text in ("[1,1.0]", "[1.50,1.5]", "[0,0.00]", "[1.5,2,1.500000]", "[10.0,10]"):
        assert not takes(grammar, text), text
    few = COMPILER.json_schema(
        array('{"enum": [0.5, 1]}')[:-1] + ', "minItems": 2}', numbers="plain", whitespace="compact"
    )
    texts = [[f"0.5{'0' * n}" for n in range(6)], ["1", *(f"1.{'0' * n}" for n in range(1, 7))]]
    for pair in (texts, texts[::-1]):
        for a, b in itertools.product(*pair):
            assert takes(few, f"[{a},{b}]")
    assert not takes(few, "[1,1.0]")
    assert not takes(few, "[0.50,0.5]")
    # only two values exist, in several spellings, so three different items are impossible
    with pytest.raises(sg.UnsatisfiableSchema):
        COMPILER.json_schema(array('{"enum": [0.5, 1]}')[:-1] + ', "minItems": 3}', numbers="plain")


@pytest.mark.parametrize(
    "schema", [{"type": "number", "multipleOf": 0.01}, {"type": "number", "minimum": 3.5}]
)
def test_a_price_may_end_in_a_zero_and_then_end(schema: Any) -> None:
    grammar = COMPILER.json_schema(schema, numbers="plain")
    for text in ("3.50", "100.00", "12.0", "4.500000"):
        assert takes(grammar, text), text
    assert not takes(grammar, "4.5000000")
    assert not takes(COMPILER.json_schema(schema, numbers="canonical"), "3.50")


def test_a_budget_counts_the_shortest_spelling() -> None:
    grammar = COMPILER.json_schema({"enum": [0.5, 1]}, numbers="plain")
    needed = {"": 2, "0": 3, "0.": 2, "0.5": 1, "0.50": 1, "1": 1, "1.": 2}
    for begun, tokens in needed.items():  # the last number of tokens is for the end
        matcher = grammar.matcher()
        assert matcher.accept_bytes(begun)
        assert matcher.tokens_needed() == tokens, begun


@pytest.mark.parametrize("digits", [307, 308, 309])
def test_every_reader_has_a_finite_number(digits: int) -> None:
    for schema in ({"type": "number"}, {"type": "number", "minimum": 3}):
        grammar = COMPILER.json_schema(schema, numbers="plain")
        for text in ("9" * digits, "9" * digits + ".00"):
            assert takes(grammar, text) == (digits <= 308)


LARGE = [2.5, 1e20, 3e25, 7, 123456789, 0.1, 1.5e-7, 1e300]
FAR = [1e308, 1e307, 5e299, 1.7e308]


@pytest.mark.parametrize("spelling", ["plain", "canonical"])
@pytest.mark.parametrize("seed", range(12))
def test_no_condition_writes_a_number_that_is_infinite(seed: int, spelling: Any) -> None:
    """Random conditions on far numbers: the longest texts are finite doubles and meet the conditions, by
    exact fractions. A multiple of 2.5, and numbers from 1e308 on, once had 320 digits and more."""
    source = random.Random(seed)
    schema: dict[str, Any] = {"type": source.choice(["number", "integer"])}
    if source.random() < 0.8:
        schema["multipleOf"] = source.choice(LARGE)
    if source.random() < 0.4:
        schema[source.choice(["minimum", "exclusiveMinimum"])] = source.choice(FAR)
    if "multipleOf" in schema and "e" not in str(schema["multipleOf"]) and len(schema) > 2:
        schema[list(schema)[-1]] = source.choice([1e18, 12345.5, 1e40])
    try:
        grammar = COMPILER.json_schema(schema, numbers=spelling)
    except sg.SchemaTooComplex:  # a bound of 40 digits beside a divisor of nine digits
        return
    for first in "1-9":
        matcher, text = grammar.matcher(), first
        if not matcher.accept_bytes(first.encode()):
            continue
        longest = ""
        while True:
            if matcher.is_accepting():
                longest = text
            digits = [d for d in "0123456789" if matcher.validate_bytes(d.encode())]
            if not digits:
                break
            digit = source.choice(digits)
            assert matcher.accept_bytes(digit.encode())
            text += digit
            assert len(text) < 320, schema
        longest = longest or text + matcher.shortest_completion().decode()
        value = Fraction(longest)
        assert abs(value) <= Fraction(1.7976931348623157e308), (schema, longest)
        assert value % Fraction(str(schema.get("multipleOf", value or 1))) == 0, (schema, longest)
        for key in ("minimum", "exclusiveMinimum"):
            assert value >= Fraction(str(schema.get(key, value))), (schema, longest)


@pytest.mark.parametrize("spelling", ["plain", "canonical"])
@pytest.mark.parametrize("divisor", ["123456789012345678e295", "123456789e300", "1e308", "7e308", "9e307"])
def test_multiples_near_the_largest_double(divisor: str, spelling: Any) -> None:
    """Only a few multiples of the divisor are doubles. The search for the least multiple of 18 digits and 295
    zeros once did not end."""
    grammar = COMPILER.json_schema(f'{{"type": "integer", "multipleOf": {divisor}}}', numbers=spelling)
    for factor in range(4):
        value = int(Fraction(divisor)) * factor
        assert takes(grammar, str(value)) == (value <= Fraction(1.7976931348623157e308)), value
        assert not takes(grammar, str(value + 1))
    assert grammar.matcher().shortest_completion() == b"0"


@pytest.mark.parametrize("numbers", ["plain", "canonical"])
def test_a_complement_of_multiples_has_no_number_beyond_the_limit_of_digits(numbers: str) -> None:
    """The automaton of a divisor reads up to 308 digits, so its complement contains every longer number. If
    no shorter number was left, the engine once wrote one that is too long."""
    longer = ["8" * 309, "7" * 310, "1" + "0" * 309]
    shorter = [str(n) for n in range(-3, 24)] + ["0.5", "0.25", "2.05", "0.3"]
    divisors = [0.5, 0.2, 0.25, 0.05, 0.125, 1, 1.5, 2, 3, 10]
    for denied in harness.chosen(divisors):
        schemas: list[Any] = [
            {"type": "integer", "not": {"multipleOf": denied}},
            {"type": "integer", "oneOf": [{"multipleOf": 1}, {"multipleOf": denied}]},
        ]
        schemas += [{"type": "number", "multipleOf": d, "not": {"multipleOf": denied}} for d in divisors]
        for schema in schemas:
            oracle = JsonOracle(schema)
            try:
                grammar = COMPILER.json_schema(schema, numbers=numbers, whitespace="compact")
            except sg.UnsatisfiableSchema:
                assert not any(oracle.accepts(text) for text in shorter), schema
                continue
            except sg.SchemaTooComplex:
                continue
            assert grammar.matcher().live_bytes(), schema
            for text in longer + shorter:
                matcher = grammar.matcher()
                if matcher.accept_bytes(text) and matcher.is_accepting():
                    assert oracle.accepts(text), (schema, text)
