"""Training on constrained texts: the masks of their generation, and log-probabilities under these masks.

Enters: a compiled grammar, token ids, a model's logits. Leaves: the masks that stood in front of each token
(`replay`), log-probabilities under them with a gradient (`constrained_logprobs`), and certified bounds on
the probability that a text of the model is in the grammar (`log_normaliser`).
Cost: `replay` takes a step and a look into a table for each token; torch is imported by what uses it.
"""

from .masks import Masks, replay, replay_many
from .objective import constrained_entropies, constrained_logprobs, log_normaliser

__all__ = [
    "Masks",
    "constrained_entropies",
    "constrained_logprobs",
    "log_normaliser",
    "replay",
    "replay_many",
]
