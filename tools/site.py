"""Hooks of the documentation site (mkdocs.yml): links that lead out of docs/.

Enters: a page's text. Leaves: the same with the names of files in place of links to files that are not pages.
The pages are read in the repository too, where such links are right; tests/test_documentation.py checks that
the files are there.
"""

from __future__ import annotations

import re
from typing import Any

_OUT = re.compile(r"\[([^\]\[]+)\]\(\.\./([^)#]+)(?:#[^)]*)?\)")


def on_page_markdown(markdown: str, **more: Any) -> str:
    return _OUT.sub(
        lambda m: m[1] if m[1].startswith("`") or m[2] in m[1] else f"{m[1]} (`{m[2]}`)", markdown
    )
