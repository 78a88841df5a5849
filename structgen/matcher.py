"""The state of one text under a grammar: masks, accepted tokens, forced text, captures.

Enters: tokens or bytes, one step at a time; buffers for masks. Leaves: rows of V/8 bytes in those buffers,
and answers about the text so far. Cost: a mask that the grammar made before is one copy; a step takes less
than a microsecond.

The state lives in the core (csrc/engine/matcher.h), and this file gives it a Python interface. A `Matcher` is
one text. `fill_bitmasks` fills the rows of many texts in threads. `can_end_within` asks about a text that has
not begun. An example:

    matcher = compiler.regex("ab?").matcher()
    matcher.accept_bytes("a")       # True: one step of the history
    matcher.live_bytes()            # b"b"; is_accepting() is True
    matcher.rollback(1)             # as if nothing had been read

Invariants: a call that fails does not change the state. In the buffer it changes only its own row, which is
then all zero. A mask depends only on the grammar, the text and `max_tokens`. A text belongs to one thread
at a time: the core refuses a call during another thread's call.

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
HIDDEN = ("", "\0")  # names of internal captures: ignored text, and an end without a name


@dataclass(frozen=True, slots=True)
class Capture:
    """One named part of a text: its range in bytes, its range in tokens (ends exclusive), and its bytes.

    Bytes count as in ``Vocabulary.decode``, where special tokens have none. The range of tokens includes a
    token that lies partly inside. An ``accept_bytes`` call counts as one token, because it is one step of
    the history.
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
            max_tokens: the number of tokens left, this one included. The mask then allows only tokens after
                which the text can be completed (end-of-sequence token included) within the tokens that are
                left, however the rest is cut into tokens. After such a token the next mask is never empty.
                With a large budget the mask is the one without a budget. Near the end a token may be refused
                because a completion that is shortest in bytes does not fit, although another one with more
                bytes and fewer tokens would fit. `mask_exact` is False then. It is also False if no token can
                be spared inside a string, so that only pieces of the shortest text are allowed. If the
                completion depends on captured text (a key, an item), single tokens are tried: three of those
                that look alike, 2,000 in all. Cost: one comparison while the budget is larger than any
                allowed token could need, and a check of the doubtful tokens near the end.

        An error sets the row to zero, which allows no token. Only an error about the mask or the row number
        leaves the mask unchanged.

        Raises:
            ValueError: wrong dtype, shape or row.
            UnsatisfiableBudget: it is proved that the text cannot be completed within ``max_tokens``.
            BudgetExceeded: no completion that fits was found, and it is not proved that none exists. See
                `token_bounds`.
        """
        if max_tokens is None:
            self._core.fill_bitmask(mask, row)
            return
        if not self._core.fill_within(mask, row, max(0, max_tokens)):
            raise UnsatisfiableBudget(
                f"the text cannot be completed within {max_tokens} tokens; {self._takes()}"
            )

    def _takes(self) -> str:
        """Returns the bytes that may come next, in words. Costs as much as `token_bounds`."""
        try:
            least, enough = self.token_bounds()
        except UnsatisfiableBudget:
            return "no tokens of the vocabulary complete it"
        except BudgetExceeded:
            return "no tokens of the vocabulary were found to complete it"
        return f"it takes {'' if least == enough else 'at most '}{enough}, end of sequence included"

    def tokens_needed(self) -> int:
        """Returns the least number of tokens that complete the text from here, end-of-sequence included. It
        is the minimum over all completions, and all ways to cut each into tokens. It is 0 after the end.

        If the search is too large, the number suffices but need not be the least: it counts the tokens of a
        completion that is shortest in bytes, or of the best one found. `token_bounds` then gives a lower
        bound below it. The first call costs up to a tenth of a second; its answer is remembered.

        Raises:
            UnsatisfiableBudget: no tokens of the vocabulary complete the text.
            BudgetExceeded: no completion was found.
        """
        return self.token_bounds()[1]

    def token_bounds(self) -> tuple[int, int]:
        """Returns (low, high): fewer than ``low`` tokens never complete the text from here, ``high`` tokens
        do.

        The bounds are equal if `tokens_needed` is exact. It is exact if up to 8 tokens suffice, unless
        thousands of states are within reach or the completion depends on captured text. Cost and errors are
        those of `tokens_needed`.
        """
        try:
            return self._bounds(True)
        except UnsatisfiableBudget:
            raise
        except BudgetExceeded:  # Too large a search: the completion with the fewest bytes counts.
            return self._bounds(False)

    def _bounds(self, search: bool) -> tuple[int, int]:
        """See `token_bounds`. Without `search` the high bound is that of a completion that is shortest in
        bytes, which takes microseconds."""
        least, enough = self._core.tokens_needed(search)
        if least < 0:
            raise UnsatisfiableBudget("no tokens of the vocabulary complete the text")
        if enough < 0:
            raise BudgetExceeded("no tokens of the vocabulary were found to complete the text")
        return least, enough

    def shortest_completion(self) -> bytes:
        """Returns a completion of the text with the fewest bytes; empty if the text may end here.

        A special token has no text, so its name stands for it.
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
        """Appends text as one step of the history, whatever its tokenization. False changes nothing."""
        return self._core.accept_bytes(utf8(text))

    def validate_tokens(self, tokens: Sequence[int]) -> int:
        """Returns the length of the longest prefix of a draft that the masks allow; the state does not
        change.

        Without the matcher's `max_tokens`, the masks allow the tokens that `accept_token` takes. With it, the
        masks also keep room for the rest of the text. Cost: a step a token, and a mask a token near the end.
        """
        return _with_ids(self._core.validate_tokens, tokens)

    def validate_bytes(self, text: bytes | str) -> int:
        """Returns the number of bytes of the longest prefix that would be accepted; the state does not
        change."""
        return self._core.validate_bytes(utf8(text))

    def rollback(self, n: int = 1) -> None:
        """Takes back the last ``n`` steps, end-of-sequence included.

        Raises:
            ValueError: fewer than ``n`` steps were accepted.
        """
        self._core.rollback(n)

    def fork(self) -> Matcher:
        """Returns an independent matcher at the same point; `copy.copy` does the same."""
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
        """False if the mask filled last may lack tokens that the grammar allows.

        There are two causes. The grammar was compiled with ``on_limit="subset"``, and a limit was met while
        this mask was made, or earlier by the grammar (then `mask_exact` stays False). Or the mask refused a
        token near the end of a budget (`fill_bitmask`). In both cases every token of the mask is allowed, and
        the text can be completed after it.
        """
        return self._core.mask_exact

    def is_accepting(self) -> bool:
        """Returns True where the text may end."""
        return self._core.is_accepting()

    def is_terminated(self) -> bool:
        """Returns True after an end-of-sequence token was accepted."""
        return self._core.is_terminated()

    @property
    def num_steps(self) -> int:
        """The number of steps since the start. A step is an accepted token or a call of `accept_bytes`."""
        return self._core.history

    def forced_bytes(self) -> bytes:
        """Returns the text that must come next; empty if several bytes may come next or the text may end."""
        return self._core.forced_bytes()

    def forced_tokens(self) -> list[int]:
        """Returns the tokens that the tokenizer makes of the forced text after the tokens accepted so far.

        These tokens stay the same whatever text comes next. The last tokens are left out if a longer token,
        or a blank that belongs to the next word, could still change them. The list is empty if the
        tokenizer would cut the text so far in another way, or if it changes the text. Cost: one or a few
        encodings of the forced text. See `_forced`.
        """
        from ._forced import forced_tokens

        return forced_tokens(self._core, self.grammar.vocabulary)

    def captures(self) -> dict[str, list[Capture]]:
        """Returns the named parts of the text so far: for each name of the grammar its matches, by start.

        A rule that repeats has one match for each repetition. If a text can be read in several ways, one
        reading counts for all names: from left to right, a capture begins wherever it can, and ends only
        where it cannot go on (leftmost, then longest). If the text may end here, it is read as a complete
        text. Otherwise it is read as a beginning, and parts that did not end yet are left out. A capture
        does not end with ignored text (``%ignore``). Empty text in front of a left-recursive rule is not
        reported. In a regex the reading is the one that Python's ``re`` prefers: the first alternative, the
        longest repetition or the shortest lazy one. A group that repeats has one match for each repetition
        (``re`` keeps the last), and groups inside an assertion have none.

        Cost: each call reads the text again, in microseconds a byte. A matcher keeps the text only if the
        grammar has captures.

        Raises:
            BudgetExceeded: more than 5000 readings are open at one place, or a pattern takes too many steps.
        """
        found: dict[str, list[Capture]] = {name: [] for name in self.grammar.capture_names}
        for name, start, end, start_token, end_token, text in self._core.captures():
            if name not in HIDDEN:
                found[name].append(Capture(start, end, start_token, end_token, text))
        return found

    def live_bytes(self) -> bytes:
        """Returns every byte that may come next, ascending."""
        return self._core.live_bytes()


class Forks:
    """Keeps the matchers behind token prefixes of one grammar: the `most` prefixes that were used last.

    The matcher of a prefix is forked from the matcher of the prefix without its last token, if that one is
    kept. So a growing text is read once.
    """

    def __init__(self, grammar: CompiledGrammar, most: int) -> None:
        self._grammar = grammar
        self._most = most
        self._kept: OrderedDict[tuple[int, ...], Matcher | None] = OrderedDict()

    def at(self, tokens: tuple[int, ...]) -> Matcher | None:
        """Returns the matcher behind these tokens; None if the grammar refuses them. The caller must not
        change its state."""
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
    """Fills a row of ``mask`` from each matcher, with the GIL released. An error of one row affects no other
    row: every other row is filled, even if the call raises.

    The row of a matcher with an error is all zero. It allows no token, so nothing is sampled from it by
    accident. The state of that matcher does not change.

    Args:
        matchers: distinct matchers, of one or several grammars.
        mask: int32 numpy array or CPU tensor, shape (rows, ceil(V/32)), C-contiguous.
        rows: the row of each matcher, in any order; negative numbers count from the end. None means row i for
            matcher i. Other rows do not change.
        threads: 0 chooses by the batch size, 1 runs in the calling thread.
        skip_errors: return the errors instead of raising the first one.

    Returns:
        With ``skip_errors`` a list as long as ``matchers``: the exception of each row that has no mask, None
        for the others. Else None.

    Raises:
        ValueError: the mask has a wrong type or shape, a matcher or a row is given twice, or a row is outside
            the mask. No row changes then.
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
        raise TypeError(f"rows is a list of row numbers, not {rows!r:.60}") from None
    if places and not -(1 << 63) <= min(places) <= max(places) < 1 << 63:
        raise ValueError(f"the mask has no such row: {rows!r:.60}")
    errors = _core.fill_bitmasks(cores, mask, threads, places)
    if skip_errors:
        return errors or [None] * len(cores)
    if errors:
        raise error_of_rows(errors)
    return None


def can_end_within(grammar: CompiledGrammar, tokens: int, whose: str = "") -> bool:
    """Returns whether the grammar has a text of at most `tokens` tokens. The cost is at most about that of a
    mask.

    False means that no text was found, and that it is not proved that none exists. `whose` stands behind the
    number of tokens in an error, and names the reason for the number.

    Raises:
        UnsatisfiableBudget: it is proved that no text fits. Or no text that fits was found, and a larger
            number is known to suffice; the message names the number. Most such texts would otherwise be cut
            off.
        SchemaTooComplex: the first mask exceeds a limit.
        ValueError: the number is negative.
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
    """Returns the first error of a batch, with a note that names all rows with errors."""
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
    """Returns the result of `call(tokens)`. TypeError: `tokens` is no sequence of token ids."""
    try:
        return call(tokens)
    except (TypeError, RuntimeError) as error:
        if isinstance(error, RuntimeError) and "bad_cast" not in str(error):
            raise
        raise TypeError(f"tokens are a list of ids, not {tokens!r:.60}; text goes to accept_bytes") from None
