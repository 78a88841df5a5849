"""`sg.edit` and `structgen edit`: the rest of the document stays unchanged, and the whole document
matches."""

from __future__ import annotations

import json
import re
import warnings

import numpy as np
import pytest

import structgen as sg
from oracles.speculative import RandomModel
from structgen.cli import main
from structgen.generation.editing import span_of

DOCUMENT = '\n{"n": 1.0e1 , "customer": {"name":"Ann",   "city": "Oslo", "~": [0, [1]]}, "n":2}\n'
SCHEMA = {
    "type": "object",
    "properties": {
        "customer": {
            "type": "object",
            "properties": {"city": {"enum": ["Oslo", "Paris", "Rome"]}, "name": {"type": "string"}},
            "required": ["city"],
        },
        "n": {"type": "integer", "maximum": 99},
    },
}
CLEAN = DOCUMENT.replace(', "n":2', "")  # a document with a repeated name is no instance


@pytest.mark.parametrize(
    ("pointer", "value"),
    [
        ("", DOCUMENT.strip()), ("/n", "2"), ("/customer/city", '"Oslo"'), ("/customer/~0/1/0", "1"),
        ("/customer/~0/1", "[1]"),
    ],
)  # fmt: skip
def test_a_pointer_is_a_span(pointer, value) -> None:
    begin, end = span_of(DOCUMENT, pointer)
    assert DOCUMENT[begin:end] == value


@pytest.mark.parametrize("pointer", ["/x", "/customer/city/0", "/customer/~0/2", "/customer/~0/-"])
def test_a_pointer_that_leads_nowhere_says_how_far(pointer) -> None:
    with pytest.raises(LookupError, match=r"^edit: (the document|#/.*) has no '"):
        span_of(DOCUMENT, pointer)


@pytest.mark.parametrize("pointer", ["/customer/city", "/customer/name", "/customer", "/n"])
def test_everything_else_stays_and_the_whole_fits(pointer) -> None:
    done = sg.edit("embedded", CLEAN, pointer, SCHEMA, instruction="The city is Rome", max_tokens=40)
    begin, end = done.span
    assert done.text == CLEAN[:begin] + done.written + CLEAN[end:]
    assert done.old == CLEAN[begin:end]
    value = json.loads(done.text)
    assert done.value == value and value["customer"]["city"] in ("Oslo", "Paris", "Rome")
    assert value["n"] <= 99 and value["n"] == int(value["n"])


def test_a_span_of_a_text_of_a_grammar_is_edited() -> None:
    done = sg.edit("embedded", "a=1;b=22;", (4, 8), regex=r"([a-c]=[0-9]{1,2};)*", max_tokens=12)
    assert done.text.startswith("a=1;") and done.text.endswith(";")
    assert sg.edit("embedded", "ab", (1, 2), regex="a[bc]", max_tokens=3).text in ("ab", "ac")


class Odd(RandomModel):
    """A model that prefers exponents, escapes, blanks and zeros."""

    def __init__(self, seed: int) -> None:
        super().__init__(
            seed, sg.Vocabulary.from_bytes([*(bytes([b]) for b in range(256)), b""], 256), sharp=0.5
        )

    def logprobs(self, contexts):
        liked = np.zeros(257, np.float32)
        liked[list(b"eE\\u \n0+")] = 3
        return super().logprobs(contexts) + liked


PAIR = {"type": "array", "items": {"type": "number"}, "minItems": 2, "maxItems": 3}
ANY = {
    "type": "object",
    "properties": {"n": {"type": "number", "maximum": 9e9}, "s": {"type": "string"}, "o": PAIR},
}
PLAIN = re.compile(r'-?(0|[1-9][0-9]*)(\.[0-9]+)?|"([^"\\\x00-\x1f]|\\["\\bfnrt]|\\u00[01][0-9a-f])*"')


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(
    "document",
    [
        '{"n":1.5,"s":"a","o":[1,2]}', '{"n": 1.5, "s": "a", "o": [1, 2]}',
        '{"s":"a","o":[1,2],"n":4.288888e6}',
        '{"n": 1.5,"s":"\\u0041", "o": [1, 2e1]}', json.dumps({"n": 1, "s": "", "o": [1, 2]}, indent=2),
    ],
)  # fmt: skip
def test_a_value_is_written_as_programs_write_it(document, seed) -> None:
    for pointer in ("/n", "/s"):
        done = sg.edit(Odd(seed), document, pointer, ANY, max_tokens=60, temperature=1.0, seed=seed)
        assert PLAIN.fullmatch(done.written), done.written
        begin, end = done.span
        assert done.text == document[:begin] + done.written + document[end:]
    done = sg.edit(Odd(seed), document, "/o", ANY, max_tokens=90, temperature=1.0, seed=seed)
    value = json.loads(done.written)
    assert len(value) in (2, 3)
    if "\\u" in document or "2e1" in document:
        return  # arrays of such a document may be written in every spelling
    if "\n" in document:  # the new value follows the document's layout
        assert re.fullmatch(r"\[(\n    [^\s,]+,)+\n    [^\s,]+\n  \]", done.written)
    elif ": " not in document:
        assert " " not in done.written
    elif ',"' not in document:
        assert re.fullmatch(r"\[[^ ]+(, [^ ]+)+\]", done.written)


def test_another_spelling_where_the_text_around_leaves_no_plain_one() -> None:
    # the edited range ends in front of e2
    done = sg.edit(Odd(0), '{"n":1.5e2,"s":"a"}', (5, 8), ANY, max_tokens=8)
    assert done.text.endswith('e2,"s":"a"}') and json.loads(done.text)["n"] <= 9e9
    # the edited range begins behind a backslash
    done = sg.edit(Odd(0), '{"n":1,"s":"\\u0041"}', (13, 14), ANY, max_tokens=8)
    assert json.loads(done.text)["s"] is not None
    wild = [sg.edit(Odd(seed), '{"n":1.5}', "/n", ANY, max_tokens=60, numbers="any") for seed in range(8)]
    assert any("e" in done.written.lower() for done in wild)  # the options still allow exponents


@pytest.mark.parametrize(
    ("document", "where", "error", "line"),
    [
        (
            '{"n":"a"}',
            "/n",
            ValueError,
            r"not valid to begin with: it breaks the constraint at byte 5, line 1",
        ),
        ('{"n":1', "/n", ValueError, r"not valid to begin with: it ends too early"),
        (CLEAN, "/m", LookupError, r"the document has no 'm'"),
        (CLEAN, "n", ValueError, r"a JSON pointer is empty or begins with /, not 'n'"),
        ('{"n":1}', (3, 99), ValueError, r"the span 3:99 is not within 7 characters"),
        (b"{}", "/n", TypeError, r"the document is text, not bytes"),
    ],
)
def test_bad_input_is_one_clear_line(document, where, error, line) -> None:
    with pytest.raises(error, match=line) as raised:
        sg.edit("embedded", document, where, SCHEMA)
    assert "\n" not in str(raised.value)


def test_a_constraint_is_needed() -> None:
    with pytest.raises(ValueError, match="edit needs a constraint"):
        sg.edit("embedded", "{}", "")
    with pytest.raises(TypeError, match="has no argument 'steps'"):
        sg.edit("embedded", "{}", "", {}, steps=3)


def test_a_doubtful_value_is_told(tmp_path, capsys) -> None:
    """The embedded model was not trained to edit. It once wrote `}],` for a name without a warning."""
    document = '{"name": "Maria Lopez", "city": "Lisbon"}'
    schema = {"properties": {"name": {"type": "string"}, "city": {"type": "string"}}}
    with pytest.warns(sg.DoubtfulAnswer, match="outside what the embedded model knows"):
        done = sg.edit(None, document, "/name", schema, instruction="She is Ana")
    assert len(done.warnings) == 1
    (tmp_path / "d.json").write_text(document)
    given = ["edit", str(tmp_path / "d.json"), "--schema", json.dumps(schema)]
    assert main([*given, "--at", "/name", "--instruction", "She is Ana"]) == 0
    assert "warning: the request is probably outside" in capsys.readouterr().err
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert sg.edit(Odd(1), "ab", (1, 2), regex="a[bc]", max_tokens=3).warnings == []


def test_on_the_command_line(tmp_path, capsys) -> None:
    (tmp_path / "s.json").write_text(json.dumps(SCHEMA))
    (tmp_path / "d.json").write_text(CLEAN)
    given = ["edit", str(tmp_path / "d.json"), "--schema", str(tmp_path / "s.json")]
    assert main([*given, "--at", "/customer/city", "--instruction", "Rome"]) == 0
    out = capsys.readouterr().out
    assert out.startswith('\n{"n": 1.0e1 , "customer": {"name":"Ann",   "city": "') and out.endswith("}\n")
    assert main([*given, "--at", "/n", "--numbers", "plain"]) == 2
    # under the command's options 1.0e1 is no number
    assert "breaks the constraint at byte" in capsys.readouterr().err
    assert main([*given, "--at", "/x"]) == 2
    assert "the document has no 'x'" in capsys.readouterr().err
    assert main([*given, "--span", "x"]) == 2
    assert "--span is BEGIN:END in characters" in capsys.readouterr().err


@pytest.mark.filterwarnings("ignore::structgen.DoubtfulAnswer")
def test_the_tokens_that_an_edit_takes_are_those_that_do() -> None:
    schema = {"items": {"enum": ["abc", "wonderfully long"]}, "contains": {"const": "wonderfully long"}}
    document = '["wonderfully long"]'
    with pytest.raises(sg.UnsatisfiableBudget, match="within max_tokens=1; it takes") as refused:
        sg.edit("embedded", document, "/0", schema, max_tokens=1)
    enough = int(str(refused.value).split()[-1])
    assert sg.edit("embedded", document, "/0", schema, max_tokens=enough).text == document
    with pytest.raises(sg.UnsatisfiableBudget):
        sg.edit("embedded", document, "/0", schema, max_tokens=enough - 1)
