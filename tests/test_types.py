"""Types of the public interface: mypy and pyright infer `Result[T]` from a Python type and refuse wrong
arguments."""

from __future__ import annotations

import functools
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "tests" / "typing"


@functools.cache
def checked(*command: str) -> str:
    """Returns the output of a type checker on both files, in one run."""
    files = (str(FOLDER / name) for name in ("generation.py", "wrong.py"))
    done = subprocess.run([*command, *files], capture_output=True, text=True, cwd=ROOT)
    return done.stdout + done.stderr


CHECKERS = {
    "mypy": [
        sys.executable,
        "-m",
        "mypy",
        "--strict",
        "--config-file",
        "pyproject.toml",
        "--no-error-summary",
    ],
    # basedpyright ships node in its wheel; `pyright` would download node at its first run.
    "basedpyright": [
        sys.executable,
        "-m",
        "basedpyright",
        "--pythonpath",
        sys.executable,
        "--level",
        "error",
    ],
}


@pytest.fixture(params=CHECKERS)
def command(request: pytest.FixtureRequest) -> list[str]:
    pytest.importorskip(request.param, reason=f"{request.param} is not installed: it is in the extra test")
    return CHECKERS[request.param]


def errors(command: list[str], name: str) -> set[int]:
    return {int(line) for line in re.findall(rf"{name}:(\d+):(?:\d+)?.*?error", checked(*command))}


def test_values_have_the_type_that_was_asked_for(command: list[str]) -> None:
    assert not errors(command, "generation.py"), checked(*command)


def test_wrong_arguments_are_refused(command: list[str]) -> None:
    lines = (FOLDER / "wrong.py").read_text().splitlines()
    wrong = {i for i, line in enumerate(lines, 1) if line.endswith("# wrong")}
    assert errors(command, "wrong.py") == wrong, checked(*command)


def test_everything_public_has_a_type() -> None:
    """pyright reports every public name whose type it must guess. The report is empty."""
    pytest.importorskip("basedpyright", reason="basedpyright is not installed: it is in the extra test")
    command = [
        *CHECKERS["basedpyright"][:5],
        "--verifytypes",
        "structgen",
        "--ignoreexternal",
        "--outputjson",
    ]
    done = subprocess.run(
        command, capture_output=True, text=True, cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)}
    )
    symbols = json.loads(done.stdout)["typeCompleteness"]["symbols"]
    theirs = {"Type of base class unknown", "Type of metaclass unknown"}  # the host library has no types
    guessed = [
        one["name"]
        for one in symbols
        if one["isExported"] and (not one["isTypeKnown"] or one["isTypeAmbiguous"])
        if {found["message"] for found in one.get("diagnostics", [])} - theirs or "diagnostics" not in one
    ]
    assert len(symbols) > 3000 and not guessed, guessed
