"""Schemas with labelled instances, from a folder, a checkout or the hub.

Enters: "smoke", "cases", "hub", or a folder: MaskBench's (each file is `{"schema", "tests"}`), a checkout of
JSONSchemaBench (`data/SPLIT/*.json`, or its `maskbench/data`), or any folder of schema files. Leaves: `Case`
objects, read one at a time; an unreadable case is an error with the file's name. Cost: a small file for each
case; "hub" downloads about 20 MB once.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .._extras import missing
from . import named

HUB = "epfl-dlab/JSONSchemaBench"
_CHECKOUT = "https://github.com/guidance-ai/jsonschemabench"


class CorpusError(ValueError):
    """The folder has no schemas, or a file is no schema."""


@dataclass(frozen=True, slots=True)
class Instance:
    """The text of a value, and whether the schema takes it."""

    text: str
    valid: bool
    about: str


@dataclass(frozen=True, slots=True)
class Case:
    """One schema with its instances. `split` is the data set it came from."""

    name: str
    split: str
    schema: str  # JSON text, keys in the order of the file
    instances: tuple[Instance, ...]

    def as_json(self) -> dict[str, Any]:
        """Returns the case as JSON for a worker, which then needs no file."""
        return {
            "name": self.name,
            "split": self.split,
            "schema": self.schema,
            "instances": [[i.text, i.valid, i.about] for i in self.instances],
        }

    @classmethod
    def from_json(cls, job: dict[str, Any]) -> Case:
        return cls(job["name"], job["split"], job["schema"], tuple(Instance(*i) for i in job["instances"]))


@dataclass(frozen=True, slots=True)
class Cases:
    """The names of cases, and a function that reads a case by its name."""

    about: str
    names: list[str]
    case: Callable[[str], Case]


def dumps(value: object) -> str:
    """Returns the text of a value as MaskBench defines it."""
    return json.dumps(value, ensure_ascii=False)


def split_of(name: str) -> str:
    """`Github_easy` of `Github_easy---o12345`, `BFCL` of `BFCL_java_1`."""
    head, mark, _ = name.partition("---")
    return head if mark else re.split(r"[_-]", name, maxsplit=1)[0]


def open_corpus(spec: str, *, instances: bool = True, scale: float = 1.0) -> Cases:
    """Returns the corpus that `spec` names. If a checkout has two folders, `instances` prefers
    MaskBench's."""
    if spec in ("cases", "smoke"):
        table = named.CASES if spec == "cases" else named.SMOKE

        def made(name: str) -> Case:
            schema, tests = table[name](scale)
            return Case(
                name, spec, dumps(schema), tuple(Instance(dumps(value), ok, "") for value, ok in tests)
            )

        return Cases(f"structgen's own {spec}", list(table), made)
    if spec in ("hub", HUB):
        return _hub()
    path = Path(spec).expanduser()
    if not path.is_dir():
        raise CorpusError(f"no folder {spec}: pass a folder of schemas, 'cases', 'smoke' or 'hub'")
    if instances and (path / "maskbench" / "data").is_dir():
        return folder(path / "maskbench" / "data")
    if (path / "data").is_dir():
        path = path / "data"
    return folder(path)


def folder(path: Path) -> Cases:
    """Returns all `*.json` under a folder. A sub-folder is a split."""
    files = {
        file.relative_to(path).with_suffix("").as_posix().replace("/", "---"): file
        for file in path.rglob("*.json")
    }
    if not files:
        raise CorpusError(f"no .json files under {path}")

    def read(name: str) -> Case:
        try:
            record = json.loads(files[name].read_text(encoding="utf-8"))
        except (OSError, ValueError, RecursionError) as error:
            raise CorpusError(f"{files[name]}: {error}") from None
        tests: list[dict[str, Any]] = []
        if isinstance(record, dict) and "schema" in record and "tests" in record:
            record, tests = record["schema"], record["tests"]
        found = tuple(Instance(dumps(t["data"]), t["valid"], t.get("description", "")) for t in tests)
        return Case(name, split_of(name), dumps(record), found)

    return Cases(str(path), sorted(files), read)


def _hub() -> Cases:
    """Returns the data set on the Hugging Face hub, one Parquet folder a split; schemas without instances."""
    try:
        import huggingface_hub
        import pyarrow.parquet as parquet
    except ImportError as error:
        raise missing(error, "schemas from the hub") from None
    try:
        root = huggingface_hub.snapshot_download(HUB, repo_type="dataset", allow_patterns=["*.parquet"])
    except Exception as error:  # offline mode, a proxy or a missing data set raise a dozen types of errors
        first = str(error).strip().split("\n")[0]
        raise CorpusError(
            f"the hub's {HUB} cannot be reached ({first}): git clone {_CHECKOUT} where there is a network, "
            "and pass that folder as --data"
        ) from None
    return parquet_corpus(Path(root), parquet)


def parquet_corpus(root: Path, parquet: Any) -> Cases:
    """Returns every Parquet file under `root`; column `json_schema` is the text, `unique_id` the name."""
    schemas: dict[str, tuple[str, str]] = {}
    for file in sorted(root.rglob("*.parquet")):
        relative = file.relative_to(root)
        split = relative.parts[0] if len(relative.parts) > 1 else re.split(r"-\d", relative.stem)[0]
        table = parquet.read_table(file).to_pydict()
        texts = table.get("json_schema")
        if texts is None:
            raise CorpusError(f"{relative}: no column 'json_schema' (found {', '.join(table)})")
        ids = table.get("unique_id") or [str(i) for i in range(len(texts))]
        for name, text in zip(ids, texts, strict=True):
            full = name if name.startswith(split) else f"{split}---{name}"
            schemas[full] = (split, text if isinstance(text, str) else dumps(text))
    if not schemas:
        raise CorpusError(f"no Parquet files under {root}")
    return Cases(f"{HUB} on the hub", sorted(schemas), lambda name: Case(name, *schemas[name], ()))


def sample(names: Iterable[str], count: int, seed: int = 0) -> list[str]:
    """`count` names in a pseudo-random order that `seed` fixes. A larger sample contains a smaller one."""

    def rank(name: str) -> bytes:
        return hashlib.sha256(f"{seed}:{name}".encode()).digest()

    return sorted(names, key=rank)[:count]


def select(
    names: Iterable[str],
    *,
    only: str = "",
    stride: int = 1,
    offset: int = 0,
    count: int | None = None,
    seed: int = 0,
) -> list[str]:
    """Returns the cases that a command's flags select: names that contain `only`, then every n-th of these,
    then a sample."""
    kept = [name for name in sorted(names) if only in name][offset::stride]
    return kept if count is None else sample(kept, count, seed)
