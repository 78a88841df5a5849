"""Reference implementations for comparisons with structgen's samplers.

- `ReferenceAsap`: the algorithm of transformers-GAD, written anew from its description, in linear space and
  with its costs: every token of every draw is a forward pass, and every accepted token becomes a child. It is
  also an oracle: with the same uniform numbers it draws the texts of `structgen.sampling.asap`.
- `awrs`: genlm-control's own AWRS over the model and grammar of a task, with counters. It asks the grammar
  about whole contexts; a cache keeps the matcher of the previous context, so a question costs one token.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from oracles.tasks import Task
from structgen import allocate_bitmask


@dataclass(slots=True)
class Cost:
    """Draws as (ids, log weight), and their cost.

    `forwards` counts next-token vectors one by one; `distinct` counts the different prefixes among them;
    `evaluations` counts the questions to the constraint (a mask or a verdict on one token).
    """

    draws: list[tuple[tuple[int, ...], float]] = field(default_factory=list)
    forwards: int = 0
    distinct: int = 0
    evaluations: int = 0
    tokens: int = 0
    seconds: float = 0.0


def mask_bits(matcher: Any, size: int) -> np.ndarray:
    mask = allocate_bitmask(1, size)
    matcher.fill_bitmask(mask)
    return np.unpackbits(mask.view(np.uint8), bitorder="little")[:size].astype(bool)


class _Node:
    """A node of the reference's tree: the token's likelihood, the success rate, the children and the
    parent."""

    def __init__(self, likelihood: float, parent: _Node | None) -> None:
        self.likelihood = likelihood
        self.rate = 1.0
        self.parent = parent
        self.children: dict[int, _Node] = {}


class ReferenceAsap:
    def __init__(self, task: Task) -> None:
        self.task = task
        self.root = _Node(1.0, None)
        self.cost = Cost()

    def draw(self, choose: Callable[[np.ndarray], int]) -> tuple[tuple[int, ...], float]:
        """Returns one text with its proper log weight, which the reference itself does not report."""
        task, began = self.task, time.perf_counter()
        context, matcher, node = task.lm.start(task.prompt), task.grammar.matcher(), self.root
        ends = list(task.lm.eos_token_ids)
        tokens: list[int] = []
        log_weight, incoming = 0.0, 0.0
        while True:
            p = np.exp(task.lm.logprobs([context])[0].astype(np.float64))
            self.cost.forwards += 1
            p /= p.sum()
            allowed = mask_bits(matcher, task.lm.vocabulary.vocab_size)
            self.cost.evaluations += 1
            ids = np.flatnonzero(allowed)
            if len(tokens) == task.max_tokens - 1:
                ids = np.array([i for i in ids if i in ends], np.int64)
            for token in ids:
                if int(token) not in node.children:
                    node.children[int(token)] = _Node(float(p[token]), node)
            weights = np.array([p[t] * node.children[int(t)].rate for t in ids])
            if not weights.size or weights.sum() == 0.0:
                self._update(node, 0.0)
                return tuple(tokens), -math.inf
            log_weight += math.log(weights.sum()) - incoming
            token = int(ids[choose(np.cumsum(weights))])
            node = node.children[token]
            incoming = math.log(node.rate)
            tokens.append(token)
            if token in ends:
                break
            matcher.accept_token(token)
            context = context.extend(token)
        assert node.parent is not None
        self._update(node.parent, None)
        self.cost.tokens += len(tokens)
        self.cost.seconds += time.perf_counter() - began
        self.cost.draws.append((tuple(tokens), log_weight))
        return tuple(tokens), log_weight

    def _update(self, node: _Node, rate: float | None) -> None:
        """Updates the success rates from a node up to the root."""
        at: _Node | None = node
        while at is not None:
            at.rate = rate if rate is not None else sum(c.likelihood * c.rate for c in at.children.values())
            at, rate = at.parent, None


def awrs(
    task: Task, particles: int, threshold: float, seed: int, predicate: Callable[[bytes], bool] | None = None
) -> Cost:
    """Returns one SMC run of genlm-control with its AWRS token sampler; the grammar is the Boolean condition.

    Raises:
        ImportError: genlm-control is not installed.
    """
    from genlm.control import AWRS, Potential

    lm = task.lm
    size, ends = lm.vocabulary.vocab_size, list(lm.eos_token_ids)
    words = [i for i in range(size) if lm.vocabulary.token_bytes(i) or i not in ends]
    words = [i for i in words if i not in ends]
    cost = Cost()
    asked: set[tuple[int, ...]] = set()
    begin = lm.start(task.prompt)

    class Model(Potential):  # type: ignore[misc]
        async def prefix(self, context: Any) -> float:
            return 0.0

        async def complete(self, context: Any) -> float:
            return 0.0

        async def logw_next(self, context: Any) -> Any:
            cost.forwards += 1
            asked.add(tuple(context))
            at = begin
            for token in context:
                at = at.extend(token)
            row = lm.logprobs([at])[0].astype(np.float64)
            end = np.logaddexp.reduce(row[ends])
            return self.make_lazy_weights(np.concatenate([row[words], [end]]))

    matchers: dict[tuple[int, ...], Any] = {}

    def matcher_at(context: tuple[int, ...]) -> Any:
        """Returns the matcher of a context, or None if the grammar refuses the context. The last 4096 are
        cached."""
        if context not in matchers:
            if len(matchers) > 4096:
                matchers.clear()
            if not context:
                matchers[context] = task.grammar.matcher()
            else:
                before = matcher_at(context[:-1])
                found = None if before is None else before.fork()
                matchers[context] = found if found is not None and found.accept_token(context[-1]) else None
        return matchers[context]

    class Condition(Potential):  # type: ignore[misc]
        async def prefix(self, context: Any) -> float:
            cost.evaluations += 1
            fine = True
            if context:
                before = matcher_at(tuple(context[:-1]))
                fine = before is not None and before.accept_token(context[-1])
                if fine:
                    before.rollback(1)
            if fine and predicate is not None:
                fine = predicate(lm.vocabulary.decode(context))
            return 0.0 if fine else -math.inf

        async def complete(self, context: Any) -> float:
            cost.evaluations += 1
            matcher = matcher_at(tuple(context))
            return 0.0 if matcher is not None and matcher.is_accepting() else -math.inf

    async def run() -> Any:
        sampler = AWRS(Model(words), Condition(words), seed=seed)
        return await sampler.smc(n_particles=particles, ess_threshold=threshold, max_tokens=task.max_tokens)

    np.random.seed(seed)
    began = time.perf_counter()
    found = asyncio.run(run())
    cost.seconds = time.perf_counter() - began
    cost.distinct = len(asked)
    for context, weight in found:
        ids = [ends[0] if not isinstance(t, int) else t for t in context]
        cost.draws.append((tuple(ids), float(weight)))
        cost.tokens += len(ids)
    return cost
