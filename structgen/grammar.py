"""Compiled grammars and matchers: thin Python faces of the C++ core.

In: a compiled grammar from ``Compiler``. Out: masks, accepted tokens, forced text.
Cost: a mask seen before is one copy of V/8 bytes; accepting a token is well under a microsecond.
"""

from __future__ import annotations

import contextlib
import functools
import json
import math
import operator
import random
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NoReturn, overload

import numpy as np

from . import _core
from ._readable import allowed_here, table_html
from .canvas import Canvas, made
from .conditions import Condition
from .errors import (
    BudgetExceeded,
    GrammarError,
    SchemaTooComplex,
    StructgenError,
    UnsatisfiableBudget,
    UnsatisfiableCondition,
)
from .holes import Completion, Gap, core_parts, hole_text
from .logits import allocate_bitmask

_NOTED = 256  # texts of a grammar that `Compiler.save` writes
_HIDDEN = ("", "\0")  # captures that nobody asked for: what is ignored, an end without a name

if TYPE_CHECKING:
    from .compiler import Compiler
    from .explain import Explanation
    from .json_options import JsonOptions
    from .vocabulary import Vocabulary


@dataclass(frozen=True, slots=True)
class ReportEntry:
    """One keyword that constrains nothing: where it stands, its name, why."""

    pointer: str
    keyword: str
    reason: str

    def __str__(self) -> str:
        return f"#{self.pointer}: {self.keyword}: {self.reason}"

    @property
    def dropped(self) -> bool:
        """Whether the keyword has a value of a wrong kind (``"minItems": "3"``), so that all of it, or a
        part, constrains nothing. Its author expects a rule that no text is held to."""
        return self.reason.startswith("ignored")


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


class CompiledGrammar:
    """A grammar over one vocabulary, shared by any number of matchers and threads.

    It never changes, so a copy is the grammar itself. A pickle holds its vocabulary and what it was compiled
    from, and is compiled again where it is read.
    """

    __slots__ = (
        "__weakref__",
        "_compiler",
        "_condition",
        "_core",
        "_infill",
        "_options",
        "_parse",
        "_recipe",
        "_report",
        "_source",
        "_texts",
        "_written",
        "vocabulary",
    )

    def __init__(
        self, core: _core.Grammar, vocabulary: Vocabulary, source: Any = None, parse: Any = None
    ) -> None:
        self._core = core
        self.vocabulary: Vocabulary = vocabulary
        self._source = source
        self._written: bytes | None = None
        self._parse = parse
        self._texts: dict[tuple[int, ...], None] | None = None  # tokens that `warm` read, for Compiler.save
        self._report: tuple[ReportEntry, ...] | None = None
        self._options: tuple[str, JsonOptions] | None = None  # of a JSON Schema: its text
        self._infill: tuple[CompiledGrammar, bytes, bytes] | None = None  # whose middles its texts are
        self._compiler: Callable[[], Compiler | None] = _no_compiler  # weak: it keeps its grammars
        self._condition: tuple[CompiledGrammar, Condition] | None = None  # whose texts meet it
        # The call that makes it again: the class Compiler (handed in: this file does not import it), one of
        # its methods, and the arguments.
        self._recipe: tuple[type[Compiler], str, tuple[Any, ...], dict[str, Any]] | None = None

    def matcher(
        self,
        *,
        end_token_ids: Iterable[int] | None = None,
        max_tokens: int | None = None,
        after_end: Literal["refuse", "ignore"] = "refuse",
    ) -> Matcher:
        """A new matcher at the start of the text.

        What a request asks for is laid over the masks, so all requests share the grammar's states and masks.

        Args:
            end_token_ids: the tokens that end this text, in place of the vocabulary's. They are forbidden
                where the text may not end, even those that are ordinary text.
            max_tokens: tokens of the whole text, its end included. `fill_bitmask` and `fill_bitmasks` then
                allow only tokens after which the text can be completed within what is left; steps of
                `accept_bytes` count as one token each, and `rollback` gives tokens back. Only masks know
                of it: `accept_token` and `validate_tokens` take what the grammar takes.
            after_end: "ignore" takes any tokens after the end as steps that change nothing, for hosts that
                hand them over; "refuse" takes end tokens and tokens without text alone.

        Raises:
            ValueError: no end tokens, ids outside the vocabulary, a negative number.
            TypeError: what is no number, or no list of ids.
        """
        if after_end not in ("refuse", "ignore"):
            raise ValueError(f"after_end is 'refuse' or 'ignore', not {after_end!r}")
        if max_tokens is not None and not hasattr(max_tokens, "__index__"):
            raise TypeError(f"max_tokens is a whole number, not {max_tokens!r:.60}")
        if max_tokens is not None and max_tokens < 0:
            raise ValueError(f"max_tokens must not be negative: {max_tokens}")
        ends: list[int] = []
        if end_token_ids is not None:
            try:
                ends = sorted({operator.index(t) for t in end_token_ids})
            except TypeError:
                raise TypeError(f"end_token_ids are token ids, not {end_token_ids!r:.60}") from None
            if not ends:
                raise ValueError("end_token_ids is empty, so no text could end; None means the vocabulary's")
        return Matcher(self, _core.Matcher(self._fresh(), ends, max_tokens, after_end == "ignore"))

    def _fresh(self) -> _core.Grammar:
        """The core's grammar for a new text. Earlier texts may have made so much of it that the next one
        would meet the limit of memory: then it is compiled again, and those texts keep theirs.
        """
        if not self._core.full:
            return self._core
        compiler = self._compiler()
        try:
            if self._infill is not None:
                grammar, before, after = self._infill
                self._core = grammar._fresh().infill(before, after)
            elif self._condition is not None:
                grammar, condition = self._condition
                self._core = grammar._fresh().conditioned(condition._core())
            elif compiler is not None and self._recipe is not None:
                _, method, given, options = self._recipe
                self._core = getattr(compiler, method)(*given, **options)._core
        except StructgenError:  # the one that there is serves as long as it can
            pass
        return self._core

    def prepare(self, steps: int = 0, *, seconds: float | None = None) -> CompiledGrammar:
        """Makes the first mask, so that whoever decodes need not wait for it; the grammar itself.

        For a host's compile threads: the GIL is released meanwhile.

        Args:
            steps: makes the masks of so many tokens of a random text as well. Other texts share most of what
                they need: automata, rows of the vocabulary, and states near the start.
            seconds: no further mask is begun behind so many; None makes them all.

        Raises:
            SchemaTooComplex, BudgetExceeded: what is allowed first is too much to tell.
        """
        matcher, row = self.matcher(), allocate_bitmask(1, self.vocabulary.vocab_size)
        end = math.inf if seconds is None else time.monotonic() + seconds
        matcher.fill_bitmask(row)
        chance = random.Random(0)
        with contextlib.suppress(StructgenError):  # a text that gets there is told
            for _ in range(steps):
                if time.monotonic() >= end or not matcher.accept_token(_some_token(row[0], chance)):
                    break
                if matcher.is_terminated():
                    matcher = self.matcher()
                matcher.fill_bitmask(row)
        return self

    def warm(self, texts: Iterable[str | bytes], *, seconds: float | None = None) -> int:
        """Reads example texts, so that the masks of texts like them are known when they are decoded.

        For a server that knows its grammars: answers of yesterday, or a few texts written by hand. The order
        of keys, blanks and how the texts are cut into tokens decide which states are met, so texts as the
        model writes them do most. What no text reaches is made when it is asked for. The grammar must be one
        that its compiler keeps, or be held by the caller.

        Args:
            texts: example texts. One that the grammar does not have is read as far as it goes.
            seconds: no text is begun behind so many; None reads them all.

        Returns:
            How many tokens were read.

        Costs what decoding the texts costs without the model; the GIL is released in each mask. On 94 schemas
        of MaskBench one other text, 8 ms a schema, took the mean mask of a new text from 17 to 5 us.

        Raises:
            TypeError: one text in place of a list of them, or something that is no text.
        """
        if isinstance(texts, (str, bytes)) or not isinstance(texts, Iterable):
            given = "one text" if isinstance(texts, (str, bytes)) else f"{texts!r:.60}"
            raise TypeError(f"warm: texts is a list of texts, not {given}")
        encoded = (self._encoded(text) for text in texts)
        return self._read(encoded, None if seconds is None else time.monotonic() + seconds)

    def _encoded(self, text: str | bytes) -> Sequence[int]:
        if not isinstance(text, (str, bytes)):
            raise TypeError(f"warm: a text is str or bytes, as the model writes it, not {text!r:.60}")
        return self.vocabulary.encode(text)

    def _read(
        self, texts: Iterable[Sequence[int]], end: float | None, stop: Callable[[], bool] | None = None
    ) -> int:
        """Makes the masks of texts, given as tokens; how many of these were read. No text is begun behind the
        time `end`, nor once stop() is true."""
        mask = allocate_bitmask(1, self.vocabulary.vocab_size)
        read = 0
        if self._texts is None:
            self._texts = {}
        for tokens in texts:
            if (end is not None and time.monotonic() >= end) or (stop is not None and stop()):
                break
            matcher = self.matcher()
            before = read
            with contextlib.suppress(BudgetExceeded, SchemaTooComplex):
                for token in tokens:
                    matcher.fill_bitmask(mask)
                    if not matcher.accept_token(token):
                        break
                    read += 1
                else:
                    matcher.fill_bitmask(mask)
            if read > before and len(self._texts) < _NOTED:
                self._texts[tuple(tokens[: read - before])] = None
        return read

    def serialize(self) -> bytes:
        """The grammar as its front end wrote it, in bytes, for `Compiler.deserialize` and for
        ``structgen_compile_serialized`` of the C interface: GBNF, Lark, structural tags, tools, templates.

        They hold a version and a checksum, and fit every vocabulary unless the grammar names tokens by their
        ids. Masks are not in them: reading costs what compiling costs without the reader of the dialect.

        Raises:
            ValueError: a grammar that no front end wrote: a JSON Schema, a pattern or a choice, which have
                calls of their own in C; a middle, or a grammar with a condition.
        """
        if self._written is None:
            kind = self._recipe[1] if self._recipe is not None else "made of another grammar"
            raise ValueError(
                "serialize is for grammars in GBNF or Lark, structural tags, tools and templates; of other "
                f"kinds ({kind}) keep the text and the options, and compile them again"
            )
        return self._written

    def can_complete(self, parts: Iterable[str | bytes | Gap]) -> Completion:
        """Whether the grammar has a text made of these parts.

        Args:
            parts: fixed texts, and `Gap`s that any text fills within their bounds.

        Returns:
            A `Completion`: True with such a text, False where it is proved that there is none, None where a
            limit was met or it is not known whether texts in the gaps repeat each other (``uniqueItems``).

        Costs milliseconds, linear in the parts for grammars as documents and programs have them, and no more
        work than a mask may take (``Limits(mask=...)``) and 200 units a byte of text. Gaps of tokens are
        first taken as gaps of bytes, which mostly decides; else the vocabulary is walked for each slot.

        Source: the intersection of a context-free grammar with a regular language (Bar-Hillel, Perles and
        Shamir, 1961), by a worklist.

        Raises:
            TypeError: a part that is no text and no gap. ValueError: parts that are too long.
            GrammarError: the grammar limits tokens, which depend on how a text is cut.
        """
        verdict, text = self._fresh().can_complete(core_parts(parts))
        return Completion(None if verdict < 0 else verdict == 1, text)

    def infill(self, prefix: str | bytes, suffix: str | bytes) -> CompiledGrammar:
        """The grammar of what may stand between two texts: every middle for which ``prefix + middle +
        suffix`` is a text of this grammar.

        It is a grammar like any other: masks, budgets, forced text, speculation and `sg.sample` work on it.
        Captures are those of the whole text that lie in the middle. `parse` reads the middle alone as text.

        Args:
            prefix, suffix: the text before and behind the hole. The border may lie anywhere: inside a name,
                a string, an escape, a character of several bytes.

        Costs: reading both texts, and milliseconds for what the suffix needs. Its states and masks are its
        own, apart from those that all grammars of a compiler share.

        Source: the right quotient of a context-free language (Ginsburg and Spanier, 1963).

        Raises:
            UnsatisfiableInfill: there is no middle; it says which byte of which text does not fit.
            GrammarError: the grammar limits tokens. SchemaTooComplex, BudgetExceeded: too much to tell.
        """
        before, after = hole_text(prefix, "the prefix"), hole_text(suffix, "the suffix")
        if not before and not after:
            return self
        core = self._fresh().infill(before, after)
        out = CompiledGrammar(core, self.vocabulary, None, _middle)
        out._infill = (self, before, after)
        return out

    def __and__(self, condition: Condition) -> CompiledGrammar:
        """The grammar of those of its texts that meet a condition on the whole text: ``grammar &
        sg.without("password") & sg.max_bytes(200)``.

        It is a grammar like any other: masks, budgets, captures, `infill`, speculation and `sg.sample` work
        on it, and `parse` reads its texts as the grammar's.

        Args:
            condition: `Regex`, `without`, `containing`, `max_bytes`, `min_bytes`, and what ``&``, ``|`` and
                ``~`` make of them. It judges the bytes as they are written, blanks and escapes too.

        Costs: a rule for each rule of the grammar and each pair of states of the condition's automaton that
        is met; words have a state a byte, `max_bytes` has one for each byte of the bound.

        Source: the intersection of a context-free language with a regular one (Bar-Hillel, Perles and Shamir,
        1961).

        Raises:
            UnsatisfiableCondition: no text meets it; it names the part that cannot be met.
            GrammarError: a pattern that cannot be read; the grammar limits tokens.
            SchemaTooComplex, BudgetExceeded: too much to tell.
        """
        if not isinstance(condition, Condition):
            return NotImplemented
        try:
            core = self._fresh().conditioned(condition._core())
        except UnsatisfiableCondition as error:
            raise self._refused(condition, error) from None
        out = CompiledGrammar(core, self.vocabulary, self._source, self._parse)
        out._condition = (self, condition)
        return out

    def __rand__(self, condition: Condition) -> CompiledGrammar:
        return self & condition

    def _refused(self, condition: Condition, error: UnsatisfiableCondition) -> UnsatisfiableCondition:
        """The error with the part that no text meets alone."""
        error.condition = repr(condition)
        parts = condition._all()
        for part in parts if len(parts) > 1 else ():
            try:
                self._core.conditioned(part._core())
            except UnsatisfiableCondition:
                error.condition = repr(part)
                break
            except (GrammarError, BudgetExceeded):
                continue
        alone = error.condition != repr(condition) or len(parts) == 1
        error.message += f": {error.condition}" + ("" if alone else " (each part alone can be met)")
        error.args = (error.message,)
        return error

    def canvas(
        self,
        slots: int,
        *,
        prefix: str | bytes = b"",
        after: Literal["end", "open"] = "end",
        pad: int | None = None,
    ) -> Canvas:
        """A row of token slots that is filled in any order; a `Canvas` says what may stand in each.

        Args:
            slots: how many.
            prefix: the text in front of them.
            after: "end": the text ends within the slots, by an end-of-sequence token and padding behind it,
                or by filling them all. "open": it may also go on behind them.
            pad: the token behind the end; None is the end-of-sequence token again.

        Costs reading the prefix; what is known of gaps is kept with the grammar.

        Source: holes of exact lengths in texts of a context-free language, by sets of stacks (Lang, 1974), in
        place of lexeme counts as in constrained diffusion (Mündler et al., 2025).

        Raises:
            UnsatisfiableBudget: no text fits; it names the tokens of the shortest one.
            UnsatisfiableInfill: no text begins with the prefix. GrammarError: the grammar limits tokens.
            ValueError: a negative number of slots or too many, a padding token outside the vocabulary.
        """
        return made(self, slots, prefix, after, pad)

    @property
    def around(self) -> tuple[CompiledGrammar, bytes, bytes] | None:
        """Of a grammar that `infill` made: the grammar, the prefix and the suffix. Else None."""
        return self._infill

    def __copy__(self) -> CompiledGrammar:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> CompiledGrammar:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        if self._infill is not None:
            return _filled_again, self._infill
        if self._condition is not None:
            return operator.and_, self._condition
        if self._recipe is None:
            raise TypeError("only grammars that a Compiler's methods returned can be pickled")
        return _compiled_again, (self.vocabulary, *self._recipe)

    def _identity(self) -> str:
        """JSON that two grammars share only if they were compiled from the same text in the same way. Keys of
        a schema are not sorted: their order may be that of the texts.
        """
        if self._infill is not None:
            grammar, *parts = self._infill
            return json.dumps(["infill", grammar._identity(), *map(repr, parts)])
        if self._condition is not None:
            grammar, condition = self._condition
            return json.dumps(["condition", grammar._identity(), repr(condition._core())])
        if self._recipe is None:
            return json.dumps(["grammar", repr(self.source)])
        _, kind, given, options = self._recipe
        if self._options is not None:  # of a JSON Schema; recipes leave out what is default
            text, asked = self._options
            registry = asked.registry
            documents = {uri: getattr(registry[uri], "contents", registry[uri]) for uri in registry or ()}
            given = (json.loads(text), asked.core(), asked.draft, documents, options.get("extra_keys"))
            options = {"on_limit": options["on_limit"]}

        def other(value: Any) -> str:
            return value._identity() if isinstance(value, CompiledGrammar) else repr(value)

        return json.dumps([kind, given, options], default=other)

    def __repr__(self) -> str:
        if self._condition is not None:
            grammar, condition = self._condition
            return f"<{grammar!r:.200} & {condition!r:.80}>"
        if self._infill is not None:
            grammar, before, after = self._infill
            return f"<{grammar!r:.200} between {_cut(before)} and {_cut(after)}>"
        kind = self._recipe[1].lstrip("_") if self._recipe is not None else "grammar"
        source = self.source if isinstance(self.source, str) else repr(self.source)
        shown = source if len(source) <= 60 else source[:57] + "..."
        return f"<CompiledGrammar of {kind} {shown!r} over {self.vocabulary.vocab_size} tokens>"

    def _repr_html_(self) -> str:
        kind = self._recipe[1].lstrip("_") if self._recipe is not None else "grammar"
        rows = {
            "vocabulary": f"{self.vocabulary.vocab_size} tokens",
            "captures": ", ".join(self.capture_names),
        }
        for i, entry in enumerate(self.report, 1):
            rows[f"not enforced {i}"] = str(entry)
        source = "" if self.source is None else self.source
        source = source if isinstance(source, str) else repr(source)
        return table_html(f"CompiledGrammar of {kind}", source[:2000], {k: v for k, v in rows.items() if v})

    @property
    def source(self) -> Any:
        """What the grammar was compiled from: a schema, a pattern, a list of texts."""
        return self._source

    @property
    def report(self) -> tuple[ReportEntry, ...]:
        """Keywords that are annotation only, with JSON pointers; empty when everything is enforced."""
        made_of = self._condition or self._infill
        if made_of is not None:
            return made_of[0].report
        if self._report is None:
            entries = [ReportEntry(*e) for e in self._core.report()]
            if self._parse is not None:
                from .frontend.remarks import REMARKS

                entries = [
                    ReportEntry(e.pointer, e.keyword, REMARKS.get(e.keyword, e.reason)) for e in entries
                ]
            self._report = tuple(sorted(entries, key=lambda e: (e.pointer, e.keyword)))
        return self._report

    @property
    def dropped(self) -> tuple[ReportEntry, ...]:
        """The entries of `report` whose keywords have a value of a wrong kind: ``"required": "a"``. A host
        refuses a request that has any."""
        return tuple(entry for entry in self.report if entry.dropped)

    @property
    def warnings(self) -> tuple[str, ...]:
        """Rules of a grammar's text that are never used or match nothing, and what is read and not kept."""
        return tuple(self._core.warnings)

    @property
    def capture_names(self) -> tuple[str, ...]:
        """The names of the grammar's captures, in the order of their first mention."""
        return tuple(name for name in self._core.captures if name not in _HIDDEN)

    def parse(self, text: str | bytes) -> Any:
        """The value of a complete text: the Python type that was compiled, or parsed JSON.

        The text is not held against the grammar first: a matcher's `accept_bytes` and `is_accepting` do that.

        Raises:
            ValueError: no value can be read, because the text is not one of the grammar's. What a validator
                of a Python type raises about a text of the grammar comes as it is.
        """
        import json

        read = json.loads if self._parse is None else self._parse
        try:
            return read(text)
        except Exception:  # a validator written in Python may raise what it likes
            matcher = self.matcher()
            length = matcher.validate_bytes(text)
            if length == len(_bytes(text)) and matcher.accept_bytes(text) and matcher.is_accepting():
                raise
            fact = f"byte {length} cannot follow" if length < len(_bytes(text)) else "it is not complete"
            raise ValueError(f"the text {text[:60]!r} is none of the grammar's: {fact}") from None

    def explain(self, text: str | bytes) -> Explanation | None:
        """Why a text is refused: the place, the keywords that forbid it, what could stand there; None if it
        is accepted. Only for JSON Schemas, also with conditions. Costs many small compilations: it is for
        people, not for decoding.

        Raises:
            ValueError: the grammar is no JSON Schema.
        """
        if self._condition is not None:
            from .explain import explain_condition

            grammar, condition = self._condition
            return grammar.explain(text) or explain_condition(self, grammar, condition, text)
        if self._options is None or self._recipe is None:
            raise ValueError("only texts of a JSON Schema can be explained")
        from .explain import explain

        schema, asked = self._options
        return explain(self._recipe[0], schema, text, **asked.arguments())

    @property
    def byte_size(self) -> int:
        """Bytes held by the states and masks found so far."""
        return self._core.byte_size

    def _collect(self) -> None:
        """Drops every state and mask that no live matcher needs. Matchers do not notice."""
        self._core.collect()


class Matcher:
    """One sequence under a grammar. Belongs to one thread at a time: a call that meets another thread's call
    raises ``ValueError`` and changes nothing. Hand a ``fork()`` to each thread.

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
                spare the mask is the one without a budget. With 8 tokens left or fewer the mask is exact, but
                where its search is too large (`mask_exact` is False then) or a rule limits tokens. With more,
                a token is refused if a completion that is shortest in bytes does not fit, though one that is
                longer in bytes and shorter in tokens would. Where what was read in a key or an item decides
                how the text can be finished, tokens are tried as they are: three of those alike, 2,000 in
                all. It costs one comparison while the budget is larger than what any allowed token could make
                necessary; near the end a look at the tokens in doubt, and from 8 tokens down a search of a
                millisecond or two.

        What raises here leaves the row all zero, which allows no token, unless it is the mask or the row
        that is wrong: then nothing is touched.

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
        """What the text takes, in words. Costs as much as `token_bounds`."""
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
        try:
            return self._core.accept_tokens(tokens)
        except (TypeError, RuntimeError) as error:
            if isinstance(error, RuntimeError) and "bad_cast" not in str(error):
                raise
            raise _no_ids(tokens) from None

    def accept_bytes(self, text: bytes | str) -> bool:
        """Appends text, whatever its tokenization; one step of the history. False changes nothing."""
        return self._core.accept_bytes(_bytes(text))

    def validate_tokens(self, tokens: Sequence[int]) -> int:
        """Length of the longest prefix that would be accepted; the state does not change."""
        try:
            return self._core.validate_tokens(tokens)
        except (TypeError, RuntimeError) as error:
            if isinstance(error, RuntimeError) and "bad_cast" not in str(error):
                raise
            raise _no_ids(tokens) from None

    def validate_bytes(self, text: bytes | str) -> int:
        """Bytes of the longest prefix that would be accepted; the state does not change."""
        return self._core.validate_bytes(_bytes(text))

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
        budget whose search was too large (`fill_bitmask`). Every token of such a mask is allowed, and the
        text can be completed after it.
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

        Whatever comes next: an end that a longer token, or a blank that goes with the next word, could still
        change is held back. Where the tokenizer would have cut the text so far in another way there are none,
        nor where it changes the text. See `_forced`; costs an encoding of the forced text or a few.
        """
        from ._forced import forced_tokens

        return forced_tokens(self._core, self.grammar.vocabulary)

    def captures(self) -> dict[str, list[Capture]]:
        """The named parts of the text so far: for each name of the grammar its matches, by start.

        A rule that repeats has one match a repetition. Where a text can be read in several ways, one reading
        counts for all names: from left to right, a capture begins wherever one can, and ends only where it
        cannot go on (leftmost, then longest). Where the text may end here it is taken to end here; else it
        is a beginning, and what did not end yet is left out. What ``%ignore`` names is not part of the end of
        a capture. Empty text in front of a left-recursive rule is not reported.
        In a regex the reading is the one that Python's ``re`` prefers: the first alternative, the longest
        repetition or the shortest lazy one. A group that repeats has one match a repetition (``re`` keeps the
        last), and groups inside an assertion have none.

        Cost: the text is read again, microseconds a byte; nothing is kept. Only grammars with captures keep
        the text: one byte a byte.

        Raises:
            BudgetExceeded: more than 5000 readings are open at one place; a pattern takes too many steps.
        """
        found: dict[str, list[Capture]] = {name: [] for name in self.grammar.capture_names}
        for name, start, end, start_token, end_token, text in self._core.captures():
            if name not in _HIDDEN:
                found[name].append(Capture(start, end, start_token, end_token, text))
        return found

    def live_bytes(self) -> bytes:
        """Every byte that may come next, ascending."""
        return self._core.live_bytes()


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
    """Fills a row of ``mask`` from each matcher, with the GIL released. What befalls one row stays with it:
    every other row is filled, whether the call raises or not.

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
        ValueError: a mask of the wrong type or shape, a matcher or a row that stands twice, a row that the
            mask has not: no row is touched.
        BudgetExceeded, SchemaTooComplex, ValueError (a matcher that another thread is using), MemoryError:
            without ``skip_errors``, what went wrong with the first matcher that has no mask. A note names the
            places of all such matchers in the batch, and so does the exception's attribute ``rows``, a tuple.
    """
    for i, m in enumerate(matchers):
        if not isinstance(m, Matcher):
            raise TypeError(f"row {i} of the batch is no matcher but {m!r:.60}")
    cores = [m._core for m in matchers]
    if len({id(c) for c in cores}) != len(cores):
        raise ValueError("the same matcher stands twice in the batch; fork it")
    if threads <= 0:
        threads = 1 if len(cores) < 16 else _cpu_count()
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

    False: no completion was found at all, and none was ruled out. `whose` stands behind the number of tokens
    in an error, and says what leaves so few.

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


def _no_compiler() -> None:
    return None


def _filled_again(grammar: CompiledGrammar, prefix: bytes, suffix: bytes) -> CompiledGrammar:
    return grammar.infill(prefix, suffix)


def _middle(text: str | bytes) -> str | bytes:
    """A middle as text; as bytes where it is not whole characters."""
    try:
        return text.decode() if isinstance(text, bytes) else text
    except UnicodeDecodeError:
        return text


def _cut(text: bytes) -> str:
    return repr(text if len(text) <= 40 else text[:37] + b"...")


def _compiled_again(
    vocabulary: Vocabulary,
    kind: type[Compiler],
    method: str,
    args: tuple[Any, ...],
    options: dict[str, Any],
) -> CompiledGrammar:
    """A grammar from its pickle. Grammars of one vocabulary share a compiler that lives as long as that does:
    a weak dictionary would keep both for ever, because a compiler holds its vocabulary."""
    compiler = vocabulary.__dict__.get("compiler")
    if compiler is None:
        compiler = vocabulary.__dict__.setdefault("compiler", kind(vocabulary))
    made: CompiledGrammar = getattr(compiler, method)(*args, **options)
    return made


@functools.cache
def _cpu_count() -> int:
    import os

    mine = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return min(8, mine or 1)


def _bytes(text: bytes | str) -> bytes:
    if isinstance(text, str):
        return text.encode("utf-8", "surrogatepass")  # half a surrogate pair: bytes that no grammar takes
    if isinstance(text, bytes | bytearray | memoryview):
        return bytes(text)
    raise TypeError(f"a text is bytes or str, not {text!r:.60}; token ids go to accept_tokens")


def _no_ids(tokens: Any) -> TypeError:
    return TypeError(f"tokens are a list of ids, not {tokens!r:.60}; text goes to accept_bytes")


def _some_token(row: Any, chance: random.Random) -> int:
    """One of the tokens that a row of a mask allows, without a look at all of them."""
    words = row.view(np.uint32)
    word = int(chance.choice(np.flatnonzero(words)))
    bits = int(words[word])
    return 32 * word + chance.choice([i for i in range(32) if bits >> i & 1])
