"""Every text of the grammar of a Python type is parsed into a value of the type.

Random walks go through the grammars of random types: leaves, containers, models with random fields, aliases
and settings. If the grammar cannot express a condition of a type, the report of the type must list the
condition.
"""

from __future__ import annotations

import collections
import dataclasses
import datetime as dt
import decimal
import enum
import fractions
import ipaddress
import itertools
import json
import math
import pathlib
import random
import re
import uuid
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, Literal, NamedTuple, NotRequired, Optional, Union

import annotated_types
import pydantic
import pydantic_core
import pytest
from pydantic import ConfigDict, Field
from typing_extensions import TypedDict

import structgen as sg
from oracles.harness import BYTES, byte_walk, cases, refusals, verdict
from structgen.frontend import text_patterns

UTC = dt.UTC


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 20


class Mixed(enum.Enum):
    NAME = "x"
    NUMBER = 3


class Ratio(enum.Enum):
    HALF = 0.5
    TWO = 2.0


class Spot(NamedTuple):
    row: int
    name: str = "x"


LEAVES: list[Any] = [
    *(int, float, str, bool, type(None), bytes, decimal.Decimal, fractions.Fraction, complex, uuid.UUID),
    *(dt.date, dt.time, dt.datetime, dt.timedelta, pathlib.Path, re.Pattern, Level, Mixed, Ratio, Spot),
    *(ipaddress.IPv4Address, ipaddress.IPv6Address, ipaddress.IPv4Network, ipaddress.IPv6Network),
    *(ipaddress.IPv4Interface, ipaddress.IPv6Interface, pydantic.IPvAnyAddress, pydantic.IPvAnyNetwork),
    *(pydantic.IPvAnyInterface, pydantic.HttpUrl, pydantic.AnyUrl, pydantic.AnyHttpUrl, pydantic.FileUrl),
    *(pydantic.FtpUrl, pydantic.WebsocketUrl, pydantic.PostgresDsn, pydantic.RedisDsn, pydantic.KafkaDsn),
    *(pydantic.MongoDsn, pydantic.AmqpDsn, pydantic.NatsDsn, pydantic.NaiveDatetime, pydantic.AwareDatetime),
    *(pydantic.PastDate, pydantic.FutureDate, pydantic.PastDatetime, pydantic.FutureDatetime),
    *(pydantic.UUID1, pydantic.UUID3, pydantic.UUID4, pydantic.UUID5, pydantic.UUID7, pydantic.ByteSize),
    *(pydantic.Base64Bytes, pydantic.Base64Str, pydantic.Base64UrlBytes, pydantic.Base64UrlStr),
    *(pydantic.StrictInt, pydantic.StrictFloat, pydantic.StrictStr, pydantic.StrictBool, pydantic.SecretStr),
    *(pydantic.SecretBytes, pydantic.PositiveInt, pydantic.NegativeFloat, pydantic.FiniteFloat),
    *(pydantic.NonNegativeFloat, pydantic.PositiveFloat, pydantic.Json, pydantic.Json[int]),
    *(pydantic.Json[list[str]], pydantic.Json[dict[str, float]], pydantic.Json[Spot | None]),
    Literal["a", 1, None, True],
    pydantic.conint(multiple_of=7, ge=-100),
    pydantic.conint(multiple_of=7),
    pydantic.confloat(multiple_of=0.5),
    pydantic.confloat(gt=0, lt=1),
    pydantic.constr(min_length=2, max_length=5, pattern=r"^[a-z\W]*$"),
    pydantic.constr(pattern=r"^\w+[^\d\s]\D\S$"),
    pydantic.constr(pattern=r"^a\b.\B"),
    Annotated[float, Field(multiple_of=0.1)],
    Annotated[float, Field(multiple_of=0.3, ge=2)],
    Literal[b"x", "y"],
    pydantic.constr(strip_whitespace=True, min_length=2),
    pydantic.constr(strip_whitespace=True, max_length=3),
    pydantic.constr(to_lower=True),
    pydantic.constr(to_upper=True, pattern="^[A-Z]+$"),
    pydantic.conbytes(min_length=2, max_length=4),
    pydantic.condate(ge=dt.date(2020, 1, 1), lt=dt.date(2021, 2, 3)),
    Annotated[decimal.Decimal, Field(max_digits=5, decimal_places=2)],
    Annotated[decimal.Decimal, Field(max_digits=4)],
    Annotated[decimal.Decimal, Field(decimal_places=3)],
    Annotated[decimal.Decimal, Field(gt=0, lt=decimal.Decimal("0.3"))],
    Annotated[decimal.Decimal, Field(multiple_of=decimal.Decimal("0.05"), max_digits=6, decimal_places=2)],
    Annotated[dt.datetime, Field(gt=dt.datetime(2020, 1, 1, 8, 0, 0, 500))],
    Annotated[dt.datetime, Field(le=dt.datetime(2020, 1, 1, tzinfo=UTC))],
    Annotated[dt.timedelta, Field(ge=dt.timedelta(0), lt=dt.timedelta(hours=2))],
    Annotated[dt.time, Field(ge=dt.time(8), le=dt.time(17, 30))],
    Annotated[dt.date, pydantic.Strict()],
    Annotated[dt.datetime, pydantic.Strict()],
    Annotated[dt.time, pydantic.Strict()],
]
KEYS: list[Any] = [
    *(str, int, float, bool, uuid.UUID, dt.date, dt.datetime, dt.time, Level, Mixed, decimal.Decimal),
    *(pydantic.PositiveInt, pydantic.HttpUrl, pydantic.UUID4, ipaddress.IPv4Address, Literal["a", "b"]),
    *(pydantic.conint(ge=-5, lt=130), pydantic.constr(max_length=3), int | uuid.UUID, dt.timedelta, bytes),
]


# Some fields have the names of keywords whose values are data.
NAMES = ["a", "b", "c", "default", "examples", "const", "enum", "properties", "items"]
PREDICATES = [getattr(str, name) for name in dir(str) if name.startswith("is")]


class Denied(annotated_types.Not):
    __hash__ = object.__hash__  # makes the class hashable, so that unions of it can be built


class Types:
    """Random types of a bounded depth."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)

    def of(self, depth: int) -> Any:
        c = self.chance
        if depth == 0 or c.random() < 0.3:
            kinds = [self.decimal, self.floating, self.members, self.text]
            return c.choice([lambda: c.choice(LEAVES)] * 3 + kinds)()
        inner = lambda: self.of(depth - 1)  # noqa: E731
        shape = c.randrange(12)
        if shape == 0:
            return list[inner()]
        if shape == 1:
            return dict[c.choice(KEYS), inner()]
        if shape == 2:
            return Optional[inner()]  # noqa: UP045
        if shape == 3:
            return Union[inner(), inner()]  # noqa: UP007
        if shape == 4:
            return tuple[inner(), inner()]
        if shape == 5:
            return tuple[inner(), ...]
        if shape == 6:
            return c.choice([set, frozenset])[c.choice([int, str, dt.date, Level, float])]
        if shape == 7:
            return Annotated[list[inner()], Field(min_length=1, max_length=3)]
        if shape == 8:
            return c.choice([Sequence, collections.deque])[inner()]
        if shape == 9:
            return c.choice([Mapping, collections.OrderedDict])[str, inner()]
        return self.model(depth) if shape < 11 else self.record(depth)

    def decimal(self) -> Any:
        """Digits, places, multiples and bounds of every size that some number satisfies."""
        c = self.chance
        marks: dict[str, Any] = {}
        if c.random() < 0.4:
            marks["max_digits"] = c.choice([1, 2, 5, 14, 15, 16, 30])
        if c.random() < 0.4:
            marks["decimal_places"] = c.choice([0, 1, 2, 5, 20])
        if c.random() < 0.3 and "max_digits" not in marks:
            marks["multiple_of"] = decimal.Decimal(c.choice(["1E+5", "0.05", "7", "0.25", "1E-3", "12.5"]))
        room = marks.get("max_digits", 40) - marks.get("decimal_places", 0)
        size = decimal.Decimal(10) ** c.randrange(0, 30)
        if (
            c.random() < 0.4
            and size * 10 < decimal.Decimal(10) ** room
            and size * 10 < decimal.Decimal(10) ** 26
        ):
            marks[c.choice(["gt", "ge"])] = c.choice([size, -size])
        return Annotated[decimal.Decimal, Field(**marks)]

    def floating(self) -> Any:
        """Multiples of every kind, and a bound of every size."""
        c = self.chance
        step = c.choice([0.1, 0.01, 0.3, 0.25, 1.5, 3, 2, 0.7, 86400])
        power = c.choice([c.randrange(6), c.randrange(11, 30), c.randrange(300)])
        size = step * 10.0**power * c.choice([1, 1.3])
        marks = {"ge": size} if c.random() < 0.5 else {"le": -size}
        return Annotated[float, Field(multiple_of=step, **marks)]

    def members(self) -> Any:
        """Returns an enum or a literal, with values that JSON has and other values."""
        c = self.chance
        known = ["a", 'b"', 1, 2**62, 0.5, True, None, [1], ["x", 2]]
        other = [(1, 2), 2**70, float("nan"), dt.date(2020, 1, 1), decimal.Decimal("1.5"), b"x", {1}]
        picked = c.sample(known, c.randrange(1, 4)) + c.sample(other, c.randrange(0, 3))
        return enum.Enum("Members", {f"m{i}": value for i, value in enumerate(picked)})

    def text(self) -> Any:
        c = self.chance
        rule = c.choice(PREDICATES)
        if c.random() < 0.3:
            return Annotated[str, annotated_types.Predicate(Denied(rule))]
        return Annotated[str, annotated_types.Predicate(rule)]

    def record(self, depth: int) -> Any:
        """Returns a TypedDict, with every feature of PEP 728, or a dataclass."""
        c = self.chance
        fields = {name: self.of(depth - 1) for name in c.sample(NAMES, c.randrange(1, 4))}
        extra = ConfigDict(extra=c.choice(["ignore", "forbid", "allow"]))
        form = c.randrange(3)
        if form == 0:
            more = c.choice([{}, {"closed": True}, {"closed": False}, {"extra_items": int}])
            made = TypedDict("Typed", fields, total=c.random() < 0.5, **more)  # type: ignore[misc]
            if not more and c.random() < 0.5:
                made.__pydantic_config__ = extra
            return made
        plain: Any = dataclasses.make_dataclass("Plain", fields.items())
        return plain if form == 1 else pydantic.dataclasses.dataclass(plain, config=extra)

    def model(self, depth: int) -> type[pydantic.BaseModel]:
        c = self.chance
        settings: dict[str, Any] = {}
        for name, values in {
            "extra": ["ignore", "forbid", "allow"],
            "strict": [True],
            "validate_by_name": [True],
            "str_strip_whitespace": [True],
            "str_to_lower": [True],
            "str_min_length": [1],
            "val_json_bytes": ["utf8", "base64", "hex"],
            "allow_inf_nan": [False],
            "use_enum_values": [True],
        }.items():
            if c.random() < 0.2:
                settings[name] = c.choice(values)
        fields: dict[str, Any] = {}
        for name in c.sample(NAMES, c.randrange(1, 5)):
            kind = self.of(depth - 1)
            marks: dict[str, Any] = {}
            if c.random() < 0.3:
                marks["alias"] = name.upper()
            elif c.random() < 0.1:
                marks["validation_alias"] = pydantic.AliasChoices(name * 2, pydantic.AliasPath("p", 0))
            if c.random() < 0.4:
                marks["default"] = None
            fields[name] = (kind, Field(**marks))
        return pydantic.create_model("Model", __config__=ConfigDict(**settings), **fields)


@pytest.fixture(scope="module")
def compiler() -> sg.Compiler:
    return sg.Compiler(BYTES)


@pytest.mark.parametrize("kind", LEAVES, ids=lambda k: getattr(k, "__name__", None) or str(k)[:60])
def test_what_a_leaf_ends_in_is_parsed(kind: Any, compiler: sg.Compiler) -> None:
    assert not refusals(kind, compiler, cases(40))


@pytest.mark.parametrize("key", KEYS, ids=lambda k: getattr(k, "__name__", None) or str(k)[:60])
def test_what_a_key_ends_in_is_parsed(key: Any, compiler: sg.Compiler) -> None:
    assert not refusals(dict[key, int], compiler, cases(30))
    # a dictionary with at least one key
    some = compiler.json_schema(Annotated[dict[key, bool], Field(min_length=1)])
    assert some.parse(byte_walk(some, random.Random(1), 60))


@pytest.mark.parametrize("start", range(0, cases(120), 20))
def test_what_a_random_type_ends_in_is_parsed(start: int, compiler: sg.Compiler) -> None:
    skipped = 0
    for seed in range(start, start + 20):
        kind = Types(seed).of(3)
        try:
            found = refusals(kind, compiler, 10)
        except (sg.UnsatisfiableSchema, pydantic.PydanticUserError):
            skipped += 1
            continue
        assert not found, (seed, kind, found[0])
    assert skipped <= 4


JUNK = "q-9"


def with_junk(value: Any, chance: random.Random) -> Any:
    """Returns the value with one more key in one of its objects; None if the value has no object."""
    objects = [part for part in parts_of(value) if isinstance(part, dict)]
    if not objects:
        return None
    chance.choice(objects)[JUNK] = chance.choice([None, 1, "x"])
    return value


def parts_of(value: Any) -> Iterator[Any]:
    """Yields a value and all values in it, also attributes and extra fields of a model."""
    yield value
    inner: list[Any] = list(value) if isinstance(value, (dict, list, tuple, set, frozenset)) else []
    inner += value.values() if isinstance(value, dict) else []
    inner += [vars(value), getattr(value, "__pydantic_extra__", None)] if hasattr(value, "__dict__") else []
    for part in inner:
        yield from parts_of(part)


def thrown_away(kind: Any, compiler: sg.Compiler, walks: int) -> list[str]:
    """Returns the texts that have an additional key which the grammar allows and the type's validator
    drops."""
    grammar = compiler.json_schema(kind, property_order="any", numbers="any", strings="any")
    found = []
    for seed in range(walks):
        chance = random.Random(seed)
        text = byte_walk(grammar, chance, chance.choice([10, 30, 60])).decode("utf-8", "surrogatepass")
        if (junk := with_junk(json.loads(text), chance)) is None:
            continue
        matcher = grammar.matcher()
        if not matcher.accept_bytes(json.dumps(junk)) or not matcher.is_accepting():
            continue
        kept = grammar.parse(json.dumps(junk))
        if not any(
            part in (JUNK, JUNK.encode()) for part in parts_of(kept) if isinstance(part, (str, bytes))
        ):
            found.append(json.dumps(junk))
    return found


@pytest.mark.parametrize("start", range(0, cases(60), 20))
def test_a_random_type_throws_no_key_away(start: int, compiler: sg.Compiler) -> None:
    for seed in range(start, start + 20):
        types = Types(seed)
        kind = types.model(2) if seed % 2 else types.record(2)
        try:
            found = thrown_away(kind, compiler, 8)
        except (sg.UnsatisfiableSchema, pydantic.PydanticUserError):
            continue
        assert not found, (seed, kind, found[0])


class Address(pydantic.BaseModel):
    city: str


@dataclasses.dataclass
class Parcel:
    to: Address


class Closed(TypedDict, closed=True):
    to: Address


class More(TypedDict, extra_items=int):
    to: NotRequired[Address]


class Keeps(pydantic.BaseModel):
    model_config = ConfigDict(extra="allow")
    to: Address


class Keyed(NamedTuple):
    to: Address


def send(to: Address) -> None: ...


def send_more(to: Address, **more: int) -> None: ...


def joined(*members: str) -> str:
    return "{" + ",".join(members) + "}"


# A type, texts of its grammar, and other texts. `extra_keys="allow"` adds the texts of the last list.
CITY, Q, TEXT = '"city":"x"', '"q":1', '"q":"x"'
TO, JUNKED = f'"to":{joined(CITY)}', f'"to":{joined(CITY, Q)}'
OPEN: list[tuple[Any, list[str], list[str], list[str]]] = [
    (Parcel, [joined(TO)], [], [joined(TO, Q), joined(JUNKED)]),
    (Closed, [joined(TO)], [joined(TO, Q)], [joined(JUNKED)]),
    (send, [joined(TO)], [joined(TO, Q)], [joined(JUNKED)]),
    (Keeps, [joined(TO), joined(TO, Q)], [], [joined(JUNKED)]),
    (More, [joined(TO), joined(TO, Q)], [joined(TO, TEXT)], [joined(JUNKED)]),
    (send_more, [joined(TO), joined(TO, Q)], [joined(TO, TEXT)], [joined(JUNKED)]),
    (list[Parcel], [f"[{joined(TO)}]"], [], [f"[{joined(JUNKED)}]"]),
    (dict[str, Address], [joined(TO), joined(f'"q":{joined(CITY)}')], [joined(Q)], [joined(JUNKED)]),
    (pydantic.RootModel[Address], [joined(CITY)], [], [joined(CITY, Q)]),
    (Address | int, [joined(CITY), "1"], [], [joined(CITY, Q)]),
    (Keyed, [f"[{joined(CITY)}]"], [f"[{joined(CITY)},1]"], [f"[{joined(CITY, Q)}]"]),
]


@pytest.mark.parametrize(
    ("kind", "good", "bad", "junk"), OPEN, ids=[getattr(row[0], "__name__", str(row[0]))[:40] for row in OPEN]
)
def test_which_types_are_open(
    kind: Any, good: list[str], bad: list[str], junk: list[str], compiler: sg.Compiler
) -> None:
    def takes(text: str, **options: Any) -> bool:
        return verdict(compiler.json_schema(kind, **options), text)

    assert all(takes(text) for text in good) and not any(takes(text) for text in bad + junk)
    assert all(takes(text, extra_keys="allow") for text in good + junk)
    assert not any(takes(text, extra_keys="allow") for text in bad)
    assert not any(takes(text, extra_keys="forbid") for text in bad + junk)


INTEGERS: list[tuple[Any, int, int]] = [  # a type of whole numbers, and its least and greatest
    (int, -(2**63), 2**63 - 1),
    (Annotated[int, Field(ge=0)], 0, 2**63 - 1),
    (Annotated[int, Field(lt=5)], -(2**63), 4),
    (Annotated[int, Field(gt=2, le=2**70)], 3, 2**70),
    (Annotated[int, Field(multiple_of=7, ge=1)], 7, (2**63 - 1) // 7 * 7),
    (Annotated[int, Field(ge=2**70)], 2**70, 2**70 * 1000),
    (Annotated[int, Field(le=-(2**64))], -(2**64) * 1000, -(2**64)),
    (pydantic.ByteSize, 0, 2**63 - 1),
]


@pytest.mark.parametrize(("kind", "low", "high"), INTEGERS, ids=[str(row[0])[-60:] for row in INTEGERS])
def test_an_int_fits_64_bits(kind: Any, low: int, high: int, compiler: sg.Compiler) -> None:
    def takes(value: int, form: str = "%d", **options: Any) -> bool:
        given = dict[int, None] if form != "%d" else kind
        return verdict(compiler.json_schema(given, **options), form % value)

    assert takes(low) and takes(high) and not takes(low - 1) and not takes(high + 1)
    if kind is int:
        assert takes(10**30 - 1, digits=30) and not takes(10**30, digits=30) and takes(-999, digits=3)
        key = '{"%d":null}'
        assert takes(high, key) and not takes(high + 1, key) and takes(10**30 - 1, key, digits=30)
        assert compiler.json_schema({"type": "integer"}).matcher().accept_bytes("1" * 300)
        for wrong in (0, 309, "3", True):
            with pytest.raises(ValueError, match="digits is a whole number"):
                compiler.json_schema(int, digits=wrong)  # type: ignore[arg-type]
    else:
        assert takes(low, digits=1) or low not in range(-9, 10)  # a bound of the type counts


@pytest.mark.parametrize("start", range(0, cases(60), 20))
def test_a_multiple_with_a_bound_of_any_size_is_parsed(start: int, compiler: sg.Compiler) -> None:
    for seed in range(start, start + 20):
        kind = Types(seed).floating()
        left = {e.keyword for e in compiler.json_schema(kind).report}
        found = refusals(kind, compiler, 4)
        assert not found or "x-validator" in left, (seed, kind, found[0])


def test_a_bound_far_beyond_a_multiple(compiler: sg.Compiler) -> None:
    for marks in ({"le": -1e10, "multiple_of": 0.1}, {"ge": 1e17, "multiple_of": 3}):
        kind: Any = Annotated[float, Field(**marks)]
        assert not compiler.json_schema(kind).report and not refusals(kind, compiler, 40)


# ---- patterns, compared with Python's own arithmetic and types ----


@pytest.mark.parametrize("text", ["0", "9", "10", "305", "999", "1000", "08:30:59", "2024-02-29"])
def test_order_of_digits(text: str) -> None:
    digits = [i for i, c in enumerate(text) if c.isdigit()]
    chance = random.Random(text)
    low, high = text_patterns.at_least(text), text_patterns.at_most(text)
    for _ in range(300):
        other = list(text)
        for i in chance.sample(digits, chance.randint(1, len(digits))):
            other[i] = chance.choice("0123456789")
        found = "".join(other)
        assert bool(re.fullmatch(low, found)) == (found >= text)
        assert bool(re.fullmatch(high, found)) == (found <= text)


def test_ranges_of_integers() -> None:
    edges = [None, -1001, -1000, -999, -101, -100, -12, -9, -1, 0, 1, 7, 9, 10, 11, 99, 100, 105, 1234]
    texts = [str(n) for n in range(-1300, 1300)] + ["-0", "00", "01", "-01", "1.0", "", "99999", "-99999"]
    for low, high in itertools.product(edges, edges):
        pattern = re.compile(text_patterns.anchored(text_patterns.integers(low, high)))
        for text in texts:
            whole = re.fullmatch("0|-?[1-9][0-9]*", text) is not None
            inside = whole and (low is None or int(text) >= low) and (high is None or int(text) <= high)
            assert (pattern.fullmatch(text) is not None) == inside, (low, high, text)


def test_days_are_those_of_the_calendar() -> None:
    pattern = re.compile(text_patterns.date())
    for year in [0, 1, 4, 96, 100, 400, 1900, 1999, 2000, 2023, 2024, 2100, 9999]:
        for month, day in itertools.product(range(14), range(33)):
            text = f"{year:04d}-{month:02d}-{day:02d}"
            try:
                there = bool(dt.date.fromisoformat(text))
            except ValueError:
                there = False
            assert (pattern.fullmatch(text) is not None) == there, text


def test_networks_are_those_of_ipaddress() -> None:
    four = re.compile(text_patterns.anchored(text_patterns.ipv4_network()))
    six = re.compile(text_patterns.anchored(text_patterns.ipv6_network()))
    chance = random.Random(5)
    for _ in range(2000):
        length = chance.randrange(34)
        address = chance.getrandbits(32) & (((1 << 32) - 1) << chance.choice([0, 32 - min(length, 32)]))
        text = f"{ipaddress.IPv4Address(address & 0xFFFFFFFF)}/{length}"
        try:
            there = bool(ipaddress.IPv4Network(text))
        except ValueError:
            there = False
        assert (four.fullmatch(text) is not None) == there, text
    for length in range(113):
        bits = chance.getrandbits(128) >> (128 - length) << (128 - length)
        groups = ipaddress.IPv6Address(bits).exploded.split(":")[: -(-length // 16)]
        text = ":".join(groups) + f"::/{length}"
        assert six.fullmatch(text) and ipaddress.IPv6Network(text), text
        if length and six.fullmatch(worse := text.replace(f"/{length}", f"/{length - 1}")):
            assert ipaddress.IPv6Network(worse)


@pytest.mark.parametrize(
    "pattern",
    [
        *(r"^\w+$", r"^\W{3}$", r"^[\W]+$", r"^[^\W]+$", r"^[^\w-]{2}$", r"^[a\D]{2,4}$", r"^[^\d\S]+$"),
        *(r"\d\D\s\S", r"^(?P<year>\d{4})\Z", r"\A[]a]+\Z", r"^[^]a\W]{3}$", r"^[\w.-]+@[\w-]+\.\w+$"),
    ],
)
def test_unicode_classes_are_kept(pattern: str) -> None:
    try:
        rust = pydantic.TypeAdapter(pydantic.constr(pattern=pattern))
    except pydantic_core.SchemaError:  # the pattern needs Python's dialect
        rust = None
    compiler = sg.Compiler(BYTES)
    grammar = compiler.json_schema({"type": "string", "pattern": text_patterns.from_unicode(pattern)})
    for seed in range(60):
        text = grammar.parse(byte_walk(grammar, random.Random(seed), 30))
        assert re.search(pattern, text), text
        if rust is not None:
            rust.validate_python(text)


# ---- accepted types, and the report on others ----

TAKEN: list[tuple[Any, str]] = [
    (int, "-120"),
    (float, "3.25"),
    (float, "0.0000001"),
    (decimal.Decimal, '"12345678901234567890.5"'),
    (dt.datetime, '"2024-02-29T23:59:59.123456+05:30"'),
    (dt.datetime, '"2024-02-29T23:59:59"'),
    (pydantic.AwareDatetime, '"2024-02-29T23:59:59Z"'),
    (dt.timedelta, '"P3DT4H5M6.5S"'),
    (dt.timedelta, '"-PT1H"'),
    (pydantic.HttpUrl, '"https://user:pw@sub.example.org:8080/a/b%20c?x=1&y=2#top"'),
    (pydantic.HttpUrl, '"http://127.0.0.1/"'),
    (pydantic.AnyUrl, '"mailto:someone@example.org"'),
    (pydantic.PostgresDsn, '"postgresql://u:p@h1:5432,h2:5433/db"'),
    (pydantic.FileUrl, '"file:///etc/hosts"'),
    (pydantic.UUID4, '"16fd2706-8baf-433b-82eb-8c7fada847da"'),
    (ipaddress.IPv4Network, '"10.0.0.0/8"'),
    (ipaddress.IPv6Network, '"2001:db8::/32"'),
    (ipaddress.IPv6Interface, '"fe80::1/64"'),
    (pydantic.Json[list[int]], r'"[1,-2,30]"'),
    (pydantic.Json, r'"{\"a\":[1,true,null]}"'),
    (pydantic.Json[dict[str, float]], r'"{\"k\":1.5}"'),
    (pydantic.Base64Str, '"aGVsbG8="'),
    (complex, '"1+2j"'),
    (fractions.Fraction, '"1/3"'),
    (dict[dt.date, int], '{"2024-01-31": 1}'),
    (dict[pydantic.conint(ge=-5, lt=130), int], '{"-5": 1, "129": 2}'),
    (Annotated[decimal.Decimal, Field(max_digits=5, decimal_places=2)], "123.45"),
    (Annotated[dt.time, Field(ge=dt.time(8), le=dt.time(17, 30))], '"17:30:00"'),
]
REFUSED: list[tuple[Any, str]] = [
    (int, "1e3"),
    (int, "1.0"),
    (int, "9" * 4301),
    (float, "9" * 309),
    (dt.datetime, '"2024-02-29T23:59:60Z"'),
    (dt.datetime, '"2023-02-29T00:00:00Z"'),
    (pydantic.NaiveDatetime, '"2024-02-29T23:59:59Z"'),
    (pydantic.HttpUrl, '"ftp://example.org"'),
    (pydantic.UUID4, '"16fd2706-8baf-133b-82eb-8c7fada847da"'),
    (ipaddress.IPv4Network, '"10.0.0.1/8"'),
    (pydantic.Json[int], r'"[1]"'),
    (pydantic.constr(strip_whitespace=True), '" a"'),
    (Annotated[dt.time, Field(ge=dt.time(8), le=dt.time(17, 30))], '"17:30:00.5"'),
    (Annotated[decimal.Decimal, Field(max_digits=5, decimal_places=2)], "1234.5"),
]


@pytest.mark.parametrize(("kind", "text"), TAKEN, ids=[t for _, t in TAKEN])
def test_usual_spellings_are_taken(kind: Any, text: str, compiler: sg.Compiler) -> None:
    grammar = compiler.json_schema(kind)
    assert grammar.matcher().accept_bytes(text)
    grammar.parse(text)


@pytest.mark.parametrize(("kind", "text"), REFUSED, ids=[t[:40] for _, t in REFUSED])
def test_what_validators_refuse_is_refused(kind: Any, text: str, compiler: sg.Compiler) -> None:
    assert not verdict(compiler.json_schema(kind), text)


def test_the_report_names_what_is_left_to_parsing(compiler: sg.Compiler) -> None:
    def even(x: int) -> int:
        if x % 2:
            raise ValueError("odd")
        return x

    class Job(pydantic.BaseModel):
        count: Annotated[int, pydantic.AfterValidator(even)]
        due: pydantic.FutureDate
        script: pydantic.FilePath

    report = {e.pointer: (e.keyword, e.reason) for e in compiler.json_schema(Job).report}
    assert report["/properties/count"] == (
        "x-validator",
        "a validator written in Python: only parsing tells",
    )
    assert report["/properties/due"][0] == "x-clock"
    assert report["/properties/script"][0] == "x-file"


def test_names_that_would_be_read_as_a_field_are_not_written(compiler: sg.Compiler) -> None:
    class Named(pydantic.BaseModel):
        model_config = ConfigDict(validate_by_name=True)
        size: int = Field(default=0, alias="Size")

    for text, fits in (('{"Size": 1}', True), ('{"size": "x"}', False), ('{"other": "x"}', True)):
        assert verdict(compiler.json_schema(Named, extra_keys="allow"), text) == fits

    for nothing in (type[int], Literal[b"x"]):
        with pytest.raises(sg.GrammarError):
            compiler.json_schema(nothing)
    for checked in (pydantic.ImportString, Annotated[pydantic.HttpUrl, Field(max_length=15)]):
        assert [e.keyword for e in compiler.json_schema(checked).report] == ["x-validator"]

    class Deep(pydantic.BaseModel):
        size: int = Field(validation_alias=pydantic.AliasPath("p", 0))

    with pytest.raises(sg.GrammarError, match="AliasPath"):
        compiler.json_schema(Deep)


class Pair(enum.Enum):
    PAIR = (1, 2)
    DAY = dt.date(2020, 1, 1)


class PairOrText(enum.Enum):
    PAIR = (1, 2)
    TEXT = "x"


class Doubles(float, enum.Enum):
    HALF = 0.5
    TWO = 2.0


def test_members_that_are_not_read_back_are_not_written(compiler: sg.Compiler) -> None:
    for kind in (Pair, Literal[b"x"], enum.Enum("N", {"A": float("nan")})):
        with pytest.raises(sg.GrammarError, match="no member"):
            compiler.json_schema(kind)
    large = compiler.json_schema(enum.IntEnum("Large", {"LARGE": 2**70, "ONE": 1}))
    assert not large.matcher().accept_bytes(str(2**70))
    assert compiler.json_schema(PairOrText).matcher().shortest_completion() == b'"x"'
    some = compiler.json_schema(Annotated[dict[Doubles, None], Field(min_length=1)])
    assert some.parse('{"0.5": null}') == {Doubles.HALF: None}
    assert some.matcher().accept_bytes('{"0.5": null}')


def test_decimals_beyond_what_a_double_keeps(compiler: sg.Compiler) -> None:
    large = compiler.json_schema(
        Annotated[decimal.Decimal, Field(decimal_places=2, gt=decimal.Decimal("1e20"))]
    )
    assert large.report == ()
    for text, fits in {"100000000000000000000": False, "100000000000000000001": True}.items():
        assert verdict(large, text) == fits
    small = compiler.json_schema(Annotated[decimal.Decimal, Field(max_digits=2, decimal_places=5)])
    for text, fits in {"0.12": True, "0.012": False, "0": False, "1": False, '"0.01"': True}.items():
        assert verdict(small, text) == fits, text
    doubles = compiler.json_schema(Annotated[float, Field(multiple_of=0.01, ge=1e5)])
    assert [e.keyword for e in doubles.report] == [
        "x-validator"
    ]  # doubles of this size have no exact remainder


def test_functions_that_may_refuse_are_reported(compiler: sg.Compiler) -> None:
    def left(*marks: Any, kind: Any = str) -> list[str]:
        return [e.keyword for e in compiler.json_schema(Annotated[(kind, *marks)]).report]

    after, before = pydantic.AfterValidator, pydantic.BeforeValidator
    assert (
        left(after(int)) == left(before(str.strip)) == left(annotated_types.Predicate(len)) == ["x-validator"]
    )
    assert left(after(str.strip)) == left(annotated_types.Predicate(str.isdigit)) == []
    assert left(after(str.strip), Field(gt="a")) == ["x-validator"]
    assert left(after(abs), Field(gt=3), kind=int) == ["x-validator"]
    with pytest.raises(sg.UnsatisfiableSchema):
        left(annotated_types.Predicate(math.isnan), kind=float)


@pytest.mark.parametrize("rule", PREDICATES, ids=lambda r: r.__name__)
def test_predicates_of_strings_hold(rule: Any, compiler: sg.Compiler) -> None:
    grammar = compiler.json_schema(Annotated[str, annotated_types.Predicate(rule)])
    denied = compiler.json_schema(Annotated[str, annotated_types.Predicate(annotated_types.Not(rule))])
    chance = random.Random(rule.__name__)
    letters = "aBzÉßǅªʰⅷⓐ1٣²½ⅣΣς _-\u00ad\u0301中😀\t"
    for text in ["", *("".join(chance.choices(letters, k=chance.randrange(1, 5))) for _ in range(300))]:
        for one, holds in ((grammar, rule(text)), (denied, not rule(text))):
            matcher = one.matcher()
            whole = matcher.accept_bytes(json.dumps(text, ensure_ascii=False)) and matcher.is_accepting()
            assert whole == holds, (text, holds)


def test_letters_that_lowering_changes_are_not_written(compiler: sg.Compiler) -> None:
    """Where a type lowers letters, the grammar excludes every character that lowering changes. Roman numerals
    are such characters, although they are no letters."""
    lower = compiler.json_schema(pydantic.constr(to_lower=True))
    upper = compiler.json_schema(pydantic.constr(to_upper=True))
    for text in ["Ⅷ", "ⅷ", "Ⓐ", "ⓐ", "ǅ", "ß", "ª", "A", "a", "1", "中", "\u0345", "İ"]:
        for grammar, kept in ((lower, text.lower() == text), (upper, text.upper() == text)):
            matcher = grammar.matcher()
            whole = matcher.accept_bytes(json.dumps(text, ensure_ascii=False)) and matcher.is_accepting()
            assert whole == kept, text


EXPLAINED = [
    (dt.date, '"2024-13-01"', "a date as YYYY-MM-DD"),
    (uuid.UUID, '"x"', "a UUID"),
    (pydantic.HttpUrl, '"ftp://a"', "a URL that begins with http or https"),
    (dict[dt.date, int], '{"x":1}', "a date as YYYY-MM-DD"),
    (Annotated[dt.date, Field(gt=dt.date(2020, 1, 1))], '"2019-01-01"', "a time after 2020-01-01"),
    (pydantic.constr(pattern=r"^\d+$"), '"x"', r"a text that matches ^\d+$"),
    (Annotated[str, annotated_types.Predicate(str.isupper)], '"a"', "for which str.isupper is true"),
]


@pytest.mark.parametrize(("kind", "text", "said"), EXPLAINED, ids=[said for _, _, said in EXPLAINED])
def test_rules_are_said_in_words(kind: Any, text: str, said: str, compiler: sg.Compiler) -> None:
    assert said in str(compiler.json_schema(kind).explain(text))


def test_an_address_is_as_long_as_mail_takes() -> None:
    pattern = re.compile(text_patterns.anchored(text_patterns.email()))
    long = "b" * 63
    for text, fits in {
        "a@b.co": True,
        "a" * 64 + "@b.de": True,
        "a" * 65 + "@b.de": False,
        f"a@{long}.de": True,
        f"a@{long}b.de": False,
        "a@a.b.c.d.e.fr": True,
        f"{'a' * 59}@{long}.{long}.{long}.de": True,
        f"{'a' * 64}@{long}.{long}.{long}.de": False,
        "a@mail.test": False,
    }.items():
        assert (pattern.fullmatch(text) is not None) == fits, text


@pytest.mark.parametrize("numbers", ["plain", "canonical"])
def test_numbers_without_exponents_are_finite_doubles(compiler: sg.Compiler, numbers: Any) -> None:
    for schema in ({"type": "number"}, {"type": "integer"}, {"type": "number", "minimum": 3}, {}):
        for digits in (308, 309):
            matcher = compiler.json_schema(schema, numbers=numbers).matcher()
            whole = matcher.accept_bytes("9" * digits)
            assert (whole and matcher.is_accepting()) == (digits == 308)
    # a schema with such a bound gets large numbers
    large = compiler.json_schema({"minimum": 10**400}, numbers=numbers)
    assert large.matcher().accept_bytes("1" + "0" * 400)


def test_none_is_a_type(compiler: sg.Compiler) -> None:
    grammar = compiler.json_schema(None)
    assert grammar.parse("null") is None
    assert grammar.matcher().accept_bytes("null")
    assert not grammar.matcher().accept_bytes("1")


@pytest.mark.parametrize("schema", [{"items": {"type": "number"}}, {"items": {"type": "integer"}}, {}])
def test_unique_numbers_of_any_exponent(schema: dict[str, Any], compiler: sg.Compiler) -> None:
    """Items must differ. If a mask allows a digit, accepting the digit raises no error, however large the
    exponent becomes."""
    grammar = compiler.json_schema({"type": "array", "uniqueItems": True, **schema})
    huge = "9" * 30
    for text, fits in {
        "[1e5000,1e5001]": True,
        "[1e5000,1.0e5000]": False,
        f"[1e5000,1{'0' * 5000}]": False,
        f"[1e5000,1{'0' * 5001}]": True,
        f"[1e{huge},2e{huge}]": True,
        f"[1e{huge},1e{huge}]": False,
        "[3e-5000,3e-5001]": "number" in str(schema) or not schema,
        "[3e-5000,3.0e-5000]": False,
    }.items():
        assert verdict(grammar, text) == fits, text[:60]
    constant = compiler.json_schema('{"const": 7e12345}')
    assert constant.matcher().accept_bytes("7" + "0" * 12345)
    assert not constant.matcher().accept_bytes("7" + "0" * 12346)


class Strict(pydantic.BaseModel):
    model_config = ConfigDict(strict=True)
    wait: Annotated[dt.timedelta, Field(gt=dt.timedelta(1))]


@pytest.mark.parametrize(
    "kind",
    [pydantic.constr(pattern=p) for p in (r"^[a-z&&[^aeiou]]+$", r"^[a-c--b]$", r"^[~~a]$")] + [Strict],
)
def test_what_cannot_be_written_is_refused_by_name(kind: Any, compiler: sg.Compiler) -> None:
    with pytest.raises(sg.GrammarError, match="not supported"):
        compiler.json_schema(kind)


@pytest.mark.parametrize(
    "inner", [r"^(?:\\)$", r"^(?:\n)$", r"^(?:\x22)$", r"^(?:[!-a]+)$", r"^(?:a{1,3}|[0-9]+)$"]
)
def test_patterns_inside_json_in_a_string(inner: str, compiler: sg.Compiler) -> None:
    kind = pydantic.Json[Annotated[str, Field(pattern=inner)]]
    assert not compiler.json_schema(kind).report
    assert not refusals(kind, compiler, 20)


class Deep(pydantic.BaseModel):
    kids: list[Deep] = []
    named: dict[Annotated[str, Field(pattern="^[a-z]+$")], pydantic.Json[Deep]] = {}


def deep(levels: int) -> Deep:
    return Deep(kids=[deep(levels - 1)] if levels else [])


def test_json_in_strings_is_whole(compiler: sg.Compiler) -> None:
    grammar = compiler.json_schema(pydantic.Json[Deep])
    assert not grammar.report
    inner = json.dumps({"named": {"a": deep(9).model_dump_json()}})
    assert grammar.parse(json.dumps(inner)).named["a"] == deep(9)
    for text in ('{"named": {"A": "{}"}}', '{"kids": [1]}', '{"named": {"a": {}}}', '{"other": 1}'):
        assert not verdict(grammar, json.dumps(text))
    assert not refusals(pydantic.Json[Deep], compiler, 20)


def test_a_set_of_json_in_strings(compiler: sg.Compiler) -> None:
    assert not refusals(set[pydantic.Json[int]], compiler, 20)
    sized = compiler.json_schema(Annotated[set[pydantic.Json[int]], Field(min_length=2)])
    assert [e.keyword for e in sized.report] == ["x-validator"]
    with pytest.raises(sg.SchemaTooComplex):
        compiler.json_schema(dict[pydantic.Json[int], int]).matcher().accept_bytes('{"')
