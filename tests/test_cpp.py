"""The C++ tests (tests/cpp), built where the library was built last, and run. `make test-cpp` runs this."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


def build_folder() -> Path | None:
    """Where CMake built the engine last; builds with sanitizers run the tests by their own make targets."""
    found = [
        path.parent
        for path in (ROOT / "build").glob("*/libstructgen_engine.a")
        if path.parent.name not in ("asan", "tsan", "fuzz-core") and (path.parent / "CMakeCache.txt").exists()
    ]
    return max(found, key=lambda folder: (folder / "libstructgen_engine.a").stat().st_mtime, default=None)


def built(target: str) -> Path:
    """The folder of the build in which a target was made now."""
    folder = build_folder()
    cmake = shutil.which(
        "cmake", path=os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    )
    if folder is None or cmake is None:
        if os.environ.get("CI"):
            pytest.fail("the core was not built in this tree: run make setup")
        pytest.skip("the core was not built in this tree: run make setup")
    build = [cmake, "--build", str(folder), "--target", target, "--parallel", "2"]
    made = subprocess.run(build, capture_output=True, text=True, timeout=900)
    assert made.returncode == 0, (made.stdout + made.stderr)[-5000:]
    return folder


def test_cpp() -> None:
    # `make faults`: which cases, and every place at which they may fail
    asked = os.environ.get("STRUCTGEN_TESTS", "").split("\n") if os.environ.get("STRUCTGEN_TESTS") else []
    limit = None if asked else 300
    command = [str(built("structgen_tests") / "structgen_tests"), *asked]
    run = subprocess.run(command, capture_output=True, text=True, timeout=limit)
    assert run.returncode == 0, (run.stdout + run.stderr)[-5000:]
    print(run.stdout)
