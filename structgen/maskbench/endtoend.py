"""Measures one schema with one engine and a model, as JSONSchemaBench does.

Enters: a case as JSON. Leaves: one row:
    declared      the engine took the schema and did not break on it, as the paper (arXiv 2501.10868) means it
    valid         the text ended and is JSON that `jsonschema` accepts, formats included
    finish        how the text ended: one of `FINISHES`; `problem` gives the reason if the text is not valid
    limit_told    whether the engine knew at each mask how many tokens are left
    gct_us, ttft_us, tpot_us   times of the compile, to the first token, per further token
Each token is the most probable allowed token. Cost: a forward pass for each token.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from .._extras import missing
from ..logits import allowed_bits
from . import engines, tokens
from .corpus import Case
from .engines.base import Engine, LimitTooSmall, Refused

SETUP, WORK = "structgen.maskbench.endtoend:setup", "structgen.maskbench.endtoend:work"
STOP, LENGTH, TOO_SMALL = "stop", "length", "no text is short enough"
NO_ROOM, DEAD_END, TORN = "the prompt fills the model", "dead end", "the mask allows a token accept refuses"
FINISHES = (STOP, LENGTH, TOO_SMALL, NO_ROOM, DEAD_END, TORN)
_PROMPT = "Write a JSON value that the schema describes."


def setup(config: dict[str, Any]) -> dict[str, Any]:
    """Returns a model and one engine over its vocabulary."""
    from ..lm.load import language_model

    lm = language_model(config["model"])
    vocabulary = tokens.of_vocabulary(lm.vocabulary, config["model"])
    engine = engines.load(config["engine"], vocabulary)
    lm.logprobs([lm.start("warm")])
    return {"lm": lm, "engine": engine, "max_tokens": config["max_tokens"], "tell": config["tell_limit"]}


def prompt(lm: Any, schema: str) -> str | list[int]:
    """Returns the prompt for the model. The embedded model has a prompt format of its own; other models read
    the schema's text."""
    from ..lm.prompts import formatted

    own = formatted(lm, _PROMPT, json.loads(schema), "auto")
    if own != _PROMPT:
        return own
    text = f"{_PROMPT}\n\nSchema:\n{schema}\n\nValue:\n"
    chat = getattr(getattr(lm, "tokenizer", None), "chat_template", None) is not None
    return formatted(lm, text, None, "chat" if chat else "plain")


def generate(
    lm: Any, engine: Engine, ends: set[int], schema: str, max_tokens: int, tell: bool = True
) -> dict[str, Any]:
    """Generates a text and measures its times in microseconds. Refused: the engine does not take the schema.

    With `tell`, an engine that can use it learns at each mask how many tokens are left.
    """
    from ..lm.base import ContextTooLong

    clock = time.perf_counter_ns
    start = clock()
    grammar = engine.compile(schema)
    compiled = clock()
    row: dict[str, Any] = {
        "gct_us": (compiled - start) / 1e3,
        "limit_told": False,
        "num_tokens": 0,
        "text": "",
    }
    if grammar.unenforced:
        row["unenforced"] = list(grammar.unenforced)[:20]
    try:
        context = lm.start(prompt(lm, schema))
    except ContextTooLong as error:  # the error is the model's, because the engine took the schema
        return row | {"finish": NO_ROOM, "detail": str(error)}
    room = max_tokens if lm.max_context is None else min(max_tokens, lm.max_context - len(context))
    begin = first = clock()
    sequence = grammar.sequence()
    within = sequence.fill_within if tell else None
    row["limit_told"] = within is not None
    taken: list[int] = []
    finish = LENGTH if room > 0 else NO_ROOM
    while len(taken) < room:
        try:
            if within is None:
                sequence.fill()
            else:
                within(room - len(taken))
        except LimitTooSmall as error:
            finish = TOO_SMALL
            row["detail"] = str(error)
            break
        scores = lm.logprobs([context])[0]
        allowed = allowed_bits(sequence.row, scores.size)
        if not allowed.any():
            finish = DEAD_END
            break
        token = int(np.where(allowed, scores, -np.inf).argmax())
        taken.append(token)
        if len(taken) == 1:
            first = clock()
        if token in ends:
            finish = STOP
            break
        if not sequence.accept(token):
            finish = TORN
            break
        context = context.extend(token)
    end = clock()
    broken = sequence.failure()
    if broken:  # an engine that failed may have allowed the end before
        raise RuntimeError(broken.strip().split("\n")[0])
    row["finish"] = finish
    row["num_tokens"] = len(taken)
    row["text"] = lm.vocabulary.decode(taken).decode("utf-8", "replace")
    if taken:
        row["ttft_us"] = row["gct_us"] + (first - begin) / 1e3
    if len(taken) > 1:
        row["tpot_us"] = (end - first) / 1e3 / (len(taken) - 1)
    return row


def judge(schema: str, text: str) -> str:
    """Returns the reason why a text is no instance of the schema; "" if it is one."""
    try:
        import jsonschema
    except ImportError as error:
        raise missing(error, "verdicts on generated texts") from None
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
    # the schema may be broken, a reference unreachable, or a pattern invalid for `re`
    except Exception as error:
        return f"cannot be judged: {type(error).__name__}: {error}"[:300]
    return "" if problem is None else f"{problem.validator}: {problem.message}"[:300]


def work(state: dict[str, Any], job: dict[str, Any], emit: Callable[[dict[str, Any]], None]) -> None:
    """Runs one case."""
    case = Case.from_json(job)
    engine = state["engine"]
    row: dict[str, Any] = {"id": case.name, "split": case.split, "engine": engine.name}
    ends = set(state["lm"].eos_token_ids)
    try:
        made = generate(state["lm"], engine, ends, case.schema, state["max_tokens"], state["tell"])
    except Refused as error:
        emit(row | {"declared": False, "valid": False, "compile_error": str(error)[:500]})
        return
    except Exception as error:  # the engine failed with some exception
        text = f"{type(error).__name__}: {error}"[:500]
        emit(row | {"declared": False, "valid": False, "generation_error": text})
        return
    finish = made["finish"]
    problem = (
        judge(case.schema, made["text"])
        if finish == STOP
        else ": ".join(["unfinished", finish, *([made["detail"]] if "detail" in made else [])])
    )
    emit(row | made | {"declared": True, "valid": not problem, "problem": problem})
