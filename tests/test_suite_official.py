"""The official JSON-Schema-Test-Suite. Required files must be right in full, optional files too,
apart from what KNOWN lists with its reason."""

from __future__ import annotations

import pytest

from bench import suite
from tests.conftest import need

# (file, group) or file -> why its tests may fail
KNOWN: dict[tuple[str, str] | str, str] = {}


@pytest.mark.parametrize("draft", suite.DRAFTS)
def test_suite(draft, data_root) -> None:
    need((data_root / "json-schema-test-suite").is_dir(), "no official suite in the data directory")
    rows = suite.run([draft], optional=True)
    assert sum(row["right"] for row in rows) > 1000
    wrong = []
    for row in rows:
        if (row["error"] or row["wrong"]) and not (
            row["file"] in KNOWN or (row["file"], row["about"]) in KNOWN
        ):
            wrong.append(f"{row['file']}: {row['about']}: {row['error'] or row['wrong']}")
    assert not wrong, "\n".join(wrong)
