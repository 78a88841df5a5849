"""Constrained texts for a data set in the real Ray Data, with two workers, one constraint per row and a
resumed run.

`make test-hosts HOST=ray_data`.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

ray = pytest.importorskip("ray", reason="make test-hosts HOST=ray_data")
pytest.importorskip("ray.data", reason="make test-hosts HOST=ray_data")
sys.path.append(str(Path(__file__).parent))

from contract import HARD, KINDS, ORDER, OTHERS, ROOT, TEXT  # noqa: E402

import structgen as sg  # noqa: E402
from structgen import rl  # noqa: E402
from structgen.integrations.ray_data import Texts, masks_of, replayed  # noqa: E402
from structgen.lm.load import language_model  # noqa: E402


@pytest.fixture(scope="module")
def cluster() -> Iterator[None]:
    paths = os.pathsep.join(path for path in (str(Path(sg.__file__).parents[1]),) if path)
    ray.init(
        num_cpus=2, include_dashboard=False, log_to_driver=False,
        runtime_env={"env_vars": {"PYTHONPATH": paths, "OMP_NUM_THREADS": "1"}},
    )  # fmt: skip
    yield
    ray.shutdown()


def rows() -> list[dict[str, str]]:
    orders = [
        {"prompt": text, "kind": "json_schema", "constraint": json.dumps(ORDER)} for text in (TEXT, *OTHERS)
    ]
    hard = [
        {"prompt": TEXT, "kind": "json_schema", "constraint": json.dumps(schema)} for schema in HARD.values()
    ]
    choice = [{"prompt": TEXT, "kind": "choice", "constraint": KINDS["choice"][0]}]
    bad = [{"prompt": TEXT, "kind": "json_schema", "constraint": "{"}]
    return [{"id": str(i), **row} for i, row in enumerate([*orders, *hard, *choice, *bad])]


def test_rows_are_as_alone(cluster: None) -> None:
    made = ray.data.from_items(rows()).map_batches(
        Texts, fn_constructor_kwargs={"max_tokens": 100}, batch_size=3, concurrency=2, num_cpus=0.5
    )
    found: dict[str, Any] = {row["id"]: row for row in made.take_all()}
    alone = Texts(max_tokens=100)
    for row in rows():
        got = found[row["id"]]
        expected = alone({name: [value] for name, value in row.items()})
        assert (got["text"], got["error"]) == (expected["text"][0], expected["error"][0])
    assert found["0"]["text"] == sg.generate(None, TEXT, ORDER).text
    bad = found[str(len(rows()) - 1)]
    assert bad["text"] == "" and "invalid JSON" in bad["error"]
    assert [row["error"] for row in found.values()].count("") == len(rows()) - 1


def test_the_example_resumes(cluster: None, tmp_path: Path) -> None:
    import runpy

    example = runpy.run_path(str(ROOT / "examples" / "batch_inference.py"))
    source = tmp_path / "rows.jsonl"
    source.write_text("\n".join(map(json.dumps, rows())))
    out = tmp_path / "out"
    assert example["run"](str(source), str(out), limit=4) == 4
    assert example["run"](str(source), str(out)) == len(rows()) - 4
    assert example["run"](str(source), str(out)) == 0
    found = {str(row["id"]) for row in ray.data.read_json(str(out)).take_all()}
    assert found == {row["id"] for row in rows()}


def test_answers_are_replayed_and_a_killed_run_goes_on(cluster: None, tmp_path: Path) -> None:
    vocabulary = language_model(None).vocabulary
    texts = [json.dumps({"n": i, "s": "x" * (i % 5)}, separators=(",", ":")) for i in range(200)]
    schema = {"type": "object", "properties": {"n": {"type": "integer"}, "s": {"type": "string"}}}
    answers: list[dict[str, Any]] = [
        {
            "id": str(i),
            "kind": "json_schema",
            "constraint": json.dumps({**schema, "title": str(i % 3)}),
            "tokens": vocabulary.encode(text),
        }
        for i, text in enumerate(texts)
    ]
    answers[7]["tokens"] = answers[7]["tokens"][:3] + answers[7]["tokens"][:3]
    source, out = tmp_path / "rows", tmp_path / "masks"
    source.mkdir()
    for part in range(2):
        lines = map(json.dumps, answers[part::2])
        (source / f"{part}.jsonl").write_text("\n".join(lines))
    assert replayed(source, out, vocabulary, parts=4, whitespace="compact") == 200
    assert replayed(source, out, vocabulary, whitespace="compact") == 0
    first, second, *_ = sorted(out.glob("*.parquet"))
    first.write_bytes(first.read_bytes()[:100])  # a killed process leaves a file that ends like this
    second.unlink()
    assert 0 < replayed(source, out, vocabulary, parts=3, whitespace="compact") < 200
    found = {str(row["id"]): row for row in ray.data.read_parquet(str(out)).take_all()}
    assert found.keys() == {row["id"] for row in answers}
    assert "refuses token 3" in found["7"]["error"]
    with pytest.raises(ValueError, match="refuses token 3"):
        masks_of(found["7"])
    compiler = sg.Compiler(vocabulary)
    for row in answers[:20]:
        if row["id"] != "7":
            masks = rl.replay(
                compiler.compile("json_schema", row["constraint"], whitespace="compact"), row["tokens"]
            )
            assert (masks_of(found[row["id"]]).bitmask() == masks.bitmask()).all()
