"""The arguments of `sg.sample`: names, types, defaults and checks.

Enters: keyword arguments. Leaves: a frozen `Request`, or a `TargetRequest`, its part that defines a law.
Cost: nothing.

Type checkers read `TargetOptions` and `SampleOptions`; the program uses `TargetRequest` and `Request`. A test
compares their names and types.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, ClassVar, Literal, get_args

from .._checks import no_option, number, one_of, whole
from ..constraints import NAMED, Constraint, constraint_of
from ..json_options import SampledOptions
from ..kinds import Strictness
from ..lm.asked import Asked, AskOptions, ask
from ..lm.load import language_model, room_after
from ..lm.prompts import Format
from ..reasoning import Reasoning
from .drafting import Guess, check_guess
from .mcmc import Proposal
from .potential import Potential, as_potential
from .smc import SmcOptions
from .target import Law, Target
from .trie import Trie
from .walk import Walker

if TYPE_CHECKING:
    from ..compiler import Compiler
    from ..conditions import Condition
    from ..speculation.base import Drafter
    from ..speculation.options import Speculation
    from .methods import Method


class TargetOptions(AskOptions, total=False):
    """The options that define a law and its trie; `sg.sample` explains each."""

    regex: Any
    choice: Any
    gbnf: Any
    lark: Any
    grammar: Any
    tools: Any
    tool_choice: Any
    tool_style: str | None
    parallel_tool_calls: bool | None
    tool_strictness: Strictness | None
    response_format: Any
    max_tokens: int
    temperature: float
    top_k: int | None
    top_p: float | None
    budget: Literal["mask", "reject"]
    potential: Potential | Sequence[Potential] | Any
    trie: Trie | None
    trie_bytes: int
    batch: int


class SampleOptions(TargetOptions, total=False):
    """The options of a law, and those of its draws."""

    method: Method
    n: int
    seed: int | None
    extra: int | None
    until_tv: float | None
    max_trials: int | None
    steps: int
    proposal: Proposal
    smc_options: SmcOptions | None
    check: float
    guess: Guess | Literal["auto"] | Sequence[Drafter] | Speculation | None


@dataclass(frozen=True, kw_only=True)
class TargetRequest(SampledOptions):
    """A model, a prompt, and the law of the texts."""

    model: Any
    prompt: Any
    schema: Any = None
    regex: Any = None
    choice: Any = None
    gbnf: Any = None
    lark: Any = None
    grammar: Any = None
    tools: Any = None
    tool_choice: Any = None
    tool_style: str | None = None
    parallel_tool_calls: bool | None = None
    tool_strictness: Strictness | None = None
    response_format: Any = None
    condition: Condition | None = None
    max_tokens: int = 256
    temperature: float = 1.0
    top_k: int | None = None
    top_p: float | None = None
    budget: Literal["mask", "reject"] = "mask"
    potential: Potential | Sequence[Potential] | Any = None
    trie: Trie | None = None
    trie_bytes: int = 256 << 20
    batch: int = 16
    compiler: Compiler | None = None
    format: Format = "auto"
    reasoning: Reasoning | str | bool | None = None
    answer_tokens: int = 0
    thin: ClassVar[bool] = False  # searches need more than the best tokens, so their vectors are whole

    def __post_init__(self) -> None:
        for name in ("max_tokens", "batch", "trie_bytes"):
            whole(name, getattr(self, name), 1)
        whole("answer_tokens", self.answer_tokens, 0)
        one_of("budget", self.budget, ("mask", "reject"))
        if self.trie is not None and not isinstance(self.trie, Trie):
            raise TypeError(f"trie is a Trie that an earlier call gave, not {self.trie!r:.60}")
        Law(self.temperature, self.top_k, self.top_p)  # The constructor checks the values.

    def constraint(self) -> Constraint | None:
        return constraint_of({name: getattr(self, name) for name in NAMED})

    def target(self) -> tuple[Target, Asked]:
        """Returns the law, and the prompt and grammar in their prepared forms. Errors: those of
        `sg.generate`."""
        lm = language_model(self.model)
        asked = ask(
            lm,
            self.prompt,
            self.constraint(),
            self.arguments(),
            self.compiler,
            self.format,
            reasoning=self.reasoning,
            max_tokens=self.max_tokens,
            answer_tokens=self.answer_tokens,
        )
        target = Target.of(
            lm,
            asked.start,
            asked.grammar,
            as_potential(self.potential),
            max_tokens=room_after(lm, asked.start, self.max_tokens),
            law=Law(self.temperature, self.top_k, self.top_p),
            budget=self.budget,
            thin=self.thin,
        )
        return target, asked

    def walker(self, target: Target) -> Walker:
        """Returns a walker over the request's trie, or over a new one. Raises a StructgenError if the trie
        has another target."""
        walker = Walker(target, Trie(self.trie_bytes) if self.trie is None else self.trie, self.batch)
        walker.claim()
        return walker


@dataclass(frozen=True, kw_only=True)
class Request(TargetRequest):
    """A law and the options of its draws."""

    method: Method = "auto"
    n: int = 1
    seed: int | None = None
    extra: int | None = 1
    until_tv: float | None = None
    max_trials: int | None = None
    steps: int = 10
    proposal: Proposal = "restart"
    smc_options: SmcOptions | None = None
    check: float = 0.0
    guess: Guess | Literal["auto"] | Sequence[Drafter] | Speculation | None = None
    thin: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        whole("n", self.n, 1)
        if self.seed is not None:
            whole("seed", self.seed, 0)
        if self.extra is not None:
            whole("extra", self.extra, 1)
        if self.max_trials is not None:
            whole("max_trials", self.max_trials, 1)
        whole("steps", self.steps, 0)
        if self.until_tv is not None:
            number("until_tv", self.until_tv, "between 0 and 1", lambda x: 0 < x < 1)
        check_guess(self.guess)
        number("check", self.check, "a share from 0 to 1", lambda x: 0 <= x <= 1)
        one_of("proposal", self.proposal, get_args(Proposal))
        if self.smc_options is not None and not isinstance(self.smc_options, SmcOptions):
            raise TypeError(f"smc_options is an SmcOptions, not {self.smc_options!r:.60}")

    @property
    def trials(self) -> int:
        """The most trials of CARS."""
        return max(1000, 100 * self.n) if self.max_trials is None else self.max_trials


def checked(kind: type[TargetRequest], given: Mapping[str, Any]) -> Mapping[str, Any]:
    """Returns the arguments, unchanged. Raises a TypeError if no option has that name; the error shows the
    nearest name."""
    names = [field.name for field in fields(kind)]
    for name in given:
        if name not in names:
            raise no_option(name, names)
    return given
