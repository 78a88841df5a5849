"""Compiles and walks thousands of hostile schemas. It counts how many are refused, walked to the end, or end
wrongly, and reports the longest times.

Enters: seeds. Every seed is a schema of `oracles/attack.py`, compiled and walked in a child process under
limits of processor time and memory. Leaves: a table of outcomes and of longest times, an example of each
finding; the exit code is 1 if there is a finding. Cost: with ten walks for each schema, about 100 schemas a
minute.

    python -m bench.attack [--seeds 0:2000] [--walks 100] [--on-limit subset] [--vocabulary tekken]
    python -m bench.attack --mask 200,500,2000,20000,200000 --kind regex
    python -m bench.attack --engine llguidance

If there are several limits for a mask, every seed is compiled under each limit, with a compiler for each. One
common compiler would know answers from a large limit, which would hide the effect of a small limit.

With --engine the same schemas go to any engine of `structgen.maskbench.engines`, through the two calls that
all engines have: a mask and accept. "structgen-serving" is structgen with a server's limits. Texts that do
not end by themselves are not judged then. A schema is counted separately if an engine reports that it does
not enforce a part of the schema.
"""

from __future__ import annotations

import argparse
import functools
import json
import random
import sys
import time
from collections import Counter
from typing import Any

import numpy as np

import structgen
from oracles import attack, data, oracle
from oracles.harness import WORDS, vocabulary
from structgen.maskbench import engines
from structgen.maskbench.engines import base
from structgen.maskbench.tokens import Tokens, of_vocabulary
from structgen.maskbench.workers import run

MEMORY = 4 << 30  # bytes that a child may use beyond its set-up
_CLOSERS = frozenset(b'"]}0123456789aelnrstu')


@functools.cache
def tokens(name: str) -> Tokens:
    return of_vocabulary(vocabulary(WORDS), name) if name == "words" else data.tekken()


def setup(config: dict[str, Any]) -> dict[str, Any]:
    known = tokens(config["vocabulary"])
    if config["engine"] is not None:
        return {**config, "engine": engines.load(config["engine"], known)}
    made = structgen.Vocabulary.from_bytes(
        known.text, eos_token_ids=[known.eos], special_token_ids=known.special
    )
    one = functools.partial(structgen.Compiler, made, on_limit=config["on_limit"])
    limits = [structgen.Limits(mask=units) for units in config["mask"]]
    if len(limits) == 1:
        shared = one(limits=limits[0])
        return {"compilers": [lambda: shared], **config}
    return {"compilers": [functools.partial(one, limits=each) for each in limits], **config}


def work(state: dict[str, Any], seed: int, emit: Any) -> None:
    kind, check, document = "json_schema", None, None
    if state["kind"] == "schema":
        document = attack.schema(seed, state["size"])
    elif state["kind"] == "regex":
        kind = "regex"
        document, judged = attack.pattern(seed)
        check = functools.partial(attack.matches, document) if judged else None
    else:
        kind, document = attack.grammar(seed)
    if state["engine"] is not None:
        known = tokens(state["vocabulary"])
        found = attack_engine(state["engine"], known, seed, document, state["walks"], state["tokens"])
        return emit((dict(found.counts), found.worst, found.examples[:3]))
    for units, compiler in zip(state["mask"], state["compilers"], strict=True):
        found = attack.attack(
            compiler(), seed, document, state["walks"], state["tokens"], kind, check, state["replay"]
        )
        examples = [f"--mask {units}: {example}" for example in found.examples[:3]]
        emit((dict(found.counts), found.worst, examples))


def attack_engine(
    engine: base.Engine, known: Tokens, seed: int, document: Any, walks: int, most: int
) -> attack.Found:
    """`attack.attack` for any engine, through the methods that every engine has."""
    found, source = attack.Found(), random.Random(seed)
    begin = time.process_time()
    try:
        grammar = engine.compile(json.dumps(document))
    except base.Refused as refused:
        found.time("compile", time.process_time() - begin)
        found.counts["refused"] += 1
        found.counts[f"refused: {str(refused)[:60]}"] += 1
        return found
    found.time("compile", time.process_time() - begin)
    found.counts["compiled"] += 1
    if grammar.unenforced:
        found.counts["compiled with a part that it says it does not enforce"] += 1
    check = attack.judge(document)
    for _ in range(walks):
        try:
            _walk(grammar.sequence(), known, source, found, check, most)
        except Exception as error:  # engines raise exceptions of their own
            found.note("error in mid-text", f"{type(error).__name__}: {' '.join(str(error).split())[:200]}")
        if found.counts["error in mid-text"]:
            break
    return found


def _walk(
    sequence: base.Sequence, known: Tokens, source: random.Random, found: attack.Found, check: Any, most: int
) -> None:
    """Walks one text. In half of the steps, tokens that close a value are preferred."""
    width = len(known.text)
    taken: list[int] = []
    for at in range(most):
        begin = time.process_time()
        sequence.fill()
        found.time("mask", time.process_time() - begin)
        if sequence.failure():
            found.note("error in mid-text", " ".join(sequence.failure().split())[:200])
            return
        allowed = np.flatnonzero(oracle.bits(sequence.row.reshape(1, -1), width))
        if not len(allowed):
            found.note("dead end", repr(b"".join(known.text[t] for t in taken)[-80:]))
            return
        ends = sequence.allows(known.eos) and (at > most // 2 or source.random() < 0.3)
        some = [int(allowed[source.randrange(len(allowed))]) for _ in range(16)]
        some = [t for t in some if t != known.eos] or [known.eos]
        texts = ((t, known.text[t]) for t in map(int, allowed[:4096]))
        closing = [t for t, text in texts if text and _CLOSERS.issuperset(text)]
        if ends:
            token = known.eos
        elif at > most // 2 and closing:
            token = min(closing[:64], key=lambda t: (known.text[t][:1] not in b'"]}', source.random()))
        else:
            token = min(some, key=lambda t: len(known.text[t])) if source.random() < 0.5 else some[0]
        begin = time.process_time()
        if sequence.accept(token) is False or sequence.failure():
            found.note("allowed token refused", repr((b"".join(known.text[t] for t in taken)[-80:], token)))
            return
        found.time("accept", time.process_time() - begin)
        if token == known.eos:
            break
        taken.append(token)
    else:
        found.counts["texts without an end"] += 1
        return
    text = b"".join(known.text[t] for t in taken)
    found.counts["texts"] += 1
    if check is not None and not check(text.decode("utf-8", "replace")):
        found.note("invalid text", repr(text[:300]))


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="bench.attack", description=__doc__.split("\n")[0])
    parser.add_argument("--seeds", default="0:200", help="first:behind (default: 0:200)")
    parser.add_argument("--kind", choices=("schema", "regex", "grammar"), default="schema")
    parser.add_argument("--walks", type=int, default=10, help="texts a schema (default: 10)")
    parser.add_argument("--tokens", type=int, default=attack.TOKENS, help="tokens a text at most")
    parser.add_argument("--size", type=float, default=1.0, help="factor on the number of parts")
    parser.add_argument("--vocabulary", choices=("words", "tekken"), default="words")
    parser.add_argument("--on-limit", choices=("error", "subset"), default="subset")
    parser.add_argument(
        "--mask", default=str(structgen.Limits().mask), help="units of work of a mask; several: each of them"
    )
    parser.add_argument(
        "--replay", action="store_true", help="another matcher of the grammar reads each text again"
    )
    parser.add_argument("--engine", help="an engine of structgen.maskbench.engines instead")
    parser.add_argument("--limit", type=float, default=120.0, help="seconds a schema and its walks may take")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--show", type=int, default=30, help="findings shown (default: 30)")
    options = parser.parse_args(arguments)
    if options.engine and options.kind != "schema":
        parser.error("--engine goes with schemas")
    first, behind = map(int, options.seeds.split(":"))
    config = {
        "vocabulary": options.vocabulary,
        "size": options.size,
        "walks": options.walks,
        "replay": options.replay,
        "engine": options.engine,
        "kind": options.kind,
        "tokens": options.tokens,
        "on_limit": options.on_limit,
        "mask": [int(units) for units in options.mask.split(",")],
    }
    counts: Counter[str] = Counter()
    worst: dict[str, list[tuple[float, int]]] = {}
    examples: list[tuple[int, str]] = []
    jobs = range(first, behind)
    for seed, rows, failure in run(
        "bench.attack:setup",
        "bench.attack:work",
        config,
        jobs,
        limit=options.limit,
        memory=MEMORY,
        processes=options.jobs,
    ):
        if failure is not None:
            counts[failure.kind] += 1
            examples.append((seed, f"{failure.kind} after {failure.seconds:.0f} s"))
            continue
        for found, times, notes in rows:
            counts.update(found)
            for what, seconds in times.items():
                worst.setdefault(what, []).append((seconds, seed))
            examples += [(seed, note) for note in notes]
    for kind, n in sorted(counts.items()):
        print(f"{n:8,}  {kind}")
    for what, rows in worst.items():
        rows.sort()
        at = {p: rows[min(len(rows) - 1, p * len(rows) // 100)][0] for p in (50, 90, 99)}
        shares = " ".join(f"p{p} {1000 * seconds:.1f}" for p, seconds in at.items())
        print(f"{what}, worst of a schema, ms: {shares} max {1000 * rows[-1][0]:.1f} (seed {rows[-1][1]})")
    for seed, note in examples[: options.show]:
        print(f"seed {seed}: {note}")
    return int(bool(examples))


if __name__ == "__main__":
    sys.exit(main())
