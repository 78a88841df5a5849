"""The state of one text under a grammar: masks, accepted tokens, forced text, captures.

Enters: tokens or bytes, one step at a time; buffers for masks. Leaves: rows of V/8 bytes in those buffers,
and answers about the text so far. Cost: a mask that the grammar made before is one copy; a step takes well
under a microsecond.

The state itself lives in the core (csrc/engine/matcher.h); this file says it in Python's terms. A `Matcher`
is one text, `fill_bitmasks` fills the rows of many texts in threads, `can_end_within` asks about a text that
has not begun. An example:

    matcher = compiler.regex("ab?").matcher()
    matcher.accept_bytes("a")       # True: one step of the history
    matcher.live_bytes()            # b"b"; is_accepting() is True
    matcher.rollback(1)             # as if nothing had been read

Invariants: a call that fails leaves the state as it was, and of the buffers it touches only the row it was to
fill, which is then all zero. A mask depends on the grammar, the text and `max_tokens` alone. A text belongs
to one thread at a time: the core refuses a call that meets another one.

Rejected: a lock for each matcher. Two threads would append to one text in an order that neither knows.
"""

from __future__ import annotations

import functools
import operator
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NoReturn, TypeVar, overload

from . import _core
from ._checks import utf8
from ._readable import allowed_here, table_html
from .errors import BudgetExceeded, UnsatisfiableBudget
from .logits import allocate_bitmask

if TYPE_CHECKING:
    from .grammar import CompiledGrammar

R = TypeVar("R")
HIDDEN = ("", "\0")  # captures that nobody asked for: what is ignored, an end without a name


@dataclass(frozen=True, slots=True)
class Capture:
    """One named part of a text: where it stands in bytes and in tokens (end exclusive), and the bytes.

    Bytes count as in ``Vocabulary.decode``, where special tokens have none. A token that lies partly inside
    counts. An ``accept_bytes`` call is one token here, as it is one step of the history.
    """

    start: int
    end: int
    start_token: int
    end_token: int
    text: bytes


class Matcher:
    """One sequence under a grammar. Only one thread at a time may call it: a call during another thread's
    call raises ``ValueError`` and changes nothing. Give each thread its own ``fork()``.

    Every accepted token (and every ``accept_bytes`` call) is one step of the history that ``rollback``
    counts. Forking costs a copy of that history, eight bytes a step.
    """

    __slots__ = ("_core", "grammar")

    def __init__(self, grammar: CompiledGrammar, core: _core.Matcher) -> None:
        self.grammar: CompiledGrammar = grammar
        self._core = core

    def __repr__(self) -> str:
        state = "ended" if self.is_terminated() else "may end here" if self.is_accepting() else "not complete"
        return f"<Matcher after {self.num_steps} steps, {state}>"

    def _repr_html_(self) -> str:
        rows = {
            "steps": str(self.num_steps),
            "may end here": "yes" if self.is_accepting() else "no",
            "allowed next": "" if self.is_terminated() else allowed_here(self),
        }
        return table_html("Matcher", "", rows)

    def fill_bitmask(self, mask: Any, row: int = 0, max_tokens: int | None = None) -> None:
        """Writes the allowed tokens into ``mask[row]``.

        Args:
            mask: int32 numpy array or CPU tensor, shape (rows, ceil(V/32)) or (ceil(V/32),), C-contiguous.
                Bit t % 32 of word t // 32 is 1 where token t is allowed.
            row: the row to write; a negative one counts from the end, as in Python.
            max_tokens: tokens left, this one included. When given, only tokens are allowed after which the
                text can still be completed (end-of-sequence token included) within what is left, however its
                rest is cut into tokens. After such a token the next mask is never empty, and with enough to
                spare the mask is the one without a budget. A token is refused if a completion that is
                shortest in bytes does not fit, though one that is longer in bytes and shorter in tokens
                would; then `mask_exact` is False, as where no token is to spare inside a string and only
                pieces of the shortest text are allowed. Where what was read in a key or an item decides
                how the text can be finished, tokens are tried as they are: three of those alike, 2,000 in
                all. It costs one comparison while the budget is larger than what any allowed token could make
                necessary, and a look at the tokens in doubt near the end.

        An error leaves the row all zero, which allows no token. Only an error about the mask or the row
        number itself leaves everything as it was.

        Raises:
            ValueError: wrong dtype, shape or row.
            UnsatisfiableBudget: it is proved that the text cannot be completed within ``max_tokens``.
            BudgetExceeded: no completion that fits was found, and none was ruled out: `token_bounds` tells.
        """
        if max_tokens is None:
            self._core.fill_bitmask(mask, row)
            return
        if not self._core.fill_within(mask, row, max(0, max_tokens)):
            raise UnsatisfiableBudget(
                f"the text cannot be completed within {max_tokens} tokens; {self._takes()}"
            )

    def _takes(self) -> str:
        """The bytes that may come next, in words. Costs as much as `token_bounds`."""
        try:
            least, enough = self.token_bounds()
        except UnsatisfiableBudget:
            return "no tokens of the vocabulary complete it"
        except BudgetExceeded:
            return "no tokens of the vocabulary were found to complete it"
        return f"it takes {'' if least == enough else 'at most '}{enough}, end of sequence included"

    def tokens_needed(self) -> int:
        """The least number of tokens that complete the text from here, end-of-sequence included: over all
        texts, and all ways to cut each into tokens. 0 after the end.

        Where its search is too large this is a number that suffices, and `token_bounds` has another lower
        bound: the tokens of a completion that is shortest in bytes, or the fewest found. Costs up to a tenth
        of a second where nothing is known yet; an answer is remembered.

        Raises:
            UnsatisfiableBudget: no tokens of the vocabulary complete the text.
            BudgetExceeded: no completion was found.
        """
        return self.token_bounds()[1]

    def token_bounds(self) -> tuple[int, int]:
        """(low, high): fewer than ``low`` tokens never complete the text from here, ``high`` tokens do.

        They are equal where `tokens_needed` is exact: wherever up to 8 tokens suffice, unless more than some
        thousands of states lie within reach or captured text decides. Cost and errors: as `tokens_needed`.
        """
        try:
            return self._bounds(True)
        except UnsatisfiableBudget:
            raise
        except BudgetExceeded:  # the search for fewer tokens is too large; what is shortest in bytes is known
            return self._bounds(False)

    def _bounds(self, search: bool) -> tuple[int, int]:
        """`token_bounds`; without `search` its high bound is that of a completion shortest in bytes:
        microseconds."""
        least, enough = self._core.tokens_needed(search)
        if least < 0:
            raise UnsatisfiableBudget("no tokens of the vocabulary complete the text")
        if enough < 0:
            raise BudgetExceeded("no tokens of the vocabulary were found to complete the text")
        return least, enough

    def shortest_completion(self) -> bytes:
        """A shortest text that completes the sequence from here; empty where it may end.

        A special token, which has no text, stands in it as its name.
        """
        rest = self._core.shortest_completion()
        return rest if b"\xff" not in rest else self.grammar.vocabulary._named(rest)

    def accept_token(self, token: int) -> bool:
        """Appends a token. False leaves the state unchanged."""
        try:
            return self._core.accept_token(token)
        except TypeError:
            raise TypeError(f"a token is a number, not {token!r:.60}; text goes to accept_bytes") from None

    def accept_tokens(self, tokens: Sequence[int]) -> bool:
        """Appends all tokens or none."""
        return _with_ids(self._core.accept_tokens, tokens)

    def accept_bytes(self, text: bytes | str) -> bool:
        """Appends text, whatever its tokenization; one step of the history. False changes nothing."""
        return self._core.accept_bytes(utf8(text))

    def validate_tokens(self, tokens: Sequence[int]) -> int:
        """Length of the longest prefix of a draft that the masks allow; the state does not change.

        Without `max_tokens` of the matcher the masks allow what `accept_token` takes. With it they also keep
        room for the rest of the text. Cost: a step a token; near the end of the room that of a mask.
        """
        return _with_ids(self._core.validate_tokens, tokens)

    def validate_bytes(self, text: bytes | str) -> int:
        """Bytes of the longest prefix that would be accepted; the state does not change."""
        return self._core.validate_bytes(utf8(text))

    def rollback(self, n: int = 1) -> None:
        """Takes back the last ``n`` steps, end-of-sequence included.

        Raises:
            ValueError: fewer than ``n`` steps were accepted.
        """
        self._core.rollback(n)

    def fork(self) -> Matcher:
        """An independent matcher at the same point; `copy.copy` does the same."""
        return Matcher(self.grammar, self._core.fork())

    def __copy__(self) -> Matcher:
        return self.fork()

    def __deepcopy__(self, memo: dict[int, Any]) -> Matcher:
        return self.fork()

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            "a matcher cannot be pickled: pickle its grammar and the tokens, and accept them where it is read"
        )

    def reset(self) -> None:
        """Back to the start of the text."""
        self._core.reset()

    @property
    def mask_exact(self) -> bool:
        """False where the mask filled last may lack tokens that the grammar allows.

        So it is where the grammar was compiled with ``on_limit="subset"`` and something was too much to tell:
        of the mask filled last, or of the grammar before (then it stays so). So is a mask near the end of a
        budget that refused a token for the tokens left (`fill_bitmask`). Every token of such a mask is
        allowed, and the text can be completed after it.
        """
        return self._core.mask_exact

    def is_accepting(self) -> bool:
        """True where the text may end."""
        return self._core.is_accepting()

    def is_terminated(self) -> bool:
        """True after an end-of-sequence token was accepted."""
        return self._core.is_terminated()

    @property
    def num_steps(self) -> int:
        """Steps accepted since the start."""
        return self._core.history

    def forced_bytes(self) -> bytes:
        """The text that must come next; empty where there is a choice or the text may end."""
        return self._core.forced_bytes()

    def forced_tokens(self) -> list[int]:
        """The tokens that the tokenizer makes of the forced text after the tokens accepted so far.

        These tokens stay the same whatever text comes next. An end is held back if a longer token, or a blank
        that goes with the next word, could still change it. Where the tokenizer would have cut the text so
        far in another way there are none, nor where it changes the text. See `_forced`; costs an encoding of
        the forced text or a few.
        """
        from ._forced import forced_tokens

        return forced_tokens(self._core, self.grammar.vocabulary)

    def captures(self) -> dict[str, list[Capture]]:
        """The named parts of the text so far: for each name of the grammar its matches, by start.

        A rule that repeats has one match a repetition. Where a text can be read in several ways, one reading
        counts for all names: from left to right, a capture begins wherever one can, and ends only where it
        cannot go on (leftmost, then longest). Where the text may end here it is taken to end here; else it
        is a beginning, and what did not end yet is left out. Ignored text (``%ignore``) is no part of the end
        of a capture. Empty text in front of a left-recursive rule is not reported. In a regex the reading is
        the one that Python's ``re`` prefers: the first alternative, the longest repetition or the shortest
        lazy one. A group that repeats has one match a repetition (``re`` keeps the last), and groups inside
        an assertion have none.

        Cost: the text is read again, microseconds a byte; nothing is kept. Only grammars with captures keep
        the text: one byte a byte.

        Raises:
            BudgetExceeded: more than 5000 readings are open at one place; a pattern takes too many steps.
        """
        found: dict[str, list[Capture]] = {name: [] for name in self.grammar.capture_names}
        for name, start, end, start_token, end_token, text in self._core.captures():
            if name not in HIDDEN:
                found[name].append(Capture(start, end, start_token, end_token, text))
        return found

    def live_bytes(self) -> bytes:
        """Every byte that may come next, ascending."""
        return self._core.live_bytes()


class Forks:
    """Matchers behind token prefixes of one grammar: the `most` that were used last.

    A matcher is forked from the one before its last token, if that is kept. So a text that grows is read
    once.
    """

    def __init__(self, grammar: CompiledGrammar, most: int) -> None:
        self._grammar = grammar
        self._most = most
        self._kept: OrderedDict[tuple[int, ...], Matcher | None] = OrderedDict()

    def at(self, tokens: tuple[int, ...]) -> Matcher | None:
        """The matcher behind these tokens, which must not be moved. None: the grammar refuses them."""
        if tokens not in self._kept:
            before = self._kept.get(tokens[:-1]) if tokens else None
            made = self._grammar.matcher() if before is None else before.fork()
            taken = made.accept_tokens(tokens if before is None else tokens[-1:])
            self._kept[tokens] = made if taken else None
            if len(self._kept) > self._most:
                self._kept.popitem(last=False)
        self._kept.move_to_end(tokens)
        return self._kept[tokens]


@overload
def fill_bitmasks(
    matchers: Sequence[Matcher],
    mask: Any,
    threads: int = 0,
    *,
    rows: Sequence[int] | None = None,
    skip_errors: Literal[False] = False,
) -> None: ...
@overload
def fill_bitmasks(
    matchers: Sequence[Matcher],
    mask: Any,
    threads: int = 0,
    *,
    rows: Sequence[int] | None = None,
    skip_errors: Literal[True],
) -> list[Exception | None]: ...
def fill_bitmasks(
    matchers: Sequence[Matcher],
    mask: Any,
    threads: int = 0,
    *,
    rows: Sequence[int] | None = None,
    skip_errors: bool = False,
) -> list[Exception | None] | None:
    """Fills a row of ``mask`` from each matcher, with the GIL released. An error of one row concerns no other
    row: every other row is filled, whether the call raises or not.

    A row without a mask is all zero: it allows no token, so that nothing can be sampled from it by accident.
    Its matcher is as it was.

    Args:
        matchers: distinct matchers, of one or several grammars.
        mask: int32 numpy array or CPU tensor, shape (rows, ceil(V/32)), C-contiguous.
        rows: the row of each matcher, in any order, negative ones from the end; None: row i for matcher i.
            Other rows are not touched.
        threads: 0 chooses by the batch size, 1 runs in the calling thread.
        skip_errors: return what went wrong instead of raising it.

    Returns:
        With ``skip_errors`` a list as long as ``matchers``: the exception of each row that has no mask, None
        for the others. Else None.

    Raises:
        ValueError: a mask of the wrong type or shape, a matcher or a row that is given twice, a row outside
            the mask. No row is then touched.
        BudgetExceeded, SchemaTooComplex, ValueError (a matcher that another thread is using), MemoryError:
            without ``skip_errors``, the error of the first matcher that has no mask. A note names the
            places of all such matchers in the batch, and so does the exception's attribute ``rows``, a tuple.
    """
    for i, m in enumerate(matchers):
        if not isinstance(m, Matcher):
            raise TypeError(f"row {i} of the batch is no matcher but {m!r:.60}")
    cores = [m._core for m in matchers]
    if len({id(c) for c in cores}) != len(cores):
        raise ValueError("the same matcher stands twice in the batch; fork it")
    if threads <= 0:
        threads = 1 if len(cores) < 16 else cpu_count()
    try:
        places = None if rows is None else [operator.index(row) for row in rows]
    except TypeError:
        raise TypeError(f"rows are numbers of rows, not {rows!r:.60}") from None
    if places and not -(1 << 63) <= min(places) <= max(places) < 1 << 63:
        raise ValueError(f"the mask has no such row: {rows!r:.60}")
    errors = _core.fill_bitmasks(cores, mask, threads, places)
    if skip_errors:
        return errors or [None] * len(cores)
    if errors:
        raise error_of_rows(errors)
    return None


def can_end_within(grammar: CompiledGrammar, tokens: int, whose: str = "") -> bool:
    """Whether the grammar can promise an end within so many tokens; about the cost of a mask at most.

    False: no completion was found, and it is not proved that there is none. `whose` stands behind the number
    of tokens in an error, and says what leaves so few.

    Raises:
        UnsatisfiableBudget: it is proved that nothing fits, or nothing that fits was found and more tokens
            are known to suffice; it names them. Going on without a promise would cut most of those texts off.
        SchemaTooComplex: what is allowed first is too much to tell.
        ValueError: a negative number.
    """
    matcher = grammar.matcher(max_tokens=tokens)
    enough = None
    try:
        enough = matcher._bounds(False)[1]
        if enough > tokens:
            matcher.fill_bitmask(allocate_bitmask(1, grammar.vocabulary.vocab_size), max_tokens=tokens)
    except UnsatisfiableBudget:
        raise UnsatisfiableBudget(
            f"the text cannot be completed within {tokens} tokens{whose}; {matcher._takes()}"
        ) from None
    except BudgetExceeded:
        if enough is None:
            return False
        raise UnsatisfiableBudget(
            f"no text of the grammar is known to fit {tokens} tokens{whose}; {enough} are known to suffice"
        ) from None
    return True


def error_of_rows(errors: Sequence[Exception | None]) -> Exception:
    """The first of a batch's errors, with a note that names the rows."""
    rows = tuple(i for i, error in enumerate(errors) if error is not None)
    first = errors[rows[0]]
    assert first is not None
    listed = ", ".join(map(str, rows[:20])) + (", ..." if len(rows) > 20 else "")
    first.add_note(f"row{'s' if len(rows) > 1 else ''} {listed} of a batch of {len(errors)}")
    first.rows = rows  # type: ignore[attr-defined]
    return first


@functools.cache
def cpu_count() -> int:
    import os

    mine = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return min(8, mine or 1)


def _with_ids(call: Callable[[Sequence[int]], R], tokens: Sequence[int]) -> R:
    """The call's answer. TypeError: what is given are no token ids."""
    try:
        return call(tokens)
    except (TypeError, RuntimeError) as error:
        if isinstance(error, RuntimeError) and "bad_cast" not in str(error):
            raise
        raise TypeError(f"tokens are a list of ids, not {tokens!r:.60}; text goes to accept_bytes") from None
