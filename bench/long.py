"""Measures the cost of a token as a text grows, in texts of many items, keys, characters, levels and
statements.

In: nothing; the schemas are below. Out, for each case: CPU microseconds of a token (mask and step) in each
fifth of the text, the last fifth divided by the first, and the memory that the text left behind, in bytes for
each element. Cost: a minute or two at --count 10000.

Tokens are single bytes, so that the size of a vocabulary does not count. Elements are all different if the
schema requires it. A case ends after --seconds of CPU time. Its line then says how much of the text was
reached, and its ratio uses the last fifth that was reached.

    python -m bench.long --count 100000
"""

from __future__ import annotations

import argparse
import json
import resource
import time
from collections.abc import Callable, Iterator
from typing import Any

import structgen
from structgen import errors

PARTS = 5


def joined(open_: str, close: str, element: Callable[[int], str]) -> Callable[[int], Iterator[str]]:
    """Returns a text of elements with commas between them."""

    def pieces(count: int) -> Iterator[str]:
        yield open_
        for i in range(count):
            yield ("," if i else "") + element(i)
        yield close

    return pieces


def unique(items: Any, element: Callable[[int], Any]) -> tuple[Any, Callable[[int], Iterator[str]]]:
    schema = {"type": "array", "uniqueItems": True}
    return schema | ({"items": items} if items is not None else {}), joined(
        "[", "]", lambda i: json.dumps(element(i), separators=(",", ":"))
    )


def mixed(i: int) -> Any:
    return [i, f"s{i}", i + 0.5, [i], {"a": i}][i % 5]


def nested(open_: str, close: str) -> Callable[[int], Iterator[str]]:
    def pieces(count: int) -> Iterator[str]:
        yield from (open_ for _ in range(count))
        yield from (close for _ in range(count))

    return pieces


def long_string(count: int) -> Iterator[str]:
    yield '"'
    yield from ("ab-1"[i % 4] for i in range(count // 4 * 4))
    yield '"'


WORDS = [f"word{i}" for i in range(200_000)]
RECORD = {"type": "object", "properties": {"id": {"type": "integer"}}, "required": ["id"]}
TREE = {"$ref": "#/$defs/t", "$defs": {"t": {"type": "array", "items": {"$ref": "#/$defs/t"}}}}
PROGRAM = (
    'root ::= line+\nline ::= name " = " sum ";\\n"\nsum ::= name (" + " name)*\nname ::= [a-z] [a-z0-9]*\n'
)
CASES: dict[str, tuple[Any, Callable[[int], Iterator[str]]]] = {
    "unique integers": unique({"type": "integer"}, lambda i: i * 7),
    "unique numbers": unique({"type": "number"}, lambda i: i + 0.25),
    "unique strings": unique({"type": "string"}, lambda i: f"s{i}"),
    "unique, pattern": unique({"type": "string", "pattern": "^[a-z]+[0-9]*$"}, lambda i: f"s{i}"),
    "unique enum": unique({"enum": WORDS[:2000]}, lambda i: WORDS[i]),
    "unique arrays of integers": unique(
        {"type": "array", "items": {"type": "integer"}}, lambda i: [i, i + 1]
    ),
    "unique objects": unique(RECORD, lambda i: {"id": i}),
    "unique, any items": unique(None, mixed),
    "map": ({"type": "object", "additionalProperties": {"type": "integer"}},
            joined("{", "}", lambda i: f'"k{i}":{i}')),
    "propertyNames": ({"type": "object", "propertyNames": {"pattern": "^[a-z]+[0-9]*$"}},
                      joined("{", "}", lambda i: f'"k{i}":{i}')),
    "patternProperties": ({"type": "object", "patternProperties": {"^k": {"type": "integer"}, "^s": {}},
                           "additionalProperties": False}, joined("{", "}", lambda i: f'"k{i}":{i}')),
    "items": ({"type": "array", "items": RECORD}, joined("[", "]", lambda i: f'{{"id":{i}}}')),
    "string with a pattern": ({"type": "string", "pattern": "^([a-z]+-[0-9])+$"}, long_string),
    "levels": (TREE, nested("[", "]")),
    "program": (PROGRAM, lambda count: (f"v{i} = a + b{i};\n" for i in range(count))),
}  # fmt: skip
LIMITS = {"unique enum": 2000}


def resident() -> int:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize()


def run(name: str, count: int, seconds: float, budget: int | None = None) -> str:
    schema, pieces = CASES[name]
    count = min(count, LIMITS.get(name, count))
    vocabulary = structgen.Vocabulary.from_bytes([*(bytes([i]) for i in range(256)), b""], 256)
    compiler = structgen.Compiler(vocabulary)
    grammar = compiler.gbnf(schema) if isinstance(schema, str) else compiler.json_schema(schema)
    elements = list(pieces(count))
    most = None if budget is None else len("".join(elements)) + budget
    matcher, mask = grammar.matcher(max_tokens=most), structgen.allocate_bitmask(1, 257)
    costs, tokens, note = [0.0] * PARTS, [0] * PARTS, ""
    held, clock, done = resident(), time.process_time, 0
    for i, element in enumerate(elements):
        part = min(PARTS - 1, i * PARTS // len(elements))
        text = element.encode()
        began = clock()
        try:
            for byte in text:
                matcher.fill_bitmask(mask)
                if not matcher.accept_token(byte):
                    note = f"refused at element {i}"
                    break
        except errors.StructgenError as error:
            note = f"{type(error).__name__} at element {i}"
        costs[part] += clock() - began
        tokens[part] += len(text)
        done = i + 1
        if note or sum(costs) > seconds:
            note = note or f"stopped at element {i}"
            break
    each = [1e6 * c / t if t else 0.0 for c, t in zip(costs, tokens, strict=True)]
    known = [x for x in each if x]
    grown = max(0, resident() - held) / max(1, done)
    figures = "".join(f"{x:9.1f}" if x else f"{'':9}" for x in each)
    return f"{name:26}{figures}{known[-1] / known[0]:8.2f}{grown:10.0f}  {note}"


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=10_000, help="elements of a text")
    parser.add_argument("--seconds", type=float, default=20.0, help="CPU time of a case")
    parser.add_argument("--budget", type=int, help="max_tokens: those of the text and so many more")
    parser.add_argument("--only", nargs="*", choices=list(CASES), help="these cases")
    options = parser.parse_args(arguments)
    print(f"{options.count} elements; CPU microseconds a token of one byte, by fifths of the text")
    print(f"{'':26}" + "".join(f"{f'{i + 1}/5':>9}" for i in range(PARTS)) + f"{'ratio':>8}{'B/elem':>10}")
    for name in options.only or CASES:
        print(run(name, options.count, options.seconds, options.budget), flush=True)


if __name__ == "__main__":
    main()
