"""`Vocabulary.save` and `load`: equal vocabularies and masks. A damaged file is refused.

The tests patch the sections and compute the checksum anew, so they reach the checks behind the checksum.
"""

from __future__ import annotations

import random
import struct
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import structgen
from oracles.harness import WORDS, together, vocabulary
from oracles.vocabulary_file import signed
from structgen.errors import VocabularyError

SCHEMA = '{"type":"object","properties":{"name":{"type":"string","maxLength":9},"n":{"type":"integer"}}}'
TEXTS = ("", "{", '{"na', '{"name": "ab', '{"name": "", "n": -1', "{}")


@pytest.fixture(scope="module")
def made() -> structgen.Vocabulary:
    return vocabulary(WORDS)


@pytest.fixture(scope="module")
def file(made, tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("saved") / "words.sgv"
    made.save(path)
    return path


def masks(words: structgen.Vocabulary) -> np.ndarray:
    grammar = structgen.Compiler(words).json_schema(SCHEMA)
    out = structgen.allocate_bitmask(len(TEXTS), words.vocab_size)
    for row, text in enumerate(TEXTS):
        matcher = grammar.matcher()
        assert matcher.accept_bytes(text) or not text
        matcher.fill_bitmask(out, row)
    return np.asarray(out)


def test_what_is_loaded_is_what_was_saved(made, file) -> None:
    loaded = structgen.Vocabulary.load(file)
    for name in ("vocab_size", "eos_token_ids", "special_token_ids", "special_tokens", "kind"):
        assert getattr(loaded, name) == getattr(made, name), name
    assert list(loaded.tokens) == list(made.tokens)
    assert loaded.tokens[-1] == made.tokens[-1] and loaded.tokens[2:5] == list(made.tokens[2:5])
    assert loaded.encode('{"a": 1}') == made.encode('{"a": 1}')
    np.testing.assert_array_equal(masks(loaded), masks(made))


def test_a_loaded_vocabulary_is_saved_alike(file, tmp_path) -> None:
    again = tmp_path / "again.sgv"
    structgen.Vocabulary.load(file).save(again)
    assert again.read_bytes() == file.read_bytes()


def test_saving_replaces_the_file_under_a_reader(made, tmp_path) -> None:
    path = tmp_path / "words.sgv"
    made.save(path)
    loaded = structgen.Vocabulary.load(path)
    made.save(path)
    path.unlink()
    np.testing.assert_array_equal(masks(loaded), masks(made))
    assert not list(tmp_path.iterdir())


def test_many_threads_save_one_file(made, tmp_path) -> None:
    path = tmp_path / "words.sgv"
    together(lambda _: made.save(path), 8)
    assert [p.name for p in tmp_path.iterdir()] == ["words.sgv"]
    assert structgen.Vocabulary.load(path).vocab_size == made.vocab_size


def test_every_damage_is_refused(file, tmp_path) -> None:
    data = file.read_bytes()
    path = tmp_path / "bad.sgv"
    chance = random.Random(0)
    bad = [
        b"",
        data[:7],
        data[:100],
        data[:-1],
        data + b"\0",
        b"x" + data[1:],
        b"not a vocabulary at all" * 40,
    ]
    for _ in range(200):
        at = chance.randrange(len(data))
        bad.append(data[:at] + bytes([data[at] ^ (1 << chance.randrange(8))]) + data[at + 1 :])
    for text in bad:
        path.write_bytes(text)
        with pytest.raises(VocabularyError, match="bad.sgv"):
            structgen.Vocabulary.load(path)
    for missing in (tmp_path / "none.sgv", tmp_path):
        with pytest.raises(VocabularyError, match="none.sgv|regular"):
            structgen.Vocabulary.load(missing)
    with pytest.raises(VocabularyError, match="written"):
        structgen.Vocabulary.load(file).save(tmp_path / "no folder" / "words.sgv")


def test_wrong_indices_behind_a_right_checksum_never_crash(file, tmp_path) -> None:
    """The file is refused, or its masks may be wrong but the process survives. A child process runs each
    case."""
    words = structgen.Vocabulary.load(file)
    row = structgen.allocate_bitmask(1, words.vocab_size)
    structgen.Compiler(words).regex("[^x]*").matcher().fill_bitmask(row)
    words.save(tmp_path / "classes")
    data = (tmp_path / "classes").read_bytes()
    assert signed(bytearray(data)) == data
    begins = struct.unpack("<11Q", data[24 : 24 + 88])
    sizes = struct.unpack("<11Q", data[112 : 112 + 88])
    chance = random.Random(1)
    count = 0
    for section in range(
        2, 11
    ):  # offsets, end ids, special ids, nodes, children, tokens, tokens below a node, runs
        for value in (0, 1, 0x7FFFFFFF, 0xFFFFFFFF, None, None, None, None) * (12 if section == 10 else 1):
            if not sizes[section]:
                continue
            patched = bytearray(data)
            at = begins[section] + chance.randrange(sizes[section] // 4) * 4
            number = chance.randrange(1 << 18) if value is None else value
            patched[at : at + 4] = struct.pack("<I", number)
            (tmp_path / f"{section}-{number}-{at}.sgv").write_bytes(signed(patched))
            count += section < 10  # runs that do not fit are built anew, not refused
    # A class has the length of its key, its own length, the key, a flag, the bytes that begin an element, and
    # the largest number of elements.
    at, classes = begins[10], 0
    while at + 8 <= begins[10] + sizes[10]:
        key, body = struct.unpack("<2I", data[at : at + 8])
        at += 8 + (key + 3) // 4 * 4
        for number in (0, 2, 3):
            patched = bytearray(data)
            patched[at + 40 : at + 44] = struct.pack("<I", number)
            (tmp_path / f"elements-{classes}-{number}.sgv").write_bytes(signed(patched))
        at, classes = at + body, classes + 1
    assert classes == 2
    code = (
        "import sys, pathlib, tests.test_vocabulary_file as t, structgen\n"
        "refused = 0\n"
        "for path in sorted(pathlib.Path(sys.argv[1]).glob('*.sgv')):\n"
        "    try:\n"
        "        words = structgen.Vocabulary.load(path)\n"
        "        t.masks(words)\n"
        "        row = structgen.allocate_bitmask(1, words.vocab_size)\n"
        "        for pattern in ('[^x]{1,2}', '[^x]{2}b', '[^x]{1,3}([^x]{2}b|c)'):\n"
        "            structgen.Compiler(words).regex(pattern).matcher().fill_bitmask(row)\n"
        "    except (structgen.StructgenError, AssertionError, IndexError):\n"
        "        refused += 1\n"
        "print(refused)\n"
    )
    root = Path(__file__).resolve().parents[1]
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, cwd=root
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert int(done.stdout) > count // 2
