"""How often the draft names the token the target writes: what speculation can gain.

Enters: both model folders, a number of test requests. Leaves: the share of the
target's answer tokens that the draft foresees, and the tokens gained for each
pass of the target at several draft lengths.  Cost: a minute for 200 requests.

    python -m training.agreement --count 200
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from training import data
from training.generate import greedy
from training.prompt import EMBEDDED, ROOT, format_prompt

SEED = 2025


@torch.no_grad()
def foreseen(count: int, target: Path, draft: Path) -> list[list[bool]]:
    """For every answer, whether each of its tokens is the draft's own choice after the ones before."""
    tokenizer = AutoTokenizer.from_pretrained(target)
    large = AutoModelForCausalLM.from_pretrained(target, dtype=torch.float32).eval()
    small = AutoModelForCausalLM.from_pretrained(draft, dtype=torch.float32).eval()
    rows = []
    for index in range(count):
        one = data.example("test", SEED, index)
        prompt = tokenizer(format_prompt(one.text, one.schema), add_special_tokens=False).input_ids
        end = tokenizer.eos_token_id
        answer = [*greedy(large, [prompt], end, tokenizer.pad_token_id)[0], end]
        logits = small(input_ids=torch.tensor([prompt + answer]), use_cache=False).logits[0]
        chosen = logits[len(prompt) - 1 : -1].argmax(-1).tolist()
        rows.append([a == b for a, b in zip(chosen, answer, strict=True)])
    return rows


def tokens_per_pass(rows: list[list[bool]], length: int) -> float:
    """A pass of the target keeps the foreseen tokens up to the first miss, and adds one of its own."""
    tokens = passes = 0
    for row in rows:
        at = 0
        while at < len(row):
            kept = 0
            while kept < length and at + kept < len(row) and row[at + kept]:
                kept += 1
            at += kept + 1
            passes += 1
        tokens += len(row)
    return tokens / passes


def main() -> None:
    parser = argparse.ArgumentParser(description="agreement of draft and target on the test split")
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--target", type=Path, default=EMBEDDED / "target")
    parser.add_argument("--draft", type=Path, default=EMBEDDED / "draft")
    parser.add_argument("--record", action="store_true", help="write the figures into training/record/")
    asked = parser.parse_args()
    torch.set_num_threads(1)
    rows = foreseen(asked.count, asked.target, asked.draft)
    flat = [hit for row in rows for hit in row]
    result = {
        "requests": asked.count,
        "tokens": len(flat),
        "foreseen": round(100 * sum(flat) / len(flat), 1),
        "tokens_per_pass": {str(n): round(tokens_per_pass(rows, n), 2) for n in (2, 4, 6, 8)},
    }
    print(json.dumps(result))
    if asked.record:
        (ROOT / "training" / "record" / "agreement.json").write_text(json.dumps(result) + "\n")


if __name__ == "__main__":
    main()
