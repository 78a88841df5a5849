"""Reads Markdown pages for the tests: code blocks, marks, commands, links.

Enters: the text of a page. Leaves: its blocks, each with the mark in the HTML comment right before it, and
what is wrong with a command that is not run. Cost: parsing; a module is imported to ask for its flags.

A block is run unless it has a mark:

    <!-- doctest: python -->                     an indented block that is Python
    <!-- doctest: output of COMMAND -->          what that command prints; `...` on a line stands for any text
    <!-- doctest: network: REASON -->            not run, but programs, targets, flags and files must exist
    <!-- doctest: gpu: REASON -->                the same
    <!-- doctest: slow: covered by FILE -->      the same, and FILE (a test, or a make target) must exist
    <!-- doctest: text: REASON -->               no code: a formula, a picture of letters
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import importlib.util
import io
import re
import runpy
import shlex
import sys
import tokenize
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock
from urllib.parse import unquote

from markdown_it import MarkdownIt
from markdown_it.token import Token

ROOT = Path(__file__).resolve().parents[1]
NOT_RUN = ("network", "gpu", "slow", "text")
_MARK = re.compile(r"<!--\s*doctest:\s*(.*?)\s*-->\s*\Z", re.DOTALL)
_PYTHON = ("python", "py")
_SHELL = ("", "sh", "bash", "shell", "console")


class DocumentationError(Exception):
    """A page states something false. The message begins with the page's name and the line."""


@dataclass(frozen=True, slots=True)
class Block:
    page: str
    line: int  # the first line of code, counted from 1
    language: str  # "" for an indented block
    text: str
    kind: str  # "python", "shell", "output", or one of NOT_RUN
    detail: str  # the command of an output, or the reason why a block does not run

    @property
    def place(self) -> str:
        return f"{self.page}:{self.line}"


# ---- pages ----


def parsed(text: str) -> list[Token]:
    return MarkdownIt("commonmark").enable("table").parse(text)


def blocks(page: str, text: str) -> list[Block]:
    """Returns every code block. Raises DocumentationError for an unknown mark or an unknown language."""
    found, tokens = [], parsed(text)
    for index, token in enumerate(tokens):
        if token.type not in ("fence", "code_block"):
            continue
        assert token.map is not None
        line = token.map[0] + (2 if token.type == "fence" else 1)
        language = token.info.split()[0] if token.info.strip() else ""
        before = tokens[index - 1] if index else None
        marked = _MARK.search(before.content) if before is not None and before.type == "html_block" else None
        kind, detail = _kind(f"{page}:{line}", language, marked[1] if marked else None)
        found.append(Block(page, line, language, token.content, kind, detail))
    return found


def _kind(place: str, language: str, mark: str | None) -> tuple[str, str]:
    if mark is None:
        if language in _PYTHON:
            return "python", ""
        if language in _SHELL:
            return "shell", ""
        raise DocumentationError(f"{place}: a block of {language!r} needs a mark: oracles/documentation.py")
    if mark in _PYTHON:
        return "python", ""
    if mark.startswith("output of "):
        return "output", mark.removeprefix("output of ").strip()
    name, _, reason = (part.strip() for part in mark.partition(":"))
    if name not in NOT_RUN:
        raise DocumentationError(f"{place}: unknown mark {mark!r}, see oracles/documentation.py")
    if len(reason.split()) < 2:
        raise DocumentationError(f"{place}: the mark {name!r} gives no reason")
    if name == "slow":
        covered = reason.removeprefix("covered by ")
        if covered == reason or not _covers(covered):
            raise DocumentationError(f"{place}: {reason!r} names no test and no make target that exists")
    return name, reason


def _covers(name: str) -> bool:
    if name.startswith("make "):
        return name.removeprefix("make ") in make_targets()
    return (ROOT / name).exists()


# ---- commands ----


def commands(text: str) -> Iterator[list[str]]:
    """Returns the words of each command of a shell block, without comments, prompts and assignments of
    variables."""
    for line in text.replace("\\\n", " ").splitlines():
        words = shlex.split(line.removeprefix("$ "), comments=True)
        while words and re.match(r"[A-Z_]+=", words[0]):
            words.pop(0)
        if words:
            yield [words[0].removeprefix(".venv/bin/"), *words[1:]]


def make_targets() -> set[str]:
    text = (ROOT / "Makefile").read_text(encoding="utf-8")
    return set(re.findall(r"^([a-z][\w-]*):(?!=)", text, re.MULTILINE))


def _extras() -> tuple[str, set[str]]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return project["name"], set(project["optional-dependencies"])


class _Parsed(BaseException):
    """Raised when argparse has accepted the arguments."""


def _parse_and_stop(parse: Any) -> Any:
    def parse_args(self: argparse.ArgumentParser, arguments: Any = None, namespace: Any = None) -> None:
        parse(self, arguments, namespace)
        raise _Parsed

    return parse_args


def _module_takes(module: str, arguments: list[str]) -> str | None:
    """Returns the message of a module's argparse about the arguments, or None if argparse accepts them."""
    said = io.StringIO()
    changed = mock.patch.object(
        argparse.ArgumentParser, "parse_args", _parse_and_stop(argparse.ArgumentParser.parse_args)
    )
    paths = mock.patch.object(sys, "path", [str(ROOT), *sys.path])
    with (
        changed,
        paths,
        mock.patch.object(sys, "argv", [module, *arguments]),
        contextlib.redirect_stderr(said),
    ):
        try:
            runpy.run_module(module, run_name="__main__")
        except _Parsed:
            return None
        except SystemExit:
            return said.getvalue().strip() or "it ends at once"
        except ImportError as error:
            if importlib.util.find_spec(module) is None:
                return f"there is no module {module}"
            ours = (error.name or "").split(".")[0] in ("bench", "fuzz", "structgen", "tests", "training")
            return str(error) if ours else None  # otherwise a dependency is not installed here
    return f"python -m {module} reads no arguments"


def wrong_command(words: list[str]) -> str | None:
    """Returns the fault of a command that is not run, or None if no fault is known."""
    program, *rest = words
    if "..." in rest:
        return wrong_span(words)
    if program == "structgen":
        from structgen.cli.main import parser

        said = io.StringIO()
        with contextlib.redirect_stderr(said):
            try:
                parser().parse_args(rest)
            except SystemExit as ended:
                return None if not ended.code else said.getvalue().strip().splitlines()[-1]
        return None
    if program == "make":
        text = (ROOT / "Makefile").read_text(encoding="utf-8")
        for word in rest:
            name, equals, _ = word.partition("=")
            if not equals and name not in make_targets():
                return f"the Makefile has no target {name!r}"
            if equals and not re.search(rf"\b{name}\b", text):
                return f"the Makefile knows no variable {name!r}"
        return None
    if program == "pip" and rest[:1] == ["install"]:
        return _wrong_install(rest[1:])
    if re.fullmatch(r"python[\d.]*", program) and rest[:1] == ["-m"]:
        module = rest[1]
        if module == "pip":
            return wrong_command(["pip", *rest[2:]])
        if module == "pytest":
            files = [word.split("::")[0] for word in rest[2:] if word.startswith("tests/")]
            return next((f"{name} does not exist" for name in files if not (ROOT / name).exists()), None)
        if module.split(".")[0] in sys.stdlib_module_names:
            return None
        return _module_takes(module, rest[2:])
    if "/" in program and not program.startswith(("/", "~", ".venv")) and not (ROOT / program).exists():
        return f"{program} does not exist"
    return None


def _wrong_install(words: list[str]) -> str | None:
    project, extras = _extras()
    for word in words:
        named = re.fullmatch(r"([\w.-]+)(?:\[([\w,-]+)\])?(?:[=<>~!].*)?", word)
        if named is None or not (named[1] == "." or named[1].startswith("structgen")):
            continue
        if named[1] not in (project, "."):
            return f"{named[1]} is not this package: it is {project}"
        unknown = set((named[2] or "").split(",")) - extras - {""}
        if unknown:
            return f"no extra {', '.join(sorted(unknown))}"
    return None


def wrong_span(words: list[str]) -> str | None:
    """Returns the fault of a command in a sentence, which may leave out further arguments."""
    program, *rest = words
    if program != "structgen":
        problem = wrong_command([program, *(word for word in rest if word != "...")])
        return None if problem and "arguments are required" in problem else problem
    from structgen.cli.main import parser

    level: argparse.ArgumentParser = parser()
    for word in rest:
        names = level._option_string_actions  # argparse has no public interface for the flags
        if word.startswith("--"):
            if word.split("=")[0] not in names:
                return f"{level.prog} has no {word}"
            continue
        choices = [a.choices for a in level._actions if isinstance(a, argparse._SubParsersAction)]
        if choices:
            if word not in choices[0]:
                return f"{level.prog} has no command {word!r}"
            level = choices[0][word]
    return None


# ---- sentences ----


def spans(tokens: list[Token]) -> Iterator[tuple[int, str]]:
    """Returns (line, text) of every piece of code in a sentence."""
    for token in tokens:
        for child in token.children or ():
            if child.type == "code_inline":
                yield (token.map[0] + 1 if token.map else 0), child.content


def names_above(tokens: list[Token], line: int) -> set[str]:
    """Returns the names that sentences above a line have in code: `model`, or `(model, tokenizer)`."""
    named = (span for at, span in spans(tokens) if at < line and re.fullmatch(r"\(?\w+(, \w+)*\)?", span))
    return {name for span in named for name in re.findall(r"\w+", span)}


def links(tokens: list[Token]) -> Iterator[tuple[int, str]]:
    for token in tokens:
        for child in token.children or ():
            target = child.attrGet("href") or child.attrGet("src")
            if target:
                yield (token.map[0] + 1 if token.map else 0), unquote(str(target))


def anchors(text: str) -> set[str]:
    """Returns the anchors of a page's headings, as GitHub builds them."""
    found, tokens = set(), parsed(text)
    for index, token in enumerate(tokens):
        if token.type == "heading_open":
            plain = re.sub(r"[^\w\- ]", "", tokens[index + 1].content.lower())
            found.add(plain.replace(" ", "-"))
    return found


# ---- outputs ----


def same_output(shown: str, printed: str, whole: bool = False) -> bool:
    """Returns whether the shown lines occur in the printed text, in order. If `whole`, no other line may
    occur. `...` stands for any text."""
    wanted, there = ([line.rstrip() for line in text.strip("\n").splitlines()] for text in (shown, printed))
    patterns = [re.compile(".*".join(map(re.escape, line.split("...")))) for line in wanted]
    if whole and len(wanted) != len(there):
        return False
    return any(
        all(p.fullmatch(line) for p, line in zip(patterns, there[at:], strict=False))
        for at in range(len(there) - len(patterns) + 1)
    )


@dataclass(frozen=True, slots=True)
class Statement:
    node: ast.stmt
    # the comment on the last line, or the comments behind `print` calls inside of the statement
    behind: str | None
    below: str | None  # the comment lines directly below
    prints: bool  # whether a comment stands behind a `print` call inside of the statement

    def wrong_output(self, value: object, printed: str) -> str | None:
        """Returns the fault of the output that a page shows, or None. A comment behind an expression, or
        directly below it, is the expression's output, as at Python's prompt. Printed output must be shown.
        Other comments are prose."""
        if not printed and value is None:
            return f"it prints nothing, not {self.behind!r}" if self.prints else None
        shown = self.below if self.below is not None else self.behind
        if shown is None:
            return (
                f"it prints {printed!r}, and no comment behind it or below it shows that" if printed else None
            )
        if printed:
            return (
                None if same_output(shown, printed, whole=True) else f"it prints {printed!r}, not {shown!r}"
            )
        if self.behind is None:
            return None  # an unprinted value, with prose about the next statement
        return (
            None if same_output(shown, repr(value), whole=True) else f"its value is {value!r}, not {shown!r}"
        )


def statements(text: str) -> Iterator[Statement]:
    """Yields top-level statements with the comments that show their outputs."""
    behind, alone = {}, {}
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            words = token.string.removeprefix("#").removeprefix(" ")
            if token.line[: token.start[1]].strip():
                behind[token.start[0]] = words
            elif token.start[1] == 0:
                alone[token.start[0]] = words
    for node in ast.parse(text).body:
        last = node.end_lineno or node.lineno
        below, line = [], last + 1
        while line in alone:
            below.append(alone[line])
            line += 1
        calls = [n for n in ast.walk(node) if isinstance(n, ast.Call) and ast.unparse(n.func) == "print"]
        inner = [
            behind[n.end_lineno or 0] for n in sorted(calls, key=lambda n: n.lineno) if n.end_lineno in behind
        ]
        shown = behind.get(last) if isinstance(node, ast.Expr) else "\n".join(inner) or None
        yield Statement(node, shown, "\n".join(below) if below else None, bool(inner))
