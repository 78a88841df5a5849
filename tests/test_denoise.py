"""`sg.denoise`: texts of masked-diffusion models under constraints.

A table serves as the model, so the test can compute the law of random orders exactly: it visits every draw of
slots and tokens, and compares the result with the law's definition over enumerated fillings. Random weights
test the adapter for transformers.
"""

from __future__ import annotations

import itertools
import json
import zlib
from collections import defaultdict

import numpy as np
import pytest

import structgen as sg
from oracles import random_canvas
from oracles.harness import verdict
from structgen import errors
from structgen.generation.denoising import SCHEDULERS
from structgen.lm.base import ContextTooLong, LanguageModelError
from structgen.lm.diffusion import DiffusionLM, TransformersDiffusionLM

TOKENS = (b"[", b"]", b"1", b"1,", b'"a"')
END, MASK = len(TOKENS), len(TOKENS) + 1


class Table:
    """Scores of every slot that depend on the row alone."""

    mask_token_id = MASK

    def __init__(self, tokens=TOKENS, mask=MASK) -> None:
        self.vocabulary = sg.Vocabulary.from_bytes(
            [*tokens, b"", b""], eos_token_ids=[len(tokens)], special_token_ids=[]
        )
        self.mask_token_id = mask
        self.calls = 0

    def encode(self, prompt):
        return list(prompt)

    def logits(self, context, canvas):
        self.calls += 1
        seed = zlib.crc32(json.dumps([list(context), list(canvas)]).encode())
        source = np.random.default_rng(seed)
        return source.normal(size=(len(canvas), self.vocabulary.vocab_size)).astype(np.float32)


class Every:
    """Visits all outcomes of the draws. `path` gives the index of each draw; the outcome's probability is
    multiplied up."""

    def __init__(self, path: list[int]) -> None:
        self.path = path
        self.at = 0
        self.weight = 1.0
        self.choices: list[list[int]] = []

    def draw(self, weights) -> int:
        possible = [i for i, w in enumerate(weights) if w > 0]
        if self.at == len(self.path):
            self.path.append(possible[0])
        index = self.path[self.at]
        self.choices.append(possible)
        self.at += 1
        self.weight *= float(weights[index] / np.sum(weights))
        return index


def outcomes(call):
    """Yields (probability, result, draws) for every outcome of a call that draws."""
    path: list[int] = []
    while True:
        chance = Every(path)
        yield chance.weight, (result := call(chance)), chance  # the weight is final only after the call
        del result
        path = path[: chance.at]
        while path:
            possible = chance.choices[len(path) - 1]
            if path[-1] != possible[-1]:
                path[-1] = possible[possible.index(path[-1]) + 1]
                break
            path.pop()
        if not path:
            return


def law(model: Table, slots: int, every: set[tuple[int, ...]]) -> dict[tuple[int, ...], float]:
    """Returns the law of random orders under masks: each step draws a slot uniformly, then a token of the
    slot. Only tokens that some filling has in this slot can be drawn."""
    out: dict[tuple[int, ...], float] = defaultdict(float)

    def go_on(row: tuple[int, ...], weight: float) -> None:
        masked = [i for i, t in enumerate(row) if t == model.mask_token_id]
        if not masked:
            out[row] += weight
            return
        left = [f for f in every if all(t in (model.mask_token_id, f[i]) for i, t in enumerate(row))]
        scores = np.exp(model.logits([], list(row)).astype(np.float64))
        for slot in masked:
            allowed = sorted({f[slot] for f in left})
            total = sum(scores[slot, t] for t in allowed)
            for t in allowed:
                share = scores[slot, t] / total / len(masked)
                go_on((*row[:slot], t, *row[slot + 1 :]), weight * share)

    go_on((model.mask_token_id,) * slots, 1.0)
    return out


def test_the_law_of_random_orders_is_exact() -> None:
    tokens = (b"a", b"b")
    model = Table(tokens, 3)
    grammar = sg.Compiler(model.vocabulary).regex("a?b+|ba")

    def inside(text: bytes) -> bool:
        return verdict(grammar, text)

    every = random_canvas.fillings(
        grammar, tokens, 3, "end", None, inside, lambda text: grammar.matcher().accept_bytes(text)
    )
    assert len(every) >= 3
    right = law(model, 3, every)
    found: dict[tuple[int, ...], float] = defaultdict(float)

    def call(chance):
        return sg.denoise(
            model, [], grammar=grammar, slots=3, steps=3, scheduler="random", temperature=1.0, chance=chance
        )

    for _, result, chance in outcomes(call):
        found[tuple(result.tokens)] += chance.weight
        assert result.completed == 0
    assert sum(found.values()) == pytest.approx(1.0, abs=1e-9)
    assert set(found) == set(right) == every
    for row, weight in right.items():
        assert found[row] == pytest.approx(weight, abs=1e-9)


@pytest.mark.parametrize(("scheduler", "steps"), list(itertools.product(SCHEDULERS, (1, 2, 4, 12))))
def test_every_text_fits_however_few_the_steps(scheduler, steps) -> None:
    model = Table(random_canvas.JSON_TOKENS, len(random_canvas.JSON_TOKENS) + 1)
    schema = {"type": "object", "properties": {"a": {"enum": [1, 10, "b"]}}, "required": ["a"]}
    result = sg.denoise(
        model, [1, 2], schema, slots=12, steps=steps, scheduler=scheduler, temperature=0.7, seed=3
    )
    assert result.value["a"] in (1, 10, "b") and json.loads(result.text) == result.value
    assert len(result.tokens) == 12 and result.steps <= steps
    assert model.calls == result.steps
    assert result.checks >= 12 - result.completed and result.refused <= result.checks
    assert result.grammar.matcher().accept_bytes(result.text)


def test_the_same_seed_gives_the_same_text() -> None:
    texts = {
        sg.denoise(Table(), [], regex=r"\[(1,)*1\]", slots=6, temperature=1.0, seed=9).text for _ in range(3)
    }
    assert len(texts) == 1


def test_a_scheduler_is_a_function() -> None:
    def last_first(probabilities, masked, least, chance):
        return sorted(masked, reverse=True)[:least]

    result = sg.denoise(Table(), [], regex=r"\[1(,1)*\]", slots=5, scheduler=last_first)
    assert result.text.startswith("[1") and result.completed == 0


@pytest.mark.parametrize(
    ("given", "error", "line"),
    [
        ({"slots": 1}, errors.UnsatisfiableBudget, "no text of the grammar fits 1 slots"),
        ({"slots": 4, "steps": 0}, ValueError, "steps must be at least 1, not 0"),
        ({"slots": 4, "steps": "2"}, TypeError, "steps is a whole number"),
        ({"slots": 4, "scheduler": "best"}, ValueError, "scheduler is one of confidence, random, threshold"),
        ({"slots": 4, "temperature": -1}, ValueError, "temperature must not be negative"),
    ],
)
def test_bad_input_is_one_clear_line(given, error, line) -> None:
    with pytest.raises(error, match=line) as raised:
        sg.denoise(Table(), [], {"type": "array"}, **given)
    assert "\n" not in str(raised.value)


def test_a_constraint_and_a_masked_model_are_needed() -> None:
    with pytest.raises(ValueError, match="needs a constraint"):
        sg.denoise(Table(), [], slots=4)
    with pytest.raises(TypeError, match="the model is a DiffusionLM"):
        sg.denoise(object(), [], {"type": "array"}, slots=4)


# ---- transformers ----


def masked_model(positions: int = 64):
    torch = pytest.importorskip("torch", reason="torch is in the extra `hf`")
    transformers = pytest.importorskip("transformers", reason="transformers is in the extra `hf`")
    torch.manual_seed(0)
    tokens = random_canvas.JSON_TOKENS
    config = transformers.BertConfig(
        vocab_size=len(tokens) + 2, hidden_size=16, num_hidden_layers=2, num_attention_heads=2,
        intermediate_size=32, max_position_embeddings=positions,
    )  # fmt: skip
    vocabulary = sg.Vocabulary.from_bytes([*tokens, b"", b""], eos_token_ids=[len(tokens)])
    return transformers.BertForMaskedLM(config), vocabulary


def test_a_masked_model_of_transformers_writes_what_fits() -> None:
    model, vocabulary = masked_model()
    lm = TransformersDiffusionLM(model, vocabulary=vocabulary, mask_token_id=vocabulary.vocab_size - 1)
    assert isinstance(lm, DiffusionLM)
    result = sg.denoise(lm, [3, 4], {"type": "array", "items": {"enum": [1, "a"]}}, slots=8, steps=4)
    assert isinstance(result.value, list) and result.steps <= 4


def test_logits_are_those_of_the_slots() -> None:
    torch = pytest.importorskip("torch", reason="torch is in the extra `hf`")
    model, vocabulary = masked_model()
    mask = vocabulary.vocab_size - 1
    lm = TransformersDiffusionLM(model, vocabulary=vocabulary, mask_token_id=mask)
    with torch.inference_mode():
        whole = model(input_ids=torch.tensor([[3, 4, mask, 5]])).logits[0].numpy()
    assert np.array_equal(lm.logits([3, 4], [mask, 5]), whole[2:])
    behind = TransformersDiffusionLM(model, vocabulary=vocabulary, mask_token_id=mask, shifted=True)
    assert np.array_equal(behind.logits([3, 4], [mask, 5]), whole[1:3])
    assert behind.logits([], [mask, 5]).shape[0] == 2


def test_a_model_without_a_mask_token_is_refused() -> None:
    model, vocabulary = masked_model()
    with pytest.raises(LanguageModelError, match="BertForMaskedLM has no mask token"):
        TransformersDiffusionLM(model, vocabulary=vocabulary)
    lm = TransformersDiffusionLM(model, vocabulary=vocabulary, mask_token_id=1)
    with pytest.raises(ContextTooLong, match="and the model has 64"):
        lm.logits([1] * 60, [1] * 10)


def test_a_folder_is_loaded(tmp_path) -> None:
    transformers = pytest.importorskip("transformers", reason="transformers is in the extra `hf`")
    tokenizers = pytest.importorskip("tokenizers", reason="tokenizers is in the extra `hf`")
    torch = pytest.importorskip("torch", reason="torch is in the extra `hf`")
    letters = sorted(tokenizers.pre_tokenizers.ByteLevel.alphabet())
    names = {t: i for i, t in enumerate([*letters, "<end>", "<mask>"])}
    made = tokenizers.Tokenizer(tokenizers.models.BPE(vocab=names, merges=[]))
    made.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = tokenizers.decoders.ByteLevel()
    tokenizer = transformers.PreTrainedTokenizerFast(
        tokenizer_object=made, eos_token="<end>", mask_token="<mask>"
    )
    torch.manual_seed(1)
    config = transformers.BertConfig(
        vocab_size=len(names), hidden_size=16, num_hidden_layers=1, num_attention_heads=2,
        intermediate_size=32, max_position_embeddings=64, eos_token_id=names["<end>"],
    )  # fmt: skip
    transformers.BertForMaskedLM(config).save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    lm = TransformersDiffusionLM.from_pretrained(tmp_path, device="cpu")
    assert lm.mask_token_id == names["<mask>"]
    result = sg.denoise(lm, "write", choice=["yes", "no"], slots=5, steps=2)
    assert result.value in ("yes", "no")
    with pytest.raises(LanguageModelError, match="cannot be loaded as a masked-diffusion model"):
        TransformersDiffusionLM.from_pretrained(tmp_path / "nothing")
