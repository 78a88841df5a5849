"""The protocol of a drafter: what it may know, what it proposes, what it is told.

Enters: the start of a text, then what was emitted. Leaves: cursors, which offer tokens with probabilities.
Cost: a drafter's own; the engine measures it and benches a drafter that costs more than it brings.

Nothing here can change what is generated. The token of each place is drawn from the target model, whatever a
drafter offers. A draft only decides whether the next forward is needed. A drafter may therefore be wrong,
stale or random; it must be fast, bounded in memory, and may know the past only.
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

# Tokens of a `Likely` context, and tokens that are reported of each distribution.
CONTEXT = 8
LIKELY = 8


@dataclass(frozen=True, slots=True)
class Start:
    """The facts about one text before its first token.

    Attributes:
        prompt: the target's ids of the prompt, at least one.
        vocabulary: the vocabulary of the target.
        grammar: None where the text is free.
        temperature: the temperature of the draws; 0 is greedy.
        noise: the noise of the target's draws, None for greedy. A drafter that has probabilities of its own
            adds it to them: what it then prefers is what the target will probably draw.
        compile: compiles the same constraint for the vocabulary of another compiler; None where it is not
            known how the grammar came about.
        text: the prompt as text, where it was given so.
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
    """Where a cursor stands while the tree is built.

    Attributes:
        matcher: at this node; to be looked at, never moved. None for free text.
        position: the number of answer tokens before this place, drafts included.
    """

    matcher: Matcher | None
    position: int


@dataclass(slots=True)
class Likely:
    """The tokens that the target found likely at n scored places: refused drafts first, then the text in its
    order.

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
    """What one forward brought.

    Attributes:
        tokens: the emitted tokens, at least one.
        look: computes `likely`; called only where somebody asks.
        probes: for each node that was scored for this drafter alone, the most probable token after it.
    """

    tokens: Sequence[int]
    look: Callable[[], Likely | None] | None = None
    probes: Sequence[int] = ()

    @property
    def likely(self) -> Likely | None:
        """What the target found likely.

        None if only the allowed rows of the head were computed, and for a step that is told late.
        """
        return None if self.look is None else self.look()


class Cursor(Protocol):
    """A drafter's place in the tree."""

    def children(self, here: Here) -> Sequence[tuple[int, float]]:
        """Tokens that may follow, and for each a probability that it does; best first, few."""
        ...

    def step(self, token: int) -> Cursor | None:
        """The place after a token, offered or not; None: the drafter knows nothing there."""
        ...


class Session(Protocol):
    """A drafter on one text."""

    def cursor(self) -> Cursor | None:
        """At the end of the text so far; None: nothing to offer."""
        ...

    def probes(self) -> Sequence[int]:
        """Tokens to score behind the text for the drafter's own use, mostly none.

        They are a chain. A session that has a method `probe_parents` makes them a tree: it gives for each the
        number of the one before it in the text, which comes earlier in the list, or -1 for the text itself.
        """
        ...

    def accept(self, step: Step) -> None:
        """The text grew."""
        ...

    def close(self) -> None:
        """The text is finished; stores that outlive it take what they want."""
        ...


# Recipe, drafter 1: the protocol of a file of its own in drafters/.
class Drafter(Protocol):
    """Proposes tokens. One object serves many texts, also at the same time.

    A drafter that waits for another device or a server has an attribute `waits` that is True. Its cost is
    then measured in wall-clock time. A drafter that copies or computes tokens sets
    `has_distribution = False`, because its cursors have no `distribution`. Rules that sample drafts refuse
    such a drafter. One cursor would not show this, because some drafters offer nothing in most places.
    """

    @property
    def name(self) -> str:
        """For statistics."""
        ...

    def open(self, start: Start) -> Session:
        """Begin a text."""
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
    """A field of `DrafterSettings` with other bounds."""
    found: int = field(default=default, metadata={"bounds": (least, most)})
    return found


class Quiet:
    """The defaults of a session: methods that do nothing."""

    def probes(self) -> Sequence[int]:
        return ()

    def close(self) -> None:
        pass
