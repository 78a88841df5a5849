"""Samples, with weights, bounds and diagnostics.

Enters: an `Outcome`, the target, the trie. Leaves: `Samples`, a sequence of `Sample` with weights, bounds and
diagnostics. Cost: decoding and parsing each text once.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, overload

import numpy as np

from .._readable import table_html
from ..lm.asked import Asked
from .chance import Seeds
from .logspace import NEVER, Doubles, effective_size, normalised
from .outcome import Outcome, Purpose
from .target import Target
from .trie import Trie
from .walk import Diary


@dataclass(frozen=True, slots=True)
class Sample:
    """One drawn text with its weight.

    Attributes:
        text: the text; invalid UTF-8 becomes U+FFFD.
        value: the grammar's reading of the text (parsed JSON, a Python type, or the text).
        tokens: the ids, end-of-sequence included.
        logprob: natural log of P(s): the model after temperature, top-k and top-p, without the grammar.
        log_weight: natural log of the text's weight for the target.
        reasoning: the thoughts in front of the text; None: no thoughts.
        tv_bound: a certified bound on the total variation distance between the target and the law that drew
            this text, given the earlier draws. 0: an exact draw. None: no bound, because of the method (smc,
            mcmc) or a potential that may weigh above 1.
    """

    text: str
    value: Any
    tokens: list[int]
    logprob: float
    log_weight: float
    reasoning: str | None = None
    tv_bound: float | None = None


@dataclass(frozen=True, slots=True)
class Diagnostics:
    """A record of a run.

    Attributes:
        method: the sampler that ran. reasons: why it was chosen, and its remarks.
        draws: walks begun (CARS: trials); accepted: walks that ended in a text with weight.
        calls, positions: batched forwards, and the prefixes computed in them; saved: visits without a
            forward.
        masks, tests, tests_saved: masks computed, potentials evaluated, verdicts remembered.
        ess: effective sample size after each step (SMC), or at the end.
        resampled: the steps after which particles were resampled; unique: distinct ancestors left then.
        killed: reason -> walks that ended without weight.
        mass_lost: for each position the visits, and the mean probability that grammar and potentials forbade.
        lost_tokens: the forbidden tokens with most probability: (position, id, bytes, mean probability).
        brackets: (draws, log lower, log upper) bounds on Z, over the run.
        stopped: why the run ended early; empty: it did not.
        seed: the same seed repeats the run.
        target: the other parts of the law beside model, prompt and grammar: temperature, top_k, top_p,
            max_tokens, budget, and the names of the potentials.
    """

    method: str
    reasons: list[str]
    draws: int
    accepted: int
    calls: int
    positions: int
    saved: int
    masks: int
    tests: int
    tests_saved: int
    ess: list[float]
    resampled: list[int]
    unique: list[int]
    killed: dict[str, int]
    mass_lost: list[tuple[int, float]]
    lost_tokens: list[tuple[int, int, bytes, float]]
    brackets: list[tuple[int, float, float]]
    stopped: str
    seed: int
    target: dict[str, Any]


@dataclass(frozen=True)
class Samples(Sequence[Sample]):
    """Texts with weights for the target P(s) 1[s in L] phi(s) / Z.

    Attributes:
        samples: the texts.
        law: "exact" (n independent draws from the target, equal weights), "weighted" (properly weighted),
            "approximate" (equal or proper weights; the law converges, or the texts ended the run early:
            `diagnostics.reasons` says which), "local" (token by token; the weights repair it) or "search" (no
            distribution).
        log_evidence: log of an estimate of Z. The estimate is unbiased whatever ended the run. -inf for MCMC,
            which has no estimate. With CARS and n=1 the estimate rests on the first trial alone and is often
            -inf.
        log_bracket: log of certified bounds on Z; None if a potential is not bounded by 1.
        tv_bound: a certified bound on the distance of ASAp's next draw from the target; None if a potential
            is not bounded by 1.
        diagnostics: a record of the run.
        trie: the trie, for the next call with the same target.
    """

    samples: list[Sample]
    law: str
    log_evidence: float
    log_bracket: tuple[float, float] | None
    tv_bound: float | None
    diagnostics: Diagnostics
    trie: Trie = field(repr=False, compare=False)

    def __len__(self) -> int:
        return len(self.samples)

    @overload
    def __getitem__(self, index: int) -> Sample: ...

    @overload
    def __getitem__(self, index: slice) -> list[Sample]: ...

    def __getitem__(self, index: int | slice) -> Sample | list[Sample]:
        return self.samples[index]

    def __iter__(self) -> Iterator[Sample]:
        return iter(self.samples)

    @property
    def log_weights(self) -> Doubles:
        """float64, shape (len,)."""
        return np.array([s.log_weight for s in self.samples], np.float64)

    @property
    def weights(self) -> Doubles:
        """Weights that sum to 1."""
        return normalised(self.log_weights)

    @property
    def acceptance(self) -> float | None:
        """A certified lower bound on the acceptance rate of further CARS trials."""
        return None if self.tv_bound is None else self.trie.acceptance

    @property
    def ess(self) -> float:
        """The effective sample size of the weights."""
        return effective_size(self.log_weights)

    def posterior(self) -> dict[str, float]:
        """Returns a dict of text -> estimated probability under the target, most probable first; sums to
        1."""
        found: dict[str, float] = {}
        for sample, weight in zip(self.samples, self.weights, strict=True):
            found[sample.text] = found.get(sample.text, 0.0) + float(weight)
        return dict(sorted(found.items(), key=lambda item: -item[1]))

    def __repr__(self) -> str:
        texts = ", ".join(f"{text!r:.40}: {p:.2f}" for text, p in list(self.posterior().items())[:3])
        more = ", ..." if len(self.posterior()) > 3 else ""
        return f"Samples({len(self)} texts, law {self.law!r}, {{{texts}{more}}})"

    def _repr_html_(self) -> str:
        rows = {text: f"{p:.3f}" for text, p in list(self.posterior().items())[:20]}
        about = f"Samples: {len(self)} texts by {self.diagnostics.method}, law {self.law}"
        return table_html(about, "", rows)

    def resample(self, n: int, seed: int = 0) -> list[Sample]:
        """Returns n texts with equal weights, chosen by systematic resampling."""
        if not self.samples:
            return []
        sums = np.cumsum(self.weights)
        sums[-1] = 1.0
        u = Seeds(seed).stream(Purpose.FINAL, 0).uniform(lambda: sums)
        at = np.searchsorted(sums, (np.arange(n) + u) / n, side="right")
        return [self.samples[int(i)] for i in np.minimum(at, len(self.samples) - 1)]


def parts_of(tokens: Sequence[int], target: Target, asked: Asked) -> tuple[str | None, str]:
    """Returns the thoughts and the answer of ids. Special tokens that the grammar names are shown as their
    names."""
    if asked.names:
        pieces = (target.vocabulary.tokens[token] or asked.names.get(token, b"") for token in tokens)
        text = b"".join(pieces).decode("utf-8", "replace")
    else:
        text = target.text(tokens).decode("utf-8", "replace")
    return (None, text) if asked.reasoning is None else asked.reasoning.split(text)


def _tv_bound(upper: float, lower: float) -> float:
    """Returns a bound for a law Q with Q(s) >= P(s) / U: TV(Q, P / Z) = sum of (P(s) / Z - Q(s))+ <= 1 - Z /
    U."""
    return 0.0 if upper == NEVER else min(1.0, max(0.0, -math.expm1(min(0.0, lower - upper))))


def samples_of(
    outcome: Outcome, method: str, target: Target, trie: Trie, diary: Diary, seed: int, asked: Asked
) -> Samples:
    """Makes the user's `Samples` from an outcome."""
    found = []
    uppers: list[float | None] = [*outcome.log_uppers] if target.bounded else []
    uppers = uppers or [None] * len(outcome.walks)
    for walk, weight, upper in zip(outcome.walks, outcome.log_weights, uppers, strict=True):
        thoughts, text = parts_of(walk.tokens, target, asked)
        near = None if upper is None else _tv_bound(upper, trie.lower_bound)
        found.append(Sample(text, asked.read(text), list(walk.tokens), walk.logp, weight, thoughts, near))
    spent = target.spent
    steps = sorted(diary.steps.items())
    most = sorted(diary.lost.items(), key=lambda item: (-item[1], item[0]))[:10]
    lost = [(at, i, target.vocabulary.token_bytes(i), p / diary.steps[at][0]) for (at, i), p in most]
    diagnostics = Diagnostics(
        method=method,
        reasons=[*outcome.notes, target.remark] if target.remark else outcome.notes,
        draws=outcome.draws,
        accepted=outcome.accepted,
        calls=spent.calls,
        positions=spent.positions,
        saved=spent.saved,
        masks=spent.masks,
        tests=spent.tests,
        tests_saved=spent.tests_saved,
        ess=outcome.ess or [effective_size(outcome.log_weights)],
        resampled=outcome.resampled,
        unique=outcome.unique,
        killed=dict(diary.killed),
        mass_lost=[(int(n), -math.expm1(total / n)) for _, (n, total) in steps],
        lost_tokens=lost,
        brackets=outcome.brackets,
        stopped=outcome.stopped,
        seed=seed,
        target=target.definition(),
    )
    bounded = target.bounded
    return Samples(
        found,
        outcome.law,
        outcome.log_evidence,
        trie.bracket if bounded else None,
        trie.tv_bound if bounded else None,
        diagnostics,
        trie,
    )
