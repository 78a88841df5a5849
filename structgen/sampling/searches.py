"""`sg.search`: finds the best texts of a language by the caller's scores, within the caller's limits.

Enters: a model, a prompt, a grammar or schema, scores, limits. Leaves: `Searched`: texts, best first, the
tree, and why the search stopped. The search can be continued, and saved in a file. Cost: the limits; a known
prefix costs no forward. The texts follow no law.

All methods run one engine (`best_first.py`) with different settings. Each method is a row of `SEARCHES`:

- "best": the most probable text first. With enough forwards the result is exact; `certified` says so for each
  text.
- "a*": the same with the caller's g or h. A*-decoding (Chatziveroglou 2025, arXiv 2505.13672) samples pieces
  and ranks them by a process reward: `score=` and `block=`.
- "mcts": tree search with the reward of whole texts. Planning-guided decoding does this with the tests of a
  program (Zhang et al. 2023, "Planning with Large Language Models for Code Generation").
- "value": the caller's value ranks unfinished texts, and siblings are tried where the model is unsure
  (value-guided search, Wang et al. 2025; the places are chosen by entropy here).
- "adaptive": greedy; where the entropy is high, a few tokens are compared by their continuations (AdaDec, He
  et al. 2025, arXiv 2506.08980; its threshold is learned for a model, ours is an argument).
"""

from __future__ import annotations

import dataclasses
import math
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, overload

from .._checks import function, number, one_of, whole
from .._readable import table_html
from ..errors import StructgenError
from ..lm.asked import Asked
from .best_first import BestFirst, Partial, Scores, SearchLimits, SearchPlan, Standing, Written
from .request import TargetOptions, TargetRequest, checked
from .results import parts_of
from .search_file import check_model, load_search, other_parts, probes, save_search
from .search_tree import SearchTree
from .trie import Trie

if TYPE_CHECKING:
    from typing import Unpack

_LOOKED_AT = 1000  # the most places whose masks are compared to tell whether max_tokens forbade a token

SearchMethod = Literal["best", "a*", "mcts", "value", "adaptive"]


@dataclass(frozen=True, slots=True)
class _Way:
    """A method: the engine's settings, and the scores of which the call must give at least one."""

    plan: SearchPlan
    needs: tuple[str, ...] = ()


SEARCHES: dict[str, _Way] = {
    "best": _Way(SearchPlan()),
    "a*": _Way(SearchPlan(), ("heuristic", "score")),
    "mcts": _Way(SearchPlan(select="descent", branch=4), ("reward",)),
    "value": _Way(SearchPlan(branch=4, decisive=1.0), ("score", "heuristic")),
    "adaptive": _Way(SearchPlan(commit=True, branch=3, decisive=1.0, lookahead=5)),
}


class SearchOptions(TargetOptions, total=False):
    """The options of `search` beside those of a target."""

    method: SearchMethod
    n: int
    seed: int
    score: Callable[[Partial], float] | None
    heuristic: Callable[[Partial], float] | None
    reward: Callable[[Partial], float] | None
    enough: float | None
    steps: int | None
    tokens: int | None
    forwards: int | None
    seconds: float | None
    progress: Callable[[Standing], Any] | None
    resume: Searched | str | os.PathLike[str] | None
    branch: int | None
    siblings: bool
    decisive: float
    lookahead: int
    block: Sequence[str]
    span: int
    commit: bool
    explore: float
    backup: Literal["max", "mean"]
    rollout: Literal["greedy", "sample"]


@dataclass(frozen=True, kw_only=True)
class SearchRequest(TargetRequest):
    """A target and the options of its search. Values in `plan` replace the method's settings."""

    batch: int = 1
    method: SearchMethod = "best"
    n: int = 1
    seed: int = 0
    score: Callable[[Partial], float] | None = None
    heuristic: Callable[[Partial], float] | None = None
    reward: Callable[[Partial], float] | None = None
    enough: float | None = None
    steps: int | None = None
    tokens: int | None = None
    forwards: int | None = 1000
    seconds: float | None = None
    progress: Callable[[Standing], Any] | None = None
    resume: Searched | str | os.PathLike[str] | None = None
    plan: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        super().__post_init__()
        whole("n", self.n, 1)
        whole("seed", self.seed, 0)
        one_of("method", self.method, tuple(SEARCHES))
        way = SEARCHES[self.method]
        for name in ("score", "heuristic", "reward"):
            if getattr(self, name) is not None:
                function(f"{name}=", getattr(self, name), "a Partial")
        if self.progress is not None:
            function("progress=", self.progress, "a Standing")
        if self.resume is not None and not isinstance(self.resume, (Searched, str, os.PathLike)):
            raise TypeError(f"resume is what a search gave, or the path of its file, not {self.resume!r:.60}")
        if self.enough is not None:
            number("enough", self.enough, "a number", lambda x: not math.isnan(x))
        if way.needs and all(getattr(self, name) is None for name in way.needs):
            raise ValueError(f"method {self.method!r} needs {' or '.join(f'{name}=' for name in way.needs)}")

        _ = self.limits, self.settings  # Both properties check their values when they are computed.

    @property
    def limits(self) -> SearchLimits:
        return SearchLimits(self.steps, self.tokens, self.forwards, self.seconds)

    @property
    def settings(self) -> SearchPlan:
        return dataclasses.replace(SEARCHES[self.method].plan, **self.plan)


@dataclass(frozen=True, slots=True)
class Candidate:
    """One text that was found.

    Attributes:
        text, value, tokens, reasoning: as of `sg.sample`.
        logprob: natural log of P(text): the model after temperature, top-k and top-p, without the grammar.
        score: the text's rank.
        certified: whether no other text of the language ranks higher, unless it was found. With a `heuristic`
            this holds only if the heuristic is never too low and never above 0.
    """

    text: str
    value: Any
    tokens: list[int]
    logprob: float
    score: float
    certified: bool
    reasoning: str | None = None


class Searched(Sequence[Candidate]):
    """Texts, best first, and the state of the search.

    Attributes:
        stopped: "done" (n texts left the frontier, or one is good enough), "exhausted" (nothing is left to
            open), "steps", "tokens", "forwards", "seconds", or "progress".
        steps, tokens, forwards, seconds: spent since the search began. Tokens of the tree, of looks ahead and
            of completions count.
        bound: a bound on the ranks of all texts not found yet; inf: no bound is known.
        law: "search": no distribution.
        reasons: sentences about `max_tokens`: that it left fewer texts than `n`, and decisions about it.
        trie: the trie, for another call with the same target.
        tree: the opened places; print it, or `tree.save("tree.html")`.
    """

    law = "search"

    def __init__(self, engine: BestFirst, asked: Asked, n: int, stopped: str, request: SearchRequest) -> None:
        self._engine, self._asked, self._request = engine, asked, request
        self.n = n
        self.stopped = stopped
        self.steps: int = engine.steps
        self.tokens: int = engine.tokens
        self.forwards: int = engine.forwards
        self.seconds: float = engine.seconds
        self.bound: float = engine.bound
        self._found = [self._candidate(text) for text in engine.found(n)]
        self.reasons: list[str] = _reasons(engine, stopped, len(self._found) < n)

    def _candidate(self, text: Written) -> Candidate:
        thoughts, spelled = parts_of(text.tokens, self._engine.walker.target, self._asked)
        sure = self._engine.ordered and text.rank >= self.bound
        value = self._asked.read(spelled)
        return Candidate(spelled, value, list(text.tokens), text.logprob, text.rank, sure, thoughts)

    def __len__(self) -> int:
        return len(self._found)

    @overload
    def __getitem__(self, index: int) -> Candidate: ...

    @overload
    def __getitem__(self, index: slice) -> list[Candidate]: ...

    def __getitem__(self, index: int | slice) -> Candidate | list[Candidate]:
        return self._found[index]

    def __iter__(self) -> Iterator[Candidate]:
        return iter(self._found)

    @property
    def trie(self) -> Trie:
        return self._engine.walker.trie

    @property
    def tree(self) -> SearchTree:
        target = self._engine.walker.target
        return SearchTree(self._engine.root, target.vocabulary, target.end, self._engine.plan.select)

    def resume(
        self,
        *,
        n: int | None = None,
        steps: int | None = None,
        tokens: int | None = None,
        forwards: int | None = 1000,
        seconds: float | None = None,
    ) -> Searched:
        """Continues the search with new limits. The new result takes over the search of this one.

        Args:
            n: the number of texts in all; by default as before.
        """
        limits = SearchLimits(steps, tokens, forwards, seconds)
        wanted = self.n if n is None else n
        whole("n", wanted, 1)
        asked = self._request
        stopped = self._engine.run(limits, wanted, asked.enough, asked.progress)
        return Searched(self._engine, self._asked, wanted, stopped, asked)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the search to a file, for `sg.search(..., resume=path)` with the same arguments.

        The file has no vectors. If a later run needs a prefix of this search again, its vector is computed
        again, but the forward is not counted. So a later run spends its counted forwards on new prefixes.
        `sampling.save_trie(found.trie, file)` keeps vectors, and `trie=` takes them.
        """
        save_search(self._engine, path)

    def __repr__(self) -> str:
        texts = ", ".join(f"{c.text!r:.40}: {c.score:.3g}" for c in self._found[:3])
        more = ", ..." if len(self._found) > 3 else ""
        return f"Searched({len(self)} texts, stopped by {self.stopped!r}, {{{texts}{more}}})"

    def _repr_html_(self) -> str:
        rows = {c.text: f"{c.score:.4g}{' (certified)' if c.certified else ''}" for c in self._found[:20]}
        about = f"Searched: {len(self)} texts, {self.forwards} forwards, stopped by {self.stopped}"
        return table_html(about, "", rows) + self.tree.picture()


def search(model: Any, prompt: Any, schema: Any = None, **options: Unpack[SearchOptions]) -> Searched:
    """Searches for the best texts of the language.

    Args:
        model, prompt, schema and the other parts of a target: as in `sg.sample`. `batch` is the number of
            vectors in one forward; above 1 some vectors are not needed, and no result changes.
        method: "best", "a*", "mcts", "value" or "adaptive"; see `structgen.sampling.searches`.
        n: the number of texts. If a limit ends the search, the best n of the texts found come.
        seed: the seed of draws (`block`, and `rollout="sample"`); the rest is deterministic.
        score: g of an unfinished text, from a `Partial` (text, tokens, logprob, ended); by default its
            log-probability, potentials included.
        heuristic: h, an estimate of the rest; by default 0.
        reward: the rank of a whole text; by default its g. For "mcts" between 0 and 1.
        enough: stop with the first text that ranks this high.
        steps, tokens, forwards, seconds: limits; None: no limit. Only `seconds` can be exceeded, by one
            forward. A step that does not fit is not made, so the tokens of a search may stay below their
            limit; all forwards are used.
        progress: a function, called with a `Standing` after each step; False ends the search.
        resume: an earlier result, or a file that `Searched.save` wrote. Target, method, seed and model must
            be the same; two forwards, which are not counted, check that the model is the same. Forwards that
            the file has counted are not counted again. Score functions cannot be compared: pass the same
            ones.
        branch, siblings, decisive, lookahead, block, span, commit, explore, backup, rollout: settings of the
            engine in place of the method's own; `structgen.sampling.SearchPlan` says what each means.

    Raises:
        ValueError, TypeError: arguments make no sense, or a score is no number.
        StructgenError: the file is damaged, or its search has another model, prompt, vocabulary, grammar or
            other settings; the error names them. Other errors are those of `sg.sample`.
    """
    given: dict[str, Any] = dict(options)
    names = [f.name for f in dataclasses.fields(SearchPlan) if f.name != "select"]
    plan = {name: given.pop(name) for name in names if name in given}
    if "block" in plan:
        ends = plan["block"]
        if not isinstance(ends, (str, list, tuple)):
            raise TypeError(f"block is a list of texts that close a piece, not {ends!r:.60}")
        plan["block"] = (ends,) if isinstance(ends, str) else tuple(ends)
    known = {"model": model, "prompt": prompt, "schema": schema, **given}
    asked = SearchRequest(**checked(SearchRequest, known), plan=plan)
    settings = asked.settings
    if isinstance(asked.resume, Searched):
        engine, read = asked.resume._engine, asked.resume._asked
        if (engine.plan, engine.seeds.seed) != (settings, asked.seed):
            raise StructgenError("the search to go on with has other settings or another seed")
        target, _ = asked.target()
        differs = other_parts(engine.walker.target.parts(), target.parts())
        if differs:
            raise StructgenError(f"the search to go on with has another {' and another '.join(differs)}")
        if target.lm is not engine.walker.target.lm:
            check_model(target, probes(engine))
    else:
        target, read = asked.target()
        scores = Scores(asked.score, asked.heuristic, asked.reward)
        engine = BestFirst(asked.walker(target), settings, scores, asked.seed)
        if asked.resume is not None:
            load_search(engine, asked.resume)
    stopped = engine.run(asked.limits, asked.n, asked.enough, asked.progress)
    return Searched(engine, read, asked.n, stopped, asked)


def _reasons(engine: BestFirst, stopped: str, missing: bool) -> list[str]:
    """Sentences for the user about a search that found too few texts."""
    target = engine.walker.target
    found = [target.remark] if target.remark else []
    if stopped == "exhausted" and missing and not target.remark:
        paths = [place.path for place in engine.places if place.opened][:_LOOKED_AT]
        if target.leaves_out_longer(paths):
            found.append(
                f"max_tokens={target.max_tokens} leaves out longer texts of the grammar: a larger one may "
                "find more"
            )
    return found
