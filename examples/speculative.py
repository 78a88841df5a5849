"""Speculative decoding with a draft model: the same text, in fewer forwards of the large model.

python examples/speculative.py
"""

from __future__ import annotations

import json
from pathlib import Path

import structgen as sg
from structgen.lm import embedded
from structgen.lm.load import language_model
from structgen.speculation import DraftModel

SCHEMA = json.loads((Path(__file__).resolve().parent / "order.schema.json").read_text(encoding="utf-8"))
TEXT = "Maria Lopez ordered 3 oak chairs and 2 desk lamps, ship to Lisbon by 5 March 2027"


def main() -> None:
    draft = DraftModel(language_model(embedded.path("draft")))
    plain = sg.generate(None, TEXT, SCHEMA)
    for name, how in (("draft model", [draft]), ("all that is there", "auto")):
        fast = sg.generate(None, TEXT, SCHEMA, speculate=how)
        assert fast.text == plain.text and fast.speculation is not None
        print(f"{name}: {fast.speculation.tokens_per_forward:.1f} tokens a forward, the same text")
    print(plain.text)


if __name__ == "__main__":
    main()
