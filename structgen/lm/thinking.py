"""`embedded-thinking`: a script writes thoughts, then the embedded model answers. It lets users try reasoning
without a download.

Enters: contexts, as for every model. Leaves: log-probabilities. Cost: in the answer, a forward of the
embedded model; in the thoughts, a row of numbers.

The model writes ``<think>``, a sentence about the request, ``</think>`` and a line break, and then the
embedded model's answer. The thoughts do not change the answer. In the thoughts the next token of the script
is the most probable one, and the first token of the end mark is the second. If a mask forbids the start
mark, the answer comes next.

    sg.generate("embedded-thinking", "Ana ordered 2 lamps", Order, reasoning=True).reasoning
    # "\\nThe request says: Ana ordered 2 lamps. I write what it says, in the order of the fields.\\n"
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ..reasoning import FAMILIES, Reasoning, Splitter
from .embedded.prompt import ANSWER_MARK, SCHEMA_MARK, TEXT_MARK

if TYPE_CHECKING:
    from ..vocabulary import Vocabulary
    from .base import Context

_WORDS = 12  # the number of words of the request that the script repeats
# the probabilities of the script's token, of the end mark, and of all other tokens together
_LIKELY, _NEXT, _REST = 0.97, 0.02, 0.01


def script(prompt: str) -> str:
    """Returns the thoughts about a prompt in the form of the embedded model."""
    request = prompt.rpartition(TEXT_MARK)[2].partition(SCHEMA_MARK)[0].split()
    shown = " ".join(request[:_WORDS]) + (" ..." if len(request) > _WORDS else "")
    return f"\nThe request says: {shown.rstrip('.')}. I write what it says, in the order of the fields.\n"


class _Thinking:
    """A context of the thinking model: a context of the inner model, and the text since the prompt."""

    __slots__ = ("_children", "_lm", "_tokens", "answered", "inner", "plan", "text")

    def __init__(
        self, lm: ThinkingLM, tokens: list[int], inner: Context, plan: bytes | None, text: bytes = b""
    ) -> None:
        self._lm, self._tokens = lm, tokens
        self.inner: Context = inner  # the context of the prompt, and of the answer once it began
        self.plan: bytes | None = plan  # the script's text with its marks; None inside the prompt
        self.text: bytes = text
        self.answered: bool = False  # whether the answer began
        self._children: dict[int, _Thinking] = {}

    @property
    def tokens(self) -> list[int]:
        return [*self._tokens]

    def __len__(self) -> int:
        return len(self._tokens)

    def extend(self, token: int) -> _Thinking:
        child = self._children.get(token)
        if child is None:
            child = self._children[token] = self._lm._extended(self, token)
        return child


class ThinkingLM:
    """A model that thinks by a script before another model answers. A ThinkingLM is thread-safe if the inner
    model is.

    Args:
        inner: the model of the answers, which reads prompts in the form of the embedded model.
        thoughts: makes the thoughts of a prompt.
        reasoning: the marks.
    """

    def __init__(
        self,
        inner: Any,
        thoughts: Callable[[str], str] = script,
        reasoning: Reasoning = FAMILIES["embedded"],
    ) -> None:
        self._inner: Any = inner
        self._script = thoughts
        self.reasoning: Reasoning = reasoning
        self.vocabulary: Vocabulary = inner.vocabulary
        self.max_context: int | None = inner.max_context
        self._mark = self.vocabulary.special_tokens[ANSWER_MARK]

    @property
    def eos_token_ids(self) -> Sequence[int]:
        """The ids that end a text."""
        found: Sequence[int] = self._inner.eos_token_ids
        return found

    def encode(self, text: str) -> list[int]:
        """Returns the ids of a prompt."""
        found: list[int] = self._inner.encode(text)
        return found

    def start(self, prompt: str | Sequence[int]) -> _Thinking:
        """Returns the context of a prompt. ContextTooLong: it exceeds `max_context`."""
        inner = self._inner.start(prompt)
        tokens = inner.tokens
        if self._mark not in tokens:
            return _Thinking(self, tokens, inner, None)
        over = len(tokens) - tokens[::-1].index(self._mark)
        context = _Thinking(self, tokens[:over], self._inner.start(tokens[:over]), self._plan(tokens[:over]))
        for token in tokens[over:]:
            context = context.extend(token)
        return context

    def _plan(self, prompt: Sequence[int]) -> bytes:
        names = {i: name.encode() for name, i in self.vocabulary.special_tokens.items()}
        text = b"".join(self.vocabulary.tokens[t] or names.get(t, b"") for t in prompt)
        thoughts = self._script(text.decode("utf-8", "replace"))
        return f"{self.reasoning.start}{thoughts}{self.reasoning.end}{self.reasoning.gap}".encode()

    def _extended(self, context: _Thinking, token: int) -> _Thinking:
        tokens = [*context._tokens, token]
        if context.plan is None or token == self._mark:
            plan = self._plan(tokens) if token == self._mark else None
            return _Thinking(self, tokens, context.inner.extend(token), plan)
        text = context.text + self.vocabulary.tokens[token]
        child = _Thinking(self, tokens, context.inner, context.plan, text)
        _, answer = Splitter(self.reasoning).feed(text)
        child.answered = context.answered or bool(answer)
        # The token that ends the mark may also hold the beginning of the answer. The inner model reads this
        # beginning in its own tokens.
        more = [token] if context.answered else self.vocabulary.encode(answer.decode("utf-8", "replace"))
        for t in more if child.answered else []:
            child.inner = child.inner.extend(t)
        return child

    def logprobs(self, contexts: Sequence[_Thinking]) -> npt.NDArray[np.float32]:
        """Returns natural-log probabilities of the next token, float32, shape (len(contexts), V)."""
        wanted = [self._wanted(context) for context in contexts]
        # Before the start mark the model may begin its answer, too.
        asked = [i for i, text in enumerate(wanted) if text is None or not contexts[i].text]
        rows = np.zeros((len(contexts), self.vocabulary.vocab_size), np.float32)
        if asked:
            rows[asked] = self._inner.logprobs([contexts[i].inner for i in asked])
        for i, text in enumerate(wanted):
            if text is not None:
                share = np.exp(rows[i].astype(np.float64))
                share *= _REST / share.sum()
                share[self._first(self.reasoning.end)] += _NEXT
                share[self._first(text)] += _LIKELY
                rows[i] = np.log(share)
        return rows

    def _first(self, text: str) -> int:
        """Returns the token with which the tokenizer begins a text."""
        return self.vocabulary.encode(text)[0]

    def _wanted(self, context: _Thinking) -> str | None:
        """Returns the text with which the script continues, or None if the answer comes next."""
        text, plan, end = context.text, context.plan, self.reasoning.end.encode()
        if plan is None or context.answered:
            return None
        if plan.startswith(text):
            return plan[len(text) :].decode("utf-8", "replace") or None
        if not text.startswith(self.reasoning.start.encode()):
            return None
        behind = text.partition(end)
        if behind[1]:  # the end mark was drawn, or the mask forced it
            return None
        begun = max(k for k in range(len(end)) if text.endswith(end[:k]))
        return end[begun:].decode()
