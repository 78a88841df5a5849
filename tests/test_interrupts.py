"""Ctrl-C during a long call: the call ends at once, and its objects still answer."""

from __future__ import annotations

import signal

import pytest

from oracles.interrupts import AFTER, ALLOWED, CASES, MORE, run


@pytest.mark.skipif(not hasattr(signal, "pthread_kill"), reason="no signals of POSIX here")
@pytest.mark.parametrize("case", CASES)
def test_ctrl_c_ends_a_long_call(case: str) -> None:
    setup, after_all = CASES[case]
    times = []
    for _ in range(3):  # the least of three runs counts, because other work only adds time
        done = run(setup, AFTER.get(case, 0.2), after_all, stack=2048 if "larger stack" in case else None)
        assert done.returncode == 0, done.stderr
        times.append(tuple(map(float, done.stdout.split())))
        ended, gap = times[-1]
        if ended < MORE.get(case, ALLOWED) and gap < max(ALLOWED, MORE.get(case, 0.0)):
            return
    raise AssertionError(f"seconds until the call ended, and without another thread: {times}")


def test_a_handler_may_call_structgen_and_return() -> None:
    """A signal handler of Python may call structgen, because the core holds no lock while the handler runs.
    The interrupted call then starts again."""
    setup = """
schema = {"patternProperties": {f"^k{i}x": {"minimum": i} for i in range(100)}}
grammar = compiler.json_schema({"type": "integer"})
seen = []

def handler(number, frame):
    row = structgen.allocate_bitmask(1, WORDS.size)
    compiler.json_schema({"minItems": 3}).matcher().fill_bitmask(row)
    grammar.matcher().fill_bitmask(row)
    threading.Thread(target=lambda: compiler.json_schema({"maxItems": 3})).start()
    seen.append((number, frame.f_code.co_name, clock() - sent[0]))

signal.signal(signal.SIGINT, handler)

def call():
    compiler.json_schema(schema)
    (number, function, late), = seen
    assert number == signal.SIGINT and function in ("call", "json_schema"), function
    assert late < 0.1
    sent[0] = clock()
    raise KeyboardInterrupt
"""
    done = run(setup, 0.1)
    assert done.returncode == 0, done.stderr
