"""`strings="plain"` allows the values that `"any"` allows. Each string has only the spelling that common JSON
writers give it.

The oracle is `json.dumps(..., ensure_ascii=False)`.
"""

from __future__ import annotations

import json
import re
from typing import Any

import numpy as np
import pytest

import structgen as sg
from oracles import harness, oracle, strategies
from oracles.strategies import Source

_STRING = re.compile(r'"(?:[^"\\]|\\.)*"')


def rewritten(text: str) -> str:
    """Returns the text, with every string as a JSON writer writes it."""
    return _STRING.sub(lambda m: json.dumps(json.loads(m[0]), ensure_ascii=False), text)


@pytest.fixture(scope="module")
def compiler() -> sg.Compiler:
    return harness.nasty_compiler()


ODD = ['"', "\\", "/", "\n", "\t", "\b", "\f", "\r", "\x00", "\x01", "\x1f", "\x7f", "a", "é", "\u2028", "😀"]


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "string"},
        {"type": "string", "minLength": 1, "maxLength": 1},
        {"enum": ODD},
        {"type": "string", "pattern": r"^[\s\S]$"},
        {"type": "string", "pattern": r"^[\x00-\x1f\x22\x5c/a-z\u00e9\u2028\u{1f600}\x7f]$"},
        {"not": {"const": "no"}, "type": "string"},
        {"type": "string", "not": {"pattern": "^no$"}, "maxLength": 3},
    ],
    ids=json.dumps,
)
def test_one_spelling_a_character(schema: dict[str, Any], compiler: sg.Compiler) -> None:
    plain, free = (compiler.json_schema(schema, strings=s) for s in ("plain", "any"))
    for text in ODD:
        short = json.dumps(text, ensure_ascii=False)
        spellings = {short, f'"\\u{ord(text):04x}"', f'"\\u{ord(text):04X}"', f'"\\{text}"', json.dumps(text)}
        for spelled in spellings:
            try:
                if json.loads(spelled) != text:
                    continue
            except ValueError:
                continue
            assert harness.verdict(free, spelled), spelled
            assert harness.verdict(plain, spelled) == (spelled == short), spelled


def test_names_are_plain_too(compiler: sg.Compiler) -> None:
    schema = {"properties": {'a"b': True, "tab\t": True, "\x02\x0a": True}, "additionalProperties": False}
    plain = compiler.json_schema(schema, strings="plain", whitespace="compact")
    assert harness.verdict(plain, r'{"a\"b":1,"tab\t":2,"\u0002\n":3}')
    for text in (r'{"a\u0022b":1}', r'{"tab\u0009":1}', r'{"\u0002\u000a":3}', r'{"\u0002\u000A":3}'):
        assert not harness.verdict(plain, text), text
    # plain strings exclude the longer escape of a line feed, so `u` is refused
    matcher = compiler.json_schema({"enum": ["\n", "a"]}, strings="plain").matcher()
    assert matcher.accept_bytes('"\\')
    assert set(matcher.live_bytes()) == set(b"n")


def plain_texts_are_the_rewritten_ones(source: Source) -> str | None:
    schema = strategies.schema(source)
    options = {"whitespace": "compact", "property_order": source.pick(("schema", "any"))}
    free = harness.compiled(schema, using=harness.nasty_compiler(), **options)
    plain = harness.compiled(schema, using=harness.nasty_compiler(), strings="plain", **options)
    if free is None or plain is None:
        return harness.SKIPPED
    assert (free is harness.Empty) == (plain is harness.Empty)
    if free is harness.Empty:
        return None
    words, texts = harness.NASTY, {}
    for grammar in (free, plain):
        matcher, text = grammar.matcher(), b""
        for _ in range(60):
            mask = oracle.mask_of(matcher, words.size)
            assert mask.any(), "a dead end"
            token = harness.long_token(source, words, np.flatnonzero(mask))
            assert matcher.accept_token(token)
            if token in words.eos:
                texts[grammar] = text.decode()
                break
            text += words.tokens[token]
    if free in texts:
        assert harness.verdict(plain, rewritten(texts[free])), texts[free]
    if plain in texts:
        assert rewritten(texts[plain]) == texts[plain]
        assert harness.verdict(free, texts[plain])
    return None if texts else harness.SKIPPED


def test_plain_texts_are_the_rewritten_ones() -> None:
    harness.seeded(plain_texts_are_the_rewritten_ones, 300)


def test_types_and_generate_write_plain_strings(compiler: sg.Compiler) -> None:
    grammar = compiler.json_schema(list[str])
    assert harness.verdict(grammar, '["é\\n"]')
    assert not harness.verdict(grammar, '["\\u00e9"]')
    assert harness.verdict(compiler.json_schema(list[str], strings="any"), '["\\u00e9"]')
    found = grammar.explain('["\\u00e9"]')
    assert found is not None
    assert found.kind == "string"
    with pytest.raises(ValueError, match="strings is 'any' or 'plain'"):
        compiler.json_schema({}, strings="raw")  # type: ignore[arg-type]


@pytest.mark.parametrize("strings", ["any", "plain"])
@pytest.mark.parametrize("name", ["a\n", "\t", '"', "\\", "\x01", "\x7f", "é\r", "/"])
def test_completions_are_spelled_as_masks_allow(name: str, strings: Any) -> None:
    single = sg.Vocabulary.from_bytes([*(bytes([b]) for b in range(256)), b""], 256)
    for schema in (
        {"type": "object", "required": [name]},
        {"type": "object", "properties": {name: True}, "required": [name], "additionalProperties": False},
        {"enum": [name]},
    ):
        matcher = sg.Compiler(single).json_schema(schema, strings=strings).matcher()
        text = matcher.shortest_completion()
        assert matcher.accept_bytes(text) and matcher.is_accepting(), text
        assert (
            len(text) + 1
            == sg.Compiler(single).json_schema(schema, strings=strings).matcher().tokens_needed()
        )
