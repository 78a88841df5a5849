"""Measures the cost of a mask under a budget, beside its cost without a budget.

In: MaskBench schemas (`oracles.data`). Out: a table of CPU microseconds for each mask: without a budget, with
budgets of 10,000 and 300 tokens, and with the fewest sufficient tokens and 30 more; then the last 30 masks of
the walks under these budgets. Cost: a second or two for each schema at 131k tokens.

Every row has a compiler of its own and takes the schemas in the same order, so no row gains from another
row's work. Walks are random and equal in every run. The next token is drawn uniformly from the mask
(`token`), or its first byte is drawn first (`byte`), which leaves strings sooner and opens more. Rows with
one way of drawing walk the same texts as long as their masks are equal.

    python -m bench.budget --costs --count 42
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterable, Sequence

import numpy as np

import structgen
from oracles import data
from structgen import errors

STEPS = 250  # tokens of a walk without a budget
SPARE = 30  # tokens beyond the fewest that suffice; also the number of last tokens of a walk
QUANTILES = (0.25, 0.5, 0.9, 0.99, 0.999)


class Draws:
    """A vocabulary, and random tokens of a mask."""

    def __init__(self, tokens: Sequence[bytes], draw: str) -> None:
        self.size = len(tokens)
        self._first = np.array([t[0] if t else 256 for t in tokens])
        self._by_byte = draw == "byte"

    def next(self, mask: np.ndarray, source: random.Random) -> int | None:
        allowed = np.flatnonzero(np.unpackbits(mask.view(np.uint8), bitorder="little")[: self.size])
        if not len(allowed):
            return None
        if self._by_byte:
            first = self._first[allowed]
            bytes_ = np.unique(first)
            allowed = allowed[first == bytes_[source.randrange(len(bytes_))]]
        return int(allowed[source.randrange(len(allowed))])


class Row:
    """The masks of one row of the table, with their times."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.all: list[float] = []  # microseconds
        self.last: list[float] = []  # for the last SPARE tokens of a budget
        self.cut = 0  # the number of walks that did not end, or had an empty mask
        self.slow: dict[str, float] = {}

    def walk(self, grammar: structgen.CompiledGrammar, budget: int | None, seed: str, draws: Draws) -> None:
        source = random.Random(seed)
        matcher = grammar.matcher()
        mask = structgen.allocate_bitmask(1, draws.size)
        for step in range(STEPS if budget is None else min(budget, STEPS) if budget > 1_000 else budget):
            left = None if budget is None else budget - step
            began = time.process_time_ns()
            try:
                matcher.fill_bitmask(mask, 0, left)
            except errors.BudgetExceeded:  # includes an unsatisfiable budget
                self.cut += 1
                return
            spent = (time.process_time_ns() - began) / 1e3
            self.all.append(spent)
            if left is not None and left <= SPARE:
                self.last.append(spent)
            self.slow[seed] = max(self.slow.get(seed, 0.0), spent)
            token = draws.next(mask, source)
            if token is None or not matcher.accept_token(token):
                self.cut += 1
                return
            if matcher.is_terminated():
                return
        self.cut += budget is not None and budget <= 1_000


def line(name: str, values: Iterable[float], cut: int) -> str:
    found = sorted(values)
    if not found:
        return f"{name:18} nothing"
    at = [found[min(len(found) - 1, int(len(found) * q))] for q in QUANTILES]
    cells = "".join(f"{x:10.1f}" for x in (*at, found[-1], sum(found) / len(found)))
    return f"{name:18}{cells}{len(found):9}{cut:5}"


def table(vocabulary: structgen.Vocabulary, tokens: Sequence[bytes], names: Sequence[str], draw: str) -> None:
    draws = Draws(tokens, draw)
    print(f"draw: {draw}; {len(names)} schemas; CPU microseconds a mask")
    print(
        f"{'':18}" + "".join(f"{h:>10}" for h in ("p25", "p50", "p90", "p99", "p99.9", "max", "mean")), end=""
    )
    print(f"{'masks':>9}{'cut':>5}")
    rows = {"none": Row("no budget"), "10000": Row("10,000"), "300": Row("300"), "least": Row("fewest + 30")}
    for kind, row in rows.items():
        compiler = structgen.Compiler(vocabulary)
        for name in names:
            try:
                grammar = compiler.json_schema(data.maskbench_case(name).schema)
                least = grammar.matcher().tokens_needed() if kind == "least" else 0
            except structgen.StructgenError:
                continue
            budget = {"none": None, "10000": 10_000, "300": 300, "least": least + SPARE}[kind]
            try:
                row.walk(grammar, budget, name, draws)
            except structgen.StructgenError as error:
                print(f"{name}: {error}")
        print(line(row.name, row.all, row.cut), flush=True)
        if kind == "least":
            print(line("  its last 30", row.last, row.cut), flush=True)
    for row in rows.values():
        worst = sorted(row.slow.items(), key=lambda x: -x[1])[:3]
        print(f"{row.name}: " + ", ".join(f"{name} {spent / 1e3:.1f} ms" for name, spent in worst))
