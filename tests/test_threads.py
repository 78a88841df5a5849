"""Many Python threads at once: compiles and fills equal those of one thread, and batches equal single fills.

`make test-tsan` runs this file on a ThreadSanitizer build.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
from typing import Any

import numpy as np

import structgen
from oracles.harness import (
    WORDS,
    compiler,
    forty_schemas,
    settled_bytes,
    together,
    trail,
    vocabulary,
    walked,
)

THREADS, COMPILES = 16, 200


def check_compiles(cache_bytes: int) -> None:
    all_schemas = forty_schemas()
    jobs = [(all_schemas[i % len(all_schemas)], i) for i in range(COMPILES)]
    alone = [trail(compiler(), schema, seed) for schema, seed in jobs]
    shared = structgen.Compiler(vocabulary(WORDS), cache_bytes=cache_bytes)
    found: list[list[bytes]] = [[]] * COMPILES

    def work(index: int) -> None:
        for job in range(index, COMPILES, THREADS):
            found[job] = trail(shared, *jobs[job])

    together(work, THREADS)
    assert found == alone


def test_200_compiles_and_fills_at_once() -> None:
    check_compiles(64 << 20)


def test_the_same_while_the_cache_is_turned_over() -> None:
    """The cache is far too small. So the engine discards and makes again its grammars and tables while
    threads work, and the results stay those of one thread."""
    check_compiles(100_000)


def test_one_grammar_in_all_threads() -> None:
    """One thread makes the states and masks of a grammar, and the others read them without a lock."""
    schema = {"type": "array", "items": {"type": "object", "additionalProperties": {"type": "string"}}}
    alone = [trail(compiler(), schema, seed) for seed in range(THREADS)]
    shared = structgen.Compiler(vocabulary(WORDS))
    found: list[list[bytes]] = [[]] * THREADS

    def work(index: int) -> None:
        found[index] = trail(shared, schema, index)

    together(work, THREADS)
    assert found == alone


def test_limited_thoughts_in_all_threads() -> None:
    """States hold the tokens that no limit can interrupt, and all threads read these states without a
    lock."""

    def thinking() -> structgen.CompiledGrammar:
        made = compiler()
        answer = made.json_schema({"type": "array", "items": {"type": "integer"}})
        return made.with_reasoning(answer, structgen.Reasoning("[", "]", 40, required=True, gap=""))

    alone = [walked(thinking().matcher(), seed, 60) for seed in range(THREADS)]
    shared = thinking()
    assert together(lambda index: walked(shared.matcher(), index, 60), THREADS) == alone


def test_forks_of_one_text_in_all_threads() -> None:
    """A text keeps its items in a set beside the parse states, and each fork of the text has a set of its
    own."""

    def begun() -> structgen.Matcher:
        matcher = compiler().json_schema({"type": "array", "uniqueItems": True}).matcher()
        assert matcher.accept_bytes(b'[1,"a",[2],{"a":[1,2e1]},')
        return matcher

    alone = [walked(begun(), seed, 60) for seed in range(THREADS)]
    one = begun()
    forks = [one.fork() for _ in range(THREADS)]
    assert together(lambda index: walked(forks[index], index, 60), THREADS) == alone


def test_batches_from_many_threads_are_single_fills() -> None:
    """Eight batches, each with threads of its own, ask at once for masks that no thread has made."""
    single = structgen.allocate_bitmask(len(forty_schemas()), WORDS.size)
    for row, schema in enumerate(forty_schemas()):
        compiler().json_schema(schema).matcher().fill_bitmask(single, row)
    shared = structgen.Compiler(vocabulary(WORDS))
    grammars = [shared.json_schema(schema) for schema in forty_schemas()]

    def work(index: int) -> None:
        own = [grammar.matcher() for grammar in grammars]
        mask = structgen.allocate_bitmask(len(own), WORDS.size)
        for threads in (5, 2, 1):
            np.asarray(mask)[:] = index
            structgen.fill_bitmasks(own, mask, threads=threads)
            np.testing.assert_array_equal(np.asarray(mask), np.asarray(single))

    together(work, 8)


def test_grammars_are_freed_behind_the_back_of_compiles() -> None:
    """A full cache frees grammars while other threads compile. Grammars that matchers hold keep working, in a
    forked child, too."""
    budget = 1 << 20
    using = compiler(cache_bytes=budget)
    held = [(s, using.json_schema(s).matcher()) for s in forty_schemas()]
    dropped = False
    for i in range(400):
        schema = {"type": "object", "properties": {f"k{i}": {"type": "string", "pattern": f"^[a-z]{{{i}}}$"}}}
        trail(using, schema, i)
        dropped = dropped or using._core.retiring > 0 or len(using._grammars) <= i
    assert dropped
    settled_bytes(using)
    assert len(using._grammars) < 400
    fresh = compiler()
    mask, other = structgen.allocate_bitmask(1, WORDS.size), structgen.allocate_bitmask(1, WORDS.size)
    for schema, matcher in held:
        matcher.fill_bitmask(mask)
        fresh.json_schema(schema).matcher().fill_bitmask(other)
        assert (mask == other).all()
    del held, matcher
    assert settled_bytes(using) < 3 * budget
    child = os.fork()
    if child == 0:
        status = 1
        try:
            for i in range(400, 600):
                trail(using, {"type": "string", "pattern": f"^[a-z]{{{i}}}$"}, i)
            del using
            status = 0
        finally:
            os._exit(status)
    assert os.waitpid(child, 0)[1] == 0


def test_compilers_of_one_vocabulary_share_what_runs_are(tmp_path) -> None:
    """Each thread has a compiler, and all share one vocabulary, built or loaded. The compilers agree on the
    runs of characters that the vocabulary keeps."""
    found = [s for s in forty_schemas() if "enum" not in str(s)]
    expected = [trail(compiler(), schema, 3) for schema in found]
    made = vocabulary(WORDS)
    made.save(tmp_path / "words.sgv")
    for words in (made, structgen.Vocabulary.load(tmp_path / "words.sgv")):

        def work(index: int, words: structgen.Vocabulary = words) -> None:
            using = structgen.Compiler(words)
            for i in range(len(found)):
                k = (i + 5 * index) % len(found)
                assert trail(using, found[k], 3) == expected[k], found[k]

        together(work, 8)


def test_a_batch_of_grammars_that_several_threads_compiled() -> None:
    """If the compiler is busy, a second thread compiles into a second set of tables. A batch over grammars of
    both sets uses one thread for each set."""
    shared, made = structgen.Compiler(vocabulary(WORDS)), {}

    def compile_some(index: int) -> None:
        for number, schema in enumerate(forty_schemas()):
            if number % THREADS == index:
                made[number] = shared.json_schema(schema)

    together(compile_some, THREADS)
    alone = [compiler().json_schema(schema).matcher() for schema in forty_schemas()]
    expected = structgen.allocate_bitmask(len(alone), WORDS.size)
    structgen.fill_bitmasks(alone, expected, threads=1)
    for threads in (2, 3, 1):  # new masks first, then known masks
        batch = [made[number].matcher() for number in range(len(made))]
        mask = structgen.allocate_bitmask(len(batch), WORDS.size)
        structgen.fill_bitmasks(batch, mask, threads=threads)
        assert np.array_equal(mask, expected)


# ---- budgets, middles and canvases ----

RECORD: dict[str, Any] = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "pattern": "^[a-f]{2,9}$"},
        "tags": {"type": "array", "items": {"enum": ["aa", "ab", "ba"]}, "maxItems": 4},
        "n": {"type": "integer"},
    },
    "required": ["name", "tags"],
}


def in_threads(one: Any, count: int = 8) -> None:
    """`one(compiler, seed)` gives equal answers with a compiler of its own and with a compiler shared by all
    threads."""
    alone = [one(compiler(), seed) for seed in range(count)]
    shared = structgen.Compiler(vocabulary(WORDS))
    found: list[Any] = [None] * count

    def work(index: int) -> None:
        found[index] = one(shared, index)

    together(work, count)
    assert found == alone


def test_budgets_of_one_grammar_in_all_threads() -> None:
    """One thread finds where tokens lead and what completes a text, and all threads use these results
    (budget/targets.h).

    Two threads may find two completions, so the test checks only the promise: texts end in time.
    """
    shared = structgen.Compiler(vocabulary(WORDS)).json_schema(RECORD)

    def work(index: int) -> None:
        chance = random.Random(index)
        for most in (24, 40, 60):
            matcher, mask = shared.matcher(), structgen.allocate_bitmask(1, WORDS.size)
            for left in range(most, 0, -1):
                matcher.fill_bitmask(mask, max_tokens=left)
                bits = np.unpackbits(np.asarray(mask).view(np.uint8), bitorder="little")
                assert matcher.accept_token(chance.choice(np.flatnonzero(bits).tolist()))
                if matcher.is_terminated():
                    break
            assert matcher.is_terminated()

    together(work, 8)


def test_middles_in_all_threads() -> None:
    """All threads share what the engine knows about the text before a prefix's end and behind a suffix's
    start (csrc/holes)."""

    def one(using: structgen.Compiler, seed: int) -> list[Any]:
        grammar = using.json_schema(RECORD)
        out: list[Any] = []
        for prefix, suffix in (('{"name": "ab", "tags": ["a', '"]}'),):
            matcher = grammar.infill(prefix, suffix).matcher()
            out.append(grammar.can_complete([prefix, structgen.Gap(0, 40), suffix]).verdict)
            out += walked(matcher, seed, 4)
        return out

    in_threads(one, 4)


def test_canvases_in_all_threads() -> None:
    """Canvases of one grammar share the grammar's tables (engine/canvas.h). An exact row is equal in every
    thread. Any other row is a part of the exact row, and depends on earlier calls."""
    rows = range(4)

    def fill(using: structgen.Compiler, slot: int) -> tuple[bool, set[int]]:
        mask = structgen.allocate_bitmask(1, WORDS.size)
        exact = using.json_schema(RECORD).canvas(18).fill_bitmask(mask, slot)
        bits = np.unpackbits(np.asarray(mask).view(np.uint8), bitorder="little")
        return exact, set(np.flatnonzero(bits).tolist())

    alone = [fill(compiler(), slot) for slot in rows]
    assert any(exact for exact, _ in alone)
    shared = structgen.Compiler(vocabulary(WORDS))
    found: list[tuple[bool, set[int]]] = [(False, set())] * len(rows)

    def work(index: int) -> None:
        found[index] = fill(shared, rows[index])

    together(work, len(rows))
    for (exact, tokens), (expected_exact, expected) in zip(found, alone, strict=True):
        assert not exact or tokens >= expected
        assert not expected_exact or tokens <= expected


def test_compiles_by_other_means_at_once() -> None:
    """Several threads compile patterns, GBNF, Lark and tags in one compiler. Some ask for a kept grammar, and
    some have budgets."""

    def one(using: structgen.Compiler, seed: int) -> list[Any]:
        made = [
            using.regex(f"[a-f]{{{seed % 3 + 1},}}x?"),
            using.gbnf('root ::= "a" root | "b"'),
            using.lark(f'start: "a"~{seed % 4 + 1} B?\nB: /[b-d]+/'),
            using.json_schema(RECORD, on_limit="subset"),
        ]
        out = []
        for grammar in made:
            mask = structgen.allocate_bitmask(1, WORDS.size)
            grammar.matcher().fill_bitmask(mask)
            out.append(np.asarray(mask).tobytes())
        return out

    in_threads(one)


def test_what_was_used_last_stays() -> None:
    """The core orders its cache by use: a grammar that is used again outlives younger ones."""
    using = structgen.Compiler(vocabulary(WORDS), cache_bytes=1 << 20)
    first = using.regex("[a-z]{3}x")
    for i in range(400):
        using.json_schema({"type": "string", "pattern": f"^[a-f]{{{i}}}b{{{i}}}$"}).matcher()
        assert using.regex("[a-z]{3}x") is first
        if len(using._grammars) <= i:
            break
    assert len(using._grammars) <= i, "nothing was dropped"
    assert len(using._keys) == len(using._grammars)
    kept = {id(grammar._core) for grammar in using._grammars.values()}
    assert kept == {id(core) for core in using._keys}


def test_python_ends_while_an_epoch_is_being_freed() -> None:
    """The epoch's world has the last reference to the vocabulary, a Python object. The main thread keeps the
    GIL until Python's end, so the thread that frees the epoch would be ended while it waits for the GIL."""
    script = """
import sys
import structgen
vocabulary = structgen.Vocabulary.from_bytes([*(bytes([i]) for i in range(256)), b""], 256)
compiler = structgen.Compiler(vocabulary, cache_bytes=8 << 20)
levels = {"type": "array", "items": {"$ref": "#/$defs/t"}}
matcher = compiler.json_schema({"$ref": "#/$defs/t", "$defs": {"t": levels}}).matcher()
row = structgen.allocate_bitmask(1, 257)
sys.setswitchinterval(1000)
for _ in range(100_000):
    assert matcher.accept_bytes(b"[")
    matcher.fill_bitmask(row)
    if compiler._core.retiring:
        break
else:
    sys.exit("no epoch was freed")
"""
    for _ in range(3):
        done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=300)
        assert (done.returncode, done.stderr) == (0, "")
