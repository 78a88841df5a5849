"""Inputs that a fuzzer found once, and its seeds: each is read, or refused with the right exception."""

from __future__ import annotations

from pathlib import Path

import pytest

from fuzz.seeds import seeds
from fuzz.targets import TARGETS

pytest.importorskip("lark")
FOUND = Path(__file__).parent / "cases" / "fuzz"


@pytest.mark.parametrize("target", TARGETS)
def test_seeds(target: str) -> None:
    for data in seeds(target):
        TARGETS[target](data)


@pytest.mark.parametrize(
    "file", [pytest.param(f, id=f"{f.parent.name}: {f.name}") for f in sorted(FOUND.glob("*/*"))]
)
def test_found(file: Path) -> None:
    TARGETS[file.parent.name](file.read_bytes())
