"""structgen inside vLLM (V1 engine): a backend of structured outputs.

Enters: vLLM's requests (`structured_outputs` of every kind) and tokens. Leaves: vLLM's bitmask rows and
errors. Cost: structgen's. Compiles run in vLLM's own threads, and masks are made during the forward pass.

    vllm serve MODEL --structured-outputs-config '{"backend": "structgen"}'
    LLM(MODEL, structured_outputs_config={"backend": "structgen"})

vLLM has no registry of backends: the configuration takes five names, and an if-chain makes the classes. So
structgen has two entry points, which vLLM loads in each of its processes:

- `vllm.platform_plugins`, loaded with `vllm.config`: `name_plugin` names no platform, and adds the name
  `structgen` to the configuration as soon as the configuration's module is loaded. `LLM(...)` makes that
  configuration before it loads the other entry point.
- `vllm.general_plugins`, loaded before an engine is made: `plugin` calls `register`, which wraps the methods
  that look at the name. All checks of vLLM's front end stay: the wrapped validation runs as for xgrammar, and
  calls structgen in place of xgrammar's own validator.

Only the engine's configuration chooses the backend. So requests from a front end that leaves out Python's
validation also reach structgen.

`VllmConfig.additional_config["structgen"]` has options: those of JSON (`whitespace`, `property_order`, ...),
`finish` (finish within `max_tokens`; the default), `cache_bytes`, and `reasoning`: how the model thinks (the
name of a family, or the fields of `structgen.Reasoning`), together with vLLM's `enable_in_reasoning`. vLLM
allows `disable_any_whitespace` for its own names alone: `{"whitespace": "compact"}` is the same here.

Written for vLLM 0.32 and 0.33. Only `register` depends on the version.
"""

from __future__ import annotations

import contextlib
import contextvars
import copy
import functools
import importlib.abc
import importlib.util
import logging
import sys
from collections.abc import Callable
from typing import Any, Literal, get_args

import torch

from ..checking import bytes_compiler
from ..errors import StructgenError
from ..logits import allocate_bitmask
from .hosts import HostEngine, HostRequest, compiled, joined
from .telemetry import Telemetry, gather

NAME = "structgen"
_LOG = "vllm.structgen"
_CONFIGURATION = "vllm.config.structured_outputs"
_KINDS = {
    "JSON": "json_schema",
    "JSON_OBJECT": "json_object",
    "REGEX": "regex",
    "CHOICE": "choice",
    "GRAMMAR": "grammar",
    "STRUCTURAL_TAG": "structural_tag",
}
# The request for which vLLM compiles; vLLM does not pass it to its backends.
_request: contextvars.ContextVar[Any] = contextvars.ContextVar("request", default=None)
# The tokenizer and the width of the logits, while vLLM's front end checks a request for this backend.
_checking: contextvars.ContextVar[tuple[Any, int] | None] = contextvars.ContextVar("checking", default=None)


def name_plugin() -> None:
    """Adds the name to the configuration, as vLLM's entry point for platforms. Returns None, which is no
    platform.

    vLLM asks for platforms while it imports `vllm.config`, of which the module of this name is a part.
    """
    if _CONFIGURATION in sys.modules:
        _or_warn(lambda: _allow_name(sys.modules[_CONFIGURATION]))
    elif not any(isinstance(finder, _NameFinder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _NameFinder())


def plugin() -> None:
    """`register` as vLLM's entry point. In a version of vLLM that does not fit, it only gives a warning.

    With structgen installed, every vLLM runs this, even if it uses another backend.
    """
    _or_warn(register)


def _or_warn(action: Callable[[], None]) -> None:
    try:
        action()
    except Exception as error:
        logging.getLogger(_LOG).warning(
            "the backend 'structgen' is not available: structgen does not know this version of vLLM (%s: %s)",
            type(error).__name__,
            error,
        )


class _NameFinder(importlib.abc.MetaPathFinder):
    """Finds the configuration's module once, like the other finders, and adds the name after the module has
    run."""

    def find_spec(self, fullname: str, path: Any, target: Any = None) -> Any:
        if fullname != _CONFIGURATION:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(fullname)
        if spec is None or spec.loader is None:
            return spec
        run = spec.loader.exec_module

        def run_and_allow(module: Any) -> None:
            run(module)
            _or_warn(lambda: _allow_name(module))

        spec.loader.exec_module = run_and_allow  # type: ignore[method-assign]
        return spec


def register() -> None:
    """Adds the backend `structgen` to vLLM in this process. Calling it again does nothing.

    Raises:
        ImportError, AttributeError: a vLLM that this file was not written for.
    """
    from vllm.config import structured_outputs as configuration
    from vllm.sampling_params import SamplingParams
    from vllm.v1.structured_output import StructuredOutputManager, backend_xgrammar

    _allow_name(configuration)
    if hasattr(StructuredOutputManager.grammar_init, "__wrapped__"):
        return
    _wrap_validation(SamplingParams, backend_xgrammar)
    _wrap_manager(StructuredOutputManager)
    for extra in (_wrap_beam_search, _wrap_arguments, _mend_drafts_on_cpu):
        with contextlib.suppress(ImportError, AttributeError):  # the backend works without this addition
            extra()


def _allow_name(configuration: Any) -> None:
    from pydantic.dataclasses import rebuild_dataclass

    if NAME in get_args(configuration.StructuredOutputsBackend):
        return
    names = Literal[(*get_args(configuration.StructuredOutputsBackend), NAME)]  # type: ignore[valid-type]
    config = configuration.StructuredOutputsConfig
    configuration.StructuredOutputsBackend = names
    config.__annotations__["backend"] = names
    config.__dataclass_fields__["backend"].type = names
    for field in (getattr(config, "__pydantic_fields__", {}) or {}).values():
        if get_args(field.annotation) and "xgrammar" in get_args(field.annotation):
            field.annotation = names
    rebuild_dataclass(config, force=True)


def _wrap_validation(params_class: Any, backend_xgrammar: Any) -> None:
    validate = params_class._validate_structured_outputs
    validate_xgrammar = backend_xgrammar.validate_xgrammar_grammar

    @functools.wraps(validate)
    def wrapped(self: Any, model_config: Any, structured_outputs_config: Any, tokenizer: Any) -> None:
        asked = self.structured_outputs
        if structured_outputs_config is None or asked is None or structured_outputs_config.backend != NAME:
            validate(self, model_config, structured_outputs_config, tokenizer)
            return
        as_xgrammar = copy.copy(structured_outputs_config)
        object.__setattr__(as_xgrammar, "backend", "xgrammar")
        if asked._backend == NAME:
            asked._backend = None  # An earlier call with the same parameters may have set it.
        token = _checking.set((tokenizer, model_config.get_vocab_size()))
        try:
            validate(self, model_config, as_xgrammar, tokenizer)
        finally:
            _checking.reset(token)
        asked._backend = NAME

    @functools.wraps(validate_xgrammar)
    def dispatched(sampling_params: Any) -> None:
        if (model := _checking.get()) is not None:
            _check(sampling_params, *model)
        else:
            validate_xgrammar(sampling_params)

    params_class._validate_structured_outputs = wrapped
    backend_xgrammar.validate_xgrammar_grammar = dispatched


def _check(sampling_params: Any, tokenizer: Any, vocab_size: int) -> None:
    """Checks a request by a compile over single bytes, because the front end has no engine. A
    VLLMValidationError becomes HTTP 400."""
    from vllm.exceptions import VLLMValidationError
    from vllm.v1.structured_output.request import get_structured_output_key

    option, text = get_structured_output_key(sampling_params.structured_outputs)
    kind = _KINDS[option.name]
    try:
        try:
            compiled(bytes_compiler(), kind, text)
        except StructgenError:
            # A grammar may name special tokens, and a vocabulary of single bytes has none.
            if kind not in ("grammar", "structural_tag"):
                raise
            compiled(_front_end(tokenizer, vocab_size).compiler, kind, text)
    except (StructgenError, ValueError) as error:
        _refusals().refused(error)
        raise VLLMValidationError(str(error), parameter="structured_outputs") from error


@functools.cache
def _refusals() -> Telemetry:
    """Counts the requests that the front end refuses, because they do not reach the engine."""
    return Telemetry(_LOG, lambda: 0)


@functools.lru_cache(maxsize=1)
def _front_end(tokenizer: Any, vocab_size: int) -> HostEngine:
    return HostEngine(getattr(tokenizer, "mistral", tokenizer), vocab_size, cache_bytes=64 << 20)


def _wrap_manager(manager: Any) -> None:
    init, create = manager.grammar_init, manager._create_grammar

    @functools.wraps(init)
    def grammar_init(self: Any, request: Any) -> None:
        asked = request.structured_output_request
        if asked is not None and self.vllm_config.structured_outputs_config.backend == NAME:
            asked.params._backend = NAME  # a front end may leave the name out
            if self.backend is None:
                self.backend = _made(self.vllm_config, self.tokenizer)
                self.backend_name = NAME
        init(self, request)

    @functools.wraps(create)
    def create_grammar(self: Any, request: Any) -> Any:
        token = _request.set(request)
        try:
            return create(self, request)
        finally:
            _request.reset(token)

    manager.grammar_init = grammar_init
    manager._create_grammar = create_grammar


def _wrap_beam_search() -> None:
    """Wraps `LLM.beam_search`, which makes a backend of its own. Beams replay their texts through this
    backend's grammars."""
    from vllm.entrypoints.generate.beam_search.offline import BeamSearchOfflineMixin

    start = BeamSearchOfflineMixin._init_beam_search_structured_output

    @functools.wraps(start)
    def wrapped(self: Any, structured_outputs: Any, tokenizer: Any) -> Any:
        from vllm.v1.structured_output.request import get_structured_output_key

        config = self.llm_engine.vllm_config
        if config.structured_outputs_config.backend != NAME:
            return start(self, structured_outputs, tokenizer)
        backend = _made(config, tokenizer)
        return backend, get_structured_output_key(structured_outputs), backend.allocate_token_bitmask(1)

    BeamSearchOfflineMixin._init_beam_search_structured_output = wrapped


def _wrap_arguments() -> None:
    """Lets the API server's process know the backend before it starts its engines."""
    from vllm.engine.arg_utils import EngineArgs

    create = EngineArgs.create_engine_config

    @functools.wraps(create)
    def wrapped(self: Any, *args: Any, **kwargs: Any) -> Any:
        config = create(self, *args, **kwargs)
        if config.structured_outputs_config.backend == NAME:
            gather()
        return config

    EngineArgs.create_engine_config = wrapped


def _mend_drafts_on_cpu() -> None:
    """Mends vLLM's CPU kernels, which draw the tokens behind drafts wrongly in 0.32.0: not from the masked
    distribution.

    - `_expand_kernel_impl` writes into a copy, so the temperatures of draft rows are whatever memory held. A
      negative one turns the mask's -inf into +inf, and a forbidden token is drawn.
    - `rejection_random_sample_kernel_impl` reads the probability of a draft token -1, which stands where
      there is no draft, from the row before, and may take it. The token drawn next then has no mask. Here a
      token of probability 0 stands in its place, which is always rejected.

    Kernels of other platforms have neither fault and stay as they are.
    """
    from vllm.platforms import current_platform

    if not current_platform.is_cpu():
        return
    from vllm.v1.sample import rejection_sampler

    reject = rejection_sampler.rejection_sample

    @functools.wraps(rejection_sampler.expand_batch_to_tokens)
    def expand(
        x: torch.Tensor,
        cu_num_tokens: torch.Tensor,
        num_tokens: int,
        replace_from: int = 0,
        replace_to: int = 0,
    ) -> torch.Tensor:
        counts = torch.diff(cu_num_tokens, prepend=cu_num_tokens.new_zeros(1))
        found = x.masked_fill(x == replace_from, replace_to)
        return found.repeat_interleave(counts, output_size=num_tokens)

    @functools.wraps(reject)
    def without_padding(
        draft_token_ids: torch.Tensor,
        num_draft_tokens: Any,
        max_spec_len: int,
        cu_num_draft_tokens: torch.Tensor,
        draft_probs: torch.Tensor | None,
        target_logits: torch.Tensor,
        *others: Any,
        **named: Any,
    ) -> torch.Tensor:
        rows = (draft_token_ids < 0).nonzero().squeeze(1)
        if len(rows):
            least = target_logits[rows].argmin(dim=-1)
            draft_token_ids = draft_token_ids.index_copy(0, rows, least.to(draft_token_ids.dtype))
            target_logits[rows, least] = -torch.inf
        of_drafts = draft_token_ids, num_draft_tokens, max_spec_len, cu_num_draft_tokens, draft_probs
        drawn: torch.Tensor = reject(*of_drafts, target_logits, *others, **named)
        return drawn

    rejection_sampler.expand_batch_to_tokens = expand
    rejection_sampler.rejection_sample = without_padding


def _made(vllm_config: Any, tokenizer: Any) -> Any:
    """Returns a backend for an engine."""
    from vllm.v1.structured_output.backend_types import StructuredOutputBackend

    width = vllm_config.model_config.get_vocab_size()
    return joined(VllmBackend, StructuredOutputBackend)(vllm_config, tokenizer, width)


class VllmBackend:
    """Engine level: one compiler for all requests. `_made` gives it vLLM's base class.

    Attributes:
        tensor, rows: the bitmask that vLLM asked for last, and its memory. A forward pass clears the
            processor's caches, and then `Tensor.numpy` takes as long as twenty known masks.
    """

    tensor: torch.Tensor | None = None
    rows: Any = None

    def __init__(self, vllm_config: Any, tokenizer: Any, vocab_size: int) -> None:
        super().__init__(vllm_config, tokenizer, vocab_size)  # type: ignore[call-arg]
        given = getattr(vllm_config, "additional_config", None) or {}
        settings = dict(given.get(NAME) or {}) if isinstance(given, dict) else {}
        config = vllm_config.structured_outputs_config
        if settings.get("reasoning") is not None and not config.enable_in_reasoning:
            raise ValueError(
                "the option 'reasoning' of structgen needs vLLM's enable_in_reasoning: "
                '--structured-outputs-config \'{"backend": "structgen", "enable_in_reasoning": true}\''
            )
        if config.reasoning_parser and not config.enable_in_reasoning:
            # Tokens of reasoning count in a request's limit, but otherwise the backend does not see them.
            settings["finish"] = False
        self.engine: HostEngine = HostEngine.configured(
            settings, getattr(tokenizer, "mistral", tokenizer), vocab_size, log=_LOG
        )

    def compile_grammar(
        self, request_type: Any, grammar_spec: str, stop_token_ids: set[int] | None = None
    ) -> Any:
        request = _request.get()
        prompt = getattr(request, "prompt_token_ids", None) or ()
        params = getattr(request, "sampling_params", None)
        thinks = self.engine.thinks(prompt, getattr(params, "thinking_token_budget", None))
        grammar = self.engine.compile(_KINDS[request_type.name], grammar_spec, reasoning=thinks)
        most = request.max_tokens if self.engine.finish and request is not None else None
        made = self.engine.request(grammar, end_token_ids=stop_token_ids, max_tokens=most)
        return _grammar_class()(made, self)

    def allocate_token_bitmask(self, max_num_seqs: int) -> torch.Tensor:
        self.rows = allocate_bitmask(max_num_seqs, self.engine.vocabulary.vocab_size)
        self.tensor = torch.from_numpy(self.rows)
        return self.tensor

    def destroy(self) -> None:
        """Logs the counters, because the engine ends with this object."""
        logging.getLogger(_LOG).info("%s", self.engine.telemetry.line())


class VllmGrammar(HostRequest):
    """The grammar of one request, with the methods that vLLM calls."""

    def __init__(self, request: HostRequest, backend: VllmBackend) -> None:
        super().__init__(request.matcher, request.end_token_ids, request.telemetry)
        self.backend = backend

    def accept_tokens(self, request_id: str, tokens: list[int]) -> bool:
        return self.accept(tokens)

    def validate_tokens(self, tokens: list[int]) -> list[int]:
        return tokens[: self.validate(tokens)]

    def fill_bitmask(self, bitmask: torch.Tensor, batch_index: int) -> None:
        backend = self.backend
        self.fill(backend.rows if bitmask is backend.tensor else bitmask, batch_index)


@functools.cache
def _grammar_class() -> Any:
    from vllm.v1.structured_output.backend_types import StructuredOutputGrammar

    return joined(VllmGrammar, StructuredOutputGrammar)
