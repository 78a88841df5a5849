"""`structgen bench`: verdicts on the fixed set are right, no engine ends a run, and reports state what was
measured.

The tests judge no times. `tests/bench_engines.py` has engines that misbehave. The vocabulary is the embedded
model's, so the tests need no other package.
"""

from __future__ import annotations

import contextlib
import io
import json
import re
import shlex
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from oracles.harness import HANG
from structgen.cli import main
from structgen.maskbench import (
    comparison,
    corpus,
    drive,
    endtoend,
    figures,
    markdown,
    named,
    page,
    report,
    runs,
)
from structgen.maskbench.engines.base import Sequence, row_of
from structgen.maskbench.report import duration
from structgen.maskbench.workers import Worker

BAD = "tests.bench_engines:bad"
MASKS = "masks --tokenizer embedded"


def write_schemas(folder: Path, titles: list[str]) -> Path:
    """Writes MaskBench files whose titles tell the bad engine its fault."""
    folder.mkdir()
    tests = [{"description": "", "valid": valid, "data": data} for valid, data in ((True, 1), (False, "x"))]
    for title in titles:
        record = {"schema": {"title": title, "type": "integer"}, "tests": tests}
        (folder / f"Split_{'a' if title < 'h' else 'b'}---{title}.json").write_text(json.dumps(record))
    return folder


def bench(command: str) -> int:
    """Runs a command and returns its exit status. The time limit suits a hanging engine unless the command
    sets one."""
    given = shlex.split(f"bench {command}")
    if given[1] in ("masks", "generate") and "--limit" not in given:
        given += ["--limit", str(HANG)]
    return main(given)


def rows(path: Path) -> dict[tuple[str, str], dict[str, Any]]:
    return {(row["id"].split("---")[-1], row["engine"]): row for row in runs.rows_of(path)}


@pytest.fixture(scope="module")
def smoke(tmp_path_factory) -> Path:
    """A run of structgen on the fixed set, in which every verdict must be right."""
    path = tmp_path_factory.mktemp("bench") / "smoke"
    assert bench(f"{MASKS} --data smoke --engines structgen --strict --jobs 1 --out {path}") == 0
    return path


@pytest.fixture(scope="module")
def troubled(tmp_path_factory) -> Path:
    """A run in which one engine crashes, grows, refuses and breaks."""
    base = tmp_path_factory.mktemp("troubled")
    titles = ["crash", "exit", "fine", "grow", "raise", "refuse", "stubborn"]
    data = write_schemas(base / "data", titles)
    options = f"--data {data} --engines structgen,{BAD} --memory 0.3 --jobs 2"
    assert bench(f"{MASKS} {options} --out {base}/run") == 0
    return base / "run"


@pytest.fixture(scope="module")
def hung(tmp_path_factory) -> Path:
    """A run in which one engine hangs at one schema. The other schemas take a millisecond each."""
    base = tmp_path_factory.mktemp("hung")
    data = write_schemas(base / "data", ["fine", "hang", "other"])
    assert bench(f"{MASKS} --data {data} --engines {BAD} --limit 4 --jobs 1 --out {base}/run") == 0
    return base / "run"


def test_every_answer_of_the_fixed_set_is_right(smoke) -> None:
    found = rows(smoke)
    assert {name for name, _ in found} == set(named.SMOKE)
    assert {figures.outcome(row) for row in found.values()} == {"right"}


def test_rows_have_the_fields_of_maskbench(smoke) -> None:
    for row in runs.rows_of(smoke):
        assert row["num_tests"] == row["num_valid_tests"] + row["num_invalid_tests"]
        assert row["num_tokens"] == len(row["all_mask_us"]) == sum(row["steps"])
        assert row["masks_us"] == pytest.approx(sum(row["all_mask_us"]), abs=0.02 * len(row["all_mask_us"]))
        assert row["max_mask_us"] == max(row["all_mask_us"])
        assert row["max_ttfm_us"] == row["ttfm_us"] > 0


def test_one_engine_cannot_take_the_run_down(troubled) -> None:
    found = rows(troubled)
    outcomes = {title: figures.outcome(found[title, BAD]) for title, engine in found if engine == BAD}
    wrong = dict.fromkeys(("fine", "raise", "stubborn"), "wrong")
    assert outcomes == {**dict.fromkeys(("crash", "exit", "grow"), "failed"), **wrong, "refuse": "refused"}
    assert found["crash", BAD]["failure"] == "crash (signal 11)"
    assert found["exit", BAD]["failure"] == "crash (exit code 3)"
    assert found["grow", BAD]["failure"] == "memory"
    assert "should reject" in found["fine", BAD]["validation_error"]
    assert "EXN RuntimeError: broken on purpose" in found["raise", BAD]["validation_error"]
    assert {figures.outcome(row) for (_, engine), row in found.items() if engine == "structgen"} == {"right"}
    assert "noise" in (troubled / "engines.log").read_text()


def test_a_hang_costs_one_row(hung) -> None:
    found = rows(hung)
    outcomes = {title: figures.outcome(row) for (title, _), row in found.items()}
    assert outcomes == {"fine": "wrong", "hang": "failed", "other": "wrong"}
    assert found["hang", BAD]["failure"] == "timeout" and found["hang", BAD]["seconds"] >= 4


def test_causes_name_the_keyword(troubled) -> None:
    found = rows(troubled)
    assert figures.cause(found["refuse", BAD]) == "not"
    assert figures.cause(found["fine", BAD]) == "invalid accepted"
    assert figures.cause(found["stubborn", BAD]) == "broke in mid-sequence"
    assert figures.cause({"compile_error": "Unknown format: topic"}) == "format"
    assert figures.cause({"compile_error": "the maxContains keyword"}) == "maxContains"


def test_a_run_goes_on_where_it_stood(tmp_path) -> None:
    data = write_schemas(tmp_path / "data", ["fine", "other", "third"])
    again = f"{MASKS} --data {data} --engines {BAD} --jobs 1 --out {tmp_path}/run"
    assert bench(again) == 0
    file = tmp_path / "run" / "rows.jsonl"
    lines = file.read_text().splitlines(keepends=True)
    assert len(lines) == 3
    file.write_text(lines[0] + lines[1][:25])  # cut off in the middle of a line
    assert bench(again) == 0
    found = file.read_text().splitlines(keepends=True)
    assert found[0] == lines[0] and len(found) == 3
    assert len({json.loads(line)["id"] for line in found}) == 3
    assert len(runs.read(tmp_path / "run").config["sessions"]) == 2
    assert bench(f"{again} --limit 3") == 2  # the folder holds another kind of run
    meta = tmp_path / "run" / "run.json"
    meta.write_text(meta.read_text().replace('"version": "1"', '"version": "0"'))
    assert bench(again) == 2  # the folder's run has another version of the engine


def test_what_is_wrong_with_the_question_is_said(tmp_path, capsys, monkeypatch) -> None:
    monkeypatch.delenv("STRUCTGEN_DATA", raising=False)
    out = f"--out {tmp_path}/run"
    for command, text in (
        (f"masks {out}", "jsonschemabench"),
        (f"masks --data {tmp_path}/none {out}", "no folder"),
        (f"{MASKS} --data smoke {out} --engines guess", "unknown engine 'guess'"),
        (f"{MASKS} --data smoke {out} --engines tests.bench_engines:unloadable", "no licence file"),
        (f"{MASKS} --data smoke {out} --only 'nothing like this'", "none of the 22 schemas"),
        (f"report {tmp_path}", "no run of structgen bench"),
        (f"masks --data smoke --limit 0 {out}", "--limit must be positive"),
    ):
        assert bench(command) == 2, command
        assert text in capsys.readouterr().err, command


def test_a_checkout_and_a_folder_of_schemas(tmp_path) -> None:
    split = tmp_path / "data" / "Github_easy"
    split.mkdir(parents=True)
    (split / "o1.json").write_text('{"type": "string"}')
    (tmp_path / "maskbench" / "data").mkdir(parents=True)
    record = {"schema": True, "tests": [{"data": 1, "valid": True}]}
    (tmp_path / "maskbench" / "data" / "BFCL_x_1.json").write_text(json.dumps(record))
    plain = corpus.open_corpus(str(tmp_path), instances=False)
    assert plain.names == ["Github_easy---o1"]
    assert plain.case("Github_easy---o1") == corpus.Case(
        "Github_easy---o1", "Github_easy", '{"type": "string"}', ()
    )
    labelled = corpus.open_corpus(str(tmp_path))
    case = labelled.case("BFCL_x_1")
    assert (case.split, case.schema, case.instances[0].text) == ("BFCL", "true", "1")
    assert corpus.Case.from_json(json.loads(json.dumps(case.as_json()))) == case


def test_an_unreadable_schema_is_a_row(tmp_path) -> None:
    data = write_schemas(tmp_path / "data", ["fine"])
    (data / "broken.json").write_text("{")
    assert bench(f"{MASKS} --data {data} --engines {BAD} --out {tmp_path}/run") == 0
    assert "unreadable" in rows(tmp_path / "run")["broken", BAD]["failure"]


def test_the_hub_offline_says_where_to_turn(monkeypatch) -> None:
    hub = pytest.importorskip("huggingface_hub")
    pytest.importorskip("pyarrow")

    def unreachable(*_: Any, **__: Any) -> str:
        raise OSError("Network is unreachable\nmore lines")

    monkeypatch.setattr(hub, "snapshot_download", unreachable)
    with pytest.raises(corpus.CorpusError, match="git clone .* pass that folder as --data"):
        corpus.open_corpus("hub")


def test_the_hubs_files_are_read(tmp_path, monkeypatch) -> None:
    hub = pytest.importorskip("huggingface_hub")
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    (tmp_path / "Github_easy").mkdir()
    table = pyarrow.table({"json_schema": ['{"type": "null"}'], "unique_id": ["o7"]})
    parquet.write_table(table, tmp_path / "Github_easy" / "train-00000-of-00001.parquet")
    monkeypatch.setattr(hub, "snapshot_download", lambda *_, **__: str(tmp_path))
    found = corpus.open_corpus("hub")
    assert found.names == ["Github_easy---o7"]
    assert found.case("Github_easy---o7") == corpus.Case(
        "Github_easy---o7", "Github_easy", '{"type": "null"}', ()
    )


def test_the_cases_are_valid_texts() -> None:
    jsonschema = pytest.importorskip("jsonschema")
    for name, build in [*named.CASES.items(), *named.SMOKE.items()]:
        schema, tests = build(0.01)
        validator = jsonschema.Draft202012Validator(schema, format_checker=jsonschema.FormatChecker())
        for value, valid in tests:
            assert validator.is_valid(value) == valid, (name, value)


# ---- reports


def texts(paths: list[Path]) -> tuple[str, str]:
    made = report.build([runs.read(path) for path in paths], "A <title> & more")
    return page.render(made), markdown.render(made)


def test_the_report_holds_the_figures(smoke, troubled, hung) -> None:
    html, text = texts([troubled, hung, smoke])
    everything = [row for path in (troubled, hung, smoke) for row in runs.rows_of(path)]
    row = max((r for r in everything if r["engine"] == "structgen"), key=lambda r: r["ttfm_us"])
    for made in (html, text):
        assert duration(row["ttfm_us"]) in made
        assert "timeout" in made and "crash (signal 11)" in made and "refused: not" in made
        assert "Split_a" in made and "Split_b" in made
        assert "flatters" in made
    assert "A &lt;title&gt; &amp; more" in html and "<title> &" not in html
    assert html.count("<svg") == 2 and "NaN" not in html and "nan" not in re.sub(r"[a-z]*nan[a-z]+", "", html)
    assert not re.search(r"<script|https?://|<link|@import|src=", html)
    ids = set(re.findall(r'id="(\w+)"', html))
    assert set(re.findall(r'href="#(\w+)"', html)) <= ids
    for tag in ("table", "section", "svg", "div", "td", "th", "tr"):
        assert len(re.findall(rf"<{tag}[ >]", html)) == html.count(f"</{tag}>"), tag


def test_repetitions_give_their_median(tmp_path) -> None:
    for run, time in enumerate((10.0, 30.0, 20.0)):
        made = runs.BenchRun.open(tmp_path / str(run), config(engine="structgen"))
        made.write([masks_row("structgen", "a", time, [time, time])])
    built = report.build([runs.read(tmp_path / str(run)) for run in range(3)], "t")
    assert built.speed[1].rows == [["structgen", *["20 µs"] * 5]]


def test_named_cases_and_generation_have_their_parts(tmp_path) -> None:
    cases = runs.BenchRun.open(
        tmp_path / "cases", config(engine="structgen") | {"data": "structgen's own cases"}
    )
    cases.write([masks_row("structgen", "array of 100k tokens", 5.0, [1.0, 2.0])])
    made = runs.BenchRun.open(tmp_path / "end", config(engine="structgen", mode="generate"))
    whose = {"split": "s", "engine": "structgen"}
    base = {**whose, "gct_us": 1e3, "ttft_us": 2e3, "tpot_us": 3e3, "finish": "stop"}
    made.write(
        [
            base | {"id": "1", "declared": True, "valid": True},
            base | {"id": "2", "declared": True, "valid": False, "problem": "type: ..."},
            whose | {"id": "3", "declared": False, "valid": False, "compile_error": "x"},
            whose | {"id": "4", "failure": "timeout"},
        ]
    )
    built = report.build([runs.read(tmp_path / name) for name in ("cases", "end")], "t")
    assert built.cases[0].rows[0][:2] == ["structgen", "5 µs"]
    times = ["1 ms", "2 ms", "3 ms"]
    assert built.endtoend[0].rows == [["structgen", "no", "4", "50%", "25%", "50%", "0", "0", *times]]
    assert "End to end" in page.render(built) and "array of 100k tokens" in markdown.render(built)


def as_maskbench_counts(folder: Path) -> dict[str, Any]:
    """Returns the rows of the table that MaskBench's `scripts/maskbench_results.py` makes of a folder.

    The function repeats what the script reads: the keys of each row, what counts as a crash, the two kinds of
    wrong verdicts, the percentiles and the exit codes. A missing key raises an error here, as in the script.
    """
    assert json.loads((folder / "meta.txt").read_text())["name"]
    files = sorted(folder.glob("*.json"))
    assert files
    content = [json.loads(file.read_text()) for file in files]
    rows = [row for part in content for row in (part if isinstance(part, list) else [part])]
    finished = [row for row in rows if "num_tests" in row]
    compiled = [row for row in finished if "compile_error" not in row]
    assert sum(row["num_tests"] for row in finished) >= sum(
        row["num_valid_tests"] + row["num_invalid_tests"] for row in compiled
    )
    assert all(row["max_ttfm_us"] >= row["ttfm_us"] > 0 for row in compiled)
    assert all(
        row["max_mask_us"] == max(row["all_mask_us"], default=0) for row in compiled if "masks_us" in row
    )
    wrong = [row["validation_error"] for row in compiled if "validation_error" in row]
    rejecting = [text for text in wrong if "should reject" in text]
    codes = [line.strip() for line in (folder / "log.txt").read_text().splitlines()]
    lines: dict[str, Any] = {}
    times = {
        "TBM": [us for row in compiled for us in row["all_mask_us"]],
        "TTFM": [r["ttfm_us"] for r in compiled],
    }
    for name, unsorted in times.items():
        ordered = sorted(unsorted)
        assert all(0 <= us < 1e10 for us in ordered)  # the script's histogram has ten decades of microseconds
        lines[f"{name} avg (us)"] = sum(ordered) / len(ordered)
        for p in (25, 50, 75, 90, 95, 99, 99.9, 100):
            lines[f"{name} p{p}"] = ordered[min(int(len(ordered) * p / 100), len(ordered) - 1)]
    return lines | {
        "tokens": sum(row["num_tokens"] for row in compiled if "masks_us" in row),
        "schemas": len(rows),
        "passing": len(compiled) - len(wrong),
        "crashes": len(rows) - len(finished),
        "segv": codes.count("Exit code: -11"),
        "oom": codes.count("Exit code: -6"),
        "timeouts": codes.count("Exit code: -14"),
        "compile errors": len(finished) - len(compiled),
        "validation errors": len(wrong) - len(rejecting),
        "invalidation errors": len(rejecting),
    }


def test_the_export_is_what_maskbench_reads(troubled, hung, smoke, tmp_path) -> None:
    for run in (troubled, hung, smoke):
        assert bench(f"export {run} {tmp_path / run.parent.name}") == 0
        for folder in sorted((tmp_path / run.parent.name).glob("out--*")):
            counted = as_maskbench_counts(folder)
            # with -q the script reads this file alone
            ours = json.loads((folder / "entries.txt").read_text())
            assert list(ours) == list(counted)
            assert ours == pytest.approx(counted, abs=0.01)
            stats = json.loads((folder / "stats.txt").read_text())
            assert stats["meta"]["name"].startswith(folder.name.removeprefix("out--").split("-bad")[0])
            # the cells of the script's table; its plot divides by the least of a row
            for value in ours.values():
                assert f"{value:,}"
            assert all(value > 0 for line, value in ours.items() if line.startswith(("TBM", "TTFM")))
            slow = [us for row in runs.rows_of(run) for us in row.get("all_mask_us", ()) if us >= 10_000]
            assert slow or stats["num_masks_over_10ms"] == 0
    engines = {troubled: "tests.bench_engines-bad", hung: "tests.bench_engines-bad", smoke: "structgen"}
    of_bad, hung_out, of_smoke = (tmp_path / run.parent.name / f"out--{e}" for run, e in engines.items())
    bad = json.loads((of_bad / "entries.txt").read_text())
    assert [bad[k] for k in ("schemas", "passing", "crashes", "segv", "oom", "timeouts")] == [
        7,
        0,
        3,
        1,
        1,
        0,
    ]
    assert [bad[f"{kind} errors"] for kind in ("compile", "validation", "invalidation")] == [1, 2, 1]
    assert sorted((of_bad / "log.txt").read_text().split()[2::3]) == ["-11", "-6", "3"]
    late = json.loads((hung_out / "entries.txt").read_text())
    assert [late[k] for k in ("schemas", "crashes", "timeouts")] == [3, 1, 1]
    assert (hung_out / "log.txt").read_text().split()[2::3] == ["-14"]
    good = json.loads((of_smoke / "entries.txt").read_text())
    assert good["passing"] == good["schemas"] == len(named.SMOKE)


def test_the_export_gives_the_last_wrong_verdict_as_maskbench_does(tmp_path) -> None:
    run = runs.BenchRun.open(tmp_path / "run", config("structgen"))
    texts = [
        "test #0: should reject but didn't",
        "test #3: EXN a; b",
        "test #4: should accept but didn't (token 2)",
    ]
    run.write(
        [
            masks_row("structgen", "a", 1.0, [1.0], validation_error="; ".join(texts)),
            {"id": "b", "split": "s", "engine": "structgen", "failure": "unreadable: no JSON"},
            {"id": "c", "split": "s", "engine": "structgen", "num_tests": 2, "compile_error": "x"},
        ]
    )
    assert bench(f"export {tmp_path}/run {tmp_path}/out") == 0
    folder = tmp_path / "out" / "out--structgen"
    found = json.loads((folder / "rows.json").read_text())
    assert [row["id"] for row in found] == ["a.json", "b.json", "c.json"]
    assert found[0]["validation_error"] == texts[2]
    assert found[2]["all_mask_us"] == [] and found[2]["ttfm_us"] == 0
    assert (folder / "log.txt").read_text() == "Exit code: 1\n"
    assert as_maskbench_counts(folder)["validation errors"] == 1
    empty = runs.BenchRun.open(tmp_path / "empty", config("structgen"))
    # In a run without measurements MaskBench's script divides by 0. The export writes NaN in its place.
    assert bench(f"export {empty.path} {tmp_path}/out") == 0
    assert figures.math.isnan(json.loads((folder / "entries.txt").read_text())["TBM p50"])


# ---- comparison


def config(engine: str, mode: str = "masks") -> dict[str, Any]:
    return {
        "mode": mode,
        "tokenizer": "embedded",
        "data": "x",
        "scale": 1.0,
        "limit": 1.0,
        "memory": 10**9,
        "engines": {engine: {"version": "1", "notes": []}},
        "sessions": [runs.session(lanes=1, executor="local")],
    }


def masks_row(engine: str, name: str, ttfm: float, steps: list[float], **more: Any) -> dict[str, Any]:
    return {
        "id": name,
        "split": "s",
        "engine": engine,
        "num_tests": 1,
        "num_valid_tests": 1,
        "num_invalid_tests": 0,
        "ttfm_us": ttfm,
        "max_ttfm_us": ttfm,
        "steps": [len(steps)],
        "num_tokens": len(steps),
        "masks_us": sum(steps),
        "max_mask_us": max(steps),
        "all_mask_us": steps,
    } | more


def test_the_intervals_hold_the_true_ratio() -> None:
    """Samples have one known ratio. About 95% of the intervals hold the ratio."""
    random = np.random.default_rng(3)
    hits = 0
    for _ in range(30):
        left = [list(random.lognormal(1, 1, size=random.integers(1, 20))) for _ in range(80)]
        right = [list(0.5 * random.lognormal(1, 1, size=len(times))) for times in left]
        low, high = comparison.intervals(left, right, ("mean",), 100)["mean"]
        assert low < high
        hits += low <= 0.5 <= high
    assert hits >= 24


def test_a_percentile_of_bins_is_a_percentile() -> None:
    random = np.random.default_rng(0)
    times = [list(random.lognormal(2, 2, size=50)) for _ in range(100)]
    shifted = [[3 * t for t in group] for group in times]
    for column, (low, high) in comparison.intervals(times, shifted, ("p50", "p99", "mean"), 100).items():
        assert 0.97 * 3 < low <= high < 1.03 * 3, column


def test_compare_tells_times_from_answers(tmp_path) -> None:
    a, b = (runs.BenchRun.open(tmp_path / name, config("structgen")) for name in "ab")
    a.write([masks_row("structgen", str(i), 10.0, [1.0, 2.0]) for i in range(5)])
    b.write([masks_row("structgen", str(i), 40.0, [2.0, 4.0]) for i in range(5)])
    assert bench(f"compare {tmp_path}/a {tmp_path}/b") == 0  # a slower engine is no failure of the command
    text, worse = comparison.compare(a, b)
    assert "4.000 [" in text and "2.000 [" in text and not worse
    c = runs.BenchRun.open(tmp_path / "c", config("structgen"))
    c.write([masks_row("structgen", "0", 1.0, [1.0], validation_error="test #0: should reject but didn't")])
    assert bench(f"compare {tmp_path}/a {tmp_path}/c") == 1


def test_durations_have_three_digits() -> None:
    found = [duration(us) for us in (0.123, 9.876, 999.4, 1234.0, 56_789.0, 1.5e6, 123e6, float("nan"))]
    assert found == ["0.123 µs", "9.88 µs", "999 µs", "1.23 ms", "56.8 ms", "1.5 s", "123 s", "–"]


# ---- end to end, and on other machines


def test_generation_with_the_embedded_model(tmp_path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    (data / "S---a.json").write_text(
        '{"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}'
    )
    (data / "S---b.json").write_text('{"enum": ["red", "green"]}')
    (data / "S---c.json").write_text('{"type": "integer", "pattern": 3, "$ref": "#/nowhere"}')
    options = f"--data {data} --engines structgen,unconstrained --max-tokens 40 --jobs 1"
    assert bench(f"generate {options} --out {tmp_path}/run") == 0
    found = rows(tmp_path / "run")
    for name in "ab":
        row = found[name, "structgen"]
        assert row["valid"] and row["finish"] == "stop" and row["ttft_us"] > row["gct_us"] > 0
    assert not found["c", "structgen"]["declared"]
    assert found["c", "unconstrained"]["declared"]


LONG = {
    "type": "object",
    "properties": {f"field_{i}": {"type": "string", "minLength": 4, "maxLength": 9} for i in range(40)},
    "minProperties": 2,
    "additionalProperties": False,
}
PLAIN = "tests.bench_engines:plain"


GIVING_UP = "tests.bench_engines:giving_up"


def generated(base: Path, more: str = "", limit: int = 30, engines: str = f"structgen,{PLAIN}") -> Path:
    """Returns a run over a long schema and over a schema that needs more than 30 tokens; `said.txt` has the
    command's output."""
    data = base / "data"
    if not data.exists():
        data.mkdir()
        (data / "S---long.json").write_text(json.dumps(LONG))
        (data / "S---huge.json").write_text(json.dumps({"type": "string", "minLength": 2000}))
    path = base / f"run{len(list(base.iterdir()))}"
    options = f"--data {data} --engines {engines} --max-tokens {limit} --jobs 1 --out {path} {more}"
    with contextlib.redirect_stderr(io.StringIO()) as said:
        assert bench(f"generate {options}") == 0
    (path / "said.txt").write_text(said.getvalue())
    return path


@pytest.fixture(scope="module")
def told(tmp_path_factory) -> tuple[Path, Path]:
    """Two runs of the same schemas: the adapter of the first takes the limit of tokens, the other's does
    not."""
    base = tmp_path_factory.mktemp("told")
    return generated(base), generated(base, "--untold")


def test_an_engine_that_is_told_the_limit_ends_in_time(told) -> None:
    with_limit, without = (rows(path) for path in told)
    row = with_limit["long", "structgen"]
    assert row["limit_told"] and row["valid"] and row["finish"] == "stop" and row["num_tokens"] <= 30
    row = without["long", "structgen"]
    assert not row["limit_told"] and row["finish"] == "length" and row["num_tokens"] == 30
    assert figures.outcome(row) == figures.CUT and row["declared"] and not row["valid"]
    for found in (with_limit, without):  # the second adapter hides the feature of the first
        row = found["long", PLAIN]
        assert not row["limit_told"] and figures.outcome(row) == figures.CUT
    assert with_limit["long", PLAIN]["text"] == without["long", "structgen"]["text"]


def test_a_limit_below_the_minimum_is_an_outcome_of_its_own(told) -> None:
    with_limit, without = (rows(path) for path in told)
    row = with_limit["huge", "structgen"]
    assert (
        row["declared"] and not row["valid"] and "compile_error" not in row and "generation_error" not in row
    )
    assert row["finish"] == endtoend.TOO_SMALL and figures.outcome(row) == figures.TOO_SMALL
    assert row["num_tokens"] == 0 and re.search(
        r"within 30 tokens; it takes (?:at most )?\d{3}", row["problem"]
    )
    assert figures.outcome(without["huge", "structgen"]) == figures.CUT


def test_who_was_told_the_limit_is_said(told, capsys) -> None:
    html, text = texts(list(told))
    built = report.build([runs.read(path) for path in told], "t")
    table = built.endtoend[0]
    column = table.columns.index
    lines = {line[0]: line for line in table.rows}
    assert list(lines) == ["structgen", "structgen, untold", PLAIN]
    assert [line[column("told")] for line in lines.values()] == ["yes", "no", "no"]
    assert [line[column("empirical")] for line in lines.values()] == ["50%", "0%", "0%"]
    assert [line[column(figures.CUT)] for line in lines.values()] == ["0", "2", "2"]
    assert [line[column("too small")] for line in lines.values()] == ["1", "0", "0"]
    for made in (html, text):
        assert f"Without such a feature, and so cut off: {PLAIN}" in made
        assert "finish in time: structgen" in made and "--untold" in made
    print(figures.summary(runs.rows_of(told[0]), "generate"))
    assert re.search(r"structgen +2 +100.0% +50.0% +50.0% +0 +1 +yes", capsys.readouterr().out)


def test_the_missing_feature_is_said_at_the_start(told) -> None:
    said = (told[0] / "said.txt").read_text()
    assert f"{PLAIN} 1: cannot be told how many tokens are left" in said
    assert "structgen" not in [line.split()[0] for line in said.splitlines() if "cannot be told" in line]


def test_an_engine_that_breaks_while_it_runs_did_not_take_the_schema() -> None:
    state = endtoend.setup({"model": "embedded", "engine": GIVING_UP, "max_tokens": 9, "tell_limit": True})
    out: list[dict[str, Any]] = []
    endtoend.work(state, corpus.Case("a", "s", "true", ()).as_json(), out.append)
    assert not out[0]["declared"] and figures.outcome(out[0]) == "failed"
    assert out[0]["generation_error"] == "RuntimeError: lexer error: too much"


def test_a_run_keeps_to_what_engines_were_told(told, capsys) -> None:
    path = told[1]
    data = path.parent / "data"
    assert bench(f"generate --data {data} --engines structgen --max-tokens 30 --out {path}") == 2
    assert "another tell_limit" in capsys.readouterr().err


def test_grid_writes_its_completion_when_it_is_told(tmp_path) -> None:
    pytest.importorskip("grid", reason="grid-guardrail is not installed (the extra `bench`)")
    found = rows(generated(tmp_path, limit=80, engines="grid-guardrail"))
    row = found["long", "grid-guardrail"]
    assert row["limit_told"] and row["valid"] and row["num_tokens"] <= 80, row


def test_a_prompt_that_fills_the_model_is_not_the_engines_fault() -> None:
    from structgen.lm.base import ContextTooLong

    class Model:
        vocabulary = SimpleNamespace(special_tokens={}, decode=lambda _ids: b"")
        max_context = 5
        tokenizer = None

        def start(self, prompt: str) -> Any:
            if len(prompt) > 100:
                raise ContextTooLong("the prompt has 101 tokens; the model reads 5")
            return prompt

    grammar = SimpleNamespace(unenforced=(), sequence=lambda: Sequence(print, print, row_of(1)))
    engine = SimpleNamespace(name="x", compile=lambda _schema: grammar)
    for schema in ('{"type": "null"}', '"' + "x" * 100 + '"'):
        out: list[dict[str, Any]] = []
        state = {"lm": Model(), "engine": engine, "max_tokens": 3, "tell": True}
        state["lm"].eos_token_ids = ()  # type: ignore[attr-defined]
        job = corpus.Case("a", "s", schema, ()).as_json()
        endtoend.work(state, job, out.append)
        assert figures.outcome(out[0]) == figures.NO_ROOM, out
        assert out[0]["declared"] and not out[0]["valid"] and out[0]["finish"] in endtoend.FINISHES


def test_coverage_is_what_the_paper_defines() -> None:
    """Declared coverage counts schemas that compile. Empirical coverage is valid texts over all schemas.
    Compliance is empirical over declared."""
    base = {"split": "s", "finish": "stop", "ttft_us": 1e3, "tpot_us": 1e3}
    a = [
        base | {"id": "1", "declared": True, "valid": True, "gct_us": 1e3},
        base | {"id": "2", "declared": True, "valid": False, "gct_us": 9e3},
        base | {"id": "3", "declared": True, "valid": False, "gct_us": 9e3, "finish": "length"},
        {"id": "4", "split": "s", "declared": False, "valid": False, "generation_error": "broke"},
        {"id": "5", "split": "s", "declared": False, "valid": False, "compile_error": "no"},
        {"id": "6", "split": "s", "failure": "timeout"},
    ]
    b = [base | {"id": "1", "declared": True, "valid": True, "gct_us": 5e3}]
    found = {"a": {str(r["id"]): r for r in a}, "b": {"1": b[0]}, "none": {"1": a[4] | {"id": "1"}}}
    timed = figures.declared_by_all(found)
    assert timed == {"1"}
    c = figures.coverage(a, timed)
    assert (c["declared"], c["empirical"], c["compliance"]) == (3 / 6, 1 / 6, 1 / 3)
    assert (c["cut"], c["too_small"], c["gct_ms"]) == (1, 0, 1.0)
    assert figures.coverage(a)["gct_ms"] == 9.0


def test_ray_goes_on_with_a_run_of_this_machine(tmp_path, smoke) -> None:
    pytest.importorskip("ray", reason="ray is not installed (the extra `ray`)")
    command = f"{MASKS} --data smoke --engines structgen --jobs 2 --out {tmp_path}/run"
    assert bench(f"{command} --count 8") == 0
    assert bench(f"{command} --executor ray") == 0
    there = rows(tmp_path / "run")
    assert there.keys() == rows(smoke).keys()
    assert len(list(runs.rows_of(tmp_path / "run"))) == len(there)
    for key, row in rows(smoke).items():
        assert row["steps"] == there[key]["steps"] and figures.outcome(row) == figures.outcome(there[key])
    assert [s["executor"] for s in runs.read(tmp_path / "run").config["sessions"]] == ["local", "ray"]


def test_the_schema_reaches_every_model() -> None:
    class Tokenizer:
        chat_template = "template"

        def apply_chat_template(self, messages: Any, **_: Any) -> list[int]:
            return list(messages[0]["content"].encode())

    class Model:
        def __init__(self, special: dict[str, int]) -> None:
            self.vocabulary = SimpleNamespace(special_tokens=special)

    schema = '{"type": "null", "title": "unlikely"}'
    plain, chat = Model({}), Model({})
    chat.tokenizer = Tokenizer()  # type: ignore[attr-defined]
    assert schema in endtoend.prompt(plain, schema)
    assert schema.encode() in bytes(endtoend.prompt(chat, schema))
    assert "<|answer|>" in endtoend.prompt(Model({"<|answer|>": 1}), schema)


def test_a_worker_says_why_it_did_not_start() -> None:
    worker = Worker("tests.bench_engines:unloadable", "tests.bench_engines:bad", {}, 1.0)
    with pytest.raises(RuntimeError, match="OSError: no licence file"):
        worker.call({})


def test_turns_keep_every_case_and_rotate_who_goes_first() -> None:
    names = ("one", "two", "three")
    jobs = [{"name": str(i), "engines": [n for n in names if (i, n) != (4, "one")]} for i in range(8)]
    turns = list(drive.turns(iter(jobs), 3, names))
    assert [[job["name"] for job in turn] for turn in turns] == [["0", "1", "2"], ["3", "4", "5"], ["6", "7"]]
    assert [turn[0]["engines"] for turn in turns] == [
        ["one", "two", "three"],
        ["two", "three", "one"],
        ["three", "one", "two"],
    ]
    assert turns[1][1]["engines"] == ["two", "three"]  # a finished engine stays out of the turns


def test_a_turn_takes_all_its_cases_through_one_engine_after_the_other() -> None:
    lane = drive.Lane(drive.Task("masks", ("a", "b"), {}, 1.0, None))
    asked = []
    # type: ignore[method-assign]
    lane._call = lambda engine, job: asked.append((engine, job["name"])) or [{"id": job["name"]}]
    turn = [{"name": "x", "engines": ["b", "a"]}, {"name": "y", "engines": ["b"]}]
    assert lane.run(turn) == [{"id": "x"}, {"id": "y"}, {"id": "x"}]
    assert asked == [("b", "x"), ("b", "y"), ("a", "x")]
