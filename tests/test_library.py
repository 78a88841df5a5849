"""The library of grammars: its cases, exact masks, and source files of this machine."""

from __future__ import annotations

import ast
import datetime
import importlib.metadata
import io
import json
import random
import sysconfig
import tokenize
import warnings
from pathlib import Path

import numpy as np
import pytest

import structgen
from oracles import harness, oracle
from oracles.strategies import Source
from structgen import library
from structgen.cli import main

pytest.importorskip("lark")

VOCABULARY = structgen.Vocabulary.from_bytes(
    [bytes([i]) for i in range(256)]
    + [
        *(b"ab", b"  ", b"if", b"SE", b"e4", b"</", b'":', b"123", b"((", b"())", b" 2", b"return"),
        *(b"lambda", b"=="),
    ]
    + [b""],
    eos_token_ids=270,
)
COMPILER = structgen.Compiler(VOCABULARY)
STANDARD = Path(sysconfig.get_path("stdlib"))


@pytest.mark.parametrize("name", library.names())
def test_cases(name) -> None:
    entry = library.load(name)
    assert entry.about and len(entry.accepted) >= 2 and len(entry.rejected) >= 2
    grammar = COMPILER.grammar(entry.text)
    assert grammar.warnings == ()
    assert [t for t in entry.accepted if not harness.verdict(grammar, t)] == []
    assert [t for t in entry.rejected if harness.verdict(grammar, t)] == []


@pytest.mark.parametrize("name", library.names())
def test_masks_are_exact_and_budgets_end(name) -> None:
    entry = library.load(name)
    grammar = COMPILER.grammar(entry.text)

    def check(source: Source) -> None:
        matcher = grammar.matcher()
        start = source.pick(entry.accepted).encode()
        assert matcher.accept_bytes(start[: source.integer(0, len(start))])
        mask = oracle.mask_of(matcher, 271)
        assert (mask == oracle.naive_mask(matcher, 271)).all()
        left = (
            len(matcher.shortest_completion()) + 1 + source.integer(0, 20)
        )  # tokens_needed() searches for fewer tokens
        while not matcher.is_terminated():
            mask = oracle.mask_of(matcher, 271, left)
            assert matcher.accept_token(int(source.pick(np.flatnonzero(mask).tolist())))
            left -= 1
        assert left >= 0

    harness.seeded(check, 4)


def test_expressions_of_the_standard_library() -> None:
    """Every expression statement, value and argument of the standard library, as its source spells it."""
    grammar = COMPILER.grammar(library.load("python_expression").text)
    seen = 0
    for name in (
        "heapq.py",
        "json/decoder.py",
        "dataclasses.py",
        "statistics.py",
        "textwrap.py",
        "fractions.py",
    ):
        text = (STANDARD / name).read_text(encoding="utf-8")
        lines = text.splitlines(keepends=True)
        for node in ast.walk(ast.parse(text)):
            if not isinstance(node, (ast.Assign, ast.Return, ast.Expr, ast.keyword)) or node.value is None:
                continue
            value = node.value
            if value.lineno == value.end_lineno:
                source = lines[value.lineno - 1].encode()[value.col_offset : value.end_col_offset]
            else:
                source = (ast.get_source_segment(text, value) or "").encode()
            seen += 1
            assert harness.verdict(grammar, source), source
    assert seen > 500


def test_broken_expressions() -> None:
    """The grammar refuses what Python's parser refuses, with two exceptions: errors that only Python's
    compiler finds (`f() = 1`), and words joined where no name may stand (`a notin b`), which the contextual
    lexer reads as two words."""
    grammar = COMPILER.grammar(library.load("python_expression").text)
    source = random.Random(1)
    samples = [t for t in library.load("python_expression").accepted if "yield" not in t and "await" not in t]
    refused = accepted = 0
    for _ in range(600):
        text = source.choice(samples)
        at = source.randrange(len(text))
        text = text[:at] + source.choice(["", "(", "]", " ", "+", "if", ","]) + text[at + 1 :]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                ast.parse(f"(\n{text}\n)" if text.strip() else "(", mode="eval")
            except (SyntaxError, ValueError):
                if harness.verdict(grammar, text):
                    accepted += 1
                else:
                    refused += 1
    assert refused > 100 and accepted < refused / 10, (refused, accepted)


def test_modules_of_the_standard_library() -> None:
    """Whole files of the standard library are accepted, except for files with a construct that the grammar's
    header lists as omitted."""
    grammar = COMPILER.grammar(library.load("python").text)
    seen = 0
    for path in sorted(STANDARD.glob("*.py")):
        if path.stat().st_size > 12_000:
            continue
        text = path.read_text(encoding="utf-8")
        tree = ast.parse(text)
        assert not any(isinstance(node, ast.Match) for node in ast.walk(tree)), path.name
        seen += 1
        assert harness.verdict(grammar, text), path.name
        if seen == 40:
            break
    assert seen > 20


def by_fours(text: str) -> bool:
    """Returns whether each block is indented by four blanks and the last line ends with a line feed."""
    widths = [0]
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.DEDENT:
            widths.pop()
        elif token.type == tokenize.INDENT:
            if token.string != " " * (widths[-1] + 4):
                return False
            widths.append(widths[-1] + 4)
    return text.endswith("\n")


def test_broken_modules() -> None:
    """The grammar refuses what Python's parser refuses, except for errors that only the compiler finds and
    for joined words."""
    grammar = COMPILER.grammar(library.load("python").text)
    source = random.Random(2)
    samples = [t for t in library.load("python").accepted if len(t) > 20]
    refused = accepted = kept = 0
    for _ in range(500):
        lines = source.choice(samples).split("\n")
        at = source.randrange(len(lines))
        line = lines[at]
        kind = source.randrange(5)
        if kind == 0:
            del lines[at]
        elif kind == 1:
            lines[at] = "    " + line if source.random() < 0.5 else line.removeprefix("    ")
        elif kind == 2:
            lines[at] = source.choice([" ", "  ", "      "]) + line
        elif kind == 3 and line:
            i = source.randrange(len(line))
            lines[at] = line[:i] + source.choice(["", ":", "(", ")", " if ", ",", "="]) + line[i + 1 :]
        else:
            other = source.randrange(len(lines))
            lines[at], lines[other] = lines[other], line
        text = "\n".join(lines)
        here = harness.verdict(grammar, text)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                ast.parse(text)
            except (SyntaxError, ValueError):
                accepted, refused = accepted + here, refused + (not here)
            else:
                if by_fours(text):
                    kept += 1
                    assert here, text
    assert refused > 100 and kept > 50 and accepted < refused / 10, (refused, accepted, kept)


def test_json_files_of_installed_packages() -> None:
    grammar = COMPILER.grammar(library.load("json").text)
    found = 0
    for path in sorted(Path(sysconfig.get_path("purelib")).glob("*/**/*.json"))[:400]:
        if path.stat().st_size > 60_000:
            continue
        text = path.read_text(encoding="utf-8", errors="replace")
        try:
            json.loads(text)
        except ValueError:
            continue
        found += 1
        assert harness.verdict(grammar, text), path.name
        if found == 60:
            break
    assert found > 5


def test_dates_and_versions() -> None:
    dates = COMPILER.grammar(library.load("iso_date").text)
    day = datetime.datetime(2023, 1, 1, 5, 6, 7, tzinfo=datetime.UTC)
    for i in range(0, 900, 7):
        now = day + datetime.timedelta(days=i, seconds=i * 977)
        assert harness.verdict(dates, now.date().isoformat()) and harness.verdict(dates, now.isoformat())
    versions = COMPILER.grammar(library.load("semver").text)
    seen = {d.version for d in importlib.metadata.distributions() if d.version}
    three = [v for v in seen if v.count(".") == 2 and v.replace(".", "").isdigit()]
    assert three and all(harness.verdict(versions, v) for v in three if ".0" not in v.replace(".0.", "."))


def test_commands(capsys, tmp_path) -> None:
    assert main(["grammar", "list"]) == 0
    assert "semver" in capsys.readouterr().out
    assert main(["grammar", "show", "semver"]) == 0
    assert capsys.readouterr().out == library.load("semver").text
    assert main(["grammar", "test", "semver"]) == 0
    (tmp_path / "bad").write_text("1.x", encoding="utf-8")
    assert main(["grammar", "test", "semver", str(tmp_path / "bad")]) == 1
    assert "column 3" in capsys.readouterr().out
    (tmp_path / "own.lark").write_text('start: "a" b\nb: c', encoding="utf-8")
    assert main(["grammar", "test", str(tmp_path / "own.lark")]) == 2
    assert "own.lark: rule 'c' is not defined" in capsys.readouterr().err
    assert main(["grammar", "show", "semvr"]) == 2
    assert "did you mean 'semver'" in capsys.readouterr().err
