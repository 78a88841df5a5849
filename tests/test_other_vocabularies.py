"""Draft models with another vocabulary: the law of their drafts, compared with all texts that they can write.

The oracle draws draft tokens one by one and reads them by longest match, without ranges or trees. Then it
sums the law that a rule makes of the drafts over all outcomes, at every place of a small language.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import structgen as sg
from oracles.enumerate import law
from oracles.harness import cases
from oracles.speculation_laws import drawn_by_the_law
from oracles.speculative import OTHER, SCHEMAS, VOCABULARY, RandomModel
from structgen.speculation import DraftModel, Speculation, Start, StringDraft, TokenIntersection
from structgen.speculation.base import Here
from structgen.speculation.drafters.string_draft import StringLaw
from structgen.speculation.drafters.token_intersection import shared_tokens
from structgen.speculation.rules import k_seq, recursive

PIECES = [bytes(w) for n in (1, 2, 3) for w in np.ndindex(*[2] * n)]


def vocabulary(texts: Sequence[bytes]) -> sg.Vocabulary:
    """Returns a vocabulary of the letters a and b; the end token is last."""
    letters = [bytes(97 + b for b in text) for text in texts]
    return sg.Vocabulary.from_bytes([*letters, b""], eos_token_ids=[len(letters)])


def longest_match(text: bytes, known: set[bytes], limit: int) -> bytes:
    return max((t for t in known if len(t) <= limit and text.startswith(t)), key=len, default=b"")


def written(
    lm: Any, place: Any, known: set[bytes], limit: int, opened: set[tuple[int, ...]], rest: bytes = b""
) -> Counter:
    """Returns the law of the target's first token, by summing over all texts of the draft model that begin
    with `rest`.

    opened: contexts behind which the model writes on, if a token of the target might still become longer.
    """
    found: Counter = Counter()
    ends = set(lm.eos_token_ids)

    def write(context: Any, text: bytes, chance: float) -> None:
        for token, p in enumerate(np.exp(lm.logprobs([context])[0].astype(np.float64))):
            if token in ends:
                if len(text) >= len(rest):
                    behind = text[len(rest) :]
                    found[longest_match(behind, known, limit) if behind else b"end"] += chance * p
                continue
            string, after = text + lm.vocabulary.tokens[token], context.extend(token)
            if not string.startswith(rest) and not rest.startswith(string):
                continue
            behind = string[len(rest) :]
            undecided = len(string) < len(rest) or any(
                len(t) <= limit and t.startswith(behind) and t != behind for t in known
            )
            if undecided and tuple(after.tokens) in opened:
                write(after, string, chance * p)
            elif len(string) >= len(rest):
                found[longest_match(behind, known, limit)] += chance * p
            else:
                found[b""] += chance * p

    write(place, b"", 1.0)
    return found


class Watched(RandomModel):
    """A model that remembers the contexts of its calls."""

    def __init__(self, *arguments: Any, **keywords: Any) -> None:
        super().__init__(*arguments, **keywords)
        self.asked: set[tuple[int, ...]] = set()

    def logprobs(self, contexts: Any) -> Any:
        self.asked |= {tuple(c.tokens) for c in contexts}
        return super().logprobs(contexts)


@given(
    own=st.sets(st.sampled_from(PIECES), min_size=1, max_size=6),
    theirs=st.sets(st.sampled_from(PIECES), min_size=1, max_size=6),
    forwards=st.sampled_from([1, 2, 3, 100]),
    longest=st.integers(1, 3),
    seed=st.integers(0, 99),
    rest=st.sampled_from(["", "", "a", "b", "ab", "bab"]),
)
@settings(max_examples=cases(300), deadline=None)
def test_the_law_of_strings_is_that_of_all_that_could_be_written(
    own: set[bytes], theirs: set[bytes], forwards: int, longest: int, seed: int, rest: str
) -> None:
    lm, target = Watched(seed, vocabulary(sorted(own)), sharp=1.0), vocabulary(sorted(theirs))
    strings = StringLaw(lm, target, forwards, longest)
    place = lm.start([0])
    known, begun = {t for t in target.tokens if t}, rest.encode()
    psi, end = strings.psi((place, begun))
    opened = set(lm.asked)
    assert len(opened) <= forwards + bool(rest)
    want = written(lm, place, known, longest, opened, begun)
    assert end == pytest.approx(want.pop(b"end", 0.0), abs=1e-9)
    lost = want.pop(b"", 0.0)
    assert {t: p for t, p in zip(strings.texts, psi, strict=True) if p > 1e-9} == pytest.approx(
        {t: p for t, p in want.items() if p > 1e-9}, abs=1e-6
    )
    assert rest or psi.sum() + end + lost == pytest.approx(1.0, abs=1e-6)
    # after so many forward passes, every text either is decided or is too improbable to follow
    if forwards == 100:
        whole = written(lm, place, known, longest, Everything(), begun)
        assert whole.pop(b"end", 0.0) == pytest.approx(end, abs=1e-6)
        for text in known:
            # strings with a probability below 1e-4 are not opened
            assert whole[text] == pytest.approx(want[text], abs=2e-3)
    row = strings.row((place, begun))
    assert row is not None and (end < 1e-9 or row[-1] == pytest.approx(np.log(end), abs=1e-5))


class Everything(set[tuple[int, ...]]):
    def __contains__(self, item: object) -> bool:
        return True


def test_ways_to_write_a_token_are_added_up() -> None:
    """Several sequences of draft tokens write one target token, and their probabilities are added. Every
    string of two letters is a token, so `ab` is written as the token `ab`, or as `a` and then `b`."""
    lm = RandomModel(3, vocabulary([(0,), (1,), (0, 1)]), sharp=1.0)
    target = vocabulary([(0, 1), (0,), (1,)])
    place = lm.start([1])
    psi, _ = StringLaw(lm, target, 4, 8).psi((place, b""))
    first, second = (np.exp(lm.logprobs([c])[0]) for c in (place, place.extend(0)))
    # No longer token begins with `ab`. Behind `a` the text `ab` gives the token `a`, and so does all but `b`.
    assert psi[1] == pytest.approx(first[2] + first[0] * second[1], abs=1e-6)
    assert psi[0] == pytest.approx(first[0] * (1 - second[1]), abs=1e-6)
    assert psi[2] == pytest.approx(first[1], abs=1e-6)


def test_a_place_inside_a_token_of_the_draft_goes_on_with_the_token() -> None:
    """Behind the text `a`, the draft model may write `b` in two ways: its token `ab` spans the place, and its
    token `b` begins there. Both probabilities are added."""
    lm = RandomModel(3, vocabulary([(0,), (1,), (0, 1)]), sharp=1.0)
    strings = StringLaw(lm, vocabulary([(0,), (1,)]), 4, 8)
    place = strings.after((lm.start([1]), b""), 0)
    assert place is not None and place[0].tokens == [1] and place[1] == b"a"
    psi, end = strings.psi(place)
    first, second = (np.exp(lm.logprobs([c])[0]) for c in (place[0], place[0].extend(0)))
    assert psi[1] == pytest.approx(first[2] + first[0] * second[1], abs=1e-6)
    assert psi[0] == pytest.approx(first[0] * (second[0] + second[2]), abs=1e-6)
    assert end == pytest.approx(first[0] * second[3], abs=1e-6)
    # The rest of the text is encoded again when the text grows.
    further = strings.after(place, 1)
    assert further is not None and further[0].tokens == [1] and further[1] == b"ab"


def test_shared_tokens_have_the_same_bytes() -> None:
    own = sg.Vocabulary.from_bytes([b"a", b"end", b"b", b"a", b"", b"z"], eos_token_ids=[1, 4])
    target = sg.Vocabulary.from_bytes([b"b", b"", b"a", b"b", b"c"], eos_token_ids=[1])
    lm = RandomModel(0, own)
    ids = shared_tokens(lm, target)
    assert list(zip(*(i.tolist() for i in ids), strict=True)) == [(0, 2), (1, 1), (2, 0), (3, 2), (4, 1)]
    session = TokenIntersection(lm).open(Start([2], target, None, 1.0, None))
    cursor = session.cursor()
    assert cursor is not None
    found = cursor.distribution(Here(None, 0))
    p = np.exp(lm.logprobs([lm.start([0])])[0])
    want = np.array([p[2], p[1] + p[4], p[0] + p[3]]) / p[:5].sum()
    assert found is not None and found[0].tolist() == [0, 1, 2] and found[1] == pytest.approx(want, abs=1e-5)


def drafters(lm: RandomModel) -> list[Any]:
    return [TokenIntersection(lm), StringDraft(lm, forwards=1), StringDraft(lm, forwards=5)]


RULES = {
    "single": (lambda p, q, xs, chance: recursive(p, q, xs, chance)[0], 1, True),
    "recursive": (lambda p, q, xs, chance: recursive(p, q, xs, chance)[0], 2, False),
    "k-seq": (lambda p, q, xs, chance: k_seq(p, q, xs, chance)[0], 2, True),
}


@pytest.mark.parametrize("name", RULES)
@pytest.mark.parametrize("which", range(3))
@pytest.mark.parametrize("temperature", [1.0, 0.4])
def test_every_place_has_the_target_law(name: str, which: int, temperature: float) -> None:
    """At every place of a small language, the tokens that a step emits have the target's law. The test
    enumerates the draws by the law that the drafter states."""
    rule, count, replace = RULES[name]
    texts = [(0,), (1,), (0, 1), (1, 0, 0)]
    target = RandomModel(1, vocabulary(texts), sharp=1.0)
    draft = RandomModel(2, vocabulary([(1,), (0,), (0, 0), (1, 0), (0, 1, 1)]), sharp=1.0)
    drafter = drafters(draft)[which]
    grammar = sg.Compiler(target.vocabulary).regex("(ab|ba|aa)a?b*")
    session = drafter.open(Start([0], target.vocabulary, grammar, temperature, None))
    waiting = [(target.start([0]), grammar.matcher(), session.cursor(), 0)]
    places = 0
    while waiting:
        context, matcher, cursor, depth = waiting.pop()
        allowed = [t for t in range(target.vocabulary.vocab_size) if matcher.validate_tokens([t]) == 1]
        p = np.zeros(target.vocabulary.vocab_size)
        p[allowed] = np.exp(target.logprobs([context])[0, allowed].astype(np.float64) / temperature)
        p /= p.sum()
        found = cursor.distribution(Here(matcher, depth))
        if found is not None:
            q = np.zeros(len(p))
            q[found[0]] = found[1]
            assert q.sum() == pytest.approx(1.0, abs=1e-12) and not q[p == 0].any()
            assert np.abs(law(rule, p, q, count, replace) - p).max() < 1e-12
            places += 1
        for token in allowed:
            after = matcher.fork()
            after.accept_token(token)
            further = None if token in target.eos_token_ids else cursor.step(token)
            if further is not None and depth < 3:
                waiting.append((context.extend(token), after, further, depth + 1))
    assert places > 15


@pytest.mark.parametrize(("rule", "which"), [("single", 0), ("recursive", 1), ("single", 2), ("k-seq", 2)])
def test_whole_texts_follow_the_law_of_plain_decoding(rule: str, which: int) -> None:
    lm = RandomModel(4, sharp=1.0)
    grammar = sg.Compiler(lm.vocabulary).regex("(a|ab|bc|c){2,3}")
    drafter = drafters(RandomModel(5, OTHER, sharp=1.0))[which]
    options = Speculation([drafter], rule=rule, depth=3)  # type: ignore[arg-type]
    drawn_by_the_law(lm, grammar, options, 400)


def test_a_prompt_or_text_that_the_draft_cannot_read_gets_no_drafts() -> None:
    few = sg.Vocabulary.from_bytes([b"a", b"b", b'{"', b""], eos_token_ids=[3])
    for prompt in ("abc12", "ab", ""):
        for drafter in drafters(RandomModel(1, few)):
            found = sg.generate(RandomModel(), prompt or "x", SCHEMAS[0], max_tokens=30, speculate=[drafter])
            plain = sg.generate(RandomModel(), prompt or "x", SCHEMAS[0], max_tokens=30)
            assert found.tokens == plain.tokens
    short = RandomModel(1)
    short.max_context = 1  # type: ignore[assignment]
    found = sg.generate(RandomModel(), "abc12", SCHEMAS[1], max_tokens=30, speculate=[DraftModel(short)])
    assert found.speculation.drafted == 0
    narrow = RandomModel(1, OTHER)
    narrow.max_context = 6  # type: ignore[assignment]
    for drafter in drafters(narrow):
        assert sg.generate(RandomModel(), "abc", SCHEMAS[1], max_tokens=30, speculate=[drafter]).tokens
    for bad in ({"width": 0}, {"forwards": 0}, {"longest": 0}):
        with pytest.raises(ValueError):
            StringDraft(narrow, **bad)
    with pytest.raises(ValueError):
        TokenIntersection(narrow, width=0)


def test_strings_put_together_what_the_intersection_lacks() -> None:
    """The draft model has only single bytes as tokens, and knows the text. The intersection of the two
    vocabularies therefore lacks the target's longer tokens; only joined strings reach them."""
    single = sg.Vocabulary.from_bytes([*(bytes([c]) for c in range(32, 127)), b""], eos_token_ids=[95])

    class Knows(RandomModel):
        """A model that writes one given text, byte by byte."""

        def logprobs(self, contexts: Any) -> Any:
            rows = np.full((len(contexts), 96), -20.0, np.float32)
            for row, context in zip(rows, contexts, strict=True):
                written = single.decode(context.tokens)
                rest = b"abcabc12"[len(written) - 1 :]
                row[rest[0] - 32 if rest else 95] = 0.0
            return rows

    lm = Knows(0, single)
    for make, good in ((TokenIntersection, False), (lambda m: StringDraft(m, forwards=8), True)):
        cursor = make(lm).open(Start(VOCABULARY.encode("x"), VOCABULARY, None, 0.0, None, text="x")).cursor()
        tokens = []
        while cursor is not None and len(tokens) < 12:
            offers = cursor.children(Here(None, len(tokens)))
            if offers[0][0] == 0:
                break
            tokens.append(VOCABULARY.tokens[offers[0][0]])
            cursor = cursor.step(offers[0][0])
        assert b"".join(tokens) == b"abcabc12"
        assert (tokens == [b"abc", b"abc", b"12"]) == good


@given(
    seed=st.integers(0, 10**6),
    which=st.integers(0, 4),
    rule=st.sampled_from(["single", "recursive", "k-seq", "beam"]),
    schema=st.sampled_from([*SCHEMAS, None]),
    temperature=st.sampled_from([0.05, 0.7, 1.0, 5.0]),
    limit=st.integers(1, 30),
    top=st.sampled_from([{}, {"top_k": 2}, {"top_p": 0.6}]),
    stop=st.sampled_from([(), ("b",), ("12", '":')]),
    nodes=st.sampled_from([0, 1, 3, 32]),
    branches=st.integers(1, 4),
    depth=st.integers(1, 5),
    n=st.sampled_from([1, 2]),
)
@settings(max_examples=cases(200), deadline=None)
def test_sampled_drafts_of_any_settings_give_valid_texts(
    seed: int,
    which: int,
    rule: Any,
    schema: Any,
    temperature: float,
    limit: int,
    top: dict[str, Any],
    stop: tuple[str, ...],
    nodes: int,
    branches: int,
    depth: int,
    n: int,
) -> None:
    """The random settings include tiny limits, drafts of the end token, stop strings, and masks that forbid
    the draft's most probable tokens."""
    few = sg.Vocabulary.from_bytes([b"a", b"zz", b'{"a"', b"12", b"true,", b""], eos_token_ids=[5])
    drafter = [*drafters(RandomModel(seed, OTHER)), *drafters(RandomModel(seed, few))[1:]][which]
    options = Speculation([drafter], rule=rule, nodes=nodes, branches=branches, depth=depth)
    lm = RandomModel(seed + 1)
    found = sg.generate(
        lm,
        "ab",
        schema,
        temperature=temperature,
        seed=seed,
        max_tokens=limit,
        complete=False,
        stop=list(stop),
        n=n,
        speculate=options,
        **top,
    )
    for result in found if isinstance(found, list) else [found]:
        assert 1 <= len(result.tokens) <= limit
        ended = result.tokens[-1] == 0
        assert 0 not in result.tokens[:-1] and (not ended or result.finish_reason == "stop")
        if schema is not None:
            grammar = sg.Compiler(VOCABULARY).json_schema(schema, whitespace="compact")
            matcher = grammar.matcher()
            assert matcher.accept_tokens(result.tokens) and matcher.is_terminated() == ended
        assert not any(s in result.text for s in stop)
        stats = result.speculation
        assert stats.accepted <= stats.drafted <= nodes * stats.row_forwards
