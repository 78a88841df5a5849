"""One schema, one engine, a model: what JSONSchemaBench reports.

Enters: a case as JSON. Leaves: one row: `declared` (the engine took the schema), `valid` (the text is JSON
that `jsonschema` accepts, formats included), seconds of compile, to the first token and per further token.
Tokens are the model's most probable among those allowed. Cost: a forward a token.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from . import engines, tokens
from .corpus import Case
from .engines.base import Engine, Refused

__all__ = ["SETUP", "WORK", "generate", "judge", "setup", "work"]

SETUP, WORK = "structgen.bench.endtoend:setup", "structgen.bench.endtoend:work"
_PROMPT = "Write a JSON value that the schema describes."


def setup(config: dict[str, Any]) -> dict[str, Any]:
    """A model and one engine over its vocabulary."""
    from ..generation import language_model

    lm = language_model(config["model"])
    vocabulary = tokens.of_vocabulary(lm.vocabulary, config["model"])
    engine = engines.load(config["engine"], vocabulary)
    lm.logprobs([lm.start("warm")])
    return {"lm": lm, "engine": engine, "max_tokens": config["max_tokens"]}


def prompt(lm: Any, schema: str) -> str | list[int]:
    """What the model is asked. The embedded model has a format of its own; others read the schema's text."""
    from ..generation import formatted

    own = formatted(lm, _PROMPT, json.loads(schema), "auto")
    if own != _PROMPT:
        return own
    text = f"{_PROMPT}\n\nSchema:\n{schema}\n\nValue:\n"
    chat = getattr(getattr(lm, "tokenizer", None), "chat_template", None) is not None
    return formatted(lm, text, None, "chat" if chat else "plain")


def generate(lm: Any, engine: Engine, ends: set[int], schema: str, max_tokens: int) -> dict[str, Any]:
    """A text and its times in microseconds; Refused where the engine does not take the schema."""
    clock = time.perf_counter_ns
    context = lm.start(prompt(lm, schema))
    start = clock()
    grammar = engine.compile(schema)
    compiled = clock()
    sequence = grammar.sequence()
    taken: list[int] = []
    finish = "length"
    first = compiled
    while len(taken) < max_tokens:
        scores = lm.logprobs([context])[0]
        sequence.fill()
        allowed = np.unpackbits(sequence.row.view(np.uint8), bitorder="little")[: scores.size].view(bool)
        if not allowed.any():
            finish = "dead end"
            break
        token = int(np.where(allowed, scores, -np.inf).argmax())
        taken.append(token)
        if len(taken) == 1:
            first = clock()
        if token in ends:
            finish = "stop"
            break
        if not sequence.accept(token):
            finish = "the mask allows a token accept refuses"
            break
        context = context.extend(token)
    end = clock()
    row: dict[str, Any] = {
        "gct_us": (compiled - start) / 1e3,
        "ttft_us": (first - start) / 1e3,
        "num_tokens": len(taken),
        "finish": finish,
        "text": lm.vocabulary.decode(taken).decode("utf-8", "replace"),
    }
    if len(taken) > 1:
        row["tpot_us"] = (end - first) / 1e3 / (len(taken) - 1)
    if grammar.unenforced:
        row["unenforced"] = list(grammar.unenforced)[:20]
    return row


def judge(schema: str, text: str) -> str:
    """Why the text is no instance of the schema, "" where it is one."""
    import jsonschema

    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        return f"not JSON: {error}"
    document = json.loads(schema)
    validator = jsonschema.validators.validator_for(document, default=jsonschema.Draft202012Validator)
    try:
        problem = jsonschema.exceptions.best_match(
            validator(document, format_checker=validator.FORMAT_CHECKER).iter_errors(value)
        )
    except Exception as error:  # a broken schema, an unreachable reference, a pattern that `re` refuses
        return f"cannot be judged: {type(error).__name__}: {error}"[:300]
    return "" if problem is None else f"{problem.validator}: {problem.message}"[:300]


def work(state: dict[str, Any], job: dict[str, Any], emit: Callable[[dict[str, Any]], None]) -> None:
    """One case."""
    case = Case.from_json(job)
    engine = state["engine"]
    row: dict[str, Any] = {"id": case.name, "split": case.split, "engine": engine.name}
    ends = set(state["lm"].eos_token_ids)
    try:
        made = generate(state["lm"], engine, ends, case.schema, state["max_tokens"])
    except Refused as error:
        emit(row | {"declared": False, "valid": False, "compile_error": str(error)[:500]})
        return
    except Exception as error:  # an engine that breaks, a prompt too long for the model
        text = f"{type(error).__name__}: {error}"[:500]
        emit(row | {"declared": False, "valid": False, "generation_error": text})
        return
    finish = made["finish"]
    problem = judge(case.schema, made["text"]) if finish == "stop" else f"unfinished: {finish}"
    emit(row | made | {"declared": True, "valid": not problem, "problem": problem})
