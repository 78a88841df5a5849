"""Finds the ids that end a sequence.

The sources are read in this order: the model's generation configuration, the model's configuration, the
tokenizer's own end token, and names that only end tokens have. The first source with an id counts.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from .parts import Parts

_END_NAMES = (
    *("</s>", "<eos>", "<|eos|>", "<|end_of_text|>", "<|endoftext|>", "<｜end▁of▁sentence｜>"),
    *("<|eot_id|>", "<|im_end|>", "<end_of_turn>", "<|end|>", "<EOT>", "[EOS]", "<|return|>"),
)


def ids(value: Any) -> list[int]:
    """Returns a list of ids from a configuration's value, which is an id or a list of ids; [] for other
    values."""
    listed = value if isinstance(value, (list, tuple)) else [value]
    return [int(i) for i in listed if isinstance(i, int) and not isinstance(i, bool) and i >= 0]


def by_name(parts: Parts) -> list[int]:
    """Returns the special tokens that have the name of an end token."""
    return sorted({parts.special[name] for name in _END_NAMES if name in parts.special})


def beside(folder: Path, parts: Parts) -> list[int]:
    """Returns the end tokens that the configuration files of a folder name; [] if they name none."""
    for name in ("generation_config.json", "config.json"):
        found = ids(_record(folder / name).get("eos_token_id"))
        if found:
            return found
    token = _record(folder / "tokenizer_config.json").get("eos_token")
    if isinstance(token, Mapping):
        token = token.get("content")
    return [parts.special[token]] if isinstance(token, str) and token in parts.special else []


def of_model(model: Any) -> list[int]:
    """Returns the end tokens that a model or its configuration names."""
    for holder in (
        getattr(model, "generation_config", None),
        getattr(model, "config", None),
        model,
    ):
        found = ids(getattr(holder, "eos_token_id", None))
        if found:
            return found
        found = ids(getattr(getattr(holder, "text_config", None), "eos_token_id", None))
        if found:
            return found
    return []


def of_tokenizer(tokenizer: Any, parts: Parts) -> list[int]:
    """Returns the end tokens of a tokenizer. The sources in order: local files beside the tokenizer, its own
    end token, its special names."""
    for folder in _folders(getattr(tokenizer, "name_or_path", None)):
        found = beside(folder, parts)
        if found:
            return found
    return ids(getattr(tokenizer, "eos_token_id", None)) or parts.eos or by_name(parts)


def _folders(name: Any) -> list[Path]:
    """Returns the folders of this machine that hold a model of this name, without a request to the
    network."""
    if not isinstance(name, str) or not name:
        return []
    if Path(name).is_dir():
        return [Path(name)]
    hub = sys.modules.get("huggingface_hub")  # The package is already imported if it loaded the tokenizer.
    if hub is None:
        return []
    folders = []
    for file in ("generation_config.json", "config.json"):
        try:
            found = hub.try_to_load_from_cache(name, file)
        except ValueError:  # the name does not have the form of a hub name
            return []
        if isinstance(found, str):
            folders.append(Path(found).parent)
    return folders


def _record(file: Path) -> Mapping[str, Any]:
    try:
        record = json.loads(file.read_bytes())
    except (OSError, ValueError):
        return {}
    return record if isinstance(record, Mapping) else {}
