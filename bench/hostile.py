"""Measures the processor time of the hostile inputs of `oracles/hostile.py`, and compares each with its
limit.

The tests bound the work generously, so that a busy machine does not fail them. Here the limits are tight.
Leaves: the slowest inputs; the exit code is 1 if an input exceeds its limit. Cost: ten seconds on an idle
machine.

    python -m bench.hostile [--bar 1.5] [--show 20]
"""

from __future__ import annotations

import argparse
import sys

from structgen.maskbench.workers import run

_LIMIT = 600.0


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="bench.hostile", description=__doc__.split("\n")[0])
    parser.add_argument("--bar", type=float, default=1.0, help="the bars are multiplied by this (default: 1)")
    parser.add_argument("--show", type=int, default=10, help="inputs shown (default: 10)")
    options = parser.parse_args(arguments)
    from oracles.hostile import CASES

    found = []
    setup, work = "oracles.hostile:setup", "oracles.hostile:work"
    for job, rows, failure in run(setup, work, {}, list(CASES), limit=_LIMIT):
        seconds = rows[0]["seconds"] if failure is None else failure.seconds
        ended = rows[0]["outcome"] if failure is None else failure.kind
        over = failure is not None or seconds > CASES[job].seconds * options.bar
        found.append((over, seconds, ": ".join(job), ended))
    for over, seconds, name, ended in sorted(found, reverse=True)[: options.show]:
        print(f"{seconds:8.3f} s  {'OVER ' if over else ''}{name} ({ended})")
    late = sum(over for over, *_ in found)
    print(f"{len(found)} inputs, {late} over their bar")
    return int(late > 0)


if __name__ == "__main__":
    sys.exit(main())
