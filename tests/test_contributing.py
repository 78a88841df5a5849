"""The contributor's guide and CI: targets and files exist, tools have one version, the changelog has its
form."""

from __future__ import annotations

import ast
import re
import subprocess
from pathlib import Path

import pytest
import yaml

from oracles.documentation import make_targets

ROOT = Path(__file__).resolve().parents[1]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


def settings() -> set[str]:
    makefile = (ROOT / "Makefile").read_text()
    return set(re.findall(r"^([A-Z_]+) [?:]?=", makefile, re.MULTILINE)) | {"CXX"}


def test_contributing_shows_the_targets_of_daily_work() -> None:
    page = (ROOT / "CONTRIBUTING.md").read_text()
    shown = set(re.findall(r"^ {4}(?:[A-Z]+=\S+ )*make ([a-z-]+)", page, re.MULTILINE))
    assert {"setup", "core", "test", "lint", "format", "test-asan", "test-tsan", "fuzz", "bench"} <= shown


def test_contributing_lists_the_files_of_each_kind_of_change() -> None:
    """The steps of a recipe are the comments `Recipe, KIND N[, IF]: WHAT.` in the code, ordered by N."""
    steps: dict[str, list[tuple[int, str]]] = {}
    for folder in ("csrc", "structgen"):
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix not in (".cc", ".h", ".py"):
                continue
            for kind, n, case, what in re.findall(
                r"(?://|#|/\*) Recipe, ([a-z ]+) (\d)(, [^:\n]+)?: (.*?\.)(?: \*/)?$",
                path.read_text(),
                re.MULTILINE,
            ):
                shown = f"{n}. `{path.relative_to(ROOT)}`{case}: {what}"
                steps.setdefault(kind, []).append((int(n), shown))
    page = (ROOT / "CONTRIBUTING.md").read_text()
    part = page.split("## Where each kind of change goes")[1].split("\n## ")[0]
    listed = re.findall(r"(?<=\n\n)(?:\d\. .*\n)+", part)
    derived = ["".join(line + "\n" for _, line in sorted(found)) for found in steps.values()]
    assert sorted(listed) == sorted(derived)
    assert len(steps) == 11


def test_contributing_lists_the_files_that_name_a_keyword_or_its_atom() -> None:
    """Each row of the keyword recipe names a keyword and its atom. Steps, row and the last row together list
    all files of the core that name either, and all readers of schemas that name the keyword."""
    page = (ROOT / "CONTRIBUTING.md").read_text()
    part = page.split("**A JSON Schema keyword.**")[1].split("\n**")[0]
    files = r"`((?:csrc|structgen)/[^`]+)`"
    shared = re.findall(r"^\d\. " + files, part, re.MULTILINE)
    *rows, last = (line for line in part.splitlines() if line.startswith("| a"))
    rows = [row for row in rows if not row.startswith("| an assertion")]
    shared += re.findall(files, last)
    assert len(rows) == 4
    for row in rows:
        keyword, atom = re.findall(r"`(\w+)`", row.split("|")[2])
        named = {*shared, *re.findall(files, row)}
        core = re.compile(rf"\b(?:{atom}|k{keyword[0].upper()}{keyword[1:]})\b")
        python = re.compile(rf"""["']{keyword}["']""")
        found = {
            str(path.relative_to(ROOT))
            for folder, suffixes, pattern in (
                ("csrc/schema", (".cc", ".h"), core),
                ("csrc/engine", (".cc", ".h"), core),
                ("structgen", (".py",), python),
            )
            for path in (ROOT / folder).rglob("*")
            if path.suffix in suffixes and pattern.search(path.read_text())
        }
        assert found <= named, (keyword, sorted(found - named))


def test_contributing_lists_the_files_that_take_captured_texts_to_matter_by_equality() -> None:
    """These files tell a reader that a text differs from all others (`Reading::kFresh`), use what holds only
    for some such texts (`assumed`), or ask which rules compare texts (`compares`)."""
    page = (ROOT / "CONTRIBUTING.md").read_text()
    part = page.split("**A JSON Schema keyword.**")[1].split("\n1. ")[0]
    named = set(re.findall(r"`(csrc/[^`]+)`", part))
    equality = re.compile(r"Reading::(?:kFresh|fresh)\b|\bassumed\b|\.compares\b")
    found = {
        str(path.relative_to(ROOT))
        for path in (ROOT / "csrc").rglob("*")
        if path.suffix in (".cc", ".h") and equality.search(path.read_text())
    }
    assert found <= named, sorted(found - named)
    assert all((ROOT / file).exists() for file in named)


def test_methods_of_sampling_are_listed_once() -> None:
    """A new sampling method changes no test: a file that iterates over four or more methods takes the methods
    from the table METHODS."""
    from structgen.sampling.methods import METHODS

    for folder in ("structgen", "oracles", "tests"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            if path == ROOT / "structgen" / "sampling" / "methods.py":
                continue
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.List | ast.Tuple | ast.Set):
                    names = [part.value for part in node.elts if isinstance(part, ast.Constant)]
                    assert len(METHODS.keys() & {n for n in names if isinstance(n, str)}) < 4, (
                        f"{path.relative_to(ROOT)}:{node.lineno} lists methods"
                    )


def test_every_target_is_phony_and_explained() -> None:
    makefile = (ROOT / "Makefile").read_text().replace("\\\n", " ")
    (phony,) = re.findall(r"^\.PHONY:(.*)", makefile, re.MULTILINE)
    explained = set(re.findall(r"^([a-z][a-z-]*):[^\n]*## ", makefile, re.MULTILINE))
    assert make_targets() == set(phony.split()) == explained


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.name)
def test_workflows_call_what_a_person_calls(workflow) -> None:
    """Every `run` step is a file of .ci/ or a make target. The test fills in the values of a matrix."""
    parsed = yaml.safe_load(workflow.read_text())
    assert True in parsed and "jobs" in parsed  # YAML 1.1 reads the key `on` as true
    if workflow.name not in ("ci.yml", "nightly.yml"):
        return
    for job in parsed["jobs"].values():
        assert job["timeout-minutes"] <= 360
        runs = [step["run"] for step in job["steps"] if "run" in step]
        assert runs
        for run in runs:
            if found := re.fullmatch(r"structgen/(\.ci/\w+)( .*)?", run):
                assert (ROOT / found[1]).stat().st_mode & 0o111, found[1]
            else:
                assert run == "make -C structgen ${{ matrix.target }}", run
                for each in job["strategy"]["matrix"]["target"]:
                    target, *rest = each.split()
                    assert target in make_targets()
                    assert {name.split("=")[0] for name in rest} <= settings()


def test_issue_forms_and_hooks_are_yaml() -> None:
    for path in (ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml"):
        assert isinstance(yaml.safe_load(path.read_text()), dict), path
    hooks = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())["repos"][0]["hooks"]
    pins = set((ROOT / "constraints.txt").read_text().splitlines())
    asked = {name for hook in hooks for name in hook["additional_dependencies"]}
    assert {name.split("==")[0] for name in asked} == {"clang-format", "ruff"}
    assert asked <= pins, asked - pins


def test_scripts_of_ci_are_bash() -> None:
    for script in sorted((ROOT / ".ci").iterdir()):
        subprocess.run(["bash", "-n", str(script)], check=True)


def test_changelog_keeps_its_form() -> None:
    text = (ROOT / "CHANGELOG.md").read_text()
    versions = re.findall(r"^## (.*)$", text, re.MULTILINE)
    assert versions[0] == "[Unreleased]"
    assert all(re.fullmatch(r"\[\d+\.\d+\.\d+\] - \d{4}-\d\d-\d\d", v) for v in versions[1:])
    kinds = {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}
    for section in re.split(r"^## ", text, flags=re.MULTILINE)[1:]:
        found = re.findall(r"^### (.*)$", section, re.MULTILINE)
        assert set(found) <= kinds and len(found) == len(set(found)), found
