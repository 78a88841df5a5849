"""GBNF and EBNF as text: the accepted syntax and the messages of errors."""

from __future__ import annotations

import time

import pytest

import structgen
from oracles import harness
from structgen import errors

VOCABULARY = structgen.Vocabulary.from_bytes(
    [bytes([i]) for i in range(256)] + [b"", b"", b""],
    eos_token_ids=256,
    special_token_ids={"<end>": 256, "<tool>": 257, "<other>": 258},
)
COMPILER = structgen.Compiler(VOCABULARY)

JSON = r"""
# llama.cpp's own example
root   ::= object
value  ::= object | array | string | number | ("true" | "false" | "null") ws

object ::=
  "{" ws (
            string ":" ws value
    ("," ws string ":" ws value)*
  )? "}" ws

array  ::=
  "[" ws (
            value
    ("," ws value)*
  )? "]" ws

string ::=
  "\"" (
    [^"\\\x7F\x00-\x1F] |
    "\\" (["\\bfnrt] | "u" [0-9a-fA-F]{4}) # escapes
  )* "\"" ws

number ::= ("-"? ([0-9] | [1-9] [0-9]{0,15})) ("." [0-9]+)? ([eE] [-+]? [0-9] [1-9]{0,15})? ws

# Optional space: by convention, applied in this grammar after literal chars when allowed
ws ::= | " " | "\n" [ \t]{0,20}
"""

CASES = [
    (
        JSON,
        ['{"a": [1, -2.5e3, {"b": "\\u00e9x"}]}', "{}", '{"":\n\t\t{}}'],
        ["[]", '{"a" 1}', '{"a":01}', "{"],
    ),
    (r'root ::= "\x41\u00e9\U0001F600\n\"\\" ', ['Aé😀\n"\\'], ["Aé😀"]),
    (r'root ::= "\ud83d\ude00"', ["😀"], []),
    (r"root ::= [^a-z\]\-]+", ["A1 é中", "😀"], ["a", "]", "-", ""]),
    (r"root ::= [\d\s]+ \w \D", ["1 2_x"], ["1_1"]),
    ('root ::= "a"{2} "b"{,2} "c"{1,}', ["aac", "aabbccc"], ["ac", "aabbbc", "aa"]),
    ("root ::= 'it''s'", ["its"], ["it's"]),
    ('root ::= a-b.c_d\na-b.c_d ::= "x" |\n  "y"\n| "z"', ["x", "y", "z"], [""]),
    ('root ::= "a" (= "b") "b"', ["ab"], ["a"]),
    ("root ::= .{2}", ["é😀"], ["a", "abc", "a\n\n"]),
    (
        'root ::= TagDispatch(("<a>", x), ("<b>", y))\nx ::= "1"\ny ::= "2"',
        ["", "q<a>1<b>2<", "<<a>1"],
        ["<a>2", "<b>"],
    ),
    (
        'root ::= TagDispatch(("<a>", x), stop_str="end", loop_after_dispatch=false)\nx ::= "1"',
        ["..<a>1", "..end"],
        [".", "end."],
    ),
    ('root ::= TagDispatch(("ab", x), ("b", y))\nx ::= "1"\ny ::= "2"', ["b2", "ab1"], ["ab2", "b1"]),
]


@pytest.mark.parametrize("text, inside, outside", CASES)
def test_cases(text, inside, outside) -> None:
    found = COMPILER.gbnf(text)
    assert [t for t in inside if not harness.verdict(found, t)] == []
    assert [t for t in outside if harness.verdict(found, t)] == []


def test_special_tokens_are_no_text() -> None:
    for text in ('root ::= "a" <tool> "b"', 'root ::= "a" <[257]> "b"', 'root ::= "a" Token(257) "b"'):
        matcher = COMPILER.gbnf(text).matcher()
        assert not matcher.accept_token(257)
        assert matcher.accept_bytes("a")
        mask = structgen.allocate_bitmask(1, VOCABULARY.vocab_size)
        matcher.fill_bitmask(mask)
        assert [t for t in range(259) if mask[0, t // 32] >> (t % 32) & 1] == [257]
        assert matcher.live_bytes() == matcher.forced_bytes() == b""
        assert not matcher.accept_bytes("<tool>") and not matcher.accept_bytes(b"\xff\x00\x00\x01\x01")
        assert not matcher.accept_token(258) and not matcher.accept_token(255)
        assert matcher.accept_token(257) and matcher.accept_bytes("b") and matcher.is_accepting()
    matcher = COMPILER.gbnf("root ::= !<tool>* <tool>").matcher()
    assert matcher.accept_bytes("text") and matcher.accept_token(258) and matcher.accept_bytes("<")
    assert matcher.accept_token(257) and matcher.is_accepting() and not matcher.accept_bytes("a")


def test_the_start_rule_can_be_named() -> None:
    assert harness.verdict(COMPILER.gbnf('one ::= "1"\ntwo ::= "2"', root="two"), "2")


ERRORS = [
    ('root ::= vlaue\nvalue ::= "a"', "rule 'vlaue' is not defined; did you mean 'value'?", 1, 10),
    ('root ::= "a"\nx ::= "b\n', "this literal is never closed", 2, 7),
    ('root ::= ("a"', "this parenthesis is never closed", 1, 10),
    ('root ::= "a" )', "expected the name of a rule, found ')'", 1, 14),
    ('rot ::= "a"', "there is no rule 'root' to start with; did you mean 'rot'?", 1, 1),
    ('root : "a"', "expected '::=' after the name of a rule", 1, 6),
    ('root ::= "a"{3,1}', "{3,1} asks for at least 3 and at most 1", 1, 13),
    ("root ::= [z-a]", "the range z-a is empty", 1, 11),
    (r'root ::= "\q"', r"\q is no escape; a backslash itself is \\", 1, 11),
    ('root ::= "a"\nroot ::= "b"', "rule 'root' is defined twice", 2, 1),
    ("root ::= *", "nothing stands before '*' that could be repeated", 1, 10),
    ("root ::= [a", "this class is never closed; a line break in it is \\n", 1, 10),
    (
        "root ::= /a/",
        "a regex belongs to the Lark dialect; write a character class, or use compiler.lark",
        1,
        10,
    ),
    ("root ::= <tol>", "'<tol>' is no special token of the vocabulary; did you mean '<tool>'?", 1, 10),
    ("root ::= <end>", "'<end>' ends the text; a grammar cannot contain it", 1, 10),
    ("root ::= <[999]>", "token 999 is outside the vocabulary of 259 ids", 1, 10),
    ("", "there is no rule 'root' to start with", 1, 1),
    ("root ::= root", "no text matches this grammar", None, None),
]


@pytest.mark.parametrize("text, message, line, column", ERRORS)
def test_errors(text, message, line, column) -> None:
    with pytest.raises(errors.GrammarError) as caught:
        COMPILER.gbnf(text)
    assert (caught.value.message, caught.value.line, caught.value.column) == (message, line, column)


XGRAMMAR = [
    ('root ::= Regex("a+\\\\d") "c"', ["aa1c"], ["a1", "1c"]),
    ('root ::= Substring("ab", "c", "de") "!"', ["!", "ab!", "abc!", "cde!"], ["b!", "abde!"]),
    ('root ::= "a"{2,-1}', ["aa", "aaaa"], ["", "a"]),
    ('-kv ::= "a"\n1 ::= -kv "b"\nroot ::= 1 -kv', ["aba"], ["ab"]),
    ('root ::= a "!"\na[max_chars=3, capture="x"] ::= "b"+', ["b!", "bbb!"], ["!", "bbbb!"]),
    ('root ::= a "!"\na[lazy] ::= "b"+', ["b!"], ["bb!"]),
    ('root ::= a "!"\na[temperature=0.5, max_tokens=9] ::= "b"+', ["bb!"], ["!"]),
]


@pytest.mark.parametrize("text, inside, outside", XGRAMMAR)
def test_what_xgrammar_writes(text, inside, outside) -> None:
    found = COMPILER.gbnf(text)
    assert [t for t in inside if not harness.verdict(found, t)] == []
    assert [t for t in outside if harness.verdict(found, t)] == []


@pytest.mark.parametrize(
    "text, message",
    [
        ('root ::= Regex("a(")', "in the pattern a("),
        ("root ::= Regex(a)", "Regex takes a pattern in quotes"),
        ("root ::= Substring(1)", "Substring takes texts in quotes"),
        ('root ::= "a"{-1}', "expected {m}"),
        ('root ::= a\na[x=1] ::= "a"', "'x' is no attribute of a rule"),
        ('root ::= a\na[lazy=1] ::= "a"', "'lazy' takes no value"),
        ('root ::= a\na[max_tokens=x] ::= "a"', "'max_tokens' is a whole number"),
        ('root ::= a\na[temperature=-1] ::= "a"', "'temperature' is a number"),
        ('root ::= a\na[capture="\\x"] ::= "a"', "cannot be read"),
        ("root ::= TokenTagDispatch((1, x), loop=true)\nx ::= \"a\"", "'loop' is no option of TokenTagDispatch"),  # noqa: E501
        ("root ::= TokenTagDispatch((99999, x))\nx ::= \"a\"", "outside the vocabulary"),
    ],
)  # fmt: skip
def test_what_xgrammar_writes_wrong(text, message) -> None:
    with pytest.raises(errors.GrammarError) as caught:
        COMPILER.gbnf(text)
    assert message in caught.value.message


@pytest.mark.parametrize("text", ["root ::= [\\u{41x", 'root ::= "\\u{41x', "root ::= [\\u{"])
def test_a_code_point_that_is_not_closed_is_told(text: str) -> None:
    """An escape of a code point without its closing brace is an error. The reader once continued at the
    beginning of the text, and the class of characters grew without end."""
    with pytest.raises(errors.GrammarError, match="not closed"):
        harness.compiler().gbnf(text)


def test_a_count_that_does_not_end_is_refused_at_once() -> None:
    """Four places for blanks in one pattern would take time that grows as the fourth power."""
    begun = time.process_time()
    with pytest.raises(structgen.GrammarError):
        COMPILER.gbnf('root ::= "a"{' + " " * 5_000)
    assert time.process_time() - begun < 2
