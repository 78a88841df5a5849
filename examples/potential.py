"""A custom potential: a condition that no grammar states, as part of the law that texts are drawn from.

python examples/potential.py
"""

from __future__ import annotations

import json

import structgen as sg

SCHEMA = {
    "type": "object",
    "properties": {
        "product": {"enum": ["shirt", "hat", "coat"]},
        "quantity": {"type": "integer", "minimum": 1, "maximum": 9},
    },
    "required": ["product", "quantity"],
    "additionalProperties": False,
}
PRICE = {"shirt": 20, "hat": 10, "coat": 90}


def affordable(text: str) -> bool:
    """At most 100 in all: a rule over two fields."""
    order = json.loads(text)
    return PRICE[order["product"]] * order["quantity"] <= 100


def main() -> None:
    prompt = "I would like some shirts"
    for name, potential in (("all orders", None), ("affordable ones", affordable)):
        found = sg.sample(None, prompt, SCHEMA, potential=potential, method="cars", n=50, seed=1)
        best = list(found.posterior().items())[:3]
        print(f"{name} ({found.law}):", ", ".join(f"{text} {p:.2f}" for text, p in best))
        assert potential is None or all(affordable(sample.text) for sample in found)


if __name__ == "__main__":
    main()
