"""Speculative decoding of the texts of one call, step by step as `run.Run` does it.

Enters: a model, a prompt and the `Text`s to fill, all with this prompt. Leaves: tokens and log-probabilities
as from a `Run`, and `statistics` after the last step. Cost: see speculation/engine.py.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from ..speculation.engine import Row, SpeculativeRows
from ..speculation.sampled import SampledRun
from ..speculation.score import open_scorer
from .run import Clock, Step, Text

if TYPE_CHECKING:
    from ..grammar import CompiledGrammar
    from ..lm.base import LanguageModel
    from ..speculation import Statistics
    from ..speculation.options import Speculation


class SpeculativeRun:
    """A `Run` whose steps may give a text several tokens.

    Raises:
        LanguageModelError: the model cannot take drafts back.
    """

    def __init__(
        self,
        lm: LanguageModel,
        texts: Sequence[Text],
        options: Speculation,
        clock: Clock,
        *,
        grammar: CompiledGrammar | None,
        compile: Callable[[Any], CompiledGrammar] | None,
        prompt: str | None,
        logprobs: bool,
    ) -> None:
        first = texts[0]
        kind = SpeculativeRows if options.rule == "coupled" else SampledRun
        self._engine = kind(
            open_scorer(lm),
            lm.vocabulary,
            lm.eos_token_ids,
            first.sampling,
            options,
            logprobs=logprobs,
            compile=compile,
        )
        self._lm = lm
        self._clock = clock
        start = first.context.tokens
        self._pairs: list[tuple[Text, Row]] = []
        for text in texts:
            row = Row(start, text.matcher, text.noise, text.room, text.budget, grammar, prompt)
            if text.stream.stops:  # Without a stop string, the engine may end a text without a forward pass.
                row.on_tokens = self._stopper(text)
            self._pairs.append((text, row))
        self._engine.add_alike([row for _, row in self._pairs])

    @property
    def statistics(self) -> Statistics:
        return self._engine.statistics

    @property
    def live(self) -> list[Text]:
        return [text for text, _ in self._pairs if not text.over]

    def step(self) -> list[Step]:
        """Makes one forward pass. Every live text gets at least one token."""
        self._engine.step()
        steps: list[Step] = []
        for text, row in self._pairs:
            for at in range(len(text.tokens), len(row.tokens)):
                token = row.tokens[at]
                text.tokens.append(token)
                text.logprobs += row.logprobs[at : at + 1]
                logprob = row.logprobs[at] if at < len(row.logprobs) else float("nan")
                ended = row.done and at == len(row.tokens) - 1
                steps.append(text.take(token, logprob, self._bytes(text, token), ended))
        self._clock.lap("speculation")
        return steps

    def _bytes(self, text: Text, token: int) -> bytes:
        return self._lm.vocabulary.tokens[token] or text.names.get(token, b"")

    def _stopper(self, text: Text) -> Callable[[Sequence[int]], bool]:
        """Returns a function that tells whether a stop string ends the row. The engine asks it in the middle
        of a step."""
        stream = text.stream.fresh()

        def take(tokens: Sequence[int]) -> bool:
            for token in tokens:
                stream.feed(self._bytes(text, token))
            return stream.stopped_by is not None

        return take
