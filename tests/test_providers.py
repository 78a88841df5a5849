"""Findings of `lint --for` on providers, compared with what the providers' own Python packages do to a
schema.

Oracles: the transformer of each provider's SDK runs on random schemas, and every change of a keyword is
compared with the SDK's rules in the table. vLLM's and xgrammar's own checks are not installed here.
`JsonOracle` judges every witness.
"""

from __future__ import annotations

import collections
import copy
import importlib.metadata
import itertools
import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

import structgen as sg
from oracles import closed
from oracles.differential.instances import small_values
from oracles.oracle import JsonOracle
from oracles.strategies import Features, Seeded, schema
from structgen.keywords import ASSERTING, rewritten
from structgen.providers import PROVIDERS, Document, Subschema, _broken, lint_for

PAIRS = {"type": "array", "items": {"type": "boolean"}, "uniqueItems": True}
SEEDS = 200


def random_schema(seed: int) -> Any:
    """Returns a random schema without booleans and empty schemas, because no SDK transforms these."""

    def typed(node: Any) -> Any:
        return (
            rewritten(node, lambda _, inner: typed(inner))
            if isinstance(node, dict) and node
            else {"type": "string"}
        )

    return typed(schema(Seeded(seed), Features(depth=2)))


def rules(provider: str, package: str) -> tuple[Any, ...]:
    sdk = PROVIDERS[provider].sdk
    assert sdk is not None and sdk.package == package
    pytest.importorskip({"google-genai": "google.genai"}.get(package, package))
    found = importlib.metadata.version(package)
    if found != sdk.version:
        pytest.skip(f"{package} {found} is installed; {sdk.version} was read")
    return sdk.rules


def effects(rules: tuple[Any, ...], place: Subschema) -> dict[str, str]:
    """Returns the first rule of each keyword."""
    return {name: rule.effect for name, rule in reversed(list(_broken(rules, place)))}


def visited(
    before: Any, after: Any, unions: dict[str, str]
) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """Pairs of subschemas at one place, before and after a transformation."""
    if not isinstance(before, dict) or not isinstance(after, dict):
        return
    yield before, after
    for keyword, held in before.items():
        name = unions.get(keyword, keyword)
        other = after.get(name) if name == keyword or name not in before else None
        if keyword in ("properties", "$defs") and isinstance(other, dict):
            for name in held:
                yield from visited(held[name], other.get(name), unions)
        elif keyword in unions and isinstance(other, list):
            for inner, out in zip(held, other, strict=True):
                yield from visited(inner, out, unions)
        elif keyword == "items":
            yield from visited(held, other, unions)


def test_anthropic_package_does_what_the_table_says() -> None:
    sdk = rules("anthropic", "anthropic")
    from anthropic.lib._parse._transform import transform_schema

    seen: collections.Counter[str] = collections.Counter()
    for seed in range(SEEDS):
        given = random_schema(seed)
        document = Document(given)
        try:
            out = transform_schema(copy.deepcopy(given))
        except (ValueError, AssertionError, TypeError):
            assert any(
                "refuses" in effects(sdk, Subschema(document, p, node)).values() for p, node in document.nodes
            )
            seen["refuses"] += 1
            continue
        for before, after in visited(given, out, {"anyOf": "anyOf", "oneOf": "anyOf", "allOf": "allOf"}):
            told = effects(sdk, Subschema(document, (), before))
            assert "refuses" not in told.values()
            for keyword in ASSERTING:
                if keyword in before or keyword == "additionalProperties":
                    same = (
                        keyword not in before
                        if keyword not in after
                        else before.get(keyword) == after[keyword]
                    )
                    inner = keyword in ("properties", "items", "anyOf", "allOf", "$defs") and keyword in after
                    effect = "kept" if same or inner else "rewrites" if keyword in after else "drops"
                    effect = (
                        "rewrites"
                        if keyword == "oneOf" and "anyOf" in after and "anyOf" not in before
                        else effect
                    )
                    assert told.get(keyword, "kept") == effect, (before, after, keyword)
                    seen[effect] += 1
    assert min(seen[effect] for effect in ("refuses", "drops", "rewrites", "kept")) > 20


def test_openai_package_does_what_the_table_says() -> None:
    sdk = rules("openai", "openai")
    from openai.lib._pydantic import _ensure_strict_json_schema

    seen: collections.Counter[str] = collections.Counter()
    for seed in range(SEEDS):
        given = random_schema(seed)
        document, out = Document(given), copy.deepcopy(given)
        if any("$ref" in node and len(node) > 1 for _, node in document.nodes):
            continue  # the SDK replaces a reference by its schema, and then the rules of that schema apply
        _ensure_strict_json_schema(out, path=(), root=out)
        for before, after in visited(given, out, {"anyOf": "anyOf", "allOf": "allOf"}):
            told = effects(sdk, Subschema(document, (), before))
            if told.get("allOf") == "rewrites":
                assert "allOf" not in after
                seen["allOf"] += 1
                continue
            for keyword in ASSERTING:
                if keyword in ("properties", "items", "anyOf", "allOf", "$defs"):
                    continue
                if before.get(keyword) != after.get(keyword):
                    assert told.get(keyword) == "rewrites", (before, after, keyword)
                    seen[keyword] += 1
                elif keyword != "required":
                    assert keyword not in told, (before, after, keyword)
    assert seen["additionalProperties"] > 20 and seen["required"] > 20 and seen["allOf"] > 3, seen


def test_google_package_refuses_what_the_table_says() -> None:
    sdk = rules("gemini", "google-genai")
    from google.genai._transformers import t_schema

    seen: collections.Counter[bool] = collections.Counter()
    for seed in range(4 * SEEDS):
        given = random_schema(seed)
        if "$ref" in json.dumps(given):
            continue
        document = Document(given)
        told = [
            (node, effects(sdk, Subschema(document, path, node)))
            for path, node in document.nodes
            if "$defs" not in path  # the SDK drops definitions without a reference
        ]
        try:
            t_schema(None, copy.deepcopy(given))
        except (ValueError, AttributeError, TypeError):
            assert any("refuses" in found.values() for _, found in told), given
            seen[True] += 1
        else:
            assert not any("refuses" in found.values() for _, found in told), (given, told)
            seen[False] += 1
    assert seen[True] > 100 and seen[False] > 20, seen


def test_mistral_package_does_what_the_table_says() -> None:
    sdk = rules("mistral", "mistralai")
    from mistralai.extra.utils._pydantic_helper import rec_strict_json_schema

    seen = 0
    for seed in range(SEEDS):
        given = random_schema(seed)
        document, out = Document(given), rec_strict_json_schema(copy.deepcopy(given))
        for before, after in visited(given, out, {"anyOf": "anyOf", "allOf": "allOf"}):
            told = effects(sdk, Subschema(document, (), before))
            changed = before.get("additionalProperties") != after.get("additionalProperties")
            if changed and not isinstance(before.get("additionalProperties"), dict):
                assert after["additionalProperties"] is False
            assert (told == {"additionalProperties": "rewrites"}) == (
                "additionalProperties" in after and after["additionalProperties"] is False
                and before.get("additionalProperties") is not False
            )  # fmt: skip
            seen += bool(told)
    assert seen > 20


REWRITES = (
    ("openai", {"oneOf": [{"const": 1}, {"type": "null"}]}, {"anyOf": [{"const": 1}, {"type": "null"}]}),
    ("openai", {"allOf": [{"type": "integer"}, {"minimum": 3}]}, {"type": "integer", "minimum": 3}),
    ("openai", {"type": "string", "minLength": 2}, {"type": "string", "pattern": r"^[\s\S]{2,}$"}),
    ("anthropic", {"type": "integer", "minimum": 1, "maximum": 4, "multipleOf": 2}, {"enum": [2, 4]}),
    ("gemini", {"type": "integer", "exclusiveMinimum": 4}, {"type": "integer", "minimum": 5}),
    ("gemini", {"const": "x"}, {"enum": ["x"]}),
)  # fmt: skip


@pytest.mark.parametrize(("provider", "given", "written"), REWRITES)
def test_a_rewrite_is_taken_and_equal(provider: str, given: Any, written: Any) -> None:
    whole = {"type": "object", "properties": {"k": given}, "required": ["k"], "additionalProperties": False}
    found = lint_for(whole, provider)
    assert found and all(f"write {json.dumps(written)}: it is proved equal" in one.message for one in found)
    other = {**whole, "properties": {"k": written}}
    assert sg.compare(whole, other).equal
    assert not [one for one in lint_for(other, provider) if one.level == "error"]
    first, second = JsonOracle(whole), JsonOracle(other)
    for value in itertools.islice(small_values({"anyOf": [whole, other]}), 300):
        assert first.accepts(json.dumps(value)) == second.accepts(json.dumps(value))


@pytest.mark.parametrize("seed", range(40))
@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_difference_is_one(provider: str, seed: int) -> None:
    """Each finding has a witness, a value on which the two schemas differ. The value "is valid, too" if only
    the provider's schema accepts it, and "is no longer valid" if only the original does. The schema that lint
    proposes accepts exactly the original's values."""
    given = schema(Seeded(seed), Features(depth=2))
    oracle, values = JsonOracle(given), [json.dumps(v) for v in itertools.islice(small_values(given), 150)]
    for finding in lint_for(given, provider):
        too = re.search(r"(?:without it|so read,) (.*) is valid, too$", finding.message, re.DOTALL)
        longer = re.search(r"(?:without it|so read,) (.*) is no longer valid$", finding.message, re.DOTALL)
        equal = re.search(r"write (\{.*\}): it is proved equal$", finding.message, re.DOTALL)
        if too is not None:
            assert not oracle.accepts(too[1]), finding
        if longer is not None:
            assert oracle.accepts(longer[1]), finding
        if equal is not None:
            written = {"": copy.deepcopy(given)}
            node: Any = written
            *steps, last = finding.pointer.split("/")
            for step in steps:
                node = node[
                    int(step) if isinstance(node, list) else step.replace("~1", "/").replace("~0", "~")
                ]
            node[int(last) if isinstance(node, list) else last] = json.loads(equal[1])
            other = JsonOracle(written[""])
            assert all(oracle.accepts(text) == other.accepts(text) for text in values), finding


def levels(provider: str, given: Any) -> set[tuple[str, str, str]]:
    return {(one.level, one.pointer, one.keyword) for one in lint_for(given, provider)}


def test_rules_depend_on_values_and_neighbours() -> None:
    date, uri = {"type": "string", "format": "date"}, {"type": "string", "format": "uri"}
    assert levels("openai", closed({"a": date, "b": uri})) == {("error", "/properties/b", "format")}
    assert levels("anthropic", closed({"a": date, "b": uri})) == set()
    assert levels("vllm-xgrammar", uri | {"maxLength": 9}) == {("error", "", "maxLength")}
    looks = {"type": "string", "pattern": "^(?!a)b$"}
    for provider in ("openai", "anthropic"):
        assert ("error", "/properties/a", "pattern") in levels(provider, closed({"a": looks}))
        assert levels(provider, closed({"a": {**looks, "pattern": r"^\(?!a$"}})) <= {
            ("warning", "/properties/a", "pattern")
        }
    both = closed({"a": {"oneOf": [{"type": "integer"}, {"type": "number"}]}})
    (finding,) = lint_for(both, "openai")
    # and without it `anyOf` would accept the value, too
    assert finding.message.endswith('without it {"a":0} is valid, too')
    assert levels("openai", {"type": "string"}) == {("error", "", "type")}
    assert levels("openai", {**closed({"a": date}), "required": []}) == {("error", "", "required")}
    few = {"type": "array", "items": date, "minItems": 1}
    assert levels("anthropic", closed({"a": few})) == set()
    assert levels("anthropic", closed({"a": {**few, "minItems": 2}})) == {
        ("error", "/properties/a", "minItems")
    }
    assert levels("llama.cpp", {"type": "number", "minimum": 3}) == {("warning", "", "minimum")}
    assert levels("llama.cpp", {"type": "integer", "minimum": 3}) == set()
    assert levels("llama.cpp", {"type": "object"}) == {("warning", "", "additionalProperties")}
    assert levels("vllm-xgrammar", {"multipleOf": 2, "type": "string"}) == set()


def test_recursion_is_told_where_a_value_passes_twice() -> None:
    tree = {"$ref": "#/$defs/tree"}
    node = closed({"left": tree, "right": tree})
    assert {one[1] for one in levels("anthropic", {**closed({"root": tree}), "$defs": {"tree": node}})} == {
        "/properties/root", "/$defs/tree/properties/left", "/$defs/tree/properties/right",
    }  # fmt: skip
    assert levels("anthropic", {**closed({"a": tree, "b": tree}), "$defs": {"tree": closed({})}}) == set()
    loop = {"type": "object", "properties": {"next": {"$ref": "#"}}}
    assert levels("gemini", loop) == set()
    assert levels("gemini", {**loop, "required": ["next"]}) == {("error", "/properties/next", "$ref")}


def test_limits_of_the_whole_schema() -> None:
    names = {f"k{i}": {"type": "string"} for i in range(5001)}
    (finding,) = lint_for(closed(names), "openai")
    assert "5001 properties, at most 5000" in finding.message and finding.level == "error"
    deep: dict[str, Any] = {"type": "string"}
    for _ in range(11):
        deep = closed({"a": deep})
    assert [one.message for one in lint_for(deep, "openai")][0].startswith("openai refuses it: 11 levels")
    assert lint_for(deep["properties"]["a"], "openai") == []
    texts = {"type": "string", "enum": [f"{i:0>61}" for i in range(251)]}
    assert "15311 characters" in lint_for(closed({"a": texts}), "openai")[0].message
    optional = {**closed({f"k{i}": {"type": "null"} for i in range(25)}), "required": []}
    assert "25 optional properties, at most 24" in lint_for(optional, "anthropic")[0].message


@pytest.mark.parametrize("provider", ["llguidance", "llama.cpp", "vllm-xgrammar", "gemini"])
def test_what_is_not_enforced_is_shown_or_proved_to_say_nothing(provider: str) -> None:
    (finding,) = lint_for(PAIRS, provider)
    assert finding.keyword == "uniqueItems" and "without it [true,true] is valid, too" in finding.message
    assert (
        PROVIDERS[provider].address.startswith("https://") and PROVIDERS[provider].address in finding.message
    )
    (finding,) = lint_for({**PAIRS, "maxItems": 1}, provider)
    assert "proved equal" in finding.message


def test_hostile_schemas_are_bounded() -> None:
    with pytest.raises(ValueError, match="provider is one of openai"):
        lint_for(PAIRS, "nobody")
    wide = {
        "type": "object",
        "properties": {f"k{i}": {"const": [i] * 9, "not": {"const": i}} for i in range(9000)},
    }
    assert len(json.dumps(wide)) > 500_000
    # after five seconds of containment checks the findings have no witness
    found = lint_for(wide, "anthropic")
    assert len(found) > 18_000 and "was not asked" in found[-2].message
    deep: dict[str, Any] = {}
    for _ in range(50_000):
        deep = {"items": deep}
    with pytest.raises(sg.GrammarError, match="nested too deeply"):
        lint_for(deep, "openai")
    ring = {f"n{i}": {"allOf": [{"$ref": f"#/$defs/n{(i + 1) % 3000}"}]} for i in range(3000)}
    assert len(lint_for({**closed({}), "$defs": ring}, "anthropic")) >= 3000
    for odd in (
        {"enum": 3},
        {"required": 3, "properties": 4},
        {"$ref": 5},
        {"type": 7},
        {"allOf": {}},
        {"const": {}},
    ):
        for name in PROVIDERS:
            lint_for(odd, name)
