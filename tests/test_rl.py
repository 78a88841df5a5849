"""Replayed masks equal a matcher's masks. Log-probabilities under the masks equal those of a dense softmax.

Oracles: `Matcher.fill_bitmask` before each token, torch's autograd over a dense mask, and enumeration.
"""

from __future__ import annotations

import math
import os
import random
from typing import Any

import numpy as np
import pytest

import structgen as sg
from oracles import closed
from oracles.sampling_oracle import TableModel, brute_force, choice, random_language
from structgen import rl

VOCABULARY = sg.Vocabulary.from_bytes(
    [b"", *(bytes([b]) for b in range(32, 127)), b'":', b'","', b"true", b"12", b"<unk>"], eos_token_ids=[0]
)
LONG = bool(os.environ.get("STRUCTGEN_LONG"))
GRAMMARS: dict[str, Any] = {
    "schema": lambda c: c.json_schema(
        closed({"a": {"type": "array", "items": {"type": "integer"}}, "b": {"type": "string"}}, ()),
        whitespace="compact",
    ),
    "captured": lambda c: c.json_schema(
        {"type": "array", "uniqueItems": True, "items": {"enum": ["a", "b", "ab", 1, 2, 12]}, "maxItems": 5},
        whitespace="compact",
    ),
    "limited": lambda c: c.lark('start: "[" part ("," part)* "]"\npart[max_tokens=2]: /[a-z0-9]+/'),
    "regex": lambda c: c.regex(r"(ab|a(12)*)*x{0,9}"),
}


def walked(grammar: sg.CompiledGrammar, seed: int, most: int = 60) -> tuple[list[int], np.ndarray]:
    """Returns the ids of a random text, and the mask in front of each id, filled one by one."""
    chance, matcher = random.Random(seed), grammar.matcher()
    ids: list[int] = []
    masks = sg.allocate_bitmask(most, VOCABULARY.vocab_size)
    while len(ids) < most and not matcher.is_terminated():
        matcher.fill_bitmask(masks, len(ids))
        bits = np.unpackbits(masks[len(ids)].view(np.uint8), bitorder="little")
        ids.append(chance.choice(np.flatnonzero(bits).tolist()))
        assert matcher.accept_token(ids[-1])
    return ids, masks[: len(ids)]


@pytest.mark.parametrize("name", GRAMMARS)
def test_replayed_masks_are_those_of_a_matcher(name: str) -> None:
    grammar = GRAMMARS[name](sg.Compiler(VOCABULARY))
    for seed in range(60 if LONG else 20):
        ids, wanted = walked(grammar, seed)
        for given in (ids, np.array(ids, np.int64), tuple(ids)):
            masks = rl.replay(grammar, given)
            np.testing.assert_array_equal(masks.bitmask(), wanted)
        assert len(np.unique(masks.rows, axis=0)) == len(masks.rows)
        starts, listed = masks.csr()
        for row, (first, last) in zip(masks.rows, zip(starts, starts[1:], strict=False), strict=True):
            bits = np.unpackbits(row.view(np.uint8), bitorder="little")
            np.testing.assert_array_equal(listed[first:last], np.flatnonzero(bits))


def test_a_fresh_grammar_and_a_known_one_give_the_same_masks() -> None:
    ids, wanted = walked(GRAMMARS["schema"](sg.Compiler(VOCABULARY)), 3)
    fresh = GRAMMARS["schema"](sg.Compiler(VOCABULARY))
    for _ in range(2):
        np.testing.assert_array_equal(rl.replay(fresh, ids).bitmask(), wanted)


def test_many_texts_are_single_texts_and_an_error_names_its_text() -> None:
    compiler = sg.Compiler(VOCABULARY)
    grammars = [make(compiler) for make in GRAMMARS.values()]
    texts = [walked(g, i)[0] for i, g in enumerate(grammars)]
    for one, ids, masks in zip(grammars, texts, rl.replay_many(grammars, texts, threads=2), strict=True):
        np.testing.assert_array_equal(masks.bitmask(), rl.replay(one, ids).bitmask())
    assert [len(m) for m in rl.replay_many(grammars[0], [texts[0], []])] == [len(texts[0]), 0]
    with pytest.raises(ValueError, match="4 grammars for 3 texts"):
        rl.replay_many(grammars, texts[:3])
    with pytest.raises(ValueError, match="refuses token 0") as caught:
        rl.replay_many(grammars[0], [texts[0], [97]])
    assert caught.value.__notes__ == ["text 1 of 2"]


def test_refused_ids_are_named_with_their_place() -> None:
    grammar = sg.Compiler(VOCABULARY).regex("ab*")
    a, b = (1 + ord(x) - 32 for x in "ab")
    with pytest.raises(ValueError, match=rf"refuses token 2 \(id {a}, b'a'\) after b'ab'"):
        rl.replay(grammar, [a, b, a])
    with pytest.raises(ValueError, match="token 1 has the id 5000"):
        rl.replay(grammar, [a, 5000])
    for huge in (-7, 1 << 40):
        with pytest.raises(ValueError, match=f"token 0 has the id {huge}"):
            rl.replay(grammar, [huge])
    with pytest.raises(ValueError, match="refuses token 2"):
        rl.replay(grammar, [a, 0, a])  # the last token stands behind the end of the text
    for bad in ("ab", [[a]], [1.5], None):
        with pytest.raises(TypeError, match="one list of numbers"):
            rl.replay(grammar, bad)  # type: ignore[arg-type]
    for none in (None, {"type": "integer"}):
        with pytest.raises(TypeError, match="grammar is a CompiledGrammar"):
            rl.replay(none, [a])  # type: ignore[arg-type]
    with pytest.raises(sg.BudgetExceeded, match="more than 10 bytes"):
        rl.replay(grammar, [a, b], max_bytes=10)


def test_what_a_sampler_kept_is_taken_out_of_the_masks() -> None:
    grammar = GRAMMARS["schema"](sg.Compiler(VOCABULARY))
    ids, wanted = walked(grammar, 5)
    chance = np.random.default_rng(5)
    kept = [np.unique(np.append(chance.integers(0, VOCABULARY.vocab_size, 9), t)) for t in ids]
    words = np.zeros_like(wanted)
    for i, row in enumerate(kept):
        for t in row.tolist():
            words[i].view(np.uint32)[t // 32] |= np.uint32(1 << t % 32)
    masks = rl.replay(grammar, ids)
    padded = [np.append(row, [-1, -1]) for row in kept]
    for given in (kept, padded, words):
        np.testing.assert_array_equal(masks.merged(given).bitmask(), words & wanted)
    with pytest.raises(ValueError, match="keeps none"):
        masks.merged([np.array([-1])] * len(ids))
    with pytest.raises(ValueError, match="row 0 keeps an id outside"):
        masks.merged([np.array([10_000])] * len(ids))
    with pytest.raises(ValueError, match="kept tokens of 1 rows"):
        masks.merged(kept[:1])


@pytest.mark.parametrize("dtype", ["float64", "float32", "bfloat16"])
@pytest.mark.parametrize("temperature", [1.0, 0.7])
def test_log_probabilities_and_gradients_are_those_of_a_dense_mask(dtype: str, temperature: float) -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed: it is in the extra hf")
    kind, near = getattr(torch, dtype), {"float64": 1e-12, "float32": 1e-5, "bfloat16": 2e-2}[dtype]
    grammar = GRAMMARS["schema"](sg.Compiler(VOCABULARY))
    ids, words = walked(grammar, 8)
    masks, width = rl.replay(grammar, ids), VOCABULARY.vocab_size + 3
    torch.manual_seed(8)
    logits = torch.randn(len(ids), width, dtype=kind, requires_grad=True)
    found = rl.constrained_logprobs(logits, ids, masks, temperature=temperature, chunk=7)
    weights = torch.randn(len(ids), dtype=torch.float64)
    (gradient,) = torch.autograd.grad((found.double() * weights).sum(), logits)

    bits = np.unpackbits(words.view(np.uint8), axis=1, bitorder="little").astype(bool)
    allowed = torch.zeros(len(ids), width, dtype=torch.bool)
    allowed[:, : VOCABULARY.vocab_size] = torch.from_numpy(bits[:, : VOCABULARY.vocab_size])
    dense = logits.detach().double().requires_grad_()
    every = torch.log_softmax((dense / temperature).masked_fill(~allowed, -math.inf), -1)
    wanted = every.gather(1, torch.tensor(ids)[:, None])[:, 0]
    (expected,) = torch.autograd.grad((wanted * weights).sum(), dense)
    torch.testing.assert_close(found.double(), wanted.detach(), atol=near, rtol=near)
    torch.testing.assert_close(gradient.double(), expected, atol=near, rtol=near)
    assert gradient.dtype == kind
    assert not gradient[~allowed].any()

    for bad in (logits[:-1], logits[:, :5]):
        with pytest.raises(ValueError, match="the logits have the shape"):
            rl.constrained_logprobs(bad, ids, masks)
    wrong = [ids[0], 10_000, *ids[2:]]
    with pytest.raises(ValueError, match="mask of token 1 does not allow its id 10000"):
        rl.constrained_logprobs(logits, wrong, masks)
    with pytest.raises(ValueError, match="positive"):
        rl.constrained_logprobs(logits, ids, masks, temperature=0.0)


def test_training_and_rollout_have_one_law() -> None:
    """pi_train / pi_rollout is 1 up to 1e-6, for every token. The trainer sees only ids and logits."""
    torch = pytest.importorskip("torch", reason="torch is not installed: it is in the extra hf")
    grammar = GRAMMARS["schema"](sg.Compiler(VOCABULARY))
    chance, tokens = np.random.default_rng(0), 0
    while tokens < (100_000 if LONG else 5_000):
        matcher = grammar.matcher()
        ids: list[int] = []
        said: list[float] = []
        logits = chance.normal(size=(80, VOCABULARY.vocab_size)) * 2
        mask = sg.allocate_bitmask(1, VOCABULARY.vocab_size)
        while len(ids) < len(logits) and not matcher.is_terminated():
            matcher.fill_bitmask(mask)
            law = sg.masked_log_softmax(logits[len(ids)], mask[0])
            ids.append(int(chance.choice(law.size, p=np.exp(law) / np.exp(law).sum())))
            said.append(float(law[ids[-1]]))
            matcher.accept_token(ids[-1])
        trained = rl.constrained_logprobs(torch.from_numpy(logits[: len(ids)]), ids, rl.replay(grammar, ids))
        assert np.abs(np.expm1(trained.numpy() - np.array(said))).max() < 1e-6
        tokens += len(ids)


def test_the_bracket_of_a_plain_schema() -> None:
    lm = TableModel(3, [b"", *(bytes([b]) for b in range(32, 127))], ends=(0,), sharp=0.1)
    schema = {"enum": [1, 2, 12, 21]}
    grammar = sg.Compiler(lm.vocabulary).json_schema(schema, whitespace="compact", numbers="plain")
    found, same = (
        rl.log_normaliser(lm, [], one, budget="reject", draws=300, max_tokens=4, seed=1)
        for one in (schema, grammar)
    )
    assert found == pytest.approx(same, abs=1e-9)


@pytest.mark.parametrize("seed", range(6))
def test_the_bracket_holds_the_normaliser_and_closes(seed: int) -> None:
    texts, lm = random_language(seed), TableModel(seed)
    grammar = choice(lm, texts)
    total = sum(brute_force(lm, lambda text: text.decode() in texts, 5).values())
    wide = rl.log_normaliser(lm, [], grammar, budget="reject", draws=1, max_tokens=5, seed=seed)
    low, high = rl.log_normaliser(
        lm, [], grammar, budget="reject", draws=400, max_tokens=5, seed=seed, tolerance=1e-9
    )
    assert wide[0] <= math.log(total) + 1e-9 and math.log(total) <= wide[1] + 1e-9
    assert low - 1e-6 <= math.log(total) <= high + 1e-6
    assert high - low < 1e-6
