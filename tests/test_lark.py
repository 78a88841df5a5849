"""Lark grammars compared with Lark itself; the extensions; the messages of errors.

`agrees` walks a grammar at random, mutates the text, and asks Lark. structgen must accept every text that
Lark's LALR parser accepts. One of Lark's two parsers must accept every text that structgen accepts. The
parsers differ in the terminals that the lexer may read at a place: structgen and Earley use the exact set,
and LALR's merged states may allow more.
"""

from __future__ import annotations

import functools
import sys
import unicodedata

import numpy as np
import pytest

import structgen
from oracles import harness, oracle
from oracles.strategies import Source
from structgen import errors

lark = pytest.importorskip("lark")

VOCABULARY = structgen.Vocabulary.from_bytes(
    [bytes([i]) for i in range(256)]
    + [b"if", b" x", b"= 1", b"12", b"==", b"++", b"(x", b"foo", b'"a', b".5", b" //", b"else ", b"", b""],
    eos_token_ids=268,
    special_token_ids={"<|end|>": 268, "<|tool|>": 269},
)
COMPILER = structgen.Compiler(VOCABULARY)
PLAIN = structgen.Compiler(VOCABULARY, cache=False)
SIZE, EOS = 270, [268]

STATEMENTS = r"""
start: statement+
statement: "if" expr ":" statement ["else" statement] | NAME "=" expr ";" | "return" expr? ";" -> done
?expr: expr ("+" | "-") term | expr "++" | term
?term: NAME | NUMBER | ESCAPED_STRING | "(" expr ")" | list
list: "[" [_separated{expr, ","}] "]"
_separated{x, s}: x (s x)*
NAME: /[a-z_][a-z0-9_]*/
%import common.NUMBER
%import common.ESCAPED_STRING
%import common.WS
%import common.CPP_COMMENT
%import common.C_COMMENT
%ignore WS
%ignore C_COMMENT
%ignore CPP_COMMENT
"""

GRAMMARS = {
    "statements": STATEMENTS,
    "calculator": r"""
        ?start: sum
              | NAME "=" sum    -> assign_var
        ?sum: product
            | sum "+" product   -> add
            | sum "-" product   -> sub
        ?product: atom
            | product "*" atom  -> mul
            | product "/" atom  -> div
        ?atom: NUMBER           -> number
             | "-" atom         -> neg
             | NAME             -> var
             | "(" sum ")"
        %import common.CNAME -> NAME
        %import common.NUMBER
        %import common.WS_INLINE
        %ignore WS_INLINE
        """,
    "json": r"""
        ?start: value
        ?value: object | array | string | SIGNED_NUMBER -> number | "true" -> true | "false" | "null"
        array  : "[" [value ("," value)*] "]"
        object : "{" [pair ("," pair)*] "}"
        pair   : string ":" value
        string : ESCAPED_STRING
        %import common.ESCAPED_STRING
        %import common.SIGNED_NUMBER
        %import common.WS
        %ignore WS
        """,
    "operators": r"""
        start: item ("," item)*
        item: A OP A | A "=" A | A "==" A | "a".."c" "<" "<" A
        A: "x"~1..3 | /[yz]+/
        OP: "<" | "<=" | "<<=" | ">>"
        """,
    "indented lines": r"""
        start: (line _NL)* line?
        line: WORD (_SP WORD)*
        WORD: /\w+/
        _NL: /(\r?\n)+/
        _SP: /[ \t]+/
        """,
    "priority": r"""
        start: (KEY | NAME | HEX)+
        KEY.2: "on" | "off"
        NAME: /[a-f]+/
        HEX.-1: /[0-9a-z]+/
        %ignore " "
        """,
    "flags": r"""
        start: SELECT cols "from"i TABLE
        cols: COL ("," COL)*
        SELECT: "select"i
        COL: /[a-z]\d?/i
        TABLE: /T./s
        %ignore /\s+/
        """,
    "dotted": r"""
        start: path | NUMBER ".." NUMBER | NUMBER
        path: NAME ("." NAME)+
        NAME: /[a-z]+/
        NUMBER: /\d+(\.\d+)?/
        """,
    "keywords after a dot": r"""
        start: "class" NAME member*
        member: "." NAME | "{" "class" "}"
        NAME: /[a-z]+/
        %ignore " "
        """,
}


@functools.cache
def parsers(name: str) -> list[lark.Lark]:
    found = []
    for options in ({"parser": "lalr"}, {"parser": "earley"}):
        try:
            found.append(lark.Lark(GRAMMARS[name], **options))
        except lark.exceptions.GrammarError:  # not LALR(1)
            found.append(None)
    return found


def accepts(parser: lark.Lark | None, text: str) -> bool:
    if parser is None:
        return False
    try:
        parser.parse(text)
    except lark.exceptions.LarkError:
        return False
    return True


def mutated(source: Source, text: str) -> str:
    if not text:
        return source.pick(["a", " ", "1"])
    at = source.integer(0, len(text) - 1)
    kind = source.integer(0, 4)
    if kind == 0:
        return text[:at] + text[at + 1 :]
    if kind == 1:
        return text[:at] + source.pick(list(' \nabxif19.=+<>,"/*')) + text[at:]
    if kind == 2:
        return text.replace(" ", "") if source.chance(50) else text.replace(" ", "  ")
    if kind == 3:
        end = source.integer(at, min(len(text), at + 6))
        return text[:at] + text[end:] + text[at:end]
    return text[:at]


def sentence(source: Source, grammar, limit: int = 30) -> str:
    matcher = grammar.matcher()
    text = b""
    for step in range(limit):
        mask = oracle.mask_of(matcher, SIZE, max(limit - step, matcher.tokens_needed()))
        allowed = np.flatnonzero(mask)
        plain = [t for t in allowed if t < 256 and (chr(t) in " \n" or 33 <= t < 127)]
        token = int(source.pick(plain if plain and source.chance(90) else allowed.tolist()))
        assert matcher.accept_token(token)
        if token in EOS:
            break
        text += VOCABULARY.tokens[token]
    else:
        text += matcher.shortest_completion()
    return text.decode("utf-8", "replace")


@pytest.mark.parametrize("name", GRAMMARS)
def test_agrees(name) -> None:
    grammar = COMPILER.lark(GRAMMARS[name])
    lalr, earley = parsers(name)
    counts = [0, 0]

    def check(source: Source) -> None:
        text = sentence(source, grammar)
        for _ in range(4):
            # the character is newer than Python's Unicode tables
            if any(unicodedata.category(c) == "Cn" for c in text):
                return
            here = harness.verdict(grammar, text)
            counts[here] += 1
            if accepts(lalr, text):
                assert here, text
            elif here:
                assert accepts(earley, text), text
            text = mutated(source, text)

    harness.seeded(check, 40)
    assert min(counts) > harness.cases(10), counts


@pytest.mark.parametrize("name", GRAMMARS)
def test_masks_are_exact(name) -> None:
    """Masks equal accept_token and the plain walk, no state is a dead end, and walks under a budget end."""
    grammar, plain = COMPILER.lark(GRAMMARS[name]), PLAIN.lark(GRAMMARS[name])

    def check(source: Source) -> None:
        one, two = grammar.matcher(), plain.matcher()
        left = one.tokens_needed() + source.integer(0, 30)
        while not one.is_terminated():
            mask = oracle.mask_of(one, SIZE)
            assert (mask == oracle.mask_of(two, SIZE)).all()
            if source.chance(30):
                assert (mask == oracle.naive_mask(one, SIZE)).all()
            within = oracle.mask_of(one, SIZE, left)
            assert within.any() and not (within & ~mask).any()
            token = int(source.pick(np.flatnonzero(within).tolist()))
            assert one.accept_token(token) and two.accept_token(token)
            left -= 1
        assert left >= 0

    harness.seeded(check, 15)


# ---- random grammars ----


def random_grammar(source: Source) -> str:
    terminals = ["A", "B", "C", '"a"', '"b"', '"ab"', "/b+/"]
    lines = []
    names = ["start", "x", "y"]
    for name in names:
        alternatives = []
        for _ in range(source.integer(1, 3)):
            parts = []
            for _ in range(source.integer(1, 3)):
                part = source.pick(terminals + names[1:] * 2)
                parts.append(part + source.pick(["", "", "", "?", "*", "+", "~1..2"]))
            alternatives.append(" ".join(parts))
        lines.append(f"{name}: " + " | ".join(alternatives))
    lines += ['A: "a"', "B: /[ab]+/", 'C: "c" | "cb"']
    if source.chance(50):
        lines.append("%ignore /c+/" if source.chance(20) else '%ignore " "')
    return "\n".join(lines)


def texts(source: Source, grammar) -> list[str]:
    found = ["".join(source.pick(list("abc ")) for _ in range(source.integer(0, 6))) for _ in range(8)]
    for _ in range(3):
        text = sentence(source, grammar, 8)
        found += [text, mutated(source, text)]
    return [t for t in found if len(t) < 40 and t.isascii()]


def loaded(text: str, **options) -> lark.Lark | None:
    try:
        return lark.Lark(text, **options)
    except lark.exceptions.LarkError:
        return None


def scannerless_is_complete_earley(source: Source) -> str | None:
    # Lark's Earley ignores only the longest text, although elsewhere it tries every length
    text = random_grammar(source).replace("/c+/", '" "')
    parser = loaded(text, parser="earley", lexer="dynamic_complete")
    if parser is None:
        return harness.SKIPPED
    try:
        grammar = COMPILER.lark(text, lexer="scannerless")
    except errors.GrammarError as error:
        assert "no text matches" in str(error)
        return
    for sample in texts(source, grammar):
        assert harness.verdict(grammar, sample) == accepts(parser, sample), (sample, text)


def lexers_are_nested(source: Source) -> str | None:
    """The contextual lexer accepts a subset of the dynamic lexer's texts, and the dynamic lexer a subset of
    the texts without a lexer. Masks stay exact."""
    text = random_grammar(source)
    if loaded(text, parser="earley") is None:
        return harness.SKIPPED
    found = []
    for lexer in ("contextual", "dynamic", "scannerless"):
        try:
            found.append(COMPILER.lark(text, lexer=lexer))
        except errors.GrammarError as error:
            assert "no text matches" in str(error)
            found.append(None)
    if found[0] is None:
        return
    assert found[1] is not None and found[2] is not None
    for sample in texts(source, found[0]):
        verdicts = [harness.verdict(g, sample) for g in found]
        assert verdicts == sorted(verdicts), (sample, text)
    matcher = found[0].matcher()
    for _ in range(8):
        mask = oracle.mask_of(matcher, SIZE)
        assert mask.any(), f"a dead end: {text}"
        assert (mask == oracle.naive_mask(matcher, SIZE)).all(), text
        if (
            not matcher.accept_token(int(source.pick(np.flatnonzero(mask).tolist())))
            or matcher.is_terminated()
        ):
            break


def lalr_is_accepted(source: Source) -> str | None:
    drawn = (random_grammar(source) for _ in range(10))
    text, parser = next(((t, p) for t in drawn if (p := loaded(t, parser="lalr"))), ("", None))
    if parser is None:
        return harness.SKIPPED
    try:
        grammar = COMPILER.lark(text)
    except errors.GrammarError as error:
        assert "no text matches" in str(error)
        for sample in ("a", "b", "ab", "cb", "aab", "a b", "c", "b b"):
            assert not accepts(parser, sample), (sample, text)
        return
    for sample in texts(source, grammar):
        if accepts(parser, sample):
            assert harness.verdict(grammar, sample), (sample, text)


@pytest.mark.parametrize(
    "law",
    [scannerless_is_complete_earley, lexers_are_nested, lalr_is_accepted],
    ids=lambda law: law.__name__,
)
def test_random_grammars(law) -> None:
    harness.seeded(law, 60)


# ---- extensions ----

EXTENSIONS = [
    (r"start: NAME" "\n" r"NAME: /[a-z]+/ & ~/if|for/", ["iff", "a"], ["if", "for", "", "A"]),
    ('start: X\nX: /[ab]+/ & /[bc]+/ | "z"', ["b", "bbb", "z"], ["a", "ab", "c", "zz"]),
    ("start: A & ~B\nA: /[ab]+/\nB: /a+/", ["b", "ab"], ["a", "aa", ""]),
    ('start: X\nX: "a" ~"b" & /.../', ["abb", "aab"], ["ab", "abbb"]),
    ('start: a{2,3}\na: "x" b{2}\nb: "y"', ["xyyxyy", "xyyxyyxyy"], ["xyy", "xyxy"]),
    ('start: "a" %json {"type": "integer", "minimum": 3} "b"\n%ignore " "', ["a3b", "a 14 b"], ["a2b", "ab"]),
    (
        'start: %regex {"substring_words": "one two  three"}',
        ["", "two", "two  three", "one two"],
        ["one  two", "wo"],
    ),
    ('start: "<" %regex {"substring_chars": "abcab"} ">"', ["<>", "<bca>", "<ab>"], ["<ac>", "<abcabc>"]),
    ('start: %regex {"substring_chunks": ["a.", "b.", "c."]}', ["a.b.", "c."], ["a.c.", "a"]),
    ('start: text "!"\ntext[lazy]: /.*;/', [";!", "a b;!"], ["a;b;!", "a!"]),
    ('start: text "!"\ntext[suffix="</t>"]: /(.|\\n)*/', ["</t>!", "a<b\n</t>!"], ["a</t>b</t>!", "a!"]),
    ('start: text "!"\ntext[stop="aa", capture]: /.*/', ["aa!", "baa!"], ["aaa!", "ba!", "aabaa!"]),
    ('start: t "!"\nt[stop=/[;,]/, stop_capture="e", capture]: /.*/', [";!", "ab,!"], [";;!", "a,;!", "a!"]),
    ('start: "[" %lark { start: "a"+\n%ignore "-"\n } "]"', ["[a-a]", "[-a]"], ["[]", "[-]", "-[a]"]),
]


@pytest.mark.parametrize("text, inside, outside", EXTENSIONS)
def test_extensions(text, inside, outside) -> None:
    found = COMPILER.lark(text)
    assert [t for t in inside if not harness.verdict(found, t)] == []
    assert [t for t in outside if harness.verdict(found, t)] == []


def test_templates_that_hand_their_parameters_on() -> None:
    """Each pair of a template and its arguments is one rule, however the grammar reaches the pair."""
    found = COMPILER.lark("""
        start: e{s}
        e{g}: t{g} ("+" g e{g})?
        t{g}: "1" g | "(" n e{n} ")" g
        s: B?
        n: N?
        B: " "
        N: /[ \\n]+/
        """)
    assert harness.verdict(found, "1 + (\n1 +\n1)") and not harness.verdict(found, "1\n+1")


def test_special_tokens() -> None:
    for text in (
        'start: "a" <|tool|> "b"',
        'start: "a" <[269]> "b"\n%ignore " "',
        'start: "a" <[268-269]> "b"',
    ):
        if "268" in text:
            with pytest.raises(errors.GrammarError, match="ends the text"):
                COMPILER.lark(text)
            continue
        matcher = COMPILER.lark(text).matcher()
        assert matcher.accept_bytes("a") and not matcher.accept_bytes("<|tool|>")
        assert matcher.accept_token(269) and matcher.accept_bytes("b") and matcher.is_accepting()


def test_the_dialect_is_told() -> None:
    assert harness.verdict(COMPILER.grammar('root ::= "a:"'), "a:")
    assert harness.verdict(COMPILER.grammar('start: "::=" // ::='), "::=")


def test_substring_of() -> None:
    text = "The quick brown fox, the lazy dog."
    words = COMPILER.substring_of(text)
    assert all(harness.verdict(words, t) for t in ("quick brown", "fox, the", "The", "dog.", text))
    assert not any(harness.verdict(words, t) for t in ("", "quick fox", "uick", "the quick"))
    chars = COMPILER.substring_of(text, unit="chars")
    assert harness.verdict(chars, "uick b") and not harness.verdict(chars, "uickb")


def test_long_substrings_are_quick() -> None:
    text = " ".join(f"word{i * 7919 % 5003}" for i in range(20_000))
    with harness.cpu_limit(10):
        matcher = COMPILER.substring_of(text).matcher()
        assert matcher.accept_bytes(text[text.index(" ", 5000) : text.index(" ", 9000)])
        oracle.mask_of(matcher, SIZE)


ERRORS = [
    ('start: vlaue\nvalue: "a"', "rule 'vlaue' is not defined; did you mean 'value'?", 1, 8),
    ('start: A\nAB: "b"', "terminal 'A' is not defined; did you mean 'AB'?", 1, 8),
    ('start: "a"\nstart: "b"', "'start' is defined twice", 2, 1),
    ('start: ("a"', "the rule ends too early", 1, 12),
    ('start: a{2,1}\na: "x"', "{2,1} asks for at least 2 and at most 1", 1, 9),
    ('x: "a"', "there is no rule 'start' to start with", 1, 1),
    ('start: %json {"type": }', "%json is not JSON: Expecting value", 1, 23),
    ("start: t\nt[lzy]: /a/", "'lzy' is no attribute of a rule; did you mean 'lazy'?", 2, 3),
    (
        "start: A\n%declare A",
        "terminal 'A' is declared and never defined; %declare has no meaning here",
        1,
        8,
    ),
    ("start: <|tol|>", "'<|tol|>' is no special token of the vocabulary; did you mean '<|tool|>'?", 1, 8),
    ("start: @other", "there is no grammar 'other'; hand it over in `grammars`", 1, 8),
    ("start: start", "no text matches this grammar", None, None),
    (
        "start: t\nt[capture, temperature=-0.7]: /a/",
        "'temperature' is a number of at least 0",
        2,
        24,
    ),
    ('start: "a" ~ t\nt: "x"', "'&' and '~' stand between terminals alone, and 't' is a rule", 1, 14),
    ("start: t\nt{x}: x", "'t' takes 1 argument and is given none", 1, 8),
    ('start: t{"a"}\nt: "b"', "'t' is no template and is given 1", 1, 8),
    ('start: t\nt[lazy="x"]: /a/', "'lazy' takes no value", 2, 8),
    ("start: t\nt[stop]: /a/", "'stop' needs a text, a pattern, a terminal or a token", 2, 3),
    ("start: t\nt[capture=/a/]: /a/", "'capture' takes a name in quotes", 2, 11),
    ('start: t\nt[capture=""]: /a/', "a capture has a name", 2, 11),
    ('start: t\nt[stop="a", suffix="b"]: /a/', "'stop' and 'suffix' are the same; write one", 2, 20),
    ('start: t\nt[stop_capture="a"]: /a/', "'stop_capture' needs a 'stop'", 2, 16),
    (
        "start: t\nt[capture, stop=/ab|bcd/]: /.*/",
        "matches of a pattern that ends a capture cannot overlap: one may end within another",
        2,
        17,
    ),
    ("start: t\nt[lazy]: /a/\nt[lazy]: /b/", "'t' is defined twice", 3, 1),
    ('start: A\nA: B "c"', "terminal 'B' is not defined", 2, 4),
    ("start: A\nA: b\nb: /b/", "terminal 'A' cannot contain the rule 'b'", 2, 4),
    ('start: A\nA: "a" B\nB: "b" A?', "terminal 'A' contains itself; only rules may", 2, 1),
    ('start: "a"\n%ignore BLANK', "terminal 'BLANK' is not defined", 2, 9),
    ('start: t{"a"}', "rule 't' is not defined", 1, 8),
    ("start: b: a", "unexpected ':'", 1, 9),
    # Lark itself fails here, in a log message, while it looks for a hint.
    ('start: a b{x}\na: "x"|| A\nA: B C?[B: "q"\nC: "c"', "unexpected ':'", 3, 10),
]


@pytest.mark.parametrize("method", ["lark", "gbnf", "grammar", "regex", "substring_of"])
@pytest.mark.parametrize("given", [b"start: /a/", bytearray(b"a"), None, 5, ["a"]])
def test_what_is_no_text_is_named(method, given) -> None:
    with pytest.raises(TypeError, match=f" is a str, not {type(given).__name__}"):
        getattr(COMPILER, method)(given)


@pytest.mark.parametrize("name", [".secret", "secret", ".folder.secret", "folder.secret", ".common"])
def test_no_file_of_the_machine_is_imported(name, tmp_path, monkeypatch) -> None:
    (tmp_path / "folder").mkdir()
    for file in ("secret.lark", "folder/secret.lark", "common.lark"):
        (tmp_path / file).write_text('A: "a"')
    monkeypatch.chdir(tmp_path)
    # otherwise Lark takes the folder of __main__ as the base of imports
    monkeypatch.delattr(sys.modules["__main__"], "__file__", raising=False)
    for wanted in (f"{name}.A", f"{name} (A)"):
        with pytest.raises(errors.GrammarError, match="only the grammars of Lark itself") as caught:
            harness.compiler().lark(f"start: A\n%import {wanted}")
        assert f"cannot import '{name.lstrip('.')}'" in str(caught.value)
        assert caught.value.line == 2


def test_grammars_of_lark_are_imported_with_what_they_import() -> None:
    for text in ("start: INT\n%import common.INT", "start: NAME\n%import python (NAME)"):
        assert harness.compiler().lark(text)


@pytest.mark.parametrize("text, message, line, column", ERRORS)
def test_errors(text, message, line, column) -> None:
    with pytest.raises(errors.GrammarError) as caught:
        COMPILER.lark(text)
    assert (caught.value.message, caught.value.line, caught.value.column) == (message, line, column)
