"""`Compiler.save` and `load`: grammars and masks are equal, and known before the first request. A damaged,
foreign or hostile file is refused.

The tests change the JSON and compute the checksum anew, so they reach the checks behind the checksum.
"""

from __future__ import annotations

import hashlib
import json
import random
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

import structgen
from oracles.harness import WORDS, vocabulary
from structgen.errors import GrammarError, SchemaTooComplex, StructgenError, VocabularyError

SCHEMA = '{"type":"object","properties":{"name":{"type":"string","maxLength":9},"n":{"type":"integer"}}}'
TEXTS = ['{"name": "ab", "n": 12}', '{"n": -1}']
LARK = 'start: "a" WORD\nWORD: /[b-z]+/'


def signed(body: bytes, name: bytes = b"structgen compiler 1") -> bytes:
    return name + b" " + hashlib.sha256(body).hexdigest().encode() + b"\n" + body


@pytest.fixture(scope="module")
def words() -> structgen.Vocabulary:
    return vocabulary(WORDS)


@pytest.fixture(scope="module")
def file(words, tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("saved") / "grammars.sgc"
    compiler = structgen.Compiler(words)
    assert compiler.json_schema(SCHEMA).warm(TEXTS) > 0
    compiler.json_schema({"enum": ["a", 1]}, whitespace="compact", on_limit="subset")
    compiler.regex(r"(?P<word>[a-z]+) [0-9]{2}").warm(["ab 12"])
    compiler.gbnf('root ::= "x" | "y"')
    compiler.lark(LARK)
    compiler.choice(["yes", "no"])  # a compiler does not save choices
    assert compiler.save(path) == 5
    return path


def masks(grammar: structgen.CompiledGrammar, text: str) -> np.ndarray:
    tokens = grammar.vocabulary.encode(text)
    out = structgen.allocate_bitmask(len(tokens) + 1, grammar.vocabulary.vocab_size)
    matcher = grammar.matcher()
    for row, token in enumerate(tokens):
        matcher.fill_bitmask(out, row)
        assert matcher.accept_token(token)
    matcher.fill_bitmask(out, len(tokens))
    return np.asarray(out)


def test_what_is_loaded_is_known_and_the_same(words, file) -> None:
    compiler, cold = structgen.Compiler.load(file, words), structgen.Compiler(words)
    for make, texts in (
        (lambda c: c.json_schema(SCHEMA), TEXTS),
        (lambda c: c.json_schema({"enum": ["a", 1]}, whitespace="compact", on_limit="subset"), ["1"]),
        (lambda c: c.regex(r"(?P<word>[a-z]+) [0-9]{2}"), ["ab 12"]),
        (lambda c: c.gbnf('root ::= "x" | "y"'), ["x"]),
        (lambda c: c.lark(LARK), ["ab"]),
    ):
        before = len(compiler._grammars)
        grammar = make(compiler)
        assert len(compiler._grammars) == before  # the grammar was loaded
        states = grammar._core.states
        for text in texts:
            np.testing.assert_array_equal(masks(grammar, text), masks(make(cold), text))
        if grammar._texts:
            assert grammar._core.states == states  # texts that were read before add no state


def test_a_loaded_compiler_is_saved_alike(words, file, tmp_path) -> None:
    again = tmp_path / "again.sgc"
    structgen.Compiler.load(file, words).save(again)
    assert again.read_bytes() == file.read_bytes()
    assert [p.name for p in tmp_path.iterdir()] == ["again.sgc"]


def test_texts_are_read_within_the_time_or_on_a_thread(words, file) -> None:
    cold = structgen.Compiler.load(file, words, seconds=0.0).json_schema(SCHEMA)
    assert not cold._texts
    later = structgen.Compiler.load(file, words, wait=False)
    for thread in threading.enumerate():
        if thread.name == "structgen warm":
            thread.join()
    assert len(later.json_schema(SCHEMA)._texts or ()) == len(TEXTS)


def test_a_process_that_ends_does_not_wait_for_the_texts(words, file, tmp_path) -> None:
    """A thread reads a thousand long texts. The main thread ends at once, and the process does not wait for
    the texts."""
    body = json.loads(file.read_bytes().partition(b"\n")[2])
    tokens = words.encode('{"name": "ab", "n": ' + "1" * 2_000)
    body["grammars"] = [["json_schema", SCHEMA, {}, [tokens[: 1_900 - i] for i in range(1_000)]]]
    path, saved = tmp_path / "long.sgc", tmp_path / "words.sgv"
    path.write_bytes(signed(json.dumps(body).encode()))
    words.save(saved)
    code = (
        "import sys, structgen as sg\n"
        "compiler = sg.Compiler.load(sys.argv[1], sg.Vocabulary.load(sys.argv[2]), wait=False)\n"
    )
    subprocess.run([sys.executable, "-c", code, str(path), str(saved)], check=True, timeout=60)


def test_another_vocabulary_is_refused(words, file) -> None:
    texts = list(words.tokens)
    ends = words.eos_token_ids
    other_ends = structgen.Vocabulary.from_bytes(texts, ends[:1], words.special_tokens)
    texts[300] = b"~?~"
    changed_text = structgen.Vocabulary.from_bytes(texts, ends, words.special_tokens)
    for other in (changed_text, other_ends):
        with pytest.raises(VocabularyError, match=r"grammars\.sgc: was saved for another vocabulary"):
            structgen.Compiler.load(file, other)


def test_every_damage_is_refused(words, file, tmp_path) -> None:
    data, path, chance = file.read_bytes(), tmp_path / "bad.sgc", random.Random(0)
    bad = [b"", data[:5], data[:60], data[:-1], data + b"\n", b"x" + data, data.replace(b" 1 ", b" 2 ", 1)]
    for _ in range(1_200):
        at = chance.randrange(len(data))
        bad.append(data[:at] + bytes([data[at] ^ (1 << chance.randrange(8))]) + data[at + 1 :])
    for text in bad:
        path.write_bytes(text)
        with pytest.raises(GrammarError, match=r"bad\.sgc"):
            structgen.Compiler.load(path, words)
    with pytest.raises(GrammarError, match=r"none\.sgc"):
        structgen.Compiler.load(tmp_path / "none.sgc", words)
    with pytest.raises(GrammarError, match="written"):
        structgen.Compiler(words).save(tmp_path / "no folder" / "grammars.sgc")


def test_a_hostile_file_calls_nothing_else(words, file, tmp_path) -> None:
    body = json.loads(file.read_bytes().partition(b"\n")[2])
    path = tmp_path / "bad.sgc"
    size = words.vocab_size
    for call in (
        ["automaton", "", {}, []],
        ["__init__", "", {}, []],
        ["save", str(tmp_path / "written"), {}, []],
        ["lark", "%import .secret (X)\nstart: X", {"import_paths": ["/etc"]}, []],
        ["json_schema", "{}", {"registry": {}}, []],
        ["json_schema", "{}", {"whitespace": ["flexible"]}, []],
        ["json_schema", {"type": "object"}, {}, []],
        ["json_schema", "{", {}, []],
        ["json_schema", "{}", {"numbers": "all"}, []],
        ["regex", "(", {}, []],
        ["regex", "a", {"on_limit": 1}, []],
        ["regex", "a", {}, [[size]]],
        ["regex", "a", {}, [[-1]]],
        ["regex", "a", {}, [["a"]]],
        ["regex", "a", {}, [[True]]],
        ["regex", "a", {}, "aa"],
        ["regex", "a", {}],
        [["regex"], "a", {}, []],
        None,
    ):
        path.write_bytes(signed(json.dumps(body | {"grammars": [call]}).encode()))
        with pytest.raises(GrammarError, match=r"bad\.sgc"):
            structgen.Compiler.load(path, words)
    for text in (b"[" * 100_000, b"[]", b"{}", b"\xff", b'{"vocabulary": 1, "grammars": []}'):
        path.write_bytes(signed(text))
        with pytest.raises(GrammarError, match=r"bad\.sgc"):
            structgen.Compiler.load(path, words)
    assert not (tmp_path / "written").exists()


def test_changes_behind_a_right_checksum_give_an_error_or_right_masks(words, file, tmp_path) -> None:
    """Each of 1,500 changed files is refused, or its grammars have the masks of a new compile."""
    body, path, chance = file.read_bytes().partition(b"\n")[2], tmp_path / "bad.sgc", random.Random(1)
    loaded = 0
    for _ in range(1_500):
        changed = bytearray(body)
        for _ in range(chance.choice((1, 1, 1, 4))):
            at = chance.randrange(len(changed))
            changed[at : at + chance.choice((0, 1, 1, 1, 3))] = bytes(
                chance.choice(body) for _ in range(chance.choice((0, 1, 1, 2)))
            )
        path.write_bytes(signed(bytes(changed)))
        try:
            compiler = structgen.Compiler.load(path, words, limits=structgen.Limits(200_000, 200_000))
        except (GrammarError, VocabularyError):
            continue
        loaded += 1
        for grammar in list(compiler._grammars.values()):
            try:
                cold = getattr(structgen.Compiler(words), grammar._recipe[1])(
                    *grammar._recipe[2], **grammar._recipe[3]
                )
                want = masks(cold, "")
            except StructgenError:
                continue
            np.testing.assert_array_equal(masks(grammar, ""), want)
    assert loaded > 100


def test_what_is_too_much_for_the_limits_is_left_out(words, file, tmp_path) -> None:
    body = json.loads(file.read_bytes().partition(b"\n")[2])
    large = json.dumps({"properties": {f"k{i}": {"type": "string"} for i in range(5_000)}})
    body["grammars"] = [["json_schema", large, {}, []], ["regex", "ab", {}, []]]
    path = tmp_path / "large.sgc"
    path.write_bytes(signed(json.dumps(body).encode()))
    few = structgen.Limits(compile=2_000)
    compiler = structgen.Compiler.load(path, words, limits=few)
    assert len(compiler._grammars) == 1
    with pytest.raises(SchemaTooComplex):
        compiler.json_schema(large)
