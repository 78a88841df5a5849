"""Quality on the test split: what the model gets right, free and constrained.

Enters: a model folder, a number of test examples. Leaves: a table per task and
`training/record/evaluation_<model>.json`.  Cost: about two minutes for 600
examples on one core, the same again constrained.

    python -m training.evaluate --model target --count 60            # free
    python -m training.evaluate --model target --count 60 --constrained

`fields` counts each leaf value of the true answer, and each surplus leaf as
wrong.  `exact` is the whole answer.  Constrained decoding needs the engine.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

import jsonschema
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from training import data
from training.generate import greedy
from training.prompt import EMBEDDED, ROOT, format_prompt
from training.tasks.example import Example

SEED = 2024
BATCH = 24


def leaves(value: Any, path: tuple[Any, ...] = ()) -> dict[tuple[Any, ...], Any]:
    """Leaf values by their path; an empty list or object is a leaf."""
    if isinstance(value, dict) and value:
        return {k: v for key, item in value.items() for k, v in leaves(item, (*path, key)).items()}
    if isinstance(value, list) and value:
        return {k: v for at, item in enumerate(value) for k, v in leaves(item, (*path, at)).items()}
    return {path: value}


def same(one: Any, two: Any) -> bool:
    return one == two and isinstance(one, bool) == isinstance(two, bool)


def score(example: Example, text: str) -> dict[str, float]:
    """Counts for one answer; all are sums, to be divided by their totals."""
    result: dict[str, float] = {"rows": 1.0, "exact": float(text == example.answer_text())}
    if example.schema is None:
        return result
    true = leaves(example.answer)
    try:
        given = json.loads(text)
        result["valid"] = 1.0
    except ValueError:
        result.update(valid=0.0, conforms=0.0, fields=0.0, leaves=float(len(true)))
        if example.task == "tools":
            result["name"] = 0.0
        return result
    result["conforms"] = float(jsonschema.Draft202012Validator(example.schema).is_valid(given))
    got = leaves(given)
    paths = {*true, *got}
    result["leaves"] = float(len(paths))
    result["fields"] = float(sum(p in true and p in got and same(true[p], got[p]) for p in paths))
    if example.task == "tools":
        result["name"] = float(isinstance(given, dict) and given.get("name") == example.answer["name"])
    return result


def _percent(sums: dict[str, float], what: str, of: str = "rows") -> float | None:
    return round(100 * sums[what] / sums[of], 1) if what in sums and sums.get(of) else None


def summary(rows: list[dict[str, float]]) -> dict[str, float | None]:
    sums: dict[str, float] = {}
    for row in rows:
        for key, value in row.items():
            sums[key] = sums.get(key, 0.0) + value
    with_schema = {**sums, "json_rows": float(sum("valid" in row for row in rows))}
    return {
        "examples": sums["rows"],
        "fields": _percent(sums, "fields", "leaves"),
        "exact": _percent(sums, "exact"),
        "valid_json": _percent(with_schema, "valid", "json_rows"),
        "conforms": _percent(with_schema, "conforms", "json_rows"),
        "tool_name": _percent({**sums, "named": float(sum("name" in row for row in rows))}, "name", "named"),
    }


class Constraint:
    """Matchers from the engine, one grammar per schema."""

    def __init__(self, tokenizer: Any, vocab_size: int, numbers: str = "plain") -> None:
        import structgen  # not needed for free decoding

        self.numbers = numbers  # as calls write them, unless told otherwise
        self.compiler = structgen.Compiler(
            structgen.Vocabulary.from_huggingface(tokenizer, vocab_size=vocab_size)
        )

    def matcher(self, schema: dict[str, Any]) -> Any:
        return self.compiler.json_schema(schema, whitespace="compact", numbers=self.numbers).matcher()


def evaluate(
    folder: Path, count: int, constrained: bool, tasks: tuple[str, ...], seed: int
) -> dict[str, Any]:
    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    constraint = Constraint(tokenizer, model.config.vocab_size) if constrained else None
    scored: list[tuple[Example, dict[str, float]]] = []
    failures: list[dict[str, Any]] = []
    for task in tasks:
        examples = [data.example("test", seed, index, {task: 1.0}) for index in range(count)]
        if constrained and examples[0].schema is None:
            continue  # no JSON schema: there is nothing to constrain with here
        # Alike lengths together: the batch runs until its longest answer ends.
        examples.sort(key=lambda one: len(one.answer_text()))
        for at in range(0, count, BATCH):
            part = examples[at : at + BATCH]
            prompts = [
                tokenizer(format_prompt(one.text, one.schema), add_special_tokens=False).input_ids
                for one in part
            ]
            matchers = None if constraint is None else [constraint.matcher(one.schema or {}) for one in part]
            answers = greedy(
                model, prompts, tokenizer.eos_token_id, tokenizer.pad_token_id, matchers=matchers
            )
            for one, answer in zip(part, answers, strict=True):
                text = tokenizer.decode(answer)
                result = score(one, text)
                scored.append((one, result))
                if not result["exact"]:
                    failures.append(
                        {"task": one.task, "prompt": one.text, "true": one.answer_text(), "given": text}
                    )
    extraction = [r for e, r in scored if e.task in data.EXTRACTION]
    return {
        "tasks": {
            t: summary([r for e, r in scored if e.task == t])
            for t in dict.fromkeys(e.task for e, _ in scored)
        },
        "extraction": summary(extraction) if extraction else None,
        "extraction_unseen_names": summary(rows)
        if (rows := [r for e, r in scored if e.task in data.EXTRACTION and e.unseen_names])
        else None,
        "all_json": summary(rows) if (rows := [r for e, r in scored if e.schema is not None]) else None,
        "failures": failures,
    }


def table(result: dict[str, Any]) -> str:
    columns = ("examples", "fields", "exact", "valid_json", "conforms", "tool_name")
    lines = [f"{'task':24}" + "".join(f"{c:>11}" for c in columns)]
    named = {
        **result["tasks"],
        **{k: result[k] for k in ("extraction", "extraction_unseen_names", "all_json")},
    }
    for name, row in named.items():
        if row is not None:
            cells = ("-" if row[c] is None else f"{row[c]:g}" for c in columns)
            lines.append(f"{name:24}" + "".join(f"{c:>11}" for c in cells))
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description="score an embedded model on the test split")
    parser.add_argument("--model", choices=("target", "draft"), default="target")
    parser.add_argument("--folder", type=Path, help="another model folder")
    parser.add_argument("--count", type=int, default=60, help="examples per task")
    parser.add_argument("--constrained", action="store_true")
    parser.add_argument("--tasks", nargs="*", default=list(data.TASKS), choices=data.TASKS)
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--failures", type=int, default=0, help="print this many wrong answers")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--record", action="store_true", help="write the figures into training/record/")
    parser.add_argument("--json", type=Path, help="also write the figures to this file")
    asked = parser.parse_args()
    torch.set_num_threads(asked.threads)
    began = time.monotonic()
    folder = asked.folder or EMBEDDED / asked.model
    result = evaluate(folder, asked.count, asked.constrained, tuple(asked.tasks), asked.seed)
    failures = result.pop("failures")
    print(table(result))
    for failure in failures[: asked.failures]:
        print(json.dumps(failure, ensure_ascii=False))
    print(f"{time.monotonic() - began:.0f} s")
    if asked.json:
        asked.json.write_text(json.dumps(result))
    if asked.record:
        way = "constrained" if asked.constrained else "free"
        path = ROOT / "training" / "record" / f"evaluation_{asked.model}_{way}.json"
        path.write_text(json.dumps({"count": asked.count, "seed": asked.seed, **result}, indent=1) + "\n")


if __name__ == "__main__":
    main()
