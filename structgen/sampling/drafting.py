"""Drafts of walks (`sg.sample(guess=)`): places that walks may reach next, whose vectors the next forward
also computes.

Enters: a walk whose last node has no vector. Leaves: walks at the drafted places behind it, parents before
children. Cost: the drafters' work, and a fork of the matcher for each place; each place widens the forward.

A draft changes no law. A walk draws by frozen vectors and by the trie's bounds, and fetching a vector ahead
of time changes neither. So a wrong draft only makes a forward wider.

`FunctionDrafts` asks a function. `Tree` asks the drafters of `structgen.speculation`: each walk is one of
their texts. The tokens that they offer grow one tree, best first, which the grammar prunes
(`speculation/tree.py`).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from ..speculation.base import CONTEXT, LIKELY, Likely, Session, Start, Step
from ..speculation.options import Speculation, resolve
from ..speculation.tree import build
from .logspace import NEVER
from .target import AnyText, Target

if TYPE_CHECKING:
    from .walk import Walk

Guess = Callable[[Sequence[int]], Iterable[int]]


class Drafts(Protocol):
    """A source of drafted places."""

    def places(self, walk: Walk) -> list[Walk]:
        """Returns places behind a walk, within the grammar and the limit of tokens."""
        ...

    def end(self, walk: Walk) -> None:
        """The walk has ended."""
        ...


def check_guess(guess: Any) -> None:
    """Raises a TypeError if `sg.sample(guess=)` does not take the value."""
    listed = isinstance(guess, Sequence) and all(hasattr(d, "open") and hasattr(d, "name") for d in guess)
    if guess not in (None, "auto") and not (callable(guess) or listed or isinstance(guess, Speculation)):
        raise TypeError(
            "guess is a function of the answer's token ids, 'auto', a list of drafters or a Speculation, "
            f"not {guess!r:.60}"
        )


def drafts_of(guess: Any, target: Target) -> Drafts | None:
    """Returns the source of drafts that `sg.sample(guess=)` names, or None if no drafts are wanted."""
    if guess is None:
        return None
    if callable(guess):
        return FunctionDrafts(target, guess)
    found = resolve(guess, target.lm, trees=False)
    assert found is not None
    return Tree(target, found)


class FunctionDrafts:
    """Drafts that the user's function guesses. The function takes the ids of an answer and gives ids that may
    follow."""

    def __init__(self, target: Target, guess: Guess) -> None:
        self._target, self._guess = target, guess

    def places(self, walk: Walk) -> list[Walk]:
        here, found = walk, []
        drafted = self._guess(walk.tokens)
        if not isinstance(drafted, Iterable):
            raise TypeError(f"guess gives token ids, not {drafted!r:.60}")
        for token in itertools.islice(drafted, _room(self._target, walk)):
            if not isinstance(token, int | np.integer):
                raise TypeError(f"guess gives token ids, and {token!r:.60} is none")
            if not self._target.allows(here, token):
                break
            here = _behind(here, token, self._target)
            found.append(here)
        return found

    def end(self, walk: Walk) -> None:
        pass


class Tree:
    """Drafts that drafters of `structgen.speculation` propose. The option `nodes` bounds the places of a
    walk."""

    def __init__(self, target: Target, options: Speculation) -> None:
        prompt = list(target.start.tokens)
        grammar = None if isinstance(target.grammar, AnyText) else target.grammar
        self._target, self._options, self._prompt = target, options, prompt
        self._start = Start(prompt, target.vocabulary, grammar, target.law.temperature, None)

    def places(self, walk: Walk) -> list[Walk]:
        target, room = self._target, _room(self._target, walk)
        if not room:
            return []
        cursors = [(i, session.cursor()) for i, session in enumerate(self._told(walk))]
        asked = [(i, cursor) for i, cursor in cursors if cursor is not None]
        target.sync(walk)
        tree = build(
            walk.matcher,
            asked,
            budget=self._options.nodes,
            depth=room,
            ends=frozenset(target.ends),
            position=len(walk.tokens),
            calibration=self._options.calibration,
            goodput=None,
            vocab_size=target.vocabulary.vocab_size,
        ).tree
        places: list[Walk | None] = []
        for token, parent in zip(tree.tokens, tree.parents, strict=True):
            above = walk if parent < 0 else places[parent]
            refused = above is None or not target.allows(above, token)
            places.append(None if above is None or refused else _behind(above, token, target))
        return [place for place in places if place is not None]

    def end(self, walk: Walk) -> None:
        if walk.sessions is not None:
            for session in self._told(walk):
                session.close()

    def _told(self, walk: Walk) -> list[Session]:
        """Returns the drafters' sessions of a walk, which know all of its tokens. Without a prompt, a session
        begins behind the first token."""
        if walk.sessions is None:
            if not self._prompt and not walk.tokens:
                return []
            start = self._start if self._prompt else replace(self._start, prompt=list(walk.tokens))
            walk.sessions = [drafter.open(start) for drafter in self._options.drafters]
            walk.told = 0 if self._prompt else len(walk.tokens)
        new, first = walk.tokens[walk.told :], walk.told
        if new:
            for session in walk.sessions:
                session.accept(Step(new, lambda: self._likely(walk, first)))
            walk.told = len(walk.tokens)
        return walk.sessions

    def _likely(self, walk: Walk, first: int) -> Likely | None:
        """Returns the tokens that the vectors of a walk's nodes give as likely, from the walk's token number
        `first` on."""
        ids, logprobs, contexts = [], [], []
        before = [*self._prompt[-CONTEXT:], *walk.tokens]
        skipped = len(before) - len(walk.tokens)
        for at in range(first, min(len(walk.path), len(walk.tokens))):
            row = walk.path[at].vector
            if row is None or not len(row):
                continue
            best = row.best(LIKELY)
            gap = LIKELY - len(best)
            ids.append([*(row.token(slot) for slot in best), *[row.token(best[0])] * gap])
            logprobs.append([*(row.logp(slot) for slot in best), *[NEVER] * gap])
            contexts.append(tuple(before[max(0, skipped + at - CONTEXT) : skipped + at]))
        if not ids:
            return None
        return Likely(contexts, np.array(ids, np.int64), np.array(logprobs, np.float32))


def _room(target: Target, walk: Walk) -> int:
    """Returns the most tokens that may follow a walk, without the end."""
    return max(0, target.max_tokens - 1 - len(walk.tokens))


def _behind(walk: Walk, token: int, target: Target) -> Walk:
    """Returns the place after a token; the token is not an end."""
    here = walk.fork(walk.chance)
    here.tokens.append(token)
    here.data += target.vocabulary.token_bytes(token)
    return here
