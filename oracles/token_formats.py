"""Formats of whole tokens (structural tags, EBNF, Lark), compared with brute force over all short sequences.

Each law takes a source of choices, and raises an error if the engine's answer differs. Time: milliseconds per
case.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np

import structgen
from oracles import oracle
from oracles.strategies import Source
from structgen import errors

TEXTS = [b"a", b"b", b"c", b"ab", b"bc", b"abc", b"ab"]


SPECIAL = {"<s>": 7, "<t>": 8}


EOS = 9


VOCABULARY = structgen.Vocabulary.from_bytes([*TEXTS, b"", b"", b""], EOS, SPECIAL)


COMPILER = structgen.Compiler(VOCABULARY)


SEQUENCES = [s for n in range(4) for s in itertools.product(range(9), repeat=n)]


NAMES: tuple[Any, ...] = ("ab", "b", 0, 5, 6, "<s>", 8)


def formats(source: Source, depth: int) -> dict:
    kinds = ["token", "token", "exclude_token", "any_tokens", "const_string"]
    if depth and source.chance(15):
        tokens = [source.pick(NAMES) for _ in range(source.integer(1, 4))]
        tokens = list({units_of(t): t for t in tokens}.values())
        count = source.integer(1, len(tokens))
        rules = [[t, formats(source, depth - 1)] for t in tokens[:count]]
        out = {"type": "token_dispatch", "rules": rules, "exclude_tokens": tokens[count:]}
        return {**out, "loop": False} if source.chance(30) else out
    kind = source.pick([*kinds, *(["sequence", "or", "star", "optional", "plus"] * 2 if depth else [])])
    if kind == "token":
        return {"type": kind, "token": source.pick(NAMES)}
    if kind in ("exclude_token", "any_tokens"):
        out = {"type": kind, "exclude_tokens": [source.pick(NAMES) for _ in range(source.integer(0, 2))]}
        return (
            {**out, "max_tokens": source.integer(0, 2)} if kind == "any_tokens" and source.chance(40) else out
        )
    if kind == "const_string":
        return {"type": kind, "value": source.pick(("a", "b", "ab", "bc", "c"))}
    if kind in ("sequence", "or"):
        return {"type": kind, "elements": [formats(source, depth - 1) for _ in range(source.integer(1, 3))]}
    return {"type": kind, "content": formats(source, depth - 1)}


class Text:
    def __init__(self, tokens: tuple[int, ...]) -> None:
        self.units: list[int] = []  # a byte, or 256 plus a special token's id
        self.begins: dict[int, int] = {}  # place -> the token that begins there
        for token in tokens:
            self.begins[len(self.units)] = token
            self.units += TEXTS[token] if token < 7 else [256 + token]
        self.ends = {*self.begins, len(self.units)}

    def token(self, at: int) -> tuple[tuple[int, ...], int]:
        """Returns the units of the token that begins at a place, and the place of its end."""
        units = TEXTS[self.begins[at]] if self.begins[at] < 7 else [256 + self.begins[at]]
        return tuple(units), at + len(units)

    def match(self, spec: dict, at: int) -> set[int]:
        """Returns the places where a format that begins at a place may end."""
        kind = spec["type"]
        if kind == "token_dispatch":
            return self.match(plain(spec), at)
        if kind == "const_string":
            value = list(spec["value"].encode())
            return {at + len(value)} if self.units[at : at + len(value)] == value else set()
        if kind == "sequence":
            return oracle.in_turn(self.match, spec["elements"], at)
        if kind == "or":
            return {e for element in spec["elements"] for e in self.match(element, at)}
        if kind == "optional":
            return {at} | self.match(spec["content"], at)
        if kind in ("star", "plus"):
            seen = self.match(spec["content"], at)
            todo = list(seen)
            while todo:
                new = self.match(spec["content"], todo.pop()) - seen
                seen |= new
                todo += new
            return seen | ({at} if kind == "star" else set())
        if kind == "token":
            if at not in self.begins:
                return set()
            found, end = self.token(at)
            return {end} if found == units_of(spec["token"]) else set()
        return self.others(spec, at)

    def others(self, spec: dict, at: int) -> set[int]:
        never = [units_of(t) for t in spec["exclude_tokens"]]
        whole = spec["type"] == "exclude_token" or any(n[0] < 256 for n in never)
        once = spec["type"] == "exclude_token"
        ends, now, begun = {at}, {(at, 0)}, spec.get("max_tokens", 99)
        if begun == 0:
            return {at}
        while now:  # (place, tokens that began inside)
            step = set()
            for place, count in now:
                if place == len(self.units) or (whole and place not in self.begins):
                    continue
                more = count + (place in self.begins)
                found, end = self.token(place) if whole else ((self.units[place],), place + 1)
                if found not in never and more <= begun and (not whole or end in self.ends):
                    step.add((end, more))
            ends |= {end for end, _ in step}
            if once:
                return {end for end, _ in step}
            now = step
        return ends


def units_of(token: Any) -> tuple[int, ...]:
    token = number(token)
    return tuple(TEXTS[token]) if token < 7 else (256 + token,)


def plain(spec: dict) -> dict:
    """Returns a `token_dispatch` written with simpler formats."""
    triggers = [token for token, _ in spec["rules"]]
    free = {"type": "any_tokens", "exclude_tokens": [*triggers, *spec["exclude_tokens"]]}
    calls = [
        {"type": "sequence", "elements": [{"type": "token", "token": token}, then]}
        for token, then in spec["rules"]
    ]
    once = {"type": "sequence", "elements": [free, {"type": "or", "elements": calls}]}
    if spec.get("loop") is False:
        return {"type": "or", "elements": [once, free]}
    return {"type": "sequence", "elements": [{"type": "star", "content": once}, free]}


def number(token: Any) -> int:
    return {"ab": 3, "b": 1, "<s>": 7}.get(token, token)


def numbers(tokens: list) -> str:
    return ", ".join(str(number(t)) for t in tokens)


MARKS = {"optional": "?", "star": "*", "plus": "+"}


def combined(spec: dict, written: Callable[[dict], str]) -> str:
    """Returns a format made of formats, or a text, as both dialects write it."""
    kind = spec["type"]
    if kind == "const_string":
        return f'"{spec["value"]}"'
    if kind in MARKS:
        return f"({written(spec['content'])}){MARKS[kind]}"
    return f"({(' ' if kind == 'sequence' else ' | ').join(map(written, spec['elements']))})"


def ebnf(spec: dict) -> str:
    rules: list[str] = []

    def rule(body: str, attributes: str = "") -> str:
        rules.append(f"r{len(rules)}{attributes} ::= {body}")
        return f"r{len(rules) - 1}"

    def written(spec: dict) -> str:
        kind = spec["type"]
        if kind == "token":
            return f"Token({number(spec['token'])})"
        if kind == "exclude_token":
            return f"ExcludeToken({numbers(spec['exclude_tokens'])})"
        if kind == "any_tokens" and spec.get("max_tokens") == 0:
            return '""'  # inside of a rule, the byte could also end a token that began in front of the rule
        if kind == "any_tokens":
            free = f"ExcludeTokens({numbers(spec['exclude_tokens'])})"
            return rule(free, f"[max_tokens={spec['max_tokens']}]") if "max_tokens" in spec else free
        if kind == "token_dispatch":
            pairs = ", ".join(f"({number(t)}, {rule(written(then))})" for t, then in spec["rules"])
            excludes = f"({numbers(spec['exclude_tokens'])},)" if spec["exclude_tokens"] else "()"
            loop = "false" if spec.get("loop") is False else "true"
            return f"TokenTagDispatch({pairs}, excludes={excludes}, loop_after_dispatch={loop})"
        return combined(spec, written)

    first = f"root ::= {written(spec)}"
    return "\n".join([first, *rules])


def whole(spec: dict) -> dict:
    """Returns the format that reads any number of tokens as whole tokens, as Lark's ``<[^3]>*`` does."""
    if spec["type"] == "any_tokens":
        return {
            "type": "star",
            "content": {"type": "exclude_token", "exclude_tokens": spec["exclude_tokens"]},
        }
    if spec["type"] == "token_dispatch":
        return whole(plain(spec))
    if "elements" in spec:
        return {**spec, "elements": [whole(e) for e in spec["elements"]]}
    return {**spec, "content": whole(spec["content"])} if "content" in spec else spec


def lark(spec: dict) -> str:
    def written(spec: dict) -> str:
        kind = spec["type"]
        if kind == "token":
            return f"<[{number(spec['token'])}]>"
        if kind == "exclude_token":
            return f"<[^{numbers(spec['exclude_tokens'])}]>" if spec["exclude_tokens"] else "<[*]>"
        return combined(spec, written)

    return f"start: {written(spec)}"


def tag(spec: dict) -> Any:
    return COMPILER.structural_tag({"type": "structural_tag", "format": spec})


def law(source: Source, compile: Callable[[dict], Any] = tag, given: Callable[[dict], dict] = dict) -> None:
    spec = given(formats(source, 2))
    inside = {s for s in SEQUENCES if len(Text(s).units) in Text(s).match(spec, 0)}
    try:
        found = compile(spec)
    except errors.GrammarError:
        assert not inside, spec
        return
    for tokens in SEQUENCES:
        matcher = found.matcher()
        accepted = matcher.accept_tokens(list(tokens))
        assert (accepted and matcher.is_accepting()) == (tokens in inside), (spec, tokens)
        if not accepted or len(tokens) == 3 or not source.chance(25):
            continue
        mask = oracle.mask_of(matcher, 10)
        assert [bool(b) for b in mask] == [matcher.fork().accept_token(t) for t in range(10)], (spec, tokens)
        for _ in range(20):  # the shortest way to an end stays known
            needed = matcher.tokens_needed()
            allowed = np.flatnonzero(oracle.mask_of(matcher, 10, needed))
            assert allowed.size, (spec, tokens)
            assert matcher.accept_token(int(source.pick(list(allowed)))), (spec, tokens)
            if matcher.is_terminated():
                break
        assert matcher.is_terminated(), (spec, tokens)


def law_of_ebnf(source: Source) -> None:
    law(source, lambda spec: COMPILER.gbnf(ebnf(spec)))


def law_of_lark(source: Source) -> None:
    law(source, lambda spec: COMPILER.lark(lark(spec), lexer="scannerless"), whole)
