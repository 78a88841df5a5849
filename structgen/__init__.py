"""structgen: exact constrained generation for language models.

    import structgen as sg

    vocab = sg.Vocabulary.from_huggingface(tokenizer)
    grammar = sg.Compiler(vocab).json_schema({"type": "object"})
    matcher = grammar.matcher()

Nothing heavy is imported here: torch and transformers load where they are used.
"""

from __future__ import annotations

import importlib
import importlib.util
from typing import TYPE_CHECKING, Any

try:
    from . import _core as _core
except ImportError:
    if importlib.util.find_spec("._core", __name__) is not None:
        raise  # The core is installed, and it does not load.
    raise ImportError(
        f"structgen's core is not built in {__path__[0]}: in a checkout run `make core`; to use the "
        "installed package, start Python in another folder"
    ) from None

from . import errors
from .canvas import Canvas
from .checking import check
from .comparing import Comparison, Containment, compare, contains
from .compiler import Compiler
from .conditions import Condition, Regex, containing, max_bytes, min_bytes, without
from .counting import count
from .diffing import Change, diff
from .errors import *  # noqa: F403
from .grammar import CompiledGrammar, ReportEntry
from .holes import Completion, Gap
from .json_options import JsonOptions, JsonStyle
from .limits import Limits
from .linting import Finding, SchemaWarning, lint
from .logits import allocate_bitmask, apply_bitmask, masked_log_softmax, masked_logsumexp
from .matcher import Capture, Matcher, fill_bitmasks
from .reasoning import Reasoning
from .templates import Template, each, gen, select, template
from .testdata import Example, examples
from .vocabulary import Vocabulary

if TYPE_CHECKING:
    from .frontend.tool_calls import ToolCall, ToolReply, parse_tool_calls
    from .generation import (
        AsyncStream,
        Denoised,
        Edited,
        Event,
        Failed,
        IncompleteString,
        InvalidValue,
        Progress,
        Result,
        Stream,
        TokenLogprobs,
        Trace,
        agenerate,
        astream,
        denoise,
        edit,
        generate,
        generate_many,
        stream,
        trace,
    )
    from .sampling import Samples, Searched, sample, sample_async, search

__version__ = "0.1.0"

__all__ = [
    "AsyncStream",
    "Canvas",
    "Capture",
    "Change",
    "Comparison",
    "CompiledGrammar",
    "Compiler",
    "Completion",
    "Condition",
    "Containment",
    "Denoised",
    "Edited",
    "Event",
    "Example",
    "Failed",
    "Finding",
    "Gap",
    "IncompleteString",
    "InvalidValue",
    "JsonOptions",
    "JsonStyle",
    "Limits",
    "Matcher",
    "Progress",
    "Reasoning",
    "Regex",
    "ReportEntry",
    "Result",
    "Samples",
    "SchemaWarning",
    "Searched",
    "Stream",
    "Template",
    "TokenLogprobs",
    "ToolCall",
    "ToolReply",
    "Trace",
    "Vocabulary",
    "agenerate",
    "allocate_bitmask",
    "apply_bitmask",
    "astream",
    "check",
    "compare",
    "containing",
    "contains",
    "count",
    "denoise",
    "diff",
    "each",
    "edit",
    "examples",
    "fill_bitmasks",
    "gen",
    "generate",
    "generate_many",
    "lint",
    "masked_log_softmax",
    "masked_logsumexp",
    "max_bytes",
    "min_bytes",
    "parse_tool_calls",
    "sample",
    "sample_async",
    "search",
    "select",
    "stream",
    "template",
    "trace",
    "without",
]
__all__ += errors.__all__

_GENERATION = (
    "AsyncStream", "Denoised", "Edited", "Event", "Failed", "IncompleteString", "InvalidValue", "Progress",
    "Result", "Stream", "TokenLogprobs", "ToolCall", "ToolReply", "Trace", "agenerate", "astream", "denoise",
    "edit", "generate", "generate_many", "stream", "trace",
)  # fmt: skip


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})  # `__all__` adds the names that load on first use.


def __getattr__(name: str) -> Any:
    # These pull in a language model; they load on first use.
    if name in _GENERATION:
        from . import generation

        return getattr(generation, name)
    if name == "parse_tool_calls":
        from .frontend.tool_calls import parse_tool_calls

        return parse_tool_calls
    if name in ("sample", "sample_async", "search", "Samples", "Searched"):
        from . import sampling

        return getattr(sampling, name)
    if name in ("generation", "integrations", "lm", "rl", "sampling", "speculation"):
        return importlib.import_module(f".{name}", __name__)
    raise AttributeError(f"module 'structgen' has no attribute {name!r}")
