"""Checks of the built distributions, as a user installs them: `make test-wheel` runs this file after `make
wheel`.

Input: STRUCTGEN_DIST, a folder with one wheel and one sdist (default: dist/). The test installs the wheel
into a virtual environment outside of the checkout, made by STRUCTGEN_WHEEL_PYTHON (default: this Python).
Alternative input: STRUCTGEN_INSTALLED, an interpreter with the wheel installed, as cibuildwheel makes one.
Time: 20 s. The name of the file keeps it out of `make test`, which has no wheel.
"""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
DIST = Path(os.environ.get("STRUCTGEN_DIST", ROOT / "dist"))
INSTALLED = os.environ.get("STRUCTGEN_INSTALLED", "")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
ORDER = ROOT / "examples" / "order.schema.json"
COMMANDS = ("generate", "sample", "check", "compile", "mask", "bench", "grammar")

built = pytest.mark.skipif(bool(INSTALLED), reason="looks into the files of the distributions")


def the(pattern: str) -> Path:
    found = sorted(DIST.glob(pattern))
    assert len(found) == 1, f"{DIST} has {len(found)} files like {pattern}: run `make wheel`"
    return found[0]


def tracked(*folders: str) -> set[str]:
    done = subprocess.run(
        ["git", "ls-files", "-z", "--", *folders], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return {name for name in done.stdout.split("\0") if name}


# ---- the files ----


@built
def test_the_wheel_holds_what_git_tracks_and_nothing_else() -> None:
    names = {name for name in zipfile.ZipFile(the("*.whl")).namelist() if not name.endswith("/")}
    wanted = tracked("structgen") | {f"structgen/{name}" for name in tracked("grammars", "examples")}
    assert wanted <= names, f"not in the wheel: {sorted(wanted - names)}"
    rest = {name for name in names - wanted if ".dist-info/" not in name}
    assert len(rest) == 1, sorted(rest)
    assert re.fullmatch(r"structgen/_core(\..+)?\.(so|pyd)", rest.pop())


@built
def test_the_sdist_holds_what_a_build_needs() -> None:
    with tarfile.open(the("*.tar.gz")) as archive:
        names = {"/".join(m.name.split("/")[1:]) for m in archive.getmembers() if m.isfile()}
    wanted = tracked("structgen", "grammars", "csrc", "examples")
    wanted |= {"CMakeLists.txt", "LICENSE", "README.md", "CHANGELOG.md", "pyproject.toml"}
    assert wanted <= names, f"not in the sdist: {sorted(wanted - names)}"
    untracked = names - tracked() - {"PKG-INFO"}
    assert not untracked, sorted(untracked)
    folders = {name.split("/")[0] for name in names if "/" in name}
    assert folders == {"structgen", "grammars", "csrc", "examples"}


@built
def test_the_tags_say_where_the_wheel_runs() -> None:
    name, version, python, abi, platform = the("*.whl").stem.split("-")
    assert (name, version) == ("structgen_engine", version_in_the_source())
    assert (python, abi) in (("cp311", "cp311"), ("cp312", "abi3")) or abi.endswith("t")
    assert platform != "any"


def version_in_the_source() -> str:
    for node in ast.parse((ROOT / "structgen" / "__init__.py").read_text("utf-8")).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__version__":
            return str(ast.literal_eval(node.value))
    raise AssertionError("structgen/__init__.py has no __version__")


# ---- an installation ----


@dataclass(frozen=True)
class Home:
    """An interpreter with the wheel, and an empty working folder."""

    python: Path
    folder: Path

    def run(self, *command: str | Path, status: int = 0, **more: str) -> subprocess.CompletedProcess[str]:
        """Runs a command whose environment has nothing of the checkout."""
        kept = {
            k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "STRUCTGEN", "VIRTUAL_ENV"))
        }
        done = subprocess.run(
            [str(part) for part in command],
            cwd=self.folder,
            env=kept | {"HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"} | more,
            capture_output=True,
            text=True,
            timeout=300,
        )
        told = f"{command}: exit status {done.returncode}\n{done.stdout}\n{done.stderr}"
        assert done.returncode == status, told
        assert "Traceback" not in done.stderr, told
        return done

    def structgen(
        self, *arguments: str | Path, status: int = 0, **more: str
    ) -> subprocess.CompletedProcess[str]:
        script = self.python.with_name("structgen" + self.python.suffix)
        return self.run(script, *arguments, status=status, **more)


@pytest.fixture(scope="session")
def home(tmp_path_factory: pytest.TempPathFactory) -> Home:
    base = tmp_path_factory.mktemp("wheel")
    assert not base.resolve().is_relative_to(ROOT)
    (base / "work").mkdir()
    if INSTALLED:
        return Home(Path(INSTALLED), base / "work")
    creator = os.environ.get("STRUCTGEN_WHEEL_PYTHON", sys.executable)
    subprocess.run([creator, "-m", "venv", str(base / "venv")], check=True)
    python = base / "venv" / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    made = Home(python, base / "work")
    pip = ("-m", "pip", "--disable-pip-version-check", "install", "-q", "-c", ROOT / "constraints.txt")
    made.run(python, *pip, the("*.whl"))
    return made


@built
def test_numpy_is_all_that_comes_along(home: Home) -> None:
    listed = json.loads(home.run(home.python, "-m", "pip", "list", "--format", "json").stdout)
    assert {entry["name"] for entry in listed} - {"pip", "setuptools"} == {"numpy", "structgen-engine"}


LOADED = """
import sys, structgen, structgen._core
print(structgen.__file__, structgen._core.__file__)
known = {"structgen", "__main__", "sitecustomize", *sys.stdlib_module_names}
print(*sorted(name for name in sys.modules if "." not in name and name[0] != "_" and name not in known))
"""


def test_import_takes_the_installed_package_and_numpy(home: Home) -> None:
    package, core, *others = home.run(home.python, "-c", LOADED).stdout.split()
    for file in (package, core):
        assert not Path(file).resolve().is_relative_to(ROOT), file
    assert others == ["numpy"]


def test_the_metadata(home: Home) -> None:
    code = "import importlib.metadata as m, json; print(json.dumps(m.metadata('structgen-engine').json))"
    about = json.loads(home.run(home.python, "-c", code).stdout)
    version = version_in_the_source()
    assert about["version"] == version
    assert set(about["provides_extra"]) == set(PROJECT["project"]["optional-dependencies"])
    plain = [line for line in about["requires_dist"] if "extra ==" not in line]
    assert plain == PROJECT["project"]["dependencies"]
    assert home.structgen("--version").stdout == f"structgen {version}\n"
    assert home.run(home.python, "-m", "structgen", "--version").stdout == f"structgen {version}\n"


def test_help_of_every_command(home: Home) -> None:
    top = home.structgen("--help").stdout
    for command in COMMANDS:
        assert re.search(rf"^    {command}\b", top, re.MULTILINE), command
        text = home.structgen(command, "--help").stdout
        assert text.startswith(f"usage: structgen {command}")
        for inner in re.findall(r"^    ([a-z]+) {2,}", text, re.MULTILINE):
            assert home.structgen(command, inner, "--help").stdout.startswith(
                f"usage: structgen {command} {inner}"
            )


def test_check_compile_and_mask(home: Home) -> None:
    text = home.folder / "answer.json"
    text.write_text('{"customer":"A","items":[],"city":null,"date":null,"express":true}', "utf-8")
    assert home.structgen("check", ORDER, text).stdout == f"{text}: accepted\n"
    text.write_text('{"customer":"A","items":[{"product":"x","quantity":"two"}]}', "utf-8")
    found = home.structgen("check", ORDER, text, status=1).stdout
    assert "#/properties/items/items/properties/quantity/type" in found
    assert str(ORDER) in home.structgen("compile", ORDER).stdout
    mask = home.structgen("mask", ORDER, "--after", '{"customer":"A","items":[],"city":n')
    assert "`ull`" in mask.stdout and "must go on with `ull`" in mask.stderr, mask


def test_generate(home: Home) -> None:
    """Generates with the embedded model, which needs only numpy."""
    request = ("generate", "--schema", ORDER, "--prompt", "Ana ordered 2 lamps, ship to Porto")
    value = json.loads(home.structgen(*request).stdout)
    assert value["items"][0]["quantity"] == 2
    assert value["city"] == "Porto"


def test_the_library_of_grammars(home: Home) -> None:
    listed = home.structgen("grammar", "list").stdout.split("\n")[:-1]
    assert {line.split()[0] for line in listed} == {p.stem for p in (ROOT / "grammars").glob("*.[lg]*")}
    for name, dialect in (line.split()[:2] for line in listed):
        if dialect == "gbnf":
            assert "as they should be" in home.structgen("grammar", "test", name).stdout


def test_bench_masks(home: Home) -> None:
    schemas = home.folder / "schemas"
    schemas.mkdir()
    for name in ("order", "event", "person"):
        schema = json.loads((ROOT / "examples" / f"{name}.schema.json").read_text("utf-8"))
        case = {"schema": schema, "tests": [{"description": "", "valid": False, "data": {"no": "such"}}]}
        (schemas / f"{name}.json").write_text(json.dumps(case), "utf-8")
    run = (
        "bench",
        "masks",
        "--data",
        schemas,
        "--engines",
        "structgen",
        "--tokenizer",
        "embedded",
        "--jobs",
        "1",
    )
    home.structgen(*run, "--out", "run", "--strict", "--memory", "4")
    rows = [json.loads(line) for line in (home.folder / "run" / "rows.jsonl").read_text("utf-8").splitlines()]
    assert sorted(row["id"] for row in rows) == ["event", "order", "person"]
    assert all(row["num_invalid_tests"] == 1 and row["ttfm_us"] > 0 for row in rows), rows


# ---- absent extras ----

LARK = """
import structgen as sg
sg.Compiler(sg.Vocabulary.from_bytes([b"a", b""], eos_token_ids=1)).lark("start: A\\nA: /a/")
"""
TYPE = """
import dataclasses, structgen as sg
@dataclasses.dataclass
class A:
    x: int
sg.Compiler(sg.Vocabulary.from_bytes([b"a", b""], eos_token_ids=1)).json_schema(A)
"""
PICTURE = ("sample", "--prompt", "x", "--schema", str(ORDER), "--plot", "run.png")
BENCH = ("bench", "masks", "--data", "smoke")


@built
@pytest.mark.parametrize(
    ("extra", "command"),
    [
        ("lark", ("grammar", "test", "sql")),
        ("plot", PICTURE),
        ("hf", ("generate", "--schema", str(ORDER), "--prompt", "x", "--model", "some/model")),
        ("hf", ("mask", str(ORDER), "--tokenizer", "some/model")),
        ("bench", (*BENCH, "--engines", "llguidance", "--out", "a")),
        ("bench", (*BENCH, "--engines", "structgen", "--out", "b")),
        ("bench", (*BENCH[:2], "--data", "hub", "--out", "c")),
        (
            "ray",
            (*BENCH, "--engines", "structgen", "--tokenizer", "embedded", "--executor", "ray", "--out", "d"),
        ),
    ],
)
def test_a_command_names_the_extra_that_it_lacks(home: Home, extra: str, command: tuple[str, ...]) -> None:
    done = home.structgen(*command, status=2)
    lines = [line for line in done.stderr.splitlines() if not line.startswith("loading ")]
    assert len(lines) == 1 and lines[0].startswith("structgen: "), done.stderr
    assert lines[0].endswith(f"pip install 'structgen-engine[{extra}]'"), done.stderr


@built
@pytest.mark.parametrize(
    ("extra", "code"),
    [
        ("lark", LARK),
        ("types", TYPE),
        ("hf", "import structgen.integrations.transformers"),
        ("hf", "import structgen; structgen.generate('some/model', 'x', {})"),
    ],
)
def test_a_program_is_told_the_extra_that_it_lacks(home: Home, extra: str, code: str) -> None:
    code = (
        f"import structgen\ntry:\n    exec({code!r})\nexcept structgen.MissingDependency as e:\n    print(e)"
    )
    told = home.run(home.python, "-c", code).stdout
    assert told.endswith(f"pip install 'structgen-engine[{extra}]'\n"), told


# ---- types ----

PROGRAM = """
import numpy as np

import structgen as sg
from structgen import _core

vocabulary = sg.Vocabulary.from_bytes([bytes([i]) for i in range(256)] + [b""], eos_token_ids=256)
grammar: sg.CompiledGrammar = sg.Compiler(vocabulary).json_schema({"type": "integer"}, whitespace="compact")
matcher: sg.Matcher = grammar.matcher()
mask = sg.allocate_bitmask(1, vocabulary.vocab_size)
matcher.fill_bitmask(mask)
logits = sg.apply_bitmask(np.zeros(vocabulary.vocab_size, np.float32), mask[0])
accepted: bool = matcher.accept_token(int(logits.argmax()))
text: str = sg.generate(None, "a number", {"type": "integer"}).text
builder: _core.GrammarBuilder = _core.GrammarBuilder()
matcher.accept_token("1")  # type: ignore[arg-type]
count: int = matcher.is_accepting  # type: ignore[assignment]
builder.literal("1")  # type: ignore[arg-type]
"""


def test_a_typed_program(home: Home) -> None:
    """Each ignored line has a wrong type. Without the types, mypy would report the ignore comment as
    unused."""
    program = home.folder / "program.py"
    program.write_text(PROGRAM, "utf-8")
    cache = home.folder / "mypy"
    checker = (sys.executable, "-m", "mypy", "--strict", "--config-file=", f"--cache-dir={cache}")
    assert "no issues found" in home.run(*checker, f"--python-executable={home.python}", program).stdout
