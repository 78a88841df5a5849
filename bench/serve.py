"""The server's performance: requests per second and time per output token, with and without a constraint.

Input: the embedded model or another one, and numbers of concurrent requests. Output: a table with one row per
number. Time: minutes. Each number is measured in many short rounds, by turns with a constraint and without
one, so a machine that is busy for a while slows both.

Both sides get equal prompts, as token ids, and greedy decoding. The embedded model then writes equal tokens
with the schema and without, as the column `same` shows. Prompts differ in their first words, so no answer
finds another's cached keys. `CPU` is the CPU time of the server's process per token, without the machine's
other processes. The ratios are trimmed means over the pairs of rounds (without a tenth at each end), with a
95% bootstrap interval.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import re
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
_WARM = 24  # requests before the measurement


@dataclass(frozen=True, slots=True)
class Round:
    """One batch of requests: seconds of the clock, CPU seconds of the server, tokens, seconds per token."""

    wall: float
    cpu: float
    requests: int
    tokens: int
    each: float
    texts: list[str]


@contextmanager
def server(model: str | None, sequences: int) -> Iterator[tuple[str, int]]:
    """A server in a process of its own: its address and its process id."""
    command = [sys.executable, "-m", "structgen", "serve", *([model] if model else [])]
    command += ["--port", "0", "--sequences", str(sequences)]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, cwd=ROOT)
    assert process.stderr is not None
    try:
        for line in process.stderr:
            found = re.search(r"served at (\S+)", line)
            if found:
                break
        else:
            raise SystemExit("the server did not start")
        yield found[1], process.pid
    finally:
        process.terminate()
        process.wait(30)


def cpu_seconds(pid: int) -> float:
    """Returns the CPU time of all threads of a process so far, in nanosecond resolution (/proc/PID/stat
    counts 10 ms). The time of ended threads is lost; the server's threads live as long as the server."""
    return (
        sum(
            int(Path(task, "schedstat").read_text().split()[0])
            for task in Path(f"/proc/{pid}/task").iterdir()
        )
        / 1e9
    )


class Requests:
    """Prompts with their schemas, all different."""

    def __init__(self) -> None:
        lines = (ROOT / "examples" / "requests.jsonl").read_text().splitlines()
        self._items = []
        for line in lines:
            item = json.loads(line)
            schema = json.loads((ROOT / "examples" / item["schema"]).read_text())
            self._items.append((item["prompt"], schema))
        from structgen.lm.load import language_model

        self._lm: Any = language_model(None)
        self._count = 0

    def plain(self) -> tuple[str, Any]:
        """Returns a request in words, and its schema."""
        text, schema = self._items[self._count % len(self._items)]
        self._count += 1
        return f"No. {self._count}: {text}", schema

    def next(self) -> tuple[dict[bool, list[int]], Any]:
        """Returns the prompt's ids with a constraint and without one, and the schema."""
        from structgen.lm import embedded

        text, schema = self._items[self._count % len(self._items)]
        self._count += 1
        ids = {
            side: self._lm.encode(embedded.format_prompt(f"{word} {self._count}: {text}", schema))
            for side, word in ((True, "No."), (False, "Nr."))
        }
        return ids, schema


async def ask(address: str, pid: int, bodies: list[dict[str, Any]], at_once: int) -> Round:
    import httpx2

    limits = httpx2.Limits(max_connections=at_once, max_keepalive_connections=at_once)
    async with httpx2.AsyncClient(timeout=300, limits=limits) as client:
        waiting = list(reversed(bodies))
        seconds: list[float] = []
        tokens = 0
        texts: dict[int, str] = {}

        async def one() -> None:
            nonlocal tokens
            while waiting:
                body = waiting.pop()
                number = len(bodies) - len(waiting)
                begin = time.perf_counter()
                response = await client.post(f"{address}/completions", json=body)
                taken = time.perf_counter() - begin
                response.raise_for_status()
                answer = response.json()
                count = answer["usage"]["completion_tokens"]
                tokens += count
                seconds.append(taken / count)
                texts[number] = answer["choices"][0]["text"]

        begin, before = time.perf_counter(), cpu_seconds(pid)
        await asyncio.gather(*(one() for _ in range(at_once)))
        wall, used = time.perf_counter() - begin, cpu_seconds(pid) - before
    ordered = [texts[i] for i in sorted(texts)]
    return Round(wall, used, len(bodies), tokens, statistics.median(seconds), ordered)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--at-once", default="1,8,64", help="requests at once (default: 1,8,64)")
    parser.add_argument("--rounds", type=int, default=40, help="each with and without (default: 40)")
    parser.add_argument("--requests", type=int, default=0, help="of a round (default: by the number at once)")
    options = parser.parse_args()
    numbers = [int(n) for n in options.at_once.split(",")]
    requests = Requests()
    print(
        f"{'at once':>7} {'constraint':>10} {'requests/s':>10} {'tokens/s':>9} {'ms/token':>9} "
        f"{'CPU ms/token':>12} {'same':>6}"
    )
    with server(None, max(64, *numbers)) as (address, pid):
        for at_once in numbers:
            count = options.requests or max(4, at_once)
            rounds: dict[bool, list[Round]] = {False: [], True: []}
            same = total = 0
            warm = -(-_WARM // count)
            for number in range(options.rounds + warm):
                items = [requests.next() for _ in range(count)]
                texts = []
                for constrained in (False, True) if number % 2 else (True, False):
                    bodies = []
                    for ids, schema in items:
                        body: dict[str, Any] = {
                            "prompt": ids[constrained],
                            "temperature": 0,
                            "max_tokens": 256,
                        }
                        if constrained:
                            body["guided_json"] = schema
                        bodies.append(body)
                    done = asyncio.run(ask(address, pid, bodies, at_once))
                    texts.append(done.texts)
                    if number >= warm:  # the first requests compile the schemas and make the masks
                        rounds[constrained].append(done)
                same += sum(a == b for a, b in zip(*texts, strict=True))
                total += count
            for constrained, found in rounds.items():
                print(
                    f"{at_once:7} {'schema' if constrained else 'none':>10} "
                    f"{_mean(found, lambda r: r.requests / r.wall):10.1f} "
                    f"{_mean(found, lambda r: r.tokens / r.wall):9.0f} "
                    f"{_mean(found, lambda r: 1e3 * r.each):9.2f} "
                    f"{_mean(found, lambda r: 1e3 * r.cpu / r.tokens):12.3f} {same / total:6.0%}"
                )
            pairs = list(zip(rounds[True], rounds[False], strict=True))
            wall = [a.each / b.each for a, b in pairs]
            cpu = [(a.cpu / a.tokens) / (b.cpu / b.tokens) for a, b in pairs]
            print(
                f"{at_once:7} {'ratio':>10} {'':10} {'':9} {trimmed_mean(wall):9.3f} "
                f"{trimmed_mean(cpu):12.3f}        95%: {_interval(wall)} and {_interval(cpu)}",
                flush=True,
            )
    return 0


def trimmed_mean(values: list[float]) -> float:
    """Returns the geometric mean without a tenth at each end."""
    out = len(values) // 10
    return statistics.geometric_mean(sorted(values)[out : len(values) - out])


def _interval(values: list[float], draws: int = 2000) -> str:
    """Returns a 95% bootstrap interval of the trimmed mean over pairs of rounds."""
    rng = random.Random(0)
    means = sorted(trimmed_mean(rng.choices(values, k=len(values))) for _ in range(draws))
    return f"{means[int(0.025 * draws)]:.3f}-{means[int(0.975 * draws)]:.3f}"


def _mean(rounds: list[Round], value: Any) -> float:
    return statistics.median(value(r) for r in rounds)


if __name__ == "__main__":
    sys.exit(main())
