"""Gives Python functions that recurse over a user's input enough stack.

In: a function that raises RecursionError if its argument nests too deeply. Out: the same function, with stack
for Python's thousand levels. Nested generators, `json` and `ast` use the stack of the thread, and a stack of
256 kB overflows before Python counts to its limit. `csrc/base/depth.h` does the same for the core. Cost:
0.1 us, or 50 us for a new thread if the caller's stack is small.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import ParamSpec, TypeVar, cast

from . import _core

P = ParamSpec("P")
R = TypeVar("R")


def roomy(function: Callable[P, R]) -> Callable[P, R]:
    """Makes the function run with enough stack: on the caller's thread, or on another one."""

    @functools.wraps(function)
    def run(*args: P.args, **kwargs: P.kwargs) -> R:
        return cast(R, _core.with_stack(lambda: function(*args, **kwargs)))

    return run
