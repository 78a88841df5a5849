"""Speculative decoding inside transformers' `generate()`: a `custom_generate` callable.

Enters: the arguments that `generate()` gives a decoding loop: ids (left-padded), a generation configuration,
stopping criteria. Leaves: ids, as `generate()` returns them. Cost: see structgen/speculation/engine.py.

    generate = SpeculativeGenerate(grammar)
    model.generate(**inputs, custom_generate=generate, max_new_tokens=200)

Greedy text equals that of `generate()` with structgen's LogitsProcessor. Sampled text has the same law and a
seed of its own, because transformers draws from torch's generator, which does not depend on places. Rows may
have different lengths. Only the attention mask says which columns are padding, so a padding id may be the end
id or occur in a prompt. Stopping criteria are asked after every token. An option that the loop does not
support is refused by its name.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, cast

try:
    import torch
    from transformers.generation.utils import GenerateDecoderOnlyOutput
except ImportError as _missing:
    from .._extras import missing

    raise missing(_missing, "transformers' own generate() with drafts") from None

from .._draws import Noise
from ..generation import Drawing
from ..grammar import CompiledGrammar
from ..lm.transformers import TransformersLM
from ..speculation.engine import Row, SpeculativeRows
from ..speculation.options import Speculation, resolve
from ..speculation.score import open_scorer
from ..speculation.statistics import Statistics

if TYPE_CHECKING:
    from ..vocabulary import Vocabulary

# Processors whose settings the configuration also has.
_KNOWN = ("TemperatureLogitsWarper", "TopKLogitsWarper", "TopPLogitsWarper")
_OWN_CRITERIA = ("MaxLengthCriteria", "EosTokenCriteria")


class SpeculativeGenerate:
    """A decoding loop for `model.generate(custom_generate=...)`; use one object again and again.

    Args:
        grammars: one for all rows, or one a prompt of the batch; None: free text.
        vocabulary: the model's, where there is no grammar.
        speculate: "auto", a list of drafters or a `Speculation` (rule "coupled").
        seed: repeats sampled text; each call and row has draws of its own.
        streamer: gets the tokens; `generate()` does not hand its own to a `custom_generate` callable.

    Attributes:
        statistics: the statistics of the last call.

    Raises:
        ValueError: neither a grammar nor a vocabulary was given. When called: beams or unsupported processors
            are set.
    """

    def __init__(
        self,
        grammars: CompiledGrammar | Sequence[CompiledGrammar] | None = None,
        *,
        vocabulary: Vocabulary | None = None,
        speculate: Any = "auto",
        seed: int = 0,
        streamer: Any = None,
    ) -> None:
        single = grammars is None or isinstance(grammars, CompiledGrammar)
        listed: list[Any] = [grammars] if single else list(cast("Sequence[CompiledGrammar]", grammars))
        first = listed[0] if listed else None
        if vocabulary is None:
            if first is None:
                raise ValueError("without a grammar, pass the model's vocabulary")
            vocabulary = first.vocabulary
        self._grammars = listed
        self._vocabulary = vocabulary
        self._speculate = speculate
        self._seed = seed
        self._streamer = streamer
        self._calls = 0
        self._lm: TransformersLM | None = None
        self._options: Speculation | None = None
        self.statistics: Statistics | None = None

    def __call__(
        self,
        model: Any,
        input_ids: torch.Tensor,
        logits_processor: Any = (),
        stopping_criteria: Any = (),
        generation_config: Any = None,
        synced_gpus: bool = False,
        streamer: Any = None,
        **model_kwargs: Any,
    ) -> Any:
        """Returns the ids of prompts and answers, shape (rows, longest), padded on the right."""
        config = generation_config
        streamer = self._streamer if streamer is None else streamer
        self._check(config, logits_processor, input_ids, streamer)
        lm, options = self._bound(model)
        rows = self._rows(input_ids, model_kwargs.get("attention_mask"), config, stopping_criteria, streamer)
        sampled = bool(config.do_sample)
        how = Drawing(
            float(config.temperature or 1.0) if sampled else 0.0,
            (config.top_k or None) if sampled else None,
            config.top_p if sampled and config.top_p is not None and config.top_p < 1.0 else None,
            self._seed,
        )
        run = SpeculativeRows(
            open_scorer(lm), lm.vocabulary, self._ends(config), how, options, logprobs=False
        )
        for row in rows:
            run.add(row)
        run.run()
        self.statistics = run.statistics
        if streamer is not None:
            streamer.end()
        sequences = self._joined(input_ids, rows, config)
        if config.return_dict_in_generate:
            return GenerateDecoderOnlyOutput(sequences=cast("torch.LongTensor", sequences))
        return sequences

    def _check(self, config: Any, processors: Any, input_ids: torch.Tensor, streamer: Any) -> None:
        if (config.num_beams or 1) > 1:
            raise ValueError("speculative decoding has no beams: use num_beams=1")
        for processor in processors:
            if type(processor).__name__ not in _KNOWN:
                raise ValueError(
                    f"{type(processor).__name__} is not supported while speculating: it would have to be "
                    "asked at every node (a grammar goes into SpeculativeGenerate itself)"
                )
        if input_ids.shape[0] % len(self._grammars):
            raise ValueError(f"{input_ids.shape[0]} rows do not divide among {len(self._grammars)} grammars")
        if streamer is not None and input_ids.shape[0] > 1:
            raise ValueError("a streamer takes one row")

    def _bound(self, model: Any) -> tuple[TransformersLM, Speculation]:
        """Returns the model as a `LanguageModel`, and its options, made once."""
        if self._lm is None or self._lm.model is not model or self._options is None:
            self._lm = TransformersLM(model, vocabulary=self._vocabulary)
            self._lm.max_context = None  # `generate()` has checked the length, or has decided to go on
            self._lm.check_tree_scoring()
            options = resolve(self._speculate, self._lm)
            if options is None:
                options = Speculation([])
            if options.rule != "coupled":
                raise ValueError("custom_generate verifies by rule 'coupled' alone")
            self._options = options
        return self._lm, self._options

    def _ends(self, config: Any) -> Sequence[int]:
        if self._grammars[0] is not None:
            return self._vocabulary.eos_token_ids
        ends = config.eos_token_id
        if ends is None:
            return ()
        return [int(ends)] if isinstance(ends, int) else [int(e) for e in ends]

    def _rows(
        self, input_ids: torch.Tensor, attention: Any, config: Any, criteria: Any, streamer: Any
    ) -> list[Row]:
        width = input_ids.shape[1]
        room = int(config.max_length) - width
        if room < 1:
            raise ValueError(f"max_length is {config.max_length}, and the prompt has {width} columns")
        rows: list[Row] = []
        share = input_ids.shape[0] // len(self._grammars)
        others = [c for c in criteria if type(c).__name__ not in _OWN_CRITERIA]
        for i, ids in enumerate(input_ids.tolist()):
            keep = [True] * width if attention is None else attention[i].bool().tolist()
            prompt = [t for t, kept in zip(ids, keep, strict=True) if kept]
            grammar = self._grammars[i // share]
            noise = Noise(self._seed, self._calls) if config.do_sample else None
            self._calls += 1
            matcher = None if grammar is None else grammar.matcher()
            row = Row(prompt, matcher, noise, room, None, grammar)
            if others or streamer is not None:
                row.on_tokens = _listener(row, input_ids[i], others, streamer)
            rows.append(row)
        return rows

    def _joined(self, input_ids: torch.Tensor, rows: Sequence[Row], config: Any) -> torch.Tensor:
        longest = max(len(row.tokens) for row in rows)
        pad = config.pad_token_id
        if pad is None:
            pad = self._vocabulary.eos_token_ids[0]
        made = [row.tokens + [int(pad)] * (longest - len(row.tokens)) for row in rows]
        answers = torch.tensor(made, dtype=input_ids.dtype, device=input_ids.device)
        return torch.cat([input_ids, answers], dim=1)


def _listener(
    row: Row, prompt: torch.Tensor, criteria: Sequence[Any], streamer: Any
) -> Callable[[Sequence[int]], bool]:
    """Asks the criteria after each token of a row, and passes tokens on."""

    def listen(tokens: Sequence[int]) -> bool:
        if streamer is not None:
            streamer.put(torch.tensor(list(tokens)))
        if not criteria:
            return False
        answer = torch.tensor(row.tokens, dtype=prompt.dtype, device=prompt.device)
        ids = torch.cat([prompt, answer])[None]
        return any(bool(torch.as_tensor(c(ids, None)).all()) for c in criteria)

    return listen
