"""Targets of CMake, made where the library was built last: what the tests in C and C++ run.

In: a target. Out: the folder with it. Cost: a build. Without a build the test is skipped, and fails in CI.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from oracles import data

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
    data.need(folder is not None and cmake is not None, "the core was not built in this tree: run make setup")
    assert folder is not None and cmake is not None
    build = [cmake, "--build", str(folder), "--target", target, "--parallel", "2"]
    made = subprocess.run(build, capture_output=True, text=True, timeout=900)
    assert made.returncode == 0, (made.stdout + made.stderr)[-5000:]
    return folder
