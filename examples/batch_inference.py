"""Texts for a file of prompts, each with its own constraint, on a Ray cluster; run it again to go on.

    python examples/batch_inference.py ROWS.jsonl OUT [MODEL]

A row has the fields id, prompt, kind and constraint (structgen.integrations.ray_data). Parts of the answer
are written as they are done; rows whose id is in OUT already are left out.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import ray

from structgen.integrations.ray_data import Texts


def run(source: str, out: str, model: Any = None, *, workers: int = 2, limit: int | None = None) -> int:
    """Writes the answers that are missing; returns how many."""
    rows = ray.data.read_json(source, lines=True)
    if any(Path(out).glob("*.json")):
        done = {str(row["id"]) for row in ray.data.read_json(out).select_columns(["id"]).take_all()}
        rows = rows.filter(lambda row: str(row["id"]) not in done)
    if limit is not None:
        rows = rows.limit(limit)
    rows = rows.materialize()
    count = int(rows.count())
    if count:
        rows.map_batches(
            Texts, fn_constructor_kwargs={"model": model}, batch_size=16, concurrency=workers, num_cpus=0.5
        ).write_json(out)
    return count


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    print(run(*sys.argv[1:4]), "rows")
