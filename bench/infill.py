"""Measures holes in the texts of real schemas and of the library, and conditions on texts: set-up and masks.

In: MaskBench instances (`oracles.data`) and the library's texts, each cut at random. Out: milliseconds of
processor time to set up a middle and to answer `can_complete`; microseconds of a mask along the true middle,
the first time and again, beside those of the plain grammar at the same places; the number of true middles
that were refused, and of calls that were too much to decide. With --conditions: these figures for each kind
of condition that the text meets, and the number of masks that may lack tokens. Cost: a few seconds for a
hundred schemas at 131k tokens.

    python -m bench.infill --count 300
    python -m bench.infill --library
    python -m bench.infill --conditions --count 500
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

CUTS = 2  # cuts per text


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
    """Microseconds of each mask along the text, byte by byte."""
    out = []
    for at in range(min(len(text), most)):
        began = time.perf_counter()
        matcher.fill_bitmask(mask)
        out.append(1e6 * (time.perf_counter() - began))
        if not matcher.accept_bytes(text[at : at + 1]):
            break
    return out


# The measured conditions. The measured text meets each condition.
CONDITIONS = {
    "without": lambda text: sg.without("lamps" if b"lamps" not in text else "zebra"),
    "containing": lambda text: sg.containing(text[len(text) // 2 :][:5]),
    "max_bytes(120)": lambda text: sg.max_bytes(max(120, len(text))),
    "max_bytes(n + 8)": lambda text: sg.max_bytes(len(text) + 8),
    "min_bytes(n / 2)": lambda text: sg.min_bytes(len(text) // 2),
    "from n / 2 to n + 200": lambda text: sg.min_bytes(len(text) // 2) & sg.max_bytes(len(text) + 200),
    "without, max_bytes": lambda text: CONDITIONS["without"](text) & sg.max_bytes(len(text) + 8),
}


def conditions(cases: Iterator[tuple[str, sg.CompiledGrammar, bytes]], mask: object) -> None:
    """Measures one text for each schema: its masks at the first 40 bytes, with each condition and without
    one."""
    found: dict[str, tuple[sg.CompiledGrammar, bytes]] = {}
    for name, grammar, text in cases:
        whole = grammar.matcher()
        if name not in found and whole.accept_bytes(text) and whole.is_accepting():
            found[name] = grammar, text
    for what, made in {"no condition": None, **CONDITIONS}.items():
        setup, first, known = list[float](), list[float](), list[float]()
        counts: Counter[str] = Counter()
        for grammar, text in found.values():
            began = time.perf_counter()
            try:
                held = grammar & made(text) if made else grammar
            except errors.StructgenError as error:
                counts[f"compile: {type(error).__name__}"] += 1
                continue
            finally:
                setup.append(1e3 * (time.perf_counter() - began))
            try:
                first += masks(held.matcher(), text, mask)
                known += masks(held.matcher(), text, mask)
            except errors.StructgenError as error:
                counts[f"mask: {type(error).__name__}"] += 1
                continue
            matcher = held.matcher()
            counts["texts read"] += matcher.accept_bytes(text) and matcher.is_accepting()
            matcher = held.matcher()
            for at in range(min(len(text), 40)):
                matcher.fill_bitmask(mask)
                counts["masks that may lack tokens"] += not matcher.mask_exact
                matcher.accept_bytes(text[at : at + 1])
        print(f"{what}: " + ", ".join(f"{n} {c}" for c, n in sorted(counts.items())))
        line("  set-up", setup, "ms")
        line("  first masks", first, "us")
        line("  known masks", known, "us")


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=200, help="schemas")
    parser.add_argument("--order", default="schema", choices=("schema", "any"))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--library", action="store_true", help="the library's grammars, a line each")
    parser.add_argument("--conditions", action="store_true", help="conditions on whole texts, and no holes")
    options = parser.parse_args(arguments)
    data.require(*(() if options.library else ("maskbench",)))
    tokens = data.tekken()
    vocabulary = sg.Vocabulary.from_bytes(tokens.text, tokens.eos, tokens.special)
    compiler = sg.Compiler(vocabulary)
    mask = sg.allocate_bitmask(1, vocabulary.vocab_size)
    source = random.Random(options.seed)
    cases = texts_of_library(compiler) if options.library else schemas(compiler, options.count, options.order)
    if options.conditions:
        return conditions(cases, mask)
    setup: dict[str, list[float]] = {}
    decided: list[float] = []
    first: dict[str, list[float]] = {"middle": [], "plain": []}
    known: dict[str, list[float]] = {"middle": [], "plain": []}
    counts: Counter[str] = Counter()
    for name, grammar, text in cases:
        whole = grammar.matcher()
        if not (whole.accept_bytes(text) and whole.is_accepting()):
            continue  # the text's keys have another order than the schema's
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
