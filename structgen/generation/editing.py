"""`sg.edit`: a model writes one value of a JSON document, or one stretch of any text, anew. The rest stays.

Enters: a model, a document, the place, a constraint on the whole document. Leaves: `Edited`. Its text belongs
to the grammar, and equals the document byte for byte outside the place. Cost: a compile,
`CompiledGrammar.infill`, and a forward pass for each written token.

The problem. The new value has to fit the constraint on the whole document, and what fits depends on both
sides of the place. A model reads from left to right.

The idea. The place is a hole. `CompiledGrammar.infill(before, after)` gives the grammar of all middles, and
the model writes one of them (`_written`). In `{"a": [1, {"b": "x"}], "c": 2}` the pointer `/a/1/b` is the
span 16 to 19, `"x"`.

A middle alone could also be `"y", "d": 3` if objects may have a key `d`. So for a pointer, a second matcher
reads a single JSON value, and both matchers must allow each token.

Spelling. A document may have any blanks, numbers and strings, but a model should write plain ones.
`_grammars` finds the order of keys and the layout of the document, and gives grammars from plain to any
spelling. `_middle` takes the first one that has a middle.

Prompt. A model goes on from the last text that it reads. So the prompt has the document, the instruction, and
then the text in front of the hole. A model with marks for fill-in-the-middle (``<|fim_prefix|>`` and the
like) reads both sides in its own form (`_prompt`).

Invariants.
- Outside the span, the text equals the old document byte for byte.
- The document belongs to the constraint before and after the edit. A document that does not is refused.

Rejected. Keeping arrays and objects plain where the text around needs other spellings: a budget then searches
the product of grammar and condition, which took seconds a token.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import warnings
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .._json_scan import Scan
from .._pointers import pointer_of, steps_of
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
from ..logits import allocate_bitmask, allowed_ids
from ..matcher import Matcher

#: Marks before the prefix, the suffix and the middle, as families of models have them.
_MARKS = (
    ("<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>"),
    ("<fim_prefix>", "<fim_suffix>", "<fim_middle>"),
    ("<|fim_begin|>", "<|fim_hole|>", "<|fim_end|>"),
    ("<PRE>", "<SUF>", "<MID>"),
)
#: A value that is neither an array nor an object, with plain numbers and strings.
_PLAIN = Regex(
    r'true|false|null|-?(0|[1-9][0-9]*)(\.[0-9]+)?|"([^"\\\x00-\x1f]|\\["\\bfnrt]|\\u00[01][0-9a-f])*"'
)
#: Layouts of a document, from the narrowest to the widest.
_LAYOUTS = ("compact", "spaced", "one-blank", "pretty", "flexible")


@dataclass
class Edited:
    """What `sg.edit` returns.

    Attributes:
        text: the whole new document. value: its value, as the constraint reads it.
        written: the new text of the hole. old: the old text.
        span: the place of the hole in the old document, in characters.
        tokens: the tokens of `written`.
        warnings: sentences about doubts. Each is also a Python warning.
    """

    text: str
    value: Any
    written: str
    old: str
    span: tuple[int, int]
    tokens: list[int] = field(repr=False)
    warnings: list[str] = field(default_factory=list)


def span_of(document: str, pointer: str) -> tuple[int, int]:
    """Returns where the value of a JSON pointer begins and ends in a JSON text, in characters.

    If an object has a name twice, the last one counts, as for readers of JSON.

    Raises:
        LookupError: the pointer leads nowhere; the message says how far it leads.
        ValueError: `pointer` is no pointer, or `document` no JSON.
    """
    if pointer and not pointer.startswith("/"):
        raise ValueError(f"a JSON pointer is empty or begins with /, not {pointer!r:.60}")
    json.loads(document)
    names = steps_of(pointer)
    # The spans of the document, of the first name's value, of the second name's value in it, ...
    spans: list[tuple[int, int]] = []
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
        done = pointer_of(names[: len(spans) - 1])
        shown = f"#{done}" if done else "the document"
        raise LookupError(f"edit: {shown} has no {names[len(spans) - 1]!r:.60} (pointer {pointer!r:.80})")
    return spans[-1]


def _grammars(
    wanted: Any, lm: LanguageModel, document: bytes, given: dict[str, Any]
) -> list[CompiledGrammar]:
    """Returns the constraint as several grammars, from plain spellings of JSON to any spelling.

    A document is read in every spelling of JSON. A model writes numbers and strings plainly, with the
    document's order of keys and layout. The text around the hole may need more spellings: then a later
    grammar has the middle. `given` are options of JSON that the caller has set; they stay as they are.

    Raises:
        ValueError: the document is no text of the grammar.
    """

    def compiled(**how: str) -> CompiledGrammar:
        made: CompiledGrammar = wanted.compile(compiler_of(lm), {**how, **given})
        return made

    every = {"whitespace": "flexible", "numbers": "any", "strings": "any"}
    orders = [given["property_order"]] if "property_order" in given else ["schema", "any"]
    order = next(
        (order for order in orders if compiled(**every, property_order=order)._holds(document)), None
    )
    if order is None:
        read = compiled(**every, property_order=orders[-1]).matcher().validate_bytes(document)
        line = document[:read].count(b"\n") + 1
        early = read == len(document)
        what = "ends too early" if early else f"breaks the constraint at byte {read}, line {line}"
        raise ValueError(f"edit: the document is not valid to begin with: it {what}")
    every["property_order"] = order
    layout = next(mode for mode in _LAYOUTS if compiled(**{**every, "whitespace": mode})._holds(document))
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
    """Returns the first grammar that has a middle, and the grammar of the middle.

    If the text around needs more spellings and the hole is a whole `scalar`, the middle is still plain if it
    can be (`_PLAIN`). Arrays and objects are not made plain: a budget searches the product of the grammar and
    the condition, which took seconds a token for an object with any members.

    Raises:
        GrammarError: no grammar has a middle.
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
    """Fills the mask under a budget of `left` tokens. If the engine cannot decide the budget, the mask has
    none."""
    try:
        matcher.fill_bitmask(mask, max_tokens=left)
    except UnsatisfiableBudget:
        raise
    except BudgetExceeded:
        matcher.fill_bitmask(mask)


def _too_few(matcher: Matcher, max_tokens: int, written: int) -> UnsatisfiableBudget | None:
    """Returns the error for a value that does not fit within the tokens. None if no continuation completes
    the text.

    `edit` counts tokens without the end, so the number in the message is one less than that of
    `token_bounds`.
    """
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
    """Writes a middle, which is also one JSON value if `value` is given.

    A middle alone might go on behind the value with further members, if the rest of the document allows them.
    So a second matcher reads one value, and each token has to be allowed by both. A schema may ask for more
    members because of the value that was written. Then no token is allowed, and the call raises an error.

    Returns:
        The tokens, and the model's log-probability of them and the end.
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
        allowed = allowed_ids(bits)
        if not len(allowed):
            raise BudgetExceeded(
                "edit: after the written beginning, no single value fits the rest of the document"
            )
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
    """Returns one value of a JSON document, or a stretch of any text, written anew by a model.

    Everything else stays as it is, byte for byte. The whole belongs to the constraint, because the new value
    is written under the grammar of what fits there (`CompiledGrammar.infill`).

    Args:
        model: as `sg.generate` takes it.
        document: the text. It has to fit the constraint.
        where: a JSON pointer ("/customer/city"), or (begin, end) in characters.
        schema: a JSON Schema or a Python type of the whole; or another constraint by its name (`lark=`,
            `regex=`, `grammar=`, ...).
        instruction: says in words how to change the value.
        max_tokens: the most tokens of the new value. temperature: 0 is greedy. seed: the seed of the draws.
        options: those of `JsonOptions`. By default a document in any spelling of JSON is read. The value is
            written with plain numbers and strings, and with the document's order of keys and layout
            (`generate` is compact). Other spellings are written if the text around the place leaves no plain
            one, and in arrays and objects of a document that has other spellings elsewhere.

    Raises:
        LookupError: the pointer leads nowhere. ValueError: the document does not fit the constraint (the
            message says where), or the span is outside of it. GrammarError: the grammar has no holes.
            BudgetExceeded: max_tokens is too small.
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
    # Texts of the grammar have no blanks around them, so the document's outer blanks are cut off.
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
