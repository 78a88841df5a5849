"""Constrained texts of a data set, and masks of texts, with Ray Data. Each row has its own schema.

Enters: batches of rows, as dictionaries of columns. Leaves: the batches with more columns: `Texts` adds
`text` and `error`, `Replays` adds `error` and the columns that `masks_of` reads. Cost: that of the model, or
of `structgen.rl.replay`; each worker compiles each constraint of its rows once.

    rows = ray.data.read_parquet("prompts")  # columns: prompt, kind, constraint
    rows.map_batches(Texts, fn_constructor_kwargs={"model": "target"}, batch_size=16, concurrency=2)
    replayed("rollouts", "masks", vocabulary)  # a folder of JSONL: id, kind, constraint, tokens

A stopped replay continues where it stopped. Each finished part is a file. If a kill left an incomplete part,
the part is removed and made again.

A constraint is sent as its kind and text, because both are plain data; a worker would compile a pickled
grammar again. If a constraint is refused or a text fails, the row's `error` says so, and the other rows
continue.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from .. import rl
from ..compiler import Compiler
from ..errors import StructgenError
from ..generation import generate
from ..lm.load import compiler_of, language_model
from ..vocabulary import Vocabulary
from .hosts import compiled


class Texts:
    """The class that `map_batches` instantiates in every worker.

    Args:
        model: as in `structgen.generate`; None: the embedded model.
        max_tokens: the most tokens of each text.
        options: further arguments of `structgen.generate`, such as `temperature` and `seed`.
    """

    def __init__(self, model: Any = None, max_tokens: int = 200, **options: Any) -> None:
        self._lm = language_model(model)
        self._compiler = compiler_of(self._lm)
        self._max_tokens = max_tokens
        self._options = options

    def __call__(self, batch: dict[str, Any]) -> dict[str, Any]:
        """Returns texts for the columns `prompt`, `kind` and `constraint` of a batch."""
        texts, errors = [], []
        for prompt, kind, constraint in zip(batch["prompt"], batch["kind"], batch["constraint"], strict=True):
            try:
                texts.append(self._text(str(prompt), str(kind), constraint))
                errors.append("")
            except (StructgenError, ValueError) as error:
                texts.append("")
                errors.append(f"{type(error).__name__}: {error}")
        return {**batch, "text": np.array(texts, object), "error": np.array(errors, object)}

    def _text(self, prompt: str, kind: str, constraint: Any) -> str:
        grammar = compiled(self._compiler, kind, constraint)
        made = generate(
            self._lm, prompt, grammar=grammar, max_tokens=self._max_tokens, logprobs=False, **self._options
        )
        return str(made.text)


class Replays:
    """The class that `map_batches` instantiates in every worker to replay answers (`structgen.rl.replay`).

    Args:
        vocabulary: the vocabulary of the model that wrote the texts.
        options: how JSON is written, as `Compiler.compile` takes them.
    """

    def __init__(self, vocabulary: Vocabulary, **options: Any) -> None:
        self._compiler = Compiler(vocabulary)
        self._options = options

    def __call__(self, batch: dict[str, Any]) -> dict[str, Any]:
        """Returns masks for the columns `kind`, `constraint` and `tokens` of a batch: see `masks_of`."""
        found: dict[str, list[Any]] = {"mask_rows": [], "mask_of": [], "vocab_size": [], "error": []}
        for kind, constraint, tokens in zip(batch["kind"], batch["constraint"], batch["tokens"], strict=True):
            try:
                options = self._options if str(kind) == "json_schema" else {}
                masks = rl.replay(compiled(self._compiler, str(kind), constraint, **options), tokens)
                row = masks.rows.tobytes(), masks.of.tobytes(), masks.vocab_size, ""
            except (StructgenError, TypeError, ValueError) as error:
                row = b"", b"", 0, f"{type(error).__name__}: {error}"
            for name, value in zip(found, row, strict=True):
                found[name].append(value)
        return {**batch, **{name: np.array(values, object) for name, values in found.items()}}


def masks_of(row: dict[str, Any]) -> rl.Masks:
    """Returns the masks of a row from `Replays`. ValueError: the answer was refused; the message gives the
    reason."""
    if row["error"]:
        raise ValueError(row["error"])
    words = (int(row["vocab_size"]) + 31) // 32
    rows = np.frombuffer(row["mask_rows"], np.int32).reshape(-1, words)
    return rl.Masks(rows, np.frombuffer(row["mask_of"], np.int32), int(row["vocab_size"]))


def replayed(
    source: str | Path,
    out: str | Path,
    vocabulary: Vocabulary,
    *,
    workers: int = 2,
    parts: int = 16,
    **how: Any,
) -> int:
    """Writes the masks of a folder of JSONL as Parquet into the folder `out`. A second call continues.

    Args:
        source: rows with the fields id, kind, constraint and tokens (the answer's ids).
        parts: the number of files to write; a kill loses the incomplete ones.
        how: options of `Replays`.

    Returns:
        The number of rows that this call replayed. Rows whose id `out` has already are left out.
    """
    import pyarrow
    import pyarrow.parquet
    import ray

    done: set[str] = set()
    for file in sorted(Path(out).glob("*.parquet")):
        try:
            done.update(map(str, pyarrow.parquet.read_table(file, columns=["id"])["id"].to_pylist()))
        except (pyarrow.ArrowException, OSError):  # a kill left the file incomplete
            file.unlink()
    rows = ray.data.read_json(str(source), lines=True)
    rows = rows.filter(lambda row: str(row["id"]) not in done).repartition(parts).materialize()
    count = int(rows.count())
    if count:
        make = {"vocabulary": vocabulary, **how}
        size = max(1, min(64, count // parts))  # a larger batch would join parts
        rows.map_batches(
            Replays, fn_constructor_kwargs=make, batch_size=size, concurrency=workers, num_cpus=0.5
        ).write_parquet(str(out))
    return count
