"""Measures how much of ASAp's cost comes from its missing cache, and how much from the method.

    python -m bench.sampling.caching [--n 100] [--tasks json toy ...]
    python -m bench.sampling.caching --drafts [--n 100]

Enters: tasks of `oracles.tasks` whose Z is known or bracketed. Leaves: a table, for n draws of each:
the forwards of ASAp as published (one for every token), the same with a cache of prefixes (the distinct
prefixes among them), structgen's ASAp (one walk at a time) and CARS (in batches); and the distance to the
target (KL, nats) of ASAp's plain draws, of the same draws with their weights, and of CARS's. The two ASAp's
draw the same texts from the same random numbers. Cost: a minute a task.

The step from the first column to the second is caching alone. The third column differs from the second only
in the vectors that are fetched ahead. The gain of weights and exact rejection shows in the distances and
costs no forward pass.

With --drafts: a table of forward passes per text. One column is plain decoding with local masks (one forward
pass per token, another law). The other columns are exact draws of CARS, one walk at a time, without drafts
and with drafts (`sg.sample(guess=)`). A cell has the forward passes, and behind a stroke the prefixes that
they computed. The texts are the same in each column of CARS.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

from bench.sampling import references, run
from oracles import data, tasks
from structgen.sampling.chance import Seeds
from structgen.speculation import Speculation, standard_drafters
from structgen.speculation.drafters import PromptLookup, TokenRecycling

TASKS = ("toy", "json", *tasks.NAMES)


def counted(lm: Any, asked: set[tuple[int, ...]]) -> Callable[[Any], Any]:
    """Returns the model's `logprobs`, which also records the prefixes of its calls."""
    honest = lm.logprobs

    def logprobs(contexts: Any) -> Any:
        asked.update(tuple(context.tokens) for context in contexts)
        return honest(contexts)

    return logprobs


def row(name: str, n: int, limit: float) -> str:
    bench = run.Bench(run.load(name), 1, limit)
    reference, stream = references.ReferenceAsap(bench.task), Seeds(0)
    asked: set[tuple[int, ...]] = set()
    bench.task.lm.logprobs = counted(bench.task.lm, asked)
    try:
        with run.limited(limit):
            for i in range(n):
                reference.draw(stream.stream(0, i).choose)
    except run.Stopped:
        return f"{name:36} the reference took longer than {limit:.0f} s"
    finally:
        del bench.task.lm.logprobs
    cost = reference.cost
    plain = [(s, 0.0, run.logp(bench.task, s)) for s, _ in cost.draws]
    weighted = [(s, w, run.logp(bench.task, s)) for s, w in cost.draws]
    mine = run.call(bench.task, "asap", n, 0, batch=1)
    same = [tuple(s.tokens) for s in mine] == [s for s, _ in cost.draws]
    cars = run.call(bench.task, "cars", n, 0, max_trials=20 * n + 200)
    exact = run.ours(cars, "cars", bench.log_z)
    cells = [run.kl(draws, bench.log_z) for draws in (plain, weighted)]
    distances = " ".join(f"{'-' if k is None else format(k, '.3f'):>7}" for k in (*cells, exact["kl"]))
    return (
        f"{name:36} {cost.forwards:8} {len(asked):7} {mine.diagnostics.positions:7} "
        f"{cars.diagnostics.positions:7} {len(cars):5}  {distances}  {'yes' if same else 'no'}"
    )


DRAFTS: dict[str, Callable[[], Any]] = {
    "cars": lambda: None,
    "lookup": lambda: Speculation([PromptLookup()], nodes=8),
    "recycling": lambda: Speculation([TokenRecycling()], nodes=8),
    "five, 8": lambda: Speculation(standard_drafters(), nodes=8),
    "five, 32": lambda: Speculation(standard_drafters(), nodes=32),
}


def drafted_row(name: str, n: int) -> str:
    task = run.load(name)
    plain = run.call(task, "local", n, 0, batch=1)
    cells = [f"{sum(len(s.tokens) for s in plain) / n:7.1f}"]
    texts: list[list[int]] | None = None
    for make in DRAFTS.values():
        found = run.call(task, "cars", n, 0, batch=1, max_trials=50 * n + 500, guess=make())
        drawn = [s.tokens for s in found]
        if texts not in (None, drawn):
            raise AssertionError("a draft changed the texts")
        texts = drawn
        spent, got = found.diagnostics, len(found)
        cells.append(f"{spent.calls / got:6.2f} / {spent.positions / got:6.1f}" if got else "-")
    return f"{name:36} {len(texts or []):4} {' '.join(f'{cell:>17}' for cell in cells)}"


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="bench.sampling.caching", description=__doc__.split("\n")[0])
    parser.add_argument("--n", type=int, default=100)
    parser.add_argument("--limit", type=float, default=60.0, help="seconds of the reference (default: 60)")
    parser.add_argument("--tasks", nargs="*", default=TASKS)
    parser.add_argument(
        "--drafts", action="store_true", help="forwards an exact draw, with drafts and without"
    )
    options = parser.parse_args(arguments)
    if any(name not in ("toy", "json") for name in options.tasks):
        data.require("gad")
    if options.drafts:
        print(f"{'task':36}  got {' '.join(f'{head:>17}' for head in ('plain', *DRAFTS))}")
        for name in options.tasks:
            print(drafted_row(name, options.n), flush=True)
        return
    print(f"{options.n} draws{'':27} forwards                             KL to the target")
    print(f"{'task':36} asap      +cache    ours    cars (got)  asap    +weights  cars  same texts")
    for name in options.tasks:
        print(row(name, options.n, options.limit), flush=True)


if __name__ == "__main__":
    main()
