"""Conditions on whole texts: `grammar & condition`, against enumeration.

Membership of a text is the grammar's own, whose oracles are elsewhere, and the condition's by Python: `in`,
`len` and `re.fullmatch` on bytes. Masks are compared with trials, and every text that masks allow to be begun
is the beginning of one that is right.
"""

from __future__ import annotations

import itertools
import json
import pickle
import re

import pytest

import structgen as sg
from oracles import oracle

TOKENS = [bytes([b]) for b in range(256)] + [b"ab", b'a"', b'":', b"11", b""]
END = len(TOKENS) - 1
COMPILER = sg.Compiler(sg.Vocabulary.from_bytes(TOKENS, eos_token_ids=[END]))

CONDITIONS = [
    (sg.without("ab"), lambda t: b"ab" not in t),
    (sg.containing("ab", "bb"), lambda t: b"ab" in t or b"bb" in t),
    (sg.max_bytes(4), lambda t: len(t) <= 4),
    (sg.min_bytes(3) & sg.max_bytes(5), lambda t: 3 <= len(t) <= 5),
    (sg.Regex(".*a.b.*"), lambda t: re.fullmatch(rb".*a.b.*", t) is not None),
    (~sg.containing("a") | sg.containing("b"), lambda t: b"a" not in t or b"b" in t),
]
GRAMMARS = {
    "regex": (COMPILER.regex("[ab]{0,5}c?"), "abc"),
    "gbnf": (COMPILER.gbnf('root ::= "a" root "b" | "ab" | "b" root | "a"'), "ab"),
    "lark": (COMPILER.lark('start: (NAME | "ab" "c")*\nNAME: /[ab]+/\n%ignore "."'), "abc."),
    "schema": (
        COMPILER.json_schema(
            {
                "type": "object",
                "properties": {"a": {"enum": [1, "ab"]}, "b": {"enum": [1]}},
                "additionalProperties": False,
            },
            whitespace="compact",
        ),
        None,
    ),
}


def texts(name):
    if name == "schema":
        found = [b"{}", b'{"a":1}', b'{"a":"ab"}', b'{"b":1}', b'{"a":1,"b":1}', b'{"a":"ab","b":1}']
        return [*found, b'{"b":1,"a":1}', b"{", b'{"a":2}']
    letters = GRAMMARS[name][1]
    return [bytes(map(ord, t)) for n in range(6) for t in itertools.product(letters, repeat=n)]


def inside(grammar, text):
    matcher = grammar.matcher()
    return matcher.accept_bytes(text) and matcher.is_accepting()


@pytest.mark.parametrize("which", range(len(CONDITIONS)))
@pytest.mark.parametrize("name", GRAMMARS)
def test_conditions_against_enumeration(name, which):
    grammar, _ = GRAMMARS[name]
    condition, holds = CONDITIONS[which]
    every = texts(name)
    right = {t for t in every if inside(grammar, t) and holds(t)}
    try:
        found = grammar & condition
    except sg.UnsatisfiableCondition:
        assert not right
        return
    assert {t for t in every if inside(found, t)} == right
    for text in sorted(right)[:6]:
        for n in range(len(text) + 1):
            matcher = found.matcher()
            assert matcher.accept_bytes(text[:n]), (text, n)
            mask = oracle.mask_of(matcher, END + 1)
            assert (mask == oracle.naive_mask(matcher, END + 1)).all(), text[:n]
            for token in mask.nonzero()[0][:40]:
                fork = matcher.fork()
                assert fork.accept_token(int(token))
                if token != END:
                    whole = text[:n] + TOKENS[token] + fork.shortest_completion()
                    assert inside(grammar, whole) and holds(whole), whole


def test_what_cannot_be_met_is_named():
    with pytest.raises(sg.UnsatisfiableCondition, match=r"containing\('x'\)") as caught:
        COMPILER.regex("[ab]*") & (sg.max_bytes(3) & sg.containing("x"))
    assert caught.value.condition == "containing('x')"
    with pytest.raises(sg.UnsatisfiableCondition, match="each part alone can be met"):
        COMPILER.regex("[ab]*") & (sg.max_bytes(1) & sg.containing("ab"))


@pytest.mark.parametrize(
    ("made", "error"),
    [
        (lambda: sg.without(), TypeError),
        (lambda: sg.without(""), ValueError),
        (lambda: sg.containing(), ValueError),
        (lambda: sg.containing(1), TypeError),
        (lambda: sg.max_bytes(-1), ValueError),
        (lambda: sg.min_bytes(1.5), TypeError),
        (lambda: sg.Regex(b"a"), TypeError),
        (lambda: COMPILER.regex("a") & "a", TypeError),
        (lambda: COMPILER.regex("a") & sg.Regex("("), sg.GrammarError),
    ],
)
def test_bad_conditions(made, error):
    with pytest.raises(error):
        made()


def test_a_conditioned_grammar_is_one_like_any_other():
    schema = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
    grammar = COMPILER.json_schema({**schema, "additionalProperties": False}, whitespace="compact")
    found = grammar & sg.containing("ab") & sg.without("abc")
    text = found.matcher().shortest_completion()
    assert "ab" in json.loads(text)["name"]
    assert inside(pickle.loads(pickle.dumps(found)), text)
    middle = found.infill('{"name":"', '"}')
    assert inside(middle, b"ab") and not inside(middle, b"abc") and not inside(middle, b"a")


# ---- as an argument of calls ----


def test_a_condition_beside_a_constraint() -> None:
    schema = {
        "type": "object",
        "properties": {"name": {"enum": ["fool", "Ann", "Bob"]}},
        "required": ["name"],
    }
    result = sg.generate(None, "the name is fool", schema, condition=sg.without("fool", "Ann"))
    assert result.value == {"name": "Bob"}
    for result in sg.sample(None, "x", schema, n=6, seed=1, condition=sg.containing("Ann", "Bob")):
        assert json.loads(result.text)["name"] in ("Ann", "Bob")
    text = sg.generate(None, "hello", condition=sg.max_bytes(9) & sg.min_bytes(3), max_tokens=12).text
    assert 3 <= len(text.encode()) <= 9
    with pytest.raises(TypeError, match="condition= takes what sg.without"):
        sg.generate(None, "x", schema, condition="fool")
    with pytest.raises(sg.UnsatisfiableCondition):
        sg.generate(None, "x", schema, condition=sg.without("name"))


def test_grammars_with_other_conditions_are_others() -> None:
    plain = COMPILER.regex("[ab]{1,4}")
    one, two = plain & sg.without("ab"), plain & sg.without("ba")
    assert len({plain._identity(), one._identity(), two._identity()}) == 3
    assert one._identity() == (COMPILER.regex("[ab]{1,4}") & sg.without("ab"))._identity()
    assert "without" in repr(one) and "[ab]{1,4}" in repr(one)


@pytest.mark.parametrize(
    ("flags", "status"),
    [
        (["--without", "fool"], 1),
        (["--without", "b", "c"], 0),
        (["--containing", "oo"], 0),
        (["--containing", "bar"], 1),
        (["--max-bytes", "5"], 1),
        (["--min-bytes", "6"], 0),
    ],
)
def test_the_command_line_takes_conditions(flags: list[str], status: int, tmp_path, capsys) -> None:
    from structgen.cli.main import main

    (tmp_path / "schema.json").write_text('{"type": "string"}')
    (tmp_path / "value.json").write_text('"fool"')
    assert main(["check", str(tmp_path / "schema.json"), str(tmp_path / "value.json"), *flags]) == status


@pytest.mark.parametrize("rules", ["start: (start)? N", "start: opt N\nopt: start |", "start: [start] N"])
def test_left_recursion_behind_something_optional_is_refused(rules: str) -> None:
    """Texts that meet the condition were left out."""
    with pytest.raises(sg.GrammarError, match="begins with itself"):
        COMPILER.lark(rules + '\nN: /[0-9]+/\n%ignore " "\n') & sg.max_bytes(2)


@pytest.mark.parametrize("rules", ["start: start N | N", "start: N start?", "start: N+", "start: a N\na: N?"])
def test_other_recursion_is_not(rules: str) -> None:
    plain = COMPILER.lark(rules + '\nN: /[0-9]+/\n%ignore " "\n')
    for text in (b"1", b"11", b" 1", b"1 "):
        one, two = plain.matcher(), (plain & sg.max_bytes(2)).matcher()
        assert (one.accept_bytes(text) and one.is_accepting()) == (
            two.accept_bytes(text) and two.is_accepting()
        )
