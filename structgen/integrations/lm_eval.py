"""structgen inside lm-evaluation-harness: a model that constrains each document by its own schema.

Enters: requests of tasks with `output_type: generate_until`. Leaves: texts. Cost: that of the model;
documents with a constraint are decoded one after the other.

    import structgen.integrations.lm_eval  # registers the model "structgen-hf"
    lm_eval.simple_evaluate(model="structgen-hf", model_args={"pretrained": folder}, tasks=[...])

The harness passes no logits processors to its models, and a constraint belongs to a document, which only the
model class sees. The name of a document's field gives the kind of its constraint: `json_schema`, `regex`,
`choice`, `gbnf`, `lark`, `structural_tag`. Documents without such a field are generated as by the harness's
own `hf`. Stop strings of the task do not cut constrained texts, which end by themselves. Written for lm-eval
0.4.13.
"""

from __future__ import annotations

import atexit
import copy
import weakref
from typing import Any

try:
    import transformers
    from lm_eval.api.registry import register_model
    from lm_eval.models.huggingface import HFLM
except ImportError as _missing:
    from .._extras import missing

    raise missing(_missing, "models of lm-eval") from None

from ..grammar import CompiledGrammar
from ..vocabulary import Vocabulary
from .hosts import HostEngine
from .transformers import LogitsProcessor

_models: weakref.WeakSet[ConstrainedHFLM] = weakref.WeakSet()
FIELDS = ("json_schema", "regex", "choice", "gbnf", "lark", "structural_tag")


@register_model("structgen-hf")
class ConstrainedHFLM(HFLM):  # type: ignore[misc]
    """`hf` of the harness, with constraints; takes the same arguments."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._host: HostEngine | None = None
        _models.add(self)
        self._constraint: tuple[CompiledGrammar, int] | None = None

    def generate_until(self, requests: list[Any], disable_tqdm: bool = False) -> list[str]:
        """Generates a text for each request.

        Raises:
            GrammarError: a document's constraint cannot be compiled.
        """
        found: dict[int, str] = {}
        free = [i for i, request in enumerate(requests) if self._field(request) is None]
        if free:
            texts = super().generate_until([requests[i] for i in free], disable_tqdm)
            found.update(zip(free, texts, strict=True))
        for i, request in enumerate(requests):
            field = self._field(request)
            if field is None:
                continue
            context, options = request.args
            most = int(options.get("max_gen_toks", self.max_gen_toks))
            alone = copy.copy(request)
            alone.arguments = (context, {**options, "until": [], "max_gen_toks": most})
            self._constraint = (self._engine().compile(field, request.doc[field]), most)
            try:
                (found[i],) = super().generate_until([alone], disable_tqdm=True)
            finally:
                self._constraint = None
        return [found[i] for i in range(len(requests))]

    def _model_generate(self, context: Any, *args: Any, **kwargs: Any) -> Any:
        if self._constraint is not None:
            grammar, most = self._constraint
            processor = LogitsProcessor(grammar, context.shape[1], max_new_tokens=most, on_error="eos")
            kwargs["logits_processor"] = transformers.LogitsProcessorList([processor])
        return super()._model_generate(context, *args, **kwargs)

    @staticmethod
    def _field(request: Any) -> str | None:
        doc = request.doc
        given = doc if isinstance(doc, dict) else {}
        return next((field for field in FIELDS if given.get(field) is not None), None)

    def _engine(self) -> HostEngine:
        if self._host is None:
            self._host = HostEngine(Vocabulary.from_huggingface(self.tokenizer, model=self.model))
        return self._host


@atexit.register
def _let_go() -> None:
    """Drops the compilers of models at exit. The harness keeps its models until then, and the core would
    report their grammars as leaked."""
    for model in list(_models):
        model._host = None
