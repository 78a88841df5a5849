"""Builds CMake targets in the folder of the last build, for the tests in C and C++.

Input: a target. Output: the folder with the built target. Time: a build. Without a build folder the test is
skipped, and fails in CI.
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
    """Returns the folder of CMake's last build. Builds with sanitizers run the tests by make targets of their
    own."""
    found = [
        path.parent
        for path in (ROOT / "build").glob("*/libstructgen_engine.a")
        if path.parent.name not in ("asan", "tsan", "fuzz-core") and (path.parent / "CMakeCache.txt").exists()
    ]
    return max(found, key=lambda folder: (folder / "libstructgen_engine.a").stat().st_mtime, default=None)


def built(target: str) -> Path:
    """Builds a target and returns the folder of the build."""
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
