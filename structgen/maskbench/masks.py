"""Measures one schema with one engine: time to first mask, time between masks, verdicts. The fields are
MaskBench's.

Enters: a case as JSON. Leaves: one row:
    ttfm_us        microseconds of compile + new sequence + first mask
    all_mask_us    mask + accept of every token of every instance, the end-of-sequence token included; an
                   invalid instance counts up to its refusal, which costs a mask and no accept
    steps          how many of those belong to each instance, so that reports can compare like with like
    num_valid_tests, num_invalid_tests   instances judged rightly; num_tests counts all
    compile_error, validation_error      as MaskBench words them; of several wrong verdicts, all
Garbage collection is off while the clock runs, and the objects of the engine's set-up are frozen out of it.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from typing import Any

from . import engines, tokens
from .corpus import Case, dumps
from .engines.base import Engine, Grammar, Refused

SETUP, WORK = "structgen.maskbench.masks:setup", "structgen.maskbench.masks:work"

_WARM_UP: tuple[tuple[object, object], ...] = (
    (
        {"type": "object", "properties": {"name": {"type": "string"}, "n": {"type": "integer"}}},
        {"name": "warm", "n": 12},
    ),
    ({"type": "array", "items": {"enum": ["a", "b", None]}, "maxItems": 4}, ["a", None]),
    ({"type": "object", "additionalProperties": {"type": "number"}}, {"x": 1.5, "y": 2}),
)


def first_mask(engine: Engine, schema: str) -> tuple[Grammar, float]:
    clock = time.perf_counter_ns
    start = clock()
    grammar = engine.compile(schema)
    try:
        grammar.sequence().fill()
    except Exception as error:  # the engine may find only now that the schema is too complex
        raise Refused(f"at the first mask: {type(error).__name__}: {error}") from error
    return grammar, (clock() - start) / 1e3


def replay(grammar: Grammar, ids: list[int]) -> tuple[list[float], int | None, str]:
    """Microseconds of each step, the index of the refused token or None, and the engine's failure."""
    clock = time.perf_counter_ns
    sequence = grammar.sequence()
    fill, accept, allows = sequence.fill, sequence.accept, sequence.allows
    steps: list[float] = []
    for index, token in enumerate(ids):
        start = clock()
        fill()
        middle = clock()
        if not allows(token):
            steps.append((middle - start) / 1e3)
            return steps, index, sequence.failure()
        again = clock()
        taken = accept(token)
        end = clock()
        steps.append((middle - start + end - again) / 1e3)
        if not taken:
            return steps, index, sequence.failure() or "the mask allows a token accept refuses"
    return steps, None, ""


def measure(engine: Engine, case: Case, ids: list[list[int]]) -> dict[str, Any]:
    """Returns one row. `ids` are the tokens of the instances."""
    row: dict[str, Any] = {
        "id": case.name,
        "split": case.split,
        "engine": engine.name,
        "num_tests": len(ids),
        "num_valid_tests": 0,
        "num_invalid_tests": 0,
    }
    try:
        grammar, ttfm = first_mask(engine, case.schema)
    except Refused as error:
        return row | {"compile_error": str(error)[:500]}
    row["ttfm_us"] = row["max_ttfm_us"] = round(ttfm, 2)
    if grammar.unenforced:
        row["unenforced"] = list(grammar.unenforced)[:20]
    times: list[float] = []
    row["steps"] = []
    problems = []
    for index, (instance, sequence) in enumerate(zip(case.instances, ids, strict=True)):
        try:
            steps, refused, failure = replay(grammar, sequence)
        except Exception as error:  # an engine that fails inside a sequence costs one test
            steps, refused, failure = [], None, f"{type(error).__name__}: {error}"
        times += steps
        row["steps"].append(len(steps))
        if failure:
            problems.append(f"test #{index}: EXN {failure[:200]}")
        elif instance.valid and refused is not None:
            problems.append(f"test #{index}: should accept but didn't (token {refused} of {len(sequence)})")
        elif not instance.valid and refused is None:
            problems.append(f"test #{index}: should reject but didn't")
        else:
            row["num_valid_tests" if instance.valid else "num_invalid_tests"] += 1
    row["num_tokens"] = len(times)
    row["masks_us"] = round(sum(times), 2)
    row["max_mask_us"] = round(max(times, default=0.0), 2)
    row["all_mask_us"] = [round(t, 2) for t in times]
    if problems:
        row["validation_error"] = "; ".join(problems)
    return row


def setup(config: dict[str, Any]) -> dict[str, Any]:
    """Returns one engine over the run's tokens, warmed up. `Missing` and other errors of its loading end the
    run."""
    vocabulary = tokens.load(config["tokenizer"])
    engine = engines.load(config["engine"], vocabulary)
    for schema, value in _WARM_UP:
        try:
            replay(first_mask(engine, dumps(schema))[0], [*vocabulary.encode(dumps(value)), vocabulary.eos])
        except Refused:
            continue
    gc.collect()
    gc.freeze()
    return {"tokens": vocabulary, "engine": engine}


def work(state: dict[str, Any], job: dict[str, Any], emit: Callable[[dict[str, Any]], None]) -> None:
    """Runs one case."""
    case = Case.from_json(job)
    vocabulary = state["tokens"]
    ids = [[*vocabulary.encode(instance.text), vocabulary.eos] for instance in case.instances]
    gc.collect()
    gc.disable()
    try:
        row = measure(state["engine"], case, ids)
    finally:
        gc.enable()
    emit(row)
