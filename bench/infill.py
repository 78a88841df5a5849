"""Holes in the texts of real schemas and of the library: what a middle costs to set up, and its masks.

In: MaskBench instances (`oracles.data`) and the library's texts, each cut at random. Out: milliseconds of
processor time to set up a middle and to answer `can_complete`; microseconds of a mask along the true middle,
first and known, beside those of the plain grammar at the same places; true middles that were refused; calls
that were too much to tell. Cost: a few seconds for a hundred schemas at 131k tokens.

    python -m bench.infill --count 300
    python -m bench.infill --library
"""

from __future__ import annotations

import argparse
import random
import time
from collections import Counter
from collections.abc import Iterator, Sequence

import structgen as sg
from oracles import data
from structgen import errors, library

CUTS = 2  # of each text


def percentile(values: Sequence[float], share: float) -> float:
    return sorted(values)[min(len(values) - 1, int(share * len(values)))] if values else float("nan")


def line(what: str, values: Sequence[float], unit: str) -> None:
    shown = "  ".join(f"p{100 * s:.0f} {percentile(values, s):.3g}" for s in (0.5, 0.9, 0.99))
    print(f"{what:38} {shown}  worst {max(values, default=float('nan')):.3g} {unit}  (n = {len(values)})")


def schemas(compiler: sg.Compiler, count: int, order: str) -> Iterator[tuple[str, sg.CompiledGrammar, bytes]]:
    for name in data.sample(data.maskbench_names(), count):
        case = data.maskbench_case(name)
        try:
            grammar = compiler.json_schema(case.schema, property_order=order)  # type: ignore[arg-type]
        except errors.GrammarError:
            continue
        for instance in case.instances:
            if instance.valid:
                yield name, grammar, instance.text.encode()


def texts_of_library(compiler: sg.Compiler) -> Iterator[tuple[str, sg.CompiledGrammar, bytes]]:
    for name in library.names():
        entry = library.load(name)
        grammar = compiler.grammar(entry.text)
        for text in entry.accepted:
            yield name, grammar, text.encode()


def masks(matcher: sg.Matcher, text: bytes, mask: object, most: int = 40) -> list[float]:
    """Microseconds of each mask along the text, a byte at a time."""
    out = []
    for at in range(min(len(text), most)):
        began = time.perf_counter()
        matcher.fill_bitmask(mask)
        out.append(1e6 * (time.perf_counter() - began))
        if not matcher.accept_bytes(text[at : at + 1]):
            break
    return out


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=200, help="schemas")
    parser.add_argument("--order", default="schema", choices=("schema", "any"))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--library", action="store_true", help="the library's grammars, a line each")
    options = parser.parse_args(arguments)
    data.require(*(() if options.library else ("maskbench",)))
    tokens = data.tekken()
    vocabulary = sg.Vocabulary.from_bytes(tokens.text, tokens.eos, tokens.special)
    compiler = sg.Compiler(vocabulary)
    mask = sg.allocate_bitmask(1, vocabulary.vocab_size)
    source = random.Random(options.seed)
    cases = texts_of_library(compiler) if options.library else schemas(compiler, options.count, options.order)
    setup: dict[str, list[float]] = {}
    decided: list[float] = []
    first: dict[str, list[float]] = {"middle": [], "plain": []}
    known: dict[str, list[float]] = {"middle": [], "plain": []}
    counts: Counter[str] = Counter()
    for name, grammar, text in cases:
        whole = grammar.matcher()
        if not (whole.accept_bytes(text) and whole.is_accepting()):
            continue  # its keys stand in another order
        for _ in range(CUTS):
            begin, end = sorted(source.randint(0, len(text)) for _ in range(2))
            prefix, middle, suffix = text[:begin], text[begin:end], text[end : end + 1024 + len(text)]
            began = time.process_time()
            try:
                found = grammar.infill(prefix, suffix)
            except (errors.SchemaTooComplex, errors.BudgetExceeded) as error:
                counts[f"infill: {type(error).__name__}"] += 1
                continue
            finally:
                took = 1e3 * (time.process_time() - began)
                setup.setdefault(name if options.library else "all", []).append(took)
            matcher = found.matcher()
            counts["true middles"] += 1
            if not (matcher.accept_bytes(middle) and matcher.is_accepting()):
                counts["true middles refused"] += 1
                print(f"refused: {name}: {prefix!r} | {middle!r} | {suffix!r}")
                continue
            began = time.process_time()
            answer = grammar.can_complete([prefix, sg.Gap(), suffix])
            decided.append(1e3 * (time.process_time() - began))
            counts[f"can_complete: {answer.verdict}"] += 1
            plain = grammar.matcher()
            if prefix:
                plain.accept_bytes(prefix)
            try:
                for what, at in (("plain", plain), ("middle", found.matcher())):
                    first[what] += masks(at.fork(), middle, mask)
                    known[what] += masks(at.fork(), middle, mask)
            except (errors.SchemaTooComplex, errors.BudgetExceeded) as error:
                counts[f"mask: {type(error).__name__}"] += 1
    for name, values in setup.items():
        line(f"set-up of a middle{'' if name == 'all' else f', {name}'}", values, "ms")
    line("can_complete, one gap", decided, "ms")
    for what in ("plain", "middle"):
        line(f"first mask, {what}", first[what], "us")
        line(f"known mask, {what}", known[what], "us")
        print(f"{'':38} mean of first masks {sum(first[what]) / max(1, len(first[what])):.1f} us")
    print(", ".join(f"{n} {what}" for what, n in sorted(counts.items())))


if __name__ == "__main__":
    main()
