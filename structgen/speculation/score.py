"""The target model in the form that verification needs: it takes blocks of nodes, gives rows of
log-probabilities, and keeps paths.

Enters: a language model. Leaves: a `Scorer`. A model that scores trees needs one forward pass with tree
attention; any other `LanguageModel` needs one batched call of `logprobs` with the nodes as contexts. Cost:
the forward of the model. A row of scores is normalised when it is first read.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol, cast

import numpy as np
import numpy.typing as npt

from .._draws import top
from ..lm.base import LanguageModelError, check_logprobs

if TYPE_CHECKING:
    from ..lm.base import Context, LanguageModel
    from ..lm.tree_scoring import TreeScoring
    from .base import Vector


class Block(Protocol):
    """See `structgen.lm.tree_scoring.Block`."""

    taken: Sequence[int]
    tokens: Sequence[int]
    parents: Sequence[int]


class Scores(Protocol):
    """The scores of one row. Place 0 is the last taken token, place i + 1 is node i."""

    def vector(self, place: int) -> Vector:
        """Returns the log-probabilities of the next token, shape (V,), which the caller must not change."""
        ...

    def some(self, place: int, ids: npt.NDArray[np.int64]) -> npt.NDArray[np.float32]:
        """Returns the logits of some ids. All logits of one place may be off by one constant."""
        ...

    def best(self, place: int) -> int:
        """Returns the most probable token."""
        ...

    def top(self, count: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float32]] | None:
        """Returns the `count` most probable tokens of every place and their log-probabilities, best first, of
        shape (places, count); None if whole distributions were not computed."""
        ...


class Scorer(Protocol):
    """The rows of one batch, scored by the target."""

    width: int  # tokens of the last forward, all rows together

    def add(self, prompts: Sequence[Sequence[int]]) -> None:
        """Adds rows behind the others. The first block of a row holds its prompt."""
        ...

    def share(self, tokens: Sequence[int], count: int) -> bool:
        """Adds the first `count` rows, which all begin with these tokens, and reads the tokens once. False if
        the rows must be added one by one."""
        ...

    def select(self, rows: list[int]) -> None:
        """Keeps only these rows, in this order."""
        ...

    def score(
        self, blocks: Sequence[tuple[Sequence[int], Sequence[int], Sequence[int]]], restricted: bool
    ) -> list[Scores]:
        """Scores (taken tokens, node tokens, parents) for each row. The caller calls `keep` next."""
        ...

    def keep(self, paths: Sequence[Sequence[int]]) -> None:
        """Keeps the nodes that each row accepted, from the top down, and drops all others."""
        ...

    @property
    def overlaps(self) -> bool:
        """Whether the forward pass still runs when `score` returns."""
        ...

    def wait(self) -> None:
        """Waits until the last forward pass is finished."""
        ...

    def clock(self) -> float:
        """Returns the current time, in seconds, of the clock that times forward passes. If the model runs in
        this thread, this is the thread's processor time, because wall-clock time on a busy machine says
        nothing about widths. Otherwise it is wall-clock time."""
        ...

    @property
    def restricts(self) -> bool:
        """Whether `score` can skip the head. `Scores.some` then computes the rows that are asked for."""
        ...


def open_scorer(lm: LanguageModel) -> Scorer:
    """Returns a scorer without rows.

    Raises:
        LanguageModelError: the model cannot take drafts back.
    """
    return TreeRows(lm) if hasattr(lm, "tree_scorer") else ContextRows(lm)


class TreeRows:
    """Makes a `Scorer` of a `structgen.lm.tree_scoring.TreeScoring`."""

    def __init__(self, lm: Any) -> None:
        self._scorer: TreeScoring = lm.tree_scorer()
        self._plain: bool | None = None
        self.width: int = 0

    def add(self, prompts: Sequence[Sequence[int]]) -> None:
        self._scorer.add(len(prompts))

    def share(self, tokens: Sequence[int], count: int) -> bool:
        from ..lm.tree_scoring import Block as TreeBlock

        self._scorer.add(1)
        self._scorer.score([TreeBlock(tokens)])
        self._scorer.keep([[]])
        self._scorer.select([0] * count)
        return True

    def select(self, rows: list[int]) -> None:
        self._scorer.select(rows)

    def score(
        self, blocks: Sequence[tuple[Sequence[int], Sequence[int], Sequence[int]]], restricted: bool
    ) -> list[Scores]:
        from ..lm.tree_scoring import Block as TreeBlock

        made = [TreeBlock(*block) for block in blocks]
        found = self._scorer.score(made, hidden=restricted)
        self.width = self._scorer.last_width
        if restricted:
            return [cast(Scores, _Hidden(part, self._scorer)) for part in found]
        return [cast(Scores, _Logits(part, self._scorer)) for part in found]

    def keep(self, paths: Sequence[Sequence[int]]) -> None:
        self._scorer.keep(paths)

    @property
    def overlaps(self) -> bool:
        return not self._scorer.runs_here

    def wait(self) -> None:
        self._scorer.wait()

    def clock(self) -> float:
        return time.perf_counter() if self.overlaps else time.thread_time()

    @property
    def restricts(self) -> bool:
        if self._plain is None:
            self._plain = self._scorer.has_plain_head()
        return self._plain


class _Logits:
    def __init__(self, logits: Any, scorer: TreeScoring) -> None:
        self._logits = logits
        self._scorer = scorer
        self._rows: dict[int, Vector] = {}

    def vector(self, place: int) -> Vector:
        found = self._rows.get(place)
        if found is None:
            found = self._scorer.vector(self._logits[place])
            if np.isnan(found[0]) or np.isnan(found).any():
                raise LanguageModelError(
                    "the model's logits are not a distribution: they are NaN or all -inf"
                )
            self._rows[place] = found
        return found

    def some(self, place: int, ids: npt.NDArray[np.int64]) -> npt.NDArray[np.float32]:
        return self.vector(place)[ids]

    def best(self, place: int) -> int:
        return self._scorer.best(self._logits[place])

    def top(self, count: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float32]]:
        return self._scorer.top(self._logits, count)


class _Hidden:
    """Scores from last hidden states: the head computes only what a caller asks for."""

    def __init__(self, states: Any, scorer: TreeScoring) -> None:
        self._states = states
        self._scorer = scorer

    def vector(self, place: int) -> Vector:
        ids = np.arange(self._scorer.vocab_size)
        logits = self.some(place, ids).astype(np.float64)
        top = logits.max()
        found: Vector = (logits - top - np.log(np.exp(logits - top).sum())).astype(np.float32)
        return found

    def some(self, place: int, ids: npt.NDArray[np.int64]) -> npt.NDArray[np.float32]:
        found = self._scorer.head(self._states[place], ids)
        if np.isnan(found).any():
            raise LanguageModelError("the model's logits are NaN")
        return found

    def best(self, place: int) -> int:
        return int(np.argmax(self.some(place, np.arange(self._scorer.vocab_size))))

    def top(self, count: int) -> None:
        return None


class ContextRows:
    """Makes a `Scorer` of any language model: nodes are contexts of its prefix tree."""

    restricts = False
    overlaps = False

    def wait(self) -> None:
        pass

    def clock(self) -> float:
        return time.perf_counter()  # such a model may compute anywhere, so wall-clock time is used

    def __init__(self, lm: LanguageModel) -> None:
        self._lm = lm
        self._rows: list[Context] = []
        self._fresh: list[bool] = []
        self._nodes: list[list[Context]] = []
        self.width: int = 0

    def add(self, prompts: Sequence[Sequence[int]]) -> None:
        self._rows += [self._lm.start(p) for p in prompts]
        self._fresh += [True] * len(prompts)

    def share(self, tokens: Sequence[int], count: int) -> bool:
        return False  # contexts of a prefix tree share their common tokens without this call

    def select(self, rows: list[int]) -> None:
        self._rows = [self._rows[r] for r in rows]
        self._fresh = [self._fresh[r] for r in rows]

    def score(
        self, blocks: Sequence[tuple[Sequence[int], Sequence[int], Sequence[int]]], restricted: bool
    ) -> list[Scores]:
        self._nodes = []
        asked: list[Context] = []
        for r, (taken, tokens, parents) in enumerate(blocks):
            # The context already has the prompt, which comes as the first block of a row.
            if not self._fresh[r]:
                for token in taken:
                    self._rows[r] = self._rows[r].extend(token)
            self._fresh[r] = False
            nodes = [self._rows[r]]
            for token, parent in zip(tokens, parents, strict=True):
                nodes.append(nodes[parent + 1].extend(token))
            self._nodes.append(nodes)
            asked += nodes
        rows = self._lm.logprobs(asked)
        check_logprobs(rows, len(asked), self._lm.vocabulary.vocab_size)
        self.width = len(asked)
        found: list[Scores] = []
        at = 0
        for nodes in self._nodes:
            found.append(_Rows(rows[at : at + len(nodes)]))
            at += len(nodes)
        return found

    def keep(self, paths: Sequence[Sequence[int]]) -> None:
        for r, path in enumerate(paths):
            if path:
                self._rows[r] = self._nodes[r][path[-1] + 1]


class _Rows:
    def __init__(self, rows: npt.NDArray[np.float32]) -> None:
        self._rows = rows

    def vector(self, place: int) -> Vector:
        row: Vector = self._rows[place]
        return row

    def some(self, place: int, ids: npt.NDArray[np.int64]) -> npt.NDArray[np.float32]:
        return self.vector(place)[ids]

    def best(self, place: int) -> int:
        return int(np.argmax(self.vector(place)))

    def top(self, count: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float32]]:
        ids = np.stack([top(row, count) for row in self._rows])
        return ids, np.take_along_axis(self._rows, ids, axis=1)
