"""Inputs that a fuzzer found, its corpus, and a few mutations: each is read, or refused with the right
error."""

from __future__ import annotations

import random
import zipfile
from pathlib import Path

import pytest

import structgen
from fuzz import cluster, coverage
from fuzz.__main__ import mutated, words_of
from fuzz.seeds import DICTIONARIES, corpus
from fuzz.targets import TARGETS

pytest.importorskip("lark")
FOUND = Path(__file__).parent / "cases" / "fuzz"


@pytest.mark.parametrize("target", TARGETS)
def test_corpus(target: str) -> None:
    for data in corpus(target):
        TARGETS[target](data)


@pytest.mark.parametrize("target", TARGETS)
def test_a_few_mutations(target: str) -> None:
    """The short form of `make fuzz`: fixed inputs on every run, within two seconds."""
    pool, words, chance = corpus(target), words_of(target), random.Random(7)
    for _ in range(40):
        TARGETS[target](mutated(pool, words, chance))


def test_cluster_builds_every_target(tmp_path: Path) -> None:
    """Runs the commands of .clusterfuzzlite/build.sh without the Docker image; `make cluster` runs the build,
    too."""
    out = cluster.build(tmp_path, dry=True)
    configured, built = (out / "cmake.txt").read_text().splitlines()
    assert "-DCMAKE_CXX_COMPILER=clang++" in configured and cluster.FLAGS in configured
    assert built == "--build build/cluster --target _core"
    for target in TARGETS:
        assert (out / f"fuzz_{target}").exists()
        with zipfile.ZipFile(out / f"fuzz_{target}_seed_corpus.zip") as archive:
            assert {archive.read(name) for name in archive.namelist()} == set(corpus(target))


def test_coverage_is_told_by_room(capsys: pytest.CaptureFixture[str]) -> None:
    def file(name: str, ran: int, lines: int) -> dict[str, object]:
        both = {"covered": ran, "count": lines}
        return {"filename": name, "summary": {"lines": both, "branches": {"covered": 0, "count": 0}}}

    coverage.table([file("/x/csrc/regex/a.cc", 1, 4), file("csrc/regex/b.cc", 2, 2), file("/usr/c.h", 1, 1)])
    first, *rest = capsys.readouterr().out.splitlines()
    assert first.split()[:4] == ["csrc/regex", "lines", "50.0%", "of"]
    assert [line.split()[0] for line in rest] == ["a.cc", "b.cc", "all"]
    assert sorted(TARGETS) == sorted(DICTIONARIES)


def test_a_target_that_goes_wrong_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """A target reports a mask that allows a refused token, and a call that takes too long."""
    from fuzz import targets

    monkeypatch.setattr(targets.structgen.Matcher, "accept_token", lambda matcher, token: False)
    with pytest.raises(targets.Wrong, match="masked|refused"):
        TARGETS["regex"](b"a|b")
    monkeypatch.undo()
    longer = structgen.CompiledGrammar.infill
    monkeypatch.setattr(
        targets.structgen.CompiledGrammar, "infill", lambda g, before, after: longer(g, before, after + b"a")
    )
    with pytest.raises(targets.Wrong, match="refused between|no middle"):
        TARGETS["holes"](b"\1\5abc")
    monkeypatch.undo()
    monkeypatch.setattr(targets, "SECONDS", -1.0)
    with pytest.raises(targets.Wrong, match="took"):
        TARGETS["regex"](b"a|b")


@pytest.mark.parametrize(
    "file", [pytest.param(f, id=f"{f.parent.name}: {f.name}") for f in sorted(FOUND.glob("*/*"))]
)
def test_found(file: Path) -> None:
    TARGETS[file.parent.name](file.read_bytes())
