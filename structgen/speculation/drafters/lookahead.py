"""Lookahead: each forward pass also scores guesses about later tokens. The target's predictions behind the
guesses become n-grams.

Enters: the target's most probable token after each guess. Leaves: n-grams that begin with the last token.
Cost: `window` more nodes in every forward, which pays only where a forward's width is nearly free.

Fu et al. 2024 (Jacobi decoding with an n-gram pool). The guesses form one chain that is iterated as in Jacobi
decoding. The paper's two-dimensional window (lookahead_window.py) keeps several generations of guesses and
needs so many times the nodes. Guesses are scored for the drafter alone, so the grammar does not prune them.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass

from ..base import Cursor, DrafterSettings, Here, Quiet, Start, Step

_GRAMS_A_TOKEN = 6


@dataclass(eq=False)
class Lookahead(DrafterSettings):
    """Drafts from n-grams of Jacobi iterations.

    Args:
        window: the number of guessed tokens in every forward.
        longest: the most tokens of an n-gram behind its first token.
        keys: the most first tokens whose n-grams are kept.
    """

    has_distribution = False
    name = "lookahead"

    window: int = 6
    longest: int = 4
    keys: int = 4096

    def open(self, start: Start) -> _Session:
        return _Session(self, start.prompt)


class _Session(Quiet):
    def __init__(self, drafter: Lookahead, prompt: Sequence[int]) -> None:
        self._drafter = drafter
        self._last = prompt[-1]
        # The paper begins with random tokens. Here the window begins with tokens of the prompt, which are
        # tokens of this text at least.
        self._filler = list(prompt)
        self._guesses = [prompt[(7 * i) % len(prompt)] for i in range(drafter.window)]
        self._pool = Pool(drafter.keys)

    def probes(self) -> Sequence[int]:
        return self._guesses

    def accept(self, step: Step) -> None:
        guesses, said = self._guesses, step.probes
        if len(said) == len(guesses):
            for i in range(len(guesses)):
                stop = min(len(guesses), i + self._drafter.longest)
                for end in range(i + 1, stop + 1):
                    self._pool.learn(guesses[i], (*guesses[i + 1 : end], said[end - 1]))
            # Guess i + 1 was a guess for the place behind guess i. The first `gone` places are text by now.
            fresh = list(said[len(step.tokens) - 1 :])
        else:
            fresh = list(guesses[len(step.tokens) :])
        while len(fresh) < self._drafter.window:
            fresh.append(self._filler[(step.tokens[-1] + len(fresh)) % len(self._filler)])
        self._guesses = fresh[: self._drafter.window]
        self._last = step.tokens[-1]

    def cursor(self) -> Cursor | None:
        return self._pool.cursor(self._last)


class Pool:
    """N-grams by their first token, the newest last.

    Args:
        keys: the most first tokens whose n-grams are kept. The one that got no n-gram for longest goes.
    """

    def __init__(self, keys: int) -> None:
        self._keys = keys
        self._grams: OrderedDict[int, list[tuple[int, ...]]] = OrderedDict()

    def learn(self, key: int, gram: tuple[int, ...]) -> None:
        """Adds an n-gram: its first token, and its other tokens."""
        row = self._grams.setdefault(key, [])
        self._grams.move_to_end(key)
        if gram in row:
            row.remove(gram)
        row.append(gram)
        del row[:-_GRAMS_A_TOKEN]
        if len(self._grams) > self._keys:
            self._grams.popitem(last=False)

    def cursor(self, token: int) -> Cursor | None:
        """Returns a cursor behind a token; None if no n-gram begins with the token."""
        grams = self._grams.get(token)
        return _Cursor(self._grams, token, tuple(grams)) if grams else None


class _Cursor:
    """A place at a node: the rests of the n-grams that agree so far, the newest last."""

    __slots__ = ("_grams", "_pool", "_token")

    def __init__(
        self, pool: OrderedDict[int, list[tuple[int, ...]]], token: int, grams: tuple[tuple[int, ...], ...]
    ) -> None:
        self._pool = pool
        self._token = token
        self._grams = grams

    def children(self, here: Here) -> Sequence[tuple[int, float]]:
        order = dict.fromkeys(gram[0] for gram in reversed(self._grams))
        return [(token, 0.5 / (i + 1)) for i, token in enumerate(order)]

    def step(self, token: int) -> _Cursor | None:
        rests = tuple(gram[1:] for gram in self._grams if gram[0] == token and len(gram) > 1)
        rests = rests or tuple(self._pool.get(token, ()))
        return _Cursor(self._pool, token, rests) if rests else None
