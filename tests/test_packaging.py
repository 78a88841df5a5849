"""The contents of the package: type stubs that match the library, the embedded models, and one version."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import structgen
from structgen import _extras

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
    """structgen/__init__.py states the version, and the build reads it there."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert "version" not in project["project"] and project["project"]["dynamic"] == ["version"]
    assert project["tool"]["scikit-build"]["metadata"]["version"]["input"] == "structgen/__init__.py"
    assert f"## [{structgen.__version__}]" in (ROOT / "CHANGELOG.md").read_text()


def test_every_hint_names_the_distribution() -> None:
    """On PyPI `structgen` is another project, so no line may tell a reader to install `structgen`."""
    wrong = []
    for name in texts():
        lines = (ROOT / name).read_text("utf-8", "replace").splitlines()
        wrong += [f"{name}:{i}: {line.strip()}" for i, line in enumerate(lines, 1) if misnamed(line)]
    assert not wrong, "\n".join(wrong)


def texts() -> list[str]:
    """Text files without data: those that git tracks, and new files that git does not ignore."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    if done.returncode:
        pytest.skip("no git checkout")
    kinds = (
        *(".py", ".md", ".toml", ".yml", ".yaml", ".txt", ".cff", ".ipynb", "Makefile", "Dockerfile"),
        ".ci/run",
    )
    return [name for name in done.stdout.split("\0") if name.endswith(kinds) and (ROOT / name).is_file()]


def misnamed(line: str) -> bool:
    """Returns whether a line gives `structgen`, or an extra of `structgen`, to an installer."""
    installer = r"(?:pip3?|pipx|uv|poetry|pdm|conda)\b.*?\b(?:install|add)\b"
    name = r"(?<![\w./'-])['\"]?structgen(?=[\s'\"`),;\[=<>~!]|$)(?!\.)"
    return bool(
        re.search(installer + r"[^`#;&|]*?" + name, line) or re.search(r"\bstructgen\[[a-z,-]+\]", line)
    )


@pytest.mark.parametrize(
    ("line", "wrong"),
    [
        ("pip install struct" + "gen", True),
        ("run `pip install -U struct" + "gen` first", True),
        ("pip install 'struct" + "gen==0.1'", True),
        ('uv pip install "struct' + 'gen[hf]"', True),
        ("the struct" + "gen[lark] extra", True),
        ("pip install structgen-engine", False),
        ("pip install 'structgen-engine[hf]'", False),
        ("pip install ./structgen", False),
        ("pip install -e .  # structgen from a checkout", False),
        ("pip install numpy; structgen --version", False),
        ("import structgen", False),
    ],
)
def test_what_counts_as_misnamed(line: str, wrong: bool) -> None:
    assert misnamed(line) == wrong


def test_every_extra_that_is_named_has_its_packages() -> None:
    """An extra that an error names must install the missing package."""
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    of_import = {
        "mistral_common": "mistral-common",
        "grid": "grid-guardrail",
        "lmformatenforcer": "lm-format-enforcer",
    }
    for package, extra in _extras.EXTRAS.items():
        name = of_import.get(package, package.replace("_", "-"))
        assert any(re.match(rf"{name}\b(?!-)", asked) for asked in extras[extra]), (package, extra)


def test_an_error_tells_absence_from_failure() -> None:
    absent = _extras.missing(ModuleNotFoundError("No module named 'lark'", name="lark"), "Lark grammars")
    assert str(absent) == (
        "the package lark is not installed; Lark grammars need it: pip install 'structgen-engine[lark]'"
    )
    broken = _extras.missing(ImportError("libc10.so: no such file", name="torch._C"), "")
    assert str(broken) == (
        "the package torch cannot be imported (libc10.so: no such file); pip install 'structgen-engine[hf]'"
    )
    other = ImportError("of something else", name="else")
    assert _extras.missing(other, "x") is other
    assert _extras.missing(absent, "") is absent


@pytest.mark.parametrize("name", ["lark.py", "run.py"])
def test_a_file_that_hides_a_package_is_named(name, tmp_path) -> None:
    """If the user's program has a file `lark.py`, Python imports this file in place of the package. The error
    names the file; the program itself may have this name."""
    (tmp_path / "lark.py").write_text("")
    (tmp_path / name).write_text(
        "import structgen as sg\n"
        "c = sg.Compiler(sg.Vocabulary.from_bytes([bytes([i]) for i in range(256)] + [b''], 256))\n"
        "try:\n    c.lark('start: /a/')\nexcept sg.MissingDependency as error:\n    print(error)\n"
    )
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    run = subprocess.run(
        [sys.executable, name], cwd=tmp_path, env=env, capture_output=True, text=True, check=True
    )
    file = tmp_path / "lark.py"
    assert f"{file} hides the package lark; rename that file" in run.stdout


def test_a_release_is_what_its_tag_says(tmp_path) -> None:
    """The checks of the release workflow: the version, the changelog and the repository's address."""
    spec = importlib.util.spec_from_file_location("check_release", ROOT / "tools" / "check_release.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    (tmp_path / "structgen").mkdir()
    (tmp_path / "structgen" / "__init__.py").write_text('__version__ = "1.2.0"\n')
    (tmp_path / "CHANGELOG.md").write_text("# Changes\n\n## Unreleased\n\n## [1.2.0] - 2026-11-22\n")
    (tmp_path / "pyproject.toml").write_text('[project]\n[project.urls]\nSource = "x"\n')
    assert module.problems("v1.2.0", tmp_path) == []
    assert len(module.problems("v1.2", tmp_path)) == 1
    (tmp_path / "CHANGELOG.md").write_text("## 1.2.01\n## Unreleased\n")
    (tmp_path / "pyproject.toml").write_text("[project]\n")
    assert len(module.problems("1.2.0", tmp_path)) == 3


def test_the_installed_lark_is_one_that_the_extra_allows() -> None:
    """structgen uses names that Lark does not promise to keep, so pyproject.toml limits Lark's versions. The
    installed Lark is one of them."""
    from packaging.requirements import Requirement

    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    (asked,) = extras["lark"]
    assert "<" in asked
    assert importlib.metadata.version("lark") in Requirement(asked).specifier


def test_every_requirement_is_pinned() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    pinned = {line.split("==")[0].lower() for line in lines if "==" in line}
    extras = project["project"]["optional-dependencies"]
    asked = [r for e in extras.values() for r in e] + project["project"]["dependencies"]
    asked += project["build-system"]["requires"]
    names = {"".join(c if c.isalnum() or c == "-" else " " for c in r).split()[0].lower() for r in asked}
    names.discard("structgen-engine")  # extras include other extras
    assert names <= pinned, sorted(names - pinned)


def test_a_checkout_without_the_core_says_so(tmp_path: Path) -> None:
    """The error once said "circular import"."""
    folder = tmp_path / "structgen"
    folder.mkdir()
    shutil.copy(Path(structgen.__file__), folder)
    done = subprocess.run(
        [sys.executable, "-S", "-c", "import structgen"], cwd=tmp_path, capture_output=True, text=True
    )
    assert "core is not built" in done.stderr and "make core" in done.stderr
    assert "circular" not in done.stderr


def test_sub_packages_are_there_without_an_import() -> None:
    program = "import structgen as sg; print(sg.sampling.Predicate, sg.speculation.Speculation, sg.lm.base)"
    assert subprocess.run([sys.executable, "-c", program], capture_output=True).returncode == 0
