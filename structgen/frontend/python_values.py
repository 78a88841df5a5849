"""JSON Schemas of Python types, as strict as the types' validators.

In: a pydantic ``TypeAdapter``. Out: a schema document whose texts the adapter parses. Cost: pydantic's own
generation, and one walk over its result. This module is imported only if pydantic is installed.

The problem. Pydantic's JSON Schemas are weaker than its validators. A ``date-time`` may have a leap second, a
URL may have any scheme, a UUID any version, and an unknown format says nothing. A text that such a schema
allows may then fail to parse.

The idea. Pydantic also has a *core schema*, which says what its validator checks. `_Generator` overrides the
methods of pydantic's generator. Each calls the original, reads the core schema, and adds a mark: what
pydantic wrote (``base``), and what the validator takes (``exact``). For
``Annotated[int, Field(ge=3, title="Age")]``:

    generated   {"minimum": 3, "title": "Age", "type": "integer",
                 "x-structgen-exact": {
                     "base": {"minimum": 3, "type": "integer"},
                     "exact": {"maximum": 9223372036854775807, "minimum": 3, "type": "integer"}}}
    settled     {"maximum": 9223372036854775807, "minimum": 3, "type": "integer", "title": "Age"}

`_settled` replaces ``base`` by ``exact`` afterwards. The mark is needed because pydantic adds annotations of
the user (a title, a description, more keywords) after the method has returned. What stands in the schema and
not in ``base`` is such an annotation, and it stays.

Formats of validators that are plain functions have no method in the generator; `_FORMATS` gives their
patterns.

Invariants.
- No mark is left in a document that `document` returns.
- A condition that no grammar can express stays in the document as a keyword, which the report explains
  (``remarks.REMARKS``).
- ``exact`` may allow less than the validator (a strict time, a simple regular expression). It allows more
  only if such a keyword stands beside it.

Rejected. Writing the JSON text in a string (``Json[T]``) as a pattern: the code that made the pattern read a
part of JSON Schema a second time. The engine's keyword ``x-structgen-content`` replaced it.
"""

from __future__ import annotations

import datetime
import inspect
import json
import math
import zoneinfo
from collections.abc import Callable, Sequence
from typing import Any

from pydantic.json_schema import GenerateJsonSchema
from pydantic.types import Base64Encoder, Base64UrlEncoder, EncodedBytes, EncodedStr
from pydantic_core import SchemaValidator, to_jsonable_python

from ..errors import GrammarError
from ..keywords import rewritten
from . import python_numbers, python_predicates, text_patterns
from .remarks import CLOCK, FILE, VALIDATOR

Document = dict[str, Any]

_EXACT = "x-structgen-exact"  # {"base": what pydantic wrote, "exact": what stands instead}
_CONTENT = "x-structgen-content"  # the engine's keyword: the schema of the JSON text that a string holds


def _told(body: Callable[[], str], said: str) -> Callable[[], Document]:
    return lambda: _text(text_patterns.anchored(body()), said)


# Formats of validators that pydantic wrote in Python. The core schema of such a validator names a function
# and no type.
_FORMATS: dict[str, Callable[[], Document]] = {
    "ipv4": _told(text_patterns.ipv4, "an IPv4 address"),
    "ipv6": _told(text_patterns.ipv6, "an IPv6 address"),
    "ipv4network": _told(text_patterns.ipv4_network, "an IPv4 network: no bits behind the prefix"),
    "ipv6network": _told(text_patterns.ipv6_network, "an IPv6 network: no bits behind the prefix"),
    "ipv4interface": _told(lambda: _interface(4), "an IPv4 address with or without a prefix length"),
    "ipv6interface": _told(lambda: _interface(6), "an IPv6 address with or without a prefix length"),
    "ipvanyaddress": _told(lambda: f"{text_patterns.ipv4()}|{text_patterns.ipv6()}", "an IP address"),
    "ipvanynetwork": _told(
        lambda: f"{text_patterns.ipv4_network()}|{text_patterns.ipv6_network()}", "an IP network"
    ),
    "ipvanyinterface": _told(
        lambda: f"{_interface(4)}|{_interface(6)}", "an IP address with or without a prefix length"
    ),
    "email": _told(text_patterns.email, "an e-mail address"),
    "name-email": _told(text_patterns.email, "an e-mail address"),
    "zoneinfo": lambda: {"type": "string", "enum": sorted(zoneinfo.available_timezones())},
    "color": _told(lambda: "#(?:[0-9a-f]{3}){1,2}", "a colour as #rgb or #rrggbb"),
    # The syntax that Python's `re` and every other dialect read alike.
    "regex": _told(lambda: r"(?:(?:[A-Za-z0-9 _-]|\.|\\[dswDSW.])[*+?]?)*", "a simple regular expression"),
    "file-path": lambda: {"type": "string", FILE: True},
    "directory-path": lambda: {"type": "string", FILE: True},
    "new-path": lambda: {"type": "string", FILE: True},
    "socket-path": lambda: {"type": "string", FILE: True},
}
# Formats that a pattern or a type replaces, so they are not written beside it.
_WRITTEN = {
    *("uri", "multi-host-uri", "uuid", "date", "time", "date-time", "duration", "binary", "fraction"),
    *("base64", "base64url", *(f"uuid{n}" for n in range(1, 9)), *_FORMATS),
}

# Formats that only say how a string is shown or used. They are dropped.
_NOTES = ("password", "path")


def document(adapter: Any, closed: bool = True, digits: int | None = None) -> Document:
    """Returns the schema whose texts `adapter` parses. ``remarks.REMARKS`` lists the conditions that only
    parsing checks.

    Args:
        closed: True forbids keys that a validator would ignore and drop.
        digits: the most digits of an `int` without bounds; None: an int fits 64 bits.

    Raises:
        GrammarError: a field that is read from a path inside other fields (``AliasPath``).
    """
    generator = type("_Chosen", (_Generator,), {"closed": closed, "digits": digits})
    written = adapter.json_schema(schema_generator=generator)
    found = _settled(written)
    if not isinstance(found, dict):
        raise GrammarError("the type has no schema")
    return found


# ---- what pydantic wrote, and what stands instead ----


def _exact(base: Document, exact: Document) -> Document:
    return {**base, _EXACT: {"base": dict(base), "exact": exact}}


def _rule(pattern: str, said: str | None) -> Document:
    """Returns a pattern, and the words that `explain` shows instead of it."""
    words = {} if said is None else {"$comment": text_patterns.SAID + said}
    return {"pattern": pattern, **words}


def _text(pattern: str, said: str | None = None, *more: Document, **notes: Any) -> Document:
    """Returns the schema of strings that match a pattern and satisfy every document in `more`."""
    rules = [_rule(pattern, said), *more]
    if len(rules) == 1:
        return {"type": "string", **rules[0], **notes}
    return {"type": "string", "allOf": rules, **notes}


# Conditions that pydantic checks in Python where the type has no such argument. Pydantic also writes some of
# these names into its JSON Schemas. They are no keywords, so they are dropped there.
_CONDITIONS = {
    *("gt", "ge", "lt", "le", "multiple_of"),
    *("min_length", "max_length", "max_digits", "decimal_places"),
}


def _settled(schema: Any) -> Any:
    """Replaces every mark and every format of `_FORMATS`, in `schema` and in the schemas inside it."""
    if not isinstance(schema, dict):
        return schema
    out: Document = rewritten(schema, lambda _, inner: _settled(inner))
    for keyword, held in schema.items():
        noted = keyword == "format" and held in _NOTES
        if noted or keyword in (_EXACT, "discriminator") or keyword in _CONDITIONS:
            del out[keyword]
    mark = schema.get(_EXACT)
    named = schema.get("format")
    known = _FORMATS.get(named) if isinstance(named, str) else None
    if known is not None and mark is not None:  # the string that the validator reads has conditions, too
        return _replaced(schema, out, mark["base"], _both(known(), _settled(mark["exact"])))
    if known is not None:
        return _replaced(schema, out, {"type": "string"}, known())
    if mark is not None:
        return _replaced(schema, out, mark["base"], _settled(mark["exact"]))
    if "uniqueItems" in out and _CONTENT in (out.get("items") or {}):
        # The items are strings of JSON text. Unequal strings may be equal values, so only parsing can count
        # how many values of the set differ.
        del out["uniqueItems"]
        if out.get("minItems", 0) > 1:
            out[VALIDATOR] = "the size of a set"
    return out


def _both(a: Document, b: Document) -> Document:
    """Returns the values that both documents allow."""
    more = {k: v for k, v in b.items() if k != "type" or v != a.get("type")}
    return {**a, "allOf": [*a.get("allOf", []), more]} if more else a


def _replaced(schema: Document, out: Document, base: Document, exact: Document) -> Document:
    """Puts `exact` in the place of `base` and keeps what the user's annotations added.

    An annotation is a keyword of `schema` that is not in `base`, or has another value there. `out` is
    `schema` after `_settled`, and `base` is as it was before, so `base` is compared with `schema`.
    """
    rest = {
        k: v
        for k, v in out.items()
        if not (k in base and base[k] == schema[k]) and not (k == "format" and v in _WRITTEN)
    }
    clash = {k: exact.pop(k) for k in list(exact) if k in rest and rest[k] != exact[k]}
    return {**exact, **_both(rest, clash)}


def _ecma(pattern: Any, engine: str) -> str:
    """Returns a pattern of a string type in ECMA's dialect.

    A `re.Pattern` is read by Python's `re`, whichever engine the type's configuration names.
    """
    text = getattr(pattern, "pattern", pattern)
    return text_patterns.from_unicode(text, sets=engine == "rust-regex" and text is pattern)


# Validators of pydantic itself that check more than their pattern says.
_CHECKED = {"import_string", "PaymentCardNumber"}


class _Generator(GenerateJsonSchema):
    """Pydantic's generator. Its methods mark each schema with what the validator takes (`_EXACT`)."""

    closed = True
    digits: int | None = None

    # ---- numbers ----

    def int_schema(self, schema: Any) -> Document:
        base = super().int_schema(schema)
        return _exact(base, python_numbers.integer(base, schema, self.digits))

    def float_schema(self, schema: Any) -> Document:
        base = super().float_schema(schema)
        return _exact(base, python_numbers.floating(base, schema))

    def decimal_schema(self, schema: Any) -> Document:
        base = super().decimal_schema(schema)
        return _exact(base, python_numbers.decimals(base, schema))

    def fraction_schema(self, schema: Any) -> Document:
        base = super().fraction_schema(schema)
        if any(schema.get(k) is not None for k in ("gt", "ge", "lt", "le", "multiple_of")):
            return _exact(base, {**{k: v for k, v in base.items() if k != "anyOf"}, **base["anyOf"][0]})
        written = _text(text_patterns.fraction(), "a fraction as 1/3")
        return _exact(base, {"anyOf": [{"type": "number"}, written]})

    def complex_schema(self, schema: Any) -> Document:
        written = _text(text_patterns.complex_number(), "a complex number as 1+2j")
        return _exact(super().complex_schema(schema), written)

    # ---- strings ----

    def str_schema(self, schema: Any) -> Document:
        base = super().str_schema(schema)
        config = self._config

        def of(name: str) -> Any:
            value = schema.get(name)
            return value if value is not None else getattr(config, f"str_{name}", None)

        exact: Document = {"type": "string"}
        rules = []
        if of("min_length"):
            exact["minLength"] = of("min_length")
        if of("max_length") is not None:
            exact["maxLength"] = of("max_length")
        pattern = schema.get("pattern")
        if pattern is not None:
            written = getattr(pattern, "pattern", pattern)
            rules.append(_rule(_ecma(pattern, self._config.regex_engine), f"a text that matches {written}"))
        if of("strip_whitespace"):
            space = text_patterns.SPACE
            rules.append(
                _rule(rf"^(?:[^{space}](?:[\s\S]*[^{space}])?)?$", "a text without blanks around it")
            )
        if of("to_lower") and pattern is None:
            rules.append(_rule(python_predicates.unchanged("lower"), "a text without capital letters"))
        if of("to_upper") and pattern is None:
            rules.append(_rule(python_predicates.unchanged("upper"), "a text without small letters"))
        if schema.get("ascii_only"):
            rules.append(_rule(r"^[\x00-\x7f]*$", "ASCII text"))
        if len(rules) == 1:
            exact.update(rules[0])
        elif rules:
            exact["allOf"] = rules
        return _exact(base, exact)

    # ---- members of enums and literals ----

    def enum_schema(self, schema: Any) -> Document:
        rest: Any = {**schema, "members": self._written(schema, schema["members"])}
        return super().enum_schema(rest)

    def literal_schema(self, schema: Any) -> Document:
        rest: Any = {**schema, "expected": self._written(schema, schema["expected"])}
        return super().literal_schema(rest)

    def _written(self, schema: Any, members: list[Any]) -> list[Any]:
        """Returns the members that JSON can write and from which the validator gets the same member back."""
        reads = self._reader(schema)
        kept = [m for m in members if (text := _json_of(m)) is not None and reads(text)]
        if not kept:
            name = getattr(schema.get("cls"), "__name__", "a Literal")
            raise GrammarError(f"no member of {name} is read back from JSON")
        return kept

    def _reader(self, schema: Any) -> Callable[[str], bool]:
        """Returns a function that says whether the validator of `schema` takes a text; `schema` has no
        references."""
        validator = SchemaValidator(schema, {"strict": self._config.strict})

        def reads(text: str) -> bool:
            try:
                validator.validate_json(text)
            except Exception:  # an enum's own `_missing_` may raise anything
                return False
            return True

        return reads

    def is_subclass_schema(self, schema: Any) -> Document:
        raise GrammarError("a class is no JSON value")

    def bytes_schema(self, schema: Any) -> Document:
        base = super().bytes_schema(schema)
        least, most = schema.get("min_length") or 0, schema.get("max_length")
        written = self._config.val_json_bytes
        if written == "base64":
            # The validator reads the URL-safe alphabet, too, but never both alphabets in one text.
            return _exact(base, _text(text_patterns.base64("+/", least, most), "base64"))
        if written == "hex":
            return _exact(base, _text(text_patterns.hexadecimal(least, most), "pairs of hexadecimal digits"))
        if least or most is not None:
            # Lengths count bytes. Only ASCII is allowed, where each character is one byte.
            upper = "" if most is None else most
            said = f"ASCII text of {least} to {upper or 'any number of'} characters"
            return _exact(base, _text(rf"^[\x00-\x7f]{{{least},{upper}}}$", said))
        return _exact(base, {"type": "string"})

    def uuid_schema(self, schema: Any) -> Document:
        version = schema.get("version")
        said = "a UUID" if version is None else f"a UUID of version {version}"
        return _exact(super().uuid_schema(schema), _text(text_patterns.uuid(version), said))

    def url_schema(self, schema: Any) -> Document:
        return self._url(super().url_schema(schema), schema, hosts=False)

    def multi_host_url_schema(self, schema: Any) -> Document:
        return self._url(super().multi_host_url_schema(schema), schema, hosts=True)

    def _url(self, base: Document, schema: Any, hosts: bool) -> Document:
        schemes = schema.get("allowed_schemes")
        said = "a URL" if schemes is None else f"a URL that begins with {' or '.join(schemes)}"
        exact = _text(text_patterns.url(schemes, hosts), said)
        if schema.get("max_length") is not None:
            exact["maxLength"] = schema["max_length"] - 1  # the validator adds "/" to a URL without a path
        return _exact(base, exact)

    def json_schema(self, schema: Any) -> Document:
        inner = schema.get("schema")
        content = self.generate_inner(inner) if inner is not None else {}
        return {"type": "string", _CONTENT: content}

    # ---- time ----

    def date_schema(self, schema: Any) -> Document:
        rules, remarks = [], {}
        day = datetime.timedelta(days=1)
        for name, limit, step in _limits(schema):
            bound = limit.date() if isinstance(limit, datetime.datetime) else limit
            rules.append(_rule(_ordered(name, (bound + step * day).isoformat(), ""), _said(name, limit)))
        if (when := schema.get("now_op")) is not None:
            # Two days of slack: the validator's time zone is not known, and a day may pass before it runs.
            rules.append(_now_or(when, datetime.date.today(), 2 * day, ""))
            remarks = {CLOCK: when}
        exact = _text(text_patterns.date(), "a date as YYYY-MM-DD", *rules, **remarks)
        return _exact(super().date_schema(schema), exact)

    def time_schema(self, schema: Any) -> Document:
        limits = _limits(schema)
        zone = schema.get("tz_constraint")
        offset = "" if zone == "naive" or limits else "needed" if zone == "aware" else "optional"
        if zone == "aware" and limits:
            offset = "Z"
        rules = []
        for name, limit, step in limits:
            if limit.tzinfo is not None or zone == "aware":
                raise GrammarError("bounds on times with a time zone are not supported")
            moment = datetime.datetime.combine(datetime.date(2000, 1, 1), limit)
            seconds = _seconds(name, moment, step)
            if seconds.date() != moment.date():
                raise GrammarError(f"no time of day is {name} {limit}")
            order = _ordered(name, seconds.time().isoformat(), r"(?:\..*)?")
            rules.append(_rule(order, _said(name, limit)))
        exact = _text(text_patterns.clock(offset), f"a time as HH:MM:SS{_ZONES[offset]}", *rules)
        return _exact(super().time_schema(schema), exact)

    def datetime_schema(self, schema: Any) -> Document:
        zone = schema.get("tz_constraint")
        limits, when = _limits(schema), schema.get("now_op")
        offset = (
            "" if zone == "naive" else "needed" if zone == "aware" or isinstance(zone, int) else "optional"
        )
        remarks: Document = {}
        rules = []
        if isinstance(zone, int):
            sign, rest = ("-" if zone < 0 else "+"), abs(zone) // 60
            clock = f"{rest // 60:02d}:{rest % 60:02d}"
            rules.append(_rule(f"{_escaped_sign(sign)}{clock}$", f"a time with the offset {sign}{clock}"))
        elif limits:
            aware = any(limit.tzinfo is not None for _, limit, _ in limits)
            offset = "Z" if aware else ""
            if (aware and zone == "naive") or (not aware and zone == "aware"):
                raise GrammarError("a bound with a time zone and a value without one cannot be compared")
        elif when is not None and zone != "naive":
            offset = "Z"
        for name, limit, step in limits:
            if limit.tzinfo is not None:
                limit = limit.astimezone(datetime.UTC).replace(tzinfo=None)
            order = _ordered(name, _seconds(name, limit, step).isoformat(), r"(?:\..*)?Z?")
            rules.append(_rule(order, _said(name, limit)))
        if when is not None:
            now = datetime.datetime.now(datetime.UTC).replace(tzinfo=None, microsecond=0)
            slack = datetime.timedelta(days=1 if offset == "" else 0, minutes=1)
            rules.append(_now_or(when, now, slack, r"(?:\..*)?Z?"))
            remarks = {CLOCK: when}
        said = f"a date and a time as YYYY-MM-DDTHH:MM:SS{_ZONES[offset]}"
        exact = _text(text_patterns.moment(offset), said, *rules, **remarks)
        return _exact(super().datetime_schema(schema), exact)

    def timedelta_schema(self, schema: Any) -> Document:
        base = super().timedelta_schema(schema)
        low, high = -86_400 * 999_999_999, 86_400 * 999_999_999
        limits = _limits(schema)
        if not limits:
            return _exact(base, _text(text_patterns.duration(), "an ISO 8601 duration as P1DT2H3M4.5S"))
        if schema.get("strict") or self._config.strict:  # such a validator takes no numbers
            raise GrammarError("bounds on a strict timedelta are not supported")
        for name, limit, _ in limits:  # durations with bounds are written as whole numbers of seconds
            seconds = limit.total_seconds()
            if name in ("gt", "ge"):
                low = max(low, math.floor(seconds) + 1 if name == "gt" else math.ceil(seconds))
            else:
                high = min(high, math.ceil(seconds) - 1 if name == "lt" else math.floor(seconds))
        return _exact(base, {"type": "integer", "minimum": low, "maximum": high})

    # ---- members ----

    def _common_dict_schema(self, schema: Any, *args: Any, **named: Any) -> Document:
        base: Document = super()._common_dict_schema(schema, *args, **named)
        keys = schema.get("keys_schema")
        if keys is None:
            return base
        allowed = self._key(keys)
        if allowed is None:
            return {k: v for k, v in base.items() if k != "propertyNames"}
        exact = {k: v for k, v in base.items() if k not in ("propertyNames", "patternProperties")}
        values = schema.get("values_schema")
        if "patternProperties" in base and values is not None:
            exact["additionalProperties"] = self.generate_inner(values)
        return _exact(base, {**exact, "propertyNames": allowed})

    def _key(self, schema: Any) -> Document | None:
        """Returns the schema of the strings that are read as keys of this type; None: any string."""
        kind = schema["type"]
        if kind in ("any", "str") and set(schema) <= {"type", "metadata", "strict"}:
            return None
        if kind == "int":
            if schema.get("strict"):
                return _text("(?!)", "never written: no key is such a value")
            bounds = [(name, limit + step) for name, limit, step in _limits(schema)]
            low = max((limit for name, limit in bounds if name[0] == "g"), default=None)
            high = min((limit for name, limit in bounds if name[0] == "l"), default=None)
            pattern = text_patterns.integers(*python_numbers.whole(low, high, 1, self.digits))
            out = _text(text_patterns.anchored(pattern), "a whole number of the type")
            return {**out, VALIDATOR: "multiple_of"} if schema.get("multiple_of") else out
        if kind in ("float", "decimal"):
            limited = any(
                schema.get(k) is not None for k in ("gt", "ge", "lt", "le", "multiple_of", "max_digits")
            )
            out = _text(text_patterns.decimal(None, schema.get("decimal_places")), "a decimal number")
            return {**out, VALIDATOR: "bounds of a number in a key"} if limited else out
        if kind == "bool":
            return {"enum": ["true", "false"]}
        if kind == "nullable":
            return self._key(schema["schema"])
        if kind in ("literal", "enum"):
            members = schema["expected" if kind == "literal" else "members"]
            reads = self._reader({"type": "dict", "keys_schema": schema})
            texts = dict.fromkeys(t for m in members for t in _keys_of(m) if reads(json.dumps({t: None})))
            return {"enum": list(texts)} if texts else _text("(?!)", "never written: no key is such a value")
        if kind == "union":
            found = [self._key(c if isinstance(c, dict) else c[0]) for c in schema["choices"]]
            return None if None in found else {"anyOf": found}
        return self.generate_inner(schema)

    def model_fields_schema(self, schema: Any) -> Document:
        out = self._closed(super().model_fields_schema(schema), schema, self._config.extra)
        return self._other_names(out, schema["fields"])

    def dataclass_args_schema(self, schema: Any) -> Document:
        """Leaves out fields of `init=False`: the validator drops what is written for them."""
        schema = {**schema, "fields": [f for f in schema["fields"] if f.get("init", True)]}
        out = self._closed(super().dataclass_args_schema(schema), schema, self._config.extra)
        return self._other_names(out, {f["name"]: f for f in schema["fields"]})

    def typed_dict_schema(self, schema: Any) -> Document:
        given = getattr(schema.get("cls"), "__pydantic_config__", None) or {}
        extra = given.get("extra") or (schema.get("config") or {}).get("extra_fields_behavior")
        out = self._closed(super().typed_dict_schema(schema), schema, extra)
        return self._other_names(out, schema["fields"])

    def _closed(self, out: Document, schema: Any, configured: str | None) -> Document:
        """Closes an object whose validator drops unknown keys."""
        kept = (schema.get("extra_behavior") or configured) == "allow"
        return out if kept or not self.closed else {"additionalProperties": False, **out}

    def _other_names(self, out: Document, fields: Any) -> Document:
        """Forbids the other names of each field.

        A validator may read a field under several names, of which the schema lists one. In an open object the
        others would be extra keys of any value, and the validator would read those values as the field.
        """
        config = self._config
        properties = out.get("properties", {})
        by_name = config.validate_by_name or config.populate_by_name
        for name, field in fields.items():
            alias = field.get("validation_alias", name)
            paths = [[alias]] if isinstance(alias, str) else [[alias] if isinstance(alias, str) else alias]
            if isinstance(alias, list):
                paths = [p if isinstance(p, list) else [p] for p in alias]
                if alias and isinstance(alias[0], str):
                    paths = [alias]
            if all(len(p) > 1 for p in paths):
                raise GrammarError(f"the field {name!r} is read from a path (AliasPath), which has no schema")
            others = {p[0] for p in paths} | ({name} if by_name else set())
            if out.get("additionalProperties") is not False:
                for other in sorted(o for o in others if isinstance(o, str)):
                    properties.setdefault(other, False)
        return out

    def tagged_union_schema(self, schema: Any) -> Document:
        """Requires the tag, even if the models give it a default: the validator chooses the model by it."""
        out = super().tagged_union_schema(schema)
        tag = schema["discriminator"]
        if isinstance(tag, str):
            tag = [[tag]]
        if callable(tag):
            return {**out, VALIDATOR: _called(tag)}
        paths = [path if isinstance(path, list) else [path] for path in tag]
        names = [{"required": [path[0]]} for path in paths if len(path) == 1]
        return {
            **out,
            "type": "object",
            **({"anyOf": names} if len(names) > 1 else names[0] if names else {}),
        }

    # ---- validators in Python ----

    def generate_inner(self, schema: Any) -> Document:
        out = super().generate_inner(schema)
        # A plain validator is marked here, because a type with a JSON Schema of its own skips the method of
        # its kind.
        return _remarked(out, schema) if schema["type"] == "function-plain" and "$ref" not in out else out

    def function_before_schema(self, schema: Any) -> Document:
        return _remarked(super().function_before_schema(schema), schema)

    def function_after_schema(self, schema: Any) -> Document:
        if schema.get("schema", {}).get("custom_error_type") == "byte_size":
            most = python_numbers.whole(0, None, 1, self.digits)[1]
            return {"type": "integer", "minimum": 0, "maximum": most}
        encoded = getattr(schema["function"]["function"], "__self__", None)
        if isinstance(encoded, EncodedBytes | EncodedStr):
            letters = {Base64Encoder: "+/", Base64UrlEncoder: "-_"}.get(encoded.encoder)
            inner = super().function_after_schema(schema)
            if letters is None or self._config.val_json_bytes != "utf8":
                return {**inner, VALIDATOR: encoded.encoder.__qualname__}
            pattern = text_patterns.base64(letters, ascii_only=isinstance(encoded, EncodedStr))
            mark = inner.get(_EXACT, {"base": inner, "exact": {"type": "string"}})
            return _exact(mark["base"], _both(_text(pattern, "base64"), mark["exact"]))
        return _remarked(super().function_after_schema(schema), schema)

    def function_wrap_schema(self, schema: Any) -> Document:
        return _remarked(super().function_wrap_schema(schema), schema)

    def chain_schema(self, schema: Any) -> Document:
        """Returns the document of the first step, with the conditions on strings of the further steps.

        Pydantic writes conditions on a function's result as further steps. Conditions on other values are
        left to parsing.
        """
        out = super().chain_schema(schema)
        for step in schema["steps"][1:]:
            function = step.get("function", {}).get("function")
            inner = step.get("schema", {})
            known = _called(function).startswith("apply_known_metadata") and inner.get("type") == "str"
            if known and _is_string(out):
                out = _both(out, self.str_schema(inner)[_EXACT]["exact"])
            else:
                out = {**out, VALIDATOR: "a further step of validation"}
        return out


def _remarked(out: Document, schema: Any) -> Document:
    """Adds to `out` what the function of a validator checks, or a remark if that is not known."""
    function = schema["function"]["function"]
    called = getattr(function, "func", function)  # of functools.partial
    found = python_predicates.asked(function)
    if found is not None:
        strings = python_predicates.strings(function)
        if strings is not None and _is_string(out):
            said = f"a text for which {_called(found[0])} is {str(found[1]).lower()}"
            return _both(out, {**strings, "$comment": text_patterns.SAID + said})
        if (every := python_predicates.numbers(function)) is not None:
            return out if every else {"not": {}, VALIDATOR: _called(found[0])}
        return {**out, VALIDATOR: _called(found[0])}
    if schema["type"] == "function-after" and python_predicates.total(called):
        return out
    module = getattr(inspect.unwrap(called), "__module__", None) or type(called).__module__
    own = module.split(".")[0] in ("pydantic", "pydantic_core")
    conditions = getattr(function, "keywords", {})
    if own and conditions and conditions.keys() <= _CONDITIONS:
        return _conditioned(out, conditions, schema["schema"])
    if own and called.__qualname__.startswith("PathType.validate_"):
        return {**out, FILE: True}
    if own and called.__qualname__.split(".")[0] not in _CHECKED:
        return out
    return {**out, VALIDATOR: _called(called)}


_LENGTHS = {
    "min_length": {"string": "minLength", "array": "minItems", "object": "minProperties"},
    "max_length": {"string": "maxLength", "array": "maxItems", "object": "maxProperties"},
}


def _conditioned(out: Document, conditions: Any, inner: Any) -> Document:
    """Adds the keywords for lengths and bounds that `out` can have, and a remark about the others.

    `inner` is the core schema of the values that the conditions are about.
    """
    while inner["type"].startswith("function-") and "schema" in inner:
        inner = inner["schema"]
    for name, value in conditions.items():
        keyword = _LENGTHS.get(name, {}).get(str(out.get("type")))
        if keyword is not None and (inner["type"] == "str" or not _is_string(out)):
            more: Document = {keyword: value}
        elif name in ("gt", "ge", "lt", "le") and inner["type"] in ("int", "float"):
            more = python_numbers.floating({}, {name: value})
        else:  # for a URL or a path the validator measures the parsed value and not the text
            out = {**out, VALIDATOR: name}
            continue
        out = _both(out, more)
    return out


def _is_string(out: Document) -> bool:
    return out.get("type") == "string"


def _called(function: Any) -> str:
    return getattr(function, "__qualname__", None) or type(function).__name__


# ---- bounds ----


def _limits(schema: Any) -> list[tuple[str, Any, int]]:
    """Returns (keyword, bound, step): bound + step smallest units is the nearest value that is allowed."""
    steps = {"gt": 1, "ge": 0, "lt": -1, "le": 0}
    return [(n, schema[n], s) for n, s in steps.items() if schema.get(n) is not None]


_ZONES = {"": "", "Z": "Z", "needed": " and an offset", "optional": " with or without an offset"}


def _said(name: str, bound: Any) -> str:
    order = {"gt": "after", "ge": "not before", "lt": "before", "le": "not after"}[name]
    return f"a time {order} {bound}"


def _seconds(name: str, limit: datetime.datetime, step: int) -> datetime.datetime:
    """Returns the whole second that stands for a bound.

    For a lower bound: this second with all its fractions lies above `limit`. For an upper bound: this second
    without a fraction lies below it.
    """
    second = limit.replace(microsecond=0)
    if name in ("gt", "ge"):
        return second + datetime.timedelta(seconds=1 if limit.microsecond or step else 0)
    return second - datetime.timedelta(seconds=1 if not limit.microsecond and step else 0)


def _ordered(name: str, text: str, rest: str) -> str:
    if name in ("gt", "ge"):
        return f"^{text_patterns.at_least(text)}{rest}$"
    # At an upper bound no fraction may follow: 08:00:00.5 is later than 08:00:00.
    if not rest:
        return f"^{text_patterns.at_most(text)}$"
    at = text_patterns.alternatives([text])
    return f"^(?:{at}Z?|(?!{at}){text_patterns.at_most(text)}{rest})$"


def _now_or(when: str, now: Any, slack: datetime.timedelta, rest: str) -> Document:
    """Returns the rule of times in the future or the past, with some slack."""
    name, bound = ("ge", now + slack) if when == "future" else ("le", now - slack)
    return _rule(_ordered(name, bound.isoformat(), rest), _said(name, bound))


def _escaped_sign(sign: str) -> str:
    return "\\+" if sign == "+" else "-"


def _json_of(member: Any) -> str | None:
    """Returns the JSON text of a member of an enum or a literal; None if JSON cannot write it."""
    try:
        return json.dumps(to_jsonable_python(getattr(member, "value", member)), allow_nan=False)
    except (ValueError, TypeError):  # PydanticSerializationError is a ValueError
        return None


def _keys_of(member: Any) -> list[str]:
    """Returns the strings that a key may be, to be read as this member."""
    value = getattr(member, "value", member)
    if isinstance(value, str):
        return [str(value)]
    if isinstance(value, bool):
        return ["true" if value else "false"]
    if isinstance(value, int):
        return [str(int(value))]
    return [repr(float(value))] if isinstance(value, float) else []


def _interface(version: int) -> str:
    if version == 4:
        return text_patterns.interface(text_patterns.ipv4(), 32)
    return text_patterns.interface(text_patterns.ipv6(), 128)


__all__: Sequence[str] = ["document"]
