"""`sg.edit` and `structgen edit`: what is not edited stays, and the whole fits."""

from __future__ import annotations

import json

import pytest

import structgen as sg
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
CLEAN = DOCUMENT.replace(', "n":2', "")  # a name twice is no instance


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


def test_on_the_command_line(tmp_path, capsys) -> None:
    (tmp_path / "s.json").write_text(json.dumps(SCHEMA))
    (tmp_path / "d.json").write_text(CLEAN)
    given = ["edit", str(tmp_path / "d.json"), "--schema", str(tmp_path / "s.json")]
    assert main([*given, "--at", "/customer/city", "--instruction", "Rome"]) == 0
    out = capsys.readouterr().out
    assert out.startswith('\n{"n": 1.0e1 , "customer": {"name":"Ann",   "city": "') and out.endswith("}\n")
    assert main([*given, "--at", "/x"]) == 2
    assert "the document has no 'x'" in capsys.readouterr().err
    assert main([*given, "--span", "x"]) == 2
    assert "--span is BEGIN:END in characters" in capsys.readouterr().err
