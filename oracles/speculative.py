"""Models, drafters and constraints for the tests of speculation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import structgen as sg
from oracles import closed
from oracles.tasks import Context
from structgen.speculation import (
    Corpus,
    CorpusDrafter,
    Cursor,
    Drafter,
    DraftModel,
    Forced,
    Here,
    LogitNgrams,
    Lookahead,
    LookaheadWindow,
    PromptLookup,
    SchemaOrder,
    SourceCopy,
    Start,
    Step,
    StringDraft,
    SuffixAutomatonDrafter,
    SuffixTree,
    SuffixTreeDrafter,
    TokenIntersection,
    TokenRecycling,
    Trigram,
    standard_drafters,
)

TEXTS = [
    b"", *(bytes([c]) for c in b'{}[]":,abcdexyz0123456789-. '),
    b'{"', b'":', b'","', b'"}', b"ab", b"bc", b"abc", b"12", b"true", b"false", b"null", b'"a":', b"yy",
]  # fmt: skip
VOCABULARY = sg.Vocabulary.from_bytes(TEXTS, eos_token_ids=[0])
# The same texts cut into other tokens, in another order.
OTHER = sg.Vocabulary.from_bytes(
    [*(bytes([c]) for c in b'zyxedcba{}[]":,0123456789-. '), b'{"a', b'":"', b"cd", b"01", b"rue", b""],
    eos_token_ids=[33],
)
SCHEMAS: list[Any] = [
    closed({"a": {"type": "integer"}, "b": {"enum": ["x", "yy"]}, "abc": {"type": "boolean"}}),
    {"type": "array", "items": {"type": "string", "maxLength": 4}, "maxItems": 4},
    {"anyOf": [{"const": "abcabcabc"}, {"const": "abcabcab"}, {"type": "integer"}]},
]


class RandomModel:
    """A model whose law depends on the last `memory` tokens, so that texts repeat themselves."""

    max_context: int | None = None

    def __init__(
        self, seed: int = 0, vocabulary: sg.Vocabulary = VOCABULARY, memory: int = 2, sharp: float = 2.0
    ) -> None:
        self.vocabulary = vocabulary
        self.eos_token_ids = vocabulary.eos_token_ids
        self.calls: list[int] = []  # the number of rows of each call
        self._seed, self._memory, self._sharp = seed, memory, sharp

    def start(self, prompt: str | Sequence[int]) -> Context:
        return Context(tuple(self.vocabulary.encode(prompt) if isinstance(prompt, str) else prompt))

    def logprobs(self, contexts: Sequence[Context]) -> np.ndarray:
        self.calls.append(len(contexts))
        rows = []
        for context in contexts:
            random = np.random.default_rng([self._seed, *context.tokens[-self._memory :]])
            scores = random.normal(size=self.vocabulary.vocab_size) * self._sharp
            rows.append(scores - np.log(np.exp(scores).sum()))
        return np.array(rows, np.float32)


TOKENS = [b"", *(bytes([i]) for i in range(32, 127)), b'{"', b'":']


class TableModel(RandomModel):
    """A `RandomModel` over `TOKENS`, optionally with a longest context."""

    def __init__(self, seed: int = 0, max_context: int | None = None, sharp: float = 1.0) -> None:
        super().__init__(seed, sg.Vocabulary.from_bytes(TOKENS, eos_token_ids=[0]), sharp=sharp)
        self.max_context = max_context


class Adversary:
    """Proposes random tokens, also invalid ones, with meaningless probabilities."""

    name = "adversary"

    def __init__(self, seed: int = 0, probes: bool = True) -> None:
        self._random = np.random.default_rng(seed)
        self._probes = probes

    def open(self, start: Start) -> Adversary:
        return self

    def cursor(self) -> Cursor | None:
        return self if self._random.random() < 0.9 else None

    def probes(self) -> Sequence[int]:
        if not self._probes or self._random.random() < 0.5:
            return ()
        return [int(t) for t in self._random.integers(len(TEXTS), size=3)]

    def accept(self, step: Step) -> None:
        assert step.tokens
        likely = step.likely
        if likely is not None:
            assert len(likely.contexts) == len(likely.ids) == len(likely.logprobs) >= len(step.tokens)
            assert (np.diff(likely.logprobs, axis=1) <= 0).all() and (likely.logprobs <= 0).all()

    def close(self) -> None:
        pass

    def children(self, here: Here) -> Sequence[tuple[int, float]]:
        count = int(self._random.integers(0, 6))
        ids = self._random.choice(len(TEXTS) + 4, size=count, replace=False) - 2
        return [(int(t), float(self._random.random() * 1.2)) for t in ids]

    def step(self, token: int) -> Cursor | None:
        return self if self._random.random() < 0.8 else None


class Oracle:
    """A perfect drafter, which knows the text."""

    name = "oracle"

    def __init__(self, tokens: Sequence[int]) -> None:
        self.tokens = list(tokens)

    def open(self, start: Start) -> Any:
        return _Told(self.tokens)


class _Told:
    def __init__(self, tokens: list[int], at: int = 0) -> None:
        self.tokens, self.at = tokens, at

    def cursor(self) -> Cursor | None:
        return _Told(self.tokens, self.at)

    def probes(self) -> Sequence[int]:
        return ()

    def accept(self, step: Step) -> None:
        self.at += len(step.tokens)

    def close(self) -> None:
        pass

    def children(self, here: Here) -> Sequence[tuple[int, float]]:
        return [(self.tokens[self.at], 0.99)] if self.at < len(self.tokens) else []

    def step(self, token: int) -> Cursor | None:
        return _Told(self.tokens, self.at + 1) if self.tokens[self.at] == token else None


WARM = LogitNgrams()

CORPUS = Corpus.build(['{"a":1,"b":"x","abc":true}', '{"a":12,"b":"yy"', '["ab","abc"]', "abcab"], VOCABULARY)

DRAFTERS: dict[str, Callable[[], list[Drafter]]] = {
    "none": lambda: [],
    "grammar": lambda: [Forced()],
    "schema order": lambda: [SchemaOrder()],
    "suffix automaton": lambda: [SuffixAutomatonDrafter()],
    "suffix tree": lambda: [SuffixTreeDrafter(SuffixTree(8, 500), prompts=True)],
    "token recycling": lambda: [TokenRecycling()],
    "logit n-grams": lambda: [WARM],
    "prompt lookup": lambda: [PromptLookup()],
    "source copy": lambda: [SourceCopy(again=1)],
    "trigram": lambda: [Trigram(64)],
    "lookahead": lambda: [Lookahead()],
    "lookahead window": lambda: [LookaheadWindow(3, 3)],
    "corpus": lambda: [CorpusDrafter(CORPUS, 1)],
    "draft model": lambda: [DraftModel(RandomModel(9))],
    "same model": lambda: [DraftModel(RandomModel(0))],
    "other vocabulary": lambda: [DraftModel(RandomModel(3, OTHER), tokens=4)],
    "token intersection": lambda: [TokenIntersection(RandomModel(3, OTHER))],
    "string draft": lambda: [StringDraft(RandomModel(3, OTHER), forwards=3)],
    "adversary": lambda: [Adversary()],
    "fused": lambda: [*standard_drafters(), Adversary(1), WARM, Lookahead(3)],
    "other fused": lambda: [
        TokenIntersection(RandomModel(3, OTHER)),
        StringDraft(RandomModel(4, OTHER)),
        LookaheadWindow(2, 4),
        CorpusDrafter(CORPUS),
        Adversary(2),
    ],
}

TREES = {
    "adaptive": {},
    "chain": {"adaptive": False, "nodes": 1},
    "wide": {"adaptive": False, "nodes": 12},
    "masks": {"adaptive": False, "nodes": 6, "lazy": False},
    "eager": {"adaptive": False, "nodes": 6, "eager": True},
    "unpruned": {"adaptive": False, "nodes": 12, "prune": False},
}


def llama(vocab_size: int, seed: int = 0, **changes: Any) -> Any:
    """Returns a random Llama model of transformers, of two layers."""
    import torch
    import transformers

    torch.manual_seed(seed)
    sizes: dict[str, Any] = {"hidden_size": 32, "intermediate_size": 48, "num_attention_heads": 4}
    config = transformers.LlamaConfig(vocab_size=vocab_size, **{"num_hidden_layers": 2} | sizes | changes)
    return transformers.LlamaForCausalLM(config)


def random_llama(layers: int = 2, dtype: Any = None, seed: int = 0) -> Any:
    """Returns a random Llama model over VOCABULARY, in float64 unless `dtype` says otherwise."""
    import torch

    sizes = {"max_position_embeddings": 256, "initializer_range": 0.5}
    ids = {"eos_token_id": 0, "pad_token_id": 0, "bos_token_id": 1}
    made = llama(len(TEXTS), seed, num_hidden_layers=layers, **sizes, **ids)
    return made.to(dtype or torch.float64).eval()


# Schemas for the tests of calls. `VOCABULARY` has the bytes of printable ASCII and two longer tokens; id 0
# ends the text.
SCHEMA = closed({"a": {"type": "integer"}, "b": {"enum": ["x", "yy"]}})
