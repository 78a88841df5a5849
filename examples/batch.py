"""A batch over JSONL: many requests share forwards, and what fails fails alone.

python examples/batch.py examples/requests.jsonl
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import structgen as sg

HERE = Path(__file__).resolve().parent


def main(name: str = str(HERE / "requests.jsonl"), limit: int = 4) -> None:
    lines = [json.loads(line) for line in Path(name).read_text(encoding="utf-8").splitlines()[:limit]]
    prompts = [line["prompt"] for line in lines]
    schemas = [Path(name).parent / line["schema"] for line in lines]
    for line, found in zip(lines, sg.generate_many(None, prompts, schemas=schemas, batch=4), strict=True):
        answer = found.value if found.ok else str(found.error)
        print(json.dumps({"prompt": line["prompt"], "answer": answer}, ensure_ascii=False))


if __name__ == "__main__":
    main(*sys.argv[1:2])
