"""Measures how the time of each reader grows with the text, for many kinds of text whose sizes double.

    python -m bench.readers [--from 65536] [--to 1048576] [--seconds 5] [--only lark]

Enters: nothing; the texts are made here. Leaves: a table with the CPU time at each size and the local
exponent, the logarithm of the ratio of two times divided by that of the two sizes; 1 is linear. A refused
text counts, with its error, because a limit is a good answer. Sizes grow until one takes `--seconds`. Cost:
minutes.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from collections.abc import Callable, Iterator
from typing import Any

import structgen as sg

Text = Callable[[int], Any]


def repeat(piece: str, before: str = "", after: str = "") -> Text:
    """Returns a text in which a piece repeats as often as fits; `{}` in the piece becomes a number."""

    def made(size: int) -> str:
        out, length, number = [before], len(before) + len(after), 0
        while length < size:
            out.append(piece.replace("{}", str(number)))
            length += len(out[-1])
            number += 1
        return "".join([*out, after])

    return made


def around(text: Text, wrap: Callable[[str], Any]) -> Text:
    return lambda size: wrap(text(size))


def nest(opening: str, middle: str, closing: str) -> Text:
    def made(size: int) -> str:
        depth = max(1, size // (len(opening) + len(closing)))
        return opening * depth + middle + closing * depth

    return made


def tags(size: int) -> dict[str, Any]:
    count = size // 70
    return {"type": "structural_tag", "format": {
        "type": "triggered_tags",
        "triggers": [f"<t{i}>" for i in range(count)],
        "tags": [{"begin": f"<t{i}>", "content": {"type": "const_string", "value": "x"}, "end": f"</t{i}>"}
                 for i in range(count)],
    }}  # fmt: skip


def tags_one_trigger(size: int) -> dict[str, Any]:
    count = size // 60
    return {"type": "structural_tag", "format": {
        "type": "triggered_tags", "triggers": ["<t"],
        "tags": [{"begin": f"<t{i}>", "content": {"type": "const_string", "value": "x"}, "end": "</t>"}
                 for i in range(count)],
    }}  # fmt: skip


def tags_in_or(size: int) -> dict[str, Any]:
    return {"type": "structural_tag", "format": {
        "type": "or", "elements": [{"type": "const_string", "value": f"v{i}"} for i in range(size // 45)],
    }}  # fmt: skip


def tags_deep(size: int) -> str:
    depth = size // 40
    inner = '{"type":"sequence","elements":[' * depth + '{"type":"const_string","value":"x"}' + "]}" * depth
    return '{"type":"structural_tag","format":' + inner + "}"


def tools(size: int) -> list[dict[str, Any]]:
    return [
        {"type": "function", "function": {"name": f"f{i}", "parameters": {
            "type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}}}
        for i in range(size // 130)
    ]  # fmt: skip


JSON: dict[str, Text] = {
    "many properties": repeat('"p{}":{"type":"string"},', '{"type":"object","properties":{', '"z":{}}}'),
    "many $defs": repeat('"d{}":{"type":"string"},', '{"$ref":"#/$defs/d1","$defs":{', '"z":{}}}'),
    "many $refs": repeat(
        '"p{}":{"$ref":"#/$defs/a"},', '{"$defs":{"a":{"type":"string"}},"properties":{', '"z":{}}}'
    ),
    "a chain of $refs": repeat(
        '"d{}":{"items":{"$ref":"#/$defs/z"}},', '{"$ref":"#/$defs/d1","$defs":{', '"z":{}}}'
    ),
    "long enum": repeat('"value {}",', '{"enum":[', '"z"]}'),
    "long enum of numbers": repeat("{},", '{"enum":[', "-1]}"),
    "many alternatives": repeat('{"const":{}},', '{"anyOf":[', '{"const":-1}]}'),
    "long required": repeat('"p{}",', '{"required":[', '"z"]}'),
    "long literal": lambda n: '{"const":"' + "x" * n + '"}',
    "many escapes": lambda n: '{"const":"' + "\\u00e9\\n" * (n // 8) + '"}',
    "long name": lambda n: '{"properties":{"' + "x" * n + '":{}}}',
    "blanks": lambda n: "{" + "\n" * n + '"type":"string"}',
    "long number": lambda n: '{"const":' + "7" * n + "}",
    "deep schema": nest('{"items":', "{}", "}"),
    "deep const": lambda n: '{"const":' + "[" * (n // 2) + "]" * (n // 2) + "}",
    "long pattern": lambda n: '{"pattern":"' + "ab?" * (n // 3) + '"}',
}
REGEX: dict[str, Text] = {
    "long literal": lambda n: "x" * n,
    "many alternatives": repeat("v{}|", "", "z"),
    "alike alternatives": repeat("a|"),
    "huge class": lambda n: (
        "[" + "".join(map(chr, range(0x4E00, 0x4E00 + min(n // 3, 20_000)))) * max(1, n // 60_000) + "]"
    ),
    "many classes": lambda n: "[a-z0-9]" * (n // 8),
    "many escapes": lambda n: r"\n\x41\.\d" * (n // 10),
    "deep groups": nest("(?:", "a", ")"),
    "many groups": repeat("(a)"),
    "named groups": repeat("(?P<n{}>a)"),
    "many optionals": lambda n: "a?" * (n // 2),
    "many stars": lambda n: "(?:a|b)*c" * (n // 9),
    "many counts": lambda n: "a{2,9}" * (n // 6),
    "many lookaheads": lambda n: "(?=a)a" * (n // 6),
}
GBNF: dict[str, Text] = {
    "many rules": repeat('r{} ::= "a" r{}x | "b"\nr{}x ::= "c"\n', "root ::= r0\n"),
    "many used rules": lambda n: (
        "root ::= "
        + " | ".join(f"r{i}" for i in range(n // 25))
        + "\n"
        + "".join(f'r{i} ::= "v{i}"\n' for i in range(n // 25))
    ),
    "many alternatives": repeat('"v{}" | ', "root ::= ", '"z"\n'),
    "long sequence": repeat('"a{}" ', "root ::= ", "\n"),
    "long literal": lambda n: 'root ::= "' + "x" * n + '"\n',
    "many escapes": lambda n: 'root ::= "' + "\\x41\\n" * (n // 6) + '"\n',
    "long name": lambda n: "root ::= " + "r" * (n // 2) + "\n" + "r" * (n // 2) + ' ::= "a"\n',
    "newlines": lambda n: 'root ::= "a"' + "\n" * n,
    "comments": lambda n: 'root ::= "a"\n' + "# a comment\n" * (n // 12),
    "one comment": lambda n: 'root ::= "a"\n#' + "x" * n + "\n",
    "deep groups": lambda n: "root ::= " + "(" * (n // 2) + '"a"' + ")" * (n // 2) + "\n",
    "huge class": lambda n: (
        "root ::= [" + "".join(map(chr, range(0x4E00, 0x4E00 + min(n // 3, 20_000)))) + "]\n"
    ),
    "many classes": lambda n: "root ::= " + "[a-z] " * (n // 6) + "\n",
    "many counts": lambda n: "root ::= " + '"a"{2,5} ' * (n // 9) + "\n",
    "chain of rules": repeat("r{} ::= r{}1\n", "root ::= r0\n"),
}
LARK: dict[str, Text] = {
    "many rules": repeat('r{}: "a" "b"\n', "start: r0\n"),
    "many used rules": lambda n: (
        "start: "
        + " | ".join(f"r{i}" for i in range(n // 25))
        + "\n"
        + "".join(f'r{i}: "v{i}"\n' for i in range(n // 25))
    ),
    "many terminals": lambda n: (
        "start: "
        + " | ".join(f"T{i}" for i in range(n // 25))
        + "\n"
        + "".join(f'T{i}: "v{i}"\n' for i in range(n // 25))
    ),
    "many alternatives": repeat('"v{}" | ', "start: ", '"z"\n'),
    "alternatives on lines": repeat('"v{}"\n  | ', "start: ", '"z"\n'),
    "long sequence": repeat('"a{}" ', "start: ", "\n"),
    "long literal": lambda n: 'start: "' + "x" * n + '"\n',
    "many escapes": lambda n: 'start: "' + "\\x41\\n" * (n // 6) + '"\n',
    "long regex": lambda n: "start: /" + "ab?" * (n // 3) + "/\n",
    "long name": lambda n: "start: " + "r" * (n // 2) + "\n" + "r" * (n // 2) + ': "a"\n',
    "newlines": lambda n: 'start: "a"' + "\n" * n,
    "newlines between": lambda n: 'start: "a"' + "\n" * n + 'r: "b"\n',
    "blanks": lambda n: 'start: "a"' + " " * n + "\n",
    "comments": lambda n: 'start: "a"\n' + "// a comment\n" * (n // 13),
    "one comment": lambda n: 'start: "a"\n//' + "x" * n + "\n",
    "deep groups": lambda n: "start: " + "(" * (n // 2) + '"a"' + ")" * (n // 2) + "\n",
    "many counts": lambda n: "start: " + '"a"~2..5 ' * (n // 9) + "\n",
    "a large count": lambda n: f'start: "a"~{n}\n',
    "many ignores": repeat('%ignore "v{}"\n', 'start: "a"\n'),
    "many declares": repeat("%declare D{}\n", 'start: "a"\n'),
    "many templates": repeat('t{}{x}: x "a"\n', 'start: "a"\n'),
}
TAGS: dict[str, Text] = {
    "many triggers": tags,
    "many tags": tags_one_trigger,
    "many choices": tags_in_or,
    "deep": tags_deep,
    "long text": lambda n: {"type": "structural_tag", "format": {"type": "const_string", "value": "x" * n}},
}
TOOLS: dict[str, Text] = {"many tools": tools}


def compilers() -> dict[str, tuple[dict[str, Text], Callable[[sg.Compiler, Any], Any]]]:
    return {
        "json": (JSON, lambda c, t: c.json_schema(t)),
        "regex": (REGEX, lambda c, t: c.regex(t)),
        "gbnf": (GBNF, lambda c, t: c.gbnf(t)),
        "lark": (LARK, lambda c, t: c.lark(t)),
        "xgrammar": (GBNF, lambda c, t: c.grammar(t)),
        "tags": (TAGS, lambda c, t: c.structural_tag(json.dumps(t) if isinstance(t, dict) else t)),
        "tools": (TOOLS, lambda c, t: c.tools(t)),
    }


def measured(reader: str, kind: str, sizes: list[int], seconds: float) -> Iterator[tuple[int, float, str]]:
    """Returns (size, CPU seconds, "" or an error) for each size, until one takes longer than `seconds`."""
    vocabulary = sg.Vocabulary.from_bytes([*(bytes([i]) for i in range(256)), b""], 256)
    texts, compile = compilers()[reader]
    for size in sizes:
        text = texts[kind](size)
        compiler = sg.Compiler(vocabulary)
        start = time.process_time()
        error = ""
        try:
            compile(compiler, text)
        except sg.StructgenError as e:
            error = f"{type(e).__name__}: {str(e).splitlines()[0][:70]}"
        spent = time.process_time() - start
        yield size, spent, error
        if spent > seconds:
            return


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.readers", description=__doc__)
    parser.add_argument("--from", dest="least", type=int, default=1 << 16)
    parser.add_argument("--to", dest="most", type=int, default=1 << 20)
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--only", default="", help="readers or kinds that hold this")
    options = parser.parse_args()
    sizes = [options.least]
    while sizes[-1] * 2 <= options.most:
        sizes.append(sizes[-1] * 2)
    print(f"{'':31}" + "".join(f"{f'{s >> 10} kB':>9}" for s in sizes) + "  exponent")
    for reader, (texts, _) in compilers().items():
        for kind in texts:
            if options.only not in f"{reader} {kind}":
                continue
            rows = list(measured(reader, kind, sizes, options.seconds))
            times = "".join(f"{1000 * t:8.0f}{'!' if e else ' '}" for _, t, e in rows)
            # The exponent uses the two largest sizes whose times are above the noise.
            last = [(s, t) for s, t, e in rows if t > 0.005][-2:]
            grows = (
                math.log(last[1][1] / last[0][1]) / math.log(last[1][0] / last[0][0])
                if len(last) == 2
                else 0.0
            )
            print(f"{reader:9}{kind:22}{times:{9 * len(sizes)}}  {grows:8.2f}  {rows[-1][2]}", flush=True)
    print("milliseconds of CPU time; ! refused")


if __name__ == "__main__":
    main()
