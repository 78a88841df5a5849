"""Shared by law tests and differential tests: compilers over the small vocabulary, seeded and shrinking runs
of one check, and random walks.

A random test states a number of cases, n. It tries `cases(n)` of them, or the seeds `seeds(n)`: a third of n,
or k times n with `STRUCTGEN_LONG=k`. `chosen` takes a third of a list of expensive cases. The nightly run
tries all cases. Assertions are equal in every run.

A check takes a `Source`, and returns SKIPPED if the draw gave nothing to check. `seeded(check, n)` runs the
check over `seeds(n)`, and fails if too many draws were skipped. `shrinking(check, n)` lets Hypothesis draw
and shrink.
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

HANG = 600.0  # seconds after which a child counts as hung, far above its usual time
FIRST_SEED = int(os.environ.get("STRUCTGEN_SEED", "0"))
_LONG = os.environ.get("STRUCTGEN_LONG")
NIGHTLY = _LONG is not None
T = TypeVar("T")


def cases(count: int) -> int:
    """Returns how many of `count` random cases a run tries; at least one."""
    return max(1, count // 3) if _LONG is None else count * int(_LONG)


def seeds(count: int) -> range:
    """Returns the seeds of `count` random cases in a run."""
    return range(FIRST_SEED, FIRST_SEED + cases(count))


def chosen(items: Iterable[T]) -> list[T]:
    """Returns the first and every third of some expensive cases; the nightly run gets all."""
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
    """Stands for the grammar of an unsatisfiable schema."""


def compiled(schema: Any, *, using: structgen.Compiler | None = None, **options: Any) -> Any:
    """Returns a grammar; `Empty` if the schema is unsatisfiable; None if it exceeds the limit of work."""
    try:
        return (using or compiler()).json_schema(schema, **options)
    except errors.UnsatisfiableSchema:
        return Empty
    except errors.SchemaTooComplex:
        return None


@contextlib.contextmanager
def cpu_limit(seconds: float) -> Iterator[None]:
    """Fails if the body takes more CPU time of the process, summed over threads.

    Such a limit finds work that grows without bound. The limit is several times an idle machine's time,
    because CPU time also grows when other processes share the caches. `python -m bench.hostile` has tighter
    limits.
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
    """Returns the results of `work(index)` in `count` threads that start at once. Raises the first
    failure."""
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
    """Walks over random allowed tokens. Yields (token, mask) before each accept, and ends after an end token.

    In the last `finish` steps the mask gets the budget, so the walk must end. From step `close_after` on the
    walk prefers tokens that close a value, so it probably ends.
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
        # the id of a single byte is the byte's value
        elif closing and (closers := [b for b in b'}]"' if mask[b]]):
            token = closers[0]
        else:
            token = int(source.pick(allowed))
        yield token, mask
        assert matcher.accept_token(token), f"token {token} allowed and refused"
        if token in eos:
            return


def long_token(source: Source, words: Words, allowed: np.ndarray) -> int:
    """Returns one of the allowed tokens, mostly a token of several bytes."""
    long = [t for t in allowed if len(words.tokens[t]) > 1]
    return int(source.pick(long) if long and source.chance(70) else source.pick(allowed))


def long_walk(source: Source, matcher: Any, words: Words, steps: int) -> Iterator[tuple[int, np.ndarray]]:
    """`walk`, with a preference for long tokens."""
    for _ in range(steps):
        mask = oracle.mask_of(matcher, words.size)
        token = long_token(source, words, np.flatnonzero(mask))
        yield token, mask
        assert matcher.accept_token(token), f"token {token} allowed and refused"
        if token in words.eos:
            return


def forty_schemas() -> list[dict[str, Any]]:
    """Forty different schemas. 200 compiles of these meet grammars that the compiler keeps, and new ones."""
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
    """Returns the masks of a random walk. If the masks are equal, equal seeds give equal walks."""
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
    """Returns the bytes of a full cache, once all dropped grammars are freed.

    While grammars are being freed, the cache drops no more, however many compiles follow. The first compile
    after that shrinks the cache to its size.
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


# A vocabulary of all single bytes and the end token.
BYTES = structgen.Vocabulary.from_bytes([bytes([i]) for i in range(256)] + [b""], eos_token_ids=[256])


def byte_walk(grammar: structgen.CompiledGrammar, chance: random.Random, tokens: int) -> bytes:
    """Returns a text of random allowed bytes. The walk ends soon after the end token is allowed."""
    matcher, text = grammar.matcher(), bytearray()
    mask = structgen.allocate_bitmask(1, BYTES.vocab_size)
    # bytes are tokens, so the shortest completion gives the fewest tokens, without the search of
    # tokens_needed()
    left = max(tokens, len(matcher.shortest_completion()) + 6)
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
