"""Counts of tokens, in the three shapes that the endpoints have.

Enters: tokens of prompts and answers, end-of-sequence tokens included. Leaves: dicts. Cost: nothing.
"""

from __future__ import annotations

from typing import Any

__all__ = ["of_responses", "usage"]


def usage(prompt: int, completion: int, cached: int = 0) -> dict[str, Any]:
    return {
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": prompt + completion,
        "prompt_tokens_details": {"cached_tokens": cached},
    }


def of_responses(prompt: int, completion: int, cached: int = 0) -> dict[str, Any]:
    return {
        "input_tokens": prompt,
        "input_tokens_details": {"cached_tokens": cached},
        "output_tokens": completion,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": prompt + completion,
    }
