"""Lark grammars, read by the ``lark`` package's own loader, with the extensions of `lark_text`.

In: text. Out: rules and lexemes in a ``_core.GrammarBuilder``. Cost: Lark's loader, then linear in its trees.

Terminals are lexemes: each takes as much text as it can, of equal texts the literal wins over the pattern
(keywords over names), a higher priority wins over a lower one, and only terminals that may begin at a place
compete there, as in Lark's contextual lexer. What ``%ignore`` names may stand after every terminal and at the
start. Rules are a context-free grammar without further conditions, so texts that Lark finds ambiguous or that
are not LALR(1) are fine. A terminal with a lazy quantifier ends at its first match, as in Python's ``re``.
"""

from __future__ import annotations

import copy
import json
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from .. import _core
from .._extras import missing
from ..errors import GrammarError
from . import source
from .lark_text import PLACEHOLDER, Extension, Scanned, scan

if TYPE_CHECKING:
    from ..vocabulary import Vocabulary

_PLACE = re.compile(r"line (\d+),? column (\d+)")
_MOST_TOKENS = (1 << 28) - 1  # of a limit: more than any text has
_VALUES = 20_000  # of parameters of rules
_ALL = (1 << 64) - 1
_SIZE = 200_000  # nodes of one terminal, written out
_UNDEFINED = re.compile(r"'(\w+)' used but not defined(?: \(in \w+ '?(\w+)'?\))?")


def build(
    text: str,
    vocabulary: Vocabulary,
    start: str = "start",
    lexer: str = "contextual",
    grammars: Mapping[str, Any] | None = None,
    import_paths: Sequence[str] = (),
) -> tuple[Any, int]:
    """The grammar's nodes and the number of the rule to start with.

    Args:
        grammars: what ``@name`` stands for: the text of a Lark grammar, or a JSON Schema.
        import_paths: directories in which ``%import`` looks for grammars.

    Raises:
        GrammarError: with line, column and the likely fix.
        MissingDependency: the ``lark`` package is not installed.
    """
    b = _core.GrammarBuilder()
    return b, Frontend(b, vocabulary, lexer, grammars, import_paths).grammar(text, start)


class Frontend:
    """One builder; a nested ``%lark`` is another `_Grammar` in it."""

    def __init__(
        self,
        b: _core.GrammarBuilder,
        vocabulary: Vocabulary,
        lexer: str,
        grammars: Mapping[str, Any] | None = None,
        import_paths: Sequence[str] = (),
    ) -> None:
        self.b = b
        self.vocabulary = vocabulary
        self.lexer = lexer
        self.grammars = grammars or {}
        self.import_paths = import_paths
        self.named: dict[str, int] = {}  # grammars of other texts -> their rules
        self.open: list[str] = []  # those that are being read
        self.depth = 0

    def other(self, name: str, scanned: Scanned, at: int) -> int:
        """The node of the grammar ``@name``."""
        if name not in self.grammars:
            hint = source.meant(name, self.grammars) or "; hand it over in `grammars`"
            scanned.fail(f"there is no grammar '{name}'{hint}", at)
        given = self.grammars[name]
        if not isinstance(given, str):
            try:
                return self.b.json(json.dumps(given), [], "flexible", False, False, False, True, 0)
            except (TypeError, ValueError):
                scanned.fail(f"the grammar '{name}' is neither a text nor a JSON Schema", at)
        if name in self.open:
            chain = " -> ".join([*self.open[self.open.index(name) :], name])
            scanned.fail(f"grammars refer to each other in a circle: {chain}", at)
        if name not in self.named:
            self.open.append(name)
            self.named[name] = self.grammar(given, "start")
            self.open.pop()
        return self.b.call(self.named[name])

    def grammar(self, text: str, start: str) -> int:
        self.depth += 1
        if self.depth > 20:
            raise GrammarError("grammars nest too deeply")
        if (zero := text.find("\0")) >= 0:  # Lark reads literals as Python's, which must not have it
            source.fail(r"a zero byte; write \x00", text, zero)
        scanned = scan(text)
        try:
            return _Grammar(self, scanned).run(scanned.spelled.get(start, start))
        except RecursionError:
            raise GrammarError("the grammar nests too deeply") from None
        except Exception as error:
            if not type(error).__module__.startswith("lark."):
                raise
            # Lark looks at a literal when it is used: one that Python cannot read, say.
            reason = error.args[-1] if error.args else error
            raise GrammarError(f"{str(reason).splitlines()[0]}", text=text) from None
        finally:
            self.depth -= 1


class _NotFound(Exception):
    """The path of a grammar that is not found."""


def _load(scanned: Scanned, paths: Sequence[str]) -> Any:
    """Lark's Grammar: definitions as trees. Lark's errors become ours, at their place in the text."""
    try:
        from lark.exceptions import GrammarError as LarkGrammarError
        from lark.exceptions import UnexpectedInput
        from lark.load_grammar import GrammarBuilder, stdlib_loader
    except ImportError as error:
        raise missing(error, "Lark grammars") from None

    entered: set[str] = set()  # directories of files that were imported

    def imported(base: Any, path: str) -> Any:
        """A grammar of another file: in the given directories, beside one found there, or one of Lark's own.

        A grammar may be a stranger's: nothing else is opened, the working directory neither.
        """
        for directory in [*([base] if base in entered else []), *paths]:
            found = os.path.join(directory, path)
            try:
                with open(found, encoding="utf-8") as file:
                    text = file.read()
            except OSError:
                continue
            child = scan(text, scanned)
            if child.attributes or child.parametric or child.options:
                what = "attributes, options and rules with a parameter are not read in imported grammars"
                raise GrammarError(f"{found}: {what}; hand it over in `grammars` and write @name")
            entered.add(os.path.split(found)[0])
            return found, child.text
        try:
            return stdlib_loader(base, path)
        except OSError:
            raise _NotFound(path) from None

    loader = GrammarBuilder(import_paths=[imported])
    try:
        loader.load_grammar(scanned.text, "")
        return loader.build()
    except UnexpectedInput as error:
        at = scanned.place(max(0, getattr(error, "pos_in_stream", 0) or 0))
        found = scanned.original[at : at + 1]
        scanned.fail(f"unexpected {found!r}" if found.strip() else "the rule ends too early", at)
    except (LarkGrammarError, AssertionError) as error:
        _translate(str(error), scanned, loader)
    except _NotFound as error:
        name = ".".join(Path(str(error)).with_suffix("").parts)
        hint = "; name its directory in `import_paths` (else only the grammars of Lark itself are found)"
        message = f"cannot import '{name}': no such grammar{'' if paths else hint}"
        scanned.fail(message, _where(scanned.original, name))
    except (UnicodeDecodeError, OSError) as error:
        raise GrammarError(f"cannot import a grammar: {error}") from None
    except RecursionError:
        raise GrammarError("the grammar nests too deeply") from None


def _translate(message: str, scanned: Scanned, loader: Any) -> NoReturn:
    text = scanned.original
    match = _PLACE.search(message)
    if match is not None:
        line, column = int(match[1]), int(match[2])
        starts = [0, *(m.end() for m in re.finditer("\n", scanned.text))]
        at = scanned.place(starts[min(line, len(starts)) - 1] + column - 1)
        head = message.split(" at line")[0].rstrip(",: ").split("\n")[0]
        found = text[at : at + 1]
        what = f"unexpected {found!r}" if found.strip() else "the rule ends too early"
        scanned.fail(what if head.startswith("Unexpected") else f"{head[:1].lower()}{head[1:]}", at)
    match = _UNDEFINED.search(message) or re.search(r"Terminal used but not defined: (\w+)()", message)
    if match is not None:
        name = match[1]
        kind = "terminal" if name.lstrip("_")[:1].isupper() else "rule"
        known = list(loader._definitions)
        scanned.fail(f"{kind} '{name}' is not defined{source.meant(name, known)}", _where(text, name))
    match = re.search(r"(?:Rule|Terminal) '(\w+)' defined more than once", message)
    if match is not None:
        second = _where(text, match[1], definition=2)
        scanned.fail(f"'{match[1]}' is defined twice", second)
    match = re.search(r"used for (\w+) \(expected (\d+), got (\d+)\)", message)
    if match is not None:
        scanned.fail(_miscounted(match[1], int(match[2]), int(match[3])), _where(text, match[1]))
    names = re.findall(r"[A-Za-z_]\w*", message.split("(")[-1])
    places = [at for n in names if (at := _where(text, n)) > 0]
    head = PLACEHOLDER.sub("...", message.strip()).split("\n")[0]
    head = head[:1].lower() + head[1:]
    if places:
        scanned.fail(head, places[0])
    raise GrammarError(head, text=text)


def _miscounted(name: str, expected: int, given: int) -> str:
    kind = f"takes {expected} argument{'' if expected == 1 else 's'}" if expected else "is no template"
    return f"'{name}' {kind} and is given {given or 'none'}"


def _where(text: str, name: str, definition: int = 0) -> int:
    """The first use of a name outside literals and comments, or its n-th definition."""
    pattern = re.compile(
        r'//[^\n]*|#[^\n]*|"(?:\\.|[^"\\\n])*"|/(?!/)(?:\\/|\\\\|[^/\n])*?/|\b' + re.escape(name) + r"\b"
    )
    seen = 0
    for match in pattern.finditer(text):
        if match[0] != name:
            continue
        if not definition:
            return match.start()
        if re.match(r"(\.[+\-]?\d+)?\s*(\{[^}\n]*\})?\s*:", text[match.end() :]):
            seen += 1
            if seen == definition:
                return match.start()
    return 0


class _Grammar:
    def __init__(self, owner: Frontend, scanned: Scanned) -> None:
        self.owner = owner
        self.b = owner.b
        self.scanned = scanned
        self.rules: dict[str, Any] = {}  # name -> (params, tree)
        self.terminals: dict[str, Any] = {}  # name -> (tree, priority)
        self.numbers: dict[tuple[Any, ...], int] = {}
        self.todo: list[tuple[int, str, dict[str, Any], frozenset[str], int]] = []
        self.parameter = 0  # of the rule at hand
        self.limits: dict[str, int] = {}  # rules with `max_tokens`
        self.reached: dict[str, frozenset[str]] = {}  # of those, what a rule can get to
        self.inside: frozenset[str] = frozenset()  # those whose text the rule at hand is a part of
        self.lexemes: dict[tuple[Any, ...], int] = {}
        self.alone: dict[tuple[str, str], str] = {}  # literals that a terminal names
        self.gap: int | None = None
        self.values = 0

    def run(self, start: str) -> int:
        loaded = _load(self.scanned, self.owner.import_paths)
        self.rules = {name: (params, tree) for name, params, tree, _ in loaded.rule_defs}
        self.terminals = dict(loaded.term_defs)
        for name, (tree, _) in self.terminals.items():
            if tree is None:
                self.scanned.fail(
                    f"terminal '{name}' is declared and never defined; %declare has no meaning here",
                    _where(self.scanned.original, name),
                )
            literal = _single_literal(tree)
            if literal is not None:
                self.alone.setdefault(literal, name)
        for name, (_, tree) in self.rules.items():
            if tree is None:
                raise GrammarError(f"rule '{name}' is declared and never defined")
        self.check_attributes()
        for name, attributes in self.scanned.attributes.items():
            if "max_tokens" in attributes:
                self.limits[name] = _count(attributes["max_tokens"][1])
        if start not in self.rules:
            hint = source.meant(start, self.rules)
            source.fail(f"there is no rule '{start}' to start with{hint}", self.scanned.original, 0)
        if loaded.ignore:
            lexemes = [self.lexeme(name) for name in dict.fromkeys(loaded.ignore)]
            once = "skip_repetition" in self.scanned.options
            if self.owner.lexer == "scannerless" or once:
                gap = self.b.repeat(self.b.choice(lexemes), 0, 1 if once else -1)
            else:
                gap = self.b.gap(lexemes)
            captures = any({"capture", "stop_capture"} & set(a) for a in self.scanned.attributes.values())
            self.gap = self.b.capture("", gap) if captures else gap  # noted: no part of a capture's end
        for name, attributes in self.scanned.attributes.items():  # names in the order of the text
            for kind in ("capture", "stop_capture"):
                if label := self.label(name, attributes, kind):
                    self.b.capture(label, self.b.literal(b""))
        self.parameters(start, 0)
        self.unparametric(start)
        first = self.rule(start, {})
        while self.todo:
            number, name, arguments, inside, self.parameter = self.todo.pop()
            self.b.define(number, self.body(name, arguments, inside))
        if self.gap is None or self.scanned.options.get("allow_initial_skip") is False:
            return first
        whole = self.b.rule("")
        self.b.define(whole, self.b.sequence([self.gap, self.b.call(first)]))
        return whole

    # ---- rules ----

    def parameters(self, name: str, given: int) -> list[str]:
        """A rule's parameters, of which so many are given."""
        names = list(self.rules[name][0] or ())
        if len(names) != given:
            at = _where(self.scanned.original, name)
            self.scanned.fail(_miscounted(name, len(names), given), at)
        return names

    def rule(self, name: str, arguments: dict[str, Any], parameter: int = 0) -> int:
        return self.version(name, arguments, self.inside & self.limited_below(name, arguments), parameter)

    def version(self, name: str, arguments: dict[str, Any], inside: frozenset[str], parameter: int) -> int:
        """A rule as a part of the texts of limited rules."""
        key = (name, *(repr(a) for a in arguments.values()), inside, parameter)
        if key not in self.numbers:
            if name in self.scanned.parametric:
                self.values += 1
                if self.values > _VALUES:
                    what = f"rules with a parameter take more than {_VALUES} values"
                    self.scanned.fail(what, _where(self.scanned.original, name))
            if len(self.numbers) > 100_000:
                raise GrammarError(f"the template '{name}' never ends")
            plain = not arguments and not inside and not parameter
            self.numbers[key] = self.b.rule(self.scanned.written(name) if plain else "")
            self.todo.append((self.numbers[key], name, arguments, inside, parameter))
        return self.numbers[key]

    def unparametric(self, name: str) -> None:
        if name in self.scanned.parametric:
            message = f"rule '{name}' takes a parameter and is given none; write {name}::0"
            self.scanned.fail(message, _where(self.scanned.original, self.scanned.written(name)))

    def call(self, extension: Extension) -> int:
        """A rule with a parameter."""
        name, value = extension.value
        if name not in self.rules:
            self.scanned.fail(f"rule '{name}' is not defined{source.meant(name, self.rules)}", extension.at)
        if name not in self.scanned.parametric:
            self.scanned.fail(f"rule '{name}' takes no parameter; write {name}::_: ...", extension.at)
        self.parameters(name, 0)
        return self.b.call(self.rule(name, {}, value(self.parameter) & _ALL))

    def body(self, name: str, arguments: dict[str, Any], inside: frozenset[str]) -> int:
        # An occurrence inside another one of the same rule needs no limit of its own: whatever begins in it
        # begins in the outer one, too. So limits never stand in a left recursion.
        if name in self.limits and name not in inside:
            inner = self.version(name, arguments, inside | {name}, self.parameter)
            at = -1
            if self.owner.depth == 1:
                at = len(self.scanned.original[: self.scanned.attributes[name]["max_tokens"][2]].encode())
            node = self.b.limit(self.b.call(inner), self.limits[name], name, at)
            return self.followed(node)  # what is ignored may stand behind it as well: there it does not count
        self.inside = inside
        tree = self.rules[name][1]
        attributes = self.scanned.attributes.get(name)
        if not attributes:
            return self.node(tree, arguments)
        return self.with_attributes(name, tree, arguments, attributes)

    def limited_below(self, name: str, arguments: dict[str, Any]) -> frozenset[str]:
        """The limited rules that a rule's text may be made of, itself included."""
        if not self.limits:
            return frozenset()
        if self.scanned.parametric:  # whose calls are no names in the trees: no rule is known to be outside
            return frozenset(self.limits)
        if name not in self.reached:
            seen, todo = {name}, [name]
            while todo:
                new = _rules_in(self.rules[todo.pop()][1]) - seen
                todo += [n for n in new if n in self.rules]  # not the parameters of a template
                seen |= new
            self.reached[name] = frozenset(seen & self.limits.keys())
        found = self.reached[name]
        for given in arguments.values():
            for other in _rules_in(given) & self.rules.keys():
                found |= self.limited_below(other, {})
        return found

    def node(self, tree: Any, arguments: dict[str, Any]) -> int:
        """A tree in a rule."""
        from lark import Token
        from lark.grammar import NonTerminal, Terminal

        if isinstance(tree, Terminal):
            return self.followed(self.lexeme(tree.name))
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
                return self.repeated(self.node(kids[0], arguments), kids[1:])
            case "template_usage":
                return self.template(tree, arguments)
            case "literal":
                extension = self.extension(kids[0])
                if extension is not None and extension.kind == "call":
                    return self.call(extension)
                if extension is not None and extension.kind == "empty":
                    return self.b.literal(b"")
                if extension is not None:
                    return self.followed(self.extended(extension))
                return self.followed(self.anonymous(tree))
            case "range":
                return self.followed(self.anonymous(tree))
            case "expansion":
                if (left := self.conditional(kids)) is None:
                    return self.b.never()
                if len(left) < len(kids):
                    tree, kids = type(tree)("expansion", left), left
                if self.has_operators(kids):
                    return self.followed(self.made_lexeme(tree))
                return self.b.sequence(self.counted(kids, lambda k: self.node(k, arguments)))
        raise GrammarError(f"'{tree.data}' is not supported")

    def template(self, tree: Any, arguments: dict[str, Any]) -> int:
        from lark.grammar import NonTerminal

        name, *given = tree.children
        if name.name in arguments:  # a template handed to this one
            meant = arguments[name.name]
            if not isinstance(meant, NonTerminal) or not self.rules[meant.name][0]:
                what = f"the template parameter '{name.name}' is used as a template and stands for none"
                self.scanned.fail(what, _where(self.scanned.original, name.name))
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
            # Unwrapped: a template that hands its parameter on to itself asks for the same rule again.
            if tree.data in ("value", "expansions", "expansion") and len(tree.children) == 1:
                return self.substituted(tree.children[0], arguments)
            return Tree(tree.data, [self.substituted(k, arguments) for k in tree.children])
        return tree

    def followed(self, node: int) -> int:
        return node if self.gap is None else self.b.sequence([node, self.gap])

    def repeated(self, node: int, operator: list[Any]) -> int:
        kind = str(operator[0])
        if kind == "~":
            if any(len(str(n).lstrip("+-")) > 10 or int(n) > source.MOST for n in operator[1:]):
                raise GrammarError(f"{source.TOO_MANY}, not {str(operator[-1])[:30]}")
            least = int(operator[1])
            most = int(operator[2]) if len(operator) > 2 else least
            if least < 0 or most < least:
                raise GrammarError(f"~{least}..{most} asks for at least {least} and at most {most}")
            return self.b.repeat(node, least, most)
        return self.b.repeat(node, int(kind == "+"), 1 if kind == "?" else -1)

    # ---- operators that Lark does not know ----

    def extension(self, token: Any) -> Extension | None:
        match = PLACEHOLDER.search(str(token))
        return None if match is None else self.scanned.extensions[int(match[1])]

    def conditional(self, kids: list[Any]) -> list[Any] | None:
        """The parts of an alternative without its conditions; None where they do not hold."""
        left = []
        for kid in kids:
            operator = self.operator(kid)
            if operator is None or operator.kind != "condition":
                left.append(kid)
            elif not operator.value(self.parameter):
                return None
        return left

    def operator(self, tree: Any) -> Extension | None:
        """The operator that a placeholder among the parts of an expansion stands for."""
        literal = _only_literal(tree)
        found = None if literal is None else self.extension(literal)
        kinds = ("both", "negate", "count", "condition")
        return found if found is not None and found.kind in kinds else None

    def has_operators(self, kids: list[Any]) -> bool:
        return any((op := self.operator(k)) is not None and op.kind in ("both", "negate") for k in kids)

    def counted(self, kids: list[Any], node: Any) -> list[int]:
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

    def extended(self, extension: Extension) -> int:
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
            vocabulary, text = self.owner.vocabulary, self.scanned.original
            if value.strip() == "*" or value.lstrip().startswith("^"):
                return source.any_token(self.b, value, vocabulary, text, extension.at)
            return self.b.tokens(source.token_ids(value, vocabulary, text, extension.at))
        if kind == "regex":
            return self.substring(extension)
        self.scanned.fail("this operator stands between terminals or in front of one", extension.at)

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

    # ---- terminals ----

    def lexeme(self, name: str) -> int:
        key = ("name", name)
        if key not in self.lexemes:
            tree, priority = self.terminals[name]
            if not -(2**31) <= priority < 2**31:
                message = f"the priority of terminal '{name}' is beyond 2**31"
                self.scanned.fail(message, _where(self.scanned.original, name, definition=1))
            literal = _single_literal(tree)
            node = self.terminal(tree, name)
            self.lexemes[key] = self.make(name, node, priority, literal is not None)
        return self.lexemes[key]

    def anonymous(self, tree: Any) -> int:
        """A literal, pattern or range in a rule; a terminal that is just that lends it its name."""
        literal = _single_literal(tree)
        if literal is not None and literal in self.alone:
            return self.lexeme(self.alone[literal])
        key = ("text", repr(tree))
        if key not in self.lexemes:
            node = self.terminal(tree, "")
            self.lexemes[key] = self.make("", node, 0, literal is not None)
        return self.lexemes[key]

    def made_lexeme(self, tree: Any) -> int:
        return self.make("", self.terminal(self.as_terminal(tree, ""), ""), 0, False)

    def make(self, name: str, node: int, priority: int, literal: bool) -> int:
        if self.owner.lexer == "scannerless":
            return node
        return self.b.lexeme(name, node, priority, literal, self.owner.lexer == "dynamic")

    def lazy(self, name: str, node: int, whole: int | None = None) -> int:
        """A lexeme that ends as soon as it matches; `whole`: of which it is the first part."""
        if self.owner.lexer == "scannerless":
            return node
        return self.b.lexeme(name, node, 0, False, self.owner.lexer == "dynamic", True, whole)

    def terminal(self, tree: Any, name: str) -> int:
        """A tree in a terminal, in which references are resolved already."""
        if tree.data == "part":  # of a rule; parts of a terminal are joined as texts, as in Lark
            return self.terminal(tree.children[0], name)
        if not self.mentions_extension(tree):
            return self.joined(tree, name)
        kids = tree.children
        match tree.data:
            case "expansions":
                return self.b.choice([self.terminal(k, name) for k in kids])
            case "value":
                return self.terminal(kids[0], name)
            case "maybe":
                return self.b.repeat(self.terminal(kids[0], name), 0, 1)
            case "expr":
                return self.repeated(self.terminal(kids[0], name), kids[1:])
            case "literal":
                extension = self.extension(kids[0])
                assert extension is not None
                if extension.kind in ("json", "lark", "reference", "call"):
                    what = {"reference": "@", "call": "a rule"}.get(extension.kind, f"%{extension.kind}")
                    self.scanned.fail(f"{what} stands in rules, not in terminals", extension.at)
                return self.extended(extension)
            case "expansion":
                return self.conjunction(kids, name)
        raise GrammarError(f"'{tree.data}' cannot stand in terminal '{name}'")

    def conjunction(self, kids: list[Any], name: str) -> int:
        """Parts of an expansion: sequences joined by ``&``, ``~`` in front of a part."""
        sequences: list[list[tuple[Any, bool]]] = [[]]
        negated = False
        for kid in kids:
            operator = self.operator(kid)
            if operator is not None and operator.kind == "both":
                if negated or not sequences[-1]:
                    self.scanned.fail("'&' stands between two terminals", operator.at)
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
                node = self.terminal(kid, name)
                return self.b.negate(node) if flags[id(kid)] else node

            if not any(flags.values()) and all(self.operator(kid) is None for kid, _ in sequence):
                from lark import Tree

                whole = Tree("expansion", [kid for kid, _ in sequence])
                if not self.mentions_extension(whole):
                    parts.append(self.joined(whole, name))
                    continue
            parts.append(self.b.sequence(self.counted([kid for kid, _ in sequence], one)))
        return parts[0] if len(parts) == 1 else self.b.both(parts)

    def mentions_extension(self, tree: Any) -> bool:
        if next(tree.find_data("part"), None) is not None:
            return True
        return any(self.extension(t.children[0]) is not None for t in tree.find_data("literal"))

    def joined(self, tree: Any, name: str) -> int:
        """A terminal in Lark's own terms is one regex, as in Lark: a look-behind may reach across parts."""
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
        at = _where(self.scanned.original, name, definition=1) if name else -1
        message = message.split("\n")[0]
        if at < 0:
            raise GrammarError(message, text=self.scanned.original)
        self.scanned.fail(f"{message} (terminal '{name}')" if name not in message else message, at)

    # ---- attributes ----

    def with_attributes(self, name: str, tree: Any, arguments: dict[str, Any], given: dict[str, Any]) -> int:
        label, end_label = (self.label(name, given, kind) for kind in ("capture", "stop_capture"))
        ends = given.get("suffix") or given.get("stop")
        if ends is not None and ends[0] == "string" and not _text_of(ends):
            ends = None  # the end of the whole text, as in llguidance: no end of its own
        if "lazy" not in given and ends is None:
            if "max_chars" in given:
                node = self.shortened(self.terminal(self.as_terminal(tree, name, "max_chars"), name), given)
                if "max_tokens" not in given:
                    node = self.make(name, node, 0, False)
                return self.followed(self.b.capture(label, node) if label else node)
            one = _one_terminal(tree) if "max_tokens" in given else None
            if one is not None:  # its limit ends it, or what follows does: not as far as it can
                node = self.terminal(self.as_terminal(one, name), name)
                return self.followed(self.b.capture(label, node) if label else node)
            node = self.node(tree, arguments)
            return self.b.capture(label, node) if label else node
        body = self.shortened(self.terminal(self.as_terminal(tree, name), name), given)
        if ends is None:
            node = self.lazy(name, self.b.shortest(body))
            return self.followed(self.b.capture(label, node) if label else node)
        end = self.attribute_node(ends)
        whole = self.b.shortest(self.b.sequence([body, end]))
        if not label and not end_label:
            return self.followed(self.lazy(name, whole))
        # The body as far as the end does not occur in it, so that the capture has a place to stop.
        b = self.b
        never = [b.sequence([source.any_text(b), end, source.any_text(b)])]
        if ends[0] == "string":
            text, spell = _text_of(ends), self.spell(ends)
            folded = text.lower() if ends[1].endswith("i") else text
            for k in range(1, len(text)):
                if folded[k:] == folded[: len(text) - k]:
                    never.append(b.sequence([source.any_text(b), spell(text[:k])]))
        elif ends[0] == "regexp" and not _one_character(ends[1]):
            message = "the end of a capture is a text, a token or a pattern of one character"
            self.scanned.fail(message, ends[2])
        inside = self.lazy(name, b.both([body, b.negate(b.choice(never))]), whole)
        return self.followed(
            b.sequence(
                [
                    b.capture(label, inside) if label else inside,
                    b.capture(end_label, end) if end_label else end,
                ]
            )
        )

    def shortened(self, node: int, given: dict[str, Any]) -> int:
        """A terminal with at most `max_chars` characters."""
        if "max_chars" not in given:
            return node
        most = min(_count(given["max_chars"][1]), source.MOST)
        return self.b.both([node, self.b.repeat(source.any_char(self.b), 0, most)])

    def label(self, name: str, given: dict[str, Any], kind: str) -> str | None:
        """The name of a capture; that of the rule where none is given."""
        if kind not in given:
            return None
        what, text, at = given[kind]
        if what not in ("nothing", "string"):
            self.scanned.fail(f"'{kind}' takes a name in quotes", at)
        found = self.scanned.written(name) if what == "nothing" else _text_of(given[kind])
        if not found:
            self.scanned.fail("a capture has a name", at)
        return found

    def check_attributes(self) -> None:
        """What cannot be kept is refused, whether or not the rule is used."""
        for name, given in self.scanned.attributes.items():
            if name not in self.rules:
                known = source.meant(name, self.rules)
                self.scanned.fail(f"rule '{name}' is not defined{known}", _where(self.scanned.original, name))
            for kind, (what, text, at) in given.items():
                if kind in ("max_tokens", "max_chars") and (what != "number" or _count(text) < 0):
                    self.scanned.fail(f"'{kind}' is a whole number of at least 0", at)
                if kind == "temperature":
                    written = self.scanned.written(name)
                    source.temperature(self.b, written, text, self.scanned.original, at)
                if kind == "lazy" and what != "nothing":
                    self.scanned.fail("'lazy' takes no value", at)
                if kind in ("stop", "suffix") and what == "nothing":
                    self.scanned.fail(f"'{kind}' needs a text, a pattern, a terminal or a token", at)
                self.label(name, given, "capture")
            if "stop" in given and "suffix" in given:
                self.scanned.fail("'stop' and 'suffix' are the same; write one", given["suffix"][2])
            if "stop_capture" in given:
                self.label(name, given, "stop_capture")
                if "stop" not in given and "suffix" not in given:
                    self.scanned.fail("'stop_capture' needs a 'stop'", given["stop_capture"][2])

    def attribute_node(self, value: tuple[str, str, int]) -> int:
        kind, text, at = value
        if kind == "token":
            return self.b.tokens([source.named_token(text, self.owner.vocabulary, self.scanned.original, at)])
        if kind == "string":
            return self.spell(value)(_text_of(value))
        if kind == "regexp":
            body, _, flags = text[1:].rpartition("/")
            pattern = body.replace("\\/", "/")
            try:
                return self.b.pattern(source.sound(f"(?{flags}:{pattern})" if flags else pattern))
            except GrammarError as error:
                self.scanned.fail(error.message, at)
        if kind == "terminal":
            name = self.scanned.name(text)
            if name not in self.terminals:
                self.scanned.fail(f"terminal '{name}' is not defined", at)
            return self.terminal(self.terminals[name][0], name)
        self.scanned.fail("expected a text, a pattern, a terminal or a token", at)

    def spell(self, value: tuple[str, str, int]) -> source.Spell:
        """How the texts of an attribute are matched: ``"..."i`` in any case."""
        if value[1].endswith("i"):
            return lambda text: source.ignoring_case(self.b, text)
        return lambda text: self.b.literal(text.encode())

    def as_terminal(self, tree: Any, name: str, why: str = "is lazy or has an end") -> Any:
        """A rule's tree with its terminals put in, for attributes that apply to one terminal."""
        from lark import Tree
        from lark.grammar import NonTerminal, Terminal

        if isinstance(tree, Terminal):
            return Tree("part", [self.terminals[tree.name][0]])
        if isinstance(tree, NonTerminal):
            if not name:
                message = f"'&' and '~' stand between terminals alone, and '{tree.name}' is a rule"
                self.scanned.fail(message, _where(self.scanned.original, tree.name))
            why = f"has '{why}'" if why == "max_chars" else why
            message = f"rule '{name}' {why}, so it is made of terminals alone"
            self.scanned.fail(
                message, _where(self.scanned.original, self.scanned.written(name), definition=1)
            )
        if isinstance(tree, Tree):
            if tree.data == "alias":
                return self.as_terminal(tree.children[0], name, why)
            if tree.data == "range" or (
                tree.data == "literal" and not PLACEHOLDER.search(str(tree.children[0]))
            ):
                return Tree("part", [tree])
            return Tree(tree.data, [self.as_terminal(k, name, why) for k in tree.children])
        return tree


# ---- trees ----


def _count(text: str) -> int:
    """A limit; -1 where the text is none."""
    if not text.isdigit() or not text.isascii():
        return -1
    return min(int(text.lstrip("0")[:20] or "0"), _MOST_TOKENS)


def _rules_in(tree: Any) -> set[str]:
    """Names of rules in a tree; parameters of a template among them."""
    from lark.grammar import NonTerminal

    if isinstance(tree, NonTerminal):
        return {tree.name}
    found: set[str] = set()
    for node in tree.iter_subtrees() if hasattr(tree, "iter_subtrees") else []:
        found.update(kid.name for kid in node.children if isinstance(kid, NonTerminal))
    return found


def _only_literal(tree: Any) -> Any:
    """The token of a tree that is a single literal."""
    while getattr(tree, "data", None) in ("value", "expansions", "expansion") and len(tree.children) == 1:
        tree = tree.children[0]
    return tree.children[0] if getattr(tree, "data", None) == "literal" else None


def _one_terminal(tree: Any) -> Any:
    """The tree of a rule that is one named terminal, text or pattern; else None."""
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


def _single_literal(tree: Any) -> tuple[str, str] | None:
    """The text and flags of a terminal that is one string."""
    from lark import load_grammar

    token = _only_literal(tree)
    if token is None or token.type != "STRING" or PLACEHOLDER.search(str(token)):
        return None
    pattern: Any = load_grammar._literal_to_pattern(token)  # type: ignore[no-untyped-call]
    return pattern.value, "".join(sorted(pattern.flags))


def _size(tree: Any) -> int:
    """Nodes of a tree whose parts are shared, as if they were not."""
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


def _text_of(value: Any) -> str:
    import ast

    if value[0] != "string":
        raise GrammarError(f"expected a text, found {value[1]}")
    try:
        return source.sound(str(ast.literal_eval(value[1].removesuffix("i"))))
    except (SyntaxError, ValueError) as error:
        if isinstance(error, GrammarError):
            raise
        raise GrammarError(f"{value[1]} cannot be read: {str(error).splitlines()[0]}") from None


def _one_character(pattern: str) -> bool:
    """Whether ``/.../flags`` matches texts of one character alone."""
    from re import _parser

    body, _, flags = pattern[1:].rpartition("/")
    try:
        width = _parser.parse(f"(?{flags}:{body})" if flags else body).getwidth()
    except (re.error, RecursionError, OverflowError):
        return False
    return tuple(width) == (1, 1)


def ends_at_first_match(pattern: str) -> bool:
    """Whether a pattern with lazy quantifiers takes as little as it can.

    It does where what follows the last lazy one has one length. Otherwise all its texts count.
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
    """(some quantifier is lazy, everything after the last lazy one has one length)."""
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
