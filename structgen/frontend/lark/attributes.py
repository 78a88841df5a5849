"""Builds the nodes for rules with attributes: ``name[lazy, capture="x", stop="end"]: ...``.

In: the attributes that `text.scan` found, and trees of rules. Out: captures, lexemes that end early, limits.
Cost: linear in a rule; a `stop` with a capture needs the complement of its texts, and `lazy` needs one, too.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any

from ...errors import GrammarError
from .. import source
from .terminals import Terminals
from .text import PLACEHOLDER, Extension, Scanned

if TYPE_CHECKING:
    from ... import _core
    from . import Frontend


class Attributes:
    """The attributes of one grammar's rules."""

    def __init__(self, owner: Frontend, scanned: Scanned, terminals: Terminals) -> None:
        self.owner = owner
        self.b: _core.GrammarBuilder = owner.b
        self.scanned = scanned
        self.terminals = terminals
        self.given: dict[str, dict[str, tuple[str, str, int]]] = {}  # by rule, as in `text.Given`
        self.heads: dict[str, Extension] = {}  # by rule: the place of the attributes
        self.ends: dict[str, Any] = {}  # by rule: the terminal that ends its texts

    def add(self, name: str, head: Extension, end: Any) -> None:
        """Notes a rule's attributes. Refuses attributes that cannot be enforced, even if the rule is not
        used.

        Args:
            end: the terminal that `stop` names.
        """
        given = head.value.attributes
        self.given[name], self.heads[name], self.ends[name] = given, head, end
        for kind, (what, text, at) in given.items():
            if kind in ("max_tokens", "max_chars") and (what != "number" or source.limit_of(text) < 0):
                head.fail(f"'{kind}' is a whole number of at least 0", at)
            if kind == "temperature":
                source.temperature(self.b, head.value.name, text, head.origin.original, at)
            if kind == "lazy" and what != "nothing":
                head.fail("'lazy' takes no value", at)
            if kind in ("stop", "suffix") and what == "nothing":
                head.fail(f"'{kind}' needs a text, a pattern, a terminal or a token", at)
            if kind in ("capture", "stop_capture"):
                self.label(name, kind)
        if "stop" in given and "suffix" in given:
            head.fail("'stop' and 'suffix' are the same; write one", given["suffix"][2])
        if "stop_capture" in given and "stop" not in given and "suffix" not in given:
            head.fail("'stop_capture' needs a 'stop'", given["stop_capture"][2])

    def limits(self) -> dict[str, int]:
        """Returns the limit of each rule that has `max_tokens`."""
        given = self.given.items()
        return {name: source.limit_of(a["max_tokens"][1]) for name, a in given if "max_tokens" in a}

    def place_of_limit(self, name: str) -> int:
        """Returns the place of a rule's limit, in bytes of the grammar's text; -1 in a nested grammar."""
        if self.owner.depth > 1 or self.heads[name].origin is not self.scanned:
            return -1
        return len(self.scanned.original[: self.given[name]["max_tokens"][2]].encode())

    def any_capture(self) -> bool:
        return any({"capture", "stop_capture"} & set(a) for a in self.given.values())

    def name_captures(self) -> None:
        """Numbers the captures in the order of the text."""
        for name in self.given:
            for kind in ("capture", "stop_capture"):
                if label := self.label(name, kind):
                    self.b.capture(label, self.b.literal(b""))

    def captured(self, name: str, node: int) -> int:
        """Returns the node of a rule. If the rule has a capture, notes stand around the node."""
        label = self.label(name, "capture")
        return self.b.capture(label, node) if label else node

    def terminal(self, name: str, tree: Any) -> int | None:
        """Returns the node of a rule whose attributes make it one terminal; None for other rules."""
        given = self.given[name]
        ends = given.get("suffix") or given.get("stop")
        if ends is not None and ends[0] == "string" and not _text_of(ends):
            # As in llguidance, an empty end means the end of the whole text, so the rule needs no end of its
            # own.
            ends = None
        if "lazy" not in given and ends is None:
            if "max_chars" in given:
                body = self.terminals.as_terminal(tree, name, "max_chars")
                node = self.shortened(self.terminals.node(body, name), given)
                if "max_tokens" not in given:
                    node = self.terminals.make(name, node, 0, False)
                return self.captured(name, node)
            one = _one_terminal(tree) if "max_tokens" in given else None
            if one is None:
                return None
            # The limit or the following text ends this terminal, so it need not match as far as it can.
            return self.captured(name, self.terminals.node(self.terminals.as_terminal(one, name), name))
        body = self.shortened(self.terminals.node(self.terminals.as_terminal(tree, name), name), given)
        if ends is None:
            return self.captured(name, self.terminals.lazy(name, self.b.shortest(body)))
        label, end_label = (self.label(name, kind) for kind in ("capture", "stop_capture"))
        end = self.end(name, ends)
        whole = self.b.shortest(self.b.sequence([body, end]))
        if not label and not end_label:
            return self.terminals.lazy(name, whole)
        # The body must not contain the end, so that the end of the capture is certain.
        b = self.b
        never = [b.sequence([body, end, source.any_text(b)])]
        if ends[0] == "string":
            text, spell = _text_of(ends), self.spell(ends)
            folded = text.lower() if ends[1].endswith("i") else text
            for k in range(1, len(text)):
                if folded[k:] == folded[: len(text) - k]:
                    never.append(b.sequence([body, spell(text[:k])]))
        elif ends[0] != "token":
            end = b.shortest(end)
        first = b.both([body, b.negate(b.choice(never))])
        inside = self.terminals.lazy(name, first, whole)
        if ends[0] in ("string", "token"):
            end = b.capture(end_label, end) if end_label else end
            return b.sequence([b.capture(label, inside) if label else inside, end])
        # A text may stop at its first end, or be cut into a body and an end. Both must give the same capture.
        if not b.is_empty(b.both([b.sequence([first, end]), b.negate(whole)])):
            message = "matches of a pattern that ends a capture cannot overlap: one may end within another"
            self.heads[name].fail(message, ends[2])
        if not label:
            assert end_label
            return b.sequence([inside, b.capture(end_label, end)])
        return b.split(label, inside, end_label or source.NO_NAME, end)

    def shortened(self, node: int, given: dict[str, Any]) -> int:
        """Returns a terminal with at most `max_chars` characters."""
        if "max_chars" not in given:
            return node
        return source.at_most(self.b, node, source.limit_of(given["max_chars"][1]))

    def label(self, name: str, kind: str) -> str | None:
        """Returns the name of a capture; by default the name of the rule."""
        given = self.given[name]
        if kind not in given:
            return None
        head, (what, _, at) = self.heads[name], given[kind]
        if what not in ("nothing", "string"):
            head.fail(f"'{kind}' takes a name in quotes", at)
        found = head.value.name if what == "nothing" else _text_of(given[kind])
        if not found:
            head.fail("a capture has a name", at)
        return str(found)

    def end(self, name: str, value: tuple[str, str, int]) -> int:
        kind, text, at = value
        head = self.heads[name]
        if kind == "token":
            return self.b.tokens([source.named_token(text, self.owner.vocabulary, head.origin.original, at)])
        if kind == "string":
            return self.spell(value)(_text_of(value))
        if kind == "regexp":
            body, _, flags = text[1:].rpartition("/")
            pattern = body.replace("\\/", "/")
            try:
                return self.b.pattern(source.sound(f"(?{flags}:{pattern})" if flags else pattern))
            except GrammarError as error:
                head.fail(error.message, at)
        if kind == "terminal":
            ending = self.ends[name].name
            return self.terminals.node(self.terminals.defined[ending][0], ending)
        head.fail("expected a text, a pattern, a terminal or a token", at)

    def spell(self, value: tuple[str, str, int]) -> source.Spell:
        """Returns the function that makes the nodes of an attribute's texts. ``"..."i`` matches in any
        case."""
        if value[1].endswith("i"):
            return lambda text: source.ignoring_case(self.b, text)
        return lambda text: self.b.literal(text.encode())


def _one_terminal(tree: Any) -> Any:
    """Returns the tree of a rule that is one named terminal, text or pattern; else None."""
    from lark.grammar import Terminal

    while getattr(tree, "data", None) in ("value", "expansions", "expansion", "alias") and tree.children:
        if len(tree.children) > 1 and tree.data != "alias":
            return None
        tree = tree.children[0]
    if isinstance(tree, Terminal):
        return tree
    if getattr(tree, "data", None) != "literal" or PLACEHOLDER.search(str(tree.children[0])):
        return None
    return tree


def _text_of(value: Any) -> str:
    if value[0] != "string":
        raise GrammarError(f"expected a text, found {value[1]}")
    try:
        return source.sound(str(ast.literal_eval(value[1].removesuffix("i"))))
    except (SyntaxError, ValueError) as error:
        if isinstance(error, GrammarError):
            raise
        raise GrammarError(f"{value[1]} cannot be read: {str(error).splitlines()[0]}") from None
