"""The tokens of the forced text: the tokenizer's own tokens of the text that must come next.

In: a matcher, a vocabulary with its tokenizer's encoder. Out: token ids. Cost: the tokenizer's encoding of
the last tokens and the forced text, once for each place where a token could begin that goes beyond the end
(a handful), and once for each kind of character that may follow.

The text behind the forced text is unknown, so a token counts only if no continuation can change the token. In
a tokenization t1 ... tn of any text, t1 ... tk is the tokenization of its own text. This holds for byte pair
encoding (Berglund & van der Merwe, "Formalizing BPE Tokenization", 2023), for the best path of a unigram
model, and for the longest match. One token of the whole text covers the end of the forced text or ends
there. That token begins at one of the places that `open_places` finds in the vocabulary and the grammar.
The tokens before such a place are the tokenization of the text before it. So the tokens that the
tokenizations for all places share are certain. A tokenizer may cut a text by a pattern before it merges
byte pairs, and the pattern can look one character ahead (`\\s+(?!\\S)`). So each kind of character that may
follow is tried.

Only the last few tokens of a text are encoded again. A sequence of byte pair tokens is a tokenization if
every two neighbours are one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from . import _core
    from .vocabulary import Vocabulary

_BACK = 12  # the number of a text's last tokens that are encoded again
_KINDS = (  # the kinds of characters that may follow
    (b"aeinrst", b"AEINST", b"0123456789", b" ", b"\n", b"\t")
    + (b"\"'", b".,:;-_/", b"()[]{}<>", b"=+*#$%&@!?")
)


def forced_tokens(matcher: _core.Matcher, vocabulary: Vocabulary) -> list[int]:
    forced = matcher.forced_bytes()
    if not forced:
        return []
    taken = matcher.tail(_BACK)
    before = vocabulary.decode(taken)
    while taken and _inside(before):  # The text begins inside a character: drop bytes up to its end.
        taken = taken[1:]
        before = vocabulary.decode(taken)
    text = before + forced
    end = len(text)
    while _cut(text, end):
        end -= 1
    if end < len(text):  # The text is cut to whole characters.
        forced, text = forced[: max(0, end - len(before))], text[:end]
    common = vocabulary.canonical(text)
    if common is None:
        return []
    todo, seen = list(matcher.open_places(text, forced)), set()
    while todo and len(common) > len(taken):
        at = todo.pop()
        if at in seen:
            continue
        seen.add(at)
        if _cut(text, at):
            todo.append(at - 1)
            continue
        common = _shared(common, vocabulary.canonical(text[:at]))
    if len(common) > len(taken):
        common = _as_followed(matcher, vocabulary, text, forced, common)
    if common[: len(taken)] != taken:
        return []
    found = common[len(taken) :]
    return found[: matcher.validate_tokens(found)]  # The grammar may limit the number of tokens.


def _as_followed(
    matcher: _core.Matcher, vocabulary: Vocabulary, text: bytes, forced: bytes, common: list[int]
) -> list[int]:
    probe = matcher.fork()
    if not probe.accept_bytes(forced):
        return []
    live = probe.live_bytes(True)
    for kind in _KINDS:
        byte = next((bytes([b]) for b in kind if b in live), None)
        if byte is not None:
            common = _shared(common, vocabulary.canonical(text + byte))
    return common


def _shared(one: list[int], two: list[int] | None) -> list[int]:
    if two is None:
        return []
    for i, (a, b) in enumerate(zip(one, two, strict=False)):
        if a != b:
            return one[:i]
    return one[: len(two)]


def _inside(text: bytes) -> bool:
    """Returns whether a text begins inside a UTF-8 character."""
    return bool(text) and text[0] & 0xC0 == 0x80


def _cut(text: bytes, at: int) -> bool:
    """Returns whether a text, cut here, ends inside a UTF-8 character."""
    for back in range(1, min(4, at) + 1):
        lead = text[at - back]
        if lead & 0xC0 != 0x80:
            return back < (1 if lead < 0x80 else 2 if lead < 0xE0 else 3 if lead < 0xF0 else 4)
    return False
