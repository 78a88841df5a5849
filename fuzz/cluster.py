"""`.clusterfuzzlite/build.sh` in a temporary copy of the tree, without its image: `python -m fuzz.cluster`.

In: clang (`CC`, `CXX`), the packages of the image's Dockerfile. Out: exit status 1 where a command of the
script fails, or a target does not run. What the image has and a machine has not is `compile_python_fuzzer`,
which packs a target with its Python: here it checks its arguments and writes a script that runs the target
where it lies. Cost: a build of the core, and `--runs` inputs a target; with --dry cmake is only noted.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from .seeds import DICTIONARIES, ROOT

# As base-builder sets them for the sanitizer address.
FLAGS = "-O1 -fno-omit-frame-pointer -gline-tables-only -fsanitize=address,fuzzer-no-link"
_LEFT_OUT = shutil.ignore_patterns(".git", ".venv", "build", "dist", "__pycache__", ".*_cache", "_core*.so")
_COMPILE = """#!/bin/bash -eu
test -f "$1"
python3 -m py_compile "$1"
name=$(basename "$1" .py)
script=$PWD/$1
shift
while [ $# -gt 0 ]; do
  [ "$1" = --add-data ]
  test -e "${2%%:*}"
  shift 2
done
printf '#!/bin/bash\\ncd "%s" && exec python3 "%s" "$@"\\n' "$PWD" "$script" > "$OUT/$name"
chmod +x "$OUT/$name"
"""
_CMAKE = """#!/bin/bash -eu
echo "$@" >> "$OUT/cmake.txt"
mkdir -p build/cluster
touch build/cluster/_core.so
"""


def build(folder: Path, dry: bool = False) -> Path:
    """Runs build.sh in a copy of the tree below `folder`; the folder of its targets."""
    tree, out, tools = folder / "structgen", folder / "out", folder / "tools"
    shutil.copytree(ROOT, tree, ignore=_LEFT_OUT)
    for made in (out, tools):
        made.mkdir()
    for name, text in (("compile_python_fuzzer", _COMPILE), ("cmake", _CMAKE if dry else "")):
        if text:
            (tools / name).write_text(text)
            (tools / name).chmod(0o755)
    (tools / "python3").symlink_to(sys.executable)
    environment = {"CC": "clang", "CXX": "clang++", "CXXFLAGS": FLAGS} | os.environ
    environment |= {"OUT": str(out), "PATH": f"{tools}:{os.environ['PATH']}", "PYTHONPATH": str(tree)}
    subprocess.run(["bash", ".clusterfuzzlite/build.sh"], cwd=tree, env=environment, check=True)
    return out


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m fuzz.cluster", description=__doc__.split("\n")[0])
    parser.add_argument("--runs", type=int, default=100, help="inputs a target after the build")
    parser.add_argument("--dry", action="store_true", help="no build, no runs")
    options = parser.parse_args()
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        out = build(Path(folder), options.dry)
        for name in [] if options.dry else DICTIONARIES:
            from .__main__ import _environment

            os.environ["STRUCTGEN_CORE"] = str(Path(folder) / "structgen" / "structgen")
            environment = _environment() | {"PYTHONPATH": str(Path(folder) / "structgen")}
            done = subprocess.run([str(out / f"fuzz_{name}"), f"-runs={options.runs}"], env=environment)
            print(f"{name}: exit {done.returncode}", flush=True)
            failed += done.returncode != 0
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
