"""`serialize` and `deserialize`: equal masks, and errors for bytes that are no grammar."""

from __future__ import annotations

import json
import random
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import structgen as sg
from oracles import harness, random_grammars
from oracles.strategies import Seeded

ROOT = Path(__file__).resolve().parents[1]
TOKENS = [*(bytes([b]) for b in range(256)), b"yes", b'{"', b'":', b"  ", b""]


def compiler_of(tokens: list[bytes] = TOKENS) -> sg.Compiler:
    return sg.Compiler(sg.Vocabulary.from_bytes(tokens, eos_token_ids=[tokens.index(b"")]))


COMPILER = compiler_of()
PERSON = {"type": "object", "properties": {"n": {"type": "integer", "minimum": 3}, "s": {"type": "string"}}}
TAG = {
    "type": "structural_tag",
    "format": {
        "type": "triggered_tags",
        "triggers": ["<f="],
        "tags": [
            {"begin": "<f=a>", "content": {"type": "json_schema", "json_schema": PERSON}, "end": "</f>"}
        ],
    },
}
ELEMENTS = {
    "type": "structural_tag",
    "format": {"type": "json_schema", "json_schema": PERSON, "style": "qwen_xml"},
}

LISTS = {"type": "object", "properties": {"n": {"type": "array", "items": {"type": "integer"}}}}


def nested(style: str) -> dict[str, Any]:
    return {"type": "structural_tag", "format": {"type": "json_schema", "json_schema": LISTS, "style": style}}


def fnv(data: bytes) -> bytes:
    value = 0xCBF29CE484222325
    for byte in data:
        value = ((value ^ byte) * 0x100000001B3) & (2**64 - 1)
    return struct.pack("<Q", value)


def same(made: sg.CompiledGrammar, again: sg.CompiledGrammar, seed: int, steps: int = 30) -> None:
    """Compares every mask and completion of some random texts."""
    chance = random.Random(seed)
    ours, theirs = made.matcher(), again.matcher()
    rows = [sg.allocate_bitmask(1, made.vocabulary.vocab_size) for _ in range(2)]
    for _ in range(steps):
        assert ours.is_accepting() == theirs.is_accepting()
        if ours.is_terminated():
            assert theirs.is_terminated()
            return
        for matcher, row in ((ours, rows[0]), (theirs, rows[1])):
            matcher.fill_bitmask(row)
        assert np.array_equal(rows[0], rows[1])
        assert ours.forced_bytes() == theirs.forced_bytes()
        allowed = np.flatnonzero(np.unpackbits(rows[0][0].view(np.uint8), bitorder="little"))
        token = int(chance.choice(allowed.tolist()))
        assert ours.accept_token(token) and theirs.accept_token(token)
    assert ours.captures() == theirs.captures()


MADE: list[Any] = [
    lambda c: c.gbnf('root ::= "a" [^b-dé]{2,5} root? | <[256]> !<[257]> "é"'),
    lambda c: c.gbnf('root ::= x\nx[capture="n", max_tokens=3] ::= [0-9]+ "."'),
    lambda c: c.gbnf('root ::= Substring("one ", "two ", "three") Regex("[a-z]+")'),
    lambda c: c.lark('start: %json {"type": "array", "items": {"const": 1}} B\nB: "b" /[0-9]/\n%ignore " "'),
    lambda c: c.lark('start: (NAME | "if")+\nNAME: /[a-z]+/ & ~/x.*/\n%ignore /[ \\n]/'),
    lambda c: c.lark('start: body "<end>"\nbody[suffix="<x>", capture]: /(.|\\n)*/'),
    lambda c: c.lark('start: (A "!" | B "?")+\nA: /a+/\nB.5: /aa/', lexer="contextual"),
    lambda c: c.structural_tag(TAG),
    lambda c: c.structural_tag(ELEMENTS),
    lambda c: c.structural_tag(nested("gemma")),
    lambda c: c.structural_tag(nested("minimax_m3_xml")),
    lambda c: sg.template("Name: {a}\nAge: {b}", a=sg.gen(regex="[A-Z][a-z]+"), b=int).compile(c),
    lambda c: c.automaton(initial=0, finals=[1], transitions={0: {"a": 1}, 1: {"b": 0}}),
]  # fmt: skip


@pytest.mark.parametrize("number", range(len(MADE)))
def test_the_same_masks(number: int) -> None:
    made = MADE[number](COMPILER)
    data = made.serialize()
    for seed in range(4):
        same(made, COMPILER.deserialize(data), seed)
    again = COMPILER.deserialize(data)
    assert again.serialize() == data and again.warnings == made.warnings


@pytest.mark.parametrize("path", sorted((ROOT / "grammars").glob("*.[gl]*")), ids=lambda p: p.name)
def test_the_library(path: Path) -> None:
    made = COMPILER.grammar(path.read_text())
    again = compiler_of().deserialize(made.serialize())
    cases = json.loads(path.with_name(f"{path.stem}.cases.json").read_text())
    for text in [*cases["accepted"], *cases["rejected"]]:
        assert harness.verdict(made, text) == harness.verdict(again, text), text
    same(made, again, 1, 12)


@pytest.mark.parametrize("dialect", random_grammars.DIALECTS)
def test_random_grammars(dialect: str) -> None:
    count = 0
    compilers = random_grammars.compilers()
    for seed in harness.seeds(40):
        grammar = random_grammars.draw(Seeded(seed), dialect)
        compiler = compilers[seed % len(compilers)]
        made = random_grammars.compiled(grammar, dialect, compiler)
        if made is not None:
            same(made, compiler.deserialize(made.serialize()), seed, 10)
            count += 1
    assert count > harness.cases(15)


def test_another_vocabulary() -> None:
    free = COMPILER.gbnf('root ::= "yes" [0-9]').serialize()
    other = compiler_of([*TOKENS[:256], b"no", b""])
    assert other.deserialize(free).matcher().accept_bytes(b"yes7")
    yes = COMPILER.gbnf('root ::= <[256]> "!"').serialize()  # a token with this text, whatever its id
    assert COMPILER.deserialize(yes).matcher().accept_token(256)
    with pytest.raises(sg.GrammarError, match="takes at least 3 tokens and may take 1"):
        other.deserialize(yes)


def test_another_vocabulary_has_other_special_tokens() -> None:
    def special(token: int) -> sg.Compiler:
        words = sg.Vocabulary.from_bytes(TOKENS, eos_token_ids=[len(TOKENS) - 1], special_token_ids=[token])
        return sg.Compiler(words)

    named = special(257).gbnf('root ::= "a" <[257]>').serialize()
    same(special(257).gbnf('root ::= "a" <[257]>'), special(257).deserialize(named), 0)
    with pytest.raises(sg.VocabularyError, match="names tokens by their ids, and this vocabulary has other"):
        special(256).deserialize(named)


@pytest.mark.parametrize(
    "made",
    [
        lambda c: c.json_schema({}), lambda c: c.regex("a"), lambda c: c.choice(["a"]),
        lambda c: c.gbnf('root ::= "ab"').infill("a", ""),
        lambda c: c.gbnf('root ::= "ab"') & sg.max_bytes(3),
    ],
)  # fmt: skip
def test_what_is_not_written(made: Any) -> None:
    with pytest.raises(ValueError, match="serialize is for grammars in GBNF or Lark"):
        made(COMPILER).serialize()


def test_bytes_that_are_no_grammar() -> None:
    data = COMPILER.gbnf('root ::= "a" root | "b"').serialize()
    with pytest.raises(TypeError, match="takes the bytes that serialize"):
        COMPILER.deserialize("x")  # type: ignore[arg-type]
    for wrong, words in (
        (b"", "begins otherwise"), (b"GGUF" * 9, "begins otherwise"), (data[:-9], "damaged"),
        (data[:-1] + b"\0", "damaged"),
        (data[:10] + b"\1" + data[11:], "written in form 1, and this release"),
    ):  # fmt: skip
        with pytest.raises(sg.GrammarError, match=words):
            COMPILER.deserialize(wrong)


@pytest.mark.parametrize("number", range(len(MADE)))
def test_hostile_bytes_end_in_errors(number: int) -> None:
    """The checksum of changed bytes is computed anew, so the test reaches the checks behind the checksum."""
    data = MADE[number](COMPILER).serialize()
    chance = random.Random(number)
    limited = sg.Compiler(COMPILER.vocabulary, limits=sg.Limits(compile=500_000, mask=200_000))
    good = bad = 0
    for _ in range(harness.cases(300)):
        body = bytearray(data[11:-8])
        for _ in range(chance.randint(1, 3)):
            at = chance.randrange(len(body))
            kind = chance.random()
            if kind < 0.6:
                body[at] = chance.choice([0, 1, 2, 127, 128, 255, chance.randrange(256)])
            elif kind < 0.8:
                del body[at : at + chance.randint(1, 4)]
            else:
                body[at:at] = bytes(chance.choices(range(256), k=chance.randint(1, 4)))
            if not body:
                break
        try:
            grammar = limited.deserialize(data[:11] + bytes(body) + fnv(bytes(body)))
            grammar.matcher().fill_bitmask(sg.allocate_bitmask(1, grammar.vocabulary.vocab_size))
            good += 1
        except (sg.StructgenError, ValueError):
            bad += 1
    assert bad > 50
