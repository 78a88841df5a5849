"""Formats as languages, against the official suite's optional/format cases and calendars."""

from __future__ import annotations

import datetime
import json

import pytest

from bench import data
from structgen import _core
from tests.conftest import need

# Formats that are not regular, or not wholly: the language may be larger there, never smaller.
LARGER = {"hostname", "idn-hostname", "idn-email", "regex"}
CACHE: dict[str, _core.Language] = {}


def accepts(name: str, text: str) -> bool:
    if name not in CACHE:
        CACHE[name] = _core.Language.format(name)
    return CACHE[name].matches(json.dumps(text, ensure_ascii=False)[1:].encode())


def suite_cases():
    root = data.root() / "json-schema-test-suite" / "tests"
    for path in sorted(root.glob("*/optional/format/*.json")):
        for group in json.loads(path.read_text()):
            name = group["schema"].get("format") if isinstance(group["schema"], dict) else None
            if name is None or name == "unknown":
                continue
            for test in group["tests"]:
                if isinstance(test["data"], str):
                    yield name, test["data"], test["valid"]


def test_official_suite(data_root):
    cases = list(suite_cases())
    need(bool(cases), "no format cases")
    wrong = [
        (name, text, valid)
        for name, text, valid in cases
        if accepts(name, text) != valid and (valid or name not in LARGER)
    ]
    assert not wrong


@pytest.mark.parametrize("year", [0, 1, 4, 100, 400, 1900, 1999, 2000, 2024, 2100, 9999])
def test_dates_are_the_calendar(year):
    for month in range(14):
        for day in range(33):
            try:
                datetime.date(year or 400, month, day)
                valid = True
            except ValueError:
                valid = False
            text = f"{year:04d}-{month:02d}-{day:02d}"
            assert accepts("date", text) == valid, text
            assert accepts("date-time", text + "T00:00:00Z") == valid, text


@pytest.mark.parametrize("sign", "+-")
@pytest.mark.parametrize("hour", [0, 1, 7, 12, 22, 23])
def test_leap_seconds_are_the_last_second_of_a_utc_day(hour, sign):
    for minute in (0, 1, 9, 10, 29, 30, 58, 59):
        for offset in range(0, 1440, 7):
            shift = offset if sign == "+" else -offset
            valid = (hour * 60 + minute - shift) % 1440 == 1439
            text = f"{hour:02d}:{minute:02d}:60{sign}{offset // 60:02d}:{offset % 60:02d}"
            assert accepts("time", text) == valid, text


def test_escaped_spellings_are_the_same_text():
    language = _core.Language.format("date")
    assert language.matches(b'2024-02-\\u0032\\u0039"')
    assert not language.matches(b'2023-02-\\u0032\\u0039"')
