"""The short run of `python -m bench.differential`, and cases that the long run found.

Random schemas of every family and draft: the engine is compared with the judge and with jsonschema. The
official suite checks the judge. Walks through masks must end in instances. `STRUCTGEN_LONG=k` multiplies the
counts by k.
"""

from __future__ import annotations

import collections
import json

import pytest

import structgen
from oracles import data, harness, oracle
from oracles.differential import check, instances
from oracles.differential.judge import METASCHEMAS, Judge
from oracles.strategies import Seeded, Source

FIRST = 50_000_100  # the first seed; the long run reaches it late
TALLY: collections.Counter[str] = collections.Counter()


@pytest.fixture(scope="module")
def compiler() -> structgen.Compiler:
    return check.compiler()


@pytest.mark.parametrize("family", check.FAMILIES)
def test_family(family, compiler) -> None:
    checker = check.Checker(compiler, small=300)
    for seed in range(FIRST, FIRST + harness.cases(20)):
        checker.run(family, Seeded(seed), 12)
        assert not checker.findings, (seed, check.minimal(checker.findings[0]))
    count = checker.counts
    assert count["valid"] > count["pairs"] // 20 and count["invalid"] > count["pairs"] // 20, count
    assert count["too complex"] <= count["schemas"] // 50, count


# Cases of the long run: schema, texts that are instances, texts that are not.
FOUND = [
    # The search for a completion did not end: it asked what a oneOf inside a oneOf requires, and what the
    # negation requires.
    (
        {
            "type": "object",
            "oneOf": [{"oneOf": [{"required": ["a"]}, {"required": ["b"]}]}, {"required": ["c"]}],
        },
        ['{"a": 1}', '{"c": 1}', '{"a": 1, "b": 1, "c": 1}'],
        ["{}", '{"a": 1, "c": 1}', '{"a": 1, "b": 1}'],
    ),
    (  # the judges were wrong: `.` of ECMA-262 matches no line terminator
        {"patternProperties": {"^.$": False}},
        ['{"\\r": 1}', '{"\\n": 1}', '{"\\u2028": 1}'],
        ['{"a": 1}'],
    ),
]


# Cases of the long run: (schema, beginning of a text). The completion was not found, or took minutes.
IDS = {"type": "object", "properties": {"id": {"type": "integer"}}, "additionalProperties": False}
LISTS = {"type": "array", "items": {"enum": [1, [1]]}, "maxItems": 2}
COMPLETED = [
    (
        {"type": "array", "uniqueItems": True, "items": {**IDS, "required": ["id"]}, "minItems": 3},
        '[{"\\u006',
    ),
    ({"type": "array", "uniqueItems": True, "items": IDS, "minItems": 3}, '[{"id": 0},{'),
    ({"type": "array", "uniqueItems": True, "items": LISTS, "minItems": 3}, "[[1e0],[],[1e00"),
    (
        {
            "type": "object",
            "properties": {f"k{i}": {} for i in range(40)},
            "required": [f"k{i}" for i in range(40)],
            "oneOf": [{"required": ["x"]}, {"required": ["y"]}],
        },
        '{"k7": 1, "k3"',
    ),
    (
        {
            "type": "object",
            "anyOf": [
                {
                    "patternProperties": {"^[a-c]{1,3}$": True},
                    "additionalProperties": {"enum": ["a", None]},
                    "minProperties": 2,
                },
                {"maxProperties": 0},
            ],
        },
        "{",
    ),
    (
        {
            "not": {
                "patternProperties": {"^$": True, "ab|ba": True},
                "anyOf": [
                    {},
                    {
                        "properties": {"ab": {"const": 1}},
                        "patternProperties": {"^(ab)*$": {"type": "integer"}},
                    },
                ],
                "unevaluatedProperties": False,
            },
            "type": "object",
        },
        "",
    ),
]


@pytest.mark.parametrize(("schema", "before"), COMPLETED)
@pytest.mark.parametrize("order", ["any", "schema"])
def test_completions_are_found(schema, before, order, compiler) -> None:
    matcher = compiler.json_schema(schema, property_order=order).matcher()
    if order == "schema" and not matcher.fork().accept_bytes(before):
        return
    assert matcher.accept_bytes(before)
    text = before + matcher.shortest_completion().decode()
    assert Judge(schema).accepts(text), text
    assert len(text) < 40 + 12 * len(schema.get("required", ())) + 16 * schema.get("minItems", 0), text


def mask_walk(source: Source, grammar, schema, draft: int) -> None:
    """A walk chooses uniformly among the allowed tokens; near the end the mask gets the budget."""
    words = harness.WORDS
    matcher = grammar.matcher()
    free = source.integer(0, 25)
    left = 10_000
    text = b""
    while not matcher.is_terminated():
        if free == 0:
            left = min(left, matcher.tokens_needed() + source.integer(0, 3))
        allowed = oracle.mask_of(matcher, words.size, left if free <= 0 else None).nonzero()[0]
        token = int(source.pick(allowed.tolist()))
        assert matcher.accept_token(token)
        text += b"" if token in words.eos else words.tokens[token]
        free, left = free - 1, left - 1
        assert left >= 0, f"{text!r} is past its budget"
    if instances.HUGE.search(text) or not _characters(text):
        return
    TALLY["walks"] += 1
    found = text.decode()
    assert Judge(schema, draft).accepts(found), (schema, found)
    other = oracle.JsonOracle(schema, check.VALIDATORS[draft])
    try:
        agrees = other.accepts(found)
    except (TypeError, AttributeError, LookupError):  # jsonschema raises these on some legal schemas
        return
    assert agrees or check.known_fault(schema, found, True) != check.UNKNOWN, (schema, found)


def _characters(text: bytes) -> bool:
    """Returns whether a text has no lone surrogate. Python reads lone surrogates too, but Python's patterns
    and lengths differ there."""
    return b"\\ud" not in text.lower()


@pytest.mark.parametrize("family", check.FAMILIES)
def test_walks_through_masks_end_in_instances(family) -> None:
    using = harness.compiler()
    TALLY.clear()

    def walks(source: Source) -> None:
        draft = source.pick([d for d in METASCHEMAS if d >= check.FIRST_DRAFT.get(family, 4)])
        schema = check.FAMILIES[family](source, draft)
        if not isinstance(schema, dict):
            return
        schema = {"$schema": METASCHEMAS[draft], **schema}
        grammar = harness.compiled(schema, using=using, property_order=source.pick(("schema", "any")))
        if grammar is None or grammar is harness.Empty:
            return
        for _ in range(2):
            try:
                mask_walk(source, grammar, schema, draft)
            except structgen.SchemaTooComplex:
                TALLY["too complex"] += 1

    harness.seeded(walks, 18)
    assert TALLY["walks"] >= 3 and TALLY["too complex"] <= max(2, TALLY["walks"] // 4), TALLY


def test_what_was_read_before_changes_nothing(compiler) -> None:
    """A memo used a hash as its key. After these texts the memo gave one object's answer, "cannot be
    completed", for another object."""
    kinds = {"kind": {"enum": ["z"]}}
    named = {"properties": {"kind": {"enum": ["y"]}, "c": {"type": "integer"}}, "required": ["kind"]}
    closed = {"type": "object", "additionalProperties": False}
    none = {"enum": []}
    schema = {
        "oneOf": [
            {"properties": kinds},
            {"properties": {"kind": none, "a": {"type": []}, "b": {"oneOf": [closed, named]}}},
        ],
        "properties": {
            "b": {
                "anyOf": [
                    {"properties": kinds},
                    {"properties": {"a": {"type": ["null"]}, "c": {"type": "integer"}}, "required": ["a"]},
                ]
            }
        },
        "not": {
            "properties": {
                **kinds,
                "a": {"enum": [1]},
                "c": {
                    "properties": {"kind": none, "b": {"type": ["null"]}, "c": {"type": []}},
                    "required": ["b"],
                    "type": "object",
                },
            },
            "required": ["c"],
            "additionalProperties": False,
        },
    }
    text = '{"c": {"b": null}, "a": 1, "aa": []}'
    assert Judge(schema).accepts(text)
    grammar = check.compiler().json_schema(schema, property_order="any")
    for before in ('{"b":{"kind":"y"}}', '{"b": {"c": 0}}', '{"kind": "z"}', '{"b": "1"}', '{"a": null}',
                   '{"b": {"a": null}}'):  # fmt: skip
        harness.verdict(grammar, before)
    assert harness.verdict(grammar, text)


EITHER = {"type": "object", "anyOf": [{"required": ["a"]}, {"required": ["b"]}]}
OPEN = {"type": "object", "minProperties": 3}


@pytest.mark.parametrize(
    ("some", "none", "value"),
    [
        (EITHER, {**EITHER, "propertyNames": {"enum": ["c"]}}, {"a": 1}),
        (EITHER, {**EITHER, "properties": {"a": False, "b": False}}, {"b": 1}),
        (OPEN, {**OPEN, "propertyNames": {"enum": ["a", "b"]}}, {"a": 1, "b": 2, "c": 3}),
    ],
)
def test_objects_that_ask_the_same_of_other_keys(some, none, value, compiler) -> None:
    """Both objects' requirements are one formula. An instance of the first object proves nothing about the
    second."""
    grammar = compiler.json_schema(
        {"anyOf": [some, {"type": "array", "prefixItems": [none], "minItems": 1}]}, property_order="any"
    )
    assert harness.verdict(grammar, json.dumps(value).encode())
    assert not grammar.matcher().accept_bytes(b"[")
    with pytest.raises(structgen.UnsatisfiableSchema):
        compiler.json_schema({"type": "array", "prefixItems": [some, none], "minItems": 2})


def test_mutual_recursion(compiler) -> None:
    """The schemas A and B refer to each other. While the engine decides whether A has a value, it assumes
    that A has none. No memo may keep an answer about B that rests on this assumption."""

    def holding(kind: str, inner: str) -> dict:
        ref = {"$ref": f"#/$defs/{inner}"}
        if kind == "array":
            return {"type": "array", "minItems": 1, "items": ref}
        if kind == "contains":
            return {"type": "array", "contains": ref}
        return {"type": "object", "required": ["k"], "properties": {"k": ref}, "additionalProperties": False}

    leaves = ({"type": "object", "maxProperties": 0}, {"type": "null"}, {"type": "array", "maxItems": 0})
    values: list = [{}, None, [], 1]
    for _ in range(3):
        values += [[v] for v in values[-60:]] + [{"k": v} for v in values[-60:]]
    texts = [json.dumps([v]) for v in values[:400]]
    for one in ("array", "contains", "object"):
        for two in ("array", "contains", "object"):
            for leaf in leaves:
                for combine in ("anyOf", "oneOf"):
                    first = {combine: [holding(one, "B"), leaf]}
                    for second in (holding(two, "A"), {"not": {"not": holding(two, "A")}}):
                        schema = {**holding("array", "A"), "$defs": {"A": first, "B": second}}
                        grammar = compiler.json_schema(schema, property_order="any")
                        judge = Judge(schema)
                        for text in texts[::3]:
                            assert harness.verdict(grammar, text) == judge.accepts(text), (schema, text)


@pytest.mark.parametrize(("schema", "good", "bad"), FOUND)
def test_found(schema, good, bad, compiler) -> None:
    grammar = compiler.json_schema(schema, property_order="any")
    judge = Judge(schema)
    assert judge.accepts(grammar.matcher().shortest_completion().decode())
    for text in good:
        assert judge.accepts(text) and harness.verdict(grammar, text), text
    for text in bad:
        assert not judge.accepts(text) and not harness.verdict(grammar, text), text


@pytest.mark.parametrize("draft", ["draft2020-12", "draft7"])
def test_the_judge_on_the_official_suite(draft) -> None:
    """The judge passes every required case that needs no remote document."""
    if not (data.root() / "json-schema-test-suite").is_dir():
        pytest.skip(f"no official suite under {data.root()}")
    number = {"draft2020-12": 2020, "draft7": 7}[draft]
    right = 0
    for group in data.suite_groups(draft):
        words = json.dumps(group.schema).replace(f'"$schema": "{METASCHEMAS[number]}"', "")
        foreign = ("localhost:1234", "json-schema.org", "\\\\d", "\\\\p", "\\\\S", "\\\\w", "\\\\W")
        if "/optional/" in group.file or any(word in words for word in foreign):
            continue
        judge = Judge(group.schema, number, formats={})
        for test in group.tests:
            if "\n" in test.text:
                continue
            assert judge.accepts(test.text) == test.valid, (group.file, group.about, test.about)
            right += 1
    assert right > 700
