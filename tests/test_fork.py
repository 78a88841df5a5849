"""Forks of a process whose threads work: every child compiles, fills masks, runs batches, and ends.

A child has one thread. Every lock that another thread of the parent held must be free in the child, and the
data under the lock must be whole (csrc/base/fork.h, structgen/_fork.py).
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

import structgen
from oracles.harness import (
    HANG,
    WORDS,
    cases,
    compiler,
    forty_schemas,
    settled_bytes,
    together,
    trail,
    vocabulary,
)

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
FORKS = cases(200)  # 500 take 20 s of CPU time


def batch_of(using: structgen.Compiler, found: list[Any], threads: int) -> np.ndarray:
    mask = structgen.allocate_bitmask(len(found), WORDS.size)
    matchers = [using.json_schema(schema).matcher() for schema in found]
    structgen.fill_bitmasks(matchers, mask, threads=threads)
    return np.asarray(mask)


@contextmanager
def load(using: structgen.Compiler, words: structgen.Vocabulary) -> Iterator[None]:
    """Threads that compile, fill masks, run batches and ask for the bytes of tokens, all on one
    vocabulary."""
    stop = threading.Event()
    failures: list[BaseException] = []

    def work(index: int) -> None:
        own, step = structgen.Compiler(words, cache_bytes=200_000), 0
        try:
            while not stop.is_set():
                step += 1
                fresh = {"type": "string", "pattern": f"^[a-z]{{{index}}}x{{{step % 50}}}$", "maxLength": 80}
                if index % 5 == 0:
                    trail(using, fresh, step)
                elif index % 5 == 1:
                    batch_of(using, [*forty_schemas()[step % 36 :][:4], fresh], threads=3)
                elif index % 5 == 2:
                    trail(structgen.Compiler(words), {"type": "string", "maxLength": step % 40}, step)
                else:
                    trail(own, fresh, step)  # the cache fills again and again, so a thread frees grammars
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(i,), daemon=True) for i in range(5)]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        stop.set()
        for thread in threads:
            thread.join(HANG)
    assert not failures, failures[0]
    assert not any(thread.is_alive() for thread in threads)


def in_child(body: Any) -> int:
    """Runs `body()` in a forked child, which the system ends after a time limit. Returns the child's id."""
    child = os.fork()
    if child:
        return child
    status = 1
    try:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(int(HANG))
        body()
        status = 0
    except BaseException:
        import traceback

        traceback.print_exc()
    finally:
        os._exit(status)


@pytest.mark.parametrize("forks", [FORKS])
def test_children_of_a_busy_process_do_not_hang(forks: int) -> None:
    words = vocabulary(WORDS)
    using = structgen.Compiler(words, cache_bytes=1 << 20)
    known = forty_schemas()
    expected_trail = [trail(compiler(), schema, 5) for schema in known]
    expected_batch = batch_of(compiler(), known[:6], threads=1)
    states: dict[int, int] = {}

    def child(number: int) -> None:
        k = number % len(known)
        assert trail(using, known[k], 5) == expected_trail[k]  # grammars that the parent compiled
        assert trail(structgen.Compiler(words), known[k - 1], 5) == expected_trail[k - 1]  # a new compiler
        np.testing.assert_array_equal(batch_of(using, known[:6], threads=3), expected_batch)

    with load(using, words):
        running: list[int] = []
        for number in range(forks):
            running.append(in_child(lambda number=number: child(number)))
            if len(running) == 4:
                done = running.pop(0)
                states[done] = os.waitpid(done, 0)[1]
        for done in running:
            states[done] = os.waitpid(done, 0)[1]
    assert set(states.values()) == {0}, [s for s in states.values() if s]
    # The parent is unchanged.
    np.testing.assert_array_equal(batch_of(using, known[:6], threads=3), expected_batch)


def test_a_child_has_workers_of_its_own() -> None:
    """The parent's batches started threads. The child starts its own threads, and so does the child's
    child."""
    known = forty_schemas()
    using = structgen.Compiler(vocabulary(WORDS))
    expected = batch_of(compiler(), known, threads=1)

    def check() -> None:
        np.testing.assert_array_equal(batch_of(using, known, threads=4), expected)
        np.testing.assert_array_equal(batch_of(structgen.Compiler(vocabulary(WORDS)), known, 4), expected)

    def grandparent() -> None:
        check()
        assert os.waitpid(in_child(check), 0)[1] == 0

    check()
    assert os.waitpid(in_child(grandparent), 0)[1] == 0


def test_what_the_parent_was_to_free_is_freed_in_the_child() -> None:
    """The parent forks while it clears a full cache. The child's cache takes new entries and is cleared when
    it is full."""
    budget = 300_000
    using = structgen.Compiler(vocabulary(WORDS), cache_bytes=budget)

    def fill(first: int, count: int) -> None:
        for i in range(first, first + count):
            trail(using, {"type": "string", "pattern": f"^[a-z]{{{i}}}$"}, i)

    def child() -> None:
        fill(1000, 60)
        assert settled_bytes(using) < 5 * budget
        assert using._grammars, "the cache keeps nothing"

    for round in range(cases(10)):
        fill(round * 30, 30)
        assert os.waitpid(in_child(child), 0)[1] == 0


def job(number: int) -> bytes:
    return b"".join(trail(compiler(), forty_schemas()[number], number))


def test_multiprocessing_with_fork_under_load() -> None:
    words = vocabulary(WORDS)
    expected = [job(number) for number in range(12)]
    with (
        load(structgen.Compiler(words), words),
        multiprocessing.get_context("fork").Pool(2) as pool,
    ):
        assert pool.map_async(job, range(12)).get(HANG) == expected


def test_one_matcher_in_two_threads_is_refused_not_damaged() -> None:
    """A matcher belongs to one thread at a time. A second thread gets an error or waits, and never sees half
    a state."""
    matcher = structgen.Compiler(vocabulary(WORDS), cache=False).json_schema({"type": "array"}).matcher()
    refused, others = [], []
    end = time.monotonic() + HANG

    def work(_index: int) -> None:
        mask = structgen.allocate_bitmask(1, WORDS.size)
        while not refused and time.monotonic() < end:
            try:
                matcher.fill_bitmask(mask)
                matcher.accept_bytes(b"[")
                matcher.rollback()
            except ValueError as error:
                (refused if "another thread" in str(error) else others).append(error)

    together(work, 4)
    assert refused, "no two calls met"
    assert all("fewer than" in str(e) or "history" in str(e) or "roll" in str(e) for e in others), others[:1]
    matcher.reset()
    assert matcher.accept_bytes(b"[1]") and matcher.is_accepting()


def test_a_child_uses_the_model_that_a_thread_of_its_parent_is_using() -> None:
    script = """
import os, sys, threading, time
from structgen.lm.load import language_model
model = language_model(None)
def work():
    while True:
        model.clear()
        model.logprobs([model.start(list(range(3, 303)))])
threading.Thread(target=work, daemon=True).start()
for _ in range(8):
    time.sleep(0.05)
    child = os.fork()
    if child == 0:
        model.logprobs([model.start([3, 4, 5])])
        os._exit(0)
    until = time.monotonic() + 120
    while os.waitpid(child, os.WNOHANG) == (0, 0):
        if time.monotonic() > until:
            os.kill(child, 9)
            sys.exit("a child hangs")
        time.sleep(0.01)
os._exit(0)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr


def test_a_fork_beside_a_very_long_call_goes_on() -> None:
    """The fork waits up to its limit for the long call. The child loses the grammar that the other thread was
    changing."""
    script = """
import gc, os, threading, time
import structgen
from structgen import _fork, errors
from oracles.harness import WORDS, vocabulary

formats = {"oneOf": [{"type": "string", "format": f} for f in structgen._core.format_names()]}
schema = {"type": "object", "properties": {"a": formats}}
compiler = structgen.Compiler(vocabulary(WORDS), limits=structgen.Limits(None, None))
grammar = compiler.json_schema(schema)
matcher = grammar.matcher()
_fork.PATIENCE = 0.3

class Owner:
    def __init__(self):
        self._lock = threading.Lock()
        _fork.hold_over_forks(self)

owner, free = Owner(), Owner()

def long():
    with owner._lock:
        matcher.fork().fill_bitmask(structgen.allocate_bitmask(1, WORDS.size))

threading.Thread(target=long, daemon=True).start()
time.sleep(0.1)
begin = time.monotonic()
child = os.fork()
if child:
    took = time.monotonic() - begin
    assert 0.25 < took < 5, took
    assert os.waitpid(child, 0)[1] == 0
    assert owner._lock.locked() and not free._lock.locked()
    os._exit(0)

def refused(call):
    try:
        call()
    except errors.BudgetExceeded as error:
        assert "forked" in str(error), error
    else:
        raise AssertionError("not refused")

try:
    row = structgen.allocate_bitmask(1, WORDS.size)
    refused(lambda: matcher.fill_bitmask(row))
    refused(grammar.matcher)
    refused(owner._lock.acquire)
    with free._lock:
        pass
    for other in (structgen.Compiler(vocabulary(WORDS)), compiler):
        fresh = other.json_schema({"type": "array"}).matcher()
        fresh.fill_bitmask(row)
        assert fresh.accept_bytes(b"[1]") and fresh.is_accepting()
    again = compiler.json_schema(schema)  # not the one that is lost
    assert again is not grammar
    again.matcher()
    second = os.fork()
    if second == 0:
        os._exit(0 if compiler.json_schema({"type": "array"}).matcher().accept_bytes(b"[") else 1)
    assert os.waitpid(second, 0)[1] == 0
    del matcher, grammar, compiler, again, fresh
    gc.collect()
except BaseException:
    import traceback
    traceback.print_exc()
    os._exit(1)
os._exit(0)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
