"""Text from a model under a constraint: `sg.generate` and its siblings.

options.py checks arguments, plan.py prepares a prompt and its constraint, run.py has the loop, and api.py the
calls. many.py runs many prompts at once. streaming.py and partial.py show an unfinished text. retry.py draws
again after a validator refused a value. speculative.py draws several tokens in one forward pass.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .._checks import renamed
from .._drawing import Drawing
from ..frontend.tool_calls import ToolCall, ToolReply
from .api import agenerate, generate
from .denoising import Denoised, denoise
from .editing import Edited, edit
from .many import Failed, Progress, generate_many
from .partial import IncompleteString
from .results import InvalidValue, Result, TokenLogprobs
from .streaming import AsyncStream, Event, Stream, astream, stream
from .tracing import Trace, trace

__all__ = [
    "AsyncStream",
    "Denoised",
    "Drawing",
    "Edited",
    "Event",
    "Failed",
    "IncompleteString",
    "InvalidValue",
    "Progress",
    "Result",
    "Stream",
    "TokenLogprobs",
    "ToolCall",
    "ToolReply",
    "Trace",
    "agenerate",
    "astream",
    "denoise",
    "edit",
    "generate",
    "generate_many",
    "stream",
    "trace",
]

__getattr__: Callable[[str], Any] = renamed(__name__, Sampling="Drawing")
