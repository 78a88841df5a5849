"""Hostile schemas, patterns and vocabularies by name, and how a child process meets one.

Used by `tests/test_hostile.py`, which bounds the work generously, and `bench.hostile`, which has tight bars.
"""

from __future__ import annotations

import resource
import time
from collections.abc import Callable

MEMORY = 6 << 30


OK = "result"


COMPLEX = "SchemaTooComplex"


EMPTY = "UnsatisfiableSchema"


UNSUPPORTED = "UnsupportedSchema"


BAD = "GrammarError"


def deep_schema(depth: int) -> str:
    return '{"items":' * depth + "{}" + "}" * depth


def deep_properties(depth: int) -> str:
    return '{"properties":{"a":' * depth + "{}" + "}}" * depth


def wide_schema(count: int) -> str:
    members = ",".join(f'"property_{i}":{{"type":"string","maxLength":{i}}}' for i in range(count))
    return f'{{"type":"object","properties":{{{members}}}}}'


def big_enum(count: int) -> str:
    return '{"enum":[' + ",".join(f'"value number {i} of many"' for i in range(count)) + "]}"


# name -> (how it is compiled, its text, the outcomes that are right)
SCHEMAS: dict[str, tuple[Callable[[], object], set[str]]] = {
    "100k nested items": (lambda: deep_schema(100_000), {OK}),
    "100k nested properties": (lambda: deep_properties(100_000), {OK}),
    "100k nested allOf": (lambda: '{"allOf":[' * 100_000 + "{}" + "]}" * 100_000, {OK, COMPLEX}),
    "100k nested not": (lambda: '{"not":' * 100_000 + "{}" + "}" * 100_000, {OK, COMPLEX}),
    "100k brackets": (lambda: "[" * 100_000, {BAD}),
    "deep constant": (lambda: '{"const":' + "[" * 50_000 + "]" * 50_000 + "}", {OK, COMPLEX}),
    "10 MB of properties": (lambda: wide_schema(170_000), {OK}),
    "10 MB of enum": (lambda: big_enum(370_000), {OK}),
    "reference to itself": (lambda: '{"$ref":"#"}', {BAD}),
    "reference circle": (
        lambda: '{"$ref":"#/$defs/a","$defs":{"a":{"$ref":"#/$defs/b"},"b":{"$ref":"#/$defs/a"}}}',
        {BAD},
    ),
    "reference under not": (lambda: '{"not":{"$ref":"#"}}', {BAD}),
    "reference to nothing": (lambda: '{"$ref":"#/$defs/none"}', {UNSUPPORTED}),
    "reference to the net": (lambda: '{"$ref":"https://example.com/x"}', {UNSUPPORTED}),
    "endless tree": (lambda: '{"type":"object","required":["a"],"properties":{"a":{"$ref":"#"}}}', {EMPTY}),
    "contradictory types": (lambda: '{"allOf":[{"type":"string"},{"type":"number"}]}', {EMPTY}),
    "contradictory range": (lambda: '{"type":"integer","minimum":2,"exclusiveMaximum":2}', {EMPTY}),
    "contradictory lengths": (lambda: '{"type":"string","minLength":3,"maxLength":2}', {EMPTY}),
    "contradictory pattern": (
        lambda: '{"type":"string","pattern":"^a+$","allOf":[{"pattern":"^b+$"}]}', {EMPTY},
    ),
    "false": (lambda: "false", {EMPTY}),
    "a number": (lambda: "12", {BAD}),
    "invalid JSON": (lambda: '{"type":', {BAD}),
    "invalid UTF-16": (lambda: '{"const":"\\ud800"}', {EMPTY}),
    "empty text": (lambda: "", {BAD}),
    "broken pattern": (lambda: '{"type":"string","pattern":"(a"}', {BAD}),
    "lookahead": (lambda: '{"type":"string","pattern":"^(?=.*a)(?=.*b).*$"}', {OK}),
    "backreference": (lambda: r'{"type":"string","pattern":"(a)\\1"}', {BAD}),
    "huge counter": (lambda: '{"type":"string","pattern":"^(a{1,1000}){1,1000}$"}', {OK}),
    "exponential pattern": (lambda: '{"type":"string","pattern":"^(a|b)*a(a|b){60}$"}', {OK}),
    "huge lengths": (lambda: '{"type":"string","minLength":1000000000}', {OK}),
    "huge arrays": (lambda: '{"type":"array","minItems":1000000000}', {OK}),
    "huge numbers": (lambda: '{"type":"number","minimum":1e400,"multipleOf":1e-400}', {OK, COMPLEX}),
    "wrong keyword types": (
        lambda: '{"type":"object","properties":3,"required":"a","minLength":"x","items":7}',
        {OK},
    ),
    "unique pigeons": (
        lambda: '{"type":"array","minItems":12,"uniqueItems":true,'
        '"items":{"enum":[1,2,3,4,5,6,7,8,9,10,11,12]}}',
        {OK},
    ),
    "too many unique": (
        lambda: '{"type":"array","minItems":6,"uniqueItems":true,"items":{"enum":[1,2,3,4,5]}}',
        {EMPTY},
    ),
    "overlapping oneOf": (
        lambda: '{"oneOf":[' + ",".join(
            f'{{"type":"object","properties":{{"x":{{"type":"object","properties":{{"k{i}":{{"minimum":{i}}}}}}}}}}}'
            for i in range(12)) + "]}",
        {OK},
    ),
    "nested oneOf": (lambda: '{"oneOf":[' * 24 + "{}" + ",{}]}" * 24, {OK}),
    "a thousand allOf": (
        lambda: '{"allOf":[' + ",".join(f'{{"not":{{"const":{i}}}}}' for i in range(1000)) + "]}",
        {OK},
    ),
}  # fmt: skip


REGEXES: dict[str, tuple[Callable[[], str], set[str]]] = {
    "broken": (lambda: "a(b", {BAD}),
    "100k groups": (lambda: "(" * 100_000 + "a" + ")" * 100_000, {OK, COMPLEX}),
    "counters in counters": (lambda: "((((a{1,99}){1,99}){1,99}){1,99}){1,99}", {OK}),
    "counters in a loop": (lambda: "(((((a{1,99}){1,99}){1,99}){1,99}|b){1,99})*", {OK, COMPLEX}),
    "huge counter": (lambda: "a{1000000000}", {OK}),
    "exponential": (lambda: "(a|b)*a(a|b){40}", {OK}),
    "a megabyte": (lambda: "ab?" * 350_000, {OK}),
}


VOCABULARIES: dict[str, tuple[Callable[[], dict], set[str]]] = {
    "holes": (lambda: {"tokens": [b"", b"a", b"", b'"', b""], "eos": [4]}, {OK}),
    "nothing": (lambda: {"tokens": [], "eos": []}, {"VocabularyError"}),
    "eos out of range": (lambda: {"tokens": [b"a"], "eos": [7]}, {"VocabularyError"}),
    "negative eos": (lambda: {"tokens": [b"a"], "eos": [-1]}, {"VocabularyError"}),
    "one long token": (
        lambda: {"tokens": [b'"', b"a" * 1_000_000, b""], "eos": [2]}, {OK},
    ),
    "all the same": (lambda: {"tokens": [b'"'] * 100_000, "eos": [0]}, {OK}),
}  # fmt: skip


CASES = (
    [("json_schema", name) for name in SCHEMAS]
    + [("regex", name) for name in REGEXES]
    + [("vocabulary", name) for name in VOCABULARIES]
)


def setup(config: dict) -> object:
    from oracles.harness import compiler

    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    compiler().json_schema("true").matcher().accept_bytes(b"[1")
    return compiler()


def _use(grammar, size: int) -> None:
    """Some masks and steps: laziness must not only put the trouble off."""
    from oracles import oracle

    matcher = grammar.matcher()
    for _ in range(30):
        allowed = oracle.mask_of(matcher, size).nonzero()[0]
        assert allowed.size, "a dead end"
        assert matcher.accept_token(int(allowed[len(allowed) // 2]))


def _vocabulary(tokens: list[bytes], eos: list[int]) -> None:
    import structgen
    from oracles import oracle

    vocabulary = structgen.Vocabulary.from_bytes(tokens, eos_token_ids=eos)
    matcher = structgen.Compiler(vocabulary).json_schema({"type": "string"}).matcher()
    mask = oracle.mask_of(matcher, len(tokens))
    assert (mask == oracle.naive_mask(matcher, len(tokens))).all()


def outcome(compiler, kind: str, text) -> dict:
    """What became of one input, and the processor time it took (other processes must not fail a test)."""
    from oracles.harness import WORDS
    from structgen import errors

    start = time.process_time()
    detail = ""
    try:
        if kind == "vocabulary":
            _vocabulary(**text)
        else:
            _use(getattr(compiler, kind)(text), WORDS.size)
        ended = OK
    except Exception as error:
        ended, detail = type(error).__name__, str(error)[:300]
        if getattr(errors, ended, None) is not type(error):
            ended = f"{type(error).__module__}.{ended}"
    return {"outcome": ended, "detail": detail, "seconds": time.process_time() - start}


def work(compiler, job: tuple[str, str], emit) -> None:
    kind, name = job
    table = {"json_schema": SCHEMAS, "regex": REGEXES, "vocabulary": VOCABULARIES}[kind]
    emit(outcome(compiler, kind, table[name][0]()))
