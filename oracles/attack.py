"""Schemas of an attacker, and the behaviour of an engine under each.

`schema(seed)` draws a schema: hard Boolean combinations of patterns, multiples, formats and counts at places
that a text reaches late (optional properties, items, additional properties, behind `$ref`), and explosions
(nests of oneOf, many overlapping patternProperties, 3-SAT as required properties). `attack` compiles a schema
and takes random walks through its masks. Time: one compile and `walks` texts of at most `TOKENS` tokens.

The walks check what a server needs: no error in the middle of a text, no empty mask, and every finished text
is an instance. The judge is `jsonschema`, so all patterns mean the same in Python's `re` and in ECMA-262.
"""

from __future__ import annotations

import json
import math
import random
import re
import time
import unicodedata
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np

import structgen
from oracles import oracle
from structgen import errors

TOKENS = 120  # tokens of a walk before its shortest completion
_FORMATS = (
    "date", "time", "date-time", "duration", "email", "idn-email", "hostname", "idn-hostname", "ipv4", "ipv6",
    "uri", "uri-reference", "iri", "uuid", "json-pointer", "relative-json-pointer", "regex", "uri-template",
)  # fmt: skip
_SLOW = ("}){", ")+$", "]+-)*", "(?:[^")


class Attacker:
    """Draws hostile schemas. `size` bounds the number of parts."""

    def __init__(self, seed: int, size: float = 1.0) -> None:
        self.r = random.Random(seed)
        self.size = size

    def n(self, least: int, most: int) -> int:
        """Returns a number between the bounds. Small numbers are more likely, and `size` scales the upper
        bound."""
        most = max(least, int(most * self.size))
        return int(math.exp(self.r.uniform(math.log(least), math.log(most + 0.999))))

    # ---- scalars ----

    def pattern(self) -> str:
        r, k = self.r, self.n(1, 40)
        letters = r.choice(["ab", "abc", "xy", "01"])
        one = f"[{letters}]"
        return r.choice(
            [
                f"{letters[0]}.{{{k}}}$",
                f"^({letters[0]}|{letters[1]})*{letters[0]}{one}{{{k}}}$",
                f"^(?=.*{letters[0]}.{{{k}}}$)(?=.*{letters[1]})",
                f"^{one}{{{k},{k + self.n(1, 60)}}}$",
                f"({letters[0]}{letters[1]}){{{self.n(1, 9)}}}",
                f"^(?!.*{letters}).*$",
                f"^(?:{one}{{2}}|{letters}{one}{{3}})+$",
                f"{one}.{{{k}}}{one}.{{{self.n(1, 12)}}}$",
                "^([a-z0-9]+-)*[a-z0-9]+$",
                f"^(a{{1,{k}}}){{1,{self.n(2, 30)}}}$",
                rf"^\w+[.]\w{{1,{k}}}$",
                r"^(?:[^\\/]+/){2,9}[^\\/]*$",
            ]
        )

    def string(self) -> dict[str, Any]:
        r = self.r
        out: dict[str, Any] = {"type": "string"} if r.random() < 0.7 else {}
        if r.random() < 0.7:
            out["pattern"] = self.pattern()
        if r.random() < 0.3:
            out["format"] = r.choice(_FORMATS)
        if r.random() < 0.3:
            out["minLength"] = self.n(1, 300)
        if r.random() < 0.3:
            out["maxLength"] = out.get("minLength", 0) + self.n(1, 300)
        if r.random() < 0.4:
            out["allOf"] = [{"pattern": self.pattern()} for _ in range(self.n(1, 12))]
        if r.random() < 0.3:
            out["not"] = {"pattern": self.pattern()} if r.random() < 0.7 else {"format": r.choice(_FORMATS)}
        if r.random() < 0.15:
            out["oneOf"] = [{"pattern": self.pattern()} for _ in range(self.n(2, 8))]
        return out

    def divisor(self) -> float | int:
        r = self.r
        return r.choice([2, 3, 7, 11, 97, 1009, 2**31 - 1, 0.01, 0.3, 1.5, 0.0007, 1e-7, 1e6, 10**9 + 7])

    def number(self) -> dict[str, Any]:
        r = self.r
        out: dict[str, Any] = {"type": r.choice(["number", "integer"])}
        if r.random() < 0.6:
            out["multipleOf"] = self.divisor()
        if r.random() < 0.4:
            out[r.choice(["minimum", "exclusiveMinimum"])] = r.choice([0, -5, 3.5, 1e3, -1e9, 123456789])
        if r.random() < 0.4:
            out[r.choice(["maximum", "exclusiveMaximum"])] = r.choice([10, 1e4, 2.5e9, 1e18, 987654321])
        if r.random() < 0.3:
            out["allOf"] = [{"multipleOf": self.divisor()} for _ in range(self.n(1, 6))]
        if r.random() < 0.3:
            out["not"] = {"multipleOf": self.divisor()}
        if r.random() < 0.2:
            out["oneOf"] = [{"multipleOf": self.divisor()} for _ in range(self.n(2, 8))]
        if r.random() < 0.1:
            out["not"] = {"anyOf": [{"multipleOf": self.divisor()}, {"minimum": 50, "maximum": 60}]}
        return out

    # ---- containers ----

    def array(self, depth: int) -> dict[str, Any]:
        r = self.r
        out: dict[str, Any] = {"type": "array"} if r.random() < 0.8 else {}
        if r.random() < 0.7:
            out["items"] = self.value(depth - 1)
        if r.random() < 0.3:
            out["prefixItems"] = [self.value(depth - 1) for _ in range(self.n(1, 20))]
        if r.random() < 0.4:
            out["contains"] = self.value(depth - 1)
            if r.random() < 0.4:
                out["minContains"] = self.n(1, 12)
            if r.random() < 0.4:
                out["maxContains"] = self.n(1, 12)
        if r.random() < 0.4:
            out["uniqueItems"] = True
        if r.random() < 0.3:
            out["minItems"] = self.n(1, 40)
        if r.random() < 0.3:
            out["maxItems"] = self.n(1, 60)
        if r.random() < 0.2:
            out["allOf"] = [{"contains": self.value(depth - 1)} for _ in range(self.n(1, 6))]
        if r.random() < 0.1:
            out["unevaluatedItems"] = self.value(depth - 1)
        return out

    def object(self, depth: int) -> dict[str, Any]:
        r = self.r
        known = ["a", "b", "tag", "kind", "id", "x1", "ab", "aa", "0"]
        names = [r.choice(known) for _ in range(self.n(1, 6))]
        out: dict[str, Any] = {"type": "object"} if r.random() < 0.8 else {}
        if r.random() < 0.8:
            out["properties"] = {name: self.value(depth - 1) for name in names}
        if r.random() < 0.4:
            out["required"] = sorted(set(r.sample(names, self.n(1, len(names)))))
        if r.random() < 0.4:
            out["patternProperties"] = {self.pattern(): self.value(depth - 1) for _ in range(self.n(1, 10))}
        if r.random() < 0.4:
            out["additionalProperties"] = r.choice([False, self.value(depth - 1), self.value(depth - 1)])
        if r.random() < 0.2:
            out["propertyNames"] = self.string()
        if r.random() < 0.2:
            out["minProperties"] = self.n(1, 12)
        if r.random() < 0.2:
            out["maxProperties"] = self.n(1, 20)
        if r.random() < 0.2:
            out["dependentSchemas"] = {r.choice(names): self.object(depth - 1)}
        if r.random() < 0.2:
            out |= {"if": self.value(depth - 1), "then": self.value(depth - 1), "else": self.value(depth - 1)}
        if r.random() < 0.1:
            out["unevaluatedProperties"] = self.value(depth - 1)
        return out

    def value(self, depth: int) -> Any:
        r = self.r
        at = r.random()
        if depth <= 0 or at < 0.35:
            if r.random() < 0.1:
                return {"enum": [r.choice([1, 2.5, "a", "ab", None, True, [1], {"a": 1}]) for _ in range(4)]}
            return self.string() if r.random() < 0.6 else self.number()
        if at < 0.5:
            return self.array(depth)
        if at < 0.7:
            return self.object(depth)
        if at < 0.75:
            return {"$ref": r.choice(["#/$defs/d0", "#/$defs/d1", "#"])}
        if at < 0.8:
            return r.choice([True, {}, {"type": ["string", "integer", "null"]}])
        word = r.choice(["allOf", "anyOf", "oneOf", "not", "if"])
        if word == "not":
            return {"not": self.value(depth - 1)}
        if word == "if":
            return {"if": self.value(depth - 1), "then": self.value(depth - 1), "else": self.value(depth - 1)}
        return {word: [self.value(depth - 1) for _ in range(self.n(2, 8))]}

    # ---- explosions ----

    def nested_one_of(self) -> Any:
        out: Any = {"type": "string", "pattern": self.pattern()}
        for i in range(self.n(2, 16)):
            out = {"oneOf": [out, {"properties": {f"p{i % 3}": out}}, {"required": [f"p{i % 4}"]}]}
        return out

    def late_tag(self) -> Any:
        branches = []
        for i in range(self.n(3, 500)):
            same = {f"f{j}": {"type": "string"} for j in range(self.n(1, 6))}
            tag = {"const": f"kind-{i}"}
            branches.append({"type": "object", "properties": same | {"tag": tag}, "required": ["tag"]})
        return {self.r.choice(["oneOf", "anyOf"]): branches}

    def three_sat(self) -> Any:
        n = self.n(3, 30)

        def literal() -> Any:
            return {"properties": {f"v{self.r.randrange(n)}": {"const": self.r.random() < 0.5}}}

        clauses = [{"anyOf": [literal() for _ in range(3)]} for _ in range(int(4.2 * n))]
        boolean = {f"v{i}": {"type": "boolean"} for i in range(n)}
        return {"type": "object", "properties": boolean, "required": sorted(boolean), "allOf": clauses}

    def many_patterns(self) -> Any:
        keys = {self.pattern(): self.value(0) for _ in range(self.n(2, 40))}
        out: dict[str, Any] = {"type": "object", "patternProperties": keys}
        if self.r.random() < 0.5:
            out["additionalProperties"] = False
        return out

    def literals(self) -> Any:
        return {
            "type": "object",
            "patternProperties": {f"k{i}": {"type": "integer", "minimum": i} for i in range(self.n(5, 2000))},
        }

    def all_formats(self) -> Any:
        return {self.r.choice(["oneOf", "anyOf"]): [{"format": f} for f in _FORMATS]}

    def wide(self) -> Any:
        n = self.n(10, 5000)
        tagged = [{"properties": {f"p{i}": {"type": "integer"}}, "required": [f"p{i}"]} for i in range(n)]
        return self.r.choice(
            [
                {"prefixItems": [{"maxLength": i, "minimum": i} for i in range(n)]},
                {"anyOf": tagged},
                {"enum": [f"value {i}" for i in range(n)]},
                {"properties": {f"p{i}": {"pattern": f"a{i}$"} for i in range(n)}},
            ]
        )

    def schema(self) -> Any:
        r = self.r
        if r.random() < 0.2:
            part = r.choice(
                [self.nested_one_of, self.late_tag, self.three_sat, self.many_patterns, self.literals,
                 self.all_formats, self.wide]
            )()  # fmt: skip
        else:
            part = self.value(3)
        at = r.random()
        if at < 0.3:
            part = {"type": "object", "properties": {"b": part}}
        elif at < 0.45:
            part = {"type": "array", "items": part}
        elif at < 0.55:
            part = {"type": "object", "additionalProperties": part}
        elif at < 0.65:
            part = {"type": "object", "properties": {"b": part, "a": self.value(1)}, "required": ["b"]}
        if isinstance(part, dict):
            part = part | {"$defs": {"d0": self.value(1), "d1": self.value(2)}}
        return part


def schema(seed: int, size: float = 1.0) -> Any:
    return Attacker(seed, size).schema()


# ---- patterns and grammars ----


class Patterns:
    """Draws regular expressions with large automata: nested counters, loops of alternatives, assertions that
    look far. `slow` is set if Python's `re` may take exponential time."""

    def __init__(self, seed: int) -> None:
        self.r = random.Random(seed)
        self.slow = False

    def atom(self) -> str:
        return self.r.choice(
            [
                *("a", "b", "ab", "x", ".", r"\w", r"\d", "[ab]", "[a-z]", "[^a]", r"\s", "0", "é"),
                *(r"[^\x00-\x7f]", "abc"),
            ]
        )

    def count(self) -> str:
        low = int(math.exp(self.r.uniform(0, math.log(300))))
        high = low + int(math.exp(self.r.uniform(0, math.log(300))))
        return self.r.choice(
            ["*", "+", "?", f"{{{low}}}", f"{{{low},}}", f"{{{low},{high}}}", f"{{0,{high}}}", "*?"]
        )

    def term(self, depth: int, counted: bool = False) -> str:
        r, at = self.r, self.r.random()
        if depth == 0 or at < 0.3:
            return self.atom()
        if at < 0.55:
            self.slow = self.slow or counted
            return f"(?:{self.term(depth - 1, True)}){self.count()}"
        if at < 0.75:
            self.slow = self.slow or counted
            return "(?:" + "|".join(self.term(depth - 1, counted) for _ in range(r.randint(2, 4))) + ")"
        if at < 0.9 or counted:
            return self.term(depth - 1, counted) + self.term(depth - 1, counted)
        return r.choice(["(?=", "(?!", "(?<=", "(?<!"]) + self.short() + ")"

    def short(self) -> str:
        """Returns a part of an assertion; a look-behind has a width that Python can compute."""
        return "".join(f"{self.atom()}" for _ in range(self.r.randint(1, 3))) + self.r.choice(
            ["", "b", "{20}"]
        )

    def pattern(self) -> str:
        out = "".join(self.term(3) for _ in range(self.r.randint(1, 4)))
        return "|".join([out, self.term(2)]) if self.r.random() < 0.2 else out


def pattern(seed: int) -> tuple[str, bool]:
    """Returns a pattern, and whether Python's `re` can judge its texts in time."""
    drawn = Patterns(seed)
    out = drawn.pattern()
    return out, not drawn.slow


def matches(pattern: str, text: str) -> bool:
    r"""Python's verdict. True for characters unknown to Python's Unicode, because `\w` and `\d` differ
    there."""
    return any(unicodedata.category(c) == "Cn" for c in text) or re.fullmatch(pattern, text) is not None


def grammar(seed: int) -> tuple[str, str]:
    """("gbnf" or "lark", a grammar): ambiguous, nullable and left-recursive rules over hostile patterns."""
    r = random.Random(seed)
    patterns = Patterns(seed + 1)
    names = [f"r{i}" for i in range(r.randint(1, 6))]
    lark = r.random() < 0.5

    def terminal() -> str:
        if lark:
            return r.choice(["A", "B", '"a"', '"b"', '"ab"', "C"])
        return r.choice(['"a"', '"b"', '"ab"', "[ab]", "[a-z]", f"[ab]{{1,{r.randint(1, 200)}}}", "[^a]*"])

    def tree(depth: int) -> str:
        at = r.random()
        if depth == 0 or at < 0.35:
            return r.choice(names) if r.random() < 0.6 else terminal()
        if at < 0.6:
            return " ".join(tree(depth - 1) for _ in range(r.randint(1, 3)))
        if at < 0.8:
            return "(" + " | ".join(tree(depth - 1) for _ in range(r.randint(2, 5))) + ")"
        low = r.randint(0, 3)
        high = low + int(math.exp(r.uniform(0, math.log(60))))
        counted = f"~{low}..{high}" if lark else f"{{{low},{high}}}"
        return f"({tree(depth - 1)}){r.choice(['*', '+', '?', counted])}"

    ends = {name: r.choice(['"a"', '"b"', '"ab"']) for name in names}
    if not lark:
        rules = [f"root ::= {names[0]}"] + [f"{n} ::= {tree(3)} | {ends[n]}" for n in names]
        return "gbnf", "\n".join(rules)
    rules = [f"start: {names[0]}"] + [f"{n}: {tree(3)} | {ends[n]}" for n in names]
    for name in "ABC":
        written = patterns.term(2).replace("/", r"\/")
        rules.append(f"{name}: /{written}/")
    if r.random() < 0.4:
        rules.append("%ignore / +/")
    return "lark", "\n".join(rules)


# ---- one attack --------------------------------------------------------------------------------


class Found:
    """The outcome of one schema: counters, the longest times, and examples.

    Times are CPU seconds of the calling thread; the thread that frees earlier grammars does not count."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.worst: dict[str, float] = {}
        self.examples: list[str] = []

    def time(self, what: str, seconds: float) -> None:
        self.worst[what] = max(self.worst.get(what, 0.0), seconds)

    def note(self, kind: str, example: str) -> None:
        self.counts[kind] += 1
        self.examples.append(f"{kind}: {example}")


def judge(document: Any) -> Callable[[str], bool] | None:
    """Returns a function that tells whether a text is an instance; None if Python's `re` could take
    exponential time.

    The oracle knows eight formats. A text passes if it is an instance in one of three readings: all strings
    match the other formats, no string does, or each string matches one of them (`oneOf` of formats).
    """
    written = json.dumps(document)
    if len(written) >= 100_000 or any(slow in written for slow in _SLOW):
        return None
    all_have = oracle.JsonOracle(document)
    unknown = set(_FORMATS) - set(oracle.FORMATS)
    none_has = oracle.JsonOracle(document, refused=unknown)
    named = sorted(name for name in unknown if f'"{name}"' in written)

    def one_is_had(text: str) -> bool:
        return any(oracle.JsonOracle(document, refused=unknown - {name}).accepts(text) for name in named)

    return lambda text: all_have.accepts(text) or none_has.accepts(text) or one_is_had(text)


def attack(
    compiler: structgen.Compiler,
    seed: int,
    document: Any,
    walks: int = 10,
    tokens: int = TOKENS,
    kind: str = "json_schema",
    check: Callable[[str], bool] | None = None,
    replay: bool = False,
) -> Found:
    """Compiles `document` and makes random walks through its masks. Every fourth walk has a budget of tokens.

    `kind` names a method of the compiler. `check` judges finished texts; by default `judge` does, for
    schemas. With `replay`, a second matcher of the grammar reads the tokens of each walk, as a host does
    after it interrupted a request.
    """
    found, source = Found(), random.Random(seed)

    def ask() -> Any:
        if kind == "json_schema":
            return compiler.json_schema(document, whitespace="one-blank", numbers="canonical")
        return getattr(compiler, kind)(document)

    begin = time.thread_time()
    try:
        grammar = ask()
    except errors.StructgenError as error:
        found.time("compile", time.thread_time() - begin)
        found.counts[f"refused: {type(error).__name__}"] += 1
        if not isinstance(error, errors.GrammarError):
            found.note("bad refusal", f"{type(error).__name__}: {error}")
        return found
    found.time("compile", time.thread_time() - begin)
    found.counts["compiled"] += 1
    if kind == "json_schema":
        check = judge(document)
    for n in range(walks):
        try:
            # Compiles again for each text, as every request does: a grammar beyond its memory is compiled
            # anew.
            grammar = ask()
            taken = _walk(grammar, source, found, check, tokens, budget=n % 4 == 3)
            if replay:
                _replay(grammar, taken, found)
        except errors.UnsatisfiableBudget:
            found.counts["budget too small"] += 1
        except errors.StructgenError as error:
            found.note("error in mid-text", f"{type(error).__name__}: {error}")
            break
    return found


def _replay(grammar: Any, taken: list[int], found: Found) -> None:
    matcher = grammar.matcher()
    found.counts["replays"] += 1
    for at, token in enumerate(taken):
        if not matcher.accept_token(token):
            found.note("another matcher refused", f"token {at} of {grammar.vocabulary.decode(taken)!r}")
            return


def _walk(
    grammar: Any, source: random.Random, found: Found, check: Any, tokens: int, budget: bool
) -> list[int]:
    """Writes one text. Returns its tokens without the end token."""
    vocabulary = grammar.vocabulary
    matcher = grammar.matcher(max_tokens=tokens) if budget else grammar.matcher()
    mask = np.zeros((1, oracle.words(vocabulary.vocab_size)), np.int32)
    taken: list[int] = []
    ends = set(vocabulary.eos_token_ids)
    while len(taken) < tokens:
        begin = time.thread_time()
        try:
            matcher.fill_bitmask(mask, 0)
        except (errors.BudgetExceeded, errors.SchemaTooComplex):
            if taken or not budget:
                raise
            found.counts["refused before the first token"] += 1
            return []
        found.time("mask", time.thread_time() - begin)
        allowed = np.flatnonzero(oracle.bits(mask, vocabulary.vocab_size))
        if not getattr(matcher, "mask_exact", True):
            found.counts["masks that are a subset"] += 1
        if not len(allowed):
            found.note("dead end", repr(vocabulary.decode(taken)[-80:]))
            return taken
        token = int(allowed[source.randrange(len(allowed))])
        if source.random() < 0.5:  # short tokens give the text more structure
            token = min(
                (int(allowed[source.randrange(len(allowed))]) for _ in range(4)),
                key=lambda t: len(vocabulary.token_bytes(t)) if t not in ends else 0,
            )
        begin = time.thread_time()
        if not matcher.accept_token(token):
            found.note("allowed token refused", repr((vocabulary.decode(taken)[-80:], token)))
            return taken
        found.time("accept", time.thread_time() - begin)
        if token in ends:
            break
        taken.append(token)
    text = vocabulary.decode(taken)
    if not matcher.is_terminated():
        begin = time.thread_time()
        try:
            text += matcher.shortest_completion()
        except (errors.BudgetExceeded, errors.SchemaTooComplex):
            found.counts["completion not found"] += 1
            return taken
        finally:
            found.time("completion", time.thread_time() - begin)
    found.counts["texts"] += 1
    if check is not None and not check(text.decode("utf-8", "replace")):
        found.note("invalid text", repr(text[:300]))
    return taken
