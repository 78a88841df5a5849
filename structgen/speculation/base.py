"""The protocol of a drafter: the facts that it gets, and the tokens that it proposes.

Enters: the start of a text, then the emitted tokens. Leaves: cursors, which offer tokens with probabilities.
Cost: it depends on the drafter. The engine measures the cost, and pauses a drafter that costs more time than
it saves.

A drafter cannot change the generated text. The token of each place is drawn from the target model, whatever a
drafter offers. A draft decides only whether the next forward is needed. So a drafter may be wrong, stale or
random. A drafter must be fast and bounded in memory, and may use only the past.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import numpy.typing as npt

from .._checks import whole

if TYPE_CHECKING:
    from .._draws import Noise
    from ..grammar import CompiledGrammar
    from ..matcher import Matcher
    from ..vocabulary import Vocabulary

Vector = npt.NDArray[np.float32]

# The most tokens of a context in `Likely`, and the number of tokens reported of each distribution.
CONTEXT = 8
LIKELY = 8


@dataclass(frozen=True, slots=True)
class Start:
    """The facts about one text before its first token.

    Attributes:
        prompt: the target's ids of the prompt, at least one.
        vocabulary: the vocabulary of the target.
        grammar: the grammar of the text; None for free text.
        temperature: the temperature of the draws; 0 is greedy.
        noise: the noise of the target's draws; None for greedy draws. A drafter with probabilities adds the
            noise to their logarithms. The token with the largest sum is probably the one that the target
            draws.
        compile: compiles the same constraint for another compiler's vocabulary; None if the source of the
            grammar is not known.
        text: the prompt as text; None if it was given as ids.
    """

    prompt: Sequence[int]
    vocabulary: Vocabulary
    grammar: CompiledGrammar | None
    temperature: float
    noise: Noise | None
    compile: Callable[[Any], CompiledGrammar] | None = None
    text: str | None = None


@dataclass(slots=True)
class Here:
    """The place of a cursor while the tree is built.

    Attributes:
        matcher: the matcher at this node, which the drafter must not move; None for free text.
        position: the number of answer tokens before this place, drafts included.
    """

    matcher: Matcher | None
    position: int


@dataclass(slots=True)
class Likely:
    """The target's most probable tokens at n scored places. Places of refused drafts come first, then the
    places of the text in order.

    Attributes:
        contexts: for each place the last tokens before it, at most `CONTEXT`, prompt included.
        ids: the most probable tokens, shape (n, at most `LIKELY`), best first.
        logprobs: their natural-log probabilities, float32, of the same shape.
    """

    contexts: Sequence[tuple[int, ...]]
    ids: npt.NDArray[np.int64]
    logprobs: npt.NDArray[np.float32]


@dataclass(slots=True)
class Step:
    """The result of one forward.

    Attributes:
        tokens: the emitted tokens, at least one.
        look: computes `likely`; it is called only if a drafter reads `likely`.
        probes: for each node that was scored for this drafter alone, the most probable token after it.
    """

    tokens: Sequence[int]
    look: Callable[[], Likely | None] | None = None
    probes: Sequence[int] = ()

    @property
    def likely(self) -> Likely | None:
        """The target's most probable tokens.

        None if only the allowed rows of the head were computed, or if the step is reported late.
        """
        return None if self.look is None else self.look()


class Cursor(Protocol):
    """A drafter's place in the tree."""

    def children(self, here: Here) -> Sequence[tuple[int, float]]:
        """Returns a few tokens that may follow, each with its probability; best first."""
        ...

    def step(self, token: int) -> Cursor | None:
        """Returns the place after a token, even after one that was not offered; None if the drafter has no
        drafts there."""
        ...


class Session(Protocol):
    """A drafter on one text."""

    def cursor(self) -> Cursor | None:
        """Returns a cursor at the end of the text so far; None if the drafter has no drafts."""
        ...

    def probes(self) -> Sequence[int]:
        """Returns tokens to score behind the text for the drafter's own use. Most drafters have none.

        The tokens are a chain. A session with a method `probe_parents` makes a tree of them: the method gives
        for each token the index of the token before it in the text, or -1 for the text itself. A parent comes
        earlier in the list.
        """
        ...

    def accept(self, step: Step) -> None:
        """Tells the session the tokens by which the text grew."""
        ...

    def close(self) -> None:
        """Ends the session, because the text is finished. Stores may keep data for later texts."""
        ...


# Recipe, drafter 1: the protocol of a file of its own in drafters/.
class Drafter(Protocol):
    """Proposes tokens. One object serves many texts, also at the same time.

    A drafter that waits for another device or a server has an attribute `waits` that is True. Its cost is
    then measured in wall-clock time. A drafter that copies or computes tokens sets
    `has_distribution = False`, because its cursors have no `distribution`. Rules that sample drafts refuse
    such a drafter. The attribute is needed because one cursor does not show whether its drafter has
    distributions: some drafters offer nothing in most places.
    """

    @property
    def name(self) -> str:
        """The drafter's name in statistics."""
        ...

    def open(self, start: Start) -> Session:
        """Begins a session for a new text."""
        ...


@dataclass(eq=False)
class DrafterSettings:
    """The base of drafters whose fields are their settings.

    A number is whole and at least 1, unless `bounded` says otherwise.
    """

    def __post_init__(self) -> None:
        for one in fields(self):
            if isinstance(one.default, int) and not isinstance(one.default, bool):
                least, most = one.metadata.get("bounds", (1, None))
                whole(one.name, getattr(self, one.name), least, most)


def bounded(default: int, least: int, most: int | None = None) -> int:
    """Returns a field of `DrafterSettings` with other bounds."""
    found: int = field(default=default, metadata={"bounds": (least, most)})
    return found


class Quiet:
    """The base of sessions. Its methods do nothing."""

    def probes(self) -> Sequence[int]:
        return ()

    def close(self) -> None:
        pass
