"""structgen inside outlines, as a backend with the name `structgen`.

Enters: output types of outlines, which outlines turns into a JSON Schema, a regex or a context-free grammar.
Leaves: logits processors for outlines' models of transformers and of llama-cpp-python. Cost: structgen's.

    import structgen.integrations.outlines
    structgen.integrations.outlines.register(max_new_tokens=200)
    generator = outlines.Generator(model, OutputType, backend="structgen")

outlines has no registry of backends: one function makes them by an if-chain, and `register` wraps this
function. Without `register`, `outlines.Generator(model, processor=...)` takes any processor of structgen.
Written for outlines 1.3.
"""

from __future__ import annotations

import functools
import threading
import weakref
from typing import Any

try:
    import outlines
    from outlines import backends
except ImportError as _missing:
    from .._extras import missing

    raise missing(_missing, "structgen's backend") from None

from .hosts import HostEngine

NAME = "structgen"
_engines: weakref.WeakKeyDictionary[Any, HostEngine] = weakref.WeakKeyDictionary()
_lock = threading.Lock()
_most: int | None = None  # the most tokens of a text


def register(*, max_new_tokens: int | None = None) -> None:
    """Adds the backend `structgen` to outlines in this process.

    Args:
        max_new_tokens: the limit of every text of generators that are made from now on. Texts are complete
            within it.
            outlines does not tell its backends: pass the same number where you generate. None: no limit.
    """
    global _most
    _most = max_new_tokens
    known = backends._get_backend
    if getattr(known, "knows_structgen", False):
        return

    @functools.wraps(known)
    def get_backend(backend_name: str, model: Any) -> Any:
        return Backend(model) if backend_name == NAME else known(backend_name, model)

    get_backend.knows_structgen = True  # type: ignore[attr-defined]
    backends._get_backend = get_backend


class Backend(backends.BaseBackend):  # type: ignore[misc]
    """The backend that outlines makes for every generator. The backends of one model share a compiler.

    Raises:
        ValueError: the model is neither outlines' `Transformers` nor its `LlamaCpp`.
    """

    def __init__(self, model: Any) -> None:
        self._model = model.model
        self._is_llama = isinstance(model, outlines.models.LlamaCpp)
        if not self._is_llama and not isinstance(model, outlines.models.Transformers):
            raise ValueError(
                f"the backend 'structgen' has processors for Transformers and LlamaCpp, not for "
                f"{type(model).__name__}"
            )
        with _lock:
            engine = _engines.get(self._model)
            if engine is None:
                engine = self._engine(model)
                _engines[self._model] = engine
        self._host = engine

    def _engine(self, model: Any) -> HostEngine:
        if self._is_llama:
            from .llama_cpp import engine_of

            return engine_of(self._model)
        from ..vocabulary import Vocabulary

        return HostEngine(Vocabulary.from_huggingface(model.hf_tokenizer, model=self._model))

    def get_json_schema_logits_processor(
        self, json_schema: str, whitespace_pattern: str | None = None
    ) -> Any:
        options = {} if whitespace_pattern is None else {"whitespace": whitespace_pattern}
        return self._processor("json_schema", json_schema, **options)

    def get_regex_logits_processor(self, regex: str) -> Any:
        return self._processor("regex", regex)

    def get_cfg_logits_processor(self, grammar: str) -> Any:
        """Returns the logits processor of a grammar in Lark, which outlines uses, or in GBNF."""
        return self._processor("grammar", grammar)

    def _processor(self, kind: str, text: str, **options: Any) -> Any:
        grammar = self._host.compile(kind, text, **options)
        if self._is_llama:
            from .llama_cpp import LogitsProcessor as ForLlama

            return ForLlama(self._model, self._host.request(grammar, max_tokens=_most))
        from .transformers import LogitsProcessor

        return LogitsProcessor(grammar, max_new_tokens=_most)
