"""Tool calls as Python source, as Llama 3.2, Llama 4 and other models write them: ``[weather(city="Rome"),
time()]``.

In: functions with the schemas of their parameters; or a text. Out: schemas that can be written as calls; or
the calls of the text. Cost: linear.

A whole answer is a list of calls, or a text that does not begin with ``[``, because hosts read answers like
this. The engine writes the parameters (row "python" of elements.py) as members ``name=VALUE`` of an object,
and writes JSON with Python's ``True``, ``False`` and ``None``. The required parameters come first, as in
signatures.
"""

from __future__ import annotations

import ast
import json
import keyword
import unicodedata
import warnings
from typing import Any, NoReturn

from ..errors import UnsupportedSchema
from . import text_patterns

_NAME = 1000  # the most bytes of a name

#: Text that is no list of calls.
no_call: dict[str, Any] = {"type": "regex", "pattern": r"([^\[](.|\n)*)?"}


def parameters(name: str, schema: Any) -> dict[str, Any]:
    """Returns a function's parameters, the required ones first. UnsupportedSchema: a name is no name in
    Python."""

    def fail(what: str, place: str = "") -> NoReturn:
        raise UnsupportedSchema(f"pythonic calls of '{name}': {what}", pointer=place)

    if not _is_name(name):
        fail("the name is no name of Python")
    if not isinstance(schema, dict) or schema.get("type", "object") != "object":
        fail("the parameters are no schema of an object")
    properties = schema.get("properties", {})
    if not isinstance(properties, dict):
        return schema  # the engine's error says what is wrong
    as_python: dict[str, str] = {}
    for key in properties:
        if not _is_name(key):
            fail(f"the parameter {key!r} is no name of Python", f"/properties/{key}")
        if (other := as_python.setdefault(unicodedata.normalize("NFKC", key), key)) != key:
            fail(f"the parameters {other!r} and {key!r} are one name of Python", f"/properties/{key}")
    required = schema.get("required")
    first = {name for name in required if isinstance(name, str)} if isinstance(required, list) else set()
    listed = dict(sorted(properties.items(), key=lambda member: member[0] not in first))
    return {**schema, "properties": listed}


def key_pattern(schema: Any) -> str:
    """Returns an ECMA pattern of parameters' names: the listed names, and other names in ASCII.

    Empty if the schema allows only listed names.
    """
    given = schema.get("properties") if isinstance(schema, dict) else None
    properties: list[str] = [*given] if isinstance(given, dict) else []
    names = [*filter(_is_name, properties)]
    closed = given is not None and schema.get("additionalProperties") is False
    if closed and "patternProperties" not in schema and names == properties:
        return ""
    listed = "".join(f"{text_patterns.alternatives([name])}|" for name in names)
    return rf"^(?:{listed}(?!(?:{'|'.join(keyword.kwlist)})$)[A-Za-z_][A-Za-z0-9_]*)$"


def _is_name(text: str) -> bool:
    return text.isidentifier() and not keyword.iskeyword(text)


def calls_of(text: str, names: tuple[str, ...] | None) -> list[tuple[str, str]] | None:
    """Returns the calls of a whole text with their arguments as JSON, or None if the text is no list of
    calls.

    `true`, `false` and `null` are read as well. names: the functions' names; None: any name.
    """
    try:
        lines = [line.encode() for line in text.strip().splitlines(keepends=True)]
        with warnings.catch_warnings():  # Python warns of unknown escapes, and these warnings are suppressed
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
    """Returns a name as the text has it. Python's parser gives its normal form, `size_μm` for `size_µm`."""
    line = lines[node.lineno - 1]
    if line.isascii():
        return name
    written = line[node.col_offset : node.col_offset + _NAME].decode(errors="ignore")
    end = next((i for i in range(1, len(written)) if not written[: i + 1].isidentifier()), len(written))
    return written[:end]


def _json_text(value: Any) -> str:
    """Returns JSON in valid UTF-8. Halves of surrogate pairs stay escapes."""
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
