"""Parts of `bench.speculation`: drafters that need a corpus or a model of their own, and sampled drafts.

Enters: loaded models, and cases with the answers of plain decoding. Leaves: drafters for the tables of figure
1, and tables on standard output. Cost: a minute or two.

The draft model with another vocabulary is an n-gram model, because the project has no second small model with
a tokenizer of its own. The model counts the answers to the train texts, cut into bytes and the most frequent
words of these answers, which are not the target's tokens. A second n-gram model counts the same answers in
the target's own tokens. The difference between the two shows the cost of another vocabulary alone.
"""

from __future__ import annotations

import re
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

import structgen as sg
from oracles.tasks import Ngram
from structgen.speculation import (
    Corpus,
    CorpusDrafter,
    CostTable,
    DraftModel,
    LayerChoice,
    LookaheadWindow,
    Speculation,
    StringDraft,
    TokenIntersection,
    TrimmedHead,
    standard_drafters,
)
from structgen.speculation.drafters.token_intersection import shared_tokens

ORDER = 4
WORDS = 600


def other_vocabulary(texts: Sequence[bytes]) -> sg.Vocabulary:
    """Returns a vocabulary of bytes and the most frequent words of some texts, with the punctuation in front
    of the words."""
    words: Counter[bytes] = Counter()
    for text in texts:
        words.update(re.findall(rb"[^a-zA-Z0-9]*[a-zA-Z0-9]+|[^a-zA-Z0-9]+", text))
    single = [bytes([b]) for b in range(256)]
    frequent = [w for w, _ in words.most_common(WORDS) if len(w) > 1]
    return sg.Vocabulary.from_bytes([*single, *frequent, b""], eos_token_ids=[256 + len(frequent)])


class Trained:
    """Drafters trained on the plain answers to the train texts of one workload."""

    def __init__(self, bench: Any, train: Sequence[Any]) -> None:
        target = bench.lm.vocabulary
        ends = set(bench.lm.eos_token_ids)
        answers = [bench.plain(c).tokens for c in train]
        self.answers = [[t for t in tokens if t not in ends] for tokens in answers]
        texts = [target.decode(tokens) for tokens in self.answers]
        other = other_vocabulary(texts)
        end = other.eos_token_ids[0]
        self.same = Ngram(target, answers, ORDER)
        self.other = Ngram(other, [[*other.encode(text), end] for text in texts], ORDER)
        self.corpus = Corpus.build(self.answers, target)
        self.shared = len(set(shared_tokens(self.other, target)[1].tolist()))  # type: ignore[arg-type]

    def methods(self, bench: Any) -> dict[str, Callable[[], list[Any]]]:
        """Returns the rows of figure 1."""
        trimmed = TrimmedHead(bench.draft, [t for tokens in self.answers for t in tokens], keep=512)
        return {
            "corpus": lambda: [CorpusDrafter(self.corpus)],
            "fused (auto) + corpus": lambda: [*standard_drafters(), CorpusDrafter(self.corpus)],
            "lookahead window": lambda: [LookaheadWindow()],
            "trimmed head 1/4": lambda: [cleared(trimmed)],
            "layer choice": lambda: [LayerChoice(bench.lm)],
            "n-grams, own tokens": lambda: [DraftModel(self.same)],
            "n-grams, spelled anew": lambda: [DraftModel(self.other)],
            "n-grams, intersection": lambda: [TokenIntersection(self.other)],
            "n-grams, strings": lambda: [StringDraft(self.other)],
        }


def cleared(drafter: TrimmedHead) -> TrimmedHead:
    """Returns the drafter without keys and values of earlier texts. Other draft models begin without them,
    too."""
    drafter._draft.lm.clear()  # type: ignore[attr-defined]
    return drafter


def sampled(bench: Any, train: Sequence[Any], test: Sequence[Any], workload: str) -> None:
    """Figure 7: rules that sample drafts, at temperature 1. `draft s` is the seconds of drafting for each
    token."""
    trained = Trained(bench, train)
    trimmed = TrimmedHead(bench.draft, [t for tokens in trained.answers for t in tokens], keep=512)
    makers: dict[str, Callable[[], Any]] = {
        "draft model": lambda: DraftModel(bench.draft),
        "trimmed head 1/4": lambda: cleared(trimmed),
        "n-grams, own tokens": lambda: DraftModel(trained.same),
        "n-grams, intersection": lambda: TokenIntersection(trained.other),
        "n-grams, strings": lambda: StringDraft(trained.other),
    }
    rules: dict[str, dict[str, Any]] = {
        "coupled, chain of 4": {"adaptive": False, "nodes": 4},
        "single": {"rule": "single"},
        "recursive, 2": {"rule": "recursive", "branches": 2, "nodes": 8},
        "k-seq, 2": {"rule": "k-seq", "branches": 2, "nodes": 8},
        "beam, 2": {"rule": "beam", "branches": 2, "nodes": 8},
        "beam, 4": {"rule": "beam", "branches": 4, "nodes": 16},
    }
    print(f"\n## sampled drafts, {workload}: {len(test)} texts at temperature 1, depth 4")
    size = trained.other.vocabulary.vocab_size
    print(f"the other vocabulary has {size} tokens, {trained.shared} of them the target's")
    head = "".join(
        f"{h:>{w}}" for h, w in (("tok/fwd", 8), ("accepted", 9), ("drafted", 9), ("draft ms/tok", 14))
    )
    print(f"{'drafter':24}{'rule':22}{head}{'speed':>7}")
    how = {"temperature": 1.0, "seed": 1}
    plain = [bench.plain(c, **how) for c in test]
    plain = [bench.plain(c, **how) for c in test]
    rate = sum(len(o.tokens) for o in plain) / sum(o.seconds for o in plain)
    for name, make in makers.items():
        for rule, options in rules.items():
            found = []
            for c in test:
                chosen = Speculation([make()], depth=4, cost=CostTable(), **options)
                found.append(bench.speculative(c, name, chosen, **how))
            tokens = sum(len(o.tokens) for o in found)

            def total(key: str, found: list[Any] = found) -> float:
                return float(sum(o.more[key] for o in found))

            drafting = sum(o.more["seconds"].get("draft", 0.0) for o in found)
            print(
                f"{name:24}{rule:22}{tokens / sum(o.forwards for o in found):8.2f}"
                f"{total('accepted') / max(total('drafted'), 1):9.2f}{total('drafted') / tokens:9.2f}"
                f"{1e3 * drafting / tokens:14.2f}{tokens / sum(o.seconds for o in found) / rate:7.2f}"
            )


def head_cost(rounds: int = 30) -> None:
    """The time that a trimmed head saves, by size of the vocabulary: median milliseconds for one state of
    1,024 channels."""
    print(f"\n## a head of 1,024 channels with all rows and with a quarter, ms (median of {rounds})")
    for size in (2048, 32768, 131072):
        head = torch.nn.Linear(1024, size, bias=False)
        ids = torch.arange(0, size, 4)
        some, state = head.weight.detach()[ids].contiguous(), torch.randn(1, 1024)

        def trimmed(size: int = size, ids: Any = ids, some: Any = some, state: Any = state) -> Any:
            found = torch.full((1, size), float("-inf"))
            found[..., ids] = torch.nn.functional.linear(state, some)
            return found

        with torch.inference_mode():
            times = [_median(lambda h=head, s=state: h(s), rounds), _median(trimmed, rounds)]
        print(f"{size:8,} rows: {times[0]:.3f}, trimmed {times[1]:.3f} ({times[0] / times[1]:.2f}x)")


def _median(run: Callable[[], Any], rounds: int) -> float:
    times = []
    for _ in range(rounds + 3):
        begin = time.perf_counter()
        run()
        times.append(1e3 * (time.perf_counter() - begin))
    return float(np.median(times[3:]))


def corpus_cost(vocabulary: sg.Vocabulary) -> None:
    """Time and memory of building and following a corpus, by its size, to show whether they grow linearly."""
    print("\n## the static automaton of a corpus: random texts of English-like words")
    random = np.random.default_rng(0)
    words = random.integers(0, vocabulary.vocab_size, size=(3000, 3))
    for count in (1 << 14, 1 << 16, 1 << 18):
        ids = words[np.minimum(random.zipf(1.3, size=count // 3), 3000) - 1].ravel().tolist()
        begin = time.perf_counter()
        corpus = Corpus.build([ids[i : i + 300] for i in range(0, len(ids), 300)], vocabulary)
        built = time.perf_counter() - begin
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "corpus"
            corpus.save(path)
            begin = time.perf_counter()
            corpus = Corpus.load(path)
            loaded = time.perf_counter() - begin
        begin, state, length = time.perf_counter(), 0, 0
        for token in ids[:10000]:
            state, length = corpus.read(state, length, token)
        followed = time.perf_counter() - begin
        print(
            f"{len(ids):8,} tokens: {corpus.states / len(ids):.2f} states and "
            f"{corpus.transitions / len(ids):.2f} transitions a token, {corpus.nbytes / len(ids):.1f} bytes, "
            f"built in {1e6 * built / len(ids):.1f} us a token, loaded in {1e3 * loaded:.1f} ms, followed at "
            f"{1e6 * followed / 10000:.2f} us a token"
        )
