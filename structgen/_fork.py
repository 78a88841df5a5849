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


_held_over: dict[int, tuple[weakref.ref[Any], str]] = {}
_holding: list[Any] = []


def hold_over_forks(owner: Any, name: str = "_lock") -> None:
    """A fork waits until ``owner.name`` (a Lock or an RLock) is free: the child finds whole what it guards.

    For locks under which data is half-changed for a while. The owner is held weakly. No thread may take two
    such locks of different owners at once.
    """
    reference = weakref.ref(owner, lambda gone: _held_over.pop(id(gone), None))
    _held_over[id(reference)] = (reference, name)


def _hold() -> None:
    for reference, name in list(_held_over.values()):
        owner = reference()
        if owner is not None:
            lock = getattr(owner, name)
            lock.acquire()
            _holding.append(lock)


def _release() -> None:
    while _holding:
        _holding.pop().release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_hold, after_in_parent=_release, after_in_child=_release)
    os.register_at_fork(after_in_child=_renew)
