"""Masked-diffusion models: they read a row of tokens, some of them masked, and give scores for every slot.

Enters: a prompt's ids and a row of slots. Leaves: logits of shape (slots, vocabulary). Cost: one forward over
prompt and slots a call; nothing is kept from one call to the next, because every slot attends to every other
slot.

`sg.denoise` uses models through the protocol `DiffusionLM`. `TransformersDiffusionLM` is for models like
LLaDA and Dream: masked language models of transformers or of a repository's own code. Their forward takes
`input_ids` and returns `logits` for each position.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from .._extras import missing
from .._tokenizers.hub import hub_options
from ..errors import VocabularyError
from ..vocabulary import Vocabulary
from .base import ContextTooLong, LanguageModelError
from .transformers import _positions, _vocabulary, _width

if TYPE_CHECKING:
    import torch


@runtime_checkable
class DiffusionLM(Protocol):
    """The protocol of a model for `sg.denoise`."""

    @property
    def vocabulary(self) -> Vocabulary:
        """The bytes of the ids that the model predicts."""
        ...

    @property
    def mask_token_id(self) -> int:
        """The id that stands for an unknown token."""
        ...

    def encode(self, prompt: Any) -> list[int]:
        """Returns the ids of a prompt."""
        ...

    def logits(self, context: Sequence[int], canvas: Sequence[int]) -> npt.NDArray[np.float32]:
        """Returns scores of shape (slots, vocabulary). In the row of slots, each masked slot holds the mask
        id."""
        ...


class TransformersDiffusionLM:
    """A masked-diffusion model of transformers with its tokenizer.

    Args:
        model: a loaded model with bidirectional attention; it is put into evaluation mode.
        tokenizer: the model's tokenizer; None if `vocabulary` is given and prompts are ids.
        vocabulary: the bytes of the ids; made from the tokenizer by default.
        mask_token_id: by default the tokenizer's or the configuration's.
        shifted: whether the logits of a position are for the next position, as in models that were made from
            causal ones (Dream). None takes the value for the model type in the configuration.

    Raises:
        LanguageModelError: no mask token is known, so this is no masked-diffusion model.
        VocabularyError: the tokenizer belongs to another model.
    """

    def __init__(
        self,
        model: Any,
        tokenizer: Any = None,
        *,
        vocabulary: Vocabulary | None = None,
        mask_token_id: int | None = None,
        shifted: bool | None = None,
    ) -> None:
        if vocabulary is None and tokenizer is None:
            raise VocabularyError("a model needs its tokenizer, or a vocabulary")
        self.model: Any = model.eval()
        self.tokenizer = tokenizer
        config = getattr(model, "config", None)
        if mask_token_id is None:
            mask_token_id = getattr(tokenizer, "mask_token_id", None)
        if mask_token_id is None:
            mask_token_id = getattr(config, "mask_token_id", None)
        if mask_token_id is None:
            raise LanguageModelError(
                f"{type(model).__name__} has no mask token, so it is no masked-diffusion model; "
                "if it has one, give its id as mask_token_id"
            )
        self._vocabulary = vocabulary or _vocabulary(model, tokenizer)
        width = _width(model)
        if width is not None and self._vocabulary.vocab_size > width:
            raise VocabularyError(
                f"the vocabulary has {self._vocabulary.vocab_size} ids and the model {width} logits"
            )
        self._mask = int(mask_token_id)
        self._shifted = getattr(config, "model_type", "").lower() == "dream" if shifted is None else shifted
        self._most = _positions(model)

    @classmethod
    def from_pretrained(
        cls,
        path_or_id: str | os.PathLike[str],
        *,
        device: Any = None,
        dtype: Any = None,
        mask_token_id: int | None = None,
        shifted: bool | None = None,
        **arguments: Any,
    ) -> TransformersDiffusionLM:
        """Returns a model and its tokenizer from a folder or the hub.

        Args:
            device: where the model goes; a GPU if there is one.
            dtype: the type of the weights; by default the type in the files.
            arguments: further arguments of `from_pretrained`, ``trust_remote_code=True`` for models whose
                code is in their repository.

        Raises:
            LanguageModelError: there is no such model, or it has no mask token.
        """
        try:
            import torch
            import transformers
        except ImportError as error:
            raise missing(error, "diffusion models") from None
        where = device or ("cuda" if torch.cuda.is_available() else "cpu")
        try:
            reach = hub_options(os.fspath(path_or_id))
        except FileNotFoundError as error:
            raise LanguageModelError(
                f"{path_or_id} cannot be loaded as a masked-diffusion model: {error}"
            ) from None
        more = {**reach, **arguments, **({} if dtype is None else {"dtype": dtype})}
        refused: list[str] = []
        for kind in (transformers.AutoModelForMaskedLM, transformers.AutoModel):
            try:
                model = kind.from_pretrained(path_or_id, **more)
            except (OSError, ValueError) as error:
                refused.append(str(error).splitlines()[0])
                continue
            if kind is transformers.AutoModel and not hasattr(model, "get_output_embeddings"):
                refused.append(f"{type(model).__name__} predicts no tokens")
                continue
            tokenizer = transformers.AutoTokenizer.from_pretrained(
                path_or_id, **reach, **{k: v for k, v in arguments.items() if k == "trust_remote_code"}
            )
            return cls(model.to(where), tokenizer, mask_token_id=mask_token_id, shifted=shifted)
        raise LanguageModelError(f"{path_or_id} cannot be loaded as a masked-diffusion model: {refused[0]}")

    @property
    def vocabulary(self) -> Vocabulary:
        return self._vocabulary

    @property
    def mask_token_id(self) -> int:
        return self._mask

    def encode(self, prompt: Any) -> list[int]:
        if isinstance(prompt, str):
            if self.tokenizer is None:
                raise LanguageModelError("a model without a tokenizer takes a prompt as ids")
            return list(self.tokenizer.encode(prompt))
        return [int(t) for t in prompt]

    def logits(self, context: Sequence[int], canvas: Sequence[int]) -> npt.NDArray[np.float32]:
        import torch

        ids = [*context, *canvas]
        if self._most is not None and len(ids) > self._most:
            raise ContextTooLong(f"{len(ids)} tokens of prompt and slots, and the model has {self._most}")
        place = next(self.model.parameters()).device
        with torch.inference_mode():
            row: torch.Tensor = self.model(input_ids=torch.tensor([ids], device=place)).logits[0]
        first = len(context) - self._shifted
        if first < 0:  # No token stands before the first slot, so the first row serves twice.
            row, first = torch.cat([row[:1], row]), 0
        kept = row[first : first + len(canvas), : self._vocabulary.vocab_size]
        return kept.float().cpu().numpy()
