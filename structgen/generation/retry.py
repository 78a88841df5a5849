"""Plans the next attempt after a validator refused a value that the grammar allows.

Enters: a plan and the error. Leaves: a plan that forbids the refused value, or one whose prompt tells the
model what was wrong. Cost: a compile.

A JSON Schema says "not this value there" exactly: `{"not": {"properties": {"age": {"const": 7}}}}`. So the
value is forbidden at the place that pydantic's error names, and the next text differs there.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from ..grammar import CompiledGrammar
from ..lm.load import compiler_of
from .plan import Plan, planned, promised
from .results import InvalidValue
from .run import Clock


def again(plan: Plan, failed: InvalidValue, clock: Clock) -> Plan:
    """Returns the plan of the next attempt for the prompt."""
    attempt = plan.attempt + 1
    if plan.settings.on_invalid == "forbid" and (answer := _without(plan, failed)) is not None:
        grammar, thinks = answer, None if plan.grammar is None else plan.grammar.reasoning
        if thinks is not None:
            grammar = (plan.settings.compiler or compiler_of(plan.lm)).with_reasoning(answer, thinks)
        budget = promised(plan.lm, plan.settings, grammar, plan.room)
        clock.lap("compile")
        return replace(plan, grammar=grammar, budget=budget, attempt=attempt, answer=answer)
    prompt = _told(plan.prompt, failed)
    return planned(
        plan.lm, prompt, plan.constraint, plan.settings, clock, sampling=plan.sampling, attempt=attempt
    )


def _without(plan: Plan, failed: InvalidValue) -> CompiledGrammar | None:
    """Returns the grammar without the refused values; None if the grammar has no JSON Schema."""
    grammar = plan.answer
    if grammar is None or grammar._options is None:
        return None
    text, asked = grammar._options
    document = json.loads(text)
    value = json.loads(failed.text)
    refused = [_not_at(place, found) for place, found in _places(failed.error, value)]
    if document is True:
        document = {}
    document = {**document, "allOf": [*document.get("allOf", ()), *({"not": r} for r in refused)]}
    compiler = plan.settings.compiler or compiler_of(plan.lm)
    compiled = compiler.json_schema(document, **asked.arguments())
    return compiled


def _places(error: Exception, value: Any) -> list[tuple[list[str | int], Any]]:
    """Returns the places of the refused values. An error without a place refuses the whole value.

    If pydantic names several places, all are forbidden, because each value was refused by itself.
    """
    errors = getattr(error, "errors", None)
    listed = errors() if callable(errors) else []
    found: list[tuple[list[str | int], Any]] = []
    for one in listed:
        place: list[str | int] = []
        at = value
        for step in one.get("loc", ()):
            known = isinstance(at, dict) and isinstance(step, str) and step in at
            known |= isinstance(at, list) and isinstance(step, int) and 0 <= step < len(at)
            if known:  # Otherwise the step names a branch of a union or a function.
                at = at[step]
                place.append(step)
        if (place, at) not in found:
            found.append((place, at))
    return found or [([], value)]


def _not_at(place: Sequence[str | int], value: Any) -> dict[str, Any]:
    """Returns the schema of all values that have this value at this place. The caller negates it."""
    schema: dict[str, Any] = {"const": value}
    for step in reversed(place):
        if isinstance(step, str):
            schema = {"type": "object", "properties": {step: schema}, "required": [step]}
        else:
            schema = {"type": "array", "prefixItems": [True] * step + [schema], "minItems": step + 1}
    return schema


def _told(prompt: Any, failed: InvalidValue) -> Any:
    """Returns the prompt, followed by the refused text and the reason."""
    error = " ".join(
        line.strip() for line in str(failed.error).splitlines() if "errors.pydantic.dev" not in line
    )
    if isinstance(prompt, str):
        return f"{prompt}\nNot {failed.text}: {error}"
    if isinstance(prompt, Sequence) and prompt and isinstance(prompt[0], dict):
        return [
            *prompt,
            {"role": "assistant", "content": failed.text},
            {"role": "user", "content": f"That is not valid: {error}. Answer again."},
        ]
    return prompt  # token ids cannot be extended with text, so only the draws change
