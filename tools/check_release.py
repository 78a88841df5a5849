"""Is this commit what the tag says? The release workflow asks first: `make check-release TAG=v1.2.3`.

In: a tag. Out: nothing, or a line for each thing that is wrong and exit status 1. Cost: three small files.
The version stands in structgen/__init__.py alone, and the changelog must have a section for it.
"""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def problems(tag: str, root: Path = ROOT) -> list[str]:
    """Returns what stands in the way of releasing `root` as `tag`."""
    package = (root / "structgen" / "__init__.py").read_text("utf-8")
    found = re.search(r'^__version__ = "([^"]+)"$', package, re.MULTILINE)
    if found is None:
        return ["structgen/__init__.py has no line __version__ = ..."]
    version = found[1]
    wrong = []
    if tag != f"v{version}":
        wrong.append(f"the tag is {tag}, the version in structgen/__init__.py {version}: tag v{version}")
    changes = (root / "CHANGELOG.md").read_text("utf-8")
    if not re.search(rf"^## \[?{re.escape(version)}\]?(\s|$)", changes, re.MULTILINE):
        wrong.append(f"CHANGELOG.md has no section {version}: give the unreleased changes this heading")
    project = tomllib.loads((root / "pyproject.toml").read_text("utf-8"))["project"]
    if "Source" not in project.get("urls", {}):
        wrong.append("pyproject.toml has no [project.urls] with Source: say where the repository is")
    return wrong


def main(arguments: list[str]) -> int:
    if len(arguments) != 1 or not arguments[0]:
        print("usage: check_release.py TAG", file=sys.stderr)
        return 2
    wrong = problems(arguments[0])
    for line in wrong:
        print(f"not releasable: {line}", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
