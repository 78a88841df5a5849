"""Many prompts: results keep the order, each equals the result of a single call, and a failing prompt fails
alone."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import structgen as sg
from oracles.speculative import SCHEMA, TOKENS, TableModel
from oracles.tasks import Context
from structgen.cli import main
from structgen.lm.doubt import MESSAGE

PROMPTS = ["go", "stop", "a", "b c", "x" * 9, "go"]


@pytest.mark.parametrize("batch", [1, 2, 16])
def test_results_are_those_of_single_calls(batch: int) -> None:
    options: dict[str, Any] = {"temperature": 1.1, "seed": 5, "max_tokens": 60}
    want = [sg.generate(TableModel(), p, SCHEMA, **options) for p in PROMPTS]
    found = list(sg.generate_many(TableModel(), PROMPTS, SCHEMA, batch=batch, **options))
    assert all(isinstance(r, sg.Result) and r.ok for r in found)
    assert [r.tokens for r in found] == [r.tokens for r in want]
    assert [r.value for r in found] == [r.value for r in want]
    assert [r.budget_bound for r in found] == [r.budget_bound for r in want]
    for one, other in zip(found, want, strict=True):
        assert one.logprobs == pytest.approx(other.logprobs)


def test_the_embedded_model_answers_a_batch_as_it_answers_one() -> None:
    prompts = [f"{who} ordered {n} oak chairs" for n, who in enumerate(("Ana", "Bo Li", "Cy"), 2)]
    schema = {
        "type": "object",
        "properties": {"customer": {"type": "string"}, "quantity": {"type": "integer"}},
    }
    want = [sg.generate(None, p, schema).text for p in prompts]
    assert [r.text for r in sg.generate_many(None, prompts, schema)] == want
    assert [r.text for r in sg.generate_many(None, prompts, schema, speculate="auto")] == want


def test_forwards_are_shared() -> None:
    lm = TableModel()
    list(sg.generate_many(lm, ["go"] * 40, regex="a{5}", batch=8))
    assert sum(lm.calls) == 40 * 6 and max(lm.calls) == 8 and len(lm.calls) == 5 * 6


def test_an_iterator_is_read_as_results_are_taken() -> None:
    read = []

    def endless() -> Iterator[str]:
        for i in itertools.count():
            read.append(i)
            yield "go"

    found = sg.generate_many(TableModel(), endless(), choice=["a", "bcd"], batch=4, temperature=1.0, seed=1)
    assert not read
    for _ in range(10):
        next(found)
    assert len(read) <= 10 + 4 * 4 + 4


def test_each_prompt_has_its_own_schema() -> None:
    schemas: list[Any] = [{"const": 1}, {"enum": ["x"]}, None, True]
    found = list(sg.generate_many(TableModel(), ["go"] * 4, schemas=schemas, max_tokens=12))
    assert [r.value for r in found[:2]] == [1, "x"] and isinstance(found[2].value, str)


def test_what_fails_fails_alone(tmp_path: Path) -> None:
    class Odd(TableModel):
        """A model that gives no law for prompts that end in "!"."""

        def logprobs(self, contexts: Sequence[Context]) -> np.ndarray:
            rows = super().logprobs(contexts)
            for i, context in enumerate(contexts):
                if context.tokens[:1] == [TOKENS.index(b"!")]:
                    rows[i] = np.nan
            return rows

    schemas: list[Any] = [
        {"const": 1},
        {"type": "objekt"},
        {"const": 2},
        tmp_path / "none.json",
        {"const": "x" * 200},
        False,
        {"const": 3},
        {"const": 4},
        3,
    ]
    prompts: list[Any] = ["go", "go", "!", "go", "go", "go", 7, "go", "go"]
    found = list(sg.generate_many(Odd(), prompts, schemas=schemas, max_tokens=20))
    assert [r.ok for r in found] == [True, False, False, False, False, False, False, True, False]
    assert [r.value for r in found if r.ok] == [1, 4]
    kinds = [type(r.error).__name__ for r in found if not r.ok]
    assert kinds == [
        "GrammarError", "LanguageModelError", "FileNotFoundError", "UnsatisfiableBudget",
        "UnsatisfiableSchema", "TypeError", "GrammarError",
    ]  # fmt: skip
    failed = found[1]
    assert isinstance(failed, sg.Failed) and failed.index == 1 and failed.prompt == "go"


def test_too_few_schemas_of_an_iterator() -> None:
    found = list(sg.generate_many(TableModel(), iter(["go", "go"]), schemas=iter([{"const": 1}])))
    assert found[0].value == 1 and "no schema for prompt 1" in str(found[1].error)


def test_retries_of_one_prompt_leave_the_others() -> None:
    pydantic = pytest.importorskip("pydantic", reason="pydantic is not installed: it is in the extra types")

    class Pick(pydantic.BaseModel):
        letter: str = pydantic.Field(pattern="^[a-d]$")

        @pydantic.field_validator("letter")
        @classmethod
        def late(cls, value: str) -> str:
            if value in "ab":
                raise ValueError("too early")
            return value

    found = list(sg.generate_many(TableModel(3), PROMPTS, Pick, retries=4))
    assert all(r.ok and r.value.letter in "cd" for r in found)
    none = [
        *sg.generate_many(TableModel(3), ["go"], Pick, temperature=3.0, seed=1),
        *sg.generate_many(TableModel(3), ["go"], Pick, temperature=3.0, seed=2),
        *sg.generate_many(TableModel(3), ["go"], Pick, temperature=3.0, seed=4),
        *sg.generate_many(TableModel(3), ["go"], Pick, temperature=3.0, seed=5),
    ]
    assert {r.ok for r in none} == {True, False}
    assert all(isinstance(r.error, sg.InvalidValue) for r in none if not r.ok)


def test_progress_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    seen: list[sg.Progress] = []
    list(sg.generate_many(TableModel(), PROMPTS, {"const": 1}, progress=seen.append))
    assert [p.done for p in seen] == [1, 2, 3, 4, 5, 6] and seen[-1].total == 6 and seen[-1].tokens > 6
    list(sg.generate_many(TableModel(), ["go", 3], {"const": 1}, progress=True))
    assert "2/2 prompts, 1 failed" in capsys.readouterr().err
    list(sg.generate_many(TableModel(), iter(["go"]), {"const": 1}, progress=True))
    assert "1 prompts" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("prompts", "given", "kind", "message"),
    [
        ("go", {}, TypeError, "list or an iterator of prompts"),
        (3, {}, TypeError, "list or an iterator of prompts"),
        (["go"], {"n": 2}, ValueError, "takes no n="),
        (["go"], {"batch": 0}, ValueError, "batch must be"),
        (["go"], {"batch": "4"}, TypeError, "batch is a whole number"),
        (["go"], {"schemas": {"type": "object"}}, TypeError, "schemas is a list"),
        (["go"], {"schemas": [1, 2]}, ValueError, "1 prompts and 2 schemas"),
        (["go"], {"schemas": [True], "regex": "a"}, ValueError, "leave regex= out"),
        (["go"], {"regexp": "a"}, TypeError, "did you mean regex="),
        (["go"], {"max_tokens": 0}, ValueError, "max_tokens"),
    ],
)
def test_arguments_that_are_wrong_for_all(prompts: Any, given: Any, kind: Any, message: str) -> None:
    with pytest.raises(kind, match=message) as caught:
        sg.generate_many(TableModel(), prompts, **given)
    assert "\n" not in str(caught.value)


# ---- the command line ----


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Any:
    def call(lines: list[Any], *more: str) -> tuple[int, list[dict[str, Any]], str]:
        file, out = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
        file.write_text("".join((x if isinstance(x, str) else json.dumps(x)) + "\n" for x in lines))
        status = main(["generate", "--prompts", str(file), "--output", str(out), *more])
        return status, [json.loads(line) for line in out.read_text().splitlines()], capsys.readouterr().err

    return call


def test_every_line_has_a_record(run: Any, tmp_path: Path) -> None:
    (tmp_path / "good.json").write_text('{"const": 5}')
    lines: list[Any] = [
        {"id": "a", "prompt": "x", "schema": {"const": 1}},
        {"id": 7, "prompt": "x", "schema": {"type": "objekt"}},
        {"id": "c", "prompt": "x", "schema": "none.json"},
        {"prompt": "x", "schema": "good.json"},
        "{broken",
        '"just a prompt"',
        {"id": None, "prompt": 3},
        {"id": "d", "prompt": "x", "choice": ["p", "q"], "max_tokens": 9},
        {"id": "e", "prompt": "x", "choice": "p"},
        {"id": "f", "prompt": "x", "regexp": "p"},
        {"id": "g", "prompt": [{"role": "user", "content": "x"}], "regex": "ab"},
    ]
    status, records, err = run(lines, "--batch", "4")
    assert status == 2 and len(records) == len(lines)
    assert [r["line"] for r in records] == list(range(1, 12))
    assert [r.get("id", "-") for r in records] == ["a", 7, "c", "-", "-", "-", None, "d", "e", "f", "g"]
    fine = [r["line"] for r in records if r["error"] is None]
    assert fine == [1, 4, 8, 11] and records[3]["value"] == 5 and records[10]["text"] == "ab"
    for record in records:
        assert (record["text"] is None) == (record["error"] is not None)
    said = {r["line"]: r["error"] for r in records}
    assert "invalid JSON" in said[5] and "none.json" in said[3] and "regex" in said[10]
    assert 'no "schema"' in said[6] and '"prompt"' in said[7] and "list of texts" in said[9]
    assert sum("structgen: " in line and MESSAGE not in line for line in err.splitlines()) == 7


def test_a_run_goes_on_where_it_stopped(run: Any, tmp_path: Path) -> None:
    lines = [{"id": i, "prompt": "x", "schema": {"const": i}} for i in range(6)]
    status, before, _ = run(lines)
    assert status == 0 and len(before) == 6
    out = tmp_path / "out.jsonl"
    kept = before[:2] + [{**before[2], "text": None, "error": "no luck"}]
    # the last line is incomplete
    out.write_text("".join(json.dumps(r) + "\n" for r in kept) + '{"id": 3, "pro')
    status, after, err = run(lines, "--resume")
    assert (
        status == 0 and [r["id"] for r in after] == [0, 1, 2, 3, 4, 5] and "2 of 6 records are already" in err
    )
    assert [r["value"] for r in after] == list(range(6))
    status, again, err = run(lines, "--resume")
    assert again == after and "6 of 6 records are already" in err
    # A moved line is recognized by its id; without ids, by its place and its prompt.
    status, moved, _ = run([lines[5], *lines[:5]], "--resume")
    assert [r["id"] for r in moved] == [5, 0, 1, 2, 3, 4] and sorted(moved, key=lambda r: r["id"]) == after
    plain = [{"prompt": f"x{i}", "schema": {"const": i}} for i in range(3)]
    run(plain)
    status, found, err = run([{**plain[0], "prompt": "new"}, *plain[1:]], "--resume")
    assert "2 of 3 records are already" in err and sorted(r["line"] for r in found) == [1, 2, 3]


def test_resume_needs_a_file(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["generate", "--prompt", "x", "--regex", "a", "--resume"]) == 2
    assert "--resume needs --output" in capsys.readouterr().err
