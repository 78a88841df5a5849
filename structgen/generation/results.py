"""The results of `sg.generate`.

Enters: a finished sequence. Leaves: `Result`. Cost: decoding and parsing the text once.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Generic, Literal, TypeVar

from .._drawing import Drawing
from .._readable import table_html
from ..errors import StructgenError
from .confidence import FieldProbability

if TYPE_CHECKING:
    from ..matcher import Capture
    from ..speculation import Statistics

_SHOWN = 80  # the most characters of a text in a repr

T_co = TypeVar("T_co", covariant=True)


@dataclass(frozen=True, slots=True)
class TokenLogprobs:
    """The most probable tokens of one place, best first, each with its natural-log probability.

    Attributes:
        before: the tokens by the model alone.
        after: among the tokens that the grammar allows there, where the probabilities sum to 1; `before`
            itself without a grammar.
        logprob: the log-probability of the drawn token among the allowed ones.
        mass: natural log of the probability that the model gives all allowed tokens together.
    """

    before: list[tuple[int, float]]
    after: list[tuple[int, float]]
    logprob: float
    mass: float


@dataclass(frozen=True, slots=True)
class Result(Generic[T_co]):
    """One generated text.

    Attributes:
        text: the answer, without end-of-sequence tokens and stop strings; bytes that are no UTF-8 become
            U+FFFD.
        value: the constraint's reading of the text: parsed JSON, the Python type, a `ToolReply`; the text
            itself without a constraint and for patterns. None: the text was cut off.
        tokens: the ids drawn, end-of-sequence included.
        logprobs: the model's natural-log probability of each token, before mask and temperature.
        finish_reason: "stop" after an end-of-sequence token or a stop string, "length" when the tokens ran
            out.
        budget_bound: whether `max_tokens` forbade a token on the way that the grammar allows, so that the
            text could still end in time. The text may then be shorter than without the limit. If this is
            False and the text stopped, any larger `max_tokens` gives the same text.
        stopped_by: the stop string that ended the text.
        captures: the named parts of the text, for grammars and patterns that have names.
        top_logprobs: the most probable tokens of each place, where `top_logprobs=` asked for them.
        field_probabilities: the probability of each leaf's value, given the text in front of it, where
            `confidence=` asked for it.
        attempts: the number of draws for this text; above 1 if `retries=` drew again.
        warnings: sentences about keywords that surely do not mean what they say (`SchemaWarning`), and about
            a request that is probably beyond the embedded model (`DoubtfulAnswer`). All are Python warnings,
            too.
        reasoning: the thoughts in front of the answer, without their marks; None: there are none.
        reasoning_tokens: tokens up to the border: those of the thoughts and their marks.
        ok: True; a `Failed` of `generate_many` has False.
        prompt_tokens: ids of the prompt.
        timings: seconds of the whole call, shared by its n results: "load", "compile", "prompt" (the first
            forward), "forward" (the others), "mask", "sample", "total"; speculating, the
            parts of `Statistics.seconds` instead.
        sampling: how the tokens were drawn.
        speculation: what speculative decoding did, all n results together; None without it.
    """

    text: str
    value: T_co
    tokens: list[int]
    logprobs: list[float]
    finish_reason: Literal["stop", "length"]
    prompt_tokens: int
    timings: dict[str, float]
    sampling: Drawing
    speculation: Statistics | None = None
    budget_bound: bool = False
    stopped_by: str | None = None
    captures: dict[str, list[Capture]] = field(default_factory=dict)
    top_logprobs: list[TokenLogprobs] = field(default_factory=list)
    field_probabilities: list[FieldProbability] = field(default_factory=list, kw_only=True)
    attempts: int = 1
    warnings: list[str] = field(default_factory=list)
    reasoning: str | None = None
    reasoning_tokens: int = 0
    # lets type checkers tell a `Result` from a `Failed`
    ok: Literal[True] = field(default=True, init=False, repr=False)

    def __repr__(self) -> str:
        value = "" if self.value is self.text or self.value == self.text else f"value={self.value!r}, "
        more = f", stopped_by={self.stopped_by!r}" if self.stopped_by is not None else ""
        more += f", attempts={self.attempts}" if self.attempts > 1 else ""
        more += f", reasoning={_short(self.reasoning)!r}" if self.reasoning is not None else ""
        return (
            f"Result({value}text={_short(self.text)!r}, finish_reason={self.finish_reason!r}, "
            f"{len(self.tokens)} tokens, {self.timings.get('total', 0.0):.2f} s{more})"
        )

    def _repr_html_(self) -> str:
        rows = {
            "value": repr(self.value),
            "finish reason": self.finish_reason,
            "tokens": f"{len(self.tokens)} after {self.prompt_tokens} of the prompt",
            "seconds": f"{self.timings.get('total', 0.0):.2f}",
        }
        return table_html("Result", self.text, rows)


def _short(text: str) -> str:
    return text if len(text) <= _SHOWN else text[: _SHOWN - 3] + "..."


class InvalidValue(StructgenError, ValueError):
    """A text of the grammar whose value a validator of its Python type refuses.

    Attributes:
        text: the text. error: what the validator raised. attempts: the texts that were drawn, with their
            errors; the last one is this.
    """

    def __init__(self, text: str, error: Exception, attempts: list[tuple[str, Exception]]) -> None:
        self.text = text
        self.error = error
        self.attempts = attempts
        tried = f" after {len(attempts)} attempts" if len(attempts) > 1 else ""
        hint = "" if len(attempts) > 1 else "; retries=3 tries again"
        what = " ".join(line.strip() for line in str(error).splitlines() if "errors.pydantic.dev" not in line)
        if not isinstance(error, ValueError):  # only a ValueError has a message about the value
            what = f"its validator raised {type(error).__name__}: {what}"
        shown = text if len(text) <= 80 else text[:77] + "..."
        super().__init__(f"the text is valid and its value is refused{tried}: {what} in {shown}{hint}")

    def __reduce__(self) -> tuple[object, ...]:
        return InvalidValue, (self.text, self.error, self.attempts)
