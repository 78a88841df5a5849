"""Processor time of hostile inputs, `oracles/hostile.py` and `explosions.py`, against bars.

The tests bound the work generously, so that a busy machine does not fail them. Here each input has to end
within 2 seconds of processor time, and within 1 where its cells would explode. Leaves: the slowest inputs
and exit code 1 where one is over its bar. Cost: ten seconds on an idle machine.

    python -m bench.hostile [--bar 1.5] [--show 20]
"""

from __future__ import annotations

import argparse
import sys
from typing import Any

from structgen.maskbench.workers import run

HOSTILE, EXPLODING = 2.0, 1.0  # seconds of processor time
_LIMIT = 600.0


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="bench.hostile", description=__doc__.split("\n")[0])
    parser.add_argument("--bar", type=float, default=1.0, help="the bars are multiplied by this (default: 1)")
    parser.add_argument("--show", type=int, default=10, help="inputs shown (default: 10)")
    options = parser.parse_args(arguments)
    from oracles import explosions, hostile

    parts: tuple[tuple[str, list[Any], float], ...] = (
        ("oracles.hostile", list(hostile.CASES), HOSTILE),
        ("oracles.explosions", list(explosions.LARGE), EXPLODING),
    )
    found = []
    for module, jobs, bar in parts:
        for job, rows, failure in run("oracles.hostile:setup", f"{module}:work", {}, jobs, limit=_LIMIT):
            name = job if isinstance(job, str) else ": ".join(job)
            seconds = rows[0]["seconds"] if failure is None else failure.seconds
            ended = rows[0]["outcome"] if failure is None else failure.kind
            over = failure is not None or seconds > bar * options.bar
            found.append((over, seconds, name, ended))
    for over, seconds, name, ended in sorted(found, reverse=True)[: options.show]:
        print(f"{seconds:8.3f} s  {'OVER ' if over else ''}{name} ({ended})")
    late = sum(over for over, *_ in found)
    print(f"{len(found)} inputs, {late} over their bar")
    return int(late > 0)


if __name__ == "__main__":
    sys.exit(main())
