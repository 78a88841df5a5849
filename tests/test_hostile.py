"""Hostile inputs: each ends in a result or in the right exception, after bounded work.

Every case runs in a child process under limits of time and memory. So a crash, a hang or unbounded memory
fails the one case, which is named.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from oracles.harness import HANG
from oracles.hostile import CASES, outcome
from structgen.maskbench.workers import Worker

GENEROUS = 6  # factor on the time bars, which hold on an idle machine


# Under `make test-asan` a child would load the plain core, shadow memory has no limit, and everything is
# slow.
SANITIZED = "STRUCTGEN_CORE" in os.environ


@pytest.fixture(scope="module")
def worker() -> Iterator[Worker]:
    child = Worker("oracles.hostile:setup", "oracles.hostile:work", {}, limit=HANG)
    yield child
    child.stop()


@pytest.mark.parametrize(("kind", "name"), CASES, ids=[f"{k}-{n}" for k, n in CASES])
def test_hostile(kind: str, name: str, worker: Worker) -> None:
    case = CASES[kind, name]
    if SANITIZED:
        from oracles.harness import compiler

        rows, failure = [outcome(compiler(), kind, case.make())], None
    else:
        rows, failure = worker.call((kind, name))
    assert failure is None, failure
    assert rows[0]["outcome"] in case.right, rows[0]
    assert rows[0]["seconds"] < case.seconds * GENEROUS * (50 if SANITIZED else 1), rows[0]
