"""Draws the picture of docs/speculation.md from the recorded run.

    python -m bench.drafters_picture --record bench/record/2026-11-23-drafters.txt

Enters: the output of `bench.speculation`. Leaves: one PNG with three panels: the trees that beams and a
window draft; tokens per forward pass and speed by drafter; tokens per forward pass by rule. Cost: a second.
"""

from __future__ import annotations

import argparse
import re
from pathlib import Path
from typing import Any

GREEDY = ("draft model", "trimmed head 1/4", "layer skip", "layer choice", "lookahead", "lookahead window",
          "corpus", "fused (auto)", "fused (auto) + corpus", "n-grams, own tokens", "n-grams, spelled anew",
          "n-grams, intersection", "n-grams, strings")  # fmt: skip
SAMPLED = (
    "draft model",
    "trimmed head 1/4",
    "n-grams, own tokens",
    "n-grams, intersection",
    "n-grams, strings",
)
RULES = ("single", "recursive, 2", "k-seq, 2", "beam, 2", "beam, 4")


def greedy(text: str, workload: str) -> dict[str, tuple[float, float]]:
    """Returns a dict of method -> tokens per forward pass and CPU time, with cold stores (for `layer choice`,
    with running stores)."""
    found = {}
    for part in text.split(f"\n## {workload}:")[1:]:
        rows = re.findall(
            r"^(.{28})(cold|running|warm) +([\d.]+) +\[.*?\]([ \d.]+)", part.split("\n## ")[0], re.MULTILINE
        )
        for name, store, rate, rest in rows:
            if store == ("running" if name.strip() == "layer choice" else "cold"):
                found[name.strip()] = float(rate), float(rest.split()[4])
    return found


def sampled(text: str, workload: str) -> dict[str, dict[str, float]]:
    """Returns a dict of drafter -> rule -> tokens per forward pass."""
    part = text.split(f"## sampled drafts, {workload}:")[1].split("\n## ")[0]
    found: dict[str, dict[str, float]] = {}
    for name, rule, rate in re.findall(r"^(.{24})(.{22}) +([\d.]+) ", part, re.MULTILINE):
        found.setdefault(name.strip(), {})[rule.strip()] = float(rate)
    return found


def tree(
    axes: Any, title: str, nodes: dict[str, tuple[float, float]], edges: list[tuple[str, str, str]]
) -> None:
    for above, below, style in edges:
        (x0, y0), (x1, y1) = nodes[above], nodes[below]
        axes.plot([x0, x1], [y0, y1], style, color="0.6", zorder=1)
    for label, (x, y) in nodes.items():
        axes.text(x, y, label, ha="center", va="center", fontsize=8,
                  bbox={"boxstyle": "round", "fc": "w", "ec": "C0" if label != "text" else "k"})  # fmt: skip
    axes.set_title(title, fontsize=9)
    axes.margins(0.15, 0.2)
    axes.axis("off")


def draw(text: str, out: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, ((beams, window), (bars, rules)) = plt.subplots(
        2, 2, figsize=(11, 8), height_ratios=(1, 2.1), layout="constrained"
    )
    tree(
        beams,
        "beam: the texts of a level, drawn without replacement (width 3)",
        {"text": (0, 1), "a": (1, 2), "b": (1, 1), "c": (1, 0), "aa": (2, 2), "ab": (2, 1.3), "ca": (2, 0),
         "aab": (3, 2), "aba": (3, 1.3), "abc": (3, 0.6)},
        [("text", "a", "-"), ("text", "b", "-"), ("text", "c", "-"), ("a", "aa", "-"), ("a", "ab", "-"),
         ("c", "ca", "-"), ("aa", "aab", "-"), ("ab", "aba", "-"), ("ab", "abc", "-")],
    )  # fmt: skip
    columns = {f"$g^{r}_{c}$": (c + r, -r) for c in range(1, 5) for r in range(3)}
    tree(
        window,
        "lookahead window: 4 columns, 3 generations",
        {"text": (0, 0), **columns},
        [("text", "$g^0_1$", "-")]
        + [(f"$g^0_{c}$", f"$g^0_{c + 1}$", "-") for c in range(1, 4)]
        + [(f"$g^{r}_{c}$", f"$g^{r + 1}_{c}$", ":") for c in range(1, 5) for r in range(2)],
    )
    colours = {"json schema": "C0", "sql": "C1"}
    for shift, (workload, colour) in enumerate(colours.items()):
        found = greedy(text, workload)
        for row, name in enumerate(GREEDY):
            rate, speed = found[name]
            y = row + 0.4 * shift
            bars.barh(y, rate, 0.38, color=colour, label=workload if not row else None)
            bars.plot(speed, y, "k|", markersize=9, label="processor time" if not row and not shift else None)
    bars.set_yticks([i + 0.2 for i in range(len(GREEDY))], GREEDY, fontsize=8)
    bars.invert_yaxis()
    bars.axvline(1.0, color="0.5", lw=0.8)
    bars.set_xlabel(
        "tokens a forward (bar), plain decoding's processor time over its own (mark); greedy", fontsize=8
    )
    bars.legend(fontsize=8)
    table = sampled(text, "sql")
    for shift, rule in enumerate(RULES):
        for row, name in enumerate(SAMPLED):
            rules.barh(row + 0.16 * shift, table[name][rule], 0.15, color=f"C{shift + 2}",
                       label=rule if not row else None)  # fmt: skip
    rules.set_yticks([i + 0.32 for i in range(len(SAMPLED))], SAMPLED, fontsize=8)
    rules.invert_yaxis()
    rules.axvline(1.0, color="0.5", lw=0.8)
    rules.set_xlabel("tokens a forward, temperature 1, sql; drafts are sampled", fontsize=8)
    rules.legend(fontsize=8)
    figure.savefig(out, dpi=90)


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--record", type=Path, required=True)
    parser.add_argument("--out", type=Path, default=Path("docs/images/drafters.png"))
    options = parser.parse_args(arguments)
    draw(options.record.read_text(encoding="utf-8"), options.out)


if __name__ == "__main__":
    main()
