"""Long calls, each in a child process that gets SIGINT in the middle of the call.

Input: the name of a case, and seconds until the signal. Output: the finished child. The child prints the time
from the signal to the end of the call, and the longest time in which no other Python thread ran. Time: about
2 s a run.

A thread of the child sends SIGINT while the main thread is in a call that would take seconds; the call must
let the thread run. Times are CPU times of the child from the signal on, so a busy machine does not matter.
Only calls that wait are measured by the clock.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
ALLOWED = 0.1  # seconds
# Limits in CPU seconds of three threads; for calls that only wait, in seconds of the clock. Without the
# interrupt the calls would take ten seconds. Lark runs Python code in one piece, 76 ms on an idle machine and
# once 121 ms beside other tests. A vocabulary copies a list of six million tokens in one piece, 70 ms idle
# and 268 ms on a slower machine.
MORE = {"batch": 0.4, "a lock that another thread holds": 2.0, "Lark": 0.2, "a vocabulary": 0.6}

# `call` is a function without arguments. `ended` is the time from the signal to KeyboardInterrupt. `gap` is
# the longest process time in which no other Python thread ran.
SCRIPT = """
import os, signal, sys, threading, time
import structgen
from oracles.harness import WORDS, vocabulary

FORMATS = {{"oneOf": [{{"type": "string", "format": f}} for f in structgen._core.format_names()]}}
compiler = structgen.Compiler(vocabulary(WORDS), limits=structgen.Limits(None, None))
mask = structgen.allocate_bitmask(8, WORDS.size)
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore it
clock = time.process_time
sent, ticks = [], []

def press(after):
    def later():
        time.sleep(after)
        sent.append(clock())
        os.kill(os.getpid(), signal.SIGINT)
    def tick():
        while not sent:
            ticks.append(time.process_time())
            time.sleep(0.001)
    threading.Thread(target=tick, daemon=True).start()
    threading.Thread(target=later, daemon=True).start()

{setup}

begin = time.monotonic()
press({after})
try:
    call()
except KeyboardInterrupt:
    ended = clock() - sent[0]
else:
    raise SystemExit(f"not interrupted: over after {{time.monotonic() - begin:.2f}} s")
gap = max([b - a for a, b in zip(ticks, ticks[1:])], default=0.0)
print(ended, gap)

# Everything shared is as a new engine has it.
def masks(compiler):
    schema = {{"type": "object", "properties": {{"a": {{"format": "date"}}}}}}
    matcher = compiler.json_schema(schema).matcher()
    out = []
    for piece in (b"{{", b'"a"', b":", b'"2024'):
        assert matcher.accept_bytes(piece)
        row = structgen.allocate_bitmask(1, WORDS.size)
        matcher.fill_bitmask(row)
        out.append(bytes(row))
    return out

assert masks(compiler) == masks(structgen.Compiler(vocabulary(WORDS), limits=structgen.Limits(None, None)))
{after_all}
os._exit(0)
"""

COMPILE = "call = lambda: compiler.json_schema(FORMATS)"
AFTER = {"a vocabulary": 0.6}  # seconds before the signal; Python itself takes most of the first second
CASES = {
    "compile": (COMPILE, ""),
    "compile of many patterns": (
        'schema = {"patternProperties": {f"^k{i}x": {"minimum": i} for i in range(2000)}}\n'
        "call = lambda: compiler.json_schema(schema)",
        "",
    ),
    "accept": (
        'matcher = compiler.json_schema({"properties": {"a": FORMATS}, "type": "object"}).matcher()\n'
        "call = lambda: matcher.accept_bytes(b'{\"a\":')",
        "assert matcher.num_steps == 0",
    ),
    "mask": (
        'matcher = compiler.json_schema({"properties": {"a": FORMATS}, "type": "object"}).matcher()\n'
        "call = lambda: matcher.fill_bitmask(mask)",
        "assert not mask[0].any() and matcher.num_steps == 0",
    ),
    "batch": (
        'schema = {"properties": {"a": FORMATS}, "type": "object"}\n'
        "endless = structgen.Limits(None, None)\n"
        "compilers = [structgen.Compiler(vocabulary(WORDS), limits=endless) for _ in range(3)]\n"
        "matchers = [c.json_schema(schema).matcher() for c in compilers]\n"
        "call = lambda: structgen.fill_bitmasks(matchers, mask, threads=3)",
        "assert not mask[:3].any()",
    ),
    "completion": (
        'schema = {"enum": [f"v{i}" for i in range(3000)]}\n'
        'schema = {"type": "array", "items": schema, "uniqueItems": True, "minItems": 2990}\n'
        'matcher = compiler.json_schema(schema).matcher()\nassert matcher.accept_bytes(b"[")\n'
        "call = matcher.shortest_completion",
        "assert matcher.accept_bytes(b'\"v1\"')",
    ),
    "a lock that another thread holds": (
        "os.cpu_count = lambda: 1\n"
        'matcher = compiler.json_schema({"properties": {"a": FORMATS}, "type": "object"}).matcher()\n'
        "other = matcher.fork()\nclock = time.monotonic  # this thread only waits\n"
        "threading.Thread(target=lambda: other.fill_bitmask(mask), daemon=True).start()\n"
        "time.sleep(0.1)\n"
        "call = lambda: matcher.fill_bitmask(mask, row=1)",
        "",
    ),
    "Lark": (
        'text = "start: " + " | ".join(f"T{i} start" for i in range(20000)) + " | \\n"\n'
        'text += "".join(f"T{i}: /a{i}[b-f]*/\\n" for i in range(20000))\n'
        "call = lambda: compiler.lark(text)",
        "",
    ),
    "GBNF": (
        'text = "root ::= " + " | ".join(f"r{i}" for i in range(60000)) + "\\n"\n'
        'text += "".join(f\'r{i} ::= \\"a{i}\\" r{(i * 7 + 1) % 60000}?\\n\' for i in range(60000))\n'
        "call = lambda: compiler.gbnf(text)",
        "",
    ),
    "structural tags": (
        'number = {"type": "json_schema", "json_schema": {"type": "integer"}}\n'
        'tags = [{"type": "tag", "begin": f"<f{i}>", "content": number, "end": ""} for i in range(40000)]\n'
        'form = {"type": "triggered_tags", "triggers": ["<f"], "tags": tags}\n'
        'call = lambda: compiler.structural_tag({"type": "structural_tag", "format": form})',
        "",
    ),
    "regex": (
        "pattern = '|'.join(f'a{i}[b-f]*x{{{i % 9},9}}' for i in range(400_000))\n"
        "call = lambda: compiler.regex(pattern).matcher().fill_bitmask(mask)",
        "",
    ),
    "mask within a budget": (
        'schema = {"properties": {"a": FORMATS}, "type": "object"}\n'
        "matcher = compiler.json_schema(schema).matcher(max_tokens=40)\n"
        "call = lambda: matcher.fill_bitmask(mask)",
        "assert matcher.num_steps == 0",
    ),
    "tokens needed": (
        'schema = {"type": "array", "items": {"type": "object", "minProperties": 12}, "uniqueItems": True}\n'
        "grammar = compiler.json_schema(schema)\n"
        "twelve = ','.join(f'\"{name}\":true' for name in 'abcdefghijkl')\n"
        "matcher = grammar.infill('[{' + twelve + '},{\"a', '}]').matcher()\n"
        "call = matcher.tokens_needed",
        "assert matcher.accept_bytes(b'1\":1')",
    ),
    "infill": (
        'grammar = compiler.json_schema({"type": "array", "items": {"type": ["integer", "string"]}})\n'
        "behind = ',' + '12,\"ab\",' * 60000 + '1]'\n"
        "call = lambda: grammar.infill('[1,', behind)",
        "assert grammar.infill('[1,', ',2]').matcher().accept_bytes(b'3')",
    ),
    "can complete": (
        'grammar = compiler.json_schema({"type": "array", "items": {"type": ["integer", "string"]}})\n'
        "parts = ['[1,', structgen.Gap(), ',' + '12,\"ab\",' * 60000 + '1]']\n"
        "call = lambda: grammar.can_complete(parts)",
        "assert grammar.can_complete(['[1,', structgen.Gap(), ']'])",
    ),
    "canvas": (
        'schema = {"type": "array", "items": {"type": "object"}, "uniqueItems": True}\n'
        'canvas = compiler.json_schema(schema).canvas(400, prefix=\'[{"a":true,"b":1},\')\n'
        "def call():\n"
        "    for slot in range(399, -1, -1):\n"
        "        canvas.fill_bitmask(mask, slot)",
        "assert len(canvas.masked) == 400",
    ),
    "sample": (
        'schema = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}\n'
        'structgen.sample(None, "x", schema, n=1, max_tokens=20)\n'
        'call = lambda: structgen.sample(None, "x", schema, n=3000, max_tokens=60)',
        'assert structgen.sample(None, "x", schema, n=1, max_tokens=20)',
    ),
    "search": (
        'schema = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}\n'
        'structgen.sample(None, "x", schema, n=1, max_tokens=20)\n'
        'call = lambda: structgen.search(None, "x", schema, n=3000, max_tokens=60)',
        'assert structgen.search(None, "x", schema, n=1, max_tokens=20, forwards=5) is not None',
    ),
    "generate": (
        'schema = {"type": "array", "items": {"type": "string"}, "minItems": 300}\n'
        'structgen.generate(None, "x", {"type": "null"})\n'
        'call = lambda: structgen.generate(None, "x", schema, max_tokens=3000)',
        'assert structgen.generate(None, "x", {"type": "null"}) is not None',
    ),
    "a vocabulary": (
        "tokens = [b'%08x' % (i * 2654435761 % 2**32) for i in range(6_000_000)]\n"
        "tokens += [bytes([b]) for b in range(256)]\n"
        "call = lambda: structgen.Vocabulary.from_bytes([*tokens, b''], eos_token_ids=[len(tokens)])",
        "",
    ),
    "a thread with a larger stack": (COMPILE, ""),
    "Python on a thread with a larger stack": (
        "def work():\n    while True:\n        pass\ncall = lambda: structgen._core.with_stack(work)",
        "",
    ),
}


def run(
    setup: str, after: float, after_all: str = "", stack: int | None = None
) -> subprocess.CompletedProcess[str]:
    script = SCRIPT.format(setup=setup, after=after, after_all=after_all)
    command = [sys.executable, "-c", script]
    if stack is not None:
        command = ["bash", "-c", f'ulimit -s {stack} && exec "$@"', "bash", *command]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    return subprocess.run(command, capture_output=True, text=True, timeout=60, cwd=ROOT, env=environment)
