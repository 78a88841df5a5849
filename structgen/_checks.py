"""Checks the arguments of public calls. An error names the argument whose value makes no sense.

Enters: the argument's name, its value, and the values that are allowed. Leaves: nothing, or TypeError
(another kind of value) or ValueError (a value out of range). Cost: nothing.
"""

from __future__ import annotations

import difflib
import math
import operator
import sys
import warnings
from collections.abc import Callable, Iterable
from typing import Any


def whole(name: str, value: Any, least: int | None, most: int | None = None) -> int:
    """Returns an integer from `least` to `most`. None means no bound. True and False are refused."""
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise TypeError(f"{name} is a whole number, not {value!r:.60}")
    if most is not None and not (least or 0) <= value <= most:
        raise ValueError(f"{name} must be between {least} and {most}, not {value}")
    if least is not None and value < least:
        raise ValueError(f"{name} must be at least {least}, not {value}")
    return operator.index(value)


def number(name: str, value: Any, what: str, fits: Callable[[float], bool]) -> None:
    """Checks that `fits` holds for a number. `what` says the condition in words. NaN fits no comparison."""
    if isinstance(value, bool | str) or not hasattr(value, "__float__"):
        raise TypeError(f"{name} is a number, not {value!r:.60}")
    if not fits(float(value)):
        raise ValueError(f"{name} must be {what}, not {value}")


def not_negative(name: str, value: Any) -> None:
    number(name, value, "0 or more and finite", lambda x: 0 <= x < math.inf)


def above_zero(name: str, value: Any) -> None:
    number(name, value, "above 0 and finite", lambda x: 0 < x < math.inf)


def one_of(name: str, value: Any, choices: tuple[Any, ...]) -> None:
    if not any(value is choice or (isinstance(value, str) and value == choice) for choice in choices):
        raise ValueError(f"{name} is one of {', '.join(map(str, choices))}, not {value!r:.60}")


def truth(name: str, value: Any) -> None:
    if not isinstance(value, bool):
        raise TypeError(f"{name} is True or False, not {value!r:.60}")


def function(name: str, value: Any, of: str) -> None:
    if not callable(value):
        raise TypeError(f"{name} is a function of {of}, not {value!r:.60}")


def no_option(name: str, taken: Iterable[str], others: Iterable[str] = ()) -> TypeError:
    """Returns the error for an unknown argument. Its message suggests the nearest name, else it lists
    `taken`."""
    names = sorted(taken)
    close = difflib.get_close_matches(name, [*names, *others], n=1, cutoff=0.6)
    hint = f"; did you mean {close[0]}=?" if close else f"; taken are {', '.join(names)}"
    return TypeError(f"there is no option {name}={hint}")


def utf8(text: bytes | str, ids: str = "accept_tokens") -> bytes:
    """Returns a text as bytes.

    Raises:
        TypeError: the value is no text. The message says that token ids belong in the call named by `ids`.
    """
    if isinstance(text, str):  # Half a surrogate pair becomes bytes that no grammar takes.
        return text.encode("utf-8", "surrogatepass")
    if isinstance(text, bytes | bytearray | memoryview):
        return bytes(text)
    raise TypeError(f"a text is bytes or str, not {text!r:.60}; token ids go to {ids}")


def renamed(module: str, **names: str) -> Callable[[str], Any]:
    """Returns a `__getattr__` for a module. It maps each old name to the new one, and gives a
    DeprecationWarning."""

    def __getattr__(name: str) -> Any:
        if name not in names:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        warnings.warn(f"{module}.{name} is {names[name]} now", DeprecationWarning, stacklevel=2)
        return getattr(sys.modules[module], names[name])

    return __getattr__
