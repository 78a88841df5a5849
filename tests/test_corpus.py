"""The suffix automaton of a corpus: compared with brute force, stored in a file, and loaded in every way."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import structgen as sg
from oracles import closed
from oracles.harness import cases, together
from oracles.speculative import OTHER, SCHEMAS, VOCABULARY, RandomModel
from structgen._array_file import load_arrays, save_arrays
from structgen.cli.main import main
from structgen.errors import StructgenError
from structgen.speculation import Corpus, CorpusDrafter, Here, Speculation, Start, Step
from structgen.speculation.drafters.corpus import texts_of
from structgen.speculation.options import named

TEXTS = st.lists(st.lists(st.integers(0, 2), max_size=12), max_size=5)
HERE = Here(None, 0)


def occurrences(texts: list[list[int]], part: list[int]) -> int:
    return sum(t[i : i + len(part)] == part for t in texts for i in range(len(t) - len(part) + 1))


@given(texts=TEXTS, text=st.lists(st.integers(0, 3), max_size=20))
@settings(max_examples=cases(300), deadline=None)
def test_it_finds_the_longest_suffix_and_what_follows_how_often(
    texts: list[list[int]], text: list[int]
) -> None:
    corpus = Corpus.build(texts, VOCABULARY)
    total = sum(map(len, texts))
    assert corpus.states <= max(1, 2 * total) and corpus.transitions <= max(0, 3 * total)
    state = length = 0
    for end, token in enumerate(text, 1):
        state, length = corpus.read(state, length, token)
        want = next(n for n in range(end, -1, -1) if n == 0 or occurrences(texts, text[end - n : end]))
        assert length == want
        if not length:
            assert state == 0
            continue
        suffix = text[end - length : end]
        assert corpus.count(state) == occurrences(texts, suffix)
        follow = {t: n for t in range(3) if (n := occurrences(texts, [*suffix, t]))}
        found = corpus.follows(state)
        assert dict(found) == follow and [n for _, n in found] == sorted(follow.values(), reverse=True)
        assert all((corpus.after(state, t) >= 0) == (t in follow) for t in range(5))


def test_drafts_copy_the_corpus_and_leave_what_differs() -> None:
    drafter = CorpusDrafter(Corpus.build([[1, 2, 3, 4, 5], [2, 3, 9], [2, 3, 9]], VOCABULARY), least=2)
    session = drafter.open(Start([7, 2], VOCABULARY, None, 0.0, None))
    assert session.cursor() is None  # a match of one token is too short
    session.accept(Step([3]))
    cursor = session.cursor()
    assert cursor is not None
    assert [t for t, _ in cursor.children(HERE)] == [9, 4]
    assert all(0 < p < 1 for _, p in cursor.children(HERE))
    assert cursor.step(8) is None
    further = cursor.step(4)
    assert further is not None and [t for t, _ in further.children(HERE)] == [5]
    end = further.step(5)
    assert end is not None and not end.children(HERE)
    assert cursor.step(3) is None  # "3" alone is too short a match
    with pytest.raises(ValueError, match="at least 1"):
        CorpusDrafter(Corpus.build([], VOCABULARY), least=0)


def test_a_file_gives_the_same_corpus(tmp_path: Path) -> None:
    texts = ['{"a":1,"b":"x"}', b"abcabc12", [3, 4, 5, 3, 4]]
    corpus = Corpus.build(texts, VOCABULARY)
    file = tmp_path / "c"
    corpus.save(file)
    again = Corpus.load(file)
    assert again.nbytes == corpus.nbytes and [p.name for p in tmp_path.iterdir()] == ["c"]
    for state in range(corpus.states):
        assert corpus.follows(state) == again.follows(state) and corpus.count(state) == again.count(state)
    again.check_vocabulary(VOCABULARY)
    with pytest.raises(StructgenError, match="another vocabulary"):
        CorpusDrafter(file).open(Start([1], OTHER, None, 0.0, None))
    with pytest.raises(FileNotFoundError):
        Corpus.load(tmp_path / "none")


def test_damaged_files_are_refused_or_harmless(tmp_path: Path) -> None:
    """A file that is cut off, changed, or holds inconsistent arrays gives an error or an automaton that can
    be followed."""
    corpus = Corpus.build(["abcabc12,abcab", "aab12"], VOCABULARY)
    file, bad = tmp_path / "c", tmp_path / "bad"
    corpus.save(file)
    good = file.read_bytes()
    arrays = load_arrays(file)
    draw = random.Random(0)
    refused = 0

    def tried() -> int:
        try:
            found = Corpus.load(bad)
        except StructgenError as error:
            assert "is damaged" in str(error) and str(bad) in str(error)
            return 1
        state = length = 0
        for _ in range(60):
            state, length = found.read(state, length, draw.randrange(40))
            found.follows(state)
        return 0

    for _ in range(150):
        data = bytearray(good)
        if draw.random() < 0.3:
            del data[draw.randrange(len(data)) :]
        else:
            for _ in range(draw.randint(1, 4)):
                data[draw.randrange(len(data))] = draw.randrange(256)
        bad.write_bytes(data)
        refused += tried()
    # Checksums find changes of bytes. If the checksums are computed anew, the checks of the arrays find the
    # changes.
    for _ in range(300):
        name = draw.choice([n for n in arrays if n != "meta"])
        changed = arrays[name].copy()
        for _ in range(draw.randint(1, 3)):
            changed[draw.randrange(len(changed))] = draw.choice([-1, 0, 1, len(changed), 2**31 - 1, -(2**31)])
        save_arrays(bad, {**arrays, name: changed})
        refused += tried()
    assert refused > 300
    for name in ("link", "start", "meta"):
        for value in (arrays[name][:-1], arrays[name].astype(np.int64), arrays[name][None]):
            save_arrays(bad, {**arrays, name: value})
            assert tried() or name == "meta"
        save_arrays(bad, {k: v for k, v in arrays.items() if k != name})
        assert tried()
    circle = arrays["link"].copy()
    circle[3] = 3
    save_arrays(bad, {**arrays, "link": circle})
    assert tried()
    np.savez_compressed(bad, **arrays)
    bad.with_name("bad.npz").replace(bad)
    assert tried()
    save_arrays(bad, {**arrays, "meta": np.frombuffer(json.dumps({"format": 9}).encode(), np.uint8)})
    assert tried()


def test_a_corpus_has_a_limit() -> None:
    with pytest.raises(StructgenError, match="more than 5 tokens"):
        Corpus.build([[1, 2, 3], [4, 5, 6]], VOCABULARY, tokens=5)
    with pytest.raises(StructgenError, match="beyond the vocabulary"):
        Corpus.build([[1, 10**6]], VOCABULARY)


def test_texts_share_a_corpus_in_threads() -> None:
    lm = RandomModel()
    plain = [sg.generate(lm, "ab", s, max_tokens=40).tokens for s in SCHEMAS]
    options = Speculation([CorpusDrafter(Corpus.build(plain, VOCABULARY))], adaptive=False, nodes=6)

    def work(number: int) -> None:
        found = sg.generate(lm, "ab", SCHEMAS[number % 3], max_tokens=40, speculate=options)
        assert found.tokens == plain[number % 3] and found.speculation.accepted

    together(work, 6)


# --- by name ---------------------------------------------------------------------------------------------

PROMPT = "Maria Lopez ordered 3 oak chairs"
SCHEMA = json.dumps(closed({"customer": {"type": "string"}, "quantity": {"type": "integer"}}))


@pytest.fixture
def corpus_file(tmp_path: Path) -> Path:
    file = tmp_path / "texts.jsonl"
    file.write_text(
        '{"customer":"Ada","quantity":3}\n"{\\"customer\\":\\"Maria Lopez\\""\n\n', encoding="utf-8"
    )
    return file


def test_names_of_drafters_may_say_a_corpus(corpus_file: Path) -> None:
    found = named(f"auto, corpus={corpus_file}", files=True)
    assert [d.name for d in found.drafters][-1] == "corpus" and len(found.drafters) == 6
    with pytest.raises(ValueError, match="no drafter is called"):
        named(f"corpus={corpus_file}")
    with pytest.raises(OSError):
        named("corpus=/nowhere/at/all", files=True)
    (corpus_file.parent / "x.jsonl").write_text("{", encoding="utf-8")
    with pytest.raises(StructgenError, match="of the corpus"):
        CorpusDrafter(corpus_file.parent / "x.jsonl")


def test_the_command_line_builds_and_takes_one(corpus_file: Path, tmp_path: Path, capsys: Any) -> None:
    built, schema = tmp_path / "c.npz", tmp_path / "s.json"
    schema.write_text(SCHEMA, encoding="utf-8")
    assert main(["corpus", str(corpus_file), "--output", str(built)]) == 0
    assert "2 texts" in capsys.readouterr().err
    common = ["generate", "--prompt", PROMPT, "--schema", str(schema)]
    assert main(common) == 0
    plain = capsys.readouterr().out
    for name in (built, corpus_file):
        assert main([*common, "--speculate", f"auto,corpus={name}"]) == 0
        out = capsys.readouterr()
        assert out.out == plain and "tokens a forward" in out.err
    for arguments, message in (
        ([*common, "--speculate", "corpus=/nowhere/x"], "cannot read"),
        (["corpus", "/nowhere/x", "--output", str(built)], "cannot read"),
        (["corpus", str(corpus_file), "--output", "/nowhere/x"], "cannot write"),
        (["corpus", str(corpus_file), "--output", str(built), "--limit", "0"], "--limit"),
        (["corpus", str(corpus_file), "--output", str(built), "--limit", "3"], "more than 3 tokens"),
        (["serve", "--corpus", "/nowhere/x"], "cannot read the corpus"),
    ):
        assert main(arguments) == 2 or "more than" in message
        assert message in capsys.readouterr().err
    built.write_bytes(built.read_bytes()[:-40])
    assert main([*common, "--speculate", f"corpus={built}"]) == 2
    assert "is damaged" in capsys.readouterr().err


def test_the_server_offers_the_one_that_it_was_given(corpus_file: Path) -> None:
    pytest.importorskip("fastapi", reason="fastapi is not installed: it is in the extra serve")
    pytest.importorskip("httpx2", reason="httpx2 is not installed: it is in the extra test")
    from fastapi import testclient as client

    from structgen.serve.app import create_app
    from structgen.serve.options import ServerOptions

    body = {
        "model": "embedded",
        "messages": [{"role": "user", "content": PROMPT}],
        "response_format": {
            "type": "json_schema",
            "json_schema": {"name": "x", "schema": json.loads(SCHEMA)},
        },
    }
    with client.TestClient(create_app(None, ServerOptions(corpus=str(corpus_file)))) as server:
        url = "/v1/chat/completions"
        answers = [
            server.post(url, json=body | {"structgen": {"speculate": names}}).json()
            for names in (["corpus"], ["auto", "corpus"], ["grammar"])
        ]
        texts = {a["choices"][0]["message"]["content"] for a in answers}
        assert len(texts) == 1
        refused = server.post(url, json=body | {"structgen": {"speculate": [f"corpus={corpus_file}"]}})
        assert refused.status_code == 400 and "no drafter" in refused.text


def test_lines_of_jsonl_are_cut_at_line_feeds_alone_and_records_are_their_texts(tmp_path: Path) -> None:
    """U+2028 ends no line. Of records of `generate` only the text is indexed, without ids and scores."""
    file = tmp_path / "a.jsonl"
    record = {"id": 3, "prompt": "x", "text": "one\u2028two", "logprob": -1.5}
    file.write_text(json.dumps(record, ensure_ascii=False) + '\n"three"\n\n{"a": 1}\n', encoding="utf-8")
    assert texts_of(file) == ["one\u2028two", "three", '{"a":1}']
    file.write_text('"a"\n{"b\n', encoding="utf-8")
    with pytest.raises(sg.StructgenError, match="line 2 of the corpus"):
        texts_of(file)
    (tmp_path / "empty.txt").write_text(" \n")
    with pytest.raises(sg.StructgenError, match="is empty"):
        texts_of(tmp_path / "empty.txt")
    assert (
        main(["generate", "--prompt", "x", "--choice", "a\u2028b", "--output", str(tmp_path / "o.jsonl")])
        == 0
    )
    assert texts_of(tmp_path / "o.jsonl") == ["a\u2028b"]


def test_prompts_and_records_are_cut_at_line_feeds_alone(tmp_path: Path, capsys) -> None:
    prompts, out = tmp_path / "p.jsonl", str(tmp_path / "o.jsonl")
    prompts.write_text(
        json.dumps({"id": 1, "prompt": "a\u2028b"}, ensure_ascii=False) + "\n", encoding="utf-8"
    )
    command = ["generate", "--prompts", str(prompts), "--choice", "c\u2028d", "--output", out]
    assert main(command) == 0
    capsys.readouterr()
    assert main([*command, "--resume"]) == 0
    assert "1 of 1" in capsys.readouterr().err
