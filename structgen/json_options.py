"""The options for the JSON of a schema: how it is written, and how the schema is read. All interfaces share
them.

Enters: keyword arguments of `Compiler.json_schema`, of `sg.generate` and its siblings, of a command, of a
request. Leaves: one frozen `JsonOptions`. Cost: two microseconds.

A new option is a field here, with the same name in the `TypedDict` above it. It is a parameter of the core,
or a rewriting of the schema like `extra_keys` and `digits` (frontend/closing.py). The methods of
`Compiler`, the settings of a call, `structgen`'s flags and the field "structgen" of a request take their
names, types and values from these fields. `explain`, pickles and saved compilers read the fields by name.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar, Literal, TypedDict, TypeVar, cast

from ._checks import no_option

Order = Literal["schema", "any"]
Numbers = Literal["any", "plain", "canonical"]
Strings = Literal["any", "plain"]
Formats = Literal["enforce", "annotate"]
Extra = Literal["allow", "forbid"]
S = TypeVar("S", bound="JsonStyle")


class StyleArguments(TypedDict, total=False):
    """The fields of `JsonStyle`, for type checkers."""

    whitespace: str
    property_order: Order
    numbers: Numbers | None
    strings: Strings | None
    formats: Formats


class JsonArguments(StyleArguments, total=False):
    """The fields of `JsonOptions`, for type checkers."""

    draft: str | int | None
    registry: Any
    extra_keys: Extra | None
    digits: int | None


def _option(default: Any, help: str, **flag: Any) -> Any:
    """Returns a field. `flag` describes its flag on the command line: `values` (the choices) or `metavar`,
    `name`.

    With `local` only programs may set the option: no request and no saved compiler may.
    """
    return field(default=default, metadata={"help": help, **flag})


# Recipe, option 1: a field, and the same name in the TypedDict above.
@dataclass(frozen=True, kw_only=True)
class JsonStyle:
    """How the JSON of schemas in a grammar is written.

    Attributes:
        whitespace: "flexible" (up to 32 blanks a gap), "compact" (none), "one-blank" (at most one after
            "," and ":"), "spaced" (one after each), "pretty" (two-space indent), or a regex of what may
            stand in a gap.
        property_order: "schema" keeps the keys of one ``properties`` in its order; "any" takes any order.
        numbers: "any" takes every spelling of RFC 8259. "plain" takes the usual spellings: no exponent, no
            ``-0``, and at most 308 digits before the point. Every program can read such a number as a
            finite double or an integer. A bound such as 1e60 is written with all its digits. A fraction of
            up to six digits may end in zeros (``3.50``, ``100.00``). A number that ``integer``, or an
            ``enum`` or ``const`` of integers, asks for has no point.
            "canonical" takes one spelling a number: as "plain", without zeros at the end of a fraction.
            None means "any" for a JSON Schema, and "plain" for schemas of programs: Python types,
            ``response_format``, ``tools``.
        strings: "any" takes every spelling of RFC 8259, also ``"\\u0041"`` for ``"A"``. "plain" takes the
            spelling of JSON writers: only quotes, backslashes and control characters are escaped, in the
            shortest way. None means "any" for a JSON Schema, else "plain".
        formats: "enforce" applies every format of the newest specification; "annotate" applies none.

    Raises:
        ValueError: an option has no such value.
    """

    _closed: ClassVar[tuple[str, ...]] = (
        "property_order",
        "numbers",
        "strings",
        "formats",
    )  # the options that have a list of values
    whitespace: str = _option(
        "flexible",
        "flexible, compact, one-blank, spaced, pretty, or a regex of what may stand in a gap",
        metavar="MODE",
    )
    property_order: Order = _option("schema", "order of keys", name="--order", values=("schema", "any"))
    numbers: Numbers | None = _option(
        None,
        "every spelling, none with exponents, or also none with zeros at the end of a fraction",
        values=("any", "plain", "canonical"),
    )
    strings: Strings | None = _option(
        None, "every escape, or only those that JSON writers write", values=("any", "plain")
    )
    formats: Formats = _option(
        "enforce", "whether format is enforced or an annotation", values=("enforce", "annotate")
    )

    def __post_init__(self) -> None:
        for name in self._closed:
            value, (default, known) = getattr(self, name), _VALUES[name]
            if value not in known and (value is not None or default is not None):
                listed = ", ".join(map(repr, known[:-1]))
                raise ValueError(f"{name} is {listed} or {known[-1]!r}, not {value!r}")

    def core(self) -> tuple[str, bool, str, bool, bool]:
        """Returns the five fields in the core's form and order."""
        return (
            self.whitespace,
            self.property_order == "any",
            self.numbers or "any",
            self.strings == "plain",
            self.formats == "enforce",
        )

    @classmethod
    def of(cls: type[S], arguments: Mapping[str, Any], **defaults: Any) -> S:
        """Returns the options that a call's arguments set. None stands for the default.

        Raises:
            TypeError: an unknown argument; the message names the nearest one. ValueError: as the class.
        """
        names = {f.name for f in fields(cls)}
        for name in arguments:
            if name not in names:
                raise no_option(name, names)
        given = {name: value for name, value in arguments.items() if value is not None}
        return cls(**{**defaults, **given})

    def arguments(self) -> dict[str, Any]:
        """Returns the fields as keyword arguments."""
        names = JSON_NAMES if isinstance(self, JsonOptions) else STYLE_NAMES
        return {name: getattr(self, name) for name in names}


@dataclass(frozen=True, kw_only=True)
class JsonOptions(JsonStyle):
    """All options of `Compiler.json_schema`.

    Attributes:
        draft: "4", "6", "7", "2019-09" or "2020-12"; None: the schema's ``$schema``, else 2020-12.
        registry: a ``referencing.Registry`` or a dict of URI to schema, for ``$ref`` to other documents.
        extra_keys: "allow" leaves objects open, as JSON Schema does. "forbid" closes every object whose
            schema has ``properties`` (also empty ones) or ``patternProperties`` and no keyword about other
            keys. It adds ``unevaluatedProperties: false`` wherever a schema applies to a whole value, so
            ``allOf``, ``anyOf`` and ``$ref`` count together. Names that ``required`` or
            ``dependentRequired`` ask for are not extra. All texts are instances of the unchanged schema.
            Beside ``allOf`` and similar keywords "forbid" needs draft 2019-09 or later. None leaves a JSON
            Schema unchanged. With None, an object of a Python type has the keys that its validator keeps:
            others only with ``extra="allow"``, ``extra_items=`` and ``**arguments``. A call then has the
            arguments that its function lists.
        digits: the most digits of a Python ``int`` whose type gives no bound, 1 to 308. None means that the
            number fits 64 bits. A bound of the type always counts. ``integer`` of a JSON Schema has no
            limit but that of ``numbers``.
    """

    _closed: ClassVar = (*JsonStyle._closed, "extra_keys")
    draft: str | int | None = _option(
        None, "4, 6, 7, 2019-09 or 2020-12 (default: what $schema says, or 2020-12)"
    )
    registry: Any = field(default=None, metadata={"local": True})
    extra_keys: Extra | None = _option(
        None,
        "forbid closes objects whose schema names members and says nothing of others; allow opens those of "
        "Python types and of functions' arguments (default: as the schema or the type says)",
        values=("allow", "forbid"),
    )
    digits: int | None = _option(
        None,
        "of an int of a Python type without bounds (default: what 64 bits hold)",
        type=int,
        metavar="N",
        local=True,
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        digits = self.digits
        if digits is not None and (type(digits) is not int or not 1 <= digits <= 308):
            raise ValueError(f"digits is a whole number from 1 to 308, not {digits!r:.60}")


@dataclass(frozen=True, kw_only=True)
class WrittenOptions(JsonOptions):
    """The defaults of calls: programs read the values, and models fill wide gaps with blanks."""

    whitespace: str = "compact"
    numbers: Numbers | None = "plain"
    strings: Strings | None = "plain"


@dataclass(frozen=True, kw_only=True)
class SampledOptions(WrittenOptions):
    """The defaults of sampling and of searches. With them every value has exactly one text."""

    numbers: Numbers | None = "canonical"


STYLE_NAMES = tuple(f.name for f in fields(JsonStyle))
JSON_NAMES = tuple(f.name for f in fields(JsonOptions))
SENT_NAMES = tuple(f.name for f in fields(JsonOptions) if not f.metadata.get("local"))


def _set_by(kind: type[JsonOptions]) -> JsonArguments:
    """Returns the fields whose defaults in a class differ from those of `JsonOptions`, with these
    defaults."""
    found = {f.name: f.default for f in fields(kind) if f.default != getattr(JsonOptions, f.name)}
    return cast(JsonArguments, found)


WRITTEN, SAMPLED = _set_by(WrittenOptions), _set_by(SampledOptions)
# The defaults of a server's answers. Models write `{"a": 1, "b": 2}` there.
SERVED: JsonArguments = {**WRITTEN, "whitespace": "one-blank"}
_VALUES = {f.name: (f.default, f.metadata["values"]) for f in fields(JsonOptions) if "values" in f.metadata}


def style_in(options: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the options among `options` that also apply to a schema inside a grammar."""
    return {name: options[name] for name in STYLE_NAMES if name in options}
