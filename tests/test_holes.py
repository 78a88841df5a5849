"""Texts with holes: `can_complete` and `infill`.

`oracles.random_holes` compares random grammars and schemas with enumeration; a few run here. The other tests
cut the library's texts anywhere, check users' mistakes, and check that a middle is a grammar like any other.
"""

from __future__ import annotations

import itertools
import json
import pickle
import random
from typing import Any

import numpy as np
import pytest

import structgen as sg
from oracles import data, harness, oracle, random_holes, random_items
from oracles.random_grammars import DIALECTS, compilers
from structgen import errors, library
from structgen.cli import main

pytest.importorskip("lark")

TOKENS = random_holes.JSON_TOKENS
END = len(TOKENS)
COMPILER = random_holes.json_compiler()
AB = {"properties": {"a": {}, "b": {}}, "additionalProperties": False}


def allowed(matcher: sg.Matcher) -> set[bytes]:
    found = np.flatnonzero(oracle.mask_of(matcher, END + 1)).tolist()
    return {b"<end>" if t == END else TOKENS[t] for t in found}


def middle(grammar: sg.CompiledGrammar, text: bytes) -> bool:
    return harness.verdict(grammar, text)


def middles_are(
    whole: sg.CompiledGrammar, prefix: str, suffix: str, right: list[str], wrong: list[str]
) -> None:
    """Verdicts on whole texts and on middles agree, and the first mask equals trials of every token."""
    found = whole.infill(prefix, suffix)
    for text in [*right, *wrong]:
        assert middle(whole, f"{prefix}{text}{suffix}".encode()) == (text in right)
        assert middle(found, text.encode()) == (text in right), text
    matcher = found.matcher()
    assert (oracle.mask_of(matcher, END + 1) == oracle.naive_mask(matcher, END + 1)).all()


# ---- the verdict ----


def test_a_gap_has_a_text_or_it_is_proved_that_it_has_none() -> None:
    grammar = COMPILER.json_schema(AB, whitespace="compact")
    found = grammar.can_complete(['{"a":', sg.Gap(), b',"b":2}'])
    assert found.verdict is True and found
    assert set(json.loads(found.text)) == {"a", "b"} and found.text.endswith(b',"b":2}')
    none = grammar.can_complete(['{"a":', sg.Gap(), ',"a":2}'])
    assert none.verdict is False and not none and none.text == b""


@pytest.mark.parametrize(
    ("least", "most", "verdict"), [(2, 2, True), (3, 3, False), (0, 1, True), (1, 1, False), (3, None, True)]
)
def test_bytes_are_counted(least, most, verdict) -> None:
    grammar = COMPILER.choice(["ab", "abxy", "abwxyz"])
    found = grammar.can_complete([b"ab", sg.Gap(least, most)])
    assert found.verdict is verdict
    if verdict:
        assert len(found.text) - 2 >= least


def test_tokens_are_counted_exactly() -> None:
    vocabulary = sg.Vocabulary.from_bytes([b"ab", b"abab", b"b", b""], eos_token_ids=[3])  # no `a`
    grammar = sg.Compiler(vocabulary).regex("(ab)+b?")
    verdicts = [grammar.can_complete([sg.Gap(n, unit="tokens")]).verdict for n in range(4)]
    assert verdicts == [False, True, True, True]
    assert grammar.can_complete(["a", sg.Gap(1, unit="tokens")]).text == b"ab"
    assert grammar.can_complete(["a", sg.Gap(1, unit="tokens"), "ab"]).text == b"abab"
    # the tokens are abab and b
    assert grammar.can_complete(["aba", sg.Gap(2, unit="tokens")]).verdict is True
    assert grammar.can_complete(["abab", sg.Gap(2, unit="tokens"), "a"]).verdict is False


def test_a_name_that_a_gap_completes_is_the_one_whose_value_follows() -> None:
    members = {"ab": {"const": 1}, "cb": {"const": 2}, "b": {"const": 3}}
    named = {"properties": members, "additionalProperties": False}
    grammar = COMPILER.json_schema(named, whitespace="compact")
    assert grammar.can_complete(['{"', sg.Gap(), 'b":2}']).text == b'{"cb":2}'
    assert json.loads(grammar.can_complete(["{", sg.Gap(), ":3}"]).text)["b"] == 3


def test_keys_in_gaps_differ() -> None:
    grammar = COMPILER.json_schema({"type": "object", "minProperties": 3}, whitespace="compact")
    found = grammar.can_complete(['{"', sg.Gap(), '":1,"', sg.Gap(), '":2,"x":', sg.Gap(), "}"])
    assert found.verdict is True
    assert len(json.loads(found.text, object_pairs_hook=list)) == len(json.loads(found.text)) >= 3
    assert grammar.can_complete(['{"x":', sg.Gap(0, 1), ',"x":1,"y":2}']).verdict is False


def test_keys_that_may_be_left_out_are_looked_at_once() -> None:
    """Each of a thousand objects offered the keys of all later objects, which took 2.3 s; now it takes 0.05
    s."""
    names = {f"k{i}": {"type": "integer"} for i in range(1000)}
    schema = {"type": "object", "properties": names, "additionalProperties": False}
    grammar = COMPILER.json_schema(schema, whitespace="compact")
    with harness.cpu_limit(0.6):
        found = grammar.can_complete(['{"k3":', sg.Gap(), ',"k998":', sg.Gap(), "}"])
        assert found and list(json.loads(found.text)) == ["k3", "k998"]
        assert not grammar.can_complete(['{"k3":', sg.Gap(), '"k2":', sg.Gap(), "}"])
        between = grammar.infill('{"k3":1', "8}")
    assert middle(between, b',"k10":') and not middle(between, b',"k2":')


@pytest.mark.parametrize(
    "begin", [(b'{"c":3,"a"', sg.Gap()), (b"{", sg.Gap(1), b':3,"a":3,"b"', sg.Gap(3, unit="tokens"))]
)
def test_a_question_without_an_answer_ends_in_the_time_of_a_mask(begin: tuple[Any, ...]) -> None:
    """A question that meets its limit answers "not known" in the time of a mask. The engine once charged a
    fifth of the work of a new fact, and each of three questions about tokens could spend the limit of the
    call: the answers took 4 s and 15 s. Now they take 0.8 s and 1 s."""
    schema = {
        "properties": {"ab": {"enum": [1, "b"]}, "ba": {"const": 1}},
        "additionalProperties": {"const": 3},
        "dependentRequired": {"c": ["b"]},
        "propertyNames": {"maxLength": 1},
    }
    grammar = COMPILER.json_schema(
        {"type": "object", **schema}, whitespace="compact", property_order="schema"
    )
    with harness.cpu_limit(3.0):
        grammar.can_complete([*begin, b',"b":3}'])


def test_items_in_gaps_differ() -> None:
    grammar = COMPILER.json_schema({"type": "array", "uniqueItems": True}, whitespace="compact")
    found = grammar.can_complete(["[", sg.Gap(1), ",", sg.Gap(1), ",1]"])
    assert found.verdict is True
    items = [json.dumps(x) for x in json.loads(found.text)]
    assert len(items) == len(set(items)) >= 3
    assert grammar.can_complete(["[1,", sg.Gap(0, 0), "1]"]).verdict is False


@pytest.mark.parametrize(
    ("parts", "error"),
    [
        ("abc", TypeError),
        ([1], TypeError),
        ([None], TypeError),
        (["\ud800"], ValueError),
        (sg.Gap(), TypeError),
    ],
)
def test_parts_are_texts_and_gaps(parts, error) -> None:
    with pytest.raises(error, match=r"part"):
        COMPILER.regex("a").can_complete(parts)


@pytest.mark.parametrize(
    ("arguments", "error"),
    [((-1,), ValueError), ((2, 1), ValueError), ((1.5,), TypeError), ((True,), TypeError),
     ((0, 1, "words"), ValueError), ((1, 2, "tokens"), ValueError), ((1 << 40,), ValueError)],
)  # fmt: skip
def test_gaps_have_bounds(arguments, error) -> None:
    with pytest.raises(error, match="Gap"):
        sg.Gap(*arguments)


def test_gaps_that_are_too_long_are_refused_at_once() -> None:
    grammar = COMPILER.regex("a*")
    with pytest.raises(ValueError, match="tokens"):
        grammar.can_complete([sg.Gap(1 << 20, unit="tokens")])
    with pytest.raises(ValueError, match="too long"):
        grammar.can_complete([sg.Gap(1 << 30, 1 << 31)])


def test_little_work_is_no_answer_and_no_error() -> None:
    compiler = sg.Compiler(COMPILER.vocabulary, limits=sg.Limits(mask=50))
    grammar = compiler.regex("[{](ab){3000}[}]")
    assert grammar.can_complete([sg.Gap()]).verdict is None
    with pytest.raises(errors.BudgetExceeded, match="what fits here takes more than"):
        grammar.infill("{", "}")
    assert COMPILER.regex("(ab){3000}").can_complete([sg.Gap()])


# ---- the grammar of the middle ----


def test_the_suffix_forbids_what_it_cannot_follow() -> None:
    grammar = COMPILER.json_schema(AB, whitespace="compact").infill('{"a":', ',"b":2}')
    matcher = grammar.matcher()
    assert b"1}" not in allowed(matcher) and b"1," not in allowed(matcher) and b"1" in allowed(matcher)
    assert matcher.accept_bytes("1") and matcher.is_accepting() and b"<end>" in allowed(matcher)
    assert not middle(grammar, b'1,"b":1') and middle(grammar, b'{"x":[1]}')
    assert grammar.parse(b'"x"') == '"x"'


def test_no_text_around_is_the_grammar_itself() -> None:
    grammar = COMPILER.regex("a+")
    assert grammar.infill("", b"") is grammar and grammar.around is None
    inner = grammar.infill("a", "")
    assert inner.around == (grammar, b"a", b"") and middle(inner, b"") and middle(inner, b"aa")


def test_a_hole_in_a_middle_is_a_hole_in_the_whole() -> None:
    grammar = COMPILER.regex("a(b|c)*d")
    inner = grammar.infill("a", "d").infill("b", "c")
    assert middle(inner, b"bb") and middle(inner, b"") and not middle(inner, b"d")


@pytest.mark.parametrize(
    ("prefix", "suffix", "part", "offset"),
    [('{"a":1', ',"a":2}', "suffix", 7), ("{x", "", "prefix", 1), ('{"a":1}', "}", "suffix", 0),
     ("{", '"a":1', "suffix", 5), ('{"a":1}}', "", "prefix", 7)],
)  # fmt: skip
def test_what_does_not_fit_is_named(prefix, suffix, part, offset) -> None:
    grammar = COMPILER.json_schema(AB, whitespace="compact")
    with pytest.raises(sg.UnsatisfiableInfill) as found:
        grammar.infill(prefix, suffix)
    assert (found.value.part, found.value.offset) == (part, offset)
    assert f"byte {offset} of the {part}" in str(found.value)


@pytest.mark.parametrize("grammar", ['root ::= "a" [b-d]* "e"'])
def test_text_is_text(grammar) -> None:
    compiled = COMPILER.gbnf(grammar)
    with pytest.raises(TypeError, match="the prefix is text"):
        compiled.infill(1, "")
    with pytest.raises(ValueError, match="the suffix has half a surrogate pair at character 1"):
        compiled.infill("", "a\ud800")
    for odd in (b"\xff", b"\xfe", b"a\xfe"):
        with pytest.raises(sg.UnsatisfiableInfill):
            compiled.infill(odd, "")
        with pytest.raises(sg.UnsatisfiableInfill):
            compiled.infill("", odd)


def test_limits_on_tokens_and_holes_exclude_each_other() -> None:
    grammar = COMPILER.lark('start: "a" x "b"\nx[max_tokens=3]: /[a-z]*/')
    with pytest.raises(sg.GrammarError, match="limits tokens"):
        grammar.infill("a", "b")
    with pytest.raises(sg.GrammarError, match="limits tokens"):
        grammar.can_complete([sg.Gap()])


def test_positions_inside_characters_and_escapes() -> None:
    grammar = COMPILER.json_schema({"const": 'é"\\'}, whitespace="compact")
    whole = json.dumps('é"\\', ensure_ascii=True).encode()
    raw = '"é\\"\\\\"'.encode()
    for text in (whole, raw):
        for begin in range(len(text) + 1):
            for end in range(begin, len(text) + 1):
                assert middle(grammar.infill(text[:begin], text[end:]), text[begin:end]), (text, begin, end)


def test_captures_are_those_of_the_whole_text_in_the_middle() -> None:
    grammar = COMPILER.regex("(?P<a>x*)(?P<b>y*)-(?P<c>z*)")
    matcher = grammar.infill("x", "z").matcher()
    assert matcher.accept_bytes("xyy-z") and matcher.is_accepting()
    assert {n: [(c.start, c.text) for c in all] for n, all in matcher.captures().items()} == {
        "a": [],
        "b": [(1, b"yy")],
        "c": [],
    }
    lark = COMPILER.lark(
        'start: a "," b "," c\na[capture]: /x+/\nb[capture]: /y+/\nc[capture]: /z+/', lexer="dynamic"
    )
    inner = lark.infill("xx", "z").matcher()
    assert inner.accept_bytes(b",yyy,zz") and inner.is_accepting()
    found = inner.captures()
    assert not found["a"] and not found["c"]
    assert [(c.start, c.text) for c in found["b"]] == [(1, b"yyy")]


def test_budgets_and_completions_of_a_middle() -> None:
    grammar = COMPILER.json_schema(AB, whitespace="compact").infill('{"a":"', '","b":[1,2]}')
    matcher = grammar.matcher()
    assert matcher.shortest_completion() == b"" and matcher.tokens_needed() == 1
    matcher.accept_bytes('","b":1')
    assert not matcher.is_accepting() or matcher.shortest_completion() == b""
    deep = COMPILER.json_schema({}, whitespace="compact").infill("[[", "]]").matcher()
    assert deep.accept_bytes("[{")
    rest = deep.shortest_completion()
    assert json.loads(b"[[[{" + rest + b"]]") is not None
    assert deep.tokens_needed() <= len(rest) + 1
    mask = oracle.mask_of(deep, END + 1, max_tokens=deep.tokens_needed())
    assert mask.any()


def test_a_middle_is_pickled_with_its_texts() -> None:
    grammar = COMPILER.json_schema(AB, whitespace="compact").infill('{"a":', "}")
    again = pickle.loads(pickle.dumps(grammar))
    assert middle(again, b'1,"b":2') and not middle(again, b"1}")


def test_lexemes_reach_across_the_border() -> None:
    grammar = COMPILER.lark(
        'start: (NAME | KEYWORD | OP)+\nKEYWORD: "if"\nNAME: /[a-z]+/\nOP: "=" | "=="\n%ignore " "'
    )
    for prefix, text, suffix in (
        ("i", "", "f"),
        ("a", "", "="),
        ("a=", "", "=b"),
        ("i", "f", "x"),
        ("a", " ", "b"),
    ):
        assert middle(grammar.infill(prefix, suffix), text.encode())


# ---- the command ----


@pytest.mark.parametrize(
    ("text", "status", "out", "err"),
    [('{"a":<HOLE>,"b":2}\n', 0, '{"a":0,"b":2}', "shortest"), ('{"a":[1<HOLE>]}<HOLE>', 0, '{"a":[1', ""),
     ('{"b":1,<HOLE>', 1, "nothing fits: no text of the grammar begins with the prefix (byte 6 of", ""),
     ('{"a":1}<HOLE>,<HOLE>', 1, "nothing fits", ""), ("{}", 2, "", "has no <HOLE>")],
)  # fmt: skip
def test_the_command(tmp_path, capsys, text, status, out, err) -> None:
    (tmp_path / "text").write_text(text)
    schema = {**AB, "properties": {"a": {"enum": [0, [1]]}, "b": {"type": "integer"}}}
    arguments = ["infill", str(tmp_path / "text"), "--schema", json.dumps(schema), "--whitespace", "compact"]
    assert main(arguments) == status
    printed = capsys.readouterr()
    assert out in printed.out and err in printed.err


def test_the_command_takes_other_marks_and_grammars(tmp_path, capsys) -> None:
    (tmp_path / "text").write_text("a_e")
    assert main(["infill", str(tmp_path / "text"), "--regex", "abc?de", "--mark", "_"]) == 0
    assert capsys.readouterr().out == "abde\n"
    assert main(["infill", str(tmp_path / "text")]) == 2
    assert "needs --schema" in capsys.readouterr().err
    assert main(["infill", str(tmp_path / "text"), "--regex", "a", "--mark", ""]) == 2


@pytest.mark.parametrize(
    ("text", "constraint", "out"),
    [
        (
            '{"a":<HOLE>,"b":<HOLE>}',
            ["--schema", '{"properties": {"b": {"type": "string", "minLength": 2}}}'],
            '{"a":0,"b":"  "}',
        ),
        (
            '{"a": [<HOLE>], "b":<HOLE>}',
            ["--schema", '{"properties": {"a": {"type": "array"}}}'],
            '{"a": [], "b":0}',
        ),
        ("a<HOLE>b", ["--regex", "a.+b"], "a b"),
        ("a<HOLE>b<HOLE>", ["--regex", r"a\s+b\s+c"], "a b c"),
        ("a<HOLE>b", ["--regex", "a\tb"], "a\tb"),
    ],
)
def test_the_command_writes_what_can_be_read(tmp_path, capsys, text, constraint, out) -> None:
    """The command once filled holes with tabs and zeros, the first possible bytes, in place of a shortest
    text."""
    (tmp_path / "text").write_text(text)
    assert main(["infill", str(tmp_path / "text"), *constraint]) == 0
    assert capsys.readouterr().out == out + "\n"


# ---- compared with enumeration ----


@pytest.mark.parametrize("dialect", DIALECTS)
def test_random_grammars(dialect) -> None:
    made = compilers()
    sums = [random_holes.check(seed, dialect, made) for seed in range(500, 500 + harness.cases(60))]
    assert sum(s[0] for s in sums) > harness.cases(100) and sum(s[1] for s in sums) > harness.cases(20)


def test_random_schemas() -> None:
    sums = [random_holes.check_schema(seed, COMPILER) for seed in harness.chosen(SCHEMAS)]
    assert (
        sum(s[0] for s in sums) > harness.cases(30)
        and sum(s[1] for s in sums) > harness.cases(40)
        and sum(s[2] for s in sums) <= 4
    )


def test_random_items_that_are_compared() -> None:
    sums = [random_items.check(seed, COMPILER) for seed in harness.seeds(60)]
    assert (
        sum(s[0] for s in sums) > harness.cases(300)
        and sum(s[1] for s in sums) > harness.cases(50)
        and sum(s[2] for s in sums) <= 2
    )


def test_random_walks_among_items_that_differ() -> None:
    steps = [random_items.check_walk(seed, COMPILER) for seed in harness.seeds(150)]
    assert sum(s[0] for s in steps) > harness.cases(5_000)


SCHEMAS = (7, 8, *range(30, 35), *range(36, 40), 71, 86)


# ---- texts cut anywhere ----

# number of cuts of each grammar whose set-up takes long
CUTS = {"c": 2, "python": 1, "python_expression": 1, "pddl": 8, "sql": 1}
DEAR = {"sql"}  # the set-up may exceed the limit of a matcher's call; the error then says so


@pytest.mark.parametrize("name", [n for n in library.names() if n not in DEAR or harness.NIGHTLY])
def test_every_text_of_the_library_can_be_cut(name) -> None:
    entry = library.load(name)
    grammar = COMPILER.grammar(entry.text)
    source = random.Random(name)
    for text in map(str.encode, entry.accepted[: 1 if name in DEAR else 6]):
        for _ in range(harness.cases(CUTS.get(name, 25))):
            begin, end = sorted(source.randint(0, len(text)) for _ in range(2))
            try:
                found = grammar.infill(text[:begin], text[end:])
            except errors.BudgetExceeded as error:
                assert name in DEAR and "this hole takes more than" in str(error)
                break
            assert middle(found, text[begin:end]), (text[:begin], text[begin:end], text[end:])


def test_instances_of_real_schemas_can_be_cut() -> None:
    names = data.maskbench_names()
    data.need(bool(names), "no MaskBench schemas")
    cut = dear = 0
    source = random.Random(5)
    for name in data.sample(names, 60):
        case = data.maskbench_case(name)
        try:
            grammar = COMPILER.json_schema(case.schema)
        except errors.GrammarError:
            continue
        for instance in case.instances:
            text = instance.text.encode()
            if not instance.valid or not middle(grammar, text):
                continue
            begin, end = sorted(source.randint(0, len(text)) for _ in range(2))
            try:
                found = grammar.infill(text[:begin], text[end:])
            except (
                errors.SchemaTooComplex,
                errors.BudgetExceeded,
            ):  # counters of thousands and of hundreds
                dear += 1
                continue
            assert middle(found, text[begin:end]), (name, text[:begin], text[end:])
            cut += 1
    assert cut > 60 and dear <= 4


@pytest.mark.parametrize(
    "items",
    [
        {"enum": ["aa", "ab"]},
        {"enum": [1, 2, 3]},
        {"type": "boolean"},
        {"type": "string", "maxLength": 1, "pattern": "^[ab]*$"},
        {"type": "array", "items": {"enum": [1, 2]}, "maxItems": 1},
        {"type": "object", "properties": {"a": {"enum": [1, 2]}}, "additionalProperties": False},
    ],
    ids=lambda items: json.dumps(items)[:40],
)
@pytest.mark.parametrize("extra", [{}, {"minItems": 2}, {"maxItems": 2}], ids=str)
def test_items_that_differ_from_those_of_the_suffix(items, extra):
    """Between items: every beginning that is allowed can be finished, and the middles equal those of
    enumeration."""
    compiler = random_holes.json_compiler()
    how = {"whitespace": "compact", "numbers": "canonical", "strings": "plain"}
    one = compiler.json_schema(items, **how)
    grammar = compiler.json_schema({"type": "array", "items": items, "uniqueItems": True, **extra}, **how)

    def inside(grammar, text):
        return harness.verdict(grammar, text)

    known = [
        '"aa"', '"ab"', "1", "2", "3", "true", "false", '""', '"a"', '"b"', "[]", "[1]", "[2]", "{}",
        '{"a":1}', '{"a":2}',
    ]  # fmt: skip
    values = [v for v in known if inside(one, v)]
    arrays = [list(p) for n in range(len(values) + 1) for p in itertools.permutations(values, n)]
    texts = {"[" + ",".join(array) + "]" for array in arrays}
    right = {t for t in texts if inside(grammar, t)}
    least, most = extra.get("minItems", 0), extra.get("maxItems", 9)
    assert right == {"[" + ",".join(a) + "]" for a in arrays if least <= len(a) <= most}
    suffixes = {f"{lead}{','.join(a)}]" for a in arrays if a for lead in ("", ",")}
    for suffix in sorted(suffixes):
        middles = {t.removesuffix(suffix) for t in right if t.endswith(suffix)}
        begun = {m[:n] for m in middles for n in range(len(m) + 1)}
        if not middles:
            continue
        hole, todo, seen = grammar.infill("", suffix), [""], set[str]()
        while todo:
            text = todo.pop()
            seen.add(text)
            matcher = hole.matcher()
            assert matcher.accept_bytes(text), (suffix, text)
            assert matcher.is_accepting() == (text in middles), (suffix, text)
            todo += [text + chr(b) for b in matcher.live_bytes()]
        assert seen == begun, (suffix, seen ^ begun)


def test_sets_within_sets_whose_text_was_begun():
    """An item begins in the prefix. The reader of the item gets the whole item, not only the part in the
    hole."""
    inner = {"type": "array", "items": {"enum": [[], None]}, "uniqueItems": True}
    schema = {"type": "array", "items": inner, "uniqueItems": True, "maxItems": 3}
    grammar = random_holes.json_compiler().json_schema(schema, whitespace="compact")
    for suffix in ("]", "]]"):
        assert middle(grammar.infill("[[null", suffix), b"]" if suffix == "]" else b"")


@pytest.mark.parametrize(
    ("schema", "prefix", "suffix", "right", "wrong"),
    [
        ({"items": {"type": "string"}}, '["a"', "]", ["", ',"b"'], [',"a"', "\0", "x"]),
        ({"items": {"type": "integer"}}, "[1", "]", ["", "2", ",2"], [",1", ",1.0", "x"]),
        ({"items": {"type": "boolean"}}, "[true", "]", ["", ",false"], [",true"]),
        ({"items": {"type": "boolean"}}, "[true", ",false]", [""], [",false"]),
        ({"items": {"items": {}, "uniqueItems": True}}, "[[1", "]]", ["", ",2", "],[2"], [",1", "],[1"]),
    ],
    ids=str,
)  # fmt: skip
def test_sets_whose_first_items_are_in_the_prefix(schema, prefix, suffix, right, wrong):
    compiler = random_holes.json_compiler()
    whole = compiler.json_schema({"type": "array", "uniqueItems": True, **schema}, whitespace="compact")
    middles_are(whole, prefix, suffix, right, wrong)


def test_sets_within_sets_end_in_a_limit_and_not_in_the_stack():
    def cut(depth: int) -> sg.CompiledGrammar:
        schema = '{"type": "array", "uniqueItems": true, "items": ' * depth + "{}" + "}" * depth
        return limited.json_schema(schema, whitespace="compact").infill("[" * depth + "1", "]" * depth)

    limited = sg.Compiler(COMPILER.vocabulary, limits=sg.Limits(mask=300_000))
    assert middle(cut(10), b",2") and not middle(cut(10), b",1")
    with pytest.raises(errors.BudgetExceeded):
        cut(3000)


def test_masks_of_a_captured_literal_are_those_of_trials():
    """Behind `"a` the mask allows no quote: the quote would end an item, and the suffix `"]` would not
    fit."""
    schema = {"items": {"enum": ["a", None]}, "uniqueItems": True}
    matcher = COMPILER.json_schema(schema, whitespace="compact").infill("[", '"]').matcher()
    assert matcher.accept_bytes('"a')
    assert allowed(matcher) == {b"<end>"}
    assert (oracle.mask_of(matcher, END + 1) == oracle.naive_mask(matcher, END + 1)).all()


# equal items, or at least three items
TWO = {"oneOf": [{}, {"type": "array", "uniqueItems": True, "maxItems": 2}]}
ENUMS = [
    {"type": "array", "items": {"enum": [[1], [11], 1, 11]}, "uniqueItems": True},
    {"type": "array", "items": {"enum": [[1], [1, 1]]}, "maxItems": 2},
]
SETS = {"type": "array", "items": {"type": "boolean"}, "uniqueItems": True}
INTEGERS = {"items": {"type": "integer"}, "uniqueItems": True}
KEYED = {"type": "object", "properties": {"k": {"enum": [1, 2]}}, "additionalProperties": False}


@pytest.mark.parametrize(
    ("schema", "prefix", "suffix", "right", "wrong"),
    [
        ({"oneOf": [SETS, {"type": "array", "items": {"enum": [1, 2]}, "maxItems": 2}]},
         "[", "]", ["1,1", "2", "true,false"], ["1,1,1", "true,true"]),
        ({"type": "array", "items": SETS, "uniqueItems": True},
         "[[true", ",false]]", ["", "],[true"], [",true"]),
        ({"type": "array", "items": {"oneOf": ENUMS}, "uniqueItems": True, "maxItems": 2},
         "[[1", ",11]]", ["", ",[1]"], [",1", ",11"]),
        (TWO, "[", "1,1]", ["", "1,", "2,"], ["]"]),
        (TWO, "[", "]", ["1,1", '"a","a"', "1,2,3"], ["", "1", "1,2"]),
        (TWO, "[1,", "]", ["1", "2,3"], ["2", "1.5"]),
        ({"type": "array", **INTEGERS}, "[1,", ",3]", ["2", "13", "4,5"], ["1", "3", "1,3"]),
        ({"type": "array", "items": INTEGERS, "uniqueItems": True},
         "[[1,", "],[1,2]]", ["3", "3],[2,1"], ["2", "2],[1"]),
        ({"items": {"anyOf": [{"const": [1]}, {"type": "integer"}]}, "uniqueItems": True},
         "[", "1]]", ["[", "5,["], ["[1],["]),
        ({"items": {"enum": [[1], [2]]}, "uniqueItems": True}, "[[", "],[1]]", ["2"], ["1"]),
        ({"items": KEYED, "uniqueItems": True}, '[{"k', '{"k":1}]', ['":2},', '":2},{},'], ['":1},']),
        ({"items": KEYED, "uniqueItems": True}, '[{"k":', '{"k":1}]', ["2},", "2},{},"], ["1", "1},"]),
    ],
    ids=str,
)  # fmt: skip
def test_what_the_suffix_repeats(schema, prefix, suffix, right, wrong):
    """The items of the suffix, and of other branches, decide which items may stand in the hole."""
    middles_are(COMPILER.json_schema(schema, whitespace="compact"), prefix, suffix, right, wrong)


def test_an_item_begun_in_a_name_that_the_suffix_repeats_later():
    """Two objects of the suffix are equal, whatever stands in the hole."""
    whole = COMPILER.json_schema({"items": KEYED, "uniqueItems": True}, whitespace="compact")
    with pytest.raises(errors.UnsatisfiableInfill):
        whole.infill('[{"k":2},{"k', ':1},{},{"k":1}]')


@pytest.mark.parametrize("suffix", ['","cd"]', '"]'])
def test_the_shortest_middle_is_found_before_an_item_that_is_not_needed(suffix):
    schema = {"items": {"type": "string"}, "uniqueItems": True}
    matcher = COMPILER.json_schema(schema, whitespace="compact").infill("[", suffix).matcher()
    assert matcher.shortest_completion() == b'"'
    assert matcher.tokens_needed() == 2


def test_what_was_too_much_to_decide_is_left_out_and_said():
    """Two integers are equal, and the second ends with the suffix. The infinitely many pairs are left out,
    and the grammar is called partial."""
    schema = {"not": {"uniqueItems": True}, "items": {"type": "integer"}, "maxItems": 2}
    whole = COMPILER.json_schema(schema, whitespace="compact")
    matcher = whole.infill("[", "2]").matcher()
    assert matcher.accept_bytes("2,") and matcher.is_accepting()
    assert not matcher.mask_exact
