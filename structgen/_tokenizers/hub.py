"""Finds out whether the Hugging Face hub can be reached.

Enters: a folder or a model's name. Leaves: options for `from_pretrained`. Cost: one connection.
"""

from __future__ import annotations

import os
from typing import Any

_HUB_SECONDS = 3.0


def hub_options(name: str) -> dict[str, Any]:
    """Returns options for `from_pretrained`. Without a network they ask for local files only.

    Without these options, `from_pretrained` asks an unreachable hub six times, which takes a minute. If a
    proxy is set, the hub counts as reachable.

    Raises:
        FileNotFoundError: the name is a folder's path, and the folder does not exist.
    """
    import socket
    import urllib.parse
    import urllib.request

    if name.startswith(("/", ".", "~")) and not os.path.exists(name):
        raise FileNotFoundError("no such folder")
    if os.path.exists(name) or urllib.request.getproxies():
        return {}
    try:
        from huggingface_hub import constants
    except ImportError:
        return {}
    if constants.HF_HUB_OFFLINE:
        return {}
    place = urllib.parse.urlsplit(constants.ENDPOINT)
    port = place.port or (80 if place.scheme == "http" else 443)
    try:
        socket.create_connection((place.hostname or "", port), timeout=_HUB_SECONDS).close()
    except OSError:
        return {"local_files_only": True}
    return {}
