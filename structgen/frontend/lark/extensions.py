"""Turns the extensions of Lark's language into nodes, and into operators between the parts of an expansion.

In: Lark's trees, with a placeholder for each extension, and the extensions that `text.scan` took out. Out:
nodes. Cost: linear in the extension; a nested grammar costs as much as the same grammar alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from ... import _core
from ...errors import GrammarError
from .. import source
from .text import PLACEHOLDER, Extension, Scanned

if TYPE_CHECKING:
    from . import Frontend


class Extensions:
    """The extensions of one grammar."""

    def __init__(self, owner: Frontend, scanned: Scanned) -> None:
        self.owner = owner
        self.b: _core.GrammarBuilder = owner.b
        self.scanned = scanned

    def at(self, token: Any) -> Extension | None:
        match = PLACEHOLDER.search(str(token))
        return None if match is None else self.scanned.extensions[int(match[1])]

    def operator(self, tree: Any) -> Extension | None:
        """Returns the operator that a placeholder among the parts of an expansion stands for."""
        literal = only_literal(tree)
        found = None if literal is None else self.at(literal)
        kinds = ("both", "negate", "count", "condition", "call", "rule")
        return found if found is not None and found.kind in kinds else None

    def has_operators(self, kids: list[Any]) -> bool:
        return any((op := self.operator(k)) is not None and op.kind in ("both", "negate") for k in kids)

    def given(self, tree: Any) -> tuple[Extension | None, Any]:
        """Returns a rule's attributes, taken out of its tree, and the terminal that ends the rule's texts."""
        for alternative in _alternatives(tree):
            kids = alternative.children
            found = self.operator(kids[0]) if kids else None
            if found is None or found.kind != "rule":
                continue
            ended = any(found.value.attributes.get(k, ("",))[0] == "terminal" for k in ("stop", "suffix"))
            end = kids[1].children[0] if ended else None
            del kids[: 2 if ended else 1]
            return found, end
        return None, None

    def conditional(self, kids: list[Any], parameter: int) -> list[Any] | None:
        """Returns the parts of an alternative without its conditions; None if a condition does not hold."""
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
                operator.fail("nothing stands before this that could be repeated")
            else:
                out[-1] = self.b.repeat(out[-1], *operator.value)
        return out

    def node(self, extension: Extension) -> int:
        """Returns the node of an extension that stands for a text."""
        kind, value = extension.kind, extension.value
        if kind == "empty":
            return self.b.literal(b"")
        if kind == "json":
            return self.owner.schema(value)
        if kind == "reference":
            return self.owner.other(value, extension)
        if kind == "lark":
            try:
                return self.b.call(self.owner.grammar(value, "start"))
            except GrammarError as error:
                if error.line is not None and error.text == value:
                    line_start = value.split("\n")[: error.line - 1]
                    inside = sum(len(part) + 1 for part in line_start) + (error.column or 1) - 1
                    extension.fail(error.message, extension.at + inside)
                raise
        if kind == "token":
            text = extension.origin.original
            return self.b.tokens([source.named_token(value, self.owner.vocabulary, text, extension.at)])
        if kind == "ids":
            return self.tokens(extension)
        if kind == "regex":
            return self.substring(extension)
        extension.fail("this operator stands between terminals or in front of one")

    def tokens(self, extension: Extension) -> int:
        """Returns the node of one token, for ``<[12,15-18]>``, ``<[^12]>`` and ``<[*]>``."""
        spec, whole = extension.value, self.owner.tokens
        if not source.all_but(spec):
            return whole.one_of(self.ids(extension, spec), f"<[{spec}]>")
        named = spec.strip()[1:]
        return whole.but(self.ids(extension, named) if named.strip() else [], f"<[{spec}]>")

    def tokens_in_terminal(self, extension: Extension) -> int:
        """Returns the node of a token in a terminal. A terminal is a regex over text and special tokens, so
        an ordinary token is replaced by its text."""
        if source.all_but(extension.value):
            extension.fail("<[*]> and <[^...]> stand in rules, not in terminals")
        return self.b.tokens(self.ids(extension, extension.value))

    def ids(self, extension: Extension, spec: str) -> list[int]:
        return source.token_ids(spec, self.owner.vocabulary, extension.origin.original, extension.at)

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
        extension.fail(
            "%regex takes one of substring_words and substring_chars (a text), substring_chunks (a list)"
        )


def repeated(b: _core.GrammarBuilder, node: int, operator: list[Any]) -> int:
    """Returns a node that repeats another node as ``?``, ``*``, ``+`` or Lark's ``~`` says."""
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


def _alternatives(tree: Any) -> Iterator[Any]:
    """Returns the alternatives of a rule, without their aliases."""
    for kid in tree.children if tree.data == "expansions" else [tree]:
        alternative = kid.children[0] if getattr(kid, "data", None) == "alias" else kid
        if getattr(alternative, "data", None) == "expansion":
            yield alternative


def only_literal(tree: Any) -> Any:
    """Returns the token of a tree that is a single literal."""
    while getattr(tree, "data", None) in ("value", "expansions", "expansion") and len(tree.children) == 1:
        tree = tree.children[0]
    return tree.children[0] if getattr(tree, "data", None) == "literal" else None
