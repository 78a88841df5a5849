"""The target itself with layers left out, as a draft model (self-speculation, SWIFT).

Enters: a loaded model of transformers. Leaves: a model with fewer layers that shares the weights of the first
one. Cost: no memory for weights; a forward pass for each node, which is cheaper by the skipped layers.

Xia et al. 2024 (SWIFT), Zhang et al. 2024 (Draft & Verify). Trials show which layers can be skipped. One
after the other, that middle layer is skipped whose absence changes the most probable token at the fewest
places of a sample. layer_choice.py makes such trials while texts are generated.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from ...lm.base import LanguageModelError
from .draft_model import DraftModel

if TYPE_CHECKING:
    from ...lm.transformers import TransformersLM


def layer_skip(
    lm: TransformersLM, sample: Sequence[int], *, share: float = 0.5, width: int = 1
) -> DraftModel:
    """Returns a draft model out of the target's own layers.

    Args:
        lm: the target.
        sample: ids of a typical text, some dozens of them, to choose the layers by.
        share: the share of the layers to skip, 0 to 1.
        width: the number of children offered to each node.

    Raises:
        LanguageModelError: the model's layers are not a list that can be shortened.
    """
    if not hasattr(lm, "model"):
        raise LanguageModelError(
            f"a {type(lm).__name__} has no layers to skip: load the model with TransformersLM"
        )
    skipped = choose_layers(lm, sample, share)
    return DraftModel(without_layers(lm, skipped), width=width, name="layer skip")


def choose_layers(lm: TransformersLM, sample: Sequence[int], share: float) -> list[int]:
    """Returns the layers to skip, ascending. They are chosen greedily; the first and the last layer always
    stay."""
    if not 0.0 < share < 1.0:
        raise ValueError(f"share is between 0 and 1, not {share}")
    count = len(layers_of(lm.model))
    skipped: list[int] = []
    for _ in range(min(round(share * count), count - 2)):
        free = [i for i in range(1, count - 1) if i not in skipped]
        best = max(free, key=lambda i: agreement(lm, without_layers(lm, [*skipped, i]), sample))
        skipped.append(best)
    if not skipped:
        raise LanguageModelError(f"a model of {count} layers has none to skip")
    return sorted(skipped)


def agreement(lm: TransformersLM, other: TransformersLM, sample: Sequence[int]) -> float:
    """Returns the share of the sample's places at which both models have the same most probable token."""
    import torch

    ids = torch.tensor([list(sample)], device=lm.model.device)
    with torch.inference_mode():
        own = lm.model(input_ids=ids, use_cache=False).logits.argmax(-1)
        theirs = other.model(input_ids=ids, use_cache=False).logits.argmax(-1)
    return float((own == theirs).float().mean())


def without_layers(lm: TransformersLM, skipped: Iterable[int]) -> TransformersLM:
    """Returns a model that shares the weights of `lm` and lacks these layers.

    Raises:
        LanguageModelError: the model's layers are not a list that can be shortened, or cannot be skipped.
    """
    import torch

    from ...lm.transformers import TransformersLM

    layers = layers_of(lm.model)
    gone = set(skipped)
    if not gone <= set(range(1, len(layers))):
        raise LanguageModelError(f"layers 1 to {len(layers) - 1} can be skipped, not {sorted(gone)}")
    kept = [i for i in range(len(layers)) if i not in gone]
    model = twin(lm.model)
    base = model.base_model
    twins = []
    for place, i in enumerate(kept):
        layer = twin(layers[i])
        # Attention finds its keys by this number, and the cache now has fewer layers.
        for name, part in list(layer._modules.items()):
            if part is not None and hasattr(part, "layer_idx"):
                layer._modules[name] = twin(part)
                layer._modules[name].layer_idx = place
        if hasattr(layer, "layer_idx"):
            layer.layer_idx = place
        twins.append(layer)
    inner = twin(base)
    inner._modules["layers"] = torch.nn.ModuleList(twins)
    model._modules[type(lm.model).base_model_prefix] = inner
    config = copy.deepcopy(lm.model.config)
    config.num_hidden_layers = len(kept)
    if getattr(config, "layer_types", None):
        config.layer_types = [config.layer_types[i] for i in kept]
    model.config = inner.config = config
    return TransformersLM(model, lm.tokenizer, vocabulary=lm.vocabulary, max_context=lm.max_context)


def layers_of(model: Any) -> Any:
    """Returns the list of a model's layers. Raises a LanguageModelError if the model has no list of layers
    that could be shortened."""
    import torch

    base = getattr(model, "base_model", None)
    layers = getattr(base, "layers", None)
    if base is model or not isinstance(layers, torch.nn.ModuleList):
        raise LanguageModelError(f"{type(model).__name__} has no list of layers to skip from")
    return layers


def twin(module: Any) -> Any:
    """Returns a new module with the same parameters and submodules."""
    found = copy.copy(module)
    found._modules = dict(module._modules)
    found.__dict__ = {**module.__dict__, "_modules": found._modules}
    return found
