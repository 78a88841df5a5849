"""Measures tool calls by the number of tools: compile, first mask, masks, memory, and calls judged by
jsonschema.

    python -m bench.tools --out build/tools.jsonl [--engines structgen,xgrammar,...] [--tools 1,16,64,128,300]
    python -m bench.tools --report build/tools.jsonl

Enters: tools of 4 to 16 properties, made here from a seed; engines that are installed; the 131,072 tokens of
tekken. Leaves: a record for each engine and number of tools, and a table. Cost: minutes. Every number of
tools has a process of its own, and an engine that fails at one number is not asked about larger numbers.

Each engine writes calls in the marks of Qwen 3, by the method that its own documentation names: a structural
tag for this model (xgrammar), `StructTag` (llguidance), `Compiler.tools` (structgen). Free text may stand
around calls. outlines-core has no such method and gets one JSON Schema, the choice of all calls, without free
text.

Cold is the first compile of a list in a process that compiled another tool before. Warm is a second compile
of the list, from the engine's own cache. A right call is an instance of its function's parameters by
jsonschema with formats. A wrong call is a right call with one change, and jsonschema refuses it. A call
counts as accepted if the masks allow one of its spellings (`coverage.spellings`) and then the end token.
Masks are timed along right calls, when the process meets them first.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

import jsonschema

from bench import coverage, records
from structgen.maskbench import engines, tokens, workers
from structgen.maskbench.engines.base import Missing

ENGINES = ("structgen", "llguidance", "xgrammar", "outlines-core")
SETUP, WORK = "bench.tools:setup", "bench.tools:work"
BEGIN, END = '<tool_call>\n{"name": "%s", "arguments": ', "}\n</tool_call>"
CALLS, MEMORY = 48, 6 << 30
_WORDS = [
    "city",
    "unit",
    "order",
    "account",
    "region",
    "limit",
    "query",
    "status",
    "owner",
    "branch",
    "price",
    "color",
    "target",
    "label",
    "width",
]  # noqa: SIM905

# ---- tools and calls ----


_Kind = tuple[dict[str, Any], Callable[[], Any], list[Any]]


def _property(chance: random.Random) -> _Kind:
    """Returns a schema, a function that draws a value, and invalid values."""
    some, low = sorted(chance.sample(_WORDS, 3)), chance.randint(0, 50)
    pick, whole = chance.choice, chance.randint
    place = {"lat": {"type": "number"}, "name": {"type": "string"}}
    kinds: list[_Kind] = [
        ({"type": "string"}, lambda: pick(['a "b" \\ c', "Lisbon", "", "é€"]), [3, None]),
        ({"type": "string", "enum": some}, lambda: pick(some), [some[0] + "s", 1]),
        ({"type": "string", "pattern": "^[A-Z]{2}-[0-9]{3,5}$"},
         lambda: f"AB-{whole(100, 99999)}", ["ab-123", "AB-12", "AB-123456"]),
        ({"type": "string", "format": "date"},
         lambda: f"2027-{whole(1, 12):02}-{whole(1, 28):02}", ["2027-13-01", "2027-02-30"]),
        ({"type": "string", "minLength": 2, "maxLength": 12}, lambda: "x" * whole(2, 12), ["x", "x" * 13]),
        ({"type": "integer", "minimum": low, "maximum": low + 37},
         lambda: whole(low, low + 37), [low - 1, low + 38, "3"]),
        ({"type": "number", "minimum": 0}, lambda: pick([0, 2.5, 130]), [-1, True]),
        ({"type": "boolean"}, lambda: chance.random() < 0.5, ["true", 0]),
        ({"type": "array", "items": {"enum": some}, "minItems": 1, "maxItems": 4},
         lambda: chance.choices(some, k=whole(1, 4)), [[], some * 2, ["zzz"]]),
        ({"anyOf": [{"type": "integer"}, {"type": "null"}]}, lambda: pick([None, 7, -12]), ["7", 1.5]),
        ({"type": "object", "properties": place, "required": ["lat"], "additionalProperties": False},
         lambda: {"lat": 1.5, "name": "here"}, [{"name": "here"}, {"lat": "1"}, {"lat": 1, "lon": 2}]),
    ]  # fmt: skip
    return chance.choice(kinds)


class Tool:
    """A function of 4 to 16 parameters."""

    def __init__(self, number: int, chance: random.Random) -> None:
        names = chance.sample(_WORDS + [f"{word}_id" for word in _WORDS], chance.randint(4, 16))
        self.name = f"{chance.choice(_WORDS)}_{number}"
        self._made = {name: _property(chance) for name in names}
        self._required = sorted(chance.sample(names, len(names) // 2), key=names.index)
        self._chance = chance
        self.parameters = {
            "type": "object",
            "properties": {name: made[0] for name, made in self._made.items()},
            "required": self._required,
            "additionalProperties": False,
        }
        self.judge = jsonschema.Draft202012Validator(
            self.parameters, format_checker=jsonschema.FormatChecker()
        )

    @property
    def openai(self) -> dict[str, Any]:
        return {"type": "function", "function": {"name": self.name, "parameters": self.parameters}}

    def right(self) -> dict[str, Any]:
        chance, required = self._chance, self._required
        return {n: made[1]() for n, made in self._made.items() if n in required or chance.random() < 0.5}

    def wrong(self) -> dict[str, Any]:
        """Returns a right call with one change: an invalid value, an additional key, or a missing key."""
        value, how = self.right(), self._chance.random()
        if how < 0.15:
            value["unknown"] = 1
        elif how < 0.3:
            value.pop(self._chance.choice(self._required))
        else:
            name = self._chance.choice([*value])
            value[name] = self._chance.choice(self._made[name][2])
        return value


def made(count: int) -> tuple[list[Tool], list[tuple[Tool, dict[str, Any], bool]]]:
    """Tools, and calls of them with jsonschema's verdicts; half of the calls are right."""
    chance = random.Random(count)
    tools = [Tool(i, chance) for i in range(count)]
    calls: list[tuple[Tool, dict[str, Any], bool]] = []
    while len(calls) < CALLS:
        tool = chance.choice(tools)
        wanted = len(calls) % 2 == 0
        value = tool.right() if wanted else tool.wrong()
        if tool.judge.is_valid(value) == wanted:
            calls.append((tool, value, wanted))
    return tools, calls


# ---- engines ----


def compiled(name: str, engine: Any, tools: list[dict[str, Any]]) -> Any:
    """Returns the grammar of calls, built as the engine's own documentation says."""
    functions = [tool["function"] for tool in tools]
    if name == "structgen":
        from structgen.maskbench.engines import structgen

        return structgen.Grammar(engine._compiler.tools(tools, style="qwen"), engine._row)
    if name == "xgrammar":
        import xgrammar

        from structgen.maskbench.engines import xgrammar as adapter

        tag = xgrammar.get_model_structural_tag("qwen_3", tools=tools, reasoning="disabled")
        return adapter.Grammar(engine._compiler.compile_structural_tag(tag), engine._mask, engine._eos)
    if name == "llguidance":
        from llguidance import StructTag

        from structgen.maskbench.engines import llguidance

        tags = [
            StructTag(trigger="<tool_call>", begin=BEGIN % f["name"], grammar=f["parameters"], end=END)
            for f in functions
        ]
        grammar = StructTag.to_grammar(tags, assume_special=False)
        return llguidance.Grammar(engine._tokenizer, grammar, engine._row)
    calls = [
        {
            "type": "object",
            "properties": {"name": {"const": f["name"]}, "arguments": f["parameters"]},
            "required": ["name", "arguments"],
        }
        for f in functions
    ]
    return engine.compile(json.dumps(calls[0] if len(calls) == 1 else {"anyOf": calls}))


def written(name: str, tool: Tool, value: dict[str, Any]) -> list[str]:
    """Returns the spellings of a call that are tried."""
    texts = list(coverage.spellings(value, tool.parameters))
    if name == "outlines-core":
        return [f'{{"name":"{tool.name}","arguments":{t}}}' for t in texts] + [
            f'{{"name": "{tool.name}", "arguments": {t}}}' for t in texts
        ]
    return [BEGIN % tool.name + text + END for text in texts]


def setup(config: dict[str, Any]) -> dict[str, Any]:
    found = tokens.load(config["vocabulary"])
    engine = engines.load(config["engine"], found)
    compiled(config["engine"], engine, [Tool(0, random.Random("another")).openai]).sequence().fill()
    return {"engine": engine, "tokens": found}


def work(state: dict[str, Any], job: dict[str, Any], emit: Callable[[dict[str, Any]], None]) -> None:
    name, vocabulary = job["engine"], state["tokens"]
    tools, calls = made(job["tools"])
    listed = [tool.openai for tool in tools]
    row: dict[str, Any] = {**job, "version": state["engine"].version, "said": ""}

    def once() -> tuple[Any, float, float]:
        began = time.perf_counter()
        grammar = compiled(name, state["engine"], listed)
        between = time.perf_counter()
        grammar.sequence().fill()
        return grammar, 1e3 * (between - began), 1e3 * (time.perf_counter() - between)

    held = workers.resident(os.getpid())
    try:
        grammar, row["compile"], row["first"] = once()
        row["memory"] = (workers.resident(os.getpid()) - held) / 2**20
        _, row["warm_compile"], row["warm_first"] = once()
    except Exception as error:  # engines raise exceptions of their own
        emit({**row, "said": f"{type(error).__name__}: {error}"[:200]})
        return
    masks: list[float] = []
    over = under = broke = 0
    for tool, value, right in calls:
        texts = written(name, tool, value)
        try:
            found = masks if right else None  # masks of wrong calls end early, so they are not timed
            taken = [text for text in texts if coverage.allowed(grammar, text, vocabulary, found)]
        except Exception as error:
            row["said"], broke = f"{type(error).__name__}: {error}"[:200], broke + 1
            continue
        over += right and not taken
        under += bool(taken) and not right
    row |= {"over": over, "under": under, "broke": broke, "calls": len(calls), "masks": len(masks)}
    if len(masks) > 1:
        row |= {"p50": statistics.median(masks), "p99": statistics.quantiles(masks, n=100)[98]}
    row["memory_after"] = (workers.resident(os.getpid()) - held) / 2**20
    emit(row)


def run(names: list[str], counts: list[int], vocabulary: str, limit: float, out: Any) -> None:
    for name in names:
        try:
            engines.adapter(name)
        except Missing as missing:
            print(f"{name}: {missing}", file=sys.stderr)
            continue
        for count in counts:
            job = {"engine": name, "tools": count}
            config = {"engine": name, "vocabulary": vocabulary}
            ((_, rows, failure),) = workers.run(SETUP, WORK, config, [job], limit=limit, memory=MEMORY)
            if failure is not None:
                rows = [{**job, "said": f"{failure.kind} after {failure.seconds:.0f} s"}]
            for row in rows:
                print(json.dumps(row), file=out, flush=True)
            if any("compile" not in row for row in rows):
                break


def report(rows: list[dict[str, Any]]) -> None:
    heads = {"tools": 6, "cold: compile": 15, "first": 9, "warm: compile": 15, "first ": 9, "masks p50": 11}
    heads |= {"p99": 10, "MiB": 7, "MiB after": 11, "right refused": 15, "wrong taken": 13}
    print(" " * 15 + "".join(f"{head:>{width}}" for head, width in heads.items()))
    for row in rows:
        print(f"{row['engine']:15}{row['tools']:6}", end="")
        if "over" not in row:
            print(f"  {row['said']}")
            continue
        half = row["calls"] // 2
        print(
            f"{row['compile']:12.1f} ms{row['first']:6.1f} ms{row['warm_compile']:12.1f} ms"
            f"{row['warm_first']:6.1f} ms{row.get('p50', 0):8.1f} us{row.get('p99', 0):7.0f} us"
            f"{row['memory']:7.0f}{row['memory_after']:11.0f}{row['over']:9} of {half}"
            f"{row['under']:7} of {half}" + (f"  {row['broke']} broke: {row['said']}" if row["broke"] else "")
        )
    records.print_versions(rows)


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="bench.tools", description=__doc__.split("\n")[0])
    parser.add_argument("--engines", default=",".join(ENGINES))
    parser.add_argument("--tools", default="1,16,64,128,300")
    parser.add_argument("--vocabulary", default="tekken", help="as structgen bench takes it (tekken)")
    parser.add_argument("--limit", type=float, default=120.0, help="seconds for a number of tools (120)")
    records.options(parser)
    options = parser.parse_args(arguments)
    if records.reported(options, report):
        return
    names = options.engines.split(",")
    for name in names:
        if name not in ENGINES:
            parser.error(f"no engine {name!r} here: {', '.join(ENGINES)}")
    counts = [int(count) for count in options.tools.split(",")]
    with records.out(options) as out:
        run(names, counts, options.vocabulary, options.limit, out)


if __name__ == "__main__":
    main()
