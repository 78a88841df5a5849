"""Grammars whose rules limit tokens, and an oracle of their meaning that shares no code with the engine.

A grammar is a dict: rule -> (limit or None, node). A node is a tuple: ("text", t), ("any", characters),
("seq", nodes), ("alt", nodes), ("star", node), ("opt", node), ("rule", name). `lark` writes the grammar in
Lark without a lexer. `accepts` tells whether tokens are a text of the grammar. It fills a table of what each
node derives between two places of the text, until nothing changes. An occurrence of a limited rule counts
only if few enough tokens begin in it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from oracles import oracle
from oracles.strategies import Source

Node = tuple[Any, ...]
Grammar = dict[str, tuple[int | None, Node]]

TEXTS = (b"a", b"b", b"c", b",", b"ab", b"ba", b"aa", b"abc", b"bc", b"a,", b",b", b"c,a", b"")
EOS = len(TEXTS) - 1
SIZE = len(TEXTS)


def lark(grammar: Grammar) -> str:
    def write(node: Node) -> str:
        match node:
            case ("text", text):
                return f'"{text}"'
            case ("any", characters):
                return f"/[{characters}]/"
            case ("seq", nodes):
                return "(" + " ".join(map(write, nodes)) + ")"
            case ("alt", nodes):
                return "(" + " | ".join(map(write, nodes)) + ")"
            case ("star", inner):
                return f"({write(inner)})*"
            case ("opt", inner):
                return f"({write(inner)})?"
            case ("rule", name):
                return str(name)
        raise ValueError(node)

    lines = []
    for name, (limit, node) in grammar.items():
        lines.append(f"{name}[max_tokens={limit}]: {write(node)}" if limit else f"{name}: {write(node)}")
    return "\n".join(lines)


def accepts(grammar: Grammar, tokens: Sequence[bytes]) -> bool:
    text = b"".join(tokens).decode()
    size = len(text)
    begun = [0] * (size + 1)  # for each place the number of tokens that begin before it
    at = 0
    for token in tokens:
        for place in range(at + 1, size + 1):
            begun[place] += 1
        at += len(token)
    rules: dict[tuple[str, int], set[int]] = {(n, i): set() for n in grammar for i in range(size + 1)}

    def ends(node: Node, begin: int) -> set[int]:
        match node:
            case ("text", wanted):
                return {begin + len(wanted)} if text.startswith(wanted, begin) else set()
            case ("any", characters):
                return {begin + 1} if begin < size and text[begin] in characters else set()
            case ("seq", nodes):
                return oracle.in_turn(ends, nodes, begin)
            case ("alt", nodes):
                return {end for inner in nodes for end in ends(inner, begin)}
            case ("opt", inner):
                return {begin} | ends(inner, begin)
            case ("star", inner):
                found, todo = {begin}, [begin]
                while todo:
                    new = ends(inner, todo.pop()) - found
                    found |= new
                    todo += new
                return found
            case ("rule", name):
                return rules[name, begin]
        raise ValueError(node)

    changed = True
    while changed:
        changed = False
        for (name, begin), known in rules.items():
            limit, node = grammar[name]
            for end in ends(node, begin) - known:
                if limit is None or begun[end] - begun[begin] <= limit:
                    known.add(end)
                    changed = True
    return size in rules["start", 0]


def grammar(source: Source) -> Grammar:
    """Returns a random grammar of three rules with any recursion; at least one rule has a limit."""

    def node(depth: int) -> Node:
        kind = source.integer(0, 9 if depth else 3)
        if kind <= 1:
            return ("text", source.pick(("a", "b", ",", "ab", "abc", "c", "ba")))
        if kind == 2:
            return ("any", source.pick(("ab", "abc", "a,")))
        if kind == 3:
            return ("rule", source.pick(("x", "y")))
        if kind <= 6:
            return ("seq", tuple(node(depth - 1) for _ in range(source.integer(2, 3))))
        if kind == 7:
            return ("alt", tuple(node(depth - 1) for _ in range(2)))
        return ("star" if kind == 8 else "opt", node(depth - 1))

    limits = [source.pick((None, 1, 2, 2, 3, 4)) for _ in range(3)]
    if limits[1] is None and limits[2] is None:
        limits[1] = source.integer(1, 3)
    # The last alternative of a rule ends every recursion.
    return {
        "start": (limits[0] if source.chance(20) else None, node(2)),
        "x": (limits[1], ("alt", (node(2), ("text", source.pick(("a", "b", "ab", "abc")))))),
        "y": (limits[2], ("alt", (node(2), ("text", source.pick((",", "c", "bc")))))),
    }
