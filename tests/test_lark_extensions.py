"""Extensions of the lark dialect beyond Lark: lazy rules, parameters, named grammars, imports, options."""

# ruff: noqa: E501 (a case is easier to read on one line)

from __future__ import annotations

import itertools
import random
import time
from collections.abc import Callable

import pytest

import structgen
from oracles import harness
from structgen import errors
from structgen.frontend.lark import parametric

pytest.importorskip("lark")

VOCABULARY = structgen.Vocabulary.from_bytes(
    [bytes([i]) for i in range(256)] + [b"", b"", b"", b"ab", b"xy"],
    eos_token_ids=256,
    special_token_ids={"<eos>": 256, "<|tool|>": 257, "<|end|>": 258},
)
COMPILER = structgen.Compiler(VOCABULARY)
TEXT = r"T: /(.|\n)*/"
TOOLS = (
    r"""
start: ( foo | bar )* tail
tail: T
foo_head[lazy]: T "<function"
foo: foo_head "=foo>" %json {"type": "object"} "</function>"
bar_head[lazy]: T "<function"
bar: bar_head "=bar>" /[0-9]+/ "</function>"
"""
    + TEXT
)
PERMUTATION = r"""
start: perm::0x0
perm::_: ""                  %if is_ones([0:3])
      | "a" perm::set_bit(0) %if bit_clear(0)
      | "b" perm::set_bit(1) %if bit_clear(1)
      | "c" perm::set_bit(2) %if bit_clear(2)
"""
# grammar, texts of the language, other texts
CASES = [
    (TOOLS, ["", "hi", "a<function=foo>{}</function>b", "<function=bar>12</function><functio"],
     ["a<function=foo>x</function>", "<function", "<function=bar>x</function>"]),
    ('start: f* tail\ntail: T\nh[lazy, capture]: T "<f"\nf: h "=" /[a-z]+/ "</f>"\n' + TEXT,
     ["<f=abc</f>", "x<f=a</f>y"], ["<f=123</f>", "x<f"]),
    ('start: a | b\na[lazy]: /x+/\nb: /x+y/', ["x"], ["xx", "xy"]),
    ('start: a "1" | b "2"\na[lazy]: /x+/\nb[lazy]: /x+/', ["x1", "x2"], ["xx1"]),
    ('start: a "1" | b "2"\na[lazy]: /x+y/\nb[lazy]: /x+/', ["x2"], ["xy1", "xx2"]),
    ('start: a\na[lazy]: "ab" /b+|c/', ["abb", "abc"], ["c", "abbb"]),
    ('start: "if"i "x" | NAME "="\nNAME: /[a-zA-Z]+/', ["a=", "ifx=", "iffy="], ["if=", "IF=", "ifx"]),
    ('start: x "!"\nx[suffix="END"i]: /[a-z]*/', ["abcEND!", "end!", "abEnd!"], ["abc!", "endend!"]),
    ('start: x "!"\nx[suffix="END"i, capture]: /[a-z]*/', ["abcEND!", "end!", "abEnd!"], ["abc!", "endend!"]),
    ('start: x "!"\nx[stop=""]: /[a-z]+/', ["abc!"], ["abc", "!"]),
    ('start: x "!"\nx[stop=END]: /[a-z]+/\nEND: "z" | "q"', ["az!", "bbq!"], ["a!", "azz!"]),
    ('start: "" | "a"', ["", "a"], ["aa"]),
    ('start: A "b"\nA: "" | "a"', ["b", "ab"], ["a"]),
    (PERMUTATION, ["abc", "cab", "bca"], ["", "ab", "abca", "aab"]),
    ('start: aa::0\naa::_: "b" aa::incr(_) %if lt(_, 4) | bb::_\nbb::_: "a" bb::incr(_) %if lt(_, 4) | ""',
     ["", "bbaa", "bbbb", "a"], ["bbbaa", "ab"]),
    ('start: x-y | X-Y\nx-y: "a"\nX-Y: "b"\nx_y: "c"', ["a", "b"], ["c"]),
    ('start: x\nx[max_chars=2]: /a+/', ["a", "aa"], ["", "aaa"]),
    ('start: x "!"\nx[max_chars=2, suffix="z"]: /a+/', ["aaz!"], ["aaaz!"]),
    ('%llguidance {"no_forcing": true}\nstart: "a"', ["a"], [""]),
    ('%llguidance {"skip_repetition": "once"}\nstart: "a" "b"\n%ignore /[ ]{1,2}/', ["ab", "a  b"], ["a   b"]),
    ('%grammar_options {"allow_initial_skip": false}\nstart: "a"\n%ignore " "', ["a", "a "], [" a"]),
    ('start: twice{pair}\ntwice{f}: f{"a"} f{"b"}\npair{x}: x x', ["aabb"], ["ab", "aab"]),
]  # fmt: skip


@pytest.mark.parametrize("text, inside, outside", CASES)
def test_cases(text, inside, outside) -> None:
    found = COMPILER.lark(text)
    assert [t for t in inside if not harness.verdict(found, t)] == []
    assert [t for t in outside if harness.verdict(found, t)] == []


# grammar, a part of the message
REFUSED = [
    ('start: "a"{99999999999}', "the bound of a repetition is at most"),
    ('start: "a"{0,99999999999}', "the bound of a repetition is at most"),
    ('start: "a"{' + "9" * 5000 + "}", "the bound of a repetition is at most"),
    ('start: "a"~0..99999999999', "the bound of a repetition is at most"),
    ('start: A\nA.-99999999999999999999999: "a"', "the priority of terminal 'A' is beyond"),
    ('start: t{A}\nt{f}: f{"a"}\nA: "x"', "the template parameter 'f' is used as a template and stands for none"),
    ('start: t{u}\nt{f}: f\nu{x}: x', "'u' takes 1 argument and is given none"),
    ('%llguidance {"zzz": 1}\nstart: "a"', "'zzz' is no option of %llguidance"),
    ('%llguidance {"allow_invalid_utf8": true}\nstart: "a"', "'allow_invalid_utf8' is false here"),
    ('%grammar_options {"x": 1}\nstart: "a"', "'x' is no option of %grammar_options"),
    ('start: p\np::_: "a"', "rule 'p' takes a parameter and is given none"),
    ('start: p::1\np: "a"', "rule 'p' takes no parameter"),
    ('start: q::1\np: "a"', "rule 'q' is not defined"),
    ('start: p::0\np::_: "a" p::incr(_) | "b"', "more than 20000 values"),
    ('start: p::0\np::_: "a" p::set_bit(64)', "64 is more than 63"),
    ('start: p::0\np::_: "a" %if nope(1)', "'nope' is no condition"),
    ('start: p::0\np::_: "a" %if ' + "not(" * 5000, "conditions nest too deeply"),
    ('start: x\nx[max_chars=2]: y\ny: "a"', "rule 'x' has 'max_chars', so it is made of terminals alone"),
    ('start: x\nx[max_tokens=0]: /a+/', "may take 0"),
    ("start: x\nx[stop=END]: /a+/", "terminal 'END' is not defined"),
    ('start: a-b | zz-y\na-b: "x"', "rule 'zz-y' is not defined"),
    ('%import mod.x\nstart: x', "no such grammar; name its directory in `import_paths`"),
    ('%import .mod.x\nstart: x', "no such grammar; name its directory in `import_paths`"),
]  # fmt: skip


@pytest.mark.parametrize("text, message", REFUSED, ids=lambda t: t[:40])
def test_refused(text, message) -> None:
    with pytest.raises(errors.GrammarError) as caught:
        COMPILER.lark(text)
    assert message in caught.value.message


def test_named_grammars() -> None:
    grammars = {
        "n": {"type": "integer"},
        "q": 'start: "q" @n',
        "x": "start: @y",
        "y": "start: @x",
        "a-b": 'start: "-"',
    }
    found = COMPILER.lark('start: "[" @n @q @q @a-b "]"', grammars=grammars)
    assert harness.verdict(found, "[1q2q3-]") and not harness.verdict(found, "[xq2q3-]")
    for text, message in (("start: @x", "in a circle: x -> y -> x"), ("start: @nn", "did you mean 'n'")):
        with pytest.raises(errors.GrammarError, match=message):
            COMPILER.lark(text, grammars=grammars)


def test_imports(tmp_path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "mod.lark").write_text('x: "x" Y\nY: /y+/\n%import .sub.deep.z\nw: z\n')
    (tmp_path / "sub" / "deep.lark").write_text(
        'z: "z" u-v\nu-v: %json {"type": "null"}\n%import .near.NEAR\nn: NEAR'
    )
    (tmp_path / "sub" / "near.lark").write_text('NEAR: "near"')
    (tmp_path / "odd.lark").write_text('x: "x"\n%llguidance {"no_forcing": true}')
    (tmp_path / "wrong.lark").write_text('x: "x"\n\ny: "a" )')
    (tmp_path / "worse.lark").write_text("x[capture, max_tokens=-1]: /x/")
    for text, inside in (
        ("%import mod.x\nstart: x", "xyy"),
        ("%import .mod (x, w)\nstart: x w", "xyznull"),
        ("%import .sub.deep.n\nstart: n", "near"),
        ("%import common.INT\nstart: INT", "12"),
    ):
        assert harness.verdict(COMPILER.lark(text, import_paths=[tmp_path]), inside), text
    for text, message in (
        ("%import nope.x\nstart: x", "no such grammar"),
        ("%import odd.x\nstart: x", "odd.lark: options stand in the grammar that imports: no_forcing"),
        ("%import wrong.x\nstart: x", r"wrong.lark: unexpected '\)' \(line 3, column 8\)"),
        ("%import worse.x\nstart: x", r"worse.lark: 'max_tokens' is a whole number .*line 1, column 23"),
    ):
        with pytest.raises(errors.GrammarError, match=message):
            COMPILER.lark(text, import_paths=[tmp_path])


IMPORTED = r"""
x[capture, max_tokens=3]: Y+
Y: "y"
z[lazy]: /a+/
q[max_chars=2, temperature=0.3]: /b+/
h[stop="<e>"]: /.*/
k[capture="all", suffix=END]: /[a-z]+/
END: ";"
p::_: "a" p::incr(_) %if lt(_, 2) | "."
deep: z k
"""


@pytest.mark.parametrize(
    "text, inside, outside",
    [
        ("%import m.x\nstart: x", "yy", "yb"),
        ('%import m.z\nstart: z "b"', "ab", "aab"),
        ('%import m.z -> other\nstart: other "b"', "ab", "aab"),
        ("%import m.q\nstart: q", "bb", "bbb"),
        ("%import m.h\nstart: h", "bb<e>", "bbb"),
        ("%import m.k\nstart: k", "ab;", "ab;;"),
        ("%import m.deep\nstart: deep", "aab;", "a;"),
        ("%import m.p\nstart: p::0", "aa.", "aaa."),
        ("%import m.p -> q\nstart: q::1", "a.", "aa."),
        ("%import m (x, z)\nstart: x z", "yya", "yaa"),
    ],
)
def test_imported_rules_keep_what_is_said_about_them(text, inside, outside, tmp_path) -> None:
    (tmp_path / "m.lark").write_text(IMPORTED)
    found = COMPILER.lark(text, import_paths=[tmp_path])
    assert harness.verdict(found, inside) and not harness.verdict(found, outside)


def test_imported_rules_are_captured_and_limited(tmp_path) -> None:
    (tmp_path / "m.lark").write_text(IMPORTED)
    found = COMPILER.lark('%import m (deep, x)\nstart: deep x? "!"', import_paths=[tmp_path])
    matcher = found.matcher()
    assert matcher.accept_bytes(b"aab;yy!")
    texts = {name: [c.text for c in each] for name, each in matcher.captures().items()}
    assert texts == {"all": [b"ab"], "x": [b"yy"]}
    matcher = found.matcher()
    assert matcher.accept_tokens(list(b"aab;yyy")) and not matcher.accept_token(ord("y"))


def test_a_limit_of_no_tokens_and_any_token() -> None:
    matcher = COMPILER.lark('start: "c" x "b"\nx[max_tokens=0]: /a*/').matcher()
    assert (
        matcher.accept_token(ord("c"))
        and not matcher.accept_token(ord("a"))
        and matcher.accept_token(ord("b"))
    )
    for text, tokens, wanted in (
        ('start: <[*]> "x"', [259, ord("x")], True),
        ('start: <[*]> "x"', [257, ord("x")], True),
        ('start: <[*]> "x"', [ord("a"), ord("b"), ord("x")], False),
        ('start: <[^257]> "x"', [257, ord("x")], False),
        ('start: <[^257,97]> "x"', [97, ord("x")], False),
        ('start: <[^257,97]> "x"', [258, ord("x")], True),
    ):
        matcher = COMPILER.lark(text).matcher()
        assert (matcher.accept_tokens(tokens) and matcher.is_accepting()) == wanted, (text, tokens)


def test_temperatures_are_warned_about_and_special_tokens_have_names() -> None:
    found = COMPILER.lark('start: x <|tool|>\nx[temperature=0.5]: "a"')
    assert found.warnings == (
        "the temperature of rule 'x' is read and not kept: a grammar says which texts there are, not how they are drawn",
    )
    assert found.matcher().shortest_completion() == b"a<|tool|>"


def test_parameters_against_python() -> None:
    """Random values and conditions have the meaning that llguidance's documentation gives."""
    random_ = random.Random(5)

    def bits() -> tuple[str, Callable[[int], int], int]:
        low = random_.randrange(5)
        high = random_.randrange(low + 1, 7)
        return f"[{low}:{high}]", lambda p: p >> low & (1 << high - low) - 1, high - low

    for _ in range(300):
        p, k = random_.randrange(1 << 7), random_.randrange(7)
        written, of, width = bits()
        full = (1 << width) - 1
        low = int(written[1])
        step = 1 << low
        for text, wanted in (
            (f"set_bit({k})", p | 1 << k),
            (f"clear_bit({k})", p & ~(1 << k)),
            (f"bit_and(0x{k:x})", p & k),
            (f"bit_or({k})", p | k),
            (f"incr({written})", p if of(p) == full else p + step),
            (f"decr({written})", p if of(p) == 0 else p - step),
            ("_", p),
        ):
            value, end = parametric.value(text, 0)
            assert (value(p), end) == (wanted, len(text)), (text, p)
        for text, holds in (
            (f"is_ones({written})", of(p) == full),
            (f"is_zeros({written})", of(p) == 0),
            (f"ge({written}, {k})", of(p) >= k),
            (f"bit_count_lt({written}, {k})", of(p).bit_count() < k),
            (f"and(bit_set({k}), not(eq({written}, {k})))", bool(p >> k & 1) and of(p) != k),
            (f"or(bit_clear({k}), lt(_, {k}))", not p >> k & 1 or p < k),
        ):
            test, end = parametric.condition(text, 0)
            assert (test(p), end) == (holds, len(text)), (text, p)


def test_permutations_are_all_there() -> None:
    found = COMPILER.lark(PERMUTATION)
    for length in range(5):
        for letters in itertools.product("abc", repeat=length):
            text = "".join(letters)
            assert harness.verdict(found, text) == (sorted(text) == list("abc")), text


@pytest.mark.parametrize(
    "text", ["start: A\nA: /" + "\\\\" * 200, "start: a{" + " " * 20_000, 'start[x="' + "\\" * 999]
)
def test_a_text_that_does_not_end_is_refused_at_once(text: str) -> None:
    """A scanner that may read a backslash in two ways takes exponential time for such texts."""
    begun = time.process_time()
    with pytest.raises(structgen.GrammarError):
        COMPILER.lark(text)
    assert time.process_time() - begun < 2
