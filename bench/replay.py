"""Tokens a second of `structgen.rl.replay` at a vocabulary of 131,072 tokens.

Enters: MaskBench schemas with their valid texts. Leaves: a line each for a *new* grammar (the text makes its
masks), a *known* one on one thread, and many texts over threads; beside them `fill_bitmask` and
`accept_token` in a loop, whose masks must be equal. Cost: half a minute.

    python -m bench.replay [--count 40] [--tokens 10000] [--threads 1,2]
"""

from __future__ import annotations

import argparse
import sys
import time

import numpy as np

import structgen as sg
from bench.batch import walked
from oracles import data
from structgen import rl


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="bench.replay")
    parser.add_argument("--count", type=int, default=40)
    parser.add_argument("--tokens", type=int, default=10_000)
    parser.add_argument("--threads", default="1,2")
    asked = parser.parse_args(argv)
    tokens = data.tekken()
    vocabulary = sg.Vocabulary.from_bytes(
        tokens.text, eos_token_ids=[tokens.eos], special_token_ids=tokens.special
    )
    compiler = sg.Compiler(vocabulary)
    grammars = [  # a valid text that the grammar writes in another way counts up to that place
        (grammar, np.array(ids[: grammar.matcher().validate_tokens(ids)], np.int64))
        for grammar, ids in walked(compiler, tokens, asked.count)
    ]
    total = sum(len(ids) for _, ids in grammars)
    print(f"{len(grammars)} grammars, {total} tokens, {vocabulary.vocab_size} in the vocabulary")

    begin = time.perf_counter()
    first = [rl.replay(grammar, ids) for grammar, ids in grammars]
    print(f"new grammars      {total / (time.perf_counter() - begin):12,.0f} tokens/s")
    mask = sg.allocate_bitmask(1, vocabulary.vocab_size)
    begin = time.perf_counter()
    for (grammar, ids), masks in zip(grammars, first, strict=True):
        matcher = grammar.matcher()
        for i, token in enumerate(ids.tolist()):
            matcher.fill_bitmask(mask)
            matcher.accept_token(token)
            if not np.array_equal(mask[0], masks.rows[masks.of[i]]):
                raise AssertionError(f"token {i} has another mask")
    print(f"a loop, compared  {total / (time.perf_counter() - begin):12,.0f} tokens/s")

    properties = {"name": {"type": "string"}, "n": {"type": "integer"}}
    lists = compiler.json_schema({"type": "array", "items": {"type": "object", "properties": properties}})
    item = '{"name": "a name of some words", "n": 1234}'
    encoded = tokens.encode("[" + ", ".join([item] * (asked.tokens // 10)) + "]")[: asked.tokens]
    rl.replay(lists, encoded)
    ids = np.array(encoded, np.int32)
    for threads in map(int, asked.threads.split(",")):
        texts = [ids] * (20 * threads)
        begin = time.perf_counter()
        many = rl.replay_many(lists, texts, threads=threads)
        spent = time.perf_counter() - begin
        print(
            f"known, {threads} thread(s) {len(ids) * len(texts) / spent:12,.0f} tokens/s, "
            f"{len(many[0].rows)} distinct masks of {len(ids)} tokens"
        )
    begin = time.perf_counter()
    dense = many[0].bitmask()
    rate = len(dense) / (time.perf_counter() - begin)
    print(f"bitmask()         {rate:12,.0f} rows/s, {dense.nbytes / 1e6:,.0f} MB")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
