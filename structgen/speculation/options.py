"""The options of speculation: drafters and limits, and the stores that outlive one call.

Enters: `speculate=` of `sg.generate`. Leaves: a `Speculation`. Cost: nothing; "auto" keeps one object for
each model.
"""

from __future__ import annotations

import atexit
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, cast, get_args
from weakref import WeakKeyDictionary

from .._fork import renew_in_children
from . import drafters
from .base import Drafter
from .goodput import Bench, Calibration, CostTable

Rule = Literal["coupled", "single", "recursive", "k-seq", "beam"]


@dataclass
class Speculation:
    """The options of speculation. One object keeps what its drafters learn, so use it again for the next
    text.

    Attributes:
        drafters: the drafters that are asked. No drafter changes the law of the text, and with
            rule="coupled" none changes the text.
        nodes: the most drafts of one forward pass and row. Tokens without an alternative do not count.
        adaptive: choose the number of drafts by measured costs and acceptance, and bench drafters that do
            not pay. False always drafts `nodes`.
        lazy: verify by membership checks where that is exact, by masks elsewhere. False: always masks.
        eager: compute the masks of all nodes while the model runs. False: compute only the masks of visited
            nodes, after the model ran. None: True if the model runs on another device.
        prune: drop drafts that the grammar refuses. False is for comparisons.
        rule: how drafts are verified. "coupled": the target draws with its own noise, and the text is that of
            plain decoding under the same seed. The others sample drafts from a drafter's distribution and
            accept by comparing it with the target's; the *law* of the text is the same, the text is not:
            "single" (one draft a place), "recursive" (`branches` siblings without replacement), "k-seq"
            (`branches` independent ones), "beam" (whole texts without replacement, `branches` a level). They
            use the first drafter alone, which needs a distribution (`DraftModel`, `TokenIntersection`,
            `StringDraft`, `TrimmedHead`, `LogitNgrams`).
        branches: sibling drafts of the rules that sample; the width of "beam".
        depth: how many places ahead the sampling rules draft.
        restricted_head: if no log-probabilities are asked for and a mask allows at most this many tokens,
            compute only these rows of the model's head; 0: never. Drafters that learn from the model's
            distributions (`TokenRecycling`, `LogitNgrams`) then learn nothing.
        cost: seconds of a forward pass by width.
    """

    drafters: Sequence[Drafter]
    nodes: int = 32
    adaptive: bool = True
    lazy: bool = True
    eager: bool | None = None
    prune: bool = True
    rule: Rule = "coupled"
    branches: int = 2
    depth: int = 4
    restricted_head: int = 0
    cost: CostTable = field(default_factory=CostTable)
    calibration: Calibration = field(init=False)
    bench: Bench = field(init=False, default_factory=Bench)

    def __post_init__(self) -> None:
        if self.nodes < 0 or self.branches < 1 or self.depth < 1 or self.restricted_head < 0:
            raise ValueError("nodes and restricted_head must not be negative, branches and depth be positive")
        if self.rule not in get_args(Rule):
            raise ValueError(f"rule is one of {', '.join(get_args(Rule))}, not {self.rule!r}")
        for drafter in self.drafters:
            if not (hasattr(drafter, "open") and hasattr(drafter, "name")):
                raise TypeError(f"a drafter has `open` and `name`, unlike {type(drafter).__name__}")
        self.calibration = Calibration(len(self.drafters))


# Recipe, drafter 3: its short name.
# The drafters that need nothing but themselves, by name: the choices of the command line and of the server.
NAMED: dict[str, Callable[[], Drafter]] = {
    "grammar": drafters.Forced,
    "schema": drafters.SchemaOrder,
    "automaton": drafters.SuffixAutomatonDrafter,
    "tree": drafters.SuffixTreeDrafter,
    "recycling": drafters.TokenRecycling,
    "ngrams": drafters.LogitNgrams,
    "trigram": drafters.Trigram,
    "lookup": drafters.PromptLookup,
    "copy": drafters.SourceCopy,
    "lookahead": drafters.Lookahead,
    "window": drafters.LookaheadWindow,
}
_STANDARD = ("grammar", "schema", "automaton", "tree", "recycling")


def standard_drafters() -> list[Drafter]:
    """Returns the drafters that need no training and no second model. They copy from the grammar, the schema,
    this text, earlier texts and the target's own second choices."""
    return [NAMED[name]() for name in _STANDARD]


def named(
    names: str, *, files: bool = False, more: Mapping[str, Callable[[], Drafter]] | None = None
) -> Speculation:
    """Returns the drafters of a list of names, separated by commas; the name "auto" stands for the standard
    drafters.

    Args:
        files: whether `corpus=FILE` may name a file. Pass False where strangers choose the names.
        more: further names.

    Raises:
        ValueError: there is no such drafter.
        StructgenError: the file is damaged.
        OSError: there is no such file.
    """
    known = {**NAMED, **(more or {})}
    found: list[Drafter] = []
    for name in (name.strip() for name in names.split(",")):
        if name == "auto":
            found += standard_drafters()
        elif name in known:
            found.append(known[name]())
        elif files and name.startswith("corpus="):
            found.append(drafters.CorpusDrafter(name.removeprefix("corpus=")))
        else:
            listed = ", ".join([*known, *(["corpus=FILE"] if files else [])])
            raise ValueError(f"no drafter is called {name!r}: there are {listed}")
    return Speculation(found)


def resolve(speculate: Any, lm: Any, *, trees: bool = True) -> Speculation | None:
    """Returns the options that the argument `speculate=` means: None, "auto", a list of drafters or a
    `Speculation`.

    "auto" gives one `Speculation` per model, which lives as long as the model, so that its stores grow warm.
    The result is None if the model cannot take drafts back.

    Args:
        trees: True: the model itself scores trees of drafts. False: the model only gives vectors for
            prefixes.

    Raises:
        TypeError: `speculate` is something else.
        LanguageModelError: drafters were named, and the model cannot take drafts back.
    """
    from ..lm.base import LanguageModelError

    if speculate is None or isinstance(speculate, Speculation):
        return speculate
    if speculate == "auto":
        if trees and hasattr(lm, "check_tree_scoring"):
            try:
                lm.check_tree_scoring()
            except LanguageModelError:
                return None
        return _kept(lm)
    if isinstance(speculate, str) or not isinstance(speculate, Sequence):
        raise TypeError(f"speculate is None, 'auto', a list of drafters or a Speculation, not {speculate!r}")
    if trees and hasattr(lm, "check_tree_scoring"):
        lm.check_tree_scoring()
    return Speculation(cast("Sequence[Drafter]", speculate))


_lock = threading.Lock()
renew_in_children(sys.modules[__name__])
_automatic: WeakKeyDictionary[Any, Speculation] = WeakKeyDictionary()
atexit.register(_automatic.clear)


def _kept(lm: Any) -> Speculation:
    with _lock:
        try:
            found = _automatic.get(lm)
            if found is None:
                found = _automatic[lm] = Speculation(standard_drafters())
        except TypeError:  # the model cannot be a key of a weak dictionary
            found = Speculation(standard_drafters())
    return found
