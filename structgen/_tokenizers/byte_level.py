"""Byte-level byte pair encoding in Python: the canonical ids of a `tokenizer.json` without `tokenizers`.

Enters: the parsed file. Leaves: an encoder whose ids equal those of the package `tokenizers`. Cost: n log n
for a new word of n bytes; the ids of earlier words are remembered.

A text is cut at the added tokens, then by the file's pattern, and the bytes of each piece are merged by rank
(Sennrich et al., 2016): each merge takes the pair with the lowest rank, and of equal pairs the leftmost pair.
Python's `re` has no `\\p{L}`, so the pattern is matched against a *shadow* of the text, in which one private
character stands for all characters beyond ASCII of the same category.
"""

from __future__ import annotations

import heapq
import re
import unicodedata
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ..errors import VocabularyError
from .byte_bpe import parse_json
from .pieces import ALPHABET

_GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
_CATEGORIES = [
    *("Lu", "Ll", "Lt", "Lm", "Lo", "Mn", "Mc", "Me", "Nd", "Nl", "No", "Pc", "Pd", "Ps", "Pe", "Pi", "Pf"),
    *("Po", "Sm", "Sc", "Sk", "So", "Zs", "Zl", "Zp", "Cc", "Cf", "Cs", "Co", "Cn"),
]
_SHADOW = 0xE000  # The first character that stands for a category. It is for private use in Unicode.
# Unicode's property White_Space. `str.isspace` differs from it.
_SPACES = frozenset("\t\n\v\f\r \x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000") | frozenset(
    map(chr, range(0x2000, 0x200B))
)
_WORDS = 20_000  # the most words whose ids are remembered
_CHARACTERS = 20_000
_LONG = 64  # bytes; longer words are not remembered


class _Shadows(dict[int, int]):
    """Maps a code point to the code point of its shadow, for `str.translate`; ASCII characters map to
    themselves."""

    def __missing__(self, code: int) -> int:
        found = code if code < 128 else _shadow(chr(code))
        if len(self) < _CHARACTERS:
            self[code] = found
        return found


def _shadow(char: str) -> int:
    return _SHADOW + 2 * _CATEGORIES.index(unicodedata.category(char)) + (char in _SPACES)


class ByteLevelEncoder:
    """Encodes texts, without special tokens at their ends. An added token in a text is read as this token.

    Raises:
        VocabularyError: the file is damaged, or has a form that this encoder does not cover; the message
            names it.
    """

    def __init__(self, record: Mapping[str, Any]) -> None:
        self._record = record
        try:
            self._read(record)
        except (KeyError, TypeError, ValueError, AttributeError, re.error) as error:
            if isinstance(error, VocabularyError):
                raise
            raise VocabularyError(f"the tokenizer.json is malformed: {error!r}") from None

    def _read(self, record: Mapping[str, Any]) -> None:
        model = record["model"]
        for name, expected in (("type", "BPE"), ("byte_fallback", False), ("unk_token", None)):
            _covered(f"model.{name}", model.get(name, expected), expected)
        for name in ("dropout", "continuing_subword_prefix", "end_of_word_suffix"):
            _covered(f"model.{name}", model.get(name) or None, None)
        _covered("normalizer", record.get("normalizer"), None)
        self._whole = bool(model.get("ignore_merges"))
        self._ids: dict[str, int] = dict(model["vocab"])
        self._single = [self._ids[char] for char in ALPHABET]
        self._merges: dict[tuple[int, int], tuple[int, int]] = {}
        for rank, pair in enumerate(model["merges"]):
            left, right = pair.split(" ") if isinstance(pair, str) else pair
            key = self._ids[left], self._ids[right]
            self._merges.setdefault(key, (rank, self._ids[left + right]))
        self._pattern = re.compile(_translated(_split_pattern(record.get("pre_tokenizer"))))
        self._added: dict[str, int] = {}
        for token in record.get("added_tokens") or ():
            for name in ("single_word", "lstrip", "rstrip", "normalized"):
                _covered(f"added token {token['content']!r}: {name}", bool(token.get(name)), False)
            self._added[token["content"]] = int(token["id"])
        self._added.pop("", None)
        # If several added tokens begin at one place, the longest counts.
        names = sorted(self._added, key=len, reverse=True)
        self._cut = re.compile("|".join(map(re.escape, names))) if names else None
        self._shadows = _Shadows()
        self._known: dict[bytes, list[int]] = {}

    def __call__(self, text: str) -> list[int]:
        """Returns the ids of a text. Raises a UnicodeEncodeError if the text holds half of a surrogate
        pair."""
        found: list[int] = []
        at = 0
        for match in self._cut.finditer(text) if self._cut is not None else ():
            self._plain(text[at : match.start()], found)
            found.append(self._added[match.group()])
            at = match.end()
        self._plain(text[at:], found)
        return found

    def _plain(self, text: str, found: list[int]) -> None:
        shadow = text if text.isascii() else text.translate(self._shadows)
        for start, stop in _pieces(self._pattern, shadow):
            word = text[start:stop].encode()
            ids = self._known.get(word)
            if ids is None:
                ids = self._merged(word)
                if len(word) <= _LONG:
                    if len(self._known) >= _WORDS:
                        self._known.clear()
                    self._known[word] = ids
            found += ids

    def _merged(self, word: bytes) -> list[int]:
        """Returns the ids of one piece. A queue gives merges by rank and place; the symbols are a linked
        list."""
        if self._whole:
            whole = self._ids.get("".join(map(ALPHABET.__getitem__, word)))
            if whole is not None:
                return [whole]
        ids = [self._single[b] for b in word]
        count, merges = len(ids), self._merges
        after = list(range(1, count + 1))
        before = list(range(-1, count - 1))
        queue = [
            (*merge, i) for i in range(count - 1) if (merge := merges.get((ids[i], ids[i + 1]))) is not None
        ]
        heapq.heapify(queue)
        while queue:
            _, made, i = heapq.heappop(queue)
            j = after[i]
            # Skips a queued merge if one of its symbols has been merged with another since. The id -1 marks a
            # removed symbol.
            if ids[i] < 0 or j >= count or merges.get((ids[i], ids[j]), (0, -1))[1] != made:
                continue
            ids[i], ids[j] = made, -1
            after[i] = k = after[j]
            if k < count:
                before[k] = i
                if (merge := merges.get((made, ids[k]))) is not None:
                    heapq.heappush(queue, (*merge, i))
            if (h := before[i]) >= 0 and (merge := merges.get((ids[h], made))) is not None:
                heapq.heappush(queue, (*merge, h))
        return [i for i in ids if i >= 0]

    def __reduce__(self) -> tuple[Any, ...]:
        return ByteLevelEncoder, (self._record,)


def of_file(path: Path) -> ByteLevelEncoder:
    """Returns the encoder of a `tokenizer.json`. Raises a VocabularyError as `ByteLevelEncoder` does, or if
    the file does not exist."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise VocabularyError(f"cannot read {path}: {error.strerror or error}") from None
    try:
        return ByteLevelEncoder(parse_json(data))
    except VocabularyError as error:
        raise VocabularyError(f"{path}: {error}") from None


def _covered(name: str, value: Any, expected: Any) -> None:
    if value != expected:
        raise VocabularyError(
            f"{name} is {value!r}, not {expected!r}: encoding it needs the package tokenizers"
        )


def _split_pattern(record: Any) -> str:
    """Returns the pattern whose matches are the pieces. The text between two matches is a piece, too."""
    parts = record.get("pretokenizers") if record["type"] == "Sequence" else [record]
    *splits, last = parts
    _covered("pre_tokenizer", last["type"], "ByteLevel")
    _covered("pre_tokenizer.add_prefix_space", bool(last.get("add_prefix_space", True)), False)
    if last.get("use_regex", True):
        _covered("pre_tokenizer", [s["type"] for s in splits], [])
        return _GPT2
    _covered("pre_tokenizer", [s["type"] for s in splits], ["Split"])
    _covered("pre_tokenizer.behavior", splits[0]["behavior"], "Isolated")
    _covered("pre_tokenizer.invert", bool(splits[0].get("invert")), False)
    return str(splits[0]["pattern"]["Regex"])


def _translated(pattern: str) -> str:
    """Rewrites the pattern so that it matches shadows (see the top of the file) where the original matches
    texts. Raises a VocabularyError if the pattern distinguishes characters that have the same shadow."""
    made: list[str] = []
    in_class = False
    for match in re.finditer(r"\\[pP]\{(\^?\w+)\}|\\(.)|(\(\?[^:=!])|(.)", pattern, re.DOTALL):
        category, escape, flags, char = match.groups()
        if category is not None or (escape is not None and escape in "sS"):
            positive = match.group()[1] in "ps"
            body = _SPACE if category is None else _category(category)
            if in_class:
                _covered(f"pattern {match.group()} in a class", positive, True)
                made.append(body)
            else:
                made.append(f"[{'' if positive else '^'}{body}]")
            continue
        if flags or (escape is not None and escape.isalnum() and escape not in "rntvf"):
            raise VocabularyError(
                f"the pattern has {match.group()!r}: encoding it needs the package tokenizers"
            )
        if not match.group().isascii():
            raise VocabularyError("the pattern is not ASCII: encoding it needs the package tokenizers")
        if char == "[":
            _covered("pattern [ in a class", in_class, False)
            in_class = True
        elif char == "]":
            in_class = False
        made.append(match.group())
    return "".join(made)


def _category(name: str) -> str:
    """Returns the inside of a character class for a category such as Lu, or for all categories that begin
    with a letter such as L."""
    members = [i for i, category in enumerate(_CATEGORIES) if category.startswith(name)]
    if not members:
        raise VocabularyError(f"no category is called {name!r}: encoding it needs the package tokenizers")
    ascii_ = (chr(c) for c in range(128) if unicodedata.category(chr(c)).startswith(name))
    return re.escape("".join(ascii_)) + "".join(chr(_SHADOW + 2 * i + s) for i in members for s in (0, 1))


# The inside of a character class that holds all white space.
_SPACE = r"\t\n\v\f\r " + "".join(chr(_SHADOW + 2 * i + 1) for i in range(len(_CATEGORIES)))


def _pieces(pattern: re.Pattern[str], text: str) -> Iterator[tuple[int, int]]:
    at = 0
    for match in pattern.finditer(text):
        start, stop = match.span()
        if start > at:
            yield at, start
        if stop > start:
            yield start, stop
        at = stop
    if at < len(text):
        yield at, len(text)
