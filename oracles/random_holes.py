"""Random holes in texts of random grammars, compared with enumeration.

Two laws. `infill`: a middle belongs to it exactly if prefix, middle and suffix together belong to the
grammar; live bytes are those that can still become a middle; masks equal trials of every token and are never
empty. `can_complete`: True comes with a text that fits the parts and belongs to the grammar; False means that
no short text fits. `oracles.random_grammars.Oracle` decides membership and shares no code with the engine.

`python -m oracles.random_holes DIALECT FIRST COUNT` checks seeds and prints one line per failure.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

import structgen as sg
from oracles import oracle, strategies
from oracles.random_grammars import (
    VOCABULARIES,
    Mismatch,
    compiled,
    draw,
    membership,
    run_named,
    texts,
)
from oracles.strategies import Seeded, Source
from structgen import errors

LONGEST = 5


def check_infill(
    grammar: sg.CompiledGrammar,
    prefix: bytes,
    suffix: bytes,
    middles: Iterable[bytes],
    inside: Callable[[bytes], bool],
    source: Source,
    closed: bool = True,
) -> int:
    """Checks middles, their beginnings, masks and completions of one hole. Returns the number of right
    middles.

    `middles`: the middles to try; `inside`: whether a whole text belongs to the grammar; `closed`: every byte
    of a text is a token.
    """
    middles = list(middles)
    right = {m for m in middles if inside(prefix + m + suffix)}
    where = f"{prefix!r} | {suffix!r}"
    try:
        found = grammar.infill(prefix, suffix)
    except errors.UnsatisfiableInfill as error:
        if right:
            raise Mismatch("infill refused", f"{where}: {min(right, key=len)!r} fits: {error}") from None
        text = prefix if error.part == "prefix" else suffix
        if not 0 <= error.offset <= len(text):
            raise Mismatch("infill place", f"{where}: {error}") from None
        return 0
    begun = {m[:n] for m in right for n in range(len(m) + 1)}
    for middle in middles:
        matcher = found.matcher()
        alive = matcher.accept_bytes(middle)
        if (alive and matcher.is_accepting()) != (middle in right):
            raise Mismatch("infill", f"{where}: {middle!r} is {'missed' if middle in right else 'taken'}")
        if middle in begun and not alive:
            raise Mismatch("infill", f"{where}: the beginning {middle!r} is missed")
        if alive and middle not in begun:
            whole = prefix + middle + matcher.shortest_completion() + suffix
            if len(whole) <= 12 and not inside(whole):
                raise Mismatch("infill dead end", f"{where}: {middle!r} is live, and {whole!r} is wrong")
    size = len(found.vocabulary)
    for _ in range(2):
        matcher, text = found.matcher(), b""
        for _ in range(6):
            try:
                mask = oracle.mask_of(matcher, size)
            except errors.VocabularyError:
                if closed:
                    raise
                break
            if not (mask == oracle.naive_mask(matcher, size)).all():
                raise Mismatch("infill mask", f"{where}: after {text!r}: {mask.nonzero()[0].tolist()}")
            if not mask.any():
                if closed:
                    raise Mismatch("infill dead end", f"{where}: after {text!r}")
                break
            token = int(source.pick(np.flatnonzero(mask).tolist()))
            if not matcher.accept_token(token):
                raise Mismatch("infill mask", f"{where}: after {text!r}: token {token} is refused")
            if token in found.vocabulary.eos_token_ids:
                break
            text += found.vocabulary.decode([token])
    return len(right)


def fits(parts: Sequence[Any], text: bytes, tokens: Sequence[bytes]) -> bool:
    """Returns whether a text consists of the parts, in order."""
    places = {0}
    for part in parts:
        if isinstance(part, bytes):
            places = {p + len(part) for p in places if text.startswith(part, p)}
        elif part.unit == "bytes":
            most = len(text) if part.most is None else part.most
            places = {q for p in places for q in range(p + part.least, min(len(text), p + most) + 1)}
        else:
            for _ in range(part.least):
                places = {p + len(t) for p in places for t in tokens if t and text.startswith(t, p)}
    return len(text) in places


def check_parts(
    grammar: sg.CompiledGrammar,
    parts: Sequence[Any],
    inside: Callable[[bytes], bool],
    short: Iterable[bytes],
    tokens: Sequence[bytes],
    sure: bool = True,
) -> bool | None:
    """Checks one call of `can_complete`. `short`: the grammar's short texts; `sure`: the answer None counts
    as wrong."""
    found = grammar.can_complete(parts)
    shown = " ".join(map(repr, parts))
    if found.verdict is None:
        if sure:
            raise Mismatch("parts unknown", shown)
    elif found.verdict:
        if not fits(parts, found.text, tokens):
            raise Mismatch("parts", f"{shown}: {found.text!r} is not made of them")
        if not inside(found.text):
            raise Mismatch("parts", f"{shown}: {found.text!r} is no text of the grammar")
    else:
        for text in short:
            if fits(parts, text, tokens):
                raise Mismatch("parts", f"{shown}: {text!r} is one")
    return found.verdict


def random_parts(source: Source, text: bytes, letters: str) -> list[Any]:
    """Returns a text with some stretches cut out, and sometimes with a changed byte."""
    places = sorted(source.integer(0, len(text)) for _ in range(2 * source.integer(1, 3)))
    parts: list[Any] = []
    at = 0
    for begin, end in itertools.batched(places, 2) if hasattr(itertools, "batched") else _pairs(places):
        parts.append(text[at:begin])
        n = end - begin
        kind = source.integer(0, 4)
        if kind <= 1:
            parts.append(sg.Gap())
        elif kind == 2:
            least = source.integer(0, n)
            parts.append(sg.Gap(least, source.pick((None, n, n + 1, least))))
        else:
            parts.append(sg.Gap(source.integer(0, 3), unit="tokens"))
        at = end
    parts.append(text[at:])
    if source.chance(25) and letters:
        i = source.integer(0, len(parts) - 1)
        if isinstance(parts[i], bytes) and parts[i]:
            k = source.integer(0, len(parts[i]) - 1)
            parts[i] = parts[i][:k] + source.pick(letters).encode() + parts[i][k + 1 :]
    return parts


def _pairs(items: Sequence[int]) -> Iterable[tuple[int, int]]:
    return zip(items[::2], items[1::2], strict=True)


def check(seed: int, dialect: str, made: Sequence[Any]) -> tuple[int, int]:
    """Returns (right middles, patterns that can be completed) of one grammar."""
    source = Seeded(seed)
    grammar = draw(source, dialect)
    inside = membership(grammar, dialect)
    which = source.integer(0, len(made) - 1)
    found = compiled(grammar, dialect, made[which])
    if found is None:
        return 0, 0
    every = [t.encode() for t in texts(LONGEST)]
    short = [t for t in every if inside(t)]
    tokens = VOCABULARIES[which]
    true = completed = 0
    for _ in range(4):
        text = source.pick(short) if short and source.chance(75) else source.pick(every)
        begin = source.integer(0, len(text))
        end = source.integer(begin, len(text))
        prefix, suffix = text[:begin], text[end:]
        room = LONGEST - len(prefix) - len(suffix)
        middles = [t for t in every if len(t) <= room]
        try:
            true += check_infill(found, prefix, suffix, middles, inside, source, closed=which != 1)
        except errors.BudgetExceeded as error:
            raise Mismatch("budget", str(error)) from None
    for _ in range(4):
        text = source.pick(short) if short and source.chance(75) else source.pick(every)
        parts = random_parts(source, text, "abc")
        completed += bool(check_parts(found, parts, inside, short, tokens))
    return true, completed


# ---- schemas ----

# Every byte, and tokens that cross the borders of a schema's parts.
JSON_TOKENS = (
    *(bytes([b]) for b in range(256)),
    *(
        t.encode()
        for t in (
            '{"', '":', '"}', '",', ',"', '": "', '"a":', 'a"', "1}", "1,", "]}", "[1", "null", "tru",
            '"a":1,"a":1', '"b":1,"a', "\\u00", "\\", '"a', "é", "0.", "e1", "  ",
        )
    ),
    "é".encode()[1:] + b'"',
)  # fmt: skip


def written(found: sg.CompiledGrammar, source: Source, most: int = 60) -> bytes | None:
    """Returns a text of the grammar: tokens drawn from its masks, then a shortest completion."""
    matcher, text = found.matcher(), b""
    for _ in range(source.integer(0, most)):
        mask = oracle.mask_of(matcher, len(JSON_TOKENS) + 1)
        dull = [b for b in b" \t\r\n" if mask[b]]
        mask[dull] = source.chance(5)
        allowed = np.flatnonzero(mask[: len(JSON_TOKENS)]).tolist()
        if not allowed:
            break
        token = int(source.pick(allowed))
        if matcher.accept_token(token):
            text += JSON_TOKENS[token]
    try:
        return text + matcher.shortest_completion()
    except errors.BudgetExceeded:
        return None


def check_schema(seed: int, compiler: sg.Compiler) -> tuple[int, int, int]:
    """Returns (holes filled, patterns completed, unknown answers) of one schema."""
    source = Seeded(seed)
    document = strategies.any_schema(source)
    order = source.pick(("schema", "any"))
    whitespace = source.pick(("flexible", "compact", "one-blank", "pretty"))
    try:
        found = compiler.json_schema(document, property_order=order, whitespace=whitespace)
    except errors.GrammarError:
        return 0, 0, 0
    try:
        some = [t for _ in range(3) if (t := written(found, source)) is not None]
    except (errors.SchemaTooComplex, errors.BudgetExceeded):
        return 0, 0, 0

    def inside(text: bytes) -> bool:
        matcher = found.matcher()
        return matcher.accept_bytes(text) and matcher.is_accepting()

    filled = completed = unknown = 0
    size = len(JSON_TOKENS) + 1
    shown = f"{json.dumps(document)} {order} {whitespace}"
    for _ in range(4 if some else 0):
        one, other = source.pick(some), source.pick(some)
        begin = source.integer(0, len(one))
        prefix, suffix = one[:begin], other[source.integer(0, len(other)) :]
        if source.chance(60):
            suffix = one[source.integer(begin, len(one)) :]
        middles = {one[begin : len(one) - len(suffix)]} if one.endswith(suffix) else set()
        middles |= {
            t[b:e] for t in some for b, e in _pairs(sorted(source.integer(0, len(t)) for _ in range(8)))
        }
        right = {m for m in middles if inside(prefix + m + suffix)}
        where = f"{shown}: {prefix!r} | {suffix!r}"
        answer = found.can_complete([prefix, sg.Gap(), suffix])
        if answer.verdict is False and right:
            raise Mismatch("parts", f"{where}: {right} fit")
        if answer.verdict and not (answer.text.startswith(prefix) and inside(answer.text)):
            raise Mismatch("parts", f"{where}: {answer.text!r}")
        unknown += answer.verdict is None
        completed += answer.verdict is True
        try:
            hole = found.infill(prefix, suffix)
        except errors.UnsatisfiableInfill as error:
            if right or answer.verdict:
                raise Mismatch("infill refused", f"{where}: {right} {answer} {error}") from None
            continue
        except (errors.BudgetExceeded, errors.SchemaTooComplex):
            unknown += 1
            continue
        if answer.verdict is False:
            raise Mismatch("infill or parts", f"{where}: no, and there is a grammar")
        for middle in middles:
            matcher = hole.matcher()
            taken = matcher.accept_bytes(middle) and matcher.is_accepting()
            if taken != (middle in right):
                raise Mismatch("infill", f"{where}: {middle!r} is {'taken' if taken else 'missed'}")
        matcher, text = hole.matcher(), b""
        for step in range(12):
            mask = oracle.mask_of(matcher, size)
            if not mask.any():
                raise Mismatch("infill dead end", f"{where}: after {text!r}")
            if step % 4 == 0 and not (mask == oracle.naive_mask(matcher, size)).all():
                wrong = np.flatnonzero(mask != oracle.naive_mask(matcher, size)).tolist()
                raise Mismatch("infill mask", f"{where}: after {text!r}: {wrong}")
            token = int(source.pick(np.flatnonzero(mask).tolist()))
            if not matcher.accept_token(token):
                raise Mismatch("infill mask", f"{where}: after {text!r}: token {token} is refused")
            if token == size - 1:
                break
            text += JSON_TOKENS[token]
        if not matcher.is_terminated():
            try:
                text += matcher.shortest_completion()
            except errors.BudgetExceeded:
                continue
        filled += 1
        if not inside(prefix + text + suffix):
            raise Mismatch("infill dead end", f"{where}: {text!r} is taken, and the whole is wrong")
    for _ in range(2 if some else 0):
        parts = random_parts(source, source.pick(some), 'a"1,')
        verdict = check_parts(found, parts, inside, some, JSON_TOKENS, sure=False)
        completed, unknown = completed + (verdict is True), unknown + (verdict is None)
    return filled, completed, unknown


def json_compiler() -> sg.Compiler:
    return sg.Compiler(sg.Vocabulary.from_bytes([*JSON_TOKENS, b""], eos_token_ids=[len(JSON_TOKENS)]))


if __name__ == "__main__":
    run_named(check, check_schema, json_compiler)
