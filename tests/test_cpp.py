"""Runs the C++ tests (tests/cpp), built in the folder of the last build of the library. `make test-cpp` runs
this file."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from oracles.built import built

ROOT = Path(__file__).resolve().parents[1]


def test_cpp() -> None:
    # `make faults` sets which cases run and asks for every place at which an allocation may fail
    asked = os.environ.get("STRUCTGEN_TESTS", "").split("\n") if os.environ.get("STRUCTGEN_TESTS") else []
    limit = None if asked else 300
    command = [str(built("structgen_tests") / "structgen_tests"), *asked]
    run = subprocess.run(command, capture_output=True, text=True, timeout=limit)
    assert run.returncode == 0, (run.stdout + run.stderr)[-5000:]
    print(run.stdout)
