"""TRL's GRPO under a grammar: rollouts match the grammar, and trainer and sampler use one law.

Oracles: autograd over a dense mask, and TRL's own loss, whose ratio is the probability mass inside the masks.
"""

from __future__ import annotations

import json
import os
from typing import Any

import numpy as np
import pytest

for _needed in ("torch", "trl", "datasets"):
    pytest.importorskip(_needed, reason=f"{_needed} is not installed: pip install trl")

import torch  # noqa: E402

import structgen as sg  # noqa: E402
from oracles import grpo  # noqa: E402
from structgen import rl  # noqa: E402

LONG = bool(os.environ.get("STRUCTGEN_LONG"))


@pytest.fixture(scope="module")
def trainer(tmp_path_factory: Any) -> Any:
    return grpo.trainer(0, True, 2, 1e-2, str(tmp_path_factory.mktemp("trl")), temperature=0.7)


def rollout(trainer: Any, count: int) -> tuple[list[list[int]], list[list[int]], list[list[float]]]:
    texts = [f"a {colour} chair: " for colour in grpo.COLOURS[:count]]
    prompts = [trainer.processing_class(text)["input_ids"] for text in texts]
    answers, said = trainer._generate_single_turn(prompts, None, {}, 1)
    return prompts, answers, said


def test_rollouts_are_texts_of_the_grammar(trainer: Any) -> None:
    _, answers, said = rollout(trainer, 8)
    for ids, logs in zip(answers, said, strict=True):
        value = json.loads(trainer.processing_class.decode(ids, skip_special_tokens=True))
        assert value["colour"] in grpo.COLOURS and len(ids) == len(logs)
        assert max(logs) <= 1e-6 and logs.count(0.0) > 2  # a forced token has the log-probability 0


def test_trainer_and_sampler_have_one_law(trainer: Any) -> None:
    """pi_train / pi_rollout is 1 up to 1e-5 in float32, for every token of padded batches."""
    tokens = 0
    while tokens < (100_000 if LONG else 1_000):
        prompts, answers, said = rollout(trainer, 8)
        ids, seen = _padded(trainer, prompts, answers)
        keep = max(map(len, answers))
        found, entropies, _ = trainer._get_per_token_logps_and_entropies(
            trainer.model, ids, seen, keep, batch_size=3, compute_entropy=True
        )
        for row, logs in zip(found.detach().numpy(), said, strict=True):
            assert np.abs(np.expm1(row[: len(logs)] - np.array(logs))).max() < 1e-5
            assert not row[len(logs) :].any()
            tokens += len(logs)
        assert (entropies >= -1e-6).all()


def test_gradients_are_those_of_a_dense_mask(trainer: Any) -> None:
    prompts, answers, _ = rollout(trainer, 2)
    ids, seen = _padded(trainer, prompts, answers)
    keep = max(map(len, answers))
    weights = torch.randn(2, keep, generator=torch.Generator().manual_seed(1))
    found, entropies, _ = trainer._get_per_token_logps_and_entropies(
        trainer.model, ids, seen, keep, compute_entropy=True
    )
    mine = torch.autograd.grad((found * weights).sum(), list(trainer.model.parameters()))

    laws = dense_laws(trainer, trainer.model, ids, seen, answers)
    total = torch.zeros(())
    for answer, law, weight, spread in zip(answers, laws, weights, entropies, strict=True):
        total = total + (law.gather(1, torch.tensor(answer)[:, None])[:, 0] * weight[: len(answer)]).sum()
        entropy = -(law.exp() * law.clamp(min=-1e9)).sum(-1)
        torch.testing.assert_close(spread[: len(answer)], entropy, atol=1e-4, rtol=1e-4)
    for one, other in zip(mine, torch.autograd.grad(total, list(trainer.model.parameters())), strict=True):
        torch.testing.assert_close(one, other, atol=1e-4, rtol=1e-3)


def dense_laws(trainer: Any, model: Any, ids: torch.Tensor, seen: torch.Tensor, answers: Any) -> Any:
    """Returns the log-probability of each token of each answer, computed with a dense mask."""
    keep = max(map(len, answers))
    logits = model(input_ids=ids, attention_mask=seen).logits[:, -keep - 1 : -1] / trainer.temperature
    for answer, scores in zip(answers, logits, strict=True):
        words = rl.replay(trainer.grammar, answer).bitmask()
        bits = np.unpackbits(words.view(np.uint8), axis=1, bitorder="little")
        bits = bits[:, : scores.shape[1]].astype(bool)
        yield scores[: len(answer)].masked_fill(~torch.from_numpy(bits), -torch.inf).log_softmax(-1)


def _padded(trainer: Any, prompts: Any, answers: Any) -> tuple[torch.Tensor, torch.Tensor]:
    fill, wide, long = trainer.processing_class.pad_token_id, max(map(len, prompts)), max(map(len, answers))
    ids, seen = [], []
    for p, a in zip(prompts, answers, strict=True):
        ids.append([fill] * (wide - len(p)) + p + a + [fill] * (long - len(a)))
        seen.append([0] * (wide - len(p)) + [1] * (len(p) + len(a)) + [0] * (long - len(a)))
    return torch.tensor(ids), torch.tensor(seen)


@pytest.mark.parametrize("constrained", [True, False])
def test_a_step_of_training_tells_the_ratio(constrained: bool, tmp_path: Any) -> None:
    made = grpo.trainer(1, constrained, 1, 1e-2, str(tmp_path), loss_type="grpo")
    made.train()
    (ratio,) = (entry["structgen/log_ratio"] for entry in made.state.log_history if "reward" in entry)
    assert ratio < 1e-5 if constrained else ratio > 1.0


def test_the_reference_of_beta_has_the_law_of_the_masks(tmp_path: Any) -> None:
    """TRL's KL term compares the log-probabilities of both models under equal masks."""
    made = grpo.trainer(1, True, 2, 1e-2, str(tmp_path), beta=0.5, temperature=0.7)
    made.train()
    first, second = (entry for entry in made.state.log_history if "reward" in entry)
    assert abs(first["kl"]) < 1e-6 < second["kl"]  # the policy starts equal to its reference
    assert max(first["structgen/log_ratio"], second["structgen/log_ratio"]) < 1e-5
    batch = made._generate_and_score_completions([{"prompt": f"a {c} chair: "} for c in grpo.COLOURS] * 2)
    ids = torch.cat([batch["prompt_ids"], batch["completion_ids"]], 1)
    seen = torch.cat([batch["prompt_mask"], batch["completion_mask"]], 1)
    lengths = batch["completion_mask"].sum(1).tolist()
    answers = [row[:n] for row, n in zip(batch["completion_ids"].tolist(), lengths, strict=True)]
    laws = dense_laws(made, made.ref_model, ids, seen, answers)
    for found, answer, law in zip(batch["ref_per_token_logps"], answers, laws, strict=True):
        wanted = law.gather(1, torch.tensor(answer)[:, None])[:, 0]
        torch.testing.assert_close(found[: len(answer)], wanted, atol=1e-4, rtol=1e-4)


def test_a_grammar_for_each_prompt(tmp_path: Any) -> None:
    made = grpo.trainer(1, True, 1, 1e-2, str(tmp_path))
    compiler, asked = sg.Compiler(made.grammar.vocabulary), []

    def of(prompt: Any) -> Any:
        asked.append(tuple(prompt))
        return compiler.choice(["yes"] if len(asked) % 2 else ["no"])

    made.grammar = of
    prompts, answers, _ = rollout(made, 2)
    assert [made.processing_class.decode(a, skip_special_tokens=True) for a in answers] == ["yes", "no"]
    assert asked == [tuple(p) for p in prompts]


@pytest.mark.parametrize("wrong", [{"top_k": 5}, {"top_p": 0.9}, {"repetition_penalty": 1.1}, {"min_p": 0.1}])
def test_what_makes_another_law_is_refused(wrong: Any, tmp_path: Any) -> None:
    with pytest.raises(ValueError, match=f"{next(iter(wrong))}=.* leave it at"):
        grpo.trainer(1, True, 1, 1e-2, str(tmp_path), **wrong)
