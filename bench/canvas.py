"""Measures canvases of real schemas whose slots are filled in random order: the time of checks, and the
undecided checks.

Input: MaskBench instances (`oracles.data`), cut into tokens of the 131k vocabulary by longest match. A canvas
has as many slots as the text has tokens, and up to 8 more. Each token is committed in random order. Before
each commit a token from another place of the document is checked. Output: CPU milliseconds of a check or
commit and of a slot's mask; verdicts; tokens of the text that were not allowed. Time: seconds per schema.

python -m bench.canvas --count 100
"""

from __future__ import annotations

import argparse
import random
import time
from collections import Counter

import structgen as sg
from oracles import data
from structgen import errors

from .infill import line, schemas, texts_of_library


class Cutter:
    """Cuts a text into tokens, the longest first, without a tokenizer."""

    def __init__(self, vocabulary: sg.Vocabulary) -> None:
        ends = set(vocabulary.eos_token_ids)
        self.known = {
            text: t
            for t in range(vocabulary.vocab_size)
            if t not in ends and (text := vocabulary.decode([t]))
        }
        self.longest = min(32, max(map(len, self.known)))

    def cut(self, text: bytes) -> list[int] | None:
        out, at = [], 0
        while at < len(text):
            for n in range(min(self.longest, len(text) - at), 0, -1):
                if (token := self.known.get(text[at : at + n])) is not None:
                    out.append(token)
                    at += n
                    break
            else:
                return None
        return out


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=50, help="schemas")
    parser.add_argument("--order", default="schema", choices=("schema", "any"))
    parser.add_argument("--slots", type=int, default=256, help="texts of more tokens are left out")
    parser.add_argument("--least", type=int, default=16, help="texts of fewer tokens are left out")
    parser.add_argument("--seconds", type=float, default=60.0, help="for one canvas")
    parser.add_argument("--masks", type=int, default=4, help="slot masks of each canvas")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--library", action="store_true", help="the library's grammars instead")
    options = parser.parse_args(arguments)
    data.require(*(() if options.library else ("maskbench",)))
    tokens = data.tekken()
    vocabulary = sg.Vocabulary.from_bytes(tokens.text, tokens.eos, tokens.special)
    compiler = sg.Compiler(vocabulary)
    cutter = Cutter(vocabulary)
    source = random.Random(options.seed)
    end = vocabulary.eos_token_ids[0]
    first: list[float] = []
    later: list[float] = []
    rows: list[float] = []
    verdicts: Counter[str] = Counter()
    counts: Counter[str] = Counter()
    mask = sg.allocate_bitmask(1, vocabulary.vocab_size)
    seen = set()
    cases = texts_of_library(compiler) if options.library else schemas(compiler, options.count, options.order)
    for name, grammar, text in cases:
        if name in seen and not options.library:
            continue
        row = cutter.cut(text)
        whole = grammar.matcher()
        if row is None or not options.least <= len(row) <= options.slots:
            counts["texts too short or too long"] += 1
            continue
        if not (whole.accept_bytes(text) and whole.is_accepting()):
            continue
        seen.add(name)
        row = row + [end] * min(8, options.slots - len(row))
        began = time.process_time()
        try:
            canvas = grammar.canvas(len(row))
        except (errors.StructgenError, ValueError) as error:
            counts[f"canvas: {type(error).__name__}: {error}"] += 1
            continue
        first.append(1e3 * (time.process_time() - began))
        counts["canvases"] += 1
        started = time.process_time()
        order = list(range(len(row)))
        source.shuffle(order)
        asked = set(source.sample(order, min(options.masks, len(order))))
        for slot in order:
            if time.process_time() - started > options.seconds:
                counts["canvases out of time"] += 1
                print(f"out of time: {name} ({len(row)} slots)", flush=True)
                break
            for token in (source.choice(row), row[slot]):
                began = time.process_time()
                verdict = canvas.allows(slot, token)
                later.append(1e3 * (time.process_time() - began))
                kind = "true token" if token == row[slot] else "other token"
                verdicts[f"{kind}: {verdict}"] += 1
            if slot in asked:
                began = time.process_time()
                exact = canvas.fill_bitmask(mask, slot)
                rows.append(1e3 * (time.process_time() - began))
                counts["masks that are exact" if exact else "masks that are not"] += 1
            began = time.process_time()
            try:
                canvas.set(slot, row[slot])
            except ValueError:
                counts["true tokens that were not set"] += 1
                canvas.set(slot, row[slot], force=True)
            later.append(1e3 * (time.process_time() - began))
        else:
            counts["canvases filled"] += 1
            if canvas.complete() != row:
                counts["canvases filled with something else"] += 1
    line("canvas made", first, "ms")
    line("check or commit", later, "ms")
    line("mask of a slot", rows, "ms")
    for what, n in sorted((verdicts + counts).items()):
        print(f"{what:50} {n}")


if __name__ == "__main__":
    main()
