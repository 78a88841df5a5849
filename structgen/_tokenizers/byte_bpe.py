"""Tokenizers whose file holds raw bytes: `.tiktoken` files, `tekken.json`, tiktoken's own object.

Enters: the bytes of a file, or an object. Leaves: `Parts`.
Cost: about 40 ms for 131k tokens; reading tekken's JSON takes longer than that.
"""

from __future__ import annotations

import json
from binascii import Error as Base64Error
from binascii import a2b_base64
from collections.abc import Mapping
from typing import Any

from ..errors import VocabularyError
from .parts import Encode, Parts, by_id, reading

# The pre-tokenization patterns of the model families that ship bare `.tiktoken` files. A file does not name
# its pattern; the longest run of digits in its tokens tells the two patterns apart.
_CL100K = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
_QWEN = _CL100K.replace(r"\p{N}{1,3}", r"\p{N}")

# Special tokens of tekken files that do not list their own (before version 7).
_TEKKEN_SPECIAL = (
    *("<unk>", "<s>", "</s>", "[INST]", "[/INST]", "[AVAILABLE_TOOLS]", "[/AVAILABLE_TOOLS]"),
    *("[TOOL_RESULTS]", "[/TOOL_RESULTS]", "[TOOL_CALLS]", "[IMG]", "<pad>", "[IMG_BREAK]"),
    *("[IMG_END]", "[PREFIX]", "[MIDDLE]", "[SUFFIX]", "[SYSTEM_PROMPT]", "[/SYSTEM_PROMPT]"),
    "[TOOL_CONTENT]",
)


class BytePairEncoder:
    """Encodes texts with the `tiktoken` package. Canonical ids are tiktoken's ids plus the number of special
    ids that come first."""

    def __init__(self, encoding: Any, shift: int = 0) -> None:
        self._encoding = encoding
        self._shift = shift

    def __call__(self, text: str) -> list[int]:
        ids: list[int] = self._encoding.encode_ordinary(text)
        return [i + self._shift for i in ids] if self._shift else ids


class _LazyEncoder:
    """A BytePairEncoder built at the first text: tiktoken takes half a second for 131k tokens."""

    def __init__(self, pattern: str, ranks: dict[bytes, int], shift: int = 0) -> None:
        self._pattern, self._ranks, self._shift = pattern, ranks, shift
        self._made: BytePairEncoder | None = None

    def __call__(self, text: str) -> list[int]:
        if self._made is None:
            import tiktoken

            with reading("tiktoken"):
                encoding = tiktoken.Encoding(
                    "structgen", pat_str=self._pattern, mergeable_ranks=self._ranks, special_tokens={}
                )
            self._made = BytePairEncoder(encoding, self._shift)
        with reading("tiktoken"):
            return self._made(text)

    def __getstate__(self) -> tuple[str, dict[bytes, int], int]:
        return self._pattern, self._ranks, self._shift

    def __setstate__(self, state: tuple[str, dict[bytes, int], int]) -> None:
        self._pattern, self._ranks, self._shift = state
        self._made = None


def _encoder(pattern: str, ranks: dict[bytes, int], shift: int = 0) -> Encode | None:
    """Returns the encoder, or None without the `tiktoken` package: the vocabulary then encodes by longest
    match."""
    from importlib.util import find_spec

    return None if find_spec("tiktoken") is None else _LazyEncoder(pattern, ranks, shift)


def looks_like_tiktoken(head: bytes) -> bool:
    """Returns whether the first line is `<base64> <number>`."""
    fields = head.split(b"\n", 1)[0].split()
    if len(fields) != 2 or not fields[1].isdigit():
        return False
    try:
        return bool(a2b_base64(fields[0], strict_mode=True))
    except Base64Error:
        return False


def read_tiktoken(data: bytes) -> Parts:
    """Reads lines of `<base64> <rank>`. The file names no special token and no end of sequence."""
    fields = data.split()
    try:
        texts = [a2b_base64(word) for word in fields[::2]]
        ranks = dict(zip(texts, map(int, fields[1::2]), strict=True))
    except (Base64Error, ValueError):
        raise VocabularyError("not a .tiktoken file: a line is not `<base64> <rank>`") from None
    _check_ranks(ranks)
    three_digits = sum(len(t) == 3 and t.isdigit() for t in texts) > 500
    encode = _encoder(_CL100K if three_digits else _QWEN, ranks)
    return Parts(by_id({rank: text for text, rank in ranks.items()}), "tiktoken", encode=encode)


def _check_ranks(ranks: Mapping[bytes, int]) -> None:
    if not ranks:
        raise VocabularyError("the .tiktoken file has no token")
    low, high = min(ranks.values()), max(ranks.values())
    if low < 0 or high > 4 * len(ranks) + 100_000:
        raise VocabularyError(f"the .tiktoken file has ranks from {low} to {high}: not a vocabulary")


def read_tekken(record: Mapping[str, Any]) -> Parts:
    """Reads Mistral's `tekken.json`: special ids come first, then as many listed tokens as the size
    leaves."""
    try:
        config = record["config"]
        size, count = int(config["default_vocab_size"]), int(config["default_num_special_tokens"])
        words = record["vocab"][: size - count]
        texts = [a2b_base64(word["token_bytes"]) for word in words]
        listed = record.get("special_tokens")
        named = (
            {name: i for i, name in enumerate(_TEKKEN_SPECIAL)}
            if listed is None
            else {str(item["token_str"]): int(item["rank"]) for item in listed}
        )
        pattern = str(config["pattern"])
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise VocabularyError(f"the tekken file is malformed: {error!r}") from None
    special = {name: i for name, i in named.items() if i < count}
    special |= {f"<SPECIAL_{i}>": i for i in range(count) if i not in frozenset(special.values())}
    encode = _encoder(pattern, {text: i for i, text in enumerate(texts)}, count)
    eos = [special["</s>"]] if "</s>" in special else []
    return Parts([b""] * count + texts, "tekken", special, eos=eos, encode=encode)


def looks_like_tekken(record: Mapping[str, Any]) -> bool:
    config = record.get("config")
    return isinstance(config, Mapping) and "default_num_special_tokens" in config


def is_tiktoken(candidate: object) -> bool:
    """Returns whether an object is a `tiktoken.Encoding`. Its attributes decide, so that tiktoken need not be
    imported."""
    return isinstance(getattr(candidate, "_mergeable_ranks", None), dict) and hasattr(
        candidate, "encode_ordinary"
    )


def from_encoding(encoding: Any) -> Parts:
    """Reads a `tiktoken.Encoding` object."""
    ranks: dict[bytes, int] = encoding._mergeable_ranks
    special = {str(name): int(i) for name, i in encoding._special_tokens.items()}
    entries = {i: text for text, i in ranks.items()} | dict.fromkeys(special.values(), b"")
    return Parts(by_id(entries), "tiktoken", special, encode=BytePairEncoder(encoding))


def parse_json(data: bytes) -> Any:
    """Parses the JSON of a file; raises VocabularyError for damaged JSON."""
    try:
        return json.loads(data)
    except (ValueError, RecursionError) as error:
        raise VocabularyError(f"not JSON: {error}") from None
