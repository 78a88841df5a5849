"""A compiled grammar: its source, and the matchers and grammars that are made from it.

Enters: the core's grammar from `Compiler`. Leaves: matchers (matcher.py), grammars of middles, of conditions
and of canvases, values of finished texts, pickles. Cost: a matcher takes microseconds; `prepare` and `warm`
cost the masks that they make.

A grammar never changes for its users, but its states and masks grow with each new text. When they reach the
limit of memory, `_fresh` compiles the grammar again for new texts, and matchers that exist keep the old
one. For this, and for pickles, a grammar knows its recipe: the method of `Compiler` that made it, and the
arguments. The grammar of a middle and a grammar with a condition have no recipe; they hold the grammar that
they came from. For example, `pickle.dumps(compiler.regex("ab?"))` holds the vocabulary, "regex" and "ab?".

Invariants: a grammar that is read from a pickle has the same texts and masks. The grammar holds its compiler
weakly, because the compiler holds its grammars.

Rejected: states and masks in pickles. They point into tables of the vocabulary that are numbered in the
order in which texts met them (_saved_compiler.py).
"""

from __future__ import annotations

import contextlib
import json
import math
import operator
import random
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from . import _core
from ._checks import one_of, utf8, whole
from ._readable import table_html
from .canvas import Canvas, made
from .conditions import Condition
from .errors import (
    BudgetExceeded,
    GrammarError,
    SchemaTooComplex,
    StructgenError,
    UnsatisfiableCondition,
)
from .holes import Completion, Gap, core_parts, hole_text
from .logits import allocate_bitmask
from .matcher import HIDDEN, Matcher

_NOTED = 256  # the most texts of a grammar that `Compiler.save` writes

if TYPE_CHECKING:
    from .compiler import Compiler
    from .explain import Explanation
    from .json_options import JsonOptions
    from .reasoning import Reasoning
    from .vocabulary import Vocabulary


@dataclass(frozen=True, slots=True)
class ReportEntry:
    """A keyword that constrains nothing: its place, its name and the reason."""

    pointer: str
    keyword: str
    reason: str

    def __str__(self) -> str:
        return f"#{self.pointer}: {self.keyword}: {self.reason}"

    @property
    def dropped(self) -> bool:
        """Whether the keyword's value has a wrong type (``"minItems": "3"``), so that the keyword, or a part
        of it, constrains nothing. The author of the schema expects a rule that no text has to follow."""
        return self.reason.startswith("ignored")


class CompiledGrammar:
    """A grammar over one vocabulary, shared by any number of matchers and threads.

    A grammar never changes, so `copy` returns the grammar itself. A pickle holds the vocabulary and the
    source, and unpickling compiles the source again.
    """

    __slots__ = (
        "__weakref__",
        "_compiler",
        "_condition",
        "_core",
        "_fitting",
        "_infill",
        "_options",
        "_parse",
        "_reasoned",
        "_recipe",
        "_report",
        "_source",
        "_texts",
        "_written",
        "vocabulary",
    )

    # comparing.py puts its function here, because it needs the compiler, which this file does not import.
    _combined: ClassVar[Callable[[CompiledGrammar, CompiledGrammar, bool], CompiledGrammar]]

    def __init__(
        self, core: _core.Grammar, vocabulary: Vocabulary, source: Any = None, parse: Any = None
    ) -> None:
        self._core = core
        self.vocabulary: Vocabulary = vocabulary
        self._source = source
        self._written: bytes | None = None
        self._parse = parse
        self._fitting: dict[int, bool] = {}  # number of tokens -> whether some text fits; hosts ask
        self._texts: dict[tuple[int, ...], None] | None = None  # tokens that `warm` read, for Compiler.save
        self._report: tuple[ReportEntry, ...] | None = None
        self._options: tuple[str, JsonOptions] | None = None  # the text and the options of a JSON Schema
        # the arguments of `infill` that made a grammar of middles; see `around`
        self._infill: tuple[CompiledGrammar, bytes, bytes] | None = None
        # a weak reference, because a compiler keeps its grammars
        self._compiler: Callable[[], Compiler | None] = _no_compiler
        # the grammar and the condition whose `&` made this one
        self._condition: tuple[CompiledGrammar, Condition] | None = None
        # the answers' grammar and the thoughts in front
        self._reasoned: tuple[CompiledGrammar | None, Reasoning] | None = None
        # The call that can make the grammar again: the class Compiler (an argument, because this file does
        # not import it), one of its methods, and the arguments.
        self._recipe: tuple[type[Compiler], str, tuple[Any, ...], dict[str, Any]] | None = None

    def matcher(
        self,
        *,
        end_token_ids: Iterable[int] | None = None,
        max_tokens: int | None = None,
        after_end: Literal["refuse", "ignore"] = "refuse",
    ) -> Matcher:
        """Returns a new matcher at the start of the text.

        A request's own limits are laid over the masks, so all requests share the grammar's states and masks.

        Args:
            end_token_ids: the tokens that end this text, in place of the vocabulary's. They are forbidden
                where the text may not end, even if a token among them is ordinary text.
            max_tokens: the most tokens of the whole text, its end included. Masks and `validate_tokens` then
                allow only tokens after which the text can be completed within the tokens that are left. Each
                `accept_bytes` counts as one token, and `rollback` gives tokens back. `accept_token` ignores
                `max_tokens`, because the host has already chosen that token.
            after_end: "ignore" takes any token after the end as a step that changes nothing, for hosts that
                pass such tokens; "refuse" takes only end tokens and tokens without text there.

        Raises:
            ValueError: no end tokens, ids outside the vocabulary, or a negative number.
            TypeError: `max_tokens` is no number, or `end_token_ids` no list of ids.
        """
        one_of("after_end", after_end, ("refuse", "ignore"))
        if max_tokens is not None:
            whole("max_tokens", max_tokens, 0)
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
        """Returns the core's grammar for a new text. If the states and masks of earlier texts have reached
        the limit of memory, the grammar is compiled again, and the matchers of those texts keep the old one.
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
        except StructgenError:  # The old grammar serves as long as it can.
            pass
        return self._core

    def prepare(
        self, steps: int = 0, *, seconds: float | None = None, max_tokens: int | None = None
    ) -> CompiledGrammar:
        """Makes the first mask, so that decoding need not wait for it. Returns the grammar itself.

        A host calls it in its compile threads; the GIL is released meanwhile.

        Args:
            steps: also makes the masks of so many tokens of a random text. Other texts share most of the
                work: automata, rows of the vocabulary, and states near the start.
            seconds: after so many seconds no further mask is begun; None makes all masks.
            max_tokens: the masks are those of a matcher with this `max_tokens`.

        Raises:
            SchemaTooComplex, BudgetExceeded: the first mask exceeds a limit.
            UnsatisfiableBudget: no text ends within `max_tokens`.
        """
        if max_tokens is not None:
            self._core.prepare_endings()
        row = allocate_bitmask(1, self.vocabulary.vocab_size)
        matcher = self.matcher(max_tokens=max_tokens)
        end = math.inf if seconds is None else time.monotonic() + seconds
        matcher.fill_bitmask(row)
        chance = random.Random(0)
        with contextlib.suppress(StructgenError):  # A text that gets to this mask gets the error.
            for _ in range(steps):
                if time.monotonic() >= end or not matcher.accept_token(_some_token(row[0], chance)):
                    break
                if matcher.is_terminated():
                    matcher = self.matcher(max_tokens=max_tokens)
                matcher.fill_bitmask(row)
        return self

    def warm(self, texts: Iterable[str | bytes], *, seconds: float | None = None) -> int:
        """Reads example texts, so that the masks of texts like them are known when they are decoded.

        A server that knows its grammars passes earlier answers, or a few texts written by hand. The states
        of a text depend on the order of its keys, its blanks and its tokens, so texts as the model writes
        them help most. States and masks that no example reaches are made when they are asked for. The
        compiler must keep the grammar, or the caller must hold it.

        Args:
            texts: example texts. A text that the grammar refuses is read up to the refused token.
            seconds: after so many seconds no further text is begun; None reads all texts.

        Returns:
            The number of tokens read.

        Costs what decoding the texts costs without the model; the GIL is released in each mask. On 94 schemas
        of MaskBench one other text, 8 ms a schema, took the mean mask of a new text from 17 to 5 us.

        Raises:
            TypeError: `texts` is one text in place of a list, or an item is no text.
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
        """Makes the masks of texts, given as tokens, and returns how many tokens it read. It begins no text
        after the time `end`, nor when stop() is true."""
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
        """Returns the grammar as its front end wrote it, in bytes, for `Compiler.deserialize` and for
        ``structgen_compile_serialized`` of the C interface: GBNF, Lark, structural tags, tools, templates.

        The bytes hold a version and a checksum, and no masks. They fit every vocabulary unless the grammar
        names tokens by their ids. Reading them costs as much as compiling the grammar, without the reader
        of the dialect.

        Raises:
            ValueError: no front end wrote the grammar. It is a JSON Schema, a pattern or a choice, which have
                calls of their own in C; or a middle, or a grammar with a condition.
        """
        if self._written is None:
            kind = self._recipe[1] if self._recipe is not None else "made of another grammar"
            raise ValueError(
                "serialize is for grammars in GBNF or Lark, structural tags, tools and templates; of other "
                f"kinds ({kind}) keep the text and the options, and compile them again"
            )
        return self._written

    def can_complete(self, parts: Iterable[str | bytes | Gap]) -> Completion:
        """Returns whether the grammar has a text made of these parts.

        Args:
            parts: fixed texts, and `Gap`s. Any text within the bounds of a gap may fill it.

        Returns:
            A `Completion`. Its verdict is True with such a text; False if it is proved that none exists; None
            if a limit was met, or if it is not known whether texts in the gaps repeat each other
            (``uniqueItems``).

        Costs milliseconds, linear in the parts for the grammars of usual documents and programs. It takes no
        more work than a mask may take (``Limits(mask=...)``) and 200 units a byte of text. Gaps of tokens are
        first taken as gaps of bytes, which mostly decides; else the vocabulary is walked for each token.

        Source: the intersection of a context-free grammar with a regular language (Bar-Hillel, Perles and
        Shamir, 1961), by a worklist.

        Raises:
            TypeError: a part is neither text nor gap. ValueError: the parts are too long.
            GrammarError: the grammar limits tokens, and their number depends on how a text is cut.
        """
        verdict, text = self._fresh().can_complete(core_parts(parts))
        return Completion(None if verdict < 0 else verdict == 1, text)

    def infill(self, prefix: str | bytes, suffix: str | bytes) -> CompiledGrammar:
        """Returns the grammar of what may stand between two texts: every middle for which ``prefix + middle +
        suffix`` is a text of this grammar.

        It is a grammar like any other: masks, budgets, forced text, speculation and `sg.sample` work on it.
        Captures are those of the whole text that lie in the middle. `parse` reads the middle alone as text.

        Args:
            prefix, suffix: the text before and behind the hole. The border may lie anywhere: inside a name,
                a string, an escape, a character of several bytes.

        Costs: reading both texts, and milliseconds for the suffix. The new grammar shares the states and
        masks that all grammars of a compiler share, and no others.

        Source: the right quotient of a context-free language (Ginsburg and Spanier, 1963).

        Raises:
            UnsatisfiableInfill: there is no middle; the error names the byte of the prefix or suffix at
                fault.
            GrammarError: the grammar limits tokens. SchemaTooComplex, BudgetExceeded: a limit was met.
        """
        before, after = hole_text(prefix, "the prefix"), hole_text(suffix, "the suffix")
        if not before and not after:
            return self
        core = self._fresh().infill(before, after)
        out = CompiledGrammar(core, self.vocabulary, None, _middle)
        out._infill = (self, before, after)
        return out

    def __and__(self, condition: Condition | CompiledGrammar) -> CompiledGrammar:
        """Returns the grammar of this grammar's texts that meet a condition on the whole text: ``grammar &
        sg.without("password") & sg.max_bytes(200)``. With another grammar: the texts that are in both.

        With two JSON Schemas the result has the values that satisfy both, in the spelling of the left one.
        With other grammars one of the two must be a pattern or a choice.

        The result is a grammar like any other: masks, budgets, captures, `infill`, speculation and
        `sg.sample` work on it, and `parse` reads its texts as this grammar does.

        Args:
            condition: `Regex`, `without`, `containing`, `max_bytes`, `min_bytes`, and what ``&``, ``|`` and
                ``~`` make of them. It judges the bytes as they are written, blanks and escapes too.

        Costs: a rule for each rule of the grammar and each pair of states of the condition's automaton that
        occurs with it. A word has one state a byte. `max_bytes` and `min_bytes`, alone or joined by ``&``,
        are counted beside the states; they cost a shortest completion, and a look at a mask's tokens near a
        bound.
        In other cases the two are a part of the automaton, with a state for each byte: under ``|`` and ``~``,
        with ``on_limit="subset"``, over a vocabulary that lacks bytes, and if it is not known which lengths a
        text can have.

        Source: the intersection of a context-free language with a regular one (Bar-Hillel, Perles and Shamir,
        1961).

        Raises:
            UnsatisfiableCondition: no text meets the condition; the error names the part that fails.
            GrammarError: a pattern cannot be read, or the grammar limits tokens.
            SchemaTooComplex, BudgetExceeded: a limit was met.
        """
        if isinstance(condition, CompiledGrammar):
            return CompiledGrammar._combined(self, condition, True)
        if not isinstance(condition, Condition):
            return NotImplemented
        try:
            core = self._fresh().conditioned(condition._core())
        except UnsatisfiableCondition as error:
            raise self._refused(condition, error) from None
        except (BudgetExceeded, SchemaTooComplex) as error:
            error.args = (f"{error}; the condition is {condition!r}",)
            if isinstance(error, SchemaTooComplex):
                error.message = error.args[0]
            raise
        out = CompiledGrammar(core, self.vocabulary, self._source, self._parse)
        out._condition = (self, condition)
        return out

    def __sub__(self, other: Condition | CompiledGrammar) -> CompiledGrammar:
        """Returns the grammar of the texts of this grammar that are not in the other: ``self & ~condition``.
        For two JSON Schemas it is the difference of their values. Arguments, costs and errors are those of
        ``&``."""
        if isinstance(other, Condition):
            return self & ~other
        if not isinstance(other, CompiledGrammar):
            return NotImplemented
        return CompiledGrammar._combined(self, other, False)

    def __rand__(self, condition: Condition) -> CompiledGrammar:
        return self & condition

    def _refused(self, condition: Condition, error: UnsatisfiableCondition) -> UnsatisfiableCondition:
        """Returns the error with the part that no text meets alone."""
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
        """Returns a row of token slots that is filled in any order; a `Canvas` says what may stand in each.

        Args:
            slots: the number of slots.
            prefix: the text in front of the slots.
            after: "end": the text ends within the slots, with an end-of-sequence token and padding behind it,
                or with the last slot. "open": the text may also go on behind the slots.
            pad: the token behind the end; None repeats the end-of-sequence token.

        Costs reading the prefix. The grammar keeps its tables about gaps for the next canvas.

        Source: holes of exact lengths in texts of a context-free language, by sets of stacks (Lang, 1974), in
        place of lexeme counts as in constrained diffusion (Mündler et al., 2025).

        Raises:
            UnsatisfiableBudget: no text fits; the error names the number of tokens of the shortest text.
            UnsatisfiableInfill: no text begins with the prefix. GrammarError: the grammar limits tokens.
            ValueError: the number of slots is negative or too large, or the padding token does not exist.
        """
        return made(self, slots, prefix, after, pad)

    @property
    def around(self) -> tuple[CompiledGrammar, bytes, bytes] | None:
        """The grammar, the prefix and the suffix from which `infill` made this grammar. Else None."""
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
        """Returns JSON text that is equal for two grammars only if they were compiled from the same text in
        the same way. The keys of a schema are not sorted, because their order may be the order of keys in the
        texts.
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
        if self._options is not None:  # This is a JSON Schema. Its recipe leaves out default options.
            text, asked = self._options
            registry = asked.registry
            documents = {uri: getattr(registry[uri], "contents", registry[uri]) for uri in registry or ()}
            # Each field that changes the texts is in the schema's text, in core(), or named here.
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
        """The source of the grammar: a schema, a pattern, a list of texts."""
        return self._source

    @property
    def report(self) -> tuple[ReportEntry, ...]:
        """The keywords that constrain nothing, with JSON pointers; empty if every keyword is enforced."""
        made_of = self._condition or self._infill or self._reasoned
        if made_of is not None:
            return () if made_of[0] is None else made_of[0].report
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
        """The entries of `report` whose keywords have a value of a wrong type: ``"required": "a"``. A host
        refuses a request with such a keyword."""
        return tuple(entry for entry in self.report if entry.dropped)

    @property
    def warnings(self) -> tuple[str, ...]:
        """Warnings: rules of a grammar's text that are never used or match nothing, and parts that are read
        and ignored."""
        return tuple(self._core.warnings)

    @property
    def capture_names(self) -> tuple[str, ...]:
        """The names of the grammar's captures, in the order of their first mention."""
        return tuple(name for name in self._core.captures if name not in HIDDEN)

    def parse(self, text: str | bytes) -> Any:
        """Returns the value of a complete text: an instance of the compiled Python type, or parsed JSON.

        The text is not checked against the grammar; a matcher's `accept_bytes` and `is_accepting` check it.

        Raises:
            ValueError: no value can be read, because the text does not belong to the grammar. If a
                validator of a Python type refuses a text of the grammar, its own error is raised.
        """
        import json

        read = json.loads if self._parse is None else self._parse
        try:
            return read(text)
        except Exception:  # A validator written in Python may raise any exception.
            matcher = self.matcher()
            length = matcher.validate_bytes(text)
            if length == len(utf8(text)) and matcher.accept_bytes(text) and matcher.is_accepting():
                raise
            fact = f"byte {length} cannot follow" if length < len(utf8(text)) else "it is not complete"
            raise ValueError(f"the text {text[:60]!r} is none of the grammar's: {fact}") from None

    def _holds(self, text: str | bytes) -> bool:
        """Returns whether a text belongs to the grammar."""
        matcher = self.matcher()
        return matcher.accept_bytes(text) and matcher.is_accepting()

    def _answer_value(self, text: str | bytes) -> Any:
        """Returns the value of the answer in a text with thoughts."""
        assert self._reasoned is not None
        grammar, reasoning = self._reasoned
        whole = text.decode() if isinstance(text, bytes) else text
        answer = reasoning.split(whole)[1]
        return answer if grammar is None else grammar.parse(answer)

    @property
    def reasoning(self) -> Reasoning | None:
        """The marks of thoughts in the grammar's texts; `Reasoning.split` cuts a text. None without
        thoughts."""
        return None if self._reasoned is None else self._reasoned[1]

    @property
    def answer(self) -> CompiledGrammar | None:
        """The grammar of the answers behind thoughts (None: any text), or the grammar itself."""
        return self if self._reasoned is None else self._reasoned[0]

    def explain(self, text: str | bytes) -> Explanation | None:
        """Explains why a text is refused: the place, the keywords that forbid it, what could stand there.
        None if the text is accepted. It works for JSON Schemas, also with conditions. It costs many small
        compiles, so it is for people and not for decoding.

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
        """Drops every state and mask that no live matcher needs. Matchers give the same answers as before."""
        self._core.collect()


def _no_compiler() -> None:
    return None


def _filled_again(grammar: CompiledGrammar, prefix: bytes, suffix: bytes) -> CompiledGrammar:
    return grammar.infill(prefix, suffix)


def _middle(text: str | bytes) -> str | bytes:
    """Returns a middle as text; as bytes if it begins or ends inside a character."""
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
    """Makes a grammar from its pickle. Grammars of one vocabulary share a compiler, which the vocabulary
    holds. A weak dictionary would keep both for ever, because a compiler holds its vocabulary."""
    compiler = vocabulary.__dict__.get("compiler")
    if compiler is None:
        compiler = vocabulary.__dict__.setdefault("compiler", kind(vocabulary))
    made: CompiledGrammar = getattr(compiler, method)(*args, **options)
    return made


def _some_token(row: Any, chance: random.Random) -> int:
    """Returns one of the tokens that a row of a mask allows, without a look at all of them."""
    words = row.view(np.uint32)
    word = int(chance.choice(np.flatnonzero(words)))
    bits = int(words[word])
    return 32 * word + chance.choice([i for i in range(32) if bits >> i & 1])
