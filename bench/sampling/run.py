"""Distance to the target and cost, method by method.

    python -m bench.sampling.run --out build/sampling.jsonl            # a few minutes on one core
    python -m bench.sampling.run --report build/sampling.jsonl

Enters: tasks (GAD grammars, a JSON request, a table). Leaves: a JSON record for every (task, method, n,
seed): KL of the weighted empirical law to the target, forwards, constraint evaluations, seconds, effective
sample size.

KL is sum q log(q / P_L) over token strings; P_L(s) = P(s)/Z needs Z, which a long run brackets first: the
width of the bracket is in the record. It is a plug-in estimate, so even true draws do not reach 0: `floor`
is n draws from the target itself (CARS over the converged trie). Every method starts with nothing known.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from bench.sampling import references, tasks
from structgen.sampling import Predicate, Samples, SmcOptions, sample
from structgen.sampling.chance import Seeds
from structgen.sampling.logspace import effective_size

COUNTS = (3, 10, 30, 100)
RULES = {"toy": b"de", "BV4/find_inv_bvsge_bvnot_4bit": b"bvs"}  # what no text may contain
OURS = ("local", "importance", "asap", "cars", "mcmc", "smc")
THEIRS = ("reference-asap", "genlm-awrs", "genlm-awrs-smc")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", help="write records here (default: standard output)")
    parser.add_argument("--report", help="read records and print the tables")
    parser.add_argument("--table", help="read records and print the table of docs/sampling.md")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--full", action="store_true", help="GAD grammars uncut, through Compiler.gbnf")
    parser.add_argument("--tasks", nargs="*", default=["toy", "json", *tasks.NAMES])
    options = parser.parse_args()
    if options.report:
        with open(options.report, encoding="utf-8") as stream:
            report([json.loads(line) for line in stream])
        return
    if options.table:
        with open(options.table, encoding="utf-8") as stream:
            table([json.loads(line) for line in stream])
        return
    with open(options.out, "w", encoding="utf-8") if options.out else sys.stdout as out:
        for name in options.tasks:
            for record in measure(load(name, options.full), options.seeds):
                print(json.dumps(record), file=out, flush=True)


def load(name: str, full: bool = False) -> tasks.Task:
    if name == "toy":
        return tasks.toy()
    return tasks.json_task() if name == "json" else tasks.gad(name, depth=None if full else 1)


def call(task: tasks.Task, method: str, n: int, seed: int, **how: Any) -> Samples:
    return sample(
        task.lm, task.prompt, task.grammar, method=method, n=n, seed=seed, max_tokens=task.max_tokens,
        budget="reject", format="plain", **how,
    )  # fmt: skip


def measure(task: tasks.Task, seeds: int) -> Iterator[dict[str, Any]]:
    """All records of one task."""
    long = call(task, "asap", 4000, 12345, until_tv=0.002)
    assert long.log_bracket is not None
    low, high = long.log_bracket
    known = {"task": task.name, "log_z": (low + high) / 2, "width": high - low}
    exact = high - low < 0.1
    for seed in range(seeds):
        for n in COUNTS:
            if exact:
                begun = time.perf_counter()
                found = call(task, "cars", n, 1000 + seed, trie=long.trie)
                yield {**known, **ours(found, "floor", n, seed, known, time.perf_counter() - begun)}
            for method in OURS:
                begun = time.perf_counter()
                how: dict[str, Any] = {"max_trials": 20 * n + 200} if method == "cars" else {}
                if method == "smc":
                    how["smc_options"] = SmcOptions(ess_threshold=0.5)
                found = call(task, method, n, seed, **how)
                yield {**known, **ours(found, method, n, seed, known, time.perf_counter() - begun)}
        yield from theirs(task, known, seed, seeds)
        if task.name in RULES and seed < (seeds + 1) // 2:
            yield from residual(task, known, seed)


def ours(
    found: Samples, method: str, n: int, seed: int, known: dict[str, Any], seconds: float
) -> dict[str, Any]:
    about = found.diagnostics
    weights = np.zeros(len(found)) if method in ("local", "asap-plain") else found.log_weights
    draws = [(tuple(s.tokens), float(w), s.logprob) for s, w in zip(found, weights, strict=True)]
    tokens = about.positions + about.saved
    return {
        "method": method, "n": n, "seed": seed, "kl": kl(draws, known["log_z"]), "forwards": about.positions,
        "distinct": about.positions, "evaluations": about.masks + about.tests, "tokens": tokens,
        "seconds": seconds, "got": len(found), "ess": effective_size(found.log_weights) if draws else 0.0,
        "calls": about.calls,
    }  # fmt: skip


def theirs(task: tasks.Task, known: dict[str, Any], seed: int, seeds: int) -> Iterator[dict[str, Any]]:
    reference, stream = references.ReferenceAsap(task), Seeds(seed)
    cost = reference.cost
    for i in range(max(COUNTS)):
        reference.draw(stream.stream(0, i).choose)
        if i + 1 in COUNTS:
            # Its own law is the plain empirical one; the weights are ours to know.
            draws = [(s, 0.0, logp(task, s)) for s, _ in cost.draws]
            yield {**known, **record(task, cost, "reference-asap", i + 1, seed, draws, known)}
    if seed >= (seeds + 1) // 2:
        return
    for n in COUNTS:
        for name, threshold in (("genlm-awrs", 0.0), ("genlm-awrs-smc", 0.5)):
            found = references.awrs(task, n, threshold, seed)
            draws = [(s, w, logp(task, s)) for s, w in found.draws if w > -math.inf]
            yield {**known, **record(task, found, name, n, seed, draws, known)}


def residual(task: tasks.Task, known: dict[str, Any], seed: int) -> Iterator[dict[str, Any]]:
    """A condition on top of the grammar: only it is asked here, all of it in the reference."""
    word, n = RULES[task.name], max(COUNTS)
    rule = Predicate(lambda t: word not in t, at="token", monotone=True, takes="bytes")
    begun = time.perf_counter()
    found = call(task, "awrs", n, seed, potential=rule)
    # KL would need the Z of the smaller language.
    made = ours(found, "smc+condition", n, seed, known, time.perf_counter() - begun)
    yield {**known, **made, "kl": None}
    cost = references.awrs(task, n, 0.5, seed, lambda t: word not in t)
    draws = [(s, w, logp(task, s)) for s, w in cost.draws if w > -math.inf]
    yield {**known, **record(task, cost, "genlm+condition", n, seed, draws, known), "kl": None}


def record(
    task: tasks.Task, cost: references.Cost, method: str, n: int, seed: int, draws: Any, known: dict[str, Any]
) -> dict[str, Any]:
    return {
        "method": method, "n": n, "seed": seed, "kl": kl(draws, known["log_z"]), "forwards": cost.forwards,
        "distinct": cost.distinct or cost.forwards, "evaluations": cost.evaluations, "tokens": cost.tokens,
        "seconds": cost.seconds, "got": len(draws),
        "ess": effective_size([w for _, w in cost.draws]) if cost.draws else 0.0, "calls": cost.forwards,
    }  # fmt: skip


_known_logp: dict[tuple[int, tuple[int, ...]], float] = {}


def logp(task: tasks.Task, tokens: tuple[int, ...]) -> float:
    """log P of a token string; what it costs is counted to nobody."""
    key = (id(task.lm), tokens)
    if key not in _known_logp:
        at, total = task.lm.start(task.prompt), 0.0
        for token in tokens:
            total += float(task.lm.logprobs([at])[0][token])
            at = at.extend(token)
        _known_logp[key] = total
    return _known_logp[key]


def kl(draws: Iterable[tuple[tuple[int, ...], float, float]], log_z: float) -> float | None:
    """KL of the weighted empirical law of (text, log weight, log P) to P / Z; None without draws."""
    found = list(draws)
    if not found:
        return None
    weights = np.array([w for _, w, _ in found])
    weights = np.exp(weights - weights.max())
    weights /= weights.sum()
    mass: dict[tuple[int, ...], float] = defaultdict(float)
    for (text, _, _), w in zip(found, weights, strict=True):
        mass[text] += float(w)
    where = {text: p for text, _, p in found}
    return sum(q * (math.log(q) - (where[t] - log_z)) for t, q in mass.items() if q > 0)


def report(records: list[dict[str, Any]]) -> None:
    """Means over seeds: KL by n; then the cost of an effective sample at the largest n."""
    by = defaultdict(list)
    for r in records:
        by[r["task"], r["method"], r["n"]].append(r)
    methods = ["floor", *OURS, *THEIRS, "smc+condition", "genlm+condition"]
    for task in dict.fromkeys(r["task"] for r in records):
        first = next(r for r in records if r["task"] == task)
        print(f"\n{task}: log Z {first['log_z']:.3f}, bracket {first['width']:.4f} wide")
        print(f"{'method':16}" + "".join(f"{'KL n=' + str(n):>11}" for n in COUNTS)
              + f"{'got':>6}{'ess':>7}{'fwd':>8}{'fwd/ess':>9}{'eval/tok':>9}{'s/ess':>8}")  # fmt: skip
        for method in methods:
            rows = [by.get((task, method, n), []) for n in COUNTS]
            if not rows[-1]:
                continue
            cells = ""
            for group in rows:
                kls = [r["kl"] for r in group if r["kl"] is not None]
                cells += f"{np.mean(kls):11.3f}" if kls else f"{'-':>11}"
            last = rows[-1]
            mean = {k: float(np.mean([r[k] for r in last]))
                    for k in ("got", "ess", "forwards", "evaluations", "tokens", "seconds")}  # fmt: skip
            ess = max(mean["ess"], 1e-9)
            print(f"{method:16}{cells}{mean['got']:6.0f}{mean['ess']:7.1f}{mean['forwards']:8.0f}"
                  f"{mean['forwards'] / ess:9.2f}{mean['evaluations'] / max(1, mean['tokens']):9.3f}"
                  f"{mean['seconds'] / ess:8.3f}")  # fmt: skip


def table(records: list[dict[str, Any]]) -> None:
    """Forwards an effective draw, then constraint evaluations a token, at the largest n; Markdown."""
    by = defaultdict(list)
    for r in records:
        if r["n"] == max(COUNTS):
            by[r["task"], r["method"]].append(r)

    def mean(task: str, method: str, key: str) -> float:
        return float(np.mean([r[key] for r in by[task, method]])) if by[task, method] else math.nan

    def share(task: str, method: str, top: str, bottom: str) -> str:
        value = mean(task, method, top) / max(1e-9, mean(task, method, bottom))
        return "-" if math.isnan(value) else f"{value:,.0f}" if value >= 20 else f"{value:.2g}"

    shown = ("reference-asap", "asap", "cars", "smc", "importance", "genlm-awrs-smc")
    print("| forwards an effective draw | " + " | ".join(shown) + " |")
    print("|---|" + "---|" * len(shown))
    found = list(dict.fromkeys(r["task"] for r in records))
    for task in found:
        print(f"| {task} | " + " | ".join(share(task, m, "forwards", "ess") for m in shown) + " |")
    shown = ("asap", "cars", "smc", "genlm-awrs", "genlm-awrs-smc", "smc+condition", "genlm+condition")
    print("\n| constraint evaluations a token | " + " | ".join(shown) + " |")
    print("|---|" + "---|" * len(shown))
    for task in found:
        print(f"| {task} | " + " | ".join(share(task, m, "evaluations", "tokens") for m in shown) + " |")


if __name__ == "__main__":
    main()
