"""Measures the cost of a prefix of the sampling trie: memory and CPU time, at 131,072 tokens.

    python -m bench.sampling.prefixes [--size 131072] [--draws 24]

Enters: a vocabulary of that many distinct tokens (hashed, so their scores are not those of a real model), a
random row for each prefix, and the grammar of a JSON string. Leaves: a table: bytes for each prefix;
microseconds of this thread's CPU time to make a vector, for a draw and for a backup, with whole and with thin
vectors; and the number of draws that fell into a tail and cost another forward pass. The forward pass is a
table look-up and is left out. Cost: a minute.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from typing import Any

import numpy as np

import structgen as sg
from oracles.tasks import Context
from structgen.sampling import vector
from structgen.sampling.chance import Seeds
from structgen.sampling.methods import METHODS
from structgen.sampling.request import Request
from structgen.sampling.target import Target
from structgen.sampling.trie import Trie
from structgen.sampling.walk import Walker


class Rows:
    """A model whose rows are normal numbers times a spread; each prefix has one of 64 rows."""

    def __init__(self, size: int, spread: float) -> None:
        words = [bytes(b"%c" % byte) for byte in range(256)]
        words += [b"%07x" % (i * 2654435761 % 2**28) for i in range(size - 257)]
        self.vocabulary = sg.Vocabulary.from_bytes([*words, b""], eos_token_ids=[size - 1])
        self.eos_token_ids = [size - 1]
        self.max_context = None
        rows = np.random.default_rng(0).normal(size=(64, size)).astype(np.float32) * np.float32(spread)
        rows -= np.log(np.exp(rows.astype(np.float64)).sum(axis=1, keepdims=True)).astype(np.float32)
        self.rows = rows
        self.seconds = 0.0

    def start(self, prompt: Any) -> Context:
        return Context(tuple(self.vocabulary.encode(prompt)))

    def logprobs(self, contexts: Sequence[Context]) -> np.ndarray:
        begin = time.thread_time()
        found = self.rows[[hash(tuple(c.tokens)) % 64 for c in contexts]]
        self.seconds += time.thread_time() - begin
        return found


def run(lm: Rows, grammar: Any, method: str, thin: bool, draws: int) -> dict[str, float]:
    law = Target.of(lm, lm.start("x"), grammar, None, max_tokens=64, budget="reject", thin=thin)
    walker = Walker(law, Trie(4 << 30), 1)
    making = 0.0
    honest = law.expand

    def expand(*given: Any, **how: Any) -> Any:
        nonlocal making
        begin, forward = time.thread_time(), lm.seconds
        found = honest(*given, **how)
        making += time.thread_time() - begin - (lm.seconds - forward)
        return found

    law.expand = expand  # type: ignore[method-assign]
    asked = Request(model=lm, prompt="x", method=method, n=draws, max_trials=draws)  # type: ignore[arg-type]
    begin, forward = time.thread_time(), lm.seconds
    METHODS[method].draw(walker, Seeds(0), asked)
    rest = time.thread_time() - begin - (lm.seconds - forward) - making
    nodes = max(1, len(walker.trie))
    return {
        "prefixes": nodes,
        "bytes": walker.trie.bytes / nodes,
        "making": 1e6 * making / law.spent.positions,
        "rest": 1e6 * rest / max(1, law.spent.visits),
        "tails": law.spent.positions - nodes,
    }


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="bench.sampling.prefixes", description=__doc__.split("\n")[0])
    parser.add_argument("--size", type=int, default=131_072)
    parser.add_argument("--draws", type=int, default=24)
    options = parser.parse_args(arguments)
    about = f"{options.size} tokens, {options.draws} draws of a JSON string of 64 tokens at most"
    print(f"{about}; thin: {vector.TOP} kept where the others have {vector.THIN_TAIL:.0%} at most")
    print(
        "spread  method      vectors  prefixes  kB a prefix  us to make  us a draw and backup  forwards more"
    )
    for spread in (2.0, 4.0, 6.0):
        lm = Rows(options.size, spread)
        grammar = sg.Compiler(lm.vocabulary).json_schema({"type": "string"}, strings="plain")
        for method in ("importance", "asap"):
            for thin in (False, True):
                found = run(lm, grammar, method, thin, options.draws)
                name = "thin" if thin else "whole"
                numbers = f"{found['bytes'] / 1e3:11.1f}  {found['making']:10.0f}  {found['rest']:20.0f}"
                row = f"{spread:6.0f}  {method:10}  {name:7}  {found['prefixes']:8.0f}  {numbers}"
                print(f"{row}  {found['tails']:13.0f}", flush=True)


if __name__ == "__main__":
    main()
