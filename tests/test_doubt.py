"""The warning that a request is unlike the embedded model's training: when a result has it, and where it
appears."""

from __future__ import annotations

import json
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest

import structgen as sg
from oracles.serving import Script
from structgen.cli import main
from structgen.lm import embedded
from structgen.lm.doubt import doubt
from structgen.lm.load import language_model

SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
TEXT = '{"a":1}'
# `Script` gives each of its tokens a probability of 0.95.
EACH = float(np.log(0.95))


def script(least: float | None, answer: str = TEXT) -> Script:
    lm = Script(lambda prompt: answer)
    lm.least_logprob = least  # type: ignore[attr-defined]
    return lm


def quiet(lm: Script, prompt: object = "x\x02", **options: object) -> sg.generation.Result:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return sg.generate(lm, prompt, **{"schema": SCHEMA, **options})


def told(lm: Script, prompt: object = "x\x02", **options: object) -> sg.generation.Result:
    with pytest.warns(sg.DoubtfulAnswer, match="outside what the embedded model knows"):
        result = sg.generate(lm, prompt, **{"schema": SCHEMA, **options})
    assert len(result.warnings) == 1
    return result


def test_the_limit_is_on_the_mean_of_the_answers_tokens() -> None:
    assert told(script(EACH + 1e-3)).text == TEXT
    assert quiet(script(EACH - 1e-3)).warnings == []
    assert doubt(script(-1.0), -10.1, 10) and not doubt(script(-1.0), -9.9, 10)
    assert doubt(script(-1.0), 0.0, 0) is None
    assert doubt(Script(str), -1e9, 1) is None  # a model that states no `least_logprob` gives no warning


def test_only_answers_like_those_the_limit_was_measured_on_are_doubted() -> None:
    lm = script(0.0)
    told(lm, schema=None)
    assert quiet(lm, temperature=1.0, seed=1).warnings == []
    assert quiet(lm, top_k=3, temperature=0.5, seed=1).warnings == []
    assert quiet(lm, schema=None, regex=r".*").warnings == []
    assert quiet(lm, list(b"x\x02")).warnings == []
    assert quiet(lm, format="plain").warnings == []
    assert quiet(lm, whitespace="spaced").warnings == []
    assert quiet(lm, stop='"a"', complete=False).warnings == []  # the caller cut the text off
    # the limit cut the text off
    assert quiet(script(0.0, TEXT.replace("1", "1" * 300)), max_tokens=20).warnings == []
    told(lm, logprobs=False)  # without log-probabilities in the result, the warning appears, too


def test_streams_and_batches_tell_it() -> None:
    lm = script(0.0)
    with pytest.warns(sg.DoubtfulAnswer):
        assert sg.stream(lm, "x\x02", SCHEMA).result.warnings
    with pytest.warns(sg.DoubtfulAnswer):
        (one,) = sg.generate_many(lm, ["x\x02"], SCHEMA)
    assert one.warnings


def test_the_embedded_target_has_a_limit_and_the_file_says_how_it_was_found() -> None:
    record = Path(__file__).parents[1] / "training" / "record" / "doubt_target.json"
    figures = json.loads(record.read_text())
    assert figures["threshold"] == embedded.LEAST_LOGPROB["target"]
    assert language_model(None).least_logprob == figures["threshold"]
    assert figures["test split"]["below"] <= 6 and figures["foreign"]["below"] >= 60


FOREIGN = (
    "Once upon a time there lived a fox who could not stop counting the stars.",
    {"type": "object", "properties": {k: {"type": "string"} for k in ("genre", "moral", "protagonist")},
     "required": ["genre", "moral", "protagonist"], "additionalProperties": False},
)  # fmt: skip


def test_the_embedded_model_knows_a_person_and_no_tale() -> None:
    person = {"type": "object", "properties": {"name": {"type": "string"}, "age": {"type": "integer"}},
              "required": ["name", "age"], "additionalProperties": False}  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert sg.generate(None, "Ada Byron is 36 and lives in Oslo", person).warnings == []
    with pytest.warns(sg.DoubtfulAnswer):
        sg.generate(None, *FOREIGN)


def test_the_command_line_says_it_in_one_line_and_in_the_record(tmp_path: Path, capsys) -> None:
    prompt, schema = FOREIGN
    file = tmp_path / "s.json"
    file.write_text(json.dumps(schema))
    out = tmp_path / "o.jsonl"
    assert main(["generate", "--schema", str(file), "--prompt", prompt, "--output", str(out)]) == 0
    lines = [x for x in capsys.readouterr().err.splitlines() if "warning" in x]
    assert len(lines) == 1 and "outside what the embedded model knows" in lines[0]
    assert len(json.loads(out.read_text())["warnings"]) == 1
    # the output has no text of Python's own warnings
    command = [sys.executable, "-m", "structgen.cli", "generate", "--schema", str(file), "--prompt", prompt]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "DoubtfulAnswer" not in done.stderr and done.stderr.count("outside what") == 1


def test_the_server_tells_it_with_the_answer() -> None:
    pytest.importorskip("fastapi", reason="fastapi is not installed: it is in the extra serve")
    pytest.importorskip("sse_starlette", reason="sse-starlette is not installed: it is in the extra serve")
    from starlette.testclient import TestClient

    from structgen.serve.app import create_app

    prompt, schema = FOREIGN
    body = {"messages": [{"role": "user", "content": prompt}], "temperature": 0, "guided_json": schema}
    with TestClient(create_app()) as client:
        done = client.post("/v1/chat/completions", json=body).json()
        assert "outside what" in done["structgen"]["warnings"][0]
        assert "structgen" not in client.post("/v1/chat/completions", json={**body, "temperature": 1}).json()
        streamed = client.post("/v1/chat/completions", json={**body, "stream": True}).text.splitlines()
        last = [x for x in streamed if x.startswith("data: {")][-1]
        assert "outside what" in json.loads(last[6:])["structgen"]["warnings"][0]
