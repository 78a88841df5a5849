"""Every #include and import follows the table in ARCHITECTURE.md, and importing structgen is light.

The table's rows are `| groups | may import |`. Groups are folders of csrc/ (`schema/read`) or structgen/, or
`structgen/*.py` for the package's own modules; groups in one row are one layer and may import each
other; one file (`structgen/__init__.py`) may have a row of its own. The second cell is a comma-separated
list of groups, `nothing`, `everything above`, `everything above but X`, `_core`, or one file
(`parse/productions.h`). A second table says the same of the repository's folders.
"""

from __future__ import annotations

import ast
import itertools
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
TOP = "structgen/*.py"
INIT = "structgen/__init__.py"
HEAVY = ("torch", "transformers", "numba", "jax", "tokenizers", "pydantic")


def read_table(text: str, heading: str = "group") -> dict[str, set[str]]:
    """Returns, for each group, the groups and single files that the group may import, itself included."""
    allowed: dict[str, set[str]] = {}
    lines = text.splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith(f"| {heading} |"))
    for line in itertools.takewhile(lambda line: line.startswith("|"), lines[start + 1 :]):
        left, right = line.strip().strip("|").split("|")
        if set(left.strip()) <= set("-: "):
            continue
        groups = [name.strip().strip("`") for name in left.split(",")]
        names = [n.strip().strip("`") for n in right.split(",")]
        found: set[str] = set(groups)
        for name in names:
            if name.startswith("everything above"):
                found |= allowed.keys() - {name.partition(" but ")[2].strip("`")}
            elif name != "nothing":
                found.add(name)
        for group in groups:
            allowed[group] = found
    return allowed


@pytest.fixture(scope="module")
def table() -> dict[str, set[str]]:
    return read_table((ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8"))


def includes() -> Iterator[tuple[str, str, str]]:
    """Yields (file, the file's group, the included header) for each header of the project."""
    base = ROOT / "csrc"
    for path in sorted(base.rglob("*")):
        if path.suffix not in (".h", ".cc", ".inc"):
            continue
        for name in re.findall(r'^\s*#\s*include\s+"([^"]+)"', path.read_text("utf-8"), re.MULTILINE):
            target = base / name
            if not target.exists():
                target = (path.parent / name).resolve()
            yield (
                path.relative_to(ROOT).as_posix(),
                path.parent.relative_to(base).as_posix(),
                (target.relative_to(base).as_posix() if target.exists() else name),
            )


def group_of(module: str) -> str | None:
    """Returns the group of a dotted module name, or None outside the package."""
    parts = module.split(".")
    if parts[0] != "structgen":
        return None
    if parts[1:2] == ["_core"]:
        return "_core"
    if parts[1:2] == ["__main__"]:
        return "cli"
    if len(parts) > 1 and (ROOT / "structgen" / parts[1]).is_dir():
        return parts[1]
    return TOP


def imports() -> Iterator[tuple[str, str, str]]:
    """Yields (file, the file's group, an imported group)."""
    for path in sorted((ROOT / "structgen").rglob("*.py")):
        relative = path.relative_to(ROOT)
        package = ".".join(relative.parts[:-1])
        own = group_of(".".join([*relative.parts[:-1], relative.stem]))
        if relative.as_posix() == INIT:
            own = INIT
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            names: list[str] = []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                base = node.module or ""
                if node.level:
                    parents = package.split(".")[: len(package.split(".")) - node.level + 1]
                    base = ".".join([*parents, base]).strip(".")
                names = [f"{base}.{alias.name}" for alias in node.names]
            for name in names:
                group = group_of(name)
                if group is not None and own is not None:
                    yield relative.as_posix(), own, group


def test_every_folder_has_a_row(table) -> None:
    folders = {group for _, group, _ in includes()}
    folders |= {p.name for p in (ROOT / "structgen").iterdir() if p.is_dir() and any(p.glob("*.py"))}
    assert folders <= table.keys(), sorted(folders - table.keys())


def test_includes_follow_the_table(table) -> None:
    wrong = [
        f"{file} includes {name}"
        for file, group, name in includes()
        if "/" in name and name.rpartition("/")[0] not in table[group] and name not in table[group]
    ]
    assert not wrong, "\n".join(wrong)


def test_imports_follow_the_table(table) -> None:
    wrong = [
        f"{file} imports {group}"
        for file, own, group in imports()
        if group != own and group not in table[own]
    ]
    assert not wrong, "\n".join(wrong)


def absolute(path: Path) -> Iterator[str]:
    """Yields the top-level names of all imports of a file, also of imports inside functions."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            yield (node.module or "").split(".")[0]


def test_folders_of_the_repository_follow_their_table() -> None:
    """Tests and developers' runs share `oracles/` and do not import each other."""
    folders = read_table((ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8"), "folder")
    known = {p.parent.name for p in ROOT.glob("*/*.py")} - {"structgen", "docs"}
    assert known <= folders.keys(), sorted(known - folders.keys())
    wrong = []
    for path in sorted(ROOT.glob("*/**/*.py")):
        parts = path.relative_to(ROOT).parts
        folder = next((f for f in ("/".join(parts[:2]), parts[0]) if f in folders), None)
        if folder is None:
            continue
        own = folder.split("/")[0]
        named = {name for name in absolute(path) if name in known | {"structgen"} and name != own}
        wrong += [f"{path.relative_to(ROOT)} imports {name}" for name in sorted(named - folders[folder])]
    assert not wrong, "\n".join(wrong)
    assert "bench" not in folders["tests"] and "tests" not in folders["bench"]


def modules() -> dict[str, Path]:
    """Returns every module of the package by its dotted name."""
    found = {}
    for path in sorted((ROOT / "structgen").rglob("*.py")):
        parts = path.relative_to(ROOT).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def imported(module: str, path: Path, known: dict[str, Path]) -> set[str]:
    """Returns the modules that a module imports at any time: also inside functions, but not under
    TYPE_CHECKING."""
    tree = ast.parse(path.read_text("utf-8"))
    hidden = {
        inner
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
        for part in node.body
        for inner in ast.walk(part)
    }
    package = module if path.stem == "__init__" else module.rpartition(".")[0]
    found = set()
    for node in ast.walk(tree):
        names: list[str] = []
        if node in hidden:
            continue
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            parts = package.split(".")
            base = ".".join([*parts[: len(parts) - node.level + 1], node.module or ""] if node.level else [])
            base = (base or node.module or "").strip(".")
            names = [f"{base}.{alias.name}" for alias in node.names]
        for name in names:
            while name and name not in known:
                name = name.rpartition(".")[0]
            if name and not (name == "structgen" and "_core" in str(names)):
                found.add(name)
    return found - {module}


def cycle(graph: dict[str, set[str]]) -> list[str]:
    """Returns, sorted, the nodes that lie on a cycle or lead into one. The function removes nodes without
    outgoing edges until every node has one."""
    left = {node: set(kids) for node, kids in graph.items()}
    while free := {node for node, kids in left.items() if not kids & left.keys()}:
        for node in free:
            del left[node]
    return sorted(left)


def test_no_module_imports_itself_in_a_circle() -> None:
    known = modules()
    assert cycle({name: imported(name, path, known) for name, path in known.items()}) == []
    assert cycle({"a": {"b"}, "b": {"c"}, "c": {"b"}, "d": set()}) == ["a", "b", "c"]


def test_include_knots_stay_small() -> None:
    """A header and its `.cc` are one unit. A reader must read units that include each other in a circle
    together. The largest circle once had nine units, around the solver of formulas."""
    graph: dict[str, set[str]] = {}
    for file, _, name in includes():
        unit = Path(file).relative_to("csrc").with_suffix("").as_posix()
        graph.setdefault(unit, set()).add(Path(name).with_suffix("").as_posix())
    behind: dict[str, set[str]] = {}
    for unit in graph:
        todo, seen = list(graph[unit]), set[str]()
        while todo:
            if (at := todo.pop()) not in seen:
                seen.add(at)
                todo += graph.get(at, ())
        behind[unit] = seen
    knots = {frozenset(v for v in behind[u] if u in behind.get(v, ())) for u in behind}
    assert max(map(len, knots)) <= 2, sorted(knots, key=len)[-1]


def test_import_is_light() -> None:
    code = f"import sys, structgen; print([m for m in {HEAVY!r} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


# A thread that holds a lock of these files never waits for other work of the core. A forked child does not
# use the locks.
OWN_THREADS = {
    "csrc/base/depth.cc",
    "csrc/base/fork.h",
    "csrc/base/fork.cc",
    "csrc/engine/batch.cc",
    "csrc/engine/reaper.cc",
    "csrc/engine/reaper.h",
}


def test_functions_that_are_named_exist() -> None:
    named = set(re.findall(r"`(\w+::\w+)`", (ROOT / "ARCHITECTURE.md").read_text("utf-8")))
    source = "\n".join(path.read_text("utf-8") for path in (ROOT / "csrc").rglob("*.[hc]*"))
    inside = "\n".join(re.findall(r"^(?:class|struct) \w+.*?^};", source, re.MULTILINE | re.DOTALL))
    for name in sorted(named):
        kind, function = name.split("::")
        found = re.search(rf"\b{kind}::{function}\b", source) or (
            re.search(rf"\b(?:class|struct) {kind}\b", inside) and re.search(rf"\b{function}\(", inside)
        )
        assert found, f"{name} is in ARCHITECTURE.md and not in csrc/"
    assert len(named) > 20


def test_locks_of_the_core_are_free_in_a_forked_child() -> None:
    """Every lock is a Mutex of base/fork.h, except for the listed ones. A static object of a function has a
    hidden lock, too."""
    for path in sorted((ROOT / "csrc").rglob("*.[hc]*")):
        text, name = path.read_text("utf-8"), path.relative_to(ROOT).as_posix()
        if "std::call_once" in text:
            assert "ForkSection" in text, f"{name}: std::call_once outside of a ForkSection"
        if name not in OWN_THREADS:
            assert not re.search(r"std::(shared_|recursive_|timed_)?mutex\b", text), f"{name}: use Mutex"


def test_the_table_can_say_no() -> None:
    rows = (
        "group | may import",
        "---|---",
        "base | nothing",
        "a, b | base",
        "c | everything above but a",
    )
    text = "".join(f"| {row} |\n" for row in rows)
    found = read_table(text)
    assert found == {
        "base": {"base"},
        "a": {"a", "b", "base"},
        "b": {"a", "b", "base"},
        "c": {"b", "base", "c"},
    }


def test_no_number_is_read_by_the_locale() -> None:
    """`strtod` reads "1.5" as 1 if the locale writes decimals with a comma."""
    reads = re.compile(r"\b(?:strto[dfl]+d?|atof|sto[dfl]d?|sscanf|setlocale)\s*\(")
    found = {
        str(path.relative_to(ROOT))
        for path in (ROOT / "csrc").rglob("*.[ch]*")
        for line in path.read_text(encoding="utf-8").splitlines()
        if reads.search(line) and not re.search(r"\b(?:strtol|strtoll|stol|stoll)\b", line)
    }
    assert not found


def test_no_two_classes_share_a_name() -> None:
    """The linker keeps one definition of each inline function. Two classes of one name would share a
    destructor, and the destructor would free memory with the layout of the other class."""
    defined: dict[str, str] = {}
    for path in sorted((ROOT / "csrc").rglob("*.h")):
        for name in re.findall(
            r"^(?:class|struct) (\w+)(?: final)?(?: :[^:]| \{)", path.read_text("utf-8"), re.M
        ):
            here = path.relative_to(ROOT).as_posix()
            assert defined.setdefault(name, here) == here, f"{name} is defined in {defined[name]} and {here}"


def test_no_test_imports_a_test() -> None:
    """Helpers of two tests stand in `oracles/`. No test imports another one, or `conftest.py`."""
    wrong = []
    for path in sorted((ROOT / "tests").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Import):
                found = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                found = [node.module or ""] if not node.level else ["tests"]
            else:
                continue
            wrong += [
                f"{path.relative_to(ROOT)}:{node.lineno} imports {name}"
                for name in found
                if name.split(".")[0] == "tests"
                or name.split(".")[-1].startswith("test_")
                or name == "conftest"
            ]
    assert not wrong, "\n".join(wrong)


def test_every_module_has_a_line_in_the_folders() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text("utf-8")
    part = text.split("## The folders")[1].split("\n## ")[0]
    listed = re.findall(r"^    (\S+) +\S", part, re.MULTILINE)
    folders = {p.parent.relative_to(ROOT).as_posix() for p in (ROOT / "csrc").rglob("*.h")}
    folders |= {p.parent.name for p in (ROOT / "structgen").glob("*/__init__.py")}
    modules = {p.name for p in (ROOT / "structgen").glob("[a-z]*.py")}
    assert folders | modules <= set(listed), sorted((folders | modules) - set(listed))
    assert len(listed) == len(set(listed))
    for name in listed:
        places = (ROOT / name, ROOT / "structgen" / name)
        assert any(place.exists() for place in places), f"{name} is in ARCHITECTURE.md and nowhere else"


def test_a_constant_of_the_core_has_one_meaning() -> None:
    """A constant `kMax...` is a limit of one file. `kNone` and `kUnset` have one value in all files."""
    defined: dict[str, str] = {}
    for path in sorted((ROOT / "csrc").rglob("*.[hc]*")):
        here = path.relative_to(ROOT).as_posix()
        for line in re.findall(
            r"^(?:inline |static )?constexpr ([^(\n]*[={].*)", path.read_text("utf-8"), re.M
        ):
            for name in re.findall(r"\b(k[A-Z]\w*)(?:\[\w*\])? ?[={]", line):
                if not name.startswith("kMax") and name not in ("kNone", "kUnset"):
                    assert defined.setdefault(name, here) == here, f"{name}: {defined[name]} and {here}"
    assert len(defined) > 150
