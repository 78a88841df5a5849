"""The pages of docs/ are true: every code block runs or states why not, outputs match, and commands, flags,
files, names and links exist. The tests supply the model and the files that a snippet expects from its reader.

`oracles/documentation.py` lists the marks of code blocks. The snippets of a page run in order, in one
namespace, in a folder with a copy of the examples.
"""

from __future__ import annotations

import ast
import contextlib
import dataclasses
import datetime
import decimal
import enum
import functools
import glob
import io
import ipaddress
import json
import re
import subprocess
import sys
import typing
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import structgen as sg
from oracles import closed, data, documentation
from oracles.documentation import ROOT, Block, DocumentationError
from structgen.cli import main
from structgen.constraints import NAMED
from structgen.generation.options import Settings
from structgen.lm import embedded

PAGES = [
    path.relative_to(ROOT).as_posix()
    for pattern in (
        "README.md",
        "CONTRIBUTING.md",
        "SECURITY.md",
        "docs/**/*.md",
        "fuzz/README.md",
        "structgen/lm/embedded/*.md",
    )
    for path in sorted(ROOT.glob(pattern))
]
REFERENCE = "docs/reference/generating.md"
OPTIONAL = ("torch", "transformers", "lark", "pydantic", "matplotlib")


def text_of(page: str) -> str:
    return (ROOT / page).read_text(encoding="utf-8")


# ---- what a page expects from its reader ----


class Names(dict[str, Any]):
    """A page's namespace. The first use of a name makes the reader's object, if a sentence above the snippet
    names it."""

    def __init__(self) -> None:
        super().__init__(__name__="__main__")
        self.named: set[str] = set()

    def __missing__(self, name: str) -> Any:
        if name not in self.named or name not in READER:
            raise KeyError(name)  # Python turns it into a NameError
        self[name] = READER[name]()
        return self[name]


@functools.cache
def _transformers() -> tuple[Any, Any]:
    import transformers

    model = transformers.AutoModelForCausalLM.from_pretrained(embedded.path("target"))
    model.generation_config.max_new_tokens = 60
    return model, transformers.AutoTokenizer.from_pretrained(embedded.path("target"))


def _inputs() -> Any:
    schema = json.loads((ROOT / "examples" / "order.schema.json").read_text(encoding="utf-8"))
    return _transformers()[1](embedded.format_prompt(PROMPT, schema), return_tensors="pt")


def _logits() -> np.ndarray:
    """Scores of a model that prefers the tokens that end a text or a value."""
    vocab = sg.Vocabulary.from_file(embedded.path())
    first = {b'"': 2.0, b"}": 1.0, b"]": 1.0}
    scores = np.array([[first.get(text, 0.0) for text in vocab.tokens]], np.float32)
    scores[0, vocab.eos_token_ids] = 3.0
    return scores


PROMPT = "Maria Lopez ordered 3 oak chairs and 2 desk lamps, ship to Lisbon by 5 March 2027"
READER: dict[str, Callable[[], Any]] = {
    "model": lambda: _transformers()[0],
    "tokenizer": lambda: _transformers()[1],
    "inputs": _inputs,
    "prompt": lambda: PROMPT,
    "logits": _logits,
    "pick": lambda: lambda scores: int(np.argmax(scores)),
}
FILES = {
    "answer.json": '{"customer":"A","items":[{"product":"x","quantity":"two"}]}',
    "order.json": json.dumps(
        closed({"product": {"enum": ["blue shirt", "shirts"]}, "quantity": {"enum": [1, 2, 3]}})
    ),
    "greeting.gbnf": 'root ::= "Hello" | "Good " ("morning" | "evening")',
}


@pytest.fixture(autouse=True)
def one_thread():
    """Limits torch to one thread. On a busy machine, threads that wait for each other take minutes for small
    models."""
    try:
        import torch
    except ModuleNotFoundError:
        yield
        return
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Path:
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    for name, text in FILES.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


# ---- running ----


def run_python(block: Block, names: Names) -> None:
    for statement in documentation.statements(block.text):
        ast.increment_lineno(statement.node, block.line - 1)
        said, value = io.StringIO(), None
        with contextlib.redirect_stdout(said):
            if isinstance(statement.node, ast.Expr):
                value = eval(
                    compile(ast.Expression(statement.node.value), block.page, "eval", dont_inherit=True),
                    names,
                )
            else:
                exec(compile(ast.Module([statement.node], []), block.page, "exec", dont_inherit=True), names)
        if wrong := statement.wrong_output(value, said.getvalue()):
            raise DocumentationError(f"{block.page}:{statement.node.lineno}: {wrong}")


def run_command(place: str, words: list[str]) -> str:
    """Returns the output of a command, messages included. `structgen` runs in this process with the loaded
    model."""
    words = [name for word in words for name in (sorted(glob.glob(word)) or [word])]
    program, *rest = words
    if program == "structgen":
        printed = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
        with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
            status = main(rest)
            printed.flush()
        text = printed.buffer.getvalue().decode()  # type: ignore[attr-defined]
    elif program.startswith("python") and rest[:1] == ["-m"]:
        done = subprocess.run([sys.executable, *rest], capture_output=True, text=True, cwd=ROOT)
        status, text = done.returncode, done.stdout + done.stderr
    else:
        raise DocumentationError(f"{place}: no test runs {program!r}: give the block a mark")
    rejected = program == "structgen" and rest[0] == "check" and status == 1
    if status and not rejected:
        raise DocumentationError(f"{place}: `{' '.join(words)}` ends with {status}: {text.strip()[-300:]}")
    return text


def run_block(block: Block, names: Names) -> None:
    if block.kind == "python":
        run_python(block, names)
    elif block.kind == "shell":
        for words in documentation.commands(block.text):
            run_command(block.place, words)
    elif block.kind == "output":
        (words,) = documentation.commands(block.detail)
        printed = run_command(block.place, words)
        if not documentation.same_output(block.text, printed):
            raise DocumentationError(f"{block.place}: `{block.detail}` prints\n{printed}\nnot\n{block.text}")


@pytest.mark.parametrize("page", PAGES)
def test_snippets_run(page: str, folder: Path) -> None:
    names = Names()
    tokens = documentation.parsed(text_of(page))
    for block in documentation.blocks(page, text_of(page)):
        names.named = documentation.names_above(tokens, block.line)
        try:
            run_block(block, names)
        except ModuleNotFoundError as error:
            data.need(error.name not in OPTIONAL, f"{block.place} needs {error.name}")
            raise
        except DocumentationError:
            raise
        except Exception as error:
            error.add_note(f"in {block.place}")
            raise


# ---- pages' contents that do not run ----


# runpy warns of modules that are imported already
@pytest.mark.filterwarnings("ignore:.*found in sys.modules:RuntimeWarning")
@pytest.mark.parametrize("page", PAGES)
def test_commands_that_are_not_run_exist(page: str) -> None:
    wrong = []
    for block in documentation.blocks(page, text_of(page)):
        if block.kind in ("slow", "network", "gpu") and block.language in ("python", "py"):
            ast.parse(block.text)
        elif block.kind in ("slow", "network", "gpu"):
            for words in documentation.commands(block.text):
                if problem := documentation.wrong_command(words):
                    wrong.append(f"{block.place}: {' '.join(words)}: {problem}")
    for line, span in documentation.spans(documentation.parsed(text_of(page))):
        if re.match(r"(structgen|make|pip install|python[\d.]* -m) \S", span):
            (words,) = documentation.commands(span)
            if problem := documentation.wrong_span(words):
                wrong.append(f"{page}:{line}: {span}: {problem}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("page", [*PAGES, "ARCHITECTURE.md"])
def test_files_and_links_exist(page: str) -> None:
    text, base = text_of(page), (ROOT / page).parent
    tokens, wrong = documentation.parsed(text), []
    for line, target in documentation.links(tokens):
        if re.match(r"[a-z]+:", target):
            continue
        name, _, anchor = target.partition("#")
        path = base / name if name else ROOT / page
        if not path.exists():
            wrong.append(f"{page}:{line}: no {target}")
        elif anchor and anchor not in documentation.anchors(path.read_text(encoding="utf-8")):
            wrong.append(f"{page}:{line}: {target} has no such heading")
    roots = (ROOT, base, ROOT / "csrc", ROOT / "structgen", ROOT / "tests")
    for line, span in documentation.spans(tokens):
        if re.fullmatch(r"[\w*-]+(/[\w.*-]+)+\.(py|h|cc|inc|ld|txt|md|json|jsonl|png|supp)", span):
            there = any(next(root.glob(span), None) for root in roots)
            if not there and not span.startswith(("build/", "training/runs/")):
                wrong.append(f"{page}:{line}: no file {span}")
    assert not wrong, "\n".join(wrong)


OWNERS: dict[str, Any] = {
    "sg": sg,
    "structgen": sg,
    "compiler": sg.Compiler,
    "grammar": sg.CompiledGrammar,
    "matcher": sg.Matcher,
    "vocab": sg.Vocabulary,
}


@pytest.mark.parametrize("page", PAGES)
def test_names_exist(page: str) -> None:
    """Names in sentences exist, for example `sg.generate` and `matcher.fork()`."""
    import structgen.integrations
    import structgen.sampling
    import structgen.speculation  # noqa: F401

    wrong = []
    for line, span in documentation.spans(documentation.parsed(text_of(page))):
        found = re.match(r"([a-z]+)\.(\w+)(?!\w|/)(?:[.(\[ ]|$)", span)
        if found and found[1] in OWNERS and not hasattr(OWNERS[found[1]], found[2]):
            wrong.append(f"{page}:{line}: {span}: no {found[2]}")
    assert not wrong, "\n".join(wrong)


# ---- tables about the code ----


def _rows(page: str, heading: str) -> list[list[str]]:
    """Returns the cells of the first table below a heading."""
    below = text_of(page).partition(f"\n## {heading}\n")[2]
    lines = re.search(r"(?:^\|.*\n)+", below, re.MULTILINE)
    assert lines is not None, f"{page} has no table below {heading!r}"
    cells = [re.split(r"(?<!\\)\|", line.strip().strip("|")) for line in lines[0].splitlines()[2:]]
    return [[cell.strip().replace("\\|", "|") for cell in row] for row in cells]


def _code(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell)


def test_the_table_of_types() -> None:
    """In each row, the engine accepts the texts of "for example" and refuses the texts of "not"."""
    pydantic = pytest.importorskip("pydantic", reason="pydantic is not installed: it is in the extra types")
    names: dict[str, Any] = {"Color": enum.Enum("Color", {"RED": "red", "BLUE": "blue"})}
    names["Stay"] = dataclasses.make_dataclass(
        "Stay", [("guest", str), ("nights", int), ("arrival", datetime.date)]
    )
    names |= {name: getattr(typing, name) for name in ("Annotated", "Any", "Literal")}
    names |= {name: getattr(pydantic, name) for name in ("Field", "HttpUrl", "Json")}
    names |= {"datetime": datetime, "decimal": decimal, "ipaddress": ipaddress, "uuid": uuid}

    def book(guest: str) -> None: ...

    names["book"] = book
    names["Place"] = typing.NamedTuple("Place", [("row", int), ("seat", str)])
    compiler, checked = sg.Compiler(sg.Vocabulary.from_file(embedded.path())), 0
    for kinds, _, taken, refused in _rows("docs/types.md", "What is written"):
        for kind in _code(kinds):
            grammar = compiler.json_schema(eval(kind, names), whitespace="compact")
            for text in _code(taken) + _code(refused):
                matcher = grammar.matcher()
                fits = matcher.accept_bytes(text) and matcher.is_accepting()
                assert fits == (text in _code(taken)), f"{kind}: {text} is {'' if fits else 'not '}taken"
                checked += 1
    assert checked > 50


def test_the_table_of_options() -> None:
    """The table has every option of a call, with its default."""
    shown = {name: default for names, _, default, _ in _rows(REFERENCE, "Options") for name in _code(names)}
    wanted = {one.name: one.default for one in dataclasses.fields(Settings) if one.init}
    wanted |= dict.fromkeys(NAMED)
    assert set(shown) == set(wanted)
    assert {name: ast.literal_eval(_code(text)[0]) for name, text in shown.items()} == wanted


def test_the_reference_is_whole() -> None:
    pages = [page for page in PAGES if page.startswith("docs/reference/")]
    named = [
        name for page in pages for name in re.findall(r"^::: structgen\.(\w+)$", text_of(page), re.MULTILINE)
    ]
    assert sorted(named) == sorted(name for name in sg.__all__ if not name.startswith("__"))


# ---- the harness itself ----


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("```yaml\na: 1\n```", "a block of 'yaml' needs a mark"),
        ("<!-- doctest: later -->\n\n    structgen --version", "unknown mark 'later'"),
        ("<!-- doctest: network: -->\n\n    structgen --version", "gives no reason"),
        ("<!-- doctest: slow: covered by tests/none.py -->\n\n    make test", "no test and no make target"),
        ("<!-- doctest: slow: some day -->\n\n    make test", "no test and no make target"),
    ],
)
def test_a_mark_that_says_nothing_fails(text: str, problem: str) -> None:
    with pytest.raises(DocumentationError, match=f"page:.*{problem}"):
        documentation.blocks("page", text)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("    rm -rf build", "no test runs 'rm': give the block a mark"),
        ("    structgen check examples/none.json", "ends with 2"),
        ("```python\nprint(1 + 1)  # 3\n```", r"page:2: it prints '2\\n', not '3'"),
        ("```python\nprint(1 + 1)\n# 3\n```", r"page:2: it prints '2\\n', not '3'"),
        ("```python\n1 + 1  # the sum\n```", "page:2: its value is 2, not 'the sum'"),
        ("```python\nprint(1 + 1)\n\n# prose\n```", "no comment behind it or below it shows that"),
        ("```python\nfor i in (1, 2):\n    print(i)  # 1\n```", r"page:2: it prints '1\\n2\\n'"),
        ("```python\nx = 1\nfor i in (1, 2):\n    print(i)\n# 1\n# 3\n```", "page:3: it prints"),
        ("<!-- doctest: output of structgen --version -->\n\n    structgen 0", "prints"),
        ("- one\n\n      structgen no-such-command", "ends with 2"),
    ],
)
def test_what_is_not_so_fails(text: str, problem: str, folder: Path) -> None:
    with pytest.raises((DocumentationError, SystemExit)) as caught:
        for block in documentation.blocks("page", text):
            run_block(block, Names())
    assert isinstance(caught.value, SystemExit) or re.search(problem, str(caught.value))


@pytest.mark.parametrize(
    ("command", "problem"),
    [
        ("structgen generate --prompt a --spectate auto", "spectate"),
        ("structgen grammar rest", "rest"),
        ("structgen generate ... --speculate auto", None),
        ("make tests", "no target 'tests'"),
        ("make fuzz FUZZ_MINUTES=3", "no variable 'FUZZ_MINUTES'"),
        ("make fuzz FUZZ_SECONDS=3", None),
        ("python -m bench.suite --draughts draft7", "draughts"),
        ("python -m bench.suite --drafts draft7", None),
        ("python -m bench.sweet", "bench.sweet"),
        ("python -m pytest tests/test_none.py", "tests/test_none.py does not exist"),
        ("pip install structgen-motor", "not this package"),
        ("pip install '.[huggingface]'", "no extra huggingface"),
        ("bench/none.sh --now", "does not exist"),
    ],
)
def test_wrong_commands_are_found(command: str, problem: str | None) -> None:
    (words,) = documentation.commands(command)
    found = documentation.wrong_command(words)
    assert found is None if problem is None else found and problem in found, found


def test_what_a_reader_has_must_be_named(folder: Path) -> None:
    text = "Your scores are `logits`.\n\n```python\nlogits.shape[0]  # 1\nprompt\n```"
    (block,) = documentation.blocks("page", text)
    names = Names()
    names.named = documentation.names_above(documentation.parsed(text), block.line)
    with pytest.raises(NameError, match="prompt"):
        run_block(block, names)
    assert "logits" in names


def test_marks_and_places() -> None:
    text = "# A\n\n```python\nx = 1\n```\n\n<!-- doctest: text: a formula -->\n\n    P = 1\n\nOr\n\n    "
    text += "structgen -h\n"
    found = documentation.blocks("page", text)
    assert [(b.line, b.kind, b.detail) for b in found] == [
        (4, "python", ""),
        (9, "text", "a formula"),
        (13, "shell", ""),
    ]
    assert documentation.same_output("a ... c\n", "x\na b c\n") and not documentation.same_output(
        "a\nc", "a\nb\nc"
    )
    assert documentation.anchors("# What is `so`, exactly?") == {"what-is-so-exactly"}
