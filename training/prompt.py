"""The prompt format, loaded by file.

Enters: nothing. Leaves: the names of `structgen/lm/embedded/prompt.py`.
Cost: one file read.  By file, because importing the package would need the
compiled core, which training has no use for.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
EMBEDDED = ROOT / "structgen" / "lm" / "embedded"

_spec = importlib.util.spec_from_file_location("_embedded_prompt", EMBEDDED / "prompt.py")
assert _spec is not None and _spec.loader is not None
_module = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(_module)

format_prompt = _module.format_prompt
describe = _module.describe
MARKS: tuple[str, ...] = _module.MARKS
PAD_MARK: str = _module.PAD_MARK
END_MARK: str = _module.END_MARK
