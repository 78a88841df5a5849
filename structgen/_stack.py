"""Python code that recurses over what a user wrote.

In: a function that ends in RecursionError where its argument nests too deeply. Out: the same function, with
the stack for Python's thousand levels: generators in generators, `json` and `ast` use the thread's stack, and
one of 256 kB overflows before Python counts to its limit. `csrc/base/depth.h` is the core's. Cost: 0.1 us; a
thread, 50 us, where the caller's stack is small.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import ParamSpec, TypeVar, cast

from . import _core

P = ParamSpec("P")
R = TypeVar("R")


def roomy(function: Callable[P, R]) -> Callable[P, R]:
    """The function, run where there is stack."""

    @functools.wraps(function)
    def run(*args: P.args, **kwargs: P.kwargs) -> R:
        return cast(R, _core.with_stack(lambda: function(*args, **kwargs)))

    return run
