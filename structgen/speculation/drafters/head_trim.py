"""A draft model whose head has the rows of frequent tokens only.

Enters: a loaded model of transformers, and text similar to what is drafted. Leaves: a drafter that shares the
model's weights, with a copy of `keep` rows of its head. Cost: counting the text, and a forward pass for each
node, whose head computes only the kept rows. For a small vocabulary the copy costs more than it saves.

Goel et al. 2025 (VocabTrim), Zhao et al. 2025 (FR-Spec): if the vocabulary is large, a draft model spends
much of its time in the head, while a few thousand tokens make up most of any text. The law: q is the draft
model's law over the kept tokens, normalised, and 0 elsewhere. Rare tokens are never drafted. They are drawn
from the residual (p - q)+, so every rule keeps its law. A kept set may be any set, and may change between
texts.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from ..._checks import whole
from ..._fork import hold_over_forks
from ...lm.base import LanguageModelError
from ..base import Cursor, Session, Start, Step
from .draft_model import DraftModel
from .layer_skip import twin
from .model_cursor import ModelDrafter

if TYPE_CHECKING:
    from ...lm.transformers import TransformersLM


class TrimmedHead(ModelDrafter):
    """Drafts by a model with a trimmed head.

    Args:
        lm: the draft model, whose head stays as it is.
        seen: a text of the kind that is drafted, or its ids, for the first choice of rows.
        keep: the number of tokens whose rows stay, ends included.
        again: after so many emitted tokens the rows are chosen again, by `seen` and all emitted tokens. Texts
            that have begun keep their rows. With 0 the rows are never chosen again.
        width: the number of children offered at each node.
        name: the drafter's name in statistics.

    Raises:
        LanguageModelError: the model's logits are not its head's rows times a state.
    """

    def __init__(
        self,
        lm: TransformersLM,
        seen: str | bytes | Sequence[int] = (),
        *,
        keep: int = 512,
        again: int = 0,
        width: int = 2,
        name: str = "trimmed head",
    ) -> None:
        super().__init__(lm, width, name)
        self.lm: TransformersLM = lm
        self.keep: int = whole("keep", keep, 1)
        self.again: int = whole("again", again, 0)
        self.counts: Counter[int] = Counter()
        self._lock = threading.Lock()
        hold_over_forks(self)
        self._fresh = 0
        if isinstance(seen, (str, bytes)):
            seen = lm.vocabulary.encode(seen)
        self.counts.update(seen)
        self._draft = self._trimmed()

    @property
    def rows(self) -> list[int]:
        """The tokens that are kept now, ascending."""
        return frequent(self.lm, self.counts, self.keep)

    def open(self, start: Start) -> Session:
        with self._lock:
            if self.again and self._fresh >= self.again:
                self._draft, self._fresh = self._trimmed(), 0
            return _Session(self, self._draft.open(start))

    def learn(self, tokens: Sequence[int]) -> None:
        """Counts the emitted tokens."""
        with self._lock:
            self.counts.update(tokens)
            self._fresh += len(tokens)

    def _trimmed(self) -> DraftModel:
        return DraftModel(with_rows(self.lm, self.rows), width=self.width, name=self.name)


class _Session:
    def __init__(self, drafter: TrimmedHead, session: Session) -> None:
        self._drafter = drafter
        self._session = session

    def cursor(self) -> Cursor | None:
        return self._session.cursor()

    def probes(self) -> Sequence[int]:
        return ()

    def accept(self, step: Step) -> None:
        self._drafter.learn(step.tokens)
        self._session.accept(step)

    def close(self) -> None:
        self._session.close()


def frequent(lm: TransformersLM, counts: Counter[int], keep: int) -> list[int]:
    """Returns the ends and the most frequent tokens, `keep` in all, ascending. If too few tokens were
    counted, low ids fill the list, because tokenizers give low ids to frequent merges.
    """
    size = lm.vocabulary.vocab_size
    ends = [token for token in lm.eos_token_ids if token < size]
    order = sorted(range(size), key=lambda token: (-counts[token], token))
    return sorted(list(dict.fromkeys([*ends, *order]))[:keep])


def with_rows(lm: TransformersLM, rows: Iterable[int]) -> TransformersLM:
    """Returns a model that shares the weights of `lm`, with a head of these rows; all other logits are -inf.

    Raises:
        LanguageModelError: the model's logits are not its head's rows times a state.
    """
    import torch

    from ...lm.transformers import TransformersLM

    if not isinstance(lm, TransformersLM):
        raise LanguageModelError(
            f"the head of a {type(lm).__name__} cannot be trimmed: load the model with TransformersLM"
        )
    head = getattr(lm.model, "get_output_embeddings", lambda: None)()
    place = next((name for name, part in lm.model._modules.items() if part is head), None)
    if place is None or not isinstance(head, torch.nn.Linear) or not lm.tree_scorer().has_plain_head():
        raise LanguageModelError(f"the head of {type(lm.model).__name__} is not a matrix that can be trimmed")
    model = twin(lm.model)
    model._modules[place] = _head(head, sorted(set(rows)))
    return TransformersLM(
        model,
        lm.tokenizer,
        vocabulary=lm.vocabulary,
        max_context=lm.max_context,
    )


def _head(full: Any, rows: Sequence[int]) -> Any:
    """Returns a module that computes some rows of a head and calls all others impossible."""
    import torch

    class Head(torch.nn.Module):
        ids: torch.Tensor
        some: torch.Tensor

        def __init__(self) -> None:
            super().__init__()
            ids = torch.tensor(list(rows), device=full.weight.device)
            self.register_buffer("ids", ids)
            self.register_buffer("some", full.weight.detach()[ids].contiguous())
            self.bias = None if full.bias is None else full.bias.detach()[ids]
            self.size = full.weight.shape[0]

        def forward(self, states: Any) -> Any:
            few = torch.nn.functional.linear(states, self.some, self.bias)
            found = few.new_full((*few.shape[:-1], self.size), float("-inf"))
            found[..., self.ids] = few
            return found

    return Head().eval()
