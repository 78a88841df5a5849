"""From which log-probability on an answer is a sign of a request that the model does not know.

Enters: a model folder; requests of the test split, those written by hand, and `foreign.jsonl`, which no
domain covers. Leaves: the threshold, how many requests of each kind fall below it, in
`training/record/doubt_<model>.json` with --record.  Cost: about a minute on one core.

    python -m training.outside.calibrate [--folder FOLDER] [--record]

The measure is the mean natural log-probability of the answer's tokens before the mask, the end's included.
The threshold lets `FALSE_ALARMS` of the requests inside the domains fall below it.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from training import data
from training.outside.sets import foreign, requests
from training.prompt import EMBEDDED, ROOT

FALSE_ALARMS = 0.05
SEED = 77


def inside(count: int) -> list[tuple[str, dict[str, Any] | None]]:
    """Requests of the test split, every task as often."""
    found = [data.example("test", SEED, i, {task: 1.0}) for task in data.TASKS for i in range(count)]
    return [(one.text, one.schema) for one in found]


def asked_of(lines: list[dict[str, Any]]) -> list[tuple[str, Any]]:
    return [(one["prompt"], one["schema"]) for one in lines]


def means(lm: Any, asked: list[tuple[str, Any]]) -> list[float]:
    """The mean log-probability of each answer's tokens."""
    import structgen as sg

    found = []
    for prompt, schema in asked:
        result = sg.generate(lm, prompt, schema, whitespace="compact", max_tokens=220)
        found.append(sum(result.logprobs) / len(result.logprobs))
    return found


def below(values: list[float], threshold: float) -> float:
    return round(100 * sum(v < threshold for v in values) / len(values), 1)


def calibrate(folder: Path, count: int) -> dict[str, Any]:
    from structgen.lm.numpy_model import NumpyLM

    lm = NumpyLM.from_folder(folder)
    known, hand, unknown = (
        means(lm, inside(count)),
        means(lm, asked_of(requests())),
        means(lm, asked_of(foreign())),
    )
    threshold = round(sorted(known)[int(FALSE_ALARMS * len(known))], 3)
    return {
        "threshold": threshold,
        "test split": {"requests": len(known), "below": below(known, threshold)},
        "by hand": {"requests": len(hand), "below": below(hand, threshold)},
        "foreign": {"requests": len(unknown), "below": below(unknown, threshold)},
    }


def main() -> None:
    parser = argparse.ArgumentParser(description="from which log-probability on an answer is in doubt")
    parser.add_argument("--model", choices=("target", "draft"), default="target")
    parser.add_argument("--folder", type=Path, help="another model folder")
    parser.add_argument("--count", type=int, default=25, help="requests of the test split per task")
    parser.add_argument("--record", action="store_true", help="write the figures into training/record/")
    asked = parser.parse_args()
    figures = calibrate(asked.folder or EMBEDDED / asked.model, asked.count)
    print(json.dumps(figures))
    if asked.record:
        path = ROOT / "training" / "record" / f"doubt_{asked.model}.json"
        path.write_text(json.dumps(figures, indent=1) + "\n")


if __name__ == "__main__":
    main()
