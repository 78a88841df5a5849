"""`structgen generate`: prompts and a schema in, JSON out.

In: a prompt, or a JSONL file of prompts where each line may name its schema. Out: one document a line, or
with --output one record a line (prompt, text, value, tokens, log-probabilities). Cost: loading the model
once, then a forward a token. A prompt that fails is one line on standard error; the others are answered.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from structgen.constraints import Constraint

from .common import (
    OK,
    REJECTED,
    Commands,
    Failure,
    Inputs,
    add_constraint_options,
    called,
    constraint,
    json_options,
    load_model,
    note,
    plain,
    plural,
)

if TYPE_CHECKING:
    from structgen.generation import Result
    from structgen.lm.base import LanguageModel
    from structgen.speculation import Statistics


@dataclass(frozen=True, slots=True)
class Request:
    """A prompt, what its answer must be, and where both came from."""

    prompt: str
    constraint: Constraint
    place: str


def add_parser(commands: Commands) -> None:
    parser = commands.add_parser(
        "generate",
        help="JSON for a prompt, by the embedded model or another",
        description="Generates JSON that the schema accepts. Documents go to standard output, one a line; "
        "exit status 1 if one was cut off by --max-tokens.",
    )
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--prompt", metavar="TEXT", help="one request in plain words")
    source.add_argument(
        "--prompts",
        metavar="FILE",
        help='JSONL, or -: a string a line, or {"prompt": ..., "schema": file or schema}; '
        "a file is looked up beside FILE",
    )
    parser.add_argument("--model", metavar="PATH", help="a folder or hub id (default: the embedded model)")
    parser.add_argument("--max-tokens", type=int, default=256, metavar="N", help="(default: 256)")
    parser.add_argument(
        "--temperature", type=float, metavar="T", help="0 is greedy (default: 0, and 1 where -n is above 1)"
    )
    parser.add_argument("--top-k", type=int, metavar="K")
    parser.add_argument("--top-p", type=float, metavar="P")
    parser.add_argument("--seed", type=int, help="repeats the draws")
    parser.add_argument("-n", type=int, default=1, help="documents a prompt (default: 1)")
    parser.add_argument(
        "--speculate",
        metavar="WHAT",
        default="off",
        help="several tokens a forward, the same text: auto, off, or drafters by name (grammar, schema, "
        "automaton, tree, recycling, ngrams, trigram, lookup, copy, lookahead), separated by commas",
    )
    parser.add_argument("--stream", action="store_true", help="write the text of --prompt as it comes")
    parser.add_argument("--output", metavar="FILE", help="write records as JSONL here (- is standard output)")
    parser.add_argument("--limit", type=int, metavar="N", help="stop after N prompts")
    add_constraint_options(parser, whitespace="compact", numbers="canonical", strings="plain")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    wanted = list(requests(options))
    if options.stream and (options.prompt is None or options.n > 1 or options.output is not None):
        raise Failure("--stream shows one text: it takes --prompt, and neither -n nor --output")
    options.speculate = speculation(options.speculate)
    tokens = forwards = 0
    with ExitStack() as stack:
        out: TextIO = sys.stdout
        if options.output not in (None, "-"):
            try:
                out = stack.enter_context(open(options.output, "w", encoding="utf-8"))
            except OSError as error:
                raise Failure(f"cannot write {options.output}: {error.strerror}") from None
        note(f"loading {options.model or 'the embedded model'}")
        lm = load_model(options.model)
        if options.stream:
            return show(lm, wanted[0], options)
        start = time.perf_counter()
        status, texts = OK, 0
        for request in wanted:
            if options.prompts is not None:
                note(f"> {request.prompt}")
            code, lines, used = answer(lm, request, options)
            tokens, forwards = tokens + used.tokens, forwards + used.row_forwards
            status = max(status, code)
            texts += len(lines)
            for line in lines:
                print(line, file=out, flush=True)
    if texts:
        drafted = f", {tokens / forwards:.2f} tokens a forward" if forwards else ""
        note(f"{plural(texts, 'text')} in {time.perf_counter() - start:.1f} s{drafted}")
    return status


def speculation(what: str) -> Any:
    """--speculate as `generate` takes it. Failure: no such drafter."""
    if what in ("auto", "off"):
        return None if what == "off" else what
    from structgen.speculation.options import named

    try:
        return named(what)
    except ValueError as error:
        raise Failure(f"--speculate: {error}") from None


def answer(
    lm: LanguageModel, request: Request, options: argparse.Namespace
) -> tuple[int, list[str], Statistics]:
    """The exit status and the lines to print for one prompt, and what speculation did."""
    from structgen.generation import generate
    from structgen.speculation import Statistics

    from .main import explain

    try:
        results = generate(
            lm,
            request.prompt,
            request.constraint,
            n=options.n,
            **arguments(options),
        )
    except Exception as error:
        if os.environ.get("STRUCTGEN_TRACEBACK"):
            raise
        line, code = explain(error)
        note(f"structgen: {request.place}{line}")
        return code, [], Statistics()
    status = judge(results, request, options)
    lines = [result.text if options.output is None else record(request, result) for result in results]
    return status, lines, results[0].speculation or Statistics()


def show(lm: LanguageModel, request: Request, options: argparse.Namespace) -> int:
    """Writes the text as it comes. Its end is told as that of other texts."""
    from structgen.generation import stream

    found = stream(lm, request.prompt, request.constraint, **arguments(options))
    for event in found:
        print(event.text, end="", flush=True)
    print(flush=True)
    return judge([found.result], request, options)


def arguments(options: argparse.Namespace) -> dict[str, Any]:
    """The options of `sg.generate`."""
    names = ("max_tokens", "temperature", "top_k", "top_p", "seed", "speculate")
    return {**json_options(options), **{name: getattr(options, name) for name in names}}


def judge(results: list[Result[Any]], request: Request, options: argparse.Namespace) -> int:
    """Tells of texts that the limit touched; the exit status."""
    cut = sum(1 for result in results if result.finish_reason != "stop")
    if cut:
        note(f"structgen: {request.place}{plural(cut, 'text')} cut off after {options.max_tokens} tokens")
    bound = sum(1 for result in results if result.budget_bound and result.finish_reason == "stop")
    if bound:
        note(
            f"structgen: {request.place}{plural(bound, 'text')} had to end within "
            f"{options.max_tokens} tokens and may be shorter for it"
        )
    return REJECTED if cut else OK


def record(request: Request, result: Result[Any]) -> str:
    """One line of --output."""
    fields = {
        "prompt": request.prompt,
        "text": result.text,
        "value": result.value,
        "finish_reason": result.finish_reason,
        "budget_bound": result.budget_bound,
        "tokens": result.tokens,
        "logprobs": [round(x, 6) for x in result.logprobs],
        "seed": result.sampling.seed,
    }
    return json.dumps(fields, ensure_ascii=False, default=plain)


def requests(options: argparse.Namespace) -> Iterator[Request]:
    """The prompts, each with its constraint. Failure: a line that is none, a schema that is missing."""
    inputs = Inputs()
    common = constraint(options, inputs)
    if options.prompt is not None:
        if common is None:
            raise Failure("generate needs --schema, or another option that says what the text must be")
        yield Request(options.prompt, common, "")
        return
    known: dict[str, Constraint] = {}
    folder = Path() if options.prompts == "-" else Path(options.prompts).parent
    lines = inputs.read(options.prompts, "prompts").splitlines()
    name = called(options.prompts)
    count = 0
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        if options.limit is not None and count >= options.limit:
            return
        count += 1
        place = f"{name}:{number}: "
        try:
            item = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise Failure(f"{place}invalid JSON: {error}") from None
        if isinstance(item, str):
            item = {"prompt": item}
        if not isinstance(item, dict) or not isinstance(item.get("prompt"), str):
            raise Failure(f'{place}expected a string or an object with "prompt"')
        schema = item.get("schema")
        if schema is None:
            if common is None:
                raise Failure(f'{place}no "schema" here and no --schema')
            yield Request(item["prompt"], common, place)
        elif isinstance(schema, str):
            path = str(folder / schema)
            if path not in known:
                known[path] = Constraint("schema", inputs.read(path, "schema"), path)
            yield Request(item["prompt"], known[path], place)
        else:
            yield Request(item["prompt"], Constraint("schema", schema), place)
    if not count:
        raise Failure(f"{name} has no prompts")
