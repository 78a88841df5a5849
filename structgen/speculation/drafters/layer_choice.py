"""The target without some layers as a draft model. The layers are chosen while texts are generated.

Enters: a loaded model of transformers; then the emitted tokens. Leaves: a drafter whose layers change. Cost:
after every `again` emitted tokens, one forward pass of the target and two of shorter models over the last
`window` tokens; up to eight times less often while no better set is found. After a change, the new layers
read the text again.

Two ways to leave out layers, SWIFT's and DEL's, are compared by one number: tokens per time (the formula
below). SWIFT (Xia et al. 2024) tries other sets of layers on the text that was just
generated; here each trial adds or removes one layer. DEL (Zarch et al. 2025) leaves the model behind an early
layer (an exit). One forward of the target shows what every exit would have predicted: the states behind each
layer go through the head. Of a set that drafts agree with a share a of the places and cost a share c of the
target, n drafts bring

    (1 - a^(n+1)) / (1 - a) tokens in the time of 1 + n c forwards      (tokens per layer of DEL)

and the set with the largest quotient over n drafts next. a begins as agreement on the recent text and
follows the drafts that were accepted; c is measured on the same text. How many drafts are made is the
engine's choice.

The law: whatever is drafted, the rule of the run gives the text the law of the target. DEL and SWIFT draft
from the target's own keys and values. Here each set of layers has keys and values of its own, so each set has
to read the text.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..._checks import whole
from ..._fork import hold_over_forks
from ...lm.base import LanguageModelError
from ..base import Cursor, Here, Quiet, Start, Step, Vector
from .layer_skip import layers_of, without_layers
from .model_cursor import ModelCursor, ModelDrafter, row_of

if TYPE_CHECKING:
    from ...lm.base import Context
    from ...lm.transformers import TransformersLM

_MOST = 8  # the most drafts in a row
_PRIOR = 8.0  # The measured agreement counts as much as so many drafts.
_BETTER = 1.03  # A set must be better than the best so far by this factor to replace it.
_KEPT = 4  # the most sets whose models are kept


class Layers:
    """A set of layers with its measured agreement and cost."""

    def __init__(self, skipped: tuple[int, ...], lm: TransformersLM, agreement: float, cost: float) -> None:
        self.skipped = skipped
        self.lm = lm
        self.cost: float = cost
        self._hits = _PRIOR * agreement
        self._places = _PRIOR

    @property
    def acceptance(self) -> float:
        """The share of places at which the first draft equals the target's token."""
        return self._hits / self._places

    def observe(self, accepted: bool) -> None:
        """Counts a draft that was accepted or refused."""
        self._hits = 0.98 * self._hits + accepted
        self._places = 0.98 * self._places + 1.0

    def measured(self, agreement: float, cost: float) -> None:
        """Takes in a measurement on another stretch of text. The measurement counts as much as a few
        drafts."""
        self._hits = 0.8 * self._hits + 0.2 * _PRIOR * agreement
        self._places = 0.8 * self._places + 0.2 * _PRIOR
        self.cost += 0.5 * (cost - self.cost)

    @property
    def worth(self) -> float:
        return tokens_per_cost(self.acceptance, self.cost)


def tokens_per_cost(acceptance: float, cost: float) -> float:
    """Returns the tokens per time of one forward pass of the target, with the best number of drafts in a
    row."""
    a, tokens, best = min(acceptance, 0.999), 1.0, 1.0
    for n in range(1, _MOST + 1):
        tokens += a**n
        best = max(best, tokens / (1.0 + n * cost))
    return best


class LayerChoice(ModelDrafter):
    """Drafts by some of the target's own layers, chosen by measured speed.

    Args:
        lm: the target.
        skipped: the layers that are left out at first; by default every second one of the middle.
        again: the number of emitted tokens between two comparisons with other sets.
        window: the number of recent tokens on which sets are compared.
        width: the number of children offered at each node.

    Attributes:
        layers: the current set of layers.
        looks, changes: the number of comparisons, and of comparisons that changed the set.

    Raises:
        LanguageModelError: the model's layers are not a list that can be shortened.
    """

    def __init__(
        self,
        lm: TransformersLM,
        skipped: Sequence[int] | None = None,
        *,
        again: int = 24,
        window: int = 64,
        width: int = 1,
        seed: int = 0,
    ) -> None:
        super().__init__(lm, width, "layer choice")
        self.again: int = whole("again", again, 1)
        self.window: int = whole("window", window, 2)
        if not hasattr(lm, "model"):
            raise LanguageModelError(
                f"a {type(lm).__name__} has no layers to skip: load the model with TransformersLM"
            )
        self.lm: TransformersLM = lm
        self.count: int = len(layers_of(lm.model))
        if self.count < 3:
            raise LanguageModelError(f"a model of {self.count} layers has none to skip")
        first = tuple(range(1, self.count - 1, 2)) if skipped is None else tuple(sorted(skipped))
        self._random = np.random.default_rng(seed)
        self._lock = threading.Lock()
        hold_over_forks(self)
        self._known: dict[tuple[int, ...], Layers] = {}
        self._fresh = 0
        self._pause = again
        self.looks: int = 0
        self.changes: int = 0
        self.layers: Layers = self._made(first, 0.5)

    def open(self, start: Start) -> _Session:
        return _Session(self, start)

    def learn(self, tokens: Sequence[int], count: int) -> None:
        """Takes in a text whose last `count` tokens are new. Compares other sets when it is time."""
        with self._lock:
            self._fresh += count
            if self._fresh < self._pause or len(tokens) < 2:
                return
            self._fresh = 0
            if self._look(list(tokens[-self.window :])):
                self._pause = self.again
            else:
                self._pause = min(8 * self.again, 2 * self._pause)

    def _look(self, text: list[int]) -> bool:
        """Compares the current layers with two other sets on a text. Returns True if one of these sets
        replaces the current layers."""
        self.looks += 1
        said, exits, seconds = self._target(text)
        self._measure(self.layers, text, said, seconds)
        worth = {s: tokens_per_cost(a, (self.count - len(s)) / self.count) for s, a in exits.items()}
        tried = [s for s in (max(worth, key=lambda s: worth[s], default=None), self._neighbour()) if s]
        best = self.layers
        for skipped in dict.fromkeys(tried):
            other = self._known.get(skipped) or self._made(skipped, self.layers.acceptance)
            self._measure(other, text, said, seconds)
            if other.worth > _BETTER * best.worth:
                best = other
        changed = best is not self.layers
        self.layers = best
        self.changes += changed
        for skipped in list(self._known):
            if len(self._known) > _KEPT and self._known[skipped] is not best:
                del self._known[skipped]
        return changed

    def _neighbour(self) -> tuple[int, ...] | None:
        """Returns the present layers with one more or one less, at random; at least one is left."""
        skipped = set(self.layers.skipped) ^ {int(self._random.integers(1, self.count))}
        return tuple(sorted(skipped)) if 0 < len(skipped) < self.count else None

    def _made(self, skipped: tuple[int, ...], agreement: float) -> Layers:
        share = (self.count - len(skipped)) / self.count
        found = self._known[skipped] = Layers(skipped, without_layers(self.lm, skipped), agreement, share)
        return found

    def _measure(self, layers: Layers, text: list[int], said: Any, seconds: float) -> None:
        own, spent, _ = self._said(layers.lm, text)
        layers.measured(float((own == said).float().mean()), min(1.0, spent / max(seconds, 1e-9)))

    def _target(self, text: list[int]) -> tuple[Any, dict[tuple[int, ...], float], float]:
        """Returns the target's most probable token at each place, how often each exit agrees, and its
        seconds."""
        said, seconds, states = self._said(self.lm, text)
        model = self.lm.model
        norm, head = getattr(model.base_model, "norm", None), model.get_output_embeddings()
        exits: dict[tuple[int, ...], float] = {}
        if norm is None or head is None or len(states) != self.count + 1:
            return said, exits, seconds
        import torch

        with torch.inference_mode(), self.lm.threads():
            for after in range(1, self.count):
                own = head(norm(states[after])).argmax(-1)
                exits[tuple(range(after, self.count))] = float((own == said).float().mean())
        return said, exits, seconds

    def _said(self, lm: TransformersLM, text: list[int]) -> tuple[Any, float, Any]:
        """Returns the most probable token behind each token of a text, the seconds, and for the target the
        states of its layers."""
        import torch

        ids = torch.tensor([text], device=lm.model.device)
        clock = time.perf_counter if self.waits else time.thread_time
        begin = clock()
        with torch.inference_mode(), lm.threads():
            found = lm.model(input_ids=ids, use_cache=False, output_hidden_states=lm is self.lm)
            said = found.logits.argmax(-1)
        if self.waits:
            said.cpu()
        return said, clock() - begin, found.hidden_states if lm is self.lm else ()


class _Session(Quiet):
    def __init__(self, drafter: LayerChoice, start: Start) -> None:
        self._drafter = drafter
        self._start = start
        self._text = list(start.prompt)
        self._layers = drafter.layers
        self._context: Context | None = None
        # The first predictions of this step's layers, by path.
        self.said: dict[tuple[int, ...], int] = {}

    def accept(self, step: Step) -> None:
        for i, token in enumerate(step.tokens):
            first = self.said.get(tuple(step.tokens[:i]))
            if first is not None:
                self._layers.observe(first == token)
        self.said.clear()
        self._text += step.tokens
        if self._context is not None:
            for token in step.tokens:
                self._context = self._context.extend(token)
        self._drafter.learn(self._text, len(step.tokens))

    def cursor(self) -> Cursor | None:
        if self._layers is not self._drafter.layers or self._context is None:
            self._layers = self._drafter.layers
            self._context = self._layers.lm.start(self._text)
        return _Cursor(self, ModelCursor(self, self._start, self._drafter.width, self._context), ())

    def row(self, place: Context) -> Vector | None:
        return row_of(self._layers.lm, place)

    def after(self, place: Context, token: int) -> Context | None:
        return place.extend(token)


class _Cursor:
    """A cursor that notes the first prediction at each place."""

    __slots__ = ("_inner", "_path", "_session")

    def __init__(self, session: _Session, inner: ModelCursor, path: tuple[int, ...]) -> None:
        self._session = session
        self._inner = inner
        self._path = path

    def children(self, here: Here) -> Sequence[tuple[int, float]]:
        found = self._inner.children(here)
        if found:
            self._session.said[self._path] = found[0][0]
        return found

    def distribution(self, here: Here) -> Any:
        return self._inner.distribution(here)

    def step(self, token: int) -> _Cursor | None:
        after = self._inner.step(token)
        return None if after is None else _Cursor(self._session, after, (*self._path, token))
