"""A fixed sample of MaskBench: every verdict equals the label, except for the labels that are listed as
wrong.

`python -m bench.correctness --jobs 2` checks the whole corpus.
"""

from __future__ import annotations

import pytest

import structgen
from bench import correctness
from oracles import data
from oracles.harness import compiler
from structgen.maskbench.engines.structgen import vocabulary

COUNT, WITH_TOKENS = 150, 25
MAY_BE_REFUSED = {"UnsupportedSchema", "SchemaTooComplex"}


@pytest.fixture(scope="module")
def names(data_root) -> list[str]:
    found = data.maskbench_names()
    data.need(bool(found), f"no MaskBench schemas under {data_root}")
    return data.sample(found, COUNT)


def judged(names: list[str], state: dict) -> list[dict]:
    rows: list[dict] = []
    for name in names:
        correctness.work(state, {"schema": name}, rows.append)
    return rows


def check(rows: list[dict]) -> None:
    errors = [row for row in rows if row["error"] is not None]
    odd = [row for row in errors if row["error"]["type"] not in MAY_BE_REFUSED]
    assert not odd, odd
    assert len(errors) <= len(rows) // 50, errors
    wrong = correctness.disagreements(rows)
    assert not wrong, correctness.summary(rows, 3)


def test_verdicts(names) -> None:
    rows = judged(names, {"compiler": compiler(), "order": "any", "tokens_too": False})
    check(rows)
    assert sum(row["tests"] for row in rows) > 2 * COUNT


def test_tokens_and_masks(names, tekken) -> None:
    state = {
        "compiler": structgen.Compiler(vocabulary(tekken)),
        "tokens": tekken,
        "order": "any",
        "tokens_too": True,
    }
    check(judged(names[:WITH_TOKENS], state))
