"""Pytest plugin of `make test-asan`: `structgen._core` comes from the folder in STRUCTGEN_CORE.

The plugin's finder comes first, so the sanitized library replaces the installed one. The Python files stay
those of the tree.
"""

from __future__ import annotations

import importlib.util
import os
import sys
from importlib.machinery import ModuleSpec
from pathlib import Path


class Finder:
    """Finds `structgen._core`, and no other module."""

    def __init__(self, folder: Path) -> None:
        (self.library,) = folder.glob("_core*.so")

    def find_spec(self, name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        if name != "structgen._core":
            return None
        return importlib.util.spec_from_file_location(name, self.library.resolve())


sys.meta_path.insert(0, Finder(Path(os.environ["STRUCTGEN_CORE"])))
