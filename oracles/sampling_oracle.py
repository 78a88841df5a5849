"""An oracle for the samplers: models are tables, languages are lists, and randomness is enumerated.

`TableModel` gives every prefix a vector drawn once from a seed. Brute force sums the `Law` of a small
language, without the engine. `every_outcome` runs a sampler once per outcome of its random decisions and
yields each outcome's probability, so expectations are sums.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

import structgen as sg
from oracles.tasks import Context
from structgen.sampling.methods import METHODS
from structgen.sampling.potential import Potential, Prefix
from structgen.sampling.target import Law, Target
from structgen.sampling.trie import Trie
from structgen.sampling.walk import Walker

TOKENS = [b"a", b"b", b"ab", b"c", b""]  # "ab" is one token or two; the last token ends the text
END = 4

# The methods of `sg.sample`, grouped by their rows in METHODS, so that no test lists methods.
DRAWING = tuple(name for name, row in METHODS.items() if row.name == name != "auto")
CORRECTED = tuple(name for name in DRAWING if METHODS[name].corrected)
STOPPING = tuple(name for name in DRAWING if METHODS[name].stops)


class TableModel:
    """A LanguageModel over a few tokens. A larger `sharp` makes its vectors less even."""

    def __init__(
        self,
        seed: int,
        tokens: Sequence[bytes] = TOKENS,
        ends: Sequence[int] = (END,),
        sharp: float = 1.5,
        zero: Sequence[tuple[tuple[int, ...], int]] = (),
    ) -> None:
        self.vocabulary = sg.Vocabulary.from_bytes(list(tokens), eos_token_ids=list(ends))
        self.eos_token_ids = list(ends)
        self.max_context = None
        self.asked: list[tuple[int, ...]] = []
        self._seed, self._sharp, self._zero = seed, sharp, set(zero)
        self._table: dict[tuple[int, ...], np.ndarray] = {}

    def start(self, prompt: Any) -> Context:
        ids = self.vocabulary.encode(prompt) if isinstance(prompt, str) else list(prompt)
        return Context(tuple(ids))

    def vector(self, tokens: tuple[int, ...]) -> np.ndarray:
        if tokens not in self._table:
            random = np.random.default_rng([self._seed, 77, *tokens])
            scores = random.normal(size=self.vocabulary.vocab_size) * self._sharp
            for prefix, token in self._zero:
                if prefix == tokens:
                    scores[token] = -np.inf
            scores -= np.log(np.exp(scores).sum())
            self._table[tokens] = scores.astype(np.float32)
        return self._table[tokens]

    def logprobs(self, contexts: Sequence[Context]) -> np.ndarray:
        self.asked += [tuple(c.tokens) for c in contexts]
        return np.array([self.vector(tuple(c.tokens)) for c in contexts], np.float32)


def brute_force(
    lm: TableModel,
    inside: Callable[[bytes], bool],
    max_tokens: int,
    weigh: Callable[[bytes], float] = lambda text: 1.0,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
    prompt: Sequence[int] = (),
) -> dict[tuple[int, ...], float]:
    """P(s) * 1[s in L] * weight(text) of every token string that ends within max_tokens; ids include the
    end."""
    ends = sorted(lm.eos_token_ids)
    words = [i for i in range(lm.vocabulary.vocab_size) if i not in ends]
    found: dict[tuple[int, ...], float] = {}

    def row(tokens: tuple[int, ...]) -> np.ndarray:
        scores = lm.vector((*prompt, *tokens)).astype(np.float64)
        if (temperature, top_k, top_p) != (1.0, None, None):
            # P is defined in the model's own precision.
            scores = ((scores - scores.max()) / temperature).astype(np.float32).astype(np.float64)
        p = np.exp(scores - scores.max())
        p /= p.sum()
        order = sorted(range(len(p)), key=lambda i: (-p[i], i))
        keep = order if top_k is None else order[:top_k]
        if top_p is not None:
            total, kept, mass = sum(p[i] for i in keep), [], 0.0
            for i in keep:
                kept.append(i)
                mass += p[i]
                if mass >= top_p * total - 1e-12:
                    break
            keep = kept
        cut = np.zeros_like(p)
        cut[keep] = p[keep]
        return cut / cut.sum()

    def visit(tokens: tuple[int, ...], p: float) -> None:
        q = row(tokens)
        text = b"".join(lm.vocabulary.token_bytes(i) for i in tokens)
        if inside(text):
            mass = p * sum(q[e] for e in ends) * weigh(text)
            if mass > 0:
                found[(*tokens, ends[0])] = mass
        if len(tokens) < max_tokens - 1:
            for token in words:
                if q[token] > 0:
                    visit((*tokens, token), p * q[token])

    visit((), 1.0)
    return found


def random_language(seed: int, letters: str = "abc", longest: int = 3, size: int = 5) -> list[str]:
    """Returns a few distinct texts, sometimes the empty one among them."""
    random = np.random.default_rng([seed, 5])
    texts = ["".join(t) for n in range(longest + 1) for t in itertools.product(letters, repeat=n)]
    count = int(random.integers(1, size + 1))
    return sorted(texts[int(i)] for i in random.choice(len(texts), count, replace=False))


def random_rules(seed: int) -> dict[str, list[str]]:
    """Returns a random context-free grammar with the start S. Capital letters are rules, others are
    terminals."""
    random = np.random.default_rng([seed, 6])
    rules: dict[str, list[str]] = {}
    for name in "ST":
        rules[name] = []
        for _ in range(int(random.integers(2, 4))):
            size = int(random.integers(0, 4))
            rules[name].append("".join(random.choice(list("abcSSTT"[: 3 + 4])) for _ in range(size)))
        rules[name].append(str(random.choice(list("abc"))))
    return rules


def random_cfg_language(seed: int, longest: int = 4) -> list[str]:
    """Returns the short texts of a random context-free grammar, derived by brute force."""
    rules = random_rules(seed)
    found: set[str] = set()
    seen, todo = {"S"}, ["S"]
    while todo and len(seen) < 4000:
        form = todo.pop(0)
        at = next((i for i, c in enumerate(form) if c in rules), None)
        if at is None:
            found.add(form)
            continue
        for body in rules[form[at]]:
            made = form[:at] + body + form[at + 1 :]
            if sum(c not in rules for c in made) <= longest and len(made) <= longest + 3 and made not in seen:
                seen.add(made)
                todo.append(made)
    return sorted(text for text in found if len(text) <= longest)


def recognises(rules: dict[str, list[str]], text: str) -> bool:
    """Returns whether S derives a text: the spans of every rule grow until nothing changes."""
    spans: dict[str, set[tuple[int, int]]] = {name: set() for name in rules}

    def ends(body: str, begin: int) -> set[int]:
        at = {begin}
        for symbol in body:
            if symbol in rules:
                at = {stop for start, stop in spans[symbol] if start in at}
            else:
                at = {i + 1 for i in at if i < len(text) and text[i] == symbol}
        return at

    grown = True
    while grown:
        grown = False
        for name, bodies in rules.items():
            for begin in range(len(text) + 1):
                new = {(begin, end) for body in bodies for end in ends(body, begin)} - spans[name]
                grown = grown or bool(new)
                spans[name] |= new
    return (0, len(text)) in spans["S"]


def target(
    lm: TableModel,
    grammar: Any,
    *,
    max_tokens: int = 5,
    potential: Potential | None = None,
    budget: Any = "reject",
    **law: Any,
) -> Target:
    return Target.of(
        lm, lm.start([]), grammar, potential, max_tokens=max_tokens, law=Law(**law), budget=budget
    )


def choice(lm: TableModel, texts: Sequence[str]) -> sg.CompiledGrammar:
    return sg.Compiler(lm.vocabulary).choice(list(texts))


class Enumerating:
    """A `Chance` that visits every outcome, one per run."""

    def __init__(self) -> None:
        self._script: list[int] = []
        self._options: list[int] = []
        self._at = 0
        self.probability = 1.0

    def _pick(self, weights: Sequence[float]) -> int:
        live = [i for i, w in enumerate(weights) if w > 0]
        if self._at == len(self._script):
            self._script.append(0)
            self._options.append(len(live))
        index = live[self._script[self._at]]
        self._at += 1
        self.probability *= weights[index] / sum(weights)
        return index

    def choose(self, sums: np.ndarray) -> int:
        return self._pick(np.diff(sums, prepend=0.0).tolist())

    def coin(self, probability: float) -> bool:
        p = min(1.0, max(0.0, probability))
        return self._pick([1.0 - p, p]) == 1

    def uniform(self, breaks: Callable[[], np.ndarray]) -> float:
        edges = np.unique(np.concatenate([[0.0], np.clip(breaks(), 0.0, 1.0), [1.0]]))
        cell = self._pick(np.diff(edges).tolist())
        return float((edges[cell] + edges[cell + 1]) / 2)

    def stream(self, purpose: int, index: int) -> Enumerating:
        """Returns this object for every stream, so that it can replace `Seeds`."""
        return self

    seed = 0

    def begin(self) -> None:
        self._at, self.probability = 0, 1.0

    def advance(self) -> bool:
        while self._script and self._script[-1] + 1 >= self._options[-1]:
            self._script.pop()
            self._options.pop()
        if not self._script:
            return False
        self._script[-1] += 1
        return True


def every_outcome(run: Callable[[Any], Any], most: int = 2_000_000) -> Iterator[tuple[float, Any]]:
    """Yields (probability, result) for every outcome of the decisions of `run(chance)`."""
    chance = Enumerating()
    for _ in range(most):
        chance.begin()
        result = run(chance)
        yield chance.probability, result
        if not chance.advance():
            return
    raise AssertionError(f"more than {most} outcomes")


def trained(target: Target, draws: int, seed: int = 0) -> Trie:
    """Returns a trie after a few draws of ASAp."""
    from structgen.sampling import asap
    from structgen.sampling.chance import Seeds

    trie = Trie()
    if draws:
        asap.draw(Walker(target, trie, 1), Seeds(seed), draws)
    return trie


def log(x: float) -> float:
    return math.log(x) if x > 0 else -math.inf


class Table(Potential):
    """Log weights of whole texts and of prefixes, from dictionaries; a missing entry has the log weight 0."""

    def __init__(
        self, complete: dict[bytes, float], prefix: dict[bytes, float] | None = None, bounded: bool = False
    ) -> None:
        self._complete, self._prefix = complete, prefix or {}
        self.bounded = bounded

    def complete(self, text: Prefix) -> float:
        return self._complete.get(text.data, 0.0)

    def prefix(self, text: Prefix) -> float:
        return self._prefix.get(text.data, 0.0)


def large(size: int = 20_000) -> TableModel:
    tokens = [
        bytes([97 + i // 676 % 26, 97 + i // 26 % 26, 97 + i % 26, 48 + i // 17576]) for i in range(size)
    ]
    return TableModel(1, [*tokens, b'"', b""], ends=(size + 1,), sharp=1.0)
