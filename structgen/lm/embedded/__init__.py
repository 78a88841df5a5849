"""The embedded model pair: a small target, a tenth as large draft, one tokenizer.

Enters: the name of a model, or a request with its schema.
Leaves: the folder to load (`path`), the text to continue (`format_prompt`).
Cost: a few file reads; nothing heavy is imported.

    from structgen.lm import embedded
    from structgen.lm.load import language_model
    lm = language_model(embedded.path("draft"))
    prompt = embedded.format_prompt("Ada Byron lives in Oslo", schema)
    lm.logprobs([lm.start(prompt)])
"""

from __future__ import annotations

import json
import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from .prompt import describe, format_prompt

__all__ = ["CONTEXT", "FOLDER", "EmbeddedModelError", "check_prompt", "describe", "format_prompt", "path"]

# The mean log-probability per token below which an answer is in doubt (`structgen.lm.doubt`).
LEAST_LOGPROB = {"target": -0.063}

# The most tokens of prompt and answer together. Training used up to 400; beyond that, answers get worse.
CONTEXT = 1024

FOLDER = Path(__file__).resolve().parent
_FILES = ("config.json", "generation_config.json", "tokenizer.json", "tokenizer_config.json")
_WEIGHTS = "model.safetensors"


class EmbeddedModelError(RuntimeError):
    """The folder of an embedded model is missing or damaged."""


def path(name: Literal["target", "draft"] = "target") -> Path:
    """Returns the model's folder, after a check that its files are whole."""
    if name not in ("target", "draft"):
        raise EmbeddedModelError(f"no embedded model is called {name!r}: the two are 'target' and 'draft'")
    folder = FOLDER / name
    check(folder)
    return folder


def check_prompt(tokens: Sequence[int], room: int = 1) -> None:
    """Raises an error if the prompt leaves no room for `room` tokens of answer."""
    if len(tokens) + room > CONTEXT:
        raise EmbeddedModelError(
            f"the prompt has {len(tokens)} tokens; the embedded models read {CONTEXT}, "
            "answer included: shorten it"
        )


def check(folder: Path) -> None:
    """Raises an error that names a missing or damaged file. Of the weights only the header is read."""
    if not folder.is_dir():
        raise EmbeddedModelError(
            f"model folder {folder} is missing: reinstall structgen, or run `make model`"
        )
    for file in (*_FILES, _WEIGHTS):
        if not (folder / file).is_file():
            raise EmbeddedModelError(
                f"model folder {folder} has no {file}: reinstall structgen, or run `make model`"
            )
    for file in _FILES:
        try:
            json.loads((folder / file).read_text(encoding="utf-8"))
        except ValueError as error:
            raise EmbeddedModelError(f"{folder / file} is damaged: not JSON ({error})") from None
    _check_weights(folder / _WEIGHTS)


def _check_weights(file: Path) -> None:
    size = file.stat().st_size
    with file.open("rb") as stream:
        head = stream.read(8)
        length = struct.unpack("<Q", head)[0] if len(head) == 8 else size
        if 8 + length > size:
            raise EmbeddedModelError(f"{file} is damaged: its header is cut off")
        try:
            header = json.loads(stream.read(length))
            end = max(entry["data_offsets"][1] for name, entry in header.items() if name != "__metadata__")
        except (ValueError, KeyError, TypeError, AttributeError, IndexError):
            raise EmbeddedModelError(f"{file} is damaged: its header cannot be read") from None
    if 8 + length + end != size:
        raise EmbeddedModelError(
            f"{file} is damaged: {size} bytes where its header promises {8 + length + end}"
        )
