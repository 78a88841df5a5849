"""Canvases of random grammars, compared with enumeration of every filling.

The law: a token may stand in a slot exactly if some filling of the canvas has the token there; the fillings
vary the number of slots, the end and the padding. Rows of bits equal these verdicts. After any commits of
allowed tokens, in any order, the canvas can be completed. `random_grammars.Oracle` or a plain matcher decides
membership; neither knows holes.

`python -m oracles.random_canvas DIALECT|schema FIRST COUNT` checks seeds and prints one line per failure.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import structgen as sg
from oracles import strategies
from oracles.random_grammars import VOCABULARIES, Mismatch, compiled, draw, membership, run_named
from oracles.strategies import Seeded, Source
from structgen import errors

# Tokens for the texts of small schemas; some bytes are no token.
JSON_TOKENS = (
    b'"', b"a", b"b", b"[", b"]", b"{", b"}", b",", b":", b"1", b"0", b".", b" ", b'"a"', b'":', b'{"', b"1,",
    b"1]", b'","', b"null", b"true", b"]}", b"\\u0061", b'"a":1',
)  # fmt: skip


def fillings(
    grammar: sg.CompiledGrammar,
    tokens: Sequence[bytes],
    slots: int,
    after: str,
    pad: int | None,
    inside: Callable[[bytes], bool],
    begins: Callable[[bytes], bool],
) -> set[tuple[int, ...]]:
    """Returns every row of tokens that is a text with end and padding. On an open canvas the row may also
    begin a text."""
    end = len(tokens)
    found: set[tuple[int, ...]] = set()

    def go_on(row: tuple[int, ...], text: bytes) -> None:
        rest = slots - len(row)
        if inside(text) and (rest > 0 or after == "end"):
            found.add(row + ((end,) + (end if pad is None else pad,) * (rest - 1) if rest else ()))
        if rest == 0:
            if after == "open":
                found.add(row)
            return
        for t, more in enumerate(tokens):
            if more and t != pad and begins(text + more):
                go_on((*row, t), text + more)

    go_on((), b"")
    return found


def row_of(canvas: sg.Canvas, slot: int) -> tuple[set[int], bool]:
    mask = sg.allocate_bitmask(1, canvas.vocabulary.vocab_size)
    exact = canvas.fill_bitmask(mask, slot)
    bits = np.unpackbits(np.asarray(mask).view(np.uint8), bitorder="little")
    return set(np.flatnonzero(bits[: canvas.vocabulary.vocab_size]).tolist()), exact


def check_canvas(
    grammar: sg.CompiledGrammar,
    slots: int,
    after: Any,
    pad: int | None,
    every: set[tuple[int, ...]],
    source: Source,
) -> tuple[int, int]:
    """Fills a canvas in a random order with allowed tokens. Returns the number of checks, and of undecided
    checks."""
    size = grammar.vocabulary.vocab_size
    try:
        canvas = grammar.canvas(slots, after=after, pad=pad)
    except errors.UnsatisfiableBudget:
        if every:
            raise Mismatch("canvas refused", f"{slots} {after}: {min(every)} fits") from None
        return 0, 0
    left = every
    order = list(range(slots))
    while order:
        slot = order.pop(source.integer(0, len(order) - 1))
        right = {row[slot] for row in left}
        shown = f"{slots} {after} {pad}: {canvas.tokens}, slot {slot}"
        told = {t: canvas.allows(slot, t) for t in range(size)}
        wrong = [t for t, verdict in told.items() if verdict is not None and verdict != (t in right)]
        if wrong:
            raise Mismatch("canvas", f"{shown}: token {wrong[0]} is {told[wrong[0]]}")
        bits, exact = row_of(canvas, slot)
        if bits - right:
            raise Mismatch("canvas row", f"{shown}: {min(bits - right)} is too much")
        if exact and bits != right:
            raise Mismatch("canvas row", f"{shown}: {min(right - bits)} is missing")
        yes = sorted(t for t, verdict in told.items() if verdict)
        if not yes:
            if right and all(verdict is not None for verdict in told.values()):
                raise Mismatch("canvas dead end", shown)
            break
        token = source.pick(yes)
        canvas.set(slot, token)
        left = {row for row in left if row[slot] == token}
        if source.chance(30):  # a slot that is set, cleared and set again is set
            canvas.clear(slot)
            canvas.set(slot, token)
        full = tuple(canvas.complete())
        if full not in left:
            raise Mismatch("canvas complete", f"{shown}: {full}")
    return canvas.asked, canvas.unknown


def check(seed: int, dialect: str, made: Sequence[Any]) -> tuple[int, int]:
    source = Seeded(seed)
    drawn = draw(source, dialect)
    inside = membership(drawn, dialect)
    which = source.integer(0, 1)
    grammar = compiled(drawn, dialect, made[which])
    if grammar is None:
        return 0, 0

    asked = unknown = 0
    for slots in range(4):
        after = source.pick(("end", "open"))
        pad = source.pick((None, None, 5 if which == 0 else None)) if after == "end" else None
        begins = lambda text: grammar.matcher().accept_bytes(text)  # noqa: E731
        every = fillings(grammar, VOCABULARIES[which], slots, after, pad, inside, begins)
        one, other = check_canvas(grammar, slots, after, pad, every, source)
        asked, unknown = asked + one, unknown + other
    return asked, unknown


def json_compiler() -> sg.Compiler:
    return sg.Compiler(sg.Vocabulary.from_bytes([*JSON_TOKENS, b""], eos_token_ids=[len(JSON_TOKENS)]))


def check_schema(seed: int, compiler: sg.Compiler) -> tuple[int, int]:
    source = Seeded(seed)
    document = strategies.any_schema(source)
    try:
        grammar = compiler.json_schema(
            document, whitespace="compact", property_order=source.pick(("schema", "any"))
        )
    except errors.GrammarError:
        return 0, 0

    def inside(text: bytes) -> bool:
        matcher = grammar.matcher()
        return matcher.accept_bytes(text) and matcher.is_accepting()

    asked = unknown = 0
    for slots in range(1, 5):
        after = source.pick(("end", "end", "open"))
        begins = lambda text: grammar.matcher().accept_bytes(text)  # noqa: E731
        every = fillings(grammar, JSON_TOKENS, slots, after, None, inside, begins)
        if len(every) > 20_000:
            break
        try:
            one, other = check_canvas(grammar, slots, after, None, every, source)
        except Mismatch as error:
            raise Mismatch(error.args[0], f"{json.dumps(document)}: {error.args[1]}") from None
        asked, unknown = asked + one, unknown + other
    return asked, unknown


if __name__ == "__main__":
    run_named(check, check_schema, json_compiler)
