"""Draws the pictures of docs/sampling.md from real runs.

    python -m bench.sampling.pictures --records build/sampling.jsonl --out docs/images

Enters: records of `bench.sampling.run` for the comparison; all other data comes from runs here (two minutes
on one core). Leaves: one PNG for each method. Cost: the embedded model on a JSON request, and a table model
for the other pictures.
"""

from __future__ import annotations

import argparse
import json
import math
from collections import Counter, defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from bench.sampling.run import COUNTS, call
from oracles import tasks
from structgen.sampling import (
    Guide,
    Predicate,
    SmcOptions,
    beam_search,
    cautious,
    penalised,
    prepare,
    sample,
)
from structgen.sampling.awrs import estimate
from structgen.sampling.chance import Seeds

_WIDTH = 34  # characters per label
BV4 = "BV4/find_inv_bvsge_bvnot_4bit+"
SLIA = "SLIA/dr-name+"
CP = "CP/CP_re_ptb_486+"
COLOURS = {
    "local": "C7", "importance": "C1", "asap": "C2", "cars": "C3", "mcmc": "C4", "smc": "C0", "floor": "k",
    "reference-asap": "C2", "genlm-awrs": "C5", "genlm-awrs-smc": "C5",
}  # fmt: skip
STYLES = {"floor": "--", "reference-asap": ":", "genlm-awrs": "--", "genlm-awrs-smc": ":"}


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", required=True)
    parser.add_argument("--out", default="docs/images")
    parser.add_argument("--only", nargs="*")
    options = parser.parse_args(arguments)
    out = Path(options.out)
    out.mkdir(parents=True, exist_ok=True)
    with open(options.records, encoding="utf-8") as stream:
        records = [json.loads(line) for line in stream]
    for name, draw in PICTURES.items():
        if options.only and name not in options.only:
            continue
        save(draw, records, out / f"{name}.png")
        print(out / f"{name}.png", flush=True)


def save(draw: Callable[..., None], records: list[dict[str, Any]], path: Path) -> None:
    from matplotlib.figure import Figure

    many = draw is compare
    figure = Figure(figsize=(8.4, 5.6 if many else 3.0), layout="constrained")
    panels = list(figure.subplots(2 if many else 1, 2).flat)
    if many:
        draw(panels, records)
        lines, names = panels[0].get_legend_handles_labels()
        figure.legend(lines, names, loc="outside right center", fontsize=7, frameon=False)
    else:
        draw(*panels, records)
    for axes in panels:
        axes.title.set_fontsize(9)
        axes.xaxis.label.set_fontsize(8)
        axes.yaxis.label.set_fontsize(8)
        axes.tick_params(labelsize=7)
        axes.spines[["top", "right"]].set_visible(False)
        if not many and axes.get_legend_handles_labels()[0]:
            axes.legend(fontsize=7, frameon=False)
    figure.savefig(path, dpi=110)


def label(text: str) -> str:
    """Returns the part of a text that differs within a task: values of JSON, or the body of a definition."""
    if text.startswith("{"):
        text = ", ".join(str(v) for v in json.loads(text).values())
    text = text.split(") (BitVec 4) ")[-1].removesuffix(")")
    return text if len(text) <= _WIDTH else text[: _WIDTH - 3] + "..."


def posterior(task: str) -> dict[str, float]:
    """Text -> probability, estimated from 20,000 exact draws."""
    law, lm = tasks.law(task), tasks.gad(task).lm
    assert law is not None
    random = np.random.default_rng(0)
    counts = Counter(lm.vocabulary.decode(law.draw(random)[:-1]).decode() for _ in range(20_000))
    return {text: n / 20_000 for text, n in counts.most_common()}


def local(left: Any, right: Any, records: Any) -> None:
    exact = posterior(BV4)
    plain = call(tasks.gad(BV4), "local", 4000, 3)
    counts = Counter(s.text for s in plain)
    shown = list(dict.fromkeys([*list(exact)[:6], *[t for t, _ in counts.most_common(6)]]))[::-1]
    at = np.arange(len(shown))
    left.barh(
        at + 0.2, [exact.get(t, 0) for t in shown], 0.4, color="k", label="the model, given the grammar"
    )
    left.barh(at - 0.2, [counts[t] / len(plain) for t in shown], 0.4, color="C7", label="token by token")
    left.set_yticks(at, [label(t) for t in shown])
    left.set_title("BV4: local masking is another distribution")
    left.set_xlabel("probability")
    mass = [lost for _, lost in plain.diagnostics.mass_lost]
    right.bar(np.arange(len(mass)), mass, color="C7")
    right.set_ylim(0, 1)
    right.set_title("probability that the mask removed, by position")
    right.set_xlabel("token")


def importance(left: Any, right: Any, records: Any) -> None:
    curves(left, records, BV4, ("floor", "local", "importance"), "n")
    left.set_title("BV4: the same draws, with and without weights")
    found = call(tasks.gad(BV4), "importance", 300, 5)
    weights = np.sort(found.weights)[::-1]
    right.plot(np.arange(1, len(weights) + 1), np.cumsum(weights), color=COLOURS["importance"])
    right.set_xscale("log")
    right.set_ylim(0, 1.02)
    right.set_title(f"few draws carry the weight (effective: {found.ess:.0f} of {len(found)})")
    right.set_xlabel("heaviest draws")
    right.set_ylabel("share of the weight")


def asap(left: Any, right: Any, records: Any) -> None:
    task = tasks.json_task()
    found = call(task, "asap", 6000, 1, until_tv=0.01)
    at, lows, highs = np.array(found.diagnostics.brackets).T
    left.plot(at, highs, label="upper")
    left.plot(at, lows, label="lower")
    left.set_xscale("log")
    left.set_title("certified bounds on log P(language)")
    left.set_xlabel("draws")
    right.plot(at, -np.expm1(np.minimum(0, lows - highs)))
    right.set_xscale("log")
    right.set_yscale("log")
    right.axhline(0.01, color="grey", linewidth=0.7)
    assert found.diagnostics.stopped
    right.set_title(f"distance of the next draw, at most (0.01 after {at[-1]:.0f})")
    right.set_xlabel("draws")


def cars(left: Any, right: Any, records: Any) -> None:
    for seed, task in enumerate((tasks.json_task(), tasks.gad(SLIA))):
        found = call(task, "cars", 200, seed)
        about = found.diagnostics
        at, lows, highs = np.array(about.brackets).T
        left.plot(at, np.exp(np.minimum(0, lows - highs)), label=f"{task.name.split('/')[0]}: certified")
        right.bar(seed - 0.2, about.positions, 0.4, color="C0", label="" if seed else "forwards")
        right.bar(seed + 0.2, about.positions + about.saved, 0.4, color="C1",
                  label="" if seed else "prefixes visited")  # fmt: skip
    left.set_xscale("log")
    left.set_ylim(0, 1.02)
    left.set_title("probability that a trial is accepted, at least")
    left.set_xlabel("trials")
    right.set_yscale("log")
    right.set_xticks([0, 1], ["json", "SLIA"])
    right.set_title("200 exact texts: known prefixes cost nothing")


def mcmc(left: Any, right: Any, records: Any) -> None:
    task = tasks.toy()
    law = tasks.law("toy")
    assert law is not None
    random = np.random.default_rng(0)
    drawn = [tuple(law.draw(random)) for _ in range(20_000)]
    exact = {s: n / 20_000 for s, n in Counter(drawn).items()}
    for proposal in ("restart", "uniform", "priority"):
        distances = []
        for steps in (0, 1, 2, 5, 10, 20):
            found = call(task, "mcmc", 600, 3, steps=steps, proposal=proposal)
            counts = Counter(tuple(s.tokens) for s in found)
            total = sum(counts.values())
            distances.append(0.5 * sum(abs(counts[t] / total - exact.get(t, 0))
                                       for t in counts.keys() | exact.keys()))  # fmt: skip
        left.plot([0, 1, 2, 5, 10, 20], distances, marker=".", label=proposal)
    left.set_ylim(bottom=0)
    left.set_title("table: distance of 600 last states from the target")
    left.set_xlabel("steps")
    left.set_ylabel("total variation")
    curves(right, records, "json", ("floor", "mcmc", "importance"), "forwards")
    right.set_title("json: 10 steps of restart against weights")


def smc(left: Any, right: Any, records: Any) -> None:
    task = tasks.gad(SLIA)
    for threshold, colour in ((0.0, "C7"), (0.5, COLOURS["smc"])):
        found = call(task, "smc", 64, 1, smc_options=SmcOptions(ess_threshold=threshold))
        about = found.diagnostics
        name = "resample below half" if threshold else "never resample"
        left.plot(np.arange(1, len(about.ess) + 1), about.ess, color=colour, label=name)
        if threshold:
            for step in about.resampled:
                left.axvline(step, color="grey", linewidth=0.4)
            steps = [0, *about.resampled, len(about.ess)]
            right.step(steps, [64, *about.unique, about.unique[-1]], where="post", color=colour)
    left.set_title("SLIA, 64 particles: effective sample size")
    left.set_xlabel("token")
    left.set_ylim(bottom=0)
    right.set_ylim(bottom=0)
    right.set_title("ancestors that have descendants left")
    right.set_xlabel("token")


def awrs(left: Any, right: Any, records: Any) -> None:
    """One normaliser, estimated 3000 times: 40 tokens, of which a condition allows two thirds."""
    letters = [bytes([65 + i]) for i in range(40)]
    lm = tasks.Toy(3, "".join(t.decode() for t in letters), sharp=1.0)
    rule = Predicate(lambda t: not t or ord(t[0]) % 3 != 0, at="token", monotone=True)
    ks, spreads, calls = [1, 2, 3, 5, 8], [], []
    for extra in ks:
        estimates, tested = [], 0
        for seed in range(3000):
            walker = prepare(lm, [], None, max_tokens=3, potential=rule)
            walk = walker.start(Seeds(seed).stream(0, extra))
            walker.expand([walk])
            found = estimate(walker, walk, *walk.node.proposal(False), extra)
            assert found is not None
            estimates.append(math.exp(found[1]))
            tested += walker.target.spent.tests
        spreads.append(float(np.std(estimates) / np.mean(estimates)))
        calls.append(tested / 3000)
    left.plot(calls, spreads, marker="o")
    for k, x, y in zip(ks, calls, spreads, strict=True):
        left.annotate(f"K={k}", (x, y), fontsize=7, xytext=(4, 4), textcoords="offset points")
    left.set_ylim(0, 1.15 * max(spreads))
    left.set_title("error of a local normaliser, 40 tokens")
    left.set_xlabel("evaluations of the condition")
    left.set_ylabel("standard deviation / mean")
    task = tasks.toy()
    rule = Predicate(lambda t: "de" not in t and "ba" not in t, at="token", monotone=True)
    counts = (4, 16, 64, 256)
    for extra in (1, 3):
        asked = []
        for n in counts:
            found = sample(task.lm, [], task.grammar, method="awrs", n=n, seed=1, potential=rule, extra=extra,
                           max_tokens=8, smc_options=SmcOptions(extra=extra))  # fmt: skip
            about = found.diagnostics
            asked.append(about.tests / (about.positions + about.saved))
        right.plot(counts, asked, marker="o", label=f"K={extra}")
    right.set_xscale("log", base=2)
    right.set_ylim(bottom=0)
    right.set_title("evaluations a token: verdicts are remembered")
    right.set_xlabel("particles")


def search(left: Any, right: Any, records: Any) -> None:
    task = tasks.json_task()

    def walker() -> Any:
        return prepare(task.lm, task.prompt, task.grammar, max_tokens=task.max_tokens, format="plain")

    rows: dict[str, list[float]] = {}
    rows["exact draws"] = [s.logprob for s in call(task, "cars", 40, 1)]
    rows["beam"] = [f.logprob for f in beam_search(walker(), 8)]
    rows["diverse beam"] = [f.logprob for f in beam_search(walker(), 8, groups=4, diversity=3.0)]
    rows["A*esque, goal 'hat'"] = [
        f.logprob for f in beam_search(walker(), 8, guide=Guide(goals=["hat"], goal_weight=3.0))
    ]
    rows["value: longer"] = [
        f.logprob for f in beam_search(walker(), 8, guide=Guide(value=len, value_weight=1.0))
    ]
    rows["cautious"] = [f.logprob for s in range(12) if (f := cautious(walker(), s))]
    rows["penalised"] = [f.logprob for s in range(12) if (f := penalised(walker(), s, decay=0.5, shortest=2))]
    least = -45.0
    for at, values in enumerate(rows.values()):
        left.plot(
            [v for v in values if v >= least], [at] * sum(v >= least for v in values), "|", markersize=9
        )
        if beyond := sum(v < least for v in values):
            left.text(least - 9, at, f"{beyond} below", fontsize=6, va="center")
    left.set_xlim(least - 10, 0)
    left.set_yticks(np.arange(len(rows)), list(rows))
    left.set_title("json: log P of what each finds")
    mass: dict[str, float] = {}
    for f in beam_search(walker(), 8):  # two spellings of one text are two token strings
        mass[f.text] = mass.get(f.text, 0.0) + math.exp(f.logprob)
    right.barh(np.arange(len(mass))[::-1], list(mass.values()))
    right.set_yticks(np.arange(len(mass))[::-1], [label(t) for t in mass])
    right.set_title("the texts of a beam of eight")
    right.set_xlabel("P")


def compare(panels: list[Any], records: Any) -> None:
    methods = ("floor", "local", "importance", "asap", "cars", "mcmc", "smc", "reference-asap",
               "genlm-awrs-smc")  # fmt: skip
    for axes, task in zip(panels, ("json", BV4, SLIA, CP), strict=True):
        curves(axes, records, task, methods, "forwards")
        axes.set_title(f"{task.split('/')[0]}: distance against forwards")


def curves(axes: Any, records: Any, task: str, methods: tuple[str, ...], against: str) -> None:
    """KL against n or forward passes, as means over seeds."""
    by = defaultdict(list)
    for r in records:
        if r["task"] == task and r.get("kl") is not None:
            by[r["method"], r["n"]].append(r)
    for method in methods:
        rows = [by[method, n] for n in COUNTS if by.get((method, n))]
        if not rows:
            continue
        ys = [max(1e-3, float(np.mean([r["kl"] for r in row]))) for row in rows]
        xs = [float(np.mean([r.get(against, 0) for r in row])) for row in rows]
        if method == "floor" and against == "forwards":
            axes.axhline(ys[-1], color="k", linestyle="--", linewidth=0.8, label="100 true draws")
            continue
        axes.plot(xs, ys, STYLES.get(method, "-"), color=COLOURS[method], marker=".", label=method)
    axes.set_xscale("log")
    axes.set_yscale("log")
    for axis in (axes.xaxis, axes.yaxis):  # for less than a decade the labels of minor ticks would overlap
        axis.set_minor_formatter(lambda value, place: "")
    axes.set_xlabel("draws" if against == "n" else "forwards")
    axes.set_ylabel("KL to the target (nats)")


PICTURES: dict[str, Callable[..., None]] = {
    "local": local, "importance": importance, "asap": asap, "cars": cars, "mcmc": mcmc, "smc": smc,
    "awrs": awrs, "search": search, "compare": compare,
}  # fmt: skip


if __name__ == "__main__":
    main()
