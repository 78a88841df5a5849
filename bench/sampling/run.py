"""Measures distance to the target and cost for each sampling method.

    python -m bench.sampling.run --out build/sampling.jsonl            # ten minutes on one core
    python -m bench.sampling.run --full --out build/full.jsonl         # GAD grammars uncut
    python -m bench.sampling.run --report build/sampling.jsonl         # KL and cost by method
    python -m bench.sampling.run --bars build/sampling.jsonl           # what must be reached, and is it

Enters: tasks (GAD grammars, a JSON request, a table). Leaves: a JSON record for every (task, method, n,
seed): KL of the weighted empirical law to the target, forward passes, constraint evaluations, seconds,
effective sample size. A call that exceeds --limit seconds is stopped: its record says so, and the method does
not run with larger n.

KL is sum q log(q / P_L) over token strings; P_L(s) = P(s)/Z. If the model is an n-gram or a table and the
language is finite, Z is computed (`exact.py`). Otherwise a long run brackets Z, and KL is uncertain by half
the width of the bracket. KL is a plug-in estimate, so even true draws do not reach 0: `floor` is the KL of n
draws from the target itself. Every method starts with nothing known.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import math
import signal
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from bench.sampling import references
from oracles import data, tasks
from structgen.sampling import Predicate, Samples, SmcOptions, sample
from structgen.sampling.chance import Seeds
from structgen.sampling.logspace import effective_size
from structgen.sampling.methods import METHODS

COUNTS = (3, 10, 30, 100)
MORE = 400  # draws of the methods in the first bar
# a phrase that no text may contain, by task
RULES = {"toy": b"de", "BV4/find_inv_bvsge_bvnot_4bit+": b"bvs", "CP/CP_re_ptb_486+": b"NP"}
# Without a potential "awrs" is "smc".
OURS = tuple(name for name, row in METHODS.items() if row.name == name != "awrs")
THEIRS = ("reference-asap", "genlm-awrs", "genlm-awrs-smc")
FIRST_BAR = ("asap", "cars", "smc", "importance")
REPEATS = 10  # exact draws hold this many tokens for every distinct prefix


class Stopped(Exception):
    """A call exceeded its time."""


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--out", help="write records here (default: standard output)")
    parser.add_argument("--report", metavar="FILE", help="read records and print KL and cost by method")
    parser.add_argument("--bars", metavar="FILE", help="read records and print what the bars ask for")
    parser.add_argument(
        "--table", metavar="FILE", help="read records and print the table of docs/sampling.md"
    )
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--limit", type=int, default=60, help="seconds a call may take (default: 60)")
    parser.add_argument("--full", action="store_true", help="GAD grammars uncut, through Compiler.gbnf")
    parser.add_argument("--tasks", nargs="*")
    options = parser.parse_args(arguments)
    for name, show in (("report", report), ("bars", bars), ("table", table)):
        if getattr(options, name):
            with open(getattr(options, name), encoding="utf-8") as stream:
                show([json.loads(line) for line in stream])
            return
    chosen = options.tasks or (tasks.FULL if options.full else ("toy", "json", *tasks.NAMES))
    if any(name not in ("toy", "json") for name in chosen):
        data.require("gad")
    with open(options.out, "w", encoding="utf-8") if options.out else sys.stdout as out:
        for name in chosen:
            for record in Bench(load(name, options.full), options.seeds, options.limit).records():
                print(json.dumps(record), file=out, flush=True)


def load(name: str, full: bool = False) -> tasks.Task:
    if name == "toy":
        return tasks.toy()
    return tasks.json_task() if name == "json" else tasks.gad(name, depth=None if full else 1)


@contextlib.contextmanager
def limited(seconds: float) -> Iterator[None]:
    """Raises Stopped inside the block after the given seconds. Works only in the main thread."""

    def stop(*_: Any) -> None:
        raise Stopped

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def call(task: tasks.Task, method: str, n: int, seed: int, **how: Any) -> Samples:
    return sample(
        task.lm, task.prompt, task.grammar, method=method, n=n, seed=seed, max_tokens=task.max_tokens,
        budget="reject", format="plain", **how,
    )  # fmt: skip


class Bench:
    """All records of one task."""

    def __init__(self, task: tasks.Task, seeds: int, limit: float) -> None:
        self.task, self.seeds, self.limit = task, seeds, limit
        # calls that took too long; they are not repeated, nor run with a larger n
        self.late: set[tuple[str, int]] = set()
        cut = task.name == "toy" or task.depth is not None
        self.exact = tasks.law(task.name, task.depth or 1) if cut else None
        self.long: Samples | None = None
        self.log_z, self.width = self._normaliser()
        self.known = {"task": task.name, "log_z": self.log_z, "width": self.width}

    def _normaliser(self) -> tuple[float, float]:
        if self.exact is not None:
            return self.exact.log_z, 0.0
        trie, begun = None, time.perf_counter()
        for seed in range(40):
            self.long = call(self.task, "asap", 100, 12345 + seed, until_tv=0.002, trie=trie)
            trie = self.long.trie
            if trie.tv_bound <= 0.002 or time.perf_counter() - begun > 2 * self.limit:
                break
        assert trie is not None
        low, high = trie.bracket
        return (low + high) / 2, high - low

    def true(self, n: int, seed: int) -> list[tuple[tuple[int, ...], float]] | None:
        """n exact draws with their log P; None if the task allows no exact draws."""
        if self.exact is not None:
            random = np.random.default_rng([seed, n])
            drawn = [self.exact.draw(random) for _ in range(n)]
            return [(s, logp(self.task, s)) for s in drawn]
        assert self.long is not None
        if self.long.trie.acceptance < 0.02:
            return None
        found = call(self.task, "cars", n, 1000 + seed, trie=self.long.trie, max_trials=100 * n)
        return [(tuple(s.tokens), s.logprob) for s in found] if len(found) == n else None

    def records(self) -> Iterator[dict[str, Any]]:
        for record in self._about():
            yield {**self.known, **record}
        for seed in range(self.seeds):
            for record in self._seed(seed):
                yield {**self.known, "seed": seed, **record}

    def _about(self) -> Iterator[dict[str, Any]]:
        """Returns how often prefixes repeat in exact draws, and the error of local normalisers."""
        found = self.true(max(COUNTS), 0)
        if found is not None:
            texts = [s for s, _ in found]
            prefixes = {s[:i] for s in texts for i in range(len(s))}
            repeats = sum(map(len, texts)) / len(prefixes)
            yield {"method": "repeats", "value": repeats, "distinct": len(set(texts))}
        yield {"method": "normaliser", "value": normaliser_error(self.task)}

    def _seed(self, seed: int) -> Iterator[dict[str, Any]]:
        for n in COUNTS:
            true = self.true(n, seed)
            if true is not None:
                distance = kl([(s, 0.0, p) for s, p in true], self.log_z)
                yield {"method": "floor", "n": n, "kl": distance, "ess": n, "got": n}
            for method in OURS:
                yield from self._timed(method, n, lambda n=n, m=method: self._ours(m, n, seed))
        for method in FIRST_BAR:
            yield from self._timed(method, MORE, lambda m=method: self._ours(m, MORE, seed))
        yield from self._reference(seed)
        if seed >= (self.seeds + 1) // 2:
            return
        for n in COUNTS:
            for name, threshold in (("genlm-awrs", 0.0), ("genlm-awrs-smc", 0.5)):
                yield from self._timed(name, n, lambda n=n, m=name, t=threshold: self._awrs(m, n, t, seed))
        if self.task.name in RULES:
            word, n = RULES[self.task.name], max(COUNTS)
            yield from self._timed("smc+condition", n, lambda: self._condition(word, n, seed))
            yield from self._timed("genlm+condition", n, lambda: self._awrs("", n, 0.5, seed, word))

    def _timed(self, method: str, n: int, run: Callable[[], dict[str, Any]]) -> Iterator[dict[str, Any]]:
        if any((method, m) in self.late for m in (*COUNTS, MORE) if m <= n):
            return
        begun = time.perf_counter()
        try:
            with limited(self.limit):
                made = run()
        except Stopped:
            self.late.add((method, n))
            yield {"method": method, "n": n, "kl": None, "stopped": self.limit}
            return
        yield {"seconds": time.perf_counter() - begun, **made, "method": method, "n": n}

    def _ours(self, method: str, n: int, seed: int) -> dict[str, Any]:
        how: dict[str, Any] = {"max_trials": 20 * n + 200} if method == "cars" else {}
        if method == "smc":
            how["smc_options"] = SmcOptions(ess_threshold=0.5)
        return ours(call(self.task, method, n, seed, **how), method, self.log_z)

    def _condition(self, word: bytes, n: int, seed: int) -> dict[str, Any]:
        """Returns a condition beside the grammar. structgen asks only the condition; the reference asks
        both."""
        rule = Predicate(lambda t: word not in t, at="token", monotone=True, takes="bytes")
        found = call(self.task, "awrs", n, seed, potential=rule)
        return {**ours(found, "smc", self.log_z), "kl": None}  # KL would need Z of the smaller language

    def _awrs(self, name: str, n: int, threshold: float, seed: int, word: bytes = b"") -> dict[str, Any]:
        rule = (lambda t: word not in t) if word else None
        cost = references.awrs(self.task, n, threshold, seed, rule)
        draws = [(s, w, logp(self.task, s)) for s, w in cost.draws if w > -math.inf]
        return {**record(cost, draws, self.log_z), **({"kl": None} if word else {})}

    def _reference(self, seed: int) -> Iterator[dict[str, Any]]:
        reference, stream = references.ReferenceAsap(self.task), Seeds(seed)
        cost = reference.cost
        try:
            with limited(self.limit):
                for i in range(MORE):
                    reference.draw(stream.stream(0, i).choose)
                    if i + 1 in (*COUNTS, MORE):
                        # Its own law is the plain empirical one, so the draws count without weights.
                        draws = [(s, 0.0, logp(self.task, s)) for s, _ in cost.draws]
                        yield {"method": "reference-asap", "n": i + 1, **record(cost, draws, self.log_z)}
        except Stopped:
            yield {"method": "reference-asap", "n": MORE, "kl": None, "stopped": self.limit}


def normaliser_error(task: tasks.Task) -> float:
    """Returns the largest error of log Z(u) over 200 prefixes: the trie's value against math.fsum over a
    fresh mask."""
    found = call(task, "local", 30, 7)
    worst, seen = 0.0, 0
    for node in found.trie.nodes():
        tokens: list[int] = []
        at = node
        while at.parent is not None:
            tokens.append(at.token)
            at = at.parent
        context, matcher = task.lm.start(task.prompt), task.grammar.matcher()
        for token in reversed(tokens):
            context = context.extend(token)
        matcher.accept_tokens(tokens[::-1])
        row = task.lm.logprobs([context])[0].astype(np.float64)
        allowed = references.mask_bits(matcher, row.size)
        if len(tokens) >= task.max_tokens - 1 or not allowed.any():
            continue
        total = math.fsum(np.exp(row))
        mass = math.fsum(np.exp(row[allowed]))
        worst, seen = max(worst, abs(math.log(mass / total) - node.row.log_mass)), seen + 1
        if seen == 200:
            break
    return worst


def ours(found: Samples, method: str, log_z: float) -> dict[str, Any]:
    about = found.diagnostics
    weights = np.zeros(len(found)) if method == "local" else found.log_weights
    draws = [(tuple(s.tokens), float(w), s.logprob) for s, w in zip(found, weights, strict=True)]
    return {
        "kl": kl(draws, log_z), "forwards": about.positions, "evaluations": about.masks + about.tests,
        "tokens": about.positions + about.saved, "got": len(found),
        "ess": effective_size(found.log_weights) if draws else 0.0, "calls": about.calls,
        "unique": about.unique[-1] if about.unique else None,
    }  # fmt: skip


def record(cost: references.Cost, draws: Any, log_z: float) -> dict[str, Any]:
    return {
        "kl": kl(draws, log_z), "forwards": cost.forwards, "distinct": cost.distinct or cost.forwards,
        "evaluations": cost.evaluations, "tokens": cost.tokens, "seconds": cost.seconds, "got": len(draws),
        "ess": effective_size([w for _, w in cost.draws]) if cost.draws else 0.0, "calls": cost.forwards,
    }  # fmt: skip


_known_logp: dict[tuple[int, tuple[int, ...]], float] = {}


def logp(task: tasks.Task, tokens: tuple[int, ...]) -> float:
    """Returns log P of a token string; its cost is not counted."""
    key = (id(task.lm), tokens)
    if key not in _known_logp:
        at, total = task.lm.start(task.prompt), 0.0
        for token in tokens:
            total += float(task.lm.logprobs([at])[0][token])
            at = at.extend(token)
        _known_logp[key] = total
    return _known_logp[key]


def kl(draws: Iterable[tuple[tuple[int, ...], float, float]], log_z: float) -> float | None:
    """Returns KL of the weighted empirical law of (text, log weight, log P) to P / Z; None without draws."""
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


class Means:
    """Means over seeds of the measurements at the largest n, by task and method."""

    def __init__(self, records: list[dict[str, Any]]) -> None:
        self.by: dict[tuple[str, str, int], list[dict[str, Any]]] = defaultdict(list)
        self.about: dict[tuple[str, str], float] = {}
        self.late: dict[tuple[str, str], int] = {}
        for r in records:
            if "value" in r:
                self.about[r["task"], r["method"]] = r["value"]
            elif "stopped" in r:
                key = r["task"], r["method"]
                self.late[key] = min(r["n"], self.late.get(key, r["n"]))
            else:
                if r.get("unique") is not None:
                    # Copies of one ancestor are one draw, whatever their weights.
                    r = {**r, "ess": min(r["ess"], r["unique"])}
                self.by[r["task"], r["method"], r["n"]].append(r)
        self.tasks = list(dict.fromkeys(r["task"] for r in records))
        self.first = {task: next(r for r in records if r["task"] == task) for task in self.tasks}

    def mean(self, task: str, method: str, key: str, n: int = max(COUNTS)) -> float:
        found = [r[key] for r in self.by.get((task, method, n), []) if r.get(key) is not None]
        return float(np.mean(found)) if found else math.nan

    def share(self, task: str, method: str, top: str, bottom: str, n: int = max(COUNTS)) -> float:
        return self.mean(task, method, top, n) / max(1e-9, self.mean(task, method, bottom, n))


def report(records: list[dict[str, Any]]) -> None:
    """Prints KL by n, then the cost of an effective sample at the largest n, as means over seeds."""
    means = Means(records)
    methods = ["floor", *OURS, *THEIRS, "smc+condition", "genlm+condition"]
    for task in means.tasks:
        first = means.first[task]
        z = f"log Z {first['log_z']:.3f}"
        z += f", known to {first['width']:.4f}" if first["width"] else ", exact"
        repeats = means.about.get((task, "repeats"))
        print(f"\n{task}: {z}" + (f"; tokens a distinct prefix {repeats:.1f}" if repeats else ""))
        print(f"{'method':16}" + "".join(f"{'KL n=' + str(n):>11}" for n in COUNTS)
              + f"{'got':>6}{'ess':>7}{'fwd':>8}{'fwd/ess':>9}{'eval/tok':>9}{'s/ess':>8}")  # fmt: skip
        for method in methods:
            cells = "".join(_cell(means.mean(task, method, "kl", n), 11, ".3f") for n in COUNTS)
            if means.by.get((task, method, max(COUNTS))):
                cells += _cell(means.mean(task, method, "got"), 6, ".0f")
                cells += _cell(means.mean(task, method, "ess"), 7, ".1f")
                cells += _cell(means.mean(task, method, "forwards"), 8, ".0f")
                cells += _cell(means.share(task, method, "forwards", "ess"), 9, ".2f")
                cells += _cell(means.share(task, method, "evaluations", "tokens"), 9, ".3f")
                cells += _cell(means.share(task, method, "seconds", "ess"), 8, ".3f")
            elif (task, method) in means.late:
                cells += f"  over the limit at n = {means.late[task, method]}"
            else:
                continue
            print(f"{method:16}{cells}")


def _cell(value: float, width: int, how: str) -> str:
    return f"{'-':>{width}}" if math.isnan(value) else f"{value:{width}{how}}"


def bars(records: list[dict[str, Any]]) -> None:
    """Prints the shares of the references' cost, and whether each is small enough."""
    means = Means(records)
    most = max(COUNTS)
    print(
        "forwards per effective draw, as a share of reference ASAp's; the bar is 0.100 where prefixes repeat"
    )
    print(f"(repeats: tokens a distinct prefix in {most} true draws; {REPEATS} or more count as repeating)")
    names = "".join(f"{m:>11}" for m in FIRST_BAR)
    print(f"{'task':32}{'repeats':>8}{'n':>5}{'reference':>10}{names}  met by")
    for task in means.tasks:
        repeats = means.about.get((task, "repeats"), math.nan)
        for n in (most, MORE):
            base = means.share(task, "reference-asap", "forwards", "ess", n)
            found = {m: means.share(task, m, "forwards", "ess", n) / base for m in FIRST_BAR}
            met = ", ".join(m for m in FIRST_BAR if found[m] <= 0.1) or "none"
            asked = "" if repeats >= REPEATS else " (not asked)"
            shares = "".join(_cell(found[m], 11, ".3f") for m in FIRST_BAR)
            print(f"{task:32}{_cell(repeats, 8, '.1f')}{n:5}{_cell(base, 10, '.1f')}{shares}  {met}{asked}")
    print("\nconstraint evaluations per token, as a share of genlm-control's AWRS; the bar is 0.333")
    pairs = (("asap", "genlm-awrs"), ("cars", "genlm-awrs"), ("smc", "genlm-awrs-smc"),
             ("smc+condition", "genlm+condition"))  # fmt: skip
    print(f"{'task':32}" + "".join(f"{m:>15}" for m, _ in pairs))
    for task in means.tasks:
        cost = {m: means.share(task, m, "evaluations", "tokens") for pair in pairs for m in pair}
        print(f"{task:32}" + "".join(_cell(cost[a] / cost[b], 15, ".3f") for a, b in pairs))
    print("\nlargest error of a local log normaliser, over up to 200 prefixes; the bar is rounding")
    for task in means.tasks:
        print(f"{task:32}{means.about[task, 'normaliser']:15.1e}")


def table(records: list[dict[str, Any]]) -> None:
    """Forward passes per effective draw and constraint evaluations per token, at the largest n, in
    Markdown."""
    means = Means(records)

    def row(task: str, method: str, top: str, bottom: str) -> str:
        value = means.share(task, method, top, bottom)
        return "-" if math.isnan(value) else f"{value:,.0f}" if value >= 20 else f"{value:.2g}"

    shown = ("reference-asap", "asap", "cars", "smc", "importance", "genlm-awrs-smc")
    print("| forwards an effective draw | " + " | ".join(shown) + " |")
    print("|---|" + "---|" * len(shown))
    for task in means.tasks:
        print(f"| {task} | " + " | ".join(row(task, m, "forwards", "ess") for m in shown) + " |")
    shown = ("asap", "cars", "smc", "genlm-awrs", "genlm-awrs-smc", "smc+condition", "genlm+condition")
    print("\n| constraint evaluations a token | " + " | ".join(shown) + " |")
    print("|---|" + "---|" * len(shown))
    for task in means.tasks:
        print(f"| {task} | " + " | ".join(row(task, m, "evaluations", "tokens") for m in shown) + " |")


if __name__ == "__main__":
    main()
