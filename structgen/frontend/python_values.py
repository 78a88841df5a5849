"""JSON Schemas of Python types, as strict as the types' validators.

In: a pydantic ``TypeAdapter``. Out: a schema document whose texts the adapter parses. Cost: pydantic's own
generation and one walk over its result. Imported only where pydantic is there.

Pydantic's JSON Schemas are weaker than its validators: a ``date-time`` may have a leap second, a URL any
scheme, a UUID any version, and an unknown format says nothing. So the methods below look at the core schema
and leave, under a key that no keyword has, what its validator takes; `document` puts that in the place of
what pydantic wrote. What no grammar can say stays in the document as a keyword that the report explains
(``python_types.REMARKS``).
"""

from __future__ import annotations

import datetime
import decimal
import inspect
import math
import sys
from collections.abc import Callable, Sequence
from typing import Any

from pydantic.json_schema import GenerateJsonSchema
from pydantic.types import Base64Encoder, Base64UrlEncoder, EncodedBytes, EncodedStr

from ..errors import GrammarError
from . import json_in_strings, text_patterns
from .python_types import CLOCK, CONTENT, FILE, VALIDATOR

Document = dict[str, Any]

_EXACT = "x-structgen-exact"  # {"base": what pydantic wrote, "exact": what stands instead}
_CONTENT = "x-structgen-content"  # the schema of the JSON text that a string holds

# Formats that pydantic gives to validators in Python, which have no core schema of their own.
_FORMATS: dict[str, Callable[[], Document]] = {
    "ipv4": lambda: _text(text_patterns.anchored(text_patterns.ipv4())),
    "ipv6": lambda: _text(text_patterns.anchored(text_patterns.ipv6())),
    "ipv4network": lambda: _text(text_patterns.anchored(text_patterns.ipv4_network())),
    "ipv6network": lambda: _text(text_patterns.anchored(text_patterns.ipv6_network())),
    "ipv4interface": lambda: _text(text_patterns.anchored(_interface(4))),
    "ipv6interface": lambda: _text(text_patterns.anchored(_interface(6))),
    "ipvanyaddress": lambda: _text(text_patterns.anchored(f"{text_patterns.ipv4()}|{text_patterns.ipv6()}")),
    "ipvanynetwork": lambda: _text(
        text_patterns.anchored(f"{text_patterns.ipv4_network()}|{text_patterns.ipv6_network()}")
    ),
    "ipvanyinterface": lambda: _text(text_patterns.anchored(f"{_interface(4)}|{_interface(6)}")),
    "email": lambda: _text(text_patterns.anchored(text_patterns.email())),
    "name-email": lambda: _text(text_patterns.anchored(text_patterns.email())),
    "color": lambda: _text("^#(?:[0-9a-f]{3}){1,2}$"),
    # letters, digits, dots and stars: what Python's `re` and every other dialect read alike
    "regex": lambda: _text(r"^(?:(?:[A-Za-z0-9 _-]|\.|\\[dswDSW.])[*+?]?)*$"),
    "file-path": lambda: {"type": "string", FILE: True},
    "directory-path": lambda: {"type": "string", FILE: True},
    "new-path": lambda: {"type": "string", FILE: True},
    "socket-path": lambda: {"type": "string", FILE: True},
}
# Formats that the patterns stand for.
_WRITTEN = {
    *("uri", "multi-host-uri", "uuid", "date", "time", "date-time", "duration", "binary", "fraction"),
    *("base64", "base64url", *(f"uuid{n}" for n in range(1, 9)), *_FORMATS),
}


def document(adapter: Any) -> Document:
    """The schema whose texts `adapter` parses; see ``python_types.REMARKS`` for what is left to parsing.

    Raises:
        GrammarError: a field that is read from a path inside other fields (``AliasPath``).
    """
    written = adapter.json_schema(schema_generator=_Generator)
    found = _settled(written, written.get("$defs", {}))
    if not isinstance(found, dict):
        raise GrammarError("the type has no schema")
    return found


# ---- what pydantic wrote, and what stands instead ----


def _exact(base: Document, exact: Document) -> Document:
    return {**base, _EXACT: {"base": dict(base), "exact": exact}}


def _text(*patterns: str, **more: Any) -> Document:
    if len(patterns) == 1:
        return {"type": "string", "pattern": patterns[0], **more}
    return {"type": "string", "allOf": [{"pattern": p} for p in patterns], **more}


def _settled(value: Any, definitions: Document, data: bool = False) -> Any:
    """`value` with every mark and every format of the table replaced. `data`: it holds no schemas."""
    if isinstance(value, list):
        return [_settled(v, definitions, data) for v in value]
    if not isinstance(value, dict) or data:
        return value
    out = {
        k: _settled(v, definitions, data=k in ("default", "examples", "const", "enum"))
        for k, v in value.items()
        if k not in (_EXACT, _CONTENT)
    }
    mark = value.get(_EXACT)
    known = _FORMATS.get(value["format"]) if isinstance(value.get("format"), str) else None
    if known is not None and mark is not None:  # a validator of a string that has conditions of its own
        return _replaced(out, mark["base"], _both(known(), _settled(mark["exact"], definitions)))
    if known is not None:
        return _replaced(out, {"type": "string"}, known())
    if mark is not None:
        return _replaced(out, mark["base"], _settled(mark["exact"], definitions))
    if _CONTENT in value:
        inner = _settled(value[_CONTENT], definitions)
        pattern = json_in_strings.pattern(inner, lambda name: _settled(definitions[name], definitions))
        out = {k: v for k, v in out.items() if k not in ("contentMediaType", "contentSchema")}
        if pattern is None:
            return {**out, "pattern": json_in_strings.anything(), CONTENT: True}
        return {**out, "pattern": pattern}
    return out


def _both(a: Document, b: Document) -> Document:
    """The strings of two documents of strings."""
    more = {k: v for k, v in b.items() if k != "type"}
    return {**a, "allOf": [*a.get("allOf", []), more]} if more else a


def _replaced(out: Document, base: Document, exact: Document) -> Document:
    """`exact` in the place of `base`, beside what the user's own annotations added."""
    rest = {
        k: v
        for k, v in out.items()
        if not (k in base and base[k] == v) and not (k == "format" and v in _WRITTEN)
    }
    clash = {k: exact.pop(k) for k in list(exact) if k in rest and rest[k] != exact[k]}
    if clash:
        rest["allOf"] = [*rest.get("allOf", []), clash]
    return {**exact, **rest}


def _ecma(pattern: Any, engine: str) -> str:
    """A compiled pattern is Python's whatever the engine."""
    text = getattr(pattern, "pattern", pattern)
    return text_patterns.from_unicode(text, sets=engine == "rust-regex" and text is pattern)


# Pydantic's own validators that look at more than the text.
_CHECKED = {"import_string", "PaymentCardNumber", "max_length_validator"}


class _Generator(GenerateJsonSchema):
    """Pydantic's schemas with what the validators take beside them."""

    # ---- numbers ----

    def int_schema(self, schema: Any) -> Document:
        base = super().int_schema(schema)
        return _exact(base, _within(base, 10**18 - 1)) if schema.get("multiple_of") else base

    def float_schema(self, schema: Any) -> Document:
        base = super().float_schema(schema)
        exact = dict(base)
        # A text just below an open bound may be read as the bound: the next double is the bound then.
        if schema.get("gt") is not None:
            exact.pop("exclusiveMinimum", None)
            exact["minimum"] = max(math.nextafter(schema["gt"], math.inf), exact.get("minimum", -math.inf))
        if schema.get("lt") is not None:
            exact.pop("exclusiveMaximum", None)
            exact["maximum"] = min(math.nextafter(schema["lt"], -math.inf), exact.get("maximum", math.inf))
        step = schema.get("multiple_of")
        if not step:
            return _exact(base, exact)
        # Rests are computed in doubles: wrong beyond some size, unless the step is a binary fraction.
        size = 10**15 if (step * 2**20).is_integer() else math.floor(step * 10**6) or step * 10**6
        return _exact(base, _within(exact, size))

    def decimal_schema(self, schema: Any) -> Document:
        base = super().decimal_schema(schema)
        places, digits = schema.get("decimal_places"), schema.get("max_digits")
        bounds = {k: schema[k] for k in ("gt", "ge", "lt", "le", "multiple_of") if schema.get(k) is not None}
        number: Document = {"type": "number"}
        text = None
        if digits is not None and places is None:
            # so many digits, wherever the point stands
            branches = [_places(k, min(digits, 15) - k) for k in range(min(digits, 15) + 1)]
            number = {"type": "number", "anyOf": branches}
            text = "|".join(text_patterns.decimal(digits - k, k) for k in range(digits + 1))
        elif places is not None or "multiple_of" in bounds:
            step = decimal.Decimal(str(bounds.get("multiple_of", 1)))
            behind = min(places if places is not None else 15, 15)
            whole = 15 - max(behind if places is not None else 0, -int(step.as_tuple().exponent))
            if digits is not None:
                whole = min(whole, digits - (places or 0))
            number.update(_places(behind if places is not None else None, max(whole, 0)))
            text = text_patterns.decimal(None if digits is None else digits - (places or 0), places)
        else:
            text = text_patterns.decimal()
        for name, bound in bounds.items():
            _bound(number, name, decimal.Decimal(str(bound)))
        # bounds on a number in a string have no pattern: such a Decimal is written as a number
        return _exact(base, number if bounds else {"anyOf": [number, _text(text)]})

    def fraction_schema(self, schema: Any) -> Document:
        base = super().fraction_schema(schema)
        if any(schema.get(k) is not None for k in ("gt", "ge", "lt", "le", "multiple_of")):
            return _exact(base, {**{k: v for k, v in base.items() if k != "anyOf"}, **base["anyOf"][0]})
        return _exact(base, {"anyOf": [{"type": "number"}, _text(text_patterns.fraction())]})

    def complex_schema(self, schema: Any) -> Document:
        return _exact(super().complex_schema(schema), _text(text_patterns.complex_number()))

    # ---- strings ----

    def str_schema(self, schema: Any) -> Document:
        base = super().str_schema(schema)
        config = self._config

        def of(name: str) -> Any:
            value = schema.get(name)
            return value if value is not None else getattr(config, f"str_{name}", None)

        exact: Document = {"type": "string"}
        patterns = []
        if of("min_length"):
            exact["minLength"] = of("min_length")
        if of("max_length") is not None:
            exact["maxLength"] = of("max_length")
        pattern = schema.get("pattern")
        if pattern is not None:
            patterns.append(_ecma(pattern, self._config.regex_engine))
        if of("strip_whitespace"):
            space = text_patterns.SPACE
            patterns.append(rf"^(?:[^{space}](?:[\s\S]*[^{space}])?)?$")
        if of("to_lower") and pattern is None:
            patterns.append(r"^[^\p{Lu}\p{Lt}]*$")
        if of("to_upper") and pattern is None:
            patterns.append(r"^[^\p{Ll}\p{Lt}]*$")
        if schema.get("ascii_only"):
            patterns.append(r"^[\x00-\x7f]*$")
        if len(patterns) == 1:
            exact["pattern"] = patterns[0]
        elif patterns:
            exact["allOf"] = [{"pattern": p} for p in patterns]
        return _exact(base, exact)

    def literal_schema(self, schema: Any) -> Document:
        written = [v for v in schema["expected"] if not isinstance(v, bytes)]  # JSON has no bytes
        if not written:
            raise GrammarError("a Literal of bytes has no JSON")
        rest: Any = {**schema, "expected": written}
        return super().literal_schema(rest)

    def is_subclass_schema(self, schema: Any) -> Document:
        raise GrammarError("a class is no JSON value")

    def bytes_schema(self, schema: Any) -> Document:
        base = super().bytes_schema(schema)
        least, most = schema.get("min_length") or 0, schema.get("max_length")
        written = self._config.val_json_bytes
        if written == "base64":
            # url-safe letters are read beside the others, never both in one text
            return _exact(base, _text(text_patterns.base64("+/", least, most)))
        if written == "hex":
            return _exact(base, _text(text_patterns.hexadecimal(least, most)))
        if least or most is not None:
            # lengths count bytes: characters of one byte each
            return _exact(base, _text(rf"^[\x00-\x7f]{{{least},{'' if most is None else most}}}$"))
        return _exact(base, {"type": "string"})

    def uuid_schema(self, schema: Any) -> Document:
        return _exact(super().uuid_schema(schema), _text(text_patterns.uuid(schema.get("version"))))

    def url_schema(self, schema: Any) -> Document:
        return self._url(super().url_schema(schema), schema, hosts=False)

    def multi_host_url_schema(self, schema: Any) -> Document:
        return self._url(super().multi_host_url_schema(schema), schema, hosts=True)

    def _url(self, base: Document, schema: Any, hosts: bool) -> Document:
        exact = _text(text_patterns.url(schema.get("allowed_schemes"), hosts))
        if schema.get("max_length") is not None:
            exact["maxLength"] = schema["max_length"] - 1  # a path is added where there is none
        return _exact(base, exact)

    def json_schema(self, schema: Any) -> Document:
        inner = schema.get("schema")
        content = self.generate_inner(inner) if inner is not None else {}
        return {"type": "string", _CONTENT: content}

    # ---- time ----

    def date_schema(self, schema: Any) -> Document:
        patterns, remarks = [text_patterns.date()], {}
        day = datetime.timedelta(days=1)
        for name, limit, step in _limits(schema):
            bound = limit.date() if isinstance(limit, datetime.datetime) else limit
            patterns.append(_ordered(name, (bound + step * day).isoformat(), ""))
        if (when := schema.get("now_op")) is not None:
            # whatever the time zone, and however the day goes on
            bound = datetime.date.today() + (2 * day if when == "future" else -2 * day)
            patterns.append(_ordered("ge" if when == "future" else "le", bound.isoformat(), ""))
            remarks = {CLOCK: when}
        return _exact(super().date_schema(schema), _text(*patterns, **remarks))

    def time_schema(self, schema: Any) -> Document:
        limits = _limits(schema)
        zone = schema.get("tz_constraint")
        offset = "" if zone == "naive" or limits else "needed" if zone == "aware" else "optional"
        if zone == "aware" and limits:
            offset = "Z"
        patterns = [text_patterns.clock(offset)]
        for name, limit, step in limits:
            if limit.tzinfo is not None or zone == "aware":
                raise GrammarError("bounds on times with a time zone are not supported")
            moment = datetime.datetime.combine(datetime.date(2000, 1, 1), limit)
            seconds = _seconds(name, moment, step)
            if seconds.date() != moment.date():
                raise GrammarError(f"no time of day is {name} {limit}")
            patterns.append(_ordered(name, seconds.time().isoformat(), r"(?:\..*)?"))
        return _exact(super().time_schema(schema), _text(*patterns))

    def datetime_schema(self, schema: Any) -> Document:
        zone = schema.get("tz_constraint")
        limits, when = _limits(schema), schema.get("now_op")
        offset = (
            "" if zone == "naive" else "needed" if zone == "aware" or isinstance(zone, int) else "optional"
        )
        remarks: Document = {}
        patterns = []
        if isinstance(zone, int):
            sign, rest = ("-" if zone < 0 else "+"), abs(zone) // 60
            patterns.append(rf"{_escaped_sign(sign)}{rest // 60:02d}:{rest % 60:02d}$")
        elif limits:
            aware = any(limit.tzinfo is not None for _, limit, _ in limits)
            offset = "Z" if aware else ""
            if (aware and zone == "naive") or (not aware and zone == "aware"):
                raise GrammarError("a bound with a time zone and a value without one cannot be compared")
        elif when is not None and zone != "naive":
            offset = "Z"
        patterns.insert(0, text_patterns.moment(offset))
        for name, limit, step in limits:
            if limit.tzinfo is not None:
                limit = limit.astimezone(datetime.UTC).replace(tzinfo=None)
            patterns.append(_ordered(name, _seconds(name, limit, step).isoformat(), r"(?:\..*)?Z?"))
        if when is not None:
            now = datetime.datetime.now(datetime.UTC).replace(tzinfo=None, microsecond=0)
            slack = datetime.timedelta(days=1 if offset == "" else 0, minutes=1)
            bound = now + (slack if when == "future" else -slack)
            patterns.append(_ordered("ge" if when == "future" else "le", bound.isoformat(), r"(?:\..*)?Z?"))
            remarks = {CLOCK: when}
        return _exact(super().datetime_schema(schema), _text(*patterns, **remarks))

    def timedelta_schema(self, schema: Any) -> Document:
        base = super().timedelta_schema(schema)
        low, high = -86_400 * 999_999_999, 86_400 * 999_999_999
        limits = _limits(schema)
        if not limits:
            return _exact(base, _text(text_patterns.duration()))
        if schema.get("strict") or self._config.strict:  # which takes no numbers
            raise GrammarError("bounds on a strict timedelta are not supported")
        for name, limit, _ in limits:  # whole seconds: durations with bounds are written as numbers
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
        """What a key of this type is written as; None: any string."""
        kind = schema["type"]
        if kind in ("any", "str") and set(schema) <= {"type", "metadata", "strict"}:
            return None
        if kind == "int":
            if schema.get("strict"):
                return _text("(?!)")
            low = _highest(schema.get("ge"), None if schema.get("gt") is None else schema["gt"] + 1)
            high = _lowest(schema.get("le"), None if schema.get("lt") is None else schema["lt"] - 1)
            out = _text(text_patterns.anchored(text_patterns.integers(low, high)))
            return {**out, VALIDATOR: "multiple_of"} if schema.get("multiple_of") else out
        if kind in ("float", "decimal"):
            limited = any(
                schema.get(k) is not None for k in ("gt", "ge", "lt", "le", "multiple_of", "max_digits")
            )
            out = _text(text_patterns.decimal(None, schema.get("decimal_places")))
            return {**out, VALIDATOR: "bounds of a number in a key"} if limited else out
        if kind == "bool":
            return {"enum": ["true", "false"]}
        if kind == "nullable":
            return self._key(schema["schema"])
        if kind in ("literal", "enum"):
            members = schema["expected"] if kind == "literal" else [m.value for m in schema["members"]]
            texts = [m for m in members if isinstance(m, str)]
            if kind == "enum" and schema.get("sub_type") == "int":
                texts = [str(int(m)) for m in members]
            return {"enum": texts} if texts else _text("(?!)")
        if kind == "union":
            found = [self._key(c if isinstance(c, dict) else c[0]) for c in schema["choices"]]
            return None if None in found else {"anyOf": found}
        return self.generate_inner(schema)

    def model_fields_schema(self, schema: Any) -> Document:
        out = super().model_fields_schema(schema)
        return self._other_names(out, schema["fields"])

    def dataclass_args_schema(self, schema: Any) -> Document:
        out = super().dataclass_args_schema(schema)
        return self._other_names(out, {f["name"]: f for f in schema["fields"]})

    def typed_dict_schema(self, schema: Any) -> Document:
        out = super().typed_dict_schema(schema)
        return self._other_names(out, schema["fields"])

    def _other_names(self, out: Document, fields: Any) -> Document:
        """Names that would be read as a field and are not its name in the schema may not be written."""
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

    # ---- validators in Python ----

    def generate_inner(self, schema: Any) -> Document:
        out = super().generate_inner(schema)
        if (
            schema["type"] == "function-plain" and "$ref" not in out
        ):  # also where the type wrote its own schema
            return _remarked(out, schema)
        return out

    def function_before_schema(self, schema: Any) -> Document:
        return _remarked(super().function_before_schema(schema), schema)

    def function_after_schema(self, schema: Any) -> Document:
        if schema.get("schema", {}).get("custom_error_type") == "byte_size":
            return {"type": "integer", "minimum": 0}
        encoded = getattr(schema["function"]["function"], "__self__", None)
        if isinstance(encoded, EncodedBytes | EncodedStr):
            letters = {Base64Encoder: "+/", Base64UrlEncoder: "-_"}.get(encoded.encoder)
            inner = super().function_after_schema(schema)
            if letters is None or self._config.val_json_bytes != "utf8":
                return {**inner, VALIDATOR: encoded.encoder.__qualname__}
            pattern = text_patterns.base64(letters, ascii_only=isinstance(encoded, EncodedStr))
            mark = inner.get(_EXACT, {"base": inner, "exact": {"type": "string"}})
            return _exact(mark["base"], _both(_text(pattern), mark["exact"]))
        return _remarked(super().function_after_schema(schema), schema)

    def function_wrap_schema(self, schema: Any) -> Document:
        return _remarked(super().function_wrap_schema(schema), schema)


def _remarked(out: Document, schema: Any) -> Document:
    function = schema["function"]["function"]
    function = getattr(function, "func", function)  # of functools.partial
    module = getattr(inspect.unwrap(function), "__module__", None) or type(function).__module__
    if (getattr(function, "__qualname__", "").split(".")[0]) in _CHECKED:
        return {**out, VALIDATOR: function.__qualname__}
    if module.split(".")[0] in ({"pydantic", "pydantic_core"} | sys.stdlib_module_names - {"__main__"}):
        return out
    name = getattr(function, "__qualname__", type(function).__name__)
    return {**out, VALIDATOR: name}


# ---- bounds ----


def _limits(schema: Any) -> list[tuple[str, Any, int]]:
    """(keyword, bound, step of the smallest unit that makes it inclusive)."""
    steps = {"gt": 1, "ge": 0, "lt": -1, "le": 0}
    return [(n, schema[n], s) for n, s in steps.items() if schema.get(n) is not None]


def _seconds(name: str, limit: datetime.datetime, step: int) -> datetime.datetime:
    """The whole second that stands for a bound: all its fractions are above it, none below an upper one."""
    second = limit.replace(microsecond=0)
    if name in ("gt", "ge"):
        return second + datetime.timedelta(seconds=1 if limit.microsecond or step else 0)
    return second - datetime.timedelta(seconds=1 if not limit.microsecond and step else 0)


def _ordered(name: str, text: str, rest: str) -> str:
    if name in ("gt", "ge"):
        return f"^{text_patterns.at_least(text)}{rest}$"
    # at the bound itself no fraction of a second: 08:00:00.5 is behind 08:00:00
    if not rest:
        return f"^{text_patterns.at_most(text)}$"
    at = text_patterns.alternatives([text])
    return f"^(?:{at}Z?|(?!{at}){text_patterns.at_most(text)}{rest})$"


def _escaped_sign(sign: str) -> str:
    return "\\+" if sign == "+" else "-"


def _within(number: Document, size: int) -> Document:
    """Multiples have bounds, so that they do not grow beyond what readers take (see ``Scalars::number``)."""
    lower = {} if number.keys() & {"minimum", "exclusiveMinimum"} else {"minimum": -size}
    upper = {} if number.keys() & {"maximum", "exclusiveMaximum"} else {"maximum": size}
    return {**number, **lower, **upper}


def _places(places: int | None, whole: int) -> Document:
    """Numbers of so many digits before and behind the point."""
    size = 10 ** max(whole, 0)
    out: Document = {"exclusiveMinimum": -size, "exclusiveMaximum": size}
    if places is not None:
        out["multipleOf"] = 1 if places == 0 else float(f"1e-{places}")
    return out


def _bound(number: Document, name: str, bound: decimal.Decimal) -> None:
    """A bound that holds also after the text was rounded to the nearest double."""
    if name == "multiple_of":
        if "multipleOf" in number and number["multipleOf"] != float(bound):
            number["allOf"] = [*number.get("allOf", []), {"multipleOf": float(bound)}]
        else:
            number["multipleOf"] = float(bound)
        return
    size = float(bound)
    read = decimal.Decimal(repr(size))
    if name in ("gt", "ge"):
        if read < bound or (name == "gt" and read == bound):
            size = math.nextafter(size, math.inf)
        number["minimum"] = max(size, number.get("minimum", -math.inf))
    else:
        if read > bound or (name == "lt" and read == bound):
            size = math.nextafter(size, -math.inf)
        number["maximum"] = min(size, number.get("maximum", math.inf))


def _highest(*bounds: int | None) -> int | None:
    known = [b for b in bounds if b is not None]
    return max(known) if known else None


def _lowest(*bounds: int | None) -> int | None:
    known = [b for b in bounds if b is not None]
    return min(known) if known else None


def _interface(version: int) -> str:
    if version == 4:
        return text_patterns.interface(text_patterns.ipv4(), 32)
    return text_patterns.interface(text_patterns.ipv6(), 128)


__all__: Sequence[str] = ["document"]
