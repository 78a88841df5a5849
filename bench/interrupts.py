"""Presses Ctrl-C in every long call, and measures the time until the call ends, and the time in which other
Python threads stand still.

Input: the cases of `oracles/interrupts.py`. A child runs each case, sends itself SIGINT after some seconds,
and checks that the objects then answer like those of a new engine. Output: a table in milliseconds (CPU time
of the process from the signal on; clock time if the call only waits). The exit status is 1 if a call exceeds
the tests' limit or leaves an unusable object. Time: about two seconds per row and time.

python -m bench.interrupts [--after 0.1,0.3] [--case NAME ...]
"""

from __future__ import annotations

import argparse
import sys

from oracles.interrupts import AFTER, ALLOWED, CASES, MORE, run


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="bench.interrupts", description=__doc__.split("\n")[0])
    parser.add_argument("--after", default="0.1,0.2,0.4", help="seconds until the signal; several: each")
    parser.add_argument("--case", action="append", choices=list(CASES), help="these alone")
    options = parser.parse_args(arguments)
    times = [float(each) for each in options.after.split(",")]
    failed = 0
    print("  ends after  other threads wait  signals  (worst, ms)")
    for name in options.case or CASES:
        setup, after_all = CASES[name]
        ended: list[float] = []
        stood: list[float] = []
        for after in times:
            stack = 2048 if "larger stack" in name else None
            done = run(setup, AFTER.get(name, 0.0) + after, after_all, stack=stack)
            if done.returncode == 0:
                late, gap = map(float, done.stdout.split())
                ended.append(late)
                stood.append(gap)
            # if a call ended before the signal, there is no finding
            elif "not interrupted" not in done.stderr:
                failed += 1
                print(f"{name}: {done.stderr.strip()[-300:]}")
        if not ended:
            failed += 1
            print(f"{name}: never under way at the signal")
            continue
        failed += max(ended) > MORE.get(name, ALLOWED)
        print(f"{1000 * max(ended):12.1f} {1000 * max(stood):19.1f} {len(ended):8}  {name}", flush=True)
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
