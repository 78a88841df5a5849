"""Answer the example requests, or one typed in, with an embedded model.

Enters: `examples/requests.jsonl` or `--prompt` and `--schema`.
Leaves: one line per request.  Cost: a second or two.

    python -m training.ask [--constrained] [--prompt TEXT --schema FILE]
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from training.evaluate import Constraint
from training.generate import greedy
from training.prompt import EMBEDDED, ROOT, format_prompt


def main() -> None:
    parser = argparse.ArgumentParser(description="ask an embedded model")
    parser.add_argument("--model", choices=("target", "draft"), default="target")
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--constrained", action="store_true")
    parser.add_argument("--prompt")
    parser.add_argument("--schema", type=Path)
    asked = parser.parse_args()
    torch.set_num_threads(1)
    folder = asked.folder or EMBEDDED / asked.model
    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    constraint = Constraint(tokenizer, model.config.vocab_size) if asked.constrained else None
    requests = []
    if asked.prompt is not None:
        requests.append((asked.prompt, json.loads(asked.schema.read_text()) if asked.schema else None))
    else:
        for line in (ROOT / "examples" / "requests.jsonl").read_text().splitlines():
            one = json.loads(line)
            schema = json.loads((ROOT / "examples" / one["schema"]).read_text()) if one["schema"] else None
            requests.append((one["prompt"], schema))
    for text, schema in requests:
        ids = tokenizer(format_prompt(text, schema), add_special_tokens=False).input_ids
        matchers = [constraint.matcher(schema)] if constraint is not None and schema is not None else None
        answer = greedy(model, [ids], tokenizer.eos_token_id, tokenizer.pad_token_id, matchers=matchers)[0]
        print(f"{text}\n  {tokenizer.decode(answer)}")


if __name__ == "__main__":
    main()
