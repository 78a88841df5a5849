"""Requests written by hand: `requests.jsonl` with their answers, `strangers.jsonl` by somebody who had read
the model card alone, `foreign.jsonl` outside all domains; and prices that end in a zero, of one pattern.

Enters: nothing. Leaves: the lines, each with its schema.  Cost: a file read.

`fields` in a line is short for a schema: `str int num bool date email`, `a|b` for an enum, `?` for "may be
null", lists and objects as they are.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from training.tasks import example as _example
from training.tasks.records import nullable

REQUESTS = Path(__file__).with_name("requests.jsonl")
STRANGERS = Path(__file__).with_name("strangers.jsonl")
FOREIGN = Path(__file__).with_name("foreign.jsonl")
_PLAIN: dict[str, dict[str, Any]] = {
    "str": {"type": "string"},
    "int": {"type": "integer"},
    "num": {"type": "number"},
    "bool": {"type": "boolean"},
    "date": {"type": "string", "format": "date"},
    "email": {"type": "string", "format": "email"},
}


def expand(short: Any) -> dict[str, Any]:
    """The JSON schema that a line's `fields` stand for."""
    if isinstance(short, dict):
        return _example.object_schema({name: expand(one) for name, one in short.items()})
    if isinstance(short, list):
        return {"type": "array", "items": expand(short[0])}
    if short.endswith("?"):
        return nullable(expand(short[:-1]))
    return {"type": "string", "enum": short.split("|")} if "|" in short else _PLAIN[short]


def requests() -> list[dict[str, Any]]:
    lines = REQUESTS.read_text(encoding="utf-8").splitlines()
    return [{**one, "schema": expand(one["fields"])} for one in map(json.loads, lines)]


def strangers() -> list[dict[str, Any]]:
    """Their schemas are written out."""
    return [json.loads(line) for line in STRANGERS.read_text(encoding="utf-8").splitlines()]


def prices() -> list[dict[str, Any]]:
    """220 orders whose price ends in a zero, which texts write and whose value does not have."""
    names = ("Maria Lopez", "Ivan Petrov", "Sofia Rossi", "Daniel Okoye", "Hana Sato")
    goods = ("notebooks", "oak chairs", "desk lamps", "blue shirts", "ceramic mugs")
    schema = expand({"customer": "str", "product": "str", "quantity": "int", "price": "num"})
    made = []
    for n in range(220):
        whole, tens = divmod(n, 10)
        name, product, price = names[n % 5], goods[n // 5 % 5], f"{1 + 3 * whole}.{tens}0"
        made.append(
            {
                "task": "prices",
                "prompt": f"{name} bought {2 + n % 7} {product} at {price} each.",
                "schema": schema,
                "answer": {
                    "customer": name,
                    "product": product,
                    "quantity": 2 + n % 7,
                    "price": float(price),
                },
            }
        )
    return made


def foreign() -> list[dict[str, Any]]:
    lines = FOREIGN.read_text(encoding="utf-8").splitlines()
    return [{**one, "schema": expand(one["fields"])} for one in map(json.loads, lines)]
