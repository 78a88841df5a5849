"""Quality on requests that no generator wrote: `requests.jsonl`, by hand, never trained on.

Enters: a model folder. Leaves: the share of fields and of whole answers that are right.
Cost: about ten seconds.

    python -m training.outside.evaluate [--strangers | --prices] [--numbers plain] [--folder FOLDER]
        [--failures] [--record]

Numbers compare by value (1249 is 1249.0), texts exactly.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from training.evaluate import Constraint, leaves, same
from training.generate import greedy
from training.outside.sets import prices, requests, strangers
from training.prompt import EMBEDDED, ROOT, format_prompt


def evaluate(
    folder: Path, asked: list[dict[str, Any]], numbers: str = "plain"
) -> tuple[dict[str, Any], list[str]]:
    """Figures, and a text for each answer that is not right."""
    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    constraint = Constraint(tokenizer, model.config.vocab_size, numbers)
    counts: dict[str, list[int]] = {}
    failures = []
    for one in asked:
        ids = tokenizer(format_prompt(one["prompt"], one["schema"]), add_special_tokens=False).input_ids
        matcher = constraint.matcher(one["schema"])
        answer = greedy(model, [ids], tokenizer.eos_token_id, tokenizer.pad_token_id, matchers=[matcher])[0]
        text = tokenizer.decode(answer)
        true = leaves(one["answer"])
        try:
            given = leaves(json.loads(text))
        except ValueError:  # the answer did not end
            given = {}
        paths = {*true, *given}
        right = sum(p in true and p in given and same(true[p], given[p]) for p in paths)
        for task in (one["task"], "all"):
            row = counts.setdefault(task, [0, 0, 0, 0])
            for at, more in enumerate((1, right == len(paths), len(paths), right)):
                row[at] += more
        if right < len(paths):
            wanted = json.dumps(one["answer"], ensure_ascii=False)
            failures.append(f"{one['prompt']}\n  is    {text}\n  wants {wanted}")
    return {
        task: {
            "requests": rows,
            "exact": round(100 * exact / rows, 1),
            "leaves": total,
            "fields": round(100 * right / total, 1),
        }
        for task, (rows, exact, total, right) in counts.items()
    }, failures


def main() -> None:
    parser = argparse.ArgumentParser(description="score an embedded model on requests written by hand")
    parser.add_argument("--model", choices=("target", "draft"), default="target")
    parser.add_argument("--folder", type=Path, help="another model folder")
    parser.add_argument("--strangers", action="store_true", help="those of somebody who read the card alone")
    parser.add_argument("--prices", action="store_true", help="220 orders whose price ends in a zero")
    parser.add_argument("--numbers", choices=("any", "plain", "canonical"), default="plain", help="(plain)")
    parser.add_argument("--failures", action="store_true", help="print the answers that are not right")
    parser.add_argument("--record", action="store_true", help="write the figures into training/record/")
    asked = parser.parse_args()
    torch.set_num_threads(1)
    chosen = prices() if asked.prices else strangers() if asked.strangers else requests()
    figures, failures = evaluate(asked.folder or EMBEDDED / asked.model, chosen, asked.numbers)
    if asked.failures:
        print("\n".join(failures))
    for task, row in figures.items():
        fields, exact = row["fields"], row["exact"]
        print(f"{task:14}{row['requests']:4} requests, fields {fields:5}%, whole answers {exact:5}%")
    if asked.record and not asked.prices:
        path = (
            ROOT
            / "training"
            / "record"
            / f"{'strangers' if asked.strangers else 'outside'}_{asked.model}.json"
        )
        path.write_text(json.dumps(figures, indent=1) + "\n")


if __name__ == "__main__":
    main()
