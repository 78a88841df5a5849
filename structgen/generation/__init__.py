"""Text from a model under a constraint: `sg.generate` and its siblings.

options.py checks arguments, plan.py makes a prompt and its constraint ready, run.py is the loop, api.py the
calls, retry.py what follows a refused value, speculative.py several tokens a forward.
"""

from __future__ import annotations

from .._drawing import Sampling
from ..constraints import ToolCall, ToolReply
from .api import agenerate, generate
from .results import InvalidValue, Result, TokenLogprobs

__all__ = [
    "InvalidValue",
    "Result",
    "Sampling",
    "TokenLogprobs",
    "ToolCall",
    "ToolReply",
    "agenerate",
    "generate",
]
