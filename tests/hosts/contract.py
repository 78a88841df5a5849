"""The contract of all adapters, tested in the real hosts: each tests/hosts/test_*.py derives a class from
`Contract`.

The oracle of the reference text is structgen's own `generate` with the same model. The oracle of the hard
schemas is the `jsonschema` package. tests/test_hosts.py tests the interface below the adapters.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import jsonschema
import pytest

import structgen as sg
from structgen.lm import embedded

ROOT = Path(__file__).resolve().parents[2]
MODEL = str(embedded.path("target"))
ORDER = json.loads((ROOT / "examples" / "order.schema.json").read_text())
TEXT = "Maria Lopez ordered 3 oak chairs and 2 desk lamps, ship to Lisbon by 5 March 2027"
OTHERS = (
    "Please send 2 red stools to Jonas Weber in Vienna, no hurry",
    "Aiko Tanaka wants 4 tall shelves by 12 May 2026 in Osaka, express",
)
PROMPT = embedded.format_prompt(TEXT, ORDER)
EXPECTED = sg.generate(None, TEXT, ORDER).text
HARD: dict[str, Any] = {
    "uniqueItems and multipleOf": {
        "type": "object",
        "properties": {
            "q": {
                "type": "array",
                "items": {"type": "integer", "multipleOf": 5, "minimum": 5, "maximum": 60},
                "uniqueItems": True,
                "minItems": 2,
                "maxItems": 5,
            }
        },
        "required": ["q"],
        "additionalProperties": False,
    },
    "not": {
        "type": "object",
        "properties": {"a": {"type": "integer", "not": {"multipleOf": 3}}},
        "required": ["a"],
    },
    "if and then": {
        "type": "object",
        "properties": {"kind": {"enum": ["a", "b"]}, "n": {"type": "integer"}},
        "required": ["kind"],
        "if": {"properties": {"kind": {"const": "a"}}},
        "then": {"required": ["n"]},
        "additionalProperties": False,
    },
    "contains": {"type": "array", "items": {"type": "integer"}, "contains": {"const": 7}, "maxItems": 4},
    "patternProperties": {
        "type": "object",
        "patternProperties": {"^[ab]$": {"type": "integer"}},
        "additionalProperties": False,
        "minProperties": 2,
    },
    "dependentRequired": {
        "type": "object",
        "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
        "dependentRequired": {"a": ["b"]},
        "minProperties": 1,
        "additionalProperties": False,
    },
    "oneOf": {"oneOf": [{"type": "integer", "multipleOf": 3}, {"type": "integer", "multipleOf": 5}]},
}
TAG = {
    "type": "structural_tag",
    "format": {
        "type": "triggered_tags",
        "triggers": ["<fn="],
        "tags": [
            {"begin": "<fn=a>", "content": {"type": "json_schema", "json_schema": ORDER}, "end": "</fn>"}
        ],
        "at_least_one": True,
        "stop_after_first": True,
    },
}
KINDS: dict[str, tuple[Any, str]] = {  # kind -> (text, what the answer matches)
    "json_schema": (json.dumps(ORDER), r"\{.*\}"),
    "json_object": ("", r"\{.*\}"),
    "regex": (r"\d{4}-\d{2}-\d{2}", r"\d{4}-\d{2}-\d{2}"),
    "choice": ('["yes", "say \\"hi\\"\\n"]', 'yes|say "hi"\n'),
    "gbnf": ('root ::= "(" [0-9]{1,4} ")"', r"\([0-9]{1,4}\)"),
    "lark": ('start: NAME "=" /[0-9]{1,3}/\nNAME: /[a-z]{1,9}/', r"[a-z]+=[0-9]+"),
    "structural_tag": (json.dumps(TAG), r"[^<]*<fn=a>\{.*\}</fn>"),
}
REFUSED = [
    ("json_schema", "{", "invalid JSON|Expecting"),
    ("json_schema", '{"type": "integer", "minimum": 2, "maximum": 1}', "no value satisfies"),
    ("json_schema", '{"$ref": "http://example.com/x"}', "reference"),
    ("json_schema", '{"type": "array", "minItems": "3"}', "'minItems' is not a number"),
    ("regex", "(", "not closed"),
]


@dataclass(frozen=True)
class Asked:
    """A request to a host: one prompt under one constraint."""

    kind: str
    text: Any
    prompt: str = PROMPT
    max_tokens: int = 150
    temperature: float = 0.0
    seed: int = 0

    @property
    def torch_sampling(self) -> dict[str, Any]:
        """The arguments of `generate` in transformers and in the hosts that call transformers."""
        return (
            {"do_sample": True, "temperature": self.temperature} if self.temperature else {"do_sample": False}
        )


@contextlib.contextmanager
def serving(folder: Path, *arguments: str, **environment: str) -> Iterator[tuple[str, Path]]:
    """Starts a server with Python's arguments and a free port; yields the server's address and the path of
    its log."""
    import httpx

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    path = folder / "log"
    with path.open("w") as log:
        process = subprocess.Popen(
            [sys.executable, *arguments, "--port", port],
            stdout=log,
            stderr=subprocess.STDOUT,
            env={**os.environ, **environment},
        )
    base = f"http://127.0.0.1:{port}"
    try:
        for _ in range(300):
            assert process.poll() is None, path.read_text()[-2000:]
            try:
                if httpx.get(base + "/health", timeout=5).status_code == 200:
                    break
            except httpx.HTTPError:
                time.sleep(1)
        yield base, path
    finally:
        process.terminate()
        process.wait(60)


LOOSE = {  # an unknown name of `format` constrains nothing; the log of the host names the format
    "type": "object",
    "properties": {"n": {"type": "integer", "minimum": 1, "maximum": 9, "format": "no-such-format"}},
    "required": ["n"],
    "additionalProperties": False,
}
IMPOSSIBLE = {"type": "integer", "minimum": 2, "maximum": 1}


def check_what_an_operator_sees(
    ask: Callable[[Any], int], metrics: Callable[[], str], log: Callable[[], str]
) -> None:
    """Checks a running server: structgen's counters at `/metrics`, and structgen's lines in the server's log.

    `ask` sends a schema and returns the HTTP status.
    """

    def values() -> dict[str, float]:
        lines = (line for line in metrics().splitlines() if line.startswith("structgen_"))
        found = [(name.partition("{")[0], float(value)) for name, value in (x.rsplit(" ", 1) for x in lines)]
        assert len(found) == len(dict(found)), "a name stands once"
        return dict(found)

    before = values()
    assert [ask(schema) for schema in (ORDER, LOOSE, IMPOSSIBLE)] == [200, 200, 400]
    after = values()
    assert set(after) == {
        *(f"structgen_{name}_total" for name in (
            "compiles", "remembered", "refused", "not_enforced", "compile_seconds", "masks", "inexact",
            "mask_seconds", "failed",
        )),
        "structgen_compile_seconds_most", "structgen_mask_seconds_most", "structgen_cache_bytes",
    }  # fmt: skip
    new = {name: value - before.get(name, 0.0) for name, value in after.items()}
    assert new["structgen_not_enforced_total"] == new["structgen_refused_total"] == 1
    assert new["structgen_compiles_total"] >= 1 and new["structgen_masks_total"] > 60
    assert 0 < after["structgen_mask_seconds_most"] < after["structgen_mask_seconds_total"]
    assert 0 < after["structgen_compile_seconds_most"] <= after["structgen_compile_seconds_total"]
    assert after["structgen_cache_bytes"] > 0
    assert "`format`: unknown format 'no-such-format'" in log()
    assert "structgen: a constraint was refused: no value satisfies" in log()
    end = time.monotonic() + 90
    while not (lines := re.findall(r"structgen: (\d+) constraints \(.*; (\d+) masks \(.* of cache", log())):
        assert time.monotonic() < end, "a line a minute"
        time.sleep(2)
        assert ask(ORDER) == 200
    assert 1 <= int(lines[-1][0]) <= values()["structgen_compiles_total"]
    assert int(lines[-1][1]) <= values()["structgen_masks_total"]


def is_beginning(schema: str, text: str) -> bool:
    compiler = sg.Compiler(sg.Vocabulary.from_file(MODEL))
    return compiler.compile("json_schema", schema).matcher().validate_bytes(text) == len(text.encode())


class Contract:
    """Tests of a host with one model. A derived class gives the host's answers and the host's features."""

    kinds: ClassVar[tuple[str, ...]] = tuple(KINDS)
    budgets: ClassVar[bool] = False  # whether the adapter knows a text's limit of tokens
    refusal: ClassVar[type[Exception] | tuple[type[Exception], ...]] = sg.StructgenError
    # structgen's message -> the host's message, where the host refuses first
    own_words: ClassVar[dict[str, str]] = {}

    def host_answer(self, asked: Asked) -> str:
        """Returns the host's text under a constraint."""
        raise NotImplementedError

    def answer(self, kind: str, text: Any, **how: Any) -> str:
        return self.host_answer(Asked(kind, text, **how))

    def test_the_reference(self) -> None:
        assert self.answer("json_schema", json.dumps(ORDER)) == EXPECTED
        assert self.answer("json_schema", json.dumps(ORDER)) == EXPECTED, "and again"

    @pytest.mark.parametrize("kind", list(KINDS))
    def test_every_kind(self, kind: str) -> None:
        if kind not in self.kinds:
            pytest.skip(f"the host has no {kind}")
        text, pattern = KINDS[kind]
        answer = self.answer(kind, text)
        assert re.fullmatch(pattern, answer, re.DOTALL), answer
        if kind.startswith("json"):
            json.loads(answer)

    @pytest.mark.parametrize("name", list(HARD))
    def test_hard_schemas(self, name: str) -> None:
        """Every finished text is valid. A host without budgets may stop some texts in the middle of a
        number."""
        schema = json.dumps(HARD[name])
        prompt = embedded.format_prompt("numbers: 15, 20 and 7", HARD[name])
        cut = 0
        for seed in range(8):
            answer = self.answer(
                "json_schema", schema, prompt=prompt, max_tokens=60, temperature=1.5, seed=seed
            )
            try:
                value = json.loads(answer)
            except ValueError:
                assert is_beginning(schema, answer), answer
                cut += 1
                continue
            jsonschema.Draft202012Validator(HARD[name]).validate(value)
        assert cut <= (0 if self.budgets else 4), cut

    @pytest.mark.parametrize(("kind", "text", "message"), REFUSED)
    def test_refusals(self, kind: str, text: str, message: str) -> None:
        if kind not in self.kinds:
            pytest.skip(f"the host has no {kind}")
        with pytest.raises(self.refusal, match=self.own_words.get(message, message)):
            self.answer(kind, text)
        assert self.answer("json_schema", json.dumps(ORDER)) == EXPECTED, "the host goes on"


class Budgets(Contract):
    """Tests of hosts whose adapter knows a text's limit of tokens."""

    budgets = True

    @pytest.mark.parametrize("most", [20, 40, 61])
    def test_texts_end_within_max_tokens(self, most: int) -> None:
        jsonschema.validate(json.loads(self.answer("json_schema", json.dumps(ORDER), max_tokens=most)), ORDER)
