"""TRL's GRPO on constrained answers: rollouts under a grammar, and a loss under the same masks.

Enters: the arguments of `trl.GRPOTrainer`, and a grammar (or one for each prompt). Leaves: a trainer. Cost
beside TRL's own: a mask for each token of the rollout, a replay of each answer (`structgen.rl.replay`), and
logits at the answers' places, which TRL's fused head never writes out.

    trainer = GRPOTrainer(model=model, processing_class=tokenizer, reward_funcs=reward, args=config,
                          train_dataset=prompts, grammar=grammar)
    trainer.train()

The problem. The sampler draws a token with p(token) / Z, where Z is the probability of all allowed tokens.
TRL takes log p(token) for the token's log-probability. At each token the ratio of the two is Z, and the
gradient of log p pushes at tokens that were forced: with a negative advantage it takes probability away from
a brace that had no alternative.

The idea. Sampler and loss both take the law of the mask. Rollouts return the log-probability of each token
among the allowed ones, at the sampler's temperature. The loss takes `structgen.rl.constrained_logprobs`,
whose masks are computed from the ids. Then pi_train / pi_rollout = 1 before the first step of the optimizer,
and the gradient at a forced token is 0. The metric `structgen/log_ratio` is the largest |log ratio| of a
batch.

TRL has no public hook for the sampler or for the loss: `rollout_func` gets prompts before they are tokenized,
and log-probabilities have no hook. So two methods of `trl.GRPOTrainer` are overridden, in the form of TRL
1.16: `_generate_single_turn` and `_get_per_token_logps_and_entropies`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

try:
    import torch
    import trl
    from transformers import GenerationConfig
    from trl.models import unwrap_model_for_generation
    from trl.trainer.utils import pad
except ImportError as _missing:
    from .._extras import missing

    raise missing(_missing, "training with TRL") from None

from .. import rl
from ..grammar import CompiledGrammar
from .transformers import LogitsProcessor

Grammars = CompiledGrammar | Callable[[Sequence[int]], CompiledGrammar]


class GRPOTrainer(trl.GRPOTrainer):  # type: ignore[misc]
    """`trl.GRPOTrainer` whose answers are texts of a grammar.

    Args:
        grammar: the grammar of all answers, or a function of a prompt's ids that gives the answer's. It is
            compiled for
            the vocabulary of the trainer's tokenizer (`Vocabulary.from_huggingface`).
        constrained: False leaves TRL's own loss, whose law is not the sampler's. For comparisons.
        options: as `trl.GRPOTrainer` takes them.

    Raises:
        ValueError: what would make another law than that of the masks (`top_k`, `top_p`, `min_p`,
            `repetition_penalty`, `generation_kwargs`, another engine for rollouts), or what this loss has
            not: tools, images, an entropy bonus, router losses.
    """

    def __init__(self, *args: Any, grammar: Grammars, constrained: bool = True, **options: Any) -> None:
        super().__init__(*args, **options)
        self.grammar: Grammars = grammar
        self.constrained: bool = constrained
        self._said: torch.Tensor | None = None
        _check(self)

    def _generate_single_turn(
        self, prompt_ids: Any, images: Any, multimodal_fields: Any, num_generations: int, *more: Any
    ) -> tuple[list[list[int]], list[list[float]]]:
        """Samples answers. Also returns, for each token, the log of its probability among the allowed
        tokens."""
        fill, device = self._tokenizer.pad_token_id, self.accelerator.device
        prompts = [torch.tensor(ids) for ids in prompt_ids]
        ids = pad(prompts, padding_value=fill, padding_side="left").to(device)
        seen = pad([torch.ones_like(p) for p in prompts], padding_value=0, padding_side="left").to(device)
        width, law = ids.shape[1], _Law(self.temperature)
        masks = LogitsProcessor([self._grammar_of(prompt) for prompt in prompt_ids], width)
        how = GenerationConfig(  # type: ignore[no-untyped-call]
            max_new_tokens=self.max_completion_length, do_sample=True, top_k=0, top_p=1.0, temperature=1.0,
            pad_token_id=fill, eos_token_id=self.eos_token_ids, disable_compile=True,
        )  # fmt: skip
        with (
            unwrap_model_for_generation(
                self.model_wrapped,
                self.accelerator,
                gather_deepspeed3_params=self.args.ds3_gather_for_generation,
                gradient_checkpointing_kwargs=self.args.gradient_checkpointing_kwargs,
            ) as model,
            torch.no_grad(),
        ):
            found = model.generate(
                input_ids=ids, attention_mask=seen, generation_config=how, logits_processor=[masks, law]
            )
        answers = found[:, width:]
        said = law.logprobs(found).tolist()
        lengths = [_length(row, self.eos_token_ids) for row in answers.tolist()]
        kept = zip(answers.tolist(), said, lengths, strict=True)
        tokens, logprobs = [], []
        for row, logs, length in kept:
            tokens.append(row[:length])
            logprobs.append(logs[:length])
        return tokens, logprobs

    def _grammar_of(self, prompt: Sequence[int]) -> CompiledGrammar:
        return self.grammar if isinstance(self.grammar, CompiledGrammar) else self.grammar(list(prompt))

    def _get_per_token_logps_and_entropies(
        self,
        model: Any,
        input_ids: torch.Tensor,
        attention_mask: torch.Tensor,
        logits_to_keep: int,
        batch_size: int | None = None,
        compute_entropy: bool = False,
        **more: Any,
    ) -> tuple[torch.Tensor, torch.Tensor | None, torch.Tensor | None]:
        """Returns log-softmax over the allowed tokens, shape (rows, logits_to_keep). Entropies have no
        gradient."""
        if not self.constrained:
            plain: tuple[torch.Tensor, Any, Any] = super()._get_per_token_logps_and_entropies(
                model, input_ids, attention_mask, logits_to_keep, batch_size, compute_entropy, **more
            )
            self._said = plain[0].detach()
            return plain
        step = batch_size or len(input_ids)
        logps: list[torch.Tensor] = []
        entropies: list[torch.Tensor] = []
        for at in range(0, len(input_ids), step):
            ids, mask = input_ids[at : at + step], attention_mask[at : at + step]
            with self.accelerator.autocast():
                out = model(input_ids=ids, attention_mask=mask, logits_to_keep=logits_to_keep + 1)
            for row, seen, logits in zip(ids, mask, out.logits[:, :-1], strict=True):
                prompt = row[:-logits_to_keep][seen[:-logits_to_keep].bool()].tolist()
                length = int(seen[-logits_to_keep:].sum())
                answer = row[-logits_to_keep:][:length]
                masks = rl.replay(self._grammar_of(prompt), answer.cpu())
                said = rl.constrained_logprobs(logits[:length], answer, masks, temperature=self.temperature)
                logps.append(torch.nn.functional.pad(said, (0, logits_to_keep - length)))
                if compute_entropy:
                    spread = rl.constrained_entropies(logits[:length], masks, temperature=self.temperature)
                    entropies.append(torch.nn.functional.pad(spread, (0, logits_to_keep - length)))
        stacked = torch.stack(logps)
        self._said = stacked.detach()
        return stacked, torch.stack(entropies) if compute_entropy else None, None

    def _compute_loss(self, model: Any, inputs: dict[str, Any]) -> Any:
        loss = super()._compute_loss(model, inputs)
        drawn = inputs.get("sampling_per_token_logps")
        if drawn is not None and self._said is not None:
            gap = ((self._said - drawn) * inputs["completion_mask"]).abs().max()
            mode = "train" if self.model.training else "eval"
            self._metrics[mode]["structgen/log_ratio"].append(self.accelerator.gather(gap).max().item())
        return loss


class _Law:
    """The sampler's last logits processor. It divides by the temperature, and keeps the law of each draw."""

    def __init__(self, temperature: float) -> None:
        self._temperature = temperature
        # the log-probabilities of the draw; the next call shows which token was drawn
        self._before: torch.Tensor | None = None
        self._said: list[torch.Tensor] = []

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        self._note(input_ids)
        scaled = scores.float() / self._temperature
        self._before = torch.log_softmax(scaled, -1)
        return scaled

    def _note(self, ids: torch.Tensor) -> None:
        if self._before is not None:
            self._said.append(self._before.gather(1, ids[:, -1:])[:, 0])
            self._before = None

    def logprobs(self, ids: torch.Tensor) -> torch.Tensor:
        """Returns log-probabilities of the drawn tokens, shape (rows, answer). Values behind an end have no
        meaning."""
        self._note(ids)
        return torch.stack(self._said, 1)


def _length(row: list[int], ends: Sequence[int]) -> int:
    """Returns the number of tokens up to the first end, which is included."""
    return next((i + 1 for i, token in enumerate(row) if token in ends), len(row))


def _check(trainer: GRPOTrainer) -> None:
    args = trainer.args
    neutral: dict[str, tuple[Any, ...]] = {
        "top_k": (0, None),
        "top_p": (1.0, None),
        "min_p": (None, 0.0),
        "repetition_penalty": (1.0, None),
        "generation_kwargs": (None, {}),
        "entropy_coef": (0.0,),
        "use_vllm": (False,),
        "use_transformers_continuous_batching": (False,),
    }
    for name, values in neutral.items():
        given = getattr(args, name, values[0])
        if given not in values:
            raise ValueError(f"{name}={given!r} is not for constrained answers: leave it at {values[0]!r}")
    for name in ("tools", "rollout_func", "environment_factories"):
        if getattr(trainer, name, None):
            raise ValueError(f"{name} is not for constrained answers: leave it out")
    if getattr(trainer, "aux_loss_enabled", False):
        raise ValueError("router losses are not for constrained answers: set router_aux_loss_coef to 0")
