"""Parts of `bench.speculation`: the cost curve, ablations, the unpredictable text, and exact comparisons of
laws.

Enters: a loaded model and cases. Leaves: tables on standard output. Cost: seconds each.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from oracles.enumerate import Rule, dropping, law
from structgen._draws import Noise
from structgen.generation import Drawing
from structgen.lm.transformers import TransformersLM
from structgen.lm.trees import Block
from structgen.speculation import CostTable, Forced, Speculation, standard_drafters
from structgen.speculation.engine import Row, SpeculativeRows
from structgen.speculation.rules import k_seq, recursive, single
from structgen.speculation.score import open_scorer

WIDTHS = (1, 2, 4, 8, 12, 16, 24, 32, 48, 64)


def cost_curve(lm: TransformersLM, past: int = 200, rounds: int = 21) -> None:
    """Figure 4: T(q) / T(1), the time of a forward pass over q tokens by that over one token, and the number
    of accepted tokens per forward pass that compensates for it."""
    print(f"\n## cost of a forward of q tokens behind {past} (a chain, median of {rounds})")
    before = torch.get_num_threads()
    for threads in (1, 2):
        torch.set_num_threads(threads)
        times: dict[int, list[float]] = {q: [] for q in WIDTHS}
        scorer = lm.tree_scorer()
        scorer.add(1)
        scorer.score([Block([5] * past)])
        scorer.keep([[]])
        for _ in range(rounds):  # widths take turns, so a busy moment slows all of them
            for q in WIDTHS:
                block = Block([7], [9] * (q - 1), list(range(-1, q - 2)))
                begin = time.perf_counter()
                scorer.score([block])
                times[q].append(time.perf_counter() - begin)
                scorer.keep([[]])
                scorer.truncate(past)
        base = float(np.median(times[1]))
        line = "  ".join(f"{q}: {np.median(times[q]) / base:.2f}" for q in WIDTHS)
        print(f"{threads} thread(s), T(1) = {base * 1e3:.2f} ms;  T(q)/T(1) = {line}")
    torch.set_num_threads(before)


def ablation(bench: Any, train: Sequence[Any], test: Sequence[Any]) -> None:
    """Figures 2, 3 and the breakdown of 5, with a fixed number of nodes and running stores."""
    print(f"\n## what the grammar brings: {len(test)} JSON texts, 12 drafts a forward, stores running")
    print(
        f"{'variant':34}{'tok/fwd':>8}{'drafted':>9}{'pruned':>8}{'masks/tok':>10}{'checks/tok':>11}"
        "   ms a token by part"
    )
    fixed = {"nodes": 12, "adaptive": False}
    variants: dict[str, dict[str, Any]] = {
        "target only (drafts unpruned)": {"prune": False, "forced": False},
        "+ pruning, freed places refilled": {"forced": False},
        "+ forced text": {},
        "  the same, masks eager": {"lazy": False},
        "  the same, head restricted": {"logprobs": False, "restricted_head": 256},
        "adaptive": {"adaptive": True, "nodes": 24},
    }
    for name, changes in variants.items():
        drafters = standard_drafters()
        if not changes.pop("forced", True):
            drafters = [d for d in drafters if not isinstance(d, Forced)]
        how = {"logprobs": changes.pop("logprobs")} if "logprobs" in changes else {}
        options = Speculation(drafters, **{**fixed, **changes})
        found = [bench.speculative(c, name, options, **how) for c in test]
        total = sum(len(o.tokens) for o in found)

        def summed(key: str, found: list[Any] = found) -> float:
            return float(sum(o.more[key] for o in found))

        seconds: dict[str, float] = {}
        for o in found:
            for part, s in o.more["seconds"].items():
                seconds[part] = seconds.get(part, 0.0) + s
        by_part = ", ".join(f"{part} {1e3 * s / total:.2f}" for part, s in seconds.items())
        print(
            f"{name:34}{total / sum(o.forwards for o in found):8.2f}{summed('drafted') / total:9.2f}"
            f"{summed('pruned') / total:8.2f}{summed('masks') / total:10.2f}{summed('checks') / total:11.2f}"
            f"   {by_part}"
        )


def unpredictable(bench: Any, tokens: int = 300, texts: int = 8) -> None:
    """The worst case of speculation, text without a pattern: CPU time with drafting over the time without.

    Both runs write the same text, one forward pass each in turn, so other work of the machine slows both
    alike. Whole texts in turn differ by a fifth on a busy machine, even if neither drafts. The slowest tenth
    of each run's passes is left out.
    """
    grammar = bench.compiler.regex(r"[a-zA-Z0-9 .,;:!?()-]{2000,4000}")
    lm, prompt = bench.lm, bench.lm.encode("x")
    variants = {"drafting": standard_drafters, "none again": list}
    stores = {name: Speculation(make(), cost=CostTable()) for name, make in variants.items()}
    print(f"\n## nothing to predict: {texts} texts of {tokens} tokens at temperature 8, stores running")
    print(f"{'against no drafts':20}{'median':>8}{'worst':>8}   drafts a token, all ratios")
    for name, options in stores.items():
        ratios, width = [], []
        for seed in range(texts):
            runs = []
            for chosen in (Speculation([]), options):
                how = Drawing(8.0, None, None, seed)
                run = SpeculativeRows(open_scorer(lm), lm.vocabulary, lm.eos_token_ids, how, chosen)
                run.add(Row(prompt, grammar.matcher(), Noise(seed), tokens, None, grammar))
                runs.append((run, run.live[0], list[float]()))
            while any(run.live for run, _, _ in runs):
                for run, _, seconds in runs:
                    if run.live:
                        begin = time.thread_time()
                        run.step()
                        seconds.append(time.thread_time() - begin)
            (_, row, plain), (run, other, fast) = runs
            assert row.tokens == other.tokens
            ratios.append(_trimmed(fast) / _trimmed(plain))
            width.append(run.statistics.drafted / tokens)
        listed = ", ".join(f"{r:.3f}" for r in ratios)
        print(f"{name:20}{np.median(ratios):8.3f}{max(ratios):8.3f}   {np.mean(width):.3f}, {listed}")


def _trimmed(seconds: Sequence[float]) -> float:
    """Seconds of a run whose slowest tenth is replaced by the mean of the others."""
    kept = np.sort(seconds)[: max(1, int(0.9 * len(seconds)))]
    return float(kept.mean()) * len(seconds)


def fidelity() -> None:
    """Figure 6: the exact total variation between the law under a rule and the target's masked law."""
    rules: dict[str, tuple[Rule, int, bool]] = {
        "single": (lambda p, q, xs, c: single(p, q, xs[0], c)[0] if xs else c.draw(p), 1, True),
        "recursive": (lambda p, q, xs, c: recursive(p, q, xs, c)[0], 2, False),
        "k-seq": (lambda p, q, xs, c: k_seq(p, q, xs, c)[0], 2, True),
    }
    random = np.random.default_rng(0)
    print("\n## exact total variation to the masked law, the worst of 20 pairs over 5 tokens, 2 invalid")
    print(f"{'rule':12}{'mask on both':>14}{'mask on target':>16}{'planted: drop':>15}")
    for name, (rule, count, replace) in rules.items():
        worst = np.zeros(3)
        for _ in range(20):
            mask = np.array([1.0, 1.0, 0.0, 1.0, 0.0])
            p, q = random.dirichlet(np.ones(5)), random.dirichlet(np.ones(5))
            p = p * mask / (p * mask).sum()
            inside = q * mask / (q * mask).sum()
            laws = (
                law(rule, p, inside, count, replace),
                law(rule, p, q, count, replace),
                law(dropping(rule), p, q, count, replace),
            )
            worst = np.maximum(worst, [0.5 * np.abs(found - p).sum() for found in laws])
        print(f"{name:12}{worst[0]:14.1e}{worst[1]:16.1e}{worst[2]:15.3f}")
    print("coupled      0 by construction: the text is plain decoding's (column `equal` above)")
    print(f"local law against the model conditioned on the whole language, exact: TV = {_gap():.3f}")


def _gap() -> float:
    """Returns the total variation between local decoding and the conditioned model on a small language. It is
    not 0, because masks do not look ahead."""
    random = np.random.default_rng(1)
    step = random.dirichlet(np.ones(3), size=(4, 4))  # (place, last token) -> next of a, b, end
    texts = {t for n in range(1, 4) for t in _words(n) if t.count(0) == t.count(1) or t[0] == 0}
    local, whole = {}, {}
    for text in texts:
        weight = share = 1.0
        for i, token in enumerate([*text, 2]):
            p = step[i, text[i - 1] if i else 3]
            weight *= p[token]
            allowed = {t[i] if len(t) > i else 2 for t in texts if t[:i] == text[:i]}
            share *= p[token] / sum(p[a] for a in allowed)
        local[text], whole[text] = share, weight
    total = sum(whole.values())
    assert abs(sum(local.values()) - 1) < 1e-9
    return 0.5 * sum(abs(local[t] - whole[t] / total) for t in texts)


def _words(length: int) -> list[tuple[int, ...]]:
    return [tuple(int(b) for b in np.binary_repr(i, length)) for i in range(2**length)]
