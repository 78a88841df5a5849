"""structgen: exact constrained generation for language models.

    import structgen as sg

    vocab = sg.Vocabulary.from_huggingface(tokenizer)
    grammar = sg.Compiler(vocab).json_schema({"type": "object"})
    matcher = grammar.matcher()

Nothing heavy is imported here: torch, transformers and numba load where they are used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .compiler import Compiler
from .errors import (
    BudgetExceeded,
    GrammarError,
    SchemaTooComplex,
    StructgenError,
    UnsatisfiableBudget,
    UnsatisfiableSchema,
    UnsupportedSchema,
    VocabularyError,
)
from .grammar import CompiledGrammar, Matcher, ReportEntry, fill_bitmasks
from .logits import allocate_bitmask, apply_bitmask, masked_log_softmax, masked_logsumexp
from .vocabulary import Vocabulary

if TYPE_CHECKING:
    from .generation import Result, generate

__version__ = "0.1.0"

__all__ = [
    "BudgetExceeded",
    "CompiledGrammar",
    "Compiler",
    "GrammarError",
    "Matcher",
    "ReportEntry",
    "Result",
    "SchemaTooComplex",
    "StructgenError",
    "UnsatisfiableBudget",
    "UnsatisfiableSchema",
    "UnsupportedSchema",
    "Vocabulary",
    "VocabularyError",
    "allocate_bitmask",
    "apply_bitmask",
    "fill_bitmasks",
    "generate",
    "masked_log_softmax",
    "masked_logsumexp",
]


def __getattr__(name: str) -> Any:
    # generate pulls in a language model; it loads on first use.
    if name in ("generate", "Result"):
        from . import generation as module

        return getattr(module, name)
    raise AttributeError(f"module 'structgen' has no attribute {name!r}")
