"""Your own generation loop: a mask before each token, and nothing else of structgen.

python examples/own_loop.py
"""

from __future__ import annotations

import numpy as np

import structgen as sg
from structgen.lm.load import language_model


def main() -> None:
    lm = language_model(None)  # any model that gives logits for a prefix
    grammar = sg.Compiler(lm.vocabulary).regex(r"(yes|no), because [a-z ]{3,20}\.")
    matcher = grammar.matcher()
    mask = sg.allocate_bitmask(1, lm.vocabulary.vocab_size)
    context, tokens = lm.start("Is it raining?"), []
    while not matcher.is_terminated() and len(tokens) < 40:
        logits = lm.logprobs([context])
        matcher.fill_bitmask(mask, max_tokens=40 - len(tokens))  # only what can still end in time
        token = int(np.argmax(sg.apply_bitmask(logits, mask)))
        matcher.accept_token(token)
        context = context.extend(token)
        tokens.append(token)
    print(lm.vocabulary.decode(tokens).decode())


if __name__ == "__main__":
    main()
