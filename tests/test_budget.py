"""Masks under a budget. Oracles: all texts of finite languages, and `tokens_needed`. With many tokens left a
mask equals the plain mask. Masks of languages that allow nearly any token stay cheap and small. The tests of
each grammar check that walks end."""

from __future__ import annotations

import itertools
import json
import random
import resource
import time
from collections.abc import Callable
from typing import Any

import jsonschema
import numpy as np
import pytest

import structgen
from oracles import harness, histories, oracle, strategies

TEXTS = [bytes([b]) for b in range(32, 127)] + [
    *(
        *(b'{"', b'":', b'","', b'"]', b'"}', b'",', b"ab", b"abc", b'a"', b'ab":', b'b","', b"[[", b'["'),
        *(b'":"', b"true", b"\\u"),
    ),
    *(b"\xc3", b"\xa9", b"12", b"]}", b"{}", b'""', b'"a"', b'"a":', b',"a', b'a","b'),
]
SIZE = len(TEXTS) + 1
FREE: dict[str, Any] = {  # three names are required; any other name may stand, too
    "type": "object",
    "properties": {
        "deviceName": {"type": "string", "minLength": 1},
        "recipients": {"type": "array", "items": {"type": "string"}},
        "alarms": {"type": "array"},
    },
    "required": ["deviceName", "recipients", "alarms"],
}
COUNTED = {"type": "object", "minProperties": 3, "additionalProperties": {"type": "integer"}}
DIFFERENT = {"type": "array", "items": {"type": "string"}, "minItems": 3, "uniqueItems": True}
SCHEMAS = [
    FREE,
    COUNTED,
    DIFFERENT,
    {
        "type": "object",
        "patternProperties": {"^[ab]$": {}},
        "additionalProperties": False,
        "minProperties": 2,
    },
    {"type": "array", "items": {"enum": ["a", "b", "abc", 1, 12]}, "minItems": 4, "uniqueItems": True},
    {
        "type": "array",
        "items": {"type": "object", "required": ["a"], "minProperties": 2},
        "minItems": 2,
        "uniqueItems": True,
    },
    {  # atoms show a short text of some values: 0, an empty array, a word, a date
        "type": "object",
        "properties": {
            "zero": {"type": "number", "minimum": 0},
            "none": {"type": "number", "exclusiveMinimum": 0, "maximum": 0.5},
            "list": {"type": "array"},
            "word": {"enum": ["a\\n", "long"]},
            "date": {"type": "string", "format": "date"},
        },
        "required": ["zero", "none", "list", "word", "date"],
    },
]


def small() -> structgen.Compiler:
    return structgen.Compiler(structgen.Vocabulary.from_bytes([*TEXTS, b""], SIZE - 1))


# ---- finite languages: every text is known, and each text's fewest tokens are counted from its end ----

# These tokens write no escapes, exponents or fractions, so each value has one text.
PIECES = [bytes([b]) for b in b'{}[]":,abc12'] + [
    b'{"', b'":', b'","', b'"]', b'"}', b'",', b"ab", b"abc", b'a"', b'["', b'b","', b'"a"', b',"a', b'":"',
    b"12", b'"abc"', b'1,"', b'":1',
]  # fmt: skip
END = len(PIECES)
ITEMS: list[Any] = ["a", "b", "abc", 1, 12]


def arrays(items: list[Any], longest: int) -> list[Any]:
    return [list(a) for n in range(longest + 1) for a in itertools.product(items, repeat=n)]


def objects(names: list[str], values: list[Any]) -> list[Any]:
    """Returns every order of every subset of the names."""
    return [
        dict(zip(keys, chosen, strict=True))
        for n in range(len(names) + 1)
        for keys in itertools.permutations(names, n)
        for chosen in itertools.product(values, repeat=n)
    ]


# name -> (schema, values); the language is the values that `jsonschema` accepts
FINITE: dict[str, tuple[Any, list[Any]]] = {
    "different items": (
        {"type": "array", "items": {"enum": ITEMS}, "minItems": 2, "maxItems": 3, "uniqueItems": True},
        arrays(ITEMS, 4),
    ),
    "counted items": (
        {
            "type": "array",
            "items": {"enum": ITEMS},
            "maxItems": 4,
            "contains": {"enum": ["abc", 12]},
            "minContains": 2,
        },
        arrays(ITEMS, 5),
    ),
    "names by pattern": (
        {
            "type": "object",
            "patternProperties": {"^[ab]$": {"enum": [1, 12, "a"]}},
            "additionalProperties": False,
            "minProperties": 2,
        },
        objects(["a", "b", "c", "ab"], [1, 12, "a"]),
    ),
    "names that need names": (
        {
            "type": "object",
            "properties": {"a": {"enum": ["abc", 1]}, "b": {"const": 1}, "c": {"enum": [12, "b"]}},
            "required": ["a"],
            "dependentRequired": {"b": ["c"]},
            "additionalProperties": False,
        },
        objects(["a", "b", "c"], ["abc", 1, 12, "b"]),
    ),
    "branches of different lengths": (
        {
            "anyOf": [
                {"const": "abc"},
                {"enum": [12, 121]},
                {"type": "array", "items": {"const": "ab"}, "minItems": 2, "maxItems": 3},
            ]
        },
        [*arrays(["ab", "a"], 4), "abc", "ab", 12, 121, 1],
    ),
}


class Texts:
    """All texts of a language, and the number of tokens that finish a text."""

    def __init__(self, schema: Any, values: list[Any]) -> None:
        validator = jsonschema.Draft202012Validator(schema)
        valid = (v for v in values if validator.is_valid(v))
        self._texts = [json.dumps(v, separators=(",", ":")).encode() for v in valid]
        self._known: dict[bytes, tuple[float, float]] = {}

    def needs(self, prefix: bytes) -> tuple[float, float]:
        """Returns two numbers of tokens from a prefix to the end of a text, the end token included: the
        fewest of any text, and the most of any text that is shortest in bytes. Each text is cut into as few
        tokens as possible. Both are infinite if no text begins with the prefix."""
        if prefix not in self._known:
            rests = [text[len(prefix) :] for text in self._texts if text.startswith(prefix)]
            shortest = min(map(len, rests), default=0)
            self._known[prefix] = (
                1 + min(map(self._pieces, rests), default=float("inf")),
                1 + max((self._pieces(r) for r in rests if len(r) == shortest), default=float("inf")),
            )
        return self._known[prefix]

    def _pieces(self, text: bytes) -> float:
        least = [float("inf")] * len(text) + [0.0]
        for at in range(len(text) - 1, -1, -1):
            ways = (least[at + len(p)] for p in PIECES if text.startswith(p, at))
            least[at] = 1 + min(ways, default=float("inf"))
        return least[0]


@pytest.mark.parametrize("name", FINITE)
def test_what_is_allowed_can_be_finished_and_what_surely_can_is_allowed(name: str) -> None:
    schema, values = FINITE[name]
    texts = Texts(schema, values)
    vocabulary = structgen.Vocabulary.from_bytes([*PIECES, b""], END)
    grammar = structgen.Compiler(vocabulary).json_schema(schema, whitespace="compact", property_order="any")
    denied = 0
    for seed in harness.seeds(12):
        source = np.random.default_rng(seed)
        matcher, text = grammar.matcher(), b""
        left = matcher.tokens_needed() + int(source.integers(0, 5))
        while not matcher.is_terminated():
            fewest, surely = texts.needs(text)
            assert fewest <= matcher.tokens_needed() <= surely, text
            plain, within = (oracle.mask_of(matcher, END + 1, n) for n in (None, left))
            for token, piece in enumerate(PIECES):
                fewest, surely = texts.needs(text + piece)
                assert bool(plain[token]) == (fewest < float("inf")), (text, piece)
                if within[token]:
                    assert fewest <= left - 1, (text, piece, left, fewest)
                elif plain[token]:
                    assert surely > left - 1, (text, piece, left, surely)
                    denied += 1
            assert bool(within[END]) == bool(plain[END]) == (texts.needs(text)[0] == 1), text
            token = int(source.choice(np.flatnonzero(within)))
            assert matcher.accept_token(token)
            text += PIECES[token] if token != END else b""
            left -= 1
        assert left >= 0
    assert denied


# ---- a vocabulary that spells every text: a sample of texts of infinite languages, in several spellings ----

SPELLING = [*(bytes([b]) for b in range(256)), *(p for p in PIECES if len(p) > 1)] + [
    b'": ', b'": "', b"\n  ", b'",\n', b"  ", b'a"}', b'"}}', b"\\u00", b"61", b"\\n", b'c"', b"[[",
    b"]]", b'"],',
]  # fmt: skip
ENDLESS: dict[str, tuple[Any, list[Any]]] = {
    "strings": (
        {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "string", "minLength": 2}}},
        [{"a": "", "b": "ab"}, {"b": "abc"}, {"a": "a\n"}, {}, {"c": [[]]}],
    ),
    "patterns": (
        {"type": "array", "items": {"type": "string", "pattern": "^a+(b|c)"}, "minItems": 1},
        [["ab"], ["aac", "abc"], ["ac\u00e9"]],
    ),
    "names": (
        {
            "type": "object",
            "properties": {"ab": {"type": "object"}, "abc": {"type": "array"}},
            "required": ["ab", "abc"],
        },
        [{"ab": {}, "abc": []}, {"abc": [1], "ab": {"a": 1}}, {"ab": {}, "abc": [], "c": 1}],
    ),
    "digits": (
        {
            "type": "object",
            "properties": {"a": {"type": "string", "pattern": "^[0-9a-f]{4}$"}},
            "required": ["a"],
        },
        [{"a": "12ab"}, {"a": "1212", "b": 2}],
    ),
}


def spellings(value: Any) -> list[bytes]:
    ways = ({"separators": (",", ":")}, {}, {"indent": 2}, {"separators": (" ,", ": ")})
    texts = {json.dumps(value, ensure_ascii=e, **way).encode() for way in ways for e in (True, False)}
    return sorted(texts | {t.replace(b"a", b"\\u0061", 1) for t in texts if b'"a' in t})


def pieces(text: bytes, known: dict[bytes, int]) -> int:
    """Returns the fewest tokens that spell a text, and the end token."""
    if text not in known:
        known[text] = (
            1 if not text else 1 + min(pieces(text[len(p) :], known) for p in SPELLING if text.startswith(p))
        )
    return known[text]


@pytest.mark.parametrize("name", ENDLESS)
def test_no_budget_is_refused_within_which_a_known_text_ends(name: str) -> None:
    schema, values = ENDLESS[name]
    validator = jsonschema.Draft202012Validator(schema)
    assert all(validator.is_valid(v) for v in values)
    texts = [t for v in values for t in spellings(v)]
    known: dict[bytes, int] = {}
    vocabulary = structgen.Vocabulary.from_bytes([*SPELLING, b""], len(SPELLING))
    grammar = structgen.Compiler(vocabulary).json_schema(schema, property_order="any")
    texts = [t for t in texts if (m := grammar.matcher()).accept_bytes(t) and m.is_accepting()]
    assert len(texts) > len(values)
    told = refused = 0
    for at, text in harness.chosen(enumerate(texts[::4])):
        source = np.random.default_rng(at)
        done, matcher = b"", grammar.matcher()
        while done != text:
            fewest = min(pieces(t[len(done) :], known) for t in texts if t.startswith(done))
            for left in range(1, 13):
                try:
                    within = oracle.mask_of(matcher, len(SPELLING) + 1, left)
                except structgen.UnsatisfiableBudget:
                    assert left < fewest, (done, left)
                    refused += 1
                    continue
                except structgen.BudgetExceeded:  # the search found no text and proved nothing
                    continue
                assert within.any()
                told += left >= fewest
            step = [p for p in SPELLING if text.startswith(done + p)]
            piece = step[int(source.integers(len(step)))]
            assert matcher.accept_token(SPELLING.index(piece))
            done += piece
    assert told > harness.cases(100) and refused > harness.cases(10)


# ---- infinite languages: the oracle is the engine's own count, which the finite languages have checked ----


def near_the_end(matcher: structgen.Matcher, plain: np.ndarray, left: int, spare: int = 0) -> bool:
    """Returns whether so few tokens are left beyond the minimum that a large mask may hold only the tokens of
    the shortest text."""
    return bool(plain.sum() > 100 and left <= enough(matcher) + spare)


def shown_to_fit(matcher: structgen.Matcher, left: int) -> bool:
    """Returns whether `fits` says that `left` tokens suffice. If `fits` does not decide, a number that surely
    suffices is compared with `left`."""
    fits = matcher._core.fits(left)
    if fits is not None:
        return fits
    try:
        return enough(matcher) <= left
    except (structgen.BudgetExceeded, structgen.SchemaTooComplex):  # neither method proves a text
        return False


@pytest.mark.parametrize("index", range(len(SCHEMAS)))
def test_allowed_iff_it_can_be_finished(index: int) -> None:
    """A token is allowed exactly if `fits` says of the state behind it that the remaining tokens finish a
    text."""
    grammar = small().json_schema(SCHEMAS[index])
    for seed in harness.seeds(5):
        source = np.random.default_rng(seed)
        matcher = grammar.matcher()
        left = enough(matcher) + int(source.integers(0, 8))
        while not matcher.is_terminated():
            plain, within = oracle.mask_of(matcher, SIZE), oracle.mask_of(matcher, SIZE, left)
            assert within.any()
            assert not (within & ~plain).any()
            for token in np.flatnonzero(plain).tolist():
                fork = matcher.fork()
                assert fork.accept_token(token)
                fits = shown_to_fit(fork, left - 1)
                shown = TEXTS[token] if token < len(TEXTS) else "end"
                # The vocabulary lacks some bytes. The engine searches for bytes that end a character, within
                # a limit.
                assert within[token] or not fits or shown == b"\xc3", (shown, left)
                if within[token] and not fits:
                    assert oracle.mask_of(fork, SIZE, left - 1).any(), (shown, left)
                assert not fits or fork.is_terminated() or enough(fork) <= left - 1
            assert matcher.accept_token(int(source.choice(np.flatnonzero(within))))
            left -= 1
        assert left >= 0


# ---- random schemas over a vocabulary that spells every text ----

WHOLE = [
    *(bytes([i]) for i in range(256)),
    *(t for t in TEXTS if len(t) > 1),
    b'","a":',
    b"abcabcabc",
    b"\\u00",
]


def law_of_budgets(seed: int, family: str) -> int:
    """A mask allows a token exactly if the state behind it is proved to need no more tokens than are left.

    Exception: a large mask may omit tokens (near_the_end()). The test asks every state of a walk with budgets
    from large to small. The first budget is so large that one comparison decides. Returns the number of
    refused tokens.
    """
    from oracles.differential.check import FAMILIES
    from oracles.strategies import Seeded

    schema = FAMILIES[family](Seeded(seed), 2020)
    compiler = structgen.Compiler(structgen.Vocabulary.from_bytes([*WHOLE, b""], len(WHOLE)))
    try:
        matcher = compiler.json_schema(schema).matcher()
        least = matcher.tokens_needed()
    except structgen.StructgenError:
        return 0
    source, refused = np.random.default_rng([seed, len(family)]), 0
    size = len(WHOLE) + 1
    for _ in range(8):
        if matcher.is_terminated() or least > 300:
            break
        plain = oracle.mask_of(matcher, size)
        for left in [*range(least + 40, least + 9, -6), *range(max(least, 9), least + 9)]:
            within = oracle.mask_of(matcher, size, left)
            gives_up = near_the_end(matcher, plain, left) and not matcher.mask_exact
            assert within.any()
            assert not (within & ~plain).any()
            for token in np.flatnonzero(plain).tolist():
                assert matcher.accept_token(token)
                fits, known = matcher._core.fits(left - 1), shown_to_fit(matcher, left - 1)
                matcher.rollback(1)
                assert fits in (None, bool(within[token])), (schema, left, token)
                assert within[token] or not known or gives_up, (schema, left, token)
            refused += int((plain & ~within).sum())
        allowed = np.flatnonzero(within)
        assert matcher.accept_token(int(source.choice(allowed)))
        least = 0 if matcher.is_terminated() else enough(matcher)
    return refused


# The mask behind `{"a` with 11 tokens left once depended on texts that were read earlier.
SHORT_PATTERN = {
    "properties": {
        "a": {"type": "string", "pattern": "^[a-c]{2,5}$"},
        "b": {"type": "null"},
        "c": {"type": "array", "items": {"type": "number"}, "minItems": 1, "maxItems": 2},
    },
    "required": ["a", "c"],
}


def schemas(vocabulary: structgen.Vocabulary, order: str, **options: Any) -> list[Callable[[], Any]]:
    def compiled(schema: Any) -> Any:
        compiler = structgen.Compiler(vocabulary, **options)
        return compiler.json_schema(schema, property_order=order, whitespace="compact")

    return [lambda s=s: compiled(s) for s in (SHORT_PATTERN, FREE, COUNTED, DIFFERENT)]


LIMITED = [  # rules with a limit of tokens
    'start: "[" w ("," w)* "]"\nw[max_tokens=3]: /[a-c]+/',
    'start: a b\na[max_tokens=4]: "x" a | "y"\nb: /[0-9]{2,5}/',
    'start: "{" (k ":" v ","?)* "}"\nk[max_tokens=2]: /"[ab]*"/\nv[max_tokens=5]: "[" v* "]" | /[0-9]+/',
]
ROWS = {  # one grammar for each source of rows (csrc/engine/row_source.h)
    "plain": schemas(histories.VOCABULARY, "any"),
    "plain, in order": schemas(histories.VOCABULARY, "schema"),
    "part": schemas(histories.VOCABULARY, "any", on_limit="subset"),
    "spelled": schemas(histories.LACKING, "any"),
    "spelled, in order": schemas(histories.LACKING, "schema"),
    "spelled part": schemas(histories.LACKING, "any", on_limit="subset"),
    "limited": [lambda g=g: structgen.Compiler(histories.VOCABULARY).lark(g) for g in LIMITED],
}


@pytest.mark.parametrize("source", ROWS)
def test_masks_do_not_depend_on_what_was_asked_before(source: str) -> None:
    asked = differ = 0
    for seed, compiled in enumerate(ROWS[source]):
        found = histories.differing(compiled, seed, walks=harness.cases(6) if source == "limited" else 2)
        asked, differ = asked + found[0], differ + found[1]
    # A grammar with limits of tokens keeps a text that was found, and later masks allow the text's tokens.
    assert asked > harness.cases(100) and differ <= (0.02 * asked if source == "limited" else 0), (
        asked,
        differ,
    )


KEYS = [  # schemas whose keys may each have a bound of their own
    {"patternProperties": {"^a": {"type": "integer"}, "^b$": {}}, "minProperties": 3},
    {"patternProperties": {"^x-": {"enum": ["a", 1]}, "^(a|ab)(c|bc)$": {"const": 1}}, "minProperties": 4},
    {"patternProperties": {"^[ab]{1,2}$": {"type": "string"}, "^[^b]*$": False}, "minProperties": 4},
    {"patternProperties": {"^b$": {"minimum": 1}}, "minProperties": 3, "required": ["ab"]},
]
ESCAPES = [b"\\u0061", b'"\\u0061', b"\\u00", b"61", b"1,", b'"a":1,"', b'{"a":', b'"b":', b',"b"']
ESCAPING = [*histories.PIECES, *ESCAPES, b""]


@pytest.mark.parametrize("order", ["schema", "any"])
@pytest.mark.parametrize("schema", KEYS)
def test_rows_do_not_depend_on_where_tokens_end(schema: dict[str, Any], order: str) -> None:
    """A row gets the tokens that end a text from a plan. The search for the plan once considered only the
    ends of a text's tokens, so rows depended on where tokens end."""
    vocabulary = structgen.Vocabulary.from_bytes(ESCAPING, len(ESCAPING) - 1)
    compiler = structgen.Compiler(vocabulary)
    asked = 0
    for seed in harness.seeds(3):
        asked += histories.differing_cuts(
            lambda: compiler.json_schema(
                {"type": "object", **schema}, property_order=order, whitespace="compact"
            ),
            seed,
        )
    assert asked > harness.cases(30)


@pytest.mark.parametrize("spare", [0, 1, 5])
def test_a_row_is_a_part_of_the_mask_where_bytes_are_missing(spare: int) -> None:
    """If the vocabulary lacks some bytes, a row under a budget holds no token that the mask without a budget
    lacks. The mask lacked `{`, because only `{"` leads to a text that the tokens can spell. The row had both
    tokens."""
    schema = {
        "type": "object",
        "properties": {"b": {"enum": [1, "a"]}, "x-1": {"enum": [1]}},
        "patternProperties": {"^[ab]{1,2}$": {"not": {"type": "integer"}}},
        "required": ["ab", "\u00e9"],
    }
    compiler = structgen.Compiler(histories.LACKING)
    grammar = compiler.json_schema(schema, whitespace="compact", property_order="any")
    matcher, size = grammar.matcher(), histories.LACKING.vocab_size
    plain = oracle.mask_of(matcher, size)
    within = oracle.mask_of(matcher, size, enough(matcher) + spare)
    assert within.any() and not (within & ~plain).any()
    for begin in (b"{", b'{"'):
        assert plain[histories.FEW.index(begin)] and matcher.fork().accept_bytes(begin)


@pytest.mark.parametrize("family", ["general", "discriminated", "counts"])
def test_masks_of_random_schemas_do_not_depend_on_what_was_asked_before(family: str) -> None:
    """Grammars that were compiled before change no mask. Of equally short completions the engine always takes
    one and the same. Behind `{"b":` the choice once depended on the grammars compiled before."""
    from oracles.differential.check import FAMILIES
    from oracles.strategies import Seeded

    asked = differ = 0
    for seed in harness.seeds(8):
        schema = FAMILIES[family](Seeded(seed), 2020)

        def compiled(schema: Any = schema) -> Any:
            return structgen.Compiler(histories.VOCABULARY).json_schema(schema, whitespace="compact")

        try:
            compiled()
        except structgen.StructgenError:
            continue
        found = histories.differing(compiled, seed)
        asked, differ = asked + found[0], differ + found[1]
    assert asked > harness.cases(50), asked
    assert differ == 0, (asked, differ)


@pytest.mark.parametrize("memory", [1, 30_000, 1 << 20])
def test_a_small_cache_changes_no_mask(memory: int) -> None:
    """Tokens whose captured text matters are tried with their own text, however small the cache is. A small
    cache once allowed only `",` after `["a`."""
    enum: Any = {"type": "array", "items": {"enum": ["a", "b", "c"]}, "minItems": 2, "uniqueItems": True}
    compared = 0
    for schema, text in ((enum, b'["a'), (DIFFERENT, b'["a","'), (COUNTED, b'{"a'), (FREE, b'{"alarm')):
        large, small = (
            structgen.Compiler(histories.VOCABULARY, limits=structgen.Limits(memory=m)).json_schema(schema)
            for m in (256 << 20, memory)
        )
        for left in (1000, 40, 40, 20, 7):
            rows = []
            for grammar in (large, small):
                matcher = grammar.matcher()
                assert matcher.accept_bytes(text)
                try:
                    rows.append(oracle.mask_of(matcher, len(histories.VOCABULARY), left))
                except structgen.BudgetExceeded:
                    rows.append(None)
            assert (rows[0] is None) == (rows[1] is None), (schema, left)
            if rows[0] is not None and rows[1] is not None:
                compared += 1
                assert np.array_equal(rows[0], rows[1]), (schema, left)
    assert compared > 8, compared


def test_a_text_found_while_a_rule_was_open_is_not_kept() -> None:
    """The completion of `[[{"` had an object as its second item, though `[]` is shorter. So the mask refused
    the token until another query had looked at the second item."""
    value = {
        "oneOf": [
            {"type": "object", "required": ["c"]},
            {"type": "array", "items": {"$ref": "#/$defs/value"}},
        ]
    }
    schema = {"allOf": [{"items": {"$ref": "#/$defs/value"}, "minItems": 2}], "$defs": {"value": value}}
    compiler = structgen.Compiler(histories.VOCABULARY)
    grammar = compiler.json_schema(schema, whitespace="compact")
    begun = histories.PIECES.index(b"[["), histories.PIECES.index(b'{"')
    mask = histories.told(grammar, histories.Question(begun[:1], 11))
    assert begun[1] in mask.answer, mask


SMALL = [1, 100_000, 1 << 20]  # sizes of a cache in bytes


def law_of_small_caches(seed: int, family: str, memory: int) -> tuple[int, int]:
    """A small cache gives the masks of a fresh large cache, whatever was asked before."""
    from oracles.differential.check import FAMILIES
    from oracles.strategies import Seeded

    schema = FAMILIES[family](Seeded(seed), 2020)
    vocabulary = histories.LACKING if seed % 2 else histories.VOCABULARY

    def compiled(memory: int = 256 << 20) -> Any:
        compiler = structgen.Compiler(vocabulary, limits=structgen.Limits(memory=memory))
        return compiler.json_schema(schema, whitespace="compact")

    try:
        compiled()
    except structgen.StructgenError:
        return 0, 0
    return histories.differing(compiled, seed, other=lambda: compiled(memory))


@pytest.mark.parametrize("memory", SMALL)
@pytest.mark.parametrize("family", ["general", "captures", "counts"])
def test_a_small_cache_changes_no_mask_of_random_schemas(family: str, memory: int) -> None:
    found = [law_of_small_caches(seed, family, memory) for seed in harness.seeds(6)]
    asked, differ = (sum(counts) for counts in zip(*found, strict=True))
    assert asked > harness.cases(20) and differ == 0, (asked, differ)


@pytest.mark.parametrize("family", ["general", "recursion", "unevaluated", "counts"])
def test_budgets_of_random_schemas(family: str) -> None:
    assert sum(law_of_budgets(seed, family) for seed in harness.seeds(30))


def law_of_walks(schema: Any, source: random.Random) -> int:
    """The first row within at least `tokens_needed` tokens allows a token. A token that a row allowed is
    accepted, the row behind it is not empty, and the text ends within the budget. Returns the number of
    rows."""
    rows = 0
    for vocabulary, units in itertools.product(
        (histories.VOCABULARY, histories.LACKING), (200_000, 10_000_000)
    ):
        compiler = structgen.Compiler(vocabulary, limits=structgen.Limits(mask=units))
        try:
            grammar = compiler.json_schema(schema, whitespace=source.choice(["flexible", "compact"]))
            least = grammar.matcher().tokens_needed()
        except structgen.StructgenError:
            continue
        matcher, taken = grammar.matcher(), []
        for left in range(least + source.choice([0, 0, 1, 2, 5, 10]), 0, -1):
            allowed = np.flatnonzero(oracle.mask_of(matcher, vocabulary.vocab_size, left))
            assert allowed.size, (schema, units, left, taken)
            taken.append(source.choice(allowed.tolist()))
            assert matcher.accept_token(taken[-1]), (schema, units, left, taken)
            rows += 1
            if matcher.is_terminated():
                break
        assert matcher.is_terminated(), (schema, units, taken)
    return rows


UNSPELLED: list[Any] = [
    # accept_token() searched again for tokens that end the text, and the search met its limit of work.
    {
        "type": "object",
        "additionalProperties": {
            "type": "array",
            "items": {"enum": [1, "a", "b", {}, []]},
            "minItems": 2,
            "maxItems": 5,
        },
        "minProperties": 3,
        "maxProperties": 5,
    },
    # The first row looked for the tokens that tokens_needed() had counted by another search.
    {
        "type": "array",
        "prefixItems": [{"type": "array", "minItems": 1}],
        "contains": {"enum": [{"c": "\U0001f600"}]},
        "maxContains": 1,
    },
    # A row allowed a key because the completion of another key fits it. The next row did not find this
    # completion.
    {
        "type": "object",
        "properties": {"": {"type": "string", "maxLength": 3}},
        "additionalProperties": {"type": "integer"},
        "minProperties": 3,
    },
    # The first row's token came from a search that accept_token() did not repeat.
    strategies.any_schema(strategies.Seeded(1498)),
    # A row judged a token without the captured text. Behind the token, the text's own search met its limit.
    strategies.any_schema(strategies.Seeded(77004274)),
]


@pytest.mark.parametrize("schema", UNSPELLED)
def test_a_budget_is_kept_where_texts_cannot_be_spelled(schema: Any) -> None:
    assert sum(law_of_walks(schema, random.Random(seed)) for seed in harness.seeds(6))


def test_a_budget_of_any_schema_is_kept() -> None:
    assert sum(
        law_of_walks(strategies.any_schema(strategies.Seeded(seed)), random.Random(seed))
        for seed in harness.seeds(150)
    )


def enough(matcher: structgen.Matcher) -> int:
    """Returns a number of tokens that suffices, without a search for a smaller one."""
    return matcher._bounds(False)[1]


def bound(matcher: structgen.Matcher, size: int, left: int) -> tuple[np.ndarray, float]:
    began = time.process_time()
    mask = oracle.mask_of(matcher, size, left)
    return mask, time.process_time() - began


@pytest.mark.parametrize("schema", [FREE, COUNTED, DIFFERENT], ids=["free", "counted", "different"])
def test_any_token_may_stand(schema: dict[str, Any], tekken_vocabulary: structgen.Vocabulary) -> None:
    """127,000 tokens are allowed. A mask costs milliseconds, because no work or memory is spent per token."""
    size = len(tekken_vocabulary)
    compiler = structgen.Compiler(tekken_vocabulary)
    matcher = compiler.json_schema(schema).matcher()
    assert matcher.accept_bytes(b'["' if schema is DIFFERENT else b'{"')
    plain = oracle.mask_of(matcher, size)
    assert plain.sum() > 100_000
    held = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    least = enough(matcher)
    for left in (least, least + 1, least + 2, least + 5):
        mask, seconds = bound(matcher, size, left)
        assert mask.any()
        assert seconds < 2.0, (left, seconds)
    loose, seconds = bound(matcher, size, 4 * least + 100)
    assert (loose == plain).all()
    assert seconds < 2.0
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - held < 100 << 10
    assert compiler._core.byte_size < 100 << 20


def test_a_pattern_beside_a_length_limit(tekken_vocabulary: structgen.Vocabulary) -> None:
    """One bound covers all tokens that stay inside such a string (Budget::staying). A mask allows a token
    exactly if the remaining tokens finish the state behind it."""
    words = {"type": "string", "pattern": r"^$|^(?:\S+\s+){0,99}\S+$", "minLength": 1, "maxLength": 5_000}
    schema = {"type": "object", "properties": {"a": words, "b": words}, "required": ["a", "b"]}
    grammar = structgen.Compiler(tekken_vocabulary).json_schema(schema | {"additionalProperties": False})
    size, source = tekken_vocabulary.vocab_size, np.random.default_rng(0)
    refused = kept = 0
    for text in (b'{"a":"some words', b'{"a":"some words ', b'{"a":"x","b":"a\\u00e9 b'):
        matcher = grammar.matcher()
        assert matcher.accept_bytes(text)
        plain = oracle.mask_of(matcher, size)
        for left in (18, 11, 9, 8, 7, 6):
            within = oracle.mask_of(matcher, size, left)
            gives_up = near_the_end(matcher, plain, left, 2) and not matcher.mask_exact
            assert within.any() and not (within & ~plain).any()
            some = {
                int(t)
                for row in (within, plain & ~within)
                for t in np.flatnonzero(row)[:: max(1, row.sum() // 20)]
            }
            for token in some | {int(t) for t in source.choice(np.flatnonzero(plain), 20)}:
                fork = matcher.fork()
                assert fork.accept_token(token)
                fits = shown_to_fit(fork, left - 1)
                shown = (text, left, tekken_vocabulary.tokens[token])
                assert within[token] or not fits or gives_up, shown
                assert not within[token] or fits or oracle.mask_of(fork, size, left - 1).any(), shown
                refused, kept = refused + (not fits), kept + fits
    assert refused > 10 and kept > 200


def test_a_token_of_a_counted_run_is_told_by_its_characters(
    tekken_vocabulary: structgen.Vocabulary,
) -> None:
    """Rows of `[a-z ]{400}` at many counts equal arithmetic on the byte lengths of the tokens."""
    vocabulary = tekken_vocabulary
    # the length 0 marks a token that cannot stand in the text
    lengths = np.zeros(vocabulary.vocab_size, np.int64)
    for t, text in enumerate(vocabulary.tokens):
        if text and t not in vocabulary.eos_token_ids and not text.strip(b" abcdefghijklmnopqrstuvwxyz"):
            lengths[t] = len(text)
    steps = np.unique(lengths[lengths > 0])
    fewest = np.zeros(401, np.int64)
    for n in range(1, 401):
        fewest[n] = 1 + fewest[n - steps[steps <= n]].min()
    blank = vocabulary.tokens.index(b" ")
    matcher = structgen.Compiler(vocabulary).regex("[a-z ]{400}").matcher()
    refused = 0
    for left in range(400, 0, -1):
        for budget in {int(fewest[left]) + extra for extra in (1, 2, 3) if left % 9 in (1, 4)}:
            row = oracle.mask_of(matcher, vocabulary.vocab_size, budget)
            stays = (lengths > 0) & (lengths <= left)
            needs = np.where(stays, fewest[np.where(stays, left - lengths, 0)] + 2, budget + 1)
            assert np.array_equal(row, needs <= budget), (left, budget)
            refused += int((stays & (needs > budget)).sum())
        assert matcher.accept_token(blank)
    assert refused > 100_000


def test_a_row_that_runs_out_of_work_spoils_no_later_row(tekken_vocabulary: structgen.Vocabulary) -> None:
    """A row looks for a text at each count of a repetition, which takes more work than a server's limit.
    Later texts still get the rows of a compiler without a limit."""
    size = tekken_vocabulary.vocab_size
    large = structgen.Compiler(tekken_vocabulary).regex("[a-z ]{400}")
    limits = structgen.Limits(mask=200_000)
    small = structgen.Compiler(tekken_vocabulary, limits=limits, on_limit="subset").regex("[a-z ]{400}")
    inexact = 0
    for left in (7, 8, 32, 32, 32):
        matcher = small.matcher()
        row = oracle.mask_of(matcher, size, left)
        inexact += not matcher.mask_exact
    assert inexact and matcher.mask_exact
    assert np.array_equal(row, oracle.mask_of(large.matcher(), size, 32))


@pytest.mark.parametrize(
    "pattern",
    ["[a-z ]{30};", "[a-z ]{2,40}", "x[a-z ]{9,30}[;.]y?", "([a-z ]{12}[,;]){3}", "[a-z ]{9}[A-Z]{9}"],
)
def test_a_run_is_left_where_its_count_allows(tekken_vocabulary: structgen.Vocabulary, pattern: str) -> None:
    """A mask allows a token exactly if the remaining tokens finish the state behind it."""
    size, source = tekken_vocabulary.vocab_size, np.random.default_rng(0)
    matcher = structgen.Compiler(tekken_vocabulary).regex(pattern).matcher()
    leaves = np.array([text[-1:] in (b";", b".", b",", b"y", b"Z") for text in tekken_vocabulary.tokens])
    checked = 0
    while not matcher.is_terminated():
        plain = oracle.mask_of(matcher, size)
        left = matcher.tokens_needed() + int(source.integers(3))
        within = oracle.mask_of(matcher, size, left)
        gives_up = near_the_end(matcher, plain, left) and not matcher.mask_exact
        assert within.any() and not (within & ~plain).any()
        for token in {*np.flatnonzero(plain & leaves)[:100], *source.choice(np.flatnonzero(plain), 60)}:
            fork = matcher.fork()
            assert fork.accept_token(int(token))
            if fork.is_terminated():
                continue
            fits, shown = shown_to_fit(fork, left - 1), (left, tekken_vocabulary.tokens[token])
            assert within[token] or not fits or gives_up, shown
            assert not within[token] or fits or oracle.mask_of(fork, size, left - 1).any(), shown
            checked += 1
        assert matcher.accept_token(int(source.choice(np.flatnonzero(within))))
    assert checked > 100


@pytest.mark.parametrize("keys", harness.chosen([500, 2_000]))
def test_many_required_members_have_a_bound(keys: int) -> None:
    """No search finds the shortest text of so many members. A bound on its bytes is also a bound on its
    tokens."""
    names = [f"k{i}" for i in range(keys)]
    schema = {"type": "object", "properties": dict.fromkeys(names, {"type": "integer"}), "required": names}
    vocabulary = structgen.Vocabulary.from_bytes([*WHOLE, b""], len(WHOLE))
    grammar = structgen.Compiler(vocabulary).json_schema(schema)
    least, enough = grammar.matcher().token_bounds()
    text = json.dumps(dict.fromkeys(names, 0), separators=(",", ":"))
    assert least <= len(text) + 1 <= enough <= len(text) + 2
    for left in harness.chosen([900, 60]):
        with pytest.raises(structgen.UnsatisfiableBudget, match=f"{enough} are known to suffice"):
            structgen.matcher.can_end_within(grammar, left)
    matcher, source, left = grammar.matcher(), np.random.default_rng(0), enough
    for _ in range(40):
        allowed = np.flatnonzero(oracle.mask_of(matcher, len(WHOLE) + 1, left))
        assert matcher.accept_token(int(source.choice(allowed)))  # fails if the previous mask had no token
        left -= 1


@pytest.mark.parametrize("on_limit", ["error", "subset"])
def test_a_row_that_is_asked_for_again_is_the_same(
    tekken_vocabulary: structgen.Vocabulary, on_limit: structgen.OnLimit
) -> None:
    """A row is kept at the second request, and copied from the third request on."""
    schema = {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "integer"}}}
    schema |= {"required": ["a", "b"], "additionalProperties": False}
    size, compared = tekken_vocabulary.vocab_size, 0
    for text in (b'{"', b'{"a":"', b'{"a":"x\\', b'{"a":"\xc3', b'{"a":"x","b":1'):
        for left in range(2, 24):
            grammar = structgen.Compiler(tekken_vocabulary, on_limit=on_limit).json_schema(schema)
            matcher = grammar.matcher()
            assert matcher.accept_bytes(text)
            if matcher.tokens_needed() > left:
                continue
            found = []
            for _ in range(4):
                row = oracle.mask_of(matcher, size, left)
                found.append((row.tobytes(), matcher.mask_exact))
                other = oracle.mask_of(matcher, size, left + 1)
                assert not (row & ~other).any()  # each budget keeps its own row
            assert len(set(found)) == 1, (text, left)
            compared += 1
    assert compared > 60


# Arrays whose items are compared. A different rule follows each item, and no item of the first kind meets
# `contains`.
HALF_NUMBERS: dict[str, Any] = {"type": "array", "items": {"type": "number", "multipleOf": 0.5}}
INTEGERS: dict[str, Any] = {"type": "array", "items": {"type": "integer"}, "uniqueItems": True}


@pytest.mark.parametrize("begun", ["[", "[100", "[100,", "[7,100,", "[7,100,1", "[7.5,", "[100,0,0"])
def test_a_completion_behind_items_without_an_end_is_the_first_of_the_shortest(begun: str) -> None:
    schema = {"oneOf": [HALF_NUMBERS, INTEGERS | {"contains": {"minimum": 100}}]}
    judge = jsonschema.Draft202012Validator(schema)

    def valid(text: str) -> bool:
        try:
            return judge.is_valid(json.loads(text))
        except ValueError:
            return False

    ends = ("".join(end) for n in range(5) for end in itertools.product(",-.0157]", repeat=n))
    shortest = next(end for end in ends if valid(begun + end))
    for before in ([], ["[100,100"], ["[7,8,9,1", "["]):  # texts that are asked about before
        grammar = small().json_schema(schema, whitespace="compact")
        for text in [*before, begun]:
            matcher = grammar.matcher()
            assert matcher.accept_bytes(text.encode())
            found = matcher.shortest_completion().decode()
        assert found == shortest, before


def test_a_search_behind_items_without_an_end_is_short() -> None:
    schema = {"oneOf": [HALF_NUMBERS, INTEGERS | {"contains": {"minimum": 100}}]}
    begun = b"[7.7770077007107077000e0"
    matcher = small().json_schema(schema, whitespace="compact").matcher(max_tokens=len(begun) + 2)
    for byte in begun:
        assert matcher.accept_token(TEXTS.index(bytes([byte])))
    before = structgen._core._work_done()
    with pytest.raises(structgen.BudgetExceeded):
        matcher.fill_bitmask(np.zeros((1, oracle.words(SIZE)), np.int32))
    assert structgen._core._work_done() - before < structgen.Limits().mask
    assert matcher.shortest_completion() == b"16,0,0]"


# Every byte is a token, so bounds in bytes hold.
EVERY = [*(bytes([b]) for b in range(256)), *(text for text in TEXTS if len(text) > 1)]


def every(**limits: int) -> structgen.Compiler:
    vocabulary = structgen.Vocabulary.from_bytes([*EVERY, b""], len(EVERY))
    return structgen.Compiler(vocabulary, limits=structgen.Limits(**limits))


def test_a_budget_that_does_not_bind_asks_little_of_boolean_patterns() -> None:
    row, work = np.zeros((1, oracle.words(len(EVERY) + 1)), np.int32), []
    for left in (None, 10_000):
        matcher = every().json_schema({"type": "string", "format": "date-time"}).matcher()
        before = structgen._core._work_done()
        for byte in b'"\\u0038853\\u002d02-16\\u007421:\\u00343:':
            matcher.fill_bitmask(row, 0, left)
            assert matcher.accept_bytes(bytes([byte]))
        work.append(structgen._core._work_done() - before)
    assert work[1] < 3 * work[0]


def test_judging_the_tokens_of_a_row_is_bounded() -> None:
    compiler = every(mask=4_000_000)
    grammar = compiler.json_schema(INTEGERS, numbers="canonical", strings="plain") & structgen.min_bytes(39)
    matcher = grammar.matcher()
    assert matcher.accept_bytes(b"[")
    before = structgen._core._work_done()
    matcher.fill_bitmask(np.zeros((1, oracle.words(len(EVERY) + 1)), np.int32), 0, 50)
    assert structgen._core._work_done() - before < 6 * 4_000_000


def listed(value: object, keys: int, items: int, **named: object) -> dict[str, object]:
    """Returns a schema of arrays of objects whose keys are free and whose values are short."""
    one = {"type": "object", "minProperties": keys, "additionalProperties": value, "properties": named}
    return {"type": "array", "items": one, "minItems": items}


SHORT = {"enum": [1, 22]}


@pytest.mark.parametrize(
    ("schema", "begun", "least", "most"),
    [
        (listed(SHORT, 1, 1), '[{"baecaefbbbbccafeecbb":1,"e', 56, 56),
        (
            listed(SHORT, 1, 1, a=SHORT, bb={"const": 2}),
            '[{"":1,"eadfa":1,"dceeabccbbebeadcedcccecafafbcd',
            68,
            69,
        ),
        (
            listed({"type": "boolean"}, 1, 2, a={"type": "boolean"}),
            '[{"ebffafebbdddfcceaeef":true,"adfed":true,"b',
            67,
            68,
        ),
        (listed(SHORT, 3, 1, a=SHORT, bb={"const": 2}), '[{"deaacfcdadfdcaacdceecbdfdbefca', 53, 54),
        (listed(SHORT, 2, 0), '[{":":1,"HUNdno|+abcdefghijkl', 54, 55),
        (listed({}, 2, 0), "[", 54, 54),
        (listed({}, 2, 0), "[", 200, 200),
    ],
)
def test_a_token_that_ends_a_key_within_a_range_of_bytes(
    schema: dict[str, object], begun: str, least: int, most: int
) -> None:
    """A row judges such a token without the text of the key. The matcher once judged it with the text alone,
    for which it knew fewer lengths, and refused it."""
    condition = structgen.min_bytes(least) & structgen.max_bytes(most)
    plain = every().json_schema(schema, whitespace="compact", strings="plain", numbers="canonical")
    matcher = (plain & condition).matcher()
    assert matcher.accept_bytes(begun)
    tokens = np.flatnonzero(oracle.mask_of(matcher, len(EVERY) + 1)).tolist()
    assert len(tokens) > 1
    for token in tokens:
        assert matcher.fork().accept_token(token), EVERY[token]
    text, token = begun.encode(), EVERY.index(b'"') if begun != "[" else tokens[0]
    while token < len(EVERY):
        assert matcher.accept_token(token), (text, EVERY[token])
        text += EVERY[token]
        token = int(oracle.mask_of(matcher, len(EVERY) + 1).nonzero()[0][-1])
    assert least <= len(text) <= most
    assert harness.verdict(plain, text)
