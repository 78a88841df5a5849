"""Grammars side by side: time between masks on a C-like language and on SQL at 131,072 tokens.

In: the library's `c` and `sql` grammars, texts of both. Out: per engine the time to the first mask, and
median, mean, p99 and maximum of a mask plus accepting a token, microseconds of processor time (the machine
may be shared): `first` is the first reading of each text, where everything is new, `again` are `--repeat`
more with fresh matchers. Every engine gets the same text in the Lark dialect, which is llguidance's own;
xgrammar has no `&` and `~` on terminals, so names may be keywords for it. An engine that needs longer
than `--seconds` for one text is stopped.

    python -m bench.grammars
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import structgen
from oracles import data
from structgen import library

C_TEXTS = [
    """struct pair { int low, high; };
static int find(const int *table, int count, int key) {
    int low = 0, high = count - 1;
    while (low <= high) {
        int middle = low + (high - low) / 2;
        if (table[middle] == key) return middle;
        if (table[middle] < key) {
            low = middle + 1;
        } else {
            high = middle - 1;
        }
    }
    return -1;
}

int main(int argc, char **argv) {
    int table[8] = {1, 3, 5, 7, 9, 11, 13, 15};
    for (int i = 0; i < 8; i++) {
        printf("%d -> %d\\n", table[i], find(table, 8, table[i]));
    }
    return argc > 1 ? atoi(argv[1]) : 0;
}
""",
    """struct node { struct node *next; int value; };

static struct node *reverse(struct node *list) {
    struct node *result = NULL;
    while (list != NULL) {
        struct node *next = list->next;
        list->next = result;
        result = list;
        list = next;
    }
    return result;
}

unsigned long hash(const char *text) {
    unsigned long h = 5381UL;
    int c;
    while ((c = *text++)) h = ((h << 5) + h) ^ c; // djb2
    switch (h & 3) {
        case 0: h += 1; break;
        case 1: h *= 31; break;
        default: h = ~h;
    }
    do { h >>= 1; } while (h > 0xffffUL && !(h % 2 == 0));
    return h;
}
""",
]
SQL_TEXTS = [
    """SELECT c.name, count(*) AS orders, sum(o.total * 1.19) AS revenue
FROM customers c
LEFT JOIN orders AS o ON o.customer_id = c.id AND o.status <> 'cancelled'
WHERE c.country IN ('DE', 'FR', 'IT') AND o.placed_at BETWEEN '2025-01-01' AND '2025-12-31'
GROUP BY c.name
HAVING count(*) > 3
ORDER BY revenue DESC, c.name ASC
LIMIT 20 OFFSET 40;""",
    """WITH recent AS (SELECT id, price FROM products WHERE created > '2026-01-01'),
ranked AS (SELECT id, rank() OVER (PARTITION BY category ORDER BY price DESC) AS position FROM recent)
SELECT p.id, CASE WHEN r.position = 1 THEN 'best' WHEN r.position <= 3 THEN 'good' ELSE NULL END AS label
FROM products p INNER JOIN ranked r USING (id)
WHERE NOT EXISTS (SELECT 1 FROM returns x WHERE x.product = p.id) OR p.stock IS NOT NULL
UNION ALL
SELECT id, CAST(price AS text) FROM archive -- old ones
""",
]


def engines(tokens: data.Tokens) -> dict[str, Callable[[str], Callable[[], Any]]]:
    """Name -> grammar text -> function making (fill, accept)."""
    found: dict[str, Callable[[str], Callable[[], Any]]] = {}
    size = len(tokens.text)

    vocabulary = structgen.Vocabulary.from_bytes(tokens.text, tokens.eos, tokens.special)

    def ours(text: str) -> Callable[[], Any]:
        compiler = structgen.Compiler(vocabulary)
        grammar = compiler.grammar(text)
        mask = structgen.allocate_bitmask(1, size)

        def make() -> Any:
            matcher = grammar.matcher()
            return (lambda: matcher.fill_bitmask(mask)), matcher.accept_token, mask

        return make

    found["structgen"] = ours
    try:
        import llguidance

        from structgen.maskbench.engines import llguidance as adapter  # its quickest path

        tokenizer = adapter.Engine(tokens)._tokenizer

        def theirs(text: str) -> Callable[[], Any]:
            row = np.zeros((1, (size + 31) // 32), dtype=np.int32)
            grammar = adapter.Grammar(tokenizer, llguidance.LLMatcher.grammar_from_lark(text), row)

            def make() -> Any:
                sequence = grammar.sequence()
                return sequence.fill, sequence.accept, row

            return make

        found["llguidance"] = theirs
    except (ImportError, AttributeError) as error:
        print(f"llguidance: {error}")
    try:
        import torch
        import xgrammar

        encoded = [t if t else f"<special {i}>".encode() for i, t in enumerate(tokens.text)]
        info = xgrammar.TokenizerInfo(encoded, stop_token_ids=[tokens.eos])
        gc = xgrammar.GrammarCompiler(info, max_threads=1)

        def xgr(text: str) -> Callable[[], Any]:
            compiled = gc.compile_grammar(xgrammar.Grammar.from_lark(text.replace(" & ~KEYWORD", "")))
            mask = torch.zeros((1, (size + 31) // 32), dtype=torch.int32)

            def make() -> Any:
                matcher = xgrammar.GrammarMatcher(compiled)
                return (lambda: matcher.fill_next_token_bitmask(mask)), matcher.accept_token, mask.numpy()

            return make

        found["xgrammar"] = xgr
    except (ImportError, AttributeError) as error:
        print(f"xgrammar: {error}")
    return found


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeat", type=int, default=2, help="readings after the first")
    parser.add_argument("--seconds", type=float, default=60, help="of one engine on one reading of a text")
    parser.add_argument("--engines", nargs="*", help="of structgen, llguidance, xgrammar; all by default")
    parser.add_argument("--json", action="store_true", help="one JSON object a line instead of a table")
    options = parser.parse_args(arguments)
    tokens = data.tekken()
    makers = {k: v for k, v in engines(tokens).items() if not options.engines or k in options.engines}
    for name, texts in (("c", C_TEXTS), ("sql", SQL_TEXTS)):
        grammar = library.load(name).text
        ready = {}
        for engine, compile_grammar in makers.items():
            began = time.process_time()
            try:
                make = compile_grammar(grammar)
                fill, accept, _ = make()
                fill()
            except Exception as error:
                print(f"{name}: {engine} refuses the grammar: {str(error).strip().splitlines()[0][:150]}")
                continue
            ttfm = (time.process_time() - began) * 1e3
            print(f"{name}: {engine} compiled, first mask after {ttfm:.0f} ms", flush=True)
            # A fresh one: what the first mask left behind would make the first reading shorter.
            ready[engine] = compile_grammar(grammar)
        taken: dict[tuple[str, str], list[float]] = {(e, p): [] for e in ready for p in ("first", "again")}
        late: set[str] = set()
        for reading in range(options.repeat + 1):
            part = "first" if reading == 0 else "again"
            for text in texts:
                ids = tokens.encode(text)
                for engine, make in ready.items():
                    if engine in late:
                        continue
                    fill, accept, mask = make()
                    began = time.process_time()
                    for step, token in enumerate(ids):
                        if time.process_time() - began > options.seconds:
                            print(
                                f"{name}: {engine} too slow, stopped at token {step} of {len(ids)}",
                                flush=True,
                            )
                            late.add(engine)
                            break
                        start = time.process_time_ns()
                        fill()
                        accept(token)
                        taken[engine, part].append((time.process_time_ns() - start) / 1e3)
                        if not mask[0, token // 32] >> (token % 32) & 1:
                            text_at = tokens.text[token]
                            print(f"{name}: {engine} stops at token {step} of {len(ids)}: {text_at!r}")
                            break
        for (engine, part), values in taken.items():
            if not values:
                continue
            array = np.array(values)
            row = {
                "grammar": name,
                "engine": engine,
                "reading": part,
                "tokens": len(values),
                "p50": round(float(np.median(array)), 2),
                "mean": round(float(array.mean()), 2),
                "p99": round(float(np.percentile(array, 99)), 1),
                "max": round(float(array.max()), 0),
            }
            print(json.dumps(row) if options.json else "  ".join(f"{k} {v}" for k, v in row.items()))


if __name__ == "__main__":
    main()
