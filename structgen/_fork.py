"""Locks that a forked child finds free.

In: an object and the name of its lock. Out: nothing; in a forked child a new lock stands under that name,
because the thread that held the parent's is not there to release it. What such a lock guards must be whole
between any two operations on it. The core's own locks are ``csrc/base/fork.h``. Cost: nothing until a fork.
"""

from __future__ import annotations

import os
import threading
import weakref
from typing import Any

_owners: dict[int, tuple[weakref.ref[Any], str]] = {}


def renew_in_children(owner: Any, name: str = "_lock") -> None:
    """``owner.name``, a ``threading.Lock``, is a new one in every forked child. The owner is held weakly."""
    reference = weakref.ref(owner, lambda gone: _owners.pop(id(gone), None))
    _owners[id(reference)] = (reference, name)


def _renew() -> None:
    for reference, name in list(_owners.values()):
        owner = reference()
        if owner is not None:
            setattr(owner, name, threading.Lock())


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew)
