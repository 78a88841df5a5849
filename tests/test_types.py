"""What type checkers know: `Result[T]` of a Python type, and wrong arguments, by mypy and pyright."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "tests" / "typing"


def checked(command: list[str], *files: Path) -> str:
    done = subprocess.run([*command, *map(str, files)], capture_output=True, text=True, cwd=ROOT)
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
    # pyright with node in its wheel; `pyright` itself would fetch node when it first runs.
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


def errors(text: str) -> set[int]:
    return {int(line) for line in re.findall(r"\.py:(\d+):(?:\d+)?.*?error", text)}


def test_values_have_the_type_that_was_asked_for(command: list[str]) -> None:
    found = checked(command, FOLDER / "generation.py")
    assert not errors(found), found


def test_wrong_arguments_are_refused(command: list[str]) -> None:
    file = FOLDER / "wrong.py"
    wrong = {i for i, line in enumerate(file.read_text().splitlines(), 1) if line.endswith("# wrong")}
    found = checked(command, file)
    assert errors(found) == wrong, found


def test_everything_public_has_a_type() -> None:
    """What pyright says of a library: no name that others may use has a type that it had to guess."""
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
    theirs = {"Type of base class unknown", "Type of metaclass unknown"}  # of a host that has no types
    guessed = [
        one["name"]
        for one in symbols
        if one["isExported"] and (not one["isTypeKnown"] or one["isTypeAmbiguous"])
        if {found["message"] for found in one.get("diagnostics", [])} - theirs or "diagnostics" not in one
    ]
    assert len(symbols) > 3000 and not guessed, guessed
