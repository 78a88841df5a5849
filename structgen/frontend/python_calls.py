"""Tool calls as Python writes them, of Llama 3.2 and 4 and others: ``[weather(city="Rome"), time()]``.

In: functions with the schemas of their parameters. Out: formats of a structural tag; from a text, its calls.
Cost: linear.

A whole answer is a list of calls, or it is text that does not begin with ``[``: hosts read it like that.
JSON is Python but for ``true``, ``false`` and ``null``. These are written ``True``, ``False`` and ``None`` as
values of parameters; where a schema lets them stand inside of lists and objects, the function is refused. So
are keywords that look at several parameters at once. Members that `properties` does not list are not written.
The required parameters come first, as in signatures.
"""

from __future__ import annotations

import ast
import copy
import json
import keyword
import unicodedata
import warnings
from collections.abc import Iterator
from typing import Any, NoReturn

from ..errors import UnsupportedSchema
from .schema_parts import target, type_of

__all__ = ["calls_of", "format_of", "no_call"]

_PARAMETERS = "urn:structgen:parameters"
_HERE = "-"  # no name of a parameter
_ABOUT = ("title", "description", "default", "examples", "$comment", "deprecated")
_WHOLE = (
    "type",
    "properties",
    "required",
    "additionalProperties",
    "$defs",
    "definitions",
    "$schema",
    "strict",
    *_ABOUT,
)
_LITERAL = {"True": True, "False": False, "None": None}
_NAME = 1000  # bytes of a name
_FIRST_PARAMETERS = 64  # of a function without required ones: each may be the first

#: Text that is no list of calls.
no_call: dict[str, Any] = {"type": "regex", "pattern": r"([^\[](.|\n)*)?"}


def format_of(functions: list[tuple[str, Any]], must: bool, single: bool) -> dict[str, Any]:
    """The format of an answer. UnsupportedSchema: a function that cannot be written; it names the keyword."""
    one = {"type": "or", "elements": [_call(name, schema) for name, schema in functions]}
    elements: list[dict[str, Any]] = [_text("["), one]
    if not single:
        more = {"type": "sequence", "elements": [_text(", "), one]}
        elements.append({"type": "star", "content": more})
    calls = {"type": "sequence", "elements": [*elements, _text("]")]}
    return calls if must else {"type": "or", "elements": [calls, no_call]}


def _text(value: str) -> dict[str, Any]:
    return {"type": "const_string", "value": value}


def _call(name: str, schema: Any) -> dict[str, Any]:
    def fail(what: str, place: str = "", word: str = "") -> NoReturn:
        raise UnsupportedSchema(f"pythonic calls of '{name}': {what}", pointer=place, keyword=word)

    if not name.isidentifier() or keyword.iskeyword(name):
        fail("the name is no name of Python")
    if not isinstance(schema, dict) or schema.get("type", "object") != "object":
        fail("the parameters are no schema of an object")
    for word in schema:
        if word not in _WHOLE:
            fail(f"`{word}` of all parameters together cannot be kept; list them in `properties`", "", word)
    properties = schema.get("properties", {})
    required = [key for key in properties if key in schema.get("required", [])]
    for key in schema.get("required", []):
        if key not in properties:
            fail(f"the required parameter {key!r} is not in `properties`", "", "required")
    as_python: dict[str, str] = {}
    for key in properties:
        if not key.isidentifier() or keyword.iskeyword(key):
            fail(f"the parameter {key!r} is no name of Python", f"/properties/{key}")
        if (other := as_python.setdefault(unicodedata.normalize("NFKC", key), key)) != key:
            fail(f"the parameters {other!r} and {key!r} are one name of Python", f"/properties/{key}")
    root = _closed(schema)
    written: dict[str, dict[str, Any]] = {}
    for key, part in root.get("properties", {}).items():
        forms = list(_values(root, part))
        if not forms:
            fail(f"the parameter {key!r} may hold true, false or null inside", f"/properties/{key}")
        value = forms[0] if len(forms) == 1 else {"type": "or", "elements": forms}
        written[key] = {"type": "sequence", "elements": [_text(f"{key}="), value]}
    optional = [key for key in written if key not in required]

    def after(key: str) -> dict[str, Any]:
        return {"type": "sequence", "elements": [_text(", "), written[key]]}

    def rest(keys: list[str]) -> list[dict[str, Any]]:
        return [{"type": "optional", "content": after(key)} for key in keys]

    if required:
        first, *others = required
        inner = [written[first], *map(after, others), *rest(optional)]
    elif len(optional) > _FIRST_PARAMETERS:
        fail(f"more than {_FIRST_PARAMETERS} parameters of which none is required")
    elif optional:
        starts = [
            {"type": "sequence", "elements": [written[key], *rest(optional[i + 1 :])]}
            for i, key in enumerate(optional)
        ]
        inner = [{"type": "optional", "content": {"type": "or", "elements": starts}}]
    else:
        inner = []
    return {"type": "sequence", "elements": [_text(f"{name}("), *inner, _text(")")]}


def _closed(schema: Any) -> Any:
    """The schema without further members of objects that list theirs: fewer texts, all of them instances.

    Below a keyword that denies or counts, fewer instances could be more: then nothing is changed.
    """
    made = copy.deepcopy(schema)
    if any(f'"{word}"' in json.dumps(schema) for word in ("not", "if", "oneOf", "contains")):
        return made
    queue = [made]
    while queue:
        node = queue.pop()
        if isinstance(node, list):
            queue += node
        elif isinstance(node, dict):
            queue += [
                value for key, value in node.items() if key not in ("enum", "const", "default", "examples")
            ]
            if (
                node.get("type") == "object"
                and "properties" in node
                and all(key in _WHOLE and key != "additionalProperties" for key in node)
            ):
                node["additionalProperties"] = False
    return made


def _values(root: dict[str, Any], part: Any) -> Iterator[dict[str, Any]]:
    """The forms of a parameter's value; none where it may hold what JSON and Python spell differently."""
    for _ in range(100):
        if not isinstance(part, dict) or set(part) - {*_ABOUT} != {"$ref"}:
            break
        part = _target(root, part["$ref"])
    if _same(root, part, ()):
        yield _json(root, part)
        return
    if not isinstance(part, dict):
        return
    words = set(part) - {*_ABOUT}
    if words == {"anyOf"} and isinstance(part["anyOf"], list):
        forms = [list(_values(root, branch)) for branch in part["anyOf"]]
        if all(forms):
            yield from (form for branch in forms for form in branch)
        return
    if "enum" in words or "const" in words:
        listed = [part["const"]] if "const" in part else part["enum"]
        if words - {"enum", "const", "type"} or not isinstance(listed, list):
            return
        kinds = part.get("type", type_of(listed[0]) if listed else "null")
        if "type" in part and any(
            type_of(value) not in (kinds if isinstance(kinds, list) else [kinds]) for value in listed
        ):
            return
        plain = [value for value in listed if value is not None and not isinstance(value, bool)]
        if not all(_same(root, {"const": value}, ()) for value in plain) or (
            "enum" in words and "const" in words
        ):
            return
        yield from (
            _text(str(value)) for value in (True, False, None) if any(value is item for item in listed)
        )
        if plain:
            yield _json(root, {"enum": plain})
        return
    kinds = part.get("type")
    kinds = [kinds] if isinstance(kinds, str) else kinds
    if not isinstance(kinds, list) or words & {"$ref", "not", "allOf", "anyOf", "oneOf", "if"}:
        return
    others = [kind for kind in kinds if kind not in ("boolean", "null")]
    rest = {**part, "type": others}
    if others and not _same(root, rest, ()):
        return
    if "boolean" in kinds:
        yield from (_text("True"), _text("False"))
    if "null" in kinds:
        yield _text("None")
    if others:
        yield _json(root, rest)


def _json(root: dict[str, Any], part: Any) -> dict[str, Any]:
    """The part as JSON; its references lead into the whole."""
    schema = part
    if '"$ref"' in json.dumps(part):
        name = "definitions" if "definitions" in root else "$defs"
        whole = {**root, "$id": _PARAMETERS, "properties": {**root["properties"], _HERE: part}}
        schema = {"$ref": f"{_PARAMETERS}#/properties/{_HERE}", name: {"parameters": whole}}
        if "$schema" in root:
            schema["$schema"] = root["$schema"]
    return {"type": "json_schema", "json_schema": schema}


def _target(root: dict[str, Any], reference: Any) -> Any:
    try:
        return target(root, reference)
    except (LookupError, AttributeError, TypeError):
        return True  # the engine says what is wrong with it


def _same(root: dict[str, Any], part: Any, above: tuple[str, ...]) -> bool:
    """Whether surely no instance holds true, false or null."""
    if part is False:
        return True
    if not isinstance(part, dict):
        return False
    if isinstance(part.get("$ref"), str):
        reference = part["$ref"]
        return reference in above or _same(root, _target(root, reference), (*above, reference))
    if "const" in part:
        return _same_value(part["const"])
    if isinstance(part.get("enum"), list):
        return all(map(_same_value, part["enum"]))
    for word in ("anyOf", "oneOf"):
        if isinstance(part.get(word), list) and all(_same(root, kid, above) for kid in part[word]):
            return True
    if isinstance(part.get("allOf"), list) and any(_same(root, kid, above) for kid in part["allOf"]):
        return True
    kinds = part.get("type")
    kinds = [kinds] if isinstance(kinds, str) else kinds
    if not isinstance(kinds, list) or not kinds or "boolean" in kinds or "null" in kinds:
        return False
    inner: list[Any] = []
    if "array" in kinds:
        if isinstance(part.get("items"), list):
            return False  # as older drafts have it
        inner += [*part.get("prefixItems", []), part.get("items", True)]
    if "object" in kinds:
        inner += [*part.get("properties", {}).values(), *part.get("patternProperties", {}).values()]
        inner.append(part.get("additionalProperties", True))
    return all(_same(root, kid, above) for kid in inner)


def _same_value(value: Any) -> bool:
    if isinstance(value, list):
        return all(map(_same_value, value))
    if isinstance(value, dict):
        return all(map(_same_value, value.values()))
    return value is not None and not isinstance(value, bool)


def calls_of(text: str, names: tuple[str, ...] | None) -> list[tuple[str, str]] | None:
    """The calls of a whole text with their arguments as JSON; None: it is no list of calls.

    `true`, `false` and `null` are read as well. names: of the functions; None: every name is one.
    """
    try:
        lines = [line.encode() for line in text.strip().splitlines(keepends=True)]
        with warnings.catch_warnings():  # of Python's about escapes that it does not know
            warnings.simplefilter("ignore")
            tree = ast.parse(text.strip(), mode="eval").body
        if not isinstance(tree, ast.List) or not tree.elts:
            return None
        found = []
        for call in tree.elts:
            if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name) or call.args:
                return None
            name = _as_written(call.func, call.func.id, lines)
            if (names is not None and name not in names) or None in [word.arg for word in call.keywords]:
                return None
            values = {_as_written(word, str(word.arg), lines): _value(word.value) for word in call.keywords}
            found.append((name, _json_text(values)))
        return found
    except (ValueError, SyntaxError, RecursionError, MemoryError, TypeError):
        return None


def _as_written(node: ast.expr | ast.keyword, name: str, lines: list[bytes]) -> str:
    """A name as the text has it: Python reads its normal form, `size_μm` for `size_µm`."""
    line = lines[node.lineno - 1]
    if line.isascii():
        return name
    written = line[node.col_offset : node.col_offset + _NAME].decode(errors="ignore")
    end = next((i for i in range(1, len(written)) if not written[: i + 1].isidentifier()), len(written))
    return written[:end]


def _json_text(value: Any) -> str:
    """JSON that can be sent. Two escapes of Python that JSON reads as one character, or half of one, stay."""
    text = json.dumps(value, ensure_ascii=False)
    return json.dumps(value) if any("\ud800" <= char <= "\udfff" for char in text) else text


_NAMES = {"true": True, "false": False, "null": None}


def _value(node: ast.expr) -> Any:
    if isinstance(node, ast.List | ast.Tuple):
        return [_value(item) for item in node.elts]
    if isinstance(node, ast.Dict):
        return {
            ast.literal_eval(k): _value(v)
            for k, v in zip(node.keys, node.values, strict=True)
            if k is not None
        }
    if isinstance(node, ast.Name):
        return _NAMES[node.id] if node.id in _NAMES else ast.literal_eval(node)
    value = ast.literal_eval(node)
    if not isinstance(value, str | int | float | bool | None):
        raise ValueError("no value of JSON")
    return value
