"""tools/recursions.py finds recursions without a bound; `make recursions` checks the whole core."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]

SOURCE = """
#include "base/depth.h"
namespace structgen {
struct Tree { Tree* left; Tree* right; };
int seen;
int leaves(Tree* t);
__attribute__((noinline)) int branches(Tree* t) { return leaves(t->left) + leaves(t->right); }
__attribute__((noinline)) int leaves(Tree* t) {
  CHECK
  ++seen;
  return t ? branches(t) : 1;
}
}
"""


def gcc_tells_calls(folder: Path) -> bool:
    (folder / "none.cc").write_text("")
    command = ["g++", "-fcallgraph-info=su", "-c", str(folder / "none.cc"), "-o", str(folder / "none.o")]
    return shutil.which("g++") is not None and subprocess.run(command, capture_output=True).returncode == 0


@pytest.mark.parametrize("check", ["", "check_depth();"])
def test_a_recursion_without_a_guard_is_found(check: str, tmp_path: Path) -> None:
    if not gcc_tells_calls(tmp_path):
        pytest.skip("needs gcc 10 or later: -fcallgraph-info")
    source = tmp_path / "trees.cc"
    source.write_text(SOURCE.replace("CHECK", check))
    command = [sys.executable, str(ROOT / "tools" / "recursions.py"), str(source)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == (0 if check else 1), done.stdout + done.stderr
    assert ("a cycle of 2" in done.stdout) == (not check)
