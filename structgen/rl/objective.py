"""Log-probabilities of texts under their grammar, for training.

Enters: logits with or without a gradient, token ids, masks (`masks.py`). Leaves: for each token the log of
its probability among the allowed tokens; certified bounds on the log of a whole text's normaliser. Cost: the
forward pass reads the logits in chunks and copies one chunk at a time. The backward pass needs the gradient,
which is as large as the logits, and one chunk.

Two laws. A sampler that masks each step draws from the *local* law, whose log is the sum of
`constrained_logprobs`. The *aligned* law is the model's own, given that the text is in the grammar:

    log P(text | grammar) = sum of log p(token | what precedes it) - log Z,    Z = P(a text is in the grammar)

`log_normaliser` brackets log Z by the trie of ASAp (Park et al. 2024, "Grammar-Aligned Decoding"). Z depends
on the model, the prompt and the grammar, so a trainer needs it once for each prompt and not for each text.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .masks import Masks

if TYPE_CHECKING:
    import torch


def constrained_logprobs(
    logits: torch.Tensor,
    token_ids: Any,
    masks: Masks,
    *,
    temperature: float = 1.0,
    chunk: int = 64,
) -> torch.Tensor:
    """Returns the log-softmax over the allowed tokens, at the drawn tokens. It is differentiable in the
    logits.

    Args:
        logits: float32, float16, bfloat16 or float64, shape (n, width), on any device; width may exceed V.
            Row i has the model's logits for token i.
        token_ids: n ids, as `replay` takes them.
        masks: the result of `replay` for these ids, or this result merged with what a sampler kept.
        temperature: divides the logits.
        chunk: the number of rows that are processed at once.

    Returns:
        Shape (n,), in nats: float32, or float64 for float64 logits.

    Raises:
        ValueError: shapes do not fit, the temperature or the chunk is not positive, or a mask forbids its
            token; the message names the token and its place.
    """
    from ._torch import allowed_logprobs, tokens_of

    _check(logits, masks, temperature, chunk)
    return allowed_logprobs(logits, tokens_of(token_ids, masks, logits.device), masks, temperature, chunk)


def constrained_entropies(
    logits: torch.Tensor, masks: Masks, *, temperature: float = 1.0, chunk: int = 64
) -> torch.Tensor:
    """Returns the entropy of each draw among the allowed tokens, in nats, shape (n,). It has no gradient.

    Args, Raises: as `constrained_logprobs`.
    """
    from ._torch import allowed_entropies

    _check(logits, masks, temperature, chunk)
    return allowed_entropies(logits, masks, temperature, chunk)


def _check(logits: torch.Tensor, masks: Masks, temperature: float, chunk: int) -> None:
    if logits.ndim != 2 or logits.shape[0] != len(masks) or logits.shape[1] < masks.vocab_size:
        raise ValueError(
            f"the logits have the shape {tuple(logits.shape)}, not ({len(masks)}, {masks.vocab_size} or more)"
        )
    if not temperature > 0 or chunk < 1:
        raise ValueError(f"temperature and chunk are positive, not {temperature!r} and {chunk!r}")


def log_normaliser(
    model: Any,
    prompt: Any,
    grammar: Any,
    *,
    draws: int = 1000,
    tolerance: float = 1e-3,
    **options: Any,
) -> tuple[float, float]:
    """Returns certified bounds (low, high) on log Z, the log-probability that a text of the model is in the
    grammar.

    The bounds are equal (up to rounding) once the draws have met all of the grammar's probability. The lower
    bound is -inf if no text was found.

    Args:
        model, prompt: as in `sg.sample`. draws: texts drawn at most.
        grammar: a `CompiledGrammar` or the text of a grammar, as `grammar=` of `sg.sample`; or a JSON Schema
            or a Python type, as its `schema`. With None, `options` has the constraint: `regex=...`.
        tolerance: the draws end once 1 - exp(low - high) is no larger.
        options: others of `sg.sample`, such as `max_tokens`, `temperature`, `seed`, `trie_bytes`.

    Raises:
        ValueError: a potential without a bound. Else what `sg.sample` raises.
    """
    from ..grammar import CompiledGrammar
    from ..sampling import sample
    from ..templates import Template

    kind = "grammar" if isinstance(grammar, CompiledGrammar | Template | str) else "schema"
    found = sample(model, prompt, method="asap", n=draws, until_tv=tolerance, **{kind: grammar, **options})
    if found.log_bracket is None:
        raise ValueError("a potential that is not bounded by 1 leaves the normaliser without a bound")
    return found.log_bracket
