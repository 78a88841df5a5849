"""The runs of `bench/`: every planted bug still applies, and a run without its data reports the lack and
fails."""

from __future__ import annotations

import importlib
import json
import os

import pytest

from bench import planted
from oracles import data


@pytest.mark.parametrize("bug", planted.BUGS, ids=lambda bug: bug.name.split(":")[0])
def test_planted_bugs_apply(bug: planted.Bug) -> None:
    """The text that a bug replaces stands in its file exactly once, and the new text differs in more than
    blanks."""
    text = (planted.ROOT / bug.file).read_text(encoding="utf-8")
    assert planted.changed(text, bug).split() != text.split()


def test_planted_bugs_are_listed(capsys) -> None:
    assert planted.main(["--list"]) == 0
    assert capsys.readouterr().out.splitlines() == [bug.name for bug in planted.BUGS]


def test_a_formatter_does_not_hide_a_place() -> None:
    bug = planted.Bug("x", "y", "if (a) {\n  return b; }", "z")
    assert planted.changed("{ if (a)   {\n\treturn b;\n} }", bug) == "{ z }"
    for text in ("if (a) { return c; }", "if (a) { return b; } if (a) { return b; }"):
        with pytest.raises(SystemExit, match="x: the text to change stands [02] times in y"):
            planted.changed(text, bug)


RUNS = {
    "batch": ("maskbench", []),
    "budget": ("maskbench", []),
    "correctness": ("maskbench", []),
    "memory": ("maskbench", []),
    "reasoning": ("maskbench", []),
    "speculation": ("maskbench", []),
    "suite": ("json-schema-test-suite", []),
    "coverage": ("json-schema-test-suite", []),
    "sampling.run": ("gad", []),
}


@pytest.mark.parametrize("run", RUNS)
@pytest.mark.parametrize("there", ["nothing", "an empty folder"])
def test_a_run_without_its_data_fails(run: str, there: str, tmp_path, monkeypatch, capsys) -> None:
    part, arguments = RUNS[run]
    monkeypatch.setenv("STRUCTGEN_DATA", str(tmp_path))
    if there == "an empty folder":
        (tmp_path / part).mkdir()
    with pytest.raises(SystemExit) as ended:
        importlib.import_module(f"bench.{run}").main(arguments)
    out, err = capsys.readouterr()
    assert ended.value.code == 2 and not out
    assert f"no data in {tmp_path / part}" in err and "STRUCTGEN_DATA" in err


@pytest.mark.parametrize(
    ("run", "arguments", "text"),
    [
        ("suite", ["--drafts", "draft5"], "the suite has no 'draft5': it has draft2020-12, draft7"),
        ("suite", ["--drafts", "draft7", "--only", "nowhere"], "no file's path contains 'nowhere'"),
        ("coverage", ["--engines", "nobody"], "unknown engine 'nobody'"),
        ("correctness", ["--only", "no such schema"], "no schema is left"),
    ],
)
def test_what_selects_nothing_fails(
    run: str, arguments: list[str], text: str, tmp_path, monkeypatch, capsys
) -> None:
    (tmp_path / "maskbench").mkdir()
    (tmp_path / "maskbench" / "Split---one.json").write_text('{"schema": true, "tests": []}')
    for draft in ("draft2020-12", "draft7"):
        (tmp_path / "json-schema-test-suite" / "tests" / draft).mkdir(parents=True)
    monkeypatch.setenv("STRUCTGEN_DATA", str(tmp_path))
    with pytest.raises(SystemExit) as ended:
        importlib.import_module(f"bench.{run}").main(arguments)
    assert ended.value.code == 2 and text in capsys.readouterr().err


def test_tools_and_trackers(tmp_path, capsys) -> None:
    """structgen's verdicts equal jsonschema's, for calls of many tools and for every case of the issue
    trackers."""
    for run, arguments in (("tools", ["--tools", "1,20", "--vocabulary", "embedded"]), ("trackers", [])):
        module, out = importlib.import_module(f"bench.{run}"), tmp_path / run
        module.main(["--engines", "structgen", "--out", str(out), *arguments])
        rows = [json.loads(line) for line in out.read_text().splitlines()]
        if run == "tools":
            assert [(row["tools"], row["over"], row["under"], row["broke"]) for row in rows] == [
                (1, 0, 0, 0),
                (20, 0, 0, 0),
            ]
        else:
            assert [row["case"] for row in rows if row["verdict"] != "right"] == [] and len(rows) >= 30
        module.main(["--report", str(out)])
        assert "structgen" in capsys.readouterr().out
    tools = importlib.import_module("bench.tools")
    made, calls = tools.made(16)
    assert all(4 <= len(tool.parameters["properties"]) <= 16 for tool in made)
    assert all(tool.judge.is_valid(value) == right for tool, value, right in calls)


def test_data_that_is_there_is_enough(tmp_path, monkeypatch) -> None:
    (tmp_path / "gad" / "task").mkdir(parents=True)
    monkeypatch.setenv("STRUCTGEN_DATA", str(tmp_path))
    data.require("gad")


class Says:
    """An engine for `bench.coverage`. A table gives its answer for each schema."""

    name = "says"

    def __init__(self, tokens) -> None:
        self._tokens = tokens

    def compile(self, schema: str):
        from structgen.maskbench.engines import structgen
        from structgen.maskbench.engines.base import Refused

        told = json.loads(schema)
        if told.get("title") == "crash":
            os._exit(7)
        if told.get("title") == "refuse":
            raise Refused("not supported")
        if told.get("title") == "nothing":
            raise Refused("unsatisfiable schema")
        honest = structgen.Engine(self._tokens)
        return honest.compile({"over": '{"const": 3}', "under": "true"}.get(told.get("title"), schema))


def test_coverage_counts_each_kind_of_failure(tmp_path, monkeypatch, capsys) -> None:
    from bench import coverage

    folder = tmp_path / "json-schema-test-suite" / "tests" / "draft2020-12"
    folder.mkdir(parents=True)

    def group(title: str, *valid: bool) -> dict:
        tests = [{"description": "", "data": 1 if v else "x", "valid": v} for v in valid]
        return {"description": title, "schema": {"title": title, "type": "integer"}, "tests": tests}

    for title in ("right", "refuse", "over", "under", "crash"):
        (folder / f"{title}.json").write_text(json.dumps([group(title, True, False)]))
    (folder / "nothing.json").write_text(json.dumps([group("nothing", False, False)]))
    reordered = {"properties": {"b": {}, "a": {}}, "additionalProperties": False}
    test = {"description": "", "data": {"a": 1, "b": 2}, "valid": True}
    (folder / "order.json").write_text(
        json.dumps([{"description": "order", "schema": reordered, "tests": [test]}])
    )
    monkeypatch.setenv("STRUCTGEN_DATA", str(tmp_path))
    out = tmp_path / "rows"
    coverage.main(["--engines", "tests.runs.test_developer_runs:Says", "--out", str(out)])
    rows = {row["about"]: row for row in map(json.loads, out.read_text().splitlines())}
    counts = {
        name: tuple(row[kind] for kind in ("passed", "compile", "over", "under"))
        for name, row in rows.items()
    }
    assert counts == {
        "right": (2, 0, 0, 0), "refuse": (0, 2, 0, 0), "over": (1, 0, 1, 0), "under": (1, 0, 0, 1),
        "crash": (0, 2, 0, 0), "nothing": (2, 0, 0, 0), "order": (1, 0, 0, 0),
    }  # fmt: skip
    assert rows["crash"]["said"].startswith("crash")
    capsys.readouterr()
    coverage.main(["--report", str(out)])
    said = capsys.readouterr().out
    assert "7 categories of draft2020-12, 13 tests" in said
    line = next(line for line in said.splitlines() if line.startswith("Says"))
    assert line.split()[1:] == ["7", "5", "5", "3", "3", "3", "2", "1", "1", "1"]


@pytest.mark.parametrize("name", ["glrmask", "maskforge"])
def test_peers_say_what_they_allow(name: str) -> None:
    pytest.importorskip(name, reason=f"{name} is not installed: `pip install {name}`")
    from bench import coverage
    from structgen.maskbench import engines, tokens

    found = tokens.load("embedded")
    engine = engines.load(f"bench.peers:{name}", found)
    grammar = engine.compile(
        '{"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}'
    )
    assert any(coverage.allowed(grammar, text, found) for text in ('{"a":1}', '{"a": 1}'))
    for text in ('{"a":"x"}', '{"a": "x"}', "{}", '{"a": 1'):
        assert not coverage.allowed(grammar, text, found)
