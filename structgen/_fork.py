"""Locks that a forked child finds free.

In: an object and the name of its lock. Out: nothing. A forked child gets a new lock under that name: the
thread that held the parent's lock is missing in the child, so nobody would release that lock. The data that
such a lock guards must be whole between any two operations on it. The core's own locks are
``csrc/base/fork.h``. Cost: nothing until a fork, which waits for half a minute at most.
"""

from __future__ import annotations

import os
import threading
import time
import weakref
from typing import Any

from . import _core
from .errors import BudgetExceeded

_owners: dict[int, weakref.ref[Any]] = {}


def renew_in_children(owner: Any) -> None:
    """Every forked child gets a new ``owner._lock``, a ``threading.Lock``. The owner is held weakly."""
    reference = weakref.ref(owner, lambda gone: _owners.pop(id(gone), None))
    _owners[id(reference)] = reference


def _renew() -> None:
    for reference in list(_owners.values()):
        owner = reference()
        if owner is not None:
            owner._lock = threading.Lock()


_held_over: dict[int, tuple[weakref.ref[Any], str]] = {}
_holding: list[Any] = []
_lost: list[tuple[Any, str]] = []
PATIENCE = 30.0  # seconds that a fork waits for locks and for the core's threads, in all


class LostLock:
    """Stands for a lock that another thread held at the fork. The data behind it may be half-changed."""

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        raise BudgetExceeded(
            f"this process was forked while another thread used this object for more than {PATIENCE:.0f} s; "
            "make a new one here, or fork before such work begins"
        )

    def __enter__(self) -> bool:
        return self.acquire()

    def release(self) -> None:
        pass

    def __exit__(self, *exception: object) -> None:
        pass

    def locked(self) -> bool:
        return True


def hold_over_forks(owner: Any, name: str = "_lock") -> None:
    """Makes a fork wait until ``owner.name`` (a Lock or an RLock) is free, so the child finds its data whole.

    Use this function for locks whose data is half-changed for a while. The owner is held weakly. No thread
    may hold two such locks of different owners at once. If a lock is not free after ``PATIENCE`` seconds, the
    fork goes on, and the child has a `LostLock` in its place.
    """
    reference = weakref.ref(owner, lambda gone: _held_over.pop(id(gone), None))
    _held_over[id(reference)] = (reference, name)


def _hold() -> None:
    end = time.monotonic() + PATIENCE
    for reference, name in list(_held_over.values()):
        owner = reference()
        if owner is not None:
            lock = getattr(owner, name)
            if lock.acquire(timeout=max(0.0, end - time.monotonic())):
                _holding.append(lock)
            else:
                _lost.append((owner, name))
    _core.fork_patience(max(0.0, end - time.monotonic()))


def _release() -> None:
    _core.fork_patience(-1)
    while _holding:
        _holding.pop().release()


def _release_in_parent() -> None:
    _release()
    _lost.clear()


def _release_in_child() -> None:
    _release()
    while _lost:
        owner, name = _lost.pop()
        setattr(owner, name, LostLock())


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_hold, after_in_parent=_release_in_parent, after_in_child=_renew)
    os.register_at_fork(after_in_child=_release_in_child)
