"""Forced tokens equal the tokenizer's tokens of the whole text: text so far, forced text and any
continuation.

The continuation is drawn byte by byte from the grammar, and the tokenizer cuts the whole text.
"""

from __future__ import annotations

import functools
import importlib.util
from pathlib import Path

import numpy as np
import pytest

import structgen
from oracles import harness, oracle
from oracles.strategies import Seeded, Source
from structgen import Vocabulary

pytest.importorskip("lark")

NAMES = ("tekken", "sentencepiece", "embedded", "qwen", "longest match")


@functools.cache
def vocabulary(name: str) -> Vocabulary:
    if name == "embedded":
        pytest.importorskip("tokenizers")
        import structgen.lm.embedded as embedded

        return Vocabulary.from_file(Path(embedded.__file__).parent / "target")
    if name == "qwen":
        package = importlib.util.find_spec("dashscope")
        if package is None or not package.submodule_search_locations:
            pytest.skip("dashscope, which carries Qwen's tokenizer, is not installed")
        file = Path(package.submodule_search_locations[0]) / "resources" / "qwen.tiktoken"
        return Vocabulary.from_file(file, eos_token_ids=151_643)
    package = pytest.importorskip("mistral_common")
    data = Path(package.__file__).parent / "data"
    if name == "sentencepiece":
        pytest.importorskip("sentencepiece")
        return Vocabulary.from_file(data / "mistral_instruct_tokenizer_241114.model.v7")
    found = Vocabulary.from_file(data / "tekken_240911.json")
    if name == "longest match":
        found = Vocabulary.from_bytes(found.tokens, found.eos_token_ids, found.special_token_ids)
    return found


SCHEMA = {
    "type": "object",
    "properties": {
        "orderId": {"type": "integer"},
        "orderName": {"enum": ["in progress", "in production", "été", "日本語", "日程"]},
        "a very long name, with  blanks": {"const": "   indented\n\n   text 12345678"},
        "items": {"type": "array", "items": {"type": "string", "maxLength": 5}, "minItems": 1},
    },
    "required": ["orderName", "a very long name, with  blanks", "items"],
}
GRAMMARS = {
    "schema": lambda c: c.json_schema(SCHEMA),
    "compact": lambda c: c.json_schema(SCHEMA, whitespace="compact"),
    "pretty": lambda c: c.json_schema(SCHEMA, whitespace="pretty"),
    "choice": lambda c: c.choice(["order", "orders are", "orderly", "other  things", "or\n\n\tno", "or\n x"]),
    "blanks": lambda c: c.regex(
        r"(if  |if   x|while\n+  y|12345(67)?8?9*)( {4}| {8}|\t\t)(return;|\}\})\r?\n(aaaa)+"
    ),
    "emoji": lambda c: c.regex(r"(👩‍👩‍👧|👩‍🚀|é|e\u0301)(ligne|lignes|日本|日)+"),
    "python": lambda c: c.lark(
        'start: "def " /[a-z]{1,4}/ "(self):\\n    return self." /[a-z]+/ "\\n\\n\\nclass" " " "A:\\n    x"'
    ),
}


def text_of(vocab: Vocabulary, tokens: list[int]) -> bytes:
    return vocab.decode(t for t in tokens if t not in vocab.eos_token_ids)


def continuation(source: Source, matcher: structgen.Matcher, most: int) -> bytes:
    out = b""
    for _ in range(most):
        live = matcher.live_bytes()
        if not live or (matcher.is_accepting() and source.chance(20)):
            break
        common = [b for b in live if chr(b) in ' abcino123"\n.,:}'] or list(live)
        byte = bytes([source.pick(common if source.chance(80) else list(live))])
        assert matcher.accept_bytes(byte)
        out += byte
    return out


def whole(text: bytes) -> bytes:
    """Returns the text without an unfinished character at its end."""
    return text.decode("utf-8", "ignore").encode() if text else text


def forced_is_canonical(
    source: Source, vocab: Vocabulary, grammar: structgen.CompiledGrammar
) -> tuple[int, int]:
    """Returns the number of forced tokens and of forced bytes."""
    matcher, taken = grammar.matcher(), []
    tokens = size = 0
    for _ in range(40):
        forced = matcher.forced_tokens()
        assert matcher.validate_tokens(forced) == len(forced)
        replay = grammar.matcher()
        assert replay.accept_tokens(taken) and replay.forced_tokens() == forced
        bytes_ = matcher.forced_bytes()
        assert bytes_.startswith(text_of(vocab, forced))
        tokens, size = tokens + len(forced), size + len(bytes_)
        text = text_of(vocab, taken)
        own = vocab.canonical(text) if _whole(text) else None
        if forced:
            for _ in range(6):
                probe = matcher.fork()
                assert probe.accept_bytes(bytes_)
                longer = whole(text + bytes_ + continuation(source, probe, source.integer(0, 12)))
                found = vocab.canonical(longer)
                if own == taken and found[: len(taken)] == taken:
                    assert found[: len(taken) + len(forced)] == taken + forced, (longer, forced)
        if matcher.is_terminated():
            break
        if forced and source.chance(70):
            assert matcher.accept_tokens(forced)
            taken += forced
            continue
        if source.chance(75):  # takes the first tokens that the tokenizer gives for some text of the grammar
            probe = matcher.fork()
            text = continuation(source, probe, 16)
            ids = vocab.encode(text)
            ids = ids[: max(1, len(ids) - 2)]
        else:
            allowed = np.flatnonzero(oracle.mask_of(matcher, vocab.vocab_size))
            ids = [int(source.pick(allowed.tolist()))]
        if not ids or not matcher.accept_tokens(ids):
            break
        taken += ids
    return tokens, size


def _whole(text: bytes) -> bool:
    return whole(text) == text


@pytest.mark.parametrize("name", NAMES)
def test_canonical(name: str) -> None:
    vocab = vocabulary(name)
    compiler = structgen.Compiler(vocab)
    tokens = 0
    for label, build in GRAMMARS.items():
        grammar = build(compiler)
        for seed in range(3 if name == "longest match" else harness.cases(12)):
            try:
                tokens += forced_is_canonical(Seeded(seed), vocab, grammar)[0]
            except AssertionError as error:
                error.add_note(f"{name}, {label}, seed {seed}")
                raise
    assert tokens > 20  # the grammars do force tokens


def test_what_a_longer_token_could_change_is_held_back() -> None:
    vocab = vocabulary("tekken")
    compiler = structgen.Compiler(vocab)

    def forced(*texts: str, after: str = "") -> list[bytes]:
        matcher = compiler.choice([after + t for t in texts]).matcher()
        assert matcher.accept_tokens(vocab.encode(after))
        return [vocab.tokens[t] for t in matcher.forced_tokens()]

    assert forced("the order") == [b"the", b" order"]
    # no token begins in the common part and reaches into either continuation
    assert forced("the orderId", "the orderName") == [b"the", b" order"]
    assert forced("the order", "the orders") == [b"the"]  # " orders" is a token
    assert forced("the order", "the order!") == [b"the", b" order"]
    assert forced("if   x", "if   \n") == [b"if"]  # the last blank may belong to the next token
    assert forced("name", after="na") == []  # the tokenizer cuts "naname" differently
    matcher = compiler.choice(["the order"]).matcher()
    # the tokens of the text are unknown, so the forced tokens begin a new text
    assert matcher.accept_bytes("the")
    assert [vocab.tokens[t] for t in matcher.forced_tokens()] == [b" order"]


def test_a_tokenizer_that_changes_the_text_forces_nothing() -> None:
    tokens = [bytes([i]) for i in range(256)] + [b""]
    vocab = Vocabulary.from_bytes(tokens, 256)
    assert structgen.Compiler(vocab).choice(["aB"]).matcher().forced_tokens() == [97, 66]
    vocab._encode = lambda text: list(text.lower().encode())
    assert structgen.Compiler(vocab).choice(["aB"]).matcher().forced_tokens() == []
