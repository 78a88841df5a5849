"""The run `bench.speculation_parts` prints the values that the exact laws of the rules give."""

from __future__ import annotations

import pytest

from bench import speculation_parts


def test_the_bench_shows_the_planted_bias(capsys: pytest.CaptureFixture[str]) -> None:
    speculation_parts.fidelity()
    lines = capsys.readouterr().out.splitlines()
    for name in ("single", "recursive", "k-seq"):
        both, target, planted = map(float, next(x for x in lines if x.startswith(name)).split()[1:])
        assert max(both, target) < 1e-12 and planted > 0.05
