"""Scores all nodes of draft trees in one forward pass, for a batch of rows. All models share this module.

Enters: for each row the tokens that it took since the last call and a tree of drafts behind them. Leaves:
logits of the last taken token and of every node; then `keep` says which path was accepted.
Cost: one forward over the new tokens of all rows; keeping a path copies its keys.

A node attends to the tokens that its row has taken, to its ancestors and to itself. Its position is its depth
(tree attention: Miao et al., SpecInfer, 2024; Cai et al., Medusa, 2024).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from .base import ContextTooLong
from .tree_slots import TreeSlots

# The most entries of the attention mask of one forward. Longer prompts are read in pieces.
_MASK_ENTRIES = 1 << 22
_PIECE = 512


@dataclass(slots=True)
class Block:
    """New tokens of one row.

    Attributes:
        taken: the tokens that the row took since the last call, at least one.
        tokens: the nodes of the draft tree, parents before children.
        parents: the parent of each node; -1 is the last taken token.
    """

    taken: Sequence[int]
    tokens: Sequence[int] = ()
    parents: Sequence[int] = field(default=())

    def __len__(self) -> int:
        return len(self.taken) + len(self.tokens)


class TreeScoring(ABC):
    """A batch of rows under one model. It is not thread-safe, but several batches may share a model.

    Args:
        slots: the slots for keys and values, without rows at first.
        vocab_size: the width of the logits.
        max_context: the most tokens of a row; None if no limit is known.
    """

    def __init__(self, slots: TreeSlots, vocab_size: int, max_context: int | None) -> None:
        self._slots = slots
        self.vocab_size = vocab_size
        self._max_context = max_context
        self._sizes: list[int] = []
        self.forwards: int = 0
        self.last_width: int = 0

    @property
    @abstractmethod
    def runs_here(self) -> bool:
        """Whether this thread computes forward passes, so that a pass is finished when `score` returns."""

    @abstractmethod
    def wait(self) -> None:
        """Waits until the last forward pass is finished."""

    @abstractmethod
    def has_plain_head(self) -> bool:
        """Returns whether logits are exactly the rows of the head times the last hidden state."""

    @abstractmethod
    def head(self, states: Any, ids: npt.NDArray[np.int64]) -> npt.NDArray[np.float32]:
        """Returns logits of these ids alone, shape (len(ids),), from one row of hidden states."""

    @abstractmethod
    def vector(self, logits: Any) -> npt.NDArray[np.float32]:
        """Returns log-probabilities of one row of logits (V,), by the operation that the model's `logprobs`
        uses, so that equal logits give equal bits."""

    @abstractmethod
    def best(self, logits: Any) -> int:
        """Returns the most probable token of one row of logits."""

    @abstractmethod
    def top(self, logits: Any, count: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float32]]:
        """Returns the most probable tokens of rows of logits (n, V) and their log-probabilities, best
        first."""

    @abstractmethod
    def _run(self, blocks: Sequence[Block], *, hidden: bool = False, keep_last: bool = False) -> list[Any]:
        """Runs one forward pass. With `keep_last` only the keys are computed, and the list is empty."""

    @property
    def rows(self) -> int:
        """The number of rows."""
        return self._slots.rows

    @property
    def lengths(self) -> list[int]:
        """The number of tokens of each row whose keys are stored."""
        found: list[int] = self._slots.lengths.tolist()
        return found

    @property
    def nbytes(self) -> int:
        """The number of bytes of keys and values."""
        return self._slots.nbytes

    def add(self, count: int = 1) -> None:
        """Adds empty rows behind the others. Rows may join at any time."""
        self._slots.add_rows(count)

    def select(self, rows: list[int]) -> None:
        """Keeps only these rows, in this order. A row that is listed twice is forked."""
        self._slots.select(rows)

    def truncate(self, length: int) -> None:
        """Forgets the tokens from `length` on. The batch must have a single row."""
        self._slots.truncate(length)

    def score(self, blocks: Sequence[Block], *, hidden: bool = False) -> list[Any]:
        """Returns the logits of each row, shape (1 + nodes, V), as an array or a tensor. The last taken token
        is first.

        With `hidden` the results are states for `head`, shape (1 + nodes, size).

        The caller must call `keep` once afterwards.

        Raises:
            ContextTooLong: a row would pass the model's positions.
            LanguageModelError: the logits are NaN.
        """
        if len(blocks) != self.rows or any(not b.taken for b in blocks):
            raise ValueError(f"{len(blocks)} blocks for {self.rows} rows; each needs a taken token")
        self._check_length(blocks)
        while (cut := self._piece(blocks)) is not None:
            self._run([Block(b.taken[:c]) for b, c in zip(blocks, cut, strict=True)], keep_last=True)
            self._slots.keep([list(range(c)) for c in cut])
            blocks = [Block(b.taken[c:], b.tokens, b.parents) for b, c in zip(blocks, cut, strict=True)]
        self._sizes = [len(b.taken) for b in blocks]
        output = self._run(blocks, hidden=hidden)
        return output

    def keep(self, paths: Sequence[Sequence[int]]) -> None:
        """Keeps the nodes paths[r] that row r accepted, from the top down. All other nodes are forgotten."""
        self._slots.keep(
            [[*range(n), *(n + i for i in path)] for n, path in zip(self._sizes, paths, strict=True)]
        )

    def _check_length(self, blocks: Sequence[Block]) -> None:
        limit = self._max_context
        if limit is None:
            return
        for have, block in zip(self.lengths, blocks, strict=True):
            deepest = have + len(block.taken) + max(depths(block.parents), default=0)
            if deepest > limit:
                raise ContextTooLong(f"a row would have {deepest} tokens; the model reads {limit}")

    def _piece(self, blocks: Sequence[Block]) -> list[int] | None:
        """Returns the number of taken tokens of each row to read first; None if all tokens fit in one
        forward."""
        width = max(len(b) for b in blocks)
        if width <= _PIECE or width * (self._slots.slots + width) * self.rows <= _MASK_ENTRIES:
            return None
        cut = [min(len(b.taken) - 1, _PIECE) for b in blocks]
        return cut if any(cut) else None

    def _layout(
        self, blocks: Sequence[Block]
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
        """Returns ids and positions, (rows, width), and the slots that each query sees, (rows, width, slots +
        width)."""
        width = max(max(len(b) for b in blocks), 1)
        self._slots.reserve(width)
        ids = np.zeros((self.rows, width), np.int64)
        positions = np.zeros((self.rows, width), np.int64)
        seen = np.zeros((self.rows, width, self._slots.slots + width), np.bool_)
        for r, block in enumerate(blocks):
            self._fill(block, r, ids[r], positions[r], seen[r])
        self.forwards += 1
        self.last_width = self.rows * width
        return ids, positions, seen

    def _fill(
        self,
        block: Block,
        row: int,
        ids: npt.NDArray[np.int64],
        positions: npt.NDArray[np.int64],
        seen: npt.NDArray[np.bool_],
    ) -> None:
        """For one row: ids (width,), positions (width,) and the slots that each query sees, (width, slots +
        width)."""
        taken, nodes = len(block.taken), len(block.tokens)
        have, slots = int(self._slots.lengths[row]), self._slots.slots
        ids[:taken] = block.taken
        ids[taken : taken + nodes] = block.tokens
        positions[:taken] = np.arange(have, have + taken)
        seen[:, :slots] = self._slots.live[row, :slots]
        own = seen[:, slots:]
        if taken == 1:
            own[0, 0] = True
        else:
            own[:taken, :taken] = np.tri(taken, dtype=np.bool_)
        for i, parent in enumerate(block.parents):
            at, above = taken + i, taken + parent if parent >= 0 else taken - 1
            own[at] = own[above]
            own[at, at] = True
            positions[at] = positions[above] + 1
        # Each row of padding sees itself, because the softmax of an empty row is undefined.
        rest = np.arange(taken + nodes, len(ids))
        seen[rest] = False
        own[rest, rest] = True


def depths(parents: Sequence[int]) -> list[int]:
    found: list[int] = []
    for parent in parents:
        found.append(1 if parent < 0 else found[parent] + 1)
    return found
