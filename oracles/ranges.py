"""Checks that a grammar with `max_bytes` or `min_bytes` has exactly the enumerated texts, in every way of
use.

Input: random schemas and patterns with few texts, and a range of bytes. Output: an AssertionError that names
seed, way of use and text. Time: milliseconds per way; a grammar of more than 800 texts is skipped.

The core counts the bytes of a range beside the parse states (csrc/budget/range.cc), so the grammar's
productions do not show the range. Code that reads only the productions ignores the range. The oracle is a
list: the texts of the plain grammar, found byte by byte through its masks, restricted to the range. WAYS has
one row for each way in which a grammar is used. A new way needs a new row.
"""

from __future__ import annotations

import pickle
import random
from collections.abc import Callable
from typing import Any

import structgen as sg

from . import closed, harness, histories, oracle
from .histories import END, PIECES, VOCABULARY
from .strategies import Seeded, Source

MOST = 16  # bytes of the longest checked text
Texts = set[bytes]


def language(grammar: sg.CompiledGrammar, most: int, texts: int = 800) -> Texts | None:
    """Returns the texts of at most `most` bytes, or None if there are more than `texts`."""
    found: Texts = set()
    waiting = [(grammar.matcher(), b"")]
    begun = 0
    while waiting:
        matcher, text = waiting.pop()
        begun += 1
        if matcher.is_accepting():
            found.add(text)
        if len(found) > texts or begun > 8 * texts:
            return None
        if len(text) < most:
            for byte in oracle.mask_of(matcher, END + 1)[:256].nonzero()[0].tolist():
                fork = matcher.fork()
                if fork.accept_bytes(bytes([byte])):
                    waiting.append((fork, text + bytes([byte])))
    return found


def schema(s: Source, depth: int = 2) -> Any:
    if depth == 0 or s.chance(30):
        return s.pick(
            (
                {"enum": ["a", "ab", 1]},
                {"type": "string", "pattern": "^(ab?)*$"},
                {"type": "string", "maxLength": 3, "pattern": "^[ab]*$"},
                {"type": "boolean"},
                {"enum": [1, 12, 120]},
                {"type": "string", "pattern": "^(aa)*b$"},
            )
        )
    if s.chance(40):
        items = {"type": "array", "items": schema(s, depth - 1), "minItems": s.integer(0, 1)}
        return {**items, "maxItems": s.integer(1, 3)} | ({"uniqueItems": True} if s.chance(20) else {})
    if s.chance(60):
        return closed({"a": schema(s, depth - 1), "b": schema(s, depth - 1)}, s.some(("a", "b"), 0, 2))
    return {"anyOf": [schema(s, depth - 1), schema(s, depth - 1)]}


def plain(seed: int, using: sg.Compiler) -> sg.CompiledGrammar:
    source = Seeded(seed)
    if source.chance(30):
        return using.regex(source.pick(("[ab]{0,5}c?", "(aa)*b|c{7}", "a(b|cc)*", "(abc|de)*f?")))
    if source.chance(15):
        return using.gbnf(
            source.pick(('root ::= "a" root "b" | "ab"', 'root ::= "[" (root ","?)* "]" | "1"'))
        )
    return using.json_schema(schema(source), whitespace="compact", strings="plain")


def held_by(grammar: sg.CompiledGrammar, texts: Texts, most: int) -> None:
    """Checks that the grammar has exactly these texts among all of at most `most` bytes."""
    found = language(grammar, most)
    assert found is None or found == texts, sorted(found ^ texts)[:3]


def again(grammar: sg.CompiledGrammar, texts: Texts, most: int, source: random.Random) -> None:
    held_by(pickle.loads(pickle.dumps(grammar)), texts, most)


def narrowed(grammar: sg.CompiledGrammar, texts: Texts, most: int, source: random.Random) -> None:
    for condition, holds in (
        (sg.without("b"), lambda t: b"b" not in t),
        (~sg.containing("a"), lambda t: b"a" not in t),
        (sg.min_bytes(4), lambda t: len(t) >= 4),
        (~sg.max_bytes(5) | sg.max_bytes(2), lambda t: not 2 < len(t) <= 5),
    ):
        right = {t for t in texts if holds(t)}
        try:
            made = grammar & condition
        except sg.UnsatisfiableCondition:
            assert not right, condition
            continue
        held_by(made, right, most)


def reasoned(grammar: sg.CompiledGrammar, texts: Texts, most: int, source: random.Random) -> None:
    made = sg.Compiler(grammar.vocabulary).with_reasoning
    try:
        whole = made(grammar, sg.Reasoning("<", ">", gap=""))
    except sg.GrammarError as error:
        assert "condition on rules" in str(error)
        return
    for text in source.sample(sorted(texts), min(4, len(texts))):
        assert harness.verdict(whole, text) and harness.verdict(whole, b"<" + b"a" * 30 + b">" + text), text
        assert not harness.verdict(whole, b"<>" + text + text) or text + text in texts, text
    assert not any(harness.verdict(whole, t) for t in (b"", b"<>") if b"" not in texts)


def combined(grammar: sg.CompiledGrammar, texts: Texts, most: int, source: random.Random) -> None:
    other = sg.Compiler(grammar.vocabulary).regex("[ -z|}{]{0,7}")
    right = {t for t in texts if len(t) <= 7}
    for a, b in ((grammar, other), (other, grammar)):
        try:
            made = a & b
        except sg.UnsatisfiableCondition:
            assert not right
        except sg.GrammarError:
            continue
        else:
            held_by(made, right, most)


def compared(grammar: sg.CompiledGrammar, texts: Texts, most: int, source: random.Random) -> None:
    one = source.choice(sorted(texts))
    assert sg.contains(grammar, sg.Compiler(grammar.vocabulary).choice([one.decode()])).holds is not False
    inside = sg.contains(sg.Regex(f"(?s:.){{0,{max(map(len, texts)) - 1}}}"), grammar)
    assert inside.holds is not True
    assert sg.count(grammar, max_bytes=most) == len(texts)
    for example in sg.examples(grammar, 3):
        assert (example.text.encode() in texts) is example.valid, example


def holes(grammar: sg.CompiledGrammar, texts: Texts, most: int, source: random.Random) -> None:
    text = source.choice(sorted(texts))
    i, j = sorted((source.randint(0, len(text)), source.randint(0, len(text))))
    begin, end = text[:i], text[j:]
    fit = {t for t in texts if len(t) >= i + len(text) - j and t.startswith(begin) and t.endswith(end)}
    middles = {t[i : len(t) - len(end)] for t in fit}
    held_by(grammar.infill(begin, end), middles, most - i - len(end))
    done = grammar.can_complete([begin, sg.Gap(), end])
    assert done.verdict is not False and (done.text is None or done.text in fit)
    beyond = max(map(len, texts)) + 1
    assert grammar.can_complete([sg.Gap(beyond, most + 1)]).verdict is not True or beyond > most


def slots(grammar: sg.CompiledGrammar, texts: Texts, most: int, source: random.Random) -> None:
    text = source.choice(sorted(texts))
    canvas = grammar.canvas(len(text))
    for at in source.sample(range(len(text)), len(text) // 2):
        assert canvas.set(at, text[at]) is not False, (text, at)
    tokens = canvas.complete()
    assert tokens is None or canvas.text(tokens) in texts


def budgets(grammar: sg.CompiledGrammar, texts: Texts, most: int, source: random.Random) -> None:
    """Checks the reported numbers of tokens, and texts under budgets of these numbers."""
    low, high = grammar.matcher().token_bounds()
    assert low <= high <= most + 1
    for left in (high, high + 2):
        walk, read = grammar.matcher(max_tokens=left), b""
        while not walk.is_terminated():
            row = oracle.mask_of(walk, END + 1)
            assert row.any(), (read, left)
            token = source.choice(row.nonzero()[0].tolist())
            assert walk.accept_token(token), (read, token)
            read += PIECES[token] if token < END else b""
        assert read in texts, read


def masks(grammar: sg.CompiledGrammar, texts: Texts, most: int, source: random.Random) -> None:
    """A mask has a bit exactly if some text of the range begins so. Accepting, drafts, forks and rollbacks
    agree."""
    for _ in range(3):
        matcher, read, row = grammar.matcher(), b"", None
        for _ in range(most + 1):
            row = oracle.mask_of(matcher, END + 1)
            right = [any(t.startswith(read + piece) for t in texts) for piece in PIECES] + [read in texts]
            got = row.astype(bool).tolist()
            wrong = [
                i for i in range(END + 1) if got[i] > right[i] or (matcher.mask_exact and got[i] < right[i])
            ]
            assert not wrong and any(got), (read, wrong[:5])
            for token in source.sample(range(END), 6):
                fork = matcher.fork()
                accepted = fork.accept_token(token)
                assert accepted <= right[token] and (accepted or not got[token]), (read, token)
                if accepted:
                    fork.rollback(1)
                    assert (oracle.mask_of(fork, END + 1) == row).all(), (read, token)
            token = source.choice(row.nonzero()[0].tolist())
            assert matcher.validate_tokens([token]) == 1 and matcher.accept_token(token)
            if token == END:
                break
            read += PIECES[token]
            assert read + matcher.shortest_completion() in texts, read


WAYS: dict[str, Callable[[sg.CompiledGrammar, Texts, int, random.Random], None]] = {
    "masks": masks,
    "budgets": budgets,
    "again": again,
    "narrowed": narrowed,
    "reasoned": reasoned,
    "combined": combined,
    "compared": compared,
    "holes": holes,
    "slots": slots,
}


def check(seed: int) -> tuple[int, int]:
    """Checks every way for one grammar and one range. Returns the number of checked ways, and of ways that
    were too hard."""
    source = random.Random(seed)
    using = sg.Compiler(VOCABULARY)
    try:
        grammar = plain(seed, using)
    except sg.UnsatisfiableSchema:
        return 0, 0
    least = source.choice([0, 0, 3, 6])
    most = source.randint(max(least, 2), MOST)
    every = language(grammar, most)
    if every is None:
        return 0, 0
    texts = {t for t in every if least <= len(t)}
    condition = sg.max_bytes(most) & sg.min_bytes(least) if least else sg.max_bytes(most)
    try:
        made = grammar & condition
    except sg.UnsatisfiableCondition:
        assert not texts, (seed, condition)
        return 1, 0
    except (sg.SchemaTooComplex, sg.BudgetExceeded):
        return 1, 1
    assert texts, (seed, condition)
    asked = limited = 0
    for name, way in WAYS.items():
        asked += 1
        try:
            way(made, texts, most, source)
        except (sg.BudgetExceeded, sg.SchemaTooComplex):
            limited += 1
        except AssertionError as error:
            raise AssertionError(f"seed {seed}, {name}, {grammar!r} & {condition}: {error}") from error

    def fresh() -> sg.CompiledGrammar:
        return plain(seed, sg.Compiler(VOCABULARY)) & condition

    def uncached() -> sg.CompiledGrammar:
        return plain(seed, sg.Compiler(VOCABULARY, cache=False)) & condition

    histories.differing(fresh, seed, walks=1, other=uncached if seed % 2 else None)
    return asked, limited


FORMATS = ("hostname", "ipv4", "ipv6", "email", "uri", "date", "uuid", "time", "date-time", "idn-email")


def growing(s: Source, depth: int = 2) -> Any:
    """Returns a schema whose texts have many lengths, or many states behind as many bytes."""
    kind = s.integer(0, 9)
    if kind == 0:
        return {"type": "string", "format": s.pick(FORMATS)}
    if kind == 1:
        return {"type": s.pick(("number", "integer", "boolean", "string"))}
    if kind == 2:
        return s.pick(({"const": ""}, {"const": 1}, {"enum": [1, 22, "abc"]}))
    if kind == 3:
        return {"type": "string", "maxLength": s.integer(0, 12)}
    if depth == 0 or kind == 4:
        return {"type": "string", "pattern": s.pick(("^(aa)*b$", "^[ab]{2,9}$", "^(ab?)*$"))}
    if kind < 8:
        items = {"type": "array", "items": growing(s, depth - 1), "minItems": s.integer(0, 2)}
        return items | ({"uniqueItems": True} if s.chance(30) else {})
    if s.chance(70):
        return closed({"x": growing(s, depth - 1), "y": growing(s, depth - 1)}, s.some(("x", "y"), 0, 2))
    values = growing(s, depth - 1)
    return {"type": "object", "minProperties": s.integer(0, 2), "additionalProperties": values}


def walk(seed: int) -> bool:
    """Follows masks of a random schema within a range of few bytes to an end. A mask has a token, and each
    of its tokens is accepted. Returns false if the schema or the condition is refused."""
    source, using = random.Random(seed), sg.Compiler(VOCABULARY)
    spellings = source.choice([{}, {"strings": "plain"}, {"numbers": "canonical"}])
    schema, whitespace = growing(Seeded(seed)), source.choice(["compact", "flexible"])
    try:
        plain = using.json_schema(schema, whitespace=whitespace, **spellings)
        least = len(plain.matcher().shortest_completion()) + source.choice([0, 1, 2, 5, 10, 20, 40, 80])
        most = least + source.choice([0, 0, 1, 3, 10])
        matcher = (plain & sg.min_bytes(least) & sg.max_bytes(most)).matcher()
    except (sg.UnsatisfiableSchema, sg.UnsatisfiableCondition, sg.BudgetExceeded, sg.SchemaTooComplex):
        return False
    text = b""
    while not matcher.is_terminated():
        tokens = oracle.mask_of(matcher, END + 1).nonzero()[0].tolist()
        for token in source.sample(tokens, min(3, len(tokens))):
            assert matcher.fork().accept_token(token), (seed, schema, least, most, text, token)
        token = source.choice(tokens)
        assert matcher.accept_token(token)
        text += PIECES[token] if token < END else b""
    assert least <= len(text) <= most and harness.verdict(plain, text), (seed, schema, least, most, text)
    return True
