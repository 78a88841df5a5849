"""Which lines of the C++ core the fuzzers' corpus runs, by room of csrc/ and by file.

In: a core that was built with -DSTRUCTGEN_COVERAGE=ON (`STRUCTGEN_CORE`), the seeds and the kept inputs, and
what a folder of `python -m fuzz` holds. Out: a table on the standard output. Cost: one pass over all inputs,
a few minutes on an instrumented core. llvm-profdata and llvm-cov are those of the compiler that built it
(LLVM_BIN names their folder).
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

from .seeds import DICTIONARIES, ROOT, corpus

_RUN = """
import sys
import oracles.sanitized_core
from fuzz.seeds import corpus
from fuzz.targets import TARGETS
from pathlib import Path
inputs = corpus(sys.argv[1]) + [f.read_bytes() for f in sorted(Path(sys.argv[2]).glob("*"))]
for data in inputs:
    TARGETS[sys.argv[1]](data)
print(len(inputs))
"""


def tool(name: str) -> str:
    folder = os.environ.get("LLVM_BIN")
    found = shutil.which(name, path=folder) if folder else None
    for version in range(30, 15, -1):
        found = found or shutil.which(f"{name}-{version}")
    found = found or shutil.which(name)
    if found is None:
        raise SystemExit(f"{name} is not found; LLVM_BIN names the folder of LLVM's tools")
    return found


def report(environment: dict[str, str], out: Path) -> int:
    core = environment.get("STRUCTGEN_CORE")
    if not core:
        raise SystemExit("STRUCTGEN_CORE names a folder with a core built with -DSTRUCTGEN_COVERAGE=ON")
    profiles: list[str] = []
    out.mkdir(parents=True, exist_ok=True)
    for name in DICTIONARIES:
        profile = str(out / f"{name}.profraw")
        command = [sys.executable, "-c", _RUN, name, str(out / name / "corpus")]
        done = subprocess.run(
            command,
            env=environment | {"LLVM_PROFILE_FILE": profile},
            capture_output=True,
            text=True,
            check=False,
        )
        ran = done.stdout.strip() or f"ended early: {done.stderr.strip()[-300:]}"
        print(f"{name}: {ran} inputs, {len(corpus(name))} of them in the repository", flush=True)
        if Path(profile).exists():
            profiles.append(profile)
    merged = str(out / "all.profdata")
    subprocess.run([tool("llvm-profdata"), "merge", "-sparse", *profiles, "-o", merged], check=True)
    (library,) = Path(core).glob("_core*.so")
    export = [tool("llvm-cov"), "export", "-summary-only", f"-instr-profile={merged}", str(library)]
    data = json.loads(subprocess.run(export, check=True, capture_output=True).stdout)["data"][0]["files"]
    table(data)
    return 0


def table(files: list[dict[str, Any]]) -> None:
    """Lines and branches that ran, of those that there are: rooms, and below each its files."""
    rooms: dict[str, list[tuple[str, list[int]]]] = defaultdict(list)
    for file in files:
        parts = Path(file["filename"]).parts
        if "csrc" not in parts or parts[-1].endswith(".inc"):
            continue
        room, name = parts[parts.index("csrc") + 1], "/".join(parts[parts.index("csrc") + 2 :])
        summary = file["summary"]
        counts = [summary[kind][what] for kind in ("lines", "branches") for what in ("covered", "count")]
        rooms[room].append((name, counts))

    def row(name: str, counts: list[int]) -> str:
        shares = [
            f"{100 * a / b:5.1f}% of {b:6,}" if b else "      -        "
            for a, b in zip(counts[::2], counts[1::2], strict=True)
        ]
        return f"{name:32} lines {shares[0]}  branches {shares[1]}"

    total = [0, 0, 0, 0]
    for room in sorted(rooms):
        whole = [sum(column) for column in zip(*(counts for _, counts in rooms[room]), strict=True)]
        total = [a + b for a, b in zip(total, whole, strict=True)]
        print(row(f"csrc/{room}", whole))
        for name, counts in sorted(rooms[room]):
            print(row(f"  {name}", counts))
    print(row("all", total))


if __name__ == "__main__":
    sys.exit(report(dict(os.environ), ROOT / "build" / "fuzz"))
