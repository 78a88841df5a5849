"""Measures what a new process has to build, from the import to the masks, and the compiles of a list of
tools.

Enters: nothing (tekken's vocabulary is saved into a temporary folder). Leaves: wall and processor
milliseconds of each step, as medians over several new processes, once with the vocabulary loaded from a saved
file and once with the vocabulary built.

    python -m bench.warm [--repeat 7]
    python -m bench.warm --tools 300 [--repeat 7]

With `--tools`: a list of tools with 4 to 16 properties, as an MCP client gets it. A new compiler compiles the
list (cold), and then the same compiler compiles it again (warm), each with the first mask. The figures are
wall milliseconds in this process, as medians.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import structgen as sg
from structgen.maskbench.engines.structgen import vocabulary
from structgen.maskbench.tokens import tekken

# Runs in the fresh process. The built vocabulary comes as a pickled list, so no tokenizer's loading is
# counted.
_CHILD = r"""
import json, pickle, sys, time
how, path, texts = sys.argv[1:]
laps, last = {}, None
def lap(step):
    global last
    now = (time.perf_counter(), time.process_time())
    if last: laps[step] = [1e3 * (a - b) for a, b in zip(now, last)]
    last = now
lap("")
import structgen as sg
lap("import structgen")
if how == "load":
    words = sg.Vocabulary.load(path)
else:
    with open(texts, "rb") as file:
        tokens, eos, special = pickle.load(file)
    lap("reading the pickle (not counted)")
    words = sg.Vocabulary.from_bytes(tokens, eos, special)
    words._core
lap("vocabulary")
mask = sg.allocate_bitmask(1, words.vocab_size)
schema = '{"properties":{"name":{"type":"string"},"n":{"type":"integer"}},"required":["name"]}'
matcher = sg.Compiler(words).json_schema(schema).matcher()
matcher.fill_bitmask(mask)
lap("compile and first mask")
matcher.accept_bytes('{"name": "')
matcher.fill_bitmask(mask)
lap("first mask inside a string")
matcher.accept_bytes('a", "n": ')
matcher.fill_bitmask(mask)
lap("first mask of a number")
print(json.dumps(laps))
"""


_PROPERTIES: list[dict[str, Any]] = [
    {"type": "string", "description": "what it is", "default": None},
    {"type": "integer", "minimum": 0, "maximum": 1000},
    {"type": "boolean", "default": False},
    {"type": "array", "items": {"type": "string"}},
    {"enum": ["red", "green", "blue", "black"]},
    {"type": "string", "format": "date-time"},
    {"type": "string", "pattern": "^[a-z0-9_-]{1,39}$"},
    {"anyOf": [{"type": "integer"}, {"type": "null"}, {"type": "string", "format": "uri"}], "default": None},
    {
        "type": "object",
        "properties": {"a": {"type": "string"}},
        "required": ["a"],
        "additionalProperties": {},
    },
    {"$ref": "#/$defs/Node"},
]
_NODE = {
    "type": "object",
    "properties": {"v": {"type": "string"}, "next": {"anyOf": [{"$ref": "#/$defs/Node"}, {"type": "null"}]}},
    "required": ["v"],
}


def tools_of(count: int, seed: int = 0) -> dict[str, Any]:
    """Returns a list as an MCP client gets it: `count` tools of 4 to 16 properties."""
    chance = random.Random(seed)
    tools = []
    for i in range(count):
        picked = chance.choices(_PROPERTIES, k=chance.randint(4, 16))
        named = {f"property_{j}": kind for j, kind in enumerate(picked)}
        schema = {"type": "object", "properties": named, "required": chance.sample(sorted(named), 2)}
        tools.append({"name": f"tool_{i}", "inputSchema": {**schema, "$defs": {"Node": _NODE}}})
    return {"tools": tools}


def measure_tools(count: int, repeat: int) -> None:
    words, listed = vocabulary(tekken()), tools_of(count)
    row = sg.allocate_bitmask(1, words.vocab_size)
    # imports modules and builds the trie
    sg.Compiler(words).tools(tools_of(1), "required").matcher().fill_bitmask(row)

    def lap(compiler: sg.Compiler, style: str, choice: str) -> float:
        begin = time.perf_counter()
        compiler.tools(listed, choice, style=style).matcher().fill_bitmask(row)
        return 1e3 * (time.perf_counter() - begin)

    print(f"{count} tools, {len(json.dumps(listed))} bytes; ms with the first mask, medians of {repeat}")
    print(f"{'style':<16}{'choice':<10}{'cold':>8}{'warm':>8}")
    for style in ("hermes", "llama3", "qwen3-coder", "pythonic"):
        for choice in ("required", "auto"):
            laps = []
            for _ in range(repeat):
                compiler = sg.Compiler(words)
                laps.append([lap(compiler, style, choice) for _ in range(2)])
            cold, warm = (statistics.median(both) for both in zip(*laps, strict=True))
            print(f"{style:<16}{choice:<10}{cold:>8.1f}{warm:>8.2f}")


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="bench.warm", description=__doc__.split("\n")[0])
    parser.add_argument("--repeat", type=int, default=7)
    parser.add_argument("--tools", type=int, metavar="N", help="compile so many tools instead")
    options = parser.parse_args(arguments)
    if options.tools is not None:
        measure_tools(options.tools, options.repeat)
        return 0
    import pickle

    tokens = tekken()
    with tempfile.TemporaryDirectory() as folder:
        saved, texts = Path(folder) / "tekken.sgv", Path(folder) / "texts.pickle"
        vocabulary(tokens).save(saved)
        texts.write_bytes(pickle.dumps((tokens.text, tokens.eos, list(tokens.special))))
        print(
            f"{tokens.name}: the file has {saved.stat().st_size / 1e6:.1f} MB; wall (processor) milliseconds"
        )
        for how in ("load", "build"):
            found: list[dict[str, list[float]]] = []
            for _ in range(options.repeat):
                command = [sys.executable, "-c", _CHILD, how, str(saved), str(texts)]
                done = subprocess.run(command, capture_output=True, text=True, check=True)
                found.append(json.loads(done.stdout))
            print(how)
            for step in found[0]:
                wall, cpu = (statistics.median(laps[step][i] for laps in found) for i in (0, 1))
                print(f"  {step:<34}{wall:>9.2f} ({cpu:.2f})")
    return 0


if __name__ == "__main__":
    sys.exit(main())
