"""Measures the seconds of a request alone, beside well-behaved requests, and beside hostile ones.

Input: the embedded model behind a real server. Output: one row per kind of neighbour: the median and the
slowest request of one client that sends requests without a pause, its number of answers, and the memory (RSS)
of the server's process: before the load, the most during it, and three seconds after the last answer. Time:
15 s per kind.

A neighbour sends its next request as soon as it has an answer, each time with a grammar that is new to the
server:

    tame       the schemas of `examples/`, salted
    masks      a regular expression with masks of about 20 ms
    counters   nested counters: masks of up to seconds without a limit
    strings    a list of strings under twelve patterns
    compiles   conditions that use up the limit of a compile
    items      unique items of 800 values, of which the list must contain some
    bodies     random bodies (oracles/bodies.py); a third of these clients leave in the middle of the answer
               and a third read slowly

Hostile answers get no stop condition, so they draw as many tokens as the limit allows.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import random
import statistics
import sys
import time
from pathlib import Path
from typing import Any

from bench.serve import Requests, server
from oracles.bodies import Bodies, hostile

_NAMES = ("alone", "tame", "masks", "counters", "strings", "compiles", "items", "bodies")
_TOKENS = 200
_LATER = 3.0  # seconds between the last answer and the last measurement


def memory(pid: int) -> float:
    """Megabytes of resident memory of a process."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS"):
            return int(line.split()[1]) / 1024
    return 0.0


class Load:
    """The load of one kind of neighbour, and the measured client."""

    def __init__(
        self,
        address: str,
        pid: int,
        kind: str,
        count: int,
        seconds: float,
        salts: Any,
        requests: Requests,
        fresh: bool,
    ) -> None:
        self.address, self.kind, self.count, self.seconds = address, kind, count, seconds
        self.pid = pid
        self.salts, self.requests = salts, requests
        self.fresh = fresh
        self.taken: list[float] = []
        self.answers: dict[int, int] = {}
        self.peak = 0.0

    async def run(self) -> None:
        import httpx2

        limits = httpx2.Limits(max_connections=self.count + 1)
        async with httpx2.AsyncClient(timeout=600, limits=limits) as client:
            one = self.anything if self.kind == "bodies" else self.neighbour
            others = [asyncio.create_task(one(client)) for _ in range(self.count)]
            others.append(asyncio.create_task(self.watch()))
            await asyncio.sleep(2.0 if self.count else 0.0)
            until = time.perf_counter() + self.seconds
            while time.perf_counter() < until or len(self.taken) < 3:
                begin = time.perf_counter()
                status = await self.ask(client, self.tame(next(self.salts) if self.fresh else 0))
                assert status == 200, status
                self.taken.append(time.perf_counter() - begin)
            for other in others:
                other.cancel()
            await asyncio.gather(*others, return_exceptions=True)

    async def watch(self) -> None:
        while True:
            self.peak = max(self.peak, memory(self.pid))
            await asyncio.sleep(0.05)

    def tame(self, salt: int) -> dict[str, Any]:
        text, schema = self.requests.plain()
        schema = json.loads(json.dumps(schema))
        schema["description"] = f"number {salt}"
        return {"prompt": text, "guided_json": schema, "max_tokens": 256, "temperature": 0}

    async def ask(self, client: Any, body: dict[str, Any]) -> int:
        response = await client.post(f"{self.address}/completions", json=body)
        return int(response.status_code)

    async def neighbour(self, client: Any) -> None:
        while True:
            salt = next(self.salts)
            if self.kind == "tame":
                body = self.tame(salt)
            else:
                body = {
                    "prompt": "x",
                    "max_tokens": _TOKENS,
                    "temperature": 1,
                    "structgen": {"complete": False},
                }
                body |= hostile(self.kind, salt)
            status = await self.ask(client, body)
            self.answers[status] = self.answers.get(status, 0) + 1
            if status >= 400:
                await asyncio.sleep(0.05)

    async def anything(self, client: Any) -> None:
        import httpx2

        base = self.address.removesuffix("/v1")
        while True:
            salt = next(self.salts)
            asked = Bodies(salt).request()
            patience = random.Random(salt).choice([0.05, 0.5, 600.0])
            status = 0
            try:
                async with client.stream(
                    asked.method,
                    base + asked.path,
                    content=asked.body,
                    headers=asked.headers,
                    timeout=patience,
                ) as response:
                    status = response.status_code
                    async for _ in response.aiter_bytes(200):
                        if patience < 1:
                            await asyncio.sleep(patience)
                            break
                        await asyncio.sleep(0.02)
            except (httpx2.TimeoutException, httpx2.ProtocolError):
                status = status or 499
            except (httpx2.InvalidURL, httpx2.NetworkError):
                status = status or 498
            self.answers[status] = self.answers.get(status, 0) + 1


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--neighbours", default=",".join(_NAMES), help="kinds (default: all)")
    parser.add_argument("--count", type=int, default=16, help="neighbours at once (default: 16)")
    parser.add_argument("--seconds", type=float, default=12, help="of a kind (default: 12)")
    parser.add_argument(
        "--fresh", action="store_true", help="the client's own grammars are new each time, too"
    )
    options = parser.parse_args()
    requests, salts = Requests(), itertools.count(1)
    heads = f"{'neighbours':>12} {'requests':>8} {'median s':>9} {'slowest s':>9}"
    print(f"{heads} {'RSS MB':>7} {'most':>6} {'later':>6}  theirs")
    with server(None, 64) as (address, pid):
        # a first run makes everything that the server makes only once
        asyncio.run(Load(address, pid, "alone", 0, 1, salts, requests, False).run())
        for kind in options.neighbours.split(","):
            before = memory(pid)
            run = Load(
                address,
                pid,
                kind,
                0 if kind == "alone" else options.count,
                options.seconds,
                salts,
                requests,
                options.fresh,
            )
            asyncio.run(run.run())
            time.sleep(_LATER)
            theirs = ", ".join(f"{count} x {status}" for status, count in sorted(run.answers.items()))
            print(
                f"{kind:>12} {len(run.taken):8} {statistics.median(run.taken):9.3f} {max(run.taken):9.3f} "
                f"{before:7.0f} {run.peak:6.0f} {memory(pid):6.0f}  {theirs}",
                flush=True,
            )
    return 0


if __name__ == "__main__":
    sys.exit(main())
