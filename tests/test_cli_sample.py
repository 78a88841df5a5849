"""structgen sample: records, the summary, attempts, pictures, and one readable line for every failure."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

from oracles import closed
from structgen.cli import main  # noqa: E402

SCHEMA = closed({"product": {"enum": ["shirt", "hat", "coat"]}, "quantity": {"enum": [1, 2, 3]}})


@pytest.fixture
def schema(tmp_path: Path) -> str:
    path = tmp_path / "schema.json"
    path.write_text(json.dumps(SCHEMA))
    return str(path)


def call(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, list[dict], str]:
    try:
        status = main(["sample", "--prompt", "two hats please", *arguments])
    except SystemExit as stop:
        status = int(stop.code or 0)
    found = capsys.readouterr()
    return status, [json.loads(line) for line in found.out.splitlines()], found.err


def test_records_a_summary_and_a_trie(capsys, schema: str, tmp_path: Path) -> None:
    trie = str(tmp_path / "t.npz")
    common = ("--schema", schema, "-n", "5", "--seed", "3", "--method", "cars", "--trie", trie, "--summary")
    status, lines, err = call(capsys, *common)
    assert status == 0 and len(lines) == 6
    for line in lines[:5]:
        assert json.loads(line["text"]) == line["value"] and line["value"]["product"] in (
            "shirt",
            "hat",
            "coat",
        )
        assert line["log_weight"] == 0 and line["logprob"] < 0
    about = lines[5]
    assert about["law"] == "exact" and about["log_bracket"][0] <= about["log_bracket"][1]
    assert about["seed"] == 3 and about["positions"] > 0
    assert "law exact" in err and "log P(language)" in err
    status, again, _ = call(capsys, *common)
    assert status == 0 and again[5]["positions"] < about["positions"] / 2


def test_a_picture(capsys, schema: str, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    for name, method in (("a.png", "asap"), ("b.svg", "smc")):
        path = tmp_path / name
        status, lines, _ = call(
            capsys, "--schema", schema, "-n", "6", "--seed", "1", "--method", method, "--plot", str(path)
        )
        assert status == 0 and len(lines) == 6
        head = path.read_bytes()[:200]
        assert head.startswith(b"\x89PNG") or b"<?xml" in head


def test_failures_are_one_line(capsys, schema: str, tmp_path: Path) -> None:
    for arguments, said in [
        (("--schema", schema, "--plot", "x.bmp"), "a picture ends in"),
        (("--schema", schema, "--plot", str(tmp_path / "no" / "x.png")), "no such folder"),
        (("--schema", schema, "-n", "0"), "n must be at least 1"),
        (("--schema", schema, "--temperature", "0"), "temperature"),
        (("--regex", "("), ""),
        (("--schema", str(tmp_path / "none.json")), "cannot read the schema"),
        (("--schema", schema, "--trie", str(tmp_path / "no" / "t.npz")), "no such folder"),
    ]:
        status, lines, err = call(capsys, *arguments)
        errors = [line for line in err.splitlines() if line.startswith("structgen: ")]
        assert status == 2 and not lines and len(errors) == 1 and said in errors[0], err


def test_too_few_texts_is_status_1(capsys) -> None:
    status, lines, err = call(
        capsys, "--regex", "qqqq[0-9]{9}zz", "-n", "3", "--method", "cars", "--max-trials", "2", "--seed", "1"
    )
    assert status == 1 and len(lines) < 3 and "2 trials" in err


def test_a_grammar_file(capsys, tmp_path: Path) -> None:
    """The command recognizes GBNF and Lark by their syntax, and reports a mistake with its place."""
    gbnf, lark, bad = tmp_path / "a.gbnf", tmp_path / "a.lark", tmp_path / "b.gbnf"
    gbnf.write_text('root ::= "{" ws "}" | "[" [0-9] ("," [0-9])* "]"\nws ::= "" | " "\n')
    lark.write_text('start: "yes" | "no"\n')
    bad.write_text('root ::= "a" | missing\n')
    how = ("-n", "4", "--seed", "1", "--method", "importance")
    status, lines, _ = call(capsys, "--grammar", str(gbnf), *how)
    assert status == 0 and all(re.fullmatch(r"\{ ?\}|\[\d(,\d)*\]", line["text"]) for line in lines)
    status, lines, _ = call(capsys, "--grammar", str(lark), "-n", "4", "--seed", "1", "--summary")
    assert status == 0 and {line["text"] for line in lines[:4]} <= {"yes", "no"}
    assert lines[4]["target"]["temperature"] == 1.0 and lines[4]["target"]["budget"] == "mask"
    status, lines, err = call(capsys, "--grammar", str(bad))
    assert status == 2 and not lines and "missing" in err


def test_a_search_goes_on_from_a_file_and_draws_its_tree(capsys, schema: str, tmp_path: Path) -> None:
    state, page = tmp_path / "state.json", tmp_path / "tree.html"

    def search(*more: str) -> tuple[int, list[dict], str]:
        status = main(["search", "--prompt", "two hats please", "--schema", schema, *more])
        found = capsys.readouterr()
        return status, [json.loads(line) for line in found.out.splitlines()], found.err

    status, whole, err = search("-n", "3", "--html", str(page))
    assert status == 0 and "stopped by 'done'" in err and "<details" in page.read_text()
    assert [line["certified"] for line in whole] == [True] * 3
    assert whole[0]["logprob"] >= whole[1]["logprob"] >= whole[2]["logprob"]
    status, found, err = search("-n", "3", "--state", str(state), "--forwards", "2")
    assert status == 1 and "stopped by 'forwards'" in err
    for _ in range(20):
        status, found, err = search("-n", "3", "--state", str(state), "--forwards", "40")
        if status == 0 and "done" in err:
            break
    assert found == whole
    status, found, _ = search("--method", "value", "--score", "tests.test_cli_sample:shortness")
    assert status == 0 and found[0]["score"] == -len(found[0]["tokens"])
    assert search("--method", "value")[0] == 2
    status, found, err = search("-n", "3", "--state", str(state), "--seed", "4")
    assert (status, found) == (2, []) and "has another seed: go on with what it was begun with" in err
    state.write_text(state.read_text()[:-40])
    status, found, err = search("-n", "3", "--state", str(state))
    assert (status, found) == (2, []) and "is damaged" in err and len(err.splitlines()) <= 2
    status, found, err = search("--max-tokens", "3")
    assert (status, found) == (1, []) and "cannot be completed within 3 tokens; it takes" in err
    assert search("--method", "value", "--score", "tests.test_cli_sample:nothing")[0] == 2


def shortness(seen: object) -> float:
    return -float(len(seen.tokens))  # type: ignore[attr-defined]
