"""Records of drawn tokens for people: `sg.trace` and the playground.

Enters: the model's log-probabilities, the mask, the token; a draft tree and its accepted nodes. Leaves:
`Seen` and `Drafted`, and their JSON. Cost: two sums and two partial sorts of the vocabulary a token.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from .._draws import top
from ..logits import allowed_bits

if TYPE_CHECKING:
    from ..speculation.tree import DraftTree
    from ..vocabulary import Vocabulary

_BEST = 8  # the most allowed tokens that are shown
_REFUSED = 6  # the most forbidden tokens that are shown
_TAKEN = 0.01  # a mask that forbids at least this probability counts as a constraint

_Row = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Seen:
    """A drawn token, with the model and the mask at its place.

    Attributes:
        token: the id. left: the most tokens that could still be written, this one included.
        logprob: in the model. masked: among the allowed tokens, before temperature.
        kept: the probability of all allowed tokens. allowed: how many there are.
        best: allowed tokens, best first: (id, logprob, masked). refused: forbidden ones: (id, logprob).
        seconds: the time of the mask.
        drafters: the drafters that proposed the token, if it was drafted and accepted.
    """

    token: int
    left: int
    logprob: float
    masked: float
    kept: float
    allowed: int
    best: list[tuple[int, float, float]]
    refused: list[tuple[int, float]]
    seconds: float
    drafters: tuple[str, ...] = ()

    @property
    def kind(self) -> str:
        """Who decided: "forced" (the grammar alone), "constrained" (the mask forbade 1% or more) or
        "free"."""
        if self.allowed == 1:
            return "forced"
        return "constrained" if self.kept < 1 - _TAKEN else "free"

    def told(self, names: Names, ends: frozenset[int]) -> dict[str, Any]:
        """Returns the record as JSON."""
        return {
            **shown(self.token, names, ends),
            "kind": self.kind,
            "left": self.left,
            "p": _probability(self.logprob),
            "masked": _probability(self.masked),
            "kept": self.kept,
            "allowed": self.allowed,
            "best": [
                {**shown(i, names, ends), "p": _probability(p), "masked": _probability(m)}
                for i, p, m in self.best
            ],
            "refused": [{**shown(i, names, ends), "p": _probability(p)} for i, p in self.refused],
            "mask_seconds": self.seconds,
            "drafters": list(self.drafters),
        }


@dataclass(frozen=True, slots=True)
class Drafted:
    """The draft tree of one forward, parents before children. The parent -1 is the text so far."""

    tokens: list[int]
    parents: list[int]
    chances: list[float]
    drafters: list[tuple[str, ...]]
    accepted: frozenset[int]
    emitted: int

    def told(self, names: Names, ends: frozenset[int]) -> dict[str, Any]:
        """Returns the record as JSON."""
        return {
            "emitted": self.emitted,
            "nodes": [
                {
                    **shown(token, names, ends),
                    "parent": self.parents[i],
                    "chance": self.chances[i],
                    "drafters": list(self.drafters[i]),
                    "accepted": i in self.accepted,
                }
                for i, token in enumerate(self.tokens)
            ],
        }


def seen(
    token: int,
    raw: _Row,
    mask: npt.NDArray[np.int32] | None,
    left: int,
    seconds: float,
    drafters: tuple[str, ...] = (),
) -> Seen:
    """Returns one token of a row.

    Args:
        raw: the model's log-probabilities, shape (V,). mask: int32, shape (ceil(V/32),); None allows all.
    """
    size = len(raw)
    if mask is None:
        best = [(int(i), float(raw[i]), float(raw[i])) for i in top(raw, _BEST)]
        value = float(raw[token])
        return Seen(token, left, value, value, 1.0, size, best, [], seconds, drafters)
    bits = allowed_bits(mask.reshape(-1), size)
    allowed = np.where(bits, raw, np.float32(-np.inf))
    others = np.where(bits, np.float32(-np.inf), raw)
    kept = float(np.exp(allowed.astype(np.float64)).sum())
    log_kept = math.log(kept) if kept > 0 else -math.inf
    best = [(int(i), float(raw[i]), float(raw[i]) - log_kept) for i in top(allowed, _BEST) if bits[i]]
    refused = [(int(i), float(raw[i])) for i in top(others, _REFUSED) if not bits[i] and raw[i] > -np.inf]
    value = float(raw[token])
    return Seen(
        token,
        left,
        value,
        value - log_kept,
        min(kept, 1.0),
        int(bits.sum()),
        best,
        refused,
        seconds,
        drafters,
    )


def drafted(tree: DraftTree, path: Sequence[int], emitted: Sequence[int], names: Sequence[str]) -> Drafted:
    """Returns the drafts of a step. The tree's probes, which no drafter proposed and which stand behind all
    drafts, are left out.

    Args:
        path: the accepted nodes. emitted: the tokens of the step; the last may stand on a node, too.
        names: the names of the drafters, by number.
    """
    count = sum(1 for offers in tree.offers if offers)
    last = tree.child(path[-1] if path else -1, emitted[-1]) if len(emitted) > len(path) else None
    accepted = frozenset([*path, *([] if last is None else [last])])
    return Drafted(
        tree.tokens[:count],
        tree.parents[:count],
        tree.chances[:count],
        [tuple(dict.fromkeys(names[number] for number, _ in tree.offers[i])) for i in range(count)],
        accepted,
        len(emitted),
    )


@dataclass(frozen=True, slots=True)
class Names:
    """The texts of tokens for people: those of the vocabulary, and the names of special tokens."""

    vocabulary: Vocabulary
    special: Mapping[int, bytes]


def shown(token: int, names: Names, ends: frozenset[int]) -> dict[str, Any]:
    """Returns a token as JSON: its id, and one of `text`, `bytes` (if the bytes are no text) or `name`."""
    data = names.vocabulary.tokens[token]
    if not data:
        name = "end" if token in ends else names.special.get(token, b"").decode("utf-8", "replace")
        return {"id": token, "name": name or f"token {token}"}
    try:
        return {"id": token, "text": data.decode()}
    except UnicodeDecodeError:
        return {"id": token, "bytes": list(data)}


def _probability(logprob: float) -> float:
    return math.exp(min(0.0, logprob))
