"""Two hundred type expressions as users write them: every text of their grammars is parsed.

`test_python_values.py` combines the parts at random. Here each construct of Python and pydantic stands once,
with the settings that change what the construct's validator accepts.
"""

# ruff: noqa: UP007, UP045, B008 (older spellings are types as well)
from __future__ import annotations

import collections
import dataclasses
import datetime as dt
import decimal
import enum
import fractions
import ipaddress
import pathlib
import re
import typing
import uuid
import zoneinfo
from typing import Annotated, Any, Generic, Literal, NamedTuple, NotRequired, Optional, TypeVar, Union

import annotated_types as at
import pydantic
import pytest
from pydantic import BaseModel, ConfigDict, Field, RootModel
from pydantic.alias_generators import to_camel
from typing_extensions import TypeAliasType, TypedDict

import structgen as sg
from oracles.harness import BYTES, cases, refusals

D, T, U = decimal.Decimal, TypeVar("T"), TypeVar("U")

# ---- enums ----


class Named(enum.Enum):
    default = "a"
    title = "b"


class Tuples(enum.Enum):
    PAIR = (1, 2)
    TEXT = "x"


class Lists(enum.Enum):
    SOME = [1, "a"]  # noqa: RUF012
    NONE = []  # noqa: RUF012


class Dicts(enum.Enum):
    SOME = {"a": 1}  # noqa: RUF012
    TEXT = "t"


class Large(enum.IntEnum):
    LARGE = 2**70
    EDGE = 2**63 - 1
    BEYOND = 2**63
    LOW = -(2**63)
    ONE = 1


class Plain(enum.Enum):
    LARGE = 2**70
    BOOL = True
    NOTHING = None


class Odd(enum.Enum):
    NAN = float("nan")
    ENDLESS = float("inf")
    ONE = 1.0
    HALF = 0.5


class Moments(enum.Enum):
    DAY = dt.date(2020, 1, 1)
    TEXT = "now"


class Amounts(enum.Enum):
    HALF = D("0.5")
    NUMBER = 2


class Doubles(float, enum.Enum):
    HALF = 0.5
    TWO = 2.0
    TINY = 1e-9


class Texts(enum.StrEnum):
    A = 'quo"te'
    B = "é\n"
    EMPTY = ""


class Flags(enum.IntFlag):
    READ = 1
    WRITE = 2


class Bytes(enum.Enum):
    RAW = b"x"
    TEXT = "y"


class Lenient(enum.Enum):
    ONE = 1

    @classmethod
    def _missing_(cls, value: object) -> Any:
        raise RuntimeError("no such member")


ENUMS = [
    *(Named, Tuples, Lists, Dicts, Large, Plain, Odd, Moments, Amounts, Doubles, Texts, Flags, Bytes),
    Lenient,
]

# ---- models ----


class Keywords(BaseModel):
    """A model whose fields have names of JSON Schema keywords."""

    default: dt.date
    examples: list[dt.datetime]
    const: pydantic.UUID4
    enum: pydantic.Json[int] = 1
    properties: dict[dt.date, dt.time] = {}
    required: bool = True
    items: D = D(0)
    allOf: Annotated[str, at.Predicate(str.isdigit)] = "1"  # noqa: N815
    type: Literal["type"] = "type"


class Reference(BaseModel):
    target: int = Field(alias="$ref")
    definitions: dt.date = Field(alias="$defs")


class Tree(BaseModel):
    value: dt.date
    children: list[Tree] = []
    other: Optional[Tree] = None


class Even(BaseModel):
    odd: Optional[Odd_] = None
    when: dt.time


class Odd_(BaseModel):  # noqa: N801
    even: Even | None = None


Even.model_rebuild()


class Strict(BaseModel, strict=True):
    number: int
    real: float
    amount: D
    day: dt.date
    moment: dt.datetime
    key: uuid.UUID
    days: dict[dt.date, None]
    names: set[str]
    pair: tuple[int, str]
    raw: bytes
    length: dt.timedelta
    colour: Named


class Closed(BaseModel, extra="forbid", str_strip_whitespace=True, str_max_length=4):
    text: str
    other: Annotated[str, Field(min_length=2)] = "ab"


class Typed(BaseModel, extra="allow"):
    __pydantic_extra__: dict[str, dt.date]
    text: str


class Lower(BaseModel, str_to_lower=True, str_min_length=1):
    text: str
    name: Annotated[str, Field(max_length=3)]


class Upper(BaseModel, str_to_upper=True):
    text: str


class Raw64(BaseModel, val_json_bytes="base64"):
    raw: bytes
    some: Annotated[bytes, Field(min_length=2, max_length=3)]


class Hex(BaseModel, val_json_bytes="hex"):
    raw: bytes
    some: Annotated[bytes, Field(min_length=2, max_length=3)]


class Look(BaseModel, regex_engine="python-re"):
    text: Annotated[str, Field(pattern=r"^(?=a)\w+\Z")]


class Aliases(BaseModel, validate_by_name=True, validate_by_alias=True):
    size: int = Field(alias="Size")
    more: int = Field(1, validation_alias=pydantic.AliasChoices("m", "n"))


class Camel(BaseModel, alias_generator=to_camel, extra="forbid"):
    a_long_name: int
    another_one: str = ""


class Frozen(BaseModel, frozen=True):
    x: int


class Cat(BaseModel):
    kind: Literal["cat", "tiger"]
    lives: int


class Dog(BaseModel):
    kind: Literal["dog"] = "dog"
    good: bool


class Number(BaseModel):
    kind: Literal[1]
    value: float


class ByEnum(BaseModel):
    kind: Literal[Texts.A]


class ByOther(BaseModel):
    kind: Literal[Texts.B] = Field(Texts.B, alias="kind")
    day: dt.date


class Box(BaseModel, Generic[T]):
    content: T


class Two(BaseModel, Generic[T, U]):
    first: T
    second: list[U]


class Days(RootModel[list[dt.date]]):
    pass


class Table(RootModel[dict[dt.date, Annotated[int, Field(ge=0)]]]):
    pass


class Nullable(RootModel[Optional[dt.time]]):
    root: dt.time | None = None


class Checked(BaseModel):
    text: Annotated[str, pydantic.AfterValidator(str.upper)]
    size: int = Field(gt=0, lt=10, multiple_of=3)


class Tagged(BaseModel):
    pet: Union[Cat, Dog] = Field(discriminator="kind")


class Extra(BaseModel):
    model_config = ConfigDict(json_schema_extra={"examples": [{"x": "1"}], "default": {"format": "uuid"}})
    x: Annotated[dt.date, Field(examples=["2020-01-01"], json_schema_extra={"gt": 3})]


class Private(BaseModel):
    x: int
    _hidden: int = 0
    y: typing.ClassVar[int] = 1

    @pydantic.computed_field
    def double(self) -> int:
        return 2 * self.x


class Default(BaseModel):
    when: dt.datetime = dt.datetime(2020, 1, 1)
    tags: list[str] = Field(default_factory=list, max_length=2)
    maybe: Annotated[int | None, Field(ge=3)] = None


class Default2(Default, validate_default=True, allow_inf_nan=False):
    more: float = 0.5
    enum: Named = Named.default


@dataclasses.dataclass
class Pair:
    left: dt.date
    right: list[float] = dataclasses.field(default_factory=list)
    none: dataclasses.InitVar[int] = 0


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Slots:
    x: int
    y: Literal["a"] = "a"


@pydantic.dataclasses.dataclass(config=ConfigDict(extra="forbid", strict=True))
class Own:
    x: Annotated[int, Field(ge=0)]
    y: dt.date = Field(default=dt.date(2020, 1, 1), alias="Y")


class Film(TypedDict):
    title: str
    year: NotRequired[Annotated[int, Field(ge=1900, le=2100)]]


class Loose(TypedDict, total=False):
    a: dt.date
    b: typing.Required[int]


class ClosedDict(TypedDict):
    __pydantic_config__ = ConfigDict(extra="forbid")  # type: ignore[misc]
    a: dt.time


class Spot(NamedTuple):
    row: int
    when: dt.date
    name: str = "x"


MODELS: list[Any] = [
    *(Keywords, Reference, Tree, Even, Strict, Closed, Typed, Lower, Upper, Raw64, Hex, Look, Aliases, Camel),
    *(
        Frozen,
        Box[int],
        Box[Box[dt.date]],
        Two[int, dt.time],
        Box[list[Named]],
        Days,
        Table,
        Nullable,
        Checked,
    ),
    *(Tagged, Extra, Private, Default, Default2, Pair, Slots, Own, Film, Loose, ClosedDict, Spot),
    *(
        frozenset[Frozen],
        dict[str, Closed],
        list[Tagged],
        Optional[Strict],
        RootModel[int],
        RootModel[set[str]],
    ),
    RootModel[dict[Named, int]],
    Annotated[Cat | Dog | Number, Field(discriminator="kind")],
    Annotated[ByEnum | ByOther, Field(discriminator="kind")],
    list[Annotated[Annotated[Cat | Dog, Field(discriminator="kind")] | Number, Field(discriminator="kind")]],
    Annotated[
        Annotated[Cat, pydantic.Tag("c")] | Annotated[Dog, pydantic.Tag("d")],
        pydantic.Discriminator(lambda v: "c" if "lives" in v else "d"),
    ],
]

# ---- scalars with conditions ----


def number(kind: Any, **conditions: Any) -> Any:
    return Annotated[kind, Field(**conditions)]


NUMBERS: list[Any] = [
    *(number(int, gt=3), number(int, ge=-5, le=5), number(int, lt=-(10**20)), number(int, multiple_of=7)),
    *(number(int, multiple_of=5, ge=10**19), number(int, multiple_of=100_000, gt=3), number(int, gt=2**64)),
    *(number(int, multiple_of=86_400, ge=0), number(int, multiple_of=12, lt=-(10**30)), pydantic.StrictInt),
    *(
        number(float, gt=0),
        number(float, ge=0.1, lt=0.3),
        number(float, multiple_of=0.01),
        number(float, lt=0),
    ),
    *(
        number(float, multiple_of=0.5, ge=1e30),
        number(float, multiple_of=0.25, gt=-1),
        number(float, gt=1e300),
    ),
    *(number(float, multiple_of=1e-9), number(float, multiple_of=1e9), number(float, multiple_of=3, gt=7)),
    *(number(float, allow_inf_nan=False), number(float, strict=True), number(float, le=float("inf"))),
    *(number(D, max_digits=2, decimal_places=5), number(D, max_digits=2, decimal_places=2)),
    *(number(D, max_digits=1), number(D, max_digits=30), number(D, max_digits=30, decimal_places=3)),
    *(number(D, decimal_places=0), number(D, decimal_places=20), number(D, decimal_places=2, gt=D("1e20"))),
    *(
        number(D, multiple_of=D("1E+5"), gt=3),
        number(D, multiple_of=5, ge=D("1e18")),
        number(D, lt=D("-1e40")),
    ),
    *(number(D, multiple_of=D("0.05")), number(D, multiple_of=D("0.25"), decimal_places=1), number(D, ge=0)),
    *(number(D, multiple_of=7, max_digits=3), number(D, gt=D("1e400")), number(D, gt=D("0.1"), lt=D("0.2"))),
    *(number(D, ge=D("1.00000000000000000000001"), decimal_places=2), number(D, max_digits=5, ge=12, lt=13)),
    *(
        number(D, max_digits=20, decimal_places=2, lt=D("-1e16")),
        number(D, multiple_of=D("0.3"), gt=D("1e25")),
    ),
    *(
        number(D, decimal_places=3, le=0),
        number(D, strict=True),
        number(D, max_digits=3, decimal_places=3, gt=0),
    ),
    *(fractions.Fraction, complex, number(fractions.Fraction, gt=0)),
    *(
        at.IsFinite[float],
        Annotated[float, at.Predicate(at.Not(__import__("math").isnan))],
        pydantic.ByteSize,
    ),
    Annotated[float, at.Interval(gt=1, le=2)],
    Annotated[int, at.MultipleOf(3), at.Gt(4)],
    Annotated[int, pydantic.AfterValidator(bool)],
]
DAYS: list[Any] = [
    *(dt.date, dt.time, dt.datetime, dt.timedelta, pydantic.PastDate, pydantic.FutureDate),
    *(pydantic.NaiveDatetime, pydantic.AwareDatetime, pydantic.PastDatetime, pydantic.FutureDatetime),
    *(number(dt.date, gt=dt.date(2020, 2, 28)), number(dt.date, le=dt.date(1, 1, 3)), zoneinfo.ZoneInfo),
    *(number(dt.time, ge=dt.time(8), lt=dt.time(9)), number(dt.timedelta, gt=dt.timedelta(days=3))),
    *(number(dt.datetime, gt=dt.datetime(2020, 1, 1, tzinfo=dt.UTC)), number(dt.datetime, strict=True)),
    *(
        number(dt.timedelta, strict=True),
        dict[dt.date, None],
        dict[dt.timedelta, int],
        dict[dt.time, dt.date],
    ),
    pydantic.NaiveDatetime | dt.date,
]


STRINGS: list[Any] = [
    *(at.LowerCase[str], at.UpperCase[str], at.IsDigits[str], at.IsAscii[str]),
    *(Annotated[str, at.Predicate(getattr(str, name))] for name in dir(str) if name.startswith("is")),
    *(
        Annotated[str, at.Predicate(at.Not(getattr(str, n)))]
        for n in ("islower", "isalnum", "isascii", "istitle")
    ),
    *(Annotated[str, at.Predicate(str.islower), Field(max_length=4)], dict[at.LowerCase[str], int]),
    *(Annotated[str, at.Predicate(str.isalpha), Field(pattern="^[a-c1-3]+$")], list[at.IsDigits[str]] | None),
    *(Annotated[str, at.Len(2, 3)], Annotated[str, at.MinLen(1)], Annotated[str, at.MaxLen(0)]),
    *(Annotated[str, pydantic.AfterValidator(str.strip)], Annotated[str, pydantic.AfterValidator(len)]),
    *(pydantic.constr(strip_whitespace=True, to_upper=True), pydantic.constr(to_lower=True, max_length=3)),
    *(pydantic.constr(pattern=r"^\d{3}-\w+$"), pydantic.constr(pattern="[^a]b", min_length=3, max_length=5)),
    *(pydantic.constr(strict=True), pydantic.constr(pattern=r"^\S+\s\S+$", strip_whitespace=True)),
    *(pydantic.SecretStr, pydantic.SecretBytes, pydantic.Secret[int], pydantic.Secret[dt.date], pathlib.Path),
    *(
        Annotated[pydantic.SecretStr, Field(min_length=2, max_length=3)],
        bytes,
        pydantic.conbytes(max_length=2),
    ),
    *(pathlib.PurePosixPath, uuid.UUID, pydantic.UUID4, pydantic.UUID7, re.Pattern, re.Pattern[str]),
    *(ipaddress.IPv4Address, ipaddress.IPv6Network, pydantic.IPvAnyAddress, pydantic.IPvAnyInterface),
    *(pydantic.HttpUrl, pydantic.AnyUrl, pydantic.FileUrl, pydantic.PostgresDsn, pydantic.MySQLDsn),
    *(
        pydantic.CockroachDsn,
        pydantic.ClickHouseDsn,
        pydantic.SnowflakeDsn,
        pydantic.FtpUrl,
        pydantic.RedisDsn,
    ),
    *(pydantic.Base64Str, pydantic.Base64Bytes, pydantic.Base64UrlStr, pydantic.Json, pydantic.Json[int]),
    *(pydantic.Json[list[dt.date]], pydantic.Json[Film], pydantic.Json[Cat], pydantic.Json[dict[str, D]]),
    *(pydantic.Json[Named], pydantic.Json[Literal["a", 1, None]], pydantic.Json[tuple[int, bool]]),
    *(pydantic.Json[Tree], pydantic.Json[number(int, gt=5)], pydantic.Json[Frozen | None]),
    Annotated[str, Field(min_length=3), Field(max_length=4)],
]

# ---- containers, literals, unions, aliases ----

Alias = TypeAliasType("Alias", list[dt.date])
Nested = TypeAliasType("Nested", "int | list[Nested]")
Generic1 = TypeAliasType("Generic1", dict[str, T], type_params=(T,))
NewDay = typing.NewType("NewDay", dt.date)

CONTAINERS: list[Any] = [
    *(list, dict, tuple, set, frozenset, collections.deque, list[Any], dict[str, Any], tuple[()], tuple[int]),
    *(tuple[int, ...], tuple[dt.date, Named, str], set[Named], frozenset[dt.date], set[float], set[D]),
    *(
        collections.deque[int],
        typing.Counter[str],
        collections.defaultdict[str, list[int]],
        typing.Sequence[int],
    ),
    *(collections.OrderedDict[str, dt.date], typing.Mapping[Named, int], typing.Iterable[dt.date], object),
    *(
        pydantic.conlist(dt.date, min_length=1, max_length=2),
        pydantic.conset(int, min_length=2, max_length=3),
    ),
    *(pydantic.confrozenset(Named, max_length=1), Annotated[collections.deque[int], Field(max_length=2)]),
    *(Annotated[typing.Mapping[str, int], Field(min_length=1)], number(dict[dt.date, int], min_length=2)),
    *(
        Annotated[tuple[int, ...], Field(min_length=2)],
        Annotated[list[int], at.Len(1, 2)],
        collections.Counter,
    ),
    *(
        Literal["a", 1, None, True, False],
        Literal[1, "1"],
        Literal[2**70, 1],
        Literal[b"x", "y"],
        Literal[True],
    ),
    *(Literal[Named.title, Large.ONE, "z"], Literal[-1, 0], Literal[""], dict[Literal[1, "a", True], None]),
    *(Optional[int], int | str | None, bool | int, Union[dt.date, dt.datetime], dt.date | int, float | Named),
    *(list[int] | dict[str, int] | None, Cat | Dog, Optional[list[int | None] | None], D | None),
    *(Alias, Nested, Generic1[dt.date], NewDay, list[NewDay], Alias | None, dict[str, Nested]),
    *(
        dict[Doubles, None],
        dict[Large, int],
        dict[Texts, int],
        dict[Odd, None],
        dict[Plain, int],
        dict[bytes, int],
    ),
    *(
        dict[int, int],
        dict[float, int],
        dict[bool, int],
        dict[D, int],
        dict[uuid.UUID, None],
        dict[Lists, int],
    ),
    *(dict[int | Named, int], dict[number(int, gt=3), int], dict[pydantic.HttpUrl, int], dict[Nested, int]),
    Annotated[set[int], Field(min_length=1)] | None,
    Annotated[int | str, pydantic.WithJsonSchema({"type": "integer"})],
    Annotated[int, pydantic.WithJsonSchema({"type": "integer", "minimum": 3})] | None,
    pydantic.SkipValidation[int],
    Annotated[int | str, Field(union_mode="left_to_right")],
    Annotated[list[int], pydantic.FailFast()],
    list[pydantic.OnErrorOmit[int]],
    typing.Annotated[Any, Field(description="x")],
]


def call(when: dt.datetime, tags: set[str] = frozenset(), *, amount: D = D(1)) -> None: ...  # type: ignore[assignment]


ZOO = [*ENUMS, *MODELS, *NUMBERS, *DAYS, *STRINGS, *CONTAINERS, *(list[kind] for kind in ENUMS), call]


@pytest.fixture(scope="module")
def compiler() -> sg.Compiler:
    return sg.Compiler(BYTES)


def test_there_are_two_hundred() -> None:
    assert len(ZOO) >= 200


@pytest.mark.parametrize(
    "index", range(len(ZOO)), ids=[f"{i}-{str(k).split(' at 0x')[0][:40]}" for i, k in enumerate(ZOO)]
)
def test_what_ends_is_parsed(index: int, compiler: sg.Compiler) -> None:
    kind = ZOO[index]
    left = {e.keyword for e in compiler.json_schema(kind).report}
    found = refusals(kind, compiler, cases(6))
    assert not found or "x-validator" in left, (kind, found[0])
