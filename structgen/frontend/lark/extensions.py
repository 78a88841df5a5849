"""What the extensions of Lark's language stand for: nodes, and operators between the parts of an expansion.

In: Lark's trees, in which a placeholder stands for each extension; what `text.scan` took out. Out: nodes.
Cost: linear in the extension; a nested grammar costs what it costs alone.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ... import _core
from ...errors import GrammarError
from .. import source
from .text import PLACEHOLDER, Extension, Scanned

if TYPE_CHECKING:
    from . import Frontend


class Extensions:
    """Those of one grammar."""

    def __init__(self, owner: Frontend, scanned: Scanned) -> None:
        self.owner = owner
        self.b = owner.b
        self.scanned = scanned

    def at(self, token: Any) -> Extension | None:
        match = PLACEHOLDER.search(str(token))
        return None if match is None else self.scanned.extensions[int(match[1])]

    def operator(self, tree: Any) -> Extension | None:
        """The operator that a placeholder among the parts of an expansion stands for."""
        literal = only_literal(tree)
        found = None if literal is None else self.at(literal)
        kinds = ("both", "negate", "count", "condition")
        return found if found is not None and found.kind in kinds else None

    def has_operators(self, kids: list[Any]) -> bool:
        return any((op := self.operator(k)) is not None and op.kind in ("both", "negate") for k in kids)

    def conditional(self, kids: list[Any], parameter: int) -> list[Any] | None:
        """The parts of an alternative without its conditions; None where they do not hold."""
        left = []
        for kid in kids:
            operator = self.operator(kid)
            if operator is None or operator.kind != "condition":
                left.append(kid)
            elif not operator.value(parameter):
                return None
        return left

    def counted(self, kids: list[Any], node: Callable[[Any], int]) -> list[int]:
        out: list[int] = []
        for kid in kids:
            operator = self.operator(kid)
            if operator is None:
                out.append(node(kid))
            elif not out:
                self.scanned.fail("nothing stands before this that could be repeated", operator.at)
            else:
                out[-1] = self.b.repeat(out[-1], *operator.value)
        return out

    def node(self, extension: Extension) -> int:
        """The node of an extension that stands for a text."""
        kind, value = extension.kind, extension.value
        if kind == "empty":
            return self.b.literal(b"")
        if kind == "json":
            return self.b.json(value, [], "flexible", False, False, False, True, 0)
        if kind == "reference":
            return self.owner.other(value, self.scanned, extension.at)
        if kind == "lark":
            try:
                return self.b.call(self.owner.grammar(value, "start"))
            except GrammarError as error:
                if error.line is not None and error.text == value:
                    line_start = value.split("\n")[: error.line - 1]
                    inside = sum(len(part) + 1 for part in line_start) + (error.column or 1) - 1
                    self.scanned.fail(error.message, extension.at + inside)
                raise
        if kind == "token":
            text, at = self.scanned.original, extension.at
            return self.b.tokens([source.named_token(value, self.owner.vocabulary, text, at)])
        if kind == "ids":
            return self.tokens(value, extension.at)
        if kind == "regex":
            return self.substring(extension)
        self.scanned.fail("this operator stands between terminals or in front of one", extension.at)

    def tokens(self, spec: str, at: int) -> int:
        """``<[12,15-18]>``, ``<[^12]>`` and ``<[*]>``: one token."""
        whole = self.owner.tokens
        if not source.all_but(spec):
            return whole.one_of(self.ids(spec, at), f"<[{spec}]>")
        named = spec.strip()[1:]
        return whole.but(self.ids(named, at) if named.strip() else [], f"<[{spec}]>")

    def tokens_in_terminal(self, extension: Extension) -> int:
        """A terminal is a regex over text and special tokens: an ordinary token in it is its text."""
        if source.all_but(extension.value):
            self.scanned.fail("<[*]> and <[^...]> stand in rules, not in terminals", extension.at)
        return self.b.tokens(self.ids(extension.value, extension.at))

    def ids(self, spec: str, at: int) -> list[int]:
        return source.token_ids(spec, self.owner.vocabulary, self.scanned.original, at)

    def substring(self, extension: Extension) -> int:
        value = extension.value
        if isinstance(value, dict) and len(value) == 1:
            ((kind, given),) = value.items()
            if (
                kind == "substring_chunks"
                and isinstance(given, list)
                and all(isinstance(g, str) for g in given)
            ):
                return self.b.substring([source.sound(g) for g in given], 0)
            if kind in ("substring_words", "substring_chars") and isinstance(given, str):
                units = source.units_of(source.sound(given), kind.removeprefix("substring_"))
                return self.b.substring(units, 0)
        self.scanned.fail(
            "%regex takes one of substring_words and substring_chars (a text), substring_chunks (a list)",
            extension.at,
        )


def repeated(b: _core.GrammarBuilder, node: int, operator: list[Any]) -> int:
    """A node under ``?``, ``*``, ``+`` or Lark's ``~``."""
    kind = str(operator[0])
    if kind == "~":
        if any(len(str(n).lstrip("+-")) > 10 or int(n) > source.MOST for n in operator[1:]):
            raise GrammarError(f"{source.TOO_MANY}, not {str(operator[-1])[:30]}")
        least = int(operator[1])
        most = int(operator[2]) if len(operator) > 2 else least
        if least < 0 or most < least:
            raise GrammarError(f"~{least}..{most} asks for at least {least} and at most {most}")
        return b.repeat(node, least, most)
    return b.repeat(node, int(kind == "+"), 1 if kind == "?" else -1)


def only_literal(tree: Any) -> Any:
    """The token of a tree that is a single literal."""
    while getattr(tree, "data", None) in ("value", "expansions", "expansion") and len(tree.children) == 1:
        tree = tree.children[0]
    return tree.children[0] if getattr(tree, "data", None) == "literal" else None
