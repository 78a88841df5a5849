"""Turns Lark's trees of terminals into regexes, and the regexes into lexemes.

In: Lark's trees of terminals, in which references are resolved. Out: nodes of lexemes, one for a terminal and
all its uses. Cost: linear in a terminal written out, at most `_SIZE` nodes; the core parses it as a regex.
"""

from __future__ import annotations

import copy
import re
from typing import TYPE_CHECKING, Any, NoReturn

from ...errors import GrammarError
from .. import source
from .extensions import Extensions, only_literal, repeated
from .load import where
from .text import PLACEHOLDER, Scanned

if TYPE_CHECKING:
    from ... import _core
    from . import Frontend

_SIZE = 200_000  # the most nodes of one terminal whose references are written out


class Terminals:
    """The terminals of one grammar.

    Args:
        defined: name -> (tree, priority).
    """

    def __init__(
        self, owner: Frontend, scanned: Scanned, extensions: Extensions, defined: dict[str, Any]
    ) -> None:
        self.owner = owner
        self.b: _core.GrammarBuilder = owner.b
        self.scanned = scanned
        self.extensions = extensions
        self.defined = defined
        self.lexemes: dict[tuple[Any, ...], int] = {}
        self.alone: dict[tuple[str, str], str] = {}  # (text, flags) -> the terminal that is just this literal
        for name, (tree, _) in defined.items():
            if tree is None:
                self.scanned.fail(
                    f"terminal '{name}' is declared and never defined; %declare has no meaning here",
                    where(self.scanned.original, name),
                )
            literal = _single_literal(tree)
            if literal is not None:
                self.alone.setdefault(literal, name)

    def lexeme(self, name: str) -> int:
        key = ("name", name)
        if key not in self.lexemes:
            tree, priority = self.defined[name]
            if not -(2**31) <= priority < 2**31:
                message = f"the priority of terminal '{name}' is beyond 2**31"
                self.scanned.fail(message, where(self.scanned.original, name, definition=1))
            literal = _single_literal(tree)
            node = self.node(tree, name)
            self.lexemes[key] = self.make(name, node, priority, literal is not None)
        return self.lexemes[key]

    def anonymous(self, tree: Any) -> int:
        """Returns the node of a literal, pattern or range in a rule. If a terminal is just this literal, it
        is used."""
        literal = _single_literal(tree)
        if literal is not None and literal in self.alone:
            return self.lexeme(self.alone[literal])
        key = ("text", repr(tree))
        if key not in self.lexemes:
            node = self.node(tree, "")
            self.lexemes[key] = self.make("", node, 0, literal is not None)
        return self.lexemes[key]

    def made_lexeme(self, tree: Any) -> int:
        return self.make("", self.node(self.as_terminal(tree, ""), ""), 0, False)

    def make(self, name: str, node: int, priority: int, literal: bool) -> int:
        if self.owner.lexer == "scannerless":
            return node
        return self.b.lexeme(name, node, priority, literal, self.owner.lexer == "dynamic")

    def lazy(self, name: str, node: int, whole: int | None = None) -> int:
        """Returns a lexeme that ends as soon as it matches. If `whole` is given, the lexeme is the first part
        of this regex."""
        if self.owner.lexer == "scannerless":
            return node
        return self.b.lexeme(name, node, 0, False, self.owner.lexer == "dynamic", True, whole)

    def node(self, tree: Any, name: str) -> int:
        """Returns the node of a tree in a terminal. References in the tree are resolved already."""
        if tree.data == "part":  # A part of a rule; parts of a terminal are joined as texts.
            return self.node(tree.children[0], name)
        if not self.mentions_extension(tree):
            return self.joined(tree, name)
        kids = tree.children
        match tree.data:
            case "expansions":
                return self.b.choice([self.node(k, name) for k in kids])
            case "value":
                return self.node(kids[0], name)
            case "maybe":
                return self.b.repeat(self.node(kids[0], name), 0, 1)
            case "expr":
                return repeated(self.b, self.node(kids[0], name), kids[1:])
            case "literal":
                extension = self.extensions.at(kids[0])
                assert extension is not None
                if extension.kind in ("json", "lark", "reference"):
                    what = "@" if extension.kind == "reference" else f"%{extension.kind}"
                    extension.fail(f"{what} stands in rules, not in terminals")
                if extension.kind == "ids":
                    return self.extensions.tokens_in_terminal(extension)
                return self.extensions.node(extension)
            case "expansion":
                return self.conjunction(kids, name)
        raise GrammarError(f"'{tree.data}' cannot stand in terminal '{name}'")

    def conjunction(self, kids: list[Any], name: str) -> int:
        """Returns the node of an expansion with ``&`` between sequences or ``~`` in front of parts."""
        sequences: list[list[tuple[Any, bool]]] = [[]]
        negated = False
        for kid in kids:
            operator = self.extensions.operator(kid)
            if operator is not None and operator.kind == "both":
                if negated or not sequences[-1]:
                    operator.fail("'&' stands between two terminals")
                sequences.append([])
            elif operator is not None and operator.kind == "negate":
                negated = not negated
            else:
                sequences[-1].append((kid, negated))
                negated = False
        if negated or not sequences[-1]:
            raise GrammarError(f"an operator in terminal '{name}' has nothing behind it")
        parts = []
        for sequence in sequences:
            plain = iter(sequence)
            flags = {id(kid): flag for kid, flag in plain}

            def one(kid: Any, flags: dict[int, bool] = flags) -> int:
                node = self.node(kid, name)
                return self.b.negate(node) if flags[id(kid)] else node

            if not any(flags.values()) and all(self.extensions.operator(kid) is None for kid, _ in sequence):
                from lark import Tree

                whole = Tree("expansion", [kid for kid, _ in sequence])
                if not self.mentions_extension(whole):
                    parts.append(self.joined(whole, name))
                    continue
            parts.append(self.b.sequence(self.extensions.counted([kid for kid, _ in sequence], one)))
        return parts[0] if len(parts) == 1 else self.b.both(parts)

    def mentions_extension(self, tree: Any) -> bool:
        if next(tree.find_data("part"), None) is not None:
            return True
        return any(self.extensions.at(t.children[0]) is not None for t in tree.find_data("literal"))

    def joined(self, tree: Any, name: str) -> int:
        """Returns the node of a terminal without extensions. As in Lark it is one regex, so a look-behind may
        reach across parts."""
        from lark import Tree
        from lark.exceptions import GrammarError as LarkGrammarError
        from lark.load_grammar import PrepareLiterals, TerminalTreeToPattern

        if _size(tree) > _SIZE:
            raise GrammarError(f"terminal '{name}' is too large")
        wrapped = Tree("expansions", [Tree("expansion", [copy.deepcopy(_unshared(tree))])])
        try:
            pattern = (PrepareLiterals() * TerminalTreeToPattern()).transform(wrapped)
        except LarkGrammarError as error:
            self.fail_in(name, str(error))
        if pattern.type == "str" and not pattern.flags:
            return self.b.literal(pattern.value.encode("utf-8", "surrogatepass"))
        text = pattern.to_regexp()
        try:
            node = self.b.pattern(source.sound(text))
        except GrammarError as error:
            self.fail_in(name, f"in the pattern {text}: {error.message}")
        return self.b.shortest(node) if ends_at_first_match(text) else node

    def fail_in(self, name: str, message: str) -> NoReturn:
        at = where(self.scanned.original, name, definition=1) if name else -1
        message = message.split("\n")[0]
        if at < 0:
            raise GrammarError(message, text=self.scanned.original)
        self.scanned.fail(f"{message} (terminal '{name}')" if name not in message else message, at)

    def as_terminal(self, tree: Any, name: str, why: str = "is lazy or has an end") -> Any:
        """Returns a rule's tree in which trees replace the names of terminals, so that the rule is one
        terminal."""
        from lark import Tree
        from lark.grammar import NonTerminal, Terminal

        if isinstance(tree, Terminal):
            return Tree("part", [self.defined[tree.name][0]])
        if isinstance(tree, NonTerminal):
            if not name:
                message = f"'&' and '~' stand between terminals alone, and '{tree.name}' is a rule"
                self.scanned.fail(message, where(self.scanned.original, tree.name))
            why = f"has '{why}'" if why == "max_chars" else why
            message = f"rule '{name}' {why}, so it is made of terminals alone"
            self.scanned.fail(message, where(self.scanned.original, self.scanned.written(name), definition=1))
        if isinstance(tree, Tree):
            if tree.data == "alias":
                return self.as_terminal(tree.children[0], name, why)
            if tree.data == "range" or (
                tree.data == "literal" and not PLACEHOLDER.search(str(tree.children[0]))
            ):
                return Tree("part", [tree])
            return Tree(tree.data, [self.as_terminal(k, name, why) for k in tree.children])
        return tree


def _single_literal(tree: Any) -> tuple[str, str] | None:
    """Returns the text and flags of a terminal that is one string."""
    from lark import load_grammar

    token = only_literal(tree)
    if token is None or token.type != "STRING" or PLACEHOLDER.search(str(token)):
        return None
    pattern: Any = load_grammar._literal_to_pattern(token)  # type: ignore[no-untyped-call]
    return pattern.value, "".join(sorted(pattern.flags))


def _size(tree: Any) -> int:
    """Returns the number of nodes of a tree. A shared part counts at each of its places."""
    known: dict[int, int] = {}
    todo = [tree]
    while todo:
        at = todo[-1]
        kids = [k for k in getattr(at, "children", ()) if hasattr(k, "children")]
        missing = [k for k in kids if id(k) not in known]
        if missing:
            todo.extend(missing)
            continue
        known[id(at)] = 1 + sum(known[id(k)] for k in kids)
        todo.pop()
    return known[id(tree)]


def _unshared(tree: Any) -> Any:
    from lark import Tree

    if not isinstance(tree, Tree):
        return tree
    return Tree(tree.data, [_unshared(k) for k in tree.children])


def ends_at_first_match(pattern: str) -> bool:
    """Returns whether a pattern with lazy quantifiers takes as little as it can.

    The pattern does so if all texts behind the last lazy quantifier have one length. Otherwise the terminal
    has all texts that the pattern matches.
    """
    if "?" not in pattern:
        return False
    from re import _parser

    try:
        tree = _parser.parse(pattern)
    except (re.error, RecursionError, OverflowError):
        return False
    found = _lazy(tree)
    return found[0] and found[1]


def _lazy(items: Any) -> tuple[bool, bool]:
    """Returns (some quantifier is lazy, everything after the last lazy one has one length)."""
    seen, fixed = False, True
    for op, argument in items:
        name = str(op)
        if name == "MIN_REPEAT":
            seen, fixed = True, True
            continue
        inner = [argument[-1]] if name == "SUBPATTERN" else []
        if name == "BRANCH":
            inner = argument[1]
        if name == "MAX_REPEAT" and argument[0] == argument[1]:
            inner = [argument[2]]
        found = [_lazy(i) for i in inner]
        if any(f[0] for f in found):
            seen = True
            fixed = all(f[1] for f in found)
        elif name == "MAX_REPEAT" and argument[0] != argument[1]:
            if any(f[0] for f in [_lazy(argument[2])]):
                seen = True
            fixed = fixed and not seen
        elif inner:
            fixed = fixed and all(
                len({i.getwidth()}) == 1 and i.getwidth()[0] == i.getwidth()[1] for i in inner
            )
    return seen, fixed
