"""Benchmark inputs: the MaskBench directory, samples of it, the official suite, and a tokenizer.

Enters: the data root (`STRUCTGEN_DATA`, else `../shared/data` beside the repository).
Leaves: `Case` (schema text and labelled instances) and `Tokens` (bytes of every id, and an encoder).
Cost: a case is one small file; the tokenizer takes about two seconds.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path


def root() -> Path:
    """The data directory. It may not exist; callers say what they do then."""
    named = os.environ.get("STRUCTGEN_DATA")
    return Path(named) if named else Path(__file__).resolve().parents[2] / "shared" / "data"


@dataclass(frozen=True, slots=True)
class Instance:
    text: str
    valid: bool
    about: str


@dataclass(frozen=True, slots=True)
class Case:
    name: str
    schema: str  # JSON text, keys in the order of the file
    instances: tuple[Instance, ...]


def dumps(value: object) -> str:
    """The text of a value as the benchmark defines it."""
    return json.dumps(value, ensure_ascii=False)


def maskbench_names() -> list[str]:
    """All schema names, sorted."""
    return sorted(path.stem for path in (root() / "maskbench").glob("*.json"))


def maskbench_case(name: str) -> Case:
    with open(root() / "maskbench" / f"{name}.json", encoding="utf-8") as file:
        record = json.load(file)
    tests = record.get("tests", ())
    instances = tuple(
        Instance(dumps(t["data"]), t["valid"], t.get("description", "")) for t in tests
    )
    return Case(name, dumps(record["schema"]), instances)


def sample(names: Iterable[str], count: int, seed: int = 0) -> list[str]:
    """`count` names in a pseudo-random order fixed by `seed`; a larger sample contains a smaller one."""

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
    """The choice every runner offers: names containing `only`, then a stride, then a sample."""
    kept = [name for name in sorted(names) if only in name][offset::stride]
    return kept if count is None else sample(kept, count, seed)


@dataclass(frozen=True, slots=True)
class Tokens:
    """A vocabulary as bytes by id. Special ids have the empty string; they never match text."""

    name: str
    text: list[bytes]
    special: range
    eos: int
    encode: Callable[[str], list[int]]


def tekken() -> Tokens:
    """Mistral's 131,072-token vocabulary, shipped inside the mistral-common package."""
    import mistral_common
    from mistral_common.tokens.tokenizers.tekken import Tekkenizer

    path = Path(mistral_common.__file__).parent / "data" / "tekken_240911.json"
    with open(path, encoding="utf-8") as file:
        record = json.load(file)
    size = record["config"]["default_vocab_size"]
    special = record["config"]["default_num_special_tokens"]
    words = record["vocab"][: size - special]  # the file holds more than the vocabulary uses
    text = [b""] * special + [base64.b64decode(word["token_bytes"]) for word in words]
    tokenizer = Tekkenizer.from_file(path)
    if tokenizer.n_words != len(text):
        raise ValueError(f"{path.name} has {len(text)} tokens, its tokenizer {tokenizer.n_words}")

    def encode(string: str) -> list[int]:
        return tokenizer.encode(string, bos=False, eos=False)

    return Tokens("tekken-131k", text, range(special), tokenizer.eos_id, encode)


@dataclass(frozen=True, slots=True)
class Group:
    """One schema of the official suite with its tests."""

    file: str  # "draft2020-12/optional/format/date.json"
    about: str
    schema: object
    tests: tuple[Instance, ...]


def suite_groups(draft: str) -> Iterable[Group]:
    """All groups of `draft` ("draft2020-12", "draft7"), optional files last."""
    base = root() / "json-schema-test-suite" / "tests"
    files = sorted(
        (base / draft).rglob("*.json"), key=lambda path: (len(path.parts), path.as_posix())
    )
    for path in files:
        with open(path, encoding="utf-8") as file:
            groups = json.load(file)
        for group in groups:
            tests = tuple(
                Instance(dumps(t["data"]), t["valid"], t["description"]) for t in group["tests"]
            )
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
