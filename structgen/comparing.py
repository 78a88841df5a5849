"""Whether one schema, type, pattern or grammar contains another: `sg.contains`, `sg.compare`, `a & b`.

Enters: two operands (operands.py). Leaves: a verdict with the shortest witness and what refuses it. Cost: a
compile or two, a fraction of a millisecond for usual schemas; an explanation costs some hundred compiles.

The problem. Is a new version of a schema compatible with the old one? Sampling finds large differences; only
a proof shows that there is no difference.

The idea. `narrow` is in `wide` if and only if "narrow and not wide" is empty. The engine decides emptiness
exactly, and a shortest text of what is not empty is a shortest witness. Three cases:

    two schemas              {"allOf": [narrow, {"not": wide}]}, by values
    wide is regular          narrow & ~wide, by texts
    else                     narrow's and wide's parse states are walked side by side, shorter texts first

The third case walks pairs of parse states. The walk ends with a witness, or after all pairs, which is a
proof. Two context-free grammars may have infinitely many pairs, and then the answer is None. For `(ab)*` in
`root ::= "a" root "b" | ""` the pairs behind "", "a", "ab" are walked; behind "abab" wide has no
continuation, so "abab" is a witness.

Invariants. True and False are proved. None names what was tried. A witness is of `narrow` and not of `wide`.
Rejected: containment by cases over keywords (jsonsubschema), because it refuses every schema for which it has
no case.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from .checking import bytes_compiler
from .conditions import max_bytes
from .counting import States
from .errors import (
    BudgetExceeded,
    GrammarError,
    SchemaTooComplex,
    StructgenError,
    UnsatisfiableCondition,
    UnsatisfiableSchema,
    UnsupportedSchema,
)
from .grammar import CompiledGrammar
from .operands import SPELLING, Operand, operand, together, well_formed

if TYPE_CHECKING:
    from .compiler import Compiler

_PAIRS = 4_000  # the most pairs of states that are walked side by side
_PROVED = 400  # bytes: a shorter witness is looked for with a bound on its length
_NOT_TOLD = (SchemaTooComplex, UnsupportedSchema, BudgetExceeded)
_NO_VALUE = "the {0} side has no {1}, so everything contains it"

Relation = Literal["equal", "narrower", "wider", "overlapping", "disjoint"]


@dataclass(frozen=True, slots=True)
class Containment:
    """Whether all of `narrow` is in `wide`.

    Attributes:
        holds: True or False, both proved; None if it is not decided.
        witness: a shortest text that `narrow` takes and `wide` refuses; JSON for schemas; None if there is
            none.
        pointer, keyword: the keyword of the schema `wide` that refuses the witness, as in `Cause`; "" if it
            is not known.
        reason: why `holds` is None and what was tried, or which side has no value; else "".
    """

    holds: bool | None
    witness: str | None = None
    pointer: str = ""
    keyword: str = ""
    reason: str = ""

    def __bool__(self) -> bool:
        """Returns whether it is proved that `wide` contains `narrow`."""
        return self.holds is True


@dataclass(frozen=True, slots=True)
class Comparison:
    """How the sets of texts, or of values, of `a` and `b` compare.

    Attributes:
        a_in_b, b_in_a: the two containments.
        overlap: whether something is in both; None if it is not decided.
        common: a shortest text that is in both.
    """

    a_in_b: Containment
    b_in_a: Containment
    overlap: bool | None
    common: str | None = None

    @property
    def equal(self) -> bool | None:
        """Whether both sides have the same texts, or the same values."""
        holds = (self.a_in_b.holds, self.b_in_a.holds)
        return False if False in holds else None if None in holds else True

    @property
    def disjoint(self) -> bool | None:
        """Whether both sides have no text or value in common."""
        return None if self.overlap is None else not self.overlap

    @property
    def relation(self) -> Relation | None:
        """The relation of `a` to `b` in one word; None if it is not decided. Two empty sides are equal."""
        a, b = self.a_in_b.holds, self.b_in_a.holds
        if self.equal:
            return "equal"
        if a is None or b is None:
            return "disjoint" if self.disjoint and (a, b) != (None, None) else None
        if a or b:
            return "narrower" if a else "wider"
        return None if self.overlap is None else "overlapping" if self.overlap else "disjoint"


def contains(wide: Any, narrow: Any, **options: Any) -> Containment:
    """Returns whether everything that `narrow` allows is allowed by `wide`.

    Args:
        wide, narrow: a JSON Schema (dict, boolean, JSON text), a Python type, an `re.Pattern`, a `Condition`,
            a `CompiledGrammar` or a `Template`. Two schemas are compared by values; all others by
            texts. The texts of a schema that is not compiled yet are those that `sg.generate` may write.
        options: `draft`, `registry` and `formats` of schemas, as in `JsonOptions`.

    Source: containment as emptiness of a difference; the walk is the product construction over parse states.

    Raises:
        GrammarError: a side that is malformed; the message names the side. TypeError: another kind of value.
    """
    return _contains(operand(wide, **options), operand(narrow, **options))


def compare(a: Any, b: Any, **options: Any) -> Comparison:
    """Compares two schemas, types, patterns or grammars both ways. Arguments and errors are those of
    `contains`."""
    one, other = replace(operand(a, **options), name="a"), replace(operand(b, **options), name="b")
    overlap = _overlap(one, other)
    return Comparison(
        _contains(other, one),
        _contains(one, other),
        None if overlap.holds is None else not overlap.holds,
        overlap.witness,
    )


def _overlap(one: Operand, other: Operand) -> Containment:
    """Returns whether two operands have nothing in common. `witness` is a shortest text of both if they
    have."""
    found = _told(lambda: _intersection(one, other))
    if found.holds is not None or (one.is_json and other.is_json):
        return found
    try:
        return _walked(one.grammar(), other.grammar(), both=True)
    except (UnsatisfiableSchema, UnsatisfiableCondition):
        return Containment(True)
    except _NOT_TOLD:
        return found


def _contains(wide: Operand, narrow: Operand) -> Containment:
    if not (wide.is_json and narrow.is_json):
        return _by_texts(wide, narrow)
    for side, name in ((narrow, narrow.name or "narrow"), (wide, wide.name or "wide")):
        try:
            well_formed(
                bytes_compiler().json_schema(
                    side.document, registry=side.registry or None, formats=side.formats, **SPELLING
                )
            )
        except UnsatisfiableSchema:
            if side is narrow:
                return Containment(True, reason=_NO_VALUE.format(name, "value"))
        except _NOT_TOLD as error:
            return Containment(None, reason=f"the {name} side alone was tried: {error}")
        except GrammarError as error:
            error.message = f"the {name} side: {error.message}"
            error.args = (error.message,)
            raise
    found = _told(lambda: _of_schemas((narrow, True), (wide, False)))
    if found.witness is None:
        return found
    pointer, keyword = _refusal(wide, found.witness)
    return Containment(False, found.witness, pointer, keyword)


def _of_schemas(*parts: tuple[Operand, bool]) -> CompiledGrammar:
    document, registry = together(*parts)
    formats = parts[0][0].formats
    return bytes_compiler().json_schema(document, registry=registry, formats=formats, **SPELLING)


def _told(make: Callable[[], CompiledGrammar]) -> Containment:
    """Returns whether a grammar is empty. `witness` is a shortest text of the grammar if it is not."""
    try:
        text = shortest(make())
    except (UnsatisfiableSchema, UnsatisfiableCondition):
        return Containment(True)
    except _NOT_TOLD as error:
        return Containment(
            None, reason=f"the engine decides emptiness by its grammar, and met a limit: {error}"
        )
    except GrammarError as error:
        return Containment(None, reason=error.message)
    return Containment(False, text)


def shortest(grammar: CompiledGrammar) -> str:
    """Returns a shortest text of the grammar. If it has up to 400 bytes, no shorter one exists, which is
    proved.

    Raises:
        BudgetExceeded: no text was found in time.
    """
    text = grammar.matcher().shortest_completion()
    while 0 < len(text) <= _PROVED:
        try:
            text = (grammar & max_bytes(len(text) - 1)).matcher().shortest_completion()
        except StructgenError:  # No shorter text exists, or the question is too costly: the text found stays.
            break
    return text.decode("utf-8", "backslashreplace")


def _refusal(wide: Operand, witness: str) -> tuple[str, str]:
    """Returns the pointer and the keyword in `wide` that refuse an instance; two empty texts where none was
    found."""
    if wide.document is False:
        return "", ""
    try:
        grammar = bytes_compiler().json_schema(
            wide.document, registry=wide.registry or None, formats=wide.formats, **SPELLING
        )
        found = grammar.explain(witness)
    except StructgenError:
        return "", ""
    cause = found.causes[0] if found is not None and found.causes else None
    return ("", "") if cause is None else (cause.pointer, cause.keyword)


# ---- by texts ----


def _by_texts(wide: Operand, narrow: Operand) -> Containment:
    try:
        of_narrow = narrow.grammar()
    except (UnsatisfiableSchema, UnsatisfiableCondition):
        return Containment(True, reason=_NO_VALUE.format(narrow.name or "narrow", "text"))
    except _NOT_TOLD as error:
        return Containment(None, reason=f"the {narrow.name or 'narrow'} side alone was tried: {error}")
    if wide.condition is not None:
        refused = ~wide.condition
        found = _told(lambda: of_narrow & refused)
        if found.holds is not None:
            return found
    try:
        of_wide = wide.grammar()
    except (UnsatisfiableSchema, UnsatisfiableCondition):
        return _told(lambda: of_narrow)
    except _NOT_TOLD as error:
        return Containment(None, reason=f"the {wide.name or 'wide'} side alone was tried: {error}")
    return _walked(of_narrow, of_wide)


def _walked(narrow: CompiledGrammar, wide: CompiledGrammar, both: bool = False) -> Containment:
    """Walks two grammars' states side by side. The witness is in narrow and not in wide; in both with
    `both`."""
    if narrow is wide and not both:
        return Containment(True)
    seen: set[tuple[int, int]] = {(0, 0)}
    length = 0
    try:
        one, other = States(narrow, _PAIRS), States(wide, _PAIRS)
        # (length, text, narrow's state, wide's state). A state of wide is -1 if wide refuses the text, and -2
        # if the text is a witness.
        queue: list[tuple[int, bytes, int, int]] = [(0, b"", 0, 0)]
        while queue:
            length, text, n, w = heapq.heappop(queue)
            if w == -2 or (one.accepts(n) and (w == -1 or other.accepts(w) == both)):
                return Containment(False, text.decode("utf-8", "backslashreplace"))
            beside = {byte: there for letters, there in other.next(w) for byte in letters}
            for letters, there in one.next(n):
                for byte in letters:
                    pair = (there, beside.get(byte, -1))
                    if pair in seen or (both and pair[1] == -1):
                        continue
                    seen.add(pair)
                    if len(seen) > _PAIRS:
                        raise BudgetExceeded("the limit of pairs")
                    longer = text + bytes((byte,))
                    if pair[1] == -1:
                        longer += one.matchers[there].shortest_completion()
                        pair = (there, -2)
                    heapq.heappush(queue, (len(longer), longer, *pair))
    except (BudgetExceeded, SchemaTooComplex, GrammarError) as error:
        said = getattr(error, "message", str(error))
        tried = f"{len(seen)} pairs of their states were walked, texts of up to {length} bytes"
        return Containment(None, reason=f"neither proved nor refuted: {tried} ({said})")
    return Containment(True)


# ---- grammars of both, and of the difference ----


def _intersection(one: Operand, other: Operand) -> CompiledGrammar:
    if one.is_json and other.is_json:
        return _of_schemas((one, True), (other, True))
    if other.condition is not None:
        return one.grammar() & other.condition
    if one.condition is not None:
        return other.grammar() & one.condition
    raise GrammarError(
        "neither side is a pattern or a condition: the texts of both are no grammar in general"
    )


def combined(one: CompiledGrammar, other: CompiledGrammar, wanted: bool) -> CompiledGrammar:
    """Returns the grammar of the texts of `one` that are in `other` (`wanted`) or not in `other`.

    See `CompiledGrammar.__and__`.

    Raises:
        UnsatisfiableSchema, UnsatisfiableCondition: there is no such text. GrammarError: it cannot be
            decided.
    """
    a, b = operand(one), operand(other)
    if one._options is not None and a.is_json and b.is_json:
        document, registry = together((a, True), (b, wanted))
        asked = one._options[1]
        style = {**asked.arguments(), "draft": None, "registry": registry}
        return _compiler_of(one).json_schema(document, **style)
    if b.condition is not None:
        return one & (b.condition if wanted else ~b.condition)
    if wanted and a.condition is not None:
        return other & a.condition
    what = "both" if wanted else "the difference"
    raise GrammarError(
        f"the texts of {what} are no grammar in general: {'one side' if wanted else 'the right side'} "
        "must be a pattern, a choice or a condition, or both must be JSON Schemas"
    )


def _compiler_of(grammar: CompiledGrammar) -> Compiler:
    found = grammar._compiler()
    if found is not None:
        return found
    assert grammar._recipe is not None
    return grammar._recipe[0](grammar.vocabulary)


CompiledGrammar._combined = staticmethod(combined)
