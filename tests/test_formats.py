"""Formats as languages, compared with the official suite's optional/format cases and with calendars."""

from __future__ import annotations

import datetime
import json
import random
import unicodedata

import idna
import pytest

import structgen
from oracles import data, oracle, strategies
from structgen import _core

# Formats that no regex describes in full: the engine's language may be larger, but never smaller.
LARGER = {"hostname", "idn-hostname", "idn-email", "regex"}
# Formats without a function in oracles/oracle.py, each with the tests that replace the function. The other
# formats are compared with the function: below on sample texts, and in test_laws.py within random schemas.
WITHOUT_ORACLE = {
    "email": ["test_official_suite"],
    "idn-email": ["test_official_suite", "test_international_names_are_those_of_idna"],
    "hostname": ["test_official_suite", "test_international_names_are_those_of_idna"],
    "idn-hostname": ["test_official_suite", "test_international_names_are_those_of_idna"],
    "uri": ["test_official_suite"],
    "uri-reference": ["test_official_suite"],
    "iri": ["test_official_suite"],
    "iri-reference": ["test_official_suite"],
    "uri-template": ["test_official_suite"],
    "relative-json-pointer": ["test_official_suite"],
    "regex": ["test_official_suite", "test_regular_expressions"],
}
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


def test_every_format_has_an_oracle_or_stands_in_the_list() -> None:
    known = set(_core.format_names())
    assert known == set(oracle.FORMATS) | set(WITHOUT_ORACLE)
    assert not set(oracle.FORMATS) & set(WITHOUT_ORACLE)
    assert set(strategies.FORMAT_TEXTS) == set(oracle.FORMATS), "random schemas use what an oracle judges"
    assert {test for tests in WITHOUT_ORACLE.values() for test in tests} <= set(globals())


@pytest.mark.parametrize("name", sorted(oracle.FORMATS))
def test_sample_texts_of_a_format_are_judged_as_its_oracle_judges_them(name) -> None:
    texts = strategies.FORMAT_TEXTS[name]
    verdicts = {text: oracle.FORMATS[name](text) for text in texts}
    assert set(verdicts.values()) == {True, False}, "a sample on each side"
    assert {text: accepts(name, text) for text in texts} == verdicts


def test_the_official_suite_has_both_verdicts_of_every_format_without_an_oracle(data_root) -> None:
    found = {(name, valid) for name, _, valid in suite_cases()}
    assert {(name, valid) for name in WITHOUT_ORACLE for valid in (False, True)} <= found


def test_official_suite(data_root):
    cases = list(suite_cases())
    data.need(bool(cases), "no format cases")
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


# ---- regex: compared with `new RegExp(text)` of an ECMAScript engine ----

PATTERNS = r"""
(a) (((((((((a))))))))) [abc]+\s+$ (?:a)*? (?<n>a)\k<n> (?=a)* (?<!x)y (?i-s:a) a] a} a{ a{2,3}? a{,2} { {a}
\bfoo\B [\b(] \p{L} [^]] [] |a (|) () \u{1F600} \cA [(] \( x{2,} x{2}? ^$
"""
NO_PATTERNS = r"""
( ^(abc] ) a) (a ((a) * a** (*a) |* ^* $+ \b+ [a \ \a {2} a{2}{3} (?<n>a (?x) (?P<n>a) (a)) (((a))
\u12 \p{L (?<>a) a??? [\] [a-\
"""


def test_regular_expressions():
    assert [p for p in ["", *PATTERNS.split()] if not accepts("regex", p)] == []
    assert [p for p in NO_PATTERNS.split() if accepts("regex", p)] == []
    deep = "(" * 12 + "a" + ")" * 12
    assert accepts("regex", deep) and not accepts("regex", deep[:-10])


# ---- internationalised host names, against the `idna` package ----

TRICKY = [
    *"ab1l0-A.",
    *"\xb7\u0375\u03b1\u05f3\u05f4\u05d0\u0660\u06f0\u0628\u064a\u094d\u200d\u200c\u0915\u30fb",
]
TRICKY += [
    *"\u3041\u30a1\u4e08\xfc\xdf\u07c0\u07ca\u093c\u0308\u0644\u0740\u0b4d\u1b44\ua872\u0640\uac00\u302e",
    "xn--",
]


def judged(name: str) -> bool:
    """Returns the verdict of `idna` on a name. `idna` checks labels one by one, but the Bidi rule is about
    whole names (RFC 5893, section 2). `idna` takes a final dot, which the official suite refuses."""
    if name.endswith("."):
        return False
    try:
        labels = idna.decode(idna.encode(name, strict=True)).split(".")
        if any(unicodedata.bidirectional(c) in ("R", "AL", "AN") for label in labels for c in label):
            for label in labels:
                idna.check_bidi(label, check_ltr=True)
    except UnicodeError:
        return False
    return True


def decided(name: str) -> bool:
    """Returns whether the verdict needs only a regular language: no A-labels and no normal form C."""
    return "xn--" not in name and unicodedata.normalize("NFC", name) == name


def test_international_names_are_those_of_idna():
    rnd = random.Random(5891)
    verdicts = set()
    for _ in range(4000):
        name = "".join(rnd.choice(TRICKY) for _ in range(rnd.randint(1, 9)))
        valid = judged(name)
        verdicts.add(valid)
        if valid or decided(name):
            assert accepts("idn-hostname", name) == valid, ascii(name)
            assert accepts("idn-email", f"a@{name}") == valid, ascii(name)
        if valid:
            ascii_name = idna.encode(name, strict=True).decode()
            assert accepts("hostname", ascii_name) and accepts("idn-hostname", ascii_name), ascii_name
    assert verdicts == {True, False}


def test_any_letter_may_stand_in_a_name():
    rnd = random.Random(5892)
    for _ in range(6000):
        label = chr(rnd.choice((rnd.randint(0x80, 0x33FF), rnd.randint(0xA000, 0x1FFFF)))) * rnd.randint(1, 2)
        if not label.isprintable() or unicodedata.normalize("NFC", label) != label:
            continue  # Python's tables, and its normal form, are older
        assert accepts("idn-hostname", label) == judged(label), ascii(label)
        if judged(label):
            assert accepts("hostname", idna.encode(label).decode()), ascii(label)


@pytest.mark.parametrize("length", [1, 56, 57, 58, 63, 64])
def test_lengths_of_labels(length):
    assert accepts("idn-hostname", "a" * length) == (length <= 63)
    # A label with other characters is refused only if its A-label is too long for any choice of the
    # characters.
    for letter in "\xfc\u4e08":
        assert accepts("idn-hostname", letter * length) or not judged(letter * length)
        assert length < 58 or not accepts("idn-hostname", letter * length)


def test_a_labels_that_no_name_has():
    for text in (
        *("xn--", "xn--a", "xn--x", "xn--7a", "xn--9", "xn--abc-", "xn---9uc", "xn--zca9", "xn--99999999a"),
    ):
        assert not accepts("hostname", text) and not accepts("idn-hostname", text), text
    for text in ("xn--zca", "XN--ZCA", "xn----7sbbagpjtebpq", "xn--fiqs8s.xn--zca", "ab--cd"):
        assert accepts("hostname", text), text


def test_what_is_not_decided_is_reported():
    compiler = structgen.Compiler(structgen.Vocabulary.from_bytes([b"a", b""], eos_token_ids=[1]))
    for name in LARGER:
        assert name in str(compiler.json_schema({"format": name}).report), name
    assert "date" not in str(compiler.json_schema({"format": "date"}).report)
