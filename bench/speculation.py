"""Measures speculative decoding on the embedded pair: `python -m bench.speculation`.

Enters: MaskBench schemas with their instances (`STRUCTGEN_DATA`), or nothing for the other parts. Leaves:
tables on standard output, and with --out every run as a JSON line. Cost: some minutes.

`speed` is plain decoding's seconds divided by the method's, for all texts together and (p50, p5) for single
texts. `cpu` is the same for processor time, which other work on the machine disturbs less. The fastest of
--repeat runs counts. With the stores "running" and "warm", which learn from a text, one run is compared with
one run. Baselines run in the same process on the same prompts, in turn with all other methods: structgen's
plain decoding, the same loop without drafts, and transformers' own generation (plain, prompt lookup, assisted
by the draft model), with structgen's LogitsProcessor. Beside every speed stands the share of texts that equal
plain decoding's.

A model of two million parameters tells something about drafters and grammars, and little about the speed of
large models on other machines.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

import structgen as sg
from bench import drafters
from bench import speculation_parts as parts
from oracles import data
from structgen import library
from structgen.lm import embedded
from structgen.lm.transformers import TransformersLM
from structgen.speculation import (
    DraftModel,
    Forced,
    LogitNgrams,
    Lookahead,
    PromptLookup,
    SourceCopy,
    Speculation,
    SuffixAutomatonDrafter,
    SuffixTreeDrafter,
    TokenRecycling,
    Trigram,
    layer_skip,
    standard_drafters,
)

MAX_TOKENS = 120


@dataclass(frozen=True)
class Case:
    """One text to generate."""

    name: str
    prompt: list[int]
    grammar: sg.CompiledGrammar | None
    schema: Any = None


@dataclass
class Outcome:
    """One generated text. `forwards`: passes of the target; `once`: seconds and CPU time of the first run."""

    method: str
    case: str
    tokens: list[int]
    forwards: int
    seconds: float
    cpu: float
    same: bool = True
    once: tuple[float, float] = (0.0, 0.0)
    more: dict[str, Any] = field(default_factory=dict)


class Bench:
    """The two models, and the runs on them."""

    def __init__(self) -> None:
        self.lm = TransformersLM.from_pretrained(embedded.path("target"), kv_bytes=64 << 20)
        self.draft = TransformersLM.from_pretrained(embedded.path("draft"), kv_bytes=64 << 20)
        self.compiler = sg.Compiler(self.lm.vocabulary)
        self.forwards = 0
        self.lm.model.register_forward_hook(self._count)

    def _count(self, *_: Any) -> None:
        self.forwards += 1

    def plain(self, case: Case, **how: Any) -> Outcome:
        """structgen's plain decoding."""
        return self.speculative(case, "plain", None, **how)

    def speculative(self, case: Case, method: str, options: Any, **how: Any) -> Outcome:
        self.lm.clear()
        self.draft.clear()
        before, begin, cpu = self.forwards, time.perf_counter(), time.process_time()
        result = sg.generate(
            self.lm,
            case.prompt,
            grammar=case.grammar,
            max_tokens=MAX_TOKENS,
            complete=False,
            speculate=options,
            **how,
        )
        seconds, cpu = time.perf_counter() - begin, time.process_time() - cpu
        stats = {} if result.speculation is None else result.speculation.as_dict()
        # With a restricted head the loop calls the model's body alone, which the hook does not see.
        forwards = stats["forwards"] if stats else self.forwards - before
        return Outcome(method, case.name, result.tokens, forwards, seconds, cpu, more=stats)

    def theirs(self, case: Case, method: str, **arguments: Any) -> Outcome:
        """transformers' `generate` with structgen's processor, greedy."""
        from structgen.integrations.transformers import LogitsProcessor

        ids = torch.tensor([case.prompt])
        processors = [] if case.grammar is None else [LogitsProcessor(case.grammar, len(case.prompt))]
        if method.endswith("assisted"):
            arguments["assistant_model"] = self.draft.model
        before, begin, cpu = self.forwards, time.perf_counter(), time.process_time()
        output = self.lm.model.generate(
            input_ids=ids,
            attention_mask=torch.ones_like(ids),
            logits_processor=processors,
            max_new_tokens=MAX_TOKENS,
            do_sample=False,
            **arguments,
        )
        seconds, cpu = time.perf_counter() - begin, time.process_time() - cpu
        tokens = output[0, len(case.prompt) :].tolist()
        return Outcome(method, case.name, tokens, self.forwards - before, seconds, cpu)


def cases_json(bench: Bench, count: int) -> tuple[list[Case], list[Case]]:
    """Returns (train, test) with equal schemas and different instances, so no drafter has seen a test text.

    The request names the leaves of an instance. The model was trained on such requests, for its own
    schemas.
    """
    train: list[Case] = []
    test: list[Case] = []
    for name in data.sample(data.maskbench_names(), 40 * count, seed=3):
        case = data.maskbench_case(name)
        valid = [json.loads(i.text) for i in case.instances if i.valid]
        if len(valid) < 2 or not all(isinstance(v, dict) for v in valid):
            continue
        try:
            schema = json.loads(case.schema)
            grammar = bench.compiler.json_schema(case.schema, whitespace="compact")
        except (sg.StructgenError, ValueError):
            continue
        made = []
        for value in valid[:2]:
            request = ", ".join(f"{k} {v}" for k, v in _leaves(value))
            text = embedded.format_prompt(request, schema if isinstance(schema, dict) else None)
            made.append(Case(name, bench.lm.encode(text), grammar, schema))
        length = len(bench.lm.encode(json.dumps(valid[1], separators=(",", ":"))))
        if 20 <= length <= MAX_TOKENS and all(len(c.prompt) + MAX_TOKENS < 700 for c in made):
            train.append(made[0])
            test.append(made[1])
        if len(test) == count:
            break
    return train, test


def _leaves(value: Any, key: str = "") -> list[tuple[str, Any]]:
    if isinstance(value, dict):
        return [leaf for k, v in value.items() for leaf in _leaves(v, k)]
    if isinstance(value, list):
        return [leaf for v in value for leaf in _leaves(v, key)]
    return [(key, value)]


_NAMES = ("orders", "customers", "items", "users", "events", "invoices", "cities", "parts")
_COLUMNS = ("id", "name", "price", "city", "created", "total", "status", "email")


def cases_sql(bench: Bench, count: int) -> tuple[list[Case], list[Case]]:
    grammar = bench.compiler.lark(library.load("sql").text)
    draw = random.Random(1)
    made = []
    for i in range(2 * count):
        table, columns = draw.choice(_NAMES), draw.sample(_COLUMNS, 3)
        text = f"select {columns[0]}, {columns[1]} from {table} where {columns[2]} is {draw.randint(1, 999)}"
        made.append(Case(f"sql-{i}", bench.lm.encode(embedded.format_prompt(text)), grammar))
    return made[:count], made[count:]


def cases_free(bench: Bench, count: int) -> tuple[list[Case], list[Case]]:
    """Cases without a grammar: the model was trained to answer in JSON, and does."""
    train, test = cases_json(bench, count)
    return [Case(c.name, c.prompt, None) for c in train], [Case(c.name, c.prompt, None) for c in test]


WORKLOADS: dict[str, Callable[[Bench, int], tuple[list[Case], list[Case]]]] = {
    "json schema": cases_json,
    "sql": cases_sql,
    "free text": cases_free,
}


def methods(bench: Bench, sample: Sequence[int]) -> dict[str, Callable[[], Speculation]]:
    """Returns the methods. Each call makes new options, so the stores are cold."""

    def only(*drafters: Any) -> Speculation:
        return Speculation(list(drafters), cost=COST)

    return {
        "no drafts": lambda: only(),
        "forced": lambda: only(Forced()),
        "prompt lookup": lambda: only(PromptLookup()),
        "source copy": lambda: only(SourceCopy()),
        "suffix automaton": lambda: only(SuffixAutomatonDrafter()),
        "suffix tree": lambda: only(SuffixTreeDrafter()),
        "token recycling": lambda: only(TokenRecycling()),
        "logit n-grams": lambda: only(LogitNgrams()),
        "trigram": lambda: only(Trigram()),
        "lookahead": lambda: only(Lookahead()),
        "layer skip": lambda: only(layer_skip(bench.lm, sample)),
        "draft model": lambda: only(DraftModel(bench.draft)),
        "fused (auto)": lambda: only(*standard_drafters()),
        "fused + draft model": lambda: only(*standard_drafters(), DraftModel(bench.draft)),
    }


# These drafters learn over several texts: with cold stores, with stores that grow, and with warm stores.
STORES = ("suffix tree", "token recycling", "logit n-grams", "trigram", "layer choice", "fused (auto)")
THEIRS: dict[str, dict[str, Any]] = {
    "transformers": {},
    "transformers prompt lookup": {"prompt_lookup_num_tokens": 10},
    "transformers assisted": {},
}
ONCE = ("running", "warm")  # with these stores a text cannot be written twice
COST = parts.CostTable()


def run_workload(bench: Bench, workload: str, count: int, only: str, repeat: int, out: list[Any]) -> None:
    """Prints figures 1 and 5 of one workload."""
    train, test = WORKLOADS[workload](bench, count)
    for c in test:
        bench.plain(c)  # the first round compiles masks
    runs = _runs(bench, train, test, only)
    shown: dict[tuple[str, str], list[Outcome]] = {key: [] for key in runs}
    for i in range(repeat):
        for at, c in enumerate(test):  # methods take turns, so a busy moment slows all of them
            for (method, store), run in runs.items():
                if i == 0:
                    shown[method, store].append(o := run(c))
                    o.once = o.seconds, o.cpu
                elif store not in ONCE:
                    first, again = shown[method, store][at], run(c)
                    first.seconds, first.cpu = min(first.seconds, again.seconds), min(first.cpu, again.cpu)
    plain = shown["plain", ""]
    head = "".join(
        f"{h:>{w}}" for h, w in (("s", 8), ("speed", 7), ("p50", 6), ("p5", 6), ("cpu", 6), ("equal", 7))
    )
    total = sum(len(p.tokens) for p in plain)
    print(f"\n## {workload}: {len(test)} texts, {total} tokens, greedy")
    print(f"{'method':28}{'store':9}{'tok/fwd':>8} {'95% interval':>14}{head}")
    for (method, store), outcomes in shown.items():
        for o, p in zip(outcomes, plain, strict=True):
            o.same = o.tokens == p.tokens
            out.append({**vars(o), "workload": workload, "store": store})
        print(_line(method, store, outcomes, plain))
    theirs = shown.get(("transformers prompt lookup", ""))
    for store in ("cold", "running", "warm"):
        if theirs and ("fused (auto)", store) in shown:
            base = _first_runs(theirs) if store in ONCE else theirs
            print(_against(f"fused (auto), {store}", shown["fused (auto)", store], base))


def _runs(
    bench: Bench, train: Sequence[Case], test: Sequence[Case], only: str
) -> dict[tuple[str, str], Callable[[Case], Outcome]]:
    """(method, store) -> a function that runs it."""
    found: dict[tuple[str, str], Callable[[Case], Outcome]] = {("plain", ""): bench.plain}

    def wanted(method: str) -> bool:
        return any(name in method for name in only.split(","))

    def add(method: str, store: str, options: Callable[[], Speculation]) -> None:
        found[method, store] = lambda c: bench.speculative(c, method, options())

    made = methods(bench, test[0].prompt)
    trained = drafters.Trained(bench, train).methods(bench)
    for method, make_drafters in trained.items():
        made[method] = lambda make=make_drafters: Speculation(make(), cost=COST)
    for method, make in made.items():
        if not wanted(method):
            continue
        add(method, "cold", make)
        if method in STORES:
            for store in ("running", "warm"):
                kept = make()
                for c in train if store == "warm" else ():
                    bench.speculative(c, method, kept)
                add(method, store, lambda kept=kept: kept)
    for method, arguments in THEIRS.items():
        if wanted(method):
            found[method, ""] = lambda c, m=method, how=arguments: bench.theirs(c, m, **how)
    return found


def _line(method: str, store: str, outcomes: list[Outcome], plain: list[Outcome]) -> str:
    if store in ONCE:
        plain = _first_runs(plain)
    tokens = np.array([len(o.tokens) for o in outcomes])
    forwards = np.array([o.forwards for o in outcomes])
    rate = tokens.sum() / forwards.sum()
    draws = _draws(len(tokens))
    spread = np.percentile(tokens[draws].sum(1) / forwards[draws].sum(1), [2.5, 97.5])
    seconds = np.array([o.seconds for o in outcomes])
    base = np.array([o.seconds for o in plain])
    ratios = base / seconds
    same = np.mean([o.same for o in outcomes])
    return (
        f"{method:28}{store:9}{rate:8.2f}   [{spread[0]:4.2f}, {spread[1]:4.2f}]{seconds.sum():8.2f}"
        f"{base.sum() / seconds.sum():7.2f}{np.percentile(ratios, 50):6.2f}{np.percentile(ratios, 5):6.2f}"
        f"{sum(o.cpu for o in plain) / sum(o.cpu for o in outcomes):6.2f}{same:7.1%}"
    )


def _against(name: str, ours: list[Outcome], theirs: list[Outcome]) -> str:
    """Ratios to another method on the same texts, with bootstrap intervals over the texts."""
    found = []
    draws = _draws(len(ours))
    for label, of in (("tokens a forward", "forwards"), ("wall-clock", "seconds"), ("processor time", "cpu")):
        tokens = [np.array([len(o.tokens) for o in m]) for m in (ours, theirs)]
        cost = [np.array([getattr(o, of) for o in m]) for m in (ours, theirs)]
        whole = [t.sum() / c.sum() for t, c in zip(tokens, cost, strict=True)]
        drawn = [t[draws].sum(1) / c[draws].sum(1) for t, c in zip(tokens, cost, strict=True)]
        low, high = np.percentile(drawn[0] / drawn[1], [2.5, 97.5])
        found.append(f"{label} {whole[0] / whole[1]:.2f}x [{low:.2f}, {high:.2f}]")
    return f"{name} against transformers prompt lookup: {', '.join(found)}"


def _first_runs(outcomes: list[Outcome]) -> list[Outcome]:
    """Returns the outcomes with the times of their first runs, for comparisons with methods that run once."""
    return [replace(o, seconds=o.once[0], cpu=o.once[1]) for o in outcomes]


def _draws(count: int) -> Any:
    return np.random.default_rng(0).integers(count, size=(1000, count))


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=24, help="texts of each workload")
    parser.add_argument("--repeat", type=int, default=2, help="runs of a text whose least time counts")
    parser.add_argument("--only", default="", help="methods by parts of their names")
    parser.add_argument("--workloads", default=",".join(WORKLOADS))
    parser.add_argument("--figures", default="1,2,3,4,5,6,7", help="1 and 5 are one table")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--out", type=Path, help="every run as a JSON line")
    options = parser.parse_args(arguments)
    for name in options.workloads.split(","):
        if name not in WORKLOADS:
            parser.error(f"there is no workload {name!r}: they are {', '.join(WORKLOADS)}")
    figures = {int(f) for f in options.figures.split(",")}
    if figures & {2, 3, 5} or (figures & {1, 7} and options.workloads != "sql"):
        data.require("maskbench")  # `--figures 1 --workloads sql` and `--figures 4,6` need no data
    # minutes pass between tables, so each line is written at once
    sys.stdout.reconfigure(line_buffering=True)
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    torch.set_num_threads(options.threads)
    bench = Bench()
    count = sum(p.numel() for p in bench.lm.model.parameters())
    print(
        f"target {count:,} parameters, vocabulary {bench.lm.vocabulary.vocab_size}, float32, "
        f"{options.threads} thread(s), torch {torch.__version__}, {os.cpu_count()} cores"
    )
    out: list[Any] = []
    if 4 in figures:
        parts.cost_curve(bench.lm)
        parts.unpredictable(bench)
    if figures & {1, 5}:
        for workload in options.workloads.split(","):
            run_workload(bench, workload, options.count, options.only, options.repeat, out)
    if 2 in figures or 3 in figures or 5 in figures:
        train, test = cases_json(bench, options.count)
        parts.ablation(bench, train, test)
    if 6 in figures:
        parts.fidelity()
    if 7 in figures:
        for workload in options.workloads.split(","):
            if workload != "free text":
                train, test = WORKLOADS[workload](bench, options.count)
                drafters.sampled(bench, train, test, workload)
        drafters.head_cost()
        drafters.corpus_cost(bench.lm.vocabulary)
    if options.out is not None:
        options.out.write_text("".join(json.dumps(o) + "\n" for o in out), encoding="utf-8")


if __name__ == "__main__":
    main()
