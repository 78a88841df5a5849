"""The law of a drafted token by enumeration, and a test of drawn texts against the law.

Time: one run per path through the choices; milliseconds.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np

import structgen as sg
from oracles.speculative import RandomModel
from structgen.speculation import Speculation


def drawn_by_the_law(lm: Any, grammar: sg.CompiledGrammar, options: Speculation, count: int) -> list[Any]:
    """Texts drawn with drafts, after a chi-square test against the exact law of all texts."""
    want = exact_law(lm, grammar)
    results = [
        sg.generate(lm, "x", grammar=grammar, temperature=1.0, seed=i, speculate=options, complete=False)
        for i in range(count)
    ]
    found = Counter(tuple(r.tokens) for r in results)
    assert found.keys() <= want.keys()
    spread = sum((found[t] - count * w) ** 2 / (count * w) for t, w in want.items() if count * w >= 5)
    cells = sum(count * w >= 5 for w in want.values())
    assert cells > 8 and spread < cells + 5 * np.sqrt(2 * cells)
    assert sum(r.speculation.accepted for r in results) > 0
    return results


def exact_law(
    lm: RandomModel, grammar: sg.CompiledGrammar, start: Any = None
) -> dict[tuple[int, ...], float]:
    """Returns every text with its probability under the local law; the prompt is "x" by default."""
    found: dict[tuple[int, ...], float] = {}
    start = lm.start("x") if start is None else start
    waiting = [(start, grammar.matcher(), (), 1.0)]
    while waiting:
        context, matcher, tokens, weight = waiting.pop()
        if matcher.is_terminated():
            found[tokens] = weight
            continue
        allowed = [t for t in range(lm.vocabulary.vocab_size) if matcher.validate_tokens([t]) == 1]
        p = np.exp(lm.logprobs([context])[0, allowed].astype(np.float64))
        for token, share in zip(allowed, p / p.sum(), strict=True):
            after = matcher.fork()
            after.accept_token(token)
            waiting.append((context.extend(token), after, (*tokens, token), weight * share))
    assert abs(sum(found.values()) - 1) < 1e-9
    return found
