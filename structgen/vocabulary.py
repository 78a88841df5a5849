"""A vocabulary: the bytes of every token id, the ids that end a sequence, the ids that are never text.

Enters: a list of byte strings, a live tokenizer, or a tokenizer file. Leaves: a `Vocabulary`, immutable
and shared by every grammar. Cost: 0.1 s for 131k tokens on top of loading the tokenizer, and the core's
own copy (a sort) the first time that a grammar is compiled.

The problem. A grammar is about bytes, a model about ids, and every family of tokenizers has its own form:
merges of bytes, pieces with a mark for a space, ranks in a file. A text has many tokenizations; a model
expects the one of its tokenizer.

The idea. Each reader in ``_tokenizers/`` gives the same `Parts`: the bytes of each id, names of special
tokens, end ids, and the tokenizer's own encoder. The text of an id is the text that the id adds *after other
text*. When a SentencePiece tokenizer decodes a whole text, it drops the space in front of the first token;
here the first token keeps the space.

    v = Vocabulary.from_bytes([b"a", b"ab", b"b", b"", b"<end>"], eos_token_ids=3, special_token_ids=[4])
    v.special_tokens       {"<end>": 4}; the token itself has the bytes b"" and never matches text
    v.encode("aab")        [0, 1]: the longest matches from the left, since there is no tokenizer
    v.decode([0, 1, 4])    b"aab"

`encode` calls the tokenizer if there is one. Some tokenizers put a space before a text. For them `_canonical`
encodes the text behind a sentinel and cuts the sentinel's ids off.

The core's copy, with its trie, is made at the first use. `save` writes the finished trie, and `load` maps
that file into memory, so that processes share its pages.

Invariants.
- `decode(encode(text)) == text` for every text, or `encode` raises a VocabularyError.
- Special and end tokens, and ids that the tokenizer leaves out, have the bytes b"".
- A loaded file is checked as a whole before anything of it is used.
- `tokens[i]` may be text that no mask allows (`never_allowed`); other tokens spell that text.
"""

from __future__ import annotations

import json
import os
import re
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

from . import _tokenizers
from ._checks import utf8
from ._extras import missing
from ._fork import renew_in_children
from ._tokenizers import ends
from ._tokenizers.hub import hub_options
from .errors import VocabularyError

if TYPE_CHECKING:
    from . import _core as core

# Sentinels: texts to put before a text. A tokenizer then adds its space to the sentinel and not to the text.
_SENTINELS = ("\n", ":", "a")


class _Texts(Sequence[bytes]):
    """The tokens of a loaded vocabulary. Each is read from the mapped file when it is asked for.

    `unread` has the tokens that are never allowed (`Vocabulary.never_allowed`). The core does not keep their
    bytes.
    """

    __slots__ = ("_core", "_unread")

    def __init__(self, made: core.Vocabulary, unread: dict[int, bytes]) -> None:
        self._core = made
        self._unread = unread

    def __len__(self) -> int:
        return len(self._core)

    @overload
    def __getitem__(self, index: int) -> bytes: ...
    @overload
    def __getitem__(self, index: slice) -> list[bytes]: ...
    def __getitem__(self, index: int | slice) -> bytes | list[bytes]:
        if isinstance(index, slice):
            return [self._text(i) for i in range(*index.indices(len(self)))]
        if not -len(self) <= index < len(self):
            raise IndexError(index)
        return self._text(index % len(self))

    def __iter__(self) -> Iterator[bytes]:
        return map(self._text, range(len(self)))

    def _text(self, token_id: int) -> bytes:
        return self._core.token(token_id) or self._unread.get(token_id, b"")


class Vocabulary:
    """Bytes by token id. Build one with `from_bytes`, `from_huggingface` or `from_file`, or `load` it.

    `eos_token_ids` and `special_token_ids` are sorted lists; `special_tokens` maps the names of special
    tokens to their ids (an end token that is special is in both). Special and end tokens, and ids that the
    tokenizer leaves out, have the bytes b"" and never match text. Two ids may have the same bytes, and
    bytes need not be whole UTF-8 characters.
    """

    __slots__ = (
        "__dict__",
        "__weakref__",
        "_core_object",
        "_encode",
        "_lock",
        "eos_token_ids",
        "kind",
        "special_token_ids",
        "special_tokens",
        "tokens",
        "vocab_size",
    )

    tokens: Sequence[bytes]
    vocab_size: int
    eos_token_ids: list[int]
    special_token_ids: list[int]
    special_tokens: dict[str, int]
    kind: str

    def __init__(self, parts: _tokenizers.Parts) -> None:
        """Takes over the parts of a tokenizer, and checks them."""
        tokens, size = parts.tokens, len(parts.tokens)
        if not any(tokens):
            raise VocabularyError("the vocabulary is empty: no id has text")
        if not parts.eos:
            raise VocabularyError(
                "no end-of-sequence token is known, so no text could end: pass eos_token_ids"
            )
        special = {*parts.special.values(), *parts.never}
        for what, ids in (("end-of-sequence", parts.eos), ("special", special)):
            for index in ids:
                if not 0 <= index < size:
                    raise VocabularyError(f"{what} id {index} is outside the vocabulary of {size} ids")
        for index in (*special, *parts.eos):
            tokens[index] = b""
        self.tokens = tokens
        self.vocab_size = size
        self.eos_token_ids = sorted(set(parts.eos))
        self.special_token_ids = sorted(special)
        self.special_tokens = dict(sorted(parts.special.items(), key=lambda item: item[1]))
        self.kind = parts.kind
        self._encode = parts.encode
        self._core_object: Any = None
        self._lock = threading.Lock()
        renew_in_children(self)

    @classmethod
    def from_bytes(
        cls,
        tokens: Iterable[bytes | None],
        eos_token_ids: int | Iterable[int],
        special_token_ids: Iterable[int] | Mapping[str, int] = (),
        *,
        encode: Callable[[str], list[int]] | None = None,
    ) -> Vocabulary:
        """Returns one byte string per id, in the order of ids.

        None or b"" stands for an id that is never text. The bytes of a special id become its name, unless
        `special_token_ids` maps names to ids. `encode` is the tokenizer's own encoder, for
        `Vocabulary.encode` and `Matcher.forced_tokens`. Without it, they take the longest match from the
        left.

        Raises:
            VocabularyError: no id has text, no id ends a text, or an id is out of range.
        """
        if isinstance(tokens, (bytes, str)):
            raise VocabularyError("tokens must be a list of bytes, not one string")
        texts: list[bytes] = []
        for index, token in enumerate(tokens):
            if token is not None and not isinstance(token, (bytes, bytearray, memoryview)):
                raise VocabularyError(f"token {index} must be bytes or None, not {type(token).__name__}")
            texts.append(bytes(token) if token else b"")
        eos = _ids("eos_token_ids", eos_token_ids)
        if isinstance(special_token_ids, Mapping):
            named = {str(name): int(i) for name, i in special_token_ids.items()}
            never = set(named.values())
        else:
            never = set(_ids("special_token_ids", special_token_ids))
            named = {
                texts[i].decode("utf-8", "replace"): i
                for i in sorted(never, reverse=True)
                if 0 <= i < len(texts) and texts[i]
            }
        return cls(_tokenizers.Parts(texts, "bytes", named, never, eos, encode))

    @classmethod
    def from_huggingface(
        cls,
        tokenizer: Any,
        vocab_size: int | None = None,
        eos_token_ids: int | Iterable[int] | None = None,
        *,
        model: Any = None,
    ) -> Vocabulary:
        """Returns a tokenizer of transformers (fast or slow), tokenizers, tiktoken or mistral-common.

        `vocab_size` is the width of the model's logits, if it differs from the tokenizer's. Ids beyond the
        tokenizer are never allowed, and tokens beyond the logits are left out. `model` (a model or its
        configuration) gives this width and the end ids. Without `eos_token_ids` the end ids come from the
        first of these: the model's generation configuration, the one beside the tokenizer's files, the
        tokenizer. A path or the name of a hub model is loaded first.
        """
        if isinstance(tokenizer, (str, os.PathLike)):
            tokenizer = _load(os.fspath(tokenizer))
        parts = _tokenizers.from_object(tokenizer)
        if model is not None:
            parts.eos = ends.of_model(model) or parts.eos
            if vocab_size is None:
                vocab_size = _logits_width(model)
        return cls(_fit(parts, vocab_size, eos_token_ids))

    @classmethod
    def from_file(
        cls,
        path: str | os.PathLike[str],
        *,
        vocab_size: int | None = None,
        eos_token_ids: int | Iterable[int] | None = None,
        special_tokens: Mapping[str, int] | None = None,
    ) -> Vocabulary:
        """Reads a `tokenizer.json`, SentencePiece `.model`, `.tiktoken` or `tekken.json`, or a folder with
        one.

        The content decides the format. End ids come from `eos_token_ids`, else from the configuration files
        beside the file, else from the file. A `.tiktoken` file names no special token: pass them in
        `special_tokens` (name to id), and pass the end ids, too.
        """
        parts = _tokenizers.read(Path(path))
        for name, index in (special_tokens or {}).items():
            if not 0 <= index < 1 << 24:
                raise VocabularyError(f"special id {index} of {name!r} is no token id")
            parts.tokens.extend([b""] * (index + 1 - len(parts.tokens)))
            parts.special[name] = index
        if eos_token_ids is None and not parts.eos:
            parts.eos = ends.by_name(parts)
        return cls(_fit(parts, vocab_size, eos_token_ids))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the vocabulary, its finished trie and its runs of characters to a file for `load`.

        The file appears whole or not at all. It fits this version of structgen and this kind of machine. It
        holds no encoder, and has about 18 MB for 131k tokens.

        Raises:
            VocabularyError: the file cannot be written.
        """
        unread = {str(i): self.tokens[i].hex() for i in self.never_allowed}
        meta = {"kind": self.kind, "special": self.special_tokens, "unread": unread}
        self._core.save(os.fspath(path), json.dumps(meta).encode())

    @classmethod
    def load(
        cls, path: str | os.PathLike[str], *, encode: Callable[[str], list[int]] | None = None
    ) -> Vocabulary:
        """Maps a vocabulary that `save` wrote into memory. It takes milliseconds; building one takes seconds.

        Processes that load one file share its pages. `encode` is the tokenizer's own encoder, for
        `Vocabulary.encode`. Without it, `Vocabulary.encode` takes the longest match from the left.

        Raises:
            VocabularyError: there is no such file, or it has another version, is cut off or is damaged (all
                of it is checked).
        """
        from . import _core

        made, meta = _core.Vocabulary.load(os.fspath(path))
        found = cls.__new__(cls)
        try:
            about = json.loads(meta)
            unread = {int(i): bytes.fromhex(text) for i, text in about["unread"].items()}
            found.special_tokens = {str(name): int(i) for name, i in about["special"].items()}
            found.kind = str(about["kind"])
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            raise VocabularyError(f"{os.fspath(path)}: is damaged; save it again") from None
        found.tokens = _Texts(made, unread)
        found.vocab_size = len(made)
        found.eos_token_ids = list(made.eos)
        found.special_token_ids = list(made.special)
        found._encode = encode
        found._core_object = made
        found._lock = threading.Lock()
        renew_in_children(found)
        return found

    def token_bytes(self, token_id: int) -> bytes:
        """Returns the bytes of an id; b"" if the id is never text. VocabularyError: there is no such id."""
        if not 0 <= token_id < self.vocab_size:
            raise VocabularyError(f"token id {token_id} is outside the vocabulary of {self.vocab_size} ids")
        return self.tokens[token_id]

    def _named(self, text: bytes) -> bytes:
        """Returns a text of the core in which names replace special tokens. The core writes a special token
        as 0xFF and its id."""
        names = {i: name for name, i in self.special_tokens.items()}

        def name(match: re.Match[bytes]) -> bytes:
            index = int.from_bytes(match[0][1:], "big")
            return names.get(index, f"<[{index}]>").encode()

        return re.sub(rb"\xff.{4}", name, text, flags=re.DOTALL)

    def decode(self, token_ids: Iterable[int]) -> bytes:
        """Returns the text of a sequence of ids; special and end tokens add nothing."""
        return b"".join(map(self.token_bytes, token_ids))

    def encode(self, text: str | bytes) -> list[int]:
        """Returns ids whose bytes, joined, are exactly this text: `decode(encode(text)) == text`.

        They are the tokenizer's own ids, if there is a tokenizer and it does not change the text; otherwise
        those of the longest match from the left.

        Raises:
            VocabularyError: a byte of the text is in no token.
        """
        data = utf8(text, "decode")
        if not data:
            return []
        if self._encode is not None and (found := self._canonical(data)) is not None:
            return found
        return self._longest_match(data)

    def canonical(self, text: bytes) -> list[int] | None:
        """Returns the tokenizer's own ids of a text; None if it changes the text or a byte is in no token.

        Without a tokenizer they are those of the longest matches from the left.
        """
        if not text:
            return []
        if self._encode is not None:
            return self._canonical(text)
        try:
            return self._longest_match(text)
        except VocabularyError:
            return None

    def _canonical(self, data: bytes) -> list[int] | None:
        """Returns the tokenizer's ids of a text; None if they spell another text. See `_SENTINELS`."""
        assert self._encode is not None
        try:
            text = data.decode("utf-8")
        except UnicodeDecodeError:
            return None
        ids = list(self._encode(text))
        if self._spell(ids) == data:
            return ids
        for sentinel in _SENTINELS:
            ids = list(self._encode(sentinel + text))
            for cut in range(1, min(3, len(ids)) + 1):
                if self._spell(ids[:cut]).strip(b" ") == sentinel.encode():
                    if self._spell(ids[cut:]) == data:
                        return ids[cut:]
                    break
        return None

    def _spell(self, ids: Sequence[int]) -> bytes:
        """As `decode`, but an id that is unknown or has no text becomes a byte sequence that occurs in no
        text."""
        size, tokens = self.vocab_size, self.tokens
        return b"".join(tokens[i] or b"\xff\xff" if 0 <= i < size else b"\xff\xff" for i in ids)

    def _longest_match(self, data: bytes) -> list[int]:
        ids_of, lengths = self._index
        found, at, end = [], 0, len(data)
        while at < end:
            for length in lengths:
                if at + length <= end:
                    index = ids_of.get(data[at : at + length])
                    if index is not None:
                        found.append(index)
                        at += length
                        break
            else:
                raise VocabularyError(f"no token begins with the byte 0x{data[at]:02X}")
        return found

    @cached_property
    def _index(self) -> tuple[dict[bytes, int], list[int]]:
        """The lowest id of each token's text, and the lengths of such texts, longest first."""
        ids_of = {
            text: i for i, text in zip(range(self.vocab_size - 1, -1, -1), reversed(self.tokens), strict=True)
        }
        ids_of.pop(b"", None)
        return ids_of, sorted({len(text) for text in ids_of}, reverse=True)

    @property
    def _core(self) -> core.Vocabulary:
        """The C++ vocabulary, made at first use."""
        if self._core_object is None:
            from . import _core

            with self._lock:
                if self._core_object is None:
                    self._core_object = _core.Vocabulary(
                        list(self.tokens), self.eos_token_ids, self.special_token_ids
                    )
        made: core.Vocabulary = self._core_object
        return made

    @cached_property
    def never_allowed(self) -> dict[int, str]:
        """Tokens with text that no mask allows, each with the reason. Other tokens spell the same text.

        They contain a byte that no UTF-8 has, or they are too long: a mask may read every byte of every
        token. A token may have 1,024 bytes. All tokens of more than 256 bytes together may have 65,536 bytes;
        the tokens with the lowest ids are kept.
        """
        read = self._core.token
        return {i: _why_unread(text) for i, text in enumerate(self.tokens) if text and not read(i)}

    def __len__(self) -> int:
        return self.vocab_size

    def __repr__(self) -> str:
        return (
            f"<structgen.Vocabulary of {self.vocab_size} ids ({self.kind}), "
            f"eos {self.eos_token_ids}, {len(self.special_token_ids)} special>"
        )

    def __reduce__(self) -> tuple[Any, ...]:
        parts = _tokenizers.Parts(
            list(self.tokens),
            self.kind,
            self.special_tokens,
            set(self.special_token_ids),
            self.eos_token_ids,
            self._encode,
        )
        return Vocabulary, (parts,)


# The limits of csrc/mask/vocabulary.h.
_LONGEST, _LONG, _LONG_TOGETHER = 1024, 256, 65_536


def _why_unread(text: bytes) -> str:
    if len(text) > _LONGEST:
        return f"longer than {_LONGEST:,} bytes"
    if b"\xff" in text or b"\xfe" in text:
        return "holds the byte 0xFE or 0xFF"
    return f"tokens of more than {_LONG} bytes have more than {_LONG_TOGETHER:,} together"


def _ids(name: str, value: int | Iterable[int]) -> list[int]:
    """Returns a list of ids from one id or several; VocabularyError for anything else."""
    try:
        listed = [value] if hasattr(value, "__index__") else list(value)
        return [int(i.__index__()) for i in listed]
    except (TypeError, AttributeError):
        raise VocabularyError(f"{name} must be token ids, not {value!r}") from None


def _fit(
    parts: _tokenizers.Parts, vocab_size: int | None, eos_token_ids: int | Iterable[int] | None
) -> _tokenizers.Parts:
    """Pads or cuts the tokens to the width of the logits, and sets the end ids that the caller gave."""
    if eos_token_ids is not None:
        parts.eos = _ids("eos_token_ids", eos_token_ids)
        if max(parts.eos, default=-1) < 1 << 24:  # an end id may lie beyond a file's own tokens
            room = max(parts.eos, default=-1) + 1 if vocab_size is None else 0
            parts.tokens.extend([b""] * (room - len(parts.tokens)))
    if vocab_size is None:
        return parts
    if vocab_size <= 0:
        raise VocabularyError(f"vocab_size must be positive, not {vocab_size}")
    parts.tokens.extend([b""] * (vocab_size - len(parts.tokens)))
    del parts.tokens[vocab_size:]
    parts.special = {name: i for name, i in parts.special.items() if i < vocab_size}
    parts.never = {i for i in parts.never if i < vocab_size}
    if eos_token_ids is None:  # ids that the model cannot produce end nothing
        parts.eos = [i for i in parts.eos if i < vocab_size] or parts.eos
    return parts


def _logits_width(model: Any) -> int | None:
    config = getattr(model, "config", model)
    for holder in (config, getattr(config, "text_config", None)):
        size = getattr(holder, "vocab_size", None)
        if isinstance(size, int) and size > 0:
            return size
    return None


def _load(name: str) -> Any:
    try:
        from transformers import AutoTokenizer
    except ImportError as error:
        raise missing(error, f"tokenizers by name ({name!r}), unlike Vocabulary.from_file,") from None
    try:
        return AutoTokenizer.from_pretrained(name, **hub_options(name))
    except (OSError, ValueError) as error:
        raise VocabularyError(f"cannot load the tokenizer {name!r}: {error}") from None
