"""Deep input in a thread with a small stack gives the outcome of a large stack: a result or an error, never a
crash.

A thread of Python has a stack of 8 MB on glibc, 1 MB on musl, and 512 kB if a host on macOS starts the
thread. Texts nest in each dimension so deeply that a recursion without a bound needs more than 256 kB of
stack. One child process reads the texts in threads with 256 kB, another in threads with 8 MB. The outcomes
must be equal.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from oracles.harness import NIGHTLY

ROOT = Path(__file__).resolve().parents[1]
CASES = ROOT / "tests" / "cases"
SMALL, LARGE = 256 << 10, 8 << 20
OVERFLOW = r'_(?<![\w\p{Lu}](\.??"0{1,3}|\P{L}{2,}[\da]{2}){2}[\-]|\cJ?)'
DEPTHS = (300, 3_000, 30_000)


def nest(before: str, middle: str, after: str) -> Callable[[int], str]:
    return lambda n: before * n + middle + after * n


def chain(n: int) -> str:
    """Returns a chain of references, each to the next."""
    parts = {f"d{i}": {"$ref": f"#/$defs/d{i + 1}"} for i in range(n)}
    return json.dumps({"$ref": "#/$defs/d0", "$defs": {**parts, f"d{n}": {"type": "integer"}}})


def chained_items(n: int) -> str:
    parts = {
        f"d{i}": {"type": "array", "minItems": 1, "items": {"$ref": f"#/$defs/d{i + 1}"}} for i in range(n)
    }
    return json.dumps({"$ref": "#/$defs/d0", "$defs": {**parts, f"d{n}": {"type": "integer"}}})


SCHEMAS: dict[str, Callable[[int], str]] = {
    "items": nest('{"items":', "{}", "}"),
    "prefixItems": nest('{"prefixItems":[', "{}", "]}"),
    "required items": nest('{"type":"array","minItems":1,"items":', '{"type":"null"}', "}"),
    "contains": nest('{"type":"array","contains":', '{"type":"null"}', "}"),
    "unique": nest('{"type":"array","uniqueItems":true,"minItems":2,"items":', '{"enum":[1,2,3]}', "}"),
    "properties": nest('{"properties":{"a":', "{}", "}}"),
    "required": nest('{"type":"object","required":["a"],"properties":{"a":', '{"type":"null"}', "}}"),
    "additionalProperties": nest(
        '{"type":"object","minProperties":1,"additionalProperties":', '{"const":1}', "}"
    ),
    "patternProperties": nest('{"patternProperties":{"^a":', "{}", "}}"),
    "propertyNames": nest('{"propertyNames":', "{}", "}"),
    "dependentSchemas": nest('{"dependentSchemas":{"a":', "{}", "}}"),
    "unevaluated": nest('{"allOf":[', "{}", '],"unevaluatedProperties":false}'),
    "not": nest('{"not":', '{"type":"null"}', "}"),
    "allOf": nest('{"allOf":[', '{"type":"null"}', "]}"),
    "allOf of two": nest('{"allOf":[{"maxLength":9},', '{"type":"string"}', "]}"),
    "anyOf": nest('{"anyOf":[{"type":"null"},', '{"type":"integer"}', "]}"),
    "oneOf": nest('{"oneOf":[{"type":"null"},', '{"type":"integer"}', "]}"),
    "if": nest('{"if":', '{"type":"null"}', ',"then":{},"else":{"type":"integer"}}'),
    "const": lambda n: '{"const":' + "[" * n + "]" * n + "}",
    "const objects": lambda n: '{"const":' + '{"a":' * n + "1" + "}" * n + "}",
    "enum": lambda n: '{"enum":[1,' + "[" * n + "]" * n + "]}",
    "brackets": nest("[", "", "]"),
    "open": lambda n: '{"a":[' * n,
    "chain": chain,
    "chained items": chained_items,
}

PATTERNS: dict[str, Callable[[int], str]] = {
    "groups": nest("(", "a", ")"),
    "groups with a rest": nest("(a", "b", "c)"),
    "loops": nest("(", "a", "b)*"),
    "counters": nest("(", "a", "b){1,2}"),
    "alternations": nest("(a|b", "c", ")"),
    "captures": nest("(?P<x>", "a", ")"),
    "optional": nest("(a", "b", ")?"),
    "look-aheads": nest("(?=a", "b", ")"),
    "no look-aheads": nest("(?!a", "b", ")"),
    "look-behinds": lambda n: nest("(?<=a", "b", ")")(n if n > 999 else 60),  # 4 s at a depth of 300
    "a row of look-behinds": lambda n: "a(?<=a)b?" * min(n, 3_000),
    "a row of look-aheads": lambda n: "(?=a)" * min(n, 3_000) + "a",
    "long": lambda n: "ab?" * (n if n > 3_000 else 300),  # 11 s at a length of 3,000
    "alternatives": lambda n: "|".join(f"a{i}b" for i in range(n)),
    "classes": nest("[", "a", "]"),
    "open": lambda n: "(" * n,
}

GBNF: dict[str, Callable[[int], str]] = {
    "groups": lambda n: "root ::= " + "(" * n + '"a"' + ")" * n,
    "loops": lambda n: "root ::= " + "(" * n + '"a"' + ' "b")*' * n,
    "rules": lambda n: "".join(f'r{i} ::= "a" r{i + 1}\n' for i in range(n)) + f'r{n} ::= "b"\nroot ::= r0',
    "right": lambda n: (
        "".join(f'r{i} ::= r{i + 1} | "a" r{i}\n' for i in range(n)) + f'r{n} ::= "b"\nroot ::= r0'
    ),
    "brackets": lambda n: (
        "".join(f'r{i} ::= "(" r{i + 1} ")"\n' for i in range(n)) + f'r{n} ::= "b"\nroot ::= r0'
    ),
    "call": lambda n: "root ::= Substring(" + "(" * n + '"a"' + ")" * n + ")",
    "call of lists": lambda n: "root ::= Substring(" + "[" * n + "]" * n + ")",
    "call of minus": lambda n: "root ::= Token(" + "-" * n + "1)",
    "call of not": lambda n: "root ::= Token(" + "not " * n + "1)",
    "call of sums": lambda n: "root ::= Token(1" + "+1" * n + ")",
    "call of attributes": lambda n: "root ::= Token(a" + ".a" * n + ")",
    "call of lambdas": lambda n: "root ::= Token(" + "lambda:" * n + "1)",
}

LARK: dict[str, Callable[[int], str]] = {
    "groups": lambda n: "start: " + "(" * n + '"a"' + ")" * n,
    "brackets": lambda n: "start: " + "[" * n + '"a"' + "]" * n,
    "terminal": lambda n: "start: A\nA: " + "(" * n + '"a"' + ")" * n,
    "rules": lambda n: "start: r0\n" + "".join(f'r{i}: "a" r{i + 1}\n' for i in range(n)) + f'r{n}: "b"',
    "terminals": lambda n: (  # Lark takes seconds for 300 terminals
        "start: R0\n" + "".join(f'R{i}: "a" R{i + 1}\n' for i in range(min(n, 40))) + f'R{min(n, 40)}: "b"'
    ),
    "templates": lambda n: "start: " + "t{" * n + '"a"' + "}" * n + '\nt{x}: x "b"',
    "regex": lambda n: "start: /" + "(" * n + "a" + ")" * n + "/",
    "lazy regex": lambda n: "start: /" + "(" * n + "a" + ")*?" * n + "/",
    "json": lambda n: "start: %json " + "[" * n + "]" * n,
    "json schema": lambda n: "start: %json " + '{"items":' * n + "{}" + "}" * n,
    "lark": lambda n: "start: " + "%lark {start: " * n + '"a"' + "}" * n,
}

TAGS: dict[str, Callable[[int], Any]] = {
    "text": lambda n: (
        '{"type":"structural_tag","format":' + '{"type":"sequence","elements":[' * n + "]}" * n + "}"
    ),
    "sequence": lambda n: tags(n, "sequence", "elements", list),
    "or": lambda n: tags(n, "or", "elements", list),
    "schema": lambda n: structural({"type": "json_schema", "json_schema": deep_items(n)}),
}


def structural(format_: Any) -> Any:
    return {"type": "structural_tag", "format": format_}


def tags(n: int, kind: str, name: str, wrap: Any) -> Any:
    out: Any = {"type": "const_string", "value": "a"}
    for _ in range(n):
        out = {"type": kind, name: [out]}
    return structural(out)


def deep_items(n: int) -> Any:
    out: Any = {}
    for _ in range(n):
        out = {"items": out}
    return out


def use(grammar: Any) -> str:
    import structgen

    matcher = grammar.matcher()
    mask = structgen.allocate_bitmask(1, grammar.vocabulary.vocab_size)
    told = []
    for _ in range(6):
        matcher.fill_bitmask(mask)
        allowed = np.flatnonzero(np.unpackbits(mask.view(np.uint8), bitorder="little"))
        told.append(int(allowed.sum()))
        if not matcher.accept_token(int(allowed[len(allowed) // 2])):
            told.append(-1)
    told += [len(matcher.shortest_completion()), len(matcher.forced_bytes())]
    told.append(sum(map(len, matcher.captures().values())))
    try:
        told.append(matcher.tokens_needed())
    except structgen.BudgetExceeded:
        told.append(-2)
    return repr(told)


def validated(compiler: Any, text: str) -> str:
    """Reads JSON texts as values, and explains their refusals."""
    from structgen import Compiler
    from structgen.explain import explain

    grammar = compiler.json_schema({"type": "array"})
    matcher = grammar.matcher()
    told = [matcher.validate_bytes(text), matcher.accept_bytes(text), len(matcher.shortest_completion())]
    return repr([told, str(explain(Compiler, {"items": {"items": {"type": "integer"}}}, text))])


def jobs() -> dict[str, Callable[[Any], str]]:
    out: dict[str, Callable[[Any], str]] = {}
    tables = {"json_schema": SCHEMAS, "regex": PATTERNS, "gbnf": GBNF, "lark": LARK, "structural_tag": TAGS}
    for kind, table in tables.items():
        for name, make in table.items():
            for n in DEPTHS:
                if (
                    kind in ("lark", "gbnf")
                    and n > 3_000
                    and name in ("rules", "right", "brackets", "terminals")
                ):
                    continue
                out[f"{kind} {name} {n}"] = lambda c, k=kind, m=make, n=n: use(getattr(c, k)(m(n)))
    for name, make in PATTERNS.items():
        for n in DEPTHS:
            if n > 3_000 and name == "a row of look-behinds":
                continue
            pattern = make(n)
            schema = json.dumps({"type": "string", "pattern": pattern})
            out[f"pattern {name} {n}"] = lambda c, s=schema: use(c.json_schema(s))
    for n in DEPTHS:
        deep: Any = []
        for _ in range(n):
            deep = [deep]
        out[f"dict {n}"] = lambda c, n=n: use(c.json_schema(deep_items(n)))
        out[f"const of a dict {n}"] = lambda c, d=deep: use(c.json_schema({"const": d}))
        if n > 3_000:
            continue
        for name, text in {"arrays": "[" * n + "]" * n, "open": "[" * n, "objects": '[{"a":' * n}.items():
            out[f"text of {name} {n}"] = lambda c, t=text: validated(c, t)
    out["overflow"] = lambda c: use(c.json_schema({"type": "string", "pattern": OVERFLOW}))
    for path in sorted((CASES / "fuzz").rglob("*")):
        if path.is_file():
            data = path.read_bytes()
            for kind in tables:
                if kind in path.as_posix() or path.suffix == f".{kind}":
                    text = data.decode("utf-8", "replace")
                    out[f"{path.name} {kind}"] = lambda c, k=kind, t=text: use(getattr(c, k)(t))
    return out


def main(stack: int, step: int) -> None:
    """Prints the outcomes of every `step`-th job, one per line."""
    from oracles import harness

    def run() -> None:
        compiler = harness.compiler()
        for name, job in list(jobs().items())[::step]:
            sys.stdout.write(f"{name}: ")
            sys.stdout.flush()
            try:
                told = job(compiler)
            except Exception as error:
                told = f"{type(error).__name__}: {str(error)[:150]!r}"
            print(told, flush=True)

    threading.stack_size(stack)
    thread = threading.Thread(target=run)
    thread.start()
    thread.join()


def outcomes(stack: int, step: int = 1) -> list[str]:
    command = [sys.executable, "-c", f"from tests import test_small_stacks as t; t.main({stack}, {step})"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, env={**os.environ}, timeout=600)
    lines = done.stdout.splitlines()
    assert done.returncode == 0, f"ended by {done.returncode} at {lines[-1:]}: {done.stderr[-2000:]}"
    return lines


@pytest.mark.skipif(
    "STRUCTGEN_CORE" in os.environ, reason="sanitizers want more stack than that of the thread"
)
def test_little_stack() -> None:
    small = outcomes(SMALL)
    known = (
        "BudgetExceeded",
        "GrammarError",
        "SchemaTooComplex",
        "UnsatisfiableSchema",
        "UnsupportedSchema",
        "[",
    )
    assert [line for line in small if not line.partition(": ")[2].startswith(known)] == []
    step = 1 if NIGHTLY else 3
    assert [
        pair for pair in zip(small[::step], outcomes(LARGE, step), strict=True) if pair[0] != pair[1]
    ] == []
    assert next(line for line in small if line.startswith("overflow")).startswith("overflow: Unsatisfiable")
