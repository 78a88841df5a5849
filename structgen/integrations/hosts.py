"""The base of the adapters to serving engines: requests, rows of masks, drafts and their rollback.

Enters: a host's tokenizer and the width of its logits; constraints as a kind and a text; the tokens that
the host sampled for a request. Leaves: masks in the host's rows, verdicts on drafts, the end, errors by
request. Cost: one call of the matcher for each question. A request has no state beside its matcher and the
error that ended it.

The problem. Serving engines differ in names and classes, but they need the same operations. An error that is
raised in the decoding loop of a host ends all of its requests.

The idea. An adapter is a thin file over this one: it imports its host where it runs, renames methods, and
turns errors into the host's own. For the pattern `[0-9]{2}`, with one token for each character:

    accept([1])       True; fill() allows the ten digits
    accept([x])       False; `error` names the token, `ended` stays False
    accept([2])       True; fill() allows the end alone
    accept([end])     True; is_terminated()
    accept([A])       True: tokens after the end are ignored
    rollback(2)       takes back A and the end: fill() allows the end alone

Invariants, which tests/test_hosts.py checks for each adapter:

- Tokens after the end are accepted and ignored, because hosts also pass the tokens sampled behind a stop
token.
- A rollback takes back exactly what was accepted, the end included.
- A request whose mask cannot be made ends by itself: its row allows end tokens alone, its `error` says why,
  and `accept` then answers False. A token that the grammar refuses also sets `error`, but it ends nothing.
- A draft may run over the budget: its row allows end tokens alone, and after a rollback the request goes on.
- A row is written whole, whatever it contained before.
- Compiles, masks and failures are counted and logged for the operator (telemetry.py).
- A constraint with a keyword whose value has a wrong type is refused. The error has the keyword and its
place.

The compile thread makes the first masks of a new grammar (`HostEngine.compile`). Otherwise a new regex would
make its first masks in the host's decoding loop.
"""

from __future__ import annotations

import contextlib
import importlib
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ..compiler import Compiler
from ..errors import StructgenError, UnsatisfiableBudget, UnsupportedSchema, VocabularyError
from ..grammar import CompiledGrammar
from ..limits import SERVING, Limits, OnLimit
from ..logits import mask_of
from ..matcher import Matcher, can_end_within, fill_bitmasks
from ..reasoning import Reasoning, reasoning_of
from ..vocabulary import Vocabulary
from .telemetry import Telemetry

if TYPE_CHECKING:
    pass

# The compile thread also makes masks of a random text under a new grammar: at most so many steps, within so
# many seconds.
_FIRST_STEPS, _FIRST_SECONDS = 16, 0.03
# For a request with a limit, the compile thread also makes masks near the limit: of a text with so many spare
# tokens.
_LAST_SPARE = 8
# the number of values of max_tokens that are kept for a grammar
_LIMITS_KEPT = 64


_READERS = ("structgen.frontend.gbnf", "structgen.frontend.structural_tag", "structgen.frontend.lark")


# Recipe, host 1: what a file of its own is built on, where the host batches requests.
class HostEngine:
    """One compiler for all requests of a serving engine. Thread-safe.

    Args:
        tokenizer: the host's tokenizer (of transformers, tokenizers, tiktoken or mistral-common), or a
            `Vocabulary`.
        vocab_size: the number of columns of the host's logits; None: that of the tokenizer.
        end_token_ids: ids that end every text; None: those of the tokenizer.
        options: options of JSON (`Compiler.json_schema`) for all requests; by default those of
            `Compiler.compile`.
        cache_bytes: as in `Compiler`.
        limits, on_limit: as in `Compiler`. By default a mask takes at most about 20 ms, and tokens that
            cannot be decided in that time are left out of it, so that no request holds up or ends the others.
        log: the name of a logger that the host prints.
        reasoning: how the model thinks, as `sg.generate` takes it, for a host that also passes the tokens of
            thoughts. None: the host passes only the tokens of the answer.

    Attributes:
        telemetry: counts and logs compiles, masks and failures.
        finish: whether the adapter keeps a text within the limit of its request.

    Raises:
        VocabularyError: the tokenizer cannot be read, or does not belong to the logits.
    """

    def __init__(
        self,
        tokenizer: Any,
        vocab_size: int | None = None,
        *,
        end_token_ids: Iterable[int] | None = None,
        options: dict[str, Any] | None = None,
        cache_bytes: int = 256 << 20,
        limits: Limits = SERVING,
        on_limit: OnLimit = "subset",
        log: str = "structgen.integrations.hosts",
        reasoning: Any = None,
    ) -> None:
        self.vocabulary: Vocabulary = vocabulary_of(tokenizer, vocab_size, end_token_ids)
        self.compiler: Compiler = Compiler(
            self.vocabulary, cache_bytes=cache_bytes, limits=limits, on_limit=on_limit
        )
        self.options: dict[str, Any] = dict(options or {})
        self.reasoning: Reasoning | None = reasoning_of(reasoning)
        self.finish: bool = True
        compiler = self.compiler
        self.telemetry: Telemetry = Telemetry(log, lambda: compiler.byte_size)
        # the readers are imported here, so that the first request of a kind does not wait for an import
        for reader in _READERS:
            importlib.import_module(reader)

    @classmethod
    def configured(
        cls,
        settings: Mapping[str, Any],
        tokenizer: Any,
        vocab_size: int,
        *,
        end_token_ids: Iterable[int] | None = None,
        log: str,
    ) -> HostEngine:
        """Makes an engine from an operator's settings, which are in a file or an environment variable.

        Args:
            settings: `finish` (finish within a request's limit; the default), `cache_bytes`, `reasoning`; all
                others are options of JSON.
        """
        options = dict(settings)
        finish, memory = bool(options.pop("finish", True)), int(options.pop("cache_bytes", 256 << 20))
        made = cls(
            tokenizer,
            vocab_size,
            end_token_ids=end_token_ids,
            reasoning=options.pop("reasoning", None),
            options=options,
            cache_bytes=memory,
            log=log,
        )
        made.finish = finish
        return made

    def thinks(self, prompt: Sequence[int] = (), thinking_tokens: int | None = None) -> Reasoning | None:
        """Returns how the model thinks behind a prompt; None if the host passes no tokens of thoughts.

        Args:
            prompt: the tokens in front of the text. They show whether the text begins inside thoughts.
            thinking_tokens: the request's limit on thoughts; None or a negative number leaves the engine's
                limit.
        """
        if self.reasoning is None:
            return None
        thinks = self.reasoning.behind_tokens(prompt, self.vocabulary, {})
        limits = [n for n in (thinks.max_tokens, thinking_tokens) if n is not None and n >= 0]
        return replace(thinks, max_tokens=min(limits, default=None))

    def compile(
        self, kind: str, text: Any, *, reasoning: Reasoning | None = None, **options: Any
    ) -> CompiledGrammar:
        """Returns a grammar whose first masks are made, for a host's compile threads.

        Args:
            reasoning: the result of `thinks` for the request; None takes its result without a prompt.

        Raises:
            GrammarError: as `compiled`.
        """
        begun = time.perf_counter()
        try:
            grammar = compiled(self.compiler, kind, text, **{**self.options, **options})
            if (thinks := reasoning or self.reasoning) is not None:
                grammar = self.compiler.with_reasoning(grammar, thinks)
            new = self.telemetry.is_new(grammar)
            grammar.prepare(_FIRST_STEPS if new else 0, seconds=_FIRST_SECONDS)
        except (StructgenError, ValueError) as error:
            self.telemetry.refused(error)
            raise
        self.telemetry.compiled(grammar, time.perf_counter() - begun, known=not new)
        return grammar

    def request(
        self,
        grammar: CompiledGrammar,
        *,
        end_token_ids: Iterable[int] | None = None,
        max_tokens: int | None = None,
    ) -> HostRequest:
        """Returns the state of one request under a grammar; see `request_of`."""
        return request_of(
            grammar, end_token_ids=end_token_ids, max_tokens=max_tokens, telemetry=self.telemetry
        )


def joined(ours: type[Any], theirs: type[Any]) -> Any:
    """Returns a class that derives from our class and a class of the host. The host is imported only where it
    runs."""
    return type(ours.__name__, (ours, theirs), {"__module__": ours.__module__})


def compiled(compiler: Compiler, kind: str, text: Any, **options: Any) -> CompiledGrammar:
    """Returns the grammar of a host's constraint. Every keyword of it has an effect.

    Raises:
        GrammarError: as `Compiler.compile`. UnsupportedSchema: a keyword has a value of a wrong kind, such as
            ``"minItems": "3"``, and would constrain nothing.
    """
    grammar = compiler.compile(kind, text, **options)
    if dropped := grammar.dropped:
        first, more = dropped[0], len(dropped) - 1
        reason = first.reason.removeprefix("ignored: ")
        raise UnsupportedSchema(
            f"'{first.keyword}' is {reason}, so it would constrain nothing"
            + (f", and so would {more} more" if more else ""),
            pointer=first.pointer,
            keyword=first.keyword,
        )
    return grammar


def request_of(
    grammar: CompiledGrammar,
    *,
    end_token_ids: Iterable[int] | None = None,
    max_tokens: int | None = None,
    telemetry: Telemetry | None = None,
) -> HostRequest:
    """Returns the state of one request under a grammar, as `CompiledGrammar.matcher` has it for hosts.

    End ids outside the logits are left out, because the model cannot write them. If none is left, those of
    the vocabulary count. If no text is known to fit in `max_tokens`, the host's own limit cuts the text off,
    as it does with every other backend.
    """
    vocabulary = grammar.vocabulary
    ends = None
    if end_token_ids is not None:
        ends = [t for t in end_token_ids if 0 <= t < vocabulary.vocab_size] or None
    if max_tokens is not None and not _fits(grammar, max_tokens):
        max_tokens = None
    matcher = grammar.matcher(end_token_ids=ends, max_tokens=max_tokens, after_end="ignore")
    return HostRequest(matcher, ends or vocabulary.eos_token_ids, telemetry)


def _fits(grammar: CompiledGrammar, tokens: int) -> bool:
    """Returns whether a text is known to fit. A large schema takes a search, so the grammar keeps the answer.

    The first limit of a grammar makes masks near the end of a text, too.
    """
    known = grammar._fitting
    fits = known.get(tokens)
    if fits is None:
        try:
            fits = can_end_within(grammar, tokens)
        except UnsatisfiableBudget:
            fits = False
        if fits and True not in known.values():
            with contextlib.suppress(StructgenError):  # A text that reaches this mask gets the error.
                few = min(tokens, grammar.matcher()._bounds(False)[1] + _LAST_SPARE)
                grammar.prepare(few, seconds=_FIRST_SECONDS, max_tokens=few)
        if len(known) >= _LIMITS_KEPT:
            known.clear()
        known[tokens] = fits
    return fits


class HostRequest:
    """One request's place in its grammar. Belongs to one thread at a time.

    Attributes:
        error: the reason why the request cannot go on, or why the last `accept` failed; else None.
        ended: whether the request cannot go on. A refused token does not end a request.
        end_token_ids: the tokens that end its text.
    """

    __slots__ = ("end_token_ids", "ended", "error", "matcher", "telemetry")

    def __init__(
        self, matcher: Matcher, end_token_ids: Sequence[int], telemetry: Telemetry | None = None
    ) -> None:
        self.matcher: Matcher = matcher
        self.telemetry: Telemetry | None = telemetry
        self.error: Exception | None = None
        self.ended: bool = False
        self.end_token_ids: tuple[int, ...] = tuple(end_token_ids)

    def accept(self, tokens: Sequence[int]) -> bool:
        """Takes the tokens. False: one is refused, so none is taken, and `error` says why.

        The host should then end the request.
        """
        if self.ended:
            return False
        try:
            taken = self.matcher.accept_tokens(tokens)
            self.error = None if taken else self._refusal(tokens)
            return taken
        except StructgenError as error:
            self.fail(error)
            return False

    def _refusal(self, tokens: Sequence[int]) -> StructgenError:
        """Names the first token that is refused."""
        at = self.matcher.fork()
        token = next(int(token) for token in tokens if not at.accept_token(token))
        known = 0 <= token < self.matcher.grammar.vocabulary.vocab_size
        text = f" ({self.matcher.grammar.vocabulary.decode([token])!r:.60})" if known else ""
        return StructgenError(
            f"the grammar does not allow token {token}{text} here: draw tokens from the mask of fill()"
        )

    def validate(self, draft: Sequence[int]) -> int:
        """Returns the number of tokens of a draft that the masks allow, up to an end token. Changes nothing.

        0 after a failure.
        """
        if self.ended:
            return 0
        try:
            count = self.matcher.validate_tokens(draft)
        except StructgenError:
            return 0  # A dropped draft costs only time. The next `accept` reports the error.
        return next((i for i, token in enumerate(draft[:count], 1) if token in self.end_token_ids), count)

    def rollback(self, n: int) -> None:
        """Takes back the last n tokens, the end included. A request that failed stays failed."""
        if not self.ended:
            self.matcher.rollback(n)

    def fill(self, mask: Any, row: int) -> None:
        """Writes a row of an int32 mask, (rows, ceil(V / 32)). Raises only if the mask has a wrong shape."""
        if not self.ended:
            begun = time.perf_counter()
            try:
                # the first call after a forward pass is slow
                exact = self.matcher._core.fill_bitmask(mask, row)
            except StructgenError as error:
                self.without_mask(error)
            else:
                if self.telemetry is not None:
                    self.telemetry.filled(1, time.perf_counter() - begun, not exact)
                return
        self.end_alone(mask, row)

    def without_mask(self, error: Exception) -> None:
        """Notes the error of a missing mask. A draft beyond the budget does not end the request, because the
        host rolls it back."""
        if isinstance(error, UnsatisfiableBudget) and self.matcher.num_steps:
            self.error = error
        else:
            self.fail(error)

    def fail(self, error: Exception) -> None:
        """Ends the request with an error."""
        self.error, self.ended = error, True
        if self.telemetry is not None:
            self.telemetry.failed(error)

    def is_terminated(self) -> bool:
        """Returns whether an end token was accepted."""
        return not self.ended and self.matcher._core.is_terminated()

    def fork(self) -> HostRequest:
        """Returns a copy of the request at the same place."""
        other = HostRequest(self.matcher.fork(), self.end_token_ids, self.telemetry)
        other.error, other.ended = self.error, self.ended
        return other

    def reset(self) -> None:
        """Moves the request back to the beginning of the text."""
        self.error, self.ended = None, False
        self.matcher.reset()

    def end_alone(self, mask: Any, row: int) -> None:
        """Writes a row that allows the request's end tokens and nothing else."""
        words = mask_of(self.end_token_ids, mask.shape[-1])
        mask[row] = words if isinstance(mask, np.ndarray) else mask.new_tensor(words)


def fill_rows(requests: Sequence[HostRequest | None], mask: Any, rows: Sequence[int] | None = None) -> None:
    """Fills the rows of a batch in one call of the core. None and terminated requests get rows of ones.

    An error of one request ends that request alone, as in `HostRequest.fill`.

    Args:
        requests: the batch, each request once; None is a free row.
        mask: int32, numpy or CPU tensor, (rows, ceil(V / 32)).
        rows: the row of each request; None: in order.

    Raises:
        ValueError: the mask has a wrong shape, a row or a request occurs twice, or there are more rows than
            requests.
    """
    places = range(len(requests)) if rows is None else rows
    going: list[HostRequest] = []
    where: list[int] = []
    for request, row in zip(requests, places, strict=True):
        if request is None or request.is_terminated():
            mask[row] = -1
        elif request.ended:
            request.end_alone(mask, row)
        else:
            going.append(request)
            where.append(row)
    if not going:
        return
    begun = time.perf_counter()
    errors = fill_bitmasks([request.matcher for request in going], mask, rows=where, skip_errors=True)
    seconds = time.perf_counter() - begun
    inexact = 0
    for request, row, error in zip(going, where, errors, strict=True):
        if error is not None:
            request.without_mask(error)
            request.end_alone(mask, row)
        else:
            inexact += not request.matcher.mask_exact
    if going[0].telemetry is not None:  # all requests of one engine share its telemetry
        going[0].telemetry.filled(len(going), seconds, inexact)


def vocabulary_of(
    tokenizer: Any, vocab_size: int | None = None, end_token_ids: Iterable[int] | None = None
) -> Vocabulary:
    """Returns the vocabulary of a host's tokenizer, or the `Vocabulary` itself.

    Raises:
        VocabularyError: the tokenizer cannot be read, or the `Vocabulary` has another width.
    """
    if not isinstance(tokenizer, Vocabulary):
        return Vocabulary.from_huggingface(tokenizer, vocab_size, end_token_ids)
    if vocab_size is not None and tokenizer.vocab_size != vocab_size:
        raise VocabularyError(
            f"the vocabulary has {tokenizer.vocab_size} ids and the host {vocab_size} logits: build it with "
            f"vocab_size={vocab_size}"
        )
    return tokenizer
