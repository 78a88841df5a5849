"""Measures whether searches find the most probable text, and with how many forward passes.

    python -m bench.sampling.searching [--tasks toy json ...] [--most 4000]

Enters: tasks of `oracles.tasks`. Leaves: for each task the log-probability of the best text that best-first
search certifies. For beams, greedy and adaptive search: by how many nats their text lies below it. For every
search: its forward passes, with a trie of its own. Cost: seconds per task.
"""

from __future__ import annotations

import argparse
from typing import Any

import structgen as sg
from bench.sampling import run
from oracles import data, tasks
from structgen.sampling import beam_search, prepare

TASKS = ("toy", "json", *tasks.NAMES)


def row(name: str, most: int) -> str:
    task = run.load(name)
    where: dict[str, Any] = {"max_tokens": task.max_tokens, "budget": "reject", "format": "plain"}

    def search(**how: Any) -> Any:
        return sg.search(task.lm, task.prompt, task.grammar, forwards=most, **where, **how)

    best = search()
    cells = []
    if not len(best) or not best[0].certified:
        return f"{name:30} nothing certified within {best.forwards} forwards"
    for how in ({"method": "adaptive", "decisive": 1e9}, {"method": "adaptive"}):
        found = search(**how)
        gap = f"{best[0].logprob - found[0].logprob:.2f}" if len(found) else "-"
        cells.append(f"{gap:>7} {found.forwards:5}")
    for width in (4, 16):
        walker = prepare(task.lm, task.prompt, task.grammar, **where)
        beams = beam_search(walker, width)
        gap = f"{best[0].logprob - beams[0].logprob:.2f}" if beams else "-"
        cells.append(f"{gap:>7} {walker.target.spent.positions:5}")
    return f"{name:30} {best[0].logprob:8.2f} {best.forwards:5}  " + "  ".join(cells)


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="bench.sampling.searching", description=__doc__.split("\n")[0])
    parser.add_argument("--most", type=int, default=4000, help="forwards of a search (default: 4000)")
    parser.add_argument("--tasks", nargs="*", default=TASKS)
    options = parser.parse_args(arguments)
    if any(name not in ("toy", "json") for name in options.tasks):
        data.require("gad")
    print(
        f"{'task':30} {'best-first':>14}  {'greedy':>13}  {'adaptive':>13}  {'beam 4':>13}  {'beam 16':>13}"
    )
    print(f"{'':30} {'log P':>8} {'fwd':>5}  " + "  ".join(f"{'below':>7} {'fwd':>5}" for _ in range(4)))
    for name in options.tasks:
        print(row(name, options.most), flush=True)


if __name__ == "__main__":
    main()
