"""Patterns as languages: syntax, flavours, assertions, and two spellings (UTF-8 and JSON string).

The Python flavour is compared with `re` on random patterns and texts. A table has the features that only
ECMA-262 has.
"""

from __future__ import annotations

import json
import random
import re
import string
import warnings

import pytest

import structgen
from oracles.harness import compiler, verdict
from structgen import _core, errors

TOO_COMPLEX = errors.SchemaTooComplex

# A pattern, texts in which it is found, texts in which it is not.
ECMA = [
    ("", ["", "a"], []),
    ("a|b", ["xa", "b"], ["", "c"]),
    ("^foo$", ["foo"], ["foo\n", "xfoo", "fooo"]),
    ("a^b", [], ["ab", "a\nb", "b"]),
    ("(^a|b)$", ["a", "xb"], ["xa", "ba"]),
    (".", ["a", "\u0085"], ["", "\n", "\r", "\u2028", "\u2029"]),
    ("^[^]$", ["\n", "\U0001f600"], ["", "ab"]),
    ("[]", [], ["", "a", "]"]),
    (r"^\d$", ["7"], ["\u0667"]),
    (r"^\w$", ["_", "K"], ["é", "\u212a"]),
    (r"^\s$", [" ", "\ufeff", "\u00a0"], ["\u0085", "\u001c"]),
    (r"^\p{Lu}\P{Lu}$", ["Éé"], ["éÉ"]),
    (r"^\p{Script=Greek}+$", ["αβγ"], ["abc", "α "]),
    (r"^\p{sc=Cyrl}$", ["я"], ["r"]),
    (r"^\p{Letter}$", ["ß"], ["1"]),
    (r"^\p{Emoji_Presentation}$", ["\U0001f600"], ["a"]),
    (r"^\p{ASCII}\p{Any}$", ["a\U0010ffff"], ["éa"]),
    (r"^[\p{Zs}A-Z]*$", ["A B", "\u2003"], ["a"]),
    (r"^\u{1F600}\uD83D\uDE00$", ["\U0001f600\U0001f600"], ["\U0001f600"]),
    (r"^\uD83D$", [], ["", "\U0001f600"]),
    (r"^\x41\u0042\cJ\0$", ["AB\n\0"], ["AB"]),
    (r"^\-\_\@\/\.$", ["-_@/."], ["-_@/x"]),
    ("^{a}{,2}$", ["{a}{,2}"], ["a"]),
    ("^a{2}{$", ["aa{"], ["a{"]),
    (r"^[\w-.]+$", ["a-.b"], ["a b"]),
    (r"^[\b]$", ["\b"], ["b"]),
    ("^a{2,}?b{0,1}?$", ["aa", "aaab"], ["a", "aabb"]),
    ("^(?<year>a)(?:b)$", ["ab"], ["a"]),
    ("^(?i)straße$", ["STRAßE", "ſtraße"], ["strasse"]),
    ("^(?i:a)b$", ["Ab"], ["AB"]),
    ("^(?!foo)[a-z]+$", ["bar", "fo", "fop"], ["foo", "food"]),
    ("^(?!foo$)[a-z]+$", ["food"], ["foo"]),
    ("^(?=.*[0-9])(?=.*[a-z]).{2,4}$", ["a1", "12z"], ["ab", "12", "abcd1"]),
    ("^(?=.{1,3}$)a*$", ["a", "aaa"], ["", "aaaa"]),
    ("^((?!-)[a-z-]{1,3}\\.)+x$", ["a.b-.x"], ["-a.x", "a.-b.x"]),
]

# Assertions that need left context or stand under a repetition.
CONTEXT = [
    (r"\bfoo\b", ["foo", "a foo-b"], ["afoo", "foob", "foo_"]),
    (r"^\Bfoo|o\B", ["oo", "boos"], ["fo", "o"]),
    ("(?<=a|bc)d", ["ad", "xbcd"], ["d", "cd"]),
    ("(?<!a)b$", ["b", "cb"], ["ab"]),
    ("(?<=^|,)x(?=,|$)", ["x", "a,x,b"], ["ax", "xa"]),
    ("^((?!mode).)*$", ["a mod e", ""], ["my mode", "mode"]),
    ("^(?:(?!--)[a-z-])*$", ["a-b-"], ["a--b"]),
    (r"^(\/?((\.{2})|([a-z0-9\-]*))($|\/))*$", ["../a/b", "a//", ""], ["/./b"]),
    ("^((?!-)[a-z-]{1,5}(?<!-)\\.)+com$", ["a-b.c.com"], ["-a.com", "a-.com", "com"]),
    (r"^(\b\w+\b\s*)+$", ["one two"], ["", "one,two"]),
    ("^(a|^b)*$", ["baa", "aa", ""], ["ab"]),
    ("(?:^|x){2,}a$", ["a", "xa", "xxa"], ["ba", "bxa"]),
    (r"\Aab\z", ["ab"], ["Aab", "abz", "ab\n"]),
    (r"\Aa|b\Z", ["ax", "xb"], ["xa", "bx"]),
]

# pattern, part of the message, offset
ERRORS = [
    ("a(", "the group is not closed", 1),
    ("a)", "unmatched ')'", 1),
    ("[a", "the class is not closed", 0),
    ("a**", "two quantifiers", 2),
    ("*a", "nothing to repeat", 0),
    ("a{2,1}", "out of order", 1),
    ("[z-a]", "out of order", 1),
    ("\\", "backslash", 0),
    (r"(a)\1", "back-references", 3),
    (r"(?<n>a)\k<n>", "back-references", 7),
    ("(?>a)", "atomic", 0),
    ("a++", "possessive", 2),
    (r"[a\Z]", "an anchor and no character", 2),
    (r"[\A]", "an anchor and no character", 1),
    (r"\p{Latin}", r"write \p{Script=Latin}", 0),
    (r"\a", "unknown escape", 0),
    (r"\p{Foo}", "unknown Unicode property", 0),
    (r"\u{110000}", "above U+10FFFF", 0),
    (r"\xg1", "hex digits", 0),
    ("(?(1)a|b)", "conditional", 0),
]


def spelled(text: str, rnd: random.Random) -> bytes:
    """Returns one JSON spelling of `text`, with the closing quote."""
    short = {
        '"': '\\"',
        "\\": "\\\\",
        "/": "\\/",
        "\b": "\\b",
        "\f": "\\f",
        "\n": "\\n",
        "\r": "\\r",
        "\t": "\\t",
    }
    out = ""
    for c in text:
        units = json.dumps(c)[1:-1] if ord(c) > 0xFFFF else f"\\u{ord(c):04x}"
        choices = [
            units,
            "".join(rnd.choice((x, x.upper())) if x != "u" else x for x in units),
        ]
        if c in short:
            choices.append(short[c])
        if c not in '"\\' and ord(c) >= 0x20:
            choices += [c, c]
        out += rnd.choice(choices)
    return (out + '"').encode()


def check(pattern: str, text: str, want: bool, rnd: random.Random, python: bool = False) -> None:
    plain = _core.Language.pattern(pattern, python=python)
    in_json = _core.Language.pattern(pattern, python=python, json=True)
    assert plain.matches(text.encode()) == want, (pattern, text)
    for _ in range(3):
        body = spelled(text, rnd)
        assert in_json.matches(body) == want, (pattern, text, body)


@pytest.mark.parametrize(("pattern", "found", "not_found"), [*ECMA, *CONTEXT])
def test_ecma(pattern, found, not_found):
    rnd = random.Random(0)
    for text in found:
        check(pattern, text, True, rnd)
    for text in not_found:
        check(pattern, text, False, rnd)


POSIX = {  # the names of ASCII classes in Java and Perl
    "Alnum": string.ascii_letters + string.digits,
    "Blank": " \t",
    "Cntrl": "".join(map(chr, range(32))) + "\x7f",
    "Digit": string.digits,
    "Graph": string.ascii_letters + string.digits + string.punctuation,
    "Print": string.ascii_letters + string.digits + string.punctuation + " ",
    "Punct": string.punctuation,
    "Space": string.whitespace,
    "Word": string.ascii_letters + string.digits + "_",
    "XDigit": string.hexdigits,
}


@pytest.mark.parametrize("name", POSIX)
def test_an_error_of_a_posix_class_has_the_form_of_ecma(name: str) -> None:
    with pytest.raises(errors.GrammarError) as caught:
        _core.Language.pattern(rf"\p{{{name}}}")
    form = re.search(r"write (.*) or a Unicode", str(caught.value))[1]
    allowed = _core.Language.pattern(f"^{form}$")
    assert {chr(i) for i in range(128) if allowed.matches(bytes([i]))} == set(POSIX[name])


@pytest.mark.parametrize(("pattern", "message", "offset"), ERRORS)
def test_errors_name_the_fact_and_the_place(pattern, message, offset):
    with pytest.raises(errors.GrammarError) as caught:
        _core.Language.pattern(pattern)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    "pattern",
    [
        "(" * 100_000,
        "(" * 100_000 + ")" * 100_000,
        "a{99999999999}",
        "(?:" * 5_000 + "a" + ")*" * 5_000,
    ],
)
def test_hostile_patterns_end_in_an_error(pattern):
    with pytest.raises((errors.GrammarError, TOO_COMPLEX)):
        _core.Language.pattern(pattern, json=True)


@pytest.mark.parametrize(
    "pattern",
    ["^.{0,100000}$", "a|" * 10_000, "[" + "a-z" * 10_000 + "]", "((((a*)*)*)*)*b"],
)
def test_large_patterns_are_small_languages(pattern):
    language = _core.Language.pattern(pattern, json=True)
    assert len(language) < 1_000


@pytest.mark.parametrize(
    "body",
    [b'\\ud800"', b'\\udc00"', b'\\ud800\\ud800"', b'\n"', b'\\x41"', b"a", b'\xff"'],
)
def test_what_is_no_json_string_matches_nothing(body):
    assert not _core.Language.pattern("", json=True).matches(body)


# ---- random patterns against re ----

ATOMS = [
    *("a", "b", "-", "é", r"\n", '"', r"\\", "/", "\U0001f600", " ", "7", ".", r"\w", r"\d", r"\S", "[ab]"),
    *("[^a]", "[a-z0-9_-]", r"[^\"\\]", "(?:)", "^", "$", r"\A", r"\Z"),
]
QUANTIFIERS = ["", "", "", "*", "+", "?", "{2}", "{1,3}", "{0,2}", "{2,}", "*?"]
LETTERS = 'ab-é\n"\\/\U0001f600 7_\r'


def random_pattern(rnd: random.Random, depth: int) -> str:
    branches = []
    for _ in range(rnd.choice((1, 1, 2))):
        branch = ""
        for _ in range(rnd.randint(0, 4)):
            kind = rnd.random()
            if depth and kind < 0.2:
                branch += f"({random_pattern(rnd, depth - 1)})" + rnd.choice(QUANTIFIERS)
            elif depth and kind < 0.28:
                branch += f"(?{rnd.choice('=!')}{random_pattern(rnd, depth - 1)})"
            else:
                atom = rnd.choice(ATOMS)
                anchor = atom in ("^", "$", r"\A", r"\Z")
                branch += atom + ("" if anchor else rnd.choice(QUANTIFIERS))
        branches.append(branch)
    return "|".join(branches)


@pytest.mark.parametrize("seed", range(150))
def test_random_patterns_match_as_re_does(seed):
    rnd = random.Random(seed)
    pattern = random_pattern(rnd, 3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        compiled = re.compile(pattern)
    for _ in range(12):
        text = "".join(rnd.choice(LETTERS[: rnd.choice((2, 4, 13))]) for _ in range(rnd.randint(0, 6)))
        try:
            check(pattern, text, compiled.search(text) is not None, rnd, python=True)
        except TOO_COMPLEX:
            return  # the assertion needs more states than its limit


def test_look_aheads_in_a_loop_do_not_nest_for_ever() -> None:
    """The engine once built x | (x & y) one level deeper with each character, until the regex was too
    deep."""
    vocabulary = structgen.Vocabulary.from_bytes([bytes([i]) for i in range(256)] + [b""], 256)
    compiler = structgen.Compiler(vocabulary)
    for pattern in ("(?:.|(?=[ab]*é)b)+", "(?:(?:a|(?=b+é)b)|(?!.*a)b|é)*"):
        for text in ("b", "bbé", "abab", "bébé"):
            matcher = compiler.regex(pattern).matcher()
            accepted = matcher.accept_bytes(text.encode()) and matcher.is_accepting()
            assert accepted == (re.fullmatch(pattern, text) is not None), (pattern, text)


@pytest.mark.parametrize("item", [r"\w", r"\W", r"\d", r"\D", r"\s", r"\S"])
@pytest.mark.parametrize("form", ["{}", "[{}]", "[^{}]", "[{}_]", "[{}é]"])
def test_case_changes_no_class(item: str, form: str) -> None:
    """With (?i) the negated ASCII class once matched `k` and `s`, because two characters beyond ASCII fold to
    them."""
    for flags, mode in (("(?i)", re.ASCII), ("(?iu)", re.UNICODE)):
        pattern = form.format(item)
        grammar = compiler().regex(flags + pattern)
        for text in "ksKS_1 é\u017f\u212a":
            expected = re.fullmatch(pattern, text, re.I | mode) is not None
            if text in "é\u017f\u212a" and mode == re.ASCII and "é" in form:
                continue  # a letter beyond ASCII folds here, but not with re.ASCII
            assert verdict(grammar, text) == expected, (flags, pattern, text)


@pytest.mark.parametrize("flags", ["(?i)", "(?iu)", "(?ia)"])
def test_which_letters_equal_which_is_as_in_python(flags: str) -> None:
    """Python's re equates some letters that Unicode's folding does not. With (?a) `re` equates only ASCII
    letters."""
    letters = "iIıİkK\u212asSſςΣσΐ\u1fd3ΰ\u1fe3ﬅﬆßẞéÉ"
    for form in ("{}", "[{}]", "[^{}]"):
        for one in letters:
            pattern = flags + form.format(one)
            grammar = compiler().regex(pattern)
            for other in letters:
                assert verdict(grammar, other) == (re.fullmatch(pattern, other) is not None), (pattern, other)
