"""The example scripts run and print the results that they explain."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
SAID = {
    "extraction": "3 x oak chairs",
    "classification": "law: exact",
    "tool_agent": "sunny in Lisbon",
    "sql": "SELECT ",
    "code_completion": "total = ",
    "batch": '"Maria Lopez"',
    "streaming": "Person(name='Ada Byron', age=36, city='London')",
    "potential": "affordable ones (exact)",
    "speculative": "tokens a forward, the same text",
    "own_loop": ", because ",
    "canvas": "tokens were asked about, 0 were too much to tell",
}


ELSEWHERE = {"batch_inference"}  # this example needs a cluster: tests/hosts runs it


def test_every_script_is_listed() -> None:
    assert {path.stem for path in (ROOT / "examples").glob("*.py")} == SAID.keys() | ELSEWHERE


@pytest.mark.parametrize("name", SAID)
def test_an_example_runs(
    name: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("pydantic", reason="pydantic is not installed: it is in the extra types")
    pytest.importorskip("lark")
    path = ROOT / "examples" / f"{name}.py"
    monkeypatch.setattr(sys, "argv", [str(path)])
    runpy.run_path(str(path), run_name="__main__")
    assert SAID[name] in capsys.readouterr().out
    assert f"python examples/{name}.py" in path.read_text(encoding="utf-8")
