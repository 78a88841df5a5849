"""libstructgen: the header compiles in C and in C++, and every mask equals the mask of the Python API.

Both libraries come from one engine. The tests compare them call by call through ctypes. `make test-c` builds
and installs libstructgen without Python, and runs these tests against the installed library.
"""

from __future__ import annotations

import ctypes
import json
import os
import random
import shutil
import subprocess
import sys
from ctypes import POINTER, byref, c_char_p, c_int32, c_int64, c_size_t, c_void_p
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import structgen as sg
from oracles import harness
from oracles.built import ROOT, built
from structgen.limits import SERVING

INSTALLED = os.environ.get("STRUCTGEN_C_PREFIX")
HEADER = ROOT / "csrc" / "include" / "structgen.h"
REFUSED = 1


def environment() -> dict[str, str]:
    return os.environ | {"PKG_CONFIG_PATH": f"{INSTALLED}/lib/pkgconfig:{INSTALLED}/lib64/pkgconfig"}


def pkg_config(*what: str) -> list[str]:
    done = subprocess.run(
        ["pkg-config", *what, "structgen"], capture_output=True, text=True, check=True, env=environment()
    )
    return done.stdout.split()


@pytest.fixture(scope="session")
def flags() -> list[str]:
    """The compiler's flags that link the library."""
    if INSTALLED:
        (folder,) = pkg_config("--variable=libdir")
        return [*pkg_config("--cflags", "--libs"), f"-Wl,-rpath,{folder}"]
    folder = str(built("structgen"))
    return [f"-I{HEADER.parent}", f"-L{folder}", "-lstructgen", f"-Wl,-rpath,{folder}"]


@pytest.mark.parametrize("language", ["c", "c++"])
def test_a_program(flags: list[str], tmp_path: Path, language: str) -> None:
    compiler, standard = {"c": ("cc", "c11"), "c++": ("c++", "c++11")}[language]
    if shutil.which(compiler) is None:
        pytest.skip(f"no {compiler}")
    strict = [f"-std={standard}", "-Wall", "-Wextra", "-pedantic", "-Werror", "-D_POSIX_C_SOURCE=200809L"]
    source = ROOT / "tests" / "c" / "api_test.c"
    built = [compiler, "-x", language, *strict, str(source), "-x", "none", *flags, "-pthread"]
    done = subprocess.run([*built, "-o", "test"], capture_output=True, text=True, cwd=tmp_path, timeout=120)
    assert done.returncode == 0, done.stderr
    run = subprocess.run(["./test"], capture_output=True, text=True, cwd=tmp_path, timeout=120)
    assert (run.returncode, run.stdout) == (0, "ok\n"), run.stderr


def test_the_program_of_the_manual(flags: list[str], tmp_path: Path) -> None:
    page = (ROOT / "docs" / "c_api.md").read_text("utf-8")
    program = page.split("```c\n")[1].split("```")[0]
    (tmp_path / "first.c").write_text(program)
    built = ["cc", "-std=c11", "-Wall", "-Wextra", "-pedantic", "-Werror", "first.c", *flags, "-o", "first"]
    if shutil.which("cc") is None:
        pytest.skip("no cc")
    done = subprocess.run(built, capture_output=True, text=True, cwd=tmp_path, timeout=120)
    assert done.returncode == 0, done.stderr
    run = subprocess.run(["./first"], capture_output=True, text=True, cwd=tmp_path, timeout=120)
    assert run.stdout.split("\n") == ["token 0", "token 1", "token 3", ""]


def test_a_cmake_project_finds_it(tmp_path: Path) -> None:
    """`find_package` finds the target of an installed library; `add_subdirectory` gives it inside another
    project."""
    cmake, ninja = (
        shutil.which(tool, path=os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]))
        for tool in ("cmake", "ninja")
    )
    if not INSTALLED or cmake is None or ninja is None:
        pytest.skip("needs the library installed: make test-c")
    (tmp_path / "CMakeLists.txt").write_text(f"""
cmake_minimum_required(VERSION 3.24)
project(host LANGUAGES C)
find_package(structgen {sg.__version__} REQUIRED)
find_package(Threads REQUIRED)
add_executable(host "{ROOT / "tests" / "c" / "api_test.c"}")
target_compile_definitions(host PRIVATE _POSIX_C_SOURCE=200809L)
target_link_libraries(host PRIVATE structgen::structgen Threads::Threads)
""")
    (tmp_path / "old").mkdir()
    (tmp_path / "old" / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.24)\nproject(old LANGUAGES C)\n"
        "find_package(structgen 99.0 REQUIRED)\n"
    )
    for source, good in ((tmp_path, True), (tmp_path / "old", False)):
        configured = [
            cmake, "-S", str(source), "-B", str(source / "build"), "-G", "Ninja",
            f"-DCMAKE_MAKE_PROGRAM={ninja}", f"-DCMAKE_PREFIX_PATH={INSTALLED}",
        ]  # fmt: skip
        done = subprocess.run(configured, capture_output=True, text=True, timeout=120)
        assert (done.returncode == 0) == good, done.stderr
    built = [cmake, "--build", str(tmp_path / "build")]
    assert subprocess.run(built, capture_output=True, text=True, timeout=120).returncode == 0
    run = subprocess.run([tmp_path / "build" / "host"], capture_output=True, text=True, timeout=120)
    assert (run.returncode, run.stdout) == (0, "ok\n"), run.stderr


def path_of(flags: list[str]) -> str:
    folder = next(flag.removeprefix("-L") for flag in flags if flag.startswith("-L"))
    return next(str(p) for p in Path(folder).glob("libstructgen.*") if p.suffix in (".so", ".dylib"))


def test_only_the_interface_is_exported(flags: list[str]) -> None:
    if shutil.which("nm") is None or sys.platform != "linux":
        pytest.skip("reads the symbols of an ELF file")
    done = subprocess.run(
        ["nm", "-D", "--defined-only", path_of(flags)], capture_output=True, text=True, check=True
    )
    names = {line.split()[-1].partition("@")[0] for line in done.stdout.splitlines()}
    text = HEADER.read_text("utf-8")
    declared = {
        word
        for part in text.split("STRUCTGEN_API ")[1:]
        for word in [part.partition("(")[0].split()[-1].lstrip("*")]
        if word.startswith("structgen_")
    }
    assert names == declared and len(names) > 40


# ---- calls through ctypes, compared with Python ----


class Bytes(ctypes.Structure):
    _fields_ = [("data", c_char_p), ("size", c_size_t)]


class Document(ctypes.Structure):
    _fields_ = [("uri", c_char_p), ("schema", Bytes)]


class JsonOptions(ctypes.Structure):
    _fields_ = [
        ("size", c_size_t),
        ("whitespace", c_char_p),
        ("any_property_order", c_int32),
        ("any_numbers", c_int32),
        ("any_strings", c_int32),
        ("annotate_formats", c_int32),
        ("draft", c_int32),
        ("documents", POINTER(Document)),
        ("n_documents", c_size_t),
    ]


class Request(ctypes.Structure):
    _fields_ = [
        ("size", c_size_t),
        ("end_token_ids", POINTER(c_int32)),
        ("n_end_token_ids", c_size_t),
        ("max_tokens", c_int64),
        ("ignore_after_end", c_int32),
    ]


class Failed(Exception):
    def __init__(self, status: int, message: str) -> None:
        super().__init__(status, message)
        self.status, self.message = status, message


class C:
    """The library's functions; a failing status raises an exception."""

    def __init__(self, path: str) -> None:
        self.lib = ctypes.CDLL(path)
        self.lib.structgen_error_message.restype = c_char_p
        self.lib.structgen_version.restype = c_char_p
        self.lib.structgen_matcher_num_steps.restype = c_int64

    def call(self, name: str, *arguments: Any) -> int:
        error = c_void_p()
        status: int = getattr(self.lib, "structgen_" + name)(*arguments, byref(error))
        if status > REFUSED:
            message = self.lib.structgen_error_message(error).decode()
            self.lib.structgen_error_free(error)
            raise Failed(status, message)
        assert not error
        return status

    def made(self, name: str, *arguments: Any) -> c_void_p:
        out = c_void_p()
        assert self.call(name, *arguments, byref(out)) == 0
        return out

    def vocabulary(self, vocab: sg.Vocabulary) -> c_void_p:
        tokens = (Bytes * vocab.vocab_size)(*[Bytes(t, len(t)) for t in vocab.tokens])
        ends = (c_int32 * len(vocab.eos_token_ids))(*vocab.eos_token_ids)
        special = (c_int32 * len(vocab.special_token_ids))(*vocab.special_token_ids)
        return self.made(
            "vocabulary_new", tokens, c_size_t(len(tokens)), ends, c_size_t(len(ends)), special,
            c_size_t(len(special)),
        )  # fmt: skip

    def grammar(self, compiler: c_void_p, kind: str, text: Any, **options: Any) -> c_void_p:
        if kind == "choice":
            texts = [t.encode() for t in text]
            listed = (Bytes * len(texts))(*[Bytes(t, len(t)) for t in texts])
            return self.made("compile_choice", compiler, listed, c_size_t(len(texts)))
        if kind == "regex":
            pattern = text.encode()
            return self.made("compile_regex", compiler, Bytes(pattern, len(pattern)))
        asked = JsonOptions(size=ctypes.sizeof(JsonOptions), **options)
        if kind == "json_object":
            return self.made("compile_json_object", compiler, byref(asked))
        schema = json.dumps(text).encode()
        return self.made("compile_json_schema", compiler, Bytes(schema, len(schema)), byref(asked))


CONSTRAINTS: list[tuple[str, Any]] = [
    ("regex", "(ab|yes)*c?"),
    ("regex", "[a-z]{2,5}é+"),
    ("choice", ["yes", "no", "yesterday", "é"]),
    ("json_object", ""),
    ("json_schema", {"type": "array", "items": {"type": "integer", "multipleOf": 5}, "uniqueItems": True}),
    ("json_schema", {"type": "object", "properties": {"a": {"type": "integer", "not": {"multipleOf": 3}}},
                     "required": ["a"]}),
    ("json_schema", {"type": "object", "properties": {"kind": {"enum": ["a", "b"]}, "n": {"type": "number"}},
                     "if": {"properties": {"kind": {"const": "a"}}}, "then": {"required": ["n"]}}),
    ("json_schema", {"type": "array", "contains": {"const": 7}, "maxItems": 4}),
    ("json_schema", {"type": "string", "format": "date"}),
    ("gbnf", 'root ::= "a" [^b]{1,4} root? | "yes" item*\nitem[capture="i"] ::= "," [0-9]+'),
    ("lark", 'start: (NAME | "if")+ %json {"type": "array", "items": {"const": 1}}\n'
     'NAME: /[a-z]+/\n%ignore " "'),
    ("structural_tag", {"type": "structural_tag", "format": {
        "type": "triggered_tags", "triggers": ["ab"], "tags": [{"begin": "ab", "end": ";", "content": {
            "type": "json_schema", "json_schema": {"type": "integer"}}}]}}),
]  # fmt: skip


@pytest.fixture(scope="session")
def c(flags: list[str]) -> C:
    return C(path_of(flags))


def test_the_release(c: C) -> None:
    assert c.lib.structgen_version().decode() == sg.__version__
    assert c.lib.structgen_api_version() == 1


@pytest.fixture(scope="session")
def pair(c: C) -> tuple[c_void_p, sg.Compiler]:
    vocab = harness.vocabulary(harness.WORDS)
    made = c.vocabulary(vocab)
    compiler = c.made("compiler_new", made, None)
    c.lib.structgen_vocabulary_free(made)
    return compiler, sg.Compiler(vocab, limits=SERVING, on_limit="subset")


def row_of(c: C, matcher: c_void_p, words: int) -> np.ndarray:
    row = np.full(words, 0x5A5A, np.int32)
    c.call("matcher_fill", matcher, c_void_p(row.ctypes.data), c_size_t(words))
    return row


def bytes_of(c: C, name: str, matcher: c_void_p) -> bytes:
    size = c_size_t()
    c.call(name, matcher, None, c_size_t(0), byref(size))
    buffer = ctypes.create_string_buffer(size.value or 1)
    c.call(name, matcher, buffer, c_size_t(size.value), byref(size))
    return buffer.raw[: size.value]


@pytest.mark.parametrize("kind, text", CONSTRAINTS)
@pytest.mark.parametrize("seed", range(4))
def test_every_call_is_that_of_python(
    c: C, pair: tuple[c_void_p, sg.Compiler], kind: str, text: Any, seed: int
) -> None:
    chance = random.Random(f"{kind} {text} {seed}")
    compiler, python = pair
    vocab = python.vocabulary
    words = (vocab.vocab_size + 31) // 32
    options: dict[str, Any] = {}
    mirrored: dict[str, Any] = {}
    if seed % 2 and kind.startswith("json"):
        options = {"whitespace": "flexible", "numbers": "any", "strings": "any", "property_order": "any"}
        mirrored = {"whitespace": b"flexible", "any_numbers": 1, "any_strings": 1, "any_property_order": 1}
    elif seed % 4 == 2 and kind.startswith("json"):
        options, mirrored = {"numbers": "canonical"}, {"any_numbers": 2}
    theirs = python.compile(kind, text, **options)
    if kind in ("gbnf", "lark", "structural_tag"):
        data = theirs.serialize()
        ours = c.made("compile_serialized", compiler, Bytes(data, len(data)))
    else:
        ours = c.grammar(compiler, kind, text, **mirrored)
    assert c.call("grammar_prepare", ours) == 0
    budget = 40 if seed >= 2 else 0
    ends = (c_int32 * 1)(vocab.eos_token_ids[0])
    request = Request(ctypes.sizeof(Request), ends if seed % 2 else None, 1 if seed % 2 else 0, budget, 1)
    matcher = c.made("matcher_new", ours, byref(request))
    c.lib.structgen_grammar_free(ours)
    own_ends = list(ends) if seed % 2 else None
    oracle = theirs.matcher(end_token_ids=own_ends, max_tokens=budget or None, after_end="ignore")
    expected = sg.allocate_bitmask(1, vocab.vocab_size)
    for _ in range(60):
        assert c.lib.structgen_matcher_is_accepting(matcher) == oracle.is_accepting()
        assert c.lib.structgen_matcher_is_terminated(matcher) == oracle.is_terminated()
        assert c.lib.structgen_matcher_num_steps(matcher) == oracle.num_steps
        if oracle.is_terminated():
            n = chance.randint(1, min(4, oracle.num_steps))
            c.call("matcher_rollback", matcher, c_size_t(n))
            oracle.rollback(n)
            continue
        try:
            oracle.fill_bitmask(expected)
        except sg.BudgetExceeded:
            with pytest.raises(Failed):
                row_of(c, matcher, words)
            oracle.reset()
            c.call("matcher_reset", matcher)
            continue
        assert np.array_equal(row_of(c, matcher, words), expected[0])
        assert c.lib.structgen_matcher_mask_exact(matcher) == oracle.mask_exact
        assert bytes_of(c, "matcher_forced_bytes", matcher) == oracle.forced_bytes()
        assert bytes_of(c, "matcher_shortest_completion", matcher) == oracle.shortest_completion()
        least, enough = c_size_t(), c_size_t()
        c.call("matcher_tokens_needed", matcher, byref(least), byref(enough))
        assert (least.value, enough.value) == oracle.token_bounds()
        allowed = np.flatnonzero(np.unpackbits(expected[0].view(np.uint8), bitorder="little")).tolist()
        draft = [chance.choice(allowed), *chance.choices(range(vocab.vocab_size), k=3)]
        tokens = (c_int32 * 4)(*draft)
        good = c_size_t()
        c.call("matcher_validate_tokens", matcher, tokens, c_size_t(4), byref(good))
        assert good.value == oracle.validate_tokens(draft)
        taken = c.call("matcher_accept_tokens", matcher, tokens, c_size_t(4)) == 0
        assert taken == oracle.accept_tokens(draft)
        token = (
            chance.choice(allowed) if chance.random() < 0.8 else chance.randrange(-2, vocab.vocab_size + 2)
        )
        taken = c.call("matcher_accept", matcher, c_int32(token)) == 0
        assert taken == oracle.accept_token(token)
        written = bytes(chance.choices(range(128), k=2))
        taken = c.call("matcher_accept_bytes", matcher, Bytes(written, 2)) == 0
        assert taken == oracle.accept_bytes(written)
    twin = c.made("matcher_fork", matcher)
    c.lib.structgen_matcher_free(matcher)
    assert c.lib.structgen_matcher_num_steps(twin) == oracle.num_steps
    c.lib.structgen_matcher_free(twin)


def test_documents_and_errors(c: C, pair: tuple[c_void_p, sg.Compiler]) -> None:
    compiler, python = pair
    schema = {"$ref": "https://example.com/item"}
    with pytest.raises(Failed) as caught:
        c.grammar(compiler, "json_schema", schema)
    with pytest.raises(sg.UnsupportedSchema) as other:
        python.compile("json_schema", schema)
    assert caught.value.message in str(other.value)
    item = b'{"const":7}'
    documents = (Document * 1)(Document(b"https://example.com/item", Bytes(item, len(item))))
    made = c.grammar(compiler, "json_schema", schema, documents=documents, n_documents=1)
    matcher = c.made("matcher_new", made, None)
    assert bytes_of(c, "matcher_shortest_completion", matcher) == b"7"
    for handle, kind in ((matcher, "matcher"), (made, "grammar")):
        getattr(c.lib, f"structgen_{kind}_free")(handle)


def test_bytes_that_are_no_grammar(c: C, pair: tuple[c_void_p, sg.Compiler]) -> None:
    compiler, python = pair
    data = python.gbnf('root ::= "a"').serialize()
    for wrong, words in ((b"", "it begins otherwise"), (data[:-1] + b"!", "so it is damaged")):
        with pytest.raises(Failed, match=words) as caught:
            c.made("compile_serialized", compiler, Bytes(wrong, len(wrong)))
        assert caught.value.status == 2


def test_a_saved_vocabulary(c: C, pair: tuple[c_void_p, sg.Compiler], tmp_path: Path) -> None:
    vocab = pair[1].vocabulary
    vocab.save(tmp_path / "v")
    loaded = c.made("vocabulary_load", str(tmp_path / "v").encode())
    assert c.lib.structgen_vocabulary_size(loaded) == vocab.vocab_size
    compiler = c.made("compiler_new", loaded, None)
    ours = c.made("matcher_new", c.grammar(compiler, "regex", "[a-y]+"), None)
    expected = sg.allocate_bitmask(1, vocab.vocab_size)
    pair[1].regex("[a-y]+").matcher().fill_bitmask(expected)
    assert np.array_equal(row_of(c, ours, expected.shape[1]), expected[0])
    (tmp_path / "bad").write_bytes((tmp_path / "v").read_bytes()[:100])
    with pytest.raises(Failed) as caught:
        c.made("vocabulary_load", str(tmp_path / "bad").encode())
    assert caught.value.status == 6


def test_logits(c: C) -> None:
    chance = np.random.default_rng(3)
    for width in (1, 31, 64, 1000):
        row = chance.integers(-(2**31), 2**31, (width + 31) // 32, dtype=np.int32)
        logits = chance.normal(size=width + 5).astype(np.float32)
        expected = sg.apply_bitmask(logits, row)
        c.lib.structgen_apply(
            c_void_p(logits.ctypes.data), c_size_t(width + 5), c_void_p(row.ctypes.data), c_size_t(len(row))
        )
        assert np.array_equal(logits, expected)
