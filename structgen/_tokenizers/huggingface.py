"""Hugging Face tokenizers: `tokenizer.json`, and live tokenizer objects, fast and slow.

Enters: the parsed file, or an object of `tokenizers` or `transformers`. Leaves: `Parts`. Cost: 100 ms for
131k tokens, most of it for the copy of the vocabulary. The packages are not imported: the methods of an
object tell its kind.

Added tokens that are marked special are never text. Other added tokens are text, exactly as written. The
unknown token of a vocabulary is never text either.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from ..errors import VocabularyError
from . import byte_level, sentencepiece_model
from .parts import PackageEncoder, Parts, by_id
from .pieces import Hints, spelling, to_bytes

Added = tuple[int, str, bool]  # id, text, special


class FileEncoder(PackageEncoder):
    """Encodes texts to canonical ids with a `tokenizer.json`."""

    package, of = "tokenizers", "ids of a tokenizer.json"

    def opened(self, package: Any, data: bytes) -> Callable[[str], list[int]]:
        made = package.Tokenizer.from_buffer(data)
        return lambda text: list(made.encode(text, add_special_tokens=False).ids)


@dataclass(slots=True)
class LiveEncoder:
    """Encodes to canonical ids with a live tokenizer."""

    tokenizer: Any

    def __call__(self, text: str) -> list[int]:
        found = self.tokenizer.encode(text, add_special_tokens=False)
        ids: list[int] = list(getattr(found, "ids", found))
        return ids


def looks_like_tokenizer(record: Mapping[str, Any]) -> bool:
    model = record.get("model")
    return isinstance(model, Mapping) and "vocab" in model


def read_json(record: Mapping[str, Any], data: bytes) -> Parts:
    """Reads a parsed `tokenizer.json`; `data` is the file's content, which the encoder keeps."""
    from importlib.util import find_spec

    model: Mapping[str, Any] = record["model"]
    vocab = model["vocab"]
    try:
        if isinstance(vocab, Mapping):
            pieces: dict[str, int] = dict(vocab)
        else:  # unigram: [piece, score] in the order of ids
            pieces = {entry[0]: i for i, entry in enumerate(vocab)}
        added: list[Added] = [
            (int(t["id"]), str(t["content"]), bool(t.get("special")))
            for t in record.get("added_tokens") or ()
        ]
        unknown = model.get("unk_token")
        if unknown is None and isinstance(model.get("unk_id"), int):
            unknown = vocab[model["unk_id"]][0]
        hints = _hints(
            [record.get("decoder"), record.get("pre_tokenizer")],
            model.get("continuing_subword_prefix"),
            model.get("end_of_word_suffix"),
        )
    except (KeyError, TypeError, ValueError, IndexError) as error:
        raise VocabularyError(f"the tokenizer.json is malformed: {error!r}") from None
    parts = assemble(pieces, added, hints, [unknown])
    if find_spec("tokenizers") is not None:
        parts.encode = FileEncoder(data)
    else:
        # Our own encoder merges the byte pairs of byte-level models. Other kinds get no encoder, and a
        # `Vocabulary` then encodes by longest match.
        with suppress(VocabularyError):
            parts.encode = byte_level.ByteLevelEncoder(record)
    return parts


def assemble(
    pieces: dict[str, int], added: Iterable[Added], hints: Hints, never: Iterable[str | None]
) -> Parts:
    """Builds bytes by id from the pieces of the model, its added tokens, and names that are never text."""
    texts = dict(pieces)
    special: dict[str, int] = {}
    extra: dict[int, str] = {}
    for index, text, is_special in added:
        if is_special:
            special[text] = index
        else:
            extra[index] = text
        if texts.get(text) == index:
            del texts[text]
    for name in never:
        if name is not None and (found := texts.pop(name, None)) is not None:
            special.setdefault(name, found)
    ids = [*texts.values(), *extra, *special.values()]
    if min(ids, default=0) < 0:
        raise VocabularyError(f"the tokenizer has a negative id, {min(ids)}")
    tokens = [b""] * (max(ids, default=-1) + 1)
    how = spelling(texts, hints)
    for index, piece in zip(texts.values(), to_bytes(list(texts), how, hints), strict=True):
        tokens[index] = piece
    for index, text in extra.items():
        tokens[index] = text.encode("utf-8", "surrogatepass")
    for index in special.values():
        tokens[index] = b""
    return Parts(tokens, how, special)


def _hints(parts: Iterable[Any], prefix: Any, suffix: Any) -> Hints:
    """Collects hints from the JSON of a decoder and of a pre-tokenizer. Nested sequences are flattened."""
    todo = [part for part in parts if isinstance(part, Mapping)]
    kinds: set[str] = set()
    space = "▁"
    for part in todo:  # the loop appends to this list
        kinds.add(str(part.get("type")))
        if part.get("type") == "Metaspace":
            space = str(part.get("replacement") or space)
        if part.get("type") == "BPEDecoder":
            suffix = suffix or part.get("suffix")
        if part.get("type") == "WordPiece":
            prefix = prefix or part.get("prefix")
        for name in ("decoders", "pretokenizers"):
            todo.extend(p for p in part.get(name) or () if isinstance(p, Mapping))
    return Hints(frozenset(kinds), space, str(prefix or ""), str(suffix or ""))


def from_transformers(tokenizer: Any) -> Parts:
    """Reads a live tokenizer of `tokenizers` or `transformers`. Raises a VocabularyError if the object is not
    a tokenizer."""
    fast = _backend(tokenizer)
    if fast is not None:
        parts = _from_fast(fast, tokenizer)
    elif callable(getattr(tokenizer, "get_vocab", None)):
        parts = _from_slow(tokenizer)
    else:
        raise VocabularyError(
            f"{type(tokenizer).__name__} is not a tokenizer: it has neither a backend_tokenizer "
            "nor get_vocab()"
        )
    if callable(getattr(tokenizer, "encode", None)):
        parts.encode = LiveEncoder(tokenizer)
    return parts


def _backend(tokenizer: Any) -> Any:
    """Returns the `tokenizers.Tokenizer` inside a fast tokenizer, or the object itself if it is a
    `tokenizers.Tokenizer`."""
    for candidate in (tokenizer, getattr(tokenizer, "backend_tokenizer", None)):
        if hasattr(candidate, "get_added_tokens_decoder") and hasattr(candidate, "id_to_token"):
            return candidate
    return None


def _state(part: Any) -> Any:
    """Returns the JSON of a decoder or pre-tokenizer, or None if it is written in Python."""
    try:
        return json.loads(part.__getstate__())
    except Exception:  # A custom part cannot be serialised and raises a bare Exception.
        return None


def _from_fast(backend: Any, owner: Any) -> Parts:
    model = backend.model
    hints = _hints(
        [_state(backend.decoder), _state(backend.pre_tokenizer)],
        getattr(model, "continuing_subword_prefix", None),
        getattr(model, "end_of_word_suffix", None),
    )
    added = _added(backend.get_added_tokens_decoder(), owner)
    pieces = backend.get_vocab(with_added_tokens=False)
    never = [getattr(model, "unk_token", None), getattr(owner, "unk_token", None)]
    if type(model).__name__ == "Unigram":
        never.append("<unk>")
    return assemble(pieces, added, hints, never)


def _added(table: Mapping[int, Any], owner: Any) -> list[Added]:
    """Returns the added tokens. A token that the owner calls special counts as special, whatever its own flag
    says."""
    named = frozenset(getattr(owner, "all_special_ids", None) or ())
    return [
        (int(i), str(getattr(t, "content", t)), bool(getattr(t, "special", False)) or i in named)
        for i, t in table.items()
    ]


def _from_slow(tokenizer: Any) -> Parts:
    """Reads a tokenizer written in Python: its vocabulary, its added tokens, its SentencePiece types."""
    vocab = dict(tokenizer.get_vocab())
    added = _added(getattr(tokenizer, "added_tokens_decoder", None) or {}, tokenizer)
    if vocab and all(isinstance(piece, bytes) for piece in vocab):
        special = {text: i for i, text, is_special in added if is_special}
        entries = {int(i): bytes(piece) for piece, i in vocab.items()}
        entries |= {i: text.encode() for i, text, is_special in added if not is_special}
        return Parts(by_id(entries | dict.fromkeys(special.values(), b"")), "bytes", special)
    pieces = {str(piece): int(i) for piece, i in vocab.items()}
    listed = {index for index, _, _ in added}
    names = {i: piece for piece, i in pieces.items()}
    for index in getattr(tokenizer, "all_special_ids", None) or ():
        if index not in listed and index in names:
            added.append((index, names[index], True))
    return assemble(pieces, added, Hints(), _never_text(tokenizer))


def _never_text(tokenizer: Any) -> list[str | None]:
    """Returns the names that a slow tokenizer's own model calls unknown, control or unused."""
    never: list[str | None] = [getattr(tokenizer, "unk_token", None)]
    processor: Any = getattr(tokenizer, "sp_model", None)
    if hasattr(processor, "serialized_model_proto"):
        pieces, _ = sentencepiece_model.read_pieces(processor.serialized_model_proto())
        never += [text for text, kind in pieces if kind in sentencepiece_model.NEVER]
    return never
