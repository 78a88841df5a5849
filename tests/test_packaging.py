"""What the package ships: type information that matches the library, the embedded models, one version."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import structgen

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "structgen"


def test_the_stub_is_what_nanobind_writes(tmp_path) -> None:
    made = tmp_path / "_core.pyi"
    command = [sys.executable, "-m", "nanobind.stubgen", "-m", "structgen._core", "-o", str(made), "-q"]
    subprocess.run(command, check=True, cwd=ROOT)
    assert made.read_text() == (PACKAGE / "_core.pyi").read_text(), "run `make stubs`"


def test_the_package_is_typed() -> None:
    assert (PACKAGE / "py.typed").is_file()


def test_one_version() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["version"] == structgen.__version__
    assert f"## {structgen.__version__}" in (ROOT / "CHANGELOG.md").read_text()


def test_every_requirement_is_pinned() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    pinned = {line.split("==")[0].lower() for line in lines if "==" in line}
    extras = project["project"]["optional-dependencies"]
    asked = [r for e in extras.values() for r in e] + project["project"]["dependencies"]
    asked += project["build-system"]["requires"]
    names = {"".join(c if c.isalnum() or c == "-" else " " for c in r).split()[0].lower() for r in asked}
    assert names <= pinned, sorted(names - pinned)
