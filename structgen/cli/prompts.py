"""The prompts of `structgen generate`: one of the command line, or a JSONL file of them.

In: the options, a file. Out: a `Request` for `generation.many` for each line. A wrong line also gives a
request, which has the error, so that the other lines are answered. Cost: reading the file.

A line is a text, or an object: "prompt" (a text or chat messages), "id", and any argument of `sg.generate`.
"schema" may name a file, looked up beside the JSONL file.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from structgen.constraints import Constraint, constraint_of
from structgen.generation.many import Request
from structgen.generation.options import settings_of
from structgen.kinds import ARGUMENTS, TOOL_OPTIONS

from .common import Failure, Inputs, called, constraint, json_options, needed, taken


@dataclass(frozen=True, slots=True)
class Line:
    """Where a request comes from. `number` is 0 for the prompt of the command line.

    Attributes:
        place: the beginning of messages about the request, such as "prompts.jsonl:3: ".
        ids: the line's `id` in a dict. The dict is empty if the line has no `id`.
    """

    number: int
    place: str
    ids: dict[str, Any]

    def key(self, prompt: Any) -> str:
        """Returns the key by which a resumed run finds this line's record: its id, else its number and
        prompt."""
        return json.dumps(["id", self.ids["id"]] if "id" in self.ids else ["line", self.number, prompt])


def _options_of(options: argparse.Namespace) -> dict[str, Any]:
    """Returns the options of `sg.generate` on the command line."""
    names = (
        "max_tokens", "temperature", "top_k", "top_p", "min_p", "frequency_penalty", "presence_penalty",
        "repetition_penalty", "structure_penalty", "stop", "seed", "top_logprobs", "retries", "speculate",
        "reasoning", "answer_tokens", "confidence",
    )  # fmt: skip
    found = {**json_options(options), **taken(options, *names)}
    if options.logit_bias:
        found["logit_bias"] = dict(map(_bias, options.logit_bias))
    return found


def _bias(text: str) -> tuple[str, float]:
    token, equals, value = text.rpartition("=")
    try:
        if equals:
            return token, float(value)
    except ValueError:
        pass
    raise Failure(f"--logit-bias takes a token's id or name and a number, such as 42=-5, not {text!r}")


def lines_of(options: argparse.Namespace) -> list[Request]:
    """Returns the requests, each tagged with its `Line`. Failure: no constraint for --prompt, or no
    prompts."""
    inputs = Inputs()
    common = constraint(options, inputs)
    given = _options_of(options)
    if options.n != 1:
        given["n"] = options.n
    if options.prompt is not None:
        wanted = common or needed(options, inputs, "generate")
        return [Request(options.prompt, {**given, "schema": wanted}, tag=Line(0, "", {}))]
    reader = _Reader(inputs, common, given, options)
    found = list(reader.read(inputs.read(options.prompts, "prompts")))
    if not found:
        raise Failure(f"{called(options.prompts)} has no prompts")
    return found


class _Reader:
    def __init__(
        self, inputs: Inputs, common: Constraint | None, given: dict[str, Any], options: argparse.Namespace
    ) -> None:
        self.inputs = inputs
        self.common = common
        self.given = given
        self.limit: int | None = options.limit
        self.name = called(options.prompts)
        self.folder = Path() if options.prompts == "-" else Path(options.prompts).parent
        self.files: dict[str, Constraint] = {}

    def read(self, text: str) -> Iterator[Request]:
        count = 0
        for number, line in enumerate(text.split("\n"), 1):
            if not line.strip():
                continue
            if self.limit is not None and count >= self.limit:
                return
            count += 1
            yield self.request(number, line)

    def request(self, number: int, line: str) -> Request:
        place = f"{self.name}:{number}: "
        tag = Line(number, place, {})
        try:
            item = json.loads(line)
        except (ValueError, RecursionError) as error:
            return Request(None, {}, Failure(f"invalid JSON: {error}"), tag)
        if isinstance(item, str):
            item = {"prompt": item}
        if isinstance(item, dict) and "id" in item:
            tag = Line(number, place, {"id": item.pop("id")})
        prompt = item.pop("prompt", None) if isinstance(item, dict) else None
        if not isinstance(prompt, str | list):
            return Request(None, {}, Failure('expected a string or an object with "prompt"'), tag)
        try:
            return Request(prompt, self.arguments(item), tag=tag)
        except (TypeError, ValueError, OSError, Failure) as error:
            return Request(prompt, {}, error, tag)

    def arguments(self, item: dict[str, Any]) -> dict[str, Any]:
        """Returns the arguments of a line's call: its own before those of the command line."""
        own = {name: value for name, value in item.items() if value is not None}
        settings_of({**self.given, **own})  # Wrong names and values raise an error first.
        schema = own.get("schema")
        if isinstance(schema, str):
            own["schema"] = self.file(str(self.folder / schema))
        if not any(kind in own for kind in ARGUMENTS):
            if self.common is None:
                raise Failure('no "schema" here and no --schema')
            own["schema"] = self.common
        elif not isinstance(own.get("schema"), Constraint):
            mine = {name: own.pop(name) for name in (*ARGUMENTS, *TOOL_OPTIONS) if name in own}
            own["schema"] = constraint_of(mine)
        return {**self.given, **own}

    def file(self, path: str) -> Constraint:
        if path not in self.files:
            text, documents = self.inputs.schema(path)
            self.files[path] = Constraint("schema", text, path, documents=documents)
        return self.files[path]
