"""Engine adapters. An adapter is imported only when it is named, so an engine that is not installed costs
nothing.

A name is one of `ENGINES`, or "module:function" for an adapter of one's own; the function takes `Tokens` and
returns a `base.Engine`.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from structgen._extras import missing
from structgen.limits import SERVING

from ..workers import named
from .base import Missing

if TYPE_CHECKING:
    from ..tokens import Tokens
    from .base import Engine

__all__ = ["BASELINE", "ENGINES", "adapter", "check", "load"]


@dataclass(frozen=True, slots=True)
class Entry:
    """The module of an adapter, its package, and the settings in which it runs."""

    module: str
    about: str
    settings: dict[str, Any] = field(default_factory=dict)


ENGINES = {
    "structgen": Entry("structgen", "its defaults"),
    "structgen-serving": Entry(
        "structgen",
        "with the limits of a server: 200,000 units of work a mask, and a part of the mask beyond",
        {"limits": SERVING, "on_limit": "subset"},
    ),
    "llguidance": Entry("llguidance", "its defaults; the unchecked pointer call for masks"),
    "xgrammar": Entry("xgrammar", "its defaults: no properties beyond the listed ones (strict_mode)"),
    "xgrammar-compliant": Entry(
        "xgrammar",
        "strict_mode=False, any_whitespace=True: additional properties as JSON Schema means them",
        {"strict_mode": False, "any_whitespace": True},
    ),
    "outlines-core": Entry("outlines_core", "its defaults; the automaton over tokens is built ahead"),
    "lm-format-enforcer": Entry("lm_format_enforcer", "its defaults; pure Python, tokens as text"),
    "grid-guardrail": Entry("grid_guardrail", "its default: what it cannot enforce is recorded"),
}

BASELINE = "unconstrained"  # the model without an engine, for end-to-end runs


def check(name: str) -> None:
    """Raises a ValueError if a name is no engine."""
    if name not in ENGINES and name != BASELINE and ":" not in name:
        known = ", ".join([*ENGINES, BASELINE])
        raise ValueError(f"unknown engine {name!r}; one of {known}, or module:function")


def adapter(name: str) -> Any:
    """Returns the function that makes the engine: a class of this folder, or the caller's own function.
    Missing: its package is not installed."""
    check(name)
    if ":" in name:
        return named(name)
    entry = ENGINES.get(name, Entry("unconstrained", "no grammar at all"))
    try:
        return importlib.import_module(f".{entry.module}", __package__).Engine
    except ImportError as error:
        raise Missing(str(missing(error, f"benchmarks of {name}"))) from None


def load(name: str, tokens: Tokens) -> Engine:
    """Builds the engine called `name` over the vocabulary `tokens`. It takes seconds, because engines build
    tries and caches."""
    settings = ENGINES[name].settings if name in ENGINES else {}
    made: Engine = adapter(name)(tokens, **settings)
    made.name = name
    return made


def nothing(_config: dict[str, Any]) -> None:
    """The set-up of a child that only describes engines."""


def describe(_state: None, name: str, emit: Callable[[dict[str, Any]], None]) -> None:
    """Describes an engine without building it. It runs in a child, because adapters import heavy packages."""
    try:
        found = adapter(name)
    except Missing as error:
        emit({"missing": str(error)})
        return
    emit(
        {
            "version": str(getattr(found, "version", "")),
            "notes": list(getattr(found, "notes", ())),
            "ends_in_time": bool(getattr(found, "ends_in_time", False)),
        }
    )
