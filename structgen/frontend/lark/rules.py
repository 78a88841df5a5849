"""Turns Lark's trees of rules into nodes of a context-free grammar, with templates, parameters and token
limits.

In: a scanned grammar. Out: rules in a ``_core.GrammarBuilder``: one for each rule, for each list of arguments
of a template, and for each value of a parameter that occurs. Cost: linear in the number of rules that are
made.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...errors import GrammarError
from .. import source
from .attributes import Attributes
from .extensions import Extensions, repeated
from .load import load, miscounted, where
from .terminals import Terminals
from .text import Extension, Scanned

if TYPE_CHECKING:
    from ... import _core
    from . import Frontend

_VALUES = 20_000  # the most values of parameters in one grammar
_ALL = (1 << 64) - 1


class Rules:
    """The rules of one grammar.

    Args:
        owner: the builder, and the state that nested grammars share.
        scanned: the grammar.
    """

    def __init__(self, owner: Frontend, scanned: Scanned) -> None:
        self.owner = owner
        self.b: _core.GrammarBuilder = owner.b
        self.scanned = scanned
        loaded = load(scanned, owner.import_paths)
        self.ignored: list[Any] = list(dict.fromkeys(loaded.ignore))
        self.rules: dict[str, Any] = {name: (params, tree) for name, params, tree, _ in loaded.rule_defs}
        self.extensions: Extensions = Extensions(owner, scanned)
        self.terminals: Terminals = Terminals(owner, scanned, self.extensions, dict(loaded.term_defs))
        self.attributes: Attributes = Attributes(owner, scanned, self.terminals)
        self.parametric: set[str] = set()  # rules with a parameter
        for name, (_, tree) in self.rules.items():
            if tree is None:
                raise GrammarError(f"rule '{name}' is declared and never defined")
            given, end = self.extensions.given(tree)
            if given is not None and given.value.attributes:
                self.attributes.add(name, given, end)
            if given is not None and given.value.parametric:
                self.parametric.add(name)
        self.limits: dict[str, int] = self.attributes.limits()  # rules with `max_tokens`
        self.numbers: dict[tuple[Any, ...], int] = {}
        self.todo: list[tuple[int, str, dict[str, Any], frozenset[str], int]] = []
        self.parameter: int = 0  # the parameter's value in the current rule
        self.values: int = 0  # the number of parameter values so far
        self.reached: dict[str, frozenset[str]] = {}  # rule -> the limited rules that it can reach
        self.inside: frozenset[str] = frozenset()  # the limited rules whose text contains the current rule
        self.gap: int | None = None

    def define(self, start: str) -> int:
        """Builds the rules of a grammar that was read as a whole. Returns the number of the rule that reads a
        whole text."""
        if start not in self.rules:
            hint = source.meant(start, self.rules)
            source.fail(f"there is no rule '{start}' to start with{hint}", self.scanned.original, 0)
        if self.ignored:
            lexemes = [self.terminals.lexeme(name) for name in self.ignored]
            once = "skip_repetition" in self.scanned.options
            if self.owner.lexer == "scannerless" or once:
                gap = self.b.repeat(self.b.choice(lexemes), 0, 1 if once else -1)
            else:
                gap = self.b.gap(lexemes)
            # With captures, a note marks ignored text, so that no capture ends with it.
            self.gap = self.b.capture("", gap) if self.attributes.any_capture() else gap
        self.attributes.name_captures()
        self.parameters(start, 0)
        self.unparametric(start)
        first = self.rule(start, {})
        while self.todo:
            number, name, arguments, inside, self.parameter = self.todo.pop()
            self.b.define(number, self.body(name, arguments, inside))
        self.warn_of_unused()
        if self.gap is None or self.scanned.options.get("allow_initial_skip") is False:
            return first
        whole = self.b.rule("")
        self.b.define(whole, self.b.sequence([self.gap, self.b.call(first)]))
        return whole

    def warn_of_unused(self) -> None:
        """Warns of rules that no rule uses. Terminals and imported rules get no warning, because grammars
        often share a list of terminals."""
        used = {key[0] for key in self.numbers}
        for name in self.rules:
            if name not in used and not name.startswith("_") and "__" not in name:
                self.b.warn(f"rule '{self.scanned.written(name)}' is not used")

    def parameters(self, name: str, given: int) -> list[str]:
        """Returns the parameters of a template. Raises a GrammarError if a call gives another number of
        arguments."""
        names = list(self.rules[name][0] or ())
        if len(names) != given:
            at = where(self.scanned.original, name)
            self.scanned.fail(miscounted(name, len(names), given), at)
        return names

    def rule(self, name: str, arguments: dict[str, Any], parameter: int = 0) -> int:
        return self.version(name, arguments, self.inside & self.limited_below(name, arguments), parameter)

    def version(self, name: str, arguments: dict[str, Any], inside: frozenset[str], parameter: int) -> int:
        """Returns the number of the rule for these arguments and this parameter, inside these limited
        rules."""
        key = (name, *(repr(a) for a in arguments.values()), inside, parameter)
        if key not in self.numbers:
            if name in self.parametric:
                self.values += 1
                if self.values > _VALUES:
                    what = f"rules with a parameter take more than {_VALUES} values"
                    self.scanned.fail(what, where(self.scanned.original, name))
            if len(self.numbers) > 100_000:
                raise GrammarError(f"the template '{name}' never ends")
            plain = not arguments and not inside and not parameter
            self.numbers[key] = self.b.rule(self.scanned.written(name) if plain else "")
            self.todo.append((self.numbers[key], name, arguments, inside, parameter))
        return self.numbers[key]

    def unparametric(self, name: str) -> None:
        if name in self.parametric:
            message = f"rule '{name}' takes a parameter and is given none; write {name}::0"
            self.scanned.fail(message, where(self.scanned.original, self.scanned.written(name)))

    def call(self, name: str, extension: Extension) -> int:
        """Returns the node of a use of a rule with a parameter."""
        if name not in self.parametric:
            extension.fail(f"rule '{name}' takes no parameter; write {name}::_: ...")
        self.parameters(name, 0)
        return self.b.call(self.rule(name, {}, extension.value(self.parameter) & _ALL))

    def body(self, name: str, arguments: dict[str, Any], inside: frozenset[str]) -> int:
        # A rule inside another occurrence of itself needs no second limit, because its tokens also count in
        # the outer occurrence. So limits never stand in a left recursion.
        if name in self.limits and name not in inside:
            inner = self.version(name, arguments, inside | {name}, self.parameter)
            place = self.attributes.place_of_limit(name)
            node = self.b.limit(self.b.call(inner), self.limits[name], name, place)
            return self.followed(node)  # Ignored text behind the rule does not count.
        self.inside = inside
        tree = self.rules[name][1]
        if name not in self.attributes.given:
            return self.node(tree, arguments)
        terminal = self.attributes.terminal(name, tree)
        if terminal is not None:
            return self.followed(terminal)
        return self.attributes.captured(name, self.node(tree, arguments))

    def limited_below(self, name: str, arguments: dict[str, Any]) -> frozenset[str]:
        """Returns the limited rules that a rule can reach, itself included."""
        if not self.limits:
            return frozenset()
        if name not in self.reached:
            seen, todo = {name}, [name]
            while todo:
                new = _rules_in(self.rules[todo.pop()][1]) - seen
                todo += [n for n in new if n in self.rules]  # without parameters of templates
                seen |= new
            self.reached[name] = frozenset(seen & self.limits.keys())
        found = self.reached[name]
        for given in arguments.values():
            for other in _rules_in(given) & self.rules.keys():
                found |= self.limited_below(other, {})
        return found

    def node(self, tree: Any, arguments: dict[str, Any]) -> int:
        """Returns the node of a tree in a rule."""
        from lark import Token
        from lark.grammar import NonTerminal, Terminal

        if isinstance(tree, Terminal):
            return self.followed(self.terminals.lexeme(tree.name))
        if isinstance(tree, NonTerminal):
            if tree.name in arguments:
                return self.node(arguments[tree.name], {})
            self.parameters(tree.name, 0)
            self.unparametric(tree.name)
            return self.b.call(self.rule(tree.name, {}))
        if isinstance(tree, Token):
            raise GrammarError(f"unexpected {tree}")
        kids = tree.children
        match tree.data:
            case "expansions":
                return self.b.choice([self.node(k, arguments) for k in kids])
            case "alias" | "value":
                return self.node(kids[0], arguments)
            case "maybe":
                return self.b.repeat(self.node(kids[0], arguments), 0, 1)
            case "expr":
                return repeated(self.b, self.node(kids[0], arguments), kids[1:])
            case "template_usage":
                return self.template(tree, arguments)
            case "literal":
                extension = self.extensions.at(kids[0])
                if extension is not None and extension.kind == "empty":
                    return self.b.literal(b"")
                if extension is not None:
                    return self.followed(self.extensions.node(extension))
                return self.followed(self.terminals.anonymous(tree))
            case "range":
                return self.followed(self.terminals.anonymous(tree))
            case "expansion":
                if (left := self.extensions.conditional(kids, self.parameter)) is None:
                    return self.b.never()
                if len(left) < len(kids):
                    tree, kids = type(tree)("expansion", left), left
                last = self.extensions.operator(kids[-1]) if len(kids) == 2 else None
                if last is not None and last.kind == "call":
                    return self.call(kids[0].children[0].name, last)
                if self.extensions.has_operators(kids):
                    return self.followed(self.terminals.made_lexeme(tree))
                return self.b.sequence(self.extensions.counted(kids, lambda k: self.node(k, arguments)))
        raise GrammarError(f"'{tree.data}' is not supported")

    def template(self, tree: Any, arguments: dict[str, Any]) -> int:
        from lark.grammar import NonTerminal

        name, *given = tree.children
        if name.name in arguments:  # The argument is a template.
            meant = arguments[name.name]
            if not isinstance(meant, NonTerminal) or not self.rules[meant.name][0]:
                what = f"the template parameter '{name.name}' is used as a template and stands for none"
                self.scanned.fail(what, where(self.scanned.original, name.name))
            name = meant
        names = self.parameters(name.name, len(given))
        values = [self.substituted(g, arguments) for g in given]
        return self.b.call(self.rule(name.name, dict(zip(names, values, strict=True))))

    def substituted(self, tree: Any, arguments: dict[str, Any]) -> Any:
        from lark import Tree
        from lark.grammar import NonTerminal

        if isinstance(tree, NonTerminal):
            return arguments.get(tree.name, tree)
        if isinstance(tree, Tree):
            # A tree with one part is replaced by the part. So a template that calls itself with its own
            # parameter means the same rule again.
            if tree.data in ("value", "expansions", "expansion") and len(tree.children) == 1:
                return self.substituted(tree.children[0], arguments)
            return Tree(tree.data, [self.substituted(k, arguments) for k in tree.children])
        return tree

    def followed(self, node: int) -> int:
        return node if self.gap is None else self.b.sequence([node, self.gap])


def _rules_in(tree: Any) -> set[str]:
    """Returns the names of rules in a tree. The parameters of a template count as names."""
    from lark.grammar import NonTerminal

    if isinstance(tree, NonTerminal):
        return {tree.name}
    found: set[str] = set()
    for node in tree.iter_subtrees() if hasattr(tree, "iter_subtrees") else []:
        found.update(kid.name for kid in node.children if isinstance(kid, NonTerminal))
    return found
