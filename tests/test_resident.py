"""Rows that stay on a model's device: torch's answers equal the core's, samples are equal, and few bytes are
copied.

No GPU is needed: `Far` tensors compute on the CPU, release numbers only through `.cpu()`, and count the
bytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed: it is in the extra hf")

import structgen as sg  # noqa: E402
from oracles.sampling_oracle import DRAWING, TableModel, choice  # noqa: E402
from oracles.speculative import llama  # noqa: E402
from structgen.lm import resident  # noqa: E402
from structgen.lm.resident import Resident  # noqa: E402
from structgen.lm.transformers import TransformersLM  # noqa: E402
from structgen.logits import brief_row  # noqa: E402
from structgen.sampling import Law, Predicate, sample, vector  # noqa: E402
from structgen.sampling.target import Target  # noqa: E402

VOCABULARY = sg.Vocabulary.from_bytes([b"", *(bytes([65 + i]) for i in range(60))], eos_token_ids=[0])
SIZES = {"num_key_value_heads": 2, "max_position_embeddings": 64, "initializer_range": 0.3}


class Far(torch.Tensor):
    """A tensor that behaves as if it lay on another device."""

    crossed = 0  # bytes copied from the device

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = getattr(func, "__name__", "")
        if name in ("numpy", "tolist", "item", "__array__", "__float__", "__int__"):
            raise RuntimeError(f"{name} of a tensor that is not on the CPU")
        found = super().__torch_function__(func, types, args, kwargs or {})
        if name in ("cpu", "__bool__"):
            Far.crossed += args[0].numel() * args[0].element_size()
            return found.as_subclass(torch.Tensor) if name == "cpu" else found
        return found


class FarModel(TableModel):
    """A table whose rows behave as if they lay on another device."""

    calls = 0

    def resident(self, contexts: Sequence[Any]) -> Resident:
        self.calls += len(contexts)
        return Resident(torch.from_numpy(super().logprobs(contexts)).as_subclass(Far))

    def logprobs(self, contexts: Sequence[Any]) -> np.ndarray:
        raise AssertionError("a whole row was asked for")


def masked(random: np.random.Generator, size: int, share: float) -> tuple[np.ndarray, np.ndarray]:
    bits = random.random(size) < share
    mask = sg.allocate_bitmask(1, size)[0]
    padded = np.ones(mask.size * 32, np.uint8)  # the mask's bits behind the last token have no meaning
    padded[:size] = bits
    mask[:] = np.packbits(padded, bitorder="little").view(np.int32)
    return bits, mask


@pytest.mark.parametrize("spread", [0.1, 3.0, 20.0])
def test_briefs_are_those_of_the_core(spread: float, monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(int(spread * 10))
    seen = 0
    for trial in range(60):
        size, most = int(random.integers(3, 2000)), int(random.integers(1, 40))
        rows = (random.normal(size=(3, size)) * spread).astype(np.float32)
        rows = np.round(rows) if trial % 3 == 0 else rows  # many values are equal
        rows[random.random(rows.shape) < (0.3 if trial % 5 == 0 else 0.0)] = -np.inf
        masks = np.stack([masked(random, size, random.choice([0.02, 0.5, 0.97, 1.0]))[1] for _ in rows])
        monkeypatch.setattr(resident, "_AT_ONCE", 2 + trial % 2)
        there = Resident(torch.from_numpy(rows.copy()))
        for row, mask, found in zip(rows, masks, there.briefs(range(3), masks, most), strict=True):
            wanted = brief_row(row, mask, most)
            assert (found is None) == (wanted is None)
            if found is None or wanted is None:
                continue
            seen += 1
            assert np.array_equal(found.ids, wanted.ids) and np.array_equal(found.values, wanted.values)
            assert found.lost == wanted.lost and found.best == wanted.best
            for name in ("shift", "tail", "entropy"):
                mine, theirs = getattr(found, name), getattr(wanted, name)
                assert mine == pytest.approx(theirs, rel=1e-11, abs=1e-11), name
    assert seen > 60


def test_rows_that_are_no_case_for_it() -> None:
    full = np.full((1, 4), -1, np.int32)
    for bad in (np.full(128, -np.inf), np.zeros(128)):
        mask = full if bad[0] else np.zeros_like(full)
        assert Resident(torch.tensor(bad[None], dtype=torch.float32)).briefs([0], mask, 3) == [None]
    assert Resident(torch.zeros(2, 8)).briefs([], full[:0], 3) == []


@pytest.mark.parametrize(
    "how",
    [(1.0, None, None), (0.5, None, None), (3.0, 4, None), (1.0, None, 0.7), (1.7, 9, 0.8), (1.0, 1, 1.0)],
)
def test_the_law_is_the_same_there(how: Any) -> None:
    random = np.random.default_rng(1)
    for size in (3, 40, 700):
        rows = (random.normal(size=(4, size)) * 2).astype(np.float32)
        rows[0] = np.round(rows[0])
        there = Resident(torch.from_numpy(rows.copy()))
        there.shape_by(Law(*how))
        wanted = Law(*how).scores(rows.copy())
        assert np.array_equal(there.rows.numpy() > -np.inf, wanted > -np.inf)
        held = wanted > -np.inf
        assert there.rows.numpy()[held] == pytest.approx(wanted[held], rel=1e-6)


def models(ends: int, size: int = 3000) -> tuple[TableModel, FarModel]:
    tokens = [bytes([97 + i // 676 % 26, 97 + i // 26 % 26, 97 + i % 26]) for i in range(size)]
    tokens += [b'"', *[b""] * ends]
    at = tuple(range(size + 1, size + 1 + ends))
    return TableModel(1, tokens, ends=at, sharp=3.0), FarModel(1, tokens, ends=at, sharp=3.0)


@pytest.mark.parametrize("ends", [1, 3])
@pytest.mark.parametrize("method", DRAWING)
def test_samples_are_the_same_and_no_row_crosses(method: Any, ends: int) -> None:
    here, far = models(ends)
    how = {"method": method, "n": 8, "seed": 3, "max_tokens": 6, "max_trials": 40, "steps": 2}
    Far.crossed = 0
    for pattern in ("[a-z]*", '"[a-z]*"', "(abc|abd|xyz)+"):
        mine, theirs = (
            sample(lm, [], sg.Compiler(lm.vocabulary).regex(pattern), **how) for lm in (here, far)
        )
        assert [one.tokens for one in mine] == [one.tokens for one in theirs]
        assert mine.log_bracket == pytest.approx(theirs.log_bracket, abs=1e-9)
        # A resident row is drawn from on its device; a host row is kept whole for a while.
        assert len(here.asked) == mine.diagnostics.positions <= theirs.diagnostics.positions
        kinds = {node.row.thin for node in theirs.trie.nodes()}
        assert kinds == {True, False} or pattern.startswith("(")
        here.asked.clear()
    whole = far.calls * 4 * far.vocabulary.vocab_size
    assert 0 < Far.crossed < whole


def test_what_crosses_is_a_brief() -> None:
    """What leaves the device is a short summary of a row. For 131,072 tokens it has 8 kB, the best 512 tokens
    and some sums, and the row has half a megabyte."""
    tokens = [bytes([97 + i // 676 % 26, 97 + i // 26 % 26, 97 + i % 26]) for i in range(131_071)] + [b""]
    far = FarModel(1, tokens, ends=(131_071,), sharp=4.0)
    Far.crossed = 0
    grammar = sg.Compiler(far.vocabulary).regex("[a-z]*")
    found = sample(far, [], grammar, method="importance", n=8, seed=1, max_tokens=9)
    thin = [node for node in found.trie.nodes() if node.row.thin]
    assert len(thin) >= 3
    whole = sum(not node.row.thin and len(node.row) > 1000 for node in found.trie.nodes())
    assert far.calls > len(found.trie), "no draw fell among the others"
    assert Far.crossed <= far.calls * 8400 + whole * 4 * 131_072 < far.calls * 4 * 131_072 / 8


def test_conditions_shapes_and_laws_hold_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vector, "THIN_FROM", 2)
    monkeypatch.setattr(vector, "TOP", 2)
    texts = ["a", "ab", "abc", "ca", "cc", "b"]
    for ends in (1, 2):
        tokens = [b"a", b"b", b"ab", b"c", *[b""] * ends]
        at = tuple(range(4, 4 + ends))
        for law in ({}, {"temperature": 0.6}, {"top_k": 3}, {"top_p": 0.8}):
            for potential in (None, Predicate(lambda t: "bc" not in t, at="token", monotone=True)):
                found = [
                    sample(
                        lm, [], choice(lm, texts), method="cars", n=12, seed=2, max_tokens=5, budget="reject",
                        potential=potential, max_trials=60, **law,
                    )
                    for lm in (TableModel(4, tokens, at), FarModel(4, tokens, at))
                ]  # fmt: skip
                assert [one.tokens for one in found[0]] == [one.tokens for one in found[1]]
                assert found[0].log_bracket == pytest.approx(found[1].log_bracket, abs=1e-9)
                lost = [
                    {node.token: node.row.lost for node in each.trie.nodes() if node.parent is None}
                    for each in found
                ]
                assert str(lost[0])[:12] == str(lost[1])[:12]


def test_a_sum_that_leaves_out_a_token_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = Target._of_brief

    def short(self: Target, brief: Any, end: float, mask: Any) -> Any:
        return honest(self, brief._replace(tail=brief.tail * 0.9), end, mask)

    here, far = models(1)
    grammar = sg.Compiler(here.vocabulary).regex('"[a-z]*"')
    wanted = sample(here, [], grammar, method="importance", n=40, seed=3, max_tokens=6)
    monkeypatch.setattr(Target, "_of_brief", short)
    grammar = sg.Compiler(far.vocabulary).regex('"[a-z]*"')
    found = sample(far, [], grammar, method="importance", n=40, seed=3, max_tokens=6)
    assert found.log_evidence != pytest.approx(wanted.log_evidence, abs=1e-9)


def test_a_model_of_transformers_keeps_its_rows_there(monkeypatch: pytest.MonkeyPatch) -> None:
    """The rows are tensors, as on another device. `logprobs` copies them, and samples are equal."""
    near, there = (TransformersLM(llama(61, **SIZES), vocabulary=VOCABULARY) for _ in range(2))
    assert near.resident([near.start("AB")]) is None
    monkeypatch.setattr(TransformersLM, "_stays", property(lambda self: self is there))
    contexts = [[lm.start("AB"), lm.start("AB").extend(1)] for lm in (near, there)]
    rows = there.resident(contexts[1])
    assert rows is not None and isinstance(contexts[1][0]._vector, torch.Tensor)
    assert np.array_equal(rows.rows.numpy(), near.logprobs(contexts[0]))
    assert np.array_equal(there.logprobs(contexts[1]), near.logprobs(contexts[0]))
    assert there.cached_bytes == near.cached_bytes
    rows.take_out([0, 1])  # a change of the returned rows leaves the model's rows alone
    assert np.array_equal(there.logprobs(contexts[1]), near.logprobs(contexts[0]))
    there.release(contexts[1])
    assert there.logprobs(contexts[1]) == pytest.approx(near.logprobs(contexts[0]), abs=1e-5)
    texts = []
    for lm in (near, there):
        found = sample(lm, "A", regex="[A-C]{1,4}", method="cars", n=5, seed=1, max_tokens=8, format="plain")
        texts.append([one.tokens for one in found])
    assert texts[0] == texts[1]


def test_draws_are_those_of_the_cpu() -> None:
    from structgen._draws import Noise, draw

    random = np.random.default_rng(0)
    for trial in range(60):
        size = int(random.integers(1, 900))
        rows = (random.normal(size=(4, size)) * 3).astype(np.float32)
        rows = np.round(rows) if trial % 3 == 0 else rows
        rows -= np.logaddexp.reduce(rows.astype(float), axis=1, keepdims=True).astype(np.float32)
        masks = np.stack([masked(random, size, 0.6)[1] for _ in rows])
        heat = [0.0, 0.3, 1.0, 1e-320]
        noises = [None if at == 1 and trial % 2 else Noise(trial, at) for at in range(4)]
        words = [None if noise is None else noise.words(trial) for noise in noises]
        for some in (masks, None):
            found = Resident(torch.from_numpy(rows.copy())).draw(some, heat, words)
            held = rows if some is None else sg.apply_bitmask(rows, some)
            for at, (token, logprob) in enumerate(found):
                noise = None if heat[at] == 0 else noises[at]
                if not np.isfinite(held[at]).any():
                    assert token == -1
                    continue
                assert token == draw(held[at], Law(heat[at] or 1.0), noise, trial)
                assert logprob == rows[at, token]


def test_a_generated_text_is_the_same_and_tokens_cross(monkeypatch: pytest.MonkeyPatch) -> None:
    here, far = models(1)
    Far.crossed = 0
    steps = 0
    for seed in range(5):
        for how in ({"temperature": 1.0}, {"temperature": 0.0}, {"temperature": 0.5, "max_tokens": 3}):
            given = {"seed": seed, "max_tokens": 12, "format": "plain", **how}
            texts = [sg.generate(lm, "abc", regex='"[a-z]*"', **given) for lm in (here, far)]
            assert texts[0].tokens == texts[1].tokens and texts[0].logprobs == texts[1].logprobs
            steps += len(texts[1].tokens)
    assert Far.crossed == 16 * steps
    # These options read the whole row. This model gives none, so each call raises an error.
    for how in ({"top_logprobs": 2}, {"top_k": 3}, {"structure_penalty": 0.5}, {"presence_penalty": 1.0}):
        with pytest.raises(AssertionError, match="a whole row"):
            sg.generate(far, "abc", regex='"[a-z]*"', max_tokens=9, **how)
    with pytest.raises(sg.StructgenError, match="no allowed token"):
        none = FarModel(1, [b"a", b"b", b""], ends=(2,), zero=[((), 0)])
        sg.generate(none, [], regex="a", max_tokens=3, format="plain")
