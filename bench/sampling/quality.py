"""Measures whether constraints help or hurt answers: the third axis of JSONSchemaBench, with tasks of our own
and a tiny model.

    python -m bench.sampling.quality [--n 60]

Enters: questions made here from a seed: people and orders (what the embedded model was trained for), and the
    three reasoning
tasks of the benchmark: arithmetic word problems, last letters, shuffled objects. Each has a schema and one
right answer. Leaves: for each task the share of answers that are valid and correct (one number), drawn
freely, with local masks, and aligned (CARS, one text; where no trial is accepted, the answer counts as
wrong), all at temperature 1 from the same prompt; seconds beside free ones; and the paired differences with
95% intervals (bootstrap over questions, 4,000 times). Cost: a few minutes.

The model has two million parameters and was trained to turn requests into JSON. It cannot reason, so the
results do not predict a large model. On reasoning tasks the figures mainly show whether an answer is valid.
"""

from __future__ import annotations

import argparse
import json
import random
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import structgen as sg
from structgen.lm import embedded as files

NAMES = ("Ana", "Bo", "Carla", "Deniz", "Emil", "Fatma", "Goran", "Hana")
THINGS = ("lamp", "chair", "shirt", "hat", "coat", "table", "mug", "pen")
COLOURS = ("red", "blue", "green", "black", "white")
SIZES = ("small", "medium", "large")
LAST = ("Byron", "Moreau", "Novak", "Silva", "Weber", "Larsen")
CITIES = ("Oslo", "Lyon", "Porto", "Vienna", "Turin", "Gdansk")
Question = tuple[str, dict[str, Any], Any]


def thing(of: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": of, "required": list(of), "additionalProperties": False}


def people(rng: random.Random) -> Question:
    name, age, city = f"{rng.choice(NAMES)} {rng.choice(LAST)}", rng.randint(20, 79), rng.choice(CITIES)
    schema = thing({"name": {"type": "string"}, "age": {"type": "integer"}, "city": {"type": "string"}})
    return f"{name}, {age}, lives in {city}", schema, {"name": name, "age": age, "city": city}


def order(rng: random.Random) -> Question:
    n, what, size = rng.randint(2, 9), rng.choice(THINGS), rng.choice(SIZES)
    product = {"enum": [f"{t}s" for t in THINGS]}
    schema = thing({"product": product, "quantity": {"type": "integer"}, "size": {"enum": list(SIZES)}})
    return f"I would like {n} {size} {what}s", schema, {"product": f"{what}s", "quantity": n, "size": size}


def arithmetic(rng: random.Random) -> Question:
    who, what, a, b = rng.choice(NAMES), rng.choice(THINGS), rng.randint(2, 9), rng.randint(2, 9)
    text = f"{who} has {a} {what}s and buys {b} more. How many {what}s has {who}?"
    return text, thing({"answer": {"type": "integer"}}), {"answer": a + b}


def letters(rng: random.Random) -> Question:
    words = rng.sample(NAMES, 2)
    text = f"Take the last letters of {words[0]} and {words[1]} and join them."
    return text, thing({"answer": {"type": "string"}}), {"answer": words[0][-1] + words[1][-1]}


def objects(rng: random.Random) -> Question:
    (a, b), (x, y) = rng.sample(NAMES, 2), rng.sample(COLOURS, 2)
    text = f"{a} has a {x} ball and {b} has a {y} ball. They swap. Which ball has {a} now?"
    return text, thing({"answer": {"enum": list(COLOURS)}}), {"answer": y}


TASKS: dict[str, Callable[[random.Random], Question]] = {
    "people": people,
    "orders": order,
    "arithmetic": arithmetic,
    "last letters": letters,
    "shuffled objects": objects,
}
MODES = ("free", "masked", "aligned")


def answer(mode: str, prompt: str, schema: dict[str, Any], seed: int) -> tuple[str | None, float]:
    begin = time.perf_counter()
    how: dict[str, Any] = {"max_tokens": 48, "format": "plain", "seed": seed}
    text: str | None
    if mode == "aligned":
        found = sg.sample("embedded", prompt, schema, method="cars", n=1, max_trials=200, **how)
        text = found[0].text if len(found) else None
    else:
        constraint = schema if mode == "masked" else None
        text = sg.generate("embedded", prompt, constraint, temperature=1.0, **how).text
    return text, time.perf_counter() - begin


def judged(text: str | None, schema: dict[str, Any], right: Any) -> tuple[bool, bool]:
    """Returns whether a text is valid under the schema, and whether it is valid and correct."""
    import jsonschema  # type: ignore[import-untyped, unused-ignore]

    try:
        value = json.loads(text or "")
        jsonschema.validate(value, schema)
    except (ValueError, jsonschema.ValidationError):
        return False, False
    return True, value == right


def difference(a: np.ndarray, b: np.ndarray) -> str:
    rng = np.random.default_rng(0)
    change = b - a
    means = change[rng.integers(len(change), size=(4000, len(change)))].mean(axis=1)
    low, high = np.quantile(means, [0.025, 0.975])
    return f"{change.mean():+.3f} [{low:+.3f}, {high:+.3f}]"


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="bench.sampling.quality", description=__doc__.split("\n")[0])
    parser.add_argument("--n", type=int, default=60, help="questions a task (default: 60)")
    options = parser.parse_args(arguments)
    print(f"{options.n} questions a task; share valid and correct (share valid), seconds beside free texts")
    head = f"{'task':17} {'free':>16} {'masked':>16} {'aligned':>16}"
    print(f"{head}   masked - free              aligned - masked")
    for name, make in TASKS.items():
        rng = random.Random(name)
        right = {mode: np.zeros(options.n) for mode in MODES}
        valid, seconds = dict.fromkeys(MODES, 0), dict.fromkeys(MODES, 0.0)
        for i in range(options.n):
            text, schema, wanted = make(rng)
            prompt = files.format_prompt(text, schema)
            # the prompt is read once for all modes
            sg.generate("embedded", prompt, format="plain", max_tokens=1)
            # The model caches prefixes, so the first mode pays for the others. Each mode is first in turn.
            for mode in MODES[i % 3 :] + MODES[: i % 3]:
                said, spent = answer(mode, prompt, schema, i)
                fine, correct = judged(said, schema, wanted)
                valid[mode] += fine
                right[mode][i] = correct
                seconds[mode] += spent
        cells = [
            f"{right[m].mean():5.2f} ({valid[m] / options.n:4.2f}) x{seconds[m] / seconds['free']:3.1f}"
            for m in MODES
        ]
        changes = difference(right["free"], right["masked"]), difference(right["masked"], right["aligned"])
        print(f"{name:17} {' '.join(f'{c:>16}' for c in cells)}   {changes[0]}   {changes[1]}", flush=True)


if __name__ == "__main__":
    main()
