"""Scores of trees: a node's logits equal those of its path, cached reads equal fresh reads, and rows are
ragged.

Invariants 7 and 10 of speculative decoding, in float64, over model families with different attention masks:
full attention, learned positions, one sliding window, windows in some layers, grouped heads.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from structgen import Vocabulary  # noqa: E402
from structgen.lm.base import ContextTooLong, LanguageModelError  # noqa: E402
from structgen.lm.transformers import TransformersLM  # noqa: E402
from structgen.lm.trees import Block, TreeScorer  # noqa: E402

V = 40
VOCABULARY = Vocabulary.from_bytes([b""] + [bytes([97 + i % 26]) * (1 + i // 26) for i in range(V - 1)], [0])
SMALL: dict[str, Any] = {
    "vocab_size": V,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 512,
    "initializer_range": 0.4,
    "eos_token_id": 0,
    "bos_token_id": 1,
    "pad_token_id": 0,
    "head_dim": 8,
}
FAMILIES = {
    "llama": (transformers.LlamaConfig, {}),
    "llama-eager": (transformers.LlamaConfig, {"attn_implementation": "eager"}),
    "gpt2": (
        transformers.GPT2Config,
        {"n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 512, "initializer_range": 0.4},
    ),
    "mistral-window": (transformers.MistralConfig, {"sliding_window": 5}),
    "qwen2": (transformers.Qwen2Config, {}),
    "gemma3-mixed": (
        transformers.Gemma3TextConfig,
        {"sliding_window": 4, "layer_types": ["sliding_attention", "full_attention"]},
    ),
}


def model(family: str) -> Any:
    config, more = FAMILIES[family]
    torch.manual_seed(1)
    more = dict(more)
    attention = more.pop("attn_implementation", "sdpa")
    built = transformers.AutoModelForCausalLM.from_config(
        config(**{**SMALL, **more}), attn_implementation=attention
    )
    return TransformersLM(built.double().eval(), vocabulary=VOCABULARY)


@pytest.fixture(scope="module", params=FAMILIES)
def lm(request: pytest.FixtureRequest) -> Any:
    return model(request.param)


def plain(lm: TransformersLM, tokens: list[int]) -> Any:
    """Returns the last logits of one text, computed alone and without a cache."""
    with torch.inference_mode():
        return lm.model(input_ids=torch.tensor([tokens]), use_cache=False).logits[0, -1]


def random_tree(random: np.random.Generator, count: int) -> tuple[list[int], list[int]]:
    tokens, parents = [], []
    for i in range(count):
        parents.append(int(random.integers(-1, i)))
        tokens.append(int(random.integers(V)))
    return tokens, parents


def path_to(node: int, parents: list[int]) -> list[int]:
    found: list[int] = []
    while node >= 0:
        found.append(node)
        node = parents[node]
    return found[::-1]


def check(lm: Any, texts: list[list[int]], blocks: list[Block], scores: list[Any]) -> None:
    for text, block, rows in zip(texts, blocks, scores, strict=True):
        base = [*text, *block.taken]
        assert rows.shape == (1 + len(block.tokens), V)
        for node in range(-1, len(block.tokens)):
            want = plain(lm, base + [block.tokens[i] for i in path_to(node, list(block.parents))])
            # transformers' eager attention computes the softmax in float32 for every type of the model.
            eager = lm.model.config._attn_implementation == "eager"
            assert torch.allclose(rows[node + 1], want, rtol=0, atol=1e-5 if eager else 1e-10)


def test_rows_of_a_ragged_batch_are_single_texts(lm: Any) -> None:
    """Prompts, trees and paths are unequal, and rows leave and join: each row equals its text read alone."""
    random = np.random.default_rng(3)
    scorer = lm.tree_scorer()
    texts = [[int(t) for t in random.integers(V, size=n)] for n in (1, 9, 4)]
    scorer.add(3)
    done: list[list[int]] = [[], [], []]
    taken = texts
    for step in range(9):
        blocks = [Block(t, *random_tree(random, int(random.integers(0, 7)))) for t in taken]
        scores = scorer.score(blocks)
        if step in (0, 1, 4, 8):
            check(lm, done, blocks, scores)
        paths = []
        for r, block in enumerate(blocks):
            nodes = [path_to(n, list(block.parents)) for n in range(-1, len(block.tokens))]
            path = nodes[int(random.integers(len(nodes)))]
            paths.append(path)
            done[r] = [*done[r], *block.taken, *(block.tokens[i] for i in path)]
        scorer.keep(paths)
        assert scorer.lengths == [len(d) for d in done]
        taken = [[int(random.integers(V))] for _ in done]
        if step == 2:  # row 1 leaves, row 2 is forked, and a new row joins
            scorer.select([2, 0, 2])
            done = [done[2], done[0], done[2]]
            scorer.add(1)
            done.append([])
            taken = [[3], [4], [5], [int(t) for t in random.integers(V, size=6)]]


def test_kept_keys_are_those_of_a_fresh_read() -> None:
    lm = model("llama")
    random = np.random.default_rng(5)
    scorer = lm.tree_scorer()
    scorer.add(1)
    text: list[int] = []
    taken = [1, 2, 3]
    for _ in range(6):
        tokens, parents = random_tree(random, 8)
        scorer.score([Block(taken, tokens, parents)])
        path = path_to(int(random.integers(8)), parents)
        scorer.keep([path])
        text += [*taken, *(tokens[i] for i in path)]
        taken = [int(random.integers(V))]
    fresh = lm.tree_scorer()
    fresh.add(1)
    fresh.score([Block(text)])
    fresh.keep([[]])
    for a, b in zip(scorer._cache.layers, fresh._cache.layers, strict=True):
        for side in ("keys", "values"):
            x, y = getattr(a, side)[:, :, : len(text)], getattr(b, side)[:, :, : len(text)]
            assert torch.allclose(x, y, rtol=0, atol=1e-10)


def test_holes_are_repacked_and_buffers_stay_bounded() -> None:
    lm = model("llama")
    scorer = lm.tree_scorer()
    scorer.add(2)
    texts: list[list[int]] = [[], []]
    taken: list[list[int]] = [[1], [2]]
    for step in range(40):
        blocks = [Block(taken[0], [3, 4, 5, 6, 7], [-1, 0, 1, 2, 3]), Block(taken[1], [8], [-1])]
        scorer.score(blocks)
        fast = step % 2
        scorer.keep([[0, 1, 2, 3, 4], []] if fast else [[], [0]])
        texts[0] += taken[0] + ([3, 4, 5, 6, 7] if fast else [])
        texts[1] += taken[1] + ([] if fast else [8])
        taken = [[step % V], [(3 * step) % V]]
    assert scorer._cache.slots - max(scorer.lengths) <= max(64, scorer._cache.slots // 4)
    blocks = [Block(t) for t in taken]
    check(lm, texts, blocks, scorer.score(blocks))


def test_a_long_prompt_is_read_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    from structgen.lm import tree_scoring

    monkeypatch.setattr(tree_scoring, "_MASK_ENTRIES", 50)
    monkeypatch.setattr(tree_scoring, "_PIECE", 7)
    lm = model("mistral-window")
    scorer = lm.tree_scorer()
    scorer.add(2)
    random = np.random.default_rng(0)
    blocks = [Block([int(t) for t in random.integers(V, size=n)], *random_tree(random, 4)) for n in (33, 5)]
    check(lm, [[], []], blocks, scorer.score(blocks))
    assert scorer.forwards > 4


def test_score_tree_is_logprobs_of_the_contexts() -> None:
    lm = model("llama")
    random = np.random.default_rng(2)
    text = [1, 2, 3]
    for length in (0, 2, 5, 1):
        text = [*text[: 2 + length], *(int(t) for t in random.integers(V, size=length))]
        context = lm.start(text)
        tokens, parents = random_tree(random, 6)
        nodes = [context]
        for token, parent in zip(tokens, parents, strict=True):
            nodes.append(nodes[parent + 1].extend(token))
        found = lm.score_tree(context, tokens, parents)
        assert found.dtype == np.float32 and np.allclose(found, lm.logprobs(nodes), atol=1e-5)


def test_what_cannot_score_trees_is_refused_by_name() -> None:
    mamba = transformers.MambaConfig(
        vocab_size=V, hidden_size=16, num_hidden_layers=1, state_size=4, conv_kernel=2, expand=1
    )
    lm = TransformersLM(transformers.MambaForCausalLM(mamba), vocabulary=VOCABULARY)
    with pytest.raises(LanguageModelError, match=r"cannot take refused drafts back|position_ids"):
        lm.tree_scorer()
    neo = transformers.GPTNeoConfig(
        vocab_size=V, hidden_size=16, num_layers=2, num_heads=2, attention_types=[[["global", "local"], 1]]
    )
    with pytest.raises(LanguageModelError, match="distance of slots"):
        TransformersLM(transformers.GPTNeoForCausalLM(neo), vocabulary=VOCABULARY).check_tree_scoring()
    flash = model("llama")
    flash.model.config._attn_implementation = "flash_attention_2"
    with pytest.raises(LanguageModelError, match="attn_implementation='sdpa'"):
        TreeScorer(flash)


def test_a_model_that_ignores_positions_is_found_by_trial(monkeypatch: pytest.MonkeyPatch) -> None:
    for family in FAMILIES:
        model(family).check_tree_scoring()
    lm = model("llama")
    original = lm.model.model.forward

    def deaf(*args: Any, position_ids: Any = None, **kwargs: Any) -> Any:
        return original(*args, **kwargs)

    monkeypatch.setattr(lm.model.model, "forward", deaf)
    with pytest.raises(LanguageModelError, match="does not score trees right"):
        lm.check_tree_scoring()


def test_limits_and_misuse_are_errors() -> None:
    lm = model("llama")
    scorer = lm.tree_scorer()
    scorer.add(1)
    with pytest.raises(ValueError, match="needs a taken token"):
        scorer.score([Block([])])
    with pytest.raises(ContextTooLong, match="would have 513"):
        scorer.score([Block([1] * 511, [1, 1], [-1, 0])])


def test_the_restricted_head_gives_the_same_logits(lm: Any) -> None:
    scorer = lm.tree_scorer()
    scorer.add(1)
    if not scorer.has_plain_head():
        pytest.skip("this family does more than a matrix product behind the last hidden state")
    block = Block([1, 2, 3], [4, 5], [-1, 0])
    hidden = scorer.score([block], hidden=True)[0]
    ids = np.array([0, 7, 31])
    for place, text in enumerate(([1, 2, 3], [1, 2, 3, 4], [1, 2, 3, 4, 5])):
        want = plain(lm, text)[ids].float().numpy()
        assert np.allclose(scorer.head(hidden[place], ids), want, atol=1e-5)


def test_a_head_that_does_more_is_noticed() -> None:
    config = transformers.Gemma2Config(**SMALL, final_logit_softcapping=1.0)
    capped = TransformersLM(transformers.Gemma2ForCausalLM(config).eval(), vocabulary=VOCABULARY)
    assert not capped.tree_scorer().has_plain_head()
