"""Schemas whose cells would grow exponentially: verdicts compared with `jsonschema`.

Each family is built small: random instances over the keys of the family, in any order. `test_hostile` has the
large ones.
"""

from __future__ import annotations

import json
import random

import jsonschema
import pytest

import structgen
from oracles.harness import compiler, verdict
from oracles.hostile import SMALL, Family


def random_value(rnd: random.Random, keys: list[str], depth: int = 0) -> object:
    kind = rnd.random()
    if depth > 2 or kind < 0.35:
        return rnd.choice((0, 1, 2, 5, -1, "v0", "v1", "w1", "v3-a", "value 1", True, None, ""))
    if kind < 0.45:
        return [random_value(rnd, keys, depth + 1) for _ in range(rnd.randint(0, 4))]
    return {
        k: random_value(rnd, keys, depth + 1) for k in rnd.sample(keys, rnd.randint(0, min(5, len(keys))))
    }


def keys_of(schema: object) -> set[str]:
    if isinstance(schema, list):
        return set().union(*map(keys_of, schema))
    if not isinstance(schema, dict):
        return {schema} if isinstance(schema, str) else set()
    out = set(schema.get("properties", ())) | set(schema.get("required", ()))
    for word, part in schema.items():
        if word in ("properties", "patternProperties", "$defs", "dependentRequired", "dependentSchemas"):
            out = out.union(*map(keys_of, part.values()))
        elif word in (
            *("allOf", "anyOf", "oneOf", "not", "items", "contains", "if", "then", "else", "prefixItems"),
        ):
            out |= keys_of(part)
        elif word == "propertyNames":
            out |= set(part.get("enum", ()))
    return out


@pytest.mark.parametrize("family", SMALL, ids=lambda f: f.__name__)
def test_verdicts(family: Family) -> None:
    schema = family(SMALL[family])
    validator = jsonschema.Draft202012Validator(schema)
    alphabet = [bytes([b]) for b in range(256)] + [b""]
    vocabulary = structgen.Vocabulary.from_bytes(alphabet, eos_token_ids=[256])
    grammar = structgen.Compiler(vocabulary).json_schema(schema, property_order="any")
    rnd = random.Random(family.__name__)
    keys = sorted(keys_of(schema)) or ["a"]
    keys += ["free", "a1", "1", "12", "7", "70", "99"]
    verdicts = set()
    likely = [k for k in keys if k in ("x", "kind", "y", "a")]
    for n in range(800):
        value = random_value(rnd, (likely or keys) if n % 2 else keys)
        valid = validator.is_valid(value)
        matcher = grammar.matcher()
        text = json.dumps(value)
        took = matcher.accept_bytes(text.encode()) and matcher.is_accepting()
        assert took == valid, text
        verdicts.add(valid)
    assert False in verdicts


# ---- exactly one of many substrings ----

WORDS = [
    "customer", "maker", "operator", "admin", "designer", "reviewer", "auditor", "guest", "owner", "editor",
    "viewer", "approver", "signer", "teller", "banker", "runner",
]  # fmt: skip


@pytest.mark.parametrize("count", [3, 8, 16])
def test_exactly_one_of_many_substrings(count: int) -> None:
    """Of eight substrings a text must contain exactly one. Once a substring is found, no other may occur in
    the rest. Eight substrings were once too many for the engine."""
    words, random_ = WORDS[:count], random.Random(count)
    grammar = compiler().json_schema({"type": "string", "oneOf": [{"pattern": w} for w in words]})
    for _ in range(60):
        parts = [random_.choice([*words, "x", "mak", "ad", "o", "er"]) for _ in range(random_.randrange(4))]
        text = "".join(parts)
        matcher = grammar.matcher()
        taken = matcher.accept_bytes(json.dumps(text).encode())
        right = sum(w in text for w in words) == 1
        assert (taken and matcher.is_accepting()) == right, text
        before = grammar.matcher()
        more = sum(w in text for w in words) <= 1  # some text goes on from here
        assert before.accept_bytes(json.dumps(text)[:-1].encode()) == more, text


def test_a_format_beside_a_pattern_that_may_match_anywhere():
    """Behind `t` no text is left, and one spelling of each character proves that. The proof over all
    spellings took more states than a search may visit, and the mask raised SchemaTooComplex."""
    schema = {"type": "string", "format": "date-time", "pattern": r"\d\d\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ"}
    grammar = compiler().json_schema(schema)
    for text, right in (
        ("2016-01-05T16:51:00Z", True),
        ("2016-01-05t16:51:00Z", False),
        ("2016-01-05T16:51:00.5Z", False),
        ("2016-01-05T16:51:00+00:00", False),
        (r"2016-01-05\u005416:51:00Z", True),
        (r"2016-01-05\u007416:51:00Z", False),
    ):
        assert verdict(grammar, f'"{text}"') is right, text
    assert grammar.matcher().shortest_completion() == b'"0000-01-01T00:00:00Z"'


def test_branches_that_one_key_tells_apart() -> None:
    """Every branch has the same key, and the key's value tells the branches apart. The engine once searched
    each pair of branches behind the key, which took 16 times the units of work."""
    branches = [
        {
            "type": "object",
            "properties": {f"f{j}": {"type": "string"} for j in range(1 + i % 5)}
            | {"tag": {"const": f"t{i}"}},
            "required": ["tag"],
        }
        for i in range(60)
    ]
    grammar = compiler().json_schema({"oneOf": branches}, whitespace="compact", property_order="any")
    before = structgen._core._work_done()
    matcher = grammar.matcher()
    assert matcher.accept_bytes(b'{"f0":"a"') and matcher.shortest_completion() == b',"tag":"t0"}'
    assert structgen._core._work_done() - before < 300_000
    judge = jsonschema.Draft202012Validator({"oneOf": branches})
    for instance in ({"f0": "a", "tag": "t7"}, {"f0": 1, "tag": "t7"}, {"f0": "a", "tag": "u"}, {"f0": "a"}):
        text = json.dumps(instance, separators=(",", ":"))
        assert verdict(grammar, text) == judge.is_valid(instance), instance
