"""Templates: one grammar for text and gaps, and the gaps' values, compared with Python's `re`."""

from __future__ import annotations

import datetime
import enum
import itertools
import json
import pickle
import random
import re
from dataclasses import dataclass
from typing import Any, Literal

import pytest

import structgen as sg
from oracles.harness import verdict
from oracles.speculative import TableModel
from structgen.templates import Template

COMPILER = sg.Compiler(sg.Vocabulary.from_bytes([bytes([i]) for i in range(256)] + [b""], eos_token_ids=256))


class Mood(enum.Enum):
    GOOD = "good"
    BAD = "bad"


@dataclass
class Point:
    x: int
    y: int


def accepts(made: Template, text: str) -> bool:
    return verdict(made.compile(COMPILER), text)


def values(made: Template, text: str) -> dict[str, Any]:
    return made.read(made.compile(COMPILER), text)


def test_every_kind_of_gap() -> None:
    pytest.importorskip("pydantic", reason="pydantic is not installed: it is in the extra types")
    cases: list[tuple[Any, str, Any]] = [
        (str, "some words, really", "some words, really"),
        (int, "-17", -17),
        (float, "2.50", 2.5),
        (bool, "false", False),
        (Mood, "bad", Mood.BAD),
        (Literal["a", "bc"], "bc", "bc"),
        (datetime.date, '"2027-03-05"', datetime.date(2027, 3, 5)),
        (Point, '{"x":1,"y":2}', Point(1, 2)),
        (list[int], "[1,2]", [1, 2]),
        (sg.gen(regex="[A-Z][a-z]+"), "Ada", "Ada"),
        (sg.gen(choice=["x", "x y"]), "x y", "x y"),
        (sg.gen(schema={"type": "array"}), '[null,{"a":1}]', [None, {"a": 1}]),
        (sg.gen(stop="END"), "two\nlines EN", "two\nlines EN"),
        (sg.gen(int), "5", 5),
        (sg.template("{a}-{b}", a=int, b=int), "1-2", {"a": 1, "b": 2}),
        (sg.each(int, separator=", "), "1, 2, 3", [1, 2, 3]),
        (sg.select("none", sg.template("see {p}", p=int)), "see 4", {"p": 4}),
        (sg.select("none", int), "none", "none"),
    ]
    for part, text, value in cases:
        made = sg.template("<{{}}> {gap} END.\n", gap=part)
        assert values(made, f"<{{}}> {text} END.\n") == {"gap": value}, part
    for part, text in (
        (int, "007"),
        (int, "1.5"),
        (bool, "True"),
        (Mood, "fine"),
        (str, ""),
        (str, "a\nb"),
        (float, "1."),
    ):
        assert not accepts(sg.template("<{gap}>", gap=part), f"<{text}>"), (part, text)


def test_a_line_ends_where_the_next_text_begins() -> None:
    made = sg.template("{a}, {b}. {c}", a=str, b=str, c=str)
    assert values(made, "x y, z, w. q. r, s") == {"a": "x y", "b": "z, w", "c": "q. r, s"}


def test_values_are_those_of_re() -> None:
    """A template of patterns equals a regular expression with named groups."""
    draws = random.Random(5)
    patterns = {"[a-c]+": "abc", "[0-9]{1,3}": "0123456789", "x|yy|z": "xyz", "[a-z ]*": "ab "}
    for _ in range(60):
        chosen = draws.choices(list(patterns), k=3)
        borders = [draws.choice(["-", ": ", "\n", "a"]) for _ in range(4)]
        text = "".join(f"{border}{{g{i}}}" for i, border in enumerate(borders[:3])) + borders[3]
        made = sg.template(text, **{f"g{i}": sg.gen(regex=p) for i, p in enumerate(chosen)})
        groups = [
            f"{re.escape(b)}(?P<g{i}>{p})" for i, (b, p) in enumerate(zip(borders[:3], chosen, strict=True))
        ]
        pattern = re.compile("".join(groups) + re.escape(borders[3]))
        for _ in range(20):
            gaps = ["".join(draws.choices(patterns[p], k=draws.randint(0, 4))) for p in chosen]
            sample = "".join(map("".join, zip(borders[:3], gaps, strict=True))) + borders[3]
            found = pattern.fullmatch(sample)
            assert accepts(made, sample) == (found is not None), (text, chosen, sample)
            if found is not None:
                got = values(made, sample)
                again = "".join(f"{b}{got[f'g{i}']}" for i, b in enumerate(borders[:3])) + borders[3]
                assert again == sample and all(re.fullmatch(p, got[f"g{i}"]) for i, p in enumerate(chosen))
                unique = sum(
                    all(re.fullmatch(p, c) for p, c in zip(chosen, cut, strict=True))
                    for cut in _cuts(sample, borders)
                )
                if unique == 1:
                    assert got == found.groupdict()


def _cuts(sample: str, borders: list[str]) -> Any:
    """Yields every way to cut a text at its borders."""
    size = len(sample)
    for a, b, c, d in itertools.combinations_with_replacement(range(size + 1), 4):
        starts = [a, b, c, d]
        if a != 0 or any(sample[s : s + len(t)] != t for s, t in zip(starts, borders, strict=True)):
            continue
        ends = [s + len(t) for s, t in zip(starts, borders, strict=True)]
        if ends[3] == size and all(e <= s for e, s in zip(ends, starts[1:], strict=False)):
            yield [sample[e:s] for e, s in zip(ends, starts[1:], strict=False)]


@pytest.mark.parametrize(("least", "most"), [(0, 2), (1, 3), (2, 2), (0, 1)])
def test_loops_by_enumeration(least: int, most: int) -> None:
    made = sg.template(
        "[{xs}]", xs=sg.each(sg.template("{n}{w}", n=int, w=Mood), least=least, most=most, separator=";")
    )
    for count in range(5):
        items = [{"n": i, "w": list(Mood)[i % 2]} for i in range(count)]
        text = "[" + ";".join(f"{x['n']}{x['w'].value}" for x in items) + "]"
        assert accepts(made, text) == (least <= count <= most)
        if least <= count <= most:
            assert values(made, text) == {"xs": items}


def test_templates_in_loops_in_choices() -> None:
    line = sg.template(
        "- {what}: {how}\n", what=sg.gen(regex="[a-z]+"), how=sg.select(int, sg.template("({why})", why=str))
    )
    made = sg.template("# {title}\n{lines}end", title=str, lines=sg.each(line, separator=""))
    text = "# A list\n- tea: 3\n- milk: (none left)\nend"
    assert values(made, text) == {
        "title": "A list",
        "lines": [{"what": "tea", "how": 3}, {"what": "milk", "how": {"why": "none left"}}],
    }


def test_a_gap_of_few_tokens() -> None:
    made = sg.template("a{b}c", b=sg.gen(regex="x*", max_tokens=3))
    matcher = made.compile(COMPILER).matcher()
    assert matcher.accept_tokens(list(b"axxx")) and not matcher.accept_token(ord("x"))


@pytest.mark.parametrize("speculate", [None, "auto"])
def test_a_model_fills_the_gaps(speculate: Any) -> None:
    made = sg.template("Name: {name}\nAge: {age}\n", name=sg.gen(regex="[A-Z][a-z]{1,8}"), age=int)
    result = sg.generate(None, "Ada is 36 years old", made, speculate=speculate)
    name, age = result.value["name"], result.value["age"]
    assert result.text == f"Name: {name}\nAge: {age}\n" and isinstance(age, int)
    assert sg.generate(None, "Ada is 36 years old", grammar=made).tokens == result.tokens
    events = list(sg.stream(None, "Ada is 36 years old", made))
    assert events[-1].value == result.value
    for seed in range(5):
        one = sg.generate(
            TableModel(seed), "go", sg.template("{a}={b};", a=Mood, b=int), seed=seed, temperature=1.0
        )
        assert one.text == f"{one.value['a'].value}={one.value['b']};"
    (sample,) = sg.sample(TableModel(), "go", sg.template("{a}!", a=Mood), method="cars", seed=1)
    assert sample.value["a"] in Mood


@pytest.mark.parametrize(
    ("made", "kind", "message"),
    [
        (lambda: sg.template(3), TypeError, "a template is a text"),  # type: ignore[arg-type]
        (lambda: sg.template("{a"), ValueError, "braces are wrong"),
        (lambda: sg.template("{}", a=int), ValueError, "a gap is a name in braces"),
        (lambda: sg.template("{a.b}", a=int), ValueError, "a gap is a name"),
        (lambda: sg.template("{a:>3}", a=int), ValueError, "takes no format"),
        (lambda: sg.template("{a} {a}", a=int), ValueError, "stands twice"),
        (lambda: sg.template("{name}", nmae=int), ValueError, "has no part: give name=.*did you mean 'nmae'"),
        (lambda: sg.template("{a}", a=int, b=int), ValueError, "no gap {b}"),
        (lambda: sg.template("{a}", a="x"), TypeError, "sg.gen.choice"),
        (lambda: sg.template("{a}", a={"type": "integer"}), TypeError, "sg.gen.schema"),
        (lambda: sg.gen(int, regex="a"), ValueError, "not type and regex"),
        (lambda: sg.gen(regex=3), TypeError, "regex= takes a pattern"),  # type: ignore[arg-type]
        (lambda: sg.gen(choice="yes"), TypeError, "list of texts"),
        (lambda: sg.gen(schema=3), TypeError, "JSON Schema"),
        (lambda: sg.gen(stop=""), ValueError, "not empty"),
        (lambda: sg.gen(int, stop="x"), ValueError, "leave type= out"),
        (lambda: sg.gen(max_tokens=0), ValueError, "at least 1"),
        (lambda: sg.each(int, least=3, most=2), ValueError, "leave nothing"),
        (lambda: sg.each(int, separator=3), TypeError, "separator is a text"),  # type: ignore[arg-type]
        (lambda: sg.template("{a}", a=int) & sg.without("1"), TypeError, "pass condition= beside it"),
        (lambda: sg.without("1") & sg.template("{a}", a=int), TypeError, "pass condition= beside it"),
        (lambda: sg.template("{a}", a=int) & 3, TypeError, "unsupported operand"),  # type: ignore[operator]
        (lambda: sg.select("one"), ValueError, "two parts or more"),
        (lambda: values(sg.template("{a}", a=sg.gen(regex="(")), ""), sg.GrammarError, "the gap a: .*not"),
    ],
)  # fmt: skip
def test_mistakes(made: Any, kind: type[Exception], message: str) -> None:
    pytest.importorskip("pydantic", reason="pydantic is not installed: it is in the extra types")
    with pytest.raises(kind, match=message) as caught:
        made()
    assert "\n" not in str(caught.value)


def test_what_a_model_that_reads_schemas_is_told() -> None:
    made = sg.template("{a} {b} {c}", a=int, b=Mood, c=sg.each(sg.template("{d}", d=str)))
    assert json.loads(json.dumps(made.document()))["properties"] == {
        "a": {"type": "integer"},
        "b": {"enum": ["good", "bad"]},
        "c": {"type": "array", "items": {"type": "object", "properties": {"d": {"type": "string"}}}},
    }
    assert made.names == ("a", "b", "c")


@pytest.mark.parametrize("kind", [int, float])
def test_a_number_has_no_minus_nought(kind: type) -> None:
    """Plain JSON excludes -0; so does a gap, with a text beside it and alone."""
    for around in ("{a}", "<{a}>"):
        made = sg.template(around, a=kind)
        for text in ("-0", "-0.0", "-0.00"):
            assert not accepts(made, around.replace("{a}", text))
        for text in ("0", "-1", "10") if kind is int else ("0", "-0.05", "0.0", "-1.0"):
            assert accepts(made, around.replace("{a}", text))


def test_a_template_and_its_grammar_are_pickled() -> None:
    pytest.importorskip("pydantic", reason="pydantic is not installed: it is in the extra types")
    made = sg.template(
        "{n} {b} {m} {p} {e} {s}", n=int, b=bool, m=Mood, p=Point, e=sg.each(sg.gen(regex="[0-9]"), most=3),
        s=sg.select("a", sg.template("b{c}", c=list[int])),
    )  # fmt: skip
    text = '-3 true good {"x":1,"y":2} 4\n5 b[1]'
    for copy in (pickle.loads(pickle.dumps(made)), made):
        assert values(copy, text) == values(made, text)
    grammar = made.compile(COMPILER)
    again = pickle.loads(pickle.dumps(grammar))
    matcher = again.matcher()
    assert matcher.accept_bytes(text) and matcher.is_accepting() and "template" in repr(again)
