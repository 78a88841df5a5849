"""The official JSON-Schema-Test-Suite. Required files must be right in full, optional files too,
apart from what KNOWN lists with its reason."""

from __future__ import annotations

import pytest

from bench import suite
from tests.conftest import need

A_LABELS = "A-labels are not decoded: Punycode is not regular"
BIDI = "bidirectional, length and joiner rules of whole labels are not enforced"
PATTERN = "which texts are patterns is not regular; brackets are not matched"
INFINITE = "a multipleOf with more digits than the automata hold is SchemaTooComplex"

# (file, group) or file -> why some of its tests fail. An entry without a failure fails the test.
KNOWN: dict[tuple[str, str] | str, str] = {
    "draft2020-12/multipleOf.json": INFINITE,
    "draft7/multipleOf.json": INFINITE,
    "draft2020-12/optional/format/hostname.json": A_LABELS,
    "draft7/optional/format/hostname.json": A_LABELS,
    "draft2020-12/optional/format/idn-hostname.json": BIDI,
    "draft7/optional/format/idn-hostname.json": BIDI,
    "draft2020-12/optional/format/regex.json": PATTERN,
    "draft7/optional/format/regex.json": PATTERN,
    "draft7/optional/content.json": "contentEncoding, contentMediaType are annotations, as later drafts say",
}


@pytest.mark.parametrize("draft", suite.DRAFTS)
def test_suite(draft, data_root) -> None:
    need((data_root / "json-schema-test-suite").is_dir(), "no official suite in the data directory")
    rows = suite.run([draft], optional=True)
    assert sum(row["right"] for row in rows) > 1000
    wrong, met = [], set()
    for row in rows:
        if not (row["error"] or row["wrong"]):
            continue
        keys = {row["file"], (row["file"], row["about"])} & KNOWN.keys()
        met |= keys
        if not keys:
            wrong.append(f"{row['file']}: {row['about']}: {row['error'] or row['wrong']}")
    assert not wrong, "\n".join(wrong)
    mine = [key for key in KNOWN if (key if isinstance(key, str) else key[0]).startswith(f"{draft}/")]
    stale = [key for key in mine if key not in met]
    assert not stale, f"no longer wrong, take off the list: {stale}"
