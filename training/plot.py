"""Draw the training curve from the recorded logs.

Enters: `training/record/target.jsonl` and `draft.jsonl`.
Leaves: `training/record/curve.png`.  Cost: a second.

    python -m training.plot
"""

from __future__ import annotations

import json

import matplotlib

matplotlib.use("Agg")
from matplotlib import pyplot  # noqa: E402

from training.prompt import ROOT  # noqa: E402

RECORD = ROOT / "training" / "record"


def main() -> None:
    figure, (left, right) = pyplot.subplots(1, 2, figsize=(9, 3.2))
    for name, colour in (("target", "tab:blue"), ("draft", "tab:orange")):
        path = RECORD / f"{name}.jsonl"
        if not path.exists():
            continue
        rows = [json.loads(line) for line in path.read_text().splitlines()]
        tokens = [row["tokens"] / 1e6 for row in rows]
        left.plot(
            tokens, [row["loss"] for row in rows], "--", color=colour, linewidth=1, label=f"{name}, train"
        )
        left.plot(
            tokens, [row["test_loss"] for row in rows], color=colour, linewidth=1, label=f"{name}, test"
        )
        right.plot(tokens, [100 * row["test_exact"] for row in rows], color=colour, linewidth=1, label=name)
    left.set(yscale="log", xlabel="million tokens read", ylabel="loss per answer token")
    right.set(xlabel="million tokens read", ylabel="test answers exact, free, %")
    for axes in (left, right):
        axes.grid(alpha=0.3)
        axes.legend(fontsize=7)
    figure.tight_layout()
    figure.savefig(RECORD / "curve.png", dpi=90)


if __name__ == "__main__":
    main()
