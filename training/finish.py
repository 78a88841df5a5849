"""Export both models, measure them, and bring record, curve and card up to date.

Enters: the newest checkpoints of both runs. Leaves: the folders under
`structgen/lm/embedded/`, `training/record/`, the model card.
Cost: about four minutes on one core.

    python -m training.finish              # adopt the newest checkpoints
    python -m training.finish --if-better  # a model that got worse keeps its folder

`better` compares the fields right on extraction, constrained, with the record.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

from training.export import export
from training.prompt import EMBEDDED, ROOT
from training.train import RECORD, RUNS


def _run(module: str, *arguments: str) -> None:
    subprocess.run([sys.executable, "-m", f"training.{module}", *arguments], check=True, cwd=ROOT)


def _recorded(model: str) -> float:
    path = RECORD / f"evaluation_{model}_constrained.json"
    return float(json.loads(path.read_text())["extraction"]["fields"]) if path.exists() else 0.0


def _adopt(model: str, count: int, if_better: bool) -> None:
    if not (RUNS / model / "checkpoint.pt").exists():
        raise SystemExit(f"{model} has no checkpoint: run `python -m training.train --model {model}` first")
    before = _recorded(model)
    with tempfile.TemporaryDirectory() as scratch:
        export(model, Path(scratch))
        if if_better:
            _run(
                "evaluate",
                "--folder",
                scratch,
                "--count",
                str(count),
                "--constrained",
                "--json",
                f"{scratch}/e",
            )
            now = float(json.loads(Path(f"{scratch}/e").read_text())["extraction"]["fields"])
            print(f"{model}: {before}% of fields recorded, {now}% now", flush=True)
            if now <= before:
                return
    export(model, EMBEDDED / model)
    for way in ((), ("--constrained",)):
        _run("evaluate", "--model", model, "--count", str(count), "--record", *way)


def main() -> None:
    parser = argparse.ArgumentParser(description="export, measure and document the model pair")
    parser.add_argument("--if-better", action="store_true", help="keep a folder that measures better")
    parser.add_argument("--count", type=int, default=40, help="test examples per task")
    asked = parser.parse_args()
    for model in ("target", "draft"):
        _adopt(model, asked.count, asked.if_better)
    _run("agreement", "--count", "120", "--record")
    _run("plot")
    _run("card")
    _run("ask", "--constrained")


if __name__ == "__main__":
    main()
