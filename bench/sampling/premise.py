"""Tests the premise of adaptive weighted rejection sampling (AWRS), that masks are expensive, with masks that
take microseconds.

    python -m bench.sampling.premise [--n 32] [--limit 20]

Enters: patterns and JSON Schemas, and the embedded model. Leaves: for each domain, for local draws whose
weights are made in two ways (three if genlm-control is installed): microseconds of the constraint's CPU time
for each token, questions to the constraint for each token, the effective share of the draws, and CPU
milliseconds of the constraint for each effective draw. Cost: minutes.

- masks: a new mask for each token; the draw is among the allowed tokens, and the exact local normaliser is
  the weight.
- awrs: there is no mask. Tokens are drawn without replacement until the constraint accepts one. One more draw
  estimates the normaliser (Lipkin et al. 2025, the recursive form): if the constraint accepts this draw, too,
  w = 1 - M, else w is p of the first accepted token. M is the probability of the refused tokens. The draws
  take one sort of the row.

- genlm: the AWRS token sampler of genlm-control with its defaults, except for `autobatch`, which single walks
  do not need. It asks the same matcher, token by token.

All ways ask the same engine and compute each token's forward pass once, without a cache. So the forward
passes of a draw equal its tokens and are left out. AWRS is made for constraints whose masks cost more than
these. The comparison tests the premise for cheap masks, and does not judge AWRS for other constraints.
"""

from __future__ import annotations

import argparse
import asyncio
import importlib.util
import math
import time
from typing import Any

import numpy as np

import structgen as sg
from bench.sampling.references import mask_bits
from bench.sampling.run import Stopped, limited
from oracles import data
from structgen.errors import StructgenError
from structgen.lm import embedded as files
from structgen.lm.load import language_model
from structgen.sampling.logspace import effective_size

TOKENS = 48
PATTERNS = (
    r"[A-Z][a-z]+ [A-Z][a-z]+", r"\d{4}-\d{2}-\d{2}", r"[a-z]+@[a-z]+\.(com|org)", r"(\d{1,3}\.){3}\d{1,3}",
    r"#[0-9a-f]{6}", r"(yes|no|maybe)", r"[A-Z]{3}-\d{3}", r"(red|green|blue)( (red|green|blue)){0,3}",
    r"\(\d{3}\) \d{3}-\d{4}", r"[^aeiou\n]{5,20}", r"([a-z]+, ){2}[a-z]+", r"https://[a-z]+\.org/[a-z0-9/]*",
)  # fmt: skip


class Spent:
    def __init__(self) -> None:
        self.seconds = 0.0
        self.asked = self.tokens = 0
        self.weights: list[float] = []


def by_mask(matcher: Any, row: np.ndarray, ends: list[int], last: bool, rng: Any, spent: Spent) -> Any:
    if last:
        allowed = np.array(ends) if matcher.is_accepting() else np.empty(0, np.int64)
    else:
        allowed = np.flatnonzero(mask_bits(matcher, row.size))
    spent.asked += 1
    if not allowed.size:
        return None, -math.inf
    p = np.exp(row[allowed])
    sums = np.cumsum(p)
    return int(allowed[np.searchsorted(sums, rng.random() * sums[-1], side="right")]), math.log(sums[-1])


def by_rejection(matcher: Any, row: np.ndarray, ends: list[int], last: bool, rng: Any, spent: Spent) -> Any:
    order = np.argsort(-(row + rng.gumbel(size=row.size)))
    refused, first = 0.0, -1
    for token in order:
        spent.asked += 1
        accepted = int(token) in ends if last else True
        accepted = accepted and bool(matcher.validate_tokens([int(token)]))
        if accepted and first >= 0:
            return first, math.log(max(1e-300, 1 - refused))
        if accepted:
            first = int(token)
        elif first >= 0:
            return first, float(row[first])
        else:
            refused += math.exp(row[token])
    return (None, -math.inf) if first < 0 else (first, float(row[first]))


def draws(lm: Any, prompt: str, grammar: Any, how: Any, n: int) -> Spent:
    spent, ends = Spent(), [int(i) for i in lm.eos_token_ids]
    for i in range(n):
        rng = np.random.default_rng([i, 7])
        matcher, context, total = grammar.matcher(), lm.start(prompt), 0.0
        for at in range(TOKENS):
            row = lm.logprobs([context])[0].astype(np.float64)
            begin = time.thread_time()
            token, weight = how(matcher, row, ends, at == TOKENS - 1, rng, spent)
            spent.seconds += time.thread_time() - begin
            spent.tokens += 1
            total += weight
            if token is None or token in ends:
                break
            matcher.accept_token(token)
            context = context.extend(token)
        spent.weights.append(total)
    return spent


def their_draws(lm: Any, prompt: str, grammar: Any, n: int) -> Spent:
    """`draws` with genlm-control. Raises ImportError if it is not installed."""
    from genlm.control import AWRS, Potential

    spent, ends = Spent(), [int(i) for i in lm.eos_token_ids]
    words = [i for i in range(lm.vocabulary.vocab_size) if i not in ends]
    row = np.empty(0)
    matcher: Any = None

    class Model(Potential):  # type: ignore[misc]
        async def prefix(self, context: Any) -> float:
            return 0.0

        async def complete(self, context: Any) -> float:
            return 0.0

        async def logw_next(self, context: Any) -> Any:
            return self.make_lazy_weights(row)

    class Condition(Potential):  # type: ignore[misc]
        """The grammar as a potential: it knows the matcher of the current context, and of the context with
        one more token."""

        async def prefix(self, context: Any) -> float:
            spent.asked += 1
            if len(context) >= TOKENS:
                return -math.inf
            return 0.0 if not context or matcher.validate_tokens([context[-1]]) else -math.inf

        async def complete(self, context: Any) -> float:
            spent.asked += 1
            return 0.0 if matcher.is_accepting() else -math.inf

    async def draw_all() -> None:
        nonlocal row, matcher
        for i in range(n):
            sampler = AWRS(Model(words), Condition(words), seed=i, autobatch=False)
            context, total = lm.start(prompt), 0.0
            matcher, text = grammar.matcher(), []
            for _ in range(TOKENS):
                plain = lm.logprobs([context])[0].astype(np.float64)
                row = np.append(plain[words], np.logaddexp.reduce(plain[ends]))
                begin = time.thread_time()
                token, weight, _ = await sampler.sample(text)
                spent.seconds += time.thread_time() - begin
                spent.tokens += 1
                total += float(weight)
                if not isinstance(token, int) or total == -math.inf:
                    break
                matcher.accept_token(token)
                text.append(token)
                context = context.extend(token)
            spent.weights.append(total)

    asyncio.run(draw_all())
    return spent


def domain(name: str, cases: list[tuple[str, Any]], n: int, limit: float) -> None:
    lm = language_model("embedded")
    rows: dict[str, list[tuple[float, float, float, float]]] = {"masks": [], "awrs": []}
    theirs = importlib.util.find_spec("genlm") is not None
    if theirs:
        rows["genlm"] = []
    left_out = 0
    for prompt, grammar in cases:
        made = {}
        try:
            with limited(limit):
                for way, how in (("masks", by_mask), ("awrs", by_rejection)):
                    draws(lm, prompt, grammar, how, 2)  # a first run warms the engine's masks and states
                    made[way] = draws(lm, prompt, grammar, how, n)
                if theirs:
                    their_draws(lm, prompt, grammar, 2)
                    made["genlm"] = their_draws(lm, prompt, grammar, n)
        except (Stopped, StructgenError):
            left_out += 1
            continue
        for way, spent in made.items():
            size = effective_size(spent.weights)
            rows[way].append(
                (
                    1e6 * spent.seconds / spent.tokens,
                    spent.asked / spent.tokens,
                    size / n,
                    1e3 * spent.seconds / max(size, 1e-9) if size else math.inf,
                )
            )
    print(f"{name}: {len(rows['masks'])} constraints ({left_out} left out by time)")
    for way, found in rows.items():
        middle = np.median(np.array(found), axis=0)
        mean = np.array(found)[:, 1].mean()
        cells = f"{middle[0]:9.0f} {middle[1]:9.1f} {mean:9.1f} {middle[2]:11.2f} {middle[3]:14.2f}"
        print(f"  {way:6} {cells}", flush=True)


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="bench.sampling.premise", description=__doc__.split("\n")[0])
    parser.add_argument("--n", type=int, default=32)
    parser.add_argument("--schemas", type=int, default=24)
    parser.add_argument("--limit", type=float, default=20.0, help="seconds a constraint (default: 20)")
    options = parser.parse_args(arguments)
    lm = language_model("embedded")
    compiler = sg.Compiler(lm.vocabulary)
    head = "         us a token  asked: p50   mean  effective   ms an effective draw   (medians)"
    print(
        f"{options.n} draws, {TOKENS} tokens at most, {lm.vocabulary.vocab_size} tokens of vocabulary\n{head}"
    )
    patterns = [(files.format_prompt("Write an example."), compiler.regex(p)) for p in PATTERNS]
    domain("patterns", patterns, options.n, options.limit)
    if not data.maskbench_names():
        return
    found = []
    for case in data.shuffled_cases(3):
        try:
            grammar = compiler.json_schema(
                case.schema, whitespace="compact", numbers="canonical", strings="plain"
            )
        except StructgenError:
            continue
        if len(case.schema) < 2000:
            found.append((files.format_prompt("Write an example.", case.schema), grammar))
        if len(found) == options.schemas:
            break
    domain("JSON", found, options.n, options.limit)


if __name__ == "__main__":
    main()
