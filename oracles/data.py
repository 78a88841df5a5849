"""Data of developers' runs and tests: the MaskBench directory and the official suite.

Input: the data root (`STRUCTGEN_DATA`, otherwise `../shared/data` beside the repository). Output: cases, and
the suite's groups with their registry. A case is one small file. `structgen.maskbench` defines cases and
tokens.
"""

from __future__ import annotations

import functools
import json
import os
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from structgen.maskbench import corpus
from structgen.maskbench.corpus import Case, Instance, dumps, sample, select
from structgen.maskbench.tokens import Tokens, tekken

__all__ = [
    "Case",
    "Group",
    "Instance",
    "Tokens",
    "dumps",
    "maskbench_case",
    "maskbench_names",
    "need",
    "require",
    "root",
    "sample",
    "shuffled_cases",
    "select",
    "suite_groups",
    "suite_registry",
    "tekken",
]


# The source of each folder in the data directory.
_SOURCES = {
    "maskbench": "link it to maskbench/data of a clone of https://github.com/guidance-ai/jsonschemabench",
    "json-schema-test-suite": "clone https://github.com/json-schema-org/JSON-Schema-Test-Suite there",
    "gad": "put the grammars (.ebnf) and prompts (.txt) of grammar-aligned decoding there, a folder a task",
}


def root() -> Path:
    """Returns the data directory, which may be missing."""
    named = os.environ.get("STRUCTGEN_DATA")
    return Path(named) if named else Path(__file__).resolve().parents[2] / "shared" / "data"


def require(*parts: str) -> None:
    """Ends a run with the exit status 2 if one of the folders is missing or empty."""
    for part in parts:
        path = root() / part
        if not path.is_dir() or not any(path.iterdir()):
            print(
                f"no data in {path}: {_SOURCES[part]}, or set STRUCTGEN_DATA to the directory that holds "
                f"{part}/",
                file=sys.stderr,
            )
            raise SystemExit(2)


def need(condition: bool, reason: str) -> None:
    """Skips the running test unless `condition` holds. In CI the test fails instead."""
    if not condition:
        import pytest

        (pytest.fail if os.environ.get("CI") else pytest.skip)(reason)


@functools.cache
def _maskbench(path: Path) -> corpus.Cases | None:
    try:
        return corpus.folder(path)
    except corpus.CorpusError:
        return None


def maskbench_names() -> list[str]:
    """Returns all schema names, sorted; an empty list if the directory is missing."""
    found = _maskbench(root() / "maskbench")
    return [] if found is None else found.names


def maskbench_case(name: str) -> Case:
    found = _maskbench(root() / "maskbench")
    if found is None:
        raise FileNotFoundError(root() / "maskbench")
    return found.case(name)


def shuffled_cases(seed: int) -> Iterator[Case]:
    """Returns all MaskBench cases in an order that the seed decides, read one by one."""
    names = maskbench_names()
    for at in np.random.default_rng(seed).permutation(len(names)):
        yield maskbench_case(names[int(at)])


@dataclass(frozen=True, slots=True)
class Group:
    """One schema of the official suite with its tests."""

    file: str  # "draft2020-12/optional/format/date.json"
    about: str
    schema: object
    tests: tuple[Instance, ...]


def suite_groups(draft: str) -> Iterable[Group]:
    """Returns all groups of `draft` ("draft2020-12", "draft7"); the optional files come last."""
    base = root() / "json-schema-test-suite" / "tests"
    files = sorted((base / draft).rglob("*.json"), key=lambda path: (len(path.parts), path.as_posix()))
    for path in files:
        with open(path, encoding="utf-8") as file:
            groups = json.load(file)
        for group in groups:
            tests = tuple(Instance(dumps(t["data"]), t["valid"], t["description"]) for t in group["tests"])
            name = path.relative_to(base).as_posix()
            yield Group(name, group["description"], group["schema"], tests)


def suite_registry():
    """A `referencing.Registry` with the suite's remote documents and every metaschema."""
    import jsonschema_specifications
    import referencing
    import referencing.jsonschema as specs

    by_folder = {
        "draft3": specs.DRAFT3,
        "draft4": specs.DRAFT4,
        "draft6": specs.DRAFT6,
        "draft7": specs.DRAFT7,
        "draft2019-09": specs.DRAFT201909,
        "draft2020-12": specs.DRAFT202012,
    }
    base = root() / "json-schema-test-suite" / "remotes"
    resources = []
    for path in sorted(base.rglob("*.json")):
        relative = path.relative_to(base)
        with open(path, encoding="utf-8") as file:
            contents = json.load(file)
        default = by_folder.get(relative.parts[0], specs.DRAFT202012)
        resource = referencing.Resource.from_contents(contents, default_specification=default)
        resources.append((f"http://localhost:1234/{relative.as_posix()}", resource))
    return jsonschema_specifications.REGISTRY.with_resources(resources)
