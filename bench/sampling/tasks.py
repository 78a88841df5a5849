"""What is sampled: GAD tasks (grammar and prompt pairs of SLIA, BV4, CP) and a table whose law is known.

Enters: the data root. Leaves: `Task`: a model, a prompt, a compiled grammar, a length. Cost: the embedded
model is loaded once.

The embedded model has never seen such tasks (log P(language) is below -100, and no sampler can repair
that), so GAD tasks are given to `Ngram`, a model counted from the prompts of the task's own split: it
writes the solutions' syntax, mostly, and its law is known exactly. The embedded model has a JSON task of
its own. The grammars of SLIA and BV4 are recursive; `depth` cuts the recursion where no compiler of such
grammars is at hand. CP grammars are finite as they are.
"""

from __future__ import annotations

import functools
import json
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import structgen as sg
from bench import data

__all__ = ["NAMES", "Context", "Ngram", "Task", "Toy", "gad", "json_task", "names", "toy"]

ORDER = 5  # tokens of context of the n-gram model
NAMES = (
    "BV4/find_inv_bvsge_bvnot_4bit",
    "SLIA/firstname_small",
    "SLIA/dr-name",
    "CP/CP_re_ptb_486",
)


@dataclass(frozen=True, slots=True)
class Task:
    name: str
    lm: Any
    prompt: Any
    grammar: sg.CompiledGrammar
    max_tokens: int


def names() -> list[str]:
    """All tasks of the data directory."""
    folder = data.root() / "gad"
    return sorted(p.relative_to(folder).with_suffix("").as_posix() for p in folder.glob("*/*.ebnf"))


@functools.cache
def embedded() -> Any:
    from structgen.lm import embedded as files
    from structgen.lm.transformers import TransformersLM

    return TransformersLM.from_pretrained(files.path(), kv_bytes=128 << 20)


def json_task() -> Task:
    """The embedded model on a request of the kind that it was trained for."""
    from structgen.lm import embedded as files

    lm = embedded()
    schema = {
        "type": "object",
        "properties": {
            "product": {"enum": ["shirt", "shirts", "blue shirts", "blue shirt", "hat", "hats", "coat"]},
            "quantity": {"type": "integer", "minimum": 1, "maximum": 12},
            "size": {"enum": ["small", "medium", "large"]},
        },
        "required": ["product", "quantity", "size"],
        "additionalProperties": False,
    }
    grammar = sg.Compiler(lm.vocabulary).json_schema(schema, whitespace="compact")
    prompt = lm.encode(files.format_prompt("I would like two blue shirts and a hat", schema))
    return Task("json", lm, prompt, grammar, 40)


def gad(name: str, depth: int | None = 2, max_tokens: int = 120) -> Task:
    """One task with the n-gram model. depth None: the grammar as it is, through `Compiler.gbnf`."""
    lm = ngram(name.split("/")[0])
    folder = data.root() / "gad"
    text = (folder / f"{name}.ebnf").read_text(encoding="utf-8")
    prompt = (folder / f"{name}.txt").read_text(encoding="utf-8")
    compiler = sg.Compiler(lm.vocabulary)
    grammar = compiler.gbnf(defined(text)) if depth is None else compiler.regex(bounded(text, depth))
    return Task(name, lm, lm.vocabulary.encode(prompt)[-ORDER:], grammar, max_tokens)


@functools.cache
def ngram(split: str) -> Ngram:
    """The model of a split: counted on all its prompts, a text ending where the next question begins."""
    from structgen.lm import embedded as files

    vocabulary = sg.Vocabulary.from_file(files.path())
    end = list(vocabulary.eos_token_ids)[0]
    lines: list[list[int]] = []
    for path in sorted((data.root() / "gad" / split).glob("*.txt")):
        ids: list[int] = []
        for part in path.read_text(encoding="utf-8").split("\n\n"):
            ids += [*vocabulary.encode(part), end]
        lines.append(ids[:-1])
    return Ngram(vocabulary, lines, ORDER)


class Ngram:
    """An interpolated n-gram model (Witten and Bell 1991) as a `LanguageModel`."""

    max_context = None

    def __init__(self, vocabulary: sg.Vocabulary, texts: Sequence[Sequence[int]], order: int) -> None:
        self.vocabulary = vocabulary
        self.eos_token_ids = list(vocabulary.eos_token_ids)
        self._order = order
        counts: dict[tuple[int, ...], Counter[int]] = {}
        for text in texts:
            for at, token in enumerate(text):
                for size in range(min(order, at) + 1):
                    counts.setdefault(tuple(text[at - size : at]), Counter())[token] += 1
        self._counts = {
            key: (np.array(list(c), np.int64), np.array(list(c.values()), np.float64))
            for key, c in counts.items()
        }

    def start(self, prompt: Any) -> Context:
        return Context(tuple(self.vocabulary.encode(prompt) if isinstance(prompt, str) else prompt))

    def logprobs(self, contexts: Sequence[Any]) -> Any:
        return np.array([self._row(tuple(c.tokens)) for c in contexts], np.float32)

    def _row(self, tokens: tuple[int, ...]) -> Any:
        row = np.full(self.vocabulary.vocab_size, 1.0 / self.vocabulary.vocab_size)
        for size in range(self._order + 1):
            found = self._counts.get(tokens[len(tokens) - size :])
            if found is None:
                break
            ids, counts = found
            row *= len(ids) / (counts.sum() + len(ids))
            row[ids] += counts / (counts.sum() + len(ids))
        return np.log(row / row.sum())


_SYMBOL = re.compile(r'"((?:[^"\\]|\\.)*)"|([A-Za-z_][\w]*)|(\|)')


Rules = dict[str, list[list[tuple[bool, str]]]]


def rules_of(ebnf: str) -> Rules:
    """Rule -> alternatives -> (literal?, text or rule), a rule a line."""
    rules: Rules = {}
    for line in ebnf.splitlines():
        if "::=" not in line:
            continue
        name, body = line.split("::=", 1)
        options: list[list[tuple[bool, str]]] = [[]]
        for literal, symbol, bar in _SYMBOL.findall(body):
            if bar:
                options.append([])
            elif symbol:
                options[-1].append((False, symbol))
            else:
                options[-1].append((True, literal.replace('\\"', '"').replace("\\\\", "\\")))
        rules[name.strip()] = options
    return rules


def defined(ebnf: str) -> str:
    """The grammar without alternatives that derive nothing, because some CP grammars name rules they lack."""
    rules = rules_of(ebnf)
    while True:
        kept = {
            name: [o for o in options if all(literal or t in rules for literal, t in o)]
            for name, options in rules.items()
        }
        kept = {name: options for name, options in kept.items() if options}
        if kept == rules:
            break
        rules = kept
    return "".join(f"{name} ::= {' | '.join(map(_spelled, options))}\n" for name, options in rules.items())


def _spelled(option: list[tuple[bool, str]]) -> str:
    return " ".join(json.dumps(t) if literal else t for literal, t in option) or '""'


def bounded(ebnf: str, depth: int) -> str:
    """A regex for the texts of a grammar that nest each rule at most `depth` times within itself."""
    rules = rules_of(ebnf)

    def expand(name: str, open_: tuple[tuple[str, int], ...]) -> str | None:
        inside = dict(open_)
        if name not in rules:  # some CP grammars name rules that they lack: nothing is derived from them
            return None
        if inside.get(name, 0) > depth:
            return None
        inside[name] = inside.get(name, 0) + 1
        nested = tuple(sorted(inside.items()))
        made = []
        for option in rules[name]:
            parts = [re.escape(t) if literal else expand_cached(t, nested) for literal, t in option]
            if None not in parts:
                made.append("".join(p for p in parts if p is not None))
        return "(?:" + "|".join(made) + ")" if made else None

    expand_cached = functools.cache(expand)
    found = expand_cached("root", ())
    if found is None:
        raise ValueError(f"no text nests at most {depth} deep")
    return found


class Context:
    """A prefix of a model that has no cache: the ids themselves."""

    def __init__(self, tokens: tuple[int, ...]) -> None:
        self._tokens = tokens

    @property
    def tokens(self) -> list[int]:
        return list(self._tokens)

    def __len__(self) -> int:
        return len(self._tokens)

    def extend(self, token: int) -> Context:
        return Context((*self._tokens, int(token)))


class Toy:
    """A language model that is a table: a random vector for every prefix, fixed by a seed."""

    max_context = None

    def __init__(self, seed: int, letters: str = "abcdef", sharp: float = 2.5) -> None:
        texts = [letter.encode() for letter in letters] + [b"ab", b"cd", b""]
        self.eos_token_ids = [len(texts) - 1]
        self.vocabulary = sg.Vocabulary.from_bytes(texts, eos_token_ids=self.eos_token_ids)
        self._seed, self._sharp = seed, sharp
        self._rows: dict[tuple[int, ...], Any] = {}

    def start(self, prompt: Any) -> Context:
        return Context(tuple(prompt))

    def logprobs(self, contexts: Sequence[Any]) -> Any:
        return np.array([self._row(tuple(c.tokens)) for c in contexts], np.float32)

    def _row(self, tokens: tuple[int, ...]) -> Any:
        if tokens not in self._rows:
            random = np.random.default_rng([self._seed, *tokens])
            scores = random.normal(size=self.vocabulary.vocab_size) * self._sharp
            self._rows[tokens] = (scores - np.logaddexp.reduce(scores)).astype(np.float32)
        return self._rows[tokens]


def toy(seed: int = 0) -> Task:
    """The table with the language  (a|ab|c)(d|e|f)?(abc|def|b)*  up to 8 tokens: distortion is strong."""
    lm = Toy(seed)
    grammar = sg.Compiler(lm.vocabulary).regex(r"(a|ab|c)(d|e|f)?(abc|def|b)*")
    return Task("toy", lm, [], grammar, 8)
