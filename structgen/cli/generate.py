"""`structgen generate`: prompts and constraints in, texts out.

In: a prompt, or a JSONL file of prompts where each line may have arguments of its own. Out: one text a line,
or with --output a record for every prompt (id, line, prompt, text, value, tokens, log-probabilities, error).
Cost: loading the model once, then one forward for each token, which --batch texts share. A prompt that fails
gives one line on standard error and a record with its error. It does not stop the others.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections import Counter
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from structgen.json_options import WRITTEN

from . import common
from .prompts import Line, lines_of

if TYPE_CHECKING:
    from structgen.generation import Result
    from structgen.generation.many import Request
    from structgen.lm.base import LanguageModel


# Fields of a record that not every result has.
_AS_TOLD = ("stopped_by", "top_logprobs", "field_probabilities", "reasoning", "warnings")


def add_parser(commands: common.Commands) -> None:
    from structgen.speculation.options import NAMED

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
        help='JSONL, or -: a string a line, or {"prompt": ..., "id": ..., "schema": file or schema} with any '
        "argument of sg.generate; a file is looked up beside FILE",
    )
    common.add_model_option(parser)
    common.add_drawing_options(parser, None, "0 is greedy (default: 0, and 1 where -n is above 1)")
    parser.add_argument("--top-k", type=int, metavar="K")
    parser.add_argument("--top-p", type=float, metavar="P")
    parser.add_argument("--min-p", type=float, default=0.0, metavar="P", help="of the most probable token's")
    for name in ("frequency", "presence"):
        parser.add_argument(f"--{name}-penalty", type=float, default=0.0, metavar="X", help="(default: 0)")
    parser.add_argument("--repetition-penalty", type=float, default=1.0, metavar="X", help="(default: 1)")
    parser.add_argument(
        "--structure-penalty",
        type=float,
        default=1.0,
        metavar="X",
        help="below 1: against loops (default: 1)",
    )
    parser.add_argument(
        "--logit-bias", metavar="ID=X", action="append", help="add X to a token's log-probability; repeatable"
    )
    parser.add_argument("--stop", metavar="TEXT", action="append", help="the text ends before it; repeatable")
    parser.add_argument(
        "--top-logprobs", type=int, default=0, metavar="K", help="alternatives in the records"
    )
    parser.add_argument(
        "--confidence",
        type=int,
        nargs="?",
        const=64,
        default=0,
        metavar="N",
        help="tell how probable the value of each leaf is; N prefixes are read for a leaf (64 without N)",
    )
    parser.add_argument(
        "--retries", type=int, default=0, metavar="N", help="where a validator of --type refuses"
    )
    parser.add_argument(
        "--reasoning",
        metavar="FAMILY",
        help="the model thinks before it answers: qwen3, gpt-oss, ..., or auto, by its chat template",
    )
    parser.add_argument(
        "--answer-tokens",
        type=int,
        metavar="N",
        help="tokens that thoughts leave to the answer (default: a quarter of --max-tokens)",
    )
    parser.add_argument("-n", type=int, default=1, help="documents a prompt (default: 1)")
    parser.add_argument(
        "--speculate",
        metavar="WHAT",
        default="off",
        help="several tokens a forward, the same text: auto, off, or drafters by name "
        f"({', '.join(NAMED)}, corpus=FILE), separated by commas; auto among them is all of its own",
    )
    parser.add_argument("--stream", action="store_true", help="write the text of --prompt as it comes")
    parser.add_argument("--output", metavar="FILE", help="write records as JSONL here (- is standard output)")
    parser.add_argument(
        "--resume", action="store_true", help="keep the records that --output has without error"
    )
    parser.add_argument(
        "--batch", type=int, default=8, metavar="N", help="texts that share a forward (default: 8)"
    )
    parser.add_argument("--limit", type=int, metavar="N", help="stop after N prompts")
    common.add_constraint_options(parser, WRITTEN)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    from structgen.generation.many import made

    if options.stream and (options.prompt is None or options.n > 1 or options.output is not None):
        raise common.Failure("--stream shows one text: it takes --prompt, and neither -n nor --output")
    if options.resume and options.output in (None, "-"):
        raise common.Failure("--resume needs --output FILE")
    if options.batch < 1:
        raise common.Failure(f"--batch must be at least 1, not {options.batch}")
    options.speculate = speculation(options.speculate)
    wanted = lines_of(options)
    kept = _kept(options, wanted) if options.resume else []
    with ExitStack() as stack:
        out: TextIO = sys.stdout
        if options.output not in (None, "-"):
            with common.failing(f"write {options.output}"):
                out = stack.enter_context(open(options.output, "w", encoding="utf-8"))
        for line in kept:
            print(line, file=out, flush=True)
        common.note(f"loading {options.model or 'the embedded model'}")
        lm = common.load_model(options.model)
        if options.stream:
            return show(lm, wanted[0], options)
        start = time.perf_counter()
        status, texts, tokens, forwards = common.OK, 0, 0, 0
        for request, outcome in made(lm, iter(wanted), options.batch):
            line = request.tag
            if options.prompts is not None and request.prompt is not None:
                common.note(f"> {request.prompt}")
            results = outcome if isinstance(outcome, list) else [outcome]
            if isinstance(outcome, Exception):
                status = max(status, _failed(outcome, line))
            else:
                status = max(status, judge(results, line, request.given["max_tokens"]))
                texts += len(results)
                used = results[0].speculation
                if used is not None:
                    tokens, forwards = tokens + used.tokens, forwards + used.row_forwards
            if options.output is not None:
                for record in _records(request, line, outcome):
                    common.print_record(record, out)
            elif not isinstance(outcome, Exception):
                for result in results:
                    print(result.text, flush=True)
                    tell_leaves(result)
    if texts:
        drafted = f", {tokens / forwards:.2f} tokens a forward" if forwards else ""
        common.note(f"{common.plural(texts, 'text')} in {time.perf_counter() - start:.1f} s{drafted}")
    return status


def speculation(what: str) -> Any:
    """Returns the value of --speculate as an argument of `generate`. Failure: a drafter does not exist."""
    if what in ("auto", "off"):
        return None if what == "off" else what
    from structgen.speculation.options import named

    try:
        return named(what, files=True)
    except OSError as error:
        raise common.Failure(f"--speculate: cannot read {error.filename}: {error.strerror}") from None
    except ValueError as error:
        raise common.Failure(f"--speculate: {error}") from None


def show(lm: LanguageModel, request: Request, options: argparse.Namespace) -> int:
    """Writes the text while it is generated, then reports its end like `judge`. Returns the exit status."""
    from structgen.generation import stream

    found = stream(lm, request.prompt, **request.given)
    for event in found:
        print(event.text, end="", flush=True)
    print(flush=True)
    return judge([found.result], request.tag, options.max_tokens)


def judge(results: list[Result[Any]], line: Line, max_tokens: int) -> int:
    """Reports texts that the limit cut off or changed, and returns the exit status."""
    cut = sum(1 for result in results if result.finish_reason != "stop")
    if cut:
        common.note(f"structgen: {line.place}{common.plural(cut, 'text')} cut off after {max_tokens} tokens")
    bound = sum(1 for result in results if result.budget_bound and result.finish_reason == "stop")
    if bound:
        common.note(
            f"structgen: {line.place}{common.plural(bound, 'text')} had to end within {max_tokens} tokens "
            "and may be shorter for it"
        )
    for warning in dict.fromkeys(w for result in results for w in result.warnings):
        common.warn_once(warning, line.place)
    return common.REJECTED if cut else common.OK


def tell_leaves(result: Result[Any]) -> None:
    """Prints the probability of each leaf's value, one line a leaf, with the most probable alternative."""
    for leaf in result.field_probabilities:
        other = leaf.alternatives[:1]
        beside = "".join(f"; {text:.40} {low:.4f}" for text, low, _ in other)
        common.note(
            f"  {leaf.low:.4f} to {leaf.high:.4f}  {leaf.pointer or '(text)'} {leaf.text:.60}{beside}"
        )


def _failed(error: Exception, line: Line) -> int:
    """Reports a prompt without a text, and returns the exit status."""
    from .main import explain

    if os.environ.get("STRUCTGEN_TRACEBACK"):
        raise error
    text, status = explain(error)
    common.note(f"structgen: {line.place}{text}")
    return status


def _records(request: Request, line: Line, outcome: Any) -> list[dict[str, Any]]:
    """Returns the records of --output: one a text, or one with the error."""
    from .main import explain

    about = {**line.ids, "line": line.number, "prompt": request.prompt}
    if isinstance(outcome, Exception):
        return [{**about, "text": None, "value": None, "error": explain(outcome)[0]}]
    several = isinstance(outcome, list)
    return [
        {
            **about,
            **({"index": i} if several else {}),
            "text": result.text,
            "value": result.value,
            "finish_reason": result.finish_reason,
            "budget_bound": result.budget_bound,
            "tokens": result.tokens,
            "logprobs": [round(x, 6) for x in result.logprobs],
            "seed": result.sampling.seed,
            **{name: told for name in _AS_TOLD if (told := getattr(result, name)) not in (None, [])},
            "error": None,
        }
        for i, result in enumerate(outcome if several else [outcome])
    ]


def _kept(options: argparse.Namespace, wanted: list[Request]) -> list[str]:
    """Returns the lines of --output that need not be made again; their requests leave `wanted`.

    A record counts if it has no error and belongs to a wanted line: by its id, else by number and prompt. If
    several lines have one id, each record counts for one of them. An incomplete line is no record.
    """
    file = Path(options.output)
    groups: dict[str, list[str]] = {}
    for text in file.read_text(encoding="utf-8").split("\n") if file.exists() else ():
        try:
            record = json.loads(text)
            line = Line(record["line"], "", {"id": record["id"]} if "id" in record else {})
            if record["error"] is None:
                groups.setdefault(line.key(record["prompt"]), []).append(text)
        except (ValueError, KeyError, TypeError):
            continue
    total, kept = len(wanted), []
    done: Counter[str] = Counter()
    left = []
    for request in wanted:
        key, n = request.tag.key(request.prompt), options.n
        found = groups.get(key, [])[done[key] : done[key] + n]
        if len(found) == n and request.error is None:
            done[key] += n
            kept += found
        else:
            left.append(request)
    wanted[:] = left
    common.note(f"{total - len(left)} of {total} records are already in the output")
    return kept
