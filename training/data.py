"""The data generator: (prompt, schema, answer) triples, the same for the same seed.

Enters: a split ("train" or "test"), a seed, and how often each task is wanted.
Leaves: a stream of `Example`s.  Cost: about 20,000 examples a second per core.

    python -m training.data --split test --count 5
"""

from __future__ import annotations

import argparse
import hashlib
import json
import random
from collections.abc import Callable, Iterator

from training.tasks import keyed, plain, records, things, tools
from training.tasks.domains import DOMAINS
from training.tasks.example import Example

Writer = Callable[[random.Random, str], Example]


def _writer_of(domain: str) -> Writer:
    return lambda rng, split: records.write(rng, split, domain)


WRITERS: dict[str, Writer] = {
    **{name: _writer_of(name) for name in DOMAINS},
    "keyed": keyed.write,
    "tools": tools.write,
    "sql": plain.sql,
    "arithmetic": plain.arithmetic,
    "copy": keyed.copies,
    "things": things.write,
    "pairs": things.pairs,
}
# Orders are what a visitor tries first; copying is a stepping stone, not a task of its own.
WEIGHTS: dict[str, float] = {
    **dict.fromkeys(WRITERS, 1.0),
    "orders": 1.8,
    "events": 1.4,
    "copy": 0.3,
    "things": 3.5,
    "pairs": 0.3,
    "invoices": 1.8,
    "bugs": 1.3,
    "addresses": 1.2,
    "tools": 2.2,
    "keyed": 2.2,
    "sql": 0.8,
    "arithmetic": 0.7,
    "dates": 0.8,
}
# Training has more: copying, a stepping stone, and things and pairs, which have no test sentences.
TRAINING_ONLY = ("copy", "things", "pairs")
TASKS: tuple[str, ...] = tuple(n for n in WRITERS if n not in TRAINING_ONLY)
EXTRACTION: tuple[str, ...] = (*DOMAINS, "keyed")


def example(split: str, seed: int, index: int, weights: dict[str, float] | None = None) -> Example:
    """Example number `index` of a seed; it does not depend on the ones before."""
    digest = hashlib.sha1(f"{split}/{seed}/{index}".encode()).digest()
    rng = random.Random(int.from_bytes(digest[:8], "big"))
    chosen = WEIGHTS if weights is None else weights
    if split == "test" and weights is None:
        chosen = {name: weight for name, weight in WEIGHTS.items() if name not in TRAINING_ONLY}
    task = rng.choices(list(chosen), list(chosen.values()))[0]
    return WRITERS[task](rng, split)


def examples(
    split: str, seed: int, start: int = 0, weights: dict[str, float] | None = None
) -> Iterator[Example]:
    index = start
    while True:
        yield example(split, seed, index, weights)
        index += 1


def main() -> None:
    parser = argparse.ArgumentParser(description="print generated examples, one JSON object a line")
    parser.add_argument("--split", choices=("train", "test"), default="train")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=10)
    parser.add_argument("--task", choices=sorted(WRITERS))
    asked = parser.parse_args()
    weights = None if asked.task is None else {asked.task: 1.0}
    for index in range(asked.count):
        one = example(asked.split, asked.seed, index, weights)
        print(
            json.dumps(
                {"task": one.task, "prompt": one.text, "schema": one.schema, "answer": one.answer},
                ensure_ascii=False,
            )
        )


if __name__ == "__main__":
    main()
