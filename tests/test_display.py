"""Displays of objects: short reprs, HTML that loads nothing, and traces."""

from __future__ import annotations

import contextlib
import html.parser
import json
import math
import os
import pty
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import structgen as sg
from oracles.speculative import SCHEMA, TOKENS, TableModel
from structgen.cli import main
from structgen.generation.tracing import _percent

EVIL = "</script><script>alert(1)</script>&<b onload=x>"


class Reader(html.parser.HTMLParser):
    """A reader of HTML that counts elements and keeps the text. `bad` lists everything that could load or run
    something."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.text = ""
        self.bad: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in ("meta", "link", "br"):
            self.open.append(tag)
        self.bad += [tag] if tag in ("script", "link", "img", "iframe", "object", "b onload") else []
        self.bad += [f"{k}={v}" for k, v in attrs if k.startswith("on") or k in ("src", "href")]

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def read(page: str) -> Reader:
    reader = Reader()
    reader.feed(page)
    assert not reader.open and not reader.bad, (reader.open, reader.bad)
    return reader


def objects() -> list[Callable[[], Any]]:
    vocabulary = sg.Vocabulary.from_bytes([bytes([i]) for i in range(256)] + [b""], eos_token_ids=256)
    compiler = sg.Compiler(vocabulary)
    schema = {"const": EVIL, "unknown": 3}
    return [
        lambda: sg.generate(None, "x", {"const": EVIL}),
        lambda: sg.sample(None, "x", choice=[EVIL], method="local", seed=1),
        lambda: compiler.json_schema(schema),
        lambda: compiler.choice([EVIL]),
        lambda: compiler.choice([EVIL]).matcher(),
        lambda: compiler.json_schema(schema).explain('"no"'),
        lambda: sg.trace(None, "x", {"const": EVIL}),
    ]


@pytest.mark.parametrize("number", range(7))
def test_objects_show_themselves(number: int) -> None:
    made = objects()[number]()
    shown = repr(made)
    assert type(made).__name__ in shown
    if not isinstance(made, sg.CompiledGrammar | sg.Matcher) and type(made).__name__ != "Explanation":
        assert len(shown) < 400 and "\n" not in shown
    text = read(made._repr_html_()).text
    if number not in (4, 5):
        assert "alert(1)" in text and ("</script>" in text or r"<\/script>" in text or "script" in text)


def test_a_matcher_tells_where_it_stands() -> None:
    compiler = sg.Compiler(sg.Vocabulary.from_bytes([b"a", b"b", b""], eos_token_ids=2))
    matcher = compiler.regex("ab?").matcher()
    assert repr(matcher) == "<Matcher after 0 steps, not complete>"
    matcher.accept_token(0)
    assert repr(matcher) == "<Matcher after 1 steps, may end here>" and "`b`" in matcher._repr_html_()
    matcher.accept_token(2)
    assert "ended" in repr(matcher) and matcher._repr_html_()
    middle = compiler.regex("ab?").infill("a", "")  # the middle was built without a source text
    assert "between b'a' and b''" in repr(middle) and "None" not in repr(middle) + middle._repr_html_()


def test_a_trace_is_what_the_masks_did() -> None:
    lm = TableModel(4)
    options: dict[str, Any] = {"temperature": 1.0, "seed": 2, "max_tokens": 40}
    found = sg.trace(lm, "go", SCHEMA, **options)
    assert found.result.tokens == sg.generate(lm, "go", SCHEMA, **options).tokens
    assert [s.token for s in found] == found.result.tokens and len(found) == len(found.result.tokens)
    grammar = sg.Compiler(lm.vocabulary).json_schema(
        SCHEMA, whitespace="compact", numbers="canonical", strings="plain"
    )
    matcher, context, mask = grammar.matcher(), lm.start("go"), sg.allocate_bitmask(1, len(TOKENS))
    kinds = set()
    for place, step in enumerate(found):
        row = lm.logprobs([context])[0].astype(np.float64)
        matcher.fill_bitmask(mask, max_tokens=40 - place)
        allowed = [t for t in range(len(TOKENS)) if mask[0][t // 32] >> (t % 32) & 1]
        kept = sum(math.exp(row[t]) for t in allowed)
        assert step.allowed == len(allowed) and step.kept == pytest.approx(kept, abs=1e-5)
        assert step.logprob == pytest.approx(row[step.token], abs=1e-5)
        assert step.masked == pytest.approx(row[step.token] - math.log(kept), abs=1e-4)
        assert step.kind == ("forced" if len(allowed) == 1 else "constrained" if kept < 0.99 else "free")
        assert all(t in allowed for t, _, _ in step.best) and all(t not in allowed for t, _ in step.refused)
        kinds.add(step.kind)
        context = context.extend(step.token)
        matcher.accept_token(step.token)
    assert {"forced", "constrained"} <= kinds
    lines = str(found).splitlines()
    assert len(lines) == len(found) + 1 and lines[0].startswith("token")
    pytest.importorskip("rich")
    assert found.rich().row_count == len(found)


def test_a_page_is_one_file_that_loads_nothing(tmp_path: Path) -> None:
    path = tmp_path / "trace.html"
    sg.trace(None, EVIL, {"enum": [EVIL]}).save(path)
    text = path.read_text(encoding="utf-8")
    assert "http" not in text and "@import" not in text and "url(" not in text
    reader = read(text)
    assert "alert(1)" in reader.text and "How this text came about" in reader.text


@pytest.mark.parametrize("option", [{"n": 2}, {"speculate": "auto"}, {"retries": 1}])
def test_what_a_trace_does_not_take(option: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=f"leave {next(iter(option))}= out"):
        sg.trace(None, "x", {"const": 1}, **option)


def test_the_command(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    status = main(["trace", "--prompt", "two lamps", "--schema", '{"enum": [1, 2]}'])
    out, err = capsys.readouterr()
    assert status == 0 and out.startswith("token") and "Trace(" in err
    assert "warning: the request is probably outside what the embedded model knows" in err
    prompt = "Ada Park is 36 years old and lives in Lima"
    schema = '{"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}'
    assert main(["trace", "--prompt", prompt, "--schema", schema]) == 0
    assert "warning" not in capsys.readouterr().err
    page = tmp_path / "t.html"
    assert main(["trace", "--prompt", "x", "--regex", "ab", "--html", str(page)]) == 0
    assert "ab" in read(page.read_text()).text and capsys.readouterr().out == ""
    assert main(["trace", "--prompt", "x", "--regex", "a", "--html", "/none/t.html"]) == 2
    assert "no such folder" in capsys.readouterr().err
    assert main(["trace", "--prompt", "x", "--regex", "("]) == 2
    assert "(character" in capsys.readouterr().err


def test_percentages() -> None:
    assert [_percent(x) for x in (0.0, math.log(0.5), math.log(1e-6), -math.inf)] == [
        "100.0%",
        "50.0%",
        "1e-06",
        "0%",
    ]


def test_check_of_lines_names_the_line(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    lines = tmp_path / "answers.jsonl"
    lines.write_text('{"a": 1}\n\n{"a": [1, "x"]}\n{"b": 2}\n')
    schema = json.dumps({"properties": {"a": {"type": ["integer", "array"], "items": {"type": "integer"}}}})
    status = main(["check", "--schema", schema, str(lines)])
    out = capsys.readouterr().out
    assert status == 1 and f"{lines}:1: accepted" in out and f"{lines}:4: accepted" in out
    assert f"{lines}:3: rejected" in out and "in       #/a/1" in out and "must be an integer" in out
    assert f"{lines}:2" not in out


def test_prompts_of_the_embedded_model_take_a_schema_as_text() -> None:
    from structgen.lm import embedded

    schema = {"type": "object", "properties": {"city": {"type": "string"}}}
    assert embedded.format_prompt("x", json.dumps(schema)) == embedded.format_prompt("x", schema)
    assert embedded.format_prompt("x", "true") == embedded.format_prompt("x")


def test_check_is_coloured_in_a_terminal_with_a_caret_below_the_place(tmp_path) -> None:
    pytest.importorskip("rich", reason="rich is not installed: it is in the extra display")
    (tmp_path / "s.json").write_text('{"type": "object", "properties": {"名": {"type": "integer"}}}')
    (tmp_path / "good.json").write_text('{"名": 5}')
    (tmp_path / "bad.json").write_text('{"名": "x"}')
    command = [sys.executable, "-m", "structgen", "check", "s.json", "good.json", "bad.json"]
    root = str(Path(__file__).resolve().parents[1])
    env = {**os.environ, "PYTHONPATH": root, "TERM": "xterm-256color", "COLUMNS": "80"}
    env.pop("NO_COLOR", None)
    ours, theirs = pty.openpty()
    done = subprocess.run(command, cwd=tmp_path, env=env, stdout=theirs, stderr=subprocess.DEVNULL)
    os.close(theirs)
    told = b""
    with contextlib.suppress(OSError):  # on Linux a closed terminal raises this error
        while part := os.read(ours, 65536):
            told += part
    os.close(ours)
    assert done.returncode == 1 and b"\x1b[31m" in told and b"\x1b[1;31mrejected" in told
    lines = re.sub(r"\x1b\[[0-9;]*m", "", told.decode()).replace("\r", "").splitlines()
    assert lines[0] == "good.json: accepted" and lines[1].startswith("bad.json: rejected at line 1, column 7")
    (at,) = (i for i, line in enumerate(lines) if line.startswith("  text"))
    place = lines[at].index('"x"') + 1  # the character in front takes two cells of the terminal
    assert lines[at + 1] == " " * place + "^"
    plain = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True).stdout
    assert "\x1b" not in plain and "  after    {" in plain and '  found    "x"}' in plain
