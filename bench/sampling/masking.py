"""Measures how masking token by token changes a model's distribution, and what correcting it costs, with real
schemas and a real model.

    python -m bench.sampling.masking --count 500 --out build/masking.jsonl      # an hour on one core
    python -m bench.sampling.masking --report build/masking.jsonl

Enters: schemas of MaskBench, drawn at random with a seed, and the embedded model, which reads each schema in
its prompt. Leaves: a record for each schema, and a table. Cost: some seconds for each schema, and at most
--limit.

The figures come from n local draws s with their weights w(s) = P(s) / Q(s), the product of the local masses:

- mass lost: E_Q[-log w], the nats that masking takes from the probability of a text on the way.
- KL(Q || P_L) = log Z - E_Q[log w]: the error of the texts, where Q is the local law and P_L the model's own
  law given the schema. Z is the mean of the weights, or the largest known lower bound of all methods' runs if
  that is larger. If heavy texts were not met, Z is too small, and so is KL.
- ess: the effective share of the draws under their weights. For SMC it is at most the number of distinct
  ancestors.
- forward passes for each effective or exact text, with the trie. CARS gets 8 trials for each text.

A KL of 0 has one of two reasons: masking changed nothing, or the model prefers one text so much that the
draws met no other. The share of the most frequent text among the draws (top) tells which.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import json
import math
import time
from collections import Counter
from typing import Any

import numpy as np

import structgen as sg
from bench import records
from bench.sampling.run import Stopped, limited
from oracles import data
from structgen.errors import StructgenError
from structgen.sampling.logspace import effective_size, logsumexp

N, TOKENS, TRIALS = 32, 64, 8


def measure(schema: Any, request: str, limit: float) -> dict[str, Any]:
    """Returns the record of one schema. Each method has the whole limit for itself; without local draws there
    is no record."""
    how: dict[str, Any] = {"n": N, "seed": 1, "max_tokens": TOKENS, "batch": N}
    with limited(limit):
        local = sg.sample("embedded", request, schema, method="importance", **how)
    if not len(local):
        return {"error": "no text within the limit"}
    weights = local.log_weights
    assert local.log_bracket is not None
    found: dict[str, Any] = {
        "lost": float(-weights.mean()),
        "ess": effective_size(weights) / N,
        "top": Counter(s.text for s in local).most_common(1)[0][1] / len(local),
        "importance": local.diagnostics.positions,
    }
    log_z = max(logsumexp(weights) - math.log(local.diagnostics.draws), local.log_bracket[0])
    with contextlib.suppress(Stopped), limited(limit):
        population = sg.sample("embedded", request, schema, method="smc", **how)
        about = population.diagnostics
        found["smc"] = about.positions
        found["smc_ess"] = min([population.ess, *about.unique, N]) / N
    with contextlib.suppress(Stopped), limited(limit):
        exact = sg.sample("embedded", request, schema, method="cars", max_trials=TRIALS * N, **how)
        found |= {"cars": exact.diagnostics.positions, "trials": exact.diagnostics.draws, "exact": len(exact)}
        assert exact.log_bracket is not None
        found["low"], found["high"] = exact.log_bracket
        log_z = max(log_z, found["low"])
    return found | {"log_z": log_z, "kl": log_z + found["lost"]}


def run(count: int, limit: float, minutes: float, out: Any) -> None:
    end = time.perf_counter() + 60 * minutes
    for case in itertools.islice(data.shuffled_cases(25), count):
        begin = time.perf_counter()
        if begin > end:
            break
        try:
            record = measure(json.loads(case.schema), "Write an example.", limit)
        except Stopped:
            record = {"error": "time"}
        except (StructgenError, ValueError, RecursionError) as error:
            record = {"error": type(error).__name__}
        record |= {"name": case.name, "seconds": round(time.perf_counter() - begin, 2)}
        print(json.dumps(record), file=out, flush=True)


def report(found: list[dict[str, Any]]) -> None:
    errors = Counter(r["error"] for r in found if "error" in r)
    good = [r for r in found if "error" not in r]
    left_out = ", ".join(f"{n} {name}" for name, n in errors.most_common())
    print(f"{len(good)} schemas of {len(found)} ({left_out}); {N} draws, {TOKENS} tokens at most")
    if not good:
        return
    print(f"{'':34} {'p10':>8} {'p25':>8} {'p50':>8} {'p75':>8} {'p90':>8}   mean")

    def row(name: str, values: list[float]) -> None:
        cells = " ".join(f"{np.quantile(values, q):8.3g}" for q in (0.1, 0.25, 0.5, 0.75, 0.9))
        print(f"{name:34} {cells}  {np.mean(values):6.3g}")

    row("mass lost, nats a text", [r["lost"] for r in good])
    row("KL(local || aligned), nats", [max(0.0, r["kl"]) for r in good])
    row("share of the most frequent text", [r["top"] for r in good])
    row("effective share: weights", [r["ess"] for r in good])
    steered, tried = [r for r in good if "smc" in r], [r for r in good if "cars" in r]
    row(f"effective share: SMC ({len(steered)})", [r["smc_ess"] for r in steered])
    row(f"CARS: accepted of trials ({len(tried)})", [r["exact"] / r["trials"] for r in tried])
    row("forwards an effective text: weights", [r["importance"] / max(1.0, r["ess"] * N) for r in good])
    row("forwards an effective text: SMC", [r["smc"] / max(1.0, r["smc_ess"] * N) for r in steered])
    whole = [r for r in tried if r["exact"] == N]
    if whole:
        row(f"forwards an exact text: CARS ({len(whole)})", [r["cars"] / N for r in whole])
    row("forwards a local text", [r["importance"] / N for r in good])
    print()
    for low, high in ((0, 0.01), (0.01, 0.1), (0.1, 1), (1, 3), (3, math.inf)):
        held = [r for r in good if low <= max(0.0, r["kl"]) < high]
        fine = sum(r.get("exact") == N for r in held)
        blind = sum(r["ess"] * N < 3 for r in held)
        share = f"KL {low:>4} to {high:<4}: {len(held):4} schemas ({len(held) / len(good):4.0%})"
        print(f"{share}; CARS drew all {N}: {fine}; fewer than 3 effective draws (KL too low): {blind}")


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="bench.sampling.masking", description=__doc__.split("\n")[0])
    parser.add_argument("--count", type=int, default=500)
    parser.add_argument("--limit", type=float, default=20.0, help="seconds a schema and method (default: 20)")
    parser.add_argument("--minutes", type=float, default=1e9, help="begin no schema after so many")
    records.options(parser)
    options = parser.parse_args(arguments)
    if records.reported(options, report):
        return
    data.require("maskbench")
    with records.out(options) as out:
        run(options.count, options.limit, options.minutes, out)


if __name__ == "__main__":
    main()
