"""Measures the cost of thoughts in front of an answer: masks and steps in the thoughts, at the border, and in
the answer.

In: MaskBench schemas with a valid text (`oracles.data`). Out: a table of CPU microseconds for each token,
mask and step together (p50 p90 p99 max mean), for the first text of each grammar, and for the same text
again. The time of the clock itself, a microsecond on some machines, is subtracted. Cost: half a second for
each schema at 131k tokens.

Every row has a compiler of its own. "answer" is the schema's own grammar. The other rows are grammars that
`with_reasoning` makes of it: "thoughts" has no limit, "limit" has a limit on the tokens of thoughts, "budget"
has masks that keep room for the answer, and "both" has the two together. Behind the border, each row reads
the tokens of "answer".

    python -m bench.reasoning --count 40
"""

from __future__ import annotations

import argparse
import statistics
import time

import numpy as np

import structgen as sg
from oracles import data

THOUGHTS = "Let me see what they ask for. The record needs a name, so I look for it in the text. " * 10
LIMIT, BUDGET = 5_000, 10_000


def walk(grammar: sg.CompiledGrammar, parts: list[list[int]], budget: int | None) -> list[list[float]] | None:
    """Microseconds of each token of each part; None if the grammar refuses the text."""
    matcher = grammar.matcher()
    mask = sg.allocate_bitmask(1, grammar.vocabulary.vocab_size)
    found: list[list[float]] = []
    left = budget
    clock = statistics.median(-(time.process_time_ns() - time.process_time_ns()) for _ in range(99))
    for part in parts:
        found.append([])
        for token in part:
            began = time.process_time_ns()
            matcher.fill_bitmask(mask, 0, left)
            taken = matcher.accept_token(token)
            found[-1].append((time.process_time_ns() - began - clock) / 1e3)
            if not taken:
                return None
            left = None if left is None else left - 1
    return found


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="bench.reasoning", description=__doc__.split("\n")[0])
    parser.add_argument("--count", type=int, default=40)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)
    data.require("maskbench")
    names = data.select(data.maskbench_names(), count=options.count, seed=options.seed)
    tokens = data.tekken()
    vocabulary = sg.Vocabulary.from_bytes(
        tokens.text, eos_token_ids=[tokens.eos], special_token_ids=tokens.special
    )
    thinks = sg.Reasoning(required=True)
    limited = sg.Reasoning(required=True, max_tokens=LIMIT)
    rows: dict[str, tuple[sg.Reasoning | None, int | None]] = {
        "answer": (None, None),
        "thoughts": (thinks, None),
        "limit": (limited, None),
        "budget": (thinks, BUDGET),
        "both": (limited, BUDGET),
    }
    before, mark = vocabulary.encode("<think>" + THOUGHTS), vocabulary.encode("</think>\n\n")
    for name, (reasoning, budget) in rows.items():
        compiler = sg.Compiler(vocabulary)
        times: dict[str, list[float]] = {}
        texts = 0
        for each in names:
            case = data.maskbench_case(each)
            valid = [i.text for i in case.instances if i.valid]
            try:
                grammar = compiler.json_schema(case.schema)
            except sg.StructgenError:
                continue
            if not valid:
                continue
            answer = vocabulary.encode(valid[0])
            parts = {"answer": answer}
            if reasoning is not None:
                grammar = compiler.with_reasoning(grammar, reasoning)
                parts = {"thoughts": before, "border": mark, "answer": answer}
            for turn in ("first", "again"):
                found = walk(grammar, list(parts.values()), budget)
                for part, spent in zip(parts, found or (), strict=False):
                    times.setdefault(f"{part}, {turn}", []).extend(spent)
            texts += found is not None
        for part, spent in sorted(times.items()):
            at = " ".join(f"{q:8.2f}" for q in np.quantile(spent, [0.5, 0.9, 0.99, 1.0]))
            print(f"{name:10} {part:18} {at} {np.mean(spent):8.2f}  {len(spent):6} tokens of {texts} texts")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
