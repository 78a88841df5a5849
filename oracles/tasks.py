"""Tasks for sampling: GAD tasks (grammar and prompt pairs of SLIA, BV4, CP), and a table whose law is known.

Input: the data root. Output: `Task`: a model, a prompt, a compiled grammar, a length. The embedded model is
loaded once.

The embedded model was not trained on such tasks: log P(language) is below -100, and no sampler can repair
that. So GAD tasks use `Ngram`, a model counted from the prompts of the task's split, which mostly writes the
syntax of the solutions. It fits badly (log Z of -11 to -41), and one or two texts often have all the weight.
So every task has a second version, named with a "+": its model also counted `SHOWN` random texts of the
grammar, and its law is broad. The embedded model has a JSON task of its own.

The grammars of SLIA and BV4 are recursive. Cut at a `depth`, their languages are finite, and `law` computes
the exact law of an n-gram model on them. CP grammars are finite without a cut.
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
from oracles import closed, data
from oracles.exact import Exact, Rules, Stacks, TooLarge

ORDER = 5  # the n-gram model's context in tokens
SHOWN = 60  # the number of random texts that the model of a "+" task counted
NAMES = (
    *("BV4/find_inv_bvsge_bvnot_4bit", "BV4/find_inv_bvsge_bvnot_4bit+", "SLIA/firstname_small"),
    *("SLIA/firstname_small+", "SLIA/dr-name", "SLIA/dr-name+", "CP/CP_re_ptb_486", "CP/CP_re_ptb_486+"),
    "CP/CP_re_ptb_1434+",
)
FULL = (  # tasks that run with an uncut grammar
    "BV4/find_inv_bvsge_bvnot_4bit",
    "BV4/find_inv_bvsge_bvnot_4bit+",
    "SLIA/firstname_small",
    "SLIA/firstname_small+",
    "SLIA/dr-name+",
    "SLIA/name-combine-4-long",
    "SLIA/phone-3-long+",
    "CP/CP_re_ptb_460+",
)


@dataclass(frozen=True, slots=True)
class Task:
    name: str
    lm: Any
    prompt: Any
    grammar: sg.CompiledGrammar
    max_tokens: int
    rules: Rules | None = None
    depth: int | None = None


def names() -> list[str]:
    """Returns all tasks of the data directory."""
    folder = data.root() / "gad"
    return sorted(p.relative_to(folder).with_suffix("").as_posix() for p in folder.glob("*/*.ebnf"))


@functools.cache
def embedded() -> Any:
    from structgen.lm import embedded as files
    from structgen.lm.transformers import TransformersLM

    return TransformersLM.from_pretrained(files.path(), kv_bytes=128 << 20)


def json_task() -> Task:
    """Returns the embedded model on a request like those of its training."""
    from structgen.lm import embedded as files

    lm = embedded()
    schema = closed(
        {
            "product": {"enum": ["shirt", "shirts", "blue shirts", "blue shirt", "hat", "hats", "coat"]},
            "quantity": {"type": "integer", "minimum": 1, "maximum": 12},
            "size": {"enum": ["small", "medium", "large"]},
        }
    )
    grammar = sg.Compiler(lm.vocabulary).json_schema(schema, whitespace="compact")
    prompt = lm.encode(files.format_prompt("I would like two blue shirts and a hat", schema))
    return Task("json", lm, prompt, grammar, 40)


def gad(name: str, depth: int | None = 1, max_tokens: int | None = None) -> Task:
    """Returns one task with the n-gram model. depth None: the uncut grammar, through `Compiler.gbnf`.

    max_tokens: by default 120 for an uncut grammar. For a cut grammar, one more than the bytes of its longest
    text, so that every text fits.
    """
    plain = name.removesuffix("+")
    folder = data.root() / "gad"
    text = (folder / f"{plain}.ebnf").read_text(encoding="utf-8")
    prompt = (folder / f"{plain}.txt").read_text(encoding="utf-8")
    rules = rules_of(text)
    lm = ngram(plain.split("/")[0], plain if name != plain else "")
    compiler = sg.Compiler(lm.vocabulary)
    grammar = compiler.gbnf(defined(text)) if depth is None else compiler.regex(bounded(text, depth))
    if max_tokens is None:
        max_tokens = 120 if depth is None else longest(rules, depth) + 1
    return Task(name, lm, lm.vocabulary.encode(prompt)[-ORDER:], grammar, max_tokens, rules, depth)


@functools.cache
def ngram(split: str, shown: str = "") -> Ngram:
    """Returns the model of a split, counted on all its prompts. A text ends where the next question begins.

    shown: a task. The model also counts `SHOWN` random texts of the task's grammar, as answers to its
    prompt.
    """
    from structgen.lm import embedded as files

    vocabulary = sg.Vocabulary.from_file(files.path())
    end = list(vocabulary.eos_token_ids)[0]
    folder = data.root() / "gad"
    lines: list[list[int]] = []
    for path in sorted((folder / split).glob("*.txt")):
        ids: list[int] = []
        for part in path.read_text(encoding="utf-8").split("\n\n"):
            ids += [*vocabulary.encode(part), end]
        lines.append(ids[:-1])
    if shown:
        rules = rules_of((folder / f"{shown}.ebnf").read_text(encoding="utf-8"))
        ask = vocabulary.encode((folder / f"{shown}.txt").read_text(encoding="utf-8"))[-ORDER:]
        random = np.random.default_rng(0)
        lines += [[*ask, *vocabulary.encode(derived(rules, 1, random)), end] for _ in range(SHOWN)]
    return Ngram(vocabulary, lines, ORDER)


def derived(rules: Rules, depth: int, random: np.random.Generator) -> str:
    """Returns a random text of a grammar. Alternatives are equally likely, without those that nest too
    deep."""

    def expand(name: str, open_: dict[str, int]) -> str | None:
        if name not in rules or open_.get(name, 0) > depth:
            return None
        inside = {**open_, name: open_.get(name, 0) + 1}
        for at in random.permutation(len(rules[name])):
            parts = [t if literal else expand(t, inside) for literal, t in rules[name][at]]
            if None not in parts:
                return "".join(p for p in parts if p is not None)
        return None

    found = expand("root", {})
    if found is None:
        raise ValueError(f"no text nests at most {depth} deep")
    return found


def longest(rules: Rules, depth: int) -> int:
    """Returns the bytes of the longest text that nests at most `depth` deep."""

    @functools.cache
    def most(name: str, open_: tuple[tuple[str, int], ...]) -> float:
        inside = dict(open_)
        if name not in rules or inside.get(name, 0) > depth:
            return -np.inf
        inside[name] = inside.get(name, 0) + 1
        nested = tuple(sorted(inside.items()))
        return max(sum(len(t.encode()) if literal else most(t, nested) for literal, t in option)
                   for option in rules[name])  # fmt: skip

    return int(most("root", ()))


@functools.cache
def law(task_name: str, depth: int = 1) -> Exact | None:
    """Returns the exact law of a task by dynamic programming; None if the task has no exact law."""
    task = toy() if task_name == "toy" else gad(task_name, depth)
    if task.rules is None:
        return None
    lm = task.lm
    tokens = [lm.vocabulary.token_bytes(i) for i in range(lm.vocabulary.vocab_size)]
    limit = None if task.depth is not None else task.max_tokens
    try:
        return Exact(
            Stacks(task.rules, task.depth),
            functools.cache(lambda state: _normalised(lm.row(state))),
            functools.cache(lm.step),
            lm.state(tuple(task.prompt)),
            tokens,
            list(lm.eos_token_ids),
            limit,
        )
    except TooLarge:
        return None


def _normalised(row: Any) -> Any:
    """Normalises, in double precision, the float32 row that the samplers see."""
    scores = row.astype(np.float32).astype(np.float64)
    return scores - np.logaddexp.reduce(scores)


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
        return np.array([self.row(self.state(tuple(c.tokens))) for c in contexts], np.float32)

    def state(self, tokens: tuple[int, ...]) -> tuple[int, ...]:
        """Returns the longest counted suffix, on which the next token depends."""
        found: tuple[int, ...] = ()
        for size in range(1, min(self._order, len(tokens)) + 1):
            suffix = tokens[len(tokens) - size :]
            if suffix not in self._counts:
                break
            found = suffix
        return found

    def step(self, state: tuple[int, ...], token: int) -> tuple[int, ...]:
        return self.state((*state, token))

    def row(self, tokens: tuple[int, ...]) -> Any:
        """Returns log P of the next token, float64, shape (V,)."""
        row = np.full(self.vocabulary.vocab_size, 1.0 / self.vocabulary.vocab_size)
        for size in range(min(self._order, len(tokens)) + 1):
            found = self._counts.get(tokens[len(tokens) - size :])
            if found is None:
                break
            ids, counts = found
            row *= len(ids) / (counts.sum() + len(ids))
            row[ids] += counts / (counts.sum() + len(ids))
        return np.log(row / row.sum())


_SYMBOL = re.compile(r'"((?:[^"\\]|\\.)*)"|([A-Za-z_][\w]*)|(\|)')


def rules_of(ebnf: str) -> Rules:
    """Returns a dict of rule -> alternatives -> (is a literal, text or rule). The text has one rule per
    line."""
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
    """Returns the grammar without alternatives that derive no text. Some CP grammars use rules that they do
    not define."""
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
    """Returns a regex for the texts of a grammar that nest each rule at most `depth` times within itself."""
    rules = rules_of(ebnf)

    def expand(name: str, open_: tuple[tuple[str, int], ...]) -> str | None:
        inside = dict(open_)
        if name not in rules:  # an undefined rule, as in some CP grammars, derives nothing
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
    """A prefix for a model without a cache: the ids."""

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
    """A language model as a table: a random vector for every prefix, fixed by a seed."""

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
        return np.array([self.row(tuple(c.tokens)) for c in contexts], np.float32)

    def state(self, tokens: tuple[int, ...]) -> tuple[int, ...]:
        return tokens

    def step(self, state: tuple[int, ...], token: int) -> tuple[int, ...]:
        return (*state, token)

    def row(self, tokens: tuple[int, ...]) -> Any:
        if tokens not in self._rows:
            random = np.random.default_rng([self._seed, *tokens])
            scores = random.normal(size=self.vocabulary.vocab_size) * self._sharp
            self._rows[tokens] = (scores - np.logaddexp.reduce(scores)).astype(np.float32)
        return self._rows[tokens]


_TOY = """root ::= First Second Rest
First ::= "a" | "ab" | "c"
Second ::= "" | "d" | "e" | "f"
Rest ::= "" | "abc" Rest | "def" Rest | "b" Rest
"""


def toy(seed: int = 0) -> Task:
    """Returns a table as the model, under (a|ab|c)(d|e|f)?(abc|def|b)* in 8 tokens. Masking changes its law
    strongly."""
    lm = Toy(seed)
    grammar = sg.Compiler(lm.vocabulary).regex(r"(a|ab|c)(d|e|f)?(abc|def|b)*")
    return Task("toy", lm, [], grammar, 8, rules_of(_TOY))
