"""Containment, comparison and counts, checked against enumeration, `jsonschema`, `re` and the masks.

Oracles: `JsonOracle` judges every small value, and every witness of random pairs of schemas. A witness is
shortest if no shorter value of the enumeration separates the two schemas. `re` judges all texts over two
letters. A count equals the number of enumerated texts and the number of paths through the masks.
"""

from __future__ import annotations

import itertools
import json
import os
import re
from typing import Any

import numpy as np
import pytest

import structgen as sg
from oracles.differential.instances import small_values
from oracles.oracle import JsonOracle, mask_of
from oracles.strategies import Features, Seeded, pattern, schema
from structgen.checking import bytes_compiler
from structgen.counting import RankedTexts
from structgen.operands import operand

LONG = int(float(os.environ.get("STRUCTGEN_LONG", "0")))
PAIRS = 60 * max(1, LONG)
NESTED = {"type": "object", "properties": {"n": {"$ref": "#"}}, "required": ["n"]}
BRACKETS = 'root ::= "a" root "b" | ""'


def compact(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


@pytest.mark.parametrize("seed", range(PAIRS))
def test_verdicts_and_witnesses_are_those_of_enumeration(seed: int) -> None:
    source = Seeded(seed)
    wide = schema(source, Features(depth=2))
    narrow = {"allOf": [wide, schema(source, Features(depth=2))]} if seed % 3 == 0 else schema(
        source, Features(depth=2)
    )  # fmt: skip
    if seed % 3 == 0 and "$ref" in compact(narrow):
        narrow = wide  # references of a part of the schema would lead elsewhere
    found = sg.contains(wide, narrow)
    of_wide, of_narrow = JsonOracle(wide), JsonOracle(narrow)
    values = [compact(v) for v in itertools.islice(small_values({"anyOf": [wide, narrow]}), 400)]
    apart = [text for text in values if of_narrow.accepts(text) and not of_wide.accepts(text)]
    if found.holds:
        assert not apart
    elif found.holds is False:
        assert found.witness is not None
        assert of_narrow.accepts(found.witness) and not of_wide.accepts(found.witness)
        shortest = min((len(text.encode()) for text in apart), default=len(found.witness.encode()))
        assert len(found.witness.encode()) <= shortest
    else:
        assert found.reason
    if seed % 3 == 0:
        assert found.holds is not False


@pytest.mark.parametrize("seed", range(40))
def test_patterns_are_compared_as_re_does(seed: int) -> None:
    source = Seeded(seed)
    one, other = pattern(source, 2), pattern(source, 2)
    try:
        a, b = re.compile(one), re.compile(other)
        found = sg.compare(a, b)
    except (sg.GrammarError, re.error):
        pytest.skip("a pattern of another dialect")
    texts = ["".join(t) for n in range(5) for t in itertools.product("abc1", repeat=n)]
    of_a, of_b = ({t for t in texts if p.fullmatch(t)} for p in (a, b))
    assert not (found.a_in_b.holds and of_a - of_b) and not (found.b_in_a.holds and of_b - of_a)
    assert not (found.disjoint and of_a & of_b)
    for held, p, q in ((found.a_in_b, a, b), (found.b_in_a, b, a)):
        if held.holds is False:
            assert held.witness is not None and p.fullmatch(held.witness) and not q.fullmatch(held.witness)


def test_what_refuses_a_witness_is_named() -> None:
    old = {"type": "object", "properties": {"n": {"type": "integer", "maximum": 3}}, "required": ["n"]}
    new = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    found = sg.contains(old, new)
    assert (found.holds, found.witness) == (False, '{"n":4}')
    assert (found.pointer, found.keyword) == ("/properties/n/maximum", "maximum")
    assert sg.contains(new, old) and sg.compare(old, new).relation == "narrower"


def test_two_versions_under_one_id() -> None:
    def version(**more: Any) -> dict[str, Any]:
        part = {"$id": "part.json", "type": "string", **more}
        return {"$id": "http://x.test/s", "$defs": {"v": part}, "properties": {"k": {"$ref": "part.json"}}}

    assert sg.contains(version(), version(minLength=2))
    found = sg.contains(version(minLength=2), version())
    assert found.witness == '{"k":""}'
    assert sg.compare(version(), version(title="other")).equal


def test_drafts_stand_side_by_side() -> None:
    old = {"$schema": "http://json-schema.org/draft-04/schema#", "minimum": 3, "exclusiveMinimum": True}
    assert sg.compare({**old, "type": "integer"}, {"type": "integer", "minimum": 4}).equal


def test_a_side_without_a_value_is_contained_in_everything() -> None:
    for narrow in (False, NESTED, {"type": "integer", "minimum": 3, "maximum": 2}):
        found = sg.contains({"const": 1}, narrow)
        assert found.holds and "no value" in found.reason
    assert sg.compare(False, NESTED).relation == "equal"


def test_references_that_lead_nowhere_are_errors_of_their_side() -> None:
    with pytest.raises(sg.GrammarError, match="the narrow side: reference '#' leads back"):
        sg.contains(True, {"$ref": "#"})
    with pytest.raises(sg.GrammarError, match="the b side: reference '#' leads back"):
        sg.compare(True, {"$ref": "#"})
    for old, new, named in ((True, {"$ref": "#"}, "new"), ({"$ref": "#"}, True, "old")):
        with pytest.raises(sg.GrammarError, match=f"the {named} side: reference '#' leads back"):
            sg.diff(old, new)
    assert sg.diff(False, True)[0].reason == "the old side has no value, so everything contains it"
    with pytest.raises(sg.GrammarError, match="invalid JSON"):
        sg.contains("[a-z]+", True)


def test_grammars_are_compared_by_their_texts() -> None:
    compiler = bytes_compiler()
    brackets = compiler.gbnf(BRACKETS)
    assert sg.contains(re.compile("a*b*"), brackets)
    assert sg.contains(brackets, re.compile("(ab)*")).witness == "abab"
    assert sg.contains(compiler.gbnf('root ::= "x" | "y"+'), compiler.choice(["x", "yyy"]))
    assert sg.compare(brackets, re.compile("aabb|c")).relation == "overlapping"
    assert sg.compare(brackets, re.compile("c+")).relation == "disjoint"
    assert sg.contains({"type": "integer"}, re.compile("[1-9]"))
    assert sg.contains({"type": "integer"}, re.compile("0*")).witness == ""


def test_two_context_free_grammars_may_stay_undecided() -> None:
    compiler = bytes_compiler()
    found = sg.contains(compiler.gbnf(BRACKETS), compiler.gbnf('root ::= "" | "a" root "b"'))
    assert found.holds is None and "walked" in found.reason
    found = sg.contains(compiler.gbnf(BRACKETS), compiler.gbnf('root ::= "a" root "b" | "c"'))
    assert found.witness == "c"


def test_what_is_too_much_to_tell_is_none_and_no_error() -> None:
    brackets = bytes_compiler().gbnf(BRACKETS)
    one, other = (re.compile(f"(a|b)*{x}(a|b){{20}}") for x in "ab")
    for found in (sg.compare(one, other), sg.compare(one, brackets), sg.compare(brackets, other)):
        assert found.a_in_b.holds is not True and "units of work" in found.a_in_b.reason + found.b_in_a.reason
    assert sg.compare(False, brackets).relation == "narrower" and sg.compare(brackets, False).disjoint


def test_grammars_of_both_and_of_the_difference() -> None:
    compiler = bytes_compiler()
    whole, big = compiler.json_schema({"type": "integer"}), compiler.json_schema({"minimum": 3})
    assert (whole & big).matcher().shortest_completion() == b"3"
    assert (whole - big).matcher().shortest_completion() == b"0"
    assert (compiler.regex("a+") - compiler.regex("aa?")).matcher().shortest_completion() == b"aaa"
    assert (compiler.regex("a*b*") & compiler.gbnf(BRACKETS) & sg.min_bytes(1)).matcher().accept_bytes(b"ab")
    with pytest.raises(sg.UnsatisfiableSchema):
        whole - compiler.json_schema({"type": "number"})
    with pytest.raises(sg.GrammarError, match="no grammar in general"):
        compiler.gbnf(BRACKETS) & compiler.gbnf('root ::= "a"')


def by_masks(matcher: Any, left: int) -> int:
    """Returns the number of paths through the masks of single bytes, the end token included."""
    allowed = np.flatnonzero(mask_of(matcher, 257))
    total = int(256 in allowed)
    for token in allowed if left else ():
        if token != 256:
            behind = matcher.fork()
            assert behind.accept_token(int(token))
            total += by_masks(behind, left - 1)
    return total


@pytest.mark.parametrize("text", ["[ab]{1,3}c?", "(a|ab)(c|bcd)?", "a*", "", "(ab|ba)+", "[^a-z]{0,1}x"])
def test_counts_are_those_of_enumeration_and_of_masks(text: str) -> None:
    grammar = bytes_compiler().regex(text)
    for most in range(4):
        assert sg.count(grammar, max_bytes=most) == by_masks(grammar.matcher(), most)
    if "^" not in text:
        texts = ("".join(t) for n in range(6) for t in itertools.product("abcdx", repeat=n))
        assert sg.count(grammar, max_bytes=5) == sum(bool(re.fullmatch(text, t)) for t in texts)


def test_counts_of_schemas_and_grammars() -> None:
    assert sg.count({"type": "array", "items": {"enum": ["a", "b", "c"]}, "uniqueItems": True}) == 16
    assert sg.count({"type": "integer"}, max_bytes=3) == 10 + 9 * 10 + 9 * 100 + 9 + 90
    assert sg.count(bytes_compiler().gbnf(BRACKETS), max_bytes=40) == 21
    with pytest.raises(ValueError, match="infinitely many"):
        sg.count(re.compile("a*"))
    with pytest.raises(ValueError, match="at least 0"):
        sg.count(re.compile("a*"), max_bytes=-1)
    endless = (
        ({"type": "object"}, 60),
        (re.compile("a*"), 1 << 60),
        ({"type": "string", "maxLength": 1000}, None),
    )
    for grammar, most in endless:
        with pytest.raises(sg.BudgetExceeded, match="smaller max_bytes"):
            sg.count(grammar, max_bytes=most)


def test_ranks_are_all_texts_once() -> None:
    texts = RankedTexts(operand({"enum": [1, "ab", None, [True, {}]]}).grammar(), 20)
    assert {texts.at(i) for i in range(texts.total)} == {b"1", b'"ab"', b"null", b"[true,{}]"}


MALFORMED: list[tuple[Any, str, str]] = [
    ({"type": 3}, "", "type"),
    ({"properties": {"a": {"minLength": "x"}}}, "/properties/a", "minLength"),
    ({"items": {"required": "a"}}, "/items", "required"),
    ({"$schema": "http://json-schema.org/draft-04/schema#", "exclusiveMinimum": 3}, "", "exclusiveMinimum"),
]


@pytest.mark.parametrize(("document", "pointer", "keyword"), MALFORMED)
def test_a_keyword_that_would_be_dropped_is_an_error_at_its_pointer(
    document: Any, pointer: str, keyword: str
) -> None:
    good = {"type": "string"}
    for asked in (
        lambda: sg.contains(document, good),
        lambda: sg.contains(good, document),
        lambda: sg.compare(document, good),
        lambda: sg.contains(re.compile("a*"), document),
        lambda: sg.examples(document),
        lambda: sg.count(document, max_bytes=5),
    ):
        with pytest.raises(sg.GrammarError, match=keyword) as caught:
            asked()
        assert (caught.value.pointer, caught.value.keyword) == (pointer, keyword)
