"""Hostile schemas by the thousand: refused, walked to the end, or what went wrong, with the worst times.

Enters: seeds. Every seed is a schema of `tests/attack.py`, compiled and walked in a child under limits of
processor time and memory. Leaves: a table of outcomes and of worst times, an example of each finding, exit
code 1 where there is any. Cost: with ten walks each, about 100 schemas a minute.

    python -m bench.attack [--seeds 0:2000] [--walks 100] [--on-limit subset] [--vocabulary tekken]
"""

from __future__ import annotations

import argparse
import functools
import sys
from collections import Counter
from typing import Any

import structgen
from bench import data
from structgen.bench.workers import run
from tests import attack
from tests.harness import WORDS, vocabulary

LIMIT = 120.0  # seconds for one schema with its walks, before it counts as a hang
MEMORY = 4 << 30


@functools.cache
def tokens(name: str) -> structgen.Vocabulary:
    if name == "words":
        return vocabulary(WORDS)
    tekken = data.tekken()
    return structgen.Vocabulary.from_bytes(
        tekken.text, eos_token_ids=[tekken.eos], special_token_ids=tekken.special
    )


def setup(config: dict[str, Any]) -> dict[str, Any]:
    return {"compiler": structgen.Compiler(tokens(config["vocabulary"]), **config["options"]), **config}


def work(state: dict[str, Any], seed: int, emit: Any) -> None:
    found = attack.attack(
        state["compiler"], seed, attack.schema(seed, state["size"]), state["walks"], state["tokens"]
    )
    emit((dict(found.counts), found.worst, found.examples[:3]))


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="bench.attack", description=__doc__.split("\n")[0])
    parser.add_argument("--seeds", default="0:200", help="first:behind (default: 0:200)")
    parser.add_argument("--walks", type=int, default=10, help="texts a schema (default: 10)")
    parser.add_argument("--tokens", type=int, default=attack.TOKENS, help="tokens a text at most")
    parser.add_argument("--size", type=float, default=1.0, help="factor on the number of parts")
    parser.add_argument("--vocabulary", choices=("words", "tekken"), default="words")
    parser.add_argument("--on-limit", choices=("error", "subset"), default="subset")
    parser.add_argument("--mask", type=int, default=structgen.Limits().mask, help="units of work of a mask")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--show", type=int, default=30, help="findings shown (default: 30)")
    options = parser.parse_args(arguments)
    first, behind = map(int, options.seeds.split(":"))
    config = {
        "vocabulary": options.vocabulary,
        "size": options.size,
        "walks": options.walks,
        "tokens": options.tokens,
        "options": {"on_limit": options.on_limit, "limits": structgen.Limits(mask=options.mask)},
    }
    counts: Counter[str] = Counter()
    worst: dict[str, list[tuple[float, int]]] = {}
    examples: list[tuple[int, str]] = []
    jobs = range(first, behind)
    for seed, rows, failure in run(
        "bench.attack:setup", "bench.attack:work", config, jobs, limit=LIMIT, processes=options.jobs
    ):
        if failure is not None:
            counts[failure.kind] += 1
            examples.append((seed, f"{failure.kind} after {failure.seconds:.0f} s"))
            continue
        found, times, notes = rows[0]
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
