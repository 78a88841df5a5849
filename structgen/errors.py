"""The exceptions that structgen raises on purpose.

Enters: a fact, and its place (text and byte offset, or a JSON pointer).
Leaves: an exception. There is a class for each case that a caller may handle differently.
The C++ core throws one type; its binding calls `from_core` once for each error.

    StructgenError
      GrammarError (ValueError)     text that is no pattern, schema or grammar
        UnsupportedSchema           a keyword that this build does not enforce
        SchemaTooComplex            a formula or regex beyond its budget
        UnsatisfiableSchema         no instance exists
        UnsatisfiableCondition      no text of a grammar meets a condition on the whole text
        UnsatisfiableInfill         nothing fits between a prefix and a suffix
      VocabularyError (ValueError)  a vocabulary or tokenizer that cannot be used
      BudgetExceeded                a run-time budget (memory, states, time) ran out
        UnsatisfiableBudget         no text of the language fits the tokens that are left
      MissingDependency (ImportError)  a package that an extra of structgen-engine brings is not there

`DoubtfulAnswer` is a warning.
"""

from __future__ import annotations

__all__ = [
    "BudgetExceeded",
    "DoubtfulAnswer",
    "GrammarError",
    "MissingDependency",
    "SchemaTooComplex",
    "StructgenError",
    "UnsatisfiableBudget",
    "UnsatisfiableCondition",
    "UnsatisfiableInfill",
    "UnsatisfiableSchema",
    "UnsupportedSchema",
    "VocabularyError",
]

_SHOWN = 120  # characters of a line that an error message repeats
_POINTER = 200  # characters of a JSON pointer


class StructgenError(Exception):
    """The base class of structgen's exceptions."""


class DoubtfulAnswer(UserWarning):
    """An answer of the embedded model is probably wrong: the request is outside what it was trained for."""


class GrammarError(StructgenError, ValueError):
    """Text that is not a pattern, a schema or a grammar.

    `message` is the fact alone. `text` is the whole source, `line` and `column` count from 1 (in
    characters) and `offset` counts bytes of UTF-8 from 0. `pointer` and `keyword` name the place in a JSON
    Schema. Each attribute is None if it is not known.
    """

    pointer: str | None = None
    keyword: str | None = None

    def __init__(
        self,
        message: str,
        *,
        text: str | None = None,
        line: int | None = None,
        column: int | None = None,
        offset: int | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.text = text
        self.line = line
        self.column = column
        self.offset = offset
        if text is not None and offset is not None and line is None:
            self.line, self.column = _place(text, offset)

    def placed(self, text: str) -> GrammarError:
        """Returns the same error, with line and column of its byte offset in the text."""
        if self.offset is not None and self.line is None:
            self.line, self.column = _place(text, self.offset)
        return self

    def located(self, text: str) -> GrammarError:
        """Returns the same, shown with the line of the text."""
        self.text = text
        return self.placed(text)

    def __str__(self) -> str:
        fact = self.message + _where(self.pointer, self.keyword)
        if self.line is None:
            return fact
        column = self.column or 1
        head = f"{fact} (line {self.line}, column {column})"
        if self.text is None:
            return head
        lines = _lines(self.text)
        if not 1 <= self.line <= len(lines):
            return head
        shown, caret = _window(lines[self.line - 1], column)
        return f"{head}\n    {shown}\n    {caret}"


class TerminalsOnly(GrammarError):
    """A rule stands where only terminals may stand: below `&`, `~`, a shortest match or a condition.

    Code that combines grammars catches this class by itself. For users it is a `GrammarError`.
    """


class _SchemaError(GrammarError):
    """An error at one keyword of a JSON Schema.

    `pointer` is a JSON pointer ("" is the root), `keyword` the keyword's name or "".
    """

    pointer: str
    keyword: str

    def __init__(
        self, message: str, *, pointer: str = "", keyword: str = "", text: str | None = None
    ) -> None:
        super().__init__(message, text=text)
        self.pointer = pointer
        self.keyword = keyword

    def __str__(self) -> str:
        where = f"#{short_pointer(self.pointer)}"
        if self.keyword and not self.message.startswith(f"'{self.keyword}'"):
            return f"{self.message} (keyword '{self.keyword}' at {where})"
        return f"{self.message} (at {where})"


class UnsupportedSchema(_SchemaError):
    """A keyword that structgen does not enforce exactly, and so refuses."""


class SchemaTooComplex(_SchemaError):
    """Deciding this schema would cost more than its budget."""


class UnsatisfiableSchema(_SchemaError):
    """No instance satisfies this schema."""


class UnsatisfiableCondition(GrammarError):
    """Proved: no text of the grammar meets the condition on the whole text.

    `condition` shows the part of the condition that no text meets. If some text meets each part, it shows the
    whole condition.
    """

    condition: str | None = None


class UnsatisfiableInfill(GrammarError):
    """Proved: no text of the grammar begins with the prefix and ends with the suffix.

    `part` is "prefix" or "suffix". `offset` is the first byte of that part that no text has at that place. It
    is the length of the suffix if all of the suffix can follow and no text ends behind it.
    """

    part: str

    def __init__(self, message: str, *, part: str, offset: int) -> None:
        super().__init__(message, offset=offset)
        self.part = part

    def __str__(self) -> str:
        return f"{self.message} (byte {self.offset} of the {self.part})"


class VocabularyError(StructgenError, ValueError):
    """A vocabulary, tokenizer or tokenizer file that cannot be used."""


class BudgetExceeded(StructgenError):
    """A run-time budget (memory, states, time) ran out; a larger one may succeed.

    `pointer` and `keyword` name the part of a JSON Schema that was being processed; None if it is not known.
    """

    pointer: str | None = None
    keyword: str | None = None


class UnsatisfiableBudget(BudgetExceeded):
    """Proved: no text of the language can be completed within the tokens that are left.

    If the search found no text and proved nothing, the error is a plain `BudgetExceeded`.
    """


class MissingDependency(StructgenError, ImportError):
    """A required package is not installed or cannot be imported. The message has the command to run."""


_SCHEMA_KINDS: dict[str, type[_SchemaError]] = {
    "unsupported": UnsupportedSchema,
    "too_complex": SchemaTooComplex,
    "unsatisfiable": UnsatisfiableSchema,
}


def from_core(kind: str, message: str, pointer: str, keyword: str, offset: int) -> Exception:
    """Returns the exception for an error of the C++ core.

    `kind` is one of grammar, terminals_only, unsupported, too_complex, unsatisfiable, unsatisfiable_infill,
    vocabulary, budget, unsatisfiable_budget and value (an argument outside its range: a plain ValueError).
    `offset` counts bytes; -1 is none.
    """
    if kind in _SCHEMA_KINDS:
        return _SCHEMA_KINDS[kind](message, pointer=pointer, keyword=keyword)
    where = _where(pointer, keyword)
    if kind in ("grammar", "terminals_only"):
        made = GrammarError if kind == "grammar" else TerminalsOnly
        error = made(message, offset=offset if offset >= 0 else None)
        if pointer or keyword:  # a malformed schema rather than malformed text
            error.pointer, error.keyword = pointer, keyword
        return error
    if kind == "unsatisfiable_infill":
        if pointer == "condition":
            return UnsatisfiableCondition(message)
        return UnsatisfiableInfill(message, part=pointer, offset=offset)
    if kind == "vocabulary":
        return VocabularyError(message)
    if kind == "budget":
        exceeded = BudgetExceeded(message + where)
        if where:
            exceeded.pointer, exceeded.keyword = pointer, keyword
        return exceeded
    if kind == "unsatisfiable_budget":
        return UnsatisfiableBudget(message)
    if kind == "value":
        return ValueError(message)
    return StructgenError(f"{message} (unknown error kind {kind!r})")


def _where(pointer: str | None, keyword: str | None) -> str:
    """Returns the place in a schema, to be put behind a message; empty for the root without a keyword."""
    if keyword:
        return f" (keyword '{keyword}' at #{short_pointer(pointer or '')})"
    return f" (at #{short_pointer(pointer)})" if pointer else ""


def short_pointer(pointer: str) -> str:
    """Returns a JSON pointer as messages show it. A long pointer is cut to its beginning and its end."""
    half = _POINTER // 2
    return pointer if len(pointer) <= _POINTER else f"{pointer[:half]}...{pointer[-half:]}"


def _lines(text: str) -> list[str]:
    """Lines as editors count them: only a line feed, with or without a carriage return, ends one."""
    return [line.removesuffix("\r") for line in text.split("\n")]


def _place(text: str, offset: int) -> tuple[int, int]:
    """Returns line and column (from 1, in characters) of a byte offset into the text's UTF-8 form."""
    before = text.encode("utf-8", "surrogatepass")[:offset].decode("utf-8", "ignore")
    line = before.count("\n") + 1
    return line, len(before) - (before.rfind("\n") + 1) + 1


def _window(line: str, column: int) -> tuple[str, str]:
    """Returns the part of a line around a column, and the caret line under it."""
    start = max(0, min(column - 1 - _SHOWN // 2, len(line) - _SHOWN))
    shown = line[start : start + _SHOWN]
    at = column - 1 - start
    if start:
        shown, at = "..." + shown, at + 3
    if start + _SHOWN < len(line):
        shown += "..."
    # Tabs stay tabs in the caret line, so the caret stands under its character in a terminal.
    return shown, "".join("\t" if c == "\t" else " " for c in shown[:at]) + "^"
