"""Counts of tokens, in the three shapes that the endpoints have.

Enters: tokens of prompts and answers, end-of-sequence tokens included. Leaves: dicts. Cost: nothing.
"""

from __future__ import annotations

from typing import Any


def usage(prompt: int, completion: int, cached: int = 0, reasoning: int | None = None) -> dict[str, Any]:
    """`reasoning`: tokens of thoughts among those of the answer; None: the model does not think."""
    details = {} if reasoning is None else {"completion_tokens_details": {"reasoning_tokens": reasoning}}
    return {
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": prompt + completion,
        "prompt_tokens_details": {"cached_tokens": cached},
        **details,
    }


def of_responses(prompt: int, completion: int, cached: int = 0, reasoning: int = 0) -> dict[str, Any]:
    return {
        "input_tokens": prompt,
        "input_tokens_details": {"cached_tokens": cached},
        "output_tokens": completion,
        "output_tokens_details": {"reasoning_tokens": reasoning},
        "total_tokens": prompt + completion,
    }
