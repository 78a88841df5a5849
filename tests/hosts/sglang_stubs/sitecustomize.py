"""Empty packages that replace four imports of SGLang. The CPU engine does not use the four packages here.

torchvision, decord, timm and sgl_kernel need CUDA, or conflict with a CPU build of torch. Python imports a
module of this name at start. So every process that SGLang starts has the stubs if PYTHONPATH holds this
folder. transformers must not find the stubs, because transformers reads the metadata of what it finds.
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import importlib.util
import sys
import types
from collections.abc import Sequence
from typing import Any

NAMES = ("torchvision", "decord", "timm", "sgl_kernel")


class Anything(type):
    """A metaclass: its classes have every attribute."""

    def __getattr__(cls, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return Anything(name, (Empty,), {})


class Empty(metaclass=Anything):
    """A class that takes any arguments and does nothing."""

    def __init__(self, *_: Any, **__: Any) -> None:
        pass

    def __class_getitem__(cls, _: Any) -> type[Empty]:
        return cls


class Package(types.ModuleType):
    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return Anything(name, (Empty,), {})


class Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def find_spec(self, name: str, path: Sequence[str] | None = None, target: Any = None) -> Any:
        if name.partition(".")[0] not in NAMES:
            return None
        frame: Any = sys._getframe(1)
        while frame is not None:
            if frame.f_code.co_filename.endswith("transformers/utils/import_utils.py"):
                return None
            frame = frame.f_back
        return importlib.machinery.ModuleSpec(name, self, is_package=True)

    def create_module(self, spec: Any) -> types.ModuleType:
        return Package(spec.name)

    def exec_module(self, module: types.ModuleType) -> None:
        module.__path__ = []
        module.__version__ = "0"


sys.meta_path.append(Finder())
