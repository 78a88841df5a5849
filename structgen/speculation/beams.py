"""Draft trees by stochastic beam search, for recursive rejection: beams are texts without replacement.

Enters: a draft model's distributions, a width and a depth. Leaves: a tree with at most `width` nodes on each
level, and for each node the order in which its children are offered. Cost: a distribution for each node above
the last level, and a sort of the node's tokens.

RSD-S: Jeon et al. 2024, *Recursive speculative decoding*; stochastic beam search: Kool, van Hoof and Welling
2019. Every text has a Gumbel number around its log-probability, and the beam of a level holds the texts with
the largest numbers. The number of a node is the largest number among the texts below it. So the numbers of
the children are drawn on the condition that the largest of them is the number of the parent. A text that
would not be in the beam is never drawn.

The law. The children of a node stand in the order of their numbers. Whatever the numbers are, each next child
follows q without the tokens before it. Whether a next child exists depends only on the numbers and on earlier
tokens. So each child is a valid next draft of recursive rejection (rules.py), and a child for which the beam
had no room was never drawn. A fixed tree gives every node `branches` drafts; a beam puts drafts where the
draft model finds text likely.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from .rules import Floats

Node = TypeVar("Node", bound=Hashable)
Law = tuple[npt.NDArray[np.int64], Floats]


class Perturbation(Protocol):
    """The source of the Gumbel numbers."""

    def __call__(
        self, path: tuple[int, ...], ids: npt.NDArray[np.int64], scores: Floats, above: float
    ) -> Floats:
        """Returns the numbers of the children of a path.

        Args:
            ids: their tokens, shape (n,).
            scores: log-probabilities of their paths, shape (n,).
            above: the number of the path, which the largest of the children equals.
        """
        ...


class GumbelBelow:
    """Gumbel numbers around scores, on condition that the largest is known (Kool et al. 2019, appendix B)."""

    def __init__(self, random: np.random.Generator) -> None:
        self._random = random

    def __call__(
        self, path: tuple[int, ...], ids: npt.NDArray[np.int64], scores: Floats, above: float
    ) -> Floats:
        free = scores + self._random.gumbel(size=len(scores))
        # The result is -log(exp(-above) - exp(-largest) + exp(-free)), in a form that neither overflows nor
        # cancels.
        with np.errstate(divide="ignore"):
            gap = above - free + np.log(-np.expm1(np.minimum(free - free.max(), 0.0)))
        found: Floats = above - np.maximum(0.0, gap) - np.log1p(np.exp(-np.abs(gap)))
        return found


def stochastic_beams(
    root: Node,
    width: int,
    depth: int,
    law: Callable[[Node], Law | None],
    add: Callable[[Node, int], Node | None],
    perturbation: Perturbation,
) -> None:
    """Grows a tree below `root`, level by level.

    Args:
        width: the most nodes of a level.
        depth: the most levels.
        law: returns tokens and their nonzero probabilities behind a node, or None if they are unknown.
        add: takes a child and returns its node, or None if nothing is drafted behind the child. It is called
            level by level, and for each parent in the order of rejection.
        perturbation: the numbers.
    """
    # (node, tokens of its path, log-probability, number)
    level: list[tuple[Node, tuple[int, ...], float, float]] = [(root, (), 0.0, 0.0)]
    for _ in range(depth):
        found: list[tuple[float, Node, tuple[int, ...], float]] = []
        for node, path, score, above in level:
            known = law(node)
            if known is None:
                continue
            ids, p = known
            scores = score + np.log(p)
            numbers = perturbation(path, ids, scores, above)
            for i in np.argsort(-numbers, kind="stable")[:width].tolist():
                found.append((float(numbers[i]), node, (*path, int(ids[i])), float(scores[i])))
        found.sort(key=lambda item: -item[0])
        level = []
        for number, node, path, score in found[:width]:
            after = add(node, path[-1])
            if after is not None:
                level.append((after, path, score, number))
