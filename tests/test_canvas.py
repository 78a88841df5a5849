"""Canvases: rows of token slots that are filled in any order.

`oracles.random_canvas` compares random grammars and schemas with enumeration; a few run here. The other tests
check users' mistakes, orders that try to reach a dead end, and a real vocabulary.
"""

from __future__ import annotations

import json
import random

import numpy as np
import pytest

import structgen as sg
from oracles import random_canvas
from oracles.harness import verdict
from oracles.random_grammars import DIALECTS, compilers
from oracles.strategies import Seeded
from structgen import errors

pytest.importorskip("lark", reason="lark is in the extra `lark`")

TOKENS = random_canvas.JSON_TOKENS
END = len(TOKENS)
COMPILER = random_canvas.json_compiler()


def number(text: bytes) -> int:
    return TOKENS.index(text)


# ---- compared with enumeration ----


@pytest.mark.parametrize("dialect", DIALECTS)
def test_what_may_stand_in_a_slot_is_what_some_filling_has_there(dialect) -> None:
    made = compilers()
    asked = 0
    for seed in range(20):
        one, unknown = random_canvas.check(seed, dialect, made)
        asked += one
        assert unknown == 0
    assert asked > 200


def test_random_schemas_are_enumerated() -> None:
    sums = [0, 0]
    for seed in range(12):
        sums = [a + b for a, b in zip(sums, random_canvas.check_schema(seed, COMPILER), strict=True)]
    assert sums[0] > 300 and sums[1] <= sums[0] // 50


def test_clouds_that_outgrew_their_share_are_made_anew() -> None:
    """With no room for clouds each question has new ones, and the verdicts stay."""
    schema = {"type": "array", "items": {"enum": [1, 10, "a"]}}
    canvases = [
        compiler.json_schema(schema).canvas(4, prefix=b"[1")
        for compiler in (COMPILER, sg.Compiler(COMPILER.vocabulary, cache_bytes=1))
    ]
    for slot, token in [(0, b","), (1, b"1"), (3, b"]")]:
        rows = [[c.allows(slot, t) for t in range(END + 1)] for c in canvases]
        assert rows[0] == rows[1] and None not in rows[0]
        for canvas in canvases:
            canvas.set(slot, number(token))
    assert canvases[0].complete() == canvases[1].complete()


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "array", "items": {"enum": [1, 10, "a"]}, "uniqueItems": True},
        {"type": "object", "maxProperties": 2},
        {"type": "array", "items": {"type": "string", "maxLength": 2}},
        {"enum": ["aa", "ab", 1.01, None]},
        {"type": "number", "multipleOf": 0.1},
    ],
)
@pytest.mark.parametrize("after", ["end", "open"])
def test_schemas_are_enumerated(schema, after) -> None:
    grammar = COMPILER.json_schema(schema, whitespace="compact")

    def inside(text: bytes) -> bool:
        return verdict(grammar, text)

    for slots in range(1, 5):
        begins = lambda text: grammar.matcher().accept_bytes(text)  # noqa: E731
        every = random_canvas.fillings(grammar, TOKENS, slots, after, None, inside, begins)
        if len(every) > 30_000:
            break
        for seed in range(2):
            random_canvas.check_canvas(grammar, slots, after, None, every, Seeded(seed))


def test_a_prefix_stands_in_front_of_the_slots() -> None:
    grammar = COMPILER.json_schema({"type": "array", "items": {"const": 1}}, whitespace="compact")
    canvas = grammar.canvas(2, prefix="[1")
    assert canvas.allows(0, number(b"]")) is True
    assert canvas.allows(0, number(b"1")) is False
    assert canvas.text() == b"]"
    middle = grammar.infill("[1", "]").canvas(1)
    assert middle.allows(0, END) is True and middle.allows(0, number(b"1")) is False


# ---- the methods of a canvas ----


def test_set_clear_select_and_fork() -> None:
    grammar = COMPILER.json_schema({"type": "array", "items": {"enum": [1, "a"]}}, whitespace="compact")
    canvas = grammar.canvas(4)
    assert canvas.select([(3, number(b"]")), (0, number(b"]")), (0, number(b"[")), (3, END)]) == [
        True, False, True, False,
    ]  # fmt: skip
    assert canvas.masked == [1, 2] and len(canvas) == 4
    other = canvas.fork()
    other.set(1, number(b"1,"))
    assert canvas.tokens == [number(b"["), None, None, number(b"]")]
    with pytest.raises(ValueError, match=r"^canvas: token 4 is not allowed in slot 1$"):
        canvas.set(1, number(b"]"))
    canvas.set(1, number(b"]"), force=True)
    assert canvas.possible() is False
    canvas.clear(1)
    assert canvas.possible() is True
    assert json.loads(canvas.text()) and canvas.tokens[1] is None


def test_the_best_tokens_are_taken_from_left_to_right() -> None:
    grammar = COMPILER.json_schema({"type": "array", "items": {"enum": [1, "a"]}}, whitespace="compact")
    scores = np.zeros((3, END + 1), np.float32)
    scores[1, number(b"a")] = 9.0  # no text of three tokens allows this token
    scores[1, number(b'"a"')] = 5.0
    assert grammar.canvas(3).text(grammar.canvas(3).complete(scores)) == b'["a"]'


@pytest.mark.parametrize(
    ("slots", "options", "error", "line"),
    [
        (
            1,
            {},
            errors.UnsatisfiableBudget,
            r"no text of the grammar fits 1 slots; .* takes 2",
        ),
        (-1, {}, ValueError, r"slots must be at least 0, not -1"),
        (1 << 20, {}, ValueError, r"a canvas has at most 16384 slots"),
        ("4", {}, TypeError, r"slots is a whole number, not '4'"),
        (4, {"after": "never"}, ValueError, r"after is one of end, open, not 'never'"),
        (4, {"pad": 999}, ValueError, r"token 999 is outside the vocabulary of 25 ids"),
        (4, {"pad": 3}, ValueError, r"the padding token 3 is text"),
        (4, {"prefix": "]"}, errors.UnsatisfiableInfill, r"byte 0 of the prefix"),
    ],
)
def test_bad_input_is_one_clear_line(slots, options, error, line) -> None:
    grammar = COMPILER.json_schema({"type": "array"}, whitespace="compact")
    with pytest.raises(error, match=line) as raised:
        grammar.canvas(slots, **options)
    assert "\n" not in str(raised.value)


def test_slots_and_tokens_are_checked() -> None:
    canvas = COMPILER.json_schema({"type": "array"}, whitespace="compact").canvas(4)
    for slot, token in ((4, 0), (-1, 0), (0, END + 1), (0, -1)):
        with pytest.raises(ValueError, match="outside the vocabulary|of a canvas of 4 slots"):
            canvas.allows(slot, token)
    limited = COMPILER.lark("start: a\na[max_tokens=2]: /a+/")
    with pytest.raises(errors.GrammarError, match="limits tokens"):
        limited.canvas(4)


# ---- no dead ends ----


@pytest.mark.parametrize("seed", range(6))
def test_no_order_of_allowed_tokens_ends_in_a_dead_end(seed) -> None:
    source = random.Random(seed)
    schema = {
        "type": "object",
        "properties": {"a": {"type": "array", "items": {"enum": [1, 0.1, "b"]}}, "b": {"type": "string"}},
        "required": ["b"],
    }
    grammar = COMPILER.json_schema(schema, whitespace="compact")
    canvas = grammar.canvas(20)
    order = list(range(20))
    source.shuffle(order)
    for slot in order:
        tokens = list(range(END + 1))
        source.shuffle(tokens)
        token = next(t for t in tokens if canvas.allows(slot, t))
        canvas.set(slot, token)
    text = canvas.text([t for t in canvas.tokens if t is not None])
    assert verdict(grammar, text)
    assert canvas.masked == [] and canvas.possible() is True


def test_a_canvas_of_a_real_vocabulary(tekken) -> None:
    vocabulary = sg.Vocabulary.from_bytes(tekken.text, tekken.eos, tekken.special)
    schema = {"type": "object", "properties": {"city": {"enum": ["Paris", "Oslo"]}, "n": {"type": "integer"}},
              "required": ["city", "n"], "additionalProperties": False}  # fmt: skip
    grammar = sg.Compiler(vocabulary).json_schema(schema, whitespace="compact")
    canvas = grammar.canvas(16)
    source = random.Random(1)
    for slot in source.sample(range(16), 16):
        mask = sg.allocate_bitmask(1, vocabulary.vocab_size)
        canvas.fill_bitmask(mask, slot)
        bits = np.unpackbits(np.asarray(mask).view(np.uint8), bitorder="little")
        canvas.set(slot, int(source.choice(np.flatnonzero(bits).tolist())))
    value = json.loads(canvas.text())
    assert value["city"] in ("Paris", "Oslo") and isinstance(value["n"], int)


def test_a_filling_of_many_slots_takes_little_work(tekken) -> None:
    vocabulary = sg.Vocabulary.from_bytes(tekken.text, tekken.eos, tekken.special)
    schema = {"type": "object", "required": ["city", "n"], "properties": {"city": {"type": "string"},
              "n": {"type": "integer"}, "tags": {"type": "array", "items": {"type": "string"}}}}  # fmt: skip
    grammar = sg.Compiler(vocabulary, limits=sg.Limits(mask=400_000)).json_schema(schema)
    tokens = [
        tekken.text.index(text) for text in (b'"', b",", b":", b"{", b"}", b" a", b'":', b'",', b"1", b"b")
    ]
    canvas = grammar.canvas(48)
    source = random.Random(2)
    verdicts = []
    for slot in source.sample(range(48), 48):
        for token in source.sample(tokens, 6):
            verdicts.append(canvas.commit(slot, token))
            if verdicts[-1]:
                break
    # The keys of the object must differ, so each yes needs a filling. 400,000 units pay for it.
    assert verdicts.count(None) < 12 and verdicts.count(True) > 30
