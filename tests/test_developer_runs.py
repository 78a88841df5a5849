"""The runs of `bench/`: planted bugs still apply, and a run that lacks its data says so and fails."""

from __future__ import annotations

import importlib

import pytest

from bench import data, planted


@pytest.mark.parametrize("bug", planted.BUGS, ids=lambda bug: bug.name.split(":")[0])
def test_planted_bugs_apply(bug: planted.Bug) -> None:
    """What a bug changes stands in its file exactly once, and it changes more than blanks."""
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
    "speculation": ("maskbench", []),
    "suite": ("json-schema-test-suite", []),
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


def test_data_that_is_there_is_enough(tmp_path, monkeypatch) -> None:
    (tmp_path / "gad" / "task").mkdir(parents=True)
    monkeypatch.setenv("STRUCTGEN_DATA", str(tmp_path))
    data.require("gad")
