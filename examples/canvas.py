"""A canvas fills up in an order that a diffusion model might choose; what does not fit is refused.

The proposals are those of a bad model: tokens of a right answer, and before each of them one that stands
elsewhere in it. Every line shows the slots; the text that comes out is an instance of the schema.

    python examples/canvas.py
"""

from __future__ import annotations

import json
import random

import structgen as sg

SCHEMA = {
    "type": "object",
    "properties": {"city": {"enum": ["Oslo", "Paris"]}, "people": {"type": "integer", "minimum": 1}},
    "required": ["city", "people"],
    "additionalProperties": False,
}
ANSWER = [b'{"', b"city", b'":', b'"', b"Os", b"lo", b'",', b'"', b"people", b'":', b"7", b"0", b"9", b"}"]


def main() -> None:
    tokens = sorted({bytes([b]) for b in range(256)} | set(ANSWER) | {b'"}', b"Paris", b"709}"})
    vocabulary = sg.Vocabulary.from_bytes([*tokens, b""], eos_token_ids=[len(tokens)])
    grammar = sg.Compiler(vocabulary).json_schema(SCHEMA, whitespace="compact")
    right = [tokens.index(t) for t in ANSWER] + [len(tokens)] * 2
    canvas = grammar.canvas(len(right))
    source = random.Random(4)
    for slot in source.sample(range(len(right)), len(right)):
        refused = ""
        for token in (source.choice(right), right[slot]):
            if canvas.select([(slot, token)])[0]:
                break
            refused += f"  not {shown(tokens, token)} in slot {slot}"
        print(" ".join("·" if t is None else shown(tokens, t) for t in canvas.tokens) + refused)
    text = canvas.text(canvas.complete())
    print(f"{text.decode()}  {json.loads(text)}")
    print(f"{canvas.asked} tokens were asked about, {canvas.unknown} were too much to tell")


def shown(tokens: list[bytes], token: int) -> str:
    return "<end>" if token == len(tokens) else tokens[token].decode("utf-8", "replace")


if __name__ == "__main__":
    main()
