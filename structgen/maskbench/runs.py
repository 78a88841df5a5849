"""A run: a folder with `run.json` (the options and the machine) and `rows.jsonl` (the results).

Enters: options of a run, rows as they come. Leaves: both files. Each row is flushed as it is written, so a
run that was cut off continues where it stood. Cost: a line for each row.
"""

from __future__ import annotations

import datetime
import json
import os
import platform
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import structgen

# The options that must agree for rows to belong to one run.
_SAME = ("mode", "tokenizer", "model", "max_tokens", "tell_limit", "data", "scale", "limit", "memory")


class RunError(ValueError):
    """The folder is no run, or a run of another kind."""


def machine() -> dict[str, Any]:
    """Returns the machine on which figures were measured: processor, cores in use, memory, system."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    found: dict[str, Any] = {
        "system": platform.platform(),
        "python": platform.python_version(),
        "cores": cores,
        "processor": platform.processor() or platform.machine(),
    }
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            names = [line.partition(":")[2].strip() for line in file if line.startswith("model name")]
        found["processor"] = names[0] if names else found["processor"]
        found["memory_gb"] = round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9, 1)
        found["load_at_start"] = round(os.getloadavg()[0], 2)
    except (OSError, ValueError):
        pass
    return found


def versions(engines: dict[str, dict[str, Any]]) -> dict[str, str]:
    return {"structgen": structgen.__version__} | {name: about["version"] for name, about in engines.items()}


@dataclass(slots=True)
class BenchRun:
    """The folder of one run and its contents."""

    path: Path
    config: dict[str, Any]
    done: set[tuple[str, str]] = field(default_factory=set)  # (id, engine)

    @property
    def name(self) -> str:
        return self.path.name

    @classmethod
    def open(cls, path: Path, config: dict[str, Any]) -> BenchRun:
        """Returns a new run, or one that is continued. RunError: the folder holds another kind of run."""
        path.mkdir(parents=True, exist_ok=True)
        meta = path / "run.json"
        run = cls(path, config)
        if meta.exists():
            known = read_config(path)
            differ = [key for key in _SAME if known.get(key) != config.get(key)]
            if differ:
                raise RunError(
                    f"{path} holds a run with another {', '.join(differ)} "
                    f"({', '.join(repr(known.get(key)) for key in differ)}): name another --out"
                )
            for name, about in config["engines"].items():
                before, now = known["engines"].get(name, about)["version"], about["version"]
                if before != now:
                    raise RunError(f"{path} has rows of {name} {before}, this is {now}: name another --out")
            mend(path / "rows.jsonl")
            run.done = {(row["id"], row["engine"]) for row in rows_of(path)}
            config["engines"] = known["engines"] | config["engines"]
            config["sessions"] = [*known["sessions"], *config["sessions"]]
        run.save()
        return run

    def save(self) -> None:
        text = json.dumps(self.config, indent=1, ensure_ascii=False) + "\n"
        beside = self.path / "run.json.new"
        beside.write_text(text, encoding="utf-8")
        beside.replace(self.path / "run.json")

    def write(self, rows: list[dict[str, Any]]) -> None:
        with open(self.path / "rows.jsonl", "a", encoding="utf-8") as file:
            for row in rows:
                file.write(json.dumps(row, ensure_ascii=False, separators=(",", ":")) + "\n")
                self.done.add((row["id"], row["engine"]))


def session(**more: Any) -> dict[str, Any]:
    """Returns the time and the machine of this part of a run."""
    return {
        "started": datetime.datetime.now().astimezone().isoformat(timespec="seconds"),
        "machine": machine(),
        "command": " ".join(["structgen", *sys.argv[1:]]),
        **more,
    }


def mend(path: Path) -> None:
    """Removes a last line that was not written whole."""
    if not path.exists():
        return
    with open(path, "rb+") as file:
        data = file.read()
        whole = data.rfind(b"\n") + 1
        if whole != len(data):
            file.truncate(whole)


def read_config(path: Path) -> dict[str, Any]:
    try:
        config: dict[str, Any] = json.loads((path / "run.json").read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise RunError(f"{path} is no run of structgen bench: {error}") from None
    return config


def rows_of(path: Path) -> Iterator[dict[str, Any]]:
    """Returns every row. RunError: a line that is no row."""
    file = path / "rows.jsonl"
    if not file.exists():
        return
    with open(file, encoding="utf-8") as lines:
        for number, line in enumerate(lines, 1):
            try:
                row: dict[str, Any] = json.loads(line)
            except ValueError as error:
                raise RunError(f"{file}:{number}: {error}") from None
            yield row


def read(path: str | Path) -> BenchRun:
    """Returns a finished or unfinished run, for reading."""
    return BenchRun(Path(path), read_config(Path(path)))
