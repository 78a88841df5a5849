"""structgen inside SGLang: a grammar backend.

Enters: SGLang's requests (`json_schema`, `regex`, `ebnf`, `structural_tag`) and tokens. Leaves: its mask rows
and its errors. Cost: structgen's; compiling runs in SGLang's own threads, the rows of a batch are one call.

    python -m sglang.launch_server --model-path MODEL --grammar-backend structgen

The entry point `sglang.srt.plugins`, which SGLang loads in each of its processes, calls `register`. SGLang
has a registry of backends and a registry of hooks, so `register` patches nothing. With a reasoning parser,
SGLang starts the grammars of its own backends where the reasoning ends. This file does the same for
structgen.

The environment variable `SGLANG_STRUCTGEN` may hold options as JSON: options of JSON (`whitespace`,
`property_order`, ...), `finish` (finish within `max_new_tokens`; the default), `cache_bytes`, and
`reasoning`: how the model thinks (the name of a family, or the fields of `structgen.Reasoning`). With
`reasoning` the grammar covers thoughts and answer from the first token, and thoughts end within
`max_new_tokens` and the request's `thinking_budget`. The start mark may stand at the end of the prompt.

SGLang 0.5.23 never calls the jump-forward methods of its backends. So forced text costs a forward pass for
each token there, with every backend. Written for SGLang 0.5.23.
"""

from __future__ import annotations

import contextvars
import functools
import json
import os
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import torch

from ..errors import StructgenError
from ..grammar import CompiledGrammar
from ..logits import allocate_bitmask, apply_bitmask
from ..reasoning import Reasoning
from .hosts import HostEngine, HostRequest, fill_rows, joined

NAME = "structgen"
_ANY_JSON = "$$ANY$$"  # SGLang's word for any JSON object
# How the model thinks behind the prompt of the request that SGLang compiles for.
_thinks: contextvars.ContextVar[Reasoning | None] = contextvars.ContextVar("thinks", default=None)
_KEPT = 1024  # the most compiled constraints. SGLang's own cache has no bound, and clients choose its keys.


def register() -> None:
    """Adds the backend `structgen` to SGLang in this process. Calling it again does nothing.

    Raises:
        ImportError, AttributeError: an SGLang that this file was not written for.
    """
    from sglang.srt.arg_groups import choices
    from sglang.srt.constrained import base_grammar_backend as base
    from sglang.srt.plugins.hook_registry import HookRegistry, HookType

    if NAME in base.GRAMMAR_BACKEND_REGISTRY:
        return
    choices.add_grammar_backend_choices([NAME])
    base.register_grammar_backend(NAME, _create)
    HookRegistry.register(
        "sglang.srt.constrained.grammar_manager.GrammarManager._apply_request_reasoning_config",
        _tell_max_tokens,
        HookType.AFTER,
    )


def _create(server_args: Any, tokenizer: Any, vocab_size: int, eos_token_ids: Any) -> Any:
    """Makes the backend. SGLang chooses the arguments."""
    from sglang.srt.runtime_context import get_serving

    serving = get_serving()
    options = json.loads(os.environ.get("SGLANG_STRUCTGEN") or "{}")
    if not isinstance(options, dict):
        raise ValueError(f"SGLANG_STRUCTGEN is a JSON object, not {options!r:.60}")
    if serving.constrained_json_whitespace_pattern:
        options.setdefault("whitespace", serving.constrained_json_whitespace_pattern)
    elif serving.constrained_json_disable_any_whitespace:
        options.setdefault("whitespace", "compact")
    backend = _made(tokenizer, vocab_size, eos_token_ids, options)
    if backend.engine.reasoning is not None:
        return backend
    return _reasoning(backend, tokenizer, serving) if serving.reasoning_parser else backend


def _reasoning(backend: Any, tokenizer: Any, serving: Any) -> Any:
    """Returns the backend, wrapped by SGLang's own watch for the end of reasoning."""
    from sglang.srt.constrained.reasoner_grammar_backend import ReasonerGrammarBackend
    from sglang.srt.parser.reasoning_parser import ReasoningParser

    parser = ReasoningParser(model_type=serving.reasoning_parser, stream_reasoning=False, tokenizer=tokenizer)
    if not parser.detector.get_think_end_token_ids(tokenizer):
        return backend  # SGLang does the same for its own backends
    return ReasonerGrammarBackend(
        backend, parser, tokenizer, enable_strict_thinking=serving.enable_strict_thinking
    )


def _tell_max_tokens(result: Any, manager: Any, req: Any, *_: Any, **__: Any) -> None:
    """Gives the grammar of a request the length limit that SGLang gave the request.

    A grammar behind reasoning gets no limit: the limit counts the tokens of thoughts, which the grammar does
    not see.
    """
    grammar = req.grammar
    if isinstance(grammar, SglangGrammar):
        grammar.limit(req.sampling_params.max_new_tokens)


class _Masks:
    """The methods for rows of masks, which SGLang calls on a backend and on a grammar."""

    @staticmethod
    def allocate_vocab_mask(vocab_size: int, batch_size: int, device: Any) -> torch.Tensor:
        mask = torch.from_numpy(allocate_bitmask(batch_size, vocab_size))
        return mask.pin_memory() if str(device).startswith("cuda") else mask

    @staticmethod
    def move_vocab_mask(vocab_mask: torch.Tensor, device: Any) -> torch.Tensor:
        return vocab_mask.to(device, non_blocking=True)

    @staticmethod
    def apply_vocab_mask(logits: torch.Tensor, vocab_mask: torch.Tensor) -> None:
        apply_bitmask(logits, vocab_mask, inplace=True)


class SglangBackend(_Masks):
    """One compiler for all requests. `_made` gives it SGLang's base class."""

    def __init__(self, tokenizer: Any, vocab_size: int, ends: Any, settings: dict[str, Any]) -> None:
        super().__init__()
        self.cache: OrderedDict[tuple[str, str], Any] = OrderedDict()
        found = [ends] if isinstance(ends, int) else list(ends or ())
        self.engine: HostEngine = HostEngine.configured(
            settings, tokenizer, vocab_size, end_token_ids=found or None, log="sglang.structgen"
        )

    def get_request_grammar_key(
        self, key: tuple[str, str], *, input_ids: Sequence[int], thinking_budget: int | None
    ) -> tuple[str, str]:
        """Returns the key of a constraint. If thoughts are in the grammar, the key's kind also says how the
        model thinks."""
        thinks = self.engine.thinks(input_ids, thinking_budget)
        return key if thinks is None else (f"{key[0]}:{json.dumps(asdict(thinks))}", key[1])

    def _init_value_dispatch(self, key: tuple[str, str], require_reasoning: bool) -> Any:
        kind, _, thinks = key[0].partition(":")
        token = _thinks.set(Reasoning(**json.loads(thinks)) if thinks else None)
        try:
            return super()._init_value_dispatch((kind, key[1]), require_reasoning)  # type: ignore[misc]
        finally:
            _thinks.reset(token)

    def set_cache(self, key: tuple[str, str], value: Any) -> None:
        self.cache[key] = value
        while len(self.cache) > _KEPT:
            self.cache.popitem(last=False)

    def dispatch_json(self, key_string: str) -> Any:
        if key_string == _ANY_JSON:
            return self._compiled("json_object", "")
        return self._compiled("json_schema", key_string)

    def dispatch_regex(self, key_string: str) -> Any:
        return self._compiled("regex", key_string)

    def dispatch_ebnf(self, key_string: str) -> Any:
        return self._compiled("grammar", key_string)

    def dispatch_structural_tag(self, key_string: str) -> Any:
        return self._compiled("structural_tag", key_string)

    def _compiled(self, kind: str, text: str) -> Any:
        from sglang.srt.constrained.base_grammar_backend import InvalidGrammarObject

        try:
            return _grammar_class()(self.engine, self.engine.compile(kind, text, reasoning=_thinks.get()))
        except (StructgenError, ValueError) as error:
            return InvalidGrammarObject(str(error))

    # Methods that SGLang calls on a backend with strict reasoning.

    @property
    def is_support_token_filter(self) -> bool:
        return True

    def set_token_filter(
        self,
        vocab_mask: torch.Tensor,
        token_ids: list[int],
        batch_idx: int,
        is_allowed: bool = True,
        reset_vocab_mask: bool = True,
    ) -> None:
        row = vocab_mask[batch_idx]
        if reset_vocab_mask:
            row.fill_(0 if is_allowed else -1)
        for token in token_ids:
            bit = 1 << (token & 31) if token & 31 < 31 else -(1 << 31)
            word = int(row[token >> 5])
            row[token >> 5] = word | bit if is_allowed else word & ~bit


class SglangGrammar(_Masks):
    """One request. SGLang keeps the first object of a constraint and gives each request a copy."""

    def __init__(self, engine: HostEngine, compiled: CompiledGrammar) -> None:
        super().__init__()
        self.engine = engine
        self.compiled = compiled
        self.request: HostRequest = engine.request(compiled)

    def limit(self, max_tokens: int | None) -> None:
        """Sets the most tokens of the text. SGLang calls it before the first token."""
        if self.engine.finish and max_tokens is not None and self.request.matcher.num_steps == 0:
            self.request = self.engine.request(self.compiled, max_tokens=max_tokens)

    def accept_token(self, token: int) -> None:
        self.current_token: int = token
        if not self.request.accept([token]):
            raise ValueError(str(self.request.error))

    def rollback(self, k: int) -> None:
        self.request.rollback(k)

    def is_terminated(self) -> bool:
        return self.request.is_terminated()

    def fill_vocab_mask(self, vocab_mask: torch.Tensor, idx: int) -> None:
        fill_rows([self.request], vocab_mask, rows=[idx])

    @staticmethod
    def fill_vocab_mask_batched(entries: list[Any], vocab_mask: torch.Tensor) -> None:
        ours = [e for e in entries if isinstance(e.grammar, SglangGrammar)]
        fill_rows([e.grammar.request for e in ours], vocab_mask, rows=[e.row for e in ours])
        for entry in entries:
            # the grammar is wrapped because it stands behind reasoning
            if not isinstance(entry.grammar, SglangGrammar):
                entry.grammar.fill_vocab_mask(vocab_mask, entry.row)

    @staticmethod
    def reset_vocab_mask(vocab_mask: torch.Tensor) -> None:
        vocab_mask.fill_(-1)

    def copy(self) -> SglangGrammar:
        return type(self)(self.engine, self.compiled)

    def try_jump_forward(self, tokenizer: Any) -> None:
        """Does nothing; see the head of this file."""


@functools.cache
def _grammar_class() -> Any:
    from sglang.srt.constrained.base_grammar_backend import BaseGrammarObject

    return joined(SglangGrammar, BaseGrammarObject)


def _made(tokenizer: Any, vocab_size: int, ends: Any, settings: dict[str, Any]) -> Any:
    """Returns a backend for an engine."""
    from sglang.srt.constrained.base_grammar_backend import BaseGrammarBackend

    return joined(SglangBackend, BaseGrammarBackend)(tokenizer, vocab_size, ends, settings)
