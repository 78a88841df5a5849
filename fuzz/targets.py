"""What a fuzzer feeds: one function for each text that structgen reads from outside.

In: bytes. Out: nothing, if the text was read or refused with the right exception within the time; else an
exception that names what is wrong. A text that is read is also used: a few tokens, a mask, a fork, each
checked against the others. Cost: milliseconds.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import random
import struct
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

import structgen
from structgen import Compiler, Vocabulary
from structgen.errors import (
    BudgetExceeded,
    SchemaTooComplex,
    StructgenError,
    UnsatisfiableBudget,
    UnsatisfiableCondition,
    UnsatisfiableInfill,
)

SECONDS = 60.0 if "STRUCTGEN_CORE" in os.environ else 10.0  # of processor time; instrumented code is slow
WORDS = ["{", "}", '"', '{"', '": ', ", ", "true", "null", "if", "abc", "def", "  ", "\n", "12", "é", "日本"]
TOKENS = [bytes([i]) for i in range(256)] + [w.encode() for w in WORDS] + [b"\xe6\x97", b"", b""]
VOCABULARY = Vocabulary.from_bytes(
    TOKENS,
    eos_token_ids=len(TOKENS) - 2,
    special_token_ids={"</s>": len(TOKENS) - 2, "<|tool|>": len(TOKENS) - 1},
)
_compiler: list[Compiler] = []


@atexit.register
def _release() -> None:
    """Before the interpreter ends: nanobind counts what is left then."""
    _compiler.clear()
    VOCABULARY._core_object = None


class Wrong(AssertionError):
    """What a text did that no text may do."""


def compiler() -> Compiler:
    """Returns a small cache, and a fresh one every thousand texts: what one text left behind is found
    again."""
    if not _compiler or len(_compiler) > 1_000:
        limits = structgen.Limits(compile=300_000, mask=300_000, memory=8 << 20)
        _compiler[:] = [Compiler(VOCABULARY, limits=limits)]
    _compiler.append(_compiler[0])
    return _compiler[0]


def used(grammar: structgen.CompiledGrammar, seed: int) -> None:
    """A short walk: a mask bit is an accepted token, and no mask is empty."""
    matcher = grammar.matcher()
    mask = np.zeros((1, (VOCABULARY.vocab_size + 31) // 32), np.int32)
    for step in range(8):
        matcher.fill_bitmask(mask)
        bits = np.unpackbits(mask.view(np.uint8), bitorder="little")[: VOCABULARY.vocab_size]
        allowed = np.flatnonzero(bits)
        if not allowed.size:
            raise Wrong(f"a dead end after {step} tokens")
        token = int(allowed[(seed >> step) % allowed.size])
        other = int((seed >> (2 * step)) % VOCABULARY.vocab_size)
        if matcher.fork().accept_token(other) != bool(bits[other]):
            raise Wrong(f"token {other} is masked {bits[other]} and accepted otherwise")
        if not matcher.accept_token(token):
            raise Wrong(f"token {token} is allowed and refused")
        if matcher.is_terminated():
            break
        forced = [] if step else matcher.forced_tokens()
        if matcher.validate_tokens(forced) != len(forced):
            raise Wrong("forced tokens are refused")
    matcher.captures()
    matcher.rollback(matcher.num_steps)


def _compiles(build: Callable[[Compiler, str], structgen.CompiledGrammar]) -> Callable[[bytes], None]:
    def target(data: bytes) -> None:
        start = time.process_time()
        with contextlib.suppress(StructgenError, UnicodeError):
            used(build(compiler(), data.decode("utf-8", "surrogateescape")), len(data) * 2_654_435_761)
        if time.process_time() - start > SECONDS:
            raise Wrong(f"took {time.process_time() - start:.1f} s")

    return target


_KINDS = ("json_schema", "regex", "gbnf", "lark")


def holes(data: bytes) -> None:
    """The first byte chooses the kind of grammar, the second how its text is cut; the rest is the grammar.

    A text that the grammar has must fit wherever it is cut: between its two ends, into a canvas of its own
    tokens, within a budget of them, under a condition that it meets.
    """
    start = time.process_time()
    with contextlib.suppress(StructgenError, UnicodeError):
        kind, chance = _KINDS[data[0] % 4 if data else 0], random.Random(data[1] if data[1:] else 0)
        grammar = getattr(compiler(), kind)(data[2:].decode("utf-8", "surrogateescape"))
        tokens = _text_of(grammar, chance)
        for check in (_infilled, _put_on_a_canvas, _within_a_budget, _conditioned):
            with contextlib.suppress(BudgetExceeded, SchemaTooComplex):
                check(grammar, tokens, chance)
    if time.process_time() - start > SECONDS:
        raise Wrong(f"took {time.process_time() - start:.1f} s")


def _text_of(grammar: structgen.CompiledGrammar, chance: random.Random) -> list[int]:
    """Returns the tokens of a text: some at random, then the shortest completion byte by byte."""
    matcher, mask = grammar.matcher(), structgen.allocate_bitmask(1, VOCABULARY.vocab_size)
    tokens: list[int] = []
    ends = VOCABULARY.eos_token_ids
    for _ in range(chance.randrange(8)):
        matcher.fill_bitmask(mask)
        bits = np.unpackbits(np.asarray(mask).view(np.uint8), bitorder="little")[: VOCABULARY.vocab_size]
        token = int(chance.choice(np.flatnonzero(bits)))
        if token in ends:
            return tokens
        matcher.accept_token(token)
        tokens.append(token)
    return tokens + list(matcher.shortest_completion())  # ids of single bytes are the bytes


def _infilled(grammar: structgen.CompiledGrammar, tokens: list[int], chance: random.Random) -> None:
    text = VOCABULARY.decode(tokens)
    i, j = sorted(chance.randint(0, len(text)) for _ in range(2))
    if grammar.can_complete([text[:i], structgen.Gap(), text[j:]]).verdict is False:
        raise Wrong(f"nothing is said to fit {text[:i]!r} and {text[j:]!r}, and {text[i:j]!r} does")
    try:
        middles = grammar.infill(text[:i], text[j:])
    except UnsatisfiableInfill:
        raise Wrong(
            f"there is no middle for {text[:i]!r} and {text[j:]!r}, and {text[i:j]!r} is one"
        ) from None
    matcher = middles.matcher()
    if not (matcher.accept_bytes(text[i:j]) and matcher.is_accepting()):
        raise Wrong(f"{text[i:j]!r} is refused between {text[:i]!r} and {text[j:]!r}")
    used(middles, chance.getrandbits(32))
    other = VOCABULARY.decode(_text_of(middles, chance))
    whole = grammar.matcher()
    if not (whole.accept_bytes(text[:i] + other + text[j:]) and whole.is_accepting()):
        raise Wrong(f"{other!r} is a middle of {text[:i]!r} and {text[j:]!r}, and the whole is refused")


def _put_on_a_canvas(grammar: structgen.CompiledGrammar, tokens: list[int], chance: random.Random) -> None:
    if len(tokens) > 16_000:  # a canvas has at most 16,384 slots
        return
    canvas = grammar.canvas(len(tokens) + chance.randrange(3))
    order = list(enumerate(tokens))
    chance.shuffle(order)
    for slot, token in order[:6]:
        told = canvas.commit(slot, token)
        if told is False:
            raise Wrong(f"token {token} of {tokens} is refused in slot {slot}, as if nothing could follow")
        if told is None:
            return
    matcher = grammar.matcher()
    text = canvas.text()
    if not (matcher.accept_bytes(text) and matcher.is_accepting()):
        raise Wrong(f"a canvas was completed to {text!r}, which is no text of the grammar")


def _within_a_budget(grammar: structgen.CompiledGrammar, tokens: list[int], chance: random.Random) -> None:
    left = len(tokens) + 1
    try:
        matcher = grammar.matcher(max_tokens=left)
    except UnsatisfiableBudget:
        raise Wrong(f"a budget of {left} is refused, which {tokens} takes") from None
    mask = structgen.allocate_bitmask(1, VOCABULARY.vocab_size)
    for at in range(left):
        try:
            matcher.fill_bitmask(mask)
        except UnsatisfiableBudget:
            raise Wrong(f"a budget of {left} tokens was lost behind {at}") from None
        bits = np.unpackbits(np.asarray(mask).view(np.uint8), bitorder="little")[: VOCABULARY.vocab_size]
        matcher.accept_token(int(chance.choice(np.flatnonzero(bits))))
        if matcher.is_terminated():
            return
    raise Wrong(f"a budget of {left} tokens was passed")


def _conditioned(grammar: structgen.CompiledGrammar, tokens: list[int], chance: random.Random) -> None:
    text = VOCABULARY.decode(tokens)
    i, j = sorted(chance.randint(0, len(text)) for _ in range(2))
    absent = bytes(chance.choice(b'ab"1,\xff') for _ in range(2))
    conditions = [structgen.max_bytes(len(text)), structgen.min_bytes(len(text))]
    if i < j:
        conditions.append(structgen.containing(text[i:j]))
    if absent not in text:
        conditions.append(structgen.without(absent))
    condition = chance.choice(conditions)
    try:
        conditioned = grammar & condition
    except UnsatisfiableCondition:
        raise Wrong(f"no text is said to meet {condition}, and {text!r} does") from None
    matcher = conditioned.matcher()
    if not (matcher.accept_bytes(text) and matcher.is_accepting()):
        raise Wrong(f"{text!r} meets {condition} and is refused")
    used(conditioned, chance.getrandbits(32))


def _spec(data: str) -> object:
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        return data


def tokenizer_file(data: bytes) -> None:
    """The first byte chooses the name, the rest is the file."""
    name = ("tokenizer.json", "tokenizer.model", "qwen.tiktoken", "tekken.json")[data[0] % 4 if data else 0]
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / name
        file.write_bytes(data[1:])
        try:
            vocabulary = Vocabulary.from_file(file)
            vocabulary.encode("a b")
            Compiler(vocabulary).regex("a|b").matcher().tokens_needed()
        except (StructgenError, OSError):
            pass


_saved: list[bytes] = []


def saved_file() -> bytes:
    if not _saved:
        with tempfile.TemporaryDirectory() as folder:
            VOCABULARY.save(Path(folder) / "v")
            _saved.append((Path(folder) / "v").read_bytes())
    return _saved[0]


def _edited(file: bytes, data: bytes) -> bytes:
    """Returns places of 3 bytes with a byte each, a length; or the file itself."""
    if data.startswith(file[:4]):
        return data
    whole = bytearray(file)
    for i in range(0, len(data) - 3, 4):
        (place,) = struct.unpack_from("<I", data[i : i + 3] + b"\0")
        whole[place % len(whole)] = data[i + 3]
    if len(data) % 4 == 3:
        del whole[int.from_bytes(data[-3:], "little") % len(whole) :]
    return bytes(whole)


def saved_vocabulary(data: bytes) -> None:
    """Edits of a file that was saved: what is read is what was written."""
    whole = _edited(saved_file(), data)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "v"
        file.write_bytes(whole)
        try:
            loaded = Vocabulary.load(file)
        except StructgenError:
            return
        if list(loaded.tokens) != list(VOCABULARY.tokens):
            raise Wrong("a damaged file was read")


def decimals(data: bytes) -> None:
    """Lines of digits: a schema with them as multiple, bounds and value, which the text must agree with."""
    lines = [line for line in data.decode("utf-8", "replace").split("\n") if line][:4]
    for name, line in zip(("multipleOf", "minimum", "exclusiveMaximum", "const"), lines, strict=False):
        _SCHEMA(b'{"%s":%s}' % (name.encode(), line.encode()))
    if len(lines) > 1:
        _SCHEMA(b'{"type":"number","multipleOf":%s,"minimum":%s}' % tuple(x.encode() for x in lines[:2]))


_trie: list[bytes] = []


def saved_trie(data: bytes) -> None:
    """Edits of a file that `sg.sample` saved, as in saved_vocabulary()."""
    from structgen.sampling import Trie, load_trie, save_trie

    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "t"
        if not _trie:
            made = Trie()
            structgen.sample(None, "a number", {"type": "integer"}, n=2, seed=1, max_tokens=6, trie=made)
            save_trie(made, file)
            _trie.append(file.read_bytes())
        file.write_bytes(_edited(_trie[0], data))
        try:
            for node in load_trie(file).nodes():
                repr(node)
        except (StructgenError, ValueError):
            pass


_SCHEMA = _compiles(lambda c, text: c.json_schema(text))
TARGETS: dict[str, Callable[[bytes], None]] = {
    "json_schema": _SCHEMA,
    "decimals": decimals,
    "regex": _compiles(lambda c, text: c.regex(text)),
    "gbnf": _compiles(lambda c, text: c.gbnf(text)),
    "lark": _compiles(lambda c, text: c.lark(text)),
    "holes": holes,
    "structural_tag": _compiles(lambda c, text: c.structural_tag(_spec(text))),
    "tokenizer_file": tokenizer_file,
    "saved_vocabulary": saved_vocabulary,
    "saved_trie": saved_trie,
}
