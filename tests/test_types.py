"""What type checkers know: `Result[T]` of a Python type, and wrong arguments, by mypy and pyright."""

from __future__ import annotations

import re
import shutil
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
    "pyright": ["pyright", "--pythonpath", sys.executable],
}


@pytest.fixture(params=CHECKERS)
def command(request: pytest.FixtureRequest) -> list[str]:
    if request.param == "mypy":
        pytest.importorskip("mypy")
    elif shutil.which("pyright") is None:
        pytest.skip("pyright is not installed")
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
