"""SentencePiece `.model` files, read from the protobuf wire format.

Enters: the bytes of the file. Leaves: `Parts`. Cost: about 2 us for each piece; a package is imported only
for the encoder, at its first text.

Of ModelProto three fields matter: the pieces (1), the trainer's ids and flags (2). A piece has a text
(1) and a type (3): normal, unknown, control, user-defined, unused, byte. "▁" is a space. Where the
model adds a space in front of every text, that space belongs to the first token of an encoded text;
`Vocabulary.encode` undoes it, since forced text continues what stands before it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from ..errors import VocabularyError
from .parts import Encode, PackageEncoder, Parts
from .pieces import BYTE_PIECES

_NORMAL, _USER, _BYTE = 1, 4, 6
NEVER = frozenset({2, 3, 5})  # unknown, control, unused
_EOS_FIELD, _EOS_DEFAULT = 42, 2
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5


class SentencePieceEncoder(PackageEncoder):
    """Encodes texts to canonical ids with a SentencePiece model."""

    package, of = "sentencepiece", "ids of a SentencePiece model"

    def opened(self, package: Any, data: bytes) -> Callable[[str], list[int]]:
        encode: Callable[[str], list[int]] = package.SentencePieceProcessor(model_proto=data).encode
        return encode


def read_model(data: bytes) -> Parts:
    """Returns every piece of a SentencePiece model."""
    pieces, eos = read_pieces(data)
    tokens: list[bytes] = []
    special: dict[str, int] = {}
    never: set[int] = set()
    for index, (text, kind) in enumerate(pieces):
        if kind in NEVER:
            special.setdefault(text, index)
            never.add(index)
            tokens.append(b"")
        elif kind == _BYTE:
            tokens.append(BYTE_PIECES.get(text, b""))
        else:
            tokens.append(text.replace("▁", " ").encode())
    ends = [eos] if 0 <= eos < len(tokens) else []
    return Parts(tokens, "SentencePiece", special, never, ends, _encoder(data))


def _encoder(data: bytes) -> Encode | None:
    from importlib.util import find_spec

    return None if find_spec("sentencepiece") is None else SentencePieceEncoder(data)


def read_pieces(data: bytes) -> tuple[list[tuple[str, int]], int]:
    """Returns the text and type of every piece, and the end-of-sequence id (-1: none)."""
    pieces: list[tuple[str, int]] = []
    eos = _EOS_DEFAULT
    try:
        for field, value in _fields(data):
            if field == 1 and isinstance(value, bytes):
                text, kind = "", _NORMAL
                for inner, part in _fields(value):
                    if inner == 1 and isinstance(part, bytes):
                        text = part.decode()
                    elif inner == 3 and isinstance(part, int):
                        kind = part
                pieces.append((text, kind))
            elif field == 2 and isinstance(value, bytes):
                for inner, part in _fields(value):
                    if inner == _EOS_FIELD and isinstance(part, int):
                        eos = part - (1 << 64) if part >> 63 else part
    except (IndexError, ValueError):
        raise VocabularyError("not a SentencePiece model: its protobuf is malformed") from None
    if not pieces or not any(kind in (_NORMAL, _USER, _BYTE) for _, kind in pieces):
        raise VocabularyError("not a SentencePiece model: it has no piece")
    return pieces, eos


def _fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Yields the number and the value of every field of one protobuf message; fixed-width values are
    bytes."""
    at, end = 0, len(data)
    while at < end:
        key, at = _varint(data, at)
        wire = key & 7
        if wire == _VARINT:
            value, at = _varint(data, at)
            yield key >> 3, value
            continue
        if wire == _BYTES:
            size, at = _varint(data, at)
        elif wire in (_FIXED32, _FIXED64):
            size = 4 if wire == _FIXED32 else 8
        else:
            raise ValueError("unknown wire type")
        if at + size > end:
            raise ValueError("cut off")
        yield key >> 3, data[at : at + size]
        at += size


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
        if shift > 63:
            raise ValueError("varint too long")
