"""Language models: every vector of log-probabilities equals that of a new full forward pass, whatever was
cached, evicted or asked in one batch."""

from __future__ import annotations

import gc
import random
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from oracles import speculative  # noqa: E402
from structgen import Vocabulary, VocabularyError  # noqa: E402
from structgen.lm.base import ContextTooLong, LanguageModel, LanguageModelError  # noqa: E402
from structgen.lm.transformers import TransformersLM  # noqa: E402

torch.set_num_threads(1)  # the models are tiny, and several threads would only wait for each other

V = 61
VOCABULARY = Vocabulary.from_bytes([b"", *(bytes([65 + i]) for i in range(V - 1))], eos_token_ids=[0])
SIZES = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "vocab_size": V}


DEEPER = {"intermediate_size": 48, "num_key_value_heads": 2, "max_position_embeddings": 64}


def llama(**changes: Any) -> Any:
    return speculative.llama(V, **DEEPER, initializer_range=0.3, **changes)


def sliding() -> Any:
    torch.manual_seed(1)
    config = transformers.MistralConfig(**SIZES, **DEEPER, sliding_window=5, initializer_range=0.3)
    return transformers.MistralForCausalLM(config)


def gpt2() -> Any:
    torch.manual_seed(2)
    config = transformers.GPT2Config(
        vocab_size=V, n_positions=64, n_embd=32, n_layer=2, n_head=4, initializer_range=0.3
    )
    return transformers.GPT2LMHeadModel(config)


def bloom() -> Any:
    """Returns a model that derives positions from the attention mask and takes no position ids."""
    torch.manual_seed(3)
    config = transformers.BloomConfig(
        vocab_size=V, hidden_size=32, n_layer=2, n_head=4, initializer_range=0.3
    )
    return transformers.BloomForCausalLM(config)


def mamba() -> Any:
    """Returns a model whose past is a state without positions. So nothing is cached, and every call runs the
    whole prefix."""
    torch.manual_seed(4)
    config = transformers.MambaConfig(vocab_size=V, hidden_size=16, num_hidden_layers=2, state_size=4)
    return transformers.MambaForCausalLM(config)


def fresh(model: Any, tokens: list[int]) -> np.ndarray:
    with torch.inference_mode():
        logits = model(input_ids=torch.tensor([tokens]), use_cache=False).logits[0, -1]
    return torch.log_softmax(logits.float(), -1).numpy()


@pytest.mark.parametrize("make", [llama, sliding, gpt2, bloom, mamba])
@pytest.mark.parametrize("kv_bytes", [0, 6_000, 60_000, 1 << 30])
def test_a_vector_is_that_of_a_fresh_forward(make: Any, kv_bytes: int) -> None:
    model = make().eval()
    lm = TransformersLM(model, vocabulary=VOCABULARY, kv_bytes=kv_bytes, batch_size=5)
    rng = random.Random(kv_bytes)
    nodes = [lm.start([rng.randrange(V) for _ in range(rng.randrange(1, 12))]) for _ in range(3)]
    for _ in range(5):
        for _ in range(rng.randrange(1, 6)):
            node = rng.choice(nodes)
            for _ in range(rng.choice([1, 1, 2, 7])):
                if len(node) < 40:
                    node = node.extend(rng.randrange(V))
                    if rng.random() < 0.7:
                        nodes.append(node)
        asked = rng.choices(nodes, k=rng.randrange(1, 9))
        found = lm.logprobs(asked)
        assert found.dtype == np.float32 and found.shape == (len(asked), V)
        assert lm.cached_bytes <= kv_bytes
        for row, node in zip(found, asked, strict=True):
            np.testing.assert_allclose(row, fresh(model, node.tokens), atol=3e-5, rtol=1e-5)


def test_random_trees_under_random_budgets_and_forgetting() -> None:
    model = llama().eval()
    for seed in range(6):
        rng = random.Random(seed)
        lm = TransformersLM(model, vocabulary=VOCABULARY, kv_bytes=rng.choice([3_000, 20_000, 90_000]))
        alphabet = [rng.randrange(V) for _ in range(2)]  # two letters, so that prefixes are shared
        known: dict[tuple[int, ...], np.ndarray] = {}
        for _ in range(12):
            asked = [
                lm.start([7] + [rng.choice(alphabet) for _ in range(rng.randrange(9))])
                for _ in range(rng.randrange(1, 5))
            ]
            for row, node in zip(lm.logprobs(asked), asked, strict=True):
                key = tuple(node.tokens)
                if key not in known:
                    known[key] = fresh(model, list(key))
                np.testing.assert_allclose(row, known[key], atol=3e-5, rtol=1e-5)
            if rng.random() < 0.1:
                lm.clear()
                assert lm.cached_bytes == 0


def test_equal_prefixes_are_one_node_and_their_vector_is_frozen() -> None:
    lm = TransformersLM(llama(), vocabulary=VOCABULARY, kv_bytes=0)
    assert isinstance(lm, LanguageModel)
    a = lm.start([1, 2, 3])
    b = lm.start([1, 2]).extend(3)
    assert a is b and a.tokens == [1, 2, 3] and len(a) == 3
    first = lm.logprobs([a])[0]
    together = lm.logprobs([lm.start([5, 6, 7, 8]), b, lm.start([9])])[1]
    np.testing.assert_array_equal(first, together)
    first[:] = 0  # the caller owns the returned vector
    np.testing.assert_array_equal(lm.logprobs([a])[0], together)


def count_forwards(lm: TransformersLM) -> list[tuple[int, int]]:
    calls: list[tuple[int, int]] = []
    lm.model.register_forward_pre_hook(
        lambda _m, _a, kw: calls.append(tuple(kw["input_ids"].shape)), with_kwargs=True
    )
    return calls


def test_a_call_is_one_forward_over_what_is_new() -> None:
    lm = TransformersLM(llama(), vocabulary=VOCABULARY)
    calls = count_forwards(lm)
    root = lm.start(list(range(1, 21)))
    lm.logprobs([root])
    assert calls == [(1, 20)]
    children = [root.extend(t) for t in (3, 4, 5)]
    lm.logprobs([*children, root, children[0]])
    assert calls[1:] == [(3, 1)]
    lm.logprobs(children)
    assert len(calls) == 2
    deep = children[0].extend(1).extend(2)
    # the tokens of `deep` cover its parent; the other context has one new token
    lm.logprobs([deep, deep.parent, children[1].extend(9)])
    assert calls[2:] == [(2, 2)]
    other = TransformersLM(llama(), vocabulary=VOCABULARY)
    want = other.logprobs([other.start(deep.tokens), other.start(deep.tokens[:-1])])
    np.testing.assert_allclose(lm.logprobs([deep, deep.parent]), want, atol=3e-5)


def test_keys_outlive_the_contexts_and_evicted_ones_are_made_again() -> None:
    lm = TransformersLM(llama(), vocabulary=VOCABULARY)
    calls = count_forwards(lm)
    lm.logprobs([lm.start([1, 2, 3, 4])])
    gc.collect()
    lm.logprobs([lm.start([1, 2, 3, 4, 5])])
    assert calls == [(1, 4), (1, 1)]
    lm.clear()
    lm.logprobs([lm.start([1, 2, 3, 4, 5, 6])])
    assert calls[2:] == [(1, 6)]


def test_a_long_sequence_grows_one_buffer() -> None:
    model = llama().eval()
    lm = TransformersLM(model, vocabulary=VOCABULARY)
    rng = random.Random(5)
    node = lm.start([1])
    for _ in range(60):
        lm.logprobs([node])
        node = node.extend(rng.randrange(V))
    np.testing.assert_allclose(lm.logprobs([node])[0], fresh(model, node.tokens), atol=3e-5)
    assert len(lm._store.spans) == 1
    held = sum(s.bytes for s in lm._store.spans.values())
    assert held == lm.cached_bytes > 0


def test_errors_are_one_clear_line() -> None:
    lm = TransformersLM(llama(), vocabulary=VOCABULARY)
    with pytest.raises(ContextTooLong, match="the prompt has 65 tokens; the model reads 64"):
        lm.start([1] * 65)
    full = lm.start([1] * 64)
    lm.logprobs([full])
    with pytest.raises(ContextTooLong, match="has 65 tokens"):
        lm.logprobs([full.extend(1)])
    with pytest.raises(LanguageModelError, match=r"token 61 is outside the model's 61 logits"):
        lm.start([61])
    with pytest.raises(LanguageModelError, match="prompt is empty"):
        lm.start([])
    with pytest.raises(LanguageModelError, match="another model"):
        lm.logprobs([TransformersLM(llama(), vocabulary=VOCABULARY).start([1])])
    with pytest.raises(VocabularyError, match="has 3 ids and the model 61 logits"):
        TransformersLM(llama(), vocabulary=Vocabulary.from_bytes([b"", b"a", b"b"], eos_token_ids=[0]))
    broken = llama()
    with torch.no_grad():
        broken.lm_head.weight[3] = float("nan")
    bad = TransformersLM(broken, vocabulary=VOCABULARY)
    with pytest.raises(LanguageModelError, match="NaN"):
        bad.logprobs([bad.start([1])])


def test_a_model_that_is_not_there(tmp_path: Any) -> None:
    with pytest.raises(LanguageModelError, match="cannot load the model") as caught:
        TransformersLM.from_pretrained(tmp_path / "nothing")
    assert "\n" not in str(caught.value)


def test_half_precision_is_close() -> None:
    model = llama().eval()
    want = fresh(model, [1, 2, 3])
    lm = TransformersLM(model.to(torch.bfloat16), vocabulary=VOCABULARY)
    found = lm.logprobs([lm.start([1, 2, 3])])[0]
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, want, atol=0.6)
    assert abs(float(np.exp(found.astype(np.float64)).sum()) - 1) < 1e-4


def test_lines_of_a_request_stay_apart() -> None:
    """The embedded models read a prompt as one line. The lines "From: Cairo" and "To: London" were once
    joined without a separator."""
    from structgen.lm import embedded

    assert "From: Cairo; To: London" in embedded.format_prompt("From: Cairo\n\n  To:  London \n")
    assert "It rains. Bring a coat, too" in embedded.format_prompt("It rains.\nBring a coat,\ntoo")
    assert embedded.format_prompt("\n") == embedded.format_prompt("")
