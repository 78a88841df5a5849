"""Grammars side by side: time between masks on a C-like language and on SQL at 131,072 tokens.

In: the library's `c` and `sql` grammars, texts of both. Out: median, mean and p99 of a mask plus accepting a
token, microseconds, per engine; engines that refuse the grammar are named. Each engine compiles its own
translation of the same grammar text (llguidance reads the Lark dialect as it is). The engines take turns on
each text, and every text is run `--repeat` times with a fresh matcher; the first run, which meets everything
for the first time, counts like the others.

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
from structgen import library

from . import data

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

    def ours(text: str) -> Callable[[], Any]:
        vocabulary = structgen.Vocabulary.from_bytes(tokens.text, tokens.eos, tokens.special)
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

        from structgen.bench.engines import llguidance as adapter  # its quickest path

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
            compiled = gc.compile_grammar(xgrammar.Grammar.from_lark(text))
            mask = torch.zeros((1, (size + 31) // 32), dtype=torch.int32)

            def make() -> Any:
                matcher = xgrammar.GrammarMatcher(compiled)
                return (lambda: matcher.fill_next_token_bitmask(mask)), matcher.accept_token, mask.numpy()

            return make

        found["xgrammar"] = xgr
    except (ImportError, AttributeError) as error:
        print(f"xgrammar: {error}")
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--json", action="store_true", help="one JSON object a line instead of a table")
    options = parser.parse_args()
    tokens = data.tekken()
    makers = engines(tokens)
    for name, texts in (("c", C_TEXTS), ("sql", SQL_TEXTS)):
        grammar = library.load(name).text
        ready = {}
        for engine, compile_grammar in makers.items():
            began = time.perf_counter()
            try:
                make = compile_grammar(grammar)
                fill, accept, _ = make()
                fill()
            except Exception as error:
                print(f"{name}: {engine} refuses the grammar: {str(error).strip().splitlines()[0][:150]}")
                continue
            print(f"{name}: {engine} compiled, first mask after {(time.perf_counter() - began) * 1e3:.0f} ms")
            ready[engine] = make
        taken: dict[str, list[float]] = {engine: [] for engine in ready}
        for _ in range(options.repeat):
            for text in texts:
                ids = tokens.encode(text)
                for engine, make in ready.items():
                    fill, accept, mask = make()
                    for step, token in enumerate(ids):
                        start = time.perf_counter()
                        fill()
                        accept(token)
                        taken[engine].append((time.perf_counter() - start) * 1e6)
                        if not mask[0, token // 32] >> (token % 32) & 1:
                            text_at = tokens.text[token]
                            print(f"{name}: {engine} stops at token {step} of {len(ids)}: {text_at!r}")
                            break
        for engine, values in taken.items():
            array = np.array(values)
            row = {
                "grammar": name,
                "engine": engine,
                "tokens": len(values),
                "p50": round(float(np.median(array)), 2),
                "mean": round(float(array.mean()), 2),
                "p99": round(float(np.percentile(array, 99)), 1),
                "max": round(float(array.max()), 0),
            }
            print(json.dumps(row) if options.json else "  ".join(f"{k} {v}" for k, v in row.items()))


if __name__ == "__main__":
    main()
