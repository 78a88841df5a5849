"""Random context-free grammars, and an oracle of their meaning under each lexer.

A grammar has rules (trees) and terminals. Empty, unit, left-recursive (also hidden) and ambiguous rules are
common. `lark` and `gbnf` write a grammar in a dialect. `Oracle` tells whether a text belongs to the grammar.
It fills a table of what each rule can read from each place, until nothing changes, and matches terminals with
Python's `re`, by the definition in docs/grammars.md. It uses no derivatives, stacks, automata or left-corner
transforms.

`python -m oracles.random_grammars DIALECT FIRST COUNT` checks seeds and prints one line per failure.
`failures` runs the command in a process of its own and goes on after a crash, because a bug may end the
process.
"""

from __future__ import annotations

import itertools
import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import zip_longest
from typing import Any

import numpy as np

from oracles import oracle
from oracles.strategies import Seeded, Source

Tree = tuple[Any, ...]
DIALECTS = ("contextual", "dynamic", "scannerless", "gbnf")

# The bytes of the texts, and three vocabularies: all bytes, with duplicates and the empty token; without `b`
# alone; with tokens over several terminals.
VOCABULARIES = (
    (b"a", b"b", b"c", b"a", b"b", b"", b"ab", b"A", b"B", b"C"),
    (b"a", b"ab", b"ba", b"bb", b"c", b"cc", b"ab"),
    (
        *(b"a", b"b", b"c", b"ab", b"abc", b"cab", b"aabba", b"bcbcb", b"acacaca", b"bbbbbbbb", b""),
        *(b"abcab", b"A", b"B", b"C"),
    ),
)


@dataclass(frozen=True)
class Terminal:
    pattern: str  # in the syntax of Python's `re`; for a literal, its text
    literal: bool = False
    ignores_case: bool = False
    priority: int = 0

    def regex(self) -> re.Pattern[str]:
        text = re.escape(self.pattern) if self.literal else self.pattern
        return re.compile(text, re.IGNORECASE if self.ignores_case else 0)

    def written(self) -> str:
        flag = "i" if self.ignores_case else ""
        return f'"{self.pattern}"{flag}' if self.literal else f"/{self.pattern}/{flag}"


@dataclass
class Grammar:
    """Trees: ("terminal", name), ("rule", name), ("use", template, argument), ("parameter",),
    ("sequence", trees), ("choice", trees), ("repeat", tree, least, most or None)."""

    rules: dict[str, Tree]
    terminals: dict[str, Terminal]
    templates: dict[str, Tree] = field(default_factory=dict)
    ignored: tuple[str, ...] = ()
    captured: tuple[str, ...] = ()
    lazy: dict[str, tuple[str, ...]] = field(default_factory=dict)  # rule -> its terminals in sequence


LITERALS = ("a", "b", "c", "ab", "ba", "aa", "abc")
PATTERNS = ("a+", "[ab]+", "ab?", "b*", "(ab)+", "[abc]", "a?", "c+a?", "b+|c", "(a|bc)*")


def _tree(source: Source, names: Sequence[str], terminals: Sequence[str], depth: int, inside: bool) -> Tree:
    kind = source.integer(0, 11 if depth else 4)
    if kind <= 2:
        return ("terminal", source.pick(terminals))
    if kind == 3:
        return ("parameter",) if inside and source.chance(60) else ("rule", source.pick(names))
    if kind == 4:
        return ("sequence", ()) if source.chance(40) else ("rule", source.pick(names))

    def part() -> Tree:
        return _tree(source, names, terminals, depth - 1, inside)

    if kind <= 7:
        return ("sequence", tuple(part() for _ in range(source.integer(2, 3))))
    if kind <= 9:
        return ("choice", tuple(part() for _ in range(source.integer(2, 3))))
    if kind == 10 and not inside and source.chance(60):
        return ("use", "twice", ("rule", source.pick(names)))
    least, most = source.pick([(0, None), (0, 1), (1, None), (0, 2), (2, 3), (1, 1)])
    return ("repeat", part(), least, most)


def _rule(source: Source, names: Sequence[str], terminals: Sequence[str]) -> Tree:
    """Draws a tree, often of a form that random trees rarely have."""
    one, two = source.pick(names), source.pick(names)
    match source.integer(0, 9):
        case 0:  # left recursion with an empty alternative
            tree = ("choice", (("sequence", (("rule", one), ("rule", two))), ("sequence", ())))
        case 1:  # an optional text
            tree = ("choice", (("terminal", source.pick(terminals)), ("sequence", ())))
        case 2:  # left recursion that an empty rule hides
            tail = ("terminal", source.pick(terminals))
            tree = ("choice", (("sequence", (("rule", one), ("rule", two), tail)), tail))
        case 3:  # a unit rule beside a text
            tree = ("choice", (("rule", one), ("terminal", source.pick(terminals))))
        case _:
            tree = _tree(source, names, terminals, 3, False)
    return tree


def draw(source: Source, dialect: str) -> Grammar:
    names = ["start", *"xyzw"[: source.integer(0, 3)]]
    terminals: dict[str, Terminal] = {}
    for name in "ABCD"[: source.integer(1, 4)]:
        literal = source.chance(55)
        ignores_case = dialect != "gbnf" and source.chance(15)
        pattern = source.pick(LITERALS if literal else PATTERNS)
        terminals[name] = Terminal(
            pattern.upper() if ignores_case and literal else pattern,
            literal,
            ignores_case,
            source.pick((0, 0, 0, 0, 1, -1)) if dialect in ("contextual", "dynamic") else 0,
        )
    grammar = Grammar({}, terminals)
    if dialect != "gbnf":
        if source.chance(25):
            terminals["W"] = source.pick((Terminal("c", True), Terminal("c+"), Terminal("b", True)))
            grammar.ignored = ("W",)
        if source.chance(25):
            grammar.templates = {"twice": _tree(source, names, list(terminals), 2, True)}
        if source.chance(25):
            grammar.captured = tuple(source.some(names, 1, 2))
    usable = [t for t in terminals if t != "W"]
    if dialect != "gbnf" and source.chance(25):
        grammar.lazy = {"l": tuple(source.pick(usable) for _ in range(source.integer(1, 2)))}
    called = [*names, *grammar.lazy, *grammar.lazy]
    for name in names:
        grammar.rules[name] = _rule(source, called, usable)
    if not grammar.templates:
        grammar.rules = {name: _without_uses(tree) for name, tree in grammar.rules.items()}
    return grammar


def _without_uses(tree: Tree) -> Tree:
    if tree[0] == "use":
        return tree[2]
    if tree[0] in ("sequence", "choice"):
        return (tree[0], tuple(map(_without_uses, tree[1])))
    if tree[0] == "repeat":
        return ("repeat", _without_uses(tree[1]), *tree[2:])
    return tree


# ---- as text ----


def _written(tree: Tree, gbnf: Grammar | None) -> str:
    match tree:
        case ("terminal", name):
            if gbnf is None:
                return str(name)
            terminal = gbnf.terminals[name]
            return f'"{terminal.pattern}"' if terminal.literal else _classes(terminal.pattern)
        case ("rule", name):
            return "root" if gbnf is not None and name == "start" else str(name)
        case ("use", template, argument):
            return f"{template}{{{_written(argument, gbnf)}}}"
        case ("parameter",):
            return "p"
        case ("sequence", ()):
            return '""' if gbnf is not None else "()"
        case ("sequence", parts):
            return "(" + " ".join(_written(p, gbnf) for p in parts) + ")"
        case ("choice", parts):
            return "(" + " | ".join(_written(p, gbnf) for p in parts) + ")"
        case ("repeat", part, least, most):
            body = f"({_written(part, gbnf)})"
            if (least, most) in ((0, None), (1, None), (0, 1)):
                return body + {(0, None): "*", (1, None): "+", (0, 1): "?"}[least, most]
            return f"{body}{{{least},{most}}}" if gbnf is not None else f"{body}~{least}..{most}"
    raise AssertionError(tree)


def _classes(pattern: str) -> str:
    """Returns a pattern of `PATTERNS` in GBNF's syntax; letters become literals."""
    return "(" + re.sub(r"(\[[^\]]*\])|([a-z])", lambda m: m[1] or f'"{m[2]}"', pattern) + ")"


def lark(grammar: Grammar) -> str:
    lines = []
    for name, tree in grammar.rules.items():
        attributes = "[capture]" if name in grammar.captured else ""
        lines.append(f"{name}{attributes}: {_written(tree, None)}")
    lines += [f"{name}{{p}}: {_written(tree, None)}" for name, tree in grammar.templates.items()]
    lines += [f"{name}[lazy]: {' '.join(names)}" for name, names in grammar.lazy.items()]
    for name, terminal in grammar.terminals.items():
        priority = f".{terminal.priority}" if terminal.priority else ""
        lines.append(f"{name}{priority}: {terminal.written()}")
    lines += [f"%ignore {name}" for name in grammar.ignored]
    # Lark has no empty parentheses, so `(|)` stands for them.
    return "\n".join(lines).replace("()", "(|)")


def gbnf(grammar: Grammar) -> str:
    return "\n".join(
        f"{'root' if name == 'start' else name} ::= {_written(tree, grammar)}"
        for name, tree in grammar.rules.items()
    )


# ---- the oracle ----


class Oracle:
    """A text belongs to the grammar if its terminals, read one after another, are a sentence of the rules.

    Under "contextual" and "dynamic" a terminal is never empty: a terminal that matches the empty text may
    also be left out. A terminal ends at `j` unless a rival matches a text that is longer by one character.
    Rivals are all ignored terminals, and all terminals of equal or higher priority that may begin at the same
    place. A terminal may begin there if, in its rule, it may follow the terminal read last; or if that rule
    may end and the terminal may follow the rule anywhere. A rival of a higher priority wins as soon as it
    matches. Of equal texts a literal wins over a pattern. Under "dynamic" a terminal has only itself as a
    rival. Under "scannerless" a terminal is any text that it matches.

    A lazy rule is a terminal; its texts are those without a beginning that is a text of the rule. Under
    "contextual" it wins over rivals of its priority, 0, and lower ones as soon as it matches.
    """

    def __init__(self, grammar: Grammar, lexer: str) -> None:
        self.lexer = lexer
        self.terminals = grammar.terminals
        self.regexes = {name: t.regex() for name, t in grammar.terminals.items()}
        self.lazy = {f"#{name}" for name in grammar.lazy}  # the terminals of lazy rules
        self.terminals = {**self.terminals, **{name: Terminal("") for name in self.lazy}}
        for name, names in grammar.lazy.items():
            parts = (
                f"(?i:{r.pattern})" if r.flags & re.IGNORECASE else f"(?:{r.pattern})"
                for r in (self.regexes[n] for n in names)
            )
            self.regexes[f"#{name}"] = re.compile("".join(parts))
        self.ignored = grammar.ignored
        self.rules: dict[str, Tree] = {}
        self._instances = grammar.templates
        self._count = 0
        todo = ["start"]
        self._bodies = {**grammar.rules, **{n: ("terminal", f"#{n}") for n in grammar.lazy}}
        while todo:
            name = todo.pop()
            if name not in self.rules:
                self.rules[name] = self._numbered(self._bodies[name], todo)
        self._prune()
        self._contexts()

    def _numbered(self, tree: Tree, todo: list[str]) -> Tree:
        """Numbers every occurrence of a terminal, and turns uses of templates into rules."""
        match tree:
            case ("terminal", name):
                self._count += 1
                return ("terminal", name, self._count)
            case ("rule", name):
                todo.append(name)
                return tree
            case ("use", template, ("rule", argument)):
                name = f"{template}<{argument}>"
                self._bodies[name] = _filled(self._instances[template], ("rule", argument))
                todo.append(name)
                return ("rule", name)
            case ("sequence" | "choice", parts):
                return (tree[0], tuple(self._numbered(p, todo) for p in parts))
            case ("repeat", part, least, most):
                return ("repeat", self._numbered(part, todo), least, most)
        raise AssertionError(tree)

    # Removes every part that matches no text, or that only such a part reaches.
    def _prune(self) -> None:
        productive: set[str] = set()

        def holds(tree: Tree, known: set[str]) -> bool:
            match tree:
                case ("terminal", *_):
                    return True
                case ("rule", name):
                    return name in known
                case ("sequence", parts):
                    return all(holds(p, known) for p in parts)
                case ("choice", parts):
                    return any(holds(p, known) for p in parts)
                case ("repeat", part, least, _):
                    return least == 0 or holds(part, known)
            raise AssertionError(tree)

        while new := {n for n, t in self.rules.items() if n not in productive and holds(t, productive)}:
            productive |= new

        def kept(tree: Tree) -> Tree:
            match tree:
                case ("choice", parts):
                    return ("choice", tuple(kept(p) for p in parts if holds(p, productive)))
                case ("sequence", parts):
                    return ("sequence", tuple(kept(p) for p in parts))
                case ("repeat", part, least, most):
                    return (
                        ("repeat", kept(part), least, most) if holds(part, productive) else ("sequence", ())
                    )
            return tree

        self.empty = "start" not in productive
        trees = {name: kept(tree) for name, tree in self.rules.items() if name in productive}
        self.rules = {}
        todo = [] if self.empty else ["start"]
        while todo:
            name = todo.pop()
            if name in self.rules:
                continue
            self.rules[name] = trees[name]
            stack = [trees[name]]
            while stack:
                tree = stack.pop()
                if tree[0] == "rule":
                    todo.append(tree[1])
                elif tree[0] in ("sequence", "choice"):
                    stack.extend(tree[1])
                elif tree[0] == "repeat":
                    stack.append(tree[1])

    def _optional(self, name: str) -> bool:
        return self.regexes[name].fullmatch("") is not None

    def _contexts(self) -> None:
        nullable = dict.fromkeys(self.rules, False)
        first: dict[str, frozenset[str]] = dict.fromkeys(self.rules, frozenset())
        follow: dict[str, frozenset[str]] = dict.fromkeys(self.rules, frozenset())
        self.context: dict[int, frozenset[str]] = {}

        def empty(tree: Tree) -> bool:
            match tree:
                case ("terminal", name, _):
                    return self._optional(name)
                case ("rule", name):
                    return nullable[name]
                case ("sequence", parts):
                    return all(map(empty, parts))
                case ("choice", parts):
                    return any(map(empty, parts))
                case ("repeat", part, least, _):
                    return least == 0 or empty(part)
            raise AssertionError(tree)

        def begins(tree: Tree) -> frozenset[str]:
            match tree:
                case ("terminal", name, _):
                    return frozenset([name])
                case ("rule", name):
                    return first[name]
                case ("sequence", parts):
                    found: frozenset[str] = frozenset()
                    for part in parts:
                        found |= begins(part)
                        if not empty(part):
                            break
                    return found
                case ("choice", parts):
                    return frozenset().union(*map(begins, parts))
                case ("repeat", part, _, _):
                    return begins(part)
            raise AssertionError(tree)

        def spread(tree: Tree, after: frozenset[str]) -> None:
            match tree:
                case ("terminal", _, number):
                    self.context[number] = after | frozenset(self.ignored)
                case ("rule", name):
                    follow[name] |= after
                case ("sequence", parts):
                    for part in reversed(parts):
                        spread(part, after)
                        after = begins(part) | (after if empty(part) else frozenset())
                case ("choice", parts):
                    for part in parts:
                        spread(part, after)
                case ("repeat", part, _, most):
                    spread(part, after | (frozenset() if most == 1 else begins(part)))

        before: Any = None
        while before != (before := (dict(nullable), dict(first), dict(follow))):
            for name, tree in self.rules.items():
                nullable[name] = empty(tree)
                first[name] = begins(tree)
                spread(tree, follow[name])
        self.start = first.get("start", frozenset()) | frozenset(self.ignored)

    def _whole(self, name: str, text: str) -> bool:
        regex = self.regexes[name]
        if name in self.lazy and any(regex.fullmatch(text[:k]) for k in range(len(text))):
            return False
        return regex.fullmatch(text) is not None

    def _reads(self, name: str, context: frozenset[str], text: str, i: int) -> list[int]:
        """Returns the places where a terminal that begins at i may end."""
        if self.lexer in ("scannerless", "gbnf"):
            return [j for j in range(i, len(text) + 1) if self._whole(name, text[i:j])]
        me = self.terminals[name]
        rivals = [name]
        if self.lexer == "contextual":
            rivals += [u for u in context if u != name and self.terminals[u].priority >= me.priority]
        ends = []
        for j in range(i + 1, len(text) + 1):
            if not self._whole(name, text[i:j]):
                continue
            lazy = name in self.lazy
            if not lazy and j < len(text) and any(self._whole(u, text[i : j + 1]) for u in rivals):
                continue
            beaten = False
            for u in rivals[1:]:
                other = self.terminals[u]
                if u in self.lazy:
                    last = j - (lazy and other.priority == me.priority)
                    beaten |= any(self._whole(u, text[i:k]) for k in range(i + 1, last + 1))
                elif lazy and other.priority == me.priority:
                    continue
                elif other.priority > me.priority:
                    beaten |= any(self._whole(u, text[i:k]) for k in range(i + 1, j + 1))
                elif other.literal and not me.literal:
                    beaten |= self._whole(u, text[i:j])
            if not beaten:
                ends.append(j)
        return ends

    def accepts(self, text: str) -> bool:
        if self.empty:
            return False
        table: dict[tuple[str, Any], set[Any]] = {}
        grown = True

        def ignoring(places: set[Any]) -> set[Any]:
            todo, seen = list(places), set(places)
            while todo:
                at, context = todo.pop()
                for name in self.ignored:
                    for end in self._reads(name, context, text, at):
                        if (end, context) not in seen:
                            seen.add((end, context))
                            todo.append((end, context))
            return seen

        def ends(tree: Tree, begin: Any) -> set[Any]:
            nonlocal grown
            match tree:
                case ("terminal", name, number):
                    found = {(j, self.context[number]) for j in self._reads(name, begin[1], text, begin[0])}
                    found = ignoring(found)
                    if self.lexer in ("contextual", "dynamic") and self._optional(name):
                        found.add(begin)
                    return found
                case ("rule", name):
                    if (name, begin) not in table:
                        table[name, begin] = set()
                        grown = True
                    return set(table[name, begin])
                case ("sequence", parts):
                    return oracle.in_turn(ends, parts, begin)
                case ("choice", parts):
                    return {e for part in parts for e in ends(part, begin)}
                case ("repeat", part, least, most):
                    now, found = {begin}, {begin} if least == 0 else set()
                    count = 0
                    seen: list[set[Any]] = []
                    while now and (most is None or count < most) and count < least + 40:
                        now = {e for b in now for e in ends(part, b)}
                        count += 1
                        if count >= least:
                            if most is None and now <= found and now in seen:
                                break
                            found |= now
                        seen.append(now)
                    return found
            raise AssertionError(tree)

        starts = ignoring({(0, self.start)})
        for start in starts:
            ends(("rule", "start"), start)
        while grown:
            grown = False
            for (name, begin), known in list(table.items()):
                new = ends(self.rules[name], begin) - known
                if new:
                    known |= new
                    grown = True
        return any(e[0] == len(text) for s in starts for e in table["start", s])


def _filled(tree: Tree, argument: Tree) -> Tree:
    match tree:
        case ("parameter",):
            return argument
        case ("sequence" | "choice", parts):
            return (tree[0], tuple(_filled(p, argument) for p in parts))
        case ("repeat", part, least, most):
            return ("repeat", _filled(part, argument), least, most)
    return tree


# ---- the check ----


def texts(longest: int = 5) -> Iterator[str]:
    for length in range(longest + 1):
        letters = "abc" if length <= 3 else "ab"
        yield from map("".join, itertools.product(letters, repeat=length))


class Mismatch(Exception):
    """A wrong answer about a grammar: a kind and an example."""


def membership(grammar: Grammar, dialect: str) -> Callable[[bytes], bool]:
    """Returns a function that tells whether a text belongs to a grammar, by `Oracle`; it asks about each text
    once."""
    known = Oracle(grammar, dialect)
    return cache(lambda text: known.accepts(text.decode()))


def run(first: int, count: int, check: Callable[[int], tuple[int, ...]]) -> None:
    """Checks seeds. Prints one line per failure, and the sums of the numbers that `check` returns."""
    sums: list[int] = []
    for seed in range(first, first + count):
        try:
            found = check(seed)
            sums = [a + b for a, b in zip_longest(sums, found, fillvalue=0)]
        except Mismatch as error:
            print(error.args[0], seed, error.args[1].replace("\n", " "), sep="\t", flush=True)
        except Exception as error:
            print("error", seed, f"{type(error).__name__}: {error}".replace("\n", " "), sep="\t", flush=True)
    print("done", *sums, sep="\t")


def run_named(
    check: Callable[[int, str, Any], Any], check_schema: Callable[[int, Any], Any], json: Callable[[], Any]
) -> None:
    """`run` as a program. The arguments are a dialect or "schema", the first seed, and the number of
    seeds."""
    dialect, first, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    assert dialect in (*DIALECTS, "schema"), dialect
    made: Any = json() if dialect == "schema" else compilers()
    one = (
        (lambda seed: check_schema(seed, made)) if dialect == "schema" else lambda s: check(s, dialect, made)
    )
    run(first, count, one)


def compiled(grammar: Grammar, dialect: str, compiler: Any) -> Any:
    """Returns the grammar from this compiler, or None if the compiler refuses the text."""
    from structgen import errors

    try:
        if dialect == "gbnf":
            return compiler.gbnf(gbnf(grammar))
        return compiler.lark(lark(grammar), lexer=dialect)
    except errors.GrammarError:
        return None


def compilers() -> list[Any]:
    import structgen

    made = []
    for tokens in VOCABULARIES:
        vocabulary = structgen.Vocabulary.from_bytes([*tokens, b""], eos_token_ids=[len(tokens)])
        made.append(structgen.Compiler(vocabulary))
    return made


def check(seed: int, dialect: str, compilers: Sequence[Any], longest: int = 5) -> None:
    """Checks the acceptance of every short text, masks, dead ends, and that only expected errors occur."""
    from structgen import errors

    source = Seeded(seed)
    grammar = draw(source, dialect)
    known = Oracle(grammar, dialect)
    written = gbnf(grammar) if dialect == "gbnf" else lark(grammar)
    which = source.integer(0, len(compilers) - 1)
    compiler = compilers[which]

    def compile_it() -> Any:
        return compiler.gbnf(written) if dialect == "gbnf" else compiler.lark(written, lexer=dialect)

    inside = {t for t in texts(longest) if known.accepts(t)}
    try:
        found = compile_it()
    except errors.GrammarError as error:
        if "no text matches" not in error.message:
            raise Mismatch("refused", error.message) from None
        if inside:
            raise Mismatch("refused", f"{error.message}, and {min(inside, key=len)!r} does") from None
        return
    except errors.BudgetExceeded as error:
        raise Mismatch("budget", str(error)) from None
    prefixes = {t[:n] for t in inside for n in range(len(t) + 1)}
    try:
        for text in texts(longest):
            matcher = found.matcher()
            alive = matcher.accept_bytes(text.encode())
            if grammar.captured and alive:
                matcher.captures()
            accepted = alive and matcher.is_accepting()
            if accepted != (text in inside):
                raise Mismatch("misses" if text in inside else "takes", repr(text))
            if text in prefixes and not alive:
                raise Mismatch("misses", f"the beginning {text!r}")
            if alive and text not in prefixes:
                rest = matcher.shortest_completion()
                whole = text + rest.decode()
                if len(whole) <= 12 and not known.accepts(whole):
                    raise Mismatch("completes", f"{text!r} by {rest!r}")
        size = len(VOCABULARIES[which]) + 1
        for _ in range(3):
            matcher = found.matcher()
            for _ in range(8):
                mask = oracle.mask_of(matcher, size)
                if not (mask == oracle.naive_mask(matcher, size)).all():
                    raise Mismatch("mask", f"{mask.nonzero()[0].tolist()}")
                if not mask.any():
                    if which != 1:  # a vocabulary that lacks bytes may leave a mask without a token
                        raise Mismatch("dead end", "")
                    break
                token = int(source.pick(np.flatnonzero(mask).tolist()))
                if not matcher.accept_token(token):
                    raise Mismatch("mask", f"token {token} is allowed and refused")
                if token == size - 1:
                    break
    except errors.BudgetExceeded as error:
        raise Mismatch("budget", str(error)) from None


def failures(dialect: str, first: int, count: int, longest: int = 5) -> list[tuple[int, str, str]]:
    """Returns (seed, kind, example) of every wrong grammar. A crash loses only its own grammar."""
    out = []
    at, end = first, first + count
    while at < end:
        run = subprocess.run(
            [sys.executable, "-m", "oracles.random_grammars", dialect, str(at), str(end - at), str(longest)],
            capture_output=True,
            text=True,
            check=False,
        )
        seed = at - 1
        for line in run.stdout.splitlines():
            kind, number, *example = line.split("\t")
            seed = int(number)
            if kind != "ok":
                out.append((seed, kind, " ".join(example)))
        if run.returncode == 0:
            break
        out.append((seed + 1, "crash", f"{run.returncode} {run.stderr[-300:]}"))
        at = seed + 2
    return out


def main() -> None:
    dialect, first, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    longest = int(sys.argv[4]) if len(sys.argv) > 4 else 5
    made = compilers()
    for seed in range(first, first + count):
        try:
            check(seed, dialect, made, longest)
            print("ok", seed, sep="\t", flush=True)
        except Mismatch as error:
            print(error.args[0], seed, error.args[1].replace("\n", " "), sep="\t", flush=True)
        except Exception as error:
            text = f"{type(error).__name__}: {error}".replace("\n", " ")
            print("exception", seed, text, sep="\t", flush=True)


if __name__ == "__main__":
    main()
    sys.exit(0)
