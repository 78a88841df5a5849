"""`sg.edit`: one value of a JSON document, or a stretch of any text, is written anew; all else stays.

Enters: a model, a document, where, a constraint on the whole. Leaves: `Edited`, whose text is the document
byte for byte but for the place, and belongs to the grammar. Cost: a compile, `CompiledGrammar.infill`, and a
forward a token of what is written.

A model reads what stands in front of the hole last, so that it goes on from there; the document and the
instruction stand before that. A model with marks for fill-in-the-middle (``<|fim_prefix|>`` and the like)
reads both sides in its own form.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import warnings
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .._json_scan import Scan, pointer_of
from ..conditions import Regex
from ..constraints import constraint_of
from ..errors import (
    BudgetExceeded,
    DoubtfulAnswer,
    SchemaTooComplex,
    UnsatisfiableBudget,
    UnsatisfiableCondition,
    UnsatisfiableInfill,
)
from ..grammar import CompiledGrammar
from ..json_options import JSON_NAMES
from ..linting import outside
from ..lm.base import LanguageModel
from ..lm.doubt import doubt
from ..lm.load import compiler_of, language_model
from ..lm.prompts import formatted, is_embedded
from ..logits import allocate_bitmask
from ..matcher import Matcher

__all__ = ["Edited", "edit", "span_of"]

#: Marks of prefix, suffix and middle, in the order in which models read them.
_MARKS = (
    ("<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>"),
    ("<fim_prefix>", "<fim_suffix>", "<fim_middle>"),
    ("<|fim_begin|>", "<|fim_hole|>", "<|fim_end|>"),
    ("<PRE>", "<SUF>", "<MID>"),
)
#: A value that is no array and no object, with plain numbers and strings.
_PLAIN = Regex(
    r'true|false|null|-?(0|[1-9][0-9]*)(\.[0-9]+)?|"([^"\\\x00-\x1f]|\\["\\bfnrt]|\\u00[01][0-9a-f])*"'
)
#: How blanks of a document may stand, the narrowest first.
_LAYOUTS = ("compact", "spaced", "one-blank", "pretty", "flexible")


@dataclass
class Edited:
    """What `sg.edit` returns.

    Attributes:
        text: the whole document. value: what the constraint makes of it.
        written: what stands in the hole now. old: what stood there.
        span: where the hole is in the old document, in characters.
        tokens: of what is written.
        warnings: what is in doubt, each also a Python warning.
    """

    text: str
    value: Any
    written: str
    old: str
    span: tuple[int, int]
    tokens: list[int] = field(repr=False)
    warnings: list[str] = field(default_factory=list)


def span_of(document: str, pointer: str) -> tuple[int, int]:
    """Where the value of a JSON pointer begins and ends in a JSON text, in characters.

    Of a name that an object has twice the last is meant, which is the one that readers keep.

    Raises:
        LookupError: nothing is there; the message says how far the pointer leads.
        ValueError: no pointer, or no JSON.
    """
    if pointer and not pointer.startswith("/"):
        raise ValueError(f"a JSON pointer is empty or begins with /, not {pointer!r:.60}")
    json.loads(document)
    names = [part.replace("~1", "/").replace("~0", "~") for part in pointer.split("/")[1:]]
    spans: list[
        tuple[int, int]
    ] = []  # of the document, of the first name's value, of the second's in it, ...
    scan = Scan(document)
    for part in scan:
        depth = len(scan.path)
        if part.kind == "key" or depth > len(names) or [str(step) for step in scan.path] != names[:depth]:
            continue
        if part.kind == "close":
            spans[depth] = (spans[depth][0], part.end)
        else:
            spans[depth:] = [(part.begin, part.end)]
    if len(spans) <= len(names):
        done = pointer_of(tuple(names[: len(spans) - 1]))
        shown = f"#{done}" if done else "the document"
        raise LookupError(f"edit: {shown} has no {names[len(spans) - 1]!r:.60} (pointer {pointer!r:.80})")
    return spans[-1]


def _grammars(
    wanted: Any, lm: LanguageModel, document: bytes, given: dict[str, Any]
) -> list[CompiledGrammar]:
    """The constraint as grammars, the one to write with first; all of them belong to the constraint.

    A document is read in every spelling of JSON, and a model writes numbers and strings plainly, in the order
    of keys and with the blanks that the document has. What stands around the hole may need more spellings:
    then one of the later grammars has the middle. `given` holds options of JSON, which are kept to.

    Raises:
        ValueError: the document is no text of the grammar.
    """

    def compiled(**how: str) -> CompiledGrammar:
        made: CompiledGrammar = wanted.compile(compiler_of(lm), {**how, **given})
        return made

    def reads(grammar: CompiledGrammar) -> bool:
        matcher = grammar.matcher()
        return matcher.accept_bytes(document) and matcher.is_accepting()

    every = {"whitespace": "flexible", "numbers": "any", "strings": "any"}
    orders = [given["property_order"]] if "property_order" in given else ["schema", "any"]
    order = next((order for order in orders if reads(compiled(**every, property_order=order))), None)
    if order is None:
        read = compiled(**every, property_order=orders[-1]).matcher().validate_bytes(document)
        line = document[:read].count(b"\n") + 1
        early = read == len(document)
        what = "ends too early" if early else f"breaks the constraint at byte {read}, line {line}"
        raise ValueError(f"edit: the document is not valid to begin with: it {what}")
    every["property_order"] = order
    layout = next(mode for mode in _LAYOUTS if reads(compiled(**{**every, "whitespace": mode})))
    found: list[CompiledGrammar] = []
    for numbers, strings in itertools.product(("plain", "any"), ("plain", "any")):
        how = {**every, "whitespace": layout, "numbers": numbers, "strings": strings}
        grammar = compiled(**how)
        if grammar not in found:
            found.append(grammar)
    return found


def _middle(
    grammars: list[CompiledGrammar], before: str, after: str, scalar: bool
) -> tuple[CompiledGrammar, CompiledGrammar]:
    """The first of the grammars that has a middle, and the middle.

    Where the text around needs more spellings and the hole is a whole `scalar`, the middle is still written
    plainly if it can be (`_PLAIN`). Arrays and objects are not: a budget searches the product of the grammar
    and the condition, which took seconds a token for an object of any members.

    Raises:
        GrammarError: none has one.
    """
    for last, grammar in enumerate(grammars, 1 - len(grammars)):
        try:
            middle = grammar.infill(before, after)
        except (UnsatisfiableInfill, SchemaTooComplex) as error:
            if last == 0:
                error.add_note("edit: of the place that is to be written")
                raise
            continue
        if scalar and grammar is not grammars[0]:
            with contextlib.suppress(UnsatisfiableCondition, SchemaTooComplex, BudgetExceeded):
                return grammar, middle & _PLAIN
        return grammar, middle
    raise AssertionError("there is a grammar")


def _prompt(lm: LanguageModel, instruction: str, before: str, old: str, after: str, schema: Any) -> str:
    special = lm.vocabulary.special_tokens
    for first, second, third in _MARKS:
        if first in special and second in special and third in special:
            asked = f"{instruction}\n" if instruction else ""
            return f"{first}{asked}{before}{second}{after}{third}"
    asked = instruction or f"Write another value in place of {old}"
    if is_embedded(lm):
        shaped = formatted(lm, f"{asked}. {before}{old}{after}", schema, "auto")
        return f"{shaped}{before}" if isinstance(shaped, str) else before
    return f"{before}{old}{after}\n\n{asked}\n\n{before}"


def _fill(matcher: Matcher, mask: Any, left: int) -> None:
    """The tokens after which the text can be finished in time; if that cannot be told, all of the mask."""
    try:
        matcher.fill_bitmask(mask, max_tokens=left)
    except UnsatisfiableBudget:
        raise
    except BudgetExceeded:
        matcher.fill_bitmask(mask)


def _too_few(matcher: Matcher, max_tokens: int, written: int) -> UnsatisfiableBudget | None:
    """The error of a value that does not fit, in the tokens that `edit` counts: without the end. None where
    nothing at all completes the text."""
    try:
        least, enough = matcher.token_bounds()
    except BudgetExceeded:
        return None
    takes = f"{'' if least == enough else 'at most '}{written + enough - 1}"
    return UnsatisfiableBudget(
        f"edit: the value cannot be completed within max_tokens={max_tokens}; it takes {takes}"
    )


def _written(
    lm: LanguageModel,
    prompt: str,
    middle: CompiledGrammar,
    value: CompiledGrammar | None,
    max_tokens: int,
    temperature: float,
    seed: int,
) -> tuple[list[int], float]:
    """The tokens of a middle and of one JSON value where that is what is edited, and the model's
    log-probability of them and the end.

    A middle alone might go on behind the value, with further members that the rest of the document leaves
    room for. So a second matcher reads one value, and a token needs both. That is decided token by token: a
    schema that asks for more members because of the value that is written ends in an error.
    """
    matchers = [grammar.matcher() for grammar in (middle, value) if grammar is not None]
    masks = [allocate_bitmask(1, middle.vocabulary.vocab_size) for _ in matchers]
    ends = set(middle.vocabulary.eos_token_ids)
    source = np.random.default_rng(seed)
    context = lm.start(prompt)
    out: list[int] = []
    total = 0.0
    while len(out) <= max_tokens:
        for matcher, mask in zip(matchers, masks, strict=True):
            try:
                _fill(matcher, mask, max_tokens + 1 - len(out))
            except UnsatisfiableBudget as error:
                raise _too_few(matcher, max_tokens, len(out)) or error from None
        bits = np.bitwise_and.reduce([np.asarray(mask)[0] for mask in masks])
        allowed = np.flatnonzero(np.unpackbits(bits.view(np.uint8), bitorder="little"))
        if not len(allowed):
            raise BudgetExceeded("edit: with what was written, one value alone does not fit the rest")
        scores = np.asarray(lm.logprobs([context])[0], dtype=np.float64)[allowed]
        if temperature > 0:
            weights = np.exp((scores - scores.max()) / temperature)
            token = int(source.choice(allowed, p=weights / weights.sum()))
        else:
            token = int(allowed[scores.argmax()])
        total += float(scores[np.searchsorted(allowed, token)])
        if token in ends:
            return out, total
        for matcher in matchers:
            matcher.accept_token(token)
        out.append(token)
        context = context.extend(token)
    raise BudgetExceeded(f"edit: {max_tokens} tokens did not finish the value; raise max_tokens")


def edit(
    model: Any,
    document: str,
    where: str | tuple[int, int],
    schema: Any = None,
    *,
    instruction: str = "",
    max_tokens: int = 64,
    temperature: float = 0.0,
    seed: int = 0,
    **options: Any,
) -> Edited:
    """One value of a JSON document, or a stretch of any text, written anew by a model.

    Everything else stays as it is, byte for byte, and the whole belongs to the constraint: the new value is
    written under the grammar of what fits there (`CompiledGrammar.infill`).

    Args:
        model: as `sg.generate` takes it.
        document: the text. It has to fit the constraint.
        where: a JSON pointer ("/customer/city"), or (begin, end) in characters.
        schema: a JSON Schema or a Python type of the whole; or another constraint by its name (`lark=`,
            `regex=`, `grammar=`, ...).
        instruction: what is to become of it, in words.
        max_tokens: of what is written. temperature: 0 is greedy. seed: of the draws.
        options: those of `JsonOptions`. By default every JSON text is taken, and
            the value is written with plain numbers and strings, in the order of keys and with the blanks that
            the document has (`generate`'s are compact). Other spellings are written where the text around the
            place leaves no plain one, and in arrays and objects of a document that has them elsewhere.

    Raises:
        LookupError: the pointer leads nowhere. ValueError: the document does not fit the constraint, and
            where; a span outside of it. GrammarError: the grammar has no holes. BudgetExceeded: max_tokens is
            too small.
    """
    names = ("schema", "regex", "choice", "gbnf", "lark", "grammar", "response_format")
    given = {name: options.pop(name) for name in names if name in options}
    wanted = constraint_of({"schema": schema, **given} if schema is not None else given)
    if wanted is None:
        raise ValueError("edit needs a constraint: schema=, lark=, regex=, grammar= or another one")
    if not isinstance(document, str):
        raise TypeError(f"edit: the document is text, not {type(document).__name__}")
    lm = language_model(model)
    how = {name: options.pop(name) for name in JSON_NAMES if name in options}
    if options:
        raise TypeError(f"edit() has no argument {next(iter(options))!r}")
    # Blanks around a JSON document are no part of the grammar's texts.
    core = document.strip(" \t\r\n") if isinstance(where, str) else document
    lead = document.index(core) if core else 0
    tail = document[lead + len(core) :]
    told_of = wanted.warn(how)
    grammars = _grammars(wanted, lm, core.encode(), how)
    wanted.warn_of(grammars[0], told_of)
    if isinstance(where, str):
        try:
            begin, end = span_of(document, where)
        except json.JSONDecodeError as error:
            raise ValueError(f"edit: a pointer needs a JSON document, and this is none: {error}") from None
    else:
        begin, end = where
        if not 0 <= begin <= end <= len(document):
            raise ValueError(f"edit: the span {begin}:{end} is not within {len(document)} characters")
    before, old, after = document[:begin], document[begin:end], document[end:]
    inside = after[: len(after) - len(tail)]
    scalar = isinstance(where, str) and old[:1] not in ("{", "[")
    grammar, middle = _middle(grammars, before[lead:], inside, scalar)
    prompt = _prompt(lm, instruction, before, old, after, wanted.document())
    one = None
    if isinstance(where, str):
        one = compiler_of(lm).json_schema({}, whitespace="flexible")
    tokens, total = _written(lm, prompt, middle, one, max_tokens, temperature, seed)
    told = doubt(lm, total, len(tokens) + 1)
    if told is not None:
        warnings.warn(told, DoubtfulAnswer, stacklevel=outside())
    written = middle.vocabulary.decode(tokens).decode("utf-8", "replace")
    value = wanted.reader(grammar)(before[lead:] + written + inside)
    doubts = [] if told is None else [told]
    return Edited(before + written + after, value, written, old, (begin, end), tokens, doubts)
