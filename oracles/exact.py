"""The law of a task by dynamic programming: Z and exact draws, without a sampler and without the engine.

Input: a model whose next-token law depends on a short state (an n-gram, or a table of prefixes with a limit
of length), and a grammar's rules, cut at a depth so that the language is finite. Output: `Exact`. Time: one
step for each reachable pair of grammar state and model state; thousands to a few hundred thousand.

The grammar is read byte by byte as sets of stacks of symbols still to read, which are determinised when they
are first reached. The module shares no code with the engine. Let c(q, h) = P(the model continues to the end
of a text of the language), with grammar state q and model state h. Then

    c(q, h) = P(end | h) [q accepts] + sum over tokens b of P(b | h) c(q b, h b)

Z is c at the start. An exact draw takes b with the probability P(b | h) c(q b, h b) / c(q, h).
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Hashable
from typing import Any

import numpy as np

Rules = dict[str, list[list[tuple[bool, str]]]]
# a literal, or a rule with the number of times that each rule is open
Item = bytes | tuple[str, tuple[tuple[str, int], ...]]
_MOST = 3_000_000  # the limit of pairs of states


class TooLarge(Exception):
    """The exact law needs more states than the limit."""


class Stacks:
    """The texts of a grammar, read byte by byte. States are numbers.

    Args:
        depth: how often a rule may nest within itself. None sets no limit; the caller then limits the length.
    """

    def __init__(self, rules: Rules, depth: int | None) -> None:
        self._rules, self._depth = rules, depth
        self._numbers: dict[frozenset[tuple[Item, ...]], int] = {}
        self._states: list[frozenset[tuple[Item, ...]]] = []
        self._moves: list[dict[int, int]] = []
        self.start = self._number(self._closed({(("root", ()),)}))

    def __len__(self) -> int:
        return len(self._states)

    def accepts(self, state: int) -> bool:
        return () in self._states[state]

    def next(self, state: int) -> dict[int, int]:
        """Returns a dict of byte -> state, for every byte that the language allows in the state."""
        while len(self._moves) <= state:
            self._moves.append({})
        found = self._moves[state]
        if not found:
            by: dict[int, set[tuple[Item, ...]]] = {}
            for stack in self._states[state]:
                if stack:
                    literal = stack[0]
                    assert isinstance(literal, bytes)
                    rest = (literal[1:], *stack[1:]) if len(literal) > 1 else stack[1:]
                    by.setdefault(literal[0], set()).add(rest)
            for byte, stacks in by.items():
                closed = self._closed(stacks)
                if closed:
                    found[byte] = self._number(closed)
        return found

    def _number(self, stacks: frozenset[tuple[Item, ...]]) -> int:
        if stacks not in self._numbers:
            self._numbers[stacks] = len(self._states)
            self._states.append(stacks)
        return self._numbers[stacks]

    def _closed(self, stacks: set[tuple[Item, ...]]) -> frozenset[tuple[Item, ...]]:
        """Returns the stacks with leading rules replaced by their alternatives, until a literal leads or the
        stack is empty."""
        done: set[tuple[Item, ...]] = set()
        seen, todo = set(stacks), list(stacks)
        while todo:
            stack = todo.pop()
            if not stack or isinstance(stack[0], bytes):
                done.add(stack)
                continue
            name, open_ = stack[0]
            inside = dict(open_)
            if name not in self._rules or (self._depth is not None and inside.get(name, 0) > self._depth):
                continue
            if self._depth is not None:
                inside[name] = inside.get(name, 0) + 1
            nested = tuple(sorted(inside.items()))
            for option in self._rules[name]:
                items: list[Item] = [text.encode() if literal else (text, nested) for literal, text in option]
                made = (*[item for item in items if item != b""], *stack[1:])
                if made not in seen:
                    seen.add(made)
                    todo.append(made)
        return frozenset(done)


class Exact:
    """The law of a model given a grammar.

    Args:
        row: log-probabilities of the next token in a model state, float64, shape (V,).
        step: the model state after one token more.
        begin: the model state of the empty text.
        tokens: the bytes of every id; b"" for ids that write nothing. ends: the ids that end a text.
        limit: tokens of a text at most, the end included; None where the language is finite.
    """

    def __init__(
        self,
        stacks: Stacks,
        row: Callable[[Any], np.ndarray],
        step: Callable[[Any, int], Any],
        begin: Hashable,
        tokens: list[bytes],
        ends: list[int],
        limit: int | None = None,
    ) -> None:
        self._stacks, self._row, self._step, self._begin = stacks, row, step, begin
        self._ends, self._limit = ends, limit
        self._tree: dict[int, Any] = {}
        for token, text in enumerate(tokens):
            if text and token not in ends:
                at = self._tree
                for byte in text:
                    at = at.setdefault(byte, {})
                at.setdefault(-1, []).append(token)
        self._tokens: dict[int, list[tuple[int, int]]] = {}
        self._known: dict[tuple[int, Any, int], float] = {}
        sys.setrecursionlimit(max(sys.getrecursionlimit(), 20_000))
        self.log_z = self._log_c(stacks.start, begin, limit or 0)

    @property
    def states(self) -> int:
        return len(self._known)

    def draw(self, random: np.random.Generator) -> tuple[int, ...]:
        """Draws a text from the law: its ids, up to the first end token."""
        state, model, left = self._stacks.start, self._begin, self._limit or 0
        taken: list[int] = []
        while True:
            ways = self._ways(state, model, left)
            logs = np.array([p for p, _, _ in ways])
            weights = np.cumsum(np.exp(logs - logs.max()))
            _, token, after = ways[int(np.searchsorted(weights, random.random() * weights[-1], side="right"))]
            taken.append(token)
            if after < 0:
                return tuple(taken)
            state, model, left = after, self._step(model, token), max(0, left - 1)

    def _ways(self, state: int, model: Any, left: int) -> list[tuple[float, int, int]]:
        """Returns (log of P times the continuation's weight, token, grammar state behind the token or -1),
        for positive weights."""
        row = self._row(model)
        found = []
        if self._stacks.accepts(state):
            end = float(np.logaddexp.reduce(row[self._ends]))
            if end > -math.inf:
                found.append((end, self._ends[0], -1))
        if self._limit is None or left > 1:
            for token, after in self._moves(state):
                p = float(row[token])
                if p > -math.inf:
                    p += self._log_c(after, self._step(model, token), max(0, left - 1))
                    if p > -math.inf:
                        found.append((p, token, after))
        return found

    def _log_c(self, state: int, model: Any, left: int) -> float:
        key = (state, model, left)
        found = self._known.get(key)
        if found is None:
            if len(self._known) > _MOST:
                raise TooLarge(f"more than {_MOST} pairs of grammar and model states")
            ways = [p for p, _, _ in self._ways(state, model, left)]
            top = max(ways, default=-math.inf)
            found = top if not ways else top + math.log(math.fsum(math.exp(p - top) for p in ways))
            self._known[key] = found
        return found

    def _moves(self, state: int) -> list[tuple[int, int]]:
        """Returns (token, state behind the token) for every token that the language allows."""
        found = self._tokens.get(state)
        if found is None:
            found = []
            todo = [(self._tree, state)]
            while todo:
                tree, at = todo.pop()
                found += [(token, at) for token in tree.get(-1, ())]
                todo += [(tree[byte], after) for byte, after in self._stacks.next(at).items() if byte in tree]
            found.sort()  # the order of sets varies between runs, and draws must not
            self._tokens[state] = found
        return found
