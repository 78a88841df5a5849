"""Grammars in transformers' continuous batching: many requests in one batch, each with its own grammar.

Enters: a model, prompts as ids, a grammar or None for each. Leaves: transformers' `GenerationOutput`s. Cost:
in each step, one call of the core for the masks of the batch, on the host's generation thread.

    outputs = generate_batch(model, [ids, other_ids], [grammar, None], max_new_tokens=100)

    with constrained(model):  # the same for a manager of one's own
        manager = model.init_continuous_batching(continuous_batching_config=batching_config())
    manager.start()
    manager.add_request(ids, grammar=grammar, max_new_tokens=100)

There, transformers takes no processors as an argument, and its own kind of processor gets only one int32 for
each request. This file has every workaround. Each of these facts was met in transformers 5.23:

1. Processors come only from `model._get_logits_processor`, when a manager is made. `constrained` adds a
   processor there.
2. A request's int32 gets room only for processors that the host converts itself. So `constrained` adds
   `_Marker`, for which `CLASSIC_TO_CB_PROCESSORS_MAP` names `Processor`.
3. Scores may have more rows than requests, and the int32s of the surplus rows are left from an earlier step.
   So rows are counted where they are prepared.
4. A preempted request comes back as another object, and its text is then a part of its prompt.
5. Arguments of requests are deep-copied (a grammar is its own copy), no hook reports the end of a request,
   and an exception in a processor fails every request of the manager. So matchers are kept only for the last
   batch, and a request that comes back is replayed. Nothing is raised, and `Processor.errors` has the errors.

The tokens of a step must be known when the next step is prepared. So `batching_config` turns off the host's
double buffering and its graphs.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

try:
    import torch
    import transformers
    from transformers.generation.continuous_batching import cb_logits_processors as host
except ImportError as _missing:
    from .._extras import missing

    raise missing(_missing, "continuous batches of transformers") from None

from ..errors import VocabularyError
from ..grammar import CompiledGrammar
from ..logits import allocate_bitmask, apply_bitmask
from .hosts import HostRequest, fill_rows, request_of
from .telemetry import Telemetry

_Followed = tuple[CompiledGrammar, HostRequest, list[int]]  # a grammar, a request, the text that it has read


def generate_batch(
    model: Any,
    inputs: Sequence[Sequence[int]],
    grammars: CompiledGrammar | Sequence[CompiledGrammar | None],
    *,
    max_new_tokens: int | None = None,
    generation_config: Any = None,
    continuous_batching_config: Any = None,
) -> list[Any]:
    """Returns texts of all prompts, decoded together.

    Args:
        model: a model of transformers.
        inputs: token ids, a list a prompt.
        grammars: one for all, or one (or None) a prompt.
        max_new_tokens: the limit of each text, which is complete within it; None: the generation
            configuration's.
        generation_config: as in the model's own `generate_batch`.
        continuous_batching_config: what `batching_config` gave.

    Returns:
        A `GenerationOutput` a prompt, in their order. Its `error` says where a text ended before its time.

    Raises:
        ValueError: the numbers of grammars and prompts differ, or the configuration rules constraints out.
        RuntimeError: the host's generation thread ended.
    """
    listed = [grammars] * len(inputs) if isinstance(grammars, CompiledGrammar) else list(grammars)
    if len(listed) != len(inputs):
        raise ValueError(f"there are {len(inputs)} prompts and {len(listed)} grammars")
    config = batching_config() if continuous_batching_config is None else continuous_batching_config
    with (
        constrained(model) as processor,
        model.continuous_batching_context_manager(
            generation_config=generation_config, continuous_batching_config=config, block=True, timeout=5
        ) as manager,
    ):
        for i, (ids, grammar) in enumerate(zip(inputs, listed, strict=True)):
            options = {} if grammar is None else {"grammar": grammar}
            manager.add_request(list(ids), request_id=f"{i}", max_new_tokens=max_new_tokens, **options)
        found: dict[str, Any] = {}
        while len(found) < len(inputs):
            result = manager.get_result(timeout=1)
            if result is not None and result.is_finished():
                found[result.request_id] = result
            elif result is None and not manager.is_running():
                raise RuntimeError("transformers' generation thread ended before its requests did")
    for name, problem in processor.errors.items():
        if name in found and found[name].error is None:
            found[name].error = f"{type(problem).__name__}: {problem}"
    return [found[f"{i}"] for i in range(len(inputs))]


def batching_config(**options: Any) -> Any:
    """transformers' `ContinuousBatchingConfig` with what constraints need; other options are its own.

    Raises:
        ValueError: an option that constraints do not fit.
    """
    needed = {"per_request_processors": True, "use_cuda_graph": False, "use_async_batching": False}
    for name, value in needed.items():
        if options.get(name, value) != value:
            raise ValueError(f"constraints need {name}={value}: a mask is made from the token before it")
    return transformers.ContinuousBatchingConfig(**needed | options)


@contextlib.contextmanager
def constrained(model: Any) -> Iterator[Processor]:
    """Managers of this model that are made inside take `grammar=` in `add_request`, and no others do.

    Raises:
        ValueError: a manager is made with a configuration that is not as `batching_config` has it.
    """
    processor = Processor(model)
    own = model._get_logits_processor
    own_init = model.init_continuous_batching

    def with_marker(*args: Any, **kwargs: Any) -> Any:
        found = own(*args, **kwargs)
        found.append(_Marker(processor))
        return found

    def checked(generation_config: Any = None, continuous_batching_config: Any = None, **rest: Any) -> Any:
        config = continuous_batching_config or batching_config()
        graphs = config.use_cuda_graph
        if not config.per_request_processors or config.use_async_batching is not False or graphs is not False:
            raise ValueError("constraints need the configuration that batching_config() makes")
        return own_init(generation_config, config, **rest)

    conversions: dict[Any, Any] = host.CLASSIC_TO_CB_PROCESSORS_MAP
    conversions[_Marker] = lambda marker: marker.processor
    model._get_logits_processor, model.init_continuous_batching = with_marker, checked
    try:
        yield processor
    finally:
        del model._get_logits_processor, model.init_continuous_batching


class _Marker(transformers.LogitsProcessor):
    """The class that the host converts to `Processor`."""

    def __init__(self, processor: Processor) -> None:
        self.processor = processor


class Processor(host.ContinuousBatchingLogitsProcessor):
    """Constrains the requests of one manager that have a grammar. Used by the manager's thread.

    Attributes:
        errors: by request id, why a text ended before its time.
        telemetry: counts and logs masks and failures; grammars are compiled elsewhere.
    """

    supported_kwargs: dict[str, type] = {"grammar": CompiledGrammar}
    ignored_kwargs: tuple[str, ...] = ()

    def __init__(self, model: Any) -> None:
        self.errors: dict[str, Exception] = {}
        self.telemetry: Telemetry = Telemetry("structgen.integrations.hosts", lambda: 0)
        self._width = int(model.config.get_text_config().vocab_size)
        self._kept: dict[str, _Followed] = {}
        self._mask: npt.NDArray[np.int32] = allocate_bitmask(0, self._width)
        self._rows: list[int] = []  # the rows with a constraint

    def fill_defaults(self, int32_tensor: torch.Tensor) -> None:
        int32_tensor.zero_()

    def prepare_tensor_args(self, requests_with_new_token: list[Any]) -> torch.Tensor:
        """Makes the masks of a step. Returns a row number for each request, int32, (n,), which no code
        reads."""
        batch: list[HostRequest] = []
        kept: dict[str, _Followed] = {}
        self._rows = []
        for row, future in enumerate(requests_with_new_token):
            state = future.state
            grammar = state.logit_processor_kwargs.get("grammar")
            if grammar is None:
                continue
            entry = self._followed(state, grammar)
            kept[state.request_id] = entry
            batch.append(entry[1])
            self._rows.append(row)
        self._kept = kept
        # The widest vocabulary of the batch: a mask may be wider than its grammar's vocabulary, and must not
        # be narrower.
        width = max([self._width, *(r.matcher.grammar.vocabulary.vocab_size for r in batch)])
        self._mask = allocate_bitmask(len(batch), width)
        fill_rows(batch, self._mask)
        for name, entry in kept.items():
            if entry[1].error is not None:
                self.errors[name] = entry[1].error
        return torch.arange(len(requests_with_new_token), dtype=torch.int32)

    def _followed(
        self, state: Any, grammar: CompiledGrammar
    ) -> tuple[CompiledGrammar, HostRequest, list[int]]:
        """Returns the grammar, the state and the text of a request; the state is brought to the end of the
        text."""
        start = state._true_initial_tokens
        text: list[int] = (state.initial_tokens[start:] if start else []) + state.generated_tokens
        known = self._kept.get(state.request_id)
        if known is not None and known[0] is grammar and text[: len(known[2])] == known[2]:
            request, new = known[1], text[len(known[2]) :]
        else:
            left = state.max_new_tokens
            most = None if left is None else left + len(text) - len(state.generated_tokens)
            ends = state._eos_token_ids or None
            request = request_of(grammar, end_token_ids=ends, max_tokens=most, telemetry=self.telemetry)
            new = text
            vocabulary = grammar.vocabulary
            if vocabulary.vocab_size > self._width and any(vocabulary.tokens[self._width :]):
                request.fail(
                    VocabularyError(
                        f"the grammar's vocabulary has {vocabulary.vocab_size} ids and the model "
                        f"{self._width} logits"
                    )
                )
        if new and not request.accept(new) and not request.ended:
            request.fail(VocabularyError("the host wrote tokens that the mask did not allow"))
        return grammar, request, text

    def __call__(self, scores: torch.Tensor, tensor_arg: torch.Tensor) -> torch.Tensor:
        """Returns new scores, (rows, V)."""
        if not self._rows:
            return scores
        words = (scores.shape[-1] + 31) // 32
        return apply_bitmask(scores, self._mask[:, :words], indices=self._rows)
