"""What the law and differential tests share: compilers over the small vocabulary, seeded and shrinking
runs of one check, random walks.

A random test names its number of cases, n, and tries `cases(n)` of them, or the seeds `seeds(n)`: a third, or
with `STRUCTGEN_LONG=k` k times n. Of dear cases that are written down `chosen` takes a third. All are
tried every night. Assertions are the same in every run.

A check takes a `Source` and returns SKIPPED where that gave nothing to check. `seeded(check, n)` runs it over
`seeds(n)`, quickly, and fails where too many were skipped; `shrinking(check, n)` lets Hypothesis draw and
shrink.
"""

from __future__ import annotations

import contextlib
import functools
import os
import random
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import numpy as np
from hypothesis import HealthCheck, given, settings

import structgen
from oracles import oracle
from oracles.strategies import Seeded, Source, Words, nasty_words, plain_words, sources
from structgen import errors

HANG = 600.0  # seconds after which a child counts as hung; no measure of speed
FIRST_SEED = int(os.environ.get("STRUCTGEN_SEED", "0"))
_LONG = os.environ.get("STRUCTGEN_LONG")
NIGHTLY = _LONG is not None
T = TypeVar("T")


def cases(count: int) -> int:
    """How many of `count` random cases this run tries; at least one."""
    return max(1, count // 3) if _LONG is None else count * int(_LONG)


def seeds(count: int) -> range:
    """The seeds of `count` random cases in this run."""
    return range(FIRST_SEED, FIRST_SEED + cases(count))


def chosen(items: Iterable[T]) -> list[T]:
    """Every third of some dear cases, the first of them included; every night all."""
    found = list(items)
    return found[::3] if _LONG is None else found


def vocabulary(words: Words) -> structgen.Vocabulary:
    return structgen.Vocabulary.from_bytes(
        words.tokens, eos_token_ids=words.eos, special_token_ids=words.special
    )


WORDS = plain_words()
NASTY = nasty_words()


@functools.cache
def compiler(cache: bool = True, cache_bytes: int = 64 << 20) -> structgen.Compiler:
    return structgen.Compiler(vocabulary(WORDS), cache=cache, cache_bytes=cache_bytes)


@functools.cache
def nasty_compiler(cache: bool = True, cache_bytes: int = 64 << 20) -> structgen.Compiler:
    return structgen.Compiler(vocabulary(NASTY), cache=cache, cache_bytes=cache_bytes)


class Empty:
    """Stands for the grammar of a schema that nothing satisfies."""


def compiled(schema: Any, *, using: structgen.Compiler | None = None, **options: Any) -> Any:
    """A grammar; `Empty` where the schema is unsatisfiable; None where it is past the budget."""
    try:
        return (using or compiler()).json_schema(schema, **options)
    except errors.UnsatisfiableSchema:
        return Empty
    except errors.SchemaTooComplex:
        return None


@contextlib.contextmanager
def cpu_limit(seconds: float) -> Iterator[None]:
    """Fails where the body takes more processor time of this process, all threads together.

    Such a limit finds work that grows without bound. It is several times what an idle machine takes, because
    processor time grows too where other processes share the caches; `python -m bench.hostile` looks closer.
    """
    begin = time.process_time()
    yield
    spent = time.process_time() - begin
    assert spent < seconds, f"{spent:.2f} s of processor time, {seconds:g} allowed"


def verdict(grammar: Any, text: str | bytes) -> bool:
    if grammar is Empty:
        return False
    matcher = grammar.matcher()
    found = text.encode() if isinstance(text, str) else text
    return matcher.accept_bytes(found) and matcher.is_accepting()


def together(work: Callable[[int], T], count: int) -> list[T]:
    """What `work(index)` gives in `count` threads that start at once. The first failure is raised here."""
    gate = threading.Barrier(count)

    def run(index: int) -> T:
        gate.wait()
        return work(index)

    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(run, range(count)))


SKIPPED = "skipped"


def seeded(check: Callable[[Source], str | None], count: int) -> None:
    skipped = 0
    for seed in seeds(count):
        try:
            skipped += check(Seeded(seed)) is SKIPPED
        except BaseException as error:
            error.add_note(f"{check.__name__}, seed {seed}")
            raise
    tried = cases(count)
    print(f"{check.__name__}: {skipped} of {tried} seeds gave nothing to check")
    assert skipped <= tried // 3, f"{check.__name__}: {skipped} of {tried} seeds gave nothing to check"


def shrinking(check: Callable[[Source], str | None], count: int) -> None:
    @settings(
        max_examples=cases(count),
        deadline=None,
        derandomize=True,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(sources())
    def drawn(source: Source) -> None:
        found.append(check(source) is SKIPPED)

    found: list[bool] = []
    drawn()
    print(f"{check.__name__}: {sum(found)} of {len(found)} examples gave nothing to check")
    assert sum(found) < len(found), f"{check.__name__} checked nothing"


def walk(
    source: Source,
    matcher: Any,
    size: int,
    eos: list[int],
    steps: int,
    *,
    finish: int = 0,
    close_after: int | None = None,
) -> Iterator[tuple[int, np.ndarray]]:
    """Random allowed tokens. Yields (token, mask) before each accept; ends after an end-of-sequence.

    In the last `finish` steps the budget is handed to the mask, so that the walk must end. From step
    `close_after` on, tokens that close something are preferred, so that the walk probably ends.
    """
    for step in range(steps):
        left = steps - step
        mask = oracle.mask_of(matcher, size, left if left <= finish else None)
        allowed = np.flatnonzero(mask)
        assert allowed.size, f"a dead end after {step} tokens"
        stops = [t for t in allowed if t in eos]
        closing = close_after is not None and step >= close_after
        if stops and (closing or source.chance(30)):
            token = int(source.pick(stops))
        elif closing and (closers := [b for b in b'}]"' if mask[b]]):  # in these vocabularies ids
            token = closers[0]
        else:
            token = int(source.pick(allowed))
        yield token, mask
        assert matcher.accept_token(token), f"token {token} allowed and refused"
        if token in eos:
            return


def long_token(source: Source, words: Words, allowed: np.ndarray) -> int:
    """One of the allowed tokens, mostly one of several bytes."""
    long = [t for t in allowed if len(words.tokens[t]) > 1]
    return int(source.pick(long) if long and source.chance(70) else source.pick(allowed))


def long_walk(source: Source, matcher: Any, words: Words, steps: int) -> Iterator[tuple[int, np.ndarray]]:
    """`walk`, with a taste for long tokens."""
    for _ in range(steps):
        mask = oracle.mask_of(matcher, words.size)
        token = long_token(source, words, np.flatnonzero(mask))
        yield token, mask
        assert matcher.accept_token(token), f"token {token} allowed and refused"
        if token in words.eos:
            return


def forty_schemas() -> list[dict[str, Any]]:
    """Forty different ones, so that 200 compiles meet both known and unknown grammars."""
    found: list[dict[str, Any]] = []
    for i in range(10):
        properties = {f"p{i}": {"type": "string", "maxLength": i + 1}, "n": {"type": "integer", "minimum": i}}
        found += [
            {"type": "object", "properties": properties, "required": [f"p{i}"]},
            {"type": "array", "items": {"enum": [i, f"e{i}", None]}, "uniqueItems": True, "maxItems": 3},
            {"type": "string", "pattern": f"^[a-f]{{{i},}}x?$"},
            {"anyOf": [{"type": "object", "propertyNames": {"maxLength": i + 1}}, {"type": "number"}]},
        ]
    return found


def trail(using: structgen.Compiler, schema: Any, seed: int) -> list[bytes]:
    """The masks of a random walk: the same seed takes the same walk wherever the masks are the same."""
    return walked(using.json_schema(schema).matcher(), seed, 12)


def walked(matcher: structgen.Matcher, seed: int, steps: int) -> list[bytes]:
    chance, mask = random.Random(seed), structgen.allocate_bitmask(1, WORDS.size)
    out: list[bytes] = []
    for _ in range(steps):
        matcher.fill_bitmask(mask)
        out.append(np.asarray(mask).tobytes())
        bits = np.unpackbits(np.asarray(mask).view(np.uint8), bitorder="little")
        token = chance.choice(np.flatnonzero(bits).tolist())
        assert matcher.accept_token(token)
        if token in WORDS.eos:
            break
        if len(out) % 4 == 0:
            matcher = matcher.fork()
    return out


def settled_bytes(using: structgen.Compiler) -> int:
    """What a full cache holds once all that it let go of is freed.

    While grammars are being freed nothing more is forgotten, however many are compiled meanwhile; the first
    compile after that brings the cache down to its size.
    """
    end = time.monotonic() + HANG
    for number in range(2):
        while using._core.retiring and time.monotonic() < end:
            time.sleep(0.01)
        assert using._core.retiring == 0
        trail(using, {"const": f"settled {number} {time.monotonic_ns()}"}, number)
    while using._core.retiring and time.monotonic() < end:
        time.sleep(0.01)
    return using.byte_size


# Every byte is a token.
BYTES = structgen.Vocabulary.from_bytes([bytes([i]) for i in range(256)] + [b""], eos_token_ids=[256])


def byte_walk(grammar: structgen.CompiledGrammar, chance: random.Random, tokens: int) -> bytes:
    """A text made of random allowed bytes; the end is taken soon after it may come."""
    matcher, text = grammar.matcher(), bytearray()
    mask = structgen.allocate_bitmask(1, BYTES.vocab_size)
    left = max(tokens, len(matcher.shortest_completion()) + 6)  # bytes are tokens; tokens_needed() searches
    while not matcher.is_terminated():
        matcher.fill_bitmask(mask, max_tokens=left)
        allowed = np.unpackbits(mask.view(np.uint8), bitorder="little").nonzero()[0]
        token = 256 if 256 in allowed and chance.random() < 0.3 else int(chance.choice(list(allowed)))
        matcher.accept_token(token)
        left -= 1
        if token != 256:
            text.append(token)
    return bytes(text)


def refusals(kind: Any, compiler: structgen.Compiler, walks: int) -> list[tuple[bytes, str]]:
    grammar = compiler.json_schema(kind)
    found = []
    for seed in range(walks):
        chance = random.Random(seed)
        text = byte_walk(grammar, chance, chance.choice([3, 10, 30, 60]))
        try:
            grammar.parse(text)
        except ValueError as e:
            found.append((text, str(e)))
    return found
